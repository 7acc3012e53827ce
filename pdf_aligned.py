"""Tables without rules: rows whose stretches of text stand in the same columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pdf_lines import TextLine, joint, union, width_of
from pdf_tables import FIGURE, Cell, Row, Table, tidy

_LEADERS = re.compile(r"[.．·…_]{4,}|(?:[.．·…]\s){4,}")
_BULLET = re.compile(r"^(?:[•●○▪■□◆▶➢–—*·-]|\(?\w{1,3}[.)）、]|[①-⑳]|\d{1,3}\.?)$")


@dataclass(slots=True)
class _Band:
    """One printed row: its stretches of text from left to right."""

    lines: list[TextLine]

    @property
    def top(self) -> float:
        return min(line.box[1] for line in self.lines)

    @property
    def bottom(self) -> float:
        return max(line.box[3] for line in self.lines)


def aligned_tables(printed: Sequence[Sequence[TextLine]]) -> list[tuple[Table, list[TextLine]]]:
    """Return each table among the rows of one column, with the lines it holds."""
    bands = [_Band(list(row)) for row in printed]
    found: list[tuple[Table, list[TextLine]]] = []
    index = tried = 0
    while index < len(bands):
        if not _is_tabular(bands[index]):
            index += 1
            continue
        end = _end_of_run(bands, start=index)
        run = bands[index:end]
        table = _read(run)
        if table is not None:
            found.append((table, [line for band in run for line in band.lines]))
            index, tried = end, 0
        elif tried < 3:  # the first rows may only look like a part of the table
            index, tried = index + 1, tried + 1
        else:
            index, tried = end, 0
    return found


def _is_tabular(band: _Band) -> bool:
    """Tell whether a row has two stretches or more, not counting bullets and leaders."""
    lines = band.lines
    if any(line.insert is not None for line in lines) or len(lines) < 2:
        return False
    if len(lines) == 2 and _BULLET.match(lines[0].text) and not FIGURE.match(lines[1].text):
        return False
    return not any(_LEADERS.search(line.text) for line in lines)


def _end_of_run(bands: Sequence[_Band], *, start: int) -> int:
    """Return where the table that begins at `start` ends: no wide space, at most two single rows in a row."""
    size = median(line.size for line in bands[start].lines)
    end, singles = start + 1, 0
    for index in range(start + 1, len(bands)):
        band, before = bands[index], bands[index - 1]
        if band.lines[0].insert is not None or band.top - before.bottom > 2.6 * size:
            break
        if _is_tabular(band):
            end, singles = index + 1, 0
            continue
        singles += 1
        inside = [line for row in bands[start:end] for line in row.lines]
        reach = union(line.box for line in inside)
        if singles > 2 or band.lines[-1].box[2] - band.lines[0].box[0] > 0.75 * (reach[2] - reach[0]):
            break
        if band.top - before.bottom < 0.9 * size and _is_wrapped(band, run=bands[start:end]):
            end = index + 1
    return end


def _is_wrapped(band: _Band, *, run: Sequence[_Band]) -> bool:
    """Tell whether a single stretch goes on with a cell of the row above."""
    line = band.lines[0]
    above = [other for other in run[-1].lines if abs(other.box[0] - line.box[0]) < 1.5 * line.size]
    return bool(above) and above[0].box[0] > run[-1].lines[0].box[0] + line.size


def _read(run: Sequence[_Band]) -> Table | None:
    """Read the rows into columns; None when they do not form a table."""
    tabular = [band for band in run if _is_tabular(band)]
    columns = _columns(tabular)
    if len(tabular) < 2 or len(columns) < 2 or (len(columns) == 2 and len(tabular) < 3):
        return None
    if not _is_regular(tabular, columns=columns):
        return None
    heads = _heads(run)
    found: list[Row] = []
    for index, band in enumerate(run):
        cells = _cells(band, columns=columns)
        box = union(line.box for line in band.lines)
        if (
            found
            and index >= heads
            and _goes_on(cells, found[-1].cells, gap=band.top - run[index - 1].bottom, band=band)
        ):
            merged = dict(found[-1].cells)
            for column, cell in cells.items():
                old = merged.get(column, Cell(""))
                closed, between = joint(old.text, cell.text)
                merged[column] = Cell(f"{closed}{between}{cell.text}", max(old.wide, cell.wide))
            found[-1] = Row(merged, union((found[-1].box, box)))
        else:
            found.append(Row(cells, box))
    return tidy(Table(tuple(found), len(columns), heads=max(1, heads)))


def _columns(tabular: Sequence[_Band]) -> list[tuple[float, float]]:
    """Return the left and right edges of the columns: stretches of x that few rows leave white."""
    if not tabular:
        return []
    left = int(min(line.box[0] for band in tabular for line in band.lines))
    right = int(max(line.box[2] for band in tabular for line in band.lines)) + 2
    cover = [0] * (right - left + 1)
    for band in tabular:
        for line in band.lines:
            for x in range(int(line.box[0]) - left, min(int(line.box[2]) - left + 1, len(cover))):
                cover[x] += 1
    few = 1 if len(tabular) >= 4 else 0
    few = max(few, int(0.12 * len(tabular)))
    edges: list[tuple[float, float]] = []
    start: int | None = None
    for x, count in enumerate([*cover, 0]):
        if count > few and start is None:
            start = x
        elif count <= few and start is not None:
            edges.append((left + start, left + x))
            start = None
    return edges


def _is_regular(tabular: Sequence[_Band], *, columns: Sequence[tuple[float, float]]) -> bool:
    """Tell a table from lines that merely have wide gaps: most rows fill like columns with short cells."""
    cells = [_cells(band, columns=columns) for band in tabular]
    filled = sum(len(row) >= min(3, len(columns)) for row in cells)
    if filled < 0.5 * len(cells):
        return False
    numeric = sum(any(FIGURE.match(cell.text) for cell in row.values()) for row in cells)
    lengths = [width_of(cell.text) for row in cells for cell in row.values()]
    if sum(lengths) / len(lengths) > 45 and numeric < 0.5 * len(cells):
        return False
    if len(columns) == 2 and numeric < 0.5 * len(cells):
        lefts = [band.lines[-1].box[0] for band in tabular]
        return len(tabular) >= 4 and max(lefts) - min(lefts) < 3.0
    return True


def _cells(band: _Band, *, columns: Sequence[tuple[float, float]]) -> dict[int, Cell]:
    """Return the cells of one row by column; a stretch over several columns is one wide cell."""
    found: dict[int, Cell] = {}
    for line in band.lines:
        touched = [
            index
            for index, (start, end) in enumerate(columns)
            if min(end, line.box[2]) - max(start, line.box[0]) > 0.2 * min(end - start, line.box[2] - line.box[0])
        ]
        if not touched:
            middle = (line.box[0] + line.box[2]) / 2
            touched = [min(range(len(columns)), key=lambda index: abs(sum(columns[index]) / 2 - middle))]
        old = found.get(touched[0])
        text = f"{old.text} {line.text}" if old else line.text
        found[touched[0]] = Cell(text, touched[-1] - touched[0] + 1)
    return found


def _heads(run: Sequence[_Band]) -> int:
    """Return how many rows stand above the first one with figures beside its label; at most four."""
    for index, band in enumerate(run[:5]):
        if sum(
            bool(FIGURE.match(line.text)) and not re.fullmatch(r"(?:19|20)\d\d", line.text) for line in band.lines[1:]
        ):
            return index
    return 1


def _goes_on(cells: dict[int, Cell], before: dict[int, Cell], *, gap: float, band: _Band) -> bool:
    """Tell whether a row only goes on with cells of the row before it."""
    size = median(line.size for line in band.lines)
    if gap > 0.8 * size or (0 in cells and len(cells) > 1):
        return False
    if 0 in cells:
        return len(before) == 1 and 0 in before and cells[0].text[:1].islower()
    return all(column in before for column in cells) and not any(FIGURE.match(cell.text) for cell in cells.values())
