"""What parsing costs: pages a second and memory; parts of benchmarks.parsing."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import Options
from benchmarks.page_texts import RIVALS
from config import ROOT, load_settings
from pdf_loader import PdfLoader
from pdf_page import PageResult
from schema import BlockParser


def sample(items: Sequence[Any], options: Options) -> list[Any]:
    """Return at most --limit items, chosen by the seed."""
    if not options.limit or len(items) <= options.limit:
        return list(items)
    return random.Random(options.seed).sample(list(items), options.limit)


def speed(data: Path, options: Options) -> list[dict[str, Any]]:
    """Pages a second of born-digital files by their text layer, beside the rivals' plain text; and whole files as a
    build reads them, in the child process and with OCR where a page needs it."""
    files = sample(sorted((data / "pdf" / "files").glob("*.pdf")), options)
    took: dict[str, float] = defaultdict(float)
    found: list[dict[str, Any]] = []
    for path in files:
        began, used = time.perf_counter(), time.process_time()
        pages = len(_text_only(path))
        spent = {"pages/s": time.perf_counter() - began, "pages/cpu-s": time.process_time() - used}
        for name, reader in RIVALS.items():
            began = time.perf_counter()
            reader(path)
            spent[f"{name} pages/s"] = time.perf_counter() - began
        found.append({"file": path.name, "pages": pages, **{key: _rate(pages, value) for key, value in spent.items()}})
        for key, value in spent.items():
            took[key] += value
    total = sum(row["pages"] for row in found)
    found.append({"file": "all", "pages": total, **{key: _rate(total, value) for key, value in took.items()}})
    return [*found, _whole_files(files)]


def _rate(pages: int, seconds: float) -> float:
    return round(pages / max(seconds, 1e-6), 1)


def _whole_files(files: Sequence[Path]) -> dict[str, Any]:
    settings = load_settings(pdf_parser="embedded", _env_file=None)
    loader = PdfLoader(settings)
    began = time.perf_counter()
    pages = [page for path in files for page in loader.pages(path, document_id="bench")]
    ocr = sum(page.parser is BlockParser.OCR for page in pages)
    rate = _rate(len(pages), time.perf_counter() - began)
    return {"file": f"as a build reads them ({ocr} pages by OCR)", "pages": len(pages), "pages/s": rate}


def _text_only(path: Path) -> list[PageResult]:
    from pdf_text import read_text_pages

    pages = read_text_pages(path, name=path.name, document_id="bench")
    return [page for page in pages if isinstance(page, PageResult)]


def memory(data: Path, options: Options) -> list[dict[str, Any]]:
    """Peak memory of the parser's process, and of the one that holds all blocks, for files of 100 and 1,000 pages."""
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
            done = subprocess.run(
                (sys.executable, "-c", _PEAKS, str(path)), cwd=ROOT, capture_output=True, text=True, check=True
            )
            own, child = (round(int(value) / 1024) for value in done.stdout.split())
            found.append({"pages": pages, "parser's peak MB": child, "caller's peak MB": own})
    return found


_PEAKS = """
import re, resource, sys
from pathlib import Path
from config import load_settings
from pdf_loader import parse_pdf
from pdf_process import close_children
parse_pdf(Path(sys.argv[1]), settings=load_settings(pdf_parser="embedded", _env_file=None))
close_children()
unit = 1024 if sys.platform == "darwin" else 1
own, child = (resource.getrusage(who).ru_maxrss // unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
status = Path("/proc/self/status")  # ru_maxrss begins with what the process had that started this one
found = re.search(r"VmHWM:\\s+(\\d+)", status.read_text()) if status.exists() else None
print(found[1] if found else own, child)
"""
"""A program of its own; prints KiB."""
