"""PDFs made for the tests, with what should be read from them known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = A4
SONG = "STSong-Light"

WORDS = (
    "The old harbour was rebuilt after the storm and its stone walls were raised by two metres so that the ships of "
    "the northern fleet could winter there while the smaller boats stayed in the river mouth behind the mill"
).split()


def canvas(path: Path, *, encrypt: str = "") -> Canvas:
    from reportlab.lib.pdfencrypt import StandardEncryption

    pdfmetrics.registerFont(UnicodeCIDFont(SONG))
    if encrypt:
        return Canvas(str(path), pagesize=A4, encrypt=StandardEncryption(encrypt, strength=128))
    return Canvas(str(path), pagesize=A4)


def write(page: Canvas, text: str, *, x: float, y: float, size: float = 10, font: str = "Helvetica") -> None:
    """Print one line whose top stands `y` points below the top of the page."""
    page.setFont(font, size)
    page.drawString(x, HEIGHT - y - size, text)


def sentence(number: int, *, length: int = 9) -> str:
    """A line of running text, different for every number."""
    start = (number * 5) % (len(WORDS) - length)
    return " ".join(WORDS[start : start + length])


def plain_pdf(path: Path, *, pages: int = 1, lines: Sequence[str] = ("Lime trees flower in July.",)) -> Path:
    page = canvas(path)
    for number in range(pages):
        for index, line in enumerate(lines):
            write(page, line, x=72, y=100 + 14 * index)
        write(page, f"Page {number + 1} holds number {number * 37 + 11}.", x=72, y=300)
        page.showPage()
    page.save()
    return path


def report_pdf(path: Path, *, pages: int = 4) -> Path:
    """A report with running heads, page numbers, numbered headings, and a paragraph over each page end."""
    page = canvas(path)
    for number in range(1, pages + 1):
        write(page, "Harbour Report 2031", x=72, y=30, size=8)
        write(page, f"- {number} -", x=280, y=HEIGHT - 40, size=8)
        if number == 1:
            write(page, "The Rebuilding of the Harbour", x=72, y=70, size=20, font="Helvetica-Bold")
        write(page, f"{number} Chapter of the {('first', 'second', 'third', 'fourth')[number - 1]} year", x=72, y=110,
              size=14, font="Helvetica-Bold")  # fmt: skip
        write(page, f"{number}.1 Works at the quay", x=72, y=140, size=12, font="Helvetica-Bold")
        for index in range(12):
            write(page, f"{sentence(index + number)} {sentence(index + 3)}", x=72, y=165 + 13 * index)
        for index in range(35):
            write(page, f"{sentence(index)} {sentence(index + number)}", x=72, y=330 + 13 * index)
        page.showPage()
    page.save()
    return path


def ruled_table_pdf(path: Path) -> Path:
    """A table with rules, a cell over two columns and one over two rows."""
    page = canvas(path)
    write(page, "Table 1. Catch by port", x=72, y=100, size=9)
    xs, ys = (72, 200, 300, 400), (120, 140, 160, 180, 200)
    for y in ys:
        left = 200 if y == 140 else 72
        right = 400
        page.line(left if y != 140 else 200, HEIGHT - y, right, HEIGHT - y)
    for x in xs:
        top = 140 if x == 300 else 120
        page.line(x, HEIGHT - top, x, HEIGHT - 200)
    for text, x, y in (
        ("Port", 80, 125),
        ("Tonnes", 280, 125),
        ("2030", 210, 145),
        ("2031", 310, 145),
        ("Aldhaven", 80, 165),
        ("120", 210, 165),
        ("135", 310, 165),
        ("Brook", 80, 185),
        ("77", 210, 185),
        ("81", 310, 185),
    ):
        write(page, text, x=x, y=y, size=9)
    page.save()
    return path


def two_column_pdf(path: Path) -> Path:
    page = canvas(path)
    write(page, "A Study in Two Columns", x=180, y=60, size=18, font="Helvetica-Bold")
    for index in range(40):
        write(page, f"left{index} {sentence(index, length=6)}", x=60, y=110 + 13 * index)
        write(page, f"right{index} {sentence(index + 2, length=6)}", x=320, y=117 + 13 * index)
    page.save()
    return path


def scanned_pdf(path: Path, *, source: Path, page: int = 1, turn: int = 0) -> Path:
    """A picture of a page and nothing else, as a scanner makes it; `turn` degrees clockwise."""
    from pdf_render import render_page

    picture = render_page(source, page, scale=2.0)
    if turn:
        picture = picture.rotate(-turn, expand=True)
    picture.save(path, format="PDF", resolution=144.0)
    return path
