"""Finds the cell of a Markdown table that a question names by its row and its column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from sentences import Span, is_table_row, is_table_rule, line_spans
from wording import terms

_FIGURE = re.compile(r"[\W_]*\d[\d\W_]*[%％xX×]?[\W_]*")


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell's text and its characters."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, order=True)
class _Match:
    """How much of a question a cell's headings say: terms matched, then how little else the headings say."""

    matched: int
    precision: float


def named_cell(asked: AbstractSet[str], *, text: str) -> Span | None:
    """Characters of the one cell whose row label and column heading share most with the question's terms.

    None where the text has no table, no cell shares both, the cell is empty, or two are named alike. A row's label is
    the nearest cell to the left that is no figure, so tables that stand side by side keep apart.
    """
    head, rows = _table(text)
    ranked = sorted(_matches(asked, head=head, rows=rows), key=lambda found: found[0], reverse=True)
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1].span if ranked[0][1].text else None


def _matches(
    asked: AbstractSet[str], *, head: Sequence[_Cell], rows: Sequence[Sequence[_Cell]]
) -> Iterator[tuple[_Match, _Cell]]:
    for cells in rows:
        for column in range(1, min(len(cells), len(head))):
            cell = cells[column]
            label = next((left for left in reversed(cells[:column]) if left.text and not _is_figure(left.text)), None)
            if label is None:
                continue
            named, heading = terms(label.text), terms(head[column].text)
            by_row, by_column = asked & named, (asked & heading) - named
            if by_row and by_column:
                matched = by_row | by_column
                yield _Match(len(matched), len(matched) / len(named | heading)), cell


def _is_figure(text: str) -> bool:
    return _FIGURE.fullmatch(text) is not None


def _table(text: str) -> tuple[list[_Cell], list[list[_Cell]]]:
    """The cells of the header row and of the rows under the rule of the first table of a text."""
    lines = [span for span in line_spans(text) if is_table_row(text[slice(*span)])]
    rule = next((n for n, span in enumerate(lines) if is_table_rule(text[slice(*span)])), 0)
    if rule == 0:
        return [], []
    rows = [_cells(text, span=span) for span in lines[rule + 1 :] if not is_table_rule(text[slice(*span)])]
    return _cells(text, span=lines[rule - 1]), rows


def _cells(text: str, *, span: Span) -> list[_Cell]:
    """Cells between the bars of one row."""
    bars = [place for place in range(*span) if text[place] == "|"]
    cells = []
    for left, right in pairwise(bars):
        body = text[left + 1 : right]
        start = left + 1 + len(body) - len(body.lstrip())
        cells.append(_Cell(body.strip(), (start, start + len(body.strip()))))
    return cells
