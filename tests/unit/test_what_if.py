"""The action under other thresholds, from the same scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schema import Action, Grade, Knowledge, Part, Strip
from tests.helpers_page import make_answer
from what_if import lowered, reconsider, turning_score


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


@pytest.mark.parametrize("scores", [(0.7, -0.8), (0.1, -0.9), (-0.7, -0.8)])
def test_thresholds_on_either_side_of_the_turning_score_change_the_action(scores: tuple[float, ...]) -> None:
    answer = make_answer(scores=scores)
    best = turning_score(answer)
    assert best is not None
    assert reconsider(answer, upper=best, lower=-1.0).action is Action.CORRECT
    assert reconsider(answer, upper=1.0, lower=best).action is Action.AMBIGUOUS
    assert reconsider(answer, upper=1.0, lower=best + 0.01).action is Action.INCORRECT


def test_there_is_no_single_turning_score_when_more_than_one_decides() -> None:
    assert turning_score(make_answer(scores=(0.7, None))) is None
    assert turning_score(make_answer(scores=())) is None
    parts = (Part("a", Action.CORRECT, 0.7), Part("b", Action.INCORRECT, -0.8))
    answer = make_answer(scores=(0.7,))
    assert turning_score(replace(answer, verdict=replace(answer.verdict, parts=parts))) is None
