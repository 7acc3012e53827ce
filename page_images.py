"""Pictures of PDF pages with the evidence boxed: what a citation opens."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from pdf_render import page_count, render_page
from schema import Box, Region

PAGE_WIDTH = 1100
"""Pixels across a whole page as shown."""
MAX_ZOOM = 3.0
FILL = (255, 176, 0, 56)
EDGE = (190, 84, 0, 255)
PAPER_EDGE = (208, 204, 196)
MARGIN = 0.006
"""Room around a box, as a share of the page's width, so that the edge does not touch the letters."""


@dataclass(frozen=True, slots=True)
class PageImage:
    """One picture of a page (PNG bytes), its size in pixels, and how many pages the file has."""

    png: bytes
    width: int
    height: int
    pages: int


def draw_page(
    path: Path, *, page: int, regions: Sequence[Region] = (), zoom: float = 1.0, password: str = ""
) -> PageImage:
    """Return page `page` (1-based) of a PDF with the `regions` on it boxed.

    `zoom` 1 shows the whole page; larger values show the part of the page around the boxes, 1/zoom of it each way.

    :raises PdfError: the file is gone, locked or damaged, or has no such page.
    """
    zoom = min(max(zoom, 1.0), MAX_ZOOM)
    picture = render_page(path, page, width=round(PAGE_WIDTH * zoom), password=password)
    boxes = [region.bbox for region in regions if region.page == page]
    picture = _box(picture, boxes=boxes)
    if zoom > 1.0:
        picture = picture.crop(_window(picture.size, boxes=boxes, zoom=zoom))
    ImageDraw.Draw(picture).rectangle((0, 0, picture.width - 1, picture.height - 1), outline=PAPER_EDGE, width=2)
    return _encode(picture, pages=page_count(path, password=password))


def crop_region(path: Path, *, region: Region, password: str = "") -> PageImage:
    """Return only the part of a page inside `region`: a table or a figure as printed.

    :raises PdfError: as `draw_page`.
    """
    picture = render_page(path, region.page, width=round(PAGE_WIDTH * 1.5), password=password)
    edges = _pixels(region.bbox, size=picture.size)
    return _encode(picture.crop(edges), pages=page_count(path, password=password))


def _box(picture: Image.Image, *, boxes: Sequence[Box]) -> Image.Image:
    if not boxes:
        return picture
    layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    line = max(2, picture.width // 450)
    for box in boxes:
        pen.rounded_rectangle(_pixels(box, size=picture.size), radius=line * 2, fill=FILL, outline=EDGE, width=line)
    return Image.alpha_composite(picture.convert("RGBA"), layer).convert("RGB")


def _pixels(box: Box, *, size: tuple[int, int]) -> tuple[int, int, int, int]:
    width, height = size
    room = MARGIN * width
    left, top = max(box[0] * width - room, 0), max(box[1] * height - room, 0)
    right, bottom = min(box[2] * width + room, width - 1), min(box[3] * height + room, height - 1)
    return round(left), round(top), round(max(right, left + 1)), round(max(bottom, top + 1))


def _window(size: tuple[int, int], *, boxes: Sequence[Box], zoom: float) -> tuple[int, int, int, int]:
    """The part of the picture that a zoom shows, around the middle of the boxes and inside the page."""
    width, height = size
    middle_x = sum(box[0] + box[2] for box in boxes) / 2 / len(boxes) if boxes else 0.5
    middle_y = sum(box[1] + box[3] for box in boxes) / 2 / len(boxes) if boxes else 0.5
    across, down = round(width / zoom), round(height / zoom)
    left = min(max(round(middle_x * width - across / 2), 0), width - across)
    top = min(max(round(middle_y * height - down / 2), 0), height - down)
    return left, top, left + across, top + down


def _encode(picture: Image.Image, *, pages: int) -> PageImage:
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return PageImage(png=buffer.getvalue(), width=picture.width, height=picture.height, pages=pages)
