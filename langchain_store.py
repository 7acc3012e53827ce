"""Any LangChain vector store as the store: Milvus, Qdrant, or what a function of yours returns.

LangChain's interface adds, deletes by id and searches; it neither lists nor counts. So a small SQLite ledger beside
the catalogue notes which ids were written. A row is noted before its vector is written and completed after, so that a
killed write is done again. Milvus and Qdrant are asked what of it is really there; of other stores the ledger is
believed.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from langchain_core.documents import Document

from chroma_client import without_password
from config import Settings
from errors import StoreError, store_failure
from langchain_backends import Backend, ReadyVectors, failures, open_backend
from vector_store import Entry, Vectors

_logger = logging.getLogger(__name__)
_BATCH = 500
_IDS = uuid.UUID("6a1f2a52-1f0e-4d0c-9a52-0d6f3f1f7c11")
_LEDGER = "CREATE TABLE IF NOT EXISTS ledger (id TEXT PRIMARY KEY, document_id TEXT NOT NULL, digest TEXT NOT NULL);"


class LangChainStore:
    """A LangChain vector store with its ledger; scores must be cosine similarities or cosine distances.

    :raises StoreError: the store or its ledger fails.
    """

    def __init__(self, backend: Backend, *, vectors: ReadyVectors, ledger: Path, where: str) -> None:
        self._backend = backend
        self._vectors = vectors
        self._where = where
        self._lock = threading.RLock()
        self._path = ledger
        try:
            with self._guarded():
                self._ledger = sqlite3.connect(ledger, isolation_level=None, check_same_thread=False, timeout=30.0)
                self._ledger.executescript(f"PRAGMA journal_mode = WAL; {_LEDGER}")
        except StoreError:
            backend.close()
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except failures() as error:
            # The ledger is a file here wherever the vectors are.
            local = isinstance(error, sqlite3.Error) or "://" not in self._where
            raise store_failure(error, path=self._where, local=local) from error

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
        self.delete_ids(self._noted(document_id))

    def delete_ids(self, ids: Collection[str]) -> None:
        """Remove single vectors, then their notes."""
        ordered = list(ids)
        for start in range(0, len(ordered), _BATCH):
            part = ordered[start : start + _BATCH]
            with self._guarded():
                self._backend.store.delete(ids=[_key(each) for each in part])
                self._ledger.executemany("DELETE FROM ledger WHERE id = ?", [(each,) for each in part])

    def digests(self, document_id: str) -> dict[str, str]:
        """Return chunk id → digest from the ledger, of what the store really holds where it can tell."""
        noted = self._noted(document_id)
        if self._backend.present is None:
            return noted
        there: set[str] = set()
        ordered = [_key(each) for each in noted]
        for start in range(0, len(ordered), _BATCH):
            with self._guarded():
                there.update(self._backend.present(ordered[start : start + _BATCH]))
        return {key: digest for key, digest in noted.items() if _key(key) in there}

    def _noted(self, document_id: str) -> dict[str, str]:
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
        """Return how many vectors the store holds; of one that cannot tell, how many the ledger notes."""
        with self._guarded():
            if self._backend.count:
                return self._backend.count()
            return int(self._ledger.execute("SELECT count(*) FROM ledger").fetchone()[0])

    def drop(self) -> None:
        """Remove the whole collection, or what the ledger notes of it, then the ledger itself."""
        with self._guarded():
            if self._backend.drop:
                self._backend.drop()
            else:
                self.delete_ids([row[0] for row in self._ledger.execute("SELECT id FROM ledger").fetchall()])
            self._ledger.execute("DELETE FROM ledger")
        self._ledger.close()
        for suffix in ("-wal", "-shm", ""):
            try:
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            except PermissionError:
                _logger.info("%s is in use and stays, empty", self._path.name)
                return

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
    backend = open_backend(settings, folder=folder, collection=collection, vectors=vectors)
    url = settings.vector_store_url
    where = without_password(url) if "://" in url else url or settings.vector_store
    return LangChainStore(backend, vectors=vectors, ledger=folder / f"ledger-{collection}.sqlite3", where=where)


def _key(chunk_id: str) -> str:
    """Return a UUID for a chunk id: the one form of id that every store takes."""
    return str(uuid.uuid5(_IDS, chunk_id))
