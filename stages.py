"""What `crag.py` asks of each stage: a stage is replaced by one class of this shape and one line in `build_crag`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from i18n import Language
from schema import Document, Draft, Grade, Knowledge, Rewritten, SearchReport, Thresholds, Turn


class Rewriter(Protocol):
    """Makes a follow-up question standalone; history is never evidence."""

    def rewrite(self, question: str, *, history: Sequence[Turn]) -> Rewritten:
        """Return the question unchanged when it stands alone."""
        ...


class Retriever(Protocol):
    """Finds documents in the knowledge base."""

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        """At most `limit` documents, best first, of `files` only when any are named."""
        ...


class Evaluator(Protocol):
    """Grades how surely a text contains what answers a question."""

    @property
    def name(self) -> str:
        """Model name for the trace."""
        ...

    def thresholds(self, *, language: Language) -> Thresholds:
        """The evaluator's calibrated thresholds."""
        ...

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage."""
        ...

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip of each group."""
        ...


class Refiner(Protocol):
    """Refines documents to knowledge strips."""

    def refine(self, parts: Sequence[str], *, documents: Sequence[Document], thresholds: Thresholds) -> Knowledge:
        """All strips, the useful ones kept."""
        ...


class Searcher(Protocol):
    """Searches the web with the question alone."""

    def search(self, question: str, *, language: Language) -> SearchReport:
        """Never raises: what went wrong is in the report."""
        ...


class Propose(Protocol):
    """Says what a search would ask for, for the reader to allow it; nothing is sent."""

    def __call__(self, question: str, *, language: Language) -> SearchReport:
        """Return a report of the mode ASK."""
        ...


class Generator(Protocol):
    """Writes the answer from the kept strips."""

    @property
    def name(self) -> str:
        """Model name for the trace."""
        ...

    def stream(self, question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
        """Pieces of text, then one draft."""
        ...
