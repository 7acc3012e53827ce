"""The shipped int8 model back to float weights, to train further from where a release stands.

    PYTHONPATH=. python training/shipped_weights.py --model models/reader --out runs/shipped.safetensors

Weights come back within half a quantisation step: relevance logits differ from the shipped model's by what the
quantising of its activations adds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from reader_model import Reader
from safetensors.torch import save_file

QUANTISED, SCALE = "_quantized", "_scale"
PRODUCTS = ("attend", "mix", "widen", "narrow")


def tensors_of(path: Path) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Every initializer of an ONNX file, and the names of the matrices in the order in which they are multiplied."""
    graph = onnx.load(path).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    used = [name for node in graph.node if "MatMul" in node.op_type or node.op_type == "Gemm" for name in node.input]
    return tensors, [name for name in used if name in tensors and tensors[name].ndim == 2]


def plain(name: str, *, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    """A matrix as float32, `[out, in]`."""
    values = tensors[name].astype(np.float32)
    if name.endswith(QUANTISED):
        values = values * tensors[name.removesuffix(QUANTISED) + SCALE]
    return np.ascontiguousarray(values.T)


def read_shipped(path: Path) -> Reader:
    """The reader that an exported file holds."""
    tensors, products = tensors_of(path)
    layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
    state = {
        name: torch.from_numpy(np.array(tensor))
        for name, tensor in tensors.items()
        if "::" not in name and "_Transposed" not in name
    }
    state["word.weight"] = state.pop("word.table").float() * state.pop("word.scale")
    wanted = [f"layers.{n}.{part}.weight" for n in range(layers) for part in PRODUCTS]
    wanted += ["span.weight", "relevance.0.weight", "relevance.2.weight"]
    matrices = [name for name in products if "::" in name or "_Transposed" in name]
    for target, name in zip(wanted, matrices, strict=True):
        state[target] = torch.from_numpy(plain(name, tensors=tensors))
    reader = Reader(vocabulary=state["word.weight"].shape[0], layers=layers)
    reader.load_state_dict(state)
    return reader


def main() -> None:
    """Parse the command line and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    reader = read_shipped(arguments.model / "reader.int8.onnx")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in reader.state_dict().items()}, arguments.out)


if __name__ == "__main__":
    main()
