"""Text of the web: without what nobody sees, cut into passages of the size the knowledge base uses."""

from __future__ import annotations

import re

from chunker import split_blocks
from schema import FULL_PAGE, Block, BlockParser, BlockType
from sentences import is_table_row

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Control characters (a terminal obeys them), directions that reorder text, blanks and letters without a shape."""


def seen(text: str) -> str:
    """Return the text without characters that a reader does not see and a terminal or a model might obey."""
    return _UNSEEN.sub("", text)


def split_text(text: str, *, size: int) -> list[str]:
    """Return passages of at most `size`, cut like documents of the knowledge base; a blank line ends a paragraph."""
    blocks = [
        Block(
            document_id="",
            page=1,
            order=order,
            type=BlockType.TABLE if all(map(is_table_row, paragraph.splitlines())) else BlockType.TEXT,
            text=paragraph,
            bbox=FULL_PAGE,
            parser=BlockParser.TEXT,
        )
        for order, paragraph in enumerate(filter(None, map(str.strip, re.split(r"\n\s*\n", seen(text)))))
    ]
    return [chunk.text for chunk in split_blocks(blocks, file="", chunk_size=size)]
