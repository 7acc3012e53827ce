"""What a passage says to the reader: words and rows of cells, without LaTeX's marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wording import without_latex

ROWS = r"""\begin{tabular}{|l|r|}
\multicolumn{2}{|c|}{Boat hire \& mooring} \\ \hline
Small boat & \$ 15.00 \\
Large boat & $1,200$ \\
\end{tabular}"""


def test_a_latex_table_reads_as_rows_of_cells() -> None:
    lines = [" ".join(line.split()) for line in without_latex(ROWS).splitlines()]
    assert lines[1:4] == ["Boat hire & mooring", "Small boat | $ 15.00", "Large boat | 1,200$"]
    assert not lines[0]
    assert not lines[4]


@pytest.mark.parametrize("text", ["C: & D {x} cost $5", "电池 & 充电器", "", "a < b && c"])
def test_text_without_latex_stays_as_it_is(text: str) -> None:
    assert without_latex(text) == text


@given(st.text(alphabet="\\beginmulticolumn{tabular}&$%1, \n[]|c", max_size=80))
def test_every_character_stays_in_its_place(text: str) -> None:
    plain = without_latex("\\" + text)
    assert len(plain) == len(text) + 1
    assert [plain[n] for n, character in enumerate("\\" + text) if character == "\n"] == ["\n"] * text.count("\n")
