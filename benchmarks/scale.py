"""What one machine carries: build, query, memory and disk as the store grows; the cost of one more PDF; readers.

Vectors and texts are synthetic (clustered unit vectors, Zipf-distributed English words and Chinese two-character
words), so parsing and embedding take no time here; see the embedding and parsing benchmarks for those.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import environment, figures, finish, quantile, read_options, table
from build_report import Outcome
from catalogue_rows import DocumentRow, FileRow, FileStatus
from config import load_settings
from generations import Generation
from indexing import stamp
from knowledge_base import KnowledgeBase
from pdf_loader import PdfLoader, document_id_of
from retriever import HybridRetriever, search_terms
from schema import Block, BlockParser, BlockType, Chunk, Piece
from vector_store import Entry

DIMENSION = 384
CHUNKS_A_DOCUMENT = 20
WORDS_A_HALF = 45
HALVES = 3000
BULK = 20_000
QUERIES = 150
READERS = 10
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


def fill(
    generation: Generation, *, count: int, embedder: SyntheticEmbedder, seed: int
) -> tuple[Vectors, dict[str, float]]:
    """Write `count` chunks as a build does; return the vectors, and the seconds in vector store and catalogue.

    Above `BULK` chunks the vectors are written 5,000 at a time, which takes about half as long as one document at a
    time and makes the same index.
    """
    everything, dense, lexical = [], Clock(), Clock()
    waiting: list[Entry] = []
    bulk = 5000 if count > BULK else 1
    for document, blocks, chunks in Library(seed).documents(count):
        everything.append(embedder.draw(len(chunks)))
        waiting += [Entry(chunk.id, document, "x") for chunk in chunks]
        if len(waiting) >= bulk:
            with dense:
                generation.store.upsert(waiting, vectors=_last(everything, count=len(waiting)))
            waiting = []
        file = FileRow(f"{document}.pdf", "0:0:0", document, FileStatus.INDEXED, {})
        row = DocumentRow(document, len(chunks), len(chunks), "text", 0, 0.0)
        with lexical:
            generation.catalogue.commit_document(row, files=[file], blocks=blocks, chunks=chunks)
    if waiting:
        with dense:
            generation.store.upsert(waiting, vectors=_last(everything, count=len(waiting)))
    return np.concatenate(everything), {
        "vectors s": sum(dense.wall),
        "catalogue s": sum(lexical.wall),
        "vectors CPU ms/chunk": 1000 * sum(dense.cpu) / count,
        "catalogue CPU ms/chunk": 1000 * sum(lexical.cpu) / count,
    }


def _last(parts: Sequence[Vectors], *, count: int) -> Vectors:
    rows = -(-count // CHUNKS_A_DOCUMENT)
    return np.concatenate(parts[-rows:])[-count:]


def measure_size(count: int, *, seed: int) -> dict[str, Any]:
    """Fill one store and ask it."""
    embedder, texts = SyntheticEmbedder(seed), Texts(seed)
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(files_dir=Path(folder) / "Files", data_dir=Path(folder) / "data")
        with KnowledgeBase(settings, embedder=embedder, loader=PdfLoader(settings)) as base:
            base.build()
            generation = base._answering.current()  # noqa: SLF001
            assert generation is not None
            vectors, built_in = fill(generation, count=count, embedder=embedder, seed=seed)
            built = memory()
            generation.close()
        with KnowledgeBase(settings, embedder=embedder, loader=PdfLoader(settings)) as base:
            asked = ask(base, vectors=vectors, embedder=embedder, texts=texts, seed=seed)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {
        "chunks": count,
        **built_in,
        **asked,
        "memory built MB": built,
        "memory MB": memory(),
        "disk MB": size / 1e6,
        "disk KB/chunk": size / 1e3 / count,
    }


def ask(
    base: KnowledgeBase, *, vectors: Vectors, embedder: SyntheticEmbedder, texts: Texts, seed: int
) -> dict[str, float]:
    """Return quantiles of the retrieval time in ms, and the share of the true ten nearest that Chroma finds."""
    retriever = HybridRetriever(base, embedder=embedder, settings=base.settings)
    chance = random.Random(seed)
    started = time.perf_counter()
    retriever.retrieve("first question", limit=10)
    first = time.perf_counter() - started
    whole, dense, lexical, recalls = Clock(), Clock(), Clock(), []
    for number in range(QUERIES):
        embedder.next_query = query = embedder.near(vectors[chance.randrange(len(vectors))])
        question = texts.draw(10, chinese=number % 2 == 1)
        with whole:
            retriever.retrieve(question, limit=10)
        with dense:
            found = base.dense(query, limit=10)
        with lexical:
            base.lexical(search_terms(question), limit=60)
        nearest = np.argpartition(-(vectors @ query), min(10, len(vectors) - 1))[:10]
        true = {f"{row // CHUNKS_A_DOCUMENT * CHUNKS_A_DOCUMENT:016x}-{row % CHUNKS_A_DOCUMENT}" for row in nearest}
        recalls.append(len(true & {key for key, _ in found}) / 10)
    embedder.next_query = None
    return {
        "first ms": 1000 * first,
        "p50 ms": whole.quantile(0.5),
        "p95 ms": whole.quantile(0.95),
        "CPU p50 ms": whole.quantile(0.5, cpu=True),
        "CPU p95 ms": whole.quantile(0.95, cpu=True),
        "dense p95 ms": dense.quantile(0.95),
        "BM25 p95 ms": lexical.quantile(0.95),
        "dense CPU p95 ms": dense.quantile(0.95, cpu=True),
        "BM25 CPU p95 ms": lexical.quantile(0.95, cpu=True),
        "recall@10": statistics.mean(recalls),
    }


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


def write_pdf(path: Path, *, text: str) -> Path:
    """Write a one-page PDF, by hand: Latin text only."""
    stream = f"BT /F1 11 Tf 72 720 Td ({text}) Tj ET"
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


def measure_one_more(count: int, *, seed: int, repeats: int) -> dict[str, Any]:
    """Return the seconds that one more PDF takes in an empty base and in one of `count`, and an unchanged build."""
    texts = Texts(seed)
    with tempfile.TemporaryDirectory() as folder:
        bases = {}
        for size in (0, count):
            settings = load_settings(files_dir=Path(folder) / f"Files{size}", data_dir=Path(folder) / f"data{size}")
            bases[size] = KnowledgeBase(settings, embedder=SyntheticEmbedder(seed), loader=PdfLoader(settings))
            bases[size].build()
        settle(bases[count], count=count, seed=seed)
        unchanged = Clock()
        for _ in range(3):
            with unchanged:
                report = bases[count].build()
            assert report.count(Outcome.UNCHANGED) == count
        clocks = {0: Clock(), count: Clock()}
        for number in range(repeats):
            for size, base in bases.items():
                path = write_pdf(base.files_dir / f"one more {number}.pdf", text=texts.draw(12, chinese=False))
                with clocks[size]:
                    report = base.build()
                assert report.count(Outcome.INDEXED) == 1
                base.delete(path.name)
        for base in bases.values():
            base.close()
    empty, full = (statistics.median(clocks[size].wall) for size in (0, count))
    return {
        "PDFs": count,
        "added to empty s": empty,
        "added to full s": full,
        "ratio": full / empty,
        "added to empty CPU s": statistics.median(clocks[0].cpu),
        "added to full CPU s": statistics.median(clocks[count].cpu),
        "unchanged build s": statistics.median(unchanged.wall),
        "unchanged build CPU s": statistics.median(unchanged.cpu),
    }


def settle(base: KnowledgeBase, *, count: int, seed: int) -> None:
    """Make the base hold `count` PDFs of four chunks each, with files on disk, without parsing them."""
    generation = base._answering.current()  # noqa: SLF001
    assert generation is not None
    embedder = SyntheticEmbedder(seed)
    entries: list[Entry] = []
    for number, (_, blocks, chunks) in enumerate(Library(seed).documents(count * CHUNKS_A_DOCUMENT)):
        path = write_pdf(base.files_dir / f"file {number:05d}.pdf", text=f"document {number}")
        document = document_id_of(path)
        own = {
            Chunk(f"{document}-{n}", document, "", chunk.text, (), chunk.pieces): terms
            for n, (chunk, terms) in enumerate(list(chunks.items())[:4])
        }
        entries += [Entry(chunk.id, document, "x") for chunk in own]
        row = DocumentRow(document, len(own), len(own), "text", 0, 0.0)
        file = FileRow(path.name, stamp(path), document, FileStatus.INDEXED, {})
        generation.catalogue.commit_document(row, files=[file], blocks=blocks[:4], chunks=own)
    generation.store.upsert(entries, vectors=embedder.draw(len(entries)))


def measure_readers(count: int, *, seed: int) -> dict[str, Any]:
    """Return what ten readers see while everything is rebuilt: questions, errors, answers with a gap."""
    texts = Texts(seed)
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(files_dir=Path(folder) / "Files", data_dir=Path(folder) / "data")
        settings.files_dir.mkdir()
        for number in range(count):
            write_pdf(settings.files_dir / f"file {number}.pdf", text=texts.draw(12, chinese=False))
        embedder = SyntheticEmbedder(seed)
        with KnowledgeBase(settings, embedder=embedder, loader=PdfLoader(settings)) as base:
            base.build()
            done = threading.Event()
            seconds: list[float] = []
            gaps: list[int] = []
            errors: list[BaseException] = []

            def read() -> None:
                retriever = HybridRetriever(base, embedder=embedder, settings=settings)
                while not done.is_set():
                    started = time.perf_counter()
                    try:
                        found = retriever.retrieve("document", limit=5)
                    except Exception as error:  # noqa: BLE001
                        errors.append(error)
                        return
                    seconds.append(time.perf_counter() - started)
                    if len(found) < 5:
                        gaps.append(len(found))
                    time.sleep(0.05)

            readers = [threading.Thread(target=read) for _ in range(READERS)]
            for reader in readers:
                reader.start()
            report = base.build(rebuild=True)
            time.sleep(0.5)
            done.set()
            for reader in readers:
                reader.join()
    return {
        "PDFs": count,
        "readers": READERS,
        "rebuild s": report.seconds,
        "questions": len(seconds),
        "errors": len(errors),
        "gaps": len(gaps),
        "p95 ms": 1000 * quantile(seconds, q=0.95),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of chunks, each in a process of its own")
    parser.add_argument("--pdfs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--one", type=int, default=0, help=argparse.SUPPRESS)
    options = read_options(__doc__, parser=parser)
    if options.rest.one:
        print(json.dumps(measure_size(options.rest.one, seed=options.seed)))
        return
    sizes = [int(size) for size in options.rest.sizes.split(",") if size]
    if options.limit:
        sizes = [size for size in sizes if size <= options.limit]
    grown = []
    for size in sizes:
        command = [sys.executable, "-m", "benchmarks.scale", "--one", str(size), "--seed", str(options.seed)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        grown.append(json.loads(run.stdout))
        print(grown[-1], file=sys.stderr)
    pdfs = min(options.rest.pdfs, options.limit or options.rest.pdfs)
    one_more = [measure_one_more(pdfs, seed=options.seed, repeats=options.rest.repeats)]
    readers = [measure_readers(min(40, pdfs), seed=options.seed)]
    result = {
        "environment": environment(seed=options.seed),
        "dimension": DIMENSION,
        "growth": grown,
        "one_more": one_more,
        "readers": readers,
        "figures": figures(grown, keys=["chunks"]) | figures(one_more, keys=["PDFs"]),
    }
    text = "\n\n".join(table(rows) for rows in (grown, one_more, readers))
    finish("scale", result=result, options=options, text=text)


if __name__ == "__main__":
    main()
