"""The page starts on this machine only, unless somebody said who may use it from elsewhere."""

from __future__ import annotations

import argparse

import pytest

import verbs
from config import load_settings
from errors import ConfigurationError


@pytest.mark.parametrize(
    ("host", "allow"), [("127.0.0.1", ()), ("localhost", ()), ("0.0.0.0", ("ana@example.org",)), ("0.0.0.0", ("*",))]
)
def test_the_page_starts(host: str, allow: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def call(command: list[str], **_: object) -> int:
        started.append(command)
        return 0

    monkeypatch.setattr("verbs.subprocess.call", call)
    assert verbs.serve(load_settings(host=host, auth_allow=allow), argparse.Namespace(port=8700)) == 0
    assert host in started[0]
    assert "8700" in started[0]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_an_open_page_without_a_list_does_not_start(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verbs.subprocess.call", lambda *_, **__: pytest.fail("it started"))
    with pytest.raises(ConfigurationError) as caught:
        verbs.serve(load_settings(host=host), argparse.Namespace(port=None))
    assert caught.value.code == "host_open"
