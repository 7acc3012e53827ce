"""What a language model's service asks to wait, in both forms of the header."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from llm_errors import asked_wait


def refused(**headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    return httpx.HTTPStatusError("429", request=request, response=httpx.Response(429, headers=headers, request=request))


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"Retry-After": "7"}, 7.0), ({}, None), ({"Retry-After": "x"}, None)]
)
def test_seconds_are_taken_as_they_are(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(refused(**headers)) == seconds


def test_a_moment_becomes_the_seconds_until_then() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    seconds = asked_wait(refused(**{"Retry-After": moment}))
    assert seconds is not None
    assert 80 < seconds <= 90
