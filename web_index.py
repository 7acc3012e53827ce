"""A full-text index over passages (SQLite FTS5, BM25): the terms of the retriever, English ones by their stems."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from retriever import search_terms

TABLE = "passages"


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
            (
                " ".join(search_terms(f"{passage.title}\n{passage.text}")),
                passage.text,
                passage.title,
                passage.source,
                passage.page,
            )
            for passage in passages
        ),
    )


def find_passages(connection: sqlite3.Connection, query: str, *, limit: int) -> list[Passage]:
    """Return at most `limit` passages that share a term with the query, best first."""
    return [passage for passage, _ in find_ranked(connection, search_terms(query), limit=limit)]


def find_ranked(connection: sqlite3.Connection, terms: Iterable[str], *, limit: int) -> list[tuple[Passage, float]]:
    """Return at most `limit` passages with any of the terms and their BM25 score, best first."""
    wanted = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
    if not wanted:
        return []
    rows = connection.execute(
        f"SELECT text, title, source, page, -rank FROM {TABLE} WHERE {TABLE} MATCH ? ORDER BY rank LIMIT ?",  # noqa: S608
        (wanted, limit),
    )
    return [
        (Passage(text=text, title=title, source=source, page=page), score) for text, title, source, page, score in rows
    ]


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
