"""The arithmetic of the cascade's benchmark: bounds and ratios."""

from __future__ import annotations

import pytest

from benchmarks.bounds import FEWEST, Decided, derive, shares
from benchmarks.llm_cost import summary
from benchmarks.oracle import Oracle


def row(bound: float, *, right: float, count: int = FEWEST) -> dict[str, object]:
    return {
        "bound": bound,
        "parts beyond": count,
        "parts right": right,
        "pairs beyond": count,
        "pairs right": right,
    }


def test_shares_count_both_sides() -> None:
    decided = [Decided(score, answered=score > 0.5, kind="part") for score in (-0.95, -0.9, 0.0, 0.4, 0.9)]
    sure, ruled_out = shares(decided, bound=0.4), shares(decided, bound=-0.9)
    assert (sure["parts beyond"], sure["parts right"], sure["pairs right"]) == (2, 0.5, None)
    assert (ruled_out["parts beyond"], ruled_out["parts right"]) == (2, 1.0)


def test_the_bound_is_the_nearest_beyond_which_all_is_right() -> None:
    rows = [row(0.5, right=0.9), row(0.6, right=0.98), row(0.7, right=0.9), row(0.8, right=0.97), row(0.9, right=1.0)]
    assert derive(rows) == 0.8
    assert derive([row(-0.6, right=0.98), row(-0.9, right=0.5, count=FEWEST - 1)]) == -0.6
    assert derive([row(0.9, right=0.5)]) is None


def test_ratios_are_of_means() -> None:
    plain = {"calls": 15, "rounds": 15, "seconds": 15.0, "cpu": None, "right": True}
    cascade = {"calls": 3, "rounds": 1, "seconds": 1.5, "cpu": 0.4, "right": False}
    *_, ratio = summary([{"plain": plain, "cascade": cascade}] * 2, delay=1.0)
    assert (ratio["calls a question"], ratio["seconds a question"]) == (pytest.approx(5), pytest.approx(10))
    assert ratio["action right"] is None


def test_the_oracle_grades_by_the_labels() -> None:
    passages = ["The bridge opened in 1932. It is grey.", "A bird."]
    case = {
        "answers": ["1932"],
        "expected_action": "Correct",
        "passages": passages,
        "passage_labels": [1, 0],
    }
    oracle = Oracle(error=0.0, delay=0.0)
    oracle.learn(case, parts=["When?"])
    assert [oracle.reply("When?", text) for text in passages] == ["Yes", "No"]
    assert oracle.reply("When?", "The bridge opened in 1932.") == "Yes"
    assert oracle.reply("When?", "It is grey.") == "No"
    wrong = Oracle(error=1.0, delay=0.0, passages=oracle.passages, answers=oracle.answers)
    assert wrong.reply("When?", "A bird.") == "Yes"
