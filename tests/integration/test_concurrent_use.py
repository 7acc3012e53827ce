"""Asking while a build runs: readers in threads and in other processes see no error and no gap."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from errors import CragError
from knowledge_base import KnowledgeBase
from retriever import HybridRetriever
from tests.integration.helpers_killed_build import run
from tests.integration.helpers_store import SENTENCES, check_complete, find, open_base, write_library, write_pdf

READERS = 10
LIMIT = 4


class Readers:
    """Ten threads that ask until told to stop, each about one page of a file that stays; they note errors and gaps."""

    def __init__(self, base: KnowledgeBase, *, files: int) -> None:
        self.base = base
        self.files = files
        self.asked = 0
        self.errors: list[CragError] = []
        self.gaps: list[tuple[str, list[str]]] = []
        self.done = threading.Event()
        self.threads = [threading.Thread(target=self.read, args=(number,)) for number in range(READERS)]

    def read(self, number: int) -> None:
        retriever = HybridRetriever(self.base, embedder=self.base.embedder, settings=self.base.settings)
        file = 1 + number % (self.files - 1)
        question = SENTENCES[number % len(SENTENCES)].format(n=f"{file}x0")
        while not self.done.is_set():
            try:
                texts = [document.text for document in retriever.retrieve(question, limit=LIMIT)]
                near = find(self.base, question, limit=LIMIT)
            except CragError as error:
                self.errors.append(error)
                return
            self.asked += 1
            if not any(question in text for text in texts) or len(texts) < LIMIT or len(near) < LIMIT:
                self.gaps.append((question, texts))
            time.sleep(0.01)

    def __enter__(self) -> Readers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()


def test_ten_readers_during_rebuilds_and_updates_see_no_error_and_no_gap(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=6)
        base.build()
        with Readers(base, files=6) as readers:
            base.build(rebuild=True)
            write_pdf(base.files_dir / "file-0000.pdf", pages=[[sentence.format(n="new") for sentence in SENTENCES]])
            base.build()
            base.build(rebuild=True)
            base.delete("file-0000.pdf")
        assert not readers.errors
        assert not readers.gaps
        assert readers.asked > READERS
        check_complete(base)


def test_readers_during_the_first_build_see_no_error(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=6)
        with Readers(base, files=6) as readers:
            base.build()
        assert not readers.errors
        assert readers.asked > READERS


def test_reader_sees_what_another_process_built_replaced_and_rebuilt(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_pdf(base.files_dir / "a.pdf", pages=[["Herons wait beside the weir."]])
        assert run(tmp_path) == 0
        assert find(base, "herons") == ["Herons wait beside the weir."]
        write_pdf(base.files_dir / "b.pdf", pages=[["Lamps glow in the hall."]])
        assert run(tmp_path) == 0
        assert find(base, "lamps glow")[0] == "Lamps glow in the hall."
        write_pdf(base.files_dir / "a.pdf", pages=[["Barges carry slate."]])
        assert run(tmp_path, rebuild=True) == 0
        assert set(find(base, "barges")) == {"Barges carry slate.", "Lamps glow in the hall."}
        assert base.lexical(["herons"], limit=3) == []
