"""The words of a text, for comparing what a question and a passage say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

STOP_WORDS = frozenset(
    "the a an of in on at to for and or is are was were be been do does did what which who whom when where how why "
    "that this it its by with from as has have had his her their s many much".split()
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{(?:tabular|table|array)\*?\}(?:\[[^\]\n]*\])?(?:\{[^{}\n]*\})?")
_SPANNING_CELL = re.compile(r"\\multi(?:column|row)\{[^{}\n]*\}(?:\{[^{}\n]*\}|\[[^\]\n]*\])*\{")
_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf|tt)|caption|centering|hline|cline\{[^{}\n]*\}|(?:top|mid|bottom)rule"
    r"|footnotesize|small)(?![a-zA-Z])\{?"
)
_ESCAPED = re.compile(r"\\([$%_&#])")
_MONEY_QUOTED = re.compile(r"\$ ?(?=[\d,. ]+\$)")
"""A dollar sign that opens a formula which is only a number."""
_BETWEEN_CELLS = re.compile(r"(?<!\\)&")
_BRACES = str.maketrans("{}", "  ")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def terms(text: str) -> set[str]:
    """Latin words without stop words, and Han bigrams."""
    lowered = unicodedata.normalize("NFKC", simplified(text)).lower()
    words = {word for word in re.findall(r"[a-z0-9]+", lowered) if word not in STOP_WORDS}
    for run in re.findall(r"[\u3400-\u9fff]+", lowered):
        words |= {run[i : i + 2] for i in range(len(run) - 1)} or {run}
    return words


def without_latex(text: str) -> str:
    """Return the text with LaTeX's own marks as blanks and `&` between cells as `|`; every character stays in place.

    Parsers write tables and formulas in LaTeX; the reader was trained on words and on rows of cells.
    """
    if "\\" not in text:
        return text
    for mark in (_ENVIRONMENT, _SPANNING_CELL, _COMMAND):
        text = mark.sub(_blank, text)
    text = _BETWEEN_CELLS.sub("|", text.replace("\\\\", "  ")).translate(_BRACES)
    return _MONEY_QUOTED.sub(_blank, _ESCAPED.sub(r" \1", text))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def simplified(text: str) -> str:
    """Return the text with traditional Chinese characters replaced by simplified ones."""
    return _converter().convert(text) if _HAN.search(text) else text


def under(headings: Iterable[str], *, section: str) -> bool:
    """Tell whether one of the headings contains these words, in whatever case and kind of Chinese characters."""
    wanted = simplified(section).casefold()
    return any(wanted in simplified(heading).casefold() for heading in headings)


@lru_cache(maxsize=1)
def _converter() -> _Converter:
    from opencc import OpenCC

    converter: _Converter = OpenCC("t2s")
    return converter


class _Converter(Protocol):
    def convert(self, text: str) -> str: ...
