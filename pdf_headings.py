"""Which blocks are headings, and on which level: numbering first, then size and weight."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pdf_lines import width_of
from pdf_page import Element
from schema import BlockType

_CHAPTER = re.compile(
    r"^(?:第\s*[\d一二三四五六七八九十百]+\s*章|Chapter\s+(?:\d+|[IVX]+)\b|Appendix\s+[A-Z]\b|附录|Item\s+\d+[A-Z]?\b)",
    re.I,
)
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("part", re.compile(r"^(?:第\s*[\d一二三四五六七八九十百]+\s*[编篇部卷]|Part\s+(?:[IVX]+|\d+)\b)", re.I)),
    ("chapter", _CHAPTER),
    ("section", re.compile(r"^(?:第\s*[\d一二三四五六七八九十百]+\s*节|Section\s+\d+)", re.I)),
    ("chinese", re.compile(r"^[一二三四五六七八九十]{1,3}\s*[、．.]")),
    ("bracketed", re.compile(r"^[（(][一二三四五六七八九十]{1,3}[)）]")),
    ("roman", re.compile(r"^(?:X{0,2}(?:IX|IV|V?I{1,3}|V)|X{1,2})[.．]\s+\S")),
    ("decimal4", re.compile(r"^\d{1,2}(?:\s?[.．]\s?\d{1,2}){3}\.?\s*(?=[^\d.])")),
    ("decimal3", re.compile(r"^\d{1,2}(?:\s?[.．]\s?\d{1,2}){2}\.?\s*(?=[^\d.])")),
    ("decimal2", re.compile(r"^(?:\d{1,2}|[A-Z])\s?[.．]\s?\d{1,2}\.?(?:\s+(?=[^\d.])|(?=[\u4e00-\u9fff]))")),
    ("decimal1", re.compile(r"^(?:\d{1,2}|[A-H])(?:\s?[.．、]\s*|\s+)(?=[^\d.\s])")),
)  # fmt: skip
_RANK = ("part", "chapter", "section", "roman", "chinese", "bracketed", "decimal1", "decimal2", "decimal3", "decimal4")
_STRONG = frozenset({"part", "chapter", "section", "decimal2", "decimal3", "decimal4"})
_KNOWN = re.compile(
    r"^(?:\d{1,2}[.\s]+|[IVX]+\.\s+)?(?:abstract|introduction|background|related works?|methods?|"
    r"methodology|experiments?|results?|discussion|conclusions?|acknowledge?ments?|references|bibliography|"
    r"appendix|contents|table of contents|summary|executive summary|overview|preface|foreword|glossary|index|"
    r"摘\s*要|引\s*言|前\s*言|绪\s*论|目\s*录|结\s*论|总\s*结|参考文献|致\s*谢|附\s*录|概\s*述|简\s*介|背\s*景|术语|释义|小结|讨论|实验|方法)[:：.]?$",
    re.I,
)
_AUTHORS = re.compile(r"@|https?:|www\.|[∗†‡§¶]|[a-z]\d,\d|[a-z]\d(?:,? [A-Z]|$).*[a-z]\d")
_LEADERS = re.compile(r"[.．·…]{4,}|(?:[.．·…]\s){4,}")
_SENTENCE_END = re.compile(r"[.。；;，,、：:！!]$")
_LETTERS = re.compile(r"[A-Za-z\u4e00-\u9fff]")
_MAX_LEVEL = 6


@dataclass(frozen=True, slots=True)
class _Heading:
    index: int
    kind: str
    size: float
    bold: bool
    known: bool = False


def body_size(elements: Sequence[Element]) -> float:
    """Return the font size of most of the text."""
    weight: Counter[float] = Counter()
    for element in elements:
        if element.block.type in {BlockType.TEXT, BlockType.LIST}:
            weight[round(element.size * 2) / 2] += len(element.block.text)
    return weight.most_common(1)[0][0] if weight else 10.0


def numbering(text: str) -> str:
    """Return the kind of numbering a text begins with, "" without one."""
    return next((kind for kind, pattern in _KINDS if pattern.match(text)), "")


def heading_levels(elements: Sequence[Element]) -> dict[int, int]:
    """Return the level (1–6) of every element that is a heading, by its index."""
    body = body_size(elements)
    bold_share = _bold_share(elements)
    found = [
        _heading(index, element)
        for index, element in enumerate(elements)
        if _is_heading(element, body=body, bold_common=bold_share > 0.4)
    ]
    found = _with_missing(found, elements=elements)
    found = _without_lists(found, elements=elements, body=body)
    levels = _levels(found, body=body)
    return {heading.index: level for heading, level in zip(found, levels, strict=True)}


def _heading(index: int, element: Element) -> _Heading:
    text = element.block.text
    return _Heading(index, numbering(text), element.size, element.bold, bool(_KNOWN.match(text)))


def _with_missing(found: Sequence[_Heading], *, elements: Sequence[Element]) -> list[_Heading]:
    """Add a plain "3. Data" between the headings numbered 2 and 4."""
    numbers = {
        int(number[0]): heading.index
        for heading in found
        if heading.kind == "decimal1" and (number := re.match(r"\d+", elements[heading.index].block.text))
    }
    added = []
    for index, element in enumerate(elements):
        text = element.block.text
        number = re.match(r"(\d{1,2})[.．、\s]", text)
        if (
            number is None
            or numbering(text) != "decimal1"
            or element.block.type not in {BlockType.TEXT, BlockType.LIST}
        ):
            continue
        here = int(number[1])
        fits = numbers.get(here - 1, index) < index < numbers.get(here + 1, index)
        if here not in numbers and fits and width_of(text) <= 60 and not _SENTENCE_END.search(text):
            numbers[here] = index
            added.append(_heading(index, element))
    return sorted([*found, *added], key=lambda heading: heading.index)


def _bold_share(elements: Sequence[Element]) -> float:
    total = sum(len(element.block.text) for element in elements)
    return sum(len(element.block.text) for element in elements if element.bold) / total if total else 0.0


def _is_heading(element: Element, *, body: float, bold_common: bool) -> bool:
    """Tell whether the look and the words of one block make it a heading."""
    block, text = element.block, element.block.text
    lines = len(block.lines) or 1
    if block.type is BlockType.TITLE:
        return True
    if block.type is BlockType.CODE:
        return lines == 1 and width_of(text) <= 60 and element.size > 1.15 * body
    if block.type not in {BlockType.TEXT, BlockType.LIST} or block.angle or not _LETTERS.search(text):
        return False
    return _looks_like_heading(element, body=body, bold_common=bold_common, lines=lines)


def _looks_like_heading(element: Element, *, body: float, bold_common: bool, lines: int) -> bool:
    text = element.block.text
    if width_of(text) < 3 or width_of(text) > 140 or lines > 3 or _LEADERS.search(text) or text[0] in "•●○▪■·–-—*":
        return False
    if _KNOWN.match(text):
        return True
    if _AUTHORS.search(text):
        return False
    kind = numbering(text)
    if _SENTENCE_END.search(text) and not (kind in _STRONG and width_of(text) < 60 and text[-1] in ".．"):
        return False
    ratio = element.size / body if body and element.size else 1.0
    if ratio < 0.9 or (text[:1].islower() and not kind):
        return False
    bold = element.bold and not bold_common
    if kind in _STRONG:
        return ratio >= 1.04 or bold or width_of(text) <= 70
    if kind and lines == 1 and width_of(text) <= 80 and (element.slanted or text.isupper()):
        return True
    if kind:
        return (ratio >= 1.1 or bold or (kind in {"chinese", "bracketed"} and width_of(text) <= 50)) and lines <= 2
    if (
        text.isupper()
        and lines == 1
        and 6 <= width_of(text) <= 60
        and text.isascii()
        and not any(map(str.isdigit, text))
    ):
        return True
    return ratio >= 1.18 or (ratio >= 1.08 and width_of(text) <= 60 and bold) or (bold and lines <= 2)


def _without_lists(found: list[_Heading], *, elements: Sequence[Element], body: float) -> list[_Heading]:
    """Drop numbered items that follow each other without text between and look like the body."""
    kept: list[_Heading] = []
    for position, heading in enumerate(found):
        plain = heading.kind and not heading.bold and heading.size < 1.06 * body
        neighbours = [other for other in (found[position - 1 : position] + found[position + 1 : position + 2])
                      if abs(other.index - heading.index) == 1 and other.kind == heading.kind]  # fmt: skip
        if plain and neighbours and elements[heading.index].block.type is not BlockType.TITLE:
            continue
        kept.append(heading)
    return kept


def _levels(found: Sequence[_Heading], *, body: float) -> list[int]:
    """Give each heading its level: numbered kinds by their order, the others by size among them."""
    if not found:
        return []
    sizes = {
        kind: median(heading.size for heading in found if heading.kind == kind)
        for kind in _RANK
        if any(heading.kind == kind for heading in found)
    }
    kinds = list(sizes)
    plain = sorted({round(heading.size * 2) / 2 for heading in found if not heading.kind}, reverse=True)
    top = max(sizes.values(), default=0.0)
    above = [size for size in plain if kinds and size > 1.08 * top]
    base = 1 + min(len(_clusters(above)), 2)
    levels = []
    for heading in found:
        if heading.kind:
            level = base + kinds.index(heading.kind)
        elif not kinds:
            level = 1 + _cluster_of(heading.size, clusters=_clusters(plain))
            level += 1 if not heading.bold and heading.size < 1.05 * body else 0
        elif heading.size > 1.08 * top:
            level = 1 + _cluster_of(heading.size, clusters=_clusters(above))
        elif heading.known:
            level = base
        else:
            level = base + next(
                (place for place, kind in enumerate(kinds) if heading.size >= 0.97 * sizes[kind]), len(kinds)
            )
        levels.append(min(level, _MAX_LEVEL))
    return levels


def _clusters(sizes: Sequence[float]) -> list[float]:
    """Return the largest size of each group of like sizes, largest first."""
    groups: list[float] = []
    for size in sorted(sizes, reverse=True):
        if not groups or size < 0.93 * groups[-1]:
            groups.append(size)
    return groups


def _cluster_of(size: float, *, clusters: Sequence[float]) -> int:
    return next((place for place, top in enumerate(clusters) if size >= 0.93 * top), len(clusters))
