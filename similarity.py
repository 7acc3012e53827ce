"""The evaluator that stands in for the reader: tells topics apart by cosine and shared terms, not answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evaluator import squashed
from i18n import Language
from language import detect_language
from schema import Grade, Thresholds
from wording import terms

if TYPE_CHECKING:
    from embeddings import Vectors


class TextEmbedder(Protocol):
    """What `SimilarityEvaluator` needs of an embedder."""

    @property
    def name(self) -> str:
        """Model id."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of questions."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages."""
        ...


@dataclass(frozen=True, slots=True)
class SimilarityFit:
    """Logistic weights of (cosine, share of the question's terms found, 1), and thresholds."""

    cosine: float
    overlap: float
    bias: float
    thresholds: Thresholds


SIMILARITY_FITS: dict[Language, SimilarityFit] = {
    "en": SimilarityFit(cosine=6.58, overlap=2.85, bias=-4.86, thresholds=Thresholds(-0.1, -0.66, -0.75)),
    "zh": SimilarityFit(cosine=8.69, overlap=5.09, bias=-6.93, thresholds=Thresholds(0.69, -0.38, -0.6)),
}
"""Fitted on labelled pairs, action cases and PDF questions; the floors are low, so that strips with answers stay."""


class SimilarityEvaluator:
    """Grades from cosine and shared terms: tells topics apart, but not whether an on-topic text holds the answer."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """Says what it is made of."""
        return f"similarity ({self._embedder.name})"

    def thresholds(self, *, language: Language) -> Thresholds:
        """Thresholds fitted on labelled pairs."""
        return SIMILARITY_FITS[language].thresholds

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage; it has no answer span."""
        if not passages:
            return []
        fit = SIMILARITY_FITS[detect_language(question)]
        cosines = self._embedder.embed_passages(list(passages)) @ self._embedder.embed_queries([question])[0]
        asked = terms(question)
        return [
            Grade(
                squashed(
                    fit.cosine * float(cosine) + fit.overlap * len(asked & terms(text)) / max(1, len(asked)) + fit.bias
                )
            )
            for cosine, text in zip(cosines, passages, strict=True)
        ]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip, all embedded in one call."""
        grades = iter(self.grade(question, passages=[strip for strips in groups for strip in strips]))
        return [[next(grades) for _ in strips] for strips in groups]
