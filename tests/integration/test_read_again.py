"""Reading one file anew: its pages and vectors are made again, the others are left alone, nothing is left twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build_report import Progress
from jobs import BuildJob
from knowledge_base import KnowledgeBase
from pdf_loader import PageResult
from tests.integration.helpers_store import (
    LineLoader,
    WordEmbedder,
    check_complete,
    find,
    open_base,
    stored_ids,
    write_pdf,
)

HERON = "The heron waits beside the weir until the water clears."
LAMP = "The lamp was bought in a shop that closed the same winter."


class CountingLoader(LineLoader):
    def __init__(self) -> None:
        self.read: list[str] = []

    def pages(self, path: Path, **arguments: object) -> Iterator[PageResult]:
        self.read.append(path.name)
        yield from super().pages(path, **arguments)  # type: ignore[arg-type]


@pytest.fixture
def loader() -> CountingLoader:
    return CountingLoader()


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def base(tmp_path: Path, loader: CountingLoader, embedder: WordEmbedder) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path, loader=loader, embedder=embedder) as opened:
        write_pdf(opened.files_dir / "heron.pdf", pages=[[HERON]])
        write_pdf(opened.files_dir / "lamp.pdf", pages=[[LAMP], [LAMP + " Again."]])
        opened.build()
        loader.read.clear()
        embedder.embedded = 0
        yield opened


def test_only_the_named_file_is_read_and_embedded_again(
    base: KnowledgeBase, loader: CountingLoader, embedder: WordEmbedder
) -> None:
    before = stored_ids(base)
    report = base.build(again=["lamp.pdf"])
    assert loader.read == ["lamp.pdf"]
    assert 0 < embedder.embedded < len(before)
    assert {each.file: str(each.status) for each in report.files} == {"heron.pdf": "unchanged", "lamp.pdf": "indexed"}
    assert stored_ids(base) == before
    assert find(base, LAMP)
    check_complete(base)


def test_both_names_of_one_content_stay(base: KnowledgeBase, loader: CountingLoader) -> None:
    shutil.copy(base.files_dir / "lamp.pdf", base.files_dir / "second lamp.pdf")
    base.build()
    loader.read.clear()
    base.build(again=["second lamp.pdf"])
    assert len(loader.read) == 1
    assert {each.file: each.status for each in base.documents()} == {
        "heron.pdf": "indexed",
        "lamp.pdf": "indexed",
        "second lamp.pdf": "indexed",
    }
    check_complete(base)


def test_a_stopped_reading_goes_on_at_the_next_build(base: KnowledgeBase) -> None:
    stop = threading.Event()

    def stop_at_the_first_page(progress: Progress) -> None:
        if progress.page:
            stop.set()

    assert base.build(again=["lamp.pdf"], cancel=stop, progress=stop_at_the_first_page).stopped
    assert not base.build().stopped
    assert find(base, LAMP)
    check_complete(base)


def test_an_unknown_name_changes_nothing(base: KnowledgeBase, loader: CountingLoader) -> None:
    before = stored_ids(base)
    base.build(again=["nothing.pdf"])
    assert loader.read == []
    assert stored_ids(base) == before


def test_the_job_passes_it_on(base: KnowledgeBase, loader: CountingLoader) -> None:
    job = BuildJob(base)
    assert job.start(again=["heron.pdf"])
    state = job.wait(60)
    assert state.error is None
    assert loader.read == ["heron.pdf"]
