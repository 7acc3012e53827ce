from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from crag import Crag
from generator import ExtractiveGenerator
from i18n import Language
from refinement import StripRefiner
from refusal import Refusal
from schema import (
    Action,
    Answer,
    Answered,
    Document,
    Draft,
    Evaluated,
    Grade,
    Knowledge,
    Models,
    Origin,
    Prepared,
    Retrieved,
    Rewritten,
    Searched,
    SearchMode,
    SearchReport,
    Span,
    Thresholds,
    Token,
    Turn,
)

LIMITS = Thresholds(upper=0.5, lower=-0.5, strip=-0.1)


class Rewriter:
    def rewrite(self, question: str, *, history: Sequence[Turn]) -> Rewritten:
        return Rewritten(question, question.replace("its", "the zebra's"))


class Retriever:
    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        return [Document(text, Origin.KB, rank, file="a.pdf", page=rank) for rank, text in enumerate(self.texts, 1)][
            :limit
        ]


class Evaluator:
    """Reads the score from the passage: 'zebra=0.7 …'; a passage without the asked word gets −0.9."""

    name = "table"

    def thresholds(self, *, language: Language) -> Thresholds:
        return LIMITS

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        return [self._grade(question, passage) for passage in passages]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        return [self.grade(question, passages=group) for group in groups]

    def _grade(self, question: str, passage: str) -> Grade:
        word = question.split()[-1].strip("?")
        if "broken" in passage:
            return Grade(0.0, failed=True)
        if f"{word}=" not in passage:
            return Grade(-0.9)
        start = passage.index(f"{word}=") + len(word) + 1
        return Grade(float(passage[start:].split()[0]), span=Span(start, start + 3, 5.0))


class Searcher:
    def __init__(self, *texts: str, error: str = "") -> None:
        self.texts, self.error, self.asked = texts, error, list[str]()

    def search(self, question: str, *, language: Language) -> SearchReport:
        self.asked.append(question)
        found = tuple(Document(text, Origin.WEB, 1, url="https://example.org/", title="Example") for text in self.texts)
        return SearchReport(SearchMode.AUTO, queries=(question,), documents=found, error=self.error)


def pipeline(
    *texts: str, searcher: Searcher | None = None, mode: SearchMode = SearchMode.OFF, **changes: object
) -> Crag:
    evaluator = Evaluator()
    crag = Crag(
        rewriter=Rewriter(),
        split=lambda question: question.split(" & "),
        retriever=Retriever(*texts),
        evaluator=evaluator,
        refiner=StripRefiner(evaluator),
        searcher=searcher or Searcher(),
        generator=ExtractiveGenerator(),
        models=Models("embedded", "e5", "table", "extractive"),
        thresholds=lambda language: LIMITS,
        refusal=Refusal(),
        record=lambda answer: None,
        search_mode=mode,
    )
    return replace(crag, **changes)  # type: ignore[arg-type]


def test_correct_answers_from_the_documents_alone() -> None:
    searcher = Searcher("zebra=0.9 on the web")
    answer = pipeline("zebra=0.7 is a horse", "nothing", searcher=searcher, mode=SearchMode.AUTO).answer(
        "what is zebra?"
    )
    assert answer.verdict.action is Action.CORRECT
    assert not answer.refused
    assert [(c.file, c.page, c.origin) for c in answer.citations] == [("a.pdf", 1, Origin.KB)]
    assert "0.7 [1]" in answer.text
    assert searcher.asked == []
    assert answer.warnings == ()


def test_incorrect_uses_the_web_alone() -> None:
    searcher = Searcher("zebra=0.9 on the web")
    answer = pipeline("a lion", "a bear", searcher=searcher, mode=SearchMode.AUTO).answer("what is zebra?")
    assert answer.verdict.action is Action.INCORRECT
    assert searcher.asked == ["what is zebra?"]
    assert {c.origin for c in answer.citations} == {Origin.WEB}
    assert all(strip.document.origin is Origin.WEB for strip in answer.knowledge.strips)


def test_ambiguous_uses_both_and_keeps_them_apart() -> None:
    searcher = Searcher("zebra=0.4 on the web")
    answer = pipeline("zebra=0.2 perhaps", searcher=searcher, mode=SearchMode.AUTO).answer("what is zebra?")
    assert answer.verdict.action is Action.AMBIGUOUS
    assert [strip.document.origin for strip in answer.knowledge.kept] == [Origin.KB, Origin.WEB]
    assert [c.origin for c in answer.citations] == [Origin.KB, Origin.WEB]
    assert answer.warnings == ("warning.ambiguous",)
    assert "Quoted from the web" in answer.text


@pytest.mark.parametrize(
    ("mode", "error", "said"),
    [
        (SearchMode.OFF, "", "Web search is off"),
        (SearchMode.ASK, "", "You can search the web"),
        (SearchMode.AUTO, "", "found nothing"),
        (SearchMode.AUTO, "timed out", "failed (timed out)"),
    ],
)
def test_nothing_relevant_is_refused_in_code(mode: SearchMode, error: str, said: str) -> None:
    def never(question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
        raise AssertionError("the generator is not called without a strip")

    class Silent:
        name = "silent"
        stream = staticmethod(never)

    answer = pipeline("a lion", searcher=Searcher(error=error), mode=mode, generator=Silent()).answer("what is zebra?")
    assert answer.refused
    assert answer.refusal_reason == "incorrect"
    assert answer.citations == ()
    assert said in answer.text
    assert "-0.90" in answer.text


def test_refusal_speaks_the_language_of_the_question() -> None:
    answer = pipeline("a lion").answer("斑马是什么动物？")
    assert answer.language == "zh"
    assert answer.text.startswith("现有文档无法回答")
    own = pipeline("a lion", refusal=Refusal(text_zh="无可奉告。")).answer("斑马是什么动物？")
    assert own.text.startswith("无可奉告。")


def test_an_empty_knowledge_base_is_said_and_the_web_still_runs() -> None:
    assert pipeline().answer("what is zebra?").refusal_reason == "empty"
    searcher = Searcher("zebra=0.9 on the web")
    assert not pipeline(searcher=searcher, mode=SearchMode.AUTO).answer("what is zebra?").refused


def test_half_a_compound_question_is_ambiguous_and_only_the_rest_is_searched() -> None:
    searcher = Searcher()
    crag = pipeline("zebra=0.9 here", searcher=searcher, mode=SearchMode.AUTO)
    answer = crag.answer("what is zebra? & what is lion?")
    assert answer.verdict.action is Action.AMBIGUOUS
    assert answer.verdict.missing == ("what is lion?",)
    assert searcher.asked == ["what is lion?"]
    assert answer.warnings == ("warning.missing_part",)


def test_a_failed_grade_never_fails_the_question() -> None:
    answer = pipeline("broken", "zebra=0.9 is here").answer("what is zebra?")
    assert answer.verdict.action is Action.CORRECT
    assert "warning.grade_failed" in answer.warnings
    assert pipeline("broken").answer("what is zebra?").verdict.action is Action.AMBIGUOUS


def test_events_come_in_the_order_of_the_algorithm() -> None:
    events = list(pipeline("zebra=0.7 is a horse").stream("what is its zebra?", history=[Turn("q", "a")]))
    kinds = [type(event) for event in events]
    assert kinds[:5] == [Rewritten, Retrieved, Evaluated, Searched, Prepared]
    assert kinds[-1] is Answered
    assert Token in kinds
    answer = events[-1]
    assert isinstance(answer, Answered)
    assert answer.answer.original_question == "what is its zebra?"
    assert answer.answer.question == "what is the zebra's zebra?"
    written = "".join(event.text for event in events if isinstance(event, Token))
    assert written == answer.answer.text


def test_a_model_that_finds_no_answer_makes_a_refusal() -> None:
    class Declines:
        name = "declines"

        def stream(self, question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
            yield "I do not know."
            yield Draft("I do not know.", declined=True)

    answer = pipeline("zebra=0.7 is a horse", generator=Declines()).answer("what is zebra?")
    assert answer.refused
    assert answer.refusal_reason == "declined"
    assert answer.citations == ()


def test_every_question_is_recorded_once() -> None:
    recorded: list[Answer] = []
    pipeline("zebra=0.7 is a horse", record=recorded.append).answer("what is zebra?")
    pipeline("a lion", record=recorded.append).answer("what is zebra?")
    assert [answer.refused for answer in recorded] == [False, True]


def test_thresholds_can_be_given_for_one_question() -> None:
    events = list(pipeline("zebra=0.2 perhaps").stream("what is zebra?", thresholds=Thresholds(0.1, -0.5, 0.0)))
    evaluated = next(event for event in events if isinstance(event, Evaluated))
    assert evaluated.verdict.action is Action.CORRECT
