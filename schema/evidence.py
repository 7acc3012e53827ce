"""What is retrieved, graded and refined: documents, grades, the verdict, strips, knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from schema.layout import Chunk, Region


class Origin(StrEnum):
    """Where evidence comes from; the two are never merged silently."""

    KB = "kb"
    WEB = "web"


@dataclass(frozen=True, slots=True)
class Channel:
    """Rank (1-based) and raw score of a document in one retrieval channel (dense, bm25, …)."""

    name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Document:
    """A retrieved text: a chunk of the knowledge base or a page from the web.

    `sources` names every other file that holds the same paragraph. `heading_path` holds the page title for the web.
    `warning` is the i18n key of what the reader should know about how it was found.
    """

    text: str
    origin: Origin
    rank: int
    file: str = ""
    page: int = 0
    heading_path: tuple[str, ...] = ()
    chunk: Chunk | None = None
    url: str = ""
    title: str = ""
    fetched_at: str = ""
    similarity: float = 0.0
    channels: tuple[Channel, ...] = ()
    sources: tuple[str, ...] = ()
    warning: str = ""

    def regions(self, start: int, end: int) -> tuple[Region, ...]:
        """Boxes of the characters `start..end`; empty for the web."""
        return self.chunk.regions(start, end) if self.chunk else ()


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start..end` of a passage that answer the question; `margin` is the score over 'no answer'."""

    start: int
    end: int
    margin: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens spent on language models."""

    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Sum of both."""
        return Usage(
            self.llm_calls + other.llm_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Grade:
    """How surely a text contains what answers the question: −1 (not at all) … 1 (it does).

    A failed grade counts as 0 and is shown as failed: never relevant, never irrelevant. `warning` is the i18n key of
    what the reader should know about it, such as a stand-in that graded where a model failed.
    """

    score: float
    span: Span | None = None
    failed: bool = False
    usage: Usage = Usage()
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Upper and lower thresholds of the action trigger and the floor for strips, all on the evaluator's scale."""

    upper: float
    lower: float
    strip: float


class Action(StrEnum):
    """What the trigger decides (paper, section 4.3)."""

    CORRECT = "correct"
    AMBIGUOUS = "ambiguous"
    INCORRECT = "incorrect"


@dataclass(frozen=True, slots=True)
class Graded:
    """A document with its grade (the best over the parts of a compound question)."""

    document: Document
    grade: Grade


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a question and the action its best score would trigger alone."""

    question: str
    action: Action
    best_score: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The action with what it was decided from; `missing` lists the parts that no document supports."""

    action: Action
    thresholds: Thresholds
    best_score: float
    parts: tuple[Part, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Parts not supported, when the question has several."""
        return tuple(part.question for part in self.parts if part.action is not Action.CORRECT)


@dataclass(frozen=True, slots=True)
class Strip:
    """A small piece of a document (paper, section 4.4): text, grade, provenance, and whether it was kept.

    `start..end` are characters of the document's text; `text` of a table strip repeats the header row in front.
    `part` is the number of the question's part, from 0, that the grade is the best for.
    """

    text: str
    document: Document
    start: int
    end: int
    grade: Grade = Grade(0.0)
    kept: bool = False
    part: int = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        """Boxes of the strip on its pages; empty for the web."""
        return self.document.regions(self.start, self.end)

    @property
    def page(self) -> int:
        """Page the strip starts on; 0 for the web."""
        regions = self.regions
        return regions[0].page if regions else self.document.page


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All strips in document order, kept and dropped; internal before external.

    `compound` when the question has several parts, so that two strips may answer two different questions.
    """

    strips: tuple[Strip, ...] = ()
    compound: bool = False

    @property
    def kept(self) -> tuple[Strip, ...]:
        """Strips that reach the generator, in document order."""
        return tuple(strip for strip in self.strips if strip.kept)

    @property
    def text(self) -> str:
        """The kept strips recomposed."""
        return "\n".join(strip.text for strip in self.kept)
