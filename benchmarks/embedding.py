"""The embedded model: texts a second before and after tuning; its likeness to the untrimmed float32 model.

Likeness is measured before the language shift, which is the same for both.

The comparison needs that model, made by `python training/embedder.py --precise --out artifacts/e5-full` (see
training/requirements-embedder.txt); without it only the speed is measured.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import data_dir, environment, figures, finish, read_options, table
from benchmarks.passages import Sample, crossed, read_sample
from embeddings import EMBEDDER_DIR, EmbeddedEmbedder, Vectors

Row = dict[str, Any]

REFERENCE = Path("artifacts/e5-full")
TEXTS, QUESTIONS, PASSAGES = 64, 250, 600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, default=REFERENCE, help="folder of the untrimmed float32 model")
    options = read_options(__doc__, parser=parser)
    folder = data_dir()
    number = options.limit or QUESTIONS
    samples = {
        "en": read_sample(folder, language="en", questions=number, passages=3 * number, seed=options.seed),
        "zh": read_sample(folder, language="zh", questions=number, passages=3 * number, seed=options.seed),
        "en → zh": crossed(folder, asked="en", found="zh", limit=number, seed=options.seed),
    }
    texts = [row["text"] for name in ("en", "zh") for row in samples[name].passages[: TEXTS // 2]]
    speeds = measure_speed(texts, reference=options.rest.reference)
    found = figures(speeds, keys=("way",))
    result: dict[str, Any] = {"environment": environment(seed=options.seed), "speed": speeds, "figures": found}
    text = table(speeds)
    if (options.rest.reference / "model.json").is_file():
        likeness = compare(samples, reference=options.rest.reference)
        result |= {"likeness": likeness, "figures": found | figures(likeness, keys=("text",))}
        text += f"\n\n{table(likeness)}"
    else:
        text += f"\n\nNo reference model in {options.rest.reference.name}: likeness not measured."
    finish("embedding", result=result, options=options, text=text)


def measure_speed(texts: Sequence[str], *, reference: Path) -> list[Row]:
    """Texts a second, in turn, best of two: one after another with onnxruntime's own threads, and the product's way.

    Where the float32 model is there, it is measured one after another too.
    """
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(EMBEDDER_DIR / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    tuned = EmbeddedEmbedder()

    def one_by_one(folder: Path) -> Callable[[], object]:
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
        own = Tokenizer.from_file(str(folder / "tokenizer.json"))
        own.enable_truncation(512)

        def run() -> None:
            for text in texts:
                session.run(None, {"ids": np.array([own.encode(f"passage: {text}").ids], dtype=np.int64)})

        return run

    tokens = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts)))
    ways: dict[str, Callable[[], object]] = {}
    if (reference / "model.json").is_file():
        ways["float32, one by one, default threads"] = one_by_one(reference)
    ways["one by one, default threads"] = one_by_one(EMBEDDER_DIR)
    ways[f"sorted, {os.cpu_count()} texts at once"] = lambda: tuned.embed_passages(texts)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(2):
        for name, run in ways.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return [
        {"way": name, "texts": len(texts), "tokens a text": tokens / len(texts), "texts/s": len(texts) / seconds}
        for name, seconds in best.items()
    ]


def compare(samples: dict[str, Sample], *, reference: Path) -> list[Row]:
    """Cosine to the reference and recall of both models, by language and on mixed text."""
    models = (EmbeddedEmbedder(centred=False), EmbeddedEmbedder(reference, centred=False))
    rows: list[Row] = []
    for name, sample in samples.items():
        passages = [row["text"] for row in sample.passages]
        ours, theirs = (model.embed_passages(passages) for model in models)
        asked = [row["question"] for row in sample.questions]
        recalls = [
            recall(model.embed_queries(asked), passages=vectors, sample=sample)
            for model, vectors in zip(models, (ours, theirs), strict=True)
        ]
        row: Row = {"text": name, **cosines(ours, theirs)}
        for depth in recalls[0]:
            row |= {f"@{depth} int8": recalls[0][depth], f"@{depth} float32": recalls[1][depth]}
        rows.append({**row, "n": len(asked)})
    mixed = [
        f"{one['text'][:300]}\n{other['text'][:150]}"
        for one, other in zip(samples["en"].passages[:100], samples["zh"].passages[:100], strict=False)
    ]
    rows.append({"text": "mixed", **cosines(*(model.embed_passages(mixed) for model in models)), "n": len(mixed)})
    return rows


def cosines(ours: Vectors, theirs: Vectors) -> dict[str, float]:
    """Mean and least cosine between two models' vectors of the same texts."""
    values = (ours * theirs).sum(axis=1)
    return {"cosine": float(values.mean()), "least": float(values.min())}


def recall(questions: Vectors, *, passages: Vectors, sample: Sample) -> dict[int, float]:
    """Share of questions with a gold passage among the nearest k."""
    keys = [row["pid"] for row in sample.passages]
    order = np.argsort(-(questions @ passages.T), axis=1)[:, :10]
    found: dict[int, float] = {}
    for depth in (1, 5, 10):
        hits = [
            any(keys[place] in row["gold_pids"] for place in places[:depth])
            for places, row in zip(order, sample.questions, strict=True)
        ]
        found[depth] = float(np.mean(hits))
    return found


if __name__ == "__main__":
    main()
