"""Asking within a section reaches it however many better passages other sections hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import knowledge_base
import retriever
from knowledge_base import KnowledgeBase
from pdf_loader import PageResult
from retriever import HybridRetriever
from schema import Block, BlockType
from tests.integration.helpers_store import LineLoader, open_base, write_pdf

HERON = "The heron of pond {n} waits beside the weir until the water of the pond is clear, heron after heron."


class HeadingLoader(LineLoader):
    """Lines that begin with "§" are headings."""

    def assemble(self, pages: Sequence[PageResult]) -> tuple[Block, ...]:
        path: tuple[str, ...] = ()
        blocks = []
        for block in super().assemble(pages):
            heading = block.text.startswith("§")
            path = (block.text[1:].strip(),) if heading else path
            kind = BlockType.TITLE if heading else BlockType.TEXT
            blocks.append(replace(block, type=kind, heading_path=() if heading else path))
        return tuple(blocks)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    monkeypatch.setattr(retriever, "POOL", 2)
    with open_base(tmp_path, loader=HeadingLoader(), chunk_size=100) as opened:
        for file in range(3):
            pages = [[f"§ Birds {file}"], *([HERON.format(n=100 * file + page)] for page in range(25))]
            write_pdf(opened.files_dir / f"birds-{file}.pdf", pages=pages)
        lamps = [["§ Lamps"], ["A lamp lights the pond; no heron was ever seen by the keeper of that lamp, he says."]]
        mixed = [*lamps, ["§ Birds again"], *([HERON.format(n=1000 + page)] for page in range(25))]
        write_pdf(opened.files_dir / "mixed.pdf", pages=mixed)
        opened.build()
        yield opened


def sections(base: KnowledgeBase, section: str, *, files: Sequence[str] = ()) -> set[tuple[str, ...]]:
    found = HybridRetriever(base, embedder=base.embedder, settings=base.settings)
    question = "heron of the pond beside the weir"
    return {each.heading_path for each in found.retrieve(question, limit=1, section=section, files=files)}


@pytest.mark.parametrize("many", [1000, 0])
def test_a_section_far_below_the_best_passages_is_reached(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(knowledge_base, "_MANY", many)
    assert sections(base, "lamps") == {("Lamps",)}
    assert sections(base, "lamps", files=["mixed.pdf"]) == {("Lamps",)}
    assert sections(base, "lamps", files=["birds-1.pdf"]) == set()
    assert sections(base, "no such heading") == set()
    assert sections(base, "birds", files=["mixed.pdf"]) == {("Birds again",)}


@pytest.mark.parametrize("channel", ["dense_weight", "bm25_weight"])
def test_each_channel_alone_reaches_it(base: KnowledgeBase, channel: str) -> None:
    base.settings = base.settings.model_copy(update={channel: 0.0})
    assert sections(base, "LAMPS") == {("Lamps",)}
