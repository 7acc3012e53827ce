"""Blocks of a document to chunks: what is indexed, graded and quoted.

A chunk is a stretch of one section: neighbouring blocks up to `chunk_size`, cut at headings, a long block cut between
sentences, a long table between rows with its caption and header row repeated. Every chunk keeps its pieces, so that
each character can be found on its page. Sizes are in letters; a Chinese character counts as two and a half, so that
chunks of both languages have about as many tokens and the reader sees most of them in one window.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schema import PARATEXT, Block, BlockType, Chunk, Piece
from sentences import is_table_row, is_table_rule, line_spans

RULES = 2
"""Raise it when the same PDF would give other chunks, by the rules here or by those of the layout (pdf_*.py): stores
built before then say that they want a rebuild, which reads their PDFs again."""
SEPARATORS = ["\n\n", "\n", "。", "！", "？", "；", ". ", "! ", "? ", "; ", "，", ", ", " ", ""]
LONGEST_LEAD_IN = 240
"""Widest paragraph ending in a colon that still counts as the caption of the table after it."""
LONGEST_ROW = 2
"""A table row up to so many times `chunk_size` stays whole: its cells belong together."""
SMALL_TABLE = 0.4
SMALL_SECTION = 0.35
"""Shares of `chunk_size` below which a table stays in its text, and a section joins its neighbour."""


_WIDE = re.compile(r"[^\x00-\u2e7f]")


@dataclass(frozen=True, slots=True)
class _Part:
    """Characters `start..end` of a block that are never cut; `bound` keeps it with the part before."""

    block: Block
    start: int
    end: int
    bound: bool = False

    @property
    def text(self) -> str:
        return self.block.text[self.start : self.end]

    @property
    def width(self) -> int:
        return width(self.text)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table too big for the running text: parts repeated in every chunk, and rows."""

    head: tuple[_Part, ...]
    rows: tuple[_Part, ...]


def split_blocks(
    blocks: Sequence[Block], *, file: str, chunk_size: int = 900, chunk_overlap: int = 0
) -> tuple[Chunk, ...]:
    """Return the chunks of one document in reading order; the same blocks give the same chunks and ids.

    Page numbers, headers and footers are left out. `chunk_overlap` repeats up to that width of the block before, where
    a long block is cut. No chunk is wider than `chunk_size` but for a heading with its first lines or a table row,
    which may be twice as wide.
    """
    drafts: list[tuple[tuple[str, ...], BlockType, tuple[_Part, ...], int]] = []
    kept = [block for block in blocks if block.type not in PARATEXT and block.text.strip()]
    for section in _sections(kept, chunk_size=chunk_size):
        path = _path(section)
        for run in _runs(section, chunk_size=chunk_size, overlap=chunk_overlap):
            if isinstance(run, _Table):
                drafts += [
                    (path, BlockType.TABLE, parts, len(run.head)) for parts in _table_parts(run, size=chunk_size)
                ]
            else:
                drafts += [(path, _kind(parts), parts, 0) for parts in _packed(run, size=chunk_size)]
    return tuple(
        _chunk(parts, order=order, file=file, path=path, kind=kind, repeated=repeated)
        for order, (path, kind, parts, repeated) in enumerate(drafts)
    )


def width(text: str) -> int:
    """Size of a text in letters; a Chinese character counts as two and a half."""
    return len(text) + 3 * len(_WIDE.findall(text)) // 2


def _sections(blocks: Sequence[Block], *, chunk_size: int) -> list[list[Block]]:
    """Cut before headings; a heading without text goes with what follows, a small section with its neighbour."""
    sections: list[list[Block]] = []
    for block in blocks:
        opens = block.type is BlockType.TITLE and any(other.type is not BlockType.TITLE for other in _last(sections))
        if opens or not sections:
            sections.append([])
        sections[-1].append(block)
    joined: list[list[Block]] = []
    for section in sections:
        both = _total(_last(joined)) + _total(section)
        small = min(_total(_last(joined)), _total(section)) <= SMALL_SECTION * chunk_size
        if joined and both <= chunk_size and small and _related(joined[-1], section):
            joined[-1] += section
        else:
            joined.append(list(section))
    return joined


def _last(sections: Sequence[list[Block]]) -> list[Block]:
    return sections[-1] if sections else []


def _total(section: Sequence[Block]) -> int:
    return sum(width(block.text) for block in section)


def _related(first: Sequence[Block], second: Sequence[Block]) -> bool:
    """Tell whether two neighbouring sections may share a chunk: near pages, and not two chapters."""
    near = second[0].page - first[-1].page <= 1
    return near and (_shared(first, second) or not second[0].heading_path)


def _shared(first: Sequence[Block], second: Sequence[Block]) -> bool:
    return first[0].heading_path[:1] == second[0].heading_path[:1] or second[0].heading_path[:1] == (first[0].text,)


def _path(section: Sequence[Block]) -> tuple[str, ...]:
    """Headings that hold for the whole section: those of its text, as far as they agree."""
    paths = [block.heading_path for block in section if block.type is not BlockType.TITLE]
    if not paths:
        return section[0].heading_path
    shared = paths[0]
    for path in paths[1:]:
        agree = [one == other for one, other in zip(shared, path, strict=False)]
        shared = shared[: agree.index(False) if False in agree else len(agree)]
    return shared


def _runs(section: Sequence[Block], *, chunk_size: int, overlap: int) -> Iterator[list[_Part] | _Table]:
    """Stretches of parts that may be packed freely, and the tables between them."""
    parts: list[_Part] = []
    for index, block in enumerate(section):
        if block.type is BlockType.TABLE and width(block.text) > SMALL_TABLE * chunk_size:
            lead = 0
            while lead < len(parts) and _introduces(parts[-1 - lead].block, lead=lead):
                lead += 1
            head = tuple(parts[len(parts) - lead :])
            if parts[: len(parts) - lead]:
                yield parts[: len(parts) - lead]
            yield _table(block, head=head, chunk_size=chunk_size)
            parts = []
        else:
            before = section[index - 1] if index else None
            parts += _parts(block, before=before, chunk_size=chunk_size, overlap=overlap)
    if parts:
        yield parts


def _introduces(block: Block, *, lead: int) -> bool:
    """Tell whether a block is what the table after it is called: caption, lead-in, heading."""
    if block.type is BlockType.CAPTION or (lead == 0 and _is_lead_in(block)):
        return True
    return block.type is BlockType.TITLE and width(block.text) <= LONGEST_LEAD_IN


def _is_lead_in(block: Block) -> bool:
    return block.type is BlockType.TEXT and width(block.text) <= LONGEST_LEAD_IN and block.text.rstrip()[-1:] in ":："


def _parts(block: Block, *, before: Block | None, chunk_size: int, overlap: int) -> list[_Part]:
    bound = before is not None and (
        before.type is BlockType.TITLE
        or (block.type is BlockType.CAPTION and before.type in {BlockType.IMAGE, BlockType.TABLE, BlockType.EQUATION})
        or (
            block.type in {BlockType.TABLE, BlockType.LIST}
            and (before.type is BlockType.CAPTION or _is_lead_in(before))
        )
    )
    if block.type is BlockType.TABLE:
        return [_Part(block, 0, len(block.text), bound=bound)]
    spans = _spans(block.text, size=chunk_size, overlap=overlap)
    return [_Part(block, start, end, bound=bound and not number) for number, (start, end) in enumerate(spans)]


def _spans(text: str, *, size: int, overlap: int, separators: Sequence[str] = SEPARATORS) -> list[tuple[int, int]]:
    """Cut a text between sentences (or at the first of other `separators`) into even stretches no wider than `size`."""
    total = width(text)
    if total <= size:
        return [(0, len(text))]
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    room = size - min(overlap, size // 2)
    splitter = RecursiveCharacterTextSplitter(
        separators=list(separators),
        keep_separator="end",
        strip_whitespace=False,
        length_function=width,
        chunk_size=min(room, total // -(-total // room) + room // 8),
        chunk_overlap=0,
    )
    spans: list[tuple[int, int]] = []
    place = 0
    for stretch in splitter.split_text(text):
        if stretch.strip():
            spans.append((_overlapped(text, start=place, overlap=overlap), place + len(stretch)))
        place += len(stretch)
    return spans


def _overlapped(text: str, *, start: int, overlap: int) -> int:
    """Move a start back by at most `overlap`, to the beginning of a word or sentence."""
    first = start
    while first and width(text[first - 1 : start]) <= overlap:
        first -= 1
    return next((place for place in range(first, start) if place == 0 or text[place - 1] in " \n。！？；，"), start)


def _packed(parts: Sequence[_Part], *, size: int) -> list[tuple[_Part, ...]]:
    """Pack neighbouring parts into even chunks no wider than `size`; bound parts stay together where they fit."""
    groups: list[list[_Part]] = []
    for part in parts:
        if part.bound and groups and sum(one.width for one in (*groups[-1], part)) <= 1.2 * size:
            groups[-1].append(part)
        else:
            groups.append([part])
    widths = [sum(part.width for part in group) for group in groups]
    chunks = -(-sum(widths) // size)
    even = sum(widths) / chunks
    packed: list[list[_Part]] = []
    filled = 0
    for group, wide in zip(groups, widths, strict=True):
        if packed and filled + wide <= size and filled + wide / 2 <= even:
            packed[-1] += group
            filled += wide
        else:
            packed.append(list(group))
            filled = wide
    return [tuple(group) for group in packed]


def _table(block: Block, *, head: tuple[_Part, ...], chunk_size: int) -> _Table:
    """Cut a table into its header rows and its rows; a row too long to be read is cut between cells, then like text."""
    lines = line_spans(block.text)
    rule = next((n for n, (start, end) in enumerate(lines[:4]) if is_table_rule(block.text[start:end])), None)
    first = 0 if rule is None else rule + 1
    header = tuple(_Part(block, *line) for line in lines[:first])
    if sum(part.width for part in header) > chunk_size:
        first, header = 0, ()
    rows: list[_Part] = []
    for start, end in lines[first:] or lines:
        row = block.text[start:end]
        if not is_table_row(row):
            spans = _spans(row, size=chunk_size, overlap=0)
        elif width(row) > LONGEST_ROW * chunk_size:
            room = max(chunk_size - sum(part.width for part in (*head, *header)), chunk_size // 2)
            spans = _spans(row, size=room, overlap=0, separators=[" | ", *SEPARATORS])
        else:
            spans = [(0, len(row))]
        rows += [_Part(block, start + a, start + b, bound=is_table_rule(row)) for a, b in spans]
    return _Table((*head, *header) if lines[first:] else head, tuple(rows))


def _table_parts(table: _Table, *, size: int) -> list[tuple[_Part, ...]]:
    """Pack rows into even chunks, each with the head in front."""
    head = sum(part.width for part in table.head)
    room = max(size - head, size // 2)
    return [(*table.head, *rows) for rows in _packed(table.rows, size=room)]


def _kind(parts: Sequence[_Part]) -> BlockType:
    """The type of a chunk: its blocks' own when they are all of one, else text."""
    kinds = {part.block.type for part in parts} - {BlockType.TITLE}
    if not kinds:
        return BlockType.TITLE
    return kinds.pop() if len(kinds) == 1 else BlockType.TEXT


def _chunk(
    parts: Sequence[_Part], *, order: int, file: str, path: tuple[str, ...], kind: BlockType, repeated: int
) -> Chunk:
    text = header = ""
    pieces: list[Piece] = []
    for number, (block, start, end) in enumerate(_merged(parts)):
        text += "\n" if number else ""
        pieces.append(Piece(len(text), len(text) + end - start, block, start))
        text += block.text[start:end]
    if repeated:
        last = parts[repeated - 1]
        header = text[: next(piece.start + last.end - piece.offset for piece in pieces if piece.block is last.block)]
    document_id, page = parts[0].block.document_id, pieces[0].block.page
    digest = hashlib.sha256("\n".join((*path, text)).encode()).hexdigest()[:8]
    return Chunk(
        id=f"{document_id[:16]}-{page}-{order}-{digest}",
        document_id=document_id,
        file=file,
        text=text,
        heading_path=path,
        pieces=tuple(pieces),
        type=kind,
        header=header,
    )


def _merged(parts: Sequence[_Part]) -> Iterator[tuple[Block, int, int]]:
    """Ranges of blocks, those that follow each other joined, the spaces around them left out."""
    joined: list[tuple[Block, int, int]] = []
    for part in parts:
        if joined and joined[-1][0] is part.block and not part.block.text[joined[-1][2] : part.start].strip():
            joined[-1] = (part.block, joined[-1][1], max(part.end, joined[-1][2]))
        else:
            joined.append((part.block, part.start, part.end))
    for block, start, end in joined:
        inner = block.text[start:end]
        yield block, start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())
