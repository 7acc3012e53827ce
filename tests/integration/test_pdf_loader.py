"""The embedded path on PDFs made here: text, order, tables, headings, running heads, boxes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from config import Settings, load_settings
from pdf_loader import ParsedPdf, PdfLoader, block_as_json, dump_page, load_page, parse_pdf
from schema import Block, BlockParser, BlockType
from tests.integration import helpers_pdf as made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(data_dir=tmp_path / "data", pdf_parser="embedded", _env_file=None)


def texts(parsed: ParsedPdf, kind: BlockType) -> list[str]:
    return [block.text for block in parsed.blocks if block.type is kind]


def test_report_gives_headings_paragraphs_and_running_heads(tmp_path: Path, settings: Settings) -> None:
    parsed = parse_pdf(made.report_pdf(tmp_path / "report.pdf"), settings=settings)
    titles = [(block.level, block.text) for block in parsed.blocks if block.type is BlockType.TITLE]
    assert titles[:3] == [
        (1, "The Rebuilding of the Harbour"),
        (2, "1 Chapter of the first year"),
        (3, "1.1 Works at the quay"),
    ]
    assert len(titles) == 9
    assert texts(parsed, BlockType.HEADER) == ["Harbour Report 2031"] * 4
    assert texts(parsed, BlockType.PAGE_NUMBER) == [f"- {number} -" for number in range(1, 5)]
    body = [block for block in parsed.blocks if block.type is BlockType.TEXT]
    assert body[0].heading_path == (
        "The Rebuilding of the Harbour",
        "1 Chapter of the first year",
        "1.1 Works at the quay",
    )
    assert parsed.pages == 4
    assert parsed.parser == "embedded"


def test_every_line_of_a_block_knows_its_characters_and_its_box(tmp_path: Path, settings: Settings) -> None:
    parsed = parse_pdf(made.report_pdf(tmp_path / "report.pdf", pages=1), settings=settings)
    block = next(block for block in parsed.blocks if block.type is BlockType.TEXT and len(block.lines) > 5)
    first, second = block.lines[0], block.lines[1]
    assert block.text[first.start : first.end] == f"{made.sentence(1)} {made.sentence(3)}"
    assert first.bbox[1] == pytest.approx(165 / made.HEIGHT, abs=0.01)
    assert first.bbox[0] == pytest.approx(72 / made.WIDTH, abs=0.01)
    assert second.bbox[1] - first.bbox[1] == pytest.approx(13 / made.HEIGHT, abs=0.003)
    assert block.regions(first.start, first.start + 4)[0].bbox == first.bbox


def test_two_columns_are_read_one_after_the_other(tmp_path: Path, settings: Settings) -> None:
    parsed = parse_pdf(made.two_column_pdf(tmp_path / "columns.pdf"), settings=settings)
    text = " ".join(block.text for block in parsed.blocks)
    places = [text.index(f"left{index} ") for index in range(40)] + [
        text.index(f"right{index} ") for index in range(40)
    ]
    assert places == sorted(places)
    joined = next(block for block in parsed.blocks if "left39" in block.text)
    assert "right0" in joined.text, "the paragraph goes on in the next column"
    assert len(joined.parts) == 2
    assert joined.parts[0].bbox[2] < 0.5 < joined.parts[1].bbox[2]


def test_ruled_table_keeps_merged_cells_rows_and_caption(tmp_path: Path, settings: Settings) -> None:
    parsed = parse_pdf(made.ruled_table_pdf(tmp_path / "table.pdf"), settings=settings)
    kinds = [block.type for block in parsed.blocks]
    assert kinds == [BlockType.CAPTION, BlockType.TABLE]
    table = parsed.blocks[1]
    assert table.text.splitlines()[0] == "| Port | Tonnes 2030 | Tonnes 2031 |"
    assert "| Aldhaven | 120 | 135 |" in table.text
    assert 'colspan="2">Tonnes' in table.html
    assert 'rowspan="2">Port' in table.html
    row = next(line for line in table.lines if "Brook" in table.text[line.start : line.end])
    assert row.bbox[1] == pytest.approx(180 / made.HEIGHT, abs=0.01)
    assert row.bbox[3] == pytest.approx(200 / made.HEIGHT, abs=0.01)


def test_table_without_rules(tmp_path: Path, settings: Settings) -> None:
    page = made.canvas(tmp_path / "aligned.pdf")
    made.write(page, "Costs rose in every year of the works, as the list shows.", x=72, y=80)
    for row, cells in enumerate(
        (("Year", "Stone", "Wages"), ("2029", "$1,200", "880"), ("2030", "$1,450", "(910)"), ("2031", "$1,700", "955"))
    ):
        for cell, x in zip(cells, (72, 220, 340), strict=True):
            made.write(page, cell, x=x, y=110 + 15 * row)
    made.write(page, "All sums are given in thousands of crowns.", x=72, y=190)
    page.save()
    parsed = parse_pdf(tmp_path / "aligned.pdf", settings=settings)
    assert [block.type for block in parsed.blocks] == [BlockType.TEXT, BlockType.TABLE, BlockType.TEXT]
    assert parsed.blocks[1].text.splitlines()[2:] == [
        "| 2029 | $1,200 | 880 |",
        "| 2030 | $1,450 | (910) |",
        "| 2031 | $1,700 | 955 |",
    ]


def test_chinese_file_name_and_text(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "年度报告（终稿） [2].pdf"
    page = made.canvas(path)
    made.write(page, "一、港口概况", x=72, y=80, size=16, font=made.SONG)
    made.write(
        page, "港口在风暴之后重建，石墙加高了两米，北方船队因此可以在这里过冬，小船则停", x=72, y=110, font=made.SONG
    )
    made.write(page, "泊在磨坊后面的河口。", x=72, y=125, font=made.SONG)
    page.save()
    parsed = parse_pdf(path, settings=settings)
    assert texts(parsed, BlockType.TITLE) == ["一、港口概况"]
    assert "小船则停泊在磨坊后面的河口。" in texts(parsed, BlockType.TEXT)[0]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_page_has_boxes_of_the_displayed_page(tmp_path: Path, settings: Settings, turn: int) -> None:
    import pikepdf

    with pikepdf.open(made.plain_pdf(tmp_path / "plain.pdf", lines=("Seen with the page turned.",))) as pdf:
        pdf.pages[0].Rotate = turn
        pdf.save(tmp_path / "turned.pdf")
    block = parse_pdf(tmp_path / "turned.pdf", settings=settings).blocks[0]
    assert block.text == "Seen with the page turned."
    assert block.angle == turn
    assert _where(block, turn=turn) == pytest.approx((72 / made.WIDTH, 100 / made.HEIGHT), abs=0.01)


def test_pages_are_left_out_when_done_and_survive_json(tmp_path: Path, settings: Settings) -> None:
    path = made.plain_pdf(tmp_path / "three.pdf", pages=3)
    loader = PdfLoader(settings)
    pages = list(loader.pages(path, document_id="d", done={2}))
    assert [page.page for page in pages] == [1, 3]
    assert all(page.total == 3 for page in pages)
    again = [load_page(dump_page(page)) for page in pages]
    assert again == pages
    assert loader.assemble(again) == loader.assemble(pages)


def test_no_page_after_the_thousandth_is_left_out(tmp_path: Path, settings: Settings) -> None:
    path = made.plain_pdf(tmp_path / "long.pdf", pages=1012, lines=())
    pages = list(PdfLoader(settings).pages(path, document_id="d"))
    assert [page.page for page in pages] == list(range(1, 1013))
    assert pages[-1].blocks[0].text == f"Page 1012 holds number {1011 * 37 + 11}."


def test_block_as_json_has_the_names_of_the_design(tmp_path: Path, settings: Settings) -> None:
    block = parse_pdf(made.plain_pdf(tmp_path / "one.pdf"), settings=settings).blocks[0]
    printed = block_as_json(block)
    assert {"page", "order", "type", "level", "text", "html", "bbox", "parts", "parser", "confidence"} <= set(printed)
    assert printed["parser"] == "text"
    assert printed["type"] == "text"


def test_threads_reading_and_drawing_give_the_same_as_one_thread(tmp_path: Path) -> None:
    from pdf_render import page_count, render_page

    path = made.report_pdf(tmp_path / "report.pdf")
    alone = [render_page(path, page, width=200).tobytes() for page in range(1, 5)]
    wrong: list[str] = []

    def hammer(start: int) -> None:
        for step in range(6):
            page = (start + step) % 4 + 1
            if page_count(path) != 4 or render_page(path, page, width=200).tobytes() != alone[page - 1]:
                wrong.append(f"page {page}")

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_parsing_give_the_same_text_as_one_thread(tmp_path: Path, settings: Settings) -> None:
    paths = [made.report_pdf(tmp_path / "report.pdf"), made.two_column_pdf(tmp_path / "columns.pdf")]
    alone = [parse_pdf(path, settings=settings).blocks for path in paths]
    found: list[tuple[int, tuple[Block, ...]]] = []

    def hammer(start: int) -> None:
        for step in range(3):
            which = (start + step) % 2
            found.append((which, parse_pdf(paths[which], settings=settings).blocks))

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert all(blocks == alone[which] for which, blocks in found)


def test_closing_the_pages_early_leaves_the_loader_usable(tmp_path: Path, settings: Settings) -> None:
    path = made.plain_pdf(tmp_path / "many.pdf", pages=40)
    loader = PdfLoader(settings)
    pages = loader.pages(path, document_id="d")
    assert next(iter(pages)).page == 1
    pages.close()  # type: ignore[attr-defined]
    assert len(list(loader.pages(path, document_id="d"))) == 40


@pytest.mark.slow
def test_scan_is_read_by_ocr_also_upside_down(tmp_path: Path, settings: Settings) -> None:
    sample = Path("Files/qinghe_k2_sample.pdf")
    for turn in (0, 180, 90):
        path = made.scanned_pdf(tmp_path / f"scan{turn}.pdf", source=sample, page=2, turn=turn)
        parsed = parse_pdf(path, settings=settings)
        assert parsed.ocr_pages == 1
        assert parsed.reasons[0][1] == "no_text"
        text = "".join(block.text for block in parsed.blocks)
        assert "校准过程持续4分钟" in text.replace(" ", "")
        block = next(block for block in parsed.blocks if "2.1" in block.text)
        assert block.parser is BlockParser.OCR
        assert _where(block, turn=turn) == pytest.approx((0.1, 0.15), abs=0.03)


def _where(block: Block, *, turn: int) -> tuple[float, float]:
    """Left top corner of a block on the page as it was before it was turned."""
    x0, y0, x1, y1 = block.bbox
    return {0: (x0, y0), 180: (1 - x1, 1 - y1), 90: (y0, 1 - x1), 270: (1 - y1, x0)}[turn]
