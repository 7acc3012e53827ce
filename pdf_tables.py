"""Tables as Markdown rows and HTML, every row with its box."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from pdf_lines import union
from schema import Box, Line

FIGURE = re.compile(r"^[\s$€£¥￥(（+±<>≤≥~≈\-–—−]*\d[\d.,\s/:%％)）\-–—−±xX×ppm]*$|^[-–—−*/]+$")
_OPENING = re.compile(r"^[(（]?\s*(?:US|HK|C|A)?[$€£¥￥]\s*[(（]?$|^[(（]$")
_CLOSING = re.compile(r"^[)）%％]+[)）%％]*$")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, and over how many columns and rows it reaches."""

    text: str
    wide: int = 1
    high: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """The cells that begin in one row, by column, and the box of the row."""

    cells: dict[int, Cell]
    box: Box


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first `heads` rows are its header."""

    rows: tuple[Row, ...]
    width: int
    heads: int = 1

    @property
    def box(self) -> Box:
        """Box around all rows."""
        return union(row.box for row in self.rows)


def tidy(table: Table) -> Table | None:
    """Return a table with currency signs joined to their figures and empty rows and columns dropped.

    None when what is left is no table: fewer than two rows or columns, or a layout of running text.
    """
    for row in table.rows:
        _join_signs(row.cells, width=table.width)
    _settle_heads(table)
    kept = [
        column
        for column in range(table.width)
        if any(row.cells[column].text for row in table.rows if column in row.cells)
    ]
    place = {column: index for index, column in enumerate(kept)}
    found: list[Row] = []
    heads = 0
    for index, row in enumerate(table.rows):
        cells = {
            place[column]: replace(cell, wide=max(1, sum(column <= other < column + cell.wide for other in kept)))
            for column, cell in row.cells.items()
            if column in place
        }
        if any(cell.text for cell in cells.values()):
            found.append(Row(cells, row.box))
            heads += index < table.heads
    if len(found) < 2 or len(kept) < 2 or _is_prose(found):
        return None
    return Table(tuple(found), len(kept), max(1, min(heads, len(found) - 1)))


def _settle_heads(table: Table) -> None:
    """Move a heading over a column without any cell to the neighbour whose own heading is missing."""

    def text(row: Row, column: int) -> str:
        return row.cells[column].text if column in row.cells else ""

    top, body = table.rows[: table.heads], table.rows[table.heads :]
    for column in range(1, table.width):
        if any(text(row, column) for row in body) or not any(text(row, column) for row in top):
            continue
        for near in (column + 1, column - 1):
            if (
                0 < near < table.width
                and any(text(row, near) for row in body)
                and not any(text(row, near) for row in top)
            ):
                for row in top:
                    if text(row, column):
                        row.cells[near] = Cell(text(row, column))
                        row.cells[column] = Cell("")
                break


def _join_signs(cells: dict[int, Cell], *, width: int) -> None:
    """Move a lone currency sign to the figure after it, a lone bracket or percent sign to the one before."""
    for column in range(width):
        text = cells[column].text if column in cells else ""
        if _OPENING.match(text):
            after = next((near for near in (column + 1, column + 2) if near in cells and cells[near].text), None)
            if after is not None and FIGURE.match(cells[after].text):
                cells[after] = replace(cells[after], text=f"{text}{cells[after].text}")
                cells[column] = replace(cells[column], text="")
        elif _CLOSING.match(text):
            before = next((near for near in (column - 1, column - 2) if near in cells and cells[near].text), None)
            if before is not None:
                cells[before] = replace(cells[before], text=f"{cells[before].text}{text}")
                cells[column] = replace(cells[column], text="")


def _is_prose(rows: Sequence[Row]) -> bool:
    """Tell a page of text laid out in boxes from a table: few, long cells."""
    texts = [cell.text for row in rows for cell in row.cells.values() if cell.text]
    if len(texts) < len(rows) + 1:
        return True
    return sum(len(text) for text in texts) / len(texts) > 220 or max(len(text) for text in texts) > 1500


def grid(table: Table) -> list[list[str]]:
    """Return the text of every place of the table; a cell over several rows, or over header columns, is repeated."""
    texts = [[""] * table.width for _ in table.rows]
    for index, row in enumerate(table.rows):
        for column, cell in row.cells.items():
            wide = cell.wide if index < table.heads else 1
            for down in range(index, min(index + cell.high, len(texts))):
                for right in range(column, min(column + wide, table.width)):
                    texts[down][right] = cell.text
    return texts


def markdown(table: Table, *, page: int, place: Box) -> tuple[str, tuple[Line, ...]]:
    """Return the Markdown rows and, for each, its characters and its box on the page.

    Several header rows become one, their words joined downwards. `place` is (left, top, width, height) of the page.
    """
    texts = grid(table)
    header = [
        " ".join(dict.fromkeys(part for part in parts if part)) for parts in zip(*texts[: table.heads], strict=True)
    ]
    boxes = [union(row.box for row in table.rows[: table.heads]), *(row.box for row in table.rows[table.heads :])]
    pieces: list[str] = []
    lines: list[Line] = []
    position = 0
    for index, (cells, box) in enumerate(zip([header, *texts[table.heads :]], boxes, strict=True)):
        text = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        if index == 0:
            text += "\n|" + "---|" * table.width
        lines.append(Line(position, position + len(text), page, relative(box, place=place)))
        pieces.append(text)
        position += len(text) + 1
    return "\n".join(pieces), tuple(lines)


def html(table: Table) -> str:
    """Return the table as HTML with its header rows marked and merged cells kept."""
    parts = ["<table>"]
    covered: set[tuple[int, int]] = set()
    for index, row in enumerate(table.rows):
        tag = "th" if index < table.heads else "td"
        parts.append("<tr>")
        for column in range(table.width):
            if (index, column) in covered:
                continue
            cell = row.cells.get(column, Cell(""))
            covered |= {(index + down, column + right) for down in range(cell.high) for right in range(cell.wide)}
            span = (f' colspan="{cell.wide}"' if cell.wide > 1 else "") + (
                f' rowspan="{cell.high}"' if cell.high > 1 else ""
            )
            parts.append(f"<{tag}{span}>{escape(cell.text)}</{tag}>")
        parts.append("</tr>")
    return "".join((*parts, "</table>"))


def relative(box: Box, *, place: Box) -> Box:
    """Return a box as shares of the page, inside 0..1."""
    left, top, width, height = place
    shares = (
        (box[0] - left) / width,
        (box[1] - top) / height,
        (box[2] - left) / width,
        (box[3] - top) / height,
    )
    x0, y0, x1, y1 = (round(min(1.0, max(0.0, share)), 5) for share in shares)
    return x0, y0, x1, y1
