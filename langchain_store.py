"""Any LangChain vector store as the store: Milvus, Qdrant, or what a function of yours returns.

LangChain's interface adds, deletes by id and searches; it neither lists nor counts. So a small SQLite ledger beside
the catalogue notes which ids were written. A row is noted before its vector is written and completed after, so that a
killed write is done again.
"""

from __future__ import annotations

import importlib
import sqlite3
import sys
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from config import Settings
from errors import ConfigurationError, StoreError
from vector_store import Entry, Vectors

_BATCH = 500
_IDS = uuid.UUID("6a1f2a52-1f0e-4d0c-9a52-0d6f3f1f7c11")
_CLIENT_ERRORS = {
    "pymilvus.exceptions": "MilvusException",
    "qdrant_client.http.exceptions": "ApiException",
    "httpx": "HTTPError",
}
_sharing = threading.Lock()
_clients: dict[str, tuple[Any, int]] = {}
_LEDGER = "CREATE TABLE IF NOT EXISTS ledger (id TEXT PRIMARY KEY, document_id TEXT NOT NULL, digest TEXT NOT NULL);"


@dataclass(frozen=True, slots=True)
class Backend:
    """A LangChain store; `within` makes its filter argument for some documents, `drop` removes the collection."""

    store: VectorStore
    within: Callable[[Sequence[str]], dict[str, Any]]
    drop: Callable[[], object]
    close: Callable[[], object]


class ReadyVectors(Embeddings):
    """Hands LangChain the vectors that were made already: a text is the key of its vector."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._ready = threading.local()

    def offer(self, vectors: dict[str, Vectors]) -> None:
        """Set the vectors that this thread's next call may ask for."""
        self._ready.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors offered under these keys; a store that probes for the dimension gets a unit vector."""
        ready: dict[str, Vectors] = getattr(self._ready, "vectors", {})
        probe = np.eye(1, self.dimension, dtype=np.float32)[0]
        return [ready.get(text, probe).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector offered under this key."""
        return self.embed_documents([text])[0]


class LangChainStore:
    """A LangChain vector store with its ledger; scores must be cosine similarities or cosine distances.

    :raises StoreError: the store or its ledger fails.
    """

    def __init__(self, backend: Backend, *, vectors: ReadyVectors, ledger: Path, where: str) -> None:
        self._backend = backend
        self._vectors = vectors
        self._where = where
        self._lock = threading.RLock()
        with self._guarded():
            ledger.parent.mkdir(parents=True, exist_ok=True)
            self._ledger = sqlite3.connect(ledger, isolation_level=None, check_same_thread=False, timeout=30.0)
            self._ledger.executescript(f"PRAGMA journal_mode = WAL; {_LEDGER}")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except _failures() as error:
            text = f"{self._where}: {error}"
            raise StoreError(text, hint="check the store", path=self._where, reason=error) from error

    def upsert(self, entries: Sequence[Entry], *, vectors: Vectors) -> None:
        """Write in batches: note, remove what was there, write, complete the note."""
        for start in range(0, len(entries), _BATCH):
            part = entries[start : start + _BATCH]
            with self._guarded():
                self._note([(entry.id, entry.document_id, "") for entry in part])
                keys = [_key(entry.id) for entry in part]
                self._backend.store.delete(ids=keys)
                ready = dict(zip((entry.id for entry in part), vectors[start : start + _BATCH], strict=True))
                self._vectors.offer(ready)
                documents = [Document(entry.id, metadata={"document_id": entry.document_id}) for entry in part]
                self._backend.store.add_documents(documents, ids=keys)
                self._note([(entry.id, entry.document_id, entry.digest) for entry in part])

    def _note(self, rows: Sequence[tuple[str, str, str]]) -> None:
        self._ledger.execute("BEGIN IMMEDIATE")
        self._ledger.executemany("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?)", rows)
        self._ledger.execute("COMMIT")

    def delete(self, document_id: str) -> None:
        """Remove every vector of a document."""
        self.delete_ids(self.digests(document_id))

    def delete_ids(self, ids: Collection[str]) -> None:
        """Remove single vectors, then their notes."""
        ordered = list(ids)
        for start in range(0, len(ordered), _BATCH):
            part = ordered[start : start + _BATCH]
            with self._guarded():
                self._backend.store.delete(ids=[_key(each) for each in part])
                self._ledger.executemany("DELETE FROM ledger WHERE id = ?", [(each,) for each in part])

    def digests(self, document_id: str) -> dict[str, str]:
        """Return chunk id → digest from the ledger."""
        with self._guarded():
            rows = self._ledger.execute("SELECT id, digest FROM ledger WHERE document_id = ?", (document_id,))
            return dict(rows.fetchall())

    def query(self, vector: Vectors, *, limit: int, document_ids: Collection[str] = ()) -> list[tuple[str, float]]:
        """Return the store's nearest; ascending scores are taken as distances."""
        with self._guarded():
            if not self._ledger.execute("SELECT 1 FROM ledger LIMIT 1").fetchone():
                return []
        extra = self._backend.within(list(document_ids)) if document_ids else {}
        key = "question"
        with self._guarded():
            self._vectors.offer({key: vector})
            found = self._backend.store.similarity_search_with_score(key, k=limit, **extra)
        scores = [float(score) for _, score in found]
        if scores and scores[0] < scores[-1]:
            scores = [1.0 - score for score in scores]
        return [(document.page_content, score) for (document, _), score in zip(found, scores, strict=True)]

    def count(self) -> int:
        """Return how many vectors the ledger notes."""
        with self._guarded():
            return int(self._ledger.execute("SELECT count(*) FROM ledger").fetchone()[0])

    def drop(self) -> None:
        """Remove the whole collection and its notes."""
        with self._guarded():
            self._backend.drop()
            self._ledger.execute("DELETE FROM ledger")

    def close(self) -> None:
        """Close the ledger and the store."""
        self._ledger.close()
        self._backend.close()


def open_langchain_store(settings: Settings, *, folder: Path, collection: str, dimension: int) -> LangChainStore:
    """Open the store that `CRAG_VECTOR_STORE` names: milvus, qdrant, or `module:function`.

    The function gets the collection's name, `Embeddings` to hand to the store, and `CRAG_VECTOR_STORE_URL`, and
    returns a LangChain VectorStore with cosine scores.
    :raises ConfigurationError: nothing is known under this name, or its package is not installed.
    :raises StoreError: it cannot be opened.
    """
    vectors = ReadyVectors(dimension)
    folder.mkdir(parents=True, exist_ok=True)
    name = settings.vector_store
    url = settings.vector_store_url
    try:
        match name:
            case "milvus":
                backend = _milvus(vectors, collection=collection, url=url or str(folder / "milvus.db"))
            case "qdrant":
                backend = _qdrant(vectors, collection=collection, url=url or str(folder / "qdrant"))
            case _ if ":" in name:
                backend = _custom(vectors, collection=collection, url=url, function=name)
            case _:
                raise _unknown(name, reason="")
    except (ImportError, AttributeError) as error:
        raise _unknown(name, reason=str(error)) from error
    except _failures() as error:
        where = url or str(folder)
        code = "store_unreachable" if "://" in where else "store_damaged"
        raise StoreError(f"{name} at {where}: {error}", hint="check it", code=code, path=where, reason=error) from error
    return LangChainStore(backend, vectors=vectors, ledger=folder / f"ledger-{collection}.sqlite3", where=url or name)


def _unknown(name: str, *, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"CRAG_VECTOR_STORE={name!r} cannot be used{': ' * bool(reason)}{reason}",
        hint="use chroma, milvus (pip install langchain-milvus), qdrant (pip install langchain-qdrant)"
        " or module:function",
        name="CRAG_VECTOR_STORE",
    )


def _key(chunk_id: str) -> str:
    """Return a UUID for a chunk id: the one form of id that every store takes."""
    return str(uuid.uuid5(_IDS, chunk_id))


def _failures() -> tuple[type[Exception], ...]:
    """Return what a store may raise: the usual, and the errors of the clients in use, which share no base class."""
    found: list[type[Exception]] = [sqlite3.Error, OSError, ValueError, RuntimeError, LookupError]
    for module, name in _CLIENT_ERRORS.items():
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)


def _milvus(vectors: ReadyVectors, *, collection: str, url: str) -> Backend:
    from langchain_milvus import Milvus

    store = Milvus(
        vectors,
        collection_name=collection,
        connection_args={"uri": url},
        index_params={"index_type": "AUTOINDEX", "metric_type": "COSINE"},
        consistency_level="Strong",
    )

    def within(document_ids: Sequence[str]) -> dict[str, Any]:
        return {"expr": f"document_id in {list(document_ids)!r}"}

    return Backend(store, within, lambda: store.client.drop_collection(collection), store.client.close)


def _qdrant(vectors: ReadyVectors, *, collection: str, url: str) -> Backend:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(url=url) if "://" in url else _shared(url, make=lambda: QdrantClient(path=url))
    if not client.collection_exists(collection):
        size = models.VectorParams(size=vectors.dimension, distance=models.Distance.COSINE)
        client.create_collection(collection, vectors_config=size)
    store = QdrantVectorStore(client, collection_name=collection, embedding=vectors)

    def within(document_ids: Sequence[str]) -> dict[str, Any]:
        match = models.MatchAny(any=list(document_ids))
        return {"filter": models.Filter(must=[models.FieldCondition(key="metadata.document_id", match=match)])}

    def close() -> None:
        if "://" in url or _unshared(url):
            client.close()

    return Backend(store, within, lambda: client.delete_collection(collection), close)


def _shared(folder: str, *, make: Callable[[], Any]) -> Any:
    """Return the one client of a local folder, which only one may have open; count who uses it."""
    with _sharing:
        client, users = _clients.get(folder) or (make(), 0)
        _clients[folder] = (client, users + 1)
        return client


def _unshared(folder: str) -> bool:
    """Count one user less; tell whether nobody is left."""
    with _sharing:
        client, users = _clients.pop(folder)
        if users > 1:
            _clients[folder] = (client, users - 1)
        return users == 1


def _custom(vectors: ReadyVectors, *, collection: str, url: str, function: str) -> Backend:
    module, _, name = function.partition(":")
    make = getattr(importlib.import_module(module), name)
    store: VectorStore = make(collection=collection, embedding=vectors, url=url)

    def within(document_ids: Sequence[str]) -> dict[str, Any]:
        return {"filter": {"document_id": {"$in": list(document_ids)}}}

    return Backend(store, within, lambda: None, lambda: None)
