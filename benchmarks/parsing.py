"""Parsing: text against human-checked pages, OCR, reading order, tables, headings, speed and memory.

Run `python -m benchmarks.parsing [--limit N] [--seed S] [--out DIR] [--parts text,scans,…]`. Similarity is
2·LCS / (a + b) over letters and digits, case folded (1 is the same text in the
same order). Speeds are wall and CPU seconds; OCR and wall times are pessimistic on a busy machine. Beside ours, the
same pages are read by pypdfium2 and by every rival that happens to be installed (pdfplumber, pymupdf).
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import Options, data_dir, environment, finish, read_jsonl, read_options, table
from benchmarks.page_texts import RIVALS, letters, plain, similarity
from benchmarks.parsing_cases import HEADINGS, ORDER, ROWS
from config import ROOT
from pdf_page import PageResult
from pdf_structure import assemble
from pdf_worker import read_pages
from schema import PARATEXT, Block, BlockType

PARTS = ("text", "scans", "images", "order", "tables", "headings", "readoc", "speed", "memory")


def main() -> None:
    """Run the parts asked for and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = read_options(__doc__, parser=parser)
    data = data_dir()
    result: dict[str, Any] = {"environment": environment(seed=options.seed)}
    texts: list[str] = []
    steps: dict[str, Callable[[Path, Options], list[dict[str, Any]]]] = {
        "text": text_of_pages,
        "scans": scans,
        "images": images,
        "order": order,
        "tables": tables,
        "headings": headings,
        "readoc": readoc,
        "speed": speed,
        "memory": memory,
    }
    for name in options.rest.parts.split(","):
        rows = steps[name](data, options)
        result[name] = rows
        texts.append(f"### {name}\n\n{table(rows)}")
        print(texts[-1], flush=True)
    finish("parsing", result=result, options=options, text="\n\n".join(texts))


def read(path: Path) -> list[PageResult]:
    """Read a file in this process with the embedded parser."""
    pages = read_pages(path, document_id="bench", password="", done=(), max_pages=10_000)
    return [page for page in pages if isinstance(page, PageResult)]


def page_text(page: PageResult) -> str:
    """Return all text of one page in reading order."""
    return "\n".join(block.text for block in page.blocks)


def sample(items: Sequence[Any], options: Options) -> list[Any]:
    """Return at most --limit items, chosen by the seed."""
    if not options.limit or len(items) <= options.limit:
        return list(items)
    return random.Random(options.seed).sample(list(items), options.limit)


def text_of_pages(data: Path, options: Options) -> list[dict[str, Any]]:
    """Similarity to the human-checked text of OHR-Bench pages, per file and over all."""
    by_file: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sample(list(read_jsonl(data / "parser" / "ohr_gt_pages.jsonl")), options):
        by_file[row["pdf"]].append(row)
    scores: dict[str, dict[str, list[float]]] = {}
    for name, rows in by_file.items():
        path = data / "pdf" / "files" / name
        read_by = {"crag": [page_text(page) for page in read(path)]} | {
            rival: reader(path) for rival, reader in RIVALS.items()
        }
        scores[name] = {
            reader: [similarity(pages[int(row["page"]) - 1], plain(row["gt"])) for row in rows]
            for reader, pages in read_by.items()
        }
        scores[name]["mineru 0.9.3"] = [similarity(plain(row["mineru"]), plain(row["gt"])) for row in rows]
    readers = list(next(iter(scores.values())))
    found = [
        {"file": name, "pages": len(by_file[name]), **{reader: _mean(scores[name][reader]) for reader in readers}}
        for name in scores
    ]
    total = {reader: [value for file in scores.values() for value in file[reader]] for reader in readers}
    return [
        *found,
        {"file": "all", "pages": len(total["crag"]), **{reader: _mean(total[reader]) for reader in readers}},
    ]


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def scans(data: Path, options: Options) -> list[dict[str, Any]]:
    """OCR of scanned Chinese pages."""
    from pdf_ocr import engine, read_ocr_page

    engine()
    found = []
    for row in sample(list(read_jsonl(data / "parser" / "scanned" / "gt.jsonl")), options):
        began, used = time.perf_counter(), time.process_time()
        page = read_ocr_page(
            data / "parser" / "scanned" / row["pdf"],
            page=int(row["page"]),
            total=1,
            document_id="bench",
            reason="no_text",
        )
        found.append(
            {
                "file": row["pdf"],
                "page": row["page"],
                "similarity": round(similarity(page_text(page), row["gt_text"]), 4),
                "seconds": round(time.perf_counter() - began, 1),
                "cpu_seconds": round(time.process_time() - used, 1),
            }
        )
    return found


def images(data: Path, options: Options) -> list[dict[str, Any]]:
    """OCR and layout of OmniDocBench page pictures; order and tables count, because LCS is over the whole page."""
    from PIL import Image

    from pdf_ocr import read_picture

    found = []
    for row in sample(list(read_jsonl(data / "parser" / "omnidoc" / "gt.jsonl")), options):
        used = time.process_time()
        with Image.open(data / "parser" / "omnidoc" / row["image"]) as opened:
            page = read_picture(opened.convert("RGB"), document_id="bench", page=1, total=1, reason="no_text")
        found.append(
            {
                "image": row["image"],
                "kind": row["attributes"].get("data_source", ""),
                "language": row["attributes"].get("language", ""),
                "similarity": round(similarity(page_text(page), plain(row["gt_text"])), 4),
                "cpu_seconds": round(time.process_time() - used, 1),
            }
        )
    return found


def order(data: Path, options: Options) -> list[dict[str, Any]]:
    """Reading order of multi-column files: each stretch must come before the next one."""
    found = []
    for name, markers in ORDER.items():
        text = letters(" ".join(page_text(page) for page in read(data / "pdf_corpus" / name)))
        places = [text.find(letters(marker)) for marker in markers]
        found.append({"file": name, "in order": places == sorted(places) and -1 not in places, "markers": len(markers)})
    return found


def tables(data: Path, options: Options) -> list[dict[str, Any]]:
    """Row checks: a printed row is one row of a table, every figure in a cell of its own, in order."""
    blocks = {name: assemble(read(data / "pdf_corpus" / name)) for name in dict(ROWS)}
    found = []
    for name, wanted in ROWS:
        rows = [
            [letters(cell) for cell in row.strip("| ").split(" | ") if letters(cell)]
            for block in blocks[name]
            if block.type is BlockType.TABLE
            for row in block.text.splitlines()
        ]
        found.append({"file": name, "row": wanted[0], "found": [letters(cell) for cell in wanted] in rows})
    hits = sum(row["found"] is True for row in found)
    return [*found, {"file": "all", "row": f"{hits}/{len(found)}", "found": hits == len(found)}]


def headings(data: Path, options: Options) -> list[dict[str, Any]]:
    """Headings found of those a reader sees, and how many more were taken for headings."""
    found = []
    for name, wanted in HEADINGS.items():
        titles = [
            letters(block.text) for block in assemble(read(data / "pdf_corpus" / name)) if block.type is BlockType.TITLE
        ]
        hits = sum(letters(text) in titles for text in wanted)
        found.append({"file": name, "found": f"{hits}/{len(wanted)}", "all titles": len(titles)})
    return found


def readoc(data: Path, options: Options) -> list[dict[str, Any]]:
    """READoc papers and manuals against their Markdown: text without paratext, and headings."""
    found = []
    for truth in sorted((data / "parser" / "readoc").glob("*.md")):
        path = truth.with_suffix(".pdf")
        if not path.is_file():
            continue
        blocks = assemble(read(path))
        markdown = truth.read_text(encoding="utf-8")
        wanted = [letters(match) for match in re.findall(r"^#+\s+(.+)$", markdown, re.M)]
        titles = {letters(block.text) for block in blocks if block.type is BlockType.TITLE}
        rivals = {name: similarity("\n".join(reader(path)), plain(markdown)) for name, reader in RIVALS.items()}
        found.append(
            {
                "file": path.name,
                "crag": round(similarity(_body(blocks), plain(markdown)), 4),
                **{name: round(value, 4) for name, value in rivals.items()},
                "headings": f"{sum(title in titles for title in wanted)}/{len(wanted)}",
                "all titles": len(titles),
            }
        )
    return found


def _body(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if block.type not in PARATEXT)


def speed(data: Path, options: Options) -> list[dict[str, Any]]:
    """Pages a second of born-digital files, CPU time and wall time, beside the rivals' plain text."""
    files = sorted((data / "pdf" / "files").glob("*.pdf"))
    found = []
    for path in sample(files, options):
        began, used = time.perf_counter(), time.process_time()
        pages = _text_only(path)
        cpu, wall = time.process_time() - used, time.perf_counter() - began
        row = {"file": path.name, "pages": len(pages), "pages/s": round(len(pages) / wall, 1),
               "pages/cpu-s": round(len(pages) / cpu, 1)}  # fmt: skip
        for name, reader in RIVALS.items():
            used = time.process_time()
            reader(path)
            row[f"{name} pages/cpu-s"] = round(len(pages) / max(time.process_time() - used, 1e-6), 1)
        found.append(row)
    pages_read = sum(row["pages"] for row in found)
    seconds = sum(row["pages"] / row["pages/cpu-s"] for row in found)
    return [*found, {"file": "all", "pages": pages_read, "pages/cpu-s": round(pages_read / seconds, 1)}]


def _text_only(path: Path) -> list[PageResult]:
    from pdf_text import read_text_pages

    pages = read_text_pages(path, name=path.name, document_id="bench")
    return [page for page in pages if isinstance(page, PageResult)]


def memory(data: Path, options: Options) -> list[dict[str, Any]]:
    """Peak memory of a process that reads a file of 100 and one of 1,000 pages."""
    import pikepdf

    source = data / "pdf" / "files" / "COSTCO_2021_10K.pdf"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for pages in (100, 1000):
            path = Path(folder) / f"{pages}.pdf"
            with pikepdf.open(source) as pdf, pikepdf.new() as long:
                while len(long.pages) < pages:
                    long.pages.extend(pdf.pages[: pages - len(long.pages)])
                long.save(path)
            code = (
                "import sys, resource; from pathlib import Path; from pdf_text import read_text_pages\n"
                "for page in read_text_pages(Path(sys.argv[1]), name='x', document_id='x'): pass\n"
                "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
            )
            done = subprocess.run(
                (sys.executable, "-c", code, str(path)), cwd=ROOT, capture_output=True, text=True, check=True
            )
            unit = 1024 * 1024 if sys.platform == "darwin" else 1024
            found.append({"pages": pages, "peak MB": round(int(done.stdout) / unit)})
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [*found, {"pages": "this benchmark", "peak MB": round(own / 1024)}]


if __name__ == "__main__":
    main()
