"""The cell that a question names, in tables as PDFs give them."""

from __future__ import annotations

import pytest

from table_cells import named_cell
from wording import terms

SIDE_BY_SIDE = """Forecast of the mill
| Per share | 2021 | 2022E | 2023E | Income statement | 2021 | 2022E | 2023E |
|---|---|---|---|---|---|---|---|
| Book value | 7.13 | 10.43 | 15.39 | Gross margin | 33.7% | 35.0% | 36.0% |
| Cash flow | 0.47 | 1.27 | 4.07 | Gross margin before tax | 31.1% | 32.2% | 33.3% |"""
CHINESE = """表 3 各车间产量（吨）
| 车间 | 一季度 | 二季度 | 备注 |
|---|---|---|---|
| 纺纱车间 | 120 | 131 | 已检修 |
| 织布车间 | 88 | 93 | |"""


@pytest.mark.parametrize(
    ("question", "text", "cell"),
    [
        ("What gross margin is forecast for 2022E?", SIDE_BY_SIDE, "35.0%"),
        ("What was the book value in 2021?", SIDE_BY_SIDE, "7.13"),
        ("织布车间二季度的产量是多少？", CHINESE, "93"),
        ("纺纱车间的备注写了什么？", CHINESE, "已检修"),
    ],
)
def test_the_cell_at_the_named_row_and_column(question: str, text: str, cell: str) -> None:
    found = named_cell(frozenset(terms(question)), text=text)
    assert found is not None
    assert text[slice(*found)] == cell


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the gross margin?", SIDE_BY_SIDE),
        ("What happened in 2022E?", SIDE_BY_SIDE),
        ("织布车间三月的产量是多少？", CHINESE),
        ("织布车间备注", CHINESE),
        ("What was the book value in 2021?", "The book value in 2021 was 7.13."),
        ("What was the book value in 2021?", "| Book value | 2021 |"),
        ("", SIDE_BY_SIDE),
    ],
)
def test_no_cell_where_row_or_column_is_not_named(question: str, text: str) -> None:
    assert named_cell(frozenset(terms(question)), text=text) is None
