"""Scores on their scale with both thresholds, as an SVG picture: colour and shape both tell the band."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from schema import Thresholds

WIDTH = 560
LABEL_WIDTH = 190
ROW = 26
TOP = 40
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
    line: str
    high: str
    middle: str
    low: str


_LIGHT = _Inks(text="#1f2328", muted="#5a626b", line="#8b949e", high="#1a7f37", middle="#9a6700", low="#c62f2f")
_DARK = _Inks(text="#e8e6e1", muted="#a9b1b8", line="#6e7781", high="#57ab5a", middle="#d9a441", low="#f47067")


def score_chart(
    marks: Sequence[Mark], *, thresholds: Thresholds, upper_label: str, lower_label: str, dark: bool = False
) -> str:
    """Return an SVG with one row a mark on a scale from −1 to 1, the bands of the three actions tinted."""
    inks = _DARK if dark else _LIGHT
    height = TOP + ROW * max(len(marks), 1) + 26
    left, right = LABEL_WIDTH, WIDTH - 56
    parts = [*_bands(left, right, height - 26, thresholds=thresholds, inks=inks)]
    parts += _limits(left, right, height - 26, thresholds=thresholds, names=(lower_label, upper_label), inks=inks)
    for row, mark in enumerate(marks):
        middle = TOP + row * ROW + ROW // 2
        parts.append(_text(0, middle + 4, _shorten(mark.label), ink=inks.text))
        value = "?" if mark.score is None else f"{mark.score:+.2f}"
        parts.append(_text(WIDTH - 4, middle + 4, value, ink=inks.text, anchor="end"))
        at = _place(0.0 if mark.score is None else mark.score, left, right)
        parts.append(f'<line x1="{left}" y1="{middle}" x2="{right}" y2="{middle}" stroke="{inks.line}" opacity=".35"/>')
        parts.append(_shape(at, middle, score=mark.score, thresholds=thresholds, inks=inks))
    for tick in (-1.0, 0.0, 1.0):
        label = f"{tick:+.0f}" if tick else "0"
        parts.append(_text(_place(tick, left, right), height - 8, label, ink=inks.muted, anchor="middle"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'{_FONT} font-size="13">{"".join(parts)}</svg>'
    )


def _bands(left: int, right: int, bottom: int, *, thresholds: Thresholds, inks: _Inks) -> list[str]:
    lower, upper = (_place(value, left, right) for value in (thresholds.lower, thresholds.upper))
    upper = max(lower, upper)
    spans = ((left, lower, inks.low), (lower, upper, inks.middle), (upper, right, inks.high))
    return [
        f'<rect x="{start:.1f}" y="{TOP - 4}" width="{max(end - start, 0):.1f}" height="{bottom - TOP + 4}" '
        f'fill="{ink}" opacity=".12"/>'
        for start, end, ink in spans
    ]


def _limits(
    left: int, right: int, bottom: int, *, thresholds: Thresholds, names: tuple[str, str], inks: _Inks
) -> list[str]:
    parts = []
    drawn = ((thresholds.lower, names[0], inks.low, 13), (thresholds.upper, names[1], inks.high, 28))
    for value, name, ink, height in drawn:
        at = _place(value, left, right)
        anchor = "start" if at < left + 70 else "end" if at > right - 70 else "middle"
        parts.append(
            f'<line x1="{at:.1f}" y1="{height + 4}" x2="{at:.1f}" y2="{bottom}" stroke="{ink}" stroke-width="2" '
            'stroke-dasharray="5 3"/>'
        )
        parts.append(_text(at, height, f"{name} {value:+.2f}", ink=ink, anchor=anchor))
    return parts


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


def _place(value: float, left: int, right: int) -> float:
    return left + (min(max(value, -1.0), 1.0) + 1.0) / 2 * (right - left)


def _text(x: float, y: int, text: str, *, ink: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" fill="{ink}" text-anchor="{anchor}">{escape(text)}</text>'


def _shorten(text: str) -> str:
    """Fit a label to its column; a Chinese character is twice as wide. The end (the page) is kept."""
    room = 25

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
