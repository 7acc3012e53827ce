"""Scores on their scale with both thresholds, as an SVG picture: colour and shape both tell the band.

Each score has two lines, its name above its scale, so that the picture is legible on a phone as well.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from schema import Thresholds

WIDTH = 380
EDGE = 10
TOP = 36
ROW = 42
BAR = 16
FOOT = 20
_FONT = "font-family=\"'Source Sans',system-ui,'PingFang SC','Microsoft YaHei','Noto Sans CJK SC',sans-serif\""


@dataclass(frozen=True, slots=True)
class Mark:
    """One score to draw; None is a grade that failed."""

    label: str
    score: float | None


@dataclass(frozen=True, slots=True)
class _Inks:
    text: str
    muted: str
    high: str
    middle: str
    low: str


_LIGHT = _Inks(text="#1f2328", muted="#5a626b", high="#1a7f37", middle="#9a6700", low="#c62f2f")
_DARK = _Inks(text="#e8e6e1", muted="#a9b1b8", high="#57ab5a", middle="#d9a441", low="#f47067")


def score_chart(
    marks: Sequence[Mark], *, thresholds: Thresholds, upper_label: str, lower_label: str, dark: bool = False
) -> str:
    """Return an SVG with one row a mark on a scale from −1 to 1, the bands of the three actions tinted."""
    inks = _DARK if dark else _LIGHT
    height = TOP + ROW * max(len(marks), 1) + FOOT
    parts = _limits(thresholds, names=(lower_label, upper_label), inks=inks)
    for row, mark in enumerate(marks):
        top = TOP + row * ROW
        value = "?" if mark.score is None else f"{mark.score:+.2f}"
        parts.append(_text(EDGE, top + 15, _shorten(mark.label), ink=inks.text))
        parts.append(_text(WIDTH - EDGE, top + 15, value, ink=inks.text, anchor="end"))
        parts += _bands(top + 22, thresholds=thresholds, inks=inks)
        at = _place(0.0 if mark.score is None else mark.score)
        parts.append(_shape(at, top + 22 + BAR // 2, score=mark.score, thresholds=thresholds, inks=inks))
    for tick in (-1.0, 0.0, 1.0):
        label = f"{tick:+.0f}" if tick else "0"
        anchor = {-1.0: "start", 1.0: "end"}.get(tick, "middle")
        parts.append(_text(_place(tick), height - 5, label, ink=inks.muted, anchor=anchor))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'{_FONT} font-size="13">{"".join(parts)}</svg>'
    )


def _bands(top: int, *, thresholds: Thresholds, inks: _Inks) -> list[str]:
    lower, upper = _place(thresholds.lower), _place(thresholds.upper)
    upper = max(lower, upper)
    spans = ((_place(-1.0), lower, inks.low), (lower, upper, inks.middle), (upper, _place(1.0), inks.high))
    tinted = [
        f'<rect x="{start:.1f}" y="{top}" width="{max(end - start, 0):.1f}" height="{BAR}" fill="{ink}" opacity=".2"/>'
        for start, end, ink in spans
    ]
    edges = ((lower, inks.low), (_place(thresholds.upper), inks.high))
    return tinted + [_line(at, top - 3, top + BAR + 3, ink=ink) for at, ink in edges]


def _limits(thresholds: Thresholds, *, names: tuple[str, str], inks: _Inks) -> list[str]:
    parts = []
    drawn = ((thresholds.lower, names[0], inks.low, 13), (thresholds.upper, names[1], inks.high, 29))
    for value, name, ink, height in drawn:
        at = _place(value)
        anchor = "start" if at < EDGE + 50 else "end" if at > WIDTH - EDGE - 50 else "middle"
        parts.append(_text(at, height, f"{name} {value:+.2f}", ink=ink, anchor=anchor))
        parts.append(_line(at, height + 4, TOP + 2, ink=ink))
    return parts


def _line(x: float, top: int, bottom: int, *, ink: str) -> str:
    return f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{ink}" stroke-width="2"/>'


def _shape(x: float, y: float, *, score: float | None, thresholds: Thresholds, inks: _Inks) -> str:
    if score is None:
        return (
            f'<rect x="{x - 6:.1f}" y="{y - 6}" width="12" height="12" fill="none" stroke="{inks.muted}" '
            'stroke-width="2" stroke-dasharray="3 2"/>'
        )
    if score >= thresholds.upper:
        return f'<circle cx="{x:.1f}" cy="{y}" r="7" fill="{inks.high}"/>'
    if score < thresholds.lower:
        return f'<path d="M{x - 7:.1f} {y - 6}h14l-7 13z" fill="{inks.low}"/>'
    return f'<path d="M{x:.1f} {y - 8}l8 8l-8 8l-8 -8z" fill="{inks.middle}"/>'


def _place(value: float) -> float:
    return EDGE + (min(max(value, -1.0), 1.0) + 1.0) / 2 * (WIDTH - 2 * EDGE)


def _text(x: float, y: int, text: str, *, ink: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" fill="{ink}" text-anchor="{anchor}">{escape(text)}</text>'


def _shorten(text: str) -> str:
    """Fit a label beside its score; a Chinese character is twice as wide. The end (the page) is kept."""
    room = 44

    def width(part: str) -> int:
        return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in part)

    clean = "".join(letter for letter in text if letter.isprintable())
    if width(clean) <= room:
        return clean
    tail = clean[-8:]
    head = clean[:-8]
    while head and width(head) + width(tail) + 1 > room:
        head = head[:-1]
    return f"{head}…{tail}"
