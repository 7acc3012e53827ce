"""MinerU's blocks of one page → our elements; its failures told apart from good pages.

A raw block is a JSON object as MinerU gives it: type, bbox 0..1, angle, content, merge_prev (and text_level from the
hosted service).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from pdf_lines import joint, mend
from pdf_page import Element, PageBuilder, PageResult
from pdf_tables import Cell, Row, Table, html, markdown
from schema import BlockParser, BlockType, Box

RawBlock = dict[str, Any]

_KINDS = {
    "title": BlockType.TITLE,
    "doc_title": BlockType.TITLE,
    "paragraph_title": BlockType.TITLE,
    "table": BlockType.TABLE,
    "equation": BlockType.EQUATION,
    "equation_block": BlockType.EQUATION,
    "formula_number": BlockType.EQUATION,
    "code": BlockType.CODE,
    "algorithm": BlockType.CODE,
    "list": BlockType.LIST,
    "list_item": BlockType.LIST,
    "index": BlockType.LIST,
    "image": BlockType.IMAGE,
    "image_block": BlockType.IMAGE,
    "chart": BlockType.IMAGE,
    "header": BlockType.HEADER,
    "footer": BlockType.FOOTER,
    "page_number": BlockType.PAGE_NUMBER,
    "page_footnote": BlockType.FOOTNOTE,
    "footnote": BlockType.FOOTNOTE,
    "table_footnote": BlockType.FOOTNOTE,
    "image_footnote": BlockType.FOOTNOTE,
}
_LONG_PARATEXT = 200
_MAX_BLOCK = 20_000
_LETTER = re.compile(r"[^\W\d_]")
_SPACED_LETTERS = re.compile(r"(?<![A-Za-z\\])(?:[A-Za-z] ){3,}[A-Za-z](?![A-Za-z])")


def page_of_raw(
    raw: Sequence[RawBlock], *, document_id: str, page: int, total: int, reason: str = "", pixels: tuple[int, int]
) -> PageResult:
    """Return a page from MinerU's blocks; `pixels` is the size of the picture it was read from."""
    builder = PageBuilder(document_id, page=page, width=1.0, height=1.0, parser=BlockParser.MINERU)
    for block in raw:
        _add(builder, block=block)
    return PageResult(
        document_id,
        page,
        total,
        BlockParser.MINERU,
        tuple(_levelled(builder.elements, raw=raw)),
        reason=reason,
        raw=json.dumps(list(raw), ensure_ascii=False),
        width=pixels[0],
        height=pixels[1],
    )


def _add(builder: PageBuilder, *, block: RawBlock) -> None:
    x0, y0, x1, y1 = (float(value) for value in block["bbox"])
    box: Box = (x0, y0, x1, y1)
    name = str(block.get("type", "text"))
    content = str(block.get("content") or "")
    angle = int(block.get("angle") or 0)
    kind = BlockType.CAPTION if name.endswith("caption") else _KINDS.get(name, BlockType.TEXT)
    if kind in {BlockType.HEADER, BlockType.FOOTER} and len(content) > _LONG_PARATEXT:
        kind = BlockType.TEXT  # body text taken for a footer must not be lost
    if kind is BlockType.TABLE and (table := read_html(content, box=box)) is not None:
        text, _ = markdown(table, page=builder.page, place=builder.place)
        builder.add(kind, text=text, box=box, markup=html(table), angle=angle)
        return
    if kind is BlockType.TABLE:
        kind = BlockType.TEXT
    text = content.strip() if kind in {BlockType.CODE, BlockType.EQUATION} else mend(content)
    text = _SPACED_LETTERS.sub(lambda found: found[0].replace(" ", ""), text)
    if not text and kind is not BlockType.IMAGE:
        return
    if block.get("merge_prev") and builder.elements and builder.elements[-1].block.type is BlockType.TEXT:
        builder.elements[-1] = _extended(builder.elements[-1], text=text, box=box)
        return
    builder.add(kind, text=text, box=box, angle=angle)


def _extended(element: Element, *, text: str, box: Box) -> Element:
    """Return a paragraph with what MinerU says belongs to it; its own box stays, `parts` gets the other."""
    block = element.block
    closed, between = joint(block.text, text)
    part = replace(block.parts[0], bbox=box)
    return replace(element, block=replace(block, text=f"{closed}{between}{text}", parts=(*block.parts, part)))


def _levelled(elements: Sequence[Element], *, raw: Sequence[RawBlock]) -> list[Element]:
    """Give document titles more size than section titles, so that the heading tree can tell them apart."""
    sizes = {
        mend(str(block.get("content") or "")): 20.0 if block.get("type") == "doc_title" else 14.0
        for block in raw
        if str(block.get("type", "")).endswith("title")
    }
    return [
        replace(element, size=sizes.get(element.block.text, 14.0)) if element.block.type is BlockType.TITLE else element
        for element in elements
    ]


class _TableReader(HTMLParser):
    """Collects the cells of an HTML table with their spans."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[tuple[str, int, int, bool]]] = []
        self._text: list[str] | None = None
        self._spans = (1, 1, False)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a row or a cell."""
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            if not self.rows:
                self.rows.append([])
            given = dict(attrs)
            self._spans = (_span(given.get("colspan")), _span(given.get("rowspan")), tag == "th")
            self._text = []
        elif tag == "br" and self._text is not None:
            self._text.append(" ")

    def handle_data(self, data: str) -> None:
        """Take the text of a cell."""
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """End a cell."""
        if tag in {"td", "th"} and self._text is not None and self.rows:
            self.rows[-1].append((mend("".join(self._text)), *self._spans))
            self._text = None


def _span(value: str | None) -> int:
    return min(max(int(value), 1), 50) if value and value.isdigit() else 1


def read_html(text: str, *, box: Box) -> Table | None:
    """Return the table of an HTML text, merged cells kept; None when it has no cells."""
    reader = _TableReader()
    reader.feed(text)
    taken: set[tuple[int, int]] = set()
    rows: list[dict[int, Cell]] = []
    width, heads = 0, 0
    for index, cells in enumerate(reader.rows):
        column = 0
        found: dict[int, Cell] = {}
        for content, wide, high, head in cells:
            while (index, column) in taken:
                column += 1
            found[column] = Cell(content, wide, high)
            taken |= {(index + down, column + right) for down in range(high) for right in range(wide)}
            width = max(width, column + wide)
            if head:
                heads = index + 1
        rows.append(found)
    if not width or not any(cell.text for row in rows for cell in row.values()):
        return None
    tall = (box[3] - box[1]) / len(rows)
    placed = tuple(
        Row(cells, (box[0], box[1] + index * tall, box[2], box[1] + (index + 1) * tall))
        for index, cells in enumerate(rows)
    )
    return Table(placed, width, max(1, min(heads, len(rows) - 1)))


def fault_of(raw: Sequence[RawBlock], *, ink: bool) -> str:
    """Return why MinerU's answer for a page cannot be kept: "mineru_empty", "mineru_repetition", or ""."""
    if not raw:
        return "mineru_empty" if ink else ""
    if any(is_repetitive(str(block.get("content") or "")) for block in raw):
        return "mineru_repetition"
    return ""


def is_repetitive(text: str) -> bool:
    """Tell the endless loops of a language model from text: the same stretch again and again, or far too much of it."""
    if len(text) > _MAX_BLOCK:
        return True
    plain = re.sub(r"<[^>]+>|\s+", " ", text)
    if len(plain) < 200:
        return False
    for size in (10, 25):
        pieces = Counter(plain[start : start + size] for start in range(0, len(plain) - size, 3))
        stretch, count = pieces.most_common(1)[0]
        if count * 3 * 2 > len(plain) and len(set(stretch)) > 1 and _LETTER.search(stretch):
            return True
    tail = plain[-120:]
    return any(
        tail == (tail[-size:] * (120 // size + 1))[-120:] and _LETTER.search(tail) is not None for size in range(1, 31)
    )
