"""Pages with a text layer: liteparse's lines and tables, put in order by our own rules."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errors import PdfEncryptedError, PdfUnreadableError
from pdf_aligned import aligned_tables
from pdf_kinds import kind_of
from pdf_lines import (
    TextLine,
    mend,
    merge_row,
    overlap,
    paragraphs,
    rows,
    weighted_median,
    width_of,
)
from pdf_order import columns
from pdf_page import Announced, PageBuilder, PageResult, turned_back
from pdf_render import page_count
from pdf_ruled import ruled_tables
from pdf_tables import Table
from schema import BlockParser, BlockType, Box

if TYPE_CHECKING:
    from liteparse.types import ParsedPage, ParseResult, TextItem

logger = logging.getLogger(__name__)

WINDOW = 8
"""Pages held in memory at a time."""

_BOLD = re.compile(r"bold|black|heavy|semibold|demi|medi$|cmbx|simhei|黑体|-hei$", re.I)
_SLANTED = re.compile(r"ital|oblique|slanted|cmti|-it$", re.I)
_WORD = re.compile(r"[A-Za-z]+-[A-Za-z]+")
_GARBLED = re.compile("[\ufffd\ue000-\uf8ff]|\\(cid:\\d+\\)")
_SIGN = re.compile(r"[!-,/:-@\[-`{-~\u0080-\u00bf]")
_LETTER = re.compile(r"\w")
_FEW_LETTERS = 40
_ODD_SHARE = 0.3

_OPTIONS: dict[str, Any] = {
    "ocr_enabled": False,
    "extract_blocks": True,
    "extract_text_metadata": True,
    "extract_vector_graphics": True,
    "continue_on_page_error": True,
    "keep_headers_footers": True,
    "extract_links": False,
    "quiet": True,
    "max_pages": 1_000_000,  # liteparse leaves out what follows page 1,000 unless told; our own limit is checked apart
}


def read_text_pages(
    path: Path, *, name: str, document_id: str, password: str = "", one_by_one: bool = False, skip: Collection[int] = ()
) -> Iterator[PageResult | Announced]:
    """Yield the pages in windows; or `one_by_one`, each announced before, without touching those to `skip`.

    `reason` of a page says why its text cannot be used: "no_text", "garbled", "unreadable"; "blank" has nothing.

    :raises PdfEncryptedError: a password is needed, or the one given is wrong.
    :raises PdfUnreadableError: the file is damaged beyond what PDFium repairs.
    """
    from liteparse import LiteParse
    from liteparse.types import ParseError

    options = {**_OPTIONS, "password": password or None}
    try:
        if not one_by_one:
            for batch in LiteParse(**options).parse_batches(path, batch_size=WINDOW):
                yield from _window(
                    batch.result, total=batch.total_pages, path=path, options=options, document_id=document_id
                )
            return
        total = page_count(path, password=password)
        for number in range(1, total + 1):
            if number not in skip:
                yield Announced(number, total)
                result = LiteParse(**options, target_pages=str(number)).parse(path)
                yield from _window(result, total=total, path=path, options=options, document_id=document_id)
    except ParseError as error:
        if "password" in str(error).lower():
            code = "pdf_password_wrong" if password else "pdf_encrypted"
            raise PdfEncryptedError(f"{name}: {error}", hint="give the password", code=code, file=name) from error
        raise PdfUnreadableError(f"{name}: {error}", hint="open and save it anew", file=name) from error


def _window(
    result: ParseResult, *, total: int, path: Path, options: dict[str, Any], document_id: str
) -> list[PageResult]:
    pages = [
        _read(
            _upright(_examined(page, path=path, options=options), path=path, options=options),
            document_id=document_id,
            total=total,
        )
        for page in result.pages
    ]
    pages += [
        PageResult(document_id, failed.page_num, total, BlockParser.TEXT, (), reason="unreadable")
        for failed in result.page_errors
    ]
    return sorted(pages, key=lambda page: page.page)


def _examined(page: ParsedPage, *, path: Path, options: dict[str, Any]) -> ParsedPage:
    """Return a page with what is drawn on it measured, when its text alone does not tell that it can be used.

    liteparse takes a quarter of its time for that, so that it is not asked for on every page.
    """
    from liteparse import LiteParse

    text = "".join(item.text for item in page.text_items)
    odd = sum(len(item.text) for item in page.text_items if item.font_is_buggy)
    if len(_LETTER.findall(text)) >= _FEW_LETTERS and odd <= _ODD_SHARE * len(text):
        return page
    pages = LiteParse(**options, target_pages=str(page.page_num), include_complexity=True).parse(path).pages
    return replace(page, complexity=pages[0].complexity) if pages else page


def _upright(page: ParsedPage, *, path: Path, options: dict[str, Any]) -> tuple[ParsedPage, int]:
    """Return a page whose text runs sideways or on its head as if turned upright, and the angle of that turn."""
    from liteparse import LiteParse

    weight: Counter[int] = Counter()
    for item in page.text_items:
        weight[round(item.rotation / 90) * 90 % 360] += len(item.text)
    angle = weight.most_common(1)[0][0] if weight else 0
    if not angle:
        return page, 0
    turned = LiteParse(
        **options, target_pages=str(page.page_num), page_orientation_corrections=[(page.page_num, angle)]
    )
    pages = turned.parse(path).pages
    return (replace(pages[0], complexity=page.complexity), angle) if pages else (page, 0)


def _read(found: tuple[ParsedPage, int], *, document_id: str, total: int) -> PageResult:
    page, angle = found
    builder = PageBuilder(
        document_id, page=page.page_num, width=page.width, height=page.height, parser=BlockParser.TEXT
    )
    reason = unusable(page)
    if not reason:
        try:
            _fill(builder, page=page)
        except (ArithmeticError, LookupError, ValueError):  # rather plain text than a lost page
            logger.exception("page %d has a layout that the rules cannot read", page.page_num)
            builder.elements.clear()
            builder.add(BlockType.TEXT, text=mend(page.text), box=(0.0, 0.0, page.width, page.height))
            reason = "layout"
    return PageResult(
        document_id,
        page.page_num,
        total,
        BlockParser.TEXT,
        tuple(replace(element, block=turned_back(element.block, turn=-angle % 360)) for element in builder.elements),
        reason=reason,
        width=page.width,
        height=page.height,
    )


def unusable(page: ParsedPage) -> str:
    """Return why the text layer of a page cannot be used: "blank", "no_text", "garbled", or "" when it can."""
    text = "".join(item.text for item in page.text_items)
    letters = len(_LETTER.findall(text))
    drawn = page.complexity
    pictured = drawn is not None and (drawn.full_page_image or drawn.image_block_count > 0 or drawn.image_coverage > 0)
    if letters == 0:
        outlined = drawn is not None and (drawn.uncovered_vector_area or 0) > 0
        return "no_text" if pictured or outlined else "blank"
    if drawn is not None and drawn.full_page_image and letters < _FEW_LETTERS:
        return "no_text"
    bad = len(_GARBLED.findall(mend(text)))
    odd = sum(len(item.text) for item in page.text_items if item.font_is_buggy)
    signs = len(_SIGN.findall(text))
    if signs > 100 and signs > 0.35 * (signs + letters):
        return "garbled"  # a font without a map to Unicode
    if bad > max(3, 0.1 * letters) or (drawn is not None and drawn.is_garbled and odd > _ODD_SHARE * len(text)):
        return "garbled"
    return ""


def _fill(builder: PageBuilder, *, page: ParsedPage) -> None:
    """Add the page's paragraphs, tables and figures to the builder in reading order."""
    colours: Counter[str | None] = Counter()
    for item in page.text_items:
        colours[item.fill_color] += len(item.text)
    plain = colours.most_common(1)[0][0] if colours else None
    lines = [line for item in page.text_items if (line := _line(item, plain=plain)) is not None]
    turned = [item for item in page.text_items if _is_turned(item)]
    words = frozenset(word.lower() for line in lines for word in _WORD.findall(line.text))
    found = ruled_tables(_rules(page), lines=lines)
    tables = [table for table, _ in found]
    ruled = len(tables)
    held = {id(line) for _, inside in found for line in inside}
    lines = [line for line in lines if id(line) not in held]
    body = weighted_median([(line.size, len(line.text)) for line in lines]) or 10.0
    figures: list[tuple[Box, list[TextLine]]] = []
    for box in _figures(page):
        inside = [line for line in lines if overlap(line.box, box) > 0.8 and line.size < 1.2 * body]
        if _is_running_text(inside) or any(overlap(box, table.box) > 0.5 for table in tables):
            continue
        held = {id(line) for line in inside}
        lines = [line for line in lines if id(line) not in held]
        figures.append((box, inside))
    lines = [line for row in rows(lines) for line in merge_row(row, reach=0.9)]
    inserts = [TextLine("", table.box, body, insert=index) for index, table in enumerate(tables)]
    inserts += [TextLine("", box, body, insert=-1 - index) for index, (box, _) in enumerate(figures)]
    for column in columns([*lines, *inserts]):
        for piece in _with_aligned(column, tables=tables):
            for paragraph in paragraphs(piece):
                insert = paragraph.lines[0].insert
                if insert is None:
                    builder.add_paragraph(kind_of(paragraph), paragraph=paragraph, words=words)
                elif insert >= 0:
                    builder.add_table(tables[insert], confidence=1.0 if insert < ruled else 0.9)
                else:
                    box, inside = figures[-1 - insert]
                    text = " ".join(line.text for row in rows(inside) for line in row)
                    builder.add(BlockType.IMAGE, text=text, box=box)
    for item in turned:
        text = mend(item.text)
        if text:
            angle = round(item.rotation / 90) * 90 % 360
            builder.add(BlockType.TEXT, text=text, box=_box(item), size=item.font_height or 0.0, angle=angle)


def _with_aligned(column: list[TextLine], *, tables: list[Table]) -> Iterator[list[TextLine]]:
    """Yield the pieces of a column between its aligned tables, and those tables, which are added to `tables`."""
    printed = rows(column)
    first_line = {id(lines[0]): (table, {id(line) for line in lines}) for table, lines in aligned_tables(printed)}
    piece: list[TextLine] = []
    skipped: set[int] = set()
    for line in (line for row in printed for line in row):
        if id(line) in first_line:
            table, skipped = first_line[id(line)]
            if piece:
                yield piece
            piece = []
            tables.append(table)
            yield [TextLine("", table.box, line.size, insert=len(tables) - 1)]
        elif id(line) not in skipped:
            piece.append(line)
    if piece:
        yield piece


def _rules(page: ParsedPage) -> list[Box]:
    """Return the straight lines drawn on the page."""
    drawn = page.vector_graphics
    if drawn is None:
        return []
    return [
        (min(line.x1, line.x2), min(line.y1, line.y2), max(line.x1, line.x2), max(line.y1, line.y2))
        for line in drawn.lines
    ]


def _box(item: Any) -> Box:
    return (item.x, item.y, item.x + item.width, item.y + item.height)


def _is_turned(item: TextItem) -> bool:
    return abs(item.rotation) > 5 and len(item.text.strip()) > 1


def _line(item: TextItem, *, plain: str | None) -> TextLine | None:
    """Return an item as a line; one in another colour than most of the page is as good as bold."""
    text = mend(item.text)
    if not text or _is_turned(item) or item.width <= 0 or item.height <= 0:
        return None
    font = item.font_name or ""
    size = item.font_height or item.font_size or item.height
    if size < 2 or size > 3 * item.height:
        size = item.height
    elif size < 0.62 * item.height:  # the size given is that of a superscript at its beginning
        size = 0.85 * item.height
    bold = bool(_BOLD.search(font)) or item.fill_color != plain
    return TextLine(text, _box(item), size, bold, bool(_SLANTED.search(font)), font)


def _figures(page: ParsedPage) -> list[Box]:
    """Return the boxes of pictures that are neither a background nor a speck."""
    area = page.width * page.height
    found: list[Box] = []
    for block in page.blocks or ():
        if block.kind != "figure" or block.bbox is None:
            continue
        box = _box(block.bbox)
        share = (box[2] - box[0]) * (box[3] - box[1]) / max(area, 1.0)
        if 0.004 < share < 0.85 and not any(overlap(box, other) > 0.5 for other in found):
            found.append(box)
    return found


def _is_running_text(lines: Sequence[TextLine]) -> bool:
    """Tell text printed over a picture from the labels of a drawing."""
    return len(lines) > 2 and sum(width_of(line.text) for line in lines) / len(lines) > 40
