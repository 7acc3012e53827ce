"""Pages of the web as text: fetched in parallel over guarded connections, within limits of time and size.

A page is data: scripts, images and styles are never loaded, hidden elements are dropped (evidence must be visible
to who opens the page), nothing on it is followed but redirects.
"""

from __future__ import annotations

import codecs
import logging
import re
import tempfile
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from enum import StrEnum
from pathlib import Path
from typing import Any

import httpx

from config import Settings
from errors import PdfError
from i18n import Language
from web_guard import NETWORK_ERRORS, AddressRefusedError, guarded_client
from web_styles import hides, with_styles

PAGE_SECONDS = 8.0
MAX_HTML_BYTES = 3_000_000
"""A longer page is cut here."""
MAX_PDF_BYTES = 20_000_000
"""A longer PDF is not read."""
PIECE_BYTES = 1_000_000
"""Most that is unpacked at once."""
MAX_TAGS = 40_000
"""Markup beyond is cut: extraction slows down faster than a page grows."""
MAX_CHARACTERS = 200_000
"""Text beyond is cut."""
PARALLEL = 5
_USER_AGENT = "Mozilla/5.0 (compatible; CRAG/1.0; PDF knowledge base)"
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w-]{2,20})", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

logger = logging.getLogger(__name__)


class FetchProblem(StrEnum):
    """Why a page has no text."""

    NONE = ""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    STATUS = "status"
    TYPE = "type"
    SIZE = "size"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Section:
    """Text of a page, or of one page of a PDF; `anchor` (`#page=N`) leads there."""

    text: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What was read at an address; without sections `problem` says why. `fetched_at` is ISO 8601, UTC."""

    url: str
    title: str = ""
    sections: tuple[Section, ...] = ()
    fetched_at: str = ""
    problem: FetchProblem = FetchProblem.NONE


@dataclass(frozen=True, slots=True)
class PageFetcher:
    """Fetches pages; `allowed_hosts` skip the address check and are for loopback tests only."""

    settings: Settings
    allowed_hosts: Collection[str] = field(default=frozenset())

    def fetch(self, urls: Sequence[str], *, language: Language, deadline: float) -> list[Page]:
        """Return one page for each address, in order; those not there by the deadline have the problem TIMEOUT.

        `deadline` is on the clock of `time.monotonic`.
        """
        executor = ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="web-page")
        limit = min(deadline, time.monotonic() + PAGE_SECONDS)
        futures = [executor.submit(self._page, url, language=language, deadline=limit) for url in urls]
        wait(futures, timeout=max(0.0, limit - time.monotonic()))
        executor.shutdown(wait=False, cancel_futures=True)
        return [_result(future, url=url) for future, url in zip(futures, urls, strict=True)]

    def _page(self, url: str, *, language: Language, deadline: float) -> Page:
        headers = {
            "User-Agent": _USER_AGENT,
            "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8",
            "Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5" if language == "zh" else "en,zh;q=0.5",
            "Accept-Encoding": "gzip, deflate",
        }
        fetched_at = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            with (
                guarded_client(
                    deadline=deadline,
                    headers=headers,
                    allowed_hosts=self.allowed_hosts,
                    blocked=self.settings.web_blocked,
                ) as client,
                client.stream("GET", url) as response,
            ):
                body = _read(response)
        except AddressRefusedError as error:
            logger.info("page refused: %s", error.message)
            return Page(url, problem=FetchProblem.REFUSED)
        except httpx.TooManyRedirects:
            return Page(url, problem=FetchProblem.REFUSED)
        except NETWORK_ERRORS as error:
            late = time.monotonic() >= deadline or "Timeout" in type(error).__name__
            return Page(url, problem=FetchProblem.TIMEOUT if late else FetchProblem.UNREACHABLE)
        if isinstance(body, FetchProblem):
            return Page(url, problem=body)
        title, sections = self._text(body, deadline=deadline)
        problem = FetchProblem.NONE if sections else FetchProblem.EMPTY
        return Page(url, title=title, sections=sections, fetched_at=fetched_at, problem=problem)

    def _text(self, body: _Body, *, deadline: float) -> tuple[str, tuple[Section, ...]]:
        if body.content.startswith(b"%PDF-"):
            return "", self._pdf_sections(body.content, seconds=max(0.1, deadline - time.monotonic()))
        text = decode_page(body.content, charset=body.charset)
        if body.plain:
            return "", (Section(text[:MAX_CHARACTERS]),) if text.strip() else ()
        return html_text(text)

    def _pdf_sections(self, content: bytes, *, seconds: float) -> tuple[Section, ...]:
        from web_pdf import pdf_pages

        with tempfile.TemporaryDirectory(prefix="crag-web-") as folder:
            path = Path(folder) / "page.pdf"
            path.write_bytes(content)
            try:
                pages = pdf_pages(path, settings=self.settings, seconds=seconds)
            except PdfError as error:
                logger.info("PDF of a web page: %s", error.code)
                return ()
        return tuple(Section(text, anchor=f"#page={page}") for page, text in pages)


@dataclass(frozen=True, slots=True)
class _Body:
    content: bytes
    charset: str
    plain: bool


def _read(response: httpx.Response) -> _Body | FetchProblem:
    """The body within the size limits, or why there is none."""
    if response.status_code != httpx.codes.OK:
        return FetchProblem.STATUS
    header = Message()
    header["content-type"] = response.headers.get("content-type", "text/html")
    kind = header.get_content_type()
    if kind not in ("text/html", "application/xhtml+xml", "text/plain", "application/pdf", "application/octet-stream"):
        return FetchProblem.TYPE
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        return FetchProblem.TYPE
    content = bytearray()
    is_pdf = False
    for piece in unpacked(response.iter_raw(), encoding=encoding):
        content += piece
        is_pdf = content.startswith(b"%PDF-")
        if len(content) > (MAX_PDF_BYTES if is_pdf else MAX_HTML_BYTES):
            break
    if is_pdf and len(content) > MAX_PDF_BYTES:
        return FetchProblem.SIZE
    if not is_pdf and kind in ("application/pdf", "application/octet-stream"):
        return FetchProblem.TYPE
    limit = MAX_PDF_BYTES if is_pdf else MAX_HTML_BYTES
    charset = header.get_content_charset() or ""
    return _Body(bytes(content[:limit]), charset=charset, plain=kind == "text/plain")


def unpacked(pieces: Iterable[bytes], *, encoding: str) -> Iterator[bytes]:
    """Yield a body in pieces of at most `PIECE_BYTES` once unpacked, so that a bomb never unfolds at once.

    :raises OSError: the packed data is damaged.
    """
    if encoding in ("", "identity"):
        yield from pieces
        return
    unpacker = None
    for piece in pieces:
        if unpacker is None:
            # Some servers send deflate without its zlib header.
            raw = encoding == "deflate" and piece[:1] != b"\x78"
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        try:
            yield unpacker.decompress(piece, PIECE_BYTES)
            while unpacker.unconsumed_tail:
                yield unpacker.decompress(unpacker.unconsumed_tail, PIECE_BYTES)
        except zlib.error as error:
            raise OSError(f"a page's packed data is damaged: {error}") from error


def decode_page(content: bytes, *, charset: str = "") -> str:
    """Return the text of a page: byte order mark, then the header's charset, the page's own, UTF-8, then a guess.

    A charset that leaves more than one character in a thousand undecoded is not believed.
    """
    for mark, name in _MARKS:
        if content.startswith(mark):
            return content.decode(name, errors="replace")
    declared = _META_CHARSET.search(content[:4096])
    for name in (charset, declared.group(1).decode("ascii") if declared else "", "utf-8"):
        text = _decoded(content, charset=name)
        if text is not None:
            return text
    from charset_normalizer import from_bytes

    guess = from_bytes(content[:200_000]).best()
    return content.decode(guess.encoding if guess else "utf-8", errors="replace")


def _decoded(content: bytes, *, charset: str) -> str | None:
    """The text, or nothing when the charset is unknown or plainly wrong; GBK names mean its superset GB 18030."""
    name = "gb18030" if charset.lower() in ("gb2312", "gbk", "x-gbk", "gb_2312-80") else charset
    try:
        text = content.decode(name, errors="replace")
    except LookupError:
        return None
    return text if text.count("\ufffd") <= 1 + len(text) // 1000 else None


def html_text(html: str) -> tuple[str, tuple[Section, ...]]:
    """Return the title and the visible main text of an HTML page; no section when there is none."""
    from trafilatura import bare_extraction, load_html

    tree = load_html(with_styles(_cut(html)))
    if tree is None:
        return "", ()
    _drop_hidden(tree)
    found = bare_extraction(tree, include_comments=False, include_tables=True, favor_recall=True)
    text = (getattr(found, "text", None) or "").strip()
    title = " ".join((tree.findtext(".//title") or "").split())
    return title, (Section(text[:MAX_CHARACTERS]),) if text else ()


def _cut(html: str) -> str:
    """The page up to its last tag that is read."""
    tags = re.finditer("<", html)
    end = next((tag.start() for number, tag in enumerate(tags) if number == MAX_TAGS), len(html))
    return html[:end]


def _drop_hidden(tree: Any) -> None:
    """Remove what a browser would not show."""
    styled = [element for element in tree.xpath("//*[@style]") if hides(element.get("style"))]
    for element in [*tree.xpath("//*[@hidden or @aria-hidden='true'] | //template | //noscript"), *styled]:
        if element.getparent() is not None:
            element.drop_tree()


def _result(future: Future[Page], *, url: str) -> Page:
    """The page; TIMEOUT when it is not there yet, EMPTY when it broke what reads it."""
    if future.cancelled() or not future.done():
        return Page(url, problem=FetchProblem.TIMEOUT)
    if (error := future.exception()) is not None:
        logger.warning("a web page could not be read: %s", type(error).__name__)
        return Page(url, problem=FetchProblem.EMPTY)
    return future.result()
