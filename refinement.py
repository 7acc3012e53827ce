"""Knowledge refinement: decompose, score, filter, recompose (paper, section 4.4).

A document is cut into strips of one or two sentences (a few when it is long); a table only between rows, each piece
with its caption and header row. Strips at or above the floor are kept, at most `max_strips`, and recomposed in
document order with their provenance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from schema import BlockType, Document, Grade, Knowledge, Strip, Thresholds
from sentences import Span, is_table_row, is_table_rule, line_spans, sentence_spans, width
from together import together

LONG_DOCUMENT = 1600
"""Reading width above which strips get longer."""
STRIP_WIDTH = 220
"""Reading width of a strip of a short document; strips of long ones and of tables are twice as wide."""
SHORTEST_STRIP = 40
"""A sentence narrower than this is glued to its neighbour: alone it says too little to be graded."""
_ITEM = re.compile(r"[-•*·●○◦▪①-⑳]|[(（]?(?:\d{1,2}|[一二三四五六七八九十]{1,2}|[A-Za-z])[.)）、．]")
"""How an item of a list begins."""


class StripEvaluator(Protocol):
    """Grades strips, grouped by the document they come from."""

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip of each group."""
        ...


@dataclass(frozen=True, slots=True)
class StripRefiner:
    """Refines documents to the strips that bear on a question."""

    evaluator: StripEvaluator
    max_strips: int = 8
    strip_width: int = STRIP_WIDTH

    def refine(self, parts: Sequence[str], *, documents: Sequence[Document], thresholds: Thresholds) -> Knowledge:
        """Return all strips of the documents in order, the useful ones kept.

        `parts` are the questions of a compound question; a strip's grade is its best over them.
        """
        groups = [decompose(document, strip_width=self.strip_width) for document in documents]
        return self.select(parts, groups=groups, thresholds=thresholds)

    def select(self, parts: Sequence[str], *, groups: Sequence[Sequence[Strip]], thresholds: Thresholds) -> Knowledge:
        """Grade strips that are already cut, keep those at or above the floor, at most `max_strips` a part."""
        texts = [[strip.text for strip in group] for group in groups]
        graded: list[list[Strip]] = [list(group) for group in groups]
        kept: set[tuple[int, int]] = set()
        if not any(texts):
            return Knowledge()
        grade = partial(self.evaluator.grade_strips, groups=texts)
        for number, rows in enumerate(together([partial(grade, part) for part in parts])):
            places = [(row, column) for row, grades in enumerate(rows) for column in range(len(grades))]
            useful = [(r, c) for r, c in places if rows[r][c].score >= thresholds.strip or rows[r][c].failed]
            kept.update(self._best(useful, rows=rows, texts=texts))
            for r, c in places:
                new, old = rows[r][c], graded[r][c]
                best, part = (old.grade, old.part) if number and new.score <= old.grade.score else (new, number)
                usage = new.usage + old.grade.usage
                graded[r][c] = replace(old, grade=replace(best, usage=usage), part=part)
        return Knowledge(
            strips=tuple(
                replace(strip, kept=(r, c) in kept) for r, group in enumerate(graded) for c, strip in enumerate(group)
            )
        )

    def _best(
        self,
        places: Sequence[tuple[int, int]],
        *,
        rows: Sequence[Sequence[Grade]],
        texts: Sequence[Sequence[str]],
    ) -> set[tuple[int, int]]:
        chosen: dict[str, tuple[int, int]] = {}
        for r, c in sorted(places, key=lambda place: -rows[place[0]][place[1]].score):
            if len(chosen) == self.max_strips:
                break
            chosen.setdefault(" ".join(texts[r][c].split()), (r, c))
        return set(chosen.values())


def decompose(document: Document, *, strip_width: int = STRIP_WIDTH) -> list[Strip]:
    """Cut a document into strips that cover its text in order."""
    text = document.text
    limit = 2 * strip_width if width(text) > LONG_DOCUMENT else strip_width
    strips: list[Strip] = []
    for rows, (start, end) in _sections(document):
        if rows:
            strips.extend(_table_strips(document, start=start, end=end, limit=2 * strip_width))
        else:
            spans = _join(sentence_spans(text, start=start, end=end), text=text, limit=limit)
            strips.extend(Strip(text=text[a:b], document=document, start=a, end=b) for a, b in spans)
    return _led(strips, limit=2 * strip_width)


def _sections(document: Document) -> list[tuple[bool, Span]]:
    """Stretches of table rows (True) and of running text (False); text also ends where a block ends."""
    text = document.text
    ends = {piece.end for piece in document.chunk.pieces} if document.chunk else set()
    sections: list[tuple[bool, Span]] = []
    for start, end in line_spans(text):
        rows = is_table_row(text[start:end])
        if sections and sections[-1][0] and rows:
            sections[-1] = (True, (sections[-1][1][0], end))
        elif sections and not rows and not sections[-1][0] and sections[-1][1][1] not in ends and _wrapped(text, start):
            sections[-1] = (False, (sections[-1][1][0], end))
        else:
            sections.append((rows, (start, end)))
    return _glued(sections, text=text)


def _wrapped(text: str, start: int) -> bool:
    """A line that goes on from the line before: no blank line between, no bullet or number in front."""
    return text[max(0, start - 2) : start].count("\n") < 2 and text[start : start + 1] not in "-•*·●○◦▪|"


def _glued(sections: list[tuple[bool, Span]], *, text: str) -> list[tuple[bool, Span]]:
    """A short line (a heading, a label) goes with the text after it."""
    glued: list[tuple[bool, Span]] = []
    for rows, span in sections:
        if glued and not rows and not glued[-1][0] and width(text[slice(*glued[-1][1])]) < SHORTEST_STRIP:
            glued[-1] = (False, (glued[-1][1][0], span[1]))
        else:
            glued.append((rows, span))
    return glued


def _join(spans: Sequence[Span], *, text: str, limit: int) -> list[Span]:
    """Join sentences to strips of at most `limit`, and short ones to a neighbour."""
    joined: list[Span] = []
    for start, end in spans:
        if joined:
            first, last = joined[-1]
            short = min(width(text[first:last]), width(text[start:end])) < SHORTEST_STRIP
            if width(text[first:end]) <= limit / 2 or (short and width(text[first:end]) <= 2 * limit):
                joined[-1] = (first, end)
                continue
        joined.append((start, end))
    return joined


def _led(strips: Sequence[Strip], *, limit: int) -> list[Strip]:
    """A lead-in ("the following commands:") goes with the first items it introduces: alone, neither says enough."""
    led: list[Strip] = []
    leading = False
    for strip in strips:
        text = strip.document.text
        if led and leading and not is_table_row(text[strip.start : strip.end].splitlines()[-1]):
            opens, item = led[-1].text[-1] in ":：", _ITEM.match(strip.text)
            if (opens or item) and width(text[led[-1].start : strip.end]) <= limit:
                led[-1] = replace(led[-1], text=text[led[-1].start : strip.end], end=strip.end)
                continue
        led.append(strip)
        leading = strip.text[-1:] in {":", "："}
    return led


def _table_strips(document: Document, *, start: int, end: int, limit: int) -> list[Strip]:
    """Cut a table between rows; each strip repeats the caption and header row."""
    text = document.text
    rows = [(start + a, start + b) for a, b in line_spans(text[start:end])]
    header = document.chunk.header if document.chunk and document.chunk.type is BlockType.TABLE else ""
    if len(rows) > 2 and is_table_rule(text[slice(*rows[1])]):
        header = header or text[rows[0][0] : rows[1][1]]
        rows = rows[2:]
    rows = [row for row in rows if not is_table_rule(text[slice(*row)])]
    groups: list[Span] = []
    for first, last in rows:
        if groups and width(text[groups[-1][0] : last]) <= limit:
            groups[-1] = (groups[-1][0], last)
        else:
            groups.append((first, last))
    return [
        Strip(text="\n".join(filter(None, (header, text[a:b]))), document=document, start=a, end=b) for a, b in groups
    ]
