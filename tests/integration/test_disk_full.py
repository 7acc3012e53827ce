"""A full disk has its own words, and what was written before is kept."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from catalogue import Catalogue
from chroma_client import chroma_errors
from errors import DiskFullError, StoreError
from i18n import LANGUAGES, translate
from tests.integration.helpers_store import check_complete, open_base, write_library


def test_catalogue_that_cannot_grow_keeps_its_pages(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "catalogue.sqlite")
    catalogue.save_page(1, document_id="d", body="kept")
    with catalogue._guarded() as connection:  # SQLite's own limit fails as a full disk does
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFullError) as caught:
        catalogue.save_page(2, document_id="d", body="x" * 1_000_000)
    assert catalogue.pages("d") == {1: "kept"}
    catalogue.close()
    for language in LANGUAGES:
        assert str(tmp_path) in translate(f"error.{caught.value.code}", language=language, **caught.value.values)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("error returned from database: (code: 13) database or disk is full"),
    ],
)
def test_vectors_that_cannot_be_written(error: Exception) -> None:
    with pytest.raises(DiskFullError, match="vectors"), chroma_errors("vectors"):
        raise error


def test_other_failures_of_the_store_do_not_blame_the_disk() -> None:
    with pytest.raises(StoreError) as caught, chroma_errors("vectors"):
        raise RuntimeError("the index is broken")
    assert not isinstance(caught.value, DiskFullError)


@pytest.mark.parametrize("name", ["base.new", "build.json", "current.new"])
def test_build_that_finds_no_room_for_its_notes_goes_on_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_library(tmp_path / "Files", files=2)
    written = Path.write_text

    def full(path: Path, *arguments: Any, **named: Any) -> int:
        if path.name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(path, *arguments, **named)

    with open_base(tmp_path) as base:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_text", full)
            with pytest.raises(DiskFullError):
                base.build()
        assert base.build().documents == 2
        check_complete(base)
