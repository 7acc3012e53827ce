"""Fits an evaluator's thresholds to labelled questions, with a stated cost for being confidently wrong.

Behind `cli.py calibrate FILE`; the thresholds that ship with the reader are fitted by training/calibrate_pages.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from action_trigger import best_score
from errors import ConfigurationError
from i18n import LANGUAGES, Language
from language import detect_language
from question_parts import split_question
from refinement import decompose
from schema import Action, Document, Origin, Thresholds

if TYPE_CHECKING:
    from stages import Evaluator

CONFIDENTLY_WRONG = 3.0
"""Cost of saying Correct where it is not, or Incorrect where the answer is there; any other wrong action costs 1."""
KEPT_SHARE = 0.97
"""Share of the strips holding an answer that the floor must keep."""
SMALLEST_GAP = 0.02
"""Upper stays this far above lower, so that Ambiguous can occur."""
GRID = 160
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled question: the best score of each of its parts, and the actions that are right."""

    best_scores: tuple[float, ...]
    accepted: frozenset[Action]


@dataclass(frozen=True, slots=True)
class Fit:
    """How well thresholds decide labelled cases: share right, mean cost, and how often each action occurs."""

    accuracy: float
    cost: float
    confidently_wrong: float
    actions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Fitted thresholds beside those before, on `questions` labelled questions of which `strips` have answer strips."""

    thresholds: Thresholds
    previous: Thresholds
    before: Fit
    after: Fit
    questions: int
    strips: int


@dataclass(frozen=True, slots=True)
class Calibrated(Fitted):
    """What was fitted to all questions, and to those of each language that has enough of them."""

    languages: Mapping[Language, Fitted]

    def as_json(self) -> dict[str, Any]:
        """Plain values for the terminal and JSON."""
        return asdict(self)


def decided(best_scores: Sequence[float], *, upper: float, lower: float) -> Action:
    """The action for the best scores of a question's parts, as `action_trigger.trigger` decides it."""
    actions = {
        Action.CORRECT if score >= upper else Action.INCORRECT if score < lower else Action.AMBIGUOUS
        for score in best_scores
    }
    return actions.pop() if len(actions) == 1 else Action.AMBIGUOUS


def measure(cases: Sequence[Case], *, upper: float, lower: float) -> Fit:
    """Accuracy and cost of two thresholds on the cases; both per case."""
    actions = [decided(case.best_scores, upper=upper, lower=lower) for case in cases]
    right = [action in case.accepted for action, case in zip(actions, cases, strict=True)]
    wrong = [not fine and action is not Action.AMBIGUOUS for action, fine in zip(actions, right, strict=True)]
    costs = [0.0 if fine else CONFIDENTLY_WRONG if sure else 1.0 for fine, sure in zip(right, wrong, strict=True)]
    return Fit(
        accuracy=round(sum(right) / len(cases), 4),
        cost=round(sum(costs) / len(cases), 4),
        confidently_wrong=round(sum(wrong) / len(cases), 4),
        actions={action.value: actions.count(action) for action in Action},
    )


def fit_thresholds(cases: Sequence[Case]) -> tuple[float, float]:
    """Upper and lower threshold of least mean cost; among equals those in the middle.

    A grid over the quantiles of the scores, its costs smoothed over the neighbours, so that one item more or less
    does not move the result far.
    """
    scores = np.array([score for case in cases for score in case.best_scores])
    levels = np.unique(np.quantile(scores, np.linspace(0.0, 1.0, GRID + 1)))
    levels = np.unique(np.concatenate([[-1.0], (levels[:-1] + levels[1:]) / 2, [1.0]]))
    costs = _costs(cases, levels=levels)
    best = np.argwhere(costs <= np.nanmin(costs) + 1e-9)
    lower_at, upper_at = best[len(best) // 2]
    return float(levels[upper_at]), float(levels[lower_at])


def _costs(cases: Sequence[Case], *, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smoothed cost [lower, upper] of every pair of levels; NaN where they are too close or swapped."""
    size = len(levels)
    costs = np.zeros((size, size))
    for case in cases:
        scores = np.array(case.best_scores)
        correct = np.all(scores[:, None] >= levels, axis=0)[None, :]
        incorrect = np.all(scores[:, None] < levels, axis=0)[:, None]
        wrong = {
            Action.CORRECT: 0.0 if Action.CORRECT in case.accepted else CONFIDENTLY_WRONG,
            Action.INCORRECT: 0.0 if Action.INCORRECT in case.accepted else CONFIDENTLY_WRONG,
            Action.AMBIGUOUS: 0.0 if Action.AMBIGUOUS in case.accepted else 1.0,
        }
        cost = np.where(incorrect, wrong[Action.INCORRECT], wrong[Action.AMBIGUOUS])
        costs += np.where(correct, wrong[Action.CORRECT], cost)
    apart = levels[None, :] - levels[:, None] >= SMALLEST_GAP
    padded = np.pad(costs, 2, mode="edge")
    smooth = sum(padded[i : i + size, j : j + size] for i in range(5) for j in range(5)) / 25
    return np.where(apart, costs + smooth, np.nan)


def fit_floor(answer_strips: Sequence[float], *, share: float = KEPT_SHARE) -> float:
    """The floor that keeps `share` of the strips that hold an answer."""
    return float(np.quantile(np.array(answer_strips), 1 - share)) - 1e-6


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A case, the scores of its answer strips, and its language."""

    case: Case
    strips: Sequence[float]
    language: Language


def calibrate(
    rows: Iterable[Mapping[str, Any]],
    *,
    evaluator: Evaluator,
    limits: Callable[[Language], Thresholds] | None = None,
) -> Calibrated:
    """Fit thresholds to rows of {question, passages | passage, expected_action | labels | label, answers?}.

    Labels say of each passage whether it answers (1) or not (0): one that answers makes the question Correct; none,
    Incorrect or Ambiguous. `answers` lets the strip floor be fitted too; without them it stays as it is.
    `limits` are the thresholds in force, the evaluator's own unless given.

    :raises ConfigurationError: a row lacks what is needed, or there are fewer than FEWEST rows.
    """
    limits = limits or (lambda language: evaluator.thresholds(language=language))
    found: list[_Labelled] = []
    for number, row in enumerate(rows, start=1):
        question, passages, accepted = _read_row(row, number=number)
        parts = split_question(question)
        graded = [evaluator.grade(part, passages=passages) for part in parts]
        case = Case(tuple(best_score(grades) for grades in graded), accepted)
        strips = _answer_strips(row, parts=parts, passages=passages, evaluator=evaluator)
        found.append(_Labelled(case, strips, detect_language(question)))
    if len(found) < FEWEST:
        raise ConfigurationError(
            f"{len(found)} labelled questions are too few to fit thresholds", hint=f"give at least {FEWEST}"
        )
    groups = {language: [item for item in found if item.language == language] for language in LANGUAGES}
    most = max(LANGUAGES, key=lambda language: len(groups[language]))
    whole = _fit(found, previous=limits(most))
    return Calibrated(
        **{name: getattr(whole, name) for name in Fitted.__slots__},
        languages={
            language: _fit(own, previous=limits(language)) for language, own in groups.items() if len(own) >= FEWEST
        },
    )


def _fit(found: Sequence[_Labelled], *, previous: Thresholds) -> Fitted:
    cases = [item.case for item in found]
    strips = [score for item in found for score in item.strips]
    upper, lower = fit_thresholds(cases)
    floor = fit_floor(strips) if len(strips) >= FEWEST else previous.strip
    return Fitted(
        thresholds=Thresholds(upper=round(upper, 4), lower=round(lower, 4), strip=round(floor, 4)),
        previous=previous,
        before=measure(cases, upper=previous.upper, lower=previous.lower),
        after=measure(cases, upper=upper, lower=lower),
        questions=len(cases),
        strips=len(strips),
    )


def _read_row(row: Mapping[str, Any], *, number: int) -> tuple[str, list[str], frozenset[Action]]:
    question = row.get("question")
    passages = row.get("passages", [row["passage"]] if "passage" in row else None)
    if not isinstance(question, str) or not isinstance(passages, list) or not all(isinstance(p, str) for p in passages):
        raise ConfigurationError(f"row {number} lacks a question or passages", hint="see README.md, In the terminal")
    if "expected_action" in row:
        names = row.get("acceptable_actions") or [row["expected_action"]]
        try:
            return question, passages, frozenset(Action(str(name).lower()) for name in names)
        except ValueError as error:
            raise ConfigurationError(f"row {number}: {error}", hint="correct, ambiguous or incorrect") from error
    labels = row.get("labels", [row["label"]] if "label" in row else None)
    if not isinstance(labels, list) or len(labels) != len(passages):
        raise ConfigurationError(f"row {number} lacks expected_action or one label a passage", hint="0 or 1 each")
    if any(label not in (0, 1) for label in labels):
        raise ConfigurationError(f"row {number}: labels {labels!r}", hint="0 or 1 each")
    answered = any(labels)
    return question, passages, frozenset({Action.CORRECT} if answered else {Action.INCORRECT, Action.AMBIGUOUS})


def _answer_strips(
    row: Mapping[str, Any], *, parts: Sequence[str], passages: Sequence[str], evaluator: Evaluator
) -> list[float]:
    """Best score over the parts of each passage's best strip that holds an answer string."""
    answers = [str(answer) for answer in row.get("answers") or [] if str(answer).strip()]
    groups = [
        [strip.text for strip in decompose(Document(text=text, origin=Origin.KB, rank=rank))]
        for rank, text in enumerate(passages, start=1)
        if any(answer in text for answer in answers)
    ]
    if not groups:
        return []
    rows = [evaluator.grade_strips(part, groups=groups) for part in parts]
    found = []
    for number, group in enumerate(groups):
        scores = [
            max(graded[number][column].score for graded in rows)
            for column, text in enumerate(group)
            if any(answer in text for answer in answers)
        ]
        found += [max(scores)] if scores else []
    return found
