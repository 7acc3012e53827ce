"""Which of the product's two languages a text is in."""

from __future__ import annotations

import re

from i18n import Language

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-z]+")


def detect_language(text: str) -> Language:
    """Return "zh" when Chinese characters outweigh half the Latin words, else "en"."""
    return "zh" if len(_HAN.findall(text)) * 2 > len(_WORD.findall(text)) else "en"


def is_chinese(text: str) -> bool:
    """Tell whether a text is to be split and joined as Chinese."""
    return detect_language(text) == "zh"
