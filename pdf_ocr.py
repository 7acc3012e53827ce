"""Pages without usable text: characters recognised by rapidocr, regions by rapid-layout, tables by their rules."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pdf_aligned import aligned_tables
from pdf_lines import Paragraph, TextLine, mend, overlap, paragraphs, rows, starts_item, union, width_of
from pdf_order import columns
from pdf_page import PageBuilder, PageResult, turned_back
from pdf_render import has_ink, render_page
from pdf_ruled import ruled_tables
from pdf_tables import Table
from schema import BlockParser, BlockType, Box

if TYPE_CHECKING:
    from PIL.Image import Image

logger = logging.getLogger(__name__)

LONG_SIDE = 2000
"""Pixels of the longer side of a page given to the recogniser."""

_KINDS = {
    "title": BlockType.TITLE,
    "header": BlockType.HEADER,
    "footer": BlockType.FOOTER,
    "figure_caption": BlockType.CAPTION,
    "table_caption": BlockType.CAPTION,
    "equation": BlockType.EQUATION,
}


@dataclass(frozen=True, slots=True)
class Area:
    """A region of the page that the layout model names."""

    name: str
    box: Box
    score: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What was recognised on one picture, in its pixels, after turning it by `angle` (clockwise)."""

    lines: tuple[TextLine, ...]
    areas: tuple[Area, ...]
    rules: tuple[Box, ...]
    width: int
    height: int
    angle: int = 0

    @property
    def surety(self) -> float:
        """Mean confidence, each line weighted by its length; 0 without lines."""
        total = sum(len(line.text) for line in self.lines)
        return sum(line.confidence * len(line.text) for line in self.lines) / total if total else 0.0


class OcrEngine:
    """Both models behind one lock: their sessions keep state between calls."""

    def __init__(self) -> None:
        from rapid_layout import RapidLayout
        from rapidocr import RapidOCR

        logging.getLogger("RapidOCR").setLevel(logging.WARNING)
        self._lock = threading.Lock()
        self._ocr = RapidOCR(
            params={
                "Global.log_level": "warning",
                "Global.use_cls": False,
                "Det.limit_type": "max",
                "Det.limit_side_len": 1280,
            }
        )
        self._layout = RapidLayout()

    def read(self, picture: Image) -> Reading:
        """Return what stands on a picture, turned upright when it lies on its side or on its head."""
        reading = self._read(picture, angle=0)
        tall = [line for line in reading.lines if line.height > 1.8 * (line.box[2] - line.box[0])]
        if len(tall) > 0.5 * len(reading.lines) and len(tall) >= 3:
            return max((self._read(picture, angle=angle) for angle in (90, 270)), key=lambda found: found.surety)
        if reading.lines and reading.surety < 0.8:
            return max(reading, self._read(picture, angle=180), key=lambda found: found.surety)
        return reading

    def _read(self, picture: Image, *, angle: int) -> Reading:
        import numpy

        turned = picture.rotate(-angle, expand=True) if angle else picture
        pixels = numpy.ascontiguousarray(numpy.asarray(turned.convert("RGB"))[:, :, ::-1])
        with self._lock:
            found = self._ocr(pixels)
            laid_out = self._layout(pixels)
        lines = tuple(_lines(found))
        boxes = laid_out.boxes if laid_out.boxes is not None else []
        areas = tuple(
            Area(str(name), _box(box), float(score))
            for name, box, score in zip(laid_out.class_names or (), boxes, laid_out.scores or (), strict=True)
        )
        return Reading(lines, areas, tuple(_rules(pixels)), turned.width, turned.height, angle)


@cache
def engine() -> OcrEngine:
    """Return this process's engine, made at the first call."""
    return OcrEngine()


def _box(values: Sequence[Any]) -> Box:
    return (float(values[0]), float(values[1]), float(values[2]), float(values[3]))


def _lines(found: Any) -> list[TextLine]:
    """Return the recognised lines; the font size is estimated from the height of the box."""
    if found.boxes is None or found.txts is None:
        return []
    lines = []
    for corners, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        cleaned = mend(text)
        if not cleaned:
            continue
        xs, ys = [float(corner[0]) for corner in corners], [float(corner[1]) for corner in corners]
        box = (min(xs), min(ys), max(xs), max(ys))
        lines.append(TextLine(cleaned, box, 0.78 * (box[3] - box[1]), confidence=float(score)))
    return lines


def _rules(pixels: Any) -> list[Box]:
    """Return the straight lines drawn across or down the picture, in pixels."""
    import cv2

    grey = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)
    dark = cv2.adaptiveThreshold(~grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, 15, -10)
    found: list[Box] = []
    for shape in ((max(25, pixels.shape[1] // 30), 1), (1, max(25, pixels.shape[0] // 45))):
        drawn = cv2.morphologyEx(dark, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_RECT, shape))
        drawn = cv2.dilate(drawn, cv2.getStructuringElement(cv2.MORPH_RECT, (3, 3)))
        contours, _ = cv2.findContours(drawn, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        for contour in contours:
            x, y, wide, high = cv2.boundingRect(contour)
            if shape[0] > 1 and high <= 14:
                found.append((x, y + high / 2, x + wide, y + high / 2))
            elif shape[1] > 1 and wide <= 14:
                found.append((x + wide / 2, y, x + wide / 2, y + high))
    return found


def read_ocr_page(
    path: Path, *, page: int, total: int, document_id: str, reason: str, password: str = ""
) -> PageResult:
    """Return one page of a PDF as read by OCR; no elements when nothing is printed on it."""
    small = render_page(path, page, width=300, password=password)
    if not has_ink(small):
        return PageResult(document_id, page, total, BlockParser.TEXT, (), reason="blank")
    ratio = LONG_SIDE / max(small.size)
    picture = render_page(path, page, width=round(small.width * ratio), password=password)
    return read_picture(picture, document_id=document_id, page=page, total=total, reason=reason)


def read_picture(picture: Image, *, document_id: str, page: int, total: int, reason: str) -> PageResult:
    """Return one page picture as read by OCR."""
    reading = engine().read(picture)
    scale = 842.0 / max(reading.width, reading.height)  # as if the longer side were that of A4, in points
    reading = _scaled(reading, scale=scale)
    builder = PageBuilder(document_id, page=page, width=reading.width, height=reading.height, parser=BlockParser.OCR)
    _fill(builder, reading=reading)
    elements = tuple(
        replace(element, block=turned_back(element.block, turn=reading.angle)) for element in builder.elements
    )
    return PageResult(document_id, page, total, BlockParser.OCR, elements, reason=reason)


def _scaled(reading: Reading, *, scale: float) -> Reading:
    def small(box: Box) -> Box:
        return (box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale)

    sizes = [line.size for line in reading.lines for _ in range(len(line.text))]
    body = median(sizes) * scale if sizes else 10.0
    lines = [
        replace(
            line, box=small(line.box), size=body if abs(line.size * scale - body) < 0.22 * body else line.size * scale
        )
        for line in reading.lines
    ]
    return replace(
        reading,
        lines=tuple(lines),
        areas=tuple(replace(area, box=small(area.box)) for area in reading.areas),
        rules=tuple(small(rule) for rule in reading.rules),
        width=round(reading.width * scale),
        height=round(reading.height * scale),
    )


def _fill(builder: PageBuilder, *, reading: Reading) -> None:
    """Add tables, figures and paragraphs in reading order."""
    lines = list(reading.lines)
    tables: list[Table] = []
    for table, inside in ruled_tables(reading.rules, lines=lines):
        tables.append(table)
        lines = [line for line in lines if line not in inside]
    for area in reading.areas:
        if area.name != "table" or any(overlap(area.box, table.box) > 0.3 for table in tables):
            continue
        for table, inside in aligned_tables(rows([line for line in lines if overlap(line.box, area.box) > 0.6])):
            tables.append(table)
            lines = [line for line in lines if line not in inside]
    figures = [
        area.box
        for area in reading.areas
        if area.name == "figure" and not any(overlap(area.box, table.box) > 0.3 for table in tables)
    ]
    labels = {
        index: [line for line in lines if overlap(line.box, box) > 0.8 and width_of(line.text) < 40]
        for index, box in enumerate(figures)
    }
    for inside in labels.values():
        lines = [line for line in lines if line not in inside]
    lines = [replace(line, bold=_area_of(line.box, reading=reading) == "title") for line in lines]
    size = median(line.size for line in lines) if lines else 10.0
    inserts = [TextLine("", table.box, size, insert=index) for index, table in enumerate(tables)]
    inserts += [TextLine("", box, size, insert=-1 - index) for index, box in enumerate(figures)]
    for column in columns([*lines, *inserts]):
        for paragraph in paragraphs(column):
            insert = paragraph.lines[0].insert
            if insert is None:
                builder.add_paragraph(_kind_of(paragraph, reading=reading), paragraph=paragraph)
            elif insert >= 0:
                builder.add_table(tables[insert], confidence=reading.surety)
            else:
                found = labels[-1 - insert]
                text = " ".join(line.text for row in rows(found) for line in row)
                builder.add(BlockType.IMAGE, text=text, box=figures[-1 - insert])


def _area_of(box: Box, *, reading: Reading) -> str:
    """Return the name of the region that holds a box best, "" without one."""
    best = max(reading.areas, key=lambda area: (overlap(box, area.box), area.score), default=None)
    return best.name if best is not None and overlap(box, best.box) > 0.5 else ""


def _kind_of(paragraph: Paragraph, *, reading: Reading) -> BlockType:
    text = " ".join(line.text for line in paragraph.lines)
    kind = _KINDS.get(_area_of(union(line.box for line in paragraph.lines), reading=reading))
    if kind is BlockType.TITLE and (width_of(text) > 100 or text[-1] in "。；;，,.：:"):
        kind = None
    if kind in {BlockType.HEADER, BlockType.FOOTER} and width_of(text) > 120:
        kind = None  # body text taken for a footer must not be lost
    return kind or (BlockType.LIST if starts_item(text) else BlockType.TEXT)
