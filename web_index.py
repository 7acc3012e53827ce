"""A full-text index over passages (SQLite FTS5, BM25) that finds Chinese by character pairs and English by stems."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from keywords import ENGLISH_FUNCTION_WORDS

TABLE = "passages"
_HAN_RUN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a source: `source` is its relative path or address, `page` 0 where there are no pages."""

    text: str
    title: str = ""
    source: str = ""
    page: int = 0


def create_index(connection: sqlite3.Connection) -> None:
    """Create the passage table unless it is there."""
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {TABLE} USING fts5("
        "search, text UNINDEXED, title UNINDEXED, source UNINDEXED, page UNINDEXED, tokenize='porter unicode61')"
    )


def add_passages(connection: sqlite3.Connection, *, passages: Iterable[Passage]) -> None:
    """Add passages; their titles are searched too."""
    connection.executemany(
        f"INSERT INTO {TABLE} (search, text, title, source, page) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        (
            (_searchable(f"{passage.title} {passage.text}"), passage.text, passage.title, passage.source, passage.page)
            for passage in passages
        ),
    )


def find_passages(connection: sqlite3.Connection, query: str, *, limit: int) -> list[Passage]:
    """Return at most `limit` passages that share a word with the query, best first by BM25."""
    words = dict.fromkeys(_WORD.findall(_searchable(query).lower()))
    telling = [word for word in words if word not in ENGLISH_FUNCTION_WORDS] or list(words)
    if not telling:
        return []
    rows = connection.execute(
        f"SELECT text, title, source, page FROM {TABLE} WHERE {TABLE} MATCH ? ORDER BY rank LIMIT ?",  # noqa: S608
        (" OR ".join(f'"{word}"' for word in telling), limit),
    )
    return [Passage(text=text, title=title, source=source, page=page) for text, title, source, page in rows]


def best_passages(texts: list[str], *, question: str, limit: int) -> list[str]:
    """Return the `limit` texts nearest to the question, in their own order; the first ones when none shares a word."""
    if len(texts) <= limit:
        return texts
    with closing(sqlite3.connect(":memory:")) as connection:
        create_index(connection)
        add_passages(connection, passages=[Passage(text=text, page=index) for index, text in enumerate(texts)])
        found = find_passages(connection, question, limit=limit)
    chosen = {passage.page for passage in found}
    chosen.update([index for index in range(len(texts)) if index not in chosen][: limit - len(chosen)])
    return [texts[index] for index in sorted(chosen)]


def _searchable(text: str) -> str:
    """Chinese runs as overlapping pairs; the tokenizer splits and stems the rest."""

    def pairs(match: re.Match[str]) -> str:
        run = match.group()
        return f" {' '.join(run[i : i + 2] for i in range(max(1, len(run) - 1)))} "

    return _HAN_RUN.sub(pairs, text)
