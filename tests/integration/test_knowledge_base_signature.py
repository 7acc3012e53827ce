"""What a store was built with against what the settings and the program say now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunker import RULES
from errors import EmbeddingMismatchError
from knowledge_base import KnowledgeBase
from pdf_loader import PageResult
from tests.integration.helpers_store import LineLoader, WordEmbedder, check_complete, find, open_base, write_library


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path) as opened:
        yield opened


def test_changed_embedder_is_explained_and_a_rebuild_heals_it(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=2)
        base.build()
    other = WordEmbedder(name="other words", dimension=32)
    with open_base(tmp_path, embedder=other) as base:
        assert base.status().mismatch == "embedder"
        with pytest.raises(EmbeddingMismatchError) as caught:
            find(base, "heron")
        assert "other words" in caught.value.message
        assert "rebuild" in caught.value.hint
        with pytest.raises(EmbeddingMismatchError):
            base.build()
        assert [each.status for each in base.documents()] == ["indexed", "indexed"]
        base.build(rebuild=True)
        check_complete(base)
        assert base.status().mismatch == ""
        assert find(base, "heron")


def test_changed_chunking_still_answers_but_wants_a_rebuild(tmp_path: Path) -> None:
    with open_base(tmp_path) as base:
        write_library(base.files_dir, files=2)
        base.build()
    with open_base(tmp_path, chunk_size=300) as base:
        assert base.status().mismatch == "chunking"
        assert find(base, "heron")
        with pytest.raises(EmbeddingMismatchError) as caught:
            base.build()
        assert caught.value.code == "chunking_changed"
        base.build(rebuild=True)
        assert base.status().mismatch == ""


class CountingLoader(LineLoader):
    read = 0

    def pages(self, path: Path, **arguments: Any) -> Iterator[PageResult]:
        for page in super().pages(path, **arguments):
            self.read += 1
            yield page


def test_rebuild_for_another_chunk_size_reads_no_page_again_but_a_plain_one_does(tmp_path: Path) -> None:
    loader = CountingLoader()
    with open_base(tmp_path, loader=loader) as base:
        write_library(base.files_dir, files=2)
        base.build()
        assert loader.read == 4
        base.build(rebuild=True)
        assert loader.read == 8
    with open_base(tmp_path, loader=loader, chunk_size=300) as base:
        base.build(rebuild=True)
        check_complete(base)
        assert loader.read == 8
    with open_base(tmp_path, loader=loader, chunk_size=400, pdf_parser="embedded") as base:
        base.build(rebuild=True)
        assert loader.read == 12


def test_changed_chunk_rules_want_a_rebuild_that_reads_every_page_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = CountingLoader()
    with open_base(tmp_path, loader=loader) as base:
        write_library(base.files_dir, files=2)
        base.build()
        monkeypatch.setattr("generations.RULES", RULES + 1)
        assert base.status().mismatch == "chunking"
        assert find(base, "heron")
        with pytest.raises(EmbeddingMismatchError) as caught:
            base.build()
        assert caught.value.code == "chunking_changed"
        assert f"chunk_rules: {RULES} → {RULES + 1}" in caught.value.message
        base.build(rebuild=True)
        assert loader.read == 8
        assert base.status().mismatch == ""
        check_complete(base)


def test_store_from_before_the_rules_had_numbers_has_the_first(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generations.RULES", 1)
    write_library(base.files_dir, files=2)
    base.build()
    generation = base._answering.current()
    assert generation is not None
    noted = json.loads(generation.catalogue.meta("signature"))
    assert noted.pop("chunk_rules") == 1
    generation.catalogue.set_meta(signature=json.dumps(noted))
    assert base.status().mismatch == ""
    assert {str(each.status) for each in base.build().files} == {"unchanged"}
    monkeypatch.undo()
    assert base.status().mismatch == "chunking"
