"""Tests each model role for the settings panel and `doctor`: the address tried, the latency, what to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent_model import Failure, Prompt, build_chat_model
from endpoints import Endpoint, Role, find_endpoint
from errors import CragError, ProviderResponseError
from llm_errors import typed

if TYPE_CHECKING:
    from config import Settings

_PING = Prompt("You are tested for readiness.", "Reply with the one word: yes")


@dataclass(frozen=True, slots=True)
class Probe:
    """The test of one role; `code` and `values` are the error's i18n key under `error.` and its values."""

    role: str
    provider: str
    model: str
    url: str
    ok: bool
    seconds: float = 0.0
    code: str = ""
    values: tuple[tuple[str, object], ...] = ()
    hint: str = ""


def probe_roles(settings: Settings) -> list[Probe]:
    """Test answering, grading, rewriting and embedding, each with one small call; never raises a CragError."""
    from provider_embeddings import find_embedding_endpoint

    probes = [
        _probe(role.value, find=partial(find_endpoint, settings, role=role), call=_asker(settings, role=role))
        for role in Role
    ]
    embed = _probe("embed", find=lambda: find_embedding_endpoint(settings), call=lambda: _embed(settings))
    return [*probes, embed]


def _asker(settings: Settings, *, role: Role) -> Callable[[], None]:
    def ask() -> None:
        model = build_chat_model(settings, role=role)
        assert model is not None
        (reply,) = model.ask([_PING], max_tokens=256, logprobs=role is Role.GRADE)
        if isinstance(reply, Failure):
            raise reply.error
        if not reply.text:
            raise typed(ProviderResponseError, code="provider_empty", endpoint=model.endpoint)

    return ask


def _embed(settings: Settings) -> None:
    from provider_embeddings import ProviderEmbedder

    ProviderEmbedder(settings).embed_queries(["ready"])


def _probe(role: str, *, find: Callable[[], Endpoint | None], call: Callable[[], None]) -> Probe:
    started = time.perf_counter()
    endpoint = None
    try:
        endpoint = find()
        if endpoint is None:
            return Probe(role, provider="embedded", model="", url="", ok=True)
        call()
    except CragError as error:
        provider, model, url = (endpoint.provider, endpoint.model, endpoint.url) if endpoint else ("", "", "")
        return Probe(
            role,
            provider=provider,
            model=model,
            url=url,
            ok=False,
            seconds=time.perf_counter() - started,
            code=error.code,
            values=tuple(error.values.items()),
            hint=error.hint,
        )
    seconds = time.perf_counter() - started
    return Probe(role, provider=endpoint.provider, model=endpoint.model, url=endpoint.url, ok=True, seconds=seconds)
