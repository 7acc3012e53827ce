"""A rebuild sets a store aside only when it is damaged; what is locked, full or out of reach stays where it is."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from chroma_client import chroma_errors
from errors import DiskFullError, StoreError, StoreLockedError, store_failure
from i18n import LANGUAGES, translate
from knowledge_base import KnowledgeBase
from tests.integration.helpers_store import check_complete, find, open_base, write_library
from vector_store import ChromaStore

ROOT = Path(__file__).resolve().parents[2]
REBUILD = """
import sys
from pathlib import Path
from errors import StoreError
from tests.integration.helpers_store import open_base
with open_base(Path(sys.argv[1]), vector_store=sys.argv[2]) as base:
    try:
        print(base.build(rebuild=True).documents)
    except StoreError as error:
        print(error.code)
"""


def rebuild_elsewhere(folder: Path, *, store: str = "chroma") -> str:
    """Rebuild in another process; return the number of documents, or the error's code."""
    command = [sys.executable, "-c", REBUILD, str(folder), store]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.strip()


def filled(folder: Path, **values: Any) -> KnowledgeBase:
    base = open_base(folder, **values)
    write_library(base.files_dir, files=2)
    base.build()
    return base


@pytest.mark.parametrize("store", ["qdrant", "milvus"])
def test_store_that_another_process_has_open_is_left_alone(tmp_path: Path, store: str) -> None:
    pytest.importorskip(f"langchain_{store}", reason=f"langchain-{store} is not installed")
    if store == "milvus":
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    with filled(tmp_path, vector_store=store) as page:
        assert find(page, "heron")
        before = sorted(path.name for path in page.base.folder.iterdir())
        assert rebuild_elsewhere(tmp_path, store=store) == "store_locked"
        assert sorted(path.name for path in page.base.folder.iterdir()) == before
        assert find(page, "heron")
        page.build(rebuild=True)
        assert page.status().vectors == page.status().chunks > 0


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("error returned from database: (code: 13) database or disk is full"),
        RuntimeError("error returned from database: (code: 5) database is locked"),
        RuntimeError("error returned from database: (code: 14) unable to open database file"),
        TimeoutError("timed out"),
    ],
)
def test_failure_that_is_no_damage_ends_a_rebuild_and_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def count(store: ChromaStore) -> int:
        with chroma_errors("vectors"):
            raise failure

    with filled(tmp_path) as base:
        with monkeypatch.context() as patch:
            patch.setattr(ChromaStore, "count", count)
            with pytest.raises(StoreError) as caught:
                base.build(rebuild=True)
        assert caught.value.code != "store_damaged"
        assert not list(base.base.folder.glob("damaged-*"))
        assert find(base, "heron")


def test_note_that_cannot_be_read_just_now_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def denied(path: Path, encoding: str | None = None, errors: str | None = None) -> str:
        if path.name == "current":
            raise PermissionError(13, "Permission denied")
        return read(path, encoding, errors)

    with filled(tmp_path) as base:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", denied)
            with pytest.raises(StoreError):
                base.build(rebuild=True)
        assert not list(base.base.folder.glob("damaged-*"))
        (base.base.folder / "current").write_text("?")
        assert base.build(rebuild=True).documents == 2
        assert len(list(base.base.folder.glob("damaged-*"))) == 1


@pytest.mark.parametrize("kind", ["catalogue", "chroma"])
def test_file_without_its_tables_is_damaged(tmp_path: Path, kind: str) -> None:
    with filled(tmp_path) as base:
        folder = base.base.folder
    path, table = {
        "catalogue": (folder / "catalogue-1.sqlite3", "chunks"),
        "chroma": (folder / "vectors" / "chroma.sqlite3", "collections"),
    }[kind]
    with sqlite3.connect(path) as connection:
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    with open_base(tmp_path) as base:
        with pytest.raises(StoreError) as caught:
            base.status()
        assert caught.value.code == "store_damaged"
        assert base.build(rebuild=True).documents == 2
        check_complete(base)


def test_lost_catalogue_is_named_and_the_next_build_makes_it_anew(tmp_path: Path) -> None:
    with filled(tmp_path) as base:
        path = base.base.folder / "catalogue-1.sqlite3"
    path.unlink()
    with open_base(tmp_path) as base:
        with pytest.raises(StoreError) as caught:
            base.status()
        assert caught.value.code == "store_damaged"
        assert not path.exists()
        assert base.build().documents == 2
        check_complete(base)


def test_readers_of_a_store_that_another_process_sets_aside_see_the_new_one(tmp_path: Path) -> None:
    with filled(tmp_path) as page:
        assert len(find(page, "heron")) == 2
        write_library(page.files_dir, files=3)
        path = page.base.folder / "vectors" / "chroma.sqlite3"
        path.write_bytes(b"no database" * 1000)
        errors: list[Exception] = []
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                try:
                    page.documents()
                    page.lexical(["heron"], limit=3)
                except StoreError as error:
                    errors.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        try:
            assert rebuild_elsewhere(tmp_path) == "3"
        finally:
            done.set()
            thread.join()
        assert {error.code for error in errors if isinstance(error, StoreError)} <= {"store_damaged", "store_gone"}
        assert len(list(page.base.folder.glob("damaged-*"))) == 1
        assert page.status().documents == 3
        assert len(find(page, "heron")) == 3
        assert page.build().documents == 3
        check_complete(page)


def test_store_set_aside_in_this_process_is_not_read_by_its_other_pages(tmp_path: Path) -> None:
    with filled(tmp_path) as page, open_base(tmp_path) as builder:
        assert len(find(page, "heron")) == 2
        write_library(page.files_dir, files=3)
        (page.base.folder / "current").write_text("?")
        assert builder.build(rebuild=True).documents == 3
        assert len(find(page, "heron")) == 3
        check_complete(page)
    with open_base(tmp_path) as base:
        check_complete(base)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (sqlite3.OperationalError("database or disk is full"), "disk_full"),
        (RuntimeError("Storage folder x is already accessed by another instance of Qdrant client."), "store_locked"),
        (RuntimeError("error returned from database: (code: 261) database is locked"), "store_locked"),
        (RuntimeError("error returned from database: (code: 11) database disk image is malformed"), "store_damaged"),
        (RuntimeError("error returned from database: (code: 26) file is not a database"), "store_damaged"),
        (RuntimeError("error returned from database: (code: 1) no such table: collections"), "store_damaged"),
        (RuntimeError("error returned from database: (code: 14) unable to open database file"), "store"),
        (OSError(5, "Input/output error"), "store"),
    ],
)
def test_only_damage_is_called_damage(failure: Exception, code: str) -> None:
    told = store_failure(failure, path="here")
    assert told.code == code
    assert isinstance(told, DiskFullError) == (code == "disk_full")
    assert isinstance(told, StoreLockedError) == (code == "store_locked")
    assert store_failure(failure, path="http://server", local=False).code != "store_damaged"
    for language in LANGUAGES:
        assert translate(f"error.{told.code}", language=language, **told.values)


def test_a_locked_sqlite_file_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "some.sqlite3"
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError) as caught:
        other.execute("BEGIN IMMEDIATE")
    other.close()
    holder.close()
    assert store_failure(caught.value, path=path).code == "store_locked"
