"""The child process that reads PDFs: one JSON request a line comes in, one JSON reply a line goes out.

Requests: {"do": "pages" | "pictures", "path", "document_id", "password", "done", "wanted", "max_pages", "width"}.
Replies: {"start": page}, {"page": PageResult}, {"picture": page, "png": base64}, {"error": {…}}, {"end": true}.
Run as `python pdf_worker.py MEMORY_MB`; a file that takes more memory or crashes PDFium ends only this process.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import os
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from errors import CragError, PdfEmptyError, PdfError, PdfUnreadableError
from pdf_page import Announced, PageResult, dump_page
from pdf_repair import repair

logger = logging.getLogger(__name__)

Reply = dict[str, Any]


def read_pages(
    path: Path, *, document_id: str, password: str, done: Collection[int], max_pages: int, one_by_one: bool = False
) -> Iterator[PageResult | Announced]:
    """Yield each page not in `done`: the text layer, or OCR where that cannot be used; before OCR its number.

    A damaged file is repaired into a temporary copy first, and its pages say "repaired". `one_by_one` announces every
    page and does not touch those in `done`.

    :raises PdfError: the file cannot be read, has no pages, or more than `max_pages`.
    """
    try:
        yield from _read(
            path,
            path,
            document_id=document_id,
            password=password,
            done=done,
            max_pages=max_pages,
            one_by_one=one_by_one,
        )
    except PdfError as error:
        if error.code not in {"pdf_unreadable", "pdf_no_pages"}:
            raise
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / "repaired.pdf"
            if not repair(path, copy=copy, password=password):
                raise
            for page in _read(
                copy, path, document_id=document_id, password="", done=done, max_pages=max_pages, one_by_one=one_by_one
            ):
                yield page if isinstance(page, Announced) else replace(page, reason=page.reason or "repaired")


def _read(
    source: Path,
    named: Path,
    *,
    document_id: str,
    password: str,
    done: Collection[int],
    max_pages: int,
    one_by_one: bool,
) -> Iterator[PageResult | Announced]:
    from pdf_text import read_text_pages

    seen = 0
    pages = read_text_pages(
        source, name=named.name, document_id=document_id, password=password, one_by_one=one_by_one, skip=done
    )
    for page in pages:
        if isinstance(page, Announced):
            yield page
            continue
        seen += 1
        check_length(page.total, name=named.name, limit=max_pages)
        if page.page in done:
            continue
        if page.reason in {"no_text", "garbled", "unreadable"}:
            from pdf_ocr import read_ocr_page

            yield Announced(page.page, page.total)
            yield read_ocr_page(
                source,
                page=page.page,
                total=page.total,
                document_id=document_id,
                reason=page.reason,
                password=password,
            )
        else:
            yield page
    if not seen and not one_by_one:
        raise PdfEmptyError(f"{named.name} has no pages", hint="check the file", code="pdf_no_pages", file=named.name)


def check_length(pages: int, *, name: str, limit: int) -> None:
    """Refuse a file with more pages than the settings allow.

    :raises PdfUnreadableError: it is too long.
    """
    if pages > limit:
        raise PdfUnreadableError(
            f"{name} has {pages} pages, more than {limit}",
            hint="split it, or raise CRAG_MAX_PAGES",
            code="pdf_too_long",
            file=name,
            pages=pages,
            limit=limit,
        )


def _pictures(request: dict[str, Any]) -> Iterator[Reply]:
    from pdf_render import has_ink, page_count, render_page

    path, password = Path(request["path"]), request["password"]
    total = page_count(path, password=password)
    check_length(total, name=path.name, limit=request["max_pages"])
    for page in (page for page in request["wanted"] or range(1, total + 1) if page <= total):
        picture = render_page(path, page, width=request["width"], password=password)
        buffer = io.BytesIO()
        picture.save(buffer, format="PNG", compress_level=1)
        png = base64.b64encode(buffer.getvalue()).decode()
        yield {"picture": page, "png": png, "total": total, "ink": has_ink(picture)}


def _answers(request: dict[str, Any]) -> Iterator[Reply]:
    if request["do"] == "pictures":
        yield from _pictures(request)
        return
    pages = read_pages(
        Path(request["path"]),
        document_id=request["document_id"],
        password=request["password"],
        done=frozenset(request["done"]),
        max_pages=request["max_pages"],
        one_by_one=request["one_by_one"],
    )
    for page in pages:
        yield {"start": page.page, "total": page.total} if isinstance(page, Announced) else {"page": dump_page(page)}


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer requests until the input ends; every request is answered by replies that end with "end" or "error"."""
    for line in requests:
        try:
            for reply in _answers(json.loads(line)):
                _send(replies, reply)
            _send(replies, {"end": True})
        except CragError as error:
            values = {name: value for name, value in error.values.items() if isinstance(value, (str, int, float))}
            _send(
                replies,
                {
                    "error": {
                        "type": type(error).__name__,
                        "message": error.message,
                        "hint": error.hint,
                        "code": error.code,
                        "values": values,
                    }
                },
            )
        except MemoryError:
            _send(replies, {"error": {"type": "MemoryError"}})
            return


def _send(replies: TextIO, reply: Reply) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def limit_memory(megabytes: int) -> None:
    """Let this process have no more memory than that, where the system can be told so."""
    if sys.platform == "win32":
        return
    import resource

    limit = megabytes * 1024 * 1024
    with contextlib.suppress(ValueError, OSError):  # macOS refuses some limits
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Serve standard input and output; what libraries print goes to the error stream instead."""
    limit_memory(int(sys.argv[1]))
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, output)


if __name__ == "__main__":
    main()
