"""The LangChain stores that can hold a knowledge base's vectors, each with what LangChain has no words for."""

from __future__ import annotations

import importlib
import pickle
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from chroma_client import without_password
from config import Settings
from errors import ConfigurationError, StoreError, StoreLockedError, store_failure
from vector_store import Vectors

_FIELD = "pk"
_CLIENT_ERRORS = {
    "pymilvus.exceptions": "MilvusException",
    "qdrant_client.http.exceptions": "ApiException",
    "langchain_qdrant.qdrant": "QdrantVectorStoreError",
    "httpx": "HTTPError",
}
_LOCAL = {"milvus": "milvus.db", "qdrant": "qdrant"}
_sharing = threading.Lock()
_clients: dict[str, tuple[Any, int]] = {}


@dataclass(frozen=True, slots=True)
class Backend:
    """A LangChain store; `within` makes its filter argument for some documents.

    `drop` removes the collection, `count` counts it, `present` returns those of some ids that are in it: what
    LangChain has no words for, and a store of the user's own lacks.
    """

    store: VectorStore
    within: Callable[[Sequence[str]], dict[str, Any]]
    close: Callable[[], object] = lambda: None
    drop: Callable[[], object] | None = None
    count: Callable[[], int] | None = None
    present: Callable[[list[str]], Iterable[str]] | None = None


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


def open_backend(settings: Settings, *, folder: Path, collection: str, vectors: ReadyVectors) -> Backend:
    """Open the store that `CRAG_VECTOR_STORE` names, its collection made when it is not there yet.

    :raises ConfigurationError: nothing is known under this name, or its package is not installed.
    :raises StoreError: it cannot be opened.
    """
    name = settings.vector_store
    url = settings.vector_store_url
    try:
        match name:
            case "milvus":
                return _milvus(vectors, collection=collection, url=url or str(folder / _LOCAL[name]))
            case "qdrant":
                return _qdrant(vectors, collection=collection, url=url or str(folder / _LOCAL[name]))
            case _ if ":" in name:
                return _custom(vectors, collection=collection, url=url, function=name)
            case _:
                raise _unknown(name, reason="")
    except (ImportError, AttributeError) as error:
        raise _unknown(name, reason=str(error)) from error
    except failures() as error:
        raise _unopened(error, name=name, url=url, folder=folder) from error


def failures() -> tuple[type[Exception], ...]:
    """Return what a store may raise: the usual, and the errors of the clients in use, which share no base class."""
    found: list[type[Exception]] = [
        *(sqlite3.Error, OSError, ValueError, RuntimeError, LookupError),
        pickle.UnpicklingError,
    ]
    for module, name in _CLIENT_ERRORS.items():
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)


def _unopened(error: Exception, *, name: str, url: str, folder: Path) -> StoreError:
    """Return why a store cannot be opened; only what is wrong in a local store's own files is damage."""
    if "://" in url:
        where = without_password(url)
        text = f"{name} at {where}: {str(error).replace(url, where)}"
        return StoreError(text, hint="check it", code="store_unreachable", path=where)
    where = url or str(folder / _LOCAL[name]) if name in _LOCAL else name
    if name == "milvus" and _is_held(Path(where) / "LOCK"):
        return StoreLockedError(f"{where}: {error}", hint="close it in the other process, or wait", path=where)
    failure = store_failure(error, path=where, local=name in _LOCAL)
    if name == "qdrant" and isinstance(error, (ValueError, LookupError, pickle.UnpicklingError)):
        failure.code = "store_damaged"
    return failure


def _is_held(lock: Path) -> bool:
    """Tell whether another process holds a lock file (Milvus Lite only says that it could not be opened)."""
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


def _unknown(name: str, *, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"CRAG_VECTOR_STORE={name!r} cannot be used{': ' * bool(reason)}{reason}",
        hint="use chroma, milvus (pip install langchain-milvus), qdrant (pip install langchain-qdrant)"
        " or module:function",
        name="CRAG_VECTOR_STORE",
    )


def _milvus(vectors: ReadyVectors, *, collection: str, url: str) -> Backend:
    from langchain_milvus import Milvus
    from pymilvus import DataType, MilvusClient

    client = MilvusClient(uri=url)
    if not client.has_collection(collection):
        # Milvus of LangChain reads the fields of a collection when it is opened, and never those of one made later.
        schema = client.create_schema()
        schema.add_field(_FIELD, DataType.VARCHAR, is_primary=True, max_length=64)
        schema.add_field("text", DataType.VARCHAR, max_length=256)
        schema.add_field("document_id", DataType.VARCHAR, max_length=256)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=vectors.dimension)
        client.create_collection(collection, schema=schema)
    client.close()
    store = Milvus(
        vectors,
        collection_name=collection,
        connection_args={"uri": url},
        index_params={"index_type": "AUTOINDEX", "metric_type": "COSINE"},
        consistency_level="Strong",
        primary_field=_FIELD,
    )

    def within(document_ids: Sequence[str]) -> dict[str, Any]:
        return {"expr": f"document_id in {list(document_ids)!r}"}

    def count() -> int:
        return int(store.client.query(collection, output_fields=["count(*)"])[0]["count(*)"])

    def present(keys: list[str]) -> list[str]:
        return [row[_FIELD] for row in store.client.get(collection, ids=keys, output_fields=[_FIELD])]

    return Backend(
        store,
        within,
        close=store.client.close,
        drop=lambda: store.client.drop_collection(collection),
        count=count,
        present=present,
    )


def _qdrant(vectors: ReadyVectors, *, collection: str, url: str) -> Backend:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(url=url) if "://" in url else _shared(url, make=lambda: QdrantClient(path=url))
    if not client.collection_exists(collection):
        size = models.VectorParams(size=vectors.dimension, distance=models.Distance.COSINE)
        client.create_collection(collection, vectors_config=size)
    # What it would check first is the vectors' length, which an old generation may have another of.
    store = QdrantVectorStore(client, collection_name=collection, embedding=vectors, validate_collection_config=False)

    def within(document_ids: Sequence[str]) -> dict[str, Any]:
        match = models.MatchAny(any=list(document_ids))
        return {"filter": models.Filter(must=[models.FieldCondition(key="metadata.document_id", match=match)])}

    def close() -> None:
        if "://" in url or _unshared(url):
            client.close()

    def present(keys: list[str]) -> list[str]:
        return [str(found.id) for found in client.retrieve(collection, keys, with_payload=False)]

    return Backend(
        store,
        within,
        close=close,
        drop=lambda: client.delete_collection(collection),
        count=lambda: client.count(collection, exact=True).count,
        present=present,
    )


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

    return Backend(store, within)
