"""The rival flows behave as their descriptions say, over HTTP on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from benchmarks.rival_flows import LangGraphFlow, LlamaIndexFlow, PlainFlow, Services
from benchmarks.rivals import WELL, Oracle, ask, closed_port, summarise, web
from tests.integration.helpers_providers import FakeProvider, serve

QUESTION: dict[str, Any] = {
    "id": "1",
    "lang": "en",
    "question": "When was it built?",
    "answers": ["1203"],
    "answerable": True,
}
RIGHT = "The castle was built in 1203."
OTHER = "Tulips are red."


def oracle(*, wordy: bool = False, filtered: Sequence[str] = ()) -> Oracle:
    made = Oracle([QUESTION], delay=0.0, wordy=wordy)
    made.filtered = tuple(filtered)
    return made


def asked(provider: FakeProvider) -> list[str]:
    return [call.body["model"] for call in provider.chats()]


def retrieve(_question: str, limit: int) -> list[str]:
    return [RIGHT, OTHER, OTHER, OTHER][:limit]


def test_langgraph_grades_each_passage_and_searches_when_one_is_irrelevant() -> None:
    with serve(oracle().reply) as provider, web() as search:
        flow = LangGraphFlow(retrieve, services=Services(provider.url, search_url=search))
        assert "1203" in flow.answer(QUESTION["question"])
        assert asked(provider) == ["grade"] * 4 + ["rewrite", "answer"]
        assert "Tulips are planted in autumn." in str(provider.chats()[-1].body)
        assert OTHER not in str(provider.chats()[-1].body)


def test_a_question_is_lost_when_a_grade_fails_or_the_web_is_down() -> None:
    with serve(oracle(filtered=[OTHER]).reply) as provider, web() as search:
        services = Services(provider.url, search_url=search)
        with pytest.raises(httpx.HTTPStatusError):
            LangGraphFlow(retrieve, services=services).answer(QUESTION["question"])
        row = ask(
            LlamaIndexFlow(retrieve, services=services), row=QUESTION, system="x", scenario=WELL, provider=provider
        )
        assert row["failed"]
        assert not row["right"]
    with serve(oracle().reply) as provider:
        services = Services(provider.url, search_url=f"http://127.0.0.1:{closed_port()}")
        with pytest.raises(httpx.ConnectError):
            LlamaIndexFlow(retrieve, services=services).answer(QUESTION["question"])


def test_a_wordy_model_never_says_no_to_the_llamaindex_flow() -> None:
    with serve(oracle(wordy=True).reply) as provider, web() as search:
        flow = LlamaIndexFlow(retrieve, services=Services(provider.url, search_url=search))
        assert flow.answer(QUESTION["question"]) == "I do not know."
        assert asked(provider) == ["grade", "grade", "answer"]


def test_what_is_asked_is_counted_and_summed() -> None:
    with serve(oracle().reply) as provider, web() as search:
        flow = PlainFlow(retrieve, services=Services(provider.url, search_url=search))
        row = ask(flow, row=QUESTION, system="plain RAG", scenario=WELL, provider=provider)
    assert (row["calls"], row["right"], row["failed"]) == (1, True, False)
    assert row["tokens"] > 20
    summary = {line["lang"]: line for line in summarise([row])}
    assert summary["all"]["model calls"] == 1
    assert summary["all"]["right, answerable"] == 1.0
    assert "zh" not in summary
