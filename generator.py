"""The embedded generator: it quotes the best strips and marks the answer in them; it never makes a sentence up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from disagreement import Disagreement, find_disagreement, sure_answer
from i18n import Language, translate
from schema import Citation, Draft, Knowledge, Origin, Strip

CLEAR_LEAD = 0.1
"""Score lead over the next strip below which several quotations stand side by side."""
ORIGINS_DIFFER = "warning.origins_differ"


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Answers with quotations: at most `quotes` strips of each origin, none more than `reach` below the best one.

    The parts of a compound question share the quotations, each measured by its own best one.
    """

    quotes: int = 4
    reach: float = 0.8
    name: str = "extractive"

    def stream(self, question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
        """Yield the text in pieces, then the draft with its citations. `knowledge` has at least one kept strip."""
        chosen = [strip for origin in Origin for strip in self._choose(knowledge.kept, origin=origin)]
        citations = tuple(cite(strip, n=n) for n, strip in enumerate(chosen, start=1))
        pieces: list[str] = []
        for piece in _write(chosen, citations=citations, language=language, compound=knowledge.compound):
            pieces.append(piece)
            yield piece
        yield Draft(text="".join(pieces), citations=citations)

    def _choose(self, kept: Sequence[Strip], *, origin: Origin) -> list[Strip]:
        """Part by part, best first."""
        parts: dict[int, list[Strip]] = {}
        for strip in sorted(kept, key=lambda strip: (strip.part, -strip.grade.score)):
            if strip.document.origin is origin:
                parts.setdefault(strip.part, []).append(strip)
        share = max(1, self.quotes // max(1, len(parts)))
        return [
            strip
            for ranked in parts.values()
            for strip in ranked[:share]
            if strip.grade.score >= ranked[0].grade.score - self.reach
        ]


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


def _write(
    chosen: Sequence[Strip], *, citations: Sequence[Citation], language: Language, compound: bool
) -> Iterator[str]:
    yield from _short_answers(chosen, language=language, compound=compound)
    mixed = len({citation.origin for citation in citations}) > 1
    origin = None
    for citation in citations:
        if citation.origin is not origin:
            origin = citation.origin
            label = f"answer.quoted_{origin.value}" if mixed or origin is Origin.WEB else "answer.quoted"
            yield translate(label, language=language) + "\n\n"
        yield translate("answer.quote", language=language, quote=citation.quote) + f" [{citation.n}]\n\n"


def _short_answers(chosen: Sequence[Strip], *, language: Language, compound: bool) -> Iterator[str]:
    """The answer of the best strip of each part; those of both origins, labelled, when they differ."""
    rivals = None if compound else find_disagreement(chosen)
    if rivals is not None:
        yield _sides(rivals, numbers=[chosen.index(rivals.kb) + 1, chosen.index(rivals.web) + 1], language=language)
        return
    for part in sorted({strip.part for strip in chosen}):
        for origin in Origin:
            own = [strip for strip in chosen if strip.document.origin is origin and strip.part == part]
            short = _short_answer(own) if own else ""
            if short:
                label = "answer.short_web" if origin is Origin.WEB else "answer.short"
                yield translate(label, language=language, answer=short) + f" [{chosen.index(own[0]) + 1}]\n\n"
                break


def _short_answer(chosen: Sequence[Strip]) -> str:
    """The answer of the best strip, unless it is unsure or another strip comes close with another answer."""
    best = chosen[0]
    answer = sure_answer(best)
    for rival in chosen[1:]:
        close = rival.grade.score > best.grade.score - CLEAR_LEAD
        if close and rival.grade.span and answer.casefold() not in " ".join(rival.text.split()).casefold():
            return ""
    return answer


def _sides(rivals: Disagreement, *, numbers: Sequence[int], language: Language) -> str:
    """Both answers side by side, each with the number of its source."""
    kb, web = (
        translate(label, language=language, answer=sure_answer(strip)) + f" [{number}]"
        for label, strip, number in zip(
            ("answer.short_kb", "answer.short_web"), (rivals.kb, rivals.web), numbers, strict=True
        )
    )
    return f"{kb}\n\n{web}\n\n"


def both_sides(draft: Draft, *, knowledge: Knowledge, language: Language) -> tuple[Draft, str]:
    """Return the draft with both answers where knowledge base and web differ, and what was added to its text.

    A warning says that they differ. Whoever wrote the draft, the quotation behind each answer is among its citations.
    """
    rivals = None if knowledge.compound else find_disagreement(knowledge.kept)
    if rivals is None or draft.declined:
        return draft, ""
    citations = list(draft.citations)
    numbers = []
    for strip in (rivals.kb, rivals.web):
        made = cite(strip, n=max((known.n for known in citations), default=0) + 1, matched=True)
        known = next((c for c in citations if (c.quote, c.file, c.url) == (made.quote, made.file, made.url)), None)
        citations += [] if known else [made]
        numbers.append((known or made).n)
    sides = _sides(rivals, numbers=numbers, language=language)
    added = "" if sides in draft.text else f"\n\n{sides}"
    warnings = (*draft.warnings, ORIGINS_DIFFER)
    return replace(draft, text=draft.text + added, citations=tuple(citations), warnings=warnings), added
