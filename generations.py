"""Generations of a knowledge base: a catalogue file and a collection each, and the note that says which one answers."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bases import Base
from catalogue import Catalogue
from chunker import RULES
from config import Settings
from embeddings import Embedder
from errors import CragError, EmbeddingMismatchError, ProviderError, StoreError, store_failure
from vector_store import VectorStore, open_vector_store

_logger = logging.getLogger(__name__)
_FIRST_RULES = 1
_PROCESS = uuid.uuid4().hex
_epochs: dict[Path, tuple[int, str]] = {}
_epochs_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Generation:
    """One opened generation; `epoch` tells how fresh its view of an embedded store is, `file` which file it reads."""

    number: int
    catalogue: Catalogue
    store: VectorStore
    epoch: int
    file: tuple[int, int]

    def signature(self) -> dict[str, Any]:
        """Return what it was built with: embedder, dimension, chunk_size, chunk_overlap, chunk_rules."""
        return _signature(self.catalogue)

    def close(self) -> None:
        """Close both files."""
        self.catalogue.close()
        self.store.close()


class Generations:
    """The generations in one knowledge base's folder; whoever writes holds the build lock."""

    def __init__(self, settings: Settings, *, base: Base, embedder: Embedder) -> None:
        self._settings = settings
        self._base = base
        self._embedder = embedder

    def current(self) -> int:
        """Return the number of the generation that answers; 0 when nothing was ever built.

        :raises StoreError: the note cannot be read.
        """
        note = self._base.folder / "current"
        try:
            return int(note.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise store_failure(error, path=note) from error
        except ValueError as error:
            raise StoreError(
                f"{note}: {error}", hint="cli.py build --rebuild", code="store_damaged", path=note, reason=error
            ) from error

    def switch(self, number: int) -> None:
        """Let another generation answer, in one step."""
        written = self._base.folder / "current.new"
        written.write_text(str(number), encoding="utf-8")
        written.replace(self._base.folder / "current")

    def open(self, number: int) -> Generation:
        """Open a generation's catalogue and collection, with the vectors' length that it was built with.

        :raises StoreError: either cannot be opened; `store_gone` when another generation took its place meanwhile.
        """
        file = self._file(number)
        if file is None:
            raise self._missing(number)
        catalogue = Catalogue(self._path(number), writer=_PROCESS)
        try:
            noted = _signature(catalogue)
            if not noted:
                raise self._missing(number)
            epoch = self.epoch(catalogue)
            store = self._open_store(number, dimension=noted["dimension"], epoch=epoch)
            return Generation(number, catalogue, store, epoch, file)
        except CragError:
            catalogue.close()
            raise

    def is_fresh(self, generation: Generation) -> bool:
        """Tell whether an opened generation reads the file that is there now, and sees what others have written."""
        there = self._file(generation.number)
        return there == generation.file and generation.epoch == self.epoch(generation.catalogue)

    def _file(self, number: int) -> tuple[int, int] | None:
        """Return what tells a generation's file from one that was set aside; None when there is none."""
        try:
            found = self._path(number).stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _missing(self, number: int) -> StoreError:
        path = self._path(number)
        gone = self.current() != number
        return StoreError(
            f"{path} is gone or empty",
            hint="ask again" if gone else "cli.py build --rebuild",
            code="store_gone" if gone else "store_damaged",
            path=path,
        )

    def epoch(self, catalogue: Catalogue) -> int:
        """Return a number that grows whenever another process has written since this one opened the store.

        An embedded Chroma keeps its index in memory and does not see what other processes add (chromadb 1.5.9): with a
        new epoch it is opened afresh, while questions under way keep the one they have.
        """
        if self._settings.chroma_url or self._settings.vector_store != "chroma":
            return 0
        written = catalogue.meta("written")
        with _epochs_lock:
            epoch, known = _epochs.get(self._base.folder, (0, written))
            if written != known and not written.startswith(_PROCESS):
                epoch, known = epoch + 1, written
            _epochs[self._base.folder] = (epoch, known)
            return epoch

    def prepare(self, current: int, *, rebuild: bool) -> int:
        """Return the generation a build is to work on, made ready for this embedder and chunking.

        A rebuild that was stopped is gone on with when it was begun with the same settings.
        :raises EmbeddingMismatchError: the current one was built with others, and this is no rebuild.
        """
        number = current + 1 if rebuild or not current else current
        signature = self.signature()
        found = self._noted(number) if number in {current, self.unfinished(current)} else {}
        if found and found != signature and number == current:
            raise self.mismatch(found)
        if found != signature:
            self.remove(number)
            catalogue = Catalogue(self._path(number))
            catalogue.set_meta(signature=json.dumps(signature), parser=self._parser())
            catalogue.close()
        if not current:
            self.switch(number)
        return number

    def unfinished(self, current: int) -> int:
        """Return the generation of a stopped rebuild that the next one goes on with; 0 when there is none.

        One begun with another embedder, chunking or parser is none, nor is one that cannot be read.
        """
        path = self._path(current + 1)
        if not path.exists():
            return 0
        try:
            catalogue = Catalogue(path)
            try:
                same = not self.mismatch_of(_signature(catalogue)) and catalogue.meta("parser") == self._parser()
            finally:
                catalogue.close()
        except StoreError as error:
            if error.code != "store_damaged":
                raise
            return 0
        return current + 1 if same else 0

    def _noted(self, number: int) -> dict[str, Any]:
        if not self._path(number).exists():
            return {}
        catalogue = Catalogue(self._path(number))
        try:
            return _signature(catalogue)
        finally:
            catalogue.close()

    def pages_to_reuse(self, current: int, *, number: int) -> Catalogue | None:
        """Open the catalogue whose parsed pages a rebuild may take over: embedder or chunk size changed, no more.

        A rebuild that nothing forces reads every PDF again; so does one for another parser or for new chunk rules.
        """
        if not current or current == number:
            return None
        found = self._noted(current)
        if not self.mismatch_of(found, dimension=self._embedder.dimension) or found.get("chunk_rules") != RULES:
            return None
        catalogue = Catalogue(self._path(current))
        if catalogue.meta("parser") == self._parser():
            return catalogue
        catalogue.close()
        return None

    def _parser(self) -> str:
        return f"{self._settings.pdf_parser} {self._settings.mineru_model}"

    def signature(self) -> dict[str, Any]:
        """Return what a build with the present settings depends on.

        :raises ProviderError: the provider of the embeddings cannot tell their dimension.
        """
        return {**self._names(), "dimension": self._embedder.dimension}

    def shown(self) -> dict[str, Any]:
        """Return the signature for a status: its dimension is 0 while the provider cannot tell it."""
        try:
            return self.signature()
        except ProviderError:
            return {**self._names(), "dimension": 0}

    def _names(self) -> dict[str, Any]:
        """Return what is known of the signature without a provider."""
        return {
            "embedder": self._embedder.name,
            "chunk_size": self._settings.chunk_size,
            "chunk_overlap": self._settings.chunk_overlap,
            "chunk_rules": RULES,
        }

    def mismatch_of(self, found: Mapping[str, Any], *, dimension: int = 0) -> str:
        """Return what differs from the present settings: "embedder", "chunking", or "" when nothing does.

        No provider is asked for the length of its vectors: give `dimension` where it is known.
        """
        mine = self._names()
        if found.get("embedder") != mine["embedder"] or dimension not in {0, found.get("dimension")}:
            return "embedder"
        return "chunking" if any(found.get(name) != value for name, value in mine.items()) else ""

    def mismatch(self, found: Mapping[str, Any]) -> EmbeddingMismatchError:
        """Return the error that says what differs from the present settings."""
        mine = self.signature()
        differs = self.mismatch_of(found, dimension=mine["dimension"])
        changes = ", ".join(f"{key}: {found.get(key)} → {mine[key]}" for key in mine if found.get(key) != mine[key])
        return EmbeddingMismatchError(
            f"{self._base.name} was built with other settings ({changes})",
            hint="rebuild (cli.py build --rebuild), or set them back",
            code="embedding_mismatch" if differs == "embedder" else "chunking_changed",
            name=self._base.name,
            changes=changes,
        )

    def sound(self, number: int) -> bool:
        """Tell whether a generation can be opened and read.

        :raises StoreError: it is locked, out of reach or short of room, which says nothing about it.
        """
        try:
            generation = self.open(number)
            try:
                generation.catalogue.counts()
                generation.store.count()
            finally:
                generation.close()
        except StoreError as error:
            if error.code != "store_damaged":
                raise
            return False
        return True

    def set_aside(self) -> Path:
        """Move a damaged store out of the way, never deleting it; return where it is now."""
        folder = self._base.folder
        aside = folder / f"damaged-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
        aside.mkdir()
        _logger.warning("the store cannot be read and was set aside in %s", aside.name)
        for path in (*folder.glob("catalogue-*"), folder / "vectors", folder / "current"):
            if path.exists():
                path.rename(aside / path.name)
        with _epochs_lock:
            # A client that this process still holds reads the files that were moved.
            epoch, known = _epochs.get(folder, (0, ""))
            _epochs[folder] = (epoch + 1, known)
        return aside

    def remove_others(self, *kept: int) -> None:
        """Remove every generation but these."""
        for path in self._base.folder.glob("catalogue-*.sqlite3"):
            number = int(path.stem.removeprefix("catalogue-"))
            if number not in kept:
                self.remove(number)

    def remove(self, number: int) -> None:
        """Remove one generation, collection first, so that what is left of a killed removal is found again."""
        epoch, _ = _epochs.get(self._base.folder, (0, ""))
        store = self._open_store(number, dimension=self._dimension(number), epoch=epoch)
        store.drop()
        store.close()
        for suffix in ("-wal", "-shm", ""):
            path = self._path(number)
            try:
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            except PermissionError:
                _logger.info("%s is in use; the next build removes it", path.name)
                return

    def _path(self, number: int) -> Path:
        return self._base.folder / f"catalogue-{number}.sqlite3"

    def _dimension(self, number: int) -> int:
        """Return the length of a generation's vectors: as noted, else the present one."""
        try:
            noted = self._noted(number)
        except StoreError:
            _logger.warning("%s cannot be read; its vectors are removed all the same", self._path(number).name)
            noted = {}
        return int(noted.get("dimension") or self._embedder.dimension)

    def _open_store(self, number: int, *, dimension: int, epoch: int) -> VectorStore:
        key = hashlib.sha256(f"{self._base.id()}/{number}".encode()).hexdigest()[:24]
        return open_vector_store(
            self._settings,
            folder=self._base.folder / "vectors",
            collection=f"kb_{key}",
            dimension=dimension,
            epoch=epoch,
        )


def _signature(catalogue: Catalogue) -> dict[str, Any]:
    """Return a catalogue's signature; one from before the rules were numbered has the first ones."""
    noted = catalogue.meta("signature")
    return {"chunk_rules": _FIRST_RULES, **json.loads(noted)} if noted else {}
