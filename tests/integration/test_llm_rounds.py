"""A question with a language model behind every role: how many rounds it waits for, and how it is stopped.

No setting makes it wait for more than two model rounds before its answer starts, three with a rewrite.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from crag import Crag
from i18n import Language
from llm_evaluator import build_llm_evaluator, without_model
from llm_generator import build_generator
from refinement import StripRefiner
from refusal import Refusal
from rewriter import LlmRewriter, build_rewriter
from schema import (
    Answered,
    Document,
    Grade,
    Models,
    Origin,
    SearchMode,
    SearchReport,
    Thresholds,
    Token,
    Turn,
)
from tests.integration.helpers_providers import FakeProvider, Scripted, prompt_of, requests_allowed, serve, settings_for

QUIET = 1.5
"""Seconds without a new request after which a round is complete; a busy machine starts threads late."""
SIMPLE, COMPOUND = "What is a zebra?", "What is a zebra? & Where does the zebra live?"
LIMITS = Thresholds(upper=0.4, lower=-0.4, strip=0.0)


class Rounds:
    """Holds every reply until no further request comes; requests released together are one round."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last = 0.0
        self.generation = 0
        self.seen: set[int] = set()

    def wait(self) -> None:
        with self.lock:
            own = self.generation
            self.seen.add(own)
            self.last = time.monotonic()
        while time.monotonic() - self.last < QUIET:
            time.sleep(0.02)
        with self.lock:
            self.generation = max(self.generation, own + 1)


class Reader:
    """Unsure of everything: each text is asked about."""

    name = "unsure"

    def thresholds(self, *, language: Language) -> Thresholds:
        return LIMITS

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        return [Grade(0.0) for _ in passages]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        return [self.grade(question, passages=group) for group in groups]


class Retriever:
    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        return [Document(f"Passage {n} says zebra.", Origin.KB, n, file="a.pdf", page=1) for n in range(1, 5)]


class Searcher:
    """Asks the rewriter for keywords, as the web search does."""

    def __init__(self, rewriter: LlmRewriter) -> None:
        self.rewriter = rewriter

    def search(self, question: str, *, language: Language) -> SearchReport:
        keywords = self.rewriter.keywords(question, language=language)
        found = (Document("The web says zebra.", Origin.WEB, 1, url="https://example.org/", title="Zebra"),)
        return SearchReport(SearchMode.AUTO, queries=keywords.words, documents=found, usage=keywords.usage)


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def pipeline(provider: FakeProvider, *, kind: str) -> Crag:
    settings = settings_for(provider, evaluator=kind, llm_timeout=60.0, llm_concurrency=64)
    evaluator = build_llm_evaluator(settings, base=Reader())
    rewriter = build_rewriter(settings)
    assert isinstance(rewriter, LlmRewriter)
    return Crag(
        rewriter=rewriter,
        split=lambda question: question.split(" & "),
        retriever=Retriever(),
        evaluator=evaluator,
        refiner=StripRefiner(evaluator),
        searcher=Searcher(rewriter),
        web_evaluator=without_model(evaluator),
        generator=build_generator(settings, matcher=evaluator),
        models=Models("embedded", "e5", "table", "model"),
        thresholds=lambda language: evaluator.thresholds(language=language),
        refusal=Refusal(),
        record=lambda answer: None,
        search_mode=SearchMode.AUTO,
    )


@pytest.mark.parametrize(
    ("kind", "verdict", "question", "follow_up"),
    [
        ("cascade", "Partly", COMPOUND, True),
        ("cascade", "Yes", SIMPLE, False),
        ("llm", "Partly", COMPOUND, False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("llm", "Yes", COMPOUND, True),
                ("cascade", "Partly", SIMPLE, True),
                ("llm", "Yes", SIMPLE, False),
                ("cascade", "No", COMPOUND, True),
            )
        ),
    ],
)
def test_rounds_before_the_answer(kind: str, verdict: str, question: str, *, follow_up: bool) -> None:
    rounds = Rounds()

    def answer(body: Any) -> Scripted:
        if body.get("stream"):
            return Scripted(text="The zebra says [1].")
        rounds.wait()
        prompt = prompt_of(body)
        if "<history>" in prompt:
            return Scripted(text=f"Question: {question}\nKeywords: zebra")
        if "<passage>" in prompt:
            return Scripted(text=verdict)
        return Scripted(text="zebra")

    with serve(answer) as provider:
        asked = "And where does it live?" if follow_up else question
        history = [Turn(question, "A horse with stripes.")] if follow_up else []
        *_, last = pipeline(provider, kind=kind).stream(asked, history=history)
        calls = len(provider.chats())
    assert isinstance(last, Answered)
    # One round more where something is rewritten: the follow-up, or the question to keywords for the web.
    rewritten = follow_up or verdict != "Yes"
    assert len(rounds.seen) <= (3 if rewritten else 2)
    assert last.answer.usage.llm_calls == calls


def test_stopping_a_question_closes_the_connection() -> None:
    def answer(body: Any) -> Scripted:
        if body.get("stream"):
            return Scripted(pieces=["The zebra says "] * 400, between=0.02)
        return Scripted(text="Yes")

    with serve(answer) as provider:
        events = pipeline(provider, kind="cascade").stream(SIMPLE)
        assert any(isinstance(event, Token) for event in events)
        events.close()  # type: ignore[attr-defined]
        assert provider.disconnected.wait(20)


def test_only_the_rewriting_model_sees_the_conversation() -> None:
    with serve(
        lambda body: Scripted(text="Yes" if "<passage>" in prompt_of(body) else "The zebra says [1].")
    ) as provider:
        history = [Turn("What is a zebra?", "It is a QUAGGA, as it was said.")]
        *_, last = pipeline(provider, kind="llm").stream("Where does it live?", history=history)
    assert isinstance(last, Answered)
    assert last.answer.original_question == "Where does it live?"
    told = ["<history>" in prompt_of(item.body) for item in provider.chats() if "QUAGGA" in prompt_of(item.body)]
    assert told == [True]
