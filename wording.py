"""The words of a text, for comparing what a question and a passage say."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Protocol

STOP_WORDS = frozenset(
    "the a an of in on at to for and or is are was were be been do does did what which who whom when where how why "
    "that this it its by with from as has have had his her their s many much".split()
)
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def terms(text: str) -> set[str]:
    """Latin words without stop words, and Han bigrams."""
    lowered = unicodedata.normalize("NFKC", simplified(text)).lower()
    words = {word for word in re.findall(r"[a-z0-9]+", lowered) if word not in STOP_WORDS}
    for run in re.findall(r"[\u3400-\u9fff]+", lowered):
        words |= {run[i : i + 2] for i in range(len(run) - 1)} or {run}
    return words


def simplified(text: str) -> str:
    """Return the text with traditional Chinese characters replaced by simplified ones."""
    return _converter().convert(text) if _HAN.search(text) else text


@lru_cache(maxsize=1)
def _converter() -> _Converter:
    from opencc import OpenCC

    converter: _Converter = OpenCC("t2s")
    return converter


class _Converter(Protocol):
    def convert(self, text: str) -> str: ...
