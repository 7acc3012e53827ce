"""What is on a page and in the index: blocks with their boxes, and the chunks that are made from them.

Boxes are `(x0, y0, x1, y1)` in 0..1 of the displayed page, origin at the top left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Box = tuple[float, float, float, float]
FULL_PAGE: Box = (0.0, 0.0, 1.0, 1.0)


class BlockType(StrEnum):
    """What a layout element is."""

    TITLE = "title"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    EQUATION = "equation"
    CODE = "code"
    IMAGE = "image"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    HEADER = "header"
    FOOTER = "footer"
    PAGE_NUMBER = "page_number"


PARATEXT = frozenset({BlockType.HEADER, BlockType.FOOTER, BlockType.PAGE_NUMBER})
"""Kept in the store, out of the index."""


class BlockParser(StrEnum):
    """Which reader produced a block."""

    MINERU = "mineru"
    TEXT = "text"
    OCR = "ocr"


@dataclass(frozen=True, slots=True)
class Region:
    """A box on a page (1-based physical page)."""

    page: int
    bbox: Box


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line (or table row) of a block: character range in the block's text, and where it stands."""

    start: int
    end: int
    page: int
    bbox: Box


@dataclass(frozen=True, slots=True)
class Block:
    """One layout element of a page, in reading order.

    `text` of a table is its Markdown rows, `html` its HTML. `parts` lists every box where the element was
    merged across columns or pages; `lines` maps characters of `text` to printed lines where the parser knows them.
    """

    document_id: str
    page: int
    order: int
    type: BlockType
    text: str
    bbox: Box
    parser: BlockParser
    html: str = ""
    level: int = 0
    heading_path: tuple[str, ...] = ()
    angle: int = 0
    confidence: float = 1.0
    parts: tuple[Region, ...] = ()
    lines: tuple[Line, ...] = ()

    def regions(self, start: int, end: int) -> tuple[Region, ...]:
        """Boxes of the characters `start..end` of `text`: the lines touched, else the whole block."""
        touched = tuple(Region(line.page, line.bbox) for line in self.lines if line.start < end and line.end > start)
        return touched or self.parts or (Region(self.page, self.bbox),)


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start..end` of a chunk's text come from `block.text[offset:offset + end - start]`."""

    start: int
    end: int
    block: Block
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is indexed: a stretch of one section, with the blocks it was made from.

    `text` is what is shown, graded and quoted; `embedding_text` adds the heading path for the embedder and BM25.
    `header` is the caption and header row that every strip of a table repeats.
    """

    id: str
    document_id: str
    file: str
    text: str
    heading_path: tuple[str, ...]
    pieces: tuple[Piece, ...]
    type: BlockType = BlockType.TEXT
    header: str = ""

    @property
    def page(self) -> int:
        """First physical page of the chunk."""
        return self.pieces[0].block.page

    @property
    def embedding_text(self) -> str:
        """The text with its heading path in front, as embedded and searched."""
        return "\n".join((" > ".join(self.heading_path), self.text)) if self.heading_path else self.text

    def regions(self, start: int, end: int) -> tuple[Region, ...]:
        """Boxes of the characters `start..end` of `text`, in reading order, without repeats."""
        found: dict[Region, None] = {}
        for piece in self.pieces:
            if piece.start < end and piece.end > start:
                first = max(start, piece.start) - piece.start + piece.offset
                last = min(end, piece.end) - piece.start + piece.offset
                found.update(dict.fromkeys(piece.block.regions(first, last)))
        return tuple(found)
