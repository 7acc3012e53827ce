"""MinerU behind a server: good pages, and each failure that its client is known to meet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config import Settings, load_settings
from errors import ConfigurationError
from pdf_loader import PageResult, PdfLoader, dump_page, load_page, parse_pdf
from schema import BlockParser, BlockType
from tests.integration import helpers_pdf as made
from tests.integration.helpers_mineru import model_server


def settings_for(tmp_path: Path, url: str, **changes: object) -> Settings:
    return load_settings(
        data_dir=tmp_path / "data",
        mineru_url=url,
        _env_file=None,
        **{"pdf_parser": "mineru-server", "mineru_timeout": 20.0, "mineru_concurrency": 4, **changes},
    )


def pages_of(path: Path, settings: Settings) -> dict[int, PageResult]:
    return {page.page: page for page in PdfLoader(settings).pages(path, document_id="d")}


def test_page_becomes_blocks_and_its_raw_answer_is_kept(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "one.pdf")
    with model_server() as server:
        settings = settings_for(tmp_path, server.url)
        parsed = parse_pdf(path, settings=settings)
        page = pages_of(path, settings)[1]
    assert parsed.parser == "mineru-server"
    assert {block.parser for block in parsed.blocks} == {BlockParser.MINERU}
    assert [block.type for block in parsed.blocks] == [
        BlockType.HEADER,
        BlockType.TITLE,
        BlockType.TEXT,
        BlockType.CAPTION,
        BlockType.TABLE,
        BlockType.EQUATION,
        BlockType.PAGE_NUMBER,
    ]
    text, table = parsed.blocks[2], parsed.blocks[4]
    assert len(text.parts) == 2, "MinerU said that the two belong together"
    assert table.text.splitlines()[-1] == "| 收入 | 38.9 |"
    assert table.html.startswith("<table>")
    assert table.bbox == (0.1, 0.44, 0.9, 0.6)
    assert len(json.loads(page.raw)) == 8
    assert load_page(dump_page(page)) == page


def test_many_pages_are_in_flight_but_no_more_than_allowed(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "many.pdf", pages=8)
    with model_server() as server:
        pages = pages_of(path, settings_for(tmp_path, server.url))
        assert sorted(pages) == list(range(1, 9))
        assert all(page.parser is BlockParser.MINERU for page in pages.values())
        assert server.seen["layout"] == 8


@pytest.mark.parametrize(
    ("failure", "reason"), [("error", "mineru_error"), ("chatter", "mineru_empty"), ("hang", "mineru_timeout")]
)
def test_page_that_keeps_failing_is_read_by_the_embedded_parser_and_says_so(
    tmp_path: Path, failure: str, reason: str
) -> None:
    path = made.plain_pdf(tmp_path / "two.pdf", pages=2)
    with model_server(plan=[failure] * 6) as server:
        patience = 1.0 if failure == "hang" else 20.0
        pages = pages_of(path, settings_for(tmp_path, server.url, mineru_concurrency=1, mineru_timeout=patience))
    assert sorted(pages) == [1, 2]
    assert pages[1].parser is BlockParser.TEXT
    assert pages[1].reason == reason
    assert "Lime trees" in pages[1].blocks[0].text


def test_page_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "one.pdf")
    with model_server(plan=["chatter"]) as server:
        page = pages_of(path, settings_for(tmp_path, server.url))[1]
        assert server.seen["layout"] == 2
    assert page.parser is BlockParser.MINERU
    assert page.reason == ""


def test_repetition_loop_is_dropped_and_flagged(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "one.pdf")
    with model_server(always="loop") as server:
        page = pages_of(path, settings_for(tmp_path, server.url))[1]
    assert page.parser is BlockParser.TEXT
    assert page.reason == "mineru_repetition"
    assert "again and" not in page.blocks[0].text


def test_server_that_is_down_leaves_the_file_to_the_embedded_parser(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "three.pdf", pages=3)
    with model_server() as server:
        url = server.url
    pages = pages_of(path, settings_for(tmp_path, url))
    assert sorted(pages) == [1, 2, 3]
    assert {page.reason for page in pages.values()} == {"mineru_unavailable"}
    assert {page.parser for page in pages.values()} == {BlockParser.TEXT}


def test_blank_page_is_no_failure(tmp_path: Path) -> None:
    import pikepdf

    path = tmp_path / "blank.pdf"
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.save(path)
    with model_server(always="chatter") as server:
        page = pages_of(path, settings_for(tmp_path, server.url))[1]
        assert server.seen["layout"] == 1
    assert (page.parser, page.reason, page.blocks) == (BlockParser.MINERU, "blank", ())


def test_pages_done_before_are_not_sent_again(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "four.pdf", pages=4)
    with model_server() as server:
        settings = settings_for(tmp_path, server.url)
        pages = list(PdfLoader(settings).pages(path, document_id="d", done={1, 2, 4}))
        assert server.seen["layout"] == 1
    assert [page.page for page in pages] == [3]


def test_server_without_an_address_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="CRAG_MINERU_URL"):
        PdfLoader(settings_for(tmp_path, ""))


def test_local_model_without_weights_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no MinerU weights"):
        PdfLoader(settings_for(tmp_path, "", pdf_parser="mineru-local"))


def test_auto_takes_the_server_when_there_is_one(tmp_path: Path) -> None:
    assert PdfLoader(settings_for(tmp_path, "", pdf_parser="auto")).parser == "embedded"
    assert PdfLoader(settings_for(tmp_path, "localhost:30000", pdf_parser="auto")).parser == "mineru-server"
