"""Corrective retrieval-augmented generation: Algorithm 1 of arXiv 2401.15884.

    retrieve → evaluate → trigger ─┬ correct   → refine(documents)
                                   ├ ambiguous → refine(documents) + refine(search)
                                   └ incorrect → refine(search)
             → generate from the strips kept, or refuse in code when there are none

`Crag` holds the replaceable parts, `Crag.stream` is the algorithm; page, terminal, JSON and traces are made from its
events. `build_crag` chooses them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from action_trigger import decide_action, trigger
from generator import both_sides
from i18n import Language
from keywords import says_only
from language import detect_language
from refusal import Refusal
from schema import (
    Action,
    Answer,
    Answered,
    Document,
    Draft,
    Evaluated,
    Event,
    Grade,
    Graded,
    Knowledge,
    Models,
    Prepared,
    Retrieved,
    Searched,
    SearchMode,
    SearchReport,
    Seconds,
    Thresholds,
    Token,
    Turn,
    Usage,
    Verdict,
)
from stages import Evaluator, Generator, Propose, Refiner, Retriever, Rewriter, Searcher
from together import together

if TYPE_CHECKING:
    from config import Settings
    from knowledge_base import KnowledgeBase


logger = logging.getLogger(__name__)

RAW_DOCUMENTS = 3
"""Documents retrieved for a follow-up as it was typed, beside those of the completed question."""


@dataclass(frozen=True, slots=True)
class Crag:
    """The replaceable parts of the pipeline, and the pipeline."""

    rewriter: Rewriter
    split: Callable[[str], Sequence[str]]
    retriever: Retriever
    evaluator: Evaluator
    refiner: Refiner
    searcher: Searcher
    generator: Generator
    models: Models
    thresholds: Callable[[Language], Thresholds]
    refusal: Refusal
    record: Callable[[Answer], None]
    propose: Propose | None = None
    web_evaluator: Evaluator | None = None
    """Grades web documents, where that shall take no round of a language model; on the scale of `evaluator`."""
    limit: int = 10
    search_mode: SearchMode = SearchMode.OFF

    def answer(self, question: str, *, files: Sequence[str] = ()) -> Answer:
        """Run the pipeline to its end."""
        for event in self.stream(question, files=files):
            if isinstance(event, Answered):
                return event.answer
        raise AssertionError("the stream always ends with Answered")

    def stream(
        self,
        question: str,
        *,
        files: Sequence[str] = (),
        history: Sequence[Turn] = (),
        thresholds: Thresholds | None = None,
        search_mode: SearchMode | None = None,
    ) -> Iterator[Event]:
        """Answer a question; every stage is an event. Closing the stream stops the work."""
        run = _Run(question, mode=search_mode or self.search_mode)
        yield from self._rewrite(run, history=history)
        limits = thresholds or self.thresholds(run.language)
        parts = tuple(self.split(run.question)) or (run.question,)

        raw = run.asked if run.asked != run.question else ""
        documents = self._retrieve(parts, raw=raw, files=files)
        yield Retrieved(tuple(documents), seconds=run.lap("retrieve"))

        passages = [document.text for document in documents]
        judged = judge(self.evaluator, parts=parts, passages=passages, thresholds=limits)
        run.graded = tuple(map(Graded, documents, judged.grades))
        run.verdict = judged.verdict
        yield Evaluated(run.graded, verdict=run.verdict, seconds=run.lap("evaluate"))

        found = self._search(run) if run.verdict.action is not Action.CORRECT else []
        yield Searched(run.report, seconds=run.lap("search"))

        refine = partial(self.refiner.refine, thresholds=limits)
        missing = run.verdict.missing
        internal = partial(refine, parts, documents=_internal(run))
        external = partial(refine, missing, documents=found)
        inside, outside = together([internal, external])
        numbered = (replace(strip, part=parts.index(missing[strip.part])) for strip in outside.strips)
        run.knowledge = Knowledge((*inside.strips, *numbered), compound=len(parts) > 1)
        yield Prepared(run.knowledge, seconds=run.lap("refine"))

        if run.knowledge.kept:
            yield from self._generate(run)
        yield Answered(self._finish(run))

    def _rewrite(self, run: _Run, *, history: Sequence[Turn]) -> Iterator[Event]:
        run.typed += tuple(turn.question for turn in history)
        rewritten = self.rewriter.rewrite(run.question, history=history) if history else None
        if rewritten:
            run.usage += rewritten.usage
            run.warnings += (rewritten.warning,) if rewritten.warning else ()
        if rewritten and rewritten.question != run.question:
            run.question = rewritten.question
            yield rewritten
        run.language = detect_language(run.question)

    def _retrieve(self, parts: Sequence[str], *, raw: str, files: Sequence[str]) -> list[Document]:
        """The best documents of each part in turn, each document once; a few of a follow-up as it was typed."""
        found = [self.retriever.retrieve(part, limit=self.limit, files=files) for part in parts]
        if raw:
            found.append(self.retriever.retrieve(raw, limit=min(RAW_DOCUMENTS, self.limit), files=files))
        if len(found) == 1:
            return found[0]
        merged: dict[tuple[str, str], Document] = {}
        for rank in range(self.limit):
            for documents in found:
                if rank < len(documents):
                    merged.setdefault((documents[rank].file, documents[rank].text), documents[rank])
        ranked = list(merged.values())[: self.limit]
        return [replace(document, rank=rank) for rank, document in enumerate(ranked, start=1)]

    def _search(self, run: _Run) -> list[Document]:
        """Search where that is allowed; grade what is found like documents, and return what is worth refining."""
        if run.report.mode is not SearchMode.AUTO:
            return []
        run.report = self.searcher.search(_search_question(run), language=run.language)
        run.lap("search")
        documents, parts = run.report.documents, run.verdict.missing
        passages = [document.text for document in documents]
        evaluator = self.web_evaluator or self.evaluator
        limits = run.verdict.thresholds
        grades = judge(evaluator, parts=parts, passages=passages, thresholds=limits).grades
        run.report = replace(run.report, graded=tuple(map(Graded, documents, grades)))
        run.lap("evaluate")
        # A search always brings what comes nearest: more is asked of a page than not to be Incorrect.
        bar = (limits.lower + limits.upper) / 2
        return [item.document for item in run.report.graded if item.grade.failed or item.grade.score >= bar]

    def _generate(self, run: _Run) -> Iterator[Event]:
        for piece in self.generator.stream(run.question, knowledge=run.knowledge, language=run.language):
            if isinstance(piece, Draft):
                run.draft, added = both_sides(piece, knowledge=run.knowledge, language=run.language)
                yield from (Token(added),) if added else ()
            else:
                yield Token(piece)
        run.lap("generate")

    def _finish(self, run: _Run) -> Answer:
        draft = run.draft
        refused = draft is None or draft.declined
        if refused and run.report.mode is SearchMode.ASK and self.propose:
            run.report = self.propose(_search_question(run), language=run.language)
        judged = (*run.graded, *run.report.graded)
        grades = [*(item.grade for item in judged), *(strip.grade for strip in run.knowledge.strips)]
        usage = sum((grade.usage for grade in grades), run.usage + run.report.usage)
        answer = Answer(
            id=uuid4().hex,
            question=run.question,
            original_question=run.asked,
            language=run.language,
            text="" if draft is None else draft.text,
            refused=refused,
            refusal_reason="",
            verdict=run.verdict,
            graded=run.graded,
            knowledge=run.knowledge,
            citations=() if draft is None or draft.declined else draft.citations,
            unknown_citations=0 if draft is None else draft.unknown_citations,
            search=run.report,
            models=self.models,
            seconds=Seconds(**run.seconds, total=perf_counter() - run.started),
            usage=usage if draft is None else usage + draft.usage,
            warnings=(*_cautions(run), *(draft.warnings if draft else ())),
        )
        answer = self.refusal.apply(answer) if refused else answer
        try:
            self.record(answer)
        except OSError as error:
            logger.warning("the answer's trace could not be written: %s", error)
            return replace(answer, warnings=(*answer.warnings, "warning.not_traced"))
        return answer


@dataclass(slots=True)
class _Run:
    """What is known so far about one question."""

    asked: str
    mode: SearchMode
    question: str = ""
    typed: tuple[str, ...] = ()
    language: Language = "en"
    graded: tuple[Graded, ...] = ()
    verdict: Verdict = Verdict(Action.INCORRECT, Thresholds(1.0, -1.0, 0.0), -1.0, ())
    knowledge: Knowledge = Knowledge()
    report: SearchReport = SearchReport(SearchMode.OFF)
    draft: Draft | None = None
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    started: float = field(default_factory=perf_counter)
    last: float = field(default_factory=perf_counter)
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("retrieve", "evaluate", "refine", "search", "generate"), 0.0)
    )

    def __post_init__(self) -> None:
        self.question = self.asked
        self.typed = (self.asked,)
        self.report = SearchReport(self.mode)

    def lap(self, stage: str) -> float:
        """Book the time since the last lap on a stage and return the stage's seconds."""
        now = perf_counter()
        self.seconds[stage] += now - self.last
        self.last = now
        return self.seconds[stage]


@dataclass(frozen=True, slots=True)
class Judged:
    """The best grade of each passage over the parts of a question, and the verdict."""

    grades: tuple[Grade, ...]
    verdict: Verdict


def judge(evaluator: Evaluator, *, parts: Sequence[str], passages: Sequence[str], thresholds: Thresholds) -> Judged:
    """Grade every passage against every part of a question and decide the action."""
    rows = together([partial(evaluator.grade, part, passages=passages) for part in parts])
    best = tuple(_best_grade(column) for column in zip(*rows, strict=True))
    return Judged(best, trigger(parts, grades=rows, thresholds=thresholds))


def _best_grade(grades: Sequence[Grade]) -> Grade:
    best = max(grades, key=lambda grade: grade.score)
    return replace(best, usage=sum((grade.usage for grade in grades), Usage()))


def _internal(run: _Run) -> list[Document]:
    """What is refined: nothing when the action is Incorrect, else all that was retrieved; the strip floor filters.

    A long passage with one good sentence is often graded low as a whole.
    """
    return [] if run.verdict.action is Action.INCORRECT else [item.document for item in run.graded]


def _search_question(run: _Run) -> str:
    """Only what is missing is searched for, in words that the person typed: never a word of a document or an answer."""
    question = run.question if len(run.verdict.parts) == 1 else " ".join(run.verdict.missing)
    return question if says_only(question, typed=run.typed) else run.asked


def _cautions(run: _Run) -> tuple[str, ...]:
    cautions = []
    if run.verdict.action is Action.AMBIGUOUS and run.draft is not None:
        cautions.append("warning.missing_part" if len(run.verdict.parts) > 1 else "warning.ambiguous")
    web = [item.grade for item in run.report.graded]
    if run.verdict.action is Action.INCORRECT and run.draft is not None:
        unsure = decide_action(web, thresholds=run.verdict.thresholds) is Action.AMBIGUOUS
        cautions += ["warning.web_ambiguous"] if unsure else []
    judged = (*run.graded, *run.report.graded)
    if any(item.grade.failed for item in judged):
        cautions.append("warning.grade_failed")
    noted = (
        *(item.document.warning for item in run.graded),
        *(item.grade.warning for item in judged),
        *(strip.grade.warning for strip in run.knowledge.strips),
    )
    return tuple(dict.fromkeys(filter(None, (*run.warnings, *cautions, *noted))))


def build_crag(settings: Settings, *, knowledge_base: KnowledgeBase) -> Crag:
    """Choose the parts that the settings name. Everything heavy is loaded here, not at import.

    :raises ConfigurationError: a setting names something that is not there.
    :raises ModelError: an embedded model cannot be loaded.
    """
    from evaluator import build_evaluator
    from llm_evaluator import without_model
    from llm_generator import build_generator
    from question_parts import split_question
    from refinement import StripRefiner
    from retriever import HybridRetriever
    from rewriter import build_rewriter, keyword_rewriter
    from search import build_searcher
    from traces import write_trace

    embedder = knowledge_base.embedder
    evaluator = build_evaluator(settings, embedder=embedder)
    rewriter = build_rewriter(settings)
    searcher = build_searcher(settings, rewriter=keyword_rewriter(rewriter))
    generator = build_generator(settings, matcher=evaluator)
    return Crag(
        rewriter=rewriter,
        split=split_question,
        retriever=HybridRetriever(knowledge_base, embedder=embedder, settings=settings),
        evaluator=evaluator,
        refiner=StripRefiner(evaluator, max_strips=settings.max_strips),
        searcher=searcher,
        propose=searcher.propose,
        web_evaluator=without_model(evaluator),
        generator=generator,
        models=Models(
            parser=settings.pdf_parser,
            embedder=embedder.name,
            evaluator=evaluator.name,
            generator=generator.name,
        ),
        thresholds=partial(chosen_thresholds, settings, evaluator=evaluator),
        refusal=Refusal(text_zh=settings.refusal_zh, text_en=settings.refusal_en),
        record=partial(write_trace, data_dir=settings.data_dir) if settings.trace else _forget,
        limit=settings.retrieve_k,
        search_mode=settings.web_search,
    )


def chosen_thresholds(settings: Settings, language: Language, *, evaluator: Evaluator) -> Thresholds:
    """The evaluator's thresholds, overridden by the settings for the question's language, those by the ones for all."""
    own = evaluator.thresholds(language=language)

    def chosen(name: str, default: float) -> float:
        found = (getattr(settings, name), getattr(settings, f"{name}_{language}"), default)
        return next(value for value in found if value is not None)

    return Thresholds(
        upper=chosen("upper", own.upper), lower=chosen("lower", own.lower), strip=chosen("strip_floor", own.strip)
    )


def _forget(_answer: Answer) -> None:
    """Tracing is off."""
