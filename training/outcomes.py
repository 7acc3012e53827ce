"""What whole questions retrieve, and at which lower threshold most are rightly kept or refused."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import data_dir, read_jsonl
from benchmarks.correction import MemoryStore, as_chunks
from benchmarks.labelled import contains
from config import Settings
from embeddings import build_embedder
from evaluator import Asked, document_features
from knowledge_base import KnowledgeBase
from reader import Reader
from retriever import HybridRetriever

Features = tuple[float, ...]
SEED = 11
"""Not that of benchmarks/correction.py: other questions are drawn."""

AS_GOOD = 0.01
"""Below this, two levels are told apart by chance alone; of such the lower one refuses fewer answerable questions."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question's retrieved documents, as features; `answerable` says whether one of them holds the answer."""

    source: str
    answerable: bool
    documents: tuple[Features, ...]

    def best(self, weights: NDArray[np.float64]) -> float:
        """The best document's logit."""
        return max(float(np.dot(weights, features)) for features in self.documents)


def passage_outcomes(
    language: str, *, reader: Reader, settings: Settings, cache: Path, questions: int, retrieved: int
) -> Iterator[Outcome]:
    """Questions whose passage is in the knowledge base, and as many whose passage is nowhere."""
    folder = data_dir() / "qa"
    passages = [row for row in read_jsonl(folder / f"passages_{language}.jsonl") if row["store"] == "kb"]
    chunks = as_chunks(sorted(passages, key=lambda row: str(row["pid"])), settings=settings)
    cache.mkdir(parents=True, exist_ok=True)
    store = MemoryStore(chunks, embedder=build_embedder(settings), cache=cache)
    retriever = HybridRetriever(cast("KnowledgeBase", store), embedder=store.embedder, settings=settings)
    rows = list(read_jsonl(folder / f"questions_{language}.jsonl"))
    for place in ("kb", "none"):
        asked = [row for row in rows if row["store"] == place]
        random.Random(SEED).shuffle(asked)
        for row in asked[:questions]:
            texts = [document.text for document in retriever.retrieve(row["question"], limit=retrieved)]
            readings = reader.read(row["question"], passages=texts)
            features = [
                document_features(Asked.of(row["question"]), text=text, reading=reading)
                for text, reading in zip(texts, readings, strict=True)
            ]
            holds = any(contains(row["answers"], text) for text in texts)
            if holds == (place == "kb"):
                yield Outcome(f"passages {place}", holds, tuple(features))


def kept_and_refused(outcomes: Sequence[Outcome], *, weights: NDArray[np.float64], lower: float) -> tuple[float, float]:
    """Shares of the answerable questions at or above `lower` and of the others below it, each source counting alike."""
    shares: dict[bool, dict[str, list[bool]]] = {True: {}, False: {}}
    for outcome in outcomes:
        right = (outcome.best(weights) >= lower) == outcome.answerable
        shares[outcome.answerable].setdefault(outcome.source, []).append(right)
    kept, refused = (float(np.mean([np.mean(right) for right in shares[side].values()])) for side in (True, False))
    return kept, refused


def best_lower(outcomes: Sequence[Outcome], *, weights: NDArray[np.float64]) -> float:
    """The lowest logit at which kept and refused, smoothed over the neighbours, add up to most but for AS_GOOD."""
    scores = np.array([outcome.best(weights) for outcome in outcomes])
    levels = np.quantile(scores, np.linspace(0.02, 0.98, 97))
    sums = np.array([sum(kept_and_refused(outcomes, weights=weights, lower=float(level))) for level in levels])
    smooth = np.convolve(np.pad(sums, 2, mode="edge"), np.ones(5) / 5, mode="valid")
    return float(levels[int(np.argmax(smooth >= smooth.max() - AS_GOOD))])
