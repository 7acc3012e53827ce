"""Measures what the embedder says about a text's language alone, and writes language_shifts.json into its folder.

    CRAG_BENCH_DATA=… python training/language_shifts.py models/embedder

A shift is SHARE of the mean vector of many questions (or passages) of one language. Taking it away from every vector
lets questions meet passages of the other language in a mixed knowledge base. Half to nine tenths work alike; the text
is the question-answer part of the evaluation data, of which only these means are kept. Runs in the app's environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from config import bench_data_dir
from embeddings import EmbeddedEmbedder

SHARE = 0.7
SAMPLE = 300
SEED = 0
NAME = "multilingual-e5-small-zh-en-int8-centred"


def measure_shifts(folder: Path) -> dict[str, list[float]]:
    """Return prefix and language → shift."""
    embedder = EmbeddedEmbedder(folder, centred=False)
    draw = random.Random(SEED)
    shifts: dict[str, list[float]] = {}
    for language in ("en", "zh"):
        for prefix, file, key in (("query: ", "questions", "question"), ("passage: ", "passages", "text")):
            lines = (bench_data_dir() / "qa" / f"{file}_{language}.jsonl").read_text(encoding="utf-8").splitlines()
            texts = [json.loads(line)[key] for line in draw.sample(lines, SAMPLE)]
            vectors = embedder.embed_queries(texts) if prefix == "query: " else embedder.embed_passages(texts)
            shifts[f"{prefix}{language}"] = [round(float(value), 5) for value in SHARE * np.mean(vectors, axis=0)]
    return shifts


def main() -> None:
    """Write the shifts, and name and checksum them in model.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    path = folder / "language_shifts.json"
    path.write_text(json.dumps(measure_shifts(folder)) + "\n", encoding="utf-8")
    described = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    described["name"] = NAME
    described["sha256"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "model.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    print(f"{path}: {len(path.read_bytes())} bytes")


if __name__ == "__main__":
    main()
