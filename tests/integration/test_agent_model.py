"""Chat models over real HTTP on loopback: every way a provider answers, and every way it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_model import ChatModel, Failure, Prompt, Reply, build_chat_model
from config import load_settings
from endpoints import Role, find_endpoint
from errors import (
    ConfigurationError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderUnavailableError,
)
from tests.integration.helpers_providers import FakeProvider, Scripted, requests_allowed, serve, settings_for

PROMPT = Prompt("Be short.", "Is water wet?")


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def model_for(provider: FakeProvider, **values: Any) -> ChatModel:
    values.setdefault("llm_retries", 2)
    model = build_chat_model(settings_for(provider, **values), role=Role.GRADE)
    assert model is not None
    return model


def ask(model: ChatModel, *, logprobs: bool = False) -> Reply | Failure:
    (reply,) = model.ask([PROMPT], max_tokens=64, logprobs=logprobs)
    return reply


def failure(model: ChatModel) -> ProviderError:
    reply = ask(model)
    assert isinstance(reply, Failure)
    return reply.error


def streamed(model: ChatModel) -> list[str | Reply]:
    return list(model.stream(PROMPT, max_tokens=64))


@pytest.mark.parametrize("kind", ["openai", "ollama", "dashscope"])
def test_each_provider_answers_with_text_probabilities_and_usage(kind: str) -> None:
    with serve(Scripted(text="Yes", choices=[{"Yes": 0.75, "No": 0.25}])) as provider:
        reply = ask(model_for(provider, kind=kind), logprobs=True)
    assert isinstance(reply, Reply)
    assert reply.text == "Yes"
    assert not reply.cut
    assert dict(reply.tokens[0].candidates) == {"Yes": pytest.approx(0.75), "No": pytest.approx(0.25)}
    assert (reply.usage.llm_calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 100, 2)
    sent = provider.chats()[0]
    assert sent.body["model"] == "known"
    assert sent.body["max_tokens"] == 64
    assert sent.body["logprobs"] is True
    assert [message["role"] for message in sent.body["messages"]] == ["system", "user"]
    assert sent.path == ("/compatible-mode/v1/chat/completions" if kind == "dashscope" else "/v1/chat/completions")
    switched_off: dict[str, dict[str, object]] = {
        "openai": {"chat_template_kwargs": {"enable_thinking": False}},
        "ollama": {"reasoning_effort": "none"},
        "dashscope": {"enable_thinking": False},
    }
    assert switched_off[kind].items() <= sent.body.items()
    if kind != "ollama":
        assert sent.headers["authorization"] == "Bearer sk-secret"


def test_an_endpoint_without_extras_is_asked_without_them_from_then_on() -> None:
    def answer(body: Any) -> Scripted:
        return Scripted(status=400, text="logprobs is not supported") if "logprobs" in body else Scripted(text="No")

    with serve(answer) as provider:
        model = model_for(provider)
        replies = [ask(model, logprobs=True), ask(model, logprobs=True)]
    assert [reply.text for reply in replies if isinstance(reply, Reply)] == ["No", "No"]
    assert [reply.usage.llm_calls for reply in replies] == [2, 1]


@pytest.mark.parametrize(
    ("scripted", "kind", "code"),
    [
        (Scripted(status=401), ProviderAuthError, "provider_auth"),
        (Scripted(status=403), ProviderAuthError, "provider_auth"),
        (Scripted(status=402), ProviderAuthError, "provider_quota"),
        (Scripted(status=404, text="model 'known' not found"), ProviderResponseError, "provider_model"),
        (Scripted(status=404, body=b"<html>nothing here</html>"), ProviderResponseError, "provider_url"),
        (Scripted(status=500), ProviderUnavailableError, "provider_server"),
        (Scripted(status=503), ProviderUnavailableError, "provider_server"),
        (Scripted(status=429, headers={"Retry-After": "60"}), ProviderRateLimitError, "provider_rate_limit"),
        (Scripted(body=b"{not json"), ProviderResponseError, "provider_response"),
        (Scripted(body=b'{"choices": []}'), ProviderResponseError, "provider_response"),
        (Scripted(body=b"<html>a proxy's page</html>"), ProviderResponseError, "provider_response"),
        (Scripted(hang=True), ProviderUnavailableError, "provider_timeout"),
    ],
)
def test_failures_are_typed(scripted: Scripted, kind: type[ProviderError], code: str) -> None:
    with serve(scripted) as provider:
        model = model_for(provider, llm_timeout=1.0 if scripted.hang else 30.0, llm_retries=0)
        error = failure(model)
        with pytest.raises(kind) as streamed_error:
            streamed(model)
    assert isinstance(error, kind)
    assert error.code == streamed_error.value.code == code
    assert error.values["url"] == provider.url
    assert error.hint
    assert "sk-secret" not in f"{error} {error.hint} {error.values}"


def test_a_missing_ollama_model_says_how_to_get_it() -> None:
    with serve(Scripted(status=404, text='model "absent" not found, try pulling it first')) as provider:
        error = failure(model_for(provider, kind="ollama", llm_model="absent"))
    assert error.code == "ollama_model"
    assert "ollama pull absent" in error.hint


def test_nobody_listening_is_unavailable_with_a_word_about_docker() -> None:
    with serve(Scripted()) as provider:
        pass
    error = failure(model_for(provider, llm_retries=0))
    assert (type(error), error.code) == (ProviderUnavailableError, "provider_unavailable")
    assert "host.docker.internal" in error.hint


def test_a_missing_key_is_named_before_anything_is_sent() -> None:
    with serve(Scripted(text="Yes")) as provider:
        error = failure(model_for(provider, kind="dashscope", dashscope_api_key=""))
    assert (type(error), error.code) == (ProviderAuthError, "provider_key")
    assert "DASHSCOPE_API_KEY" in error.hint
    assert provider.received == []


def test_retry_after_is_honoured_by_every_call_to_the_provider() -> None:
    seen = 0

    def answer(_: Any) -> Scripted:
        nonlocal seen
        seen += 1
        return Scripted(status=429, headers={"Retry-After": "1"}) if seen == 1 else Scripted(text="Yes")

    with serve(answer) as provider:
        model = model_for(provider, llm_concurrency=1)
        replies = model.ask([PROMPT, PROMPT], max_tokens=8)
    assert all(isinstance(reply, Reply) for reply in replies)
    times = [item.started for item in provider.chats()]
    assert len(times) == 3
    assert times[1] - times[0] >= 0.99


def test_a_longer_silence_than_the_timeout_fails_at_once() -> None:
    with serve(Scripted(status=429, headers={"Retry-After": "30"})) as provider:
        model = model_for(provider, llm_timeout=25.0)
        started = time.monotonic()
        errors = [failure(model), failure(model)]
    assert time.monotonic() - started < 20
    assert errors[0].values["seconds"] == 30
    assert 5 < int(str(errors[1].values["seconds"])) <= 30
    assert len(provider.chats()) == 1


def test_server_errors_are_retried_with_growing_waits() -> None:
    seen = 0

    def answer(_: Any) -> Scripted:
        nonlocal seen
        seen += 1
        return Scripted(status=500) if seen < 3 else Scripted(text="Yes")

    with serve(answer) as provider:
        reply = ask(model_for(provider, llm_retries=2))
    assert isinstance(reply, Reply)
    assert reply.usage.llm_calls == 3
    first, second, third = (item.started for item in provider.chats())
    assert second - first >= 0.4
    assert third - second >= 0.79


def test_calls_run_together_under_the_limit_and_fail_alone() -> None:
    def answer(body: Any) -> Scripted:
        wrong = body["messages"][-1]["content"] == "3"
        return Scripted(status=400) if wrong else Scripted(text=body["messages"][-1]["content"], delay=0.1)

    with serve(answer) as provider:
        model = model_for(provider, llm_concurrency=4, llm_retries=0)
        replies = model.ask([Prompt("", str(number)) for number in range(12)], max_tokens=8)
    assert [reply.text if isinstance(reply, Reply) else "failed" for reply in replies] == [
        "failed" if number == 3 else str(number) for number in range(12)
    ]
    assert provider.most_active == 4


def test_an_answer_streams_piece_by_piece_with_its_usage() -> None:
    pieces = ["The ", "sky", " is ", "蓝色", "。"]
    gate = threading.Event()
    with serve(Scripted(pieces=pieces, gate=gate)) as provider:
        stream = model_for(provider).stream(PROMPT, max_tokens=64)
        got = [next(stream)]
        gate.set()
        got += stream
    *shown, reply = got
    assert shown == pieces
    assert isinstance(reply, Reply)
    assert (reply.text, reply.cut) == ("The sky is 蓝色。", False)
    assert (reply.usage.llm_calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 100, 5)


def test_stopping_closes_the_connection() -> None:
    with serve(Scripted(pieces=["word "] * 400, between=0.02)) as provider:
        with closing(model_for(provider).stream(PROMPT, max_tokens=64)) as stream:  # type: ignore[type-var]
            assert next(stream) == "word "
        assert provider.disconnected.wait(20)


def test_a_cut_stream_gives_what_came_then_the_error() -> None:
    got: list[str | Reply] = []
    with (
        serve(Scripted(pieces=["one ", "two ", "three"], cut_after=2)) as provider,
        pytest.raises(ProviderUnavailableError) as cut,
    ):
        got.extend(model_for(provider).stream(PROMPT, max_tokens=64))
    assert got == ["one ", "two "]
    assert cut.value.code == "provider_cut"
    assert len(provider.chats()) == 1


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["<think>", "secret", "</think>", "\n\nYes"], "Yes"),
        (["<thi", "nk>sec", "ret</th", "ink>Y", "es"], "Yes"),
        (["<think>never closed"], ""),
    ],
)
def test_thoughts_are_never_shown(pieces: list[str], text: str) -> None:
    with serve(Scripted(pieces=pieces)) as provider:
        *shown, reply = streamed(model_for(provider))
    assert "".join(str(piece) for piece in shown).strip() == text
    assert isinstance(reply, Reply)
    assert reply.text == text


def test_an_empty_reply_and_a_refusal_are_empty_replies() -> None:
    for scripted in (Scripted(text=""), Scripted(refusal="I cannot help with that.")):
        with serve(scripted) as provider:
            reply = ask(model_for(provider))
        assert isinstance(reply, Reply)
        assert reply.text == ""


def test_ollama_tells_how_much_of_a_prompt_it_reads() -> None:
    for length, expected, short in ((16384, 8192, False), (4096, 4096, True), (None, 4096, True)):
        with serve(Scripted()) as provider:
            provider.context_length = length
            model = model_for(provider, kind="ollama", ollama_context=8192)
            assert model.context_tokens() == expected
            assert model.context_tokens() == expected
            assert model.context_is_short is short
        assert [item.path for item in provider.received] == ["/api/generate", "/api/ps"]


def test_each_role_goes_its_own_way() -> None:
    settings = load_settings(
        data_dir=Path("none"),
        llm_provider="ollama",
        grade_provider="dashscope",
        grade_model="qwen-flash",
        rewrite_provider="embedded",
        ollama_url="http://host:11434/v1/",
    )
    answer, grade = find_endpoint(settings, role=Role.ANSWER), find_endpoint(settings, role=Role.GRADE)
    assert answer is not None
    assert grade is not None
    assert (answer.url, answer.native_url, answer.model) == ("http://host:11434/v1", "http://host:11434", "qwen3:4b")
    assert grade.name == "dashscope/qwen-flash"
    assert find_endpoint(settings, role=Role.REWRITE) is None


def test_a_compatible_provider_needs_a_model_name() -> None:
    with pytest.raises(ConfigurationError, match="model name"):
        find_endpoint(load_settings(data_dir=Path("none"), llm_provider="openai"), role=Role.ANSWER)
