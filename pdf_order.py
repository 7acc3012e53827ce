"""The reading order of a page: columns found by the gutters between running text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from pdf_lines import TextLine, rows, union, width_of


def columns(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """Put the lines of a region in reading order, as columns: each list is one column's lines, top to bottom.

    The longest run of bands (cut at white stripes) that leaves one gutter free and has running text on both of its
    sides is read column by column; what stands above and below is treated alike, and is read row by row in the end.
    """
    if not lines:
        return []
    bands = _bands(lines)
    best = _best_run(bands)
    if best is None:
        return [[line for row in rows(lines) for line in row]]
    start, end, gutter = best
    run = [line for band in bands[start:end] for line in band]
    return [
        *columns([line for band in bands[:start] for line in band]),
        *columns([line for line in run if line.box[0] < gutter - 0.5]),
        *columns([line for line in run if line.box[0] >= gutter - 0.5]),
        *columns([line for band in bands[end:] for line in band]),
    ]


def _bands(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """Cut at every white stripe across the region."""
    bands: list[list[TextLine]] = []
    bottom = float("-inf")
    for line in sorted(lines, key=lambda line: line.box[1]):
        if line.box[1] >= bottom - 0.2 * line.height or not bands:
            bands.append([])
        bands[-1].append(line)
        bottom = max(bottom, line.box[3])
    return bands


def _best_run(bands: Sequence[Sequence[TextLine]]) -> tuple[int, int, float] | None:
    """Return the run of bands and the left edge of its right column that put most text into columns."""
    lines = [line for band in bands for line in band]
    left, _, right, _ = union(line.box for line in lines)
    narrow = max(0.7 * median(line.size for line in lines), 5.0)
    edges = Counter(round(line.box[0]) for line in lines)
    best: tuple[int, int, float] | None = None
    most = 0
    common = [edge for edge, count in edges.items() if count >= 3]
    hanging = [min(edge for edge in edges if other - 3.5 * narrow < edge <= other) for other in common]
    for edge in dict.fromkeys([*common, *hanging]):
        if not left + 0.1 * (right - left) < edge < right - 0.1 * (right - left):
            continue
        start = 0
        for index in range(len(bands) + 1):
            if index < len(bands) and not any(
                line.box[0] < edge - 1.0 and line.box[2] > edge - narrow for line in bands[index]
            ):
                continue
            text = _column_text(bands[start:index], edge=edge)
            if text > most:
                most, best = text, (_skip_right(bands, start=start, end=index, edge=edge), index, edge - 0.5)
            start = index + 1
    return best


def _skip_right(bands: Sequence[Sequence[TextLine]], *, start: int, end: int, edge: float) -> int:
    """Leave lines above the left column that stand only on the right out of the run."""
    while start < end and all(line.box[0] >= edge - 1.0 for line in bands[start]):
        start += 1
    return start


def _column_text(run: Sequence[Sequence[TextLine]], *, edge: float) -> int:
    """Return how much running text stands on the poorer side of a gutter; 0 when the sides are not columns."""
    first = [line for band in run for line in band if line.box[0] < edge - 1.0]
    second = [line for band in run for line in band if line.box[0] >= edge - 1.0]
    if not first or not second or not _side_by_side(first, second):
        return 0
    running = _is_running(first), _is_running(second)
    if not all(running) and not (any(running) and len(run) >= 8 and _is_apart(first, second)):
        return 0
    return min(sum(width_of(line.text) or 40 for line in side) for side in (first, second))


def _is_running(lines: Sequence[TextLine]) -> bool:
    """Tell running text, most of it in lines that fill the column, from labels, figures or page numbers."""
    high = sum(line.height / 12 for line in lines if line.insert is not None)
    text = [line for line in lines if line.insert is None]
    if len(rows(text)) + high < 3:
        return False
    if not text:
        return True
    left, _, right, _ = union(line.box for line in text)
    full = [line for line in text if line.box[2] - line.box[0] > 0.55 * (right - left) and width_of(line.text) >= 20]
    return len(full) >= 3 and sum(len(line.text) for line in full) > 0.5 * sum(len(line.text) for line in text)


def _is_apart(first: Sequence[TextLine], second: Sequence[TextLine]) -> bool:
    """Tell a sidebar from the cells of a table: few of its lines stand level with a line of the other side."""
    fewer, more = sorted((first, second), key=len)
    tops = sorted(line.box[3] for line in more)
    level = sum(any(abs(line.box[3] - top) < 1.0 for top in tops) for line in fewer)
    return len(fewer) >= 4 and level < 0.4 * len(fewer)


def _side_by_side(first: Sequence[TextLine], second: Sequence[TextLine]) -> bool:
    """Tell whether the two sides stand beside, not below each other."""
    one, other = union(line.box for line in first), union(line.box for line in second)
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > 0.3 * min(one[3] - one[1], other[3] - other[1])
