"""Where a text may be cut: sentences of Chinese and English, rows of a table, lines."""

from __future__ import annotations

import re

Span = tuple[int, int]

_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st no nos vol fig figs eq eqs sec ch pp ed eds vs cf etc al inc ltd co corp dept est approx"
    " jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e u.s u.k a.m p.m ph.d".split()
)
_CHINESE_END = re.compile(r"(?:[。！？；!?]|…+)[”’」』）)\"']*")
_LATIN_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s+[\"'“‘(\[]?[A-Z0-9\u00c0-\u00de\u3400-\u9fff])")


def is_table_row(line: str) -> bool:
    """Tell whether a line is a Markdown table row."""
    stripped = line.strip()
    return len(stripped) > 1 and stripped.startswith("|") and stripped.endswith("|")


def is_table_rule(line: str) -> bool:
    """Tell whether a line is the rule under a Markdown table header."""
    stripped = line.strip()
    return is_table_row(stripped) and not stripped.strip("|-: ")


def width(text: str) -> int:
    """Reading width of a text: a Chinese character counts as two."""
    return sum(2 if char > "\u2e7f" else 1 for char in text)


def line_spans(text: str) -> list[Span]:
    """Return the character ranges of the non-empty lines of a text."""
    return [(m.start(), m.end()) for m in re.finditer(r"[^\n]+", text) if m.group().strip()]


def sentence_spans(text: str, *, start: int = 0, end: int | None = None) -> list[Span]:
    """Return the character ranges of the sentences in `text[start:end]`, in order, without gaps but for spaces."""
    stop = len(text) if end is None else end
    spans: list[Span] = []
    begin = start
    for cut in sorted(_cuts(text, start=start, end=stop)):
        if text[begin:cut].strip():
            spans.append((begin, cut))
            begin = cut
    if text[begin:stop].strip():
        spans.append((begin, stop))
    return [_trimmed(text, span) for span in spans]


def _cuts(text: str, *, start: int, end: int) -> set[int]:
    cuts = {m.end() for m in _CHINESE_END.finditer(text, start, end) if not _inside_latin(text, m)}
    for match in _LATIN_END.finditer(text, start, end):
        word = re.search(r"[\w.]*$", text[max(start, match.start() - 12) : match.start()])
        before = word.group().lower() if word else ""
        initial = len(before) == 1 and before.isalpha()
        if text[match.start()] != "." or not (before in _ABBREVIATIONS or initial):
            cuts.add(match.end())
    return cuts


def _inside_latin(text: str, match: re.Match[str]) -> bool:
    """Latin ! and ? end a sentence here only beside Chinese; elsewhere the Latin rule decides."""
    if match.group()[0] not in "!?":
        return False
    return match.start() == 0 or text[match.start() - 1] < "\u2e80"


def _trimmed(text: str, span: Span) -> Span:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
