from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from crag import Crag
from generator import ExtractiveGenerator, cite
from i18n import Language
from records import answer_record
from refinement import StripRefiner
from refusal import Refusal, web_state
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
    SearchOutcome,
    SearchReport,
    Span,
    Thresholds,
    Token,
    Turn,
    Usage,
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
        urls = tuple(document.url for document in found)
        return SearchReport(SearchMode.AUTO, queries=(question,), urls=urls, documents=found, error=self.error)


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


def test_a_document_graded_low_is_refined_too_once_another_passes() -> None:
    """A long passage with one good sentence is graded low as a whole; the floor judges its strips."""

    class LowAsAWhole(Evaluator):
        def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
            return [Grade(-0.9) if "long" in text else self._grade(question, text) for text in passages]

        def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
            return [[self._grade(question, text) for text in group] for group in groups]

    passing, low = "zebra=0.6 is a horse", "zebra=0.8 stands in a long passage"
    evaluator = LowAsAWhole()
    answer = pipeline(passing, low, evaluator=evaluator, refiner=StripRefiner(evaluator)).answer("what is zebra?")
    assert [graded.grade.score for graded in answer.graded] == [0.6, -0.9]
    assert [strip.text for strip in answer.knowledge.kept] == [passing, low]
    alone = pipeline(low, evaluator=evaluator, refiner=StripRefiner(evaluator)).answer("what is zebra?")
    assert alone.refused
    assert alone.knowledge.strips == ()


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
    assert "warning.ambiguous" in answer.warnings
    assert "Quoted from the web" in answer.text


def test_what_the_web_gives_is_graded_like_documents() -> None:
    """A page not clear of Incorrect is dropped before its strips are looked at, and stays in the record."""
    searcher = Searcher("zebra=-0.4 far off", "zebra=0.9 on the web")
    answer = pipeline("a lion", searcher=searcher, mode=SearchMode.AUTO).answer("what is zebra?")
    assert [graded.grade.score for graded in answer.search.graded] == [-0.4, 0.9]
    assert [strip.text for strip in answer.knowledge.strips] == ["zebra=0.9 on the web"]
    answer = pipeline("a lion", searcher=Searcher("zebra=-0.4 far off"), mode=SearchMode.AUTO).answer("what is zebra?")
    assert answer.refused
    assert answer.knowledge.strips == ()


@pytest.mark.parametrize(("score", "warnings"), [("0.9", ()), ("0.2", ("warning.web_ambiguous",))])
def test_an_answer_that_the_web_supports_in_part_carries_a_caution(score: str, warnings: tuple[str, ...]) -> None:
    searcher = Searcher(f"zebra={score} on the web")
    answer = pipeline("a lion", searcher=searcher, mode=SearchMode.AUTO).answer("what is zebra?")
    assert answer.warnings == warnings
    refused = pipeline("a lion", searcher=Searcher("a bear"), mode=SearchMode.AUTO).answer("what is zebra?")
    assert refused.warnings == ()


def test_a_grade_that_failed_on_the_web_is_said() -> None:
    searcher = Searcher("broken zebra", "zebra=0.9 on the web")
    answer = pipeline("a lion", searcher=searcher, mode=SearchMode.AUTO).answer("what is zebra?")
    assert "warning.grade_failed" in answer.warnings


class Writes:
    """A generator that writes from the documents alone, as a model may."""

    name = "writes"

    def stream(self, question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
        yield "It is 0.2 [1]."
        yield Draft("It is 0.2 [1].", citations=(cite(knowledge.kept[0], n=1),))


def test_whoever_writes_both_answers_are_shown_when_they_differ() -> None:
    crag = pipeline("zebra=0.2 here", searcher=Searcher("zebra=0.4 there"), mode=SearchMode.AUTO, generator=Writes())
    events = list(crag.stream("what is zebra?"))
    assert isinstance(events[-1], Answered)
    answer = events[-1].answer
    assert answer.text.startswith("It is 0.2 [1].")
    assert "Documents: 0.2 [1]" in answer.text
    assert "Web: 0.4 [2]" in answer.text
    assert [(c.n, c.origin, c.quote) for c in answer.citations] == [
        (1, Origin.KB, "zebra=0.2 here"),
        (2, Origin.WEB, "zebra=0.4 there"),
    ]
    assert "warning.origins_differ" in answer.warnings
    assert "".join(event.text for event in events if isinstance(event, Token)) == answer.text
    same = replace(crag, searcher=Searcher("zebra=0.2 there")).answer("what is zebra?")
    assert same.text == "It is 0.2 [1]."
    assert "warning.origins_differ" not in same.warnings


def test_answers_to_two_parts_of_a_question_do_not_differ() -> None:
    searcher = Searcher("lion=0.8 on the web")
    crag = pipeline("zebra=0.9 here", searcher=searcher, mode=SearchMode.AUTO)
    for generator in (ExtractiveGenerator(), Writes()):
        answer = replace(crag, generator=generator).answer("what is zebra? & what is lion?")
        assert {strip.document.origin for strip in answer.knowledge.kept} == {Origin.KB, Origin.WEB}
        assert "warning.origins_differ" not in answer.warnings
        assert "Documents:" not in answer.text


@pytest.mark.parametrize(
    ("mode", "found", "error", "outcome", "said"),
    [
        (SearchMode.OFF, (), "", SearchOutcome.OFF, ("Web search is off", "网络搜索已关闭")),
        (SearchMode.ASK, (), "", SearchOutcome.ASK, ("You can search the web", "您可以为这个问题搜索网络")),
        (SearchMode.AUTO, (), "", SearchOutcome.NOTHING, ("search found nothing.", "网络搜索没有找到任何结果")),
        (SearchMode.AUTO, (), "timed out", SearchOutcome.FAILED, ("failed (timed out)", "网络搜索失败（timed out）")),
        (
            SearchMode.AUTO,
            ("x",),
            "",
            SearchOutcome.FOUND,
            ("found pages (1), but none", "找到了 1 个网页，但都没有回答"),
        ),
    ],
)
@pytest.mark.parametrize("question", ["what is zebra?", "斑马是什么 zebra?"])
def test_refusal_says_exactly_what_the_search_did(
    mode: SearchMode, found: tuple[str, ...], error: str, outcome: SearchOutcome, said: tuple[str, str], question: str
) -> None:
    def propose(asked: str, *, language: Language) -> SearchReport:
        return SearchReport(SearchMode.ASK, proposed=("zebra stripes",))

    answer = pipeline("a lion", searcher=Searcher(*found, error=error), mode=mode, propose=propose).answer(question)
    assert answer.refused
    assert ("zebra stripes" in answer.text) == (mode is SearchMode.ASK)
    assert said[answer.language == "zh"] in answer.text
    assert answer_record(answer)["search"]["outcome"] == outcome.value
    assert web_state(answer) == ("unanswered" if found else outcome.value)


@pytest.mark.parametrize(
    ("history", "searched"),
    [
        ([Turn("Is the zebra's home known?", "No.")], "what is the zebra's home?"),
        ([Turn("Is the animal's home known?", "The zebra's home is far.")], "what is its home?"),
    ],
)
def test_only_words_that_the_person_typed_are_searched_for(history: list[Turn], searched: str) -> None:
    """A follow-up is completed from the conversation; what stands in an answer may come from a document."""

    class FromAnAnswer:
        def rewrite(self, question: str, *, history: Sequence[Turn]) -> Rewritten:
            return Rewritten(question, question.replace("its", "the zebra's"))

    searcher = Searcher()
    crag = pipeline("a lion", searcher=searcher, mode=SearchMode.AUTO, rewriter=FromAnAnswer())
    *_, last = crag.stream("what is its home?", history=history)
    assert isinstance(last, Answered)
    assert last.answer.question == "what is the zebra's home?"
    assert searcher.asked == [searched]


def test_a_question_without_a_word_to_search_for_says_so() -> None:
    def propose(asked: str, *, language: Language) -> SearchReport:
        return SearchReport(SearchMode.ASK)

    answer = pipeline("a lion", mode=SearchMode.ASK, propose=propose).answer("what is zebra?")
    assert web_state(answer) == "ask_empty"
    assert "no word to search the web for" in answer.text


def test_search_that_was_not_needed_is_unused() -> None:
    answer = pipeline("zebra=0.9 here", mode=SearchMode.AUTO).answer("what is zebra?")
    assert answer.search.outcome is SearchOutcome.UNUSED
    refused = Refusal().apply(answer)
    assert "found nothing" not in refused.text
    assert "was not searched" in refused.text


def test_an_answer_that_cannot_be_traced_is_given_and_says_so() -> None:
    def full(answer: Answer) -> None:
        raise OSError(28, "No space left on device")

    answer = pipeline("zebra=0.9 here", record=full).answer("what is zebra?")
    assert not answer.refused
    assert answer.warnings == ("warning.not_traced",)


def test_a_refusal_shows_what_a_search_would_ask_for() -> None:
    asked: list[str] = []

    def propose(question: str, *, language: Language) -> SearchReport:
        asked.append(question)
        return SearchReport(SearchMode.ASK, proposed=("zebra stripes",), usage=Usage(llm_calls=1))

    answer = pipeline("a lion", mode=SearchMode.ASK, propose=propose).answer("what is zebra?")
    assert "zebra stripes" in answer.text
    assert (answer.search.proposed, answer.search.queries) == (("zebra stripes",), ())
    assert answer.usage.llm_calls == 1
    pipeline("zebra=0.9 here", mode=SearchMode.ASK, propose=propose).answer("what is zebra?")
    pipeline("a lion", mode=SearchMode.OFF, propose=propose).answer("what is zebra?")
    assert asked == ["what is zebra?"]


@pytest.mark.parametrize(
    ("mode", "error", "said"),
    [
        (SearchMode.OFF, "", "Web search is off"),
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


def test_a_follow_up_is_also_retrieved_as_it_was_typed() -> None:
    class Asked(Retriever):
        def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
            return [Document(f"{question} zebra=0.7", Origin.KB, 1, file="a.pdf", page=1)][:limit]

    *_, last = pipeline(retriever=Asked()).stream("what is its home?", history=[Turn("q", "a")])
    assert isinstance(last, Answered)
    texts = [item.document.text for item in last.answer.graded]
    assert texts == ["what is the zebra's home? zebra=0.7", "what is its home? zebra=0.7"]


def test_half_a_compound_question_is_ambiguous_and_only_the_rest_is_searched() -> None:
    searcher = Searcher()
    crag = pipeline("zebra=0.9 here", searcher=searcher, mode=SearchMode.AUTO)
    answer = crag.answer("what is zebra? & what is lion?")
    assert answer.verdict.action is Action.AMBIGUOUS
    assert answer.verdict.missing == ("what is lion?",)
    assert searcher.asked == ["what is lion?"]
    assert answer.warnings == ("warning.missing_part",)


def test_what_the_web_adds_to_a_compound_question_answers_its_own_part() -> None:
    crag = pipeline("zebra=0.9 here", searcher=Searcher("lion=0.8 there"), mode=SearchMode.AUTO)
    answer = crag.answer("what is zebra? & what is lion?")
    assert [(strip.document.origin, strip.part) for strip in answer.knowledge.kept] == [(Origin.KB, 0), (Origin.WEB, 1)]
    assert [citation.origin for citation in answer.citations] == [Origin.KB, Origin.WEB]


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


def test_what_a_document_says_about_how_it_was_found_is_a_warning() -> None:
    class ByWords(Retriever):
        def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
            found = super().retrieve(question, limit=limit, files=files)
            return [replace(document, warning="models.found_by_words") for document in found]

    answer = pipeline(retriever=ByWords("zebra=0.7 is a horse", "nothing")).answer("what is zebra?")
    assert answer.warnings == ("models.found_by_words",)
