"""Knowledge bases without meaning, for `benchmarks.scale`: drawn vectors and texts, written as a build writes them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import quantile
from catalogue_rows import DocumentRow, FileRow, FileStatus
from generations import Generation
from retriever import search_terms
from schema import Block, BlockParser, BlockType, Chunk, Piece
from vector_store import Entry

DIMENSION = 384
CHUNKS_A_DOCUMENT = 20
WORDS_A_HALF = 45
HALVES = 3000
BULK = 20_000
Vectors = NDArray[np.float32]


class SyntheticEmbedder:
    """Gives vectors that were drawn before, or a new draw: embedding costs nothing here."""

    name = "synthetic"
    dimension = DIMENSION

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._centres = self._chance.normal(size=(200, DIMENSION)).astype(np.float32)
        self.next_query: Vectors | None = None

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Give the query set before, or a new draw."""
        return self.draw(len(texts)) if self.next_query is None else self.next_query[np.newaxis]

    def embed_passages(self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> Vectors:
        """Give a new draw."""
        return self.draw(len(texts))

    def draw(self, count: int) -> Vectors:
        """Draw unit vectors around the centres."""
        centres = self._centres[self._chance.integers(len(self._centres), size=count)]
        return unit(centres + self._chance.normal(scale=0.8, size=(count, DIMENSION)))

    def near(self, vector: Vectors) -> Vectors:
        """Return a unit vector close to one."""
        return unit(vector + self._chance.normal(scale=0.03, size=DIMENSION))


def unit(vectors: NDArray[Any]) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


class Texts:
    """Draws texts whose words have the frequencies of language."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        letters = random.Random(seed)
        self._english = [
            "".join(letters.choices("abcdefghiklmnoprstuvwy", k=letters.randint(3, 9))) for _ in range(30000)
        ]
        self._chinese = [chr(0x4E00 + a) + chr(0x4E00 + b) for a, b in self._chance.integers(3000, size=(20000, 2))]

    def draw(self, count: int, *, chinese: bool) -> str:
        """Draw a text of at most `count` words."""
        words = self._chinese if chinese else self._english
        ranks = (self._chance.zipf(1.15, size=count * 3) - 1).astype(np.int64)
        chosen = [words[rank] for rank in ranks if 0 <= rank < len(words)][:count]
        return "".join(chosen) if chinese else " ".join(chosen)


class Library:
    """Draws documents; a chunk is two of a few thousand half texts, whose search terms are found once."""

    def __init__(self, seed: int) -> None:
        texts = Texts(seed)
        self._chance = random.Random(seed)
        self._halves = []
        for chinese in (False, True):
            drawn = [texts.draw(WORDS_A_HALF, chinese=chinese) for _ in range(HALVES)]
            self._halves.append([(text, " ".join(search_terms(text))) for text in drawn])

    def documents(self, count: int) -> Iterator[tuple[str, list[Block], dict[Chunk, str]]]:
        """Yield (id, blocks, chunks with their terms) until `count` chunks are there."""
        for number in range(0, count, CHUNKS_A_DOCUMENT):
            document = f"{number:016x}"
            halves = self._halves[number // CHUNKS_A_DOCUMENT % 2]
            blocks, chunks = [], {}
            for order in range(min(CHUNKS_A_DOCUMENT, count - number)):
                (first, terms), (second, more) = self._chance.choice(halves), self._chance.choice(halves)
                text = f"{first}\n{second}"
                box = (0.1, 0.1, 0.9, 0.2)
                block = Block(document, order + 1, order, BlockType.TEXT, text, box, BlockParser.TEXT)
                blocks.append(block)
                chunk = Chunk(f"{document}-{order}", document, "", text, (), (Piece(0, len(text), block),))
                chunks[chunk] = f"{terms} {more}"
            yield document, blocks, chunks


def fill(generation: Generation, *, count: int, seed: int, done: int = 0) -> tuple[Vectors, dict[str, float]]:
    """Write `count` chunks as a build does, but for `done` that are there; return all vectors, and what it cost.

    Above `BULK` chunks the vectors are written 5,000 at a time, which takes about half as long as one document at a
    time and makes the same index.
    """
    embedder = SyntheticEmbedder(seed)
    everything, dense, lexical = [], Clock(), Clock()
    waiting: list[Entry] = []
    committed = generation.catalogue.documents()
    bulk = 5000 if count > BULK else 1
    drawn = 0
    for document, blocks, chunks in Library(seed).documents(count):
        everything.append(embedder.draw(len(chunks)))
        drawn += len(chunks)
        if drawn <= done:
            continue
        waiting += [Entry(chunk.id, document, "x") for chunk in chunks]
        if len(waiting) >= bulk:
            with dense:
                generation.store.upsert(waiting, vectors=_last(everything, count=len(waiting)))
            waiting = []
        file = FileRow(f"{document}.pdf", "0:0:0", document, FileStatus.INDEXED, {})
        row = DocumentRow(document, len(chunks), len(chunks), "text", 0, 0.0)
        if document not in committed:
            with lexical:
                generation.catalogue.commit_document(row, files=[file], blocks=blocks, chunks=chunks)
    if waiting:
        with dense:
            generation.store.upsert(waiting, vectors=_last(everything, count=len(waiting)))
    return np.concatenate(everything), {
        "vectors s": sum(dense.wall),
        "catalogue s": sum(lexical.wall),
        "vectors CPU s": sum(dense.cpu),
        "catalogue CPU s": sum(lexical.cpu),
    }


def _last(parts: Sequence[Vectors], *, count: int) -> Vectors:
    rows = -(-count // CHUNKS_A_DOCUMENT)
    return np.concatenate(parts[-rows:])[-count:]


def write_pdf(path: Path, *, lines: Sequence[str]) -> Path:
    """Write a one-page PDF, by hand: Latin text only."""
    shown = " T* ".join(f"({line}) Tj" for line in lines)
    stream = f"BT /F1 11 Tf 14 TL 72 720 Td {shown} ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >>>>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    body, places = "%PDF-1.4\n", []
    for number, text_of in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text_of}\nendobj\n"
    cross = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    path.write_text(f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{cross}{trailer}", encoding="latin-1")
    return path


class Clock:
    """Collects the seconds of a block of code: wall time, and processor time, which other programs do not lengthen."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __enter__(self) -> None:
        """Start."""
        self._started = (time.perf_counter(), time.process_time())

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.wall.append(time.perf_counter() - self._started[0])
        self.cpu.append(time.process_time() - self._started[1])

    def quantile(self, q: float, *, cpu: bool = False) -> float:
        """Return a quantile in milliseconds."""
        return 1000 * quantile(self.cpu if cpu else self.wall, q=q)


def memory() -> float:
    """Return the resident memory of this process in MB; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if status.exists() else 0.0
