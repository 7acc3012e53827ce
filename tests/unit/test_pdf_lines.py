"""Printed lines: mending, joining, columns, paragraphs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdf_lines import TextLine, joint, mend, paragraphs
from pdf_order import columns


def line(text: str, *, x: float = 50, y: float = 50, width: float | None = None, size: float = 10) -> TextLine:
    return TextLine(text, (x, y, x + (width or 5 * len(text)), y + size), size)


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        ("⽅案简介 ⻓⽂本", "方案简介 长文本"),
        ("Ａ１２", "A12"),
        ("（一），：", "（一），："),
        ("ﬁnal ﬂow", "final flow"),
        ("soft\u00adhyphen\u200b", "softhyphen"),
        ("目 录 与 说 明", "目录与说明"),
        ("第一章 总则", "第一章 总则"),
        ("a  b\u00a0c", "a b c"),
        ("\uf0b7 item", "• item"),
        ("x² + y₂", "x² + y₂"),
    ],
)
def test_mend(raw: str, mended: str) -> None:
    assert mend(raw) == mended


@given(st.text(max_size=80))
def test_mending_twice_changes_nothing_more(text: str) -> None:
    assert mend(mend(text)) == mend(text)


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("the pop-", "ular language", "the popular language"),
        ("made by Jean-", "Paul", "made by Jean- Paul"),
        ("港口在风暴", "之后重建", "港口在风暴之后重建"),
        ("uses Java", "的系统", "uses Java 的系统"),
        ("one", "two", "one two"),
        ('打开"云备份"', "后", '打开"云备份"后'),
    ],
)
def test_lines_are_joined_as_their_script_asks(before: str, after: str, joined: str) -> None:
    closed, between = joint(before, after)
    assert f"{closed}{between}{after}" == joined


def test_word_that_is_hyphenated_elsewhere_keeps_its_hyphen() -> None:
    assert joint("a type-", "specialized trace", words=frozenset({"type-specialized"})) == ("a type-", "")


def two_columns(*, offset: float) -> list[TextLine]:
    left = [line(f"left{n} and some more words", x=50, y=100 + 12 * n, width=200) for n in range(8)]
    right = [line(f"right{n} and some more words", x=300, y=100 + offset + 12 * n, width=200) for n in range(8)]
    return [row for pair in zip(left, right, strict=True) for row in pair]


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_columns_are_read_one_after_the_other_below_a_full_title(offset: float) -> None:
    title = line("A title that runs across both of the columns", x=50, y=60, width=450)
    foot = line("A note that runs across both of the columns", x=50, y=260, width=450)
    read = [row.text.split()[0] for column in columns([foot, *two_columns(offset=offset), title]) for row in column]
    assert read == ["A", *(f"left{n}" for n in range(8)), *(f"right{n}" for n in range(8)), "A"]


def test_rows_of_a_table_are_not_taken_for_columns() -> None:
    cells = [
        line(text, x=x, y=100 + 14 * row)
        for row in range(6)
        for x, text in ((50, "Revenue of the year"), (300, "1,234"))
    ]
    assert len(columns(cells)) == 1
    assert [cell.text for cell in columns(cells)[0]][:4] == ["Revenue of the year", "1,234"] * 2


def test_every_line_is_kept_whatever_the_layout() -> None:
    lines = [line(f"w{n}", x=(n * 37) % 400 + 20, y=(n * 53) % 700 + 20, width=60) for n in range(60)]
    assert sorted(row.text for column in columns(lines) for row in column) == sorted(row.text for row in lines)


def test_paragraphs_end_at_space_indent_and_markers() -> None:
    texts = [
        ("First line of the first paragraph here", 50, 300),
        ("and its short end.", 50, 90),
        ("Second paragraph begins after a short line", 50, 300),
        ("• an item that is long enough to be cut in", 60, 290),
        ("two with a hanging indent", 70, 140),
        ("• another item", 60, 80),
    ]
    lines = [line(text, x=x, y=100 + 12 * n, width=width) for n, (text, x, width) in enumerate(texts)]
    far = line("After a wide space", x=50, y=260, width=300)
    found = [" / ".join(row.text.split()[0] for row in part.lines) for part in paragraphs([*lines, far])]
    assert found == ["First / and", "Second", "• / two", "•", "After"]


def test_centred_heading_is_kept_apart_from_the_text_below() -> None:
    heading = line("II. METHOD", x=180, y=100, width=60)
    body = [line("Text that fills the column from edge to edge", x=50, y=112 + 12 * n, width=300) for n in range(3)]
    assert [len(part.lines) for part in paragraphs([heading, *body])] == [1, 3]
