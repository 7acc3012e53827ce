"""Where the vectors are: an embedded Chroma, a Chroma server, or any LangChain vector store.

A store holds chunk id → vector with the document it belongs to; texts and provenance are in the catalogue.
Vectors are always ours (L2-normalised); similarities are cosines.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chroma_client import chroma_errors, embedded_client, server_client, without_password
from config import Settings
from errors import StoreError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as ChromaCollection

Vectors = NDArray[np.float32]
_READ = 5000
_UNBORN = "Nothing found on disk"
_TRIES, _PAUSE = 20, 0.02


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

    :raises StoreError: Chroma fails; `code` as `chroma_client` says.
    """

    def __init__(self, client: ClientAPI, *, collection: str, dimension: int, where: str, local: bool = True) -> None:
        self._client = client
        self._name = collection
        self._where = where
        self._local = local
        try:
            with self._guarded():
                self._batch = client.get_max_batch_size()
                self._collection: ChromaCollection = client.get_or_create_collection(
                    collection,
                    configuration={"hnsw": {"space": "cosine", "ef_construction": 128, "ef_search": 128}},
                    metadata={"dimension": dimension},
                    embedding_function=None,
                )
        except StoreError:
            self.close()
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with chroma_errors(self._where, local=self._local):
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
    if settings.chroma_url:
        client = server_client(settings.chroma_url)
        where = without_password(settings.chroma_url)
    else:
        client = embedded_client(folder, epoch=epoch)
        where = str(folder)
    return ChromaStore(client, collection=collection, dimension=dimension, where=where, local=not settings.chroma_url)
