"""What one page gives: its elements in reading order, and how they were read; JSON at the border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from pydantic import TypeAdapter

from pdf_lines import Paragraph, joint
from pdf_tables import Table, html, markdown, relative
from schema import Block, BlockParser, BlockType, Box, Line, Region


@dataclass(frozen=True, slots=True)
class Element:
    """A block as read from its page alone, with the look that tells headings from text.

    `size` is the font size in points (0 when unknown), `right` where full lines of its column end (0..1).
    """

    block: Block
    size: float = 0.0
    bold: bool = False
    right: float = 1.0
    slanted: bool = False


@dataclass(frozen=True, slots=True)
class PageResult:
    """One page as it completes: `page` is 1-based, `reason` says why this parser read it, `raw` is MinerU's JSON."""

    document_id: str
    page: int
    total: int
    parser: BlockParser
    elements: tuple[Element, ...]
    reason: str = ""
    raw: str = ""
    width: float = 0.0
    height: float = 0.0

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of this page alone, before the pages are put together."""
        return tuple(element.block for element in self.elements)


@dataclass(frozen=True, slots=True)
class Announced:
    """The page that is read next: named before, so that the one that hangs or crashes is known."""

    page: int
    total: int


@cache
def _adapter() -> TypeAdapter[PageResult]:
    return TypeAdapter(PageResult)


def dump_page(page: PageResult) -> str:
    """Return a page as JSON."""
    return _adapter().dump_json(page).decode()


def load_page(text: str) -> PageResult:
    """Return the page that `dump_page` wrote."""
    return _adapter().validate_json(text)


class PageBuilder:
    """Makes the elements of one page from paragraphs, tables and figures given in points."""

    def __init__(self, document_id: str, *, page: int, width: float, height: float, parser: BlockParser) -> None:
        self.document_id, self.page, self.parser = document_id, page, parser
        self.place: Box = (0.0, 0.0, max(width, 1.0), max(height, 1.0))
        self.elements: list[Element] = []

    def add(
        self,
        kind: BlockType,
        *,
        text: str,
        box: Box,
        lines: Sequence[Line] = (),
        markup: str = "",
        size: float = 0.0,
        bold: bool = False,
        slanted: bool = False,
        right: float = 0.0,
        confidence: float = 1.0,
        angle: int = 0,
    ) -> None:
        """Append an element; `box` and `right` in points."""
        bbox = relative(box, place=self.place)
        block = Block(
            document_id=self.document_id,
            page=self.page,
            order=len(self.elements),
            type=kind,
            text=text,
            bbox=bbox,
            parser=self.parser,
            html=markup,
            angle=angle,
            confidence=round(confidence, 3),
            parts=(Region(self.page, bbox),),
            lines=tuple(lines),
        )
        edge = right / self.place[2] if right else bbox[2]
        self.elements.append(Element(block, round(size, 2), bold, round(min(1.0, edge), 4), slanted))

    def add_paragraph(self, kind: BlockType, *, paragraph: Paragraph, words: frozenset[str] = frozenset()) -> None:
        """Append a paragraph, its lines joined; code keeps its line breaks."""
        text = ""
        lines: list[Line] = []
        for line in paragraph.lines:
            if kind is BlockType.CODE:
                between = "\n" if text else ""
            else:
                closed, between = joint(text, line.text, words=words)
                if len(closed) < len(text) and lines:
                    last = lines[-1]
                    lines[-1] = Line(last.start, len(closed), last.page, last.bbox)
                text = closed
            start = len(text) + len(between)
            text = f"{text}{between}{line.text}"
            lines.append(Line(start, len(text), self.page, relative(line.box, place=self.place)))
        self.add(
            kind,
            text=text,
            box=paragraph.box,
            lines=lines,
            size=paragraph.size,
            bold=paragraph.bold,
            slanted=paragraph.slanted,
            right=paragraph.right,
            confidence=min(line.confidence for line in paragraph.lines),
        )

    def add_table(self, table: Table, *, confidence: float = 1.0) -> None:
        """Append a table: Markdown rows as text, HTML beside it."""
        text, lines = markdown(table, page=self.page, place=self.place)
        self.add(BlockType.TABLE, text=text, box=table.box, lines=lines, markup=html(table), confidence=confidence)


def turned_back(block: Block, *, turn: int) -> Block:
    """Return a block with its boxes on the page as displayed, when that was read turned `turn` degrees clockwise."""
    if not turn:
        return block

    def back(box: Box) -> Box:
        x0, y0, x1, y1 = box
        match turn:
            case 90:
                return (y0, 1 - x1, y1, 1 - x0)
            case 180:
                return (1 - x1, 1 - y1, 1 - x0, 1 - y0)
            case _:
                return (1 - y1, x0, 1 - y0, x1)

    return replace(
        block,
        bbox=back(block.bbox),
        angle=(360 - turn) % 360,
        parts=tuple(replace(part, bbox=back(part.bbox)) for part in block.parts),
        lines=tuple(replace(line, bbox=back(line.bbox)) for line in block.lines),
    )
