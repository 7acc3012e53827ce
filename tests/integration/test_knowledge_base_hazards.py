"""What happens to files outside the program: locked, renumbered, unmounted, open elsewhere; nothing is lost silently."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import indexing
from build_report import BuildReport, Progress
from catalogue import Catalogue
from errors import ProviderUnavailableError, StoreError
from knowledge_base import KnowledgeBase
from pdf_loader import PageResult, document_id_of
from tests.integration.helpers_store import (
    LineLoader,
    WordEmbedder,
    check_complete,
    find,
    open_base,
    stored_ids,
    write_library,
    write_pdf,
)

HERON = "The heron waits beside the weir until the water clears."
LAMP = "The lamp was bought in a shop that closed the same winter."


class CountingLoader(LineLoader):
    def __init__(self) -> None:
        self.read: list[tuple[str, int]] = []

    def pages(self, path: Path, **arguments: Any) -> Iterator[PageResult]:
        for page in super().pages(path, **arguments):
            self.read.append((path.name, page.page))
            yield page


@pytest.fixture
def loader() -> CountingLoader:
    return CountingLoader()


@pytest.fixture
def base(tmp_path: Path, loader: CountingLoader) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path, loader=loader) as opened:
        yield opened


def stop_at(*, file: int, page: int) -> dict[str, Any]:
    stop = threading.Event()

    def watch(progress: Progress) -> None:
        if (progress.file_number, progress.page) == (file, page):
            stop.set()

    return {"cancel": stop, "progress": watch}


def outcomes(report: BuildReport) -> dict[str, str]:
    return {each.file: str(each.status) for each in report.files}


def cannot(error: OSError, *, paths: set[str], action: Callable[..., Any]) -> Callable[..., Any]:
    """Return `action` that fails for files of these names."""

    def act(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name in paths:
            raise error
        return action(path, *arguments, **named)

    return act


def test_files_that_could_not_be_opened_are_read_once_they_can(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    write_pdf(base.files_dir / "b.pdf", pages=[[LAMP]])
    with monkeypatch.context() as patch:
        locked = cannot(PermissionError(errno.EACCES, "in use"), paths={"a.pdf", "b.pdf"}, action=document_id_of)
        patch.setattr(indexing, "document_id_of", locked)
        report = base.build()
    assert outcomes(report) == {"a.pdf": "failed", "b.pdf": "failed"}
    assert {each.error["code"] for each in report.files} == {"pdf_no_access"}
    assert outcomes(base.build()) == {"a.pdf": "indexed", "b.pdf": "indexed"}
    check_complete(base)
    assert find(base, LAMP, files=["b.pdf"]) == [LAMP]
    assert find(base, HERON, files=["a.pdf"]) == [HERON]


def test_a_touched_file_that_cannot_be_opened_keeps_what_is_known_of_it(
    base: KnowledgeBase, loader: CountingLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    base.build()
    os.utime(path, (1, 1))
    with monkeypatch.context() as patch:
        locked = cannot(PermissionError(errno.EACCES, "in use"), paths={"a.pdf"}, action=document_id_of)
        patch.setattr(indexing, "document_id_of", locked)
        report = base.build()
    assert outcomes(report) == {"a.pdf": "failed"}
    (listed,) = base.documents()
    assert listed.status == "changed"
    assert listed.error is not None
    assert listed.error["code"] == "pdf_no_access"
    assert find(base, HERON) == [HERON]
    loader.read.clear()
    assert outcomes(base.build()) == {"a.pdf": "unchanged"}
    assert loader.read == []
    assert base.documents()[0].error is None


def test_a_file_that_cannot_be_opened_costs_no_half_read_file_its_pages(
    base: KnowledgeBase, loader: CountingLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_library(base.files_dir, files=1, pages=4)
    assert base.build(**stop_at(file=1, page=2)).stopped
    write_pdf(base.files_dir / "locked.pdf", pages=[[LAMP]])
    loader.read.clear()
    locked = cannot(PermissionError(errno.EACCES, "in use"), paths={"locked.pdf"}, action=document_id_of)
    monkeypatch.setattr(indexing, "document_id_of", locked)
    base.build()
    assert loader.read == [("file-0000.pdf", 3), ("file-0000.pdf", 4)]


def test_renumbered_files_keep_their_contents(base: KnowledgeBase, loader: CountingLoader) -> None:
    write_pdf(base.files_dir / "1.pdf", pages=[[HERON]])
    write_pdf(base.files_dir / "2.pdf", pages=[[LAMP]])
    base.build()
    (base.files_dir / "2.pdf").rename(base.files_dir / "3.pdf")
    (base.files_dir / "1.pdf").rename(base.files_dir / "2.pdf")
    loader.read.clear()
    report = base.build()
    check_complete(base)
    assert outcomes(report) == {"1.pdf": "removed", "2.pdf": "indexed", "3.pdf": "indexed"}
    assert {each.file: each.chunks for each in base.documents()} == {"2.pdf": 1, "3.pdf": 1}
    assert find(base, LAMP, files=["3.pdf"]) == [LAMP]
    assert loader.read == []


def test_swapped_files_keep_their_contents(base: KnowledgeBase, loader: CountingLoader) -> None:
    first = write_pdf(base.files_dir / "1.pdf", pages=[[HERON]])
    second = write_pdf(base.files_dir / "2.pdf", pages=[[LAMP]])
    base.build()
    aside = first.rename(base.files_dir / "aside")
    second.rename(first)
    aside.rename(second)
    loader.read.clear()
    base.build()
    check_complete(base)
    assert find(base, LAMP, files=["1.pdf"]) == [LAMP]
    assert find(base, HERON, files=["2.pdf"]) == [HERON]
    assert loader.read == []


def test_an_update_never_empties_a_knowledge_base_but_a_rebuild_does(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2)
    base.build()
    before = stored_ids(base)
    aside = base.files_dir.rename(base.files_dir.with_name("drive"))
    base.files_dir.mkdir()
    with pytest.raises(StoreError) as caught:
        base.build()
    assert caught.value.code == "files_empty"
    assert caught.value.values["count"] == 2
    assert stored_ids(base) == before
    base.files_dir.rmdir()
    aside.rename(base.files_dir)
    assert set(outcomes(base.build()).values()) == {"unchanged"}
    for path in base.files_dir.iterdir():
        path.unlink()
    assert base.build(rebuild=True).documents == 0
    check_complete(base)
    assert not base.build().files


def test_the_only_file_may_go_by_hand(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=1)
    base.build()
    (base.files_dir / "file-0000.pdf").unlink()
    assert base.build().documents == 0
    check_complete(base)


def test_deleting_every_file_empties_the_knowledge_base(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2)
    base.build()
    base.delete("file-0000.pdf")
    base.delete("file-0001.pdf")
    assert base.build().documents == 0
    check_complete(base)


def test_a_file_whose_state_cannot_be_read_is_not_gone(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    write_library(base.files_dir, files=2)
    base.build()
    before = stored_ids(base)
    stale = OSError(errno.ESTALE, "Stale file handle")
    with monkeypatch.context() as patch:
        scandir = os.scandir

        class Stale:
            def __init__(self, entry: os.DirEntry[str]) -> None:
                self.name = entry.name

            def stat(self) -> os.stat_result:
                raise stale

        class Entries:
            def __init__(self, folder: Path) -> None:
                self.found = scandir(folder)

            def __enter__(self) -> Iterator[Stale]:
                return map(Stale, self.found)

            def __exit__(self, *_: object) -> None:
                self.found.close()

        patch.setattr(os, "scandir", Entries)
        patch.setattr(
            indexing,
            "document_id_of",
            cannot(stale, paths={"file-0000.pdf", "file-0001.pdf"}, action=document_id_of),
        )
        report = base.build()
        assert set(outcomes(report).values()) == {"failed"}
        assert {each.status for each in base.documents()} == {"changed"}
    assert stored_ids(base) == before
    assert set(outcomes(base.build()).values()) == {"unchanged"}


def test_a_folder_that_cannot_be_listed_is_a_typed_error(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    write_library(base.files_dir, files=1)
    base.build()

    def broken(folder: Path) -> Iterator[object]:
        raise OSError(errno.EIO, "Input/output error", str(folder))

    monkeypatch.setattr(os, "scandir", broken)
    for act in (base.build, base.documents):
        with pytest.raises(StoreError) as caught:
            act()
        assert caught.value.code == "files_unreadable"


def test_deleting_one_file_keeps_the_pages_of_a_half_read_one(base: KnowledgeBase, loader: CountingLoader) -> None:
    write_library(base.files_dir, files=2, pages=4)
    assert base.build(**stop_at(file=2, page=3)).stopped
    base.delete("file-0000.pdf")
    loader.read.clear()
    base.build()
    assert loader.read == [("file-0001.pdf", 4)]
    check_complete(base)


def test_deleting_a_half_read_file_leaves_nothing_of_it(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2, pages=4)
    assert base.build(**stop_at(file=2, page=3)).stopped
    base.delete("file-0001.pdf")
    check_complete(base)


@pytest.mark.parametrize("between", ["delete", "update"])
def test_a_stopped_rebuild_survives_a_delete_and_an_update(
    base: KnowledgeBase, loader: CountingLoader, between: str
) -> None:
    write_library(base.files_dir, files=4)
    base.build()
    assert base.build(rebuild=True, **stop_at(file=3, page=1)).stopped
    if between == "delete":
        base.delete("file-0000.pdf")
        for path in base.base.folder.glob("catalogue-*.sqlite3"):
            catalogue = Catalogue(path)
            assert "file-0000.pdf" not in catalogue.files()
            catalogue.close()
    else:
        base.build()
    loader.read.clear()
    base.build(rebuild=True)
    check_complete(base)
    assert loader.read == [("file-0002.pdf", 2), ("file-0003.pdf", 1), ("file-0003.pdf", 2)]


class SilentEmbedder(WordEmbedder):
    """A provider that cannot be reached: it does not even tell how long its vectors are."""

    def __init__(self) -> None:
        self.name = "words"

    def __getattr__(self, name: str) -> int:
        raise ProviderUnavailableError(name)


def test_a_file_is_deleted_from_a_stopped_rebuild_while_the_provider_is_silent(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=3)
        base.build()
        assert base.build(rebuild=True, **stop_at(file=3, page=1)).stopped
    with open_base(tmp_path, embedder=SilentEmbedder()) as base:
        base.delete("file-0000.pdf")
    with open_base(tmp_path) as base:
        assert set(outcomes(base.build(rebuild=True))) == {"file-0001.pdf", "file-0002.pdf"}
        check_complete(base)


def test_a_stopped_rebuild_begun_with_other_settings_goes_with_the_next_update(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=2)
        base.build()
    with open_base(tmp_path, chunk_size=300) as base:
        assert base.build(rebuild=True, **stop_at(file=2, page=0)).stopped
    with open_base(tmp_path) as base:
        base.build()
        check_complete(base)


def test_a_stopped_rebuild_starts_again_with_another_parser(tmp_path: Path, loader: CountingLoader) -> None:
    with open_base(tmp_path, loader=loader) as base:
        write_library(base.files_dir, files=2)
        base.build()
        assert base.build(rebuild=True, **stop_at(file=2, page=1)).stopped
    loader.read.clear()
    with open_base(tmp_path, loader=loader, pdf_parser="embedded") as base:
        base.build(rebuild=True)
        check_complete(base)
    assert len(loader.read) == 4


def test_a_file_open_elsewhere_is_not_deleted_and_says_so(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    write_library(base.files_dir, files=1)
    base.build()
    with monkeypatch.context() as patch:
        held = cannot(PermissionError(errno.EACCES, "in use"), paths={"file-0000.pdf"}, action=Path.unlink)
        patch.setattr(Path, "unlink", held)
        with pytest.raises(StoreError) as caught:
            base.delete("file-0000.pdf")
    assert caught.value.code == "delete_failed"
    assert outcomes(base.build()) == {"file-0000.pdf": "unchanged"}
    check_complete(base)
