"""The life of a knowledge base: add, replace, rename, delete, fail, stop, rebuild; with real PDFs and a real Chroma."""

from __future__ import annotations

import os
import shutil
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pypdf import PdfReader, PdfWriter

from build_report import Outcome, Progress, Stage
from errors import StoreError, StoreLockedError
from knowledge_base import KnowledgeBase
from pdf_loader import PdfLoader
from tests.integration.helpers_store import (
    WordEmbedder,
    check_complete,
    find,
    open_base,
    settings_at,
    stored_ids,
    write_library,
    write_pdf,
)

HERON = "The heron waits beside the weir until the water clears."
LAMP = "The lamp was bought in a shop that closed the same winter."


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path) as opened:
        yield opened


def outcomes(base: KnowledgeBase, *, rebuild: bool = False) -> dict[str, str]:
    report = base.build(rebuild=rebuild)
    check_complete(base)
    return {each.file: str(each.status) for each in report.files}


def encrypt(path: Path, *, password: str) -> None:
    writer = PdfWriter(clone_from=PdfReader(path))
    writer.encrypt(password)
    writer.write(path)


def test_unbuilt_base_finds_nothing_and_lists_new_files(base: KnowledgeBase) -> None:
    write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    assert find(base, HERON) == []
    assert base.lexical(["heron"], limit=3) == []
    assert [(each.file, each.status) for each in base.documents()] == [("a.pdf", "new")]
    assert base.status().documents == 0
    assert base.status().waiting == 1
    assert not base.settings.data_dir.exists()


def test_second_build_embeds_nothing_and_second_start_neither(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with open_base(tmp_path, embedder=embedder) as base:
        write_library(base.files_dir, files=3)
        assert set(outcomes(base).values()) == {"indexed"}
        embedded = embedder.embedded
        before = stored_ids(base)
        assert set(outcomes(base).values()) == {"unchanged"}
        assert (embedder.embedded, stored_ids(base)) == (embedded, before)
    with open_base(tmp_path, embedder=embedder) as base:
        assert find(base, "heron section 1x1")
        assert base.build().count(Outcome.UNCHANGED) == 3
    assert embedder.embedded == embedded


def test_rebuild_gives_the_same_store(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=3)
    outcomes(base)
    before = stored_ids(base)
    assert set(outcomes(base, rebuild=True).values()) == {"indexed"}
    assert stored_ids(base) == before


def test_touched_file_is_unchanged_and_not_embedded_again(base: KnowledgeBase) -> None:
    path = write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    outcomes(base)
    os.utime(path, (1, 1))
    assert [each.status for each in base.documents()] == ["changed"]
    assert outcomes(base) == {"a.pdf": "unchanged"}
    assert [each.status for each in base.documents()] == ["indexed"]


def test_replaced_bytes_leave_nothing_of_the_old(base: KnowledgeBase) -> None:
    write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    outcomes(base)
    write_pdf(base.files_dir / "a.pdf", pages=[[LAMP]])
    assert outcomes(base) == {"a.pdf": "indexed"}
    assert find(base, HERON) == [LAMP]
    assert base.lexical(["heron", "weir"], limit=3) == []


def test_same_size_and_time_but_new_bytes_are_found(base: KnowledgeBase) -> None:
    path = write_pdf(base.files_dir / "a.pdf", pages=[["The heron waits."]])
    outcomes(base)
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"ASCII85", b"ascii85"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    assert [each.status for each in base.documents()] == ["changed"]


def test_renamed_file_is_not_parsed_or_embedded_again(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with open_base(tmp_path, embedder=embedder) as base:
        path = write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
        outcomes(base)
        path.rename(path.with_name("b.pdf"))
        assert outcomes(base) == {"a.pdf": "removed", "b.pdf": "indexed"}
        assert embedder.embedded == 1
        key = base.lexical(["heron"], limit=1)[0][0]
        assert base.chunks([key])[key].file == "b.pdf"


def test_same_bytes_under_two_names_are_one_content_with_both_names(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with open_base(tmp_path, embedder=embedder) as base:
        path = write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
        shutil.copy(path, path.with_name("副本.pdf"))
        outcomes(base)
        assert embedder.embedded == 1
        first, second = base.documents()
        assert (first.same_as, second.same_as) == (("副本.pdf",), ("a.pdf",))
        assert base.file_names(first.document_id) == ("a.pdf", "副本.pdf")
        key = base.lexical(["heron"], limit=1, files=["副本.pdf"])[0][0]
        assert base.chunks([key], files=["副本.pdf"])[key].file == "副本.pdf"
        base.delete("a.pdf")
        check_complete(base)
        assert find(base, HERON) == [HERON]
        base.delete("副本.pdf")
        check_complete(base)
        assert find(base, HERON) == []


def test_deleted_file_leaves_nothing(base: KnowledgeBase) -> None:
    write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    write_pdf(base.files_dir / "b.pdf", pages=[[LAMP]])
    outcomes(base)
    base.delete("a.pdf")
    check_complete(base)
    assert not (base.files_dir / "a.pdf").exists()
    assert find(base, HERON) == [LAMP]
    assert base.lexical(["heron"], limit=3) == []
    with pytest.raises(StoreError) as caught:
        base.delete("a.pdf")
    assert caught.value.code == "file_unknown"
    assert outcomes(base) == {"b.pdf": "unchanged"}


def test_file_removed_by_hand_goes_with_the_next_build(base: KnowledgeBase) -> None:
    path = write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    write_pdf(base.files_dir / "b.pdf", pages=[[LAMP]])
    outcomes(base)
    path.unlink()
    assert {each.file: each.status for each in base.documents()} == {"a.pdf": "missing", "b.pdf": "indexed"}
    assert outcomes(base) == {"a.pdf": "removed", "b.pdf": "unchanged"}
    assert base.lexical(["heron"], limit=3) == []


def test_bad_files_fail_each_with_its_reason_and_stop_nobody(tmp_path: Path) -> None:
    base = open_base(tmp_path, loader=PdfLoader(settings_at(tmp_path)))
    write_pdf(base.files_dir / "good.pdf", pages=[[HERON]])
    (base.files_dir / "empty.pdf").write_bytes(b"")
    (base.files_dir / "text.pdf").write_bytes(b"this is no PDF")
    locked = write_pdf(base.files_dir / "locked.pdf", pages=[[LAMP]])
    encrypt(locked, password="secret")
    report = base.build()
    failed = {each.file: each.error["code"] for each in report.files if each.status is Outcome.FAILED}
    assert failed.keys() == {"empty.pdf", "text.pdf", "locked.pdf"}
    assert failed["locked.pdf"] == "pdf_encrypted"
    assert all(code.startswith("pdf_") for code in failed.values())
    assert (report.documents, report.failed) == (1, 3)
    assert base.documents()[0].error is not None
    assert base.build(passwords={"locked.pdf": "secret"}).documents == 2
    assert find(base, LAMP)[0] == LAMP
    base.close()


def test_good_file_replaced_by_a_bad_one_answers_no_more(base: KnowledgeBase) -> None:
    path = write_pdf(base.files_dir / "a.pdf", pages=[[HERON]])
    outcomes(base)
    path.write_bytes(b"%PDF-1.4 cut")
    assert outcomes(base) == {"a.pdf": "failed"}
    assert base.lexical(["heron"], limit=3) == []
    write_pdf(path, pages=[[HERON]])
    assert outcomes(base) == {"a.pdf": "indexed"}


@pytest.mark.parametrize(
    "name", ["年度报告（终稿） [v2].pdf", unicodedata.normalize("NFD", "résumé été.pdf"), "a" * 200 + ".PDF"]
)
def test_any_file_name_is_indexed_found_and_deleted(base: KnowledgeBase, name: str) -> None:
    write_pdf(base.files_dir / name, pages=[[HERON]])
    assert outcomes(base) == {name: "indexed"}
    composed = unicodedata.normalize("NFC", name)
    assert base.path(composed).is_file()
    assert base.blocks(composed, page=1)[0].text == HERON
    base.delete(composed)
    assert not list(base.files_dir.iterdir())


def test_files_filter_keeps_to_the_named_files(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=5)
    base.build()
    near = base.dense(base.embedder.embed_queries(["heron"])[0], limit=50, files=["file-0002.pdf"])
    assert near
    assert {chunk.file for chunk in base.chunks([key for key, _ in near]).values()} == {"file-0002.pdf"}
    words = base.lexical(["heron"], limit=50, files=["file-0001.pdf", "file-0003.pdf"])
    assert {chunk.file for chunk in base.chunks([key for key, _ in words]).values()} == {
        "file-0001.pdf",
        "file-0003.pdf",
    }
    assert base.lexical(["heron"], limit=50, files=["unknown.pdf"]) == []
    assert base.dense(base.embedder.embed_queries(["heron"])[0], limit=50, files=["unknown.pdf"]) == []


def test_stop_takes_effect_within_a_page_and_the_next_build_goes_on(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=3, pages=4)
        stop = threading.Event()
        seen: list[Progress] = []

        def watch(progress: Progress) -> None:
            seen.append(progress)
            if progress.file_number == 2 and progress.page == 2:
                stop.set()

        report = base.build(progress=watch, cancel=stop)
        assert report.stopped
        assert report.left == 2
        assert seen[-2].page == 2
        generation = base._answering.current()
        assert generation is not None
        kept = {document: generation.catalogue.pages(document) for document in generation.catalogue.pending()}
        assert [list(pages) for pages in kept.values()] == [[1, 2]]
        parsed: list[Progress] = []
        report = base.build(progress=parsed.append)
        assert not report.stopped
        assert [each.page for each in parsed if each.file_number == 2 and each.stage is Stage.PARSE] == [0, 3, 4]
        check_complete(base)
    with open_base(tmp_path / "fresh") as fresh:
        write_library(fresh.files_dir, files=3, pages=4)
        fresh.build()
        with open_base(tmp_path) as base:
            assert stored_ids(fresh) == stored_ids(base)


class SlowEmbedder(WordEmbedder):
    """Embeds one text at a time and tells after each."""

    def embed_passages(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> NDArray[np.float32]:
        for number, text in enumerate(texts, start=1):
            super().embed_passages([text])
            if progress:
                progress(number, len(texts))
        return self._vectors(texts)


def test_stop_takes_effect_while_a_file_is_embedded(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    with open_base(tmp_path, embedder=embedder, chunk_size=100) as base:
        write_library(base.files_dir, files=1, pages=6)
        stop = threading.Event()
        seen: list[Progress] = []

        def stop_at_the_second_text(progress: Progress) -> None:
            seen.append(progress)
            if embedder.embedded == 2:
                stop.set()

        assert base.build(progress=stop_at_the_second_text, cancel=stop).stopped
        assert embedder.embedded == 2
        assert seen[-2].stage is Stage.EMBED
        assert not base.build().stopped
        check_complete(base)


def test_pages_of_a_stopped_file_go_when_the_file_goes(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2, pages=3)
    stop = threading.Event()

    def stop_in_the_second(progress: Progress) -> None:
        if progress.file_number == 2 and progress.page == 1:
            stop.set()

    assert base.build(progress=stop_in_the_second, cancel=stop).stopped
    (base.files_dir / "file-0001.pdf").unlink()
    assert outcomes(base) == {"file-0000.pdf": "unchanged"}


def test_encrypted_file_survives_a_rebuild_for_another_chunk_size(tmp_path: Path) -> None:
    loader = PdfLoader(settings_at(tmp_path))
    with open_base(tmp_path, loader=loader) as base:
        encrypt(write_pdf(base.files_dir / "locked.pdf", pages=[[LAMP]]), password="secret")
        assert base.build(passwords={"locked.pdf": "secret"}).documents == 1
    with open_base(tmp_path, loader=loader, chunk_size=300) as base:
        assert base.build(rebuild=True).documents == 1


def test_progress_counts_files_pages_and_time(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=3, pages=2)
    seen: list[Progress] = []
    report = base.build(progress=seen.append)
    assert seen[0].stage is Stage.SCAN
    assert seen[-1].stage is Stage.DONE
    assert [each.file_number for each in seen if each.stage is Stage.EMBED and each.page == 2] == [1, 2, 3]
    assert all(each.files == 3 for each in seen)
    assert seen[-1].chunks == report.chunks
    left = [each.seconds_left for each in seen if each.seconds_left is not None]
    assert left
    assert min(left) >= 0


def test_stopped_rebuild_leaves_the_old_answering_and_is_gone_on_with(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with open_base(tmp_path, embedder=embedder) as base:
        write_library(base.files_dir, files=4)
        base.build()
        once = embedder.embedded
        stop = threading.Event()

        def stop_at_the_third(progress: Progress) -> None:
            if progress.file_number == 3:
                stop.set()

        report = base.build(rebuild=True, cancel=stop, progress=stop_at_the_third)
        assert report.stopped
        assert base.status().documents == 4
        assert len(find(base, "heron", limit=4)) == 4
        base.build(rebuild=True)
        check_complete(base)
        assert embedder.embedded == 2 * once


def test_only_one_build_at_a_time_and_the_lock_names_its_holder(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2)
    inside, go_on = threading.Event(), threading.Event()

    def hold(progress: Progress) -> None:
        inside.set()
        go_on.wait(20)

    thread = threading.Thread(target=base.build, kwargs={"progress": hold})
    thread.start()
    assert inside.wait(20)
    building = base.status().building
    assert building is not None
    assert building.pid == os.getpid()
    with pytest.raises(StoreLockedError) as caught:
        base.build()
    assert str(os.getpid()) in caught.value.message
    with pytest.raises(StoreLockedError):
        base.delete("file-0000.pdf")
    go_on.set()
    thread.join()
    assert base.status().building is None
    check_complete(base)


def test_damaged_catalogue_is_set_aside_and_rebuilt(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=2)
        base.build()
        path = base.base.folder / "catalogue-1.sqlite3"
    path.write_bytes(b"no database" * 1000)
    with open_base(tmp_path) as base:
        with pytest.raises(StoreError) as caught:
            base.status()
        assert caught.value.code == "store_damaged"
        with pytest.raises(StoreError):
            base.build()
        assert path.read_bytes().startswith(b"no database")
        assert base.build(rebuild=True).documents == 2
        check_complete(base)
        aside = list(base.base.folder.glob("damaged-*"))
        assert len(aside) == 1
        assert (aside[0] / path.name).read_bytes().startswith(b"no database")


def test_damaged_chroma_is_set_aside_and_rebuilt(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=2)
        base.build()
        path = base.base.folder / "vectors" / "chroma.sqlite3"
    path.write_bytes(b"no database" * 1000)
    with open_base(tmp_path) as base:
        with pytest.raises(StoreError):
            find(base, "heron")
        assert base.build(rebuild=True).documents == 2
        check_complete(base)
        assert find(base, "heron")


def test_lost_vectors_are_written_again_by_the_next_build(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=3)
        base.build()
        generation = base._answering.current()
        assert generation is not None
        document = next(iter(generation.catalogue.documents()))
        generation.store.delete_ids(generation.catalogue.chunk_ids(document)[:1])
        report = base.build()
        assert report.count(Outcome.UNCHANGED) == 3
        check_complete(base)


def test_lost_chroma_folder_is_filled_again_without_parsing(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=3)
        base.build()
        folder = base.base.folder / "vectors"
    shutil.rmtree(folder)
    with open_base(tmp_path) as base:
        assert base.build().count(Outcome.UNCHANGED) == 3
        check_complete(base)


def test_missing_files_folder_never_empties_a_knowledge_base(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=1)
    base.build()
    base.files_dir.rename(base.files_dir.with_name("unmounted"))
    with pytest.raises(StoreError) as caught:
        base.build()
    assert caught.value.code == "files_missing"
    assert base.status().chunks > 0


def test_neighbours_are_the_chunks_around_in_reading_order(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=2, pages=16)
    base.build()
    generation = base._answering.current()
    assert generation is not None
    document = next(iter(generation.catalogue.documents()))
    ids = generation.catalogue.chunk_ids(document)
    assert len(ids) > 2
    assert [chunk.id for chunk in base.neighbours(ids[1])] == list(ids[:3])
    assert [chunk.id for chunk in base.neighbours(ids[0], before=2, after=1)] == list(ids[:2])
    assert base.neighbours("unknown") == ()


def test_report_has_the_shape_that_scripts_rely_on(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=1)
    (base.files_dir / "bad.pdf").write_bytes(b"?")
    shown = base.build().as_json()
    good = next(each for each in shown["documents"] if each["file"] == "file-0000.pdf")
    assert good.keys() == {"file", "status", "pages", "chunks", "parser", "ocr_pages", "seconds", "error"}
    assert good["error"] is None
    bad = next(each for each in shown["documents"] if each["file"] == "bad.pdf")
    assert {"code", "message"} <= bad["error"].keys()
    assert shown["totals"] == {"documents": 1, "pages": 2, "chunks": good["chunks"], "failed": 1}
