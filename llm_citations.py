"""From a model's text to an answer with checked citations.

Only numbers of sources that were given become citations. Every sentence is compared with the sources: one that names
none, or only sources that do not support it, gets the one that does, labelled as matched; one that none supports is
marked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from generator import cite
from i18n import Language, translate
from schema import Draft, Grade, Strip
from sentences import sentence_spans, width

CITATION_UNKNOWN = "models.citation_unknown"
CITATIONS_MATCHED = "models.citations_matched"
SENTENCE_UNSUPPORTED = "models.sentence_unsupported"
CONTAINED = 0.6
"""Share of a sentence's terms in a source above which the source supports it, whatever the reader says."""
HINTED = 0.3
"""Share below which the reader's word alone does not count: it grades questions, a statement is strange to it."""
SHORTEST_CLAIM = 12
"""Reading width below which a sentence without a number makes no claim ("Yes.", a heading)."""

_GROUP = re.compile(
    r"[\[【](?:(?:sources?|来源|资料|文献|S)\s*)?(\d{1,4}(?:\s*[-–~,，、;；和&]\s*\d{1,4})*)\s*[\]】](?:\([^)\s]*\))?",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)\s*[-–~]\s*(\d+)")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MARK = re.compile(r"\[(\d+)\]")
_MARKED = re.compile(r"[ \t]*\[\d+\]")
_STOP_WORDS = frozenset(
    "the a an of in on at to for and or is are was were be been do does did that this it its by with from as has have"
    " had his her their there which who whom according source sources".split()
)
_STOP_PIECES = frozenset("根据 来源 资料 文中 其中 因此 所以 可以 以及 这个 这些 一个".split())


class Matcher(Protocol):
    """The embedded evaluator, asked which source a sentence rests on."""

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage."""
        ...


@dataclass(frozen=True, slots=True)
class CitedText:
    """A text whose citations all have the form [n] with known numbers; how many others were dropped."""

    text: str
    numbers: tuple[int, ...]
    dropped: int


def names_a_source(text: str) -> bool:
    """Tell whether a text has a citation in any of the forms that models write."""
    return _GROUP.search(text) is not None


def normalise_citations(text: str, *, count: int) -> CitedText:
    """Rewrite [1, 3], [1-3], 【2】, [Source 2] to [1][3]… and drop every number outside 1..count."""
    named: dict[int, None] = {}
    dropped = 0

    def rewrite(found: re.Match[str]) -> str:
        nonlocal dropped
        numbers = _numbers(found.group(1), count=count)
        known = [number for number in dict.fromkeys(numbers) if 1 <= number <= count]
        dropped += len(numbers) - len(known)
        named.update(dict.fromkeys(known))
        return "".join(f"[{number}]" for number in known)

    cleaned = _GROUP.sub(rewrite, _IMAGE.sub("", text))
    return CitedText(text=re.sub(r"[ \t]+(?=[.,;:!?。，；：！？])", "", cleaned), numbers=tuple(named), dropped=dropped)


def _numbers(group: str, *, count: int) -> list[int]:
    numbers: list[int] = []
    for part in re.split(r"[,，、;；和&]", group):
        bounds = _RANGE.fullmatch(part.strip())
        if bounds:
            first, last = int(bounds[1]), int(bounds[2])
            numbers += range(first, last + 1) if first <= last <= count else [first, last]
        else:
            numbers.append(int(part))
    return numbers


def make_draft(
    text: str, *, sources: Sequence[Strip], question: str, matcher: Matcher, language: Language
) -> Draft | None:
    """Return the checked draft of a model's answer; None when no sentence of it rests on a source.

    The numbers are those of the prompt: source n is `sources[n - 1]`.
    """
    cited = normalise_citations(text, count=len(sources))
    pieces: list[str] = []
    matched: dict[int, None] = {}
    supported, unsupported = 0, 0
    place = 0
    for start, end in _sentences(cited.text):
        sentence = cited.text[start:end]
        named = [int(number) for number in _MARK.findall(sentence)]
        pieces.append(cited.text[place:start])
        place = end
        if not _is_claim(sentence):
            supported += bool(named)
            pieces.append(sentence)
            continue
        support = find_support(sentence, sources=sources, named=named, question=question, matcher=matcher)
        if support is None:
            unsupported += 1
            pieces += [sentence, " " + translate("models.unsupported_mark", language=language)]
            continue
        supported += 1
        if support in named:
            pieces.append(sentence)
        else:
            matched[support] = None
            pieces += [_MARKED.sub("", sentence).rstrip(), f"[{support}]" if language == "zh" else f" [{support}]"]
    pieces.append(cited.text[place:])
    written = "".join(pieces).strip()
    if not supported:
        return None
    warnings = {
        CITATION_UNKNOWN: cited.dropped,
        CITATIONS_MATCHED: matched,
        SENTENCE_UNSUPPORTED: unsupported,
    }
    numbers = sorted({int(number) for number in _MARK.findall(written)})
    return Draft(
        text=written,
        citations=tuple(cite(sources[n - 1], n=n, matched=n in matched) for n in numbers),
        warnings=tuple(key for key, met in warnings.items() if met),
        unknown_citations=cited.dropped,
    )


def _sentences(text: str) -> list[tuple[int, int]]:
    """Sentences with the citations that follow their full stop."""
    spans: list[tuple[int, int]] = []
    for line in re.finditer(r"[^\n]+", text):
        for start, end in sentence_spans(text, start=line.start(), end=line.end()):
            lead = re.match(r"(?:\s*\[\d+\])+[.。]?\s*", text[start:end])
            if lead and spans and spans[-1][0] >= line.start():
                spans[-1] = (spans[-1][0], start + len(lead.group().rstrip()))
                start += lead.end()
            if text[start:end].strip():
                spans.append((start, end))
    return spans


def _is_claim(sentence: str) -> bool:
    plain = _MARK.sub("", sentence).strip(" -*#:：>")
    return width(plain) >= SHORTEST_CLAIM or bool(_NUMBER.search(plain))


def find_support(
    sentence: str, *, sources: Sequence[Strip], named: Sequence[int], question: str, matcher: Matcher
) -> int | None:
    """Return the number of the source that supports a sentence, those it names first; None when none does.

    A source supports it when it holds the sentence's numbers and most of its terms, or some terms and the reader
    finds in it what the question and the sentence ask for.
    """
    plain = _MARK.sub("", sentence)
    order = [*named, *(n for n in range(1, len(sources) + 1) if n not in named)]
    asked = _numbers_in(question)
    shares = {n: _share(plain, source=_whole(sources[n - 1]), known=asked) for n in order}
    contained = [n for n in order if shares[n] >= CONTAINED]
    if contained:
        return next((n for n in contained if n in named), max(contained, key=lambda n: shares[n]))
    hinted = [n for n in order if shares[n] >= HINTED]
    if not hinted:
        return None
    grades = matcher.grade(plain, passages=[sources[n - 1].text for n in hinted])
    found = {n: grade.score for n, grade in zip(hinted, grades, strict=True) if grade.score >= 0}
    return max(found, key=lambda n: (n in named, found[n]), default=None)


def _whole(strip: Strip) -> str:
    document = strip.document
    return "\n".join((*document.heading_path, document.title, strip.text))


def _share(sentence: str, *, source: str, known: set[str]) -> float:
    """Share of the sentence's terms that the source has; 0 when a number of the sentence is in neither."""
    if not _numbers_in(sentence) <= _numbers_in(source) | known:
        return 0.0
    terms = _terms(sentence)
    return len(terms & _terms(source)) / len(terms) if terms else 1.0


def _numbers_in(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKC", text)
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(plain)}


def _terms(text: str) -> set[str]:
    """Latin words cut to their stem's length, and Han bigrams."""
    plain = unicodedata.normalize("NFKC", text).lower()
    words = {word[:6] for word in re.findall(r"[a-zà-ɏ]{2,}|\d+(?:[.,]\d+)*", plain) if word not in _STOP_WORDS}
    for run in re.findall(r"[\u3400-\u9fff]+", plain):
        words |= {piece for i in range(max(1, len(run) - 1)) if (piece := run[i : i + 2]) not in _STOP_PIECES}
    return words
