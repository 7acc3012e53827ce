"""The pages of a document put together: running heads, joined paragraphs, footnotes, captions, the heading tree."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from pdf_headings import body_size, heading_levels, numbering
from pdf_lines import ends_sentence, joint, starts_item, width_of
from pdf_page import Element, PageResult
from schema import PARATEXT, Block, BlockType, Line

_TOP, _BOTTOM = 0.13, 0.87
_DIGITS = re.compile(r"\d+|[ivxlc]{1,6}(?=\W|$)", re.I)
_PAGE_NUMBER = re.compile(
    r"^[\s\-–—|·•\[\]()~]*(?:page|p\.|第|F-?)?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*页?\s*"
    r"(?:(?:/|of|[,，]?\s*共)\s*\d{1,4}\s*页?)?[\s\-–—|·•\[\]()~.]*$",
    re.I,
)
_TABLE_CAPTION = re.compile(r"table|tab\.|exhibit|表|附表", re.I)
_NOTE_MARK = re.compile(r"^(?:\d{1,2}(?!\d|[.、)）:]\s)|[*†‡§¶①-⑳]|\[\d{1,2}\]|注\s*\d*\s*[:：])\s*\S")
_LOWER_START = re.compile(r"^[a-z]")
_JOINABLE = frozenset({BlockType.TEXT, BlockType.LIST})
FILLED_ROWS, FILLED_COLUMNS = 5, 3
_PASSED = PARATEXT | {BlockType.IMAGE, BlockType.TABLE, BlockType.CAPTION, BlockType.FOOTNOTE, BlockType.EQUATION}


def assemble(pages: Sequence[PageResult]) -> tuple[Block, ...]:
    """Return the blocks of a whole document in reading order, numbered from 0.

    Headings get level and path, running heads their type, paragraphs cut by a column or page end become one block
    whose `parts` keep every box; captions stand next to their table (before) or picture (after).
    """
    elements = [element for page in sorted(pages, key=lambda page: page.page) for element in page.elements]
    elements = [element for element in elements if element.block.text or element.block.type is BlockType.IMAGE]
    elements = _mark_charts(_mark_running(elements, pages=len(pages)))
    elements = _mark_footnotes(elements)
    levels = heading_levels(elements)
    elements = [
        _retyped(element, BlockType.TITLE, level=levels[index]) if index in levels else element
        for index, element in enumerate(elements)
    ]
    elements = _join_titles(elements)
    elements = _join_paragraphs(elements)
    elements = _place_captions(elements)
    return _with_paths([element.block for element in elements])


def _retyped(element: Element, kind: BlockType, *, level: int = 0) -> Element:
    return replace(element, block=replace(element.block, type=kind, level=level))


def _mark_running(elements: Sequence[Element], *, pages: int) -> list[Element]:
    """Mark page numbers, and lines at the edge of the page that come back on other pages.

    A page that would have nothing left (a form of one changing line) keeps its lines.
    """
    places: dict[tuple[str, bool], list[Element]] = defaultdict(list)
    for element in elements:
        edge = _edge(element.block)
        if edge is not None:
            places[_running_key(element.block.text), edge].append(element)
    repeated = {
        key
        for key, found in places.items()
        if len({element.block.page for element in found}) >= max(2, min(3, (pages + 1) // 2))
        and _same_height([element.block for element in found])
    }
    marked = []
    for element in elements:
        block, edge = element.block, _edge(element.block)
        if edge is None or block.type in PARATEXT:
            marked.append(element)
        elif _PAGE_NUMBER.match(block.text) and (pages > 1 or not edge):
            marked.append(_retyped(element, BlockType.PAGE_NUMBER))
        elif (_running_key(block.text), edge) in repeated:
            marked.append(_retyped(element, BlockType.HEADER if edge else BlockType.FOOTER))
        else:
            marked.append(element)
    read = {element.block.page for element in marked if element.block.type not in PARATEXT and element.block.text}
    return [
        after if after.block.page in read or after.block.type is BlockType.PAGE_NUMBER else before
        for before, after in zip(elements, marked, strict=True)
    ]


def _edge(block: Block) -> bool | None:
    """True for a short block at the top of its page, False at the bottom, None elsewhere."""
    if block.type in {BlockType.TABLE, BlockType.IMAGE} or width_of(block.text) > 200 or len(block.lines) > 3:
        return None
    if block.bbox[3] <= _TOP:
        return True
    return False if block.bbox[1] >= _BOTTOM else None


def _running_key(text: str) -> str:
    return _DIGITS.sub("#", "".join(text.split()).lower())


def _same_height(blocks: Sequence[Block]) -> bool:
    middle = median(block.bbox[1] for block in blocks)
    return sum(abs(block.bbox[1] - middle) < 0.02 for block in blocks) >= 0.6 * len(blocks)


def _mark_charts(elements: Sequence[Element]) -> list[Element]:
    """Take the axis labels of a drawing for a picture: what only looks like a table and stands right over its caption.

    A table drawn with rules stays one, as does one with its own caption, and one whose cells are nearly all filled.
    """
    marked = list(elements)
    for index in range(len(marked) - 1):
        block, after = marked[index].block, marked[index + 1].block
        if block.type is not BlockType.TABLE or after.type is not BlockType.CAPTION or block.page != after.page:
            continue
        before = marked[index - 1].block if index else None
        own = before is not None and before.type is BlockType.CAPTION and _TABLE_CAPTION.match(before.text)
        if not own and re.match(r"fig", after.text, re.I) and block.confidence < 1.0 and not _is_filled(block.text):
            text = re.sub(r"[|\s-]+", " ", block.text).strip()
            plain = replace(block, type=BlockType.IMAGE, text=text, html="", lines=())
            marked[index] = replace(marked[index], block=plain)
    return marked


def _is_filled(table: str) -> bool:
    """Tell the text of a table from axis labels: many rows of three columns or more, hardly a cell of them empty."""
    body = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    cells = [cell.strip() for row in body for cell in row]
    return len(body) >= FILLED_ROWS and len(body[0]) >= FILLED_COLUMNS and sum(map(bool, cells)) >= 0.8 * len(cells)


def _mark_footnotes(elements: Sequence[Element]) -> list[Element]:
    """Mark small print at the foot of a page that begins with a note's mark."""
    body = body_size(elements)
    return [
        _retyped(element, BlockType.FOOTNOTE)
        if element.block.type in _JOINABLE
        and element.block.bbox[1] > 0.6
        and 0 < element.size < 0.93 * body
        and _NOTE_MARK.match(element.block.text)
        else element
        for element in elements
    ]


def _merge(first: Element, second: Element, *, kind: BlockType, words: frozenset[str] = frozenset()) -> Element:
    """Return both as one block that keeps every box and every line."""
    before, after = first.block, second.block
    closed, between = joint(before.text, after.text, words=words)
    lines = list(before.lines)
    if lines and lines[-1].end > len(closed):
        lines[-1] = replace(lines[-1], end=len(closed))
    shift = len(closed) + len(between)
    lines += [Line(line.start + shift, line.end + shift, line.page, line.bbox) for line in after.lines]
    block = replace(
        before,
        type=kind,
        text=f"{closed}{between}{after.text}",
        parts=before.parts + after.parts,
        lines=tuple(lines),
        confidence=min(before.confidence, after.confidence),
        level=before.level,
    )
    if before.page == after.page and after.bbox[1] >= before.bbox[3] - 0.01:
        block = replace(block, bbox=_around(before, after))
    return replace(first, block=block, bold=first.bold and second.bold)


def _around(first: Block, second: Block) -> tuple[float, float, float, float]:
    one, other = first.bbox, second.bbox
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _join_titles(elements: Sequence[Element]) -> list[Element]:
    """Join the lines of one heading that the page had apart."""
    joined: list[Element] = []
    for element in elements:
        block = element.block
        if joined and block.type is BlockType.TITLE:
            last = joined[-1]
            before = last.block
            close = 0 <= block.bbox[1] - before.bbox[3] < 0.02 and block.page == before.page
            alike = before.type is BlockType.TITLE and abs(last.size - element.size) < 0.3 and last.bold == element.bold
            wrapped = before.lines[-1].bbox[2] > last.right - 0.2 if before.lines else True
            centred = abs(sum(before.bbox[::2]) - sum(block.bbox[::2])) < 0.04
            alike = alike and (wrapped or centred) and before.text.isupper() == block.text.isupper()
            if close and alike and not numbering(block.text) and width_of(before.text) + width_of(block.text) < 160:
                joined[-1] = _merge(last, element, kind=BlockType.TITLE)
                continue
        joined.append(element)
    return joined


def _join_paragraphs(elements: Sequence[Element]) -> list[Element]:
    """Join a paragraph that a column or page end cut in two."""
    joined: list[Element] = []
    open_at: int | None = None
    for element in elements:
        block = element.block
        if block.type in _PASSED:
            joined.append(element)
            continue
        if open_at is not None and _continues(joined[open_at], element):
            first = joined[open_at]
            joined[open_at] = _merge(first, element, kind=first.block.type)
        else:
            joined.append(element)
            open_at = len(joined) - 1
        if block.type not in _JOINABLE or ends_sentence(block.text):
            open_at = None
    return joined


def _continues(first: Element, second: Element) -> bool:
    """Tell whether `second` goes on, in the next column or on the next page, where `first` broke off."""
    before, after = first.block, second.block
    if after.type is not BlockType.TEXT or before.type not in _JOINABLE or before.angle or after.angle:
        return False
    last = before.parts[-1] if before.parts else None
    page, bottom = (last.page, last.bbox) if last else (before.page, before.bbox)
    beside = after.page == page and after.bbox[0] >= bottom[2] - 0.02 and after.bbox[1] < bottom[3] - 0.02
    moved = after.page == page + 1 or beside
    if not moved or ends_sentence(before.text) or starts_item(after.text) or numbering(after.text):
        return False
    if first.size and second.size and abs(first.size - second.size) > 0.08 * first.size:
        return False
    if _LOWER_START.match(after.text):
        return True
    ragged = before.lines[-1].bbox[2] if before.lines else bottom[2]
    full = ragged >= first.right - 0.06
    return full and width_of(before.text) >= 40 and width_of(after.text) >= 12


def _place_captions(elements: Sequence[Element]) -> list[Element]:
    """Put a table's caption right before it and a picture's right after it."""
    placed = list(elements)
    index = 0
    while index < len(placed):
        block = placed[index].block
        if block.type is BlockType.CAPTION:
            is_table = bool(_TABLE_CAPTION.match(block.text))
            wanted = BlockType.TABLE if is_table else BlockType.IMAGE
            after = placed[index + 1].block if index + 1 < len(placed) else None
            before = placed[index - 1].block if index else None
            if is_table and before and before.type is wanted and not (after and after.type is wanted):
                placed[index - 1], placed[index] = placed[index], placed[index - 1]
            elif not is_table and after and after.type is wanted and not (before and before.type is wanted):
                placed[index], placed[index + 1] = placed[index + 1], placed[index]
                index += 1
        index += 1
    return placed


def _with_paths(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Number the blocks and give each the headings above it."""
    path: list[tuple[int, str]] = []
    found = []
    for order, block in enumerate(blocks):
        if block.type is BlockType.TITLE:
            level = block.level or 1
            path = [entry for entry in path if entry[0] < level]
            found.append(replace(block, order=order, heading_path=tuple(text for _, text in path)))
            path.append((level, block.text))
        else:
            found.append(replace(block, order=order, heading_path=tuple(text for _, text in path)))
    return tuple(found)
