"""Text of the web: without what nobody sees, cut into passages of the size the knowledge base uses."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from sentences import width

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

_CUTS = ["\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "；", "; ", "，", ", ", " ", ""]
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Control characters (a terminal obeys them), directions that reorder text, blanks and letters without a shape."""


def seen(text: str) -> str:
    """Return the text without characters that a reader does not see and a terminal or a model might obey."""
    return _UNSEEN.sub("", text)


def split_text(text: str, *, size: int) -> list[str]:
    """Return passages of at most `size` characters (a Chinese one counts as two), cut at ends of paragraphs first."""
    return [piece for piece in (raw.strip() for raw in _splitter(size).split_text(seen(text))) if piece]


@cache
def _splitter(size: int) -> RecursiveCharacterTextSplitter:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        separators=_CUTS, chunk_size=size, chunk_overlap=0, length_function=width, keep_separator="end"
    )
