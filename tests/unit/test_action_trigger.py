import pytest

from action_trigger import decide_action, trigger
from schema import Action, Grade, Thresholds

LIMITS = Thresholds(upper=0.5, lower=-0.5, strip=-0.2)


@pytest.mark.parametrize(
    ("scores", "action"),
    [
        ([0.5], Action.CORRECT),
        ([-1.0, 0.9, -1.0], Action.CORRECT),
        ([0.49], Action.AMBIGUOUS),
        ([-0.5], Action.AMBIGUOUS),
        ([-0.51, -0.9], Action.INCORRECT),
        ([], Action.INCORRECT),
    ],
)
def test_action_follows_the_paper(scores: list[float], action: Action) -> None:
    assert decide_action([Grade(score) for score in scores], thresholds=LIMITS) is action


def test_a_failed_grade_is_neither_relevant_nor_irrelevant() -> None:
    failed = Grade(0.0, failed=True)
    assert decide_action([failed, Grade(-0.9)], thresholds=LIMITS) is Action.AMBIGUOUS
    assert decide_action([failed], thresholds=Thresholds(upper=-0.5, lower=-0.9, strip=-0.9)) is Action.AMBIGUOUS
    assert decide_action([failed], thresholds=Thresholds(upper=0.9, lower=0.5, strip=0.5)) is Action.AMBIGUOUS
    assert decide_action([failed, Grade(0.6)], thresholds=LIMITS) is Action.CORRECT


@pytest.mark.parametrize(
    ("first", "second", "action", "missing"),
    [
        (0.9, 0.8, Action.CORRECT, ()),
        (0.9, -0.8, Action.AMBIGUOUS, ("b?",)),
        (0.9, 0.0, Action.AMBIGUOUS, ("b?",)),
        (-0.9, -0.8, Action.INCORRECT, ("a?", "b?")),
    ],
)
def test_a_compound_question_is_judged_part_by_part(
    first: float, second: float, action: Action, missing: tuple[str, ...]
) -> None:
    verdict = trigger(["a?", "b?"], grades=[[Grade(first)], [Grade(second)]], thresholds=LIMITS)
    assert verdict.action is action
    assert verdict.missing == missing
    assert verdict.best_score == max(first, second)
