"""What every benchmark shares: options, what ran, Markdown tables, JSON results, the error browser's cases."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config import ROOT, bench_data_dir

PACKAGES = ("chromadb", "langchain-text-splitters", "liteparse", "numpy", "onnxruntime", "pypdfium2", "streamlit")
RESULTS_DIR = ROOT / "benchmarks" / "results"
"""Stored results: figures and ids, no text of the evaluation data."""
CASES_DIR = ROOT / "artifacts" / "bench" / "cases"
"""What the error browser reads: each item with the texts, on this machine only."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    limit: int
    seed: int
    out: Path | None
    rest: argparse.Namespace


def read_options(description: str | None, *, parser: argparse.ArgumentParser | None = None) -> Options:
    """Read --limit, --seed and --out, beside what `parser` adds."""
    parser = parser or argparse.ArgumentParser(description=description)
    parser.add_argument("--limit", type=int, default=0, help="at most so many items of each kind; 0 is all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder for the JSON result")
    read = parser.parse_args()
    return Options(limit=read.limit, seed=read.seed, out=read.out, rest=read)


def data_dir() -> Path:
    """Return the folder of the evaluation data, or stop with a clear sentence when it is absent."""
    folder = bench_data_dir()
    if not (folder / "README.md").is_file():
        sys.exit(f"no evaluation data in {folder.name!r}: set CRAG_BENCH_DATA to its folder")
    return folder


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def environment(*, seed: int, files: Sequence[Path] = ()) -> dict[str, Any]:
    """Return what ran: versions, commit, machine, seed, and a hash of each data file."""
    commit = subprocess.run(
        ("git", "rev-parse", "--short", "HEAD"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "time": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "seed": seed,
        "data": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in files},
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table; the first row names the columns."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def rate(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Return the share of rows where `name` holds; None when there are no rows."""
    return sum(bool(row[name]) for row in rows) / len(rows) if rows else None


def figures(rows: Sequence[Mapping[str, Any]], *, keys: Sequence[str]) -> dict[str, float]:
    """Return the numbers of a table by dotted name: the values of `keys`, then the column, blanks as underscores.

    A README quotes them as `NAME.KEY….COLUMN` (see benchmarks/quotes.py).
    """
    found: dict[str, float] = {}
    for row in rows:
        place = [str(row[key]) for key in keys]
        for column, value in row.items():
            if column not in keys and isinstance(value, (int, float)) and not isinstance(value, bool):
                found[".".join([*place, column]).replace(" ", "_")] = value
    return found


def finish(
    name: str,
    *,
    result: Mapping[str, Any],
    options: Options,
    text: str,
    cases: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Print the table with what ran, write the JSON where asked, and the cases for the error browser."""
    print(f"## {name}\n\n{text}\n")
    print(json.dumps(result["environment"], ensure_ascii=False))
    if cases:
        CASES_DIR.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
        (CASES_DIR / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"{name}.json"
        path.write_text(json.dumps({**result, "report": text}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def quantile(values: Sequence[float], *, q: float) -> float:
    """Return the q-quantile (0..1) of values by the nearest rank; 0 when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))] if ordered else 0.0
