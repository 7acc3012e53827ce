"""What CRAG is compared with on the same store, and parts that stand in for a stage in an ablation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from config import Settings
from crag import Crag, chosen_thresholds
from generator import ExtractiveGenerator
from i18n import Language
from question_parts import split_question
from reader import Reader, Reading
from refinement import StripRefiner, decompose
from refusal import Refusal
from retriever import search_terms
from rewriter import RuleRewriter
from schema import (
    Answer,
    Document,
    Grade,
    Knowledge,
    Models,
    Origin,
    SearchMode,
    SearchReport,
    Strip,
    Thresholds,
)
from stages import Evaluator

EVERYTHING = Thresholds(upper=-1.0, lower=-1.0, strip=-1.0)
"""Thresholds under which whatever is retrieved counts as Correct."""


class RankOrder:
    """Stands in for the evaluator: it judges nothing, a better rank is a better grade."""

    name = "none"

    def thresholds(self, *, language: Language) -> Thresholds:
        """Everything counts."""
        return EVERYTHING

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """Falling grades in the order given."""
        return [Grade(1.0 - 0.01 * rank) for rank in range(len(passages))]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """Falling grades in the order given."""
        return [self.grade(question, passages=group) for group in groups]


@dataclass(frozen=True, slots=True)
class WholeDocuments:
    """Stands in for the refiner: the documents themselves are the knowledge, at most `limit`, in rank order."""

    limit: int = 100
    grades: Callable[[str, Sequence[str]], list[Grade]] | None = None

    def refine(self, parts: Sequence[str], *, documents: Sequence[Document], thresholds: Thresholds) -> Knowledge:
        """One strip for each document; with `grades` the best of them, else the first."""
        texts = [document.text for document in documents]
        grades = self.grades(parts[0], texts) if self.grades and parts else RankOrder().grade("", passages=texts)
        strips = [
            Strip(text=document.text, document=document, start=0, end=len(document.text), grade=grade)
            for document, grade in zip(documents, grades, strict=True)
        ]
        best = sorted(strips, key=lambda strip: -strip.grade.score)[: self.limit]
        return Knowledge(tuple(replace(strip, kept=strip in best) for strip in strips))


@dataclass(frozen=True, slots=True)
class BestSentences:
    """Stands in for the refiner: the sentences with the highest BM25 score among those of the documents."""

    limit: int = 1

    def refine(self, parts: Sequence[str], *, documents: Sequence[Document], thresholds: Thresholds) -> Knowledge:
        """The best `limit` sentences."""
        strips = [strip for document in documents for strip in decompose(document)]
        scores = bm25_scores(" ".join(parts), texts=[strip.text for strip in strips])
        best = sorted(range(len(strips)), key=lambda place: -scores[place])[: self.limit]
        return Knowledge(tuple(replace(strips[place], grade=Grade(1.0), kept=True) for place in best))


def bm25_scores(question: str, *, texts: Sequence[str]) -> list[float]:
    """BM25 score of each text; all 0 when no term of the question is in any."""
    import bm25s

    terms = [search_terms(text) or [""] for text in texts]
    known = {term for row in terms for term in row}
    asked = [term for term in search_terms(question) if term in known]
    if not asked:
        return [0.0] * len(texts)
    index = bm25s.BM25()
    index.index(terms, show_progress=False)
    return [float(score) for score in index.get_scores(asked)]


class Bm25Retriever:
    """A knowledge base of plain passages in memory, found by BM25 alone."""

    def __init__(self, passages: Sequence[str], *, names: Sequence[str], origin: Origin = Origin.KB) -> None:
        import bm25s

        self._passages, self._names, self._origin = passages, names, origin
        self._index = bm25s.BM25()
        terms = [search_terms(text) for text in passages]
        self._known = {term for row in terms for term in row}
        self._index.index(terms, show_progress=False)

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        """The best `limit` passages that share a term with the question."""
        asked = [term for term in search_terms(question) if term in self._known]
        if not asked:
            return []
        scores = self._index.get_scores(asked)
        best = [place for place in scores.argsort()[::-1][:limit] if scores[place] > 0]
        return [
            passage_document(self._passages[place], name=self._names[place], rank=rank, origin=self._origin)
            for rank, place in enumerate(best, start=1)
        ]


def passage_document(text: str, *, name: str, rank: int, origin: Origin = Origin.KB) -> Document:
    """A passage without a page."""
    if origin is Origin.WEB:
        return Document(text=text, origin=origin, rank=rank, url=f"https://web.invalid/{name}", title=name)
    return Document(text=text, origin=origin, rank=rank, file=name, page=1)


@dataclass(frozen=True, slots=True)
class GivenPassages:
    """Stands in for the retriever: the passages given are what was retrieved."""

    passages: tuple[str, ...]

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        """All of them, in order."""
        return [passage_document(text, name=f"passage {n}", rank=n) for n, text in enumerate(self.passages, start=1)]


class NoSearch:
    """Stands in for the searcher: there is no web."""

    def search(self, question: str, *, language: Language) -> SearchReport:
        """Nothing."""
        return SearchReport(SearchMode.OFF)


class RememberingReader(Reader):
    """A reader that reads no passage twice for the same question, so that variants cost only what differs."""

    def __init__(self) -> None:
        super().__init__()
        self._remembered: dict[tuple[str, str], Reading] = {}

    def read(self, question: str, *, passages: Sequence[str]) -> list[Reading]:
        """As the reader does."""
        unread = [text for text in dict.fromkeys(passages) if (question, text) not in self._remembered]
        if unread:
            found = super().read(question, passages=unread)
            self._remembered.update(((question, text), reading) for text, reading in zip(unread, found, strict=True))
        return [self._remembered[question, text] for text in passages]


def remembering_evaluator(settings: Settings) -> Evaluator:
    """The evaluator of the settings, without reading anything twice where it is the embedded reader."""
    from embeddings import embedded_embedder
    from errors import ModelError
    from evaluator import ReaderEvaluator, build_evaluator

    if settings.evaluator in {None, "reader"}:
        try:
            return ReaderEvaluator(RememberingReader())
        except ModelError:
            if settings.evaluator:
                raise
    return build_evaluator(settings, embedder=embedded_embedder())


class Asked(Protocol):
    """Anything that retrieves."""

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        """Documents, best first."""
        ...


def passages_crag(settings: Settings, *, evaluator: Evaluator, retriever: Asked) -> Crag:
    """The embedded pipeline over passages instead of a store, without the web."""

    def thresholds(language: Language) -> Thresholds:
        return chosen_thresholds(settings, language, evaluator=evaluator)

    return Crag(
        rewriter=RuleRewriter(),
        split=split_question,
        retriever=retriever,
        evaluator=evaluator,
        refiner=StripRefiner(evaluator, max_strips=settings.max_strips),
        searcher=NoSearch(),
        generator=ExtractiveGenerator(),
        models=Models(parser="none", embedder="none", evaluator=evaluator.name, generator="extractive"),
        thresholds=thresholds,
        refusal=Refusal(),
        record=forget,
        limit=settings.retrieve_k,
    )


def plain_rag(crag: Crag, *, limit: int = 4) -> Crag:
    """The same store and generator without evaluation, refinement or refusal: the first passages are the answer."""
    return replace(
        crag,
        split=whole,
        evaluator=RankOrder(),
        refiner=WholeDocuments(),
        thresholds=everything,
        limit=limit,
        search_mode=SearchMode.OFF,
    )


def best_sentence(crag: Crag, *, retriever: Asked) -> Crag:
    """The sentence with the highest BM25 score of the ten best passages by BM25."""
    return replace(plain_rag(crag, limit=10), retriever=retriever, refiner=BestSentences())


def whole(question: str) -> tuple[str, ...]:
    """Don't split."""
    return (question,)


def everything(_language: Language) -> Thresholds:
    """Whatever is retrieved counts."""
    return EVERYTHING


def forget(_answer: Answer) -> None:
    """No traces."""
