"""The SQLite catalogue beside the vectors: files, documents, pages, blocks, chunks, their BM25 index, build state.

The catalogue decides what is in the knowledge base: a vector whose chunk is not here does not exist. One file of
this kind belongs to one generation of a knowledge base; a full rebuild fills the next one.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from catalogue_rows import SCHEMA, VERSION, Counts, DocumentRow, FileRow, FileStatus
from errors import StoreError, store_failure
from schema import Block, BlockType, Chunk, Piece
from wording import under

__all__ = ["Catalogue", "Counts", "DocumentRow", "FileRow", "FileStatus"]

_BLOCK: TypeAdapter[Block] = TypeAdapter(Block)
_STATUSES = {str(status): status for status in FileStatus}
_VARIABLES = 900
_POSTINGS = 10_000
_FEWEST = 2
_REMEMBERED = 50_000
_SECTION = (
    "heading_path IN (SELECT heading_path FROM (SELECT DISTINCT heading_path FROM chunks) WHERE under(heading_path, ?))"
)


class Catalogue:
    """One generation's SQLite file; safe to share between threads, readable by other processes while written.

    Each commit notes in `written` who made it: `writer`, which names this process.
    :raises StoreError: the file cannot be opened, is damaged, or comes from another version of the program.
    """

    def __init__(self, path: Path, *, writer: str = "") -> None:
        self.path = path
        self._writer = writer
        self._frequencies: dict[str, int] = {}
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._failure(error) from error
        try:
            with self._guarded() as connection:
                connection.create_function("under", 2, _under, deterministic=True)
                connection.execute("PRAGMA journal_mode = WAL")
                self._migrate(connection)
        except StoreError:
            self._connection.close()
            raise

    def _migrate(self, connection: sqlite3.Connection) -> None:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif found != VERSION:
            raise StoreError(
                f"{self.path} has version {found}, not {VERSION}",
                hint="cli.py build --rebuild",
                code="store_damaged",
                path=self.path,
            )

    def close(self) -> None:
        """Close the file; the object is of no use afterwards."""
        with self._lock:
            self._connection.close()

    def _failure(self, error: sqlite3.Error) -> StoreError:
        return store_failure(error, path=self.path)

    @contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise self._failure(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._guarded() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Several reads that see one state, whatever another process writes between them."""
        with self._guarded() as connection:
            if connection.in_transaction:
                yield
                return
            connection.execute("BEGIN")
            try:
                yield
            finally:
                connection.execute("ROLLBACK")

    # Build state

    def meta(self, key: str) -> str:
        """Return a noted value; empty when there is none."""
        with self._guarded() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_meta(self, **values: str) -> None:
        """Note values, all or none."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def pending(self) -> frozenset[str]:
        """Return the documents that may have kept pages or vectors without being committed."""
        with self._guarded() as connection:
            return frozenset(row[0] for row in connection.execute("SELECT document_id FROM pending"))

    def mark_pending(self, document_id: str) -> None:
        """Note that pages and vectors of this document are about to be written, or must go."""
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO pending VALUES (?)", (document_id,))

    def clear_pending(self, document_id: str) -> None:
        """Note that nothing of this uncommitted document is left."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM pending WHERE document_id = ?", (document_id,))

    def save_page(self, page: int, *, document_id: str, body: str) -> None:
        """Keep one parsed page, so that a stopped build goes on after it."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", (document_id, page, zlib.compress(body.encode(), 1))
            )

    def pages(self, document_id: str, *, page: int = 0) -> dict[int, str]:
        """Return the kept pages of a document (one when given) by number, in order."""
        with self._guarded() as connection:
            rows = connection.execute(
                "SELECT page, body FROM pages WHERE document_id = ? AND ? IN (0, page) ORDER BY page",
                (document_id, page),
            ).fetchall()
        return {row[0]: zlib.decompress(row[1]).decode() for row in rows}

    def drop_pages(self, document_id: str) -> None:
        """Forget the kept pages of a document."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM pages WHERE document_id = ?", (document_id,))

    # Files and documents

    def files(self) -> dict[str, FileRow]:
        """Return every known file by name, in order of names."""
        with self._guarded() as connection:
            rows = connection.execute("SELECT name, stamp, document_id, status, error FROM files ORDER BY name")
            return {
                name: FileRow(name, stamp, document_id, _STATUSES[status], _read_error(error))
                for name, stamp, document_id, status, error in rows
            }

    def documents(self) -> dict[str, DocumentRow]:
        """Return every committed content by id."""
        with self._guarded() as connection:
            return {row[0]: DocumentRow(*row) for row in connection.execute("SELECT * FROM documents")}

    def counts(self) -> Counts:
        """Count what is here, from the rows themselves."""
        with self._guarded() as connection:
            row = connection.execute(
                "SELECT (SELECT count(*) FROM files WHERE status = 'indexed'), (SELECT count(*) FROM documents),"
                " (SELECT coalesce(sum(pages), 0) FROM documents), (SELECT count(*) FROM chunks),"
                " (SELECT count(*) FROM files WHERE status = 'failed')"
            ).fetchone()
        return Counts(*row)

    def put_files(self, rows: Iterable[FileRow]) -> None:
        """Add or replace files at once; content that no file names any more goes, its vectors marked pending."""
        with self._transaction() as connection:
            self._put_files(connection, rows=rows)

    def _put_files(self, connection: sqlite3.Connection, *, rows: Iterable[FileRow]) -> None:
        left: dict[str, None] = {}
        for row in rows:
            before = connection.execute("SELECT document_id FROM files WHERE name = ?", (row.name,)).fetchone()
            if before and before[0] != row.document_id:
                left[before[0]] = None
            error = json.dumps(dict(row.error), ensure_ascii=False)
            connection.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)",
                (row.name, row.stamp, row.document_id, row.status, error),
            )
        for document_id in left:
            self._drop_unnamed(connection, document_id=document_id)

    def remove_file(self, name: str) -> None:
        """Remove one file; content that no file names any more goes, its vectors marked pending."""
        with self._transaction() as connection:
            before = connection.execute("SELECT document_id FROM files WHERE name = ?", (name,)).fetchone()
            connection.execute("DELETE FROM files WHERE name = ?", (name,))
            if before:
                self._drop_unnamed(connection, document_id=before[0])

    def _drop_unnamed(self, connection: sqlite3.Connection, *, document_id: str) -> None:
        named = "SELECT 1 FROM files WHERE document_id = ? AND status = 'indexed'"
        if connection.execute(named, (document_id,)).fetchone():
            return
        connection.execute("INSERT OR IGNORE INTO pending VALUES (?)", (document_id,))
        connection.execute(
            "INSERT INTO lexicon (lexicon, rowid, terms) SELECT 'delete', row, terms FROM chunks WHERE document_id = ?",
            (document_id,),
        )
        for table in ("chunks", "blocks", "pages", "documents"):
            connection.execute(f"DELETE FROM {table} WHERE document_id = ?", (document_id,))  # noqa: S608

    def commit_document(
        self, row: DocumentRow, *, files: Iterable[FileRow], blocks: Sequence[Block], chunks: Mapping[Chunk, str]
    ) -> None:
        """Make a parsed and embedded content part of the knowledge base, whole or not at all.

        `chunks` gives the search terms of each chunk, separated by spaces, in reading order; `files` are its names.
        """
        numbers = {id(block): number for number, block in enumerate(blocks)}
        equal = {block: number for number, block in reversed(list(enumerate(blocks)))}
        with self._transaction() as connection:
            connection.execute("DELETE FROM pending WHERE document_id = ?", (row.document_id,))
            connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)",
                (row.document_id, row.pages, row.chunks, row.parser, row.ocr_pages, row.seconds),
            )
            connection.executemany(
                "INSERT INTO blocks VALUES (?, ?, ?, ?)",
                [(row.document_id, n, block.page, _BLOCK.dump_json(block)) for n, block in enumerate(blocks)],
            )
            for ordinal, (chunk, terms) in enumerate(chunks.items()):
                pieces = [
                    (piece.start, piece.end, numbers.get(id(piece.block), equal.get(piece.block)), piece.offset)
                    for piece in chunk.pieces
                ]
                values = (chunk.id, row.document_id, ordinal, chunk.type, chunk.text, chunk.header)
                lists = (json.dumps(chunk.heading_path, ensure_ascii=False), json.dumps(pieces))
                cursor = connection.execute(
                    "INSERT INTO chunks VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, *lists, terms)
                )
                connection.execute("INSERT INTO lexicon (rowid, terms) VALUES (?, ?)", (cursor.lastrowid, terms))
            self._put_files(connection, rows=files)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('written', ?)", (self._stamp(),))

    def note_written(self) -> None:
        """Note that vectors were written without a commit."""
        self.set_meta(written=self._stamp())

    def _stamp(self) -> str:
        return f"{self._writer}/{uuid.uuid4().hex}"

    # Reading

    def names(self, document_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the file names of each content, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for part in _parts(document_ids):
            with self._guarded() as connection:
                rows = connection.execute(
                    "SELECT document_id, name FROM files WHERE status = 'indexed' AND document_id IN"  # noqa: S608
                    f" ({_marks(part)}) ORDER BY name",
                    part,
                ).fetchall()
            for document_id, name in rows:
                found[document_id] = (*found.get(document_id, ()), name)
        return found

    def document_ids(self, names: Collection[str], *, section: str = "") -> tuple[str, ...]:
        """Return the contents of these files, without repeats.

        With a `section`, only those with a heading that contains it; of any file when none is named.
        """
        found: dict[str, None] = {}
        for part in _parts(names):
            with self._guarded() as connection:
                rows = connection.execute(
                    f"SELECT document_id FROM files WHERE status = 'indexed' AND name IN ({_marks(part)})",  # noqa: S608
                    part,
                ).fetchall()
            found.update(dict.fromkeys(row[0] for row in rows))
        if not section:
            return tuple(found)
        with self._guarded() as connection:
            rows = connection.execute(
                f"SELECT DISTINCT document_id FROM chunks WHERE {_SECTION} ORDER BY document_id",  # noqa: S608
                (section,),
            ).fetchall()
        return tuple(row[0] for row in rows if not names or row[0] in found)

    def known(self, chunk_ids: Collection[str], *, section: str = "") -> frozenset[str]:
        """Return those of the ids that are committed, and under a heading that contains `section`."""
        found: set[str] = set()
        for part in _parts(chunk_ids):
            with self._guarded() as connection:
                rows = connection.execute(f"SELECT id, heading_path FROM chunks WHERE id IN ({_marks(part)})", part)  # noqa: S608
                found.update(key for key, path in rows if not section or _under(path, section))
        return frozenset(found)

    def chunk_ids(self, document_id: str) -> tuple[str, ...]:
        """Return the ids of a document's chunks in reading order."""
        with self._guarded() as connection:
            rows = connection.execute(
                "SELECT id FROM chunks WHERE document_id = ? ORDER BY ordinal", (document_id,)
            ).fetchall()
        return tuple(row[0] for row in rows)

    def chunks(self, chunk_ids: Sequence[str], *, names: Collection[str] = ()) -> dict[str, Chunk]:
        """Return the chunks with these ids, whole with their blocks; unknown ids are left out.

        A content with several names gets the first one that is in `names`, else the first one.
        """
        rows = []
        with self._snapshot():
            for part in _parts(chunk_ids):
                with self._guarded() as connection:
                    rows += connection.execute(
                        "SELECT id, document_id, type, text, header, heading_path, pieces"  # noqa: S608
                        f" FROM chunks WHERE id IN ({_marks(part)})",
                        part,
                    ).fetchall()
            files = self.names({row[1] for row in rows})
            pieces = {row[0]: [tuple(piece) for piece in json.loads(row[6])] for row in rows}
            wanted = {(row[1], piece[2]) for row in rows for piece in pieces[row[0]]}
            blocks = self._blocks(wanted)
        found = {}
        for chunk_id, document_id, kind, text, header, path, _ in rows:
            own = files.get(document_id) or ("",)
            found[chunk_id] = Chunk(
                id=chunk_id,
                document_id=document_id,
                file=next((name for name in own if name in names), own[0]),
                text=text,
                heading_path=tuple(json.loads(path)),
                pieces=tuple(Piece(p[0], p[1], blocks[document_id, p[2]], p[3]) for p in pieces[chunk_id]),
                type=BlockType(kind),
                header=header,
            )
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def _blocks(self, wanted: Collection[tuple[str, int]]) -> dict[tuple[str, int], Block]:
        with self._guarded() as connection:
            rows = [
                (
                    key,
                    connection.execute("SELECT body FROM blocks WHERE document_id = ? AND number = ?", key).fetchone(),
                )
                for key in wanted
            ]
        return {key: _BLOCK.validate_json(row[0]) for key, row in rows if row}

    def blocks(self, document_id: str, *, page: int = 0) -> tuple[Block, ...]:
        """Return the blocks of a document (of one page when given) in reading order."""
        with self._guarded() as connection:
            rows = connection.execute(
                "SELECT body FROM blocks WHERE document_id = ? AND (? = 0 OR page = ?) ORDER BY number",
                (document_id, page, page),
            ).fetchall()
        return tuple(_BLOCK.validate_json(row[0]) for row in rows)

    def lexical(
        self, terms: Sequence[str], *, limit: int, document_ids: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Return (chunk id, BM25 score) of the best chunks with any of the terms, best first, higher is better.

        Terms are counted from the rarest on until they reach 10,000 chunks: the ones left out are in so many chunks
        that they tell little, and would take most of the time.
        """
        within = [f"document_id IN ({_marks(document_ids)})"] if document_ids else []
        within += [_SECTION] if section else []
        own = f" AND +rowid IN (SELECT row FROM chunks WHERE {' AND '.join(within)})" if within else ""  # noqa: S608
        with self._guarded() as connection:
            words = self._rarest(connection, terms=[term.replace("\0", "") for term in terms])
            if not words:
                return []
            query = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
            # By bm25() and not by rank: FTS5 would sort every row for the latter, SQLite keeps the best.
            rows = connection.execute(
                "SELECT chunks.id, -best.score FROM (SELECT rowid AS row, bm25(lexicon) AS score FROM lexicon"  # noqa: S608
                f" WHERE lexicon MATCH ?{own} ORDER BY score, row LIMIT ?) AS best"
                " JOIN chunks ON chunks.row = best.row ORDER BY best.score, best.row",
                (query, *document_ids, *([section] if section else []), limit),
            ).fetchall()
        return [(row[0], float(row[1])) for row in rows]

    def _rarest(self, connection: sqlite3.Connection, *, terms: Sequence[str]) -> list[str]:
        if len(self._frequencies) > _REMEMBERED:
            self._frequencies.clear()
        for term in terms:
            if term not in self._frequencies:
                row = connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
                self._frequencies[term] = row[0] if row else 0
        kept: list[str] = []
        reached = 0
        for term in sorted({term for term in terms if term.strip()}, key=lambda each: (self._frequencies[each], each)):
            reached += self._frequencies[term]
            if len(kept) >= _FEWEST and reached > _POSTINGS:
                break
            kept.append(term)
        return kept


@lru_cache(maxsize=10_000)
def _under(heading_path: str, section: str) -> bool:
    """Tell it of a row's headings, for SQLite."""
    return under(json.loads(heading_path), section=section)


def _read_error(text: str) -> Mapping[str, Any]:
    return {} if text == "{}" else dict(json.loads(text))


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))


def _parts(values: Collection[str]) -> Iterator[tuple[str, ...]]:
    ordered = tuple(dict.fromkeys(values))
    for start in range(0, len(ordered), _VARIABLES):
        yield ordered[start : start + _VARIABLES]
