"""Pages with a text layer: liteparse's lines and tables, put in order by our own rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errors import PdfEncryptedError, PdfUnreadableError
from pdf_lines import (
    Paragraph,
    TextLine,
    columns,
    mend,
    merge_row,
    overlap,
    paragraphs,
    rows,
    starts_item,
    width_of,
)
from pdf_page import PageBuilder, PageResult
from pdf_tables import Table, make_table
from schema import BlockParser, BlockType, Box

if TYPE_CHECKING:
    from liteparse.types import LayoutBlock, ParsedPage, TextItem

WINDOW = 8
"""Pages held in memory at a time."""

_BOLD = re.compile(r"bold|black|heavy|semibold|demi|medi$|cmbx|simhei|黑体|-hei$", re.I)
_MONOSPACED = re.compile(r"mono|courier|consol|menlo|cmtt|typewriter|inconsolata|fixed|monaco|lettergothic", re.I)
_CAPTION = re.compile(
    r"^(?:(?:Figure|Fig\.?|Table|Tab\.|Exhibit|Chart|Algorithm|Listing|Scheme|Plate)\s*(?:\d+|[IVX]+\b|[A-Z]?[-.]?\d+)"
    r"|(?:图|表|图表|附图|附表|圖)\s*[\d一二三四五六七八九十]+)",
)
_FORMULA_FONT = re.compile(
    r"^(?:\w{6}\+)?(?:CMMI|CMSY|CMEX|MSBM|MSAM|MTMI|MTSY|Math|Cambria-?Math|Euclid|STIX.*Math)", re.I
)
_WORD = re.compile(r"[A-Za-z]+-[A-Za-z]+")
_GARBLED = re.compile("[\ufffd\ue000-\uf8ff]|\\(cid:\\d+\\)")
_LETTER = re.compile(r"\w")


def read_text_pages(
    path: Path, *, document_id: str, password: str = "", wanted: Sequence[int] | None = None
) -> Iterator[tuple[PageResult, str]]:
    """Yield each page with the reason why its text cannot be used ("" when it can).

    :raises PdfEncryptedError: a password is needed, or the one given is wrong.
    :raises PdfUnreadableError: the file is damaged beyond what PDFium repairs.
    """
    from liteparse import LiteParse
    from liteparse.types import ParseError

    target = None if wanted is None else ",".join(str(page) for page in wanted)
    parser = LiteParse(
        ocr_enabled=False,
        extract_blocks=True,
        extract_text_metadata=True,
        include_complexity=True,
        continue_on_page_error=True,
        keep_headers_footers=True,
        extract_links=False,
        quiet=True,
        password=password or None,
        target_pages=target,
    )
    try:
        if target is not None:
            result = parser.parse(path)
            for page in result.pages:
                yield _read(page, document_id=document_id, total=result.total_pages or len(result.pages))
            return
        for batch in parser.parse_batches(path, batch_size=WINDOW):
            for page in batch.result.pages:
                yield _read(page, document_id=document_id, total=batch.total_pages)
            for failed in batch.result.page_errors:
                empty = PageResult(document_id, failed.page_num, batch.total_pages, BlockParser.TEXT, ())
                yield empty, "unreadable"
    except ParseError as error:
        if "password" in str(error).lower():
            code = "pdf_password_wrong" if password else "pdf_encrypted"
            raise PdfEncryptedError(
                f"{path.name}: {error}", hint="give the password", code=code, file=path.name
            ) from error
        raise PdfUnreadableError(f"{path.name}: {error}", hint="open and save it anew", file=path.name) from error


def _read(page: ParsedPage, *, document_id: str, total: int) -> tuple[PageResult, str]:
    builder = PageBuilder(
        document_id, page=page.page_num, width=page.width, height=page.height, parser=BlockParser.TEXT
    )
    reason = unusable(page)
    if not reason:
        _fill(builder, page=page)
    result = PageResult(
        document_id,
        page.page_num,
        total,
        BlockParser.TEXT,
        tuple(builder.elements),
        reason=reason,
        width=page.width,
        height=page.height,
    )
    return result, reason


def unusable(page: ParsedPage) -> str:
    """Return why the text layer of a page cannot be used: "blank", "no text", "garbled", or "" when it can."""
    text = "".join(item.text for item in page.text_items)
    letters = len(_LETTER.findall(text))
    drawn = page.complexity
    pictured = drawn is not None and (drawn.full_page_image or drawn.image_block_count > 0 or drawn.image_coverage > 0)
    if letters == 0:
        outlined = drawn is not None and (drawn.uncovered_vector_area or 0) > 0
        return "no text" if pictured or outlined else "blank"
    if drawn is not None and drawn.full_page_image and letters < 40:
        return "no text"
    bad = len(_GARBLED.findall(mend(text)))
    odd = sum(len(item.text) for item in page.text_items if item.font_is_buggy)
    if bad > max(3, 0.1 * letters) or (drawn is not None and drawn.is_garbled and odd > 0.3 * len(text)):
        return "garbled"
    return ""


def _fill(builder: PageBuilder, *, page: ParsedPage) -> None:
    """Add the page's paragraphs, tables and figures to the builder in reading order."""
    lines = [line for item in page.text_items if (line := _line(item)) is not None]
    turned = [item for item in page.text_items if _is_turned(item)]
    words = frozenset(word.lower() for line in lines for word in _WORD.findall(line.text))
    tables: list[Table] = []
    inserts: list[TextLine] = []
    for block in page.blocks or ():
        if block.kind == "table" and (table := _table(block)) is not None:
            lines = [line for line in lines if overlap(line.box, table.box) < 0.5]
            tables.append(table)
            inserts.append(TextLine("", table.box, 10.0, insert=len(tables) - 1))
    figures: list[tuple[Box, list[TextLine]]] = []
    for box in _figures(page):
        inside = [line for line in lines if overlap(line.box, box) > 0.8 and line.box != box]
        if _is_running_text(inside):
            continue
        lines = [line for line in lines if line not in inside]
        figures.append((box, inside))
        inserts.append(TextLine("", box, 10.0, insert=len(tables) + len(figures) - 1 + 1000))
    lines = [line for row in rows(lines) for line in merge_row(row, reach=0.9)]
    body = max(
        Counter({line.size: len(line.text) for line in lines}).items(), key=lambda pair: pair[1], default=(10, 0)
    )
    inserts = [TextLine("", line.box, float(body[0]), insert=line.insert) for line in inserts]
    made = 0
    for column in columns([*lines, *inserts]):
        for paragraph in paragraphs(column):
            insert = paragraph.lines[0].insert
            if insert is None:
                builder.add_paragraph(kind_of(paragraph), paragraph=paragraph, words=words)
            elif insert < 1000:
                builder.add_table(tables[insert])
            else:
                box, inside = figures[made]
                made += 1
                text = " ".join(line.text for row in rows(inside) for line in row)
                builder.add(BlockType.IMAGE, text=text, box=box)
    for item in turned:
        text = mend(item.text)
        if text:
            angle = round(item.rotation / 90) * 90 % 360
            builder.add(BlockType.TEXT, text=text, box=_box(item), size=item.font_height or 0.0, angle=angle)


def _box(item: Any) -> Box:
    return (item.x, item.y, item.x + item.width, item.y + item.height)


def _is_turned(item: TextItem) -> bool:
    return abs(item.rotation) > 5 and len(item.text.strip()) > 1


def _line(item: TextItem) -> TextLine | None:
    text = mend(item.text)
    if not text or _is_turned(item) or item.width <= 0 or item.height <= 0:
        return None
    font = item.font_name or ""
    size = item.font_height or item.font_size or item.height
    if size < 2 or size > 3 * item.height:
        size = item.height
    return TextLine(text, _box(item), size, bool(_BOLD.search(font)), font)


def _table(block: LayoutBlock) -> Table | None:
    if block.bbox is None:
        return None
    outer = _box(block.bbox)
    head = [block.header] if block.header and any(cell.text.strip() for cell in block.header) else []
    printed = [*head, *(block.rows or ())]
    found = []
    top = outer[1]
    for index, cells in enumerate(printed):
        boxes = [_box(cell.bbox) for cell in cells if cell.bbox is not None]
        upper = min((box[1] for box in boxes), default=top)
        step = (outer[3] - top) / max(1, len(printed) - index)
        lower = max((box[3] for box in boxes), default=min(outer[3], top + step))
        found.append(([cell.text.replace("\\", "") for cell in cells], (outer[0], upper, outer[2], max(lower, upper))))
        top = lower
    return make_table(found, heads=len(head))


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


def kind_of(paragraph: Paragraph) -> BlockType:
    """Return what a paragraph is, as far as its own look tells."""
    text = " ".join(line.text for line in paragraph.lines)
    if all(_MONOSPACED.search(line.font) for line in paragraph.lines):
        return BlockType.CODE
    if _CAPTION.match(text) and len(text) < 600:
        return BlockType.CAPTION
    if _is_formula(paragraph):
        return BlockType.EQUATION
    return BlockType.LIST if starts_item(text) else BlockType.TEXT


def _is_formula(paragraph: Paragraph) -> bool:
    fonts = [line for line in paragraph.lines if _FORMULA_FONT.search(line.font)]
    text = " ".join(line.text for line in paragraph.lines)
    words = re.findall(r"[A-Za-z]{4,}|[\u4e00-\u9fff]{2,}", text)
    signs = re.search(r"[=+−×·∑∏∫√<>≤≥≈∈→∂^]", text)
    return len(fonts) * 2 >= len(paragraph.lines) and len(words) <= 3 and signs is not None and "@" not in text
