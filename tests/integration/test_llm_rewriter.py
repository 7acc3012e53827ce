"""Rewriting follow-ups and keywords with a language model over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from errors import ProviderError
from rewriter import LlmRewriter, RuleRewriter, build_rewriter, keyword_rewriter
from schema import Turn, Usage
from tests.integration.helpers_providers import FakeProvider, Scripted, prompt_of, requests_allowed, serve, settings_for

HISTORY = [Turn("How long does the Roomba X10 run?", "About 120 minutes [1]. Made by iRobot.")]


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def rewriter_for(provider: FakeProvider, **values: Any) -> LlmRewriter:
    rewriter = build_rewriter(settings_for(provider, **values))
    assert isinstance(rewriter, LlmRewriter)
    return rewriter


def test_a_follow_up_becomes_standalone_with_its_keywords_in_one_call() -> None:
    reply = "Question: What is the price of the Roomba X10?\nKeywords: Roomba X10; price; iRobot"
    with serve(Scripted(text=reply)) as provider:
        rewriter = rewriter_for(provider)
        rewritten = rewriter.rewrite("And its price?", history=HISTORY)
        assert rewritten.question == "What is the price of the Roomba X10?"
        assert (rewritten.original, rewritten.warning) == ("And its price?", "")
        assert rewritten.usage == Usage(1, input_tokens=100, output_tokens=2)
        keywords = rewriter.keywords(rewritten.question, language="en")
        assert len(provider.chats()) == 1
    # Nothing that only the answer said goes to the web.
    assert keywords.words == ("Roomba X10", "price")
    assert keywords.usage == Usage()
    prompt = prompt_of(provider.chats()[0].body)
    assert prompt.count("<history>") == 1
    assert "120 minutes" in prompt


def test_a_whole_question_costs_no_call() -> None:
    with serve(Scripted(text="x")) as provider:
        rewritten = rewriter_for(provider).rewrite("What is the price of the Roomba X20?", history=HISTORY)
        assert rewritten.question == rewritten.original
        assert provider.chats() == []


@pytest.mark.parametrize(
    "scripted",
    [
        Scripted(status=500),
        Scripted(text=""),
        Scripted(text="The Roomba X10 costs 499 dollars."),
        Scripted(text="Question: What is the price of the Dyson V15?"),
    ],
)
def test_a_rewrite_that_fails_or_drifts_leaves_it_to_the_rule(scripted: Scripted) -> None:
    with serve(scripted) as provider:
        rewritten = rewriter_for(provider).rewrite("What is its price?", history=HISTORY)
    assert rewritten.question == "What is Roomba X10's price?"
    assert rewritten.warning == "models.rewrite_failed"
    assert rewritten.usage.llm_calls == 1


def test_keywords_come_from_the_question_alone() -> None:
    with serve(Scripted(text="关键词：青禾K2；价格；官网；优惠")) as provider:
        rewriter = rewriter_for(provider)
        keywords = rewriter.keywords("青禾K2的价格是多少？", language="zh")
        assert keyword_rewriter(rewriter) is rewriter
    assert keywords.words == ("青禾K2", "价格", "官网")
    assert keywords.usage.llm_calls == 1
    assert "<question>\n青禾K2的价格是多少？\n</question>" in prompt_of(provider.chats()[0].body)


def test_keywords_of_a_model_that_fails_are_an_error_for_the_searcher() -> None:
    with serve(Scripted(status=401)) as provider, pytest.raises(ProviderError):
        rewriter_for(provider).keywords("Who?", language="en")


def test_without_a_rewriting_model_the_rules_do_it() -> None:
    with serve(Scripted()) as provider:
        rewriter = build_rewriter(settings_for(provider, rewrite_provider="embedded"))
        assert isinstance(rewriter, RuleRewriter)
        assert keyword_rewriter(rewriter) is None
        assert rewriter.rewrite("What is its price?", history=HISTORY).question == "What is Roomba X10's price?"
        assert provider.received == []
