"""Reader weights to the shipped model: int8 ONNX, tokenizer, reader.json and SHA256SUMS.

    PYTHONPATH=. python training/export_reader.py --weights runs/reader.safetensors --tokenizer tokenizer.json \\
        --out models/reader [--average warm.safetensors --share 0.4]

`--average` mixes other weights of the same network in, as the warm start: a mean of the two is better on sources that
neither was trained on than either alone (Wortsman et al., arXiv 2109.01903).

`reduce_range` keeps 7-bit weights, because AVX2 kernels add pairs of 8-bit products in saturating 16-bit registers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from reader_model import EncoderLayer, Reader, load_weights
from torch import Tensor, nn

INPUTS = ("input_ids", "attention_mask", "passage_mask")
OUTPUTS = ("relevance", "start", "end")


class RowQuantised(nn.Module):  # type: ignore[misc]
    """An embedding table in int8 with one scale a row."""

    table: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        self.register_buffer("table", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of the table as float32."""
        return self.table[ids].float() * self.scale[ids]


def example() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two short pairs, one padded."""
    return (
        torch.tensor([[0, 50, 60, 2, 2, 700, 801, 900, 2], [0, 50, 61, 2, 2, 700, 801, 2, 1]]),
        torch.tensor([[1] * 9, [1] * 8 + [0]]),
        torch.tensor([[0] * 5 + [1] * 3 + [0], [0] * 5 + [1] * 2 + [0] * 2]),
    )


def export(reader: Reader, *, path: Path) -> None:
    """Write the float32 graph."""
    reader.eval()
    reader.word = RowQuantised(reader.word.weight.detach())
    for layer in reader.layers:
        assert isinstance(layer, EncoderLayer)
        layer.explicit = True
    axes = {name: {0: "batch", 1: "tokens"} for name in (*INPUTS, "start", "end")}
    axes["relevance"] = {0: "batch"}
    torch.onnx.export(
        reader,
        example(),
        str(path),
        input_names=list(INPUTS),
        output_names=list(OUTPUTS),
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )


def quantise(plain: Path, target: Path) -> None:
    """Write the graph with the layers' matrix products in int8, but for the ones after the activation function.

    Their inputs have outliers that one scale for a whole text cannot hold: in int8 they moved the logit by 0.42 on
    average (AUC −0.013), in float32 the rest moves it by 0.17 (AUC as before) for a fifth more time.
    """
    graph = onnx.load(plain).graph
    products = [node.name for node in graph.node if node.op_type in {"MatMul", "Gemm"}]
    quantize_dynamic(
        plain,
        target,
        op_types_to_quantize=["MatMul"],
        nodes_to_exclude=[name for name in products if "/layers" not in name or "/narrow/" in name],
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
    )


def difference(reader: Reader, *, path: Path) -> float:
    """Largest difference of the relevance logit between torch and an ONNX file, on the example."""
    feed = {name: tensor.numpy() for name, tensor in zip(INPUTS, example(), strict=True)}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = reader(*example())[0].numpy()
    return float(np.abs(session.run(["relevance"], feed)[0] - expected).max())


def averaged(reader: Reader, *, other: Reader, share: float) -> Reader:
    """The reader with `share` of another one's weights, 0 … 1."""
    mixed = {name: (1 - share) * tensor for name, tensor in reader.state_dict().items()}
    for name, tensor in other.state_dict().items():
        mixed[name] += share * tensor
    reader.load_state_dict(mixed)
    return reader


def write_model(reader: Reader, *, tokenizer: Path, out: Path) -> dict[str, object]:
    """Everything that `reader.py` loads, in one folder."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / "reader.int8.onnx"
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "reader.onnx"
        export(reader, path=plain)
        onnx.checker.check_model(str(plain))
        quantise(plain, target)
        report = {"float32": difference(reader, path=plain), "int8": difference(reader, path=target)}
    shutil.copyfile(tokenizer, out / "tokenizer.json")
    names = ["reader.int8.onnx", "tokenizer.json"]
    sums = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    (out / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in sums.items()), encoding="utf-8")
    return {"megabytes": round(target.stat().st_size / 1e6, 1), "difference": report, "sha256": sums}


def main() -> None:
    """Parse the command line and export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--average", type=Path, help="weights to mix in")
    parser.add_argument("--share", type=float, default=0.4, help="how much of them")
    arguments = parser.parse_args()
    reader = load_weights(arguments.weights)
    if arguments.average:
        reader = averaged(reader, other=load_weights(arguments.average), share=arguments.share)
    report = write_model(reader, tokenizer=arguments.tokenizer, out=arguments.out)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
