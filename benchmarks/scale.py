"""What one machine carries: build, query, memory and disk as the store grows; the cost of one more PDF; readers.

Vectors and texts of the growing store are synthetic (clustered unit vectors, Zipf-distributed English words and
Chinese two-character words), so parsing and embedding take no time there; see the embedding and parsing benchmarks.

With `--stores DIR` the filled stores stay there and are used again: a run that was cut off goes on where it was, and
`--fill` only fills. `--parts` measures some parts; what `--out` holds of the others is kept.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Options, environment, figures, finish, quantile, read_options, table
from benchmarks.synthetic import (
    CHUNKS_A_DOCUMENT,
    DIMENSION,
    Clock,
    Library,
    SyntheticEmbedder,
    Texts,
    Vectors,
    fill,
    memory,
    write_pdf,
)
from build_report import Outcome
from catalogue_rows import DocumentRow, FileRow, FileStatus
from config import load_settings
from embeddings import EmbeddedEmbedder, Embedder
from files_folder import stamp
from knowledge_base import KnowledgeBase
from pdf_loader import PdfLoader, document_id_of
from retriever import HybridRetriever, search_terms
from vector_store import Entry

QUERIES = 150
READERS = 10
PARTS = ("growth", "one_more", "readers")
Row = dict[str, Any]


def open_base(folder: Path, *, embedder: Embedder) -> KnowledgeBase:
    settings = load_settings(files_dir=folder / "Files", data_dir=folder / "data")
    return KnowledgeBase(settings, embedder=embedder, loader=PdfLoader(settings))


def fill_store(folder: Path, *, count: int, seed: int) -> None:
    """Fill a store of `count` chunks, or what is missing of it; note what it cost in `built.json`."""
    note = folder / "built.json"
    if note.is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open_base(folder, embedder=SyntheticEmbedder(seed)) as base:
        if not base.base.exists():
            base.build()
        with base._answering.reading() as reading:  # noqa: SLF001
            assert reading.current is not None
            done = reading.current.store.count()
            vectors, cost = fill(reading.current, count=count, seed=seed, done=done)
    np.save(folder / "vectors.npy", vectors)
    written = {name: value / (count - done) * 1000 for name, value in cost.items()}
    row = {
        "vectors ms/chunk": written["vectors s"],
        "catalogue ms/chunk": written["catalogue s"],
        "vectors CPU ms/chunk": written["vectors CPU s"],
        "catalogue CPU ms/chunk": written["catalogue CPU s"],
        "memory built MB": memory(),
    }
    note.write_text(json.dumps(row), encoding="utf-8")


def ask_store(folder: Path, *, count: int, seed: int) -> Row:
    """Return what building cost, quantiles of the retrieval time in ms, memory, disk, and how good the index is."""
    embedder, texts = SyntheticEmbedder(seed + 1), Texts(seed)
    vectors: Vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    chance = random.Random(seed)
    whole, dense, lexical = Clock(), Clock(), Clock()
    asked: list[tuple[Vectors, list[str]]] = []
    with open_base(folder, embedder=embedder) as base:
        retriever = HybridRetriever(base, embedder=embedder, settings=base.settings)
        started = time.perf_counter()
        retriever.retrieve("first question", limit=10)
        first = time.perf_counter() - started
        for number in range(QUERIES):
            embedder.next_query = query = embedder.near(vectors[chance.randrange(len(vectors))])
            question = texts.draw(10, chinese=number % 2 == 1)
            with whole:
                retriever.retrieve(question, limit=10)
            with dense:
                found = base.dense(query, limit=10)
            with lexical:
                base.lexical(search_terms(question), limit=60)
            asked.append((query, [key for key, _ in found]))
        resident = memory()
    size = sum(path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file())
    return {
        "chunks": count,
        **json.loads((folder / "built.json").read_text(encoding="utf-8")),
        "first ms": 1000 * first,
        "p50 ms": whole.quantile(0.5),
        "p95 ms": whole.quantile(0.95),
        "CPU p95 ms": whole.quantile(0.95, cpu=True),
        "dense p95 ms": dense.quantile(0.95),
        "BM25 p95 ms": lexical.quantile(0.95),
        "recall@10": statistics.mean(recall(keys, query=query, vectors=vectors) for query, keys in asked),
        "memory MB": resident,
        "disk MB": size / 1e6,
        "disk KB/chunk": size / 1e3 / count,
    }


def recall(keys: Sequence[str], *, query: Vectors, vectors: Vectors) -> float:
    """Return the share of the true ten nearest that were found."""
    nearest = np.argpartition(-(vectors @ query), min(10, len(vectors) - 1))[:10]
    true = {f"{row // CHUNKS_A_DOCUMENT * CHUNKS_A_DOCUMENT:016x}-{row % CHUNKS_A_DOCUMENT}" for row in nearest}
    return len(true & set(keys)) / len(true)


def measure_one_more(count: int, *, seed: int, repeats: int) -> list[Row]:
    """Return the seconds that one more PDF takes in an empty base and in one of `count`, and an unchanged build.

    Once with a line of text and vectors that cost nothing, which is the hardest case, and once with a page of text
    and the embedded model.
    """
    rows: list[Row] = []
    cases: tuple[tuple[str, Embedder, int], ...] = (
        ("synthetic", SyntheticEmbedder(seed), 1),
        ("embedded", EmbeddedEmbedder(), 30),
    )
    for name, embedder, lines in cases:
        texts, unchanged, clocks = Texts(seed), Clock(), {0: Clock(), count: Clock()}
        with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
            bases = {}
            for size in clocks:
                bases[size] = opened.enter_context(open_base(Path(folder) / str(size), embedder=embedder))
                bases[size].build()
            settle(bases[count], count=count, seed=seed)
            for number in range(-1, repeats):
                if number >= 0:
                    with unchanged:
                        report = bases[count].build()
                    assert report.count(Outcome.UNCHANGED) == count
                written = [texts.draw(12, chinese=False) for _ in range(lines)]
                for size, base in bases.items():
                    path = write_pdf(base.files_dir / f"one more {number}.pdf", lines=written)
                    with clocks[size] if number >= 0 else Clock():
                        report = base.build()
                    assert report.count(Outcome.INDEXED) == 1
                    base.delete(path.name)
        empty, full = (statistics.median(clocks[size].wall) for size in (0, count))
        rows.append(
            {
                "PDFs": count,
                "vectors": name,
                "lines": lines,
                "added to empty s": empty,
                "added to full s": full,
                "ratio": full / empty,
                "added to empty CPU s": statistics.median(clocks[0].cpu),
                "added to full CPU s": statistics.median(clocks[count].cpu),
                "unchanged build s": statistics.median(unchanged.wall),
                "slowest unchanged build s": max(unchanged.wall),
            }
        )
    return rows


def settle(base: KnowledgeBase, *, count: int, seed: int) -> None:
    """Make the base hold `count` PDFs of four chunks each, with files on disk, without parsing or embedding them."""
    entries: list[Entry] = []
    with base._answering.reading() as reading:  # noqa: SLF001
        assert reading.current is not None
        for number, (_, blocks, chunks) in enumerate(Library(seed).documents(count * CHUNKS_A_DOCUMENT)):
            path = write_pdf(base.files_dir / f"file {number:05d}.pdf", lines=[f"document {number}"])
            document = document_id_of(path)
            own = {
                type(chunk)(f"{document}-{n}", document, "", chunk.text, (), chunk.pieces): terms
                for n, (chunk, terms) in enumerate(list(chunks.items())[:4])
            }
            entries += [Entry(chunk.id, document, "x") for chunk in own]
            row = DocumentRow(document, len(own), len(own), "text", 0, 0.0)
            file = FileRow(path.name, stamp(path), document, FileStatus.INDEXED, {})
            reading.current.catalogue.commit_document(row, files=[file], blocks=blocks[:4], chunks=own)
        reading.current.store.upsert(entries, vectors=SyntheticEmbedder(seed).draw(len(entries)))


def measure_readers(count: int, *, seed: int) -> Row:
    """Return what ten readers see while everything is rebuilt: questions, errors, and answers without their file."""
    texts = Texts(seed)
    embedder = SyntheticEmbedder(seed)
    done = threading.Event()
    seconds: list[float] = []
    gaps: list[str] = []
    errors: list[BaseException] = []
    with tempfile.TemporaryDirectory() as folder, open_base(Path(folder), embedder=embedder) as base:
        base.files_dir.mkdir()
        for number in range(count):
            lines = [f"signpost{number}", texts.draw(12, chinese=False)]
            write_pdf(base.files_dir / f"file {number}.pdf", lines=lines)
        base.build()

        def read(reader: int) -> None:
            retriever = HybridRetriever(base, embedder=embedder, settings=base.settings)
            chance = random.Random(reader)
            while not done.is_set():
                wanted = chance.randrange(count)
                started = time.perf_counter()
                try:
                    found = retriever.retrieve(f"signpost{wanted}", limit=5)
                except Exception as error:  # noqa: BLE001
                    errors.append(error)
                    return
                seconds.append(time.perf_counter() - started)
                if f"file {wanted}.pdf" not in {document.file for document in found}:
                    gaps.append(f"file {wanted}.pdf")
                time.sleep(0.05)

        readers = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
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


def measure_growth(sizes: Sequence[int], *, options: Options) -> list[Row]:
    """Fill and ask a store of each size, each step in a process of its own."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        stores = options.rest.stores or Path(temporary)
        for size in sizes:
            for step in ("fill", "ask") if not options.rest.fill else ("fill",):
                command = [sys.executable, "-m", "benchmarks.scale", "--stores", str(stores), "--one", step]
                command += ["--sizes", str(size), "--seed", str(options.seed)]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            if not options.rest.fill:
                rows.append(json.loads(run.stdout))
                print(rows[-1], file=sys.stderr)
    return rows


def stored(options: Options) -> Mapping[str, Any]:
    """Return what an earlier run left in `--out`."""
    path = options.out / "scale.json" if options.out else None
    return json.loads(path.read_text(encoding="utf-8")) if path and path.is_file() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of chunks, each in a process of its own")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure")
    parser.add_argument("--stores", type=Path, default=None, help="folder for the filled stores, kept")
    parser.add_argument("--fill", action="store_true", help="fill the stores, measure nothing")
    parser.add_argument("--pdfs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    options = read_options(__doc__, parser=parser)
    sizes = [int(size) for size in options.rest.sizes.split(",") if size]
    if options.limit:
        sizes = [size for size in sizes if size <= options.limit]
    folders = {size: options.rest.stores / str(size) for size in sizes} if options.rest.stores else {}
    match options.rest.one:
        case "fill":
            fill_store(folders[sizes[0]], count=sizes[0], seed=options.seed)
            return
        case "ask":
            print(json.dumps(ask_store(folders[sizes[0]], count=sizes[0], seed=options.seed)))
            return
    before = stored(options)
    rows: dict[str, list[Row]] = {part: before.get(part, []) for part in PARTS}
    pdfs = min(options.rest.pdfs, options.limit or options.rest.pdfs)
    ran = environment(seed=options.seed)
    for part in options.rest.parts.split(","):
        match part:
            case "growth":
                grown = {row["chunks"]: row for row in (*rows[part], *measure_growth(sizes, options=options))}
                rows[part] = [grown[size] for size in sorted(grown)]
            case "one_more":
                rows[part] = measure_one_more(pdfs, seed=options.seed, repeats=options.rest.repeats)
            case "readers":
                rows[part] = [measure_readers(min(40, pdfs), seed=options.seed)]
    if options.rest.fill:
        return
    found = figures(rows["growth"], keys=["chunks"]) | figures(rows["one_more"], keys=["PDFs", "vectors"])
    found |= {f"readers.{name}": value for name, value in figures(rows["readers"], keys=["PDFs"]).items()}
    result = {"environment": ran, "dimension": DIMENSION, **rows, "figures": found}
    finish("scale", result=result, options=options, text="\n\n".join(table(rows[part]) for part in PARTS))


if __name__ == "__main__":
    main()
