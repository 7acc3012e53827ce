from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import evaluator
from config import load_settings
from embeddings import Vectors
from errors import ModelError
from evaluator import ReaderEvaluator, _places, build_evaluator, squashed
from reader import Reading, Window
from similarity import SimilarityEvaluator

CALIBRATION = {
    "document": [1.0, 0.0, 0.0, 0.0, 0.5],
    "strip": [1.0, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0],
    "glance": [0.5, 0.25, 0.0, 0.0, 0.0, -1.0],
    "thresholds": {"upper": 0.4, "lower": -0.5, "strip": -0.6},
}


class FakeReader:
    """Finds the word "gold": relevance 2 where it is, −3 where not; one token a character."""

    def __init__(self) -> None:
        self.description: dict[str, Any] = {"calibration": {"en": CALIBRATION, "zh": CALIBRATION}}
        self.name = "fake"
        self.read_texts: list[str] = []

    def read(self, question: str, *, passages: Sequence[str]) -> list[Reading]:
        self.read_texts += passages
        return [Reading((self._window(text),)) for text in passages]

    def _window(self, text: str) -> Window:
        place = text.find("gold")
        edges = np.full((2, len(text)), -2.0, dtype=np.float32)
        if place >= 0:
            edges[0, place] = edges[1, place + 3] = 4.0
        return Window(
            relevance=2.0 if place >= 0 else -3.0,
            null=0.0,
            offsets=np.array([[n, n + 1] for n in range(len(text))], dtype=np.int64).reshape(-1, 2),
            starts=edges[0],
            ends=edges[1],
        )


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def graded(reader: FakeReader) -> ReaderEvaluator:
    return ReaderEvaluator(reader)  # type: ignore[arg-type]


def test_grades_are_calibrated_and_carry_the_answer(graded: ReaderEvaluator) -> None:
    found, missing = graded.grade("Where?", passages=["there is gold here", "there is nothing"])
    assert found.score == pytest.approx(squashed(2.5))
    assert missing.score == pytest.approx(squashed(-2.5))
    assert found.span is not None
    assert (found.span.start, found.span.end) == (9, 13)
    assert not found.failed


def test_no_passages_no_grades(graded: ReaderEvaluator) -> None:
    assert graded.grade("Where?", passages=[]) == []
    assert graded.grade_strips("Where?", groups=[]) == []
    assert graded.grade_strips("Where?", groups=[[]]) == [[]]


def test_strips_keep_their_shape_and_the_answer_comes_first(graded: ReaderEvaluator) -> None:
    groups = [["nothing here.", "but gold here."], ["and nothing there."]]
    grades = graded.grade_strips("Where?", groups=groups)
    assert [len(row) for row in grades] == [2, 1]
    assert grades[0][1].score > max(grades[0][0].score, grades[1][0].score)
    span = grades[0][1].span
    assert span is not None
    assert groups[0][1][span.start : span.end] == "gold"


def test_strips_of_a_graded_document_do_not_read_it_again(reader: FakeReader, graded: ReaderEvaluator) -> None:
    document = "nothing here. but gold here."
    graded.grade("Where?", passages=[document])
    graded.grade_strips("Where?", groups=[["nothing here.", "but gold here."]])
    assert reader.read_texts.count(document) == 1
    assert len(reader.read_texts) == 3


def test_a_table_strip_is_found_without_its_repeated_header(reader: FakeReader, graded: ReaderEvaluator) -> None:
    table = "| a | b |\n| --- | --- |\n| 1 | gold |\n| 2 | dust |"
    graded.grade("Where?", passages=[table])
    header = "| a | b |\n| --- | --- |\n"
    strips = [header + "| 1 | gold |", header + "| 2 | dust |"]
    (row,) = graded.grade_strips("Where?", groups=[strips])
    assert row[0].score > row[1].score
    assert reader.read_texts.count(table) == 1


def test_a_table_strip_of_several_rows_is_found_with_all_of_them() -> None:
    header, rows = "| a | b |\n| --- | --- |\n", ["| 1 | gold |", "| 2 | dust |", "| 3 | coal |", "| 4 | tin |"]
    table = header + "\n".join(rows)
    strips = [header + "\n".join(rows[:2]), header + "\n".join(rows[2:])]
    places = _places(strips, text=table)
    assert places is not None
    assert [table[start:end] for start, end in places] == [strips[0], "\n".join(rows[2:])]


def test_only_the_best_strips_are_read_alone(reader: FakeReader, graded: ReaderEvaluator) -> None:
    strips = [f"nothing number {n}." for n in range(40)] + ["gold."]
    (row,) = graded.grade_strips("Where?", groups=[strips])
    assert len(reader.read_texts) == 1 + evaluator.STRIPS_READ_ALONE
    assert row[40].score == max(grade.score for grade in row)


def test_readings_are_forgotten_after_a_while(reader: FakeReader, graded: ReaderEvaluator) -> None:
    for number in range(evaluator.REMEMBERED_READINGS + 1):
        graded.grade("Where?", passages=[f"text {number}"])
    graded.grade("Where?", passages=["text 0"])
    assert reader.read_texts.count("text 0") == 2


def test_a_description_without_calibration_is_a_model_error(reader: FakeReader) -> None:
    reader.description = {"name": "fake"}
    with pytest.raises(ModelError, match="calibration"):
        ReaderEvaluator(reader)  # type: ignore[arg-type]


def test_squashed_stays_between_minus_one_and_one() -> None:
    assert squashed(-np.inf) == pytest.approx(-1.0)
    assert squashed(0.0) == 0.0
    assert squashed(100.0) == pytest.approx(1.0)


class FakeEmbedder:
    """Unit vectors by whether a text speaks of the sun or the moon."""

    name = "fake"

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        rows = [[1.0, 0.0] if "sun" in text else [0.0, 1.0] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(-1, 2)


def test_similarity_tells_topics_apart() -> None:
    similar = SimilarityEvaluator(FakeEmbedder())
    near, far = similar.grade("How hot is the sun?", passages=["The sun is hot.", "The moon is cold."])
    assert near.score > 0 > far.score
    assert similar.grade("How hot?", passages=[]) == []
    assert [len(row) for row in similar.grade_strips("sun?", groups=[["sun", "moon"], [], ["sun"]])] == [2, 0, 1]
    for language in ("zh", "en"):
        limits = similar.thresholds(language=language)
        assert limits.lower < limits.upper


def test_the_fallback_is_only_for_the_unnamed_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ModelError("no model", hint="fetch it")

    monkeypatch.setattr(evaluator, "Reader", missing)
    unnamed = load_settings(evaluator=None)
    assert isinstance(build_evaluator(unnamed, embedder=FakeEmbedder()), SimilarityEvaluator)
    with pytest.raises(ModelError):
        build_evaluator(load_settings(evaluator="reader"), embedder=FakeEmbedder())
