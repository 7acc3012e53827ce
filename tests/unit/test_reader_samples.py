"""The rules that make the reader's training samples: what they promise about answers and labels."""

from __future__ import annotations

import random
import sys

import pytest

from config import ROOT

sys.path.insert(0, str(ROOT / "training"))

from cloze import cloze_questions, kind_of_answer, made_vague
from samples import Sample, find_answer
from samples import _broken as broken
from samples import _cut as cut
from samples import _hyphenated as hyphenated
from samples import _noisy as noisy
from samples import _prefixed as prefixed
from swaps import swap
from tables import table_sample

ENGLISH = "The Halden lighthouse was built in 1874 by Mary Orne and had 32 windows."
CHINESE = "青石大桥建成于1987年，全长1260米，由林远山设计，位于青石镇。"


def test_a_date_is_asked_for_and_left_out_of_the_question() -> None:
    found = cloze_questions(ENGLISH, language="en", title="", personal=False, chance=random.Random(0))
    dates = [item for item in found if item.asks == "date"]
    assert dates
    assert all(item.answer == "1874" and "1874" not in item.question for item in dates)


def test_chinese_clauses_ask_with_the_title_as_subject() -> None:
    found = cloze_questions(CHINESE, language="zh", title="青石大桥", personal=False, chance=random.Random(0))
    assert {"date", "number", "name", "place"} <= {item.asks for item in found}
    assert all(item.answer in CHINESE for item in found)
    assert all("青石大桥" in item.question for item in found if item.asks in {"date", "number"})


@pytest.mark.parametrize(
    ("answer", "kind"), [("1874", "date"), ("July 1874", "date"), ("32", "number"), ("Orne", "name")]
)
def test_kinds_of_answers(answer: str, kind: str) -> None:
    assert kind_of_answer(answer) == kind


@pytest.mark.parametrize("seed", range(6))
def test_a_vague_passage_has_lost_the_answer_and_keeps_the_rest(seed: int) -> None:
    chance = random.Random(seed)
    vague = made_vague(ENGLISH, answer="1874", asks="date", language="en", chance=chance)
    assert "1874" not in vague
    assert "lighthouse was built" in vague
    assert "1987年" not in made_vague(CHINESE, answer="1987年", asks="date", language="zh", chance=chance)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "question", ["When was the first bridge over the Rhine built in 1850?", "1850年最大的桥位于哪里？"]
)
def test_a_swapped_question_is_another_question(question: str, seed: int) -> None:
    found = swap(
        question,
        passage="In 1901 …",
        near_names=["Elbe"],
        far_names=["Oder"],
        words=["sold"],
        chance=random.Random(seed),
    )
    assert found is not None
    assert found[0] != question
    assert found[1].startswith("swap_")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_table_holds_what_is_asked_for_only_where_it_is_answered(language: str, seed: int) -> None:
    there = table_sample(language, positive=True, chance=random.Random(seed))
    missing = table_sample(language, positive=False, chance=random.Random(seed))
    assert there.answer is not None
    assert there.answer in there.text
    assert missing.answer is None
    assert missing.kind in {"table_label", "table_column", "table_name"}


def test_the_answer_is_looked_for_in_its_sentence_first() -> None:
    text = "It cost 30. In the end 30 came."
    assert find_answer(text, answers=["30"], start=12, end=len(text)) == (23, 25)
    assert find_answer(text, answers=["missing"], start=0, end=5) is None


def test_decorations_move_the_span_with_the_answer() -> None:
    low = ENGLISH.index("1874")
    sample = Sample("When?", ENGLISH, answered=True, span=(low, low + 4), kind="human", language="en")
    for changed in (
        prefixed(sample, "Chapter 1 > Scope\n"),
        broken(sample, width=3),
        *(cut(sample, chance=random.Random(seed)) for seed in range(8)),
        *(hyphenated(sample, chance=random.Random(seed)) for seed in range(8)),
        *(noisy(sample, chance=random.Random(seed)) for seed in range(8)),
    ):
        assert changed.span is not None
        assert changed.passage[slice(*changed.span)] == "1874"


def test_a_misread_passage_keeps_its_length_and_its_digits() -> None:
    sample = Sample("Who?", ENGLISH * 3, answered=False, span=None, kind="human", language="en")
    changed = noisy(sample, chance=random.Random(0)).passage
    assert changed != sample.passage
    assert len(changed) == len(sample.passage)
    assert [c for c in changed if c.isdigit()] == [c for c in sample.passage if c.isdigit()]


def test_a_cut_passage_ends_early_but_after_its_answer() -> None:
    sample = Sample("When?", ENGLISH, answered=False, span=None, kind="human", language="en")
    changed = cut(sample, chance=random.Random(0)).passage
    assert changed.endswith(" ...")
    assert ENGLISH.startswith(changed.removesuffix(" ..."))
    unsure = Sample("When?", ENGLISH, answered=True, span=None, kind="human", language="en")
    assert cut(unsure, chance=random.Random(0)) == unsure
