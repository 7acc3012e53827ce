"""The embedded generator: it quotes the best strips and marks the answer in them; it never makes a sentence up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from i18n import Language, translate
from schema import Citation, Draft, Knowledge, Origin, Strip

SURE_MARGIN = 2.0
"""Span margin (logits over 'no answer') above which the span is given as the short answer."""
CLEAR_LEAD = 0.1
"""Score lead over the next strip below which several quotations stand side by side."""


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Answers with quotations: at most `quotes` strips of each origin, none more than `reach` below the best one."""

    quotes: int = 5
    reach: float = 1.2
    name: str = "extractive"

    def stream(self, question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
        """Yield the text in pieces, then the draft with its citations. `knowledge` has at least one kept strip."""
        chosen = [strip for origin in Origin for strip in self._choose(knowledge.kept, origin=origin)]
        citations = tuple(cite(strip, n=n) for n, strip in enumerate(chosen, start=1))
        pieces: list[str] = []
        for piece in _write(chosen, citations=citations, language=language):
            pieces.append(piece)
            yield piece
        yield Draft(text="".join(pieces), citations=citations)

    def _choose(self, kept: Sequence[Strip], *, origin: Origin) -> list[Strip]:
        """Best first."""
        ranked = sorted(
            (strip for strip in kept if strip.document.origin is origin), key=lambda strip: -strip.grade.score
        )
        return [strip for strip in ranked if strip.grade.score >= ranked[0].grade.score - self.reach][: self.quotes]


def cite(strip: Strip, *, n: int, matched: bool = False) -> Citation:
    """Return the citation of a strip under the number `n`, its answer span marked where one is known."""
    document = strip.document
    span = strip.grade.span
    return Citation(
        n=n,
        origin=document.origin,
        quote=strip.text,
        file=document.file,
        page=strip.page,
        regions=strip.regions,
        url=document.url,
        title=document.title,
        fetched_at=document.fetched_at,
        matched=matched,
        mark=(span.start, span.end) if span and span.end <= len(strip.text) else None,
    )


def _write(chosen: Sequence[Strip], *, citations: Sequence[Citation], language: Language) -> Iterator[str]:
    short = _short_answer(chosen)
    if short:
        yield translate("answer.short", language=language, answer=short) + " [1]\n\n"
    mixed = len({citation.origin for citation in citations}) > 1
    origin = None
    for citation in citations:
        if citation.origin is not origin:
            origin = citation.origin
            label = f"answer.quoted_{origin.value}" if mixed or origin is Origin.WEB else "answer.quoted"
            yield translate(label, language=language) + "\n\n"
        yield translate("answer.quote", language=language, quote=citation.quote) + f" [{citation.n}]\n\n"


def _short_answer(chosen: Sequence[Strip]) -> str:
    """The span of the best strip, unless it is unsure or another strip comes close with another answer."""
    best = chosen[0]
    span = best.grade.span
    if span is None or span.margin < SURE_MARGIN:
        return ""
    answer = best.text[span.start : span.end]
    for rival in chosen[1:]:
        other = rival.grade.span
        close = rival.grade.score > best.grade.score - CLEAR_LEAD
        if close and other and answer.casefold() not in rival.text.casefold():
            return ""
    return " ".join(answer.split())
