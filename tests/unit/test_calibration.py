from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from action_trigger import trigger
from calibration import Case, calibrate, decided, fit_floor, fit_thresholds, measure
from errors import ConfigurationError
from i18n import Language
from schema import Action, Grade, Thresholds

RIGHT = frozenset({Action.CORRECT})
WRONG = frozenset({Action.INCORRECT})
NEAR = frozenset({Action.INCORRECT, Action.AMBIGUOUS})


class _Words:
    """Scores a passage by a number written in it."""

    name = "words"

    def thresholds(self, *, language: Language) -> Thresholds:
        return Thresholds(upper=0.9, lower=0.8, strip=0.7)

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        return [Grade(float(text.split()[0])) for text in passages]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        return [[Grade(0.25 if "gold" in text else -0.5) for text in group] for group in groups]


def _cases(seed: int) -> list[Case]:
    chance = random.Random(seed)
    found = [Case((chance.uniform(0.3, 1.0),), RIGHT) for _ in range(60)]
    found += [Case((chance.uniform(-0.4, 0.2),), frozenset({Action.AMBIGUOUS})) for _ in range(60)]
    return found + [Case((chance.uniform(-1.0, -0.5),), WRONG) for _ in range(60)]


def test_thresholds_fall_between_separable_groups() -> None:
    cases = _cases(0)
    upper, lower = fit_thresholds(cases)
    assert 0.15 < upper < 0.35
    assert -0.55 < lower < -0.35
    fitted = measure(cases, upper=upper, lower=lower)
    assert fitted.accuracy > 0.98
    assert all(fitted.actions.values())


def test_being_confidently_wrong_costs_more_than_being_unsure() -> None:
    sure = measure([Case((0.9,), WRONG)], upper=0.5, lower=-0.5)
    unsure = measure([Case((0.0,), WRONG)], upper=0.5, lower=-0.5)
    assert sure.cost == 3 * unsure.cost
    assert (sure.confidently_wrong, unsure.confidently_wrong) == (1.0, 0.0)


@pytest.mark.parametrize("scores", [(0.9, 0.9), (0.9, -0.9), (-0.9, -0.9), (0.0,), (0.5,), (-0.5,)])
def test_decided_agrees_with_the_trigger(scores: tuple[float, ...]) -> None:
    limits = Thresholds(upper=0.5, lower=-0.5, strip=0.0)
    grades = [[Grade(score), Grade(-1.0)] for score in scores]
    verdict = trigger([str(score) for score in scores], grades=grades, thresholds=limits)
    assert decided(scores, upper=0.5, lower=-0.5) is verdict.action


def test_one_case_more_moves_the_thresholds_little() -> None:
    cases = _cases(1)
    before = fit_thresholds(cases)
    after = fit_thresholds([*cases, Case((-0.9,), RIGHT)])
    assert before == pytest.approx(after, abs=0.1)


def test_the_floor_keeps_the_stated_share() -> None:
    scores = [number / 100 for number in range(100)]
    floor = fit_floor(scores, share=0.97)
    assert sum(score >= floor for score in scores) == 97


def test_calibrate_fits_labels_actions_and_strips() -> None:
    rows: list[dict[str, object]] = []
    for number in range(12):
        rows += [
            {
                "question": f"What is item {number}?",
                "passages": ["0.4 gold is the answer here.", "-0.9 nothing to see."],
                "labels": [1, 0],
                "answers": ["gold"],
            },
            {"question": f"What is thing {number}?", "passage": "-0.2 near", "expected_action": "Ambiguous"},
            {"question": f"What is stuff {number}?", "passage": "-0.8 off", "label": 0},
        ]
    fitted = calibrate(rows, evaluator=_Words())
    assert fitted.after.accuracy == 1.0
    assert fitted.before.accuracy < 1.0
    assert fitted.thresholds.lower < fitted.thresholds.upper <= 0.4
    assert fitted.thresholds.strip == pytest.approx(0.25, abs=1e-3)
    assert fitted.previous == Thresholds(upper=0.9, lower=0.8, strip=0.7)
    assert fitted.as_json()["thresholds"]["upper"] == fitted.thresholds.upper


def test_each_language_is_fitted_on_its_own_beside_what_is_in_force() -> None:
    def rows(question: str, *, shift: float, count: int) -> list[dict[str, object]]:
        return [
            {"question": question.format(number), "passage": f"{score + shift} text", "label": label}
            for number in range(count)
            for score, label in ((0.5, 1), (-0.5, 0))
        ]

    labelled = rows("What is item {}?", shift=0.0, count=9) + rows("第{}项是什么？", shift=0.4, count=9)
    labelled += rows("Which one is {}?", shift=0.0, count=1)
    in_force = {"en": Thresholds(0.1, -0.2, 0.0), "zh": Thresholds(0.2, -0.3, 0.1)}
    fitted = calibrate(labelled, evaluator=_Words(), limits=in_force.__getitem__)
    assert {language: own.questions for language, own in fitted.languages.items()} == {"en": 20, "zh": 18}
    assert {language: own.previous for language, own in fitted.languages.items()} == in_force
    english, chinese = fitted.languages["en"].thresholds, fitted.languages["zh"].thresholds
    assert -0.5 < english.upper <= 0.5 < chinese.upper <= 0.9
    assert fitted.as_json()["languages"]["zh"]["thresholds"]["upper"] == chinese.upper
    assert set(calibrate(labelled[:18], evaluator=_Words()).languages) == {"en"}


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Why?", "passages": ["0.1"], "labels": ["yes"]},
        {"passages": ["x"], "labels": [1]},
        {"question": "Why?", "labels": [1]},
        {"question": "Why?", "passages": ["x"], "labels": [1, 0]},
        {"question": "Why?", "passages": ["x"], "expected_action": "perhaps"},
    ],
)
def test_a_row_that_lacks_something_is_named(row: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="row 1"):
        calibrate([row], evaluator=_Words())


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="too few"):
        calibrate([{"question": "Why?", "passage": "0.5", "label": 1}], evaluator=_Words())
