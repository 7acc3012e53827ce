"""Other ways to cut and order strips: those of the paper's released code, described in its reference notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refinement import StripRefiner
from schema import Document, Knowledge, Strip, Thresholds
from sentences import Span, sentence_spans, width
from stages import Evaluator, Refiner

Cut = Callable[[str], list[Span]]


def sentence_groups(text: str) -> list[Span]:
    """Three sentences each."""
    spans = sentence_spans(text)
    return [(group[0][0], group[-1][1]) for group in (spans[at : at + 3] for at in range(0, len(spans), 3))]


def fixed_words(text: str, *, words: int = 50) -> list[Span]:
    """Fifty words each; a Chinese character counts as half a word, as two make one on average."""
    spans: list[Span] = []
    count = 0.0
    for match in re.finditer(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+", text):
        size = 0.5 if width(match[0]) == 2 and len(match[0]) == 1 else 1.0
        if not spans or count + size > words:
            spans.append(match.span())
            count = 0.0
        spans[-1] = (spans[-1][0], match.end())
        count += size
    return spans


@dataclass(frozen=True, slots=True)
class FixedWidthRefiner:
    """Cuts by `cut` instead of at the layout; grading, floor and limit are the pipeline's own."""

    evaluator: Evaluator
    cut: Cut
    max_strips: int

    def refine(self, parts: Sequence[str], *, documents: Sequence[Document], thresholds: Thresholds) -> Knowledge:
        """All strips, the useful ones kept."""
        groups = [
            [Strip(text=document.text[a:b], document=document, start=a, end=b) for a, b in self.cut(document.text)]
            for document in documents
        ]
        return StripRefiner(self.evaluator, max_strips=self.max_strips).select(
            parts, groups=groups, thresholds=thresholds
        )


@dataclass(frozen=True, slots=True)
class ScoreOrder:
    """The same strips, the best first."""

    inner: Refiner

    def refine(self, parts: Sequence[str], *, documents: Sequence[Document], thresholds: Thresholds) -> Knowledge:
        """What `inner` returns, sorted by grade."""
        knowledge = self.inner.refine(parts, documents=documents, thresholds=thresholds)
        return Knowledge(tuple(sorted(knowledge.strips, key=lambda strip: -strip.grade.score)))
