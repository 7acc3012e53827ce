"""What all tests share: `--slow`, no model requests, no settings from the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from config import get_settings

os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


@pytest.fixture(autouse=True)
def clean_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees the settings, keys or addresses of the machine it runs on."""
    for name in list(os.environ):
        if name.startswith(("CRAG_", "OPENAI_", "DASH", "OLLAMA_", "TAVILY_")) and name != "CRAG_BENCH_DATA":
            monkeypatch.delenv(name)
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def no_model_requests() -> None:
    """No test reaches a real language model by accident."""
    from pydantic_ai import models

    models.ALLOW_MODEL_REQUESTS = False
