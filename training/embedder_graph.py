"""The encoder of multilingual-e5-small as an ONNX graph: token ids of one text to its unit vector.

Matrix products are int8 (activations quantised as they come, one scale a weight column; 7 of the 8 bits are used, so
that the 16-bit sums of processors without VNNI cannot overflow). The embedding table keeps its 4-bit blocks without
loss. One text a run: no padding and no mask, so a text's vector does not depend on its neighbours. `precise` gives
float32 throughout, the reference of the benchmarks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from e5_weights import BLOCK, E5Weights, Nibbles
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

OPSET = 21
CONTRIB = "com.microsoft"
WEIGHT_LIMIT = 63


@dataclass(slots=True)
class EmbedderGraph:
    """Collects nodes and constants; `model()` returns the finished graph.

    Input `ids` int64 [1, length]; output `vector` float32 [1, hidden], L2 norm 1.
    """

    weights: E5Weights
    kept: list[int]
    precise: bool = False
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def model(self) -> ModelProto:
        """Build the whole graph, checked."""
        shape = self.weights.shape
        hidden = self._embed()
        for layer in range(shape.layers):
            hidden = self._layer(hidden, prefix=f"l{layer}")
        mean = self._add("ReduceMean", hidden, self._constant("sequence_axis", np.array([1])), keepdims=0)
        self._add("LpNormalization", mean, output="vector", axis=-1, p=2)
        graph = helper.make_graph(
            self.nodes,
            "multilingual-e5-small",
            [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "length"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, shape.hidden])],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="crag training")
        checker.check_model(model)
        return model

    def _embed(self) -> str:
        """Word, position and type embeddings, normalised: [1, length, hidden]."""
        table = self.weights.nibbles("emb.word", columns=self.weights.shape.hidden)
        table = Nibbles(table.values[self.kept], table.scales[self.kept])
        if self.precise:
            words = self._add("Gather", self._constant("words", table.dense()), "ids", axis=0)
        else:
            words = self._add(
                "GatherBlockQuantized",
                self._nibbles("words", table.packed(), shape=table.values.shape),
                "ids",
                self._constant("word_scales", table.scales),
                self._nibbles("word_zeros", np.full(table.scales.size // 2, 0x88, np.uint8), shape=table.scales.shape),
                domain=CONTRIB,
                block_size=BLOCK,
                gather_axis=0,
                quantize_axis=1,
            )
        places = self.weights.floats("emb.pos").reshape(-1, self.weights.shape.hidden)
        places = places + self.weights.floats("emb.type")[: self.weights.shape.hidden]
        length = self._add("Shape", "ids", start=1, end=2)
        used = self._add("Slice", self._constant("places", places), self._constant("zero", np.array([0])), length)
        return self._normalise(self._add("Add", words, used), name="emb.ln")

    def _layer(self, hidden: str, *, prefix: str) -> str:
        """One post-norm encoder layer: [1, length, hidden] to the same."""
        projected = self._linear(hidden, names=tuple(f"{prefix}.{part}" for part in "qkv"))
        parts = self._split(projected, count=3)
        heads = self._add("MultiHeadAttention", *parts, domain=CONTRIB, num_heads=self.weights.shape.heads)
        mixed = self._linear(heads, names=(f"{prefix}.ao",))
        hidden = self._normalise(mixed, hidden, name=f"{prefix}.aln")
        wide = self._add("Gelu", self._linear(hidden, names=(f"{prefix}.fi",)), domain=CONTRIB)
        return self._normalise(self._linear(wide, names=(f"{prefix}.fo",)), hidden, name=f"{prefix}.oln")

    def _linear(self, value: str, *, names: tuple[str, ...]) -> str:
        """Product with the named matrices side by side, plus their biases."""
        columns = self.weights.shape.inner if names[0].endswith(".fo") else self.weights.shape.hidden
        rows = [self.weights.nibbles(f"{name}.w", columns=columns).dense() for name in names]
        matrix = np.ascontiguousarray(np.concatenate(rows).T)
        bias = self._constant(f"{names[0]}.b", np.concatenate([self.weights.floats(f"{name}.b") for name in names]))
        if self.precise:
            return self._add("Add", self._add("MatMul", value, self._constant(f"{names[0]}.w", matrix)), bias)
        scales = np.abs(matrix).max(axis=0) / WEIGHT_LIMIT
        quantised = self._constant(f"{names[0]}.w", np.round(matrix / scales).astype(np.int8))
        scale = self._constant(f"{names[0]}.s", scales.astype(np.float32))
        zero = self._constant(f"{names[0]}.z", np.zeros(len(scales), np.int8))
        return self._add("DynamicQuantizeMatMul", value, quantised, scale, zero, bias, domain=CONTRIB)

    def _split(self, value: str, *, count: int) -> list[str]:
        names = [f"Split_{len(self.nodes)}_{part}" for part in range(count)]
        self.nodes.append(helper.make_node("Split", [value], names, names[0], axis=2, num_outputs=count))
        return names

    def _normalise(self, *values: str, name: str) -> str:
        scale = self._constant(f"{name}.w", self.weights.floats(f"{name}.w"))
        shift = self._constant(f"{name}.b", self.weights.floats(f"{name}.b"))
        epsilon = self.weights.shape.epsilon
        if len(values) == 1:
            return self._add("LayerNormalization", *values, scale, shift, axis=-1, epsilon=epsilon)
        return self._add("SkipLayerNormalization", *values, scale, shift, domain=CONTRIB, epsilon=epsilon)

    def _nibbles(self, name: str, packed: NDArray[np.uint8], *, shape: tuple[int, ...]) -> str:
        self.constants.append(helper.make_tensor(name, TensorProto.UINT4, shape, packed.tobytes(), raw=True))
        return name

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def _add(self, kind: str, *inputs: str, output: str = "", domain: str = "", **attributes: object) -> str:
        name = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, domain=domain, **attributes))
        return name
