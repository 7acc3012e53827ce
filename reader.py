"""The embedded reader: a small cross-encoder that says whether a passage answers a question, and where.

The model folder holds reader.int8.onnx, tokenizer.json, reader.json (name, calibration, thresholds) and SHA256SUMS;
training/ makes it. Input `<s> question </s></s> passage </s>`; position 0 stands for "no answer here".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from config import MODELS_DIR
from errors import ModelError
from schema import Span

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

READER_DIR = MODELS_DIR / "reader"
_MODEL, _TOKENIZER, _DESCRIPTION, _SUMS = "reader.int8.onnx", "tokenizer.json", "reader.json", "SHA256SUMS"
_START, _END = 0, 2
_QUESTION_TOKENS, _TOTAL_TOKENS, _OVERLAP = 64, 288, 48
_ANSWER_TOKENS, _TRIED_STARTS = 30, 8
_HINT = "fetch the folder models/reader again (it comes with the program), or run training/export_reader.py"


@dataclass(frozen=True, slots=True)
class Window:
    """One forward pass over a stretch of a passage.

    `relevance` is the answerability logit, `null` the logit of "no answer" (start and end together); `offsets` [n, 2]
    are the characters of the n tokens, `starts` and `ends` [n] their logits.
    """

    relevance: float
    null: float
    offsets: Integers
    starts: Floats
    ends: Floats

    def best_span(self, start: int, end: int) -> Span | None:
        """The likeliest answer inside the characters `start..end`; margin is its logit over "no answer", halved."""
        inside = np.flatnonzero((self.offsets[:, 0] >= start) & (self.offsets[:, 1] <= end))
        if not len(inside):
            return None
        low, high = int(inside[0]), int(inside[-1]) + 1
        starts, ends = self.starts[low:high], self.ends[low:high]
        best = (-np.inf, 0, 0)
        for first in np.argsort(-starts)[:_TRIED_STARTS]:
            last = int(first + np.argmax(ends[first : first + _ANSWER_TOKENS]))
            best = max(best, (float(starts[first] + ends[last]), int(first), last))
        logit, first, last = best
        return Span(
            start=int(self.offsets[low + first, 0]),
            end=int(self.offsets[low + last, 1]),
            margin=(logit - self.null) / 2,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader saw in one passage: one window, or several overlapping ones where it is long."""

    windows: tuple[Window, ...]

    @property
    def relevance(self) -> float:
        """Answerability logit of the best window."""
        return max(window.relevance for window in self.windows)

    def span(self, *, start: int = 0, end: int | None = None) -> Span | None:
        """The likeliest answer inside the characters `start..end` (default: the passage), of any window."""
        ends = [int(window.offsets[-1, 1]) for window in self.windows if len(window.offsets)]
        last = max(ends, default=0) if end is None else end
        spans = [span for window in self.windows if (span := window.best_span(start, last))]
        return max(spans, key=lambda span: span.margin, default=None)


class Reader:
    """The ONNX model with its tokenizer; safe to share between threads.

    Each window is one run of its own, so that its scores depend on no other passage; runs are spread over `threads`
    (default: one a core), the long ones first.

    :raises ModelError: a file of the model is missing, damaged or cannot be loaded.
    """

    def __init__(self, folder: Path = READER_DIR, *, threads: int = 0) -> None:
        self.description = verified_description(folder)
        import onnxruntime
        from tokenizers import Tokenizer

        self._threads = threads or os.cpu_count() or 1
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / _MODEL), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as error:
            raise ModelError(f"{folder.name}: {error}", hint=_HINT, name=folder.name) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @property
    def name(self) -> str:
        """Name and version of the model."""
        return str(self.description.get("name", "reader"))

    def read(self, question: str, *, passages: Sequence[str]) -> list[Reading]:
        """Read every passage with the question in mind; an empty passage has nothing to say (relevance −inf)."""
        asked = self._tokenizer.encode(question, add_special_tokens=False).ids[:_QUESTION_TOKENS]
        room = _TOTAL_TOKENS - len(asked) - 4
        tasks: list[tuple[int, list[int], Integers]] = []
        for number, given in enumerate(self._tokenizer.encode_batch(list(passages), add_special_tokens=False)):
            offsets = _without_blanks(given.offsets, text=passages[number])
            tasks += [
                (number, given.ids[first:last], offsets[first:last])
                for first, last in window_ranges(len(given.ids), room=room)
            ]
        tasks.sort(key=lambda task: -len(task[1]))
        if len(tasks) > 1 and self._threads > 1:
            with ThreadPoolExecutor(self._threads) as pool:
                windows = list(pool.map(lambda task: self._run(asked, task[1], task[2]), tasks))
        else:
            windows = [self._run(asked, ids, offsets) for _, ids, offsets in tasks]
        found: list[list[Window]] = [[] for _ in passages]
        for (number, _, _), window in zip(tasks, windows, strict=True):
            found[number].append(window)
        return [Reading(tuple(group) or (_EMPTY,)) for group in found]

    def _run(self, asked: list[int], passage: list[int], offsets: Integers) -> Window:
        first = len(asked) + 3
        ids = np.array([[_START, *asked, _END, _END, *passage, _END]], dtype=np.int64)
        in_passage = np.zeros_like(ids)
        in_passage[0, first : first + len(passage)] = 1
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "passage_mask": in_passage}
        relevance, starts, ends = self._session.run(["relevance", "start", "end"], feed)
        return Window(
            relevance=float(relevance[0]),
            null=float(starts[0, 0] + ends[0, 0]),
            offsets=offsets,
            starts=starts[0, first : first + len(passage)],
            ends=ends[0, first : first + len(passage)],
        )


def _without_blanks(offsets: Sequence[tuple[int, int]], *, text: str) -> Integers:
    """Character ranges of the tokens, less the blank that a word's first token begins with."""
    trimmed = [(start + (start < end and text[start].isspace()), end) for start, end in offsets]
    return np.array(trimmed, dtype=np.int64).reshape(-1, 2)


_EMPTY = Window(
    relevance=-np.inf,
    null=0.0,
    offsets=np.zeros((0, 2), dtype=np.int64),
    starts=np.zeros(0, dtype=np.float32),
    ends=np.zeros(0, dtype=np.float32),
)


def window_ranges(tokens: int, *, room: int) -> list[tuple[int, int]]:
    """Token ranges of equal length, at most `room` and overlapping, that cover a passage."""
    if tokens <= room:
        return [(0, tokens)] if tokens else []
    count = -(-(tokens - _OVERLAP) // (room - _OVERLAP))
    step = (tokens - room) / (count - 1)
    return [(round(number * step), round(number * step) + room) for number in range(count)]


def verified_description(folder: Path) -> dict[str, Any]:
    """Return reader.json after checking every file against SHA256SUMS.

    :raises ModelError: a file is missing or its checksum is another.
    """
    try:
        sums = (folder / _SUMS).read_text(encoding="utf-8").split()
        for expected, name in zip(sums[::2], sums[1::2], strict=True):
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
                raise ModelError(f"{folder.name}/{name} is damaged: its checksum differs", hint=_HINT, name=name)
        described: dict[str, Any] = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder.name}: {error}", hint=_HINT, name=folder.name) from error
    return described
