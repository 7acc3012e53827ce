from __future__ import annotations

import hashlib
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from chunker import RULES, split_blocks, width
from schema import PARATEXT, Block, BlockParser, BlockType, Line

FILE = "handbook.pdf"


def block(
    text: str,
    *,
    kind: BlockType = BlockType.TEXT,
    order: int = 0,
    page: int = 1,
    path: tuple[str, ...] = (),
    lines: tuple[Line, ...] = (),
) -> Block:
    return Block(
        "d" * 64, page, order, kind, text, (0.1, 0.1, 0.9, 0.2), BlockParser.TEXT, heading_path=path, lines=lines
    )


def title(text: str, *, order: int, path: tuple[str, ...] = (), page: int = 1) -> Block:
    return block(text, kind=BlockType.TITLE, order=order, path=path, page=page)


def table_text(rows: int) -> str:
    body = "\n".join(f"| item {number} | {number * 10} USD |" for number in range(rows))
    return f"| Name | Price |\n|---|---|\n{body}"


SENTENCES = st.sampled_from(
    [
        "The warranty lasts two years. ",
        "保修期为两年。",
        "设备应存放在干燥处；温度不超过四十度。",
        "Call 400-123 first!\n",
        "x" * 120,
        "価格は千円です。",
        " ",
        "Payment is due within 30 days, ",
        "图" * 60,
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> list[Block]:
    found: list[Block] = []
    path: tuple[str, ...] = ()
    page = 1
    for order in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(list(BlockType)))
        page += draw(st.integers(0, 1))
        text = "".join(draw(st.lists(SENTENCES, min_size=1, max_size=8)))
        if kind is BlockType.TABLE:
            text = table_text(draw(st.integers(0, 40)))
        if kind is BlockType.TITLE:
            text = text[:40]
            path = path[: draw(st.integers(0, 2))]
        found.append(block(text, kind=kind, order=order, page=page, path=path))
        if kind is BlockType.TITLE:
            path = (*path, text)
    return found


@settings(max_examples=50, deadline=None)
@given(documents(), st.integers(100, 1200))
def test_every_character_is_indexed_once_and_found_where_it_stands(blocks: list[Block], chunk_size: int) -> None:
    chunks = split_blocks(blocks, file=FILE, chunk_size=chunk_size)
    covered: Counter[tuple[int, int]] = Counter()
    for chunk in chunks:
        for piece in chunk.pieces:
            source = piece.block.text[piece.offset : piece.offset + piece.end - piece.start]
            assert chunk.text[piece.start : piece.end] == source
            first = piece.start >= len(chunk.header)
            places = range(piece.offset, piece.offset + piece.end - piece.start)
            covered.update(
                (piece.block.order, place)
                for place in places
                if first or piece.start + place - piece.offset >= len(chunk.header)
            )
        assert sum(piece.end - piece.start for piece in chunk.pieces) + len(chunk.pieces) - 1 == len(chunk.text)
    headers = {
        (piece.block.order, piece.offset + place - piece.start)
        for chunk in chunks
        for piece in chunk.pieces
        for place in range(piece.start, min(piece.end, len(chunk.header)))
    }
    for one in blocks:
        for place, character in enumerate(one.text):
            if character.isspace():
                continue
            key = (one.order, place)
            if one.type in PARATEXT:
                assert covered[key] == 0
            else:
                assert covered[key] + (key in headers) == 1, (one.type, character)


@settings(max_examples=25, deadline=None)
@given(documents(), st.integers(100, 1200))
def test_chunks_have_lasting_distinct_ids_and_bounded_size(blocks: list[Block], chunk_size: int) -> None:
    chunks = split_blocks(blocks, file=FILE, chunk_size=chunk_size)
    assert chunks == split_blocks(blocks, file=FILE, chunk_size=chunk_size)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        if chunk.type is not BlockType.TABLE:
            assert width(chunk.text) <= 1.2 * chunk_size + 10 * len(chunk.pieces)


@settings(max_examples=25, deadline=None)
@given(documents(), st.integers(100, 600), st.integers(20, 200))
def test_overlap_repeats_text_but_loses_none(blocks: list[Block], chunk_size: int, overlap: int) -> None:
    chunks = split_blocks(blocks, file=FILE, chunk_size=chunk_size, chunk_overlap=overlap)
    covered = {
        (piece.block.order, place)
        for chunk in chunks
        for piece in chunk.pieces
        for place in range(piece.offset, piece.offset + piece.end - piece.start)
    }
    for one in blocks:
        if one.type not in PARATEXT:
            assert all(c.isspace() or (one.order, place) in covered for place, c in enumerate(one.text))


def test_a_heading_starts_a_chunk_and_names_it() -> None:
    long = "The motor is cooled by air and needs no oil. " * 12
    blocks = [
        title("Manual", order=0),
        title("1 Motor", order=1, path=("Manual",)),
        block(long, order=2, path=("Manual", "1 Motor")),
        title("2 Brake", order=3, path=("Manual",), page=2),
        block(long.replace("motor", "brake"), order=4, path=("Manual", "2 Brake"), page=2),
    ]
    motor, brake = split_blocks(blocks, file=FILE, chunk_size=900)
    assert motor.text.startswith("Manual\n1 Motor\nThe motor")
    assert motor.heading_path == ("Manual", "1 Motor")
    assert brake.text.startswith("2 Brake\nThe brake")
    assert brake.embedding_text.startswith("Manual > 2 Brake\n")
    assert (motor.page, brake.page) == (1, 2)


def test_small_neighbouring_sections_share_a_chunk_under_the_heading_they_share() -> None:
    blocks = [title("Slides", order=0)]
    for number in range(4):
        path = ("Slides",)
        blocks.append(title(f"Point {number}", order=2 * number + 1, path=path))
        blocks.append(block(f"Fact number {number}.", order=2 * number + 2, path=(*path, f"Point {number}")))
    (chunk,) = split_blocks(blocks, file=FILE, chunk_size=900)
    assert chunk.heading_path == ("Slides",)
    assert all(f"Point {number}\nFact number {number}." in chunk.text for number in range(4))


def test_a_long_table_is_cut_between_rows_and_repeats_caption_and_header() -> None:
    caption = block("Table 2: Prices", kind=BlockType.CAPTION, order=0)
    table = block(table_text(80), kind=BlockType.TABLE, order=1)
    chunks = split_blocks([caption, table], file=FILE, chunk_size=500)
    assert len(chunks) > 3
    for chunk in chunks:
        assert chunk.type is BlockType.TABLE
        assert chunk.header == "Table 2: Prices\n| Name | Price |\n|---|---|"
        assert chunk.text.startswith(chunk.header + "\n| item ")
        assert chunk.text.endswith("|")
        assert width(chunk.text) <= 500
    rows = [row for chunk in chunks for row in chunk.text.removeprefix(chunk.header).strip().split("\n")]
    assert rows == table.text.split("\n")[2:]


def test_a_row_wider_than_two_chunks_is_cut_between_cells_and_then_like_text() -> None:
    cells = [" ".join(f"word{cell}x{number}." for number in range(40)) for cell in range(20)]
    row = f"| {' | '.join(cells)} |"
    lone = f"| {'All in one cell, sentence after sentence. ' * 100}|"
    table = block(f"| Name | Terms |\n|---|---|\n| a | b |\n{row}\n{lone}", kind=BlockType.TABLE, order=1)
    assert width(row) > 6000
    chunks = split_blocks([table], file=FILE, chunk_size=500)
    assert all(chunk.header == "| Name | Terms |\n|---|---|" for chunk in chunks)
    assert max(width(chunk.text) for chunk in chunks) <= 500
    bodies = [chunk.text.removeprefix(chunk.header).strip() for chunk in chunks]
    assert all(sum(cell in body for body in bodies) == 1 for cell in cells)
    assert all(body.endswith(("|", ".")) for body in bodies)


def test_a_row_of_up_to_two_chunks_stays_whole() -> None:
    row = f"| {'a cell of a few words | ' * 38}"
    table = block(f"| Name | Terms |\n|---|---|\n{row}\n| a | b |", kind=BlockType.TABLE)
    assert any(row.strip() in chunk.text for chunk in split_blocks([table], file=FILE, chunk_size=500))


def test_a_header_row_wider_than_a_chunk_is_not_repeated() -> None:
    wide = f"| {' | '.join(f'column {number} of the very wide header' for number in range(60))} |"
    table = block(f"{wide}\n|---|---|\n" + "\n".join(f"| a{n} | b |" for n in range(90)), kind=BlockType.TABLE)
    chunks = split_blocks([table], file=FILE, chunk_size=500)
    assert {chunk.header for chunk in chunks} == {""}
    assert max(width(chunk.text) for chunk in chunks) <= 600
    assert not any(chunk.text.strip("|- \n") == "" for chunk in chunks)


def test_a_chinese_section_is_cut_between_sentences() -> None:
    text = "".join(f"第{number}条规定设备应当每年检查一次并记录结果。" for number in range(60))
    chunks = split_blocks([block(text)], file=FILE, chunk_size=400)
    assert len(chunks) > 4
    assert all(chunk.text.endswith("。") and width(chunk.text) <= 400 for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == text


def test_a_caption_stays_with_its_picture_and_paratext_stays_out() -> None:
    blocks = [
        block("Handbook 2026", kind=BlockType.HEADER, order=0),
        block("A valve.", kind=BlockType.IMAGE, order=1),
        block("Figure 1: The valve in section", kind=BlockType.CAPTION, order=2),
        block("word " * 170, order=3),
        block("12", kind=BlockType.PAGE_NUMBER, order=4),
    ]
    first, *rest = split_blocks(blocks, file=FILE, chunk_size=600)
    assert first.text.startswith("A valve.\nFigure 1: The valve in section")
    assert not any("Handbook 2026" in chunk.text or "12" in chunk.text for chunk in (first, *rest))


def test_lines_of_a_cut_block_are_found_again() -> None:
    sentences = [f"Sentence number {number} ends here. " for number in range(60)]
    lines, position = [], 0
    for number, sentence in enumerate(sentences):
        lines.append(Line(position, position + len(sentence), 1, (0.1, number / 60, 0.9, (number + 1) / 60)))
        position += len(sentence)
    chunks = split_blocks([block("".join(sentences), lines=tuple(lines))], file=FILE, chunk_size=500)
    last = chunks[-1]
    start = last.text.index("Sentence number 59")
    (region,) = last.regions(start, len(last.text))
    assert region.bbox[1] == 59 / 60


def test_nothing_to_index_gives_no_chunks() -> None:
    assert split_blocks([block("3", kind=BlockType.PAGE_NUMBER), block("  \n")], file=FILE) == ()


def test_rules_that_cut_otherwise_have_a_new_number() -> None:
    prose = "The warranty lasts two years. Payment is due within 30 days, unless agreed otherwise. " * 20
    blocks = [
        title("Terms", order=0),
        block(prose, order=1, path=("Terms",)),
        block("保修期为两年。设备应存放在干燥处；温度不超过四十度。" * 20, order=2, path=("Terms",)),
        title("Prices", order=3, page=2),
        block("The prices are:", order=4, page=2, path=("Prices",)),
        block(table_text(80), kind=BlockType.TABLE, order=5, page=2, path=("Prices",)),
        block("They hold until May.", order=6, page=3, path=("Prices",)),
        block(f"| Terms | Note |\n|---|---|\n| {prose} | {prose} |", kind=BlockType.TABLE, order=7, page=3),
    ]
    ids = "\n".join(chunk.id for chunk in split_blocks(blocks, file=FILE, chunk_overlap=60))
    digest = hashlib.sha256(ids.encode()).hexdigest()[:12]
    assert (RULES, digest) == (2, "7325ec1f6e78"), "other chunks: raise chunker.RULES and note the digest here"
