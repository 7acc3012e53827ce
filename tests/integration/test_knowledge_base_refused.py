"""An embedding server that refuses one text costs one file; one that refuses everything stops the build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from build_report import BuildReport
from endpoints import Endpoint
from errors import ProviderError, ProviderResponseError
from knowledge_base import KnowledgeBase
from llm_errors import typed
from pdf_loader import PageResult
from tests.integration.helpers_store import LineLoader, WordEmbedder, check_complete, find, open_base, write_pdf

LONG = "This endless sentence is more than the model reads."
HERON = "The heron waits beside the weir until the water clears."
SERVER = Endpoint("openai", url="http://localhost:9/v1", model="small")


class PickyEmbedder(WordEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.refuses = "endless"
        self.error = typed(ProviderResponseError, endpoint=SERVER, status=413)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(self.refuses in text for text in texts):
            raise self.error
        return super()._vectors(texts)


class CountingLoader(LineLoader):
    def __init__(self) -> None:
        self.read: list[str] = []

    def pages(self, path: Path, **arguments: Any) -> Iterator[PageResult]:
        self.read.append(path.name)
        yield from super().pages(path, **arguments)


@pytest.fixture
def embedder() -> PickyEmbedder:
    return PickyEmbedder()


@pytest.fixture
def loader() -> CountingLoader:
    return CountingLoader()


@pytest.fixture
def base(tmp_path: Path, embedder: PickyEmbedder, loader: CountingLoader) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path, embedder=embedder, loader=loader) as opened:
        write_pdf(opened.files_dir / "a.pdf", pages=[[LONG], [LONG]])
        write_pdf(opened.files_dir / "b.pdf", pages=[[HERON]])
        yield opened


def outcomes(report: BuildReport) -> dict[str, str]:
    return {each.file: str(each.status) for each in report.files}


def test_one_refused_text_fails_its_file_and_the_others_are_indexed(
    base: KnowledgeBase, loader: CountingLoader, embedder: PickyEmbedder
) -> None:
    report = base.build()
    assert outcomes(report) == {"a.pdf": "failed", "b.pdf": "indexed"}
    error = report.files[0].error
    assert error["code"] == "embedding_refused"
    assert error["values"] == {
        "file": "a.pdf",
        "provider": "openai",
        "url": "http://localhost:9/v1",
        "model": "small",
        "status": "413",
    }
    assert report.chunks == base.status().vectors == 1
    assert find(base, HERON) == [HERON]
    loader.read.clear()
    for _ in range(2):
        assert outcomes(base.build()) == {"a.pdf": "failed", "b.pdf": "unchanged"}
    assert loader.read == []
    embedder.refuses = "nothing"
    assert outcomes(base.build()) == {"a.pdf": "indexed", "b.pdf": "unchanged"}
    assert loader.read == []
    check_complete(base)


def test_a_refused_file_can_be_deleted_with_its_pages(base: KnowledgeBase) -> None:
    base.build()
    base.delete("a.pdf")
    check_complete(base)


def refuse_everything(embedder: PickyEmbedder) -> None:
    embedder.refuses = ""


def miss_the_model(embedder: PickyEmbedder) -> None:
    embedder.error = typed(ProviderResponseError, code="provider_model", endpoint=SERVER)


@pytest.mark.parametrize("change", [refuse_everything, miss_the_model])
def test_a_server_that_is_set_up_wrongly_stops_the_build_and_keeps_what_was_read(
    base: KnowledgeBase, loader: CountingLoader, embedder: PickyEmbedder, change: Callable[[PickyEmbedder], None]
) -> None:
    change(embedder)
    with pytest.raises(ProviderError):
        base.build()
    assert {each.status for each in base.documents()} == {"new"}
    loader.read.clear()
    embedder.refuses = "nothing"
    assert outcomes(base.build()) == {"a.pdf": "indexed", "b.pdf": "indexed"}
    assert loader.read == ["b.pdf"]
