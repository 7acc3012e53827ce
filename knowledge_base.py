"""A knowledge base: a folder of PDFs, its vectors and its catalogue; build, read, delete.

Each full rebuild is a new generation (a catalogue file and a collection); the file `current` names the one that
answers, and changes in one step when the next is complete. Any number of threads and processes may read while one
builds.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bases import DEFAULT, Base, find_base
from build_lock import Holder, holder, writing
from build_report import BuildReport, FileReport, Outcome, Progress
from catalogue import Catalogue, Counts, FileStatus
from config import Settings
from errors import EmbeddingMismatchError, StoreError
from indexing import Embedder, FoundFile, Indexing, Loader, scan
from retriever import search_terms
from schema import Block, Chunk
from vector_store import VectorStore, open_vector_store

__all__ = ["BuildReport", "FileReport", "KnowledgeBase", "Outcome", "Progress", "open_knowledge_base"]

_logger = logging.getLogger(__name__)
_SPARE = 8


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One file as listed: `status` is indexed, failed, new (not built yet) or changed (since the build).

    `same_as` names the other files with the same bytes.
    """

    file: str
    status: str
    pages: int = 0
    chunks: int = 0
    parser: str = ""
    ocr_pages: int = 0
    seconds: float = 0.0
    error: Mapping[str, str] | None = None
    bytes: int = 0
    document_id: str = ""
    same_as: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return a plain object with these names."""
        return {
            "file": self.file,
            "status": self.status,
            "pages": self.pages,
            "chunks": self.chunks,
            "parser": self.parser,
            "ocr_pages": self.ocr_pages,
            "seconds": round(self.seconds, 3),
            "error": dict(self.error) if self.error else None,
            "bytes": self.bytes,
            "document_id": self.document_id,
            "same_as": list(self.same_as),
        }


@dataclass(frozen=True, slots=True)
class Status:
    """A knowledge base at a glance; `mismatch` is "", "embedder" or "chunking" when a rebuild is needed."""

    name: str
    files_dir: str
    folder: str
    documents: int
    pages: int
    chunks: int
    vectors: int
    failed: int
    waiting: int
    embedder: str
    dimension: int
    mismatch: str
    building: Holder | None

    def as_json(self) -> dict[str, Any]:
        """Return a plain object with these names."""
        building = self.building
        shown = {name: getattr(self, name) for name in self.__slots__}
        shown["building"] = building and {"pid": building.pid, "host": building.host, "since": building.since}
        return shown


@dataclass(frozen=True, slots=True)
class _Generation:
    number: int
    catalogue: Catalogue
    store: VectorStore

    def close(self) -> None:
        self.catalogue.close()
        self.store.close()


class KnowledgeBase:
    """One knowledge base of the settings' data folder; safe to share between threads.

    :raises StoreError: from every method, when the store cannot be read or written.
    """

    def __init__(self, settings: Settings, *, name: str = DEFAULT, embedder: Embedder, loader: Loader) -> None:
        self.settings = settings
        self.base: Base = find_base(settings, name=name)
        self.embedder = embedder
        self.loader = loader
        self._lock = threading.RLock()
        self._generation: _Generation | None = None
        self._previous: _Generation | None = None

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Display name."""
        return self.base.name

    @property
    def files_dir(self) -> Path:
        """Folder of its PDFs."""
        return self.base.files_dir

    def close(self) -> None:
        """Close the store; the next call opens it again."""
        with self._lock:
            for generation in (self._generation, self._previous):
                if generation:
                    generation.close()
            self._generation = self._previous = None

    # Building

    def build(
        self,
        *,
        rebuild: bool = False,
        progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        passwords: Mapping[str, str] | None = None,
    ) -> BuildReport:
        """Index what changed in the files folder, or with `rebuild` everything into a new generation.

        `passwords` are by file name. A stopped build returns with `stopped` set; the next one goes on from there.
        :raises StoreLockedError: another build is running.
        :raises EmbeddingMismatchError: embedder or chunking changed since the store was built; rebuild.
        :raises StoreError: the files folder has gone, or the store fails.
        """
        self.base.create()
        with writing(self.base.folder):
            current = self._number()
            if rebuild and current and not self._sound(current):
                self._set_aside()
                current = 0
            number = self._target(current, rebuild=rebuild)
            generation = self._open(number)
            try:
                report = Indexing(
                    self.settings,
                    catalogue=generation.catalogue,
                    store=generation.store,
                    embedder=self.embedder,
                    loader=self.loader,
                    progress=progress,
                    cancel=cancel,
                    passwords=passwords,
                ).run(self.files_dir)
            finally:
                generation.close()
            if number != current and not report.stopped:
                self._switch(number)
            if not report.stopped:
                self._drop_others(number)
            return report

    def _target(self, current: int, *, rebuild: bool) -> int:
        """Return the generation to work on, made ready with this embedder and chunking."""
        number = current + 1 if rebuild or not current else current
        signature = self._signature()
        fresh = not self._catalogue_path(number).exists()
        catalogue = Catalogue(self._catalogue_path(number))
        try:
            found = catalogue.meta("signature")
            if found and found != json.dumps(signature):
                if number == current:
                    raise self._mismatch(json.loads(found))
                fresh = True
        finally:
            catalogue.close()
        if fresh:
            self._remove(number)
            catalogue = Catalogue(self._catalogue_path(number))
            catalogue.set_meta(signature=json.dumps(signature))
            catalogue.close()
        if not current:
            self._switch(number)
        return number

    def _signature(self) -> dict[str, Any]:
        return {
            "embedder": self.embedder.name,
            "dimension": self.embedder.dimension,
            "chunk_size": self.settings.chunk_size,
            "chunk_overlap": self.settings.chunk_overlap,
        }

    def _mismatch(self, found: Mapping[str, Any]) -> EmbeddingMismatchError:
        mine = self._signature()
        names = ("embedder", "dimension")
        code = "embedding_mismatch" if any(found.get(name) != mine[name] for name in names) else "chunking_changed"
        changes = ", ".join(
            f"{name}: {found.get(name)} → {mine[name]}" for name in mine if found.get(name) != mine[name]
        )
        return EmbeddingMismatchError(
            f"{self.name} was built with other settings ({changes})",
            hint="rebuild the knowledge base, or set them back",
            code=code,
            name=self.name,
            changes=changes,
            built=found.get("embedder"),
            now=mine["embedder"],
        )

    def _sound(self, number: int) -> bool:
        """Tell whether a generation can be opened and asked."""
        try:
            generation = self._open(number)
        except StoreError:
            return False
        try:
            generation.catalogue.counts()
            generation.store.count()
        except StoreError:
            return False
        finally:
            generation.close()
        return True

    def _set_aside(self) -> None:
        """Move a damaged store out of the way; it is never deleted."""
        self.close()
        aside = self.base.folder / f"damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        aside.mkdir()
        _logger.warning("the store cannot be read and was set aside in %s", aside.name)
        for path in (*self.base.folder.glob("catalogue-*"), self.base.folder / "chroma", self.base.folder / "current"):
            if path.exists():
                path.rename(aside / path.name)

    def _switch(self, number: int) -> None:
        written = self.base.folder / "current.new"
        written.write_text(str(number), encoding="utf-8")
        written.replace(self.base.folder / "current")

    def _drop_others(self, kept: int) -> None:
        numbers = {int(path.stem.removeprefix("catalogue-")) for path in self.base.folder.glob("catalogue-*.sqlite3")}
        for number in numbers - {kept}:
            self._remove(number)

    def _remove(self, number: int) -> None:
        self._open_store(number).drop()
        for suffix in ("", "-wal", "-shm"):
            path = self._catalogue_path(number)
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Remove a file with every vector, row, kept page and search entry that only it needs.

        :raises StoreError: there is no such file.
        :raises StoreLockedError: a build is running.
        """
        known = self._resolve(name)
        with writing(self.base.folder):
            (self.files_dir / known).unlink(missing_ok=True)
            current = self._number()
            if not current:
                return
            generation = self._open(current)
            try:
                generation.catalogue.remove_file(known)
                for document_id in generation.catalogue.pending():
                    generation.store.delete(document_id)
                    generation.catalogue.drop_pages(document_id)
                    generation.catalogue.clear_pending(document_id)
            finally:
                generation.close()
            self._drop_others(current)

    # Reading

    def dense(self, vector: NDArray[np.float32], *, limit: int, files: Collection[str] = ()) -> list[tuple[str, float]]:
        """Return (chunk id, cosine) of the nearest committed chunks, best first, of `files` only when any are named.

        :raises EmbeddingMismatchError: the store was built with another embedder.
        """
        try:
            return self._dense(vector, limit=limit, files=files)
        except StoreError as error:
            if error.code != "store_gone":
                raise
            return self._dense(vector, limit=limit, files=files)

    def _dense(self, vector: NDArray[np.float32], *, limit: int, files: Collection[str]) -> list[tuple[str, float]]:
        generation = self._current()
        if generation is None:
            return []
        found = json.loads(generation.catalogue.meta("signature"))
        if (found["embedder"], found["dimension"]) != (self.embedder.name, self.embedder.dimension):
            raise self._mismatch(found)
        documents = generation.catalogue.document_ids(files)
        if files and not documents:
            return []
        asked = limit + _SPARE
        while True:
            near = generation.store.query(vector, limit=asked, document_ids=documents)
            known = generation.catalogue.known([key for key, _ in near])
            kept = [(key, score) for key, score in near if key in known]
            if len(kept) >= limit or len(near) < asked:
                return kept[:limit]
            asked *= 2

    def lexical(self, terms: Sequence[str], *, limit: int, files: Collection[str] = ()) -> list[tuple[str, float]]:
        """Return (chunk id, BM25 score) of the best chunks with any of the terms, best first."""
        generation = self._current()
        if generation is None:
            return []
        documents = generation.catalogue.document_ids(files)
        if files and not documents:
            return []
        return generation.catalogue.lexical(terms, limit=limit, document_ids=documents)

    def lexical_text(self, text: str, *, limit: int, files: Collection[str] = ()) -> list[tuple[str, float]]:
        """Return what `lexical` finds for the search terms of a text."""
        return self.lexical(search_terms(text), limit=limit, files=files)

    def chunks(self, chunk_ids: Sequence[str], *, files: Collection[str] = ()) -> dict[str, Chunk]:
        """Return chunks by id in the order asked; ids that are gone are left out.

        A content with several names is given as the first one that is in `files`.
        """
        generation, found = self._current(), {}
        for source in (generation, self._previous):
            missing = [key for key in chunk_ids if key not in found]
            if source and missing:
                found |= source.catalogue.chunks(missing, names=files)
        return {key: found[key] for key in chunk_ids if key in found}

    def neighbours(self, chunk_id: str, *, before: int = 1, after: int = 1) -> tuple[Chunk, ...]:
        """Return the chunks around one in reading order, itself included; empty when it is gone."""
        generation = self._current()
        chunk = generation and generation.catalogue.chunks([chunk_id]).get(chunk_id)
        if generation is None or not chunk:
            return ()
        ids = generation.catalogue.chunk_ids(chunk.document_id)
        place = ids.index(chunk_id)
        return tuple(generation.catalogue.chunks(ids[max(0, place - before) : place + after + 1]).values())

    def file_names(self, document_id: str) -> tuple[str, ...]:
        """Return every file that holds this content."""
        generation = self._current()
        return generation.catalogue.names([document_id]).get(document_id, ()) if generation else ()

    def blocks(self, file: str, *, page: int = 0) -> tuple[Block, ...]:
        """Return the blocks of a file (of one page when given) in reading order."""
        generation = self._current()
        if generation is None:
            return ()
        documents = generation.catalogue.document_ids([self._resolve(file)])
        return generation.catalogue.blocks(documents[0], page=page) if documents else ()

    def documents(self) -> tuple[DocumentInfo, ...]:
        """List the files of the folder and of the catalogue, by name."""
        generation = self._current()
        files = generation.catalogue.files() if generation else {}
        rows = generation.catalogue.documents() if generation else {}
        names = generation.catalogue.names(list(rows)) if generation else {}
        found = {file.name: file for file in scan(self.files_dir)}
        listed = []
        for name in sorted(files.keys() | found.keys()):
            file, on_disk = files.get(name), found.get(name)
            row = rows.get(file.document_id) if file else None
            listed.append(
                DocumentInfo(
                    file=name,
                    status=_listed_status(file.status if file else None, stamp=file and file.stamp, found=on_disk),
                    pages=row.pages if row else 0,
                    chunks=row.chunks if row else 0,
                    parser=row.parser if row else "",
                    ocr_pages=row.ocr_pages if row else 0,
                    seconds=row.seconds if row else 0.0,
                    error=file.error if file and file.error else None,
                    bytes=on_disk.size if on_disk else 0,
                    document_id=file.document_id if file else "",
                    same_as=tuple(other for other in names.get(file.document_id, ()) if other != name) if file else (),
                )
            )
        return tuple(listed)

    def status(self) -> Status:
        """Count what is in the store and tell whether it fits the settings."""
        generation = self._current()
        counts = generation.catalogue.counts() if generation else Counts(0, 0, 0, 0, 0)
        signature = json.loads(generation.catalogue.meta("signature")) if generation else self._signature()
        mismatch = {"embedding_mismatch": "embedder", "chunking_changed": "chunking"}
        return Status(
            name=self.name,
            files_dir=str(self.files_dir),
            folder=str(self.base.folder),
            documents=counts.files,
            pages=counts.pages,
            chunks=counts.chunks,
            vectors=generation.store.count() if generation else 0,
            failed=counts.failed,
            waiting=sum(document.status in {"new", "changed", "missing"} for document in self.documents()),
            embedder=signature["embedder"],
            dimension=signature["dimension"],
            mismatch=mismatch[self._mismatch(signature).code] if signature != self._signature() else "",
            building=holder(self.base.folder),
        )

    def path(self, file: str) -> Path:
        """Return where a file is.

        :raises StoreError: there is no such file.
        """
        return self.files_dir / self._resolve(file)

    def _resolve(self, name: str) -> str:
        """Return the exact name of a file: as given, or the one that is the same text in another Unicode form."""
        generation = self._current()
        names = {file.name for file in scan(self.files_dir)} | (
            generation.catalogue.files().keys() if generation else set()
        )
        if name in names:
            return name
        plain = unicodedata.normalize("NFC", name)
        for known in sorted(names):
            if unicodedata.normalize("NFC", known) == plain:
                return known
        raise StoreError(f"there is no file {name!r}", hint="list shows the names", code="file_unknown", name=name)

    # Generations

    def _catalogue_path(self, number: int) -> Path:
        return self.base.folder / f"catalogue-{number}.sqlite3"

    def _number(self) -> int:
        try:
            return int((self.base.folder / "current").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.base.folder}/current: {error}", hint="rebuild", code="store_damaged") from error

    def _open_store(self, number: int) -> VectorStore:
        key = hashlib.sha256(f"{self.base.id()}/{number}".encode()).hexdigest()[:24]
        return open_vector_store(
            self.settings,
            folder=self.base.folder / "chroma",
            collection=f"kb_{key}",
            dimension=self.embedder.dimension,
        )

    def _open(self, number: int) -> _Generation:
        catalogue = Catalogue(self._catalogue_path(number))
        try:
            return _Generation(number, catalogue, self._open_store(number))
        except BaseException:
            catalogue.close()
            raise

    def _current(self) -> _Generation | None:
        """Return the generation that answers now; the one before stays open for questions under way."""
        with self._lock:
            number = self._number()
            if self._generation and self._generation.number == number:
                return self._generation
            if not number:
                return None
            opened = self._open(number)
            if self._previous:
                self._previous.close()
            self._previous, self._generation = self._generation, opened
            return opened


def _listed_status(status: FileStatus | None, *, stamp: str | None, found: FoundFile | None) -> str:
    if status is None:
        return "new"
    if found is None:
        return "missing"
    return str(status) if found.stamp == stamp else "changed"


def open_knowledge_base(settings: Settings, *, name: str = DEFAULT) -> KnowledgeBase:
    """Open a knowledge base with the embedder and the PDF reader of the settings."""
    from embeddings import build_embedder
    from pdf_loader import PdfLoader

    return KnowledgeBase(settings, name=name, embedder=build_embedder(settings), loader=PdfLoader(settings))
