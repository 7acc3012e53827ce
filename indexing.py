"""One build: what is in Files/ becomes pages, blocks, chunks and vectors, file by file, each whole or not at all.

Order of writing for one content: pages as they are parsed, a pending mark, vectors, then one transaction of the
catalogue that makes it count. A process killed in between leaves at most vectors that nothing refers to, under ids
that the next build writes again or sweeps.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from build_report import BuildReport, FileReport, Outcome, Progress, Stage
from catalogue import Catalogue
from catalogue_rows import DocumentRow, FileRow, FileStatus
from chunker import split_blocks
from config import Settings
from embeddings import Embedder
from errors import (
    CancelledError,
    CragError,
    PdfEmptyError,
    PdfError,
    PdfUnreadableError,
    ProviderError,
    ProviderResponseError,
)
from files_folder import FoundFile, stamp
from pdf_loader import PageResult, document_id_of, dump_page, load_page
from retriever import search_terms
from schema import Block, BlockParser, Chunk
from vector_store import Entry, VectorStore

_logger = logging.getLogger(__name__)
_BATCH = 128
_REFUSALS = frozenset({400, 413, 422})
"""HTTP statuses of a server that does not take a text."""
_STUMBLES = (PdfError, OSError, ValueError, LookupError, ArithmeticError, RuntimeError, MemoryError)


class Loader(Protocol):
    """What a build needs of a PDF reader."""

    def pages(
        self, path: Path, *, document_id: str, password: str = "", done: Collection[int] = ()
    ) -> Iterator[PageResult]:
        """Yield each page as it is read; pages in `done` are skipped."""
        ...

    def assemble(self, pages: Sequence[PageResult]) -> tuple[Block, ...]:
        """Join all pages of a document to blocks in reading order."""
        ...


def sweep(catalogue: Catalogue, *, store: VectorStore, keep: Collection[str] = ()) -> None:
    """Remove the vectors and kept pages of contents that are not, and (unless in `keep`) will not become, committed."""
    for document_id in catalogue.pending() - set(keep):
        store.delete(document_id)
        catalogue.drop_pages(document_id)
        catalogue.clear_pending(document_id)


class Indexing:
    """One run over the files folder into one generation's catalogue and vectors.

    `passwords` are by file name; pages that `parsed` holds already are not read again.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        catalogue: Catalogue,
        store: VectorStore,
        embedder: Embedder,
        loader: Loader,
        progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        passwords: Mapping[str, str] | None = None,
        parsed: Catalogue | None = None,
    ) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._store = store
        self._embedder = embedder
        self._loader = loader
        self._report = progress
        self._cancel = cancel or threading.Event()
        self._passwords = passwords or {}
        self._parsed = parsed
        self._reports: dict[str, FileReport] = {}
        self._waiting: set[str] = set()
        self._now = Progress(Stage.SCAN)
        self._clock = _Clock(0)

    def run(self, files: Sequence[FoundFile]) -> BuildReport:
        """Bring the generation up to date with the files found.

        A file that cannot be read, or whose text the embedder refuses, is reported as failed and stops no other.
        :raises StoreError: the store fails.
        :raises ProviderError: the embedder fails; what is done stays done.
        """
        started = time.perf_counter()
        self._tell(stage=Stage.SCAN, files=len(files))
        try:
            known = self._catalogue.files()
            work = self._sort_out(files, known=known)
            for name in known.keys() - {file.name for file in files}:
                self._catalogue.remove_file(name)
                self._reports[name] = FileReport(name, Outcome.REMOVED)
            self._waiting = set(work)
            sweep(self._catalogue, store=self._store, keep=self._waiting)
            self._heal()
        except CancelledError:
            return self._close(started=started, left=max(1, len(files) - len(self._reports)))
        self._clock = _Clock(sum(names[0].size for names in work.values()))
        left = self._index_all(work, first=len(files) - len(work))
        return self._close(started=started, left=left)

    def _sort_out(self, files: Sequence[FoundFile], *, known: Mapping[str, FileRow]) -> dict[str, list[FoundFile]]:
        """Settle what needs no parsing; return the rest as content → its files.

        All names are written at once: files that exchanged theirs would else lose a content on the way.
        """
        contents = self._catalogue.documents()
        work: dict[str, list[FoundFile]] = {}
        rows: list[FileRow] = []
        reports: list[FileReport] = []
        for file in files:
            row = known.get(file.name)
            # A file that could not be opened has no content yet.
            settled = row.document_id if row is not None and row.stamp == file.stamp else ""
            if not settled:
                self._check()
            try:
                document_id = settled or document_id_of(file.path)
            except OSError as error:
                detail = _detail(_no_access(file.name, error=error))
                # What is known of it stays, and its old stamp: the next build tries again.
                keeps = row is not None and row.document_id in contents
                failed = FileRow(file.name, file.stamp, "", FileStatus.FAILED, detail)
                rows.append(replace(row, error=detail) if row and keeps else failed)
                reports.append(FileReport(file.name, Outcome.FAILED, error=detail))
                continue
            if document_id not in contents:
                work.setdefault(document_id, []).append(file)
                continue
            written = FileRow(file.name, file.stamp, document_id, FileStatus.INDEXED, {})
            same = row is not None and row.document_id == document_id and row.status is FileStatus.INDEXED
            if row != written:
                rows.append(written)
            outcome = Outcome.UNCHANGED if same else Outcome.INDEXED
            reports.append(_file_report(file.name, outcome=outcome, row=contents[document_id]))
        self._catalogue.put_files(rows)
        self._reports |= {report.file: report for report in reports}
        return work

    def _heal(self) -> None:
        """Compare vectors with the catalogue when their numbers differ; write what is missing, remove what is not."""
        pending = sum(len(self._store.digests(document_id)) for document_id in self._catalogue.pending())
        if self._store.count() == self._catalogue.counts().chunks + pending:
            return
        _logger.warning("the vectors do not match the catalogue; repairing")
        for document_id in self._catalogue.documents():
            ids = self._catalogue.chunk_ids(document_id)
            self._write_vectors(tuple(self._catalogue.chunks(ids).values()), document_id=document_id)
        self._catalogue.note_written()

    def _index_all(self, work: Mapping[str, Sequence[FoundFile]], *, first: int) -> int:
        """Index each content; return how many files were not reached because the user stopped."""
        done = 0
        for number, (document_id, files) in enumerate(work.items(), start=first + 1):
            if self._cancel.is_set():
                break
            self._waiting.discard(document_id)
            self._clock.start(files[0].size)
            self._tell(stage=Stage.PARSE, file=files[0].name, file_number=number, page=0, pages=0)
            try:
                self._index(document_id, files=files)
            except CancelledError:
                break
            except ProviderResponseError as error:
                if not self._refuses_the_text(error):
                    raise
                self._store.delete(document_id)
                # Its pages are read; the next build only embeds them.
                self._waiting.add(document_id)
                self._fail(files, document_id=document_id, error=_refusal(error, file=files[0].name))
            except _STUMBLES as error:
                self._fail(files, document_id=document_id, error=error)
            done += len(files)
            self._clock.finish()
        return sum(map(len, work.values())) - done

    def _refuses_the_text(self, error: ProviderResponseError) -> bool:
        """Tell a server that does not take one text from one that takes none."""
        if error.values.get("status") not in _REFUSALS:
            return False
        try:
            self._embedder.embed_queries(["text"])
        except ProviderError:
            return False
        return True

    def _index(self, document_id: str, *, files: Sequence[FoundFile]) -> None:
        started = time.perf_counter()
        self._catalogue.mark_pending(document_id)
        pages = self._parse(document_id, files=files)
        blocks = self._loader.assemble(pages)
        chunks = split_blocks(
            blocks,
            file=files[0].name,
            chunk_size=self._settings.chunk_size,
            chunk_overlap=self._settings.chunk_overlap,
        )
        if not chunks:
            raise PdfEmptyError(
                f"{files[0].name}: no text found", hint="check that its pages show text", file=files[0].name
            )
        if stamp(files[0].path) != files[0].stamp:
            raise PdfUnreadableError(
                f"{files[0].name} changed while it was read",
                hint="build again",
                code="file_changed",
                file=files[0].name,
            )
        self._write_vectors(chunks, document_id=document_id)
        row = DocumentRow(
            document_id,
            pages=len(pages),
            chunks=len(chunks),
            parser=", ".join(sorted({str(page.parser) for page in pages})),
            ocr_pages=sum(page.parser is BlockParser.OCR for page in pages),
            seconds=time.perf_counter() - started,
        )
        self._catalogue.commit_document(
            row,
            files=[FileRow(file.name, file.stamp, document_id, FileStatus.INDEXED, {}) for file in files],
            blocks=blocks,
            chunks={chunk: " ".join(search_terms(chunk.embedding_text)) for chunk in chunks},
        )
        sweep(self._catalogue, store=self._store, keep=self._waiting)
        for file in files:
            self._reports[file.name] = _file_report(file.name, outcome=Outcome.INDEXED, row=row)

    def _parse(self, document_id: str, *, files: Sequence[FoundFile]) -> list[PageResult]:
        """Return all pages, reading only those that no earlier build kept."""
        for page, body in (self._parsed.pages(document_id) if self._parsed else {}).items():
            self._catalogue.save_page(page, document_id=document_id, body=body)
        kept = {page: load_page(body) for page, body in self._catalogue.pages(document_id).items()}
        if not kept or len(kept) < next(iter(kept.values())).total:
            password = next((self._passwords[file.name] for file in files if file.name in self._passwords), "")
            done = frozenset(kept)
            for result in self._loader.pages(files[0].path, document_id=document_id, password=password, done=done):
                self._catalogue.save_page(result.page, document_id=document_id, body=dump_page(result))
                kept[result.page] = result
                self._clock.reach(0.5 * len(kept) / max(result.total, 1))
                self._tell(page=len(kept), pages=result.total)
                self._check()
        return [kept[page] for page in sorted(kept)]

    def _write_vectors(self, chunks: Sequence[Chunk], *, document_id: str) -> None:
        """Make the store hold exactly these chunks of the document, embedding only what is not there yet."""
        wanted = {chunk.id: _entry(chunk) for chunk in chunks}
        present = self._store.digests(document_id)
        self._store.delete_ids([key for key in present if key not in wanted])
        missing = [chunk for chunk in chunks if present.get(chunk.id) != wanted[chunk.id].digest]
        for start in range(0, len(missing), _BATCH):
            self._check()
            batch = missing[start : start + _BATCH]

            def tell(done: int, _total: int, *, before: int = start) -> None:
                self._clock.reach(0.5 + 0.5 * (before + done) / len(missing))
                self._tell(stage=Stage.EMBED)
                self._check()

            vectors = self._embedder.embed_passages([chunk.embedding_text for chunk in batch], progress=tell)
            self._store.upsert([wanted[chunk.id] for chunk in batch], vectors=vectors)
            self._clock.reach(0.5 + 0.5 * (start + len(batch)) / len(missing))
            self._tell(stage=Stage.EMBED, chunks=self._now.chunks + len(batch))

    def _fail(self, files: Sequence[FoundFile], *, document_id: str, error: BaseException) -> None:
        _logger.warning("a file could not be indexed: %s", type(error).__name__)
        detail = _detail(error)
        rows = [FileRow(file.name, file.stamp, document_id, FileStatus.FAILED, detail) for file in files]
        self._catalogue.put_files(rows)
        self._reports |= {file.name: FileReport(file.name, Outcome.FAILED, error=detail) for file in files}
        sweep(self._catalogue, store=self._store, keep=self._waiting)

    def _close(self, *, started: float, left: int) -> BuildReport:
        counts = self._catalogue.counts()
        self._tell(stage=Stage.DONE)
        return BuildReport(
            files=tuple(self._reports[name] for name in sorted(self._reports)),
            documents=counts.files,
            pages=counts.pages,
            chunks=self._store.count() if not left else counts.chunks,
            failed=counts.failed,
            seconds=time.perf_counter() - started,
            stopped=left > 0,
            left=left,
        )

    def _check(self) -> None:
        if self._cancel.is_set():
            raise CancelledError("the build was stopped", hint="build again to go on")

    def _tell(self, **changes: object) -> None:
        self._now = replace(self._now, seconds_left=self._clock.seconds_left(), **changes)  # type: ignore[arg-type]
        if self._report:
            self._report(self._now)


class _Clock:
    """Estimates the time left from the bytes of the files done."""

    def __init__(self, total: int) -> None:
        self._started = time.perf_counter()
        self._total = total
        self._finished = 0
        self._size = 0
        self._share = 0.0

    def start(self, size: int) -> None:
        self._size = size
        self._share = 0.0

    def reach(self, share: float) -> None:
        self._share = share

    def finish(self) -> None:
        self._finished += self._size
        self._size = 0

    def seconds_left(self) -> float | None:
        done = self._finished + self._size * self._share
        if not done:
            return None
        return max(0.0, (time.perf_counter() - self._started) * (self._total - done) / done)


def _detail(error: BaseException) -> dict[str, Any]:
    """Return what the report and the catalogue keep of an error."""
    if not isinstance(error, CragError):
        return {"code": "pdf_unreadable", "message": str(error)}
    values = {key: str(value) for key, value in error.values.items()}
    return {"code": error.code, "message": str(error), "hint": error.hint, "values": values}


def _refusal(error: ProviderResponseError, *, file: str) -> ProviderResponseError:
    values = error.values
    named = {"provider": values.get("name", ""), **{key: values.get(key, "") for key in ("url", "model", "status")}}
    hint = "lower CRAG_CHUNK_SIZE and rebuild, or choose a model that reads longer texts"
    return ProviderResponseError(f"{file}: {error}", hint=hint, code="embedding_refused", file=file, **named)


def _no_access(name: str, *, error: OSError) -> PdfUnreadableError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = "close it elsewhere, or check its rights; then build again"
    return PdfUnreadableError(f"{name}: {reason}", hint=hint, code="pdf_no_access", file=name, reason=reason)


def _entry(chunk: Chunk) -> Entry:
    digest = hashlib.sha256(chunk.embedding_text.encode()).hexdigest()[:16]
    return Entry(chunk.id, chunk.document_id, digest)


def _file_report(name: str, *, outcome: Outcome, row: DocumentRow) -> FileReport:
    seconds = 0.0 if outcome is Outcome.UNCHANGED else row.seconds
    return FileReport(name, outcome, row.pages, row.chunks, row.parser, row.ocr_pages, seconds)
