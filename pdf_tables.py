"""Tables as Markdown rows and HTML, every row with its box."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pdf_lines import mend, union
from schema import Box, Line

_OPENING = re.compile(r"^[(（]?\s*(?:US|HK|C|A)?[$€£¥￥]\s*[(（]?$|^[(（]$")
_CLOSING = re.compile(r"^[)）%％]+[)）%％]*$")
_FIGURE = re.compile(r"^[\s$€£¥￥(（+\-–—−]*[\d.,]+[\s%％)）]*$|^[-–—−]+$|^$")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the text of its cells, and its box."""

    cells: tuple[str, ...]
    box: Box


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first `heads` rows are its header."""

    rows: tuple[Row, ...]
    heads: int

    @property
    def box(self) -> Box:
        """Box around all rows."""
        return union(row.box for row in self.rows)


def make_table(rows: Sequence[tuple[Sequence[str], Box]], *, heads: int) -> Table | None:
    """Return a table with mended cells, currency signs joined to their figures and empty columns dropped.

    None when what is left is no table: fewer than two rows or columns, or cells that hold running text.
    """
    width = max((len(cells) for cells, _ in rows), default=0)
    cleaned = [([mend(cell) for cell in cells] + [""] * (width - len(cells)), box) for cells, box in rows]
    heads = min(heads, len(cleaned))
    for cells, _ in cleaned:
        _join_signs(cells)
    kept = [
        column
        for column in range(width)
        if any(cells[column] for cells, _ in cleaned[heads:]) or sum(bool(cells[column]) for cells, _ in cleaned) > 1
    ]
    stray = [column for column in range(width) if column not in kept]
    found: list[Row] = []
    for cells, box in cleaned:
        for column in stray:  # a header cell over an empty column belongs to its neighbour
            target = min(kept, key=lambda near: abs(near - column), default=None)
            if cells[column] and target is not None:
                cells[target] = " ".join(part for part in (cells[target], cells[column]) if part)
        if any(cells[column] for column in kept):
            found.append(Row(tuple(cells[column] for column in kept), box))
    if len(found) < 2 or len(kept) < 2 or _is_prose(found):
        return None
    return Table(tuple(found), max(1, heads) if _is_header(found) or heads else 1)


def _join_signs(cells: list[str]) -> None:
    """Move a lone currency sign to the figure after it, a lone bracket or percent sign to the one before."""
    for index, cell in enumerate(cells):
        if _OPENING.match(cell):
            after = next((near for near in range(index + 1, min(index + 3, len(cells))) if cells[near]), None)
            if after is not None and _FIGURE.match(cells[after]):
                cells[after], cells[index] = f"{cell}{cells[after]}", ""
    for index, cell in enumerate(cells):
        if cell and _CLOSING.match(cell):
            before = next((near for near in range(index - 1, max(index - 3, -1), -1) if cells[near]), None)
            if before is not None:
                cells[before], cells[index] = f"{cells[before]}{cell}", ""


def _is_header(rows: Sequence[Row]) -> bool:
    return not any(_FIGURE.match(cell) and cell for cell in rows[0].cells[1:])


def _is_prose(rows: Sequence[Row]) -> bool:
    """Tell a page of text laid out in boxes from a table: few, long cells."""
    cells = [cell for row in rows for cell in row.cells if cell]
    if len(cells) < len(rows) + 1:
        return True
    return sum(len(cell) for cell in cells) / len(cells) > 160


def markdown(table: Table, *, page: int, place: Box) -> tuple[str, tuple[Line, ...]]:
    """Return the Markdown rows and, for each, its characters and its box on the page.

    `place` is (left, top, width, height) of the page in the table's units.
    """
    pieces: list[str] = []
    lines: list[Line] = []
    position = 0
    for index, row in enumerate(table.rows):
        text = "| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells) + " |"
        if index == table.heads - 1:
            text += "\n|" + "---|" * len(row.cells)
        lines.append(Line(position, position + len(text), page, relative(row.box, place=place)))
        pieces.append(text)
        position += len(text) + 1
    return "\n".join(pieces), tuple(lines)


def html(table: Table) -> str:
    """Return the table as HTML with its header row marked."""
    parts = ["<table>"]
    for index, row in enumerate(table.rows):
        tag = "th" if index < table.heads else "td"
        parts.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row.cells) + "</tr>")
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
