"""Damaged PDFs made readable again: what qpdf mends, else every page object that is still in the bytes."""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pikepdf

logger = logging.getLogger(__name__)

MAX_UNPACKED = 200_000_000
"""Bytes of packed objects that are unfolded; a longer file is a bomb, or was not worth it."""

_OBJECT = re.compile(rb"\b(\d{1,9})\s+(\d{1,5})\s+obj\b")
_PACKED = re.compile(rb"\bobj\b((?:(?!endobj).){0,600}?/ObjStm.*?)stream\r?\n", re.S)
_PAGE = re.compile(rb"/Type\s*/Page\b")
_INHERITED = ("/Resources", "/MediaBox", "/CropBox", "/Rotate")
_DEEPEST = 40
_LONGEST_PAGE = 100_000


def repair(path: Path, *, copy: Path, password: str) -> bool:
    """Write what can be recovered of a damaged file to `copy`; False when that is nothing.

    qpdf finds objects whose table is lost. When the page tree is lost too, as in a file whose end is missing, a new
    one is made of the page objects in the order of the file; that needs a file without encryption.
    """
    import pikepdf

    try:
        with pikepdf.open(path, password=password, suppress_warnings=True) as pdf:
            if len(pdf.pages):
                pdf.save(copy)
                return True
    except (pikepdf.PdfError, RuntimeError, ValueError, OSError) as error:
        logger.info("qpdf cannot repair %s: %s", path.name, type(error).__name__)
    try:
        return _salvage(path.read_bytes(), copy=copy)
    except (pikepdf.PdfError, RuntimeError, ValueError, OSError) as error:
        logger.info("%s cannot be repaired: %s", path.name, type(error).__name__)
        return False


def _salvage(data: bytes, *, copy: Path) -> bool:
    """Write a file of all pages found in `data`; False without pages, or when they are encrypted."""
    import pikepdf

    if b"/Encrypt" in data:
        return False
    bare = re.sub(rb"\b(?:trailer|startxref)\b", lambda found: b" " * len(found[0]), data)
    whole = b"".join((bare, b"\nendstream\nendobj\n", *_unfolded(data)))
    starts = list(_OBJECT.finditer(whole))
    ends = [*(found.start() for found in starts[1:]), len(whole)]
    pages = dict.fromkeys(
        b"%s %s R" % found.groups()
        for found, end in zip(starts, ends, strict=True)
        if _PAGE.search(whole, found.end(), min(end, found.end() + _LONGEST_PAGE))
    )
    if not pages:
        return False
    free = max(int(found[1]) for found in starts) + 1
    tree = (
        b"\n%d 0 obj\n<</Type/Pages/Kids[%s]/Count %d>>\nendobj\n%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj\n"
        b"trailer\n<</Root %d 0 R/Size %d>>\n%%%%EOF\n"
        % (free, b" ".join(pages), len(pages), free + 1, free, free + 1, free + 2)
    )
    rebuilt = copy.with_name("rebuilt.pdf")
    rebuilt.write_bytes(whole + tree)
    with pikepdf.open(rebuilt, suppress_warnings=True) as pdf:
        for page in pdf.pages:
            _inherit(page.obj)
            page.obj.Parent = pdf.Root.Pages
        pdf.save(copy)
    return True


def _unfolded(data: bytes) -> Iterator[bytes]:
    """Yield the objects that are packed in object streams as plain ones; of a cut stream those that are whole."""
    left = MAX_UNPACKED
    for found in _PACKED.finditer(data):
        first, count = (re.search(rb"/%s\s+(\d+)" % name, found[1]) for name in (b"First", b"N"))
        if first is None or count is None:
            continue
        end = data.find(b"endstream", found.end())
        try:
            text = zlib.decompressobj().decompress(data[found.end() : end if end > 0 else len(data)], left)
        except zlib.error:
            continue
        left -= len(text)
        if left <= 0:
            return
        start = int(first[1])
        numbers = [int(value) for value in text[:start].split()[: 2 * int(count[1])] if value.isdigit()]
        places = [start + offset for offset in numbers[1::2]]
        for number, place, after in zip(numbers[::2], places, [*places[1:], len(text)], strict=False):
            if after <= len(text) and (after < len(text) or end > 0):
                yield b"\n%d 0 obj\n%s\nendobj\n" % (number, text[place:after])


def _inherit(page: pikepdf.Object) -> None:
    """Give a page what it had from the nodes above it."""
    import pikepdf

    above = page.get("/Parent")
    for _ in range(_DEEPEST):
        if not isinstance(above, pikepdf.Dictionary):
            return
        for name in _INHERITED:
            if name in above and name not in page:
                page[name] = above[name]
        above = above.get("/Parent")
