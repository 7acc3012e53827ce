"""The action trigger: from graded documents to Correct, Ambiguous or Incorrect (paper, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from schema import Action, Grade, Part, Thresholds, Verdict


def decide_action(grades: Sequence[Grade], *, thresholds: Thresholds) -> Action:
    """Return the action that these grades trigger.

    Any score ≥ upper is Correct; all scores < lower (or no document at all) is Incorrect; else Ambiguous.
    A failed grade is neither relevant nor irrelevant: it forbids Incorrect and never makes Correct.
    """
    known = [grade.score for grade in grades if not grade.failed]
    if any(score >= thresholds.upper for score in known):
        return Action.CORRECT
    if len(known) == len(grades) and all(score < thresholds.lower for score in known):
        return Action.INCORRECT
    return Action.AMBIGUOUS


def trigger(parts: Sequence[str], *, grades: Sequence[Sequence[Grade]], thresholds: Thresholds) -> Verdict:
    """Return the verdict on a question from the grades of its parts (one row of grades a part).

    All parts Correct is Correct, all Incorrect is Incorrect, anything between is Ambiguous.
    """
    judged = tuple(
        Part(question=part, action=decide_action(row, thresholds=thresholds), best_score=best_score(row))
        for part, row in zip(parts, grades, strict=True)
    )
    actions = {part.action for part in judged}
    return Verdict(
        action=actions.pop() if len(actions) == 1 else Action.AMBIGUOUS,
        thresholds=thresholds,
        best_score=max(part.best_score for part in judged),
        parts=judged,
    )


def best_score(grades: Sequence[Grade]) -> float:
    """Return the highest score, −1 when nothing was graded; a failed grade counts as 0."""
    return max((0.0 if grade.failed else grade.score for grade in grades), default=-1.0)
