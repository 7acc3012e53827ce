"""What a build says while it runs and when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """What a build is doing to a file."""

    SCAN = "scan"
    PARSE = "parse"
    EMBED = "embed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a build stands: file `file_number` of `files`, page `page` of `pages`, chunks written so far.

    `seconds_left` is an estimate from the bytes done; None until there is something to estimate from.
    """

    stage: Stage
    file: str = ""
    file_number: int = 0
    files: int = 0
    page: int = 0
    pages: int = 0
    chunks: int = 0
    seconds_left: float | None = None

    @property
    def number(self) -> int:
        """Short for `file_number`."""
        return self.file_number


class Outcome(StrEnum):
    """What a build did with a file."""

    INDEXED = "indexed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a build; `error` holds `code`, `message`, `hint` and `values` when it failed."""

    file: str
    status: Outcome
    pages: int = 0
    chunks: int = 0
    parser: str = ""
    ocr_pages: int = 0
    seconds: float = 0.0
    error: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the object of DESIGN section 6."""
        return {
            "file": self.file,
            "status": str(self.status),
            "pages": self.pages,
            "chunks": self.chunks,
            "parser": self.parser,
            "ocr_pages": self.ocr_pages,
            "seconds": round(self.seconds, 3),
            "error": dict(self.error) or None,
        }


@dataclass(frozen=True, slots=True)
class BuildReport:
    """A finished or stopped build; the totals were read back from the store."""

    files: tuple[FileReport, ...]
    documents: int
    pages: int
    chunks: int
    failed: int
    seconds: float
    stopped: bool = False
    left: int = 0

    def count(self, outcome: Outcome) -> int:
        """Return how many files had this outcome."""
        return sum(report.status is outcome for report in self.files)

    def as_json(self) -> dict[str, Any]:
        """Return the object of DESIGN section 6, with `stopped`, `left` (files not reached) and `seconds` added."""
        return {
            "documents": [report.as_json() for report in self.files],
            "totals": {
                "documents": self.documents,
                "pages": self.pages,
                "chunks": self.chunks,
                "failed": self.failed,
            },
            "stopped": self.stopped,
            "left": self.left,
            "seconds": round(self.seconds, 3),
        }
