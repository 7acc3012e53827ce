"""What is answered: the web search's report, citations, the record of a question, and the events of its stream."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from schema.evidence import Document, Graded, Knowledge, Origin, Usage, Verdict
from schema.layout import Region


class SearchMode(StrEnum):
    """Whether a question may go to the web: never, on the reader's word, or as the paper does."""

    OFF = "off"
    ASK = "ask"
    AUTO = "auto"


class SearchOutcome(StrEnum):
    """How a web search ended; whether what was found answers is the answer's matter."""

    OFF = "off"
    ASK = "ask"
    UNUSED = "unused"
    FAILED = "failed"
    NOTHING = "nothing"
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class SearchAttempt:
    """One provider asked: how many results it gave, or how it failed (a key under `search.`)."""

    provider: str
    results: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What the web search did: the exact queries, the addresses visited, what came back, why it failed.

    `error` is in the question's language, `error_code` its key under `search.`. `proposed` is what a search would ask
    for, when the reader may allow one; nothing was sent. `graded` are the documents as the evaluator graded them.
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
    proposed: tuple[str, ...] = ()
    graded: tuple[Graded, ...] = ()

    @property
    def outcome(self) -> SearchOutcome:
        """How the search ended; UNUSED when it was allowed and not needed."""
        if self.mode is not SearchMode.AUTO:
            return SearchOutcome(self.mode.value)
        if self.error:
            return SearchOutcome.FAILED
        if self.documents:
            return SearchOutcome.FOUND
        return SearchOutcome.NOTHING if self.attempts or self.queries else SearchOutcome.UNUSED


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

    `declined` when a model said that the strips do not answer: the question is then refused. `unknown_citations`
    counts the numbers of sources that do not exist; they are dropped from the text.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    declined: bool = False
    unknown_citations: int = 0


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
    unknown_citations: int = 0


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
