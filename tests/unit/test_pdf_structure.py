"""The document as a whole: heading tree, running heads, joins, footnotes, captions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdf_headings import heading_levels, numbering
from pdf_page import Element, PageResult
from pdf_structure import assemble
from schema import Block, BlockParser, BlockType, Box, Line, Region


def element(
    text: str,
    *,
    page: int = 1,
    box: Box = (0.1, 0.3, 0.9, 0.35),
    size: float = 10,
    bold: bool = False,
    kind: BlockType = BlockType.TEXT,
) -> Element:
    block = Block(
        document_id="d",
        page=page,
        order=0,
        type=kind,
        text=text,
        bbox=box,
        parser=BlockParser.TEXT,
        parts=(Region(page, box),),
        lines=(Line(0, len(text), page, box),),
    )
    return Element(block, size, bold, 0.9)


def document(*pages: list[Element]) -> tuple[Block, ...]:
    made = [
        PageResult("d", number, len(pages), BlockParser.TEXT, tuple(elements))
        for number, elements in enumerate(pages, start=1)
    ]
    return assemble(made)


BODY = "Running text of the document that ends as a sentence does, so that nothing is joined to it by mistake."


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("第三章 工程", "chapter"),
        ("第二节 码头", "section"),
        ("一、概况", "chinese"),
        ("（二）费用", "bracketed"),
        ("1 Introduction", "decimal1"),
        ("2.3 Method", "decimal2"),
        ("2.3.1 Data", "decimal3"),
        ("IV. RESULTS", "roman"),
        ("Item 1A. Risk", "chapter"),
        ("2024 was a good year", ""),
        ("3.5 million people", "decimal2"),
    ],
)
def test_numbering(text: str, kind: str) -> None:
    assert numbering(text) == kind


def test_levels_follow_numbering_below_the_title() -> None:
    elements = [
        element("The Harbour", size=20, bold=True),
        element("1 Works", size=14, bold=True),
        element(BODY),
        element("1.1 Quay", size=12, bold=True),
        element(BODY),
        element("2 Costs", size=14, bold=True),
        element(BODY * 3),
    ]
    assert list(heading_levels(elements).items()) == [(0, 1), (1, 2), (3, 3), (5, 2)]


def test_chinese_levels() -> None:
    elements = [
        element("一、概况", size=14, bold=True),
        element("港口在风暴之后重建。" * 8),
        element("（一）码头", size=12, bold=True),
        element("石墙加高了两米。" * 8),
        element("二、费用", size=14, bold=True),
    ]
    assert list(heading_levels(elements).values()) == [1, 2, 1]


def test_sentences_and_list_items_are_no_headings() -> None:
    elements = [
        element(BODY * 4),
        element("1. 【强制】不允许任何魔法值直接出现在代码中。", size=11.5),
        element("1. Close the valve", kind=BlockType.LIST),
        element("2. Open the hatch", kind=BlockType.LIST),
        element("3. Wait", kind=BlockType.LIST),
    ]
    assert heading_levels(elements) == {}


def test_heading_path_is_the_headings_above() -> None:
    blocks = document(
        [
            element("1 Works", size=14),
            element("1.1 Quay", size=12),
            element(BODY),
            element("2 Costs", size=14),
            element(BODY),
        ]
    )
    assert [block.heading_path for block in blocks] == [(), ("1 Works",), ("1 Works", "1.1 Quay"), (), ("2 Costs",)]
    assert [block.order for block in blocks] == list(range(5))


def test_repeated_lines_at_the_edge_are_paratext_and_body_text_there_is_not() -> None:
    top, foot, low = (0.1, 0.03, 0.5, 0.05), (0.45, 0.95, 0.55, 0.97), (0.1, 0.9, 0.9, 0.93)
    pages = [
        [
            element(f"Annual Report 203{number}", page=number, box=top),
            element(f"{BODY} On page {number}.", page=number),
            element(f"The last words of page {'abcd'[number - 1]} are unlike others.", page=number, box=low),
            element(str(number + 6), page=number, box=foot),
        ]
        for number in range(1, 5)
    ]
    blocks = document(*pages)
    kinds = [block.type for block in blocks if block.page == 2]
    assert kinds == [BlockType.HEADER, BlockType.TEXT, BlockType.TEXT, BlockType.PAGE_NUMBER]


def test_paragraph_over_a_page_end_is_one_block_with_both_boxes_and_all_lines() -> None:
    first = element("The walls of the old harbour were raised by two metres so", page=1, box=(0.1, 0.8, 0.9, 0.85))
    head, note = (element("Annual Report", page=page, box=(0.1, 0.03, 0.4, 0.05)) for page in (1, 2))
    second = element("that the fleet could winter there.", page=2, box=(0.1, 0.1, 0.6, 0.15))
    joined = next(block for block in document([head, first], [note, second]) if len(block.parts) == 2)
    assert joined.text == "The walls of the old harbour were raised by two metres so that the fleet could winter there."
    assert [part.page for part in joined.parts] == [1, 2]
    assert joined.text[joined.lines[1].start : joined.lines[1].end] == "that the fleet could winter there."
    assert joined.page == 1
    assert joined.bbox == (0.1, 0.8, 0.9, 0.85)


def test_finished_sentence_and_new_item_are_not_joined() -> None:
    one = element("This sentence is complete and fills the line of the page.", box=(0.1, 0.8, 0.9, 0.85))
    two = element("1. An item begins the next page and is long enough", page=2, box=(0.1, 0.1, 0.9, 0.15))
    assert len(document([one], [two])) == 2


def test_footnotes_and_captions() -> None:
    blocks = document(
        [
            element(BODY * 3),
            element("| a | b |", kind=BlockType.TABLE, box=(0.1, 0.4, 0.9, 0.5)),
            element("Table 1: Catch by port", kind=BlockType.CAPTION, box=(0.1, 0.52, 0.9, 0.54)),
            element("", kind=BlockType.IMAGE, box=(0.1, 0.6, 0.9, 0.7)),
            element("Figure 1: The quay", kind=BlockType.CAPTION, box=(0.1, 0.72, 0.9, 0.74)),
            element("1 See the yearbook of 2029.", size=8, box=(0.1, 0.9, 0.9, 0.91)),
        ]
    )
    assert [block.type for block in blocks] == [
        BlockType.TEXT,
        BlockType.CAPTION,
        BlockType.TABLE,
        BlockType.IMAGE,
        BlockType.CAPTION,
        BlockType.FOOTNOTE,
    ]


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (["| 0 | | |", "| | 5 | |", "| | | 10 |", "| 20 | | 40 |", "| | 60 | |"], BlockType.IMAGE),
        ([f"| boat {n} | {n} | {n}.5 |" for n in range(6)], BlockType.TABLE),
        ([f"| boat {n} | {n} | {n}.5 |" for n in range(3)], BlockType.IMAGE),
    ],
)
def test_a_filled_table_over_a_figures_caption_stays_a_table(rows: list[str], kind: BlockType) -> None:
    table = element("\n".join(["| | a | b |", "|---|---|---|", *rows]), kind=BlockType.TABLE, box=(0.1, 0.4, 0.9, 0.5))
    caption = element("Figure 3: Boats by length", kind=BlockType.CAPTION, box=(0.1, 0.52, 0.9, 0.54))
    drawn = replace(table, block=replace(table.block, confidence=0.9))
    assert document([element(BODY * 3), drawn, caption])[1].type is kind


def test_a_page_of_one_changing_line_keeps_it() -> None:
    top = (0.1, 0.03, 0.9, 0.05)
    pages = [
        [element(f"Station {number} measured {number + 7} litres.", page=number, box=top)] for number in range(1, 6)
    ]
    assert [block.type for block in document(*pages)] == [BlockType.TEXT] * 5
