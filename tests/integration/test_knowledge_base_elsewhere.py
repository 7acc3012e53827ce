"""A knowledge base whose vectors are on a Chroma server or in a LangChain store: the same life, the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from errors import EmbeddingMismatchError, StoreError
from knowledge_base import KnowledgeBase
from langchain_store import LangChainStore, _key
from tests.integration.helpers_memory_store import forget, held
from tests.integration.helpers_server import chroma_server
from tests.integration.helpers_store import (
    LineLoader,
    WordEmbedder,
    find,
    open_base,
    write_library,
    write_pdf,
)

OWN = "tests.integration.helpers_memory_store:make"
PLACES = ["server", "qdrant", "milvus", OWN]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(params=PLACES)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    place = request.param
    if place in {"qdrant", "milvus"}:
        pytest.importorskip(f"langchain_{place}", reason=f"langchain-{place} is not installed")
    if place == "milvus":
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    forget()
    values = {"chroma_url": request.getfixturevalue("server")} if place == "server" else {"vector_store": place}
    with open_base(tmp_path, **values) as opened:
        yield opened


def test_whole_life_away_from_the_embedded_store(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=3)
    write_pdf(base.files_dir / "a.pdf", pages=[["Barges carry slate down the canal."]])
    report = base.build()
    assert report.chunks == base.status().vectors == base.status().chunks > 3
    assert find(base, "barges slate", limit=1) == ["Barges carry slate down the canal."]
    near = base.dense(base.embedder.embed_queries(["barges carry slate down the canal."])[0], limit=3)
    assert near[0][1] == pytest.approx(1.0, abs=1e-3)
    assert near[1][1] < 0.9
    assert len(find(base, "heron", limit=9, files=["file-0001.pdf"])) < report.chunks
    base.build(rebuild=True)
    assert base.status().vectors == report.chunks
    base.delete("a.pdf")
    assert find(base, "barges slate", limit=1) != ["Barges carry slate down the canal."]
    assert base.status().vectors == base.status().chunks == report.chunks - 1


def test_two_installations_on_one_server_do_not_mix(tmp_path: Path, server: str) -> None:
    for name in ("one", "two"):
        with open_base(tmp_path / name, chroma_url=server) as base:
            write_pdf(base.files_dir / f"{name}.pdf", pages=[[f"The {name} heron waits."]])
            base.build()
    for name in ("one", "two"):
        with open_base(tmp_path / name, chroma_url=server) as base:
            assert find(base, "heron") == [f"The {name} heron waits."]
            assert base.status().vectors == 1


def test_dead_server_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "server") as url, open_base(tmp_path, chroma_url=url) as base:
        write_library(base.files_dir, files=1)
        base.build()
    with open_base(tmp_path, chroma_url=url) as base:
        with pytest.raises(StoreError) as caught:
            find(base, "heron")
        assert caught.value.code == "store_unreachable"
        with pytest.raises(StoreError):
            base.build(rebuild=True)
        assert not list(base.base.folder.glob("damaged-*"))


def test_changed_embedder_is_explained_and_a_rebuild_heals_it(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2)
    base.build()
    base.close()
    other = WordEmbedder(name="other words", dimension=32)
    with KnowledgeBase(base.settings, embedder=other, loader=LineLoader()) as changed:
        assert changed.status().mismatch == "embedder"
        assert [each.status for each in changed.documents()] == ["indexed", "indexed"]
        with pytest.raises(EmbeddingMismatchError):
            find(changed, "heron")
        with pytest.raises(EmbeddingMismatchError):
            changed.build()
        changed.build(rebuild=True)
        assert changed.status().mismatch == ""
        assert changed.status().vectors == changed.status().chunks > 0
        assert find(changed, "heron")


def langchain_store(base: KnowledgeBase) -> LangChainStore:
    generation = base._answering.current()
    assert generation is not None
    assert isinstance(generation.store, LangChainStore)
    return generation.store


@pytest.fixture(params=["qdrant", "milvus"])
def counted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A filled knowledge base in a LangChain store that can tell what it holds."""
    pytest.importorskip(f"langchain_{request.param}", reason=f"langchain-{request.param} is not installed")
    if request.param == "milvus":
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    with open_base(tmp_path, vector_store=request.param) as opened:
        write_library(opened.files_dir, files=3)
        opened.build()
        yield opened


def test_vectors_lost_behind_our_back_are_seen_and_written_again(counted: KnowledgeBase) -> None:
    whole = counted.status().chunks
    store = langchain_store(counted)
    ids = [_key(key) for key, _ in store.query(counted.embedder.embed_queries(["heron"])[0], limit=2)]
    assert store._backend.store.delete(ids=ids)
    assert counted.status().vectors == whole - 2
    assert counted.build().chunks == counted.status().vectors == whole
    assert len(find(counted, "heron", limit=whole)) == whole


def test_collection_lost_behind_our_back_is_made_and_filled_again(counted: KnowledgeBase) -> None:
    whole = counted.status().chunks
    drop = langchain_store(counted)._backend.drop
    assert drop is not None
    drop()
    counted.close()
    with KnowledgeBase(counted.settings, embedder=counted.embedder, loader=counted.loader) as again:
        assert again.status().vectors == 0
        assert again.build().chunks == again.status().vectors == whole
        assert len(find(again, "heron", limit=whole)) == whole


def test_rebuilds_leave_neither_vectors_nor_ledgers_behind(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2)
    for _ in range(3):
        base.build(rebuild=True)
    assert base.status().vectors == base.status().chunks > 0
    ledgers = [path.name for path in (base.base.folder / "vectors").glob("ledger-*")]
    if base.settings.vector_store == "chroma":
        assert ledgers == []
        return
    store = langchain_store(base)
    assert {name.partition(".")[0] for name in ledgers} == {store._path.stem}
    if base.settings.vector_store == OWN:
        assert sum(held().values()) == base.status().chunks
