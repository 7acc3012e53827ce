"""Calibrate an exported reader on what it never saw, and write reader.json and SHA256SUMS beside it.

    PYTHONPATH=. python training/calibrate_reader.py --model models/reader --name crag-reader-1

Scores become logits by logistic regression per language, strips likewise from three readings of them; thresholds are
fitted by `calibration.fit_thresholds`. Half of the questions (by hash) fit and the other half is reported; what ships
is then fitted on all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from action_cases import made_cases
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.labelled import (
    ActionCase,
    Pair,
    StripCase,
    action_cases,
    cut_strips,
    given_strips,
    labelled_pairs,
)
from calibration import Case, Fit, fit_floor, fit_thresholds, measure
from evaluator import Asked, document_features, glance_features, squashed, weighed
from question_parts import split_question
from reader import Reader, Reading

KIND_WEIGHTS = {"gold among 10": 1.5, "no gold among 10": 0.75}
FLOOR_SHARE = 0.98
Features = tuple[float, ...]


def in_fitting_half(question: str) -> bool:
    """Half of the questions fit, the others check."""
    return hashlib.md5(question.encode(), usedforsecurity=False).digest()[0] % 2 == 0


@dataclass(frozen=True, slots=True)
class StripReading:
    """A strip as read alone and in its document, and whether it holds the answer."""

    question: str
    features: Features
    holds: bool
    group: int


class Remembering:
    """A reader that reads each pair once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.known: dict[tuple[str, str], Reading] = {}

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """Readings in order."""
        unread = [text for text in dict.fromkeys(passages) if (question, text) not in self.known]
        for text, reading in zip(unread, self._reader.read(question, passages=unread), strict=True):
            self.known[question, text] = reading
        return [self.known[question, text] for text in passages]


def fitted(features: NDArray[np.float64], labels: NDArray[np.bool_]) -> list[float]:
    """Weights of a logistic regression; the last feature is the constant 1."""
    model = LogisticRegression(C=10.0, max_iter=1000, fit_intercept=False).fit(features, labels)
    return list(map(float, model.coef_[0]))


def strip_readings(cases: Sequence[StripCase], *, reader: Remembering) -> list[StripReading]:
    """Every strip of the cases, read both ways."""
    found = []
    for group, case in enumerate(cases):
        joint = "\n" if case.language == "zh" else " "
        whole = joint.join(case.strips)
        reading = reader.read(case.question, [whole])[0]
        asked = Asked.of(case.question)
        start = 0
        for strip, alone, holds in zip(case.strips, reader.read(case.question, case.strips), case.holding, strict=True):
            place = (start, start + len(strip))
            glance = glance_features(asked, strip=strip, whole=whole, reading=reading, place=place)
            found.append(StripReading(case.question, (alone.relevance, *glance), holds, group))
            start += len(strip) + len(joint)
    return found


def strip_features(readings: Sequence[StripReading]) -> NDArray[np.float64]:
    """What `Calibration.strip` weighs, of each strip."""
    return np.array([reading.features for reading in readings])


def answer_logits(readings: Sequence[StripReading], weights: Sequence[float]) -> list[float]:
    """The best logit among the holding strips of each document."""
    logits = strip_features(readings) @ np.array(weights)
    best: dict[int, float] = {}
    for reading, logit in zip(readings, logits, strict=True):
        if reading.holds:
            best[reading.group] = max(best.get(reading.group, -99.0), float(logit))
    return list(best.values())


def read_features(question: str, passages: Sequence[str], *, reader: Remembering) -> list[Features]:
    """What the document weights weigh, for every passage."""
    asked = Asked.of(question)
    readings = reader.read(question, passages)
    return [document_features(asked, text=text, reading=r) for text, r in zip(passages, readings, strict=True)]


def action_scores(cases: Sequence[ActionCase], *, reader: Remembering, fit: Fitted) -> list[Case]:
    """Best score of each part of each case."""
    found = []
    for case in cases:
        best = tuple(
            max(fit.score(features) for features in read_features(part, case.passages, reader=reader))
            for part in split_question(case.question)
        )
        found.append(Case(best, case.accepted, weight=KIND_WEIGHTS.get(case.kind, 1.0)))
    return found


@dataclass(frozen=True, slots=True)
class Fitted:
    """What one language's part of reader.json holds."""

    document: list[float]
    strip: list[float]
    glance: list[float]
    upper: float
    lower: float
    floor: float

    def score(self, features: Features) -> float:
        """A document on the scale −1 … 1."""
        return squashed(weighed(self.document, features))

    def as_json(self) -> dict[str, Any]:
        """As reader.py's description has it."""
        limits = {"upper": self.upper, "lower": self.lower, "strip": self.floor}
        return {
            "document": [round(value, 5) for value in self.document],
            "strip": [round(value, 5) for value in self.strip],
            "glance": [round(value, 5) for value in self.glance],
            "thresholds": {name: round(value, 4) for name, value in limits.items()},
        }


class Material:
    """The unseen material of one language, read once."""

    def __init__(self, *, language: str, reader: Remembering, per_kind: int, per_source: int, pairs: int) -> None:
        self.reader = reader
        self.pairs: list[Pair] = [p for p in labelled_pairs() if p.unseen and p.language == language][:: max(1, pairs)]
        asked: defaultdict[str, list[str]] = defaultdict(list)
        for pair in self.pairs:
            asked[pair.question].append(pair.passage)
        for question, passages in asked.items():
            reader.read(question, passages)
        self.features = [read_features(p.question, [p.passage], reader=reader)[0] for p in self.pairs]
        cases = [
            c
            for c in (*made_cases(language=language, questions=per_kind, seed=1), *action_cases())
            if c.unseen and c.language == language
        ]
        self.actions: list[ActionCase] = cases
        for case in cases:
            for part in split_question(case.question):
                reader.read(part, case.passages)
        chosen = [*cut_strips(per_source=per_source, seed=2), *given_strips()]
        self.strips = strip_readings([c for c in chosen if c.unseen and c.language == language], reader=reader)

    def fit(self, *, chosen: Callable[[str], bool]) -> Fitted:
        """Fit everything on the chosen questions."""
        pairs = [n for n, pair in enumerate(self.pairs) if chosen(pair.question)]
        features = np.array([self.features[n] for n in pairs])
        document = fitted(features, np.array([self.pairs[n].answered for n in pairs]))
        strips = [reading for reading in self.strips if chosen(reading.question)]
        readings, holds = strip_features(strips), np.array([reading.holds for reading in strips])
        strip, glance = fitted(readings, holds), fitted(readings[:, 1:], holds)
        floor = fit_floor([squashed(logit) for logit in answer_logits(strips, strip)], share=FLOOR_SHARE)
        draft = Fitted(document, strip, glance, 1.0, -1.0, floor)
        cases = [case for case in self.actions if chosen(case.question)]
        upper, lower = fit_thresholds(action_scores(cases, reader=self.reader, fit=draft))
        return Fitted(document, strip, glance, upper, lower, floor)

    def report(self, fit: Fitted, *, chosen: Callable[[str], bool]) -> dict[str, Any]:
        """How a fit does on the chosen questions."""
        pairs = [n for n, pair in enumerate(self.pairs) if chosen(pair.question)]
        answered = np.array([self.pairs[n].answered for n in pairs])
        scores = np.array([fit.score(self.features[n]) for n in pairs])
        relevance = np.array([self.features[n][0] for n in pairs])
        strips = [reading for reading in self.strips if chosen(reading.question)]
        logits = strip_features(strips) @ np.array(fit.strip)
        kept = np.array([squashed(float(logit)) >= fit.floor for logit in logits])
        answers = [squashed(logit) >= fit.floor for logit in answer_logits(strips, fit.strip)]
        kinds: dict[str, dict[str, Any]] = {}
        for kind in sorted({case.kind for case in self.actions}):
            cases = [case for case in self.actions if chosen(case.question) and case.kind == kind]
            measured = self._measured(cases, fit=fit) if cases else None
            if measured:
                kinds[kind] = {"accuracy": measured.accuracy, "actions": measured.actions}
        return {
            "pairs": len(pairs),
            "auc": round(float(roc_auc_score(answered, scores)), 4),
            "auc_relevance_alone": round(float(roc_auc_score(answered, relevance)), 4),
            "brier": round(float(np.mean(((scores + 1) / 2 - answered) ** 2)), 4),
            "answer_strips_kept": round(float(np.mean(answers)), 4),
            "strips_kept": round(float(kept.mean()), 4),
            "thresholds": {"upper": fit.upper, "lower": fit.lower, "strip": fit.floor},
            "actions": kinds,
        }

    def _measured(self, cases: Sequence[ActionCase], *, fit: Fitted) -> Fit:
        return measure(action_scores(cases, reader=self.reader, fit=fit), upper=fit.upper, lower=fit.lower)


def write_description(folder: Path, *, name: str, calibration: dict[str, Any], report: dict[str, Any]) -> None:
    """Write reader.json and the checksums of everything in the folder."""
    described = {"name": name, "calibration": calibration, "unseen": report}
    (folder / "reader.json").write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    names = ("reader.int8.onnx", "tokenizer.json", "reader.json")
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Parse the command line, calibrate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder that export_reader.py wrote")
    parser.add_argument("--name", required=True)
    parser.add_argument("--per-kind", type=int, default=150)
    parser.add_argument("--per-source", type=int, default=150)
    parser.add_argument("--every", type=int, default=1, help="every n-th labelled pair only")
    parser.add_argument("--cache", type=Path, help="pickle of readings to go on from and to write")
    parser.add_argument("--languages", nargs="+", default=["en", "zh"])
    parser.add_argument("--dry", action="store_true", help="report, write nothing")
    arguments = parser.parse_args()
    reader = Remembering(Reader(arguments.model))
    if arguments.cache and arguments.cache.exists():
        reader.known = pickle.loads(arguments.cache.read_bytes())  # noqa: S301 -- written below, by this script
    calibration: dict[str, Any] = {}
    report: dict[str, Any] = {}
    for language in arguments.languages:
        material = Material(
            language=language,
            reader=reader,
            per_kind=arguments.per_kind,
            per_source=arguments.per_source,
            pairs=arguments.every,
        )
        if arguments.cache:
            arguments.cache.write_bytes(pickle.dumps(reader.known))
        half = material.fit(chosen=in_fitting_half)
        report[language] = material.report(half, chosen=lambda question: not in_fitting_half(question))
        calibration[language] = material.fit(chosen=lambda _: True).as_json()
        print(
            json.dumps(
                {language: {"check half": report[language], "shipped": calibration[language]}},
                indent=1,
                ensure_ascii=False,
            )
        )
    if not arguments.dry:
        write_description(arguments.model, name=arguments.name, calibration=calibration, report=report)


if __name__ == "__main__":
    main()
