"""When the knowledge base and the web give different answers: found here, shown side by side, never merged silently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from schema import Origin, Strip

SURE_MARGIN = 1.0
"""Span margin (logits over 'no answer') above which a span counts as the answer that a strip gives."""
_ARTICLE = re.compile(r"^(?:the|an?)\s+")
_FOLDED = str.maketrans("〇零一二三四五六七八九\u2212|", "00123456789- ")
_THOUSANDS = re.compile(r"(?<=\d)[,'\u2019](?=\d{3}(?!\d))")
_GAP = re.compile(r"(?<=\d)(?:[^\w.]|\.(?!\d))[\W_]*(?=\d)")
_MARK = re.compile(r"(?P<kept>(?<=\d)\.(?=\d)|(?<![\w)])-(?=\d)|\|)|[\W_]")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The best strip of each origin whose answers differ."""

    kb: Strip
    web: Strip


def sure_answer(strip: Strip) -> str:
    """Return the answer marked in a strip, on one line; empty where there is none or it is unsure."""
    span = strip.grade.span
    if span is None or span.margin < SURE_MARGIN:
        return ""
    return " ".join(strip.text[span.start : span.end].split())


def find_disagreement(strips: Sequence[Strip]) -> Disagreement | None:
    """Return the two strips when the best of the knowledge base and the best of the web answer differently.

    Two answers are one when either stands in the other's strip, whatever their case, width, commas or numerals.
    """
    best = [_best(strips, origin=origin) for origin in (Origin.KB, Origin.WEB)]
    kb, web = best
    if kb is None or web is None:
        return None
    agreed = _holds(web.text, answer=sure_answer(kb)) or _holds(kb.text, answer=sure_answer(web))
    return None if agreed else Disagreement(kb, web)


def _best(strips: Sequence[Strip], *, origin: Origin) -> Strip | None:
    answering = [strip for strip in strips if strip.document.origin is origin and sure_answer(strip)]
    return max(answering, key=lambda strip: strip.grade.score, default=None)


def _holds(text: str, *, answer: str) -> bool:
    """Tell whether a text states the answer; 5 is stated neither by 15 nor by 50, 0.5 or −5."""
    wanted = re.escape(_plain(answer))
    before = r"(?<![\d.\-])" if wanted[:1].isdigit() else ""
    after = r"(?![.\-]?\d)" if wanted[-1:].isdigit() else ""
    return re.search(before + wanted + after, _plain(text)) is not None


def _plain(text: str) -> str:
    """Letters, digits and what makes numbers differ, so that spellings of one answer are equal.

    Commas inside a number go; decimal points and minus signs stay; "|" stands between two numbers.
    """
    folded = _ARTICLE.sub("", unicodedata.normalize("NFKC", text).casefold()).translate(_FOLDED)
    apart = _GAP.sub("|", _THOUSANDS.sub("", folded))
    return _MARK.sub(lambda mark: mark["kept"] or "", apart)
