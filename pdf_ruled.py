"""Tables drawn with rules: cells, also merged ones, from the lines around them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pdf_lines import TextLine, joint, merge_row, rows, width_of
from pdf_tables import Cell, Row, Table, tidy
from schema import Box

_NEAR = 3.0
"""Points within which rules count as one, and as touching."""
_PROSE = 700
"""Widths of characters from which a cell holds running text."""


@dataclass(slots=True)
class _Rules:
    """Rules that touch each other: x0, y0, x1, y1 in points."""

    across: list[Box] = field(default_factory=list)
    down: list[Box] = field(default_factory=list)


def ruled_tables(rules: Iterable[Box], *, lines: Sequence[TextLine]) -> list[tuple[Table, list[TextLine]]]:
    """Return each ruled table with the lines that its cells hold; `rules` run straight across or down.

    A table ends above the first row with a cell of running text: frames around prose are no table.
    """
    found = []
    for group in _groups(list(rules)):
        xs = _positions([rule[0] for rule in group.down])
        ys = _positions([rule[1] for rule in group.across])
        if len(xs) < 3 or len(ys) < 3 or len(xs) > 60 or len(ys) > 300:
            continue
        held = [line for line in lines if line.insert is None and _inside(line, xs=xs, ys=ys)]
        pieces = [piece for line in held for piece in _at_walls(line, walls=group.down)]
        whole = _read(group, xs=xs, ys=ys, lines=pieces)
        prose = next((index for index, row in enumerate(whole.rows) if _has_prose(row)), len(whole.rows))
        table = tidy(Table(whole.rows[:prose], whole.width, min(whole.heads, max(prose, 1)))) if prose > 1 else None
        if table is not None:
            found.append((table, [line for line in held if (line.box[1] + line.box[3]) / 2 < ys[prose]]))
    return found


def _has_prose(row: Row) -> bool:
    return any(width_of(cell.text) > _PROSE for cell in row.cells.values())


def _at_walls(line: TextLine, *, walls: Sequence[Box]) -> list[TextLine]:
    """Cut a line that runs on through the rule between two cells, where its characters should be by their widths."""
    middle = (line.box[1] + line.box[3]) / 2
    margin = 0.6 * line.size
    cuts = _positions(
        wall[0]
        for wall in walls
        if wall[1] - 1 <= middle <= wall[3] + 1 and line.box[0] + margin < wall[0] < line.box[2] - margin
    )
    if not cuts:
        return [line]
    pieces: list[TextLine] = []
    step = (line.box[2] - line.box[0]) / max(width_of(line.text), 1)
    start, left = 0, line.box[0]
    for cut in cuts:
        end = start
        while end < len(line.text) and left + step * width_of(line.text[start : end + 1]) <= cut + 0.3 * line.size:
            end += 1
        spaces = [
            place for place in range(max(start, end - 3), min(len(line.text), end + 4)) if line.text[place] == " "
        ]
        if spaces:
            end = min(spaces, key=lambda place: abs(place - end))
        pieces.append(replace(line, text=line.text[start:end].strip(), box=(left, line.box[1], cut - 0.5, line.box[3])))
        start, left = end, cut + 0.5
    pieces.append(replace(line, text=line.text[start:].strip(), box=(left, line.box[1], line.box[2], line.box[3])))
    return [piece for piece in pieces if piece.text]


def _groups(rules: Sequence[Box]) -> list[_Rules]:
    """Gather the rules that cross or touch."""
    across = [rule for rule in rules if rule[2] - rule[0] >= rule[3] - rule[1] and rule[2] - rule[0] > 4]
    down = [rule for rule in rules if rule[3] - rule[1] > rule[2] - rule[0] and rule[3] - rule[1] > 4]
    if len(across) * len(down) > 400_000:
        return []
    group_of = list(range(len(across) + len(down)))

    def root(index: int) -> int:
        while group_of[index] != index:
            group_of[index] = group_of[group_of[index]]
            index = group_of[index]
        return index

    for first, one in enumerate(across):
        for second, other in enumerate(down):
            if one[0] - _NEAR <= other[0] <= one[2] + _NEAR and other[1] - _NEAR <= one[1] <= other[3] + _NEAR:
                group_of[root(first)] = root(len(across) + second)
    groups: dict[int, _Rules] = {}
    for index, rule in enumerate([*across, *down]):
        group = groups.setdefault(root(index), _Rules())
        (group.across if index < len(across) else group.down).append(rule)
    return list(groups.values())


def _positions(values: Iterable[float]) -> list[float]:
    """Return the distinct positions among rules drawn double or in pieces."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > _NEAR:
            found.append(value)
    return found


def _inside(line: TextLine, *, xs: Sequence[float], ys: Sequence[float]) -> bool:
    x, y = (line.box[0] + line.box[2]) / 2, (line.box[1] + line.box[3]) / 2
    return xs[0] <= x <= xs[-1] and ys[0] <= y <= ys[-1]


def _read(group: _Rules, *, xs: Sequence[float], ys: Sequence[float], lines: Sequence[TextLine]) -> Table:
    """Read the cells between the rules; where no rule parts two places, they are one cell."""
    wide, high = len(xs) - 1, len(ys) - 1
    down = [[rule for rule in group.down if abs(rule[0] - x) <= _NEAR] for x in xs]
    across = [[rule for rule in group.across if abs(rule[1] - y) <= _NEAR] for y in ys]
    wall = {
        (row, column): _has(down[column], start=ys[row], end=ys[row + 1], upright=True)
        for row in range(high)
        for column in range(wide + 1)
    }
    floor = {
        (row, column): _has(across[row], start=xs[column], end=xs[column + 1], upright=False)
        for row in range(high + 1)
        for column in range(wide)
    }
    levels = _levels(lines, ys=ys)
    taken: set[tuple[int, int]] = set()
    found: list[Row] = []
    for row in range(high):
        cells: dict[int, Cell] = {}
        for column in range(wide):
            if (row, column) in taken:
                continue
            right = column + 1
            while right < wide and not wall[row, right] and (row, right) not in taken:
                right += 1
            lower = row + 1
            while lower < high and not any(floor[lower, place] for place in range(column, right)):
                lower += 1
            taken |= {(down, place) for down in range(row, lower) for place in range(column, right)}
            text = cell_text(_within(levels[row:lower], left=xs[column], right=xs[right]))
            cells[column] = Cell(text, right - column, lower - row)
        found.append(Row(cells, (xs[0], ys[row], xs[-1], ys[row + 1])))
    return Table(tuple(found), wide, heads=_heads(found))


def _has(rules: Sequence[Box], *, start: float, end: float, upright: bool) -> bool:
    """Tell whether rules at one position run along most of one side of a cell."""
    first, second = (1, 3) if upright else (0, 2)
    covered = sum(max(0.0, min(end, rule[second]) - max(start, rule[first])) for rule in rules)
    return covered > 0.6 * (end - start)


def _levels(lines: Sequence[TextLine], *, ys: Sequence[float]) -> list[list[tuple[int, float, TextLine]]]:
    """Return the lines between each two positions, as (place in `lines`, middle, line)."""
    levels: list[list[tuple[int, float, TextLine]]] = [[] for _ in ys[1:]]
    for place, line in enumerate(lines):
        level = bisect_right(ys, (line.box[1] + line.box[3]) / 2) - 1
        if 0 <= level < len(levels):
            levels[level].append((place, (line.box[0] + line.box[2]) / 2, line))
    return levels


def _within(levels: Sequence[Sequence[tuple[int, float, TextLine]]], *, left: float, right: float) -> list[TextLine]:
    found = [(place, line) for level in levels for place, middle, line in level if left <= middle < right]
    return [line for _, line in sorted(found, key=lambda item: item[0])]


def cell_text(lines: Sequence[TextLine]) -> str:
    """Return the text of a cell's lines, joined as in a paragraph."""
    text = ""
    for row in rows(lines):
        for line in merge_row(row):
            closed, between = joint(text, line.text)
            text = f"{closed}{between}{line.text}"
    return text


def _heads(found: Sequence[Row]) -> int:
    """Return how many rows the header takes: as many as the highest cell of the first row."""
    first = [cell for cell in found[0].cells.values() if cell.text]
    if not first:
        return 1
    return max(1, min(3, max((cell.high for cell in first if cell.high < len(found)), default=1)))
