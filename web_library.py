"""A second local collection as the web: a folder of PDFs, text and Markdown, for when there is no web to search.

Nothing leaves this machine. The index lies in the data folder; each search spends a few seconds to bring it up to
date, file by file, so that a large folder is indexed over several searches rather than holding one up.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import ClassVar
from urllib.parse import quote

from chunker import RULES
from config import Settings
from errors import ConfigurationError, PdfError, ProviderUnavailableError
from i18n import Language
from web_index import TABLE, Passage, add_passages, create_index, find_passages
from web_results import WebResult
from web_text import seen, split_text

SCHEME = "library"
INDEX_FILE = "web_library.sqlite3"
FORMAT = 2
"""Of the index; another one is made anew."""
FRESH_SECONDS = 5.0
"""How long the folder is not looked through again."""
REFRESH_SECONDS = 3.0
"""How long one search may spend on new files before it uses what is there; one file is always read."""
SUFFIXES = frozenset({".pdf", ".txt", ".md"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LibraryCounts:
    """What the index holds."""

    files: int
    passages: int


def open_library(settings: Settings) -> LibraryProvider:
    """Return the library of the settings.

    :raises ConfigurationError: no folder is set, or it is not there.
    """
    folder = settings.web_library_dir
    if folder is None or not folder.is_dir():
        raise ConfigurationError(
            f"web provider library: CRAG_WEB_LIBRARY_DIR={folder}: not a folder",
            hint="set CRAG_WEB_LIBRARY_DIR to the folder of its files",
            name="CRAG_WEB_LIBRARY_DIR",
        )
    return LibraryProvider(settings, folder=folder)


class LibraryProvider:
    """Answers with passages of the files in a folder; addresses are `library:<path in the folder>#page=N`."""

    name: ClassVar[str] = "library"
    local: ClassVar[bool] = True
    interval: ClassVar[float] = 0.0

    def __init__(self, settings: Settings, *, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._lock = Lock()
        self._fresh_until = 0.0

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        """Return at most `limit` passages, best first by BM25.

        :raises ProviderUnavailableError: the folder is not there, or the index cannot be used.
        """
        try:
            self.refresh(seconds=REFRESH_SECONDS)
            with closing(self._connect()) as connection:
                found = find_passages(connection, query, limit=limit)
        except (OSError, sqlite3.Error) as error:
            raise ProviderUnavailableError(f"library: {error}", name=self.name) from error
        return [_result(passage) for passage in found]

    def counts(self) -> LibraryCounts:
        """Return how many files and passages the index holds."""
        with closing(self._connect()) as connection:
            files = connection.execute("SELECT count(*) FROM files").fetchone()[0]
            passages = connection.execute(f"SELECT count(*) FROM {TABLE}").fetchone()[0]  # noqa: S608
        return LibraryCounts(files=files, passages=passages)

    def refresh(self, *, seconds: float = math.inf) -> int:
        """Bring the index up to date, for about `seconds` at most, and return the number of files that were read.

        While another thread is at it, the index is used as it is. A file that cannot be read is logged and left out.

        :raises ProviderUnavailableError: the folder is not there.
        """
        if not self._folder.is_dir():
            raise ProviderUnavailableError(f"library: {self._folder} is not a folder", name=self.name)
        if time.monotonic() < self._fresh_until or not self._lock.acquire(blocking=False):
            return 0
        try:
            with closing(self._connect()) as connection:
                return self._refresh(connection, deadline=time.monotonic() + seconds)
        finally:
            self._lock.release()

    def _refresh(self, connection: sqlite3.Connection, *, deadline: float) -> int:
        present = {path.relative_to(self._folder).as_posix(): _state(path) for path in _files(self._folder)}
        known = dict(connection.execute("SELECT source, state FROM files"))
        for source in known.keys() - present.keys():
            self._replace(connection, source=source, state="")
        read = 0
        for source, state in present.items():
            if known.get(source) != state:
                if read and time.monotonic() >= deadline:
                    logger.warning("the library is not indexed to its end yet: run index-library")
                    return read
                self._replace(connection, source=source, state=state)
                read += 1
        self._fresh_until = time.monotonic() + FRESH_SECONDS
        return read

    def _replace(self, connection: sqlite3.Connection, *, source: str, state: str) -> None:
        """Put the file's passages in place of those known; without a state the file is gone."""
        passages = list(self._passages(source)) if state else []
        with connection:
            connection.execute(f"DELETE FROM {TABLE} WHERE source = ?", (source,))  # noqa: S608
            connection.execute("DELETE FROM files WHERE source = ?", (source,))
            add_passages(connection, passages=passages)
            if state:
                connection.execute("INSERT INTO files VALUES (?, ?)", (source, state))

    def _passages(self, source: str) -> Iterator[Passage]:
        path = self._folder / source
        size = self._settings.chunk_size
        try:
            for page, title, text in _sections(path, settings=self._settings):
                for piece in split_text(text, size=size):
                    yield Passage(text=piece, title=seen(title), source=source, page=page)
        except (OSError, UnicodeError, PdfError) as error:
            logger.warning("library file %s cannot be read: %s", source, type(error).__name__)

    def _connect(self) -> sqlite3.Connection:
        self._settings.data_dir.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._settings.data_dir / INDEX_FILE, timeout=5.0)
        with connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS files (source TEXT PRIMARY KEY, state TEXT)")
            connection.execute("CREATE TABLE IF NOT EXISTS library (made_of TEXT PRIMARY KEY)")
            create_index(connection)
            made_of = f"{FORMAT} {RULES} {self._settings.chunk_size} {self._folder.resolve()}"
            if connection.execute("SELECT * FROM library").fetchall() != [(made_of,)]:
                for table in ("files", TABLE, "library"):
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608
                connection.execute("INSERT INTO library VALUES (?)", (made_of,))
        return connection


def _files(folder: Path) -> Iterator[Path]:
    """Files of the kinds read here; links that lead out of the folder are not followed."""
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES and path.is_file() and path.resolve().is_relative_to(root):
            yield path


def _state(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size}:{stat.st_mtime_ns}"


def _sections(path: Path, *, settings: Settings) -> Iterator[tuple[int, str, str]]:
    """Page (0 without pages), title and text of each section of a file."""
    match path.suffix.lower():
        case ".pdf":
            from web_pdf import pdf_pages

            for page, text in pdf_pages(path, settings=settings):
                yield page, path.stem, text
        case ".md":
            yield from _markdown_sections(path)
        case _:
            yield 0, path.stem, path.read_text(encoding="utf-8-sig", errors="replace")


def _markdown_sections(path: Path) -> Iterator[tuple[int, str, str]]:
    """Text under each heading, titled by its headings."""
    from langchain_text_splitters import MarkdownHeaderTextSplitter

    levels = [("#", "1"), ("##", "2"), ("###", "3")]
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    for section in MarkdownHeaderTextSplitter(levels).split_text(text):
        title = " – ".join(section.metadata[name] for _, name in levels if name in section.metadata)
        yield 0, title or path.stem, section.page_content


def _result(passage: Passage) -> WebResult:
    anchor = f"#page={passage.page}" if passage.page else ""
    return WebResult(
        url=f"{SCHEME}:{quote(passage.source)}{anchor}", title=passage.title, snippet="", text=passage.text
    )
