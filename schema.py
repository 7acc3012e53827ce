"""The values that flow through the pipeline, from a block on a page to an answer with its citations.

Everything here is frozen; pydantic is used only at the borders (settings, provider replies).
Boxes are `(x0, y0, x1, y1)` in 0..1 of the displayed page, origin at the top left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Box = tuple[float, float, float, float]
FULL_PAGE: Box = (0.0, 0.0, 1.0, 1.0)


class BlockType(StrEnum):
    """What a layout element is."""

    TITLE = "title"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    EQUATION = "equation"
    CODE = "code"
    IMAGE = "image"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    HEADER = "header"
    FOOTER = "footer"
    PAGE_NUMBER = "page_number"


PARATEXT = frozenset({BlockType.HEADER, BlockType.FOOTER, BlockType.PAGE_NUMBER})
"""Kept in the store, out of the index."""


class BlockParser(StrEnum):
    """Which reader produced a block."""

    MINERU = "mineru"
    TEXT = "text"
    OCR = "ocr"


@dataclass(frozen=True, slots=True)
class Region:
    """A box on a page (1-based physical page)."""

    page: int
    bbox: Box


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line (or table row) of a block: character range in the block's text, and where it stands."""

    start: int
    end: int
    page: int
    bbox: Box


@dataclass(frozen=True, slots=True)
class Block:
    """One layout element of a page, in reading order.

    `text` of a table is its Markdown rows, `html` its HTML. `parts` lists every box where the element was
    merged across columns or pages; `lines` maps characters of `text` to printed lines where the parser knows them.
    """

    document_id: str
    page: int
    order: int
    type: BlockType
    text: str
    bbox: Box
    parser: BlockParser
    html: str = ""
    level: int = 0
    heading_path: tuple[str, ...] = ()
    angle: int = 0
    confidence: float = 1.0
    parts: tuple[Region, ...] = ()
    lines: tuple[Line, ...] = ()

    def regions(self, start: int, end: int) -> tuple[Region, ...]:
        """Boxes of the characters `start..end` of `text`: the lines touched, else the whole block."""
        touched = tuple(Region(line.page, line.bbox) for line in self.lines if line.start < end and line.end > start)
        return touched or self.parts or (Region(self.page, self.bbox),)


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start..end` of a chunk's text come from `block.text[offset:offset + end - start]`."""

    start: int
    end: int
    block: Block
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is indexed: a stretch of one section, with the blocks it was made from.

    `text` is what is shown, graded and quoted; `embedding_text` adds the heading path for the embedder and BM25.
    `header` is the caption and header row that every strip of a table repeats.
    """

    id: str
    document_id: str
    file: str
    text: str
    heading_path: tuple[str, ...]
    pieces: tuple[Piece, ...]
    type: BlockType = BlockType.TEXT
    header: str = ""

    @property
    def page(self) -> int:
        """First physical page of the chunk."""
        return self.pieces[0].block.page

    @property
    def embedding_text(self) -> str:
        """The text with its heading path in front, as embedded and searched."""
        return "\n".join((" > ".join(self.heading_path), self.text)) if self.heading_path else self.text

    def regions(self, start: int, end: int) -> tuple[Region, ...]:
        """Boxes of the characters `start..end` of `text`, in reading order, without repeats."""
        found: dict[Region, None] = {}
        for piece in self.pieces:
            if piece.start < end and piece.end > start:
                first = max(start, piece.start) - piece.start + piece.offset
                last = min(end, piece.end) - piece.start + piece.offset
                found.update(dict.fromkeys(piece.block.regions(first, last)))
        return tuple(found)


class Origin(StrEnum):
    """Where evidence comes from; the two are never merged silently."""

    KB = "kb"
    WEB = "web"


@dataclass(frozen=True, slots=True)
class Channel:
    """Rank (1-based) and raw score of a document in one retrieval channel (dense, bm25, …)."""

    name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Document:
    """A retrieved text: a chunk of the knowledge base or a page from the web.

    `sources` names every other file that holds the same paragraph. `heading_path` holds the page title for the web.
    """

    text: str
    origin: Origin
    rank: int
    file: str = ""
    page: int = 0
    heading_path: tuple[str, ...] = ()
    chunk: Chunk | None = None
    url: str = ""
    title: str = ""
    fetched_at: str = ""
    similarity: float = 0.0
    channels: tuple[Channel, ...] = ()
    sources: tuple[str, ...] = ()

    def regions(self, start: int, end: int) -> tuple[Region, ...]:
        """Boxes of the characters `start..end`; empty for the web."""
        return self.chunk.regions(start, end) if self.chunk else ()


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start..end` of a passage that answer the question; `margin` is the score over 'no answer'."""

    start: int
    end: int
    margin: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens spent on language models."""

    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Sum of both."""
        return Usage(
            self.llm_calls + other.llm_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Grade:
    """How surely a text contains what answers the question: −1 (not at all) … 1 (it does).

    A failed grade counts as 0 and is shown as failed: never relevant, never irrelevant. `warning` is the i18n key of
    what the reader should know about it, such as a stand-in that graded where a model failed.
    """

    score: float
    span: Span | None = None
    failed: bool = False
    usage: Usage = Usage()
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Upper and lower thresholds of the action trigger and the floor for strips, all on the evaluator's scale."""

    upper: float
    lower: float
    strip: float


class Action(StrEnum):
    """What the trigger decides (paper, section 4.3)."""

    CORRECT = "correct"
    AMBIGUOUS = "ambiguous"
    INCORRECT = "incorrect"


@dataclass(frozen=True, slots=True)
class Graded:
    """A document with its grade (the best over the parts of a compound question)."""

    document: Document
    grade: Grade


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a question and the action its best score would trigger alone."""

    question: str
    action: Action
    best_score: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The action with what it was decided from; `missing` lists the parts that no document supports."""

    action: Action
    thresholds: Thresholds
    best_score: float
    parts: tuple[Part, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Parts not supported, when the question has several."""
        return tuple(part.question for part in self.parts if part.action is not Action.CORRECT)


@dataclass(frozen=True, slots=True)
class Strip:
    """A small piece of a document (paper, section 4.4): text, grade, provenance, and whether it was kept.

    `start..end` are characters of the document's text; `text` of a table strip repeats the header row in front.
    """

    text: str
    document: Document
    start: int
    end: int
    grade: Grade = Grade(0.0)
    kept: bool = False

    @property
    def regions(self) -> tuple[Region, ...]:
        """Boxes of the strip on its pages; empty for the web."""
        return self.document.regions(self.start, self.end)

    @property
    def page(self) -> int:
        """Page the strip starts on; 0 for the web."""
        regions = self.regions
        return regions[0].page if regions else self.document.page


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All strips in document order, kept and dropped; internal before external."""

    strips: tuple[Strip, ...] = ()

    @property
    def kept(self) -> tuple[Strip, ...]:
        """Strips that reach the generator, in document order."""
        return tuple(strip for strip in self.strips if strip.kept)

    @property
    def text(self) -> str:
        """The kept strips recomposed."""
        return "\n".join(strip.text for strip in self.kept)


class SearchMode(StrEnum):
    """Whether a question may go to the web: never, on the reader's word, or as the paper does."""

    OFF = "off"
    ASK = "ask"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class SearchAttempt:
    """One provider asked: how many results it gave, or how it failed (a key under `search.`)."""

    provider: str
    results: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What the web search did: the exact queries, the addresses visited, what came back, why it failed.

    `error` is in the question's language, `error_code` its key under `search.`.
    """

    mode: SearchMode
    queries: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()
    provider: str = ""
    error: str = ""
    usage: Usage = Usage()
    error_code: str = ""
    attempts: tuple[SearchAttempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """One numbered source of an answer; `matched` when it was attached by score, not named by the model.

    `mark` is the character range of the answer inside `quote`, where it is known.
    """

    n: int
    origin: Origin
    quote: str
    file: str = ""
    page: int = 0
    regions: tuple[Region, ...] = ()
    url: str = ""
    title: str = ""
    fetched_at: str = ""
    matched: bool = False
    mark: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall time of each stage, in seconds."""

    retrieve: float = 0.0
    evaluate: float = 0.0
    refine: float = 0.0
    search: float = 0.0
    generate: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Models:
    """Names of the models that worked on a question."""

    parser: str
    embedder: str
    evaluator: str
    generator: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What a generator made: text with `[n]` marks, the citations behind them, warnings (i18n keys), usage.

    `declined` when a model said that the strips do not answer: the question is then refused.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    declined: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier exchange of a conversation; used to rewrite a follow-up, never as evidence."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole record of one question: what the page, the terminal, the trace and the tests are made from."""

    question: str
    language: str
    text: str
    refused: bool
    refusal_reason: str
    verdict: Verdict
    graded: tuple[Graded, ...]
    knowledge: Knowledge
    citations: tuple[Citation, ...]
    search: SearchReport
    models: Models
    seconds: Seconds
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    id: str = ""
    original_question: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A follow-up was rewritten to a standalone question; `warning` is an i18n key when a model failed at it."""

    original: str
    question: str
    usage: Usage = Usage()
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Documents found, best first."""

    documents: tuple[Document, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Documents graded and the action decided."""

    graded: tuple[Graded, ...]
    verdict: Verdict
    seconds: float


@dataclass(frozen=True, slots=True)
class Searched:
    """The web was searched, or the reason why not is in the report."""

    report: SearchReport
    seconds: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """The knowledge is refined; generation or refusal is next."""

    knowledge: Knowledge
    seconds: float


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the answer as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of the stream."""

    answer: Answer


Event = Rewritten | Retrieved | Evaluated | Searched | Prepared | Token | Answered
