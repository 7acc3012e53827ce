"""The shipped model: what its description promises, on texts written here."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from config import load_settings
from embeddings import Vectors
from errors import ModelError
from evaluator import ReaderEvaluator, build_evaluator
from reader import READER_DIR, Reader
from schema import Grade

ENGLISH = (
    "The Halden lighthouse was built in 1874 by the engineer Mary Orne. It stands 32 metres high on the northern cliff. "
    "Its lamp was electrified after the war, and the last keeper left the island soon afterwards."
)
CHINESE = "青石大桥建成于1987年，全长1260米，由工程师林远山设计。大桥连接东岸的老城区与西岸的工业区。"
OTHER = "Bread is made from flour, water, salt and yeast. The dough rests before it is baked."
TABLE = "| Item | 2021 | 2022 |\n| --- | --- | --- |\n| Net sales | 1,204 | 1,377 |\n| Cost of sales | 803 | 911 |"


class SomeEmbedder:
    name = "some"

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="module")
def graded(reader: Reader) -> ReaderEvaluator:
    return ReaderEvaluator(reader)


def _answer(grade: Grade, text: str) -> str:
    return text[grade.span.start : grade.span.end] if grade.span else ""


@pytest.mark.parametrize(
    ("question", "passage", "answer"),
    [
        ("When was the Halden lighthouse built?", ENGLISH, "1874"),
        ("Who built the Halden lighthouse?", ENGLISH, "Mary Orne"),
        ("青石大桥是哪一年建成的？", CHINESE, "1987"),
        ("青石大桥由谁设计？", CHINESE, "林远山"),
    ],
)
def test_the_answer_is_found_and_off_topic_text_is_not(
    graded: ReaderEvaluator, question: str, passage: str, answer: str
) -> None:
    found, other = graded.grade(question, passages=[passage, OTHER])
    assert answer in _answer(found, passage)
    assert found.score > 0.2
    assert other.score < -0.8


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("When was the Halden lighthouse built?", ENGLISH.split(". ", 1)[1]),
        ("How much did the Halden lighthouse cost?", ENGLISH),
        ("青石大桥的造价是多少？", CHINESE),
    ],
)
def test_the_same_entity_without_the_fact_scores_lower(graded: ReaderEvaluator, question: str, passage: str) -> None:
    right = "When was the Halden lighthouse built?" if "Halden" in question else "青石大桥是哪一年建成的？"
    whole = ENGLISH if "Halden" in question else CHINESE
    missing, there = graded.grade(question, passages=[passage])[0], graded.grade(right, passages=[whole])[0]
    assert missing.score < there.score - 0.3


def test_the_row_of_a_table_is_found(graded: ReaderEvaluator) -> None:
    found, missing = (
        graded.grade(question, passages=[TABLE])[0]
        for question in ("What were net sales in 2022?", "What were research expenses in 2022?")
    )
    assert _answer(found, TABLE) in {"1,204", "1,377"}  # the row; which column is not always told apart
    assert found.score > missing.score


def test_scores_do_not_depend_on_batch_mates(reader: Reader) -> None:
    question = "When was the Halden lighthouse built?"
    alone = reader.read(question, passages=[ENGLISH])[0].relevance
    for mates in ([OTHER], [CHINESE * 20, OTHER], [""] * 3):
        together = reader.read(question, passages=[*mates, ENGLISH])[-1].relevance
        assert together == pytest.approx(alone, abs=1e-3)


def test_a_long_passage_is_read_to_its_end(graded: ReaderEvaluator) -> None:
    long = (OTHER + " ") * 30
    question = "Who built the Halden lighthouse?"
    without, at_end = graded.grade(question, passages=[long, long + ENGLISH])
    assert at_end.score > without.score + 0.5
    assert "Mary Orne" in _answer(at_end, long + ENGLISH)


def test_the_strip_with_the_answer_comes_first(graded: ReaderEvaluator) -> None:
    strips = [part + "." for part in ENGLISH.rstrip(".").split(". ")]
    graded.grade("How high is the lighthouse?", passages=[ENGLISH])
    (row,) = graded.grade_strips("How high is the lighthouse?", groups=[strips])
    assert max(range(len(row)), key=lambda n: row[n].score) == 1


def test_a_strip_that_says_it_is_answered_by_what_its_document_says(graded: ReaderEvaluator) -> None:
    strips = ["The mill pond of Ostrand is nine metres deep.", "It was dug in 1871 by the miller and his two sons."]
    question = "When was the mill pond of Ostrand dug?"
    graded.grade(question, passages=["\n".join(strips)])
    span = graded.grade_strips(question, groups=[strips])[0][1].span
    assert span is not None
    assert strips[1][span.start : span.end] == "1871"
    assert span.margin > 1


def test_traditional_and_simplified_characters_are_read_alike(graded: ReaderEvaluator) -> None:
    simplified, traditional = "电池保修期为两年，从购买之日算起。", "電池保修期為兩年，從購買之日算起。"
    grades = [
        graded.grade(question, passages=[passage])[0]
        for question in ("电池的保修期是多久？", "電池的保修期是多久？")
        for passage in (simplified, traditional)
    ]
    assert {grade.score for grade in grades} == {grades[0].score}
    span = grades[3].span
    assert span is not None
    assert traditional[span.start : span.end] == "兩年"


def test_a_strip_of_a_table_is_answered_by_the_cell_that_the_question_names(graded: ReaderEvaluator) -> None:
    head, row = "| Mill | 2021 | 2022 | 2023 |\n|---|---|---|---|", "| Gross margin | 33.7% | 35.0% | 38.2% |"
    strip = f"{head}\n{row}"
    span = graded.grade_strips("What was the gross margin of the mill in 2023?", groups=[[strip]])[0][0].span
    assert span is not None
    assert strip[span.start : span.end] == "38.2%"


def test_empty_passages_and_questions_are_graded_as_nothing(graded: ReaderEvaluator) -> None:
    assert graded.grade("Who?", passages=["", "   "])[0].score == pytest.approx(-1.0)
    assert len(graded.grade("", passages=[ENGLISH])) == 1


def test_threads_may_share_a_reader(graded: ReaderEvaluator) -> None:
    questions = [f"When was lighthouse number {n} built?" for n in range(6)]
    alone = [graded.grade(question, passages=[ENGLISH])[0].score for question in questions]
    fresh = ReaderEvaluator(Reader())
    found: dict[int, float] = {}

    def work(number: int) -> None:
        found[number] = fresh.grade(questions[number], passages=[ENGLISH])[0].score

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(6)] == pytest.approx(alone, abs=1e-3)


def test_thresholds_leave_room_for_all_three_actions(graded: ReaderEvaluator) -> None:
    for language in ("zh", "en"):
        limits = graded.thresholds(language=language)
        assert -1 < limits.lower < limits.upper < 1
        assert -1 < limits.strip < limits.upper


def test_the_model_is_small() -> None:
    assert sum(path.stat().st_size for path in READER_DIR.iterdir()) < 60e6


def test_a_damaged_model_is_named_and_the_fallback_grades(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "reader"
    shutil.copytree(READER_DIR, folder)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        Reader(folder)
    monkeypatch.setattr("evaluator.Reader", lambda: Reader(folder))
    stand_in = build_evaluator(load_settings(evaluator=None), embedder=SomeEmbedder())
    assert stand_in.name.startswith("similarity")
