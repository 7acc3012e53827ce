"""PDFs of the web and of the library, read by the embedded parser."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from config import Settings
from schema import PARATEXT

MAX_WEB_PAGES = 60


def pdf_pages(path: Path, *, settings: Settings, seconds: float | None = None) -> list[tuple[int, str]]:
    """Return (1-based page, text) of every page with text, without headers, footers and page numbers.

    With `seconds` the file comes from the web: that long it may take, and it may have at most 60 pages.
    :raises PdfError: not readable, encrypted, without text, or over a limit.
    """
    from pdf_loader import parse_pdf

    changes: dict[str, object] = {"pdf_parser": "embedded"}
    if seconds is not None:
        changes |= {"parse_timeout": seconds, "max_pages": MAX_WEB_PAGES}
    parsed = parse_pdf(path, settings=settings.model_copy(update=changes))
    body = [block for block in parsed.blocks if block.type not in PARATEXT and block.text.strip()]
    return [(page, "\n\n".join(block.text for block in blocks)) for page, blocks in groupby(body, key=lambda b: b.page)]
