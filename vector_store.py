"""Where the vectors are: an embedded Chroma, a Chroma server, or any LangChain vector store.

A store holds chunk id → vector with the document it belongs to; texts and provenance are in the catalogue.
Vectors are always ours (L2-normalised); similarities are cosines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from config import Settings
from errors import ConfigurationError, DiskFullError, StoreError, is_disk_full

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as ChromaCollection
    from chromadb.config import Settings as ChromaSettings

Vectors = NDArray[np.float32]
_READ = 5000
_EPOCHS = 50
_UNBORN = "Nothing found on disk"
_TRIES, _PAUSE = 20, 0.02
_opening = threading.Lock()


@dataclass(frozen=True, slots=True)
class Entry:
    """One vector's key: chunk id, document id, and a digest of the text that was embedded."""

    id: str
    document_id: str
    digest: str


class VectorStore(Protocol):
    """What a knowledge base needs of one collection of vectors."""

    def upsert(self, entries: Sequence[Entry], *, vectors: Vectors) -> None:
        """Write vectors `[n, dimension]` under their ids, replacing what is there; any n."""
        ...

    def delete(self, document_id: str) -> None:
        """Remove every vector of a document; unknown documents are no error."""
        ...

    def delete_ids(self, ids: Collection[str]) -> None:
        """Remove single vectors; unknown ids are no error."""
        ...

    def digests(self, document_id: str) -> dict[str, str]:
        """Return chunk id → digest of a document's vectors."""
        ...

    def query(self, vector: Vectors, *, limit: int, document_ids: Collection[str] = ()) -> list[tuple[str, float]]:
        """Return (chunk id, cosine) of the nearest vectors, best first; within `document_ids` when given."""
        ...

    def count(self) -> int:
        """Return how many vectors there are."""
        ...

    def drop(self) -> None:
        """Remove the whole collection."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class ChromaStore:
    """One cosine collection of a Chroma client, embedded or on a server.

    :raises StoreError: Chroma fails; `code` is store_damaged when its folder cannot be read.
    """

    def __init__(self, client: ClientAPI, *, collection: str, dimension: int, where: str) -> None:
        self._client = client
        self._name = collection
        self._where = where
        with self._guarded():
            self._batch = client.get_max_batch_size()
            self._collection: ChromaCollection = client.get_or_create_collection(
                collection,
                configuration={"hnsw": {"space": "cosine", "ef_construction": 128, "ef_search": 128}},
                metadata={"dimension": dimension},
                embedding_function=None,
            )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with chroma_errors(self._where):
            yield

    def upsert(self, entries: Sequence[Entry], *, vectors: Vectors) -> None:
        """Write in parts of the client's largest batch."""
        for start in range(0, len(entries), self._batch):
            part = entries[start : start + self._batch]
            with self._guarded():
                self._collection.upsert(
                    ids=[entry.id for entry in part],
                    embeddings=vectors[start : start + self._batch],
                    metadatas=[{"document_id": entry.document_id, "digest": entry.digest} for entry in part],
                )

    def delete(self, document_id: str) -> None:
        """Remove every vector of a document."""
        self.delete_ids(self.digests(document_id))

    def delete_ids(self, ids: Collection[str]) -> None:
        """Remove single vectors in parts of the client's largest batch."""
        ordered = list(ids)
        for start in range(0, len(ordered), self._batch):
            with self._guarded():
                self._collection.delete(ids=ordered[start : start + self._batch])

    def digests(self, document_id: str) -> dict[str, str]:
        """Return chunk id → digest of a document's vectors."""
        found: dict[str, str] = {}
        while True:
            with self._guarded():
                part = self._collection.get(
                    where={"document_id": document_id}, include=["metadatas"], limit=_READ, offset=len(found)
                )
            metadatas: Sequence[Mapping[str, Any]] = part["metadatas"] or []
            found |= {key: str(data["digest"]) for key, data in zip(part["ids"], metadatas, strict=True)}
            if len(part["ids"]) < _READ:
                return found

    def query(self, vector: Vectors, *, limit: int, document_ids: Collection[str] = ()) -> list[tuple[str, float]]:
        """Return the nearest vectors of Chroma's HNSW index; wait a moment for one that its first writer is making."""
        where: dict[str, Any] | None = {"document_id": {"$in": list(document_ids)}} if document_ids else None
        for left in reversed(range(_TRIES)):
            try:
                with self._guarded():
                    found = self._collection.query(
                        query_embeddings=vector[np.newaxis], n_results=limit, include=["distances"], where=where
                    )
                break
            except StoreError as error:
                if not left or _UNBORN not in error.message:
                    raise
                time.sleep(_PAUSE)
        distances = (found["distances"] or [[]])[0]
        return [(key, 1.0 - float(distance)) for key, distance in zip(found["ids"][0], distances, strict=True)]

    def count(self) -> int:
        """Return how many vectors there are."""
        with self._guarded():
            return self._collection.count()

    def drop(self) -> None:
        """Remove the whole collection; one that is gone already is no error."""
        from chromadb.errors import NotFoundError

        with self._guarded():
            try:
                self._client.delete_collection(self._name)
            except NotFoundError:
                return

    def close(self) -> None:
        """Close the client, and the HTTP sessions that a server's client leaves open (chromadb 1.5.9)."""
        owners = (self._client, getattr(self._client, "_admin_client", None))
        sessions = [getattr(getattr(owner, "_server", None), "_session", None) for owner in owners]
        getattr(self._client, "close", lambda: None)()
        for session in sessions:
            if session is not None:
                session.close()


@contextmanager
def chroma_errors(where: str) -> Iterator[None]:
    """Turn what Chroma raises into StoreError that names the place.

    :raises StoreError: `store_gone` when the collection was removed meanwhile, `disk_full`, else `store`.
    """
    import httpx
    from chromadb.errors import ChromaError, NotFoundError

    try:
        yield
    except NotFoundError as error:
        raise StoreError(f"{where}: {error}", hint="ask again", code="store_gone", path=where, reason=error) from error
    except (ChromaError, ValueError, RuntimeError, httpx.HTTPError, OSError) as error:
        if is_disk_full(error):
            raise DiskFullError(error, path=where) from error
        raise StoreError(f"{where}: {error}", hint="check the store", path=where, reason=error) from error


def open_vector_store(
    settings: Settings, *, folder: Path, collection: str, dimension: int, epoch: int = 0
) -> VectorStore:
    """Open (or create) the collection where the settings say: server, LangChain store, or `folder`.

    Embedded stores of one `epoch` share what they hold in memory; another epoch reads the folder afresh.

    :raises StoreError: it cannot be opened.
    :raises ConfigurationError: `CRAG_CHROMA_URL` or `CRAG_VECTOR_STORE` names nothing known.
    """
    if settings.vector_store != "chroma":
        from langchain_store import open_langchain_store

        return open_langchain_store(settings, folder=folder, collection=collection, dimension=dimension)
    import chromadb
    from chromadb.config import Settings as ChromaSettings

    quiet = ChromaSettings(anonymized_telemetry=False)
    if settings.chroma_url:
        address = urlsplit(settings.chroma_url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise ConfigurationError(
                f"CRAG_CHROMA_URL={settings.chroma_url!r} is not an address",
                hint="use http://host:8000",
                name="CRAG_CHROMA_URL",
            )
        secure = address.scheme == "https"
        port = address.port or (443 if secure else 8000)
        try:
            client = chromadb.HttpClient(address.hostname, port=port, ssl=secure, settings=quiet)
        except (ValueError, OSError) as error:
            raise StoreError(
                f"no Chroma server at {settings.chroma_url}: {error}",
                hint="start it, or correct CRAG_CHROMA_URL",
                code="store_unreachable",
                path=settings.chroma_url,
            ) from error
        return ChromaStore(client, collection=collection, dimension=dimension, where=settings.chroma_url)
    with _opening:
        client = _embedded_client(folder, settings=quiet, epoch=epoch)
    return ChromaStore(client, collection=collection, dimension=dimension, where=str(folder))


def _embedded_client(folder: Path, *, settings: ChromaSettings, epoch: int) -> ClientAPI:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.errors import ChromaError

    folder.mkdir(parents=True, exist_ok=True)
    # Chroma shares one instance per spelling of a path.
    path = str(folder) + "/." * (epoch % _EPOCHS)
    try:
        return chromadb.PersistentClient(path, settings=settings)
    except (ChromaError, ValueError, RuntimeError, AttributeError, OSError) as error:
        # Chroma keeps a client that did not start and hands it out again; whatever is put in its place would fail too.
        getattr(SharedSystemClient, "_identifier_to_system", {}).pop(path, None)
        if is_disk_full(error):
            raise DiskFullError(error, path=folder) from error
        raise StoreError(
            f"{folder}: {error}", hint="cli.py build --rebuild", code="store_damaged", path=folder, reason=error
        ) from error
