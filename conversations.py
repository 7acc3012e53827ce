"""Conversations that outlive a reload and a restart: questions, whole answers and the reader's judgement of them."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from errors import StoreError
from schema import Answer, Block, BlockParser, BlockType, Chunk, Document, Graded, Piece, Region, Strip

FILE_NAME = "conversations.sqlite"
TITLE_LENGTH = 60
_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations(
    id TEXT PRIMARY KEY, title TEXT NOT NULL, owner TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns(
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    answer TEXT NOT NULL, created TEXT NOT NULL, rating INTEGER, comment TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS turns_by_conversation ON turns(conversation, number);
CREATE INDEX IF NOT EXISTS conversations_by_owner ON conversations(owner, updated);
"""


class Rating(IntEnum):
    """The reader's judgement of an answer."""

    DOWN = 0
    UP = 1


@dataclass(frozen=True, slots=True)
class Conversation:
    """A row of the list: times are ISO 8601 in UTC."""

    id: str
    title: str
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One question with its whole answer, as first drawn."""

    id: str
    answer: Answer
    created: str
    rating: Rating | None = None
    comment: str = ""


class Conversations:
    """The conversations of one data folder; safe to use from many threads and processes.

    `owner` keeps the conversations of signed-in people apart; it is "" without sign-in.

    :raises StoreError: from every method, when the file cannot be read or written.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        data_dir.mkdir(parents=True, exist_ok=True)
        with self._open() as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.executescript(_SCHEMA)

    def list(self, *, owner: str = "", limit: int = 200) -> tuple[Conversation, ...]:
        """Return the conversations of `owner`, last used first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT id, title, created, updated FROM conversations WHERE owner = ?"
                " ORDER BY updated DESC, rowid DESC LIMIT ?",
                (owner, limit),
            ).fetchall()
        return tuple(Conversation(*row) for row in rows)

    def find(self, conversation_id: str, *, owner: str = "") -> Conversation | None:
        """Return a conversation of `owner`, None when there is no such one."""
        with self._open() as database:
            row = database.execute(
                "SELECT id, title, created, updated FROM conversations WHERE id = ? AND owner = ?",
                (conversation_id, owner),
            ).fetchone()
        return Conversation(*row) if row else None

    def create(self, title: str, *, owner: str = "") -> Conversation:
        """Start a conversation named after its first question."""
        made = Conversation(uuid.uuid4().hex, _title(title), _now(), _now())
        with self._open() as database:
            database.execute(
                "INSERT INTO conversations(id, title, owner, created, updated) VALUES (?, ?, ?, ?, ?)",
                (made.id, made.title, owner, made.created, made.updated),
            )
        return made

    def rename(self, conversation_id: str, *, title: str, owner: str = "") -> None:
        """Give a conversation another title; an empty one is ignored."""
        if title.strip():
            with self._open() as database:
                database.execute(
                    "UPDATE conversations SET title = ? WHERE id = ? AND owner = ?",
                    (_title(title), conversation_id, owner),
                )

    def delete(self, conversation_id: str, *, owner: str = "") -> None:
        """Remove a conversation with all its turns."""
        with self._open() as database:
            database.execute("DELETE FROM conversations WHERE id = ? AND owner = ?", (conversation_id, owner))

    def add(self, conversation_id: str, *, answer: Answer) -> StoredTurn:
        """Append a turn and return it as it will be read back."""
        turn = StoredTurn(uuid.uuid4().hex, slim_answer(answer), _now())
        text = _answers().dump_json(turn.answer).decode()
        with self._open() as database:
            database.execute(
                "INSERT INTO turns(id, conversation, answer, created) VALUES (?, ?, ?, ?)",
                (turn.id, conversation_id, text, turn.created),
            )
            database.execute("UPDATE conversations SET updated = ? WHERE id = ?", (turn.created, conversation_id))
        return turn

    def turns(self, conversation_id: str, *, limit: int | None = None) -> tuple[StoredTurn, ...]:
        """Return the last `limit` turns (all when None), oldest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT id, answer, created, rating, comment FROM turns WHERE conversation = ?"
                " ORDER BY number DESC LIMIT ?",
                (conversation_id, -1 if limit is None else limit),
            ).fetchall()
        return tuple(self._turn(row) for row in reversed(rows))

    def count(self, conversation_id: str) -> int:
        """Return how many turns a conversation has."""
        with self._open() as database:
            row = database.execute("SELECT count(*) FROM turns WHERE conversation = ?", (conversation_id,)).fetchone()
        return int(row[0])

    def rewind(self, turn_id: str) -> None:
        """Remove a turn and all that follow it in its conversation, so that it can be asked again."""
        with self._open() as database:
            database.execute(
                "DELETE FROM turns WHERE conversation = (SELECT conversation FROM turns WHERE id = ?1)"
                " AND number >= (SELECT number FROM turns WHERE id = ?1)",
                (turn_id,),
            )

    def rate(self, turn_id: str, *, rating: Rating | None, comment: str = "") -> None:
        """Keep the reader's judgement of a turn; None takes it back."""
        with self._open() as database:
            database.execute(
                "UPDATE turns SET rating = ?, comment = ? WHERE id = ?",
                (None if rating is None else int(rating), comment.strip(), turn_id),
            )

    def rated(self, *, owner: str = "") -> tuple[StoredTurn, ...]:
        """Return every turn of `owner` that was judged, oldest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT turns.id, answer, turns.created, rating, comment FROM turns"
                " JOIN conversations ON conversations.id = conversation"
                " WHERE rating IS NOT NULL AND owner = ? ORDER BY number",
                (owner,),
            ).fetchall()
        return tuple(self._turn(row) for row in rows)

    def _turn(self, row: tuple[str, str, str, int | None, str]) -> StoredTurn:
        turn_id, answer, created, rating, comment = row
        try:
            read = _answers().validate_json(answer)
        except ValidationError as error:
            raise StoreError(f"turn {turn_id} cannot be read", hint=f"remove {self.path}", name=turn_id) from error
        return StoredTurn(turn_id, read, created, None if rating is None else Rating(rating), comment)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            database = sqlite3.connect(self.path, timeout=10)
            try:
                with database:
                    database.execute("PRAGMA foreign_keys=ON")
                    yield database
            finally:
                database.close()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}", hint=f"check or remove {self.path}", name=FILE_NAME) from error


def slim_answer(answer: Answer) -> Answer:
    """Return the answer with chunks reduced to their boxes: all a page draws, a fraction of the size."""
    graded = tuple(Graded(_slim(each.document), each.grade) for each in answer.graded)
    strips = tuple(_slim_strip(strip) for strip in answer.knowledge.strips)
    return replace(
        answer,
        graded=graded,
        knowledge=replace(answer.knowledge, strips=strips),
        search=replace(answer.search, documents=()),
    )


def _slim_strip(strip: Strip) -> Strip:
    return replace(strip, document=replace(_slim(strip.document, regions=strip.regions), text=""))


def _slim(document: Document, *, regions: tuple[Region, ...] | None = None) -> Document:
    """The same document whose chunk holds one block that stands for the regions, whatever characters are asked for."""
    chunk = document.chunk
    if chunk is None:
        return document
    kept = document.regions(0, len(document.text)) if regions is None else regions
    if not kept:
        return replace(document, chunk=None)
    block = Block(chunk.document_id, kept[0].page, 0, BlockType.TEXT, "", kept[0].bbox, BlockParser.TEXT, parts=kept)
    size = max(len(document.text), len(chunk.text), 1)
    return replace(document, chunk=replace(_bare(chunk), pieces=(Piece(0, size, block),)))


def _bare(chunk: Chunk) -> Chunk:
    return replace(chunk, text="", header="", heading_path=())


@cache
def _answers() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


def _title(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= TITLE_LENGTH else flat[: TITLE_LENGTH - 1] + "…"


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="seconds")
