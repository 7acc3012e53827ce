"""A knowledge base whose vectors are on a Chroma server or in a LangChain store: the same life, the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from errors import StoreError
from knowledge_base import KnowledgeBase
from tests.integration.helpers_server import chroma_server
from tests.integration.helpers_store import find, open_base, write_library, write_pdf

PLACES = ["server", "qdrant", "milvus", "tests.integration.helpers_memory_store:make"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(params=PLACES)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    place = request.param
    if place in {"qdrant", "milvus"}:
        pytest.importorskip(f"langchain_{place}", reason=f"langchain-{place} is not installed")
    if place == "milvus":
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    values = {"chroma_url": request.getfixturevalue("server")} if place == "server" else {"vector_store": place}
    with open_base(tmp_path, **values) as opened:
        yield opened


def test_whole_life_away_from_the_embedded_store(base: KnowledgeBase) -> None:
    write_library(base.files_dir, files=3)
    write_pdf(base.files_dir / "a.pdf", pages=[["Barges carry slate down the canal."]])
    report = base.build()
    assert report.chunks == base.status().vectors == base.status().chunks > 3
    assert find(base, "barges slate", limit=1) == ["Barges carry slate down the canal."]
    near = base.dense(base.embedder.embed_queries(["barges carry slate down the canal."])[0], limit=3)
    assert near[0][1] == pytest.approx(1.0, abs=1e-3)
    assert near[1][1] < 0.9
    assert len(find(base, "heron", limit=9, files=["file-0001.pdf"])) < report.chunks
    base.build(rebuild=True)
    assert base.status().vectors == report.chunks
    base.delete("a.pdf")
    assert find(base, "barges slate", limit=1) != ["Barges carry slate down the canal."]
    assert base.status().vectors == base.status().chunks == report.chunks - 1


def test_two_installations_on_one_server_do_not_mix(tmp_path: Path, server: str) -> None:
    for name in ("one", "two"):
        with open_base(tmp_path / name, chroma_url=server) as base:
            write_pdf(base.files_dir / f"{name}.pdf", pages=[[f"The {name} heron waits."]])
            base.build()
    for name in ("one", "two"):
        with open_base(tmp_path / name, chroma_url=server) as base:
            assert find(base, "heron") == [f"The {name} heron waits."]
            assert base.status().vectors == 1


def test_dead_server_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "server") as url, open_base(tmp_path, chroma_url=url) as base:
        write_library(base.files_dir, files=1)
        base.build()
    with open_base(tmp_path, chroma_url=url) as base:
        with pytest.raises(StoreError) as caught:
            find(base, "heron")
        assert caught.value.code == "store_unreachable"
        with pytest.raises(StoreError):
            base.build(rebuild=True)
        assert not list(base.base.folder.glob("damaged-*"))
