"""PDF → blocks, page by page: MinerU when it is configured, else the text layer, else OCR."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, assert_never

from config import Settings
from errors import PdfEmptyError, PdfUnreadableError
from mineru_api import MineruApi
from mineru_client import MineruModel
from mineru_local import can_run_locally
from mineru_pages import Source, read_hosted, read_windows
from pdf_page import PageResult, dump_page, load_page
from pdf_process import child_pages
from pdf_structure import assemble
from schema import Block, BlockParser

__all__ = ["PageResult", "ParsedPdf", "PdfLoader", "block_as_json", "dump_page", "load_page", "parse_pdf"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ParsedPdf:
    """A whole document; `ocr_pages` counts pages read by OCR, `reasons` says why a page was read otherwise."""

    pages: int
    parser: str
    blocks: tuple[Block, ...]
    ocr_pages: int
    reasons: tuple[tuple[int, str], ...] = ()


class PdfLoader:
    """Reads PDFs with the parser that the settings choose."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._mineru = choose_mineru(settings)

    @property
    def parser(self) -> str:
        """Name of the parser in use: embedded, mineru-local, mineru-server or mineru-api."""
        return self._mineru.name if self._mineru else "embedded"

    def pages(
        self, path: Path, *, document_id: str, password: str = "", done: Collection[int] = ()
    ) -> Iterator[PageResult]:
        """Yield each page of a PDF as it completes; pages in `done` are left out.

        A page that MinerU cannot read is read by the embedded parser, and its `reason` says so.

        :raises PdfEncryptedError: a password is needed, or the one given is wrong.
        :raises PdfUnreadableError: the file is not a PDF, is damaged, or breaks a limit.
        :raises PdfEmptyError: the file has no bytes or no pages.
        """
        check_file(path)
        if self._mineru is None:
            yield from child_pages(path, document_id=document_id, password=password, done=done, settings=self.settings)
            return
        reader = read_hosted if isinstance(self._mineru, MineruApi) else read_windows
        faults: dict[int, str] = {}
        finished = set(done)
        source = Source(path, document_id=document_id, password=password, settings=self.settings)
        for page in reader(self._mineru, source=source, done=frozenset(done), faults=faults):
            finished.add(page.page)
            yield page
        if not faults:
            return
        for page in child_pages(
            path, document_id=document_id, password=password, done=finished, settings=self.settings
        ):
            fault = faults.get(page.page) or faults.get(0, "mineru_error")
            reason = f"{fault}; {page.reason}" if page.reason else fault
            yield replace(page, reason=reason)

    def assemble(self, pages: Sequence[PageResult]) -> tuple[Block, ...]:
        """Return the blocks of the whole document: joins, running heads, heading tree, captions."""
        return assemble(pages)


def choose_mineru(settings: Settings) -> MineruModel | MineruApi | None:
    """Return the MinerU that the settings ask for; None for the embedded parser.

    "auto" takes local weights when a GPU is there, else a configured server, else the hosted service when it has a
    token and consent.

    :raises ConfigurationError: what is asked for by name is not there.
    """
    match settings.pdf_parser:
        case "embedded":
            return None
        case "mineru-local":
            return MineruModel(settings, local=True)
        case "mineru-server":
            return MineruModel(settings, local=False)
        case "mineru-api":
            return MineruApi(settings)
        case "auto":
            if can_run_locally(settings):
                return MineruModel(settings, local=True)
            if settings.mineru_url:
                return MineruModel(settings, local=False)
            if settings.mineru_api_key.get_secret_value() and settings.mineru_api_consent:
                return MineruApi(settings)
            return None
        case _:
            assert_never(settings.pdf_parser)


def check_file(path: Path) -> None:
    """Refuse what is plainly no readable PDF before any parser sees it.

    :raises PdfUnreadableError: missing, not readable, or not a PDF.
    :raises PdfEmptyError: zero bytes.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(1024)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise PdfUnreadableError(
            f"{path.name}: {reason}",
            hint="check the file's permissions",
            code="pdf_no_access",
            file=path.name,
            reason=reason,
        ) from error
    if size == 0:
        raise PdfEmptyError(f"{path.name} has no bytes", hint="upload it again", code="pdf_zero_bytes", file=path.name)
    if b"%PDF-" not in head:
        raise PdfUnreadableError(
            f"{path.name} is not a PDF", hint="convert it to PDF", code="pdf_not_pdf", file=path.name
        )


def document_id_of(path: Path) -> str:
    """Return the id of a document: a hash of its bytes, 16 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]


def parse_pdf(path: Path, *, settings: Settings, password: str = "") -> ParsedPdf:
    """Return the whole document.

    :raises PdfEmptyError: also when no text could be found on any page.
    """
    loader = PdfLoader(settings)
    check_file(path)
    pages = list(loader.pages(path, document_id=document_id_of(path), password=password))
    return gather(pages, blocks=loader.assemble(pages), parser=loader.parser, name=path.name)


def gather(pages: Sequence[PageResult], *, blocks: tuple[Block, ...], parser: str, name: str) -> ParsedPdf:
    """Return the summary of a parsed document.

    :raises PdfEmptyError: it has no pages, or no text on them.
    """
    if not pages:
        raise PdfEmptyError(f"{name} has no pages", hint="check the file", code="pdf_no_pages", file=name)
    if not any(block.text.strip() for block in blocks):
        raise PdfEmptyError(f"{name}: no text found", hint="is it blank?", code="pdf_no_text", file=name)
    reasons = tuple((page.page, page.reason) for page in pages if page.reason)
    ocr = sum(page.parser is BlockParser.OCR for page in pages)
    return ParsedPdf(len(pages), parser, blocks, ocr, reasons)


def block_as_json(block: Block) -> dict[str, Any]:
    """Return a block as `parse` prints it."""
    return {
        "page": block.page,
        "order": block.order,
        "type": block.type.value,
        "level": block.level,
        "text": block.text,
        "html": block.html,
        "heading_path": list(block.heading_path),
        "bbox": list(block.bbox),
        "parts": [{"page": part.page, "bbox": list(part.bbox)} for part in block.parts],
        "angle": block.angle,
        "parser": block.parser.value,
        "confidence": block.confidence,
    }
