"""Many questions from short-lived threads leave no thread and no descriptor behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_model import build_chat_model
from endpoints import Role
from llm_evaluator import Judge
from provider_embeddings import ProviderEmbedder
from tests.integration.helpers_providers import FakeProvider, Scripted, prompt_of, requests_allowed, serve, settings_for

DESCRIPTORS = Path("/proc/self/fd")
SLACK = 6
"""Connections of the pool that happen to be open."""


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def _answer(body: Any) -> Scripted:
    if body.get("stream"):
        return Scripted(pieces=["one ", "two ", "three"])
    return Scripted(status=500) if "broken" in prompt_of(body) else Scripted(text="Yes")


def _ask(provider: FakeProvider, *, number: int) -> None:
    """One question as the page asks it: parts made afresh, three grades, one of them failing, an answer, at times stopped."""
    settings = settings_for(provider, embedding_provider="openai", embedding_model="embedder", llm_concurrency=4)
    model = build_chat_model(settings, role=Role.ANSWER)
    assert model is not None
    judge = Judge(model)
    assert [grade.failed for grade in judge.grade("Who?", texts=["a", "b", "broken"], kind="grade")] == [
        False,
        False,
        True,
    ]
    ProviderEmbedder(settings).embed_queries(["Who?"])
    from agent_model import Prompt

    stream = model.stream(Prompt("x", f"{number}"), max_tokens=8)
    assert next(stream) == "one "
    if number % 2:
        list(stream)
    stream.close()  # type: ignore[attr-defined]


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors through /proc")
@pytest.mark.parametrize("questions", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_questions_leave_nothing_open(questions: int) -> None:
    with serve(_answer) as provider:
        counts = []
        for number in range(questions):
            thread = threading.Thread(target=_ask, args=(provider,), kwargs={"number": number})
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
            counts.append((len(list(DESCRIPTORS.iterdir())), threading.active_count()))
        assert len(provider.chats()) == questions * 4
    warm = counts[9]
    last = counts[-1]
    assert last[0] <= warm[0] + SLACK
    assert last[1] <= warm[1] + SLACK
