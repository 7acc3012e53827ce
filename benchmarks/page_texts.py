"""How parsed pages are compared: similarity of texts, and the plain text of other readers."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from html import unescape
from pathlib import Path


def letters(text: str) -> str:
    """Letters and digits alone, case folded."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).lower() if character.isalnum())


def similarity(found: str, truth: str) -> float:
    """Return 2·LCS / (a + b) over letters and digits; bit-parallel, so that a page takes milliseconds."""
    one, other = letters(found), letters(truth)
    if not one or not other:
        return float(one == other)
    masks: dict[str, int] = defaultdict(int)
    for index, character in enumerate(one):
        masks[character] |= 1 << index
    full = (1 << len(one)) - 1
    state = full
    for character in other:
        matched = state & masks.get(character, 0)
        state = ((state + matched) | (state - matched)) & full
    return 2 * (len(one) - state.bit_count()) / (len(one) + len(other))


def plain(text: str) -> str:
    """Return truth without its LaTeX and HTML marks."""
    text = re.sub(r"<[^>]+>", " ", text)
    text = re.sub(r"\\(?:begin|end|multicolumn|multirow|cline)\{[^}]*\}(?:\{[^}]*\})?", " ", text)
    return unescape(re.sub(r"\\[a-zA-Z]+", " ", text))


def pypdfium_text(path: Path) -> list[str]:
    """Return the pages' text as pypdfium2 gives it."""
    import pypdfium2

    with pypdfium2.PdfDocument(path) as document:
        return [document[index].get_textpage().get_text_bounded() for index in range(len(document))]


def pdfplumber_text(path: Path) -> list[str]:
    """Return the pages' text as pdfplumber gives it."""
    import pdfplumber  # type: ignore[import-not-found]

    with pdfplumber.open(path) as document:
        return [page.extract_text() or "" for page in document.pages]


def pymupdf_text(path: Path) -> list[str]:
    """Return the pages' text as PyMuPDF gives it."""
    import pymupdf  # type: ignore[import-not-found]

    with pymupdf.open(path) as document:
        return [page.get_text() for page in document]


RIVALS: dict[str, Callable[[Path], list[str]]] = {
    "pypdfium2": pypdfium_text,
    **{
        name: reader
        for name, reader in (("pdfplumber", pdfplumber_text), ("pymupdf", pymupdf_text))
        if importlib.util.find_spec(name)
    },
}
