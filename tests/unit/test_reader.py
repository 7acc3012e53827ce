from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from errors import ModelError
from reader import Reading, Window, verified_description, window_ranges
from schema import Span


def _window(starts: list[float], ends: list[float], *, null: float = 0.0, relevance: float = 0.0) -> Window:
    """Tokens of four characters each."""
    offsets = np.array([[4 * n, 4 * n + 4] for n in range(len(starts))], dtype=np.int64).reshape(-1, 2)
    return Window(
        relevance=relevance,
        null=null,
        offsets=offsets,
        starts=np.array(starts, dtype=np.float32),
        ends=np.array(ends, dtype=np.float32),
    )


@pytest.mark.parametrize("tokens", [1, 99, 100, 101, 180, 199, 1000, 12345])
def test_windows_cover_every_token_and_fit(tokens: int) -> None:
    ranges = window_ranges(tokens, room=100)
    covered = {token for first, last in ranges for token in range(first, last)}
    assert covered == set(range(tokens))
    assert all(last - first <= 100 for first, last in ranges)


def test_windows_overlap_so_that_no_answer_is_cut() -> None:
    ranges = window_ranges(1000, room=100)
    assert all(before[1] - after[0] >= 40 for before, after in itertools.pairwise(ranges))


def test_an_empty_passage_has_no_window() -> None:
    assert window_ranges(0, room=100) == []


def test_the_best_span_has_the_largest_sum_of_logits() -> None:
    window = _window([0, 5, 1, 0], [9, 0, 4, 0], null=2.0)
    assert window.best_span(0, 16) == Span(start=4, end=12, margin=3.5)


def test_a_span_never_ends_before_it_starts() -> None:
    span = _window([0, 0, 5], [9, 0, 1]).best_span(0, 12)
    assert span is not None
    assert (span.start, span.end) in {(8, 12), (0, 4)}


def test_a_span_stays_inside_the_characters_asked_for() -> None:
    window = _window([9, 0, 1, 0], [9, 0, 0, 1])
    span = window.best_span(4, 16)
    assert span is not None
    assert span.start >= 4
    assert window.best_span(17, 20) is None


def test_the_best_window_decides() -> None:
    reading = Reading((_window([0], [0], relevance=-1.0), _window([3], [3], relevance=2.0)))
    assert reading.relevance == 2.0
    assert reading.span() == Span(start=0, end=4, margin=3.0)


def _folder(path: Path) -> Path:
    (path / "reader.json").write_text(json.dumps({"name": "x"}), encoding="utf-8")
    digest = hashlib.sha256((path / "reader.json").read_bytes()).hexdigest()
    (path / "SHA256SUMS").write_text(f"{digest}  reader.json\n", encoding="utf-8")
    return path


def test_an_undamaged_folder_is_described(tmp_path: Path) -> None:
    assert verified_description(_folder(tmp_path)) == {"name": "x"}


def test_a_damaged_file_is_named_with_a_hint(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "reader.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match=r"reader\.json") as caught:
        verified_description(folder)
    assert caught.value.hint


def test_a_missing_model_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        verified_description(tmp_path / "nowhere")


def test_an_empty_reading_has_no_span() -> None:
    empty = Reading((_window([], [], relevance=-np.inf),))
    assert empty.span() is None
    assert empty.relevance == -np.inf
