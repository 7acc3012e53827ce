"""Parsing: text against human-checked pages, OCR, reading order, tables, headings, speed and memory.

Run `python -m benchmarks.parsing [--limit N] [--seed S] [--out DIR] [--parts text,scans,…]`; parts run later join the
stored result of the others, each with its own time and load. Similarity is 2·LCS / (a + b) over letters and digits,
case folded (1 is the same text in the same order). Speeds are wall and CPU seconds; OCR and wall times are pessimistic
on a busy machine. Beside ours, the same pages are read by pypdfium2 and by every rival that happens to be installed
(pdfplumber, pymupdf).
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import Options, data_dir, environment, figures, finish, read_jsonl, read_options, table
from benchmarks.page_texts import RIVALS, letters, plain, similarity
from benchmarks.parsing_cases import HEADINGS, ORDER, ROWS
from benchmarks.parsing_speed import memory, sample, speed
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
    result = earlier(options) | {"environment": environment(seed=options.seed, files=truths(data))}
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
        now = environment(seed=options.seed)
        result[name] = steps[name](data, options)
        result.setdefault("ran", {})[name] = {key: now[key] for key in ("time", "commit", "load")}
        print(f"### {name}\n\n{table(result[name])}\n", flush=True)
    done = [name for name in PARTS if name in result]
    result["figures"] = {
        f"{name}.{key}": value
        for name in done
        for key, value in figures(result[name], keys=list(result[name][0])[:1]).items()
    }
    finish(
        "parsing",
        result=result,
        options=options,
        text="\n\n".join(f"### {name}\n\n{table(result[name])}" for name in done),
    )


def earlier(options: Options) -> dict[str, Any]:
    """Return the stored result that this run's parts join; empty without one."""
    path = options.out / "parsing.json" if options.out else None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path and path.is_file() else {}
    return found


def truths(data: Path) -> list[Path]:
    """Return the files that hold the truth."""
    places = ("ohr_gt_pages.jsonl", "scanned/gt.jsonl", "omnidoc/gt.jsonl")
    return [data / "parser" / place for place in places]


def read(path: Path) -> list[PageResult]:
    """Read a file in this process with the embedded parser."""
    pages = read_pages(path, document_id="bench", password="", done=(), max_pages=10_000)
    return [page for page in pages if isinstance(page, PageResult)]


def page_text(page: PageResult) -> str:
    """Return all text of one page in reading order."""
    return "\n".join(block.text for block in page.blocks)


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
    return [*found, _means(found, file="all", page=len(found))]


def _means(rows: Sequence[dict[str, Any]], **names: Any) -> dict[str, Any]:
    """Return a row of the means over `rows`."""
    columns = ("similarity", "seconds", "cpu_seconds")
    return names | {column: round(sum(row[column] for row in rows) / len(rows), 4) for column in columns}


def images(data: Path, options: Options) -> list[dict[str, Any]]:
    """OCR and layout of OmniDocBench page pictures; order and tables count, because LCS is over the whole page."""
    from PIL import Image

    from pdf_ocr import engine, read_picture

    engine()
    found = []
    for row in sample(list(read_jsonl(data / "parser" / "omnidoc" / "gt.jsonl")), options):
        began, used = time.perf_counter(), time.process_time()
        with Image.open(data / "parser" / "omnidoc" / row["image"]) as opened:
            page = read_picture(opened.convert("RGB"), document_id="bench", page=1, total=1, reason="no_text")
        found.append(
            {
                "image": row["image"],
                "kind": row["attributes"].get("data_source", ""),
                "language": row["attributes"].get("language", ""),
                "similarity": round(similarity(page_text(page), plain(row["gt_text"])), 4),
                "seconds": round(time.perf_counter() - began, 1),
                "cpu_seconds": round(time.process_time() - used, 1),
            }
        )
    return [*found, _means(found, image="all", kind=len(found), language="")]


def order(data: Path, options: Options) -> list[dict[str, Any]]:
    """Reading order of multi-column files: each stretch must come before the next one."""
    found = []
    for name, markers in ORDER.items():
        path = data / "pdf_corpus" / name
        read_by = {"crag": " ".join(page_text(page) for page in read(path))} | {
            rival: " ".join(reader(path)) for rival, reader in RIVALS.items()
        }
        found.append(
            {"file": name, "markers": len(markers)}
            | {reader: _in_order(text, markers=markers) for reader, text in read_by.items()}
        )
    return found


def _in_order(text: str, *, markers: Sequence[str]) -> bool:
    """Tell whether each marker comes after the one before it."""
    place = 0
    for marker in map(letters, markers):
        place = letters(text).find(marker, place) + 1
        if not place:
            return False
    return True


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


if __name__ == "__main__":
    main()
