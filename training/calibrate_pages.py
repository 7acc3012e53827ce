"""Fit the reader's scale on PDF questions, action cases and given strips, and write reader.json and SHA256SUMS.

    PYTHONPATH=. python training/calibrate_pages.py --model models/reader --store artifacts/bench/pdf

`calibrate_reader.py` fits on labelled pairs alone; this script adds what a PDF question really retrieves (ten chunks
with tables, lists and headings), which is what the shipped scale was fitted on. Weights are a logistic regression per
language; `SCALES` moves each scale so that 0 lies between "holds" and "does not", and names the chosen thresholds: they
were read off the table that this script prints, for the best action accuracy whose lower threshold and floor still
refuse most unanswerable PDF questions. The evaluation data is read, never copied.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.common import data_dir, read_jsonl, table
from benchmarks.labelled import contains
from config import load_settings
from evaluator import Asked, document_features, glance_features, squashed
from knowledge_base import open_knowledge_base
from question_parts import split_question
from reader import Reader, Reading
from refinement import decompose
from retriever import HybridRetriever
from schema import Document, Strip

Features = tuple[float, ...]
RETRIEVED = 10
STRIPS_A_DOCUMENT = 4
SOURCES = ("handwritten", "OHR-Bench", "MMLongBench-Doc")
GIVEN_WEIGHT = 0.5
"""Weight of an action passage or a given strip beside one that a PDF question retrieved."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How far the two scales of a language are moved, and its thresholds, in logits after the move."""

    document: float
    strip: float
    upper: float
    lower: float
    floor: float


SCALES = {
    "en": Scale(document=1.4, strip=2.4, upper=0.75, lower=-0.1, floor=-1.45),
    "zh": Scale(document=0.7, strip=1.6, upper=0.9, lower=-0.1, floor=-2.5),
}


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
class Case:
    """An action case: features of each passage for each part of its question, and what is accepted."""

    parts: tuple[tuple[Features, ...], ...]
    accepted: tuple[str, ...]


def read_cases(language: str, *, reader: Reader, sample: Sample) -> list[Case]:
    """Read the action cases; single questions also label passages."""
    cases = []
    for row in read_jsonl(data_dir() / "action" / f"cases_{language}.jsonl"):
        parts = []
        for part in split_question(row["question"]):
            asked, readings = Asked.of(part), reader.read(part, passages=row["passages"])
            pairs = zip(row["passages"], readings, strict=True)
            parts.append(tuple(document_features(asked, text=text, reading=reading) for text, reading in pairs))
        cases.append(Case(tuple(parts), tuple(row["acceptable_actions"])))
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


def read_pages(store: Path, *, reader: Reader, documents: dict[str, Sample], strips: dict[str, Sample]) -> None:
    """Read what each PDF question retrieves: a chunk holds when it is on a gold page and has an answer string."""
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
            for document, reading in zip(found, readings, strict=True):
                pages = {region.page for region in document.regions(0, len(document.text))}
                gold = document.file == row["pdf"] and bool(pages & set(row["pages"]))
                holds = contains(row["answers"], document.text)
                if gold == holds or not row["answerable"]:
                    features = document_features(asked, text=document.text, reading=reading)
                    documents[row["lang"]].add(features, label=gold and holds, weight=1.5 if gold else 1.0)
                for features, strip in _likely_strips(
                    document, question=row["question"], reading=reading, reader=reader
                ):
                    there = gold and bool({region.page for region in strip.regions} & set(row["pages"]))
                    has = contains(row["answers"], strip.text)
                    if there or not has or not row["answerable"]:
                        strips[row["lang"]].add(features, label=there and has)


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


def accuracy(cases: list[Case], *, weights: NDArray[np.float64], upper: float, lower: float) -> float:
    """Share of cases whose action is accepted, thresholds in logits."""
    right = 0
    for case in cases:
        best = [max(float(np.dot(weights, features)) for features in part) for part in case.parts]
        actions = {"Correct" if s >= upper else "Incorrect" if s < lower else "Ambiguous" for s in best}
        right += (actions.pop() if len(actions) == 1 else "Ambiguous") in case.accepted
    return right / max(1, len(cases))


def main() -> None:
    """Read, fit, print the table, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--store", type=Path, default=Path("artifacts/bench/pdf"))
    parser.add_argument("--dry", action="store_true", help="report, write nothing")
    arguments = parser.parse_args()
    reader = Reader(arguments.model)
    documents, strips = {name: Sample() for name in SCALES}, {name: Sample() for name in SCALES}
    read_pages(arguments.store, reader=reader, documents=documents, strips=strips)
    calibration: dict[str, Any] = {}
    rows = []
    for language, scale in SCALES.items():
        cases = read_cases(language, reader=reader, sample=documents[language])
        read_given_strips(language, reader=reader, sample=strips[language])
        document = documents[language].fit()
        document[-1] += scale.document
        weighed = {"strip": strips[language].fit(), "glance": strips[language].fit(columns=slice(1, None))}
        for weights in weighed.values():
            weights[-1] += scale.strip
        limits = {"upper": scale.upper, "lower": scale.lower, "strip": scale.floor}
        calibration[language] = {
            name: [round(float(value), 5) for value in weights]
            for name, weights in {"document": document, **weighed}.items()
        } | {"thresholds": {name: round(squashed(logit), 4) for name, logit in limits.items()}}
        rows += [
            {
                "language": language,
                "lower": low,
                "actions": accuracy(cases, weights=document, upper=scale.upper, lower=low),
            }
            for low in (-2.5, -2.0, -1.5, -1.0, -0.5)
        ]
    print(table(rows))
    if not arguments.dry:
        write(arguments.model, calibration=calibration)


def write(folder: Path, *, calibration: dict[str, Any]) -> None:
    """Put the calibration into reader.json and the sums beside it."""
    path = folder / "reader.json"
    described = {**json.loads(path.read_text(encoding="utf-8")), "calibration": calibration}
    path.write_text(json.dumps(described, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    names = ("reader.int8.onnx", "tokenizer.json", "reader.json")
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


if __name__ == "__main__":
    main()
