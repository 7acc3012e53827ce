"""A build job: one at a time, seen from anywhere, stopped within a page, its end told whatever it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from errors import StoreError
from jobs import BuildJob
from knowledge_base import KnowledgeBase
from pdf_loader import PageResult
from tests.integration.helpers_store import LineLoader, check_complete, open_base, write_library


class GatedLoader(LineLoader):
    """Waits before each page until told to go on."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.arrived = threading.Semaphore(0)

    def pages(self, path: Path, **arguments: object) -> Iterator[PageResult]:
        for page in super().pages(path, **arguments):  # type: ignore[arg-type]
            self.arrived.release()
            assert self.gate.acquire(timeout=60)
            yield page


@pytest.fixture
def loader() -> GatedLoader:
    return GatedLoader()


@pytest.fixture
def base(tmp_path: Path, loader: GatedLoader) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path, loader=loader) as opened:
        write_library(opened.files_dir, files=2, pages=3)
        yield opened


def test_job_runs_once_and_reports(base: KnowledgeBase, loader: GatedLoader) -> None:
    job = BuildJob(base)
    assert not job.state.running
    assert job.report is None
    assert job.start()
    assert loader.arrived.acquire(timeout=60)
    assert job.running
    assert not job.start()
    loader.gate.release(100)
    state = job.wait(60)
    assert not state.running
    assert state.report is not None
    assert state.report.documents == 2
    assert state.finished >= state.started > 0
    assert job.error is None
    check_complete(base)


def test_stop_ends_within_the_page_and_a_new_start_goes_on(base: KnowledgeBase, loader: GatedLoader) -> None:
    job = BuildJob(base)
    job.start()
    loader.gate.release(2)
    for _ in range(3):
        assert loader.arrived.acquire(timeout=60)
    job.stop()
    assert job.stopping
    loader.gate.release(1)
    state = job.wait(60)
    assert state.report is not None
    assert state.report.stopped
    assert state.report.left == 2
    assert not loader.arrived.acquire(blocking=False)
    loader.gate.release(100)
    job.start()
    state = job.wait(60)
    assert state.report is not None
    assert not state.report.stopped
    assert not state.stopping
    check_complete(base)


def test_progress_is_seen_while_it_runs(base: KnowledgeBase, loader: GatedLoader) -> None:
    job = BuildJob(base)
    job.start()
    loader.gate.release(4)
    for _ in range(5):
        assert loader.arrived.acquire(timeout=60)
    deadline = time.monotonic() + 30
    while (
        job.progress is None or job.progress.file_number < 2 or job.progress.page < 1
    ) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert job.progress is not None
    assert (job.progress.file, job.progress.page, job.progress.pages) == ("file-0001.pdf", 1, 3)
    loader.gate.release(100)
    assert job.wait(60).progress is None


def test_failure_of_the_whole_build_is_kept(tmp_path: Path, base: KnowledgeBase, loader: GatedLoader) -> None:
    loader.gate.release(100)
    base.build()
    base.files_dir.rename(tmp_path / "elsewhere")
    job = BuildJob(base)
    job.start()
    state = job.wait(60)
    assert isinstance(state.error, StoreError)
    assert state.error.code == "files_missing"
    assert state.report is None
    assert not state.running


def test_unexpected_failure_ends_the_job_with_an_error(monkeypatch: pytest.MonkeyPatch, base: KnowledgeBase) -> None:
    def broken(**_: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr(base, "build", broken)
    job = BuildJob(base)
    job.start()
    state = job.wait(60)
    assert state.error is not None
    assert state.error.code == "internal"
    assert not state.running
