"""Texts to unit vectors: the embedded multilingual-e5-small, or the provider that the settings name.

The model folder holds model.onnx, tokenizer.json, language_shifts.json and model.json (name, sizes, SHA-256 of the
others); training/embedder.py and training/language_shifts.py make it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from config import MODELS_DIR, Settings
from errors import ModelError

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]

EMBEDDER_DIR = MODELS_DIR / "embedder"
_QUERY, _PASSAGE = "query: ", "passage: "
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-z]+")
_REMEMBERED_QUERIES = 256
_TEXTS_A_TASK = 4


class Embedder(Protocol):
    """Turns texts into vectors [n, dimension] of L2 norm 1."""

    @property
    def name(self) -> str:
        """Model id; vectors of different ids are never compared."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions."""
        ...

    def embed_passages(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Vectors of passages; `progress(done, total)` is called as they complete."""
        ...


class EmbeddedEmbedder:
    """multilingual-e5-small on onnxruntime, for Chinese and English; texts are cut after 512 tokens.

    Each text is one run without padding, so that its vector doesn't depend on its neighbours; runs are spread over
    `threads` (default: one a core), the long ones first. Safe to share between threads. Vectors are moved part of the
    way from the mean of their language (language information removal, arXiv 2109.04727, softened): otherwise any
    text in the question's language is nearer than the right one in the other. `centred=False` leaves them as they are.

    :raises ModelError: a file of the model is missing, damaged or cannot be loaded.
    """

    def __init__(self, folder: Path = EMBEDDER_DIR, *, threads: int = 0, centred: bool = True) -> None:
        described = _verified(folder)
        import onnxruntime
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, RuntimeException
        from tokenizers import Tokenizer

        self.name = str(described["name"])
        self.dimension = int(str(described["dimension"]))
        self._threads = threads or os.cpu_count() or 1
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        except (Fail, InvalidGraph, RuntimeException) as error:
            raise _failure(folder, reason=str(error)) from error
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(int(str(described["max_tokens"])))
        self._shifts = _read_shifts(folder) if centred else {}
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions; the last few hundred are remembered."""
        with self._lock:
            known = {text: self._queries[text] for text in texts if text in self._queries}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        known |= zip(missing, self._embed(missing, prefix=_QUERY), strict=True)
        with self._lock:
            for text in dict.fromkeys(texts):
                self._queries[text] = known[text]
                self._queries.move_to_end(text)
            while len(self._queries) > _REMEMBERED_QUERIES:
                self._queries.popitem(last=False)
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    def embed_passages(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Vectors of passages, equal texts embedded once; what `progress` raises stops the work and is passed on."""
        unique = list(dict.fromkeys(texts))
        places = {text: place for place, text in enumerate(unique)}
        scale = len(texts) / max(1, len(unique))
        report = progress and (lambda done, total: progress(round(done * scale), round(total * scale)))
        vectors = self._embed(unique, prefix=_PASSAGE, progress=report)
        return vectors[[places[text] for text in texts]]

    def _embed(self, texts: Sequence[str], *, prefix: str, progress: Progress | None = None) -> Vectors:
        encoded = [encoding.ids for encoding in self._tokenizer.encode_batch_fast([prefix + text for text in texts])]
        vectors = self._run(encoded, progress=progress)
        if not texts or not self._shifts:
            return vectors
        shares = np.array([[chinese_share(text)] for text in texts], dtype=np.float32)
        vectors -= shares * self._shifts[f"{prefix}zh"] + (1 - shares) * self._shifts[f"{prefix}en"]
        centred: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return centred

    def _run(self, encoded: Sequence[Sequence[int]], *, progress: Progress | None) -> Vectors:
        """Run the model on each text's token ids."""
        vectors = np.empty((len(encoded), self.dimension), dtype=np.float32)
        order = sorted(range(len(encoded)), key=lambda place: -len(encoded[place]))
        tasks = [order[start : start + _TEXTS_A_TASK] for start in range(0, len(order), _TEXTS_A_TASK)]

        def work(places: Sequence[int]) -> int:
            for place in places:
                ids = np.array([encoded[place]], dtype=np.int64)
                vectors[place] = self._session.run(["vector"], {"ids": ids})[0][0]
            return len(places)

        if len(encoded) == 1:
            work(order)
            return vectors
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embedder")
        try:
            done = 0
            for future in as_completed([pool.submit(work, places) for places in tasks]):
                done += future.result()
                if progress:
                    progress(done, len(encoded))
        finally:
            pool.shutdown(cancel_futures=True)
        return vectors


def chinese_share(text: str) -> float:
    """Share (0..1) of Chinese in a text, a character counted like a Latin word; one half without either."""
    chinese, latin = len(_HAN.findall(text)), len(_WORD.findall(text))
    return chinese / (chinese + latin) if chinese + latin else 0.5


def _read_shifts(folder: Path) -> dict[str, Vectors]:
    """Return the shift of each prefix and language; training/language_shifts.py makes the file."""
    rows = json.loads((folder / "language_shifts.json").read_text(encoding="utf-8"))
    return {name: np.array(row, dtype=np.float32) for name, row in rows.items()}


def _verified(folder: Path) -> dict[str, object]:
    """Return model.json after comparing the checksums of the files that it names."""
    try:
        described: dict[str, object] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        checksums = described["sha256"]
        if not isinstance(checksums, dict):
            raise _failure(folder, reason="model.json has no checksums")
        for name, expected in checksums.items():
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            if found != expected:
                raise _failure(folder, reason=f"{name} has checksum {found[:12]}…, not {str(expected)[:12]}…")
    except (OSError, ValueError, KeyError) as error:
        raise _failure(folder, reason=str(error)) from error
    return described


def _failure(folder: Path, *, reason: str) -> ModelError:
    return ModelError(
        f"{folder}: {reason}",
        hint="restore the folder from the repository (git checkout -- models), or make it with training/embedder.py",
        name=folder.name,
    )


@lru_cache(maxsize=1)
def embedded_embedder() -> EmbeddedEmbedder:
    """Return the process's one copy of the embedded model."""
    return EmbeddedEmbedder()


def build_embedder(settings: Settings) -> Embedder:
    """Return the embedder that the settings name.

    :raises ModelError: the embedded model cannot be loaded.
    :raises ConfigurationError: the provider lacks a key, an address or a model name.
    """
    if settings.embedding_provider == "embedded":
        return embedded_embedder()
    from provider_embeddings import ProviderEmbedder

    return ProviderEmbedder(settings)
