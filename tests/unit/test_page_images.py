"""Pictures of pages: the box is where the evidence is, and nowhere else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from errors import PdfError
from page_images import crop_region, draw_page
from schema import Region
from tests.helpers_page import write_pdf

BOX = (0.2, 0.3, 0.6, 0.4)


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pdf(tmp_path_factory.mktemp("pdf") / "a.pdf", pages=[["one"], ["two"]])


def picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def test_only_the_region_of_this_page_is_boxed(pdf: Path) -> None:
    plain = picture(draw_page(pdf, page=1).png)
    boxed = picture(draw_page(pdf, page=1, regions=[Region(1, BOX), Region(2, (0, 0, 1, 1))]).png)
    changed = ImageChops.difference(plain, boxed).getbbox()
    assert changed is not None
    expected = [value * size for value, size in zip(BOX, (*plain.size, *plain.size), strict=True)]
    assert all(abs(found - wanted) <= 12 for found, wanted in zip(changed, expected, strict=True))


def amber_share(png: bytes) -> int:
    red, _, blue = picture(png).resize((110, 142)).convert("RGB").split()
    pairs = zip(red.tobytes(), blue.tobytes(), strict=True)
    return len([1 for strong, weak in pairs if strong > 240 and weak < 220])


def test_zoom_shows_the_evidence_larger(pdf: Path) -> None:
    whole = draw_page(pdf, page=1, regions=[Region(1, BOX)])
    close = draw_page(pdf, page=1, regions=[Region(1, BOX)], zoom=2.0)
    assert abs(close.width - whole.width) <= 2
    amber, before = (amber_share(drawn.png) for drawn in (close, whole))
    assert amber > 2.5 * before


def test_crop_has_the_shape_of_its_region(pdf: Path) -> None:
    crop = crop_region(pdf, region=Region(1, BOX))
    assert crop.width / crop.height == pytest.approx(0.4 * 612 / (0.1 * 792), rel=0.2)
    assert crop.pages == 2


@pytest.mark.parametrize("page", [0, 3])
def test_a_page_that_is_not_there_is_a_typed_error(pdf: Path, page: int) -> None:
    with pytest.raises(PdfError):
        draw_page(pdf, page=page)


@pytest.mark.parametrize("content", [b"", b"not a pdf", b"%PDF-1.4\nbroken"])
def test_a_damaged_file_is_a_typed_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(PdfError):
        draw_page(path, page=1)
