"""Text of the web cut into passages of the size the knowledge base uses."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sentences import width

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

_CUTS = ["\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "；", "; ", "，", ", ", " ", ""]


def split_text(text: str, *, size: int) -> list[str]:
    """Return passages of at most `size` characters (a Chinese one counts as two), cut at ends of paragraphs first."""
    return [piece for piece in (raw.strip() for raw in _splitter(size).split_text(text)) if piece]


@cache
def _splitter(size: int) -> RecursiveCharacterTextSplitter:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        separators=_CUTS, chunk_size=size, chunk_overlap=0, length_function=width, keep_separator="end"
    )
