"""The contract of a vector store, run against every store: embedded Chroma, a Chroma server, LangChain stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from config import Settings
from errors import ConfigurationError, StoreError
from tests.integration.helpers_server import chroma_server
from tests.integration.helpers_store import settings_at
from vector_store import ChromaStore, Entry, Vectors, VectorStore, open_vector_store

DIMENSION = 8
STORES = ["chroma", "server", "qdrant", "milvus"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    match request.param:
        case "server":
            return settings_at(tmp_path, chroma_url=request.getfixturevalue("server"))
        case "qdrant" | "milvus" as kind:
            pytest.importorskip(f"langchain_{kind}", reason=f"langchain-{kind} is not installed")
            if kind == "milvus":
                pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
            return settings_at(tmp_path, vector_store=kind)
        case _:
            return settings_at(tmp_path)


@pytest.fixture
def store(place: Settings) -> Iterator[VectorStore]:
    opened = open_at(place)
    yield opened
    opened.drop()
    opened.close()


def open_at(place: Settings) -> VectorStore:
    return open_vector_store(
        place, folder=place.data_dir / "vectors", collection="kb_0123456789ab", dimension=DIMENSION
    )


def vectors(count: int, *, seed: int = 0) -> Vectors:
    drawn = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), dtype=np.float32)


def entries(count: int, *, document: str = "d0", digest: str = "x") -> list[Entry]:
    return [Entry(f"{document}-{number:05d}", document, digest) for number in range(count)]


def test_nearest_come_first_with_their_cosine(store: VectorStore) -> None:
    written = vectors(50)
    store.upsert(entries(50), vectors=written)
    asked = vectors(1, seed=9)[0]
    expected = np.argsort(-(written @ asked))[:5]
    found = store.query(asked, limit=5)
    assert [key for key, _ in found] == [f"d0-{number:05d}" for number in expected]
    assert [score for _, score in found] == pytest.approx((written @ asked)[expected].tolist(), abs=1e-4)


def test_upsert_replaces_and_never_doubles(store: VectorStore) -> None:
    store.upsert(entries(10), vectors=vectors(10))
    store.upsert(entries(10, digest="y"), vectors=vectors(10, seed=1))
    assert store.count() == 10
    assert set(store.digests("d0").values()) == {"y"}
    (key, score), *_ = store.query(vectors(10, seed=1)[3], limit=1)
    assert key == "d0-00003"
    assert score == pytest.approx(1.0, abs=1e-4)


def test_deleted_document_is_gone_and_others_stay(store: VectorStore) -> None:
    store.upsert(entries(10), vectors=vectors(10))
    store.upsert(entries(5, document="d1"), vectors=vectors(5, seed=1))
    store.delete("d0")
    store.delete("unknown")
    assert store.count() == 5
    assert store.digests("d0") == {}
    assert {key[:2] for key, _ in store.query(vectors(1)[0], limit=20)} == {"d1"}


def test_single_ids_are_deleted(store: VectorStore) -> None:
    store.upsert(entries(4), vectors=vectors(4))
    store.delete_ids(["d0-00001", "d0-00003", "unknown"])
    store.delete_ids([])
    assert store.digests("d0").keys() == {"d0-00000", "d0-00002"}


def test_filter_keeps_to_documents(store: VectorStore) -> None:
    for number in range(4):
        store.upsert(entries(5, document=f"d{number}"), vectors=vectors(5, seed=number))
    found = store.query(vectors(1, seed=2)[0], limit=20, document_ids=["d1", "d3"])
    assert len(found) == 10
    assert {key[:2] for key, _ in found} == {"d1", "d3"}


def test_empty_store_answers_nothing(store: VectorStore) -> None:
    assert store.count() == 0
    assert store.query(vectors(1)[0], limit=3) == []
    assert store.digests("d0") == {}
    store.upsert([], vectors=vectors(0))


def test_what_was_written_is_there_after_opening_again(place: Settings) -> None:
    first = open_at(place)
    first.upsert(entries(3), vectors=vectors(3))
    first.close()
    second = open_at(place)
    assert second.count() == 3
    second.drop()
    second.close()
    third = open_at(place)
    assert third.count() == 0
    third.drop()
    third.close()


def test_reader_from_before_the_first_vector_finds_it(place: Settings) -> None:
    reader = open_at(place)
    writer = open_at(place)
    writer.upsert(entries(5), vectors=vectors(5))
    assert reader.count() == 5
    assert reader.query(vectors(5)[3], limit=1)[0][0] == "d0-00003"
    writer.drop()
    writer.close()
    reader.close()


def test_more_than_one_batch_of_the_client_is_written(tmp_path: Path) -> None:
    store = open_at(settings_at(tmp_path))
    store.upsert(entries(6000), vectors=vectors(6000))
    assert store.count() == 6000
    assert len(store.digests("d0")) == 6000
    assert store.query(vectors(6000)[5999], limit=1)[0][0] == "d0-05999"
    store.delete("d0")
    assert store.count() == 0
    store.close()


def test_wrong_settings_and_dead_servers_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        open_at(settings_at(tmp_path, vector_store="nonesuch"))
    with pytest.raises(ConfigurationError):
        open_at(settings_at(tmp_path, chroma_url="not an address"))
    with pytest.raises(StoreError) as caught:
        open_at(settings_at(tmp_path, chroma_url="http://127.0.0.1:9"))
    assert caught.value.code == "store_unreachable"


def test_wrong_dimension_is_a_store_error(tmp_path: Path) -> None:
    store = open_at(settings_at(tmp_path))
    store.upsert(entries(1), vectors=vectors(1))
    with pytest.raises(StoreError):
        store.query(np.ones(DIMENSION + 1, dtype=np.float32), limit=1)
    store.close()


class Unborn:
    """A Chroma collection whose index is not made yet for its first queries, as during a first build (1.5.9)."""

    def __init__(self, collection: Any, *, queries: int) -> None:
        self.collection = collection
        self.left = queries

    def query(self, **arguments: Any) -> Any:
        from chromadb.errors import InternalError

        self.left -= 1
        if self.left >= 0:
            raise InternalError("Error creating hnsw segment reader: Nothing found on disk")
        return self.collection.query(**arguments)


def test_question_waits_for_an_index_that_another_thread_is_making(tmp_path: Path) -> None:
    store = open_at(settings_at(tmp_path))
    assert isinstance(store, ChromaStore)
    store.upsert(entries(5), vectors=vectors(5))
    store._collection = Unborn(store._collection, queries=3)  # type: ignore[assignment]
    assert len(store.query(vectors(1)[0], limit=5)) == 5
    store._collection = Unborn(store._collection, queries=1000)  # type: ignore[assignment]
    with pytest.raises(StoreError, match="Nothing found on disk"):
        store.query(vectors(1)[0], limit=5)
    store.close()
