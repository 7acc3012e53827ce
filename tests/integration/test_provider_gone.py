"""A knowledge base whose embedding provider is down, in a fresh process: all but embedding goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from errors import EmbeddingMismatchError, ProviderUnavailableError
from knowledge_base import KnowledgeBase
from model_loop import close_model_loop
from provider_embeddings import ProviderEmbedder
from retriever import FOUND_BY_WORDS, HybridRetriever
from tests.integration.helpers_providers import Scripted, requests_allowed, serve, settings_for
from tests.integration.helpers_store import LineLoader, write_pdf

HERON = "The heron waits beside the weir until the water clears."
LAMP = "The lamp was bought in a shop that closed the same winter."


@pytest.fixture(scope="module", autouse=True)
def allowed() -> Iterator[None]:
    with requests_allowed():
        yield


def opened(settings: Settings) -> KnowledgeBase:
    """Open as a fresh process does: with an embedder that has asked nothing yet."""
    return KnowledgeBase(settings, embedder=ProviderEmbedder(settings), loader=LineLoader())


@pytest.fixture(params=["openai", "ollama"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a filled knowledge base at whose provider nobody listens any more."""
    places = {"files_dir": tmp_path / "Files", "data_dir": tmp_path / "data"}
    write_pdf(tmp_path / "Files" / "heron.pdf", pages=[[HERON]])
    write_pdf(tmp_path / "Files" / "lamp.pdf", pages=[[LAMP]])
    with serve(Scripted()) as provider:
        made = settings_for(
            provider, kind=request.param, embedding_provider=request.param, embedding_model="embedder", **places
        )
        with opened(made) as base:
            assert base.build().documents == 2
    close_model_loop()  # a fresh process has no connection left over
    return made


def test_all_but_embedding_goes_on(settings: Settings) -> None:
    with opened(settings) as base:
        assert [each.status for each in base.documents()] == ["indexed", "indexed"]
        status = base.status()
        assert (status.vectors, status.dimension, status.mismatch) == (2, 4, "")
        found = HybridRetriever(base, embedder=base.embedder, settings=settings).retrieve(
            "Where is the heron?", limit=3
        )
        assert found[0].text == HERON
        assert {document.warning for document in found} == {FOUND_BY_WORDS}
        base.delete("heron.pdf")
        assert [each.file for each in base.documents()] == ["lamp.pdf"]
        assert base.status().vectors == 1
        with pytest.raises(ProviderUnavailableError):
            base.build()
        with pytest.raises(ProviderUnavailableError):
            base.build(rebuild=True)
        assert base.status().vectors == 1


def test_another_embedder_is_named_without_asking_it(settings: Settings) -> None:
    with opened(settings.model_copy(update={"embedding_model": "known"})) as base:
        assert base.status().mismatch == "embedder"


def test_status_before_the_first_build_needs_no_provider(settings: Settings, tmp_path: Path) -> None:
    with opened(settings.model_copy(update={"data_dir": tmp_path / "other"})) as base:
        assert (base.status().documents, base.status().dimension) == (0, 0)


def test_vectors_of_another_length_under_the_same_name_are_a_mismatch(tmp_path: Path) -> None:
    write_pdf(tmp_path / "Files" / "heron.pdf", pages=[[HERON]])
    places: dict[str, Any] = {"files_dir": tmp_path / "Files", "data_dir": tmp_path / "data"}
    with serve(Scripted()) as provider:
        made = settings_for(provider, embedding_provider="openai", embedding_model="embedder", **places)
        with opened(made) as base:
            base.build()
        provider.dimension = 3
        with opened(made) as base:
            with pytest.raises(EmbeddingMismatchError):
                base.dense(base.embedder.embed_queries(["heron"])[0], limit=1)
            with pytest.raises(EmbeddingMismatchError):
                base.build()
            base.build(rebuild=True)
            assert base.status().dimension == 3
