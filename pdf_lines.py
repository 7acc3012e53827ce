"""Printed lines of a page: their text mended, joined to rows and paragraphs.

Lengths are in points of the displayed page, origin at the top left. Both the text layer and OCR end up here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from schema import Box

CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_OR_PUNCTUATION = f"{CJK}\u3000-\u3004\u3008-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’…—"
_SPACED = re.compile(f"([{CJK}]) (?=[{CJK}])")
_ADJACENT = re.compile(f"[{CJK}] ?(?=[{CJK}])")
_CLOSING = "\"')]"
_IS_CJK = re.compile(f"[{_CJK_OR_PUNCTUATION}]")
_AT_CJK = re.compile(f"^[\"'(\\[]*[{_CJK_OR_PUNCTUATION}]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u00ad\u200b-\u200f\u2028-\u202e\u2060\ufeff\ufffe\uffff]")
_SPACES = re.compile(r"[ \t\r\n\u00a0\u2000-\u200a\u202f\u3000]+")
_LETTER_SPACE = re.compile(f"(?<=[{_CJK_OR_PUNCTUATION}]) (?=[{_CJK_OR_PUNCTUATION}])")
# Kangxi radicals, compatibility ideographs, ligatures, full-width digits and letters; full-width punctuation is
# proper Chinese and stays.
_FOLDABLE = re.compile("[\u2f00-\u2fdf\uf900-\ufaff\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")
_HYPHENS = ("-", "\u2010")
_HYPHENATED = re.compile(r"([^\W\d_]+)[-\u2010]$")

# Radicals that stand for the plain character in careless text layers; NFKC folds only the Kangxi block.
_RADICALS = str.maketrans(
    "⺁⺄⺆⺇⺈⺊⺋⺌⺍⺎⺏⺐⺑⺒⺓⺔⺗⺘⺙⺛⺝⺞⺟⺠⺡⺢⺣⺤⺥⺨⺩⺪⺬⺭⺮⺯⺱⺲⺳⺶⺷⺸⺹⺺⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻇⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻞⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲⻳",
    "厂乙冂几刀卜㔾小小兀尣尢𡯂巳幺彑㣺扌攵旡月歺母民氵氺灬爫爫犭王疋示礻竹糸网网罒羊羊羊耂肀聿月臼艹艹艹虎衤覀西见角𧢲讠贝𧾷车辶辶辶阝钅长镸长门阜阝雨青韦页风飞食飠飠饣首马骨鬼鱼鸟卤麦黄黾齐齐齿齿龙龙龟龟龟",
)
_SYMBOLS = str.maketrans({"\uf0b7": "•", "\uf0a7": "•", "\uf06c": "•", "\uf06e": "•", "\uf0d8": "•", "\uf075": "•",
                          "\uf052": "☑", "\uf0fe": "☑", "\uf0a3": "□", "\uf0a8": "□", "\uf06f": "□", "\uf0e0": "→",
                          "\uf0fc": "✓", "\uf0ac": "←", "\uf0ae": "→", "\uf02d": "-"})  # fmt: skip


def mend(text: str) -> str:
    """Return text without control characters, odd spaces, radicals for characters, and letter-spaced Chinese."""
    if text.isascii() and text.isprintable():
        return text.strip() if "  " not in text else _SPACES.sub(" ", text).strip()
    text = _CONTROL.sub("", _SPACES.sub(" ", text)).translate(_RADICALS).translate(_SYMBOLS)
    text = _FOLDABLE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    spaced = len(_SPACED.findall(text))
    if spaced >= 3 and spaced > 0.6 * len(_ADJACENT.findall(text)):
        text = _LETTER_SPACE.sub("", text)
    return unicodedata.normalize("NFC", text).strip()


def width_of(text: str) -> int:
    """Count characters, a Chinese one as two."""
    return len(text) + sum(1 for character in text if "\u2e80" <= character <= "\uffef")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A stretch of text printed on one line of one column; `size` is the font's size in points."""

    text: str
    box: Box
    size: float
    bold: bool = False
    slanted: bool = False
    font: str = ""
    confidence: float = 1.0
    insert: int | None = None
    """Number of a table or figure that stands here instead of text."""

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.box[3] - self.box[1]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together, in reading order, of one column; `right` is where its full lines end."""

    lines: tuple[TextLine, ...]
    left: float = 0.0
    right: float = 0.0

    @property
    def box(self) -> Box:
        """Box around all lines."""
        return union(line.box for line in self.lines)

    @property
    def size(self) -> float:
        """Font size of most of its characters."""
        return weighted_median([(line.size, len(line.text)) for line in self.lines])

    @property
    def bold(self) -> bool:
        """Whether all of it is bold."""
        return all(line.bold for line in self.lines)

    @property
    def slanted(self) -> bool:
        """Whether all of it is in italics."""
        return all(line.slanted for line in self.lines)


def union(boxes: Iterable[Box]) -> Box:
    """Return the box around all boxes."""
    found = tuple(boxes)
    return (
        min(box[0] for box in found),
        min(box[1] for box in found),
        max(box[2] for box in found),
        max(box[3] for box in found),
    )


def overlap(first: Box, second: Box) -> float:
    """Return the share of the smaller box that the other one covers."""
    wide = min(first[2], second[2]) - max(first[0], second[0])
    high = min(first[3], second[3]) - max(first[1], second[1])
    if wide <= 0 or high <= 0:
        return 0.0
    area = min((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return wide * high / area if area > 0 else 0.0


def weighted_median(values: Sequence[tuple[float, int]]) -> float:
    """Return the value at half of the total weight; 0 without values."""
    half = sum(weight for _, weight in values) / 2
    for value, weight in sorted(values):
        half -= weight
        if half <= 0:
            return value
    return 0.0


def joint(before: str, after: str, *, words: frozenset[str] = frozenset()) -> tuple[str, str]:
    """Return `before` as it stands in front of the next line, and what goes between the two.

    A word hyphenated at the line end is closed, unless `words` holds its hyphenated form. Nothing goes between
    Chinese characters, a space between all others.
    """
    hyphenated = _HYPHENATED.search(before) if before.endswith(_HYPHENS) else None
    if hyphenated and after[:1].islower():
        tail = re.match(r"[^\W\d_]+", after)
        if tail and f"{hyphenated[1]}-{tail[0]}".lower() not in words:
            return before[:-1], ""
        return before, ""
    if not before or not after or (_AT_CJK.match(after) and _IS_CJK.match(before.rstrip(_CLOSING)[-1:])):
        return before, ""
    return before, " "


def rows(lines: Iterable[TextLine]) -> list[list[TextLine]]:
    """Group lines that stand side by side, top to bottom, each row from left to right."""
    found: list[list[TextLine]] = []
    for line in sorted(lines, key=_row_key):
        middle = (line.box[1] + line.box[3]) / 2
        if found and line.insert is None and found[-1][-1].insert is None:
            last = found[-1][-1]
            reach = 0.45 * min(last.height, line.height)
            if abs((last.box[1] + last.box[3]) / 2 - middle) <= max(reach, 1.0):
                found[-1].append(line)
                continue
        found.append([line])
    return [sorted(row, key=lambda line: line.box[0]) for row in found]


def _row_key(line: TextLine) -> tuple[float, float]:
    middle = line.box[1] if line.insert is not None else (line.box[1] + line.box[3]) / 2
    return middle, line.box[0]


def merge_row(row: Sequence[TextLine], *, reach: float = 1e9) -> list[TextLine]:
    """Join neighbours of one row whose gap is below `reach` times the font size."""
    merged: list[TextLine] = []
    for line in row:
        if merged and line.insert is None and merged[-1].insert is None:
            last = merged[-1]
            gap = line.box[0] - last.box[2]
            if gap < reach * max(last.size, line.size):
                close = gap < 0.12 * min(last.size, line.size)
                between = "" if close else joint(last.text, line.text)[1]
                if gap > 0.9 * line.size and not between:
                    between = " "
                heavy = last if len(last.text) >= len(line.text) else line
                merged[-1] = replace(
                    heavy,
                    text=f"{last.text}{between}{line.text}",
                    box=union((last.box, line.box)),
                    bold=last.bold and line.bold,
                    slanted=last.slanted and line.slanted,
                    confidence=min(last.confidence, line.confidence),
                )
                continue
        merged.append(line)
    return merged


_MARKER = re.compile(
    r"^\s*(?:[•●○▪■□◆◇►▶➢✓✔☑☐·‣–—*-](?:\s|(?=[\u4e00-\u9fff]))"
    r"|[（(](?:\d{1,2}|[a-z]|[ivx]{1,4}|[一二三四五六七八九十]{1,3})[)）]"
    r"|(?:\d{1,2}|[a-zA-Z])[)）]|\d{1,2}[.、．](?!\d)|[①-⑳]|[一二三四五六七八九十]{1,3}[、．.])"
)
_NUMBERED = re.compile(
    r"^(?:\d{1,2}(?:\.\d{1,2}){1,3}\.?\s*[A-Z\u4e00-\u9fff]|第\s*[\d一二三四五六七八九十百]+\s*[章节篇]|[IVX]+\.\s+[A-Z]{3})"
)
_ENDS_SENTENCE = re.compile(r"[.!?。！？；;:：…][\"'”’）)\]]*$")


def starts_item(text: str) -> bool:
    """Tell whether a line begins with a bullet or a number of an enumeration."""
    return bool(_MARKER.match(text))


def ends_sentence(text: str) -> bool:
    """Tell whether a line ends as a sentence, a heading or an item does."""
    return bool(_ENDS_SENTENCE.search(text))


def paragraphs(column: Sequence[TextLine]) -> list[Paragraph]:
    """Cut one column into paragraphs by space, indent, size, weight, markers and short last lines."""
    lines = [line for row in rows(column) for line in merge_row(row)]
    if not lines:
        return []
    leads = [after.box[1] - before.box[1] for before, after in pairwise(lines) if after.box[1] > before.box[1]]
    tight = [lead for lead in leads if lead < 3.2 * median(line.size for line in lines)]
    leading = median(tight) if tight else 0.0
    found: list[list[TextLine]] = []
    edges: list[tuple[float, float]] = []
    for index, line in enumerate(lines):
        near = [other for other in lines[max(0, index - 6) : index + 7] if other.insert is None] or [line]
        left, right = min(other.box[0] for other in near), max(other.box[2] for other in near)
        if found and not _breaks(found[-1], line, leading=leading, left=left, right=right):
            found[-1].append(line)
        else:
            found.append([line])
            edges.append((left, right))
    return [Paragraph(tuple(part), *edge) for part, edge in zip(found, edges, strict=True)]


def _breaks(part: Sequence[TextLine], line: TextLine, *, leading: float, left: float, right: float) -> bool:
    """Tell whether `line` begins a new paragraph after the lines of `part`."""
    last = part[-1]
    if line.insert is not None or last.insert is not None:
        return True
    lead = line.box[1] - last.box[1]
    em = max(last.size, line.size)
    short = last.box[2] < right - max(0.1 * (right - left), 2.0 * em)
    if lead > max(1.35 * leading, leading + 0.35 * em) or lead > max(2.2 * em, 1.1 * leading) or starts_item(line.text):
        return True
    change = abs(line.size - last.size) / em
    if change > 0.25 or (change > 0.1 and short) or (line.bold != last.bold and short):
        return True
    if len(part) == 1 and short and (last.box[0] > line.box[0] + em or _NUMBERED.match(last.text)):
        return not (ends_sentence(last.text) and starts_item(last.text)) and width_of(last.text) < 100
    if starts_item(part[0].text):  # a hanging indent continues an item; a line back at the margin does not
        return short and line.box[0] < part[0].box[0] + 0.3 * em
    centred = abs(sum(line.box[::2]) - sum(last.box[::2])) < em and line.box[0] > left + em
    if line.box[0] > last.box[0] + 0.8 * em and line.box[0] > left + 0.8 * em and not centred:
        return len(part) > 1 or ends_sentence(last.text) or short
    if centred:
        return False
    return short and (ends_sentence(last.text) or last.box[2] < left + 0.6 * (right - left))
