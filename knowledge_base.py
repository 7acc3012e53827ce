"""A knowledge base: a folder of PDFs, its vectors and its catalogue; build, read, delete.

Each full rebuild is a new generation; the one before answers until the new one is complete. Any number of threads
and processes may read while one builds.
"""

from __future__ import annotations

import contextlib
import os
import threading
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from answering import Answering
from bases import DEFAULT, find_base
from build_lock import holder, writing
from build_report import BuildReport, FileReport, Outcome, Progress
from catalogue_rows import Counts
from config import Settings
from embeddings import Embedder
from errors import StoreError, telling_disk_full
from files_folder import is_folder, scan
from generations import Generation, Generations
from indexing import Indexing, Loader, sweep
from listing import DocumentInfo, Status, list_documents
from pdf_loader import document_id_of
from pdf_page import PageResult, load_page
from schema import Block, Chunk

__all__ = ["BuildReport", "FileReport", "KnowledgeBase", "Outcome", "Progress", "open_knowledge_base"]

_SPARE = 8
_MANY = 1000
"""Documents up to which a search within a section names them; a section of more is soon met without."""


class KnowledgeBase:
    """One knowledge base of the settings' data folder; safe to share between threads.

    :raises StoreError: from every method, when the store cannot be read or written.
    """

    def __init__(self, settings: Settings, *, name: str = DEFAULT, embedder: Embedder, loader: Loader) -> None:
        self.settings = settings
        self.base = find_base(settings, name=name)
        self.embedder = embedder
        self.loader = loader
        self._generations = Generations(settings, base=self.base, embedder=embedder)
        self._answering = Answering(self._generations)

    def __enter__(self) -> KnowledgeBase:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
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
        self._answering.close()

    def build(
        self,
        *,
        rebuild: bool = False,
        progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        passwords: Mapping[str, str] | None = None,
        again: Collection[str] = (),
    ) -> BuildReport:
        """Index what changed in the files folder, or with `rebuild` everything into a new generation.

        `passwords` are by file name; the files named in `again` are read anew although they did not change, and are
        missing from answers until then. A stopped build returns with `stopped` set; the next one goes on from there.
        :raises StoreLockedError: another build is running.
        :raises EmbeddingMismatchError: embedder or chunking changed since the store was built; rebuild.
        :raises StoreError: the store fails, or the files folder of a filled knowledge base is gone, or (no rebuild)
            empty where it held several.
        """
        if self.base.exists() and not is_folder(self.files_dir):
            raise StoreError(
                f"{self.files_dir} is gone", hint="mount or make the folder", code="files_missing", path=self.files_dir
            )
        with telling_disk_full(self.base.folder), writing(self.base.folder):
            self.base.create()
            current = self._current_or_aside(rebuild=rebuild)
            number = self._generations.prepare(current, rebuild=rebuild)
            generation = self._generations.open(number)
            parsed = self._generations.pages_to_reuse(current, number=number)
            try:
                found = scan(self.files_dir)
                if not found and not rebuild:
                    self._check_empty(generation)
                if again:
                    _forget(again, generation=generation)
                report = Indexing(
                    self.settings,
                    catalogue=generation.catalogue,
                    store=generation.store,
                    embedder=self.embedder,
                    loader=self.loader,
                    progress=progress,
                    cancel=cancel,
                    passwords=passwords,
                    parsed=parsed,
                ).run(found)
            finally:
                generation.close()
                if parsed:
                    parsed.close()
            if not report.stopped:
                if number != current:
                    self._generations.switch(number)
                self._generations.remove_others(number, self._generations.unfinished(number))
            return report

    def _check_empty(self, generation: Generation) -> None:
        """Refuse to forget several files at once: a drive that is not mounted leaves an empty folder."""
        count = generation.catalogue.counts().files
        if count > 1:
            raise StoreError(
                f"no PDF in {self.files_dir}, but {count} in {self.name}",
                hint="mount the drive; or, if they are meant to go, delete them or rebuild",
                code="files_empty",
                path=self.files_dir,
                count=count,
            )

    def _current_or_aside(self, *, rebuild: bool) -> int:
        """Return the current generation; before a rebuild, one that cannot be read is set aside."""
        if not rebuild:
            return self._generations.current()
        try:
            current = self._generations.current()
        except StoreError as error:
            if error.code != "store_damaged":
                raise
            sound, current = False, 0
        else:
            sound = not current or self._generations.sound(current)
        if not sound:
            self.close()
            self._generations.set_aside()
            return 0
        return current

    def delete(self, name: str) -> None:
        """Remove a file with every vector, row, kept page and search entry that only it needs.

        :raises StoreError: there is no such file, or the system does not let it go.
        :raises StoreLockedError: a build is running.
        """
        known = self._resolve(name)
        self.base.create()
        with writing(self.base.folder):
            content = self._unlink(known)
            current = self._generations.current()
            if not current:
                return
            unfinished = self._generations.unfinished(current)
            for number in filter(None, (current, unfinished)):
                generation = self._generations.open(number)
                try:
                    row = generation.catalogue.files().get(known)
                    half_read = generation.catalogue.pending() - {content, row.document_id if row else ""}
                    generation.catalogue.remove_file(known)
                    sweep(generation.catalogue, store=generation.store, keep=half_read)
                finally:
                    generation.close()
            self._generations.remove_others(current, unfinished)

    def _unlink(self, name: str) -> str:
        """Remove a file from the folder; return its content's id, empty when it cannot be told."""
        path = self.files_dir / name
        content = ""
        with contextlib.suppress(OSError):
            content = document_id_of(path)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise StoreError(
                f"{path}: {reason}",
                hint="close it in other programs, or check the folder's rights",
                code="delete_failed",
                file=name,
                reason=reason,
            ) from error
        return content

    def dense(
        self, vector: NDArray[np.float32], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Return (chunk id, cosine) of the nearest committed chunks, best first.

        Only those of `files` when any are named, and under a heading that contains `section`.
        :raises EmbeddingMismatchError: the store was built with another embedder.
        """
        try:
            return self._dense(vector, limit=limit, files=files, section=section)
        except StoreError as error:
            if error.code != "store_gone":
                raise
            return self._dense(vector, limit=limit, files=files, section=section)

    def _dense(
        self, vector: NDArray[np.float32], *, limit: int, files: Collection[str], section: str
    ) -> list[tuple[str, float]]:
        with self._answering.reading() as reading:
            if reading.current is None:
                return []
            signature = reading.current.signature()
            if self._generations.mismatch_of(signature, dimension=len(vector)) == "embedder":
                raise self._generations.mismatch(signature)
            documents = reading.current.catalogue.document_ids(files, section=section)
            if (files or section) and not documents:
                return []
            named = documents if files or len(documents) <= _MANY else ()
            asked = limit + _SPARE
            while True:
                near = reading.current.store.query(vector, limit=asked, document_ids=named)
                known = reading.current.catalogue.known([key for key, _ in near], section=section)
                kept = [(key, score) for key, score in near if key in known]
                if len(kept) >= limit or len(near) < asked:
                    return kept[:limit]
                asked *= 2

    def lexical(
        self, terms: Sequence[str], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Return (chunk id, BM25 score) of the best chunks with any of the search terms, best first.

        Only those of `files` when any are named, and under a heading that contains `section`.
        """
        with self._answering.reading() as reading:
            if reading.current is None:
                return []
            documents = reading.current.catalogue.document_ids(files)
            if files and not documents:
                return []
            return reading.current.catalogue.lexical(terms, limit=limit, document_ids=documents, section=section)

    def chunks(self, chunk_ids: Sequence[str], *, files: Collection[str] = ()) -> dict[str, Chunk]:
        """Return chunks by id in the order asked; ids that are gone are left out.

        A content with several names is given as the first one that is in `files`.
        """
        found: dict[str, Chunk] = {}
        with self._answering.reading() as reading:
            for source in (reading.current, reading.previous):
                missing = [key for key in chunk_ids if key not in found]
                if source and missing:
                    found |= source.catalogue.chunks(missing, names=files)
        return {key: found[key] for key in chunk_ids if key in found}

    def neighbours(self, chunk_id: str, *, before: int = 1, after: int = 1) -> tuple[Chunk, ...]:
        """Return the chunks around one in reading order, itself included; empty when it is gone."""
        with self._answering.reading() as reading:
            if reading.current is None:
                return ()
            catalogue = reading.current.catalogue
            chunk = catalogue.chunks([chunk_id]).get(chunk_id)
            if chunk is None:
                return ()
            ids = catalogue.chunk_ids(chunk.document_id)
            place = ids.index(chunk_id)
            return tuple(catalogue.chunks(ids[max(0, place - before) : place + after + 1]).values())

    def file_names(self, document_id: str) -> tuple[str, ...]:
        """Return every file that holds this content."""
        with self._answering.reading() as reading:
            return reading.current.catalogue.names([document_id]).get(document_id, ()) if reading.current else ()

    def blocks(self, file: str, *, page: int = 0) -> tuple[Block, ...]:
        """Return the blocks of a file (of one page when given) in reading order."""
        known = self._resolve(file)
        with self._answering.reading() as reading:
            if reading.current is None:
                return ()
            documents = reading.current.catalogue.document_ids([known])
            return reading.current.catalogue.blocks(documents[0], page=page) if documents else ()

    def parsed_page(self, file: str, *, page: int) -> PageResult | None:
        """Return a page as it was parsed, with what read it and why; None when it is not kept."""
        known = self._resolve(file)
        with self._answering.reading() as reading:
            if reading.current is None:
                return None
            documents = reading.current.catalogue.document_ids([known])
            kept = reading.current.catalogue.pages(documents[0], page=page) if documents else {}
        return load_page(kept[page]) if page in kept else None

    def documents(self) -> tuple[DocumentInfo, ...]:
        """List the files of the folder and of the catalogue, by name."""
        with self._answering.reading() as reading:
            return list_documents(reading.current.catalogue if reading.current else None, found=scan(self.files_dir))

    def status(self) -> Status:
        """Count what is in the store and tell whether it fits the settings."""
        waiting = sum(document.status in {"new", "changed", "missing"} for document in self.documents())
        with self._answering.reading() as reading:
            generation = reading.current
            counts = generation.catalogue.counts() if generation else Counts(0, 0, 0, 0, 0)
            signature = generation.signature() if generation else self._generations.shown()
            vectors = generation.store.count() if generation else 0
        return Status(
            name=self.name,
            files_dir=str(self.files_dir),
            folder=str(self.base.folder),
            documents=counts.files,
            pages=counts.pages,
            chunks=counts.chunks,
            vectors=vectors,
            failed=counts.failed,
            waiting=waiting,
            embedder=signature["embedder"],
            dimension=signature["dimension"],
            mismatch=self._generations.mismatch_of(signature),
            building=holder(self.base.folder),
        )

    def path(self, file: str) -> Path:
        """Return where a file is.

        :raises StoreError: there is no such file.
        """
        return self.files_dir / self._resolve(file)

    def _resolve(self, name: str) -> str:
        """Return the exact name of a file: as given, or the one that is the same text in another Unicode form."""
        known = {file.name for file in scan(self.files_dir)}
        with self._answering.reading() as reading:
            if reading.current:
                known |= reading.current.catalogue.files().keys()
        plain = unicodedata.normalize("NFC", name)
        same = sorted(each for each in known if unicodedata.normalize("NFC", each) == plain)
        if not same:
            raise StoreError(f"there is no file {name!r}", hint="list shows the names", code="file_unknown", name=name)
        return name if name in same else same[0]


def _forget(names: Collection[str], *, generation: Generation) -> None:
    """Take files, under all their names, out of a generation: the next run over the folder reads them as new ones."""
    catalogue = generation.catalogue
    known = catalogue.files()
    contents = {known[name].document_id for name in names if name in known}
    half_read = catalogue.pending() - contents
    for name in [name for name, row in known.items() if row.document_id in contents]:
        catalogue.remove_file(name)
    if contents:
        sweep(catalogue, store=generation.store, keep=half_read)


def open_knowledge_base(settings: Settings, *, name: str = DEFAULT) -> KnowledgeBase:
    """Open a knowledge base with the embedder and the PDF reader of the settings."""
    from embeddings import build_embedder
    from pdf_loader import PdfLoader

    return KnowledgeBase(settings, name=name, embedder=build_embedder(settings), loader=PdfLoader(settings))
