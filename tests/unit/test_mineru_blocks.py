"""MinerU's raw blocks: types, tables, and its failures told from good pages."""

from __future__ import annotations

import pytest

from errors import ConfigurationError
from mineru_blocks import fault_of, is_repetitive, page_of_raw, read_html
from mineru_client import normal_url
from pdf_tables import html
from schema import Block, BlockType


def blocks_of(*raw: dict[str, object]) -> tuple[Block, ...]:
    given = [{"bbox": [0.1, 0.1, 0.9, 0.2], **block} for block in raw]
    return page_of_raw(given, document_id="d", page=3, total=9, pixels=(100, 100)).blocks


def test_types_are_mapped_and_empty_text_is_dropped() -> None:
    found = blocks_of(
        {"type": "doc_title", "content": "The Harbour"},
        {"type": "text", "content": "  "},
        {"type": "image"},
        {"type": "image_caption", "content": "The quay"},
        {"type": "algorithm", "content": "x = 1\n  y = 2"},
        {"type": "page_footnote", "content": "1 See there."},
        {"type": "something new", "content": "kept as text"},
    )
    assert [block.type for block in found] == [
        BlockType.TITLE,
        BlockType.IMAGE,
        BlockType.CAPTION,
        BlockType.CODE,
        BlockType.FOOTNOTE,
        BlockType.TEXT,
    ]
    assert found[3].text == "x = 1\n  y = 2"
    assert found[0].page == 3


def test_long_body_text_called_a_footer_is_kept_as_text() -> None:
    assert blocks_of({"type": "footer", "content": "word " * 60})[0].type is BlockType.TEXT
    assert blocks_of({"type": "footer", "content": "Harbour 2031"})[0].type is BlockType.FOOTER


def test_letters_spaced_by_latex_are_closed() -> None:
    assert blocks_of({"type": "text", "content": "the r a t i o n is"})[0].text == "the ration is"
    assert blocks_of({"type": "text", "content": "I am a boat"})[0].text == "I am a boat"


def test_table_keeps_merged_cells() -> None:
    source = '<table><tr><td rowspan="2">Port</td><td colspan="2">Tonnes</td></tr><tr><td>1</td><td>2</td></tr></table>'
    table = read_html(source, box=(0, 0, 1, 1))
    assert table is not None
    assert table.width == 3
    assert 'rowspan="2"' in html(table)
    assert 'colspan="2"' in html(table)
    assert read_html("no table here", box=(0, 0, 1, 1)) is None


@pytest.mark.parametrize(
    ("text", "looped"),
    [
        ("the same words again and " * 30, True),
        ("x" * 25_000, True),
        ("这一段话反复出现。" * 60, True),
        ("<tr><td>0</td><td>1</td></tr>" * 40, False),
        (" ".join(f"row {number} holds {number * number}" for number in range(200)), False),
        ("short short short", False),
        ("-" * 400, False),
    ],
)
def test_repetition(text: str, looped: bool) -> None:
    assert is_repetitive(text) is looped


def test_empty_page_is_a_fault_only_when_it_has_ink() -> None:
    assert fault_of([], ink=True) == "mineru_empty"
    assert fault_of([], ink=False) == ""
    assert fault_of([{"type": "image", "bbox": [0, 0, 1, 1]}], ink=True) == ""


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("localhost:30000", "http://localhost:30000"),
        ("http://gpu:8000/", "http://gpu:8000"),
        ("http://gpu:8000/v1", "http://gpu:8000/v1"),
        ("https://office/mineru/v1/chat/completions", "https://office/mineru/v1"),
        ("https://office/mineru", "https://office/mineru/"),
    ],
)
def test_addresses_are_normalised(given: str, wanted: str) -> None:
    assert normal_url(given) == wanted


@pytest.mark.parametrize("given", ["", "ftp://gpu:21", "http://"])
def test_useless_addresses_are_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match="CRAG_MINERU_URL"):
        normal_url(given)
