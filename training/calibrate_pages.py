"""Fit the reader's scale on PDF questions, action cases and given strips, and write reader.json and SHA256SUMS.

    PYTHONPATH=. python training/calibrate_pages.py --model models/reader --name crag-reader-4

Among what it fits is what a PDF question really retrieves: ten chunks with tables, lists and headings. Weights are a
logistic regression per language. The lower threshold is the one at which answerable questions kept and unanswerable
ones refused add up to most (outcomes.py); the scale is moved so that it stands at LOWER. The upper one is that of best
action accuracy, the strip floor the one that keeps KEPT_STRIPS of the answer strips. The evaluation data is read, never
copied.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from outcomes import Outcome, best_lower, kept_and_refused, passage_outcomes
from sklearn.linear_model import LogisticRegression

from benchmarks.common import data_dir, read_jsonl, table
from benchmarks.labelled import contains
from calibration import Case, measure
from config import load_settings
from evaluator import Asked, document_features, glance_features, squashed
from knowledge_base import open_knowledge_base
from question_parts import split_question
from reader import Reader, Reading
from refinement import decompose
from retriever import HybridRetriever
from schema import Action, Document, Strip

Features = tuple[float, ...]
RETRIEVED = 10
STRIPS_A_DOCUMENT = 4
SOURCES = ("handwritten", "OHR-Bench", "MMLongBench-Doc")
GIVEN_WEIGHT = 0.5
"""Weight of an action passage or a given strip beside one that a PDF question retrieved."""


LANGUAGES = ("en", "zh")
LOWER = -0.1
"""Where the scale is moved to have the lower threshold, in logits."""
STRIP_MOVE = {"en": 2.4, "zh": 1.6}
"""Added to a strip's logit: few strips hold the answer, and the regression says so."""
KEPT_STRIPS = {"en": 0.985, "zh": 0.994}
"""Share of the given answer strips above the floor; Chinese strips are told apart so well that more costs little."""
SMALLEST_GAP = 0.2
PASSAGE_QUESTIONS = 60
UPPERS = np.arange(LOWER + SMALLEST_GAP, 3.0, 0.05)


@dataclass(slots=True)
class Sample:
    """Features, labels and weights of one regression."""

    features: list[Features] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, features: Features, *, label: bool, weight: float = 1.0) -> None:
        """Note one example."""
        self.features.append(features)
        self.labels.append(label)
        self.weights.append(weight)

    def fit(self, *, columns: slice = slice(None)) -> NDArray[np.float64]:
        """Weights of a logistic regression on the columns; the last feature is the constant 1."""
        model = LogisticRegression(C=2.0, max_iter=1000, fit_intercept=False)
        model.fit(np.array(self.features)[:, columns], self.labels, sample_weight=self.weights)
        return np.asarray(model.coef_[0], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ReadCase:
    """An action case: features of each passage for each part of its question, and what is accepted."""

    parts: tuple[tuple[Features, ...], ...]
    accepted: frozenset[Action]

    def scored(self, weights: NDArray[np.float64]) -> Case:
        """The case with the best logit of each part."""
        best = (max(float(np.dot(weights, features)) for features in part) for part in self.parts)
        return Case(tuple(best), self.accepted)


def read_cases(language: str, *, reader: Reader, sample: Sample) -> list[ReadCase]:
    """Read the action cases; single questions also label passages."""
    cases = []
    for row in read_jsonl(data_dir() / "action" / f"cases_{language}.jsonl"):
        parts = []
        for part in split_question(row["question"]):
            asked, readings = Asked.of(part), reader.read(part, passages=row["passages"])
            pairs = zip(row["passages"], readings, strict=True)
            parts.append(tuple(document_features(asked, text=text, reading=reading) for text, reading in pairs))
        accepted = frozenset(Action(name.lower()) for name in row["acceptable_actions"])
        cases.append(ReadCase(tuple(parts), accepted))
        if len(parts) == 1 and row.get("passage_labels"):
            for features, label in zip(parts[0], row["passage_labels"], strict=True):
                sample.add(features, label=bool(label), weight=GIVEN_WEIGHT)
    return cases


def read_given_strips(language: str, *, reader: Reader, sample: Sample) -> None:
    """Read the paragraphs that come cut in strips, one of which holds the answer."""
    for row in read_jsonl(data_dir() / "refine" / f"strips_{language}.jsonl"):
        strips, whole = row["strips"], "\n".join(row["strips"])
        for features, label in zip(_strips(row["question"], whole, strips, reader=reader), row["keep"], strict=True):
            sample.add(features, label=bool(label), weight=GIVEN_WEIGHT)


def _strips(question: str, whole: str, strips: list[str], *, reader: Reader) -> Iterator[Features]:
    asked, reading = Asked.of(question), reader.read(question, passages=[whole])[0]
    start = 0
    for strip, alone in zip(strips, reader.read(question, passages=strips), strict=True):
        start = max(0, whole.find(strip, start))
        place = (start, start + len(strip))
        yield (alone.relevance, *glance_features(asked, strip=strip, whole=whole, reading=reading, place=place))


def read_pages(
    store: Path, *, reader: Reader, documents: dict[str, Sample], strips: dict[str, Sample]
) -> dict[str, list[Outcome]]:
    """Read what each PDF question retrieves: a chunk holds when it is on a gold page and has an answer string."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in LANGUAGES}
    folder = data_dir() / "pdf"
    settings = load_settings(files_dir=folder / "files", data_dir=store, trace=False)
    with open_knowledge_base(settings) as base:
        base.build()
        retriever = HybridRetriever(base, embedder=base.embedder, settings=settings)
        for row in read_jsonl(folder / "pdf_qa.jsonl"):
            if row["source"] not in SOURCES:
                continue
            asked = Asked.of(row["question"])
            found = retriever.retrieve(row["question"], limit=RETRIEVED)
            readings = reader.read(row["question"], passages=[document.text for document in found])
            held, read = False, []
            for document, reading in zip(found, readings, strict=True):
                pages = {region.page for region in document.regions(0, len(document.text))}
                gold = document.file == row["pdf"] and bool(pages & set(row["pages"]))
                holds = contains(row["answers"], document.text)
                held |= gold
                features = document_features(asked, text=document.text, reading=reading)
                read.append(features)
                if gold == holds or not row["answerable"]:
                    documents[row["lang"]].add(features, label=gold and holds, weight=1.5 if gold else 1.0)
                likely = _likely_strips(document, question=row["question"], reading=reading, reader=reader)
                for strip_features, strip in likely:
                    there = gold and bool({region.page for region in strip.regions} & set(row["pages"]))
                    has = contains(row["answers"], strip.text)
                    if there or not has or not row["answerable"]:
                        strips[row["lang"]].add(strip_features, label=there and has)
            if held or not row["answerable"]:
                outcomes[row["lang"]].append(Outcome(f"PDF {row['source']}", row["answerable"], tuple(read)))
    return outcomes


def _likely_strips(
    document: Document, *, question: str, reading: Reading, reader: Reader
) -> Iterator[tuple[Features, Strip]]:
    """The strips of a document that its own pass finds likeliest, read alone too."""
    asked = Asked.of(question)
    glances = [
        (
            glance_features(
                asked, strip=strip.text, whole=document.text, reading=reading, place=(strip.start, strip.end)
            ),
            strip,
        )
        for strip in decompose(document)
    ]
    best = sorted(glances, key=lambda glance: -glance[0][0])[:STRIPS_A_DOCUMENT]
    alone = reader.read(question, passages=[strip.text for _, strip in best])
    for (glance, strip), apart in zip(best, alone, strict=True):
        yield (apart.relevance, *glance), strip


def best_upper(cases: list[Case]) -> float:
    """The upper threshold of best action accuracy, smoothed over its neighbours."""
    found = [measure(cases, upper=float(upper), lower=LOWER).accuracy for upper in UPPERS]
    smooth = np.convolve(np.pad(found, 3, mode="edge"), np.ones(7) / 7, mode="valid")
    return float(UPPERS[int(np.argmax(smooth))])


def strip_floor(sample: Sample, *, weights: NDArray[np.float64], kept: float) -> float:
    """The logit above which that share of the given answer strips lies."""
    held = [
        float(np.dot(weights, features))
        for features, label, weight in zip(sample.features, sample.labels, sample.weights, strict=True)
        if label and weight == GIVEN_WEIGHT
    ]
    return float(np.quantile(held, 1 - kept))


def main() -> None:
    """Read, fit, print the tables, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--name", required=True, help="of the reader, as doctor and traces give it")
    parser.add_argument("--store", type=Path, default=Path("artifacts/bench/pdf"))
    parser.add_argument("--vectors", type=Path, default=Path("artifacts/bench/correction"))
    parser.add_argument("--read", type=Path, help="pickle of what was read, to fit again from or to write")
    parser.add_argument("--dry", action="store_true", help="report, write nothing")
    arguments = parser.parse_args()
    if arguments.read and arguments.read.exists():
        material = pickle.loads(arguments.read.read_bytes())  # noqa: S301 -- written below, by this script
    else:
        material = read_material(arguments)
        if arguments.read:
            arguments.read.write_bytes(pickle.dumps(material))
    calibration: dict[str, Any] = {}
    for language in LANGUAGES:
        calibration[language] = fit_language(language, material[language])
    if not arguments.dry:
        write(arguments.model, name=arguments.name, calibration=calibration)


@dataclass(slots=True)
class Material:
    """What one language is fitted on."""

    documents: Sample = field(default_factory=Sample)
    strips: Sample = field(default_factory=Sample)
    cases: list[ReadCase] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)


def read_material(arguments: argparse.Namespace) -> dict[str, Material]:
    """Read everything with the model."""
    reader = Reader(arguments.model)
    found = {language: Material() for language in LANGUAGES}
    documents = {language: material.documents for language, material in found.items()}
    strips = {language: material.strips for language, material in found.items()}
    outcomes = read_pages(arguments.store, reader=reader, documents=documents, strips=strips)
    for language, material in found.items():
        material.cases = read_cases(language, reader=reader, sample=material.documents)
        read_given_strips(language, reader=reader, sample=material.strips)
        settings = load_settings(data_dir=arguments.vectors / language, trace=False)
        material.outcomes = outcomes[language] + list(
            passage_outcomes(
                language,
                reader=reader,
                settings=settings,
                cache=arguments.vectors,
                questions=PASSAGE_QUESTIONS,
                retrieved=RETRIEVED,
            )
        )
    return found


def fit_language(language: str, material: Material) -> dict[str, Any]:
    """One language's part of reader.json; prints what its thresholds do."""
    document = material.documents.fit()
    document[-1] += LOWER - best_lower(material.outcomes, weights=document)
    cases = [case.scored(document) for case in material.cases]
    upper = best_upper(cases)
    weighed = {"strip": material.strips.fit(), "glance": material.strips.fit(columns=slice(1, None))}
    for weights in weighed.values():
        weights[-1] += STRIP_MOVE[language]
    floor = strip_floor(material.strips, weights=weighed["strip"], kept=KEPT_STRIPS[language])
    limits = {"upper": upper, "lower": LOWER, "strip": floor}
    rows = []
    for move in (-1.0, -0.5, 0.0, 0.5, 1.0):
        kept, refused = kept_and_refused(material.outcomes, weights=document, lower=LOWER + move)
        right = measure(cases, upper=max(upper, LOWER + move), lower=LOWER + move).accuracy
        rows.append({"language": language, "lower": LOWER + move, "kept": kept, "refused": refused, "actions": right})
    print(table(rows))
    return {
        name: [round(float(value), 5) for value in weights]
        for name, weights in {"document": document, **weighed}.items()
    } | {"thresholds": {name: round(squashed(logit), 4) for name, logit in limits.items()}}


def write(folder: Path, *, name: str, calibration: dict[str, Any]) -> None:
    """Write reader.json and the sums beside it."""
    described = {"name": name, "calibration": calibration}
    path = folder / "reader.json"
    path.write_text(json.dumps(described, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    names = ("reader.int8.onnx", "tokenizer.json", "reader.json")
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


if __name__ == "__main__":
    main()
