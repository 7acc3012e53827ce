"""The test of each role says what was tried, how long it took and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config import load_settings
from doctor import examine
from i18n import LANGUAGES, translate
from llm_probe import probe_roles
from tests.integration.helpers_providers import Scripted, requests_allowed, serve, settings_for


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def test_every_role_that_works_says_where_and_how_fast() -> None:
    with serve(Scripted(text="yes")) as provider:
        settings = settings_for(
            provider,
            kind="ollama",
            embedding_provider="ollama",
            embedding_model="embedder",
            rewrite_provider="embedded",
        )
        probes = {probe.role: probe for probe in probe_roles(settings)}
    assert list(probes) == ["answer", "grade", "rewrite", "embed"]
    assert all(probe.ok for probe in probes.values())
    assert (probes["answer"].provider, probes["answer"].model, probes["answer"].url) == (
        "ollama",
        "known",
        provider.url,
    )
    assert probes["answer"].seconds > 0
    assert (probes["rewrite"].provider, probes["rewrite"].url) == ("embedded", "")
    assert probes["embed"].model == "embedder"


@pytest.mark.parametrize(
    ("scripted", "code", "said"),
    [
        (Scripted(status=401), "provider_auth", ("key", "密钥")),
        (Scripted(status=404, text="model not found"), "ollama_model", ("ollama pull known", "ollama pull known")),
        (Scripted(status=404, body=b"<html>"), "provider_url", ("/v1", "/v1")),
        (Scripted(status=500), "provider_server", ("500", "500")),
        (Scripted(text=""), "provider_empty", ("nothing", "没有写出")),
        (Scripted(hang=True), "provider_timeout", ("CRAG_LLM_TIMEOUT", "CRAG_LLM_TIMEOUT")),
    ],
)
def test_a_role_that_fails_says_what_to_do_in_both_languages(
    scripted: Scripted, code: str, said: tuple[str, str]
) -> None:
    with serve(scripted) as provider:
        settings = settings_for(
            provider,
            kind="ollama",
            grade_provider="embedded",
            llm_timeout=2.0 if scripted.hang else 30.0,
            rewrite_provider="embedded",
        )
        answer, grade, _, _ = probe_roles(settings)
    assert grade.ok
    assert (answer.ok, answer.code, answer.url) == (False, code, provider.url)
    words = [translate(f"error.{answer.code}", language=language, **dict(answer.values)) for language in LANGUAGES]
    assert said[1] in words[0]
    assert said[0] in words[1]
    assert all("{" not in text for text in words)


def test_a_wrong_setting_is_one_failed_role_not_an_error() -> None:
    probes = probe_roles(load_settings(llm_provider="openai", llm_model=""))
    assert [probe.ok for probe in probes] == [False, False, False, True]
    assert probes[0].code == "configuration"


def test_doctor_tells_each_role_with_its_address_once_and_the_time(tmp_path: Path) -> None:
    def answer(body: Any) -> Scripted:
        return Scripted(text="yes") if body["model"] == "known" else Scripted(status=401)

    with serve(answer) as provider:
        settings = settings_for(
            provider, grade_model="other", language="en", files_dir=tmp_path / "Files", data_dir=tmp_path / "data"
        )
        checks = {check.name: check for check in examine(settings, knowledge_base="default")}
    good, bad = checks["role answer"], checks["role grade"]
    assert (good.ok, bad.ok) == (True, False)
    for check in (good, bad):
        assert check.detail.count(provider.url) == 1
        assert re.search(r"\(\d+\.\d\d s\)$", check.detail)
        assert "sk-secret" not in f"{check.detail} {check.hint}"
    assert "refuses the key" in bad.detail
    assert "check the key" in bad.hint


def test_an_unreachable_server_speaks_of_docker() -> None:
    with serve(Scripted()) as provider:
        settings = settings_for(provider, kind="ollama", embedding_provider="ollama", embedding_model="embedder")
    for probe in probe_roles(settings):
        assert probe.code == "provider_unavailable"
        assert "host.docker.internal" in probe.hint
