"""Embeddings from a provider over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from config import load_settings
from errors import CancelledError, ConfigurationError, ProviderError, ProviderUnavailableError
from provider_embeddings import ProviderEmbedder, find_embedding_endpoint
from tests.integration.helpers_providers import FakeProvider, Scripted, requests_allowed, serve, settings_for


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def embedder_for(provider: FakeProvider, *, kind: str, **values: Any) -> ProviderEmbedder:
    chosen = {"embedding_provider": kind, "embedding_model": "embedder", **values}
    return ProviderEmbedder(settings_for(provider, kind=kind, **chosen))


@pytest.mark.parametrize(("kind", "batches"), [("openai", 1), ("ollama", 2), ("dashscope", 3)])
def test_vectors_come_in_order_normalised_and_in_batches(kind: str, batches: int) -> None:
    texts = ["x" * n for n in range(1, 26)]
    seen: list[tuple[int, int]] = []
    threads = set()

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        threads.add(threading.current_thread())

    with serve(Scripted()) as provider:
        provider.embed_limit = 10 if kind == "dashscope" else 100
        embedder = embedder_for(provider, kind=kind)
        vectors = embedder.embed_passages(texts, progress=progress)
        assert embedder.dimension == 4
        assert len(provider.received) == batches
    assert embedder.name == f"{kind}/embedder"
    assert vectors.dtype == np.float32
    assert vectors.shape == (25, 4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    # The first value of a raw vector is the text's length, the third is 1.
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 2], np.arange(1, 26), rtol=1e-4)
    assert seen[-1] == (25, 25)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert threads == {threading.current_thread()}


def test_no_text_gives_no_vectors_of_the_right_length() -> None:
    with serve(Scripted()) as provider:
        assert embedder_for(provider, kind="openai").embed_queries([]).shape == (0, 4)


@pytest.mark.parametrize(
    ("kind", "model", "code"),
    [("ollama", "absent", "ollama_model"), ("openai", "absent", "provider_model")],
)
def test_a_missing_model_is_named(kind: str, model: str, code: str) -> None:
    with serve(Scripted()) as provider, pytest.raises(ProviderError) as failed:
        embedder_for(provider, kind=kind, embedding_model=model).embed_queries(["x"])
    assert failed.value.code == code
    assert failed.value.values["model"] == model


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_nobody_listening_is_unavailable(kind: str) -> None:
    with serve(Scripted()) as provider:
        pass
    with pytest.raises(ProviderUnavailableError):
        embedder_for(provider, kind=kind).embed_queries(["x"])


def test_another_length_than_before_is_refused() -> None:
    with serve(Scripted()) as provider:
        embedder = embedder_for(provider, kind="openai")
        embedder.embed_queries(["x"])
        provider.dimension = 3
        with pytest.raises(ProviderError) as failed:
            embedder.embed_queries(["x"])
    assert failed.value.code == "provider_vectors"


def test_progress_can_stop_the_work() -> None:
    def stop(done: int, total: int) -> None:
        raise CancelledError("stopped")

    with serve(Scripted()) as provider:
        embedder = embedder_for(provider, kind="dashscope", llm_concurrency=1)
        with pytest.raises(CancelledError):
            embedder.embed_passages(["x"] * 2000, progress=stop)
        assert len(provider.received) < 200


def test_each_provider_has_a_default_model_or_asks_for_one() -> None:
    names = {
        kind: endpoint.model
        for kind in ("ollama", "dashscope", "openai")
        if (endpoint := find_embedding_endpoint(load_settings(embedding_provider=kind))) is not None
    }
    assert names == {"ollama": "bge-m3", "dashscope": "text-embedding-v4", "openai": "text-embedding-3-small"}
    with pytest.raises(ConfigurationError, match="model name"):
        find_embedding_endpoint(load_settings(embedding_provider="openai", openai_api_base="http://127.0.0.1:1/v1"))
    assert find_embedding_endpoint(load_settings()) is None
