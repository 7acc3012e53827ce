"""The action under other thresholds, from the same scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schema import Action, Grade, Knowledge, Part, Strip
from tests.helpers_page import make_answer
from what_if import lowered, reconsider


@pytest.mark.parametrize(
    ("upper", "lower", "action"),
    [(0.5, -0.5, Action.CORRECT), (0.9, -0.5, Action.AMBIGUOUS), (0.9, 0.8, Action.INCORRECT)],
)
def test_the_same_scores_are_judged_again(upper: float, lower: float, action: Action) -> None:
    answer = make_answer(scores=(0.7, -0.8))
    assert reconsider(answer, upper=upper, lower=lower).action is action


def test_a_failed_grade_still_forbids_incorrect() -> None:
    answer = make_answer(scores=(-0.9, None))
    assert reconsider(answer, upper=0.5, lower=0.0).action is Action.AMBIGUOUS


def test_each_part_of_a_question_is_judged_on_its_own() -> None:
    answer = make_answer(scores=(0.7,))
    parts = (Part("a", Action.CORRECT, 0.7), Part("b", Action.INCORRECT, -0.8))
    answer = replace(answer, verdict=replace(answer.verdict, parts=parts))
    assert reconsider(answer, upper=0.5, lower=-0.5).action is Action.AMBIGUOUS
    assert reconsider(answer, upper=-0.9, lower=-1.0).action is Action.CORRECT


def test_lowered_thresholds_let_the_best_document_and_strip_pass() -> None:
    answer = make_answer(scores=(-0.6, -0.9))
    strip = Strip("text", answer.graded[0].document, 0, 4, Grade(-0.7))
    limits = lowered(replace(answer, knowledge=Knowledge((strip,))))
    assert limits is not None
    assert limits.lower <= -0.6
    assert limits.strip <= -0.7
    assert reconsider(answer, upper=limits.upper, lower=limits.lower).action is Action.AMBIGUOUS


def test_nothing_to_lower_without_documents() -> None:
    assert lowered(make_answer(scores=())) is None
