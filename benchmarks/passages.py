"""The question-answer passages of the data as a knowledge base in memory, for retrieval by the product's own code."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import read_jsonl
from catalogue import Catalogue, DocumentRow, FileRow, FileStatus
from embeddings import Embedder
from retriever import search_terms
from schema import FULL_PAGE, Block, BlockParser, BlockType, Chunk, Piece

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Passages and the questions about them; a passage's id is its chunk's id."""

    passages: list[Row]
    questions: list[Row]


def read_sample(folder: Path, *, language: str, questions: int, passages: int, seed: int) -> Sample:
    """Draw questions with their gold passages, and fill up with other passages of the same language."""
    rows = list(read_jsonl(folder / "qa" / f"passages_{language}.jsonl"))
    known = {row["pid"] for row in rows}
    asked = [row for row in read_jsonl(folder / "qa" / f"questions_{language}.jsonl") if known & set(row["gold_pids"])]
    draw = random.Random(seed)
    asked = draw.sample(asked, min(questions, len(asked)))
    gold = {pid for row in asked for pid in row["gold_pids"]}
    others = [row for row in rows if row["pid"] not in gold]
    picked = draw.sample(others, min(max(0, passages - len(gold)), len(others)))
    return Sample([row for row in rows if row["pid"] in gold] + picked, asked)


def crossed(folder: Path, *, asked: str, found: str, limit: int, seed: int) -> Sample:
    """Questions in one language whose gold passage is in the other, among passages of both (the parallel XQuAD).

    The translations of the gold passages are left out of the pool.
    """
    draw = random.Random(seed)
    pools = {language: list(read_jsonl(folder / "qa" / f"passages_{language}.jsonl")) for language in (asked, found)}
    known = {row["pid"] for row in pools[found]}
    questions = []
    for row in read_jsonl(folder / "qa" / f"questions_{asked}.jsonl"):
        gold = [
            pid.replace(f"xquad-{asked}-", f"xquad-{found}-") for pid in row["gold_pids"] if pid.startswith("xquad-")
        ]
        if set(gold) & known:
            questions.append({**row, "gold_pids": gold})
    questions = draw.sample(questions, min(limit or len(questions), len(questions)))
    gold_pids = {pid for row in questions for pid in row["gold_pids"]}
    twins = {pid.replace(f"xquad-{found}-", f"xquad-{asked}-") for pid in gold_pids}
    passages = [row for row in pools[found] if row["pid"] in gold_pids]
    for pool in pools.values():
        others = [row for row in pool if row["pid"] not in gold_pids | twins]
        passages += draw.sample(others, min(2 * len(gold_pids), len(others)))
    return Sample(passages, questions)


class PassageStore:
    """A knowledge base whose vectors are compared one by one and whose BM25 is the product's catalogue."""

    def __init__(self, passages: Iterable[Row], *, embedder: Embedder) -> None:
        chunks = [_chunk(row) for row in passages]
        self.held = {chunk.id: chunk for chunk in chunks}
        self.keys = list(self.held)
        self._vectors = embedder.embed_passages([chunk.embedding_text for chunk in chunks])
        self._folder = TemporaryDirectory()
        self._catalogue = Catalogue(Path(self._folder.name) / "catalogue.sqlite")
        self._catalogue.commit_document(
            DocumentRow("passages", 1, len(chunks), "text", 0, 0.0),
            files=[FileRow("passages", "", "passages", FileStatus.INDEXED, {})],
            blocks=[chunk.pieces[0].block for chunk in chunks],
            chunks={chunk: " ".join(search_terms(chunk.embedding_text)) for chunk in chunks},
        )

    def dense(
        self, vector: NDArray[np.float32], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Exact nearest passages."""
        scores = self._vectors @ vector
        return [(self.keys[place], float(scores[place])) for place in np.argsort(-scores)[:limit]]

    def lexical(
        self, terms: Sequence[str], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Best passages by BM25."""
        return self._catalogue.lexical(terms, limit=limit)

    def chunks(self, chunk_ids: Sequence[str], *, files: Collection[str] = ()) -> dict[str, Chunk]:
        """Passages by id."""
        return {key: self.held[key] for key in chunk_ids}

    def file_names(self, document_id: str) -> tuple[str, ...]:
        """No passage has another file."""
        return ()

    def close(self) -> None:
        """Remove the catalogue."""
        self._catalogue.close()
        self._folder.cleanup()


def _chunk(row: Row) -> Chunk:
    block = Block("passages", 1, 0, BlockType.TEXT, row["text"], FULL_PAGE, BlockParser.TEXT)
    path = (row["title"],) if row.get("title") else ()
    return Chunk(row["pid"], "passages", "passages", row["text"], path, (Piece(0, len(row["text"]), block),))
