"""The tables of the catalogue and the rows they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    name TEXT PRIMARY KEY, stamp TEXT NOT NULL, document_id TEXT NOT NULL, status TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;
CREATE INDEX files_document ON files (document_id);
CREATE TABLE documents (
    document_id TEXT PRIMARY KEY, pages INTEGER NOT NULL, chunks INTEGER NOT NULL, parser TEXT NOT NULL,
    ocr_pages INTEGER NOT NULL, seconds REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE pending (document_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE pages (
    document_id TEXT NOT NULL, page INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (document_id, page));
CREATE TABLE blocks (
    document_id TEXT NOT NULL, number INTEGER NOT NULL, page INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (document_id, number));
CREATE TABLE chunks (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document_id TEXT NOT NULL, ordinal INTEGER NOT NULL,
    type TEXT NOT NULL, text TEXT NOT NULL, header TEXT NOT NULL, heading_path TEXT NOT NULL, pieces TEXT NOT NULL,
    terms TEXT NOT NULL);
CREATE INDEX chunks_document ON chunks (document_id, ordinal);
CREATE INDEX chunks_heading ON chunks (heading_path, document_id);
CREATE VIRTUAL TABLE lexicon USING fts5 (
    terms, content='chunks', content_rowid='row', tokenize='unicode61 remove_diacritics 0');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (lexicon, 'row');
"""
VERSION = 1


class FileStatus(StrEnum):
    """What became of a file at the last build."""

    INDEXED = "indexed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file: `stamp` tells whether its bytes may have changed, `document_id` is the hash of its bytes."""

    name: str
    stamp: str
    document_id: str
    status: FileStatus
    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One content (any number of file names): what parsing it gave and how long that took."""

    document_id: str
    pages: int
    chunks: int
    parser: str
    ocr_pages: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Counts:
    """What the catalogue holds, counted afresh; `pages` and `chunks` count each content once."""

    files: int
    documents: int
    pages: int
    chunks: int
    failed: int
