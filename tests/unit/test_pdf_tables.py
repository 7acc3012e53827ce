"""Tables: from rules and from alignment to Markdown, HTML and row boxes."""

from __future__ import annotations

from pdf_aligned import aligned_tables
from pdf_lines import TextLine, rows
from pdf_ruled import ruled_tables
from pdf_tables import Cell, Row, Table, html, markdown, tidy
from schema import Box


def word(text: str, *, x: float, y: float) -> TextLine:
    return TextLine(text, (x, y, x + 5 * len(text), y + 10), 10.0)


def table(*texts: tuple[str, ...], heads: int = 1) -> Table:
    made = tuple(
        Row({column: Cell(text) for column, text in enumerate(row)}, (0.0, 10.0 * index, 100.0, 10.0 * index + 10))
        for index, row in enumerate(texts)
    )
    return Table(made, len(texts[0]), heads)


def test_currency_and_percent_signs_join_their_figures() -> None:
    found = tidy(table(("", "", "2031", ""), ("Sales", "$", "1,200", ""), ("Margin", "", "12", "%")))
    assert found is not None
    text, _ = markdown(found, page=1, place=(0, 0, 100, 100))
    assert text.splitlines() == ["|  | 2031 |", "|---|---|", "| Sales | $1,200 |", "| Margin | 12% |"]


def test_header_over_an_empty_column_moves_to_its_figures() -> None:
    found = tidy(table(("", "Gains", ""), ("Opening", "", "16"), ("Closing", "", "(2)")))
    assert found is not None
    assert markdown(found, page=1, place=(0, 0, 100, 100))[0].splitlines()[0] == "|  | Gains |"


def test_lines_cover_the_text_and_carry_row_boxes() -> None:
    text, lines = markdown(table(("a", "b"), ("1", "2|3"), ("x", "y")), page=4, place=(0, 0, 100, 50))
    assert [text[line.start : line.end] for line in lines] == ["| a | b |\n|---|---|", "| 1 | 2\\|3 |", "| x | y |"]
    assert lines[1].bbox == (0.0, 0.2, 1.0, 0.4)
    assert {line.page for line in lines} == {4}


def test_several_header_rows_become_one() -> None:
    made = Table(
        (
            Row({0: Cell("Port", 1, 2), 1: Cell("Tonnes", 2)}, (0, 0, 9, 1)),
            Row({1: Cell("2030"), 2: Cell("2031")}, (0, 1, 9, 2)),
            Row({0: Cell("Brook"), 1: Cell("77"), 2: Cell("81")}, (0, 2, 9, 3)),
        ),
        3,
        heads=2,
    )
    assert markdown(made, page=1, place=(0, 0, 9, 9))[0].splitlines()[0] == "| Port | Tonnes 2030 | Tonnes 2031 |"
    assert html(made) == (
        '<table><tr><th rowspan="2">Port</th><th colspan="2">Tonnes</th></tr><tr><th>2030</th><th>2031</th></tr>'
        "<tr><td>Brook</td><td>77</td><td>81</td></tr></table>"
    )


def test_html_escapes_what_the_pdf_says() -> None:
    assert "&lt;script&gt;" in html(table(("a", "b"), ("<script>", "c")))


def grid_rules(xs: tuple[float, ...], ys: tuple[float, ...]) -> list[Box]:
    return [(xs[0], y, xs[-1], y) for y in ys] + [(x, ys[0], x, ys[-1]) for x in xs]


def test_ruled_table_takes_its_lines_and_leaves_the_others() -> None:
    lines = [
        word("Head", x=12, y=12),
        word("Value", x=62, y=12),
        word("first", x=12, y=32),
        word("line", x=12, y=44),
        word("7", x=62, y=38),
        word("outside", x=12, y=90),
    ]
    (found, held), *rest = ruled_tables(grid_rules((10, 60, 110), (10, 28, 60)), lines=lines)
    assert rest == []
    assert [cell.text for cell in found.rows[1].cells.values()] == ["first line", "7"]
    assert "outside" not in {line.text for line in held}


def test_line_that_runs_through_a_rule_is_cut_there() -> None:
    both = TextLine("左边的字右边的字", (12, 32, 92, 42), 10.0)
    lines = [word("Head", x=12, y=12), word("Value", x=62, y=12), both]
    ((found, held),) = ruled_tables(grid_rules((10, 52, 110), (10, 28, 60)), lines=lines)
    assert [cell.text for cell in found.rows[1].cells.values()] == ["左边的字", "右边的字"]
    assert both in held


def test_table_ends_above_boxes_of_running_text() -> None:
    prose = [word("many words of prose here", x=12, y=70 + 12 * n) for n in range(40)]
    lines = [
        word("Head", x=12, y=12),
        word("Value", x=162, y=12),
        word("a", x=12, y=35),
        word("7", x=162, y=35),
        *prose,
    ]
    ((found, held),) = ruled_tables(grid_rules((10, 160, 310), (10, 28, 60, 600)), lines=lines)
    assert len(found.rows) == 2
    assert not set(map(id, held)) & set(map(id, prose))


def test_frame_around_running_text_is_no_table() -> None:
    lines = [word("A note in a frame", x=12, y=12)]
    assert ruled_tables(grid_rules((10, 110), (10, 60)), lines=lines) == []


def test_aligned_rows_with_a_wrapped_label() -> None:
    lines = [
        *(word(text, x=x, y=10) for text, x in (("Item", 10), ("2030", 200), ("2031", 260))),
        *(word(text, x=x, y=24) for text, x in (("Stone", 10), ("1,200", 200), ("1,300", 260))),
        *(word(text, x=x, y=38) for text, x in (("Wages", 10), ("880", 200), ("910", 260))),
    ]
    ((found, held),) = aligned_tables(rows(lines))
    assert len(held) == 9
    assert [[cell.text for cell in row.cells.values()] for row in found.rows] == [
        ["Item", "2030", "2031"],
        ["Stone", "1,200", "1,300"],
        ["Wages", "880", "910"],
    ]


def test_contents_with_leaders_and_bullets_are_no_tables() -> None:
    contents = [
        line
        for row in range(5)
        for line in (word(f"Chapter {row} ........", x=10, y=20 * row), word(str(row), x=300, y=20 * row))
    ]
    bullets = [
        line for row in range(5) for line in (word("•", x=10, y=20 * row), word("An item of a list", x=40, y=20 * row))
    ]
    assert aligned_tables(rows(contents)) == []
    assert aligned_tables(rows(bullets)) == []
