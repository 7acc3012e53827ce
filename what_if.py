"""What the same scores would have triggered under other thresholds: no model is called."""

from __future__ import annotations

from action_trigger import trigger
from schema import Answer, Grade, Thresholds, Verdict


def reconsider(answer: Answer, *, upper: float, lower: float) -> Verdict:
    """Return the verdict that the scores of `answer` give with these thresholds.

    A question of several parts keeps only the best score of each part, so these stand for its rows.
    """
    before = answer.verdict
    thresholds = Thresholds(upper=upper, lower=lower, strip=before.thresholds.strip)
    if len(before.parts) > 1:
        rows = [[Grade(part.best_score)] for part in before.parts]
        return trigger([part.question for part in before.parts], grades=rows, thresholds=thresholds)
    grades = [graded.grade for graded in answer.graded]
    return trigger([answer.question], grades=[grades], thresholds=thresholds)


def turning_score(answer: Answer) -> float | None:
    """Return the score that a threshold has to pass to change the action: the best one.

    None when more than one score decides: a question of several parts, a failed grade, or nothing graded.
    """
    if len(answer.verdict.parts) > 1 or any(graded.grade.failed for graded in answer.graded):
        return None
    return max((graded.grade.score for graded in answer.graded), default=None)


def lowered(answer: Answer) -> Thresholds | None:
    """Return thresholds under which the best document and strip of a refused answer would just pass.

    None when nothing was retrieved, so that lowering could not help.
    """
    scores = [graded.grade.score for graded in answer.graded if not graded.grade.failed]
    if not scores:
        return None
    now = answer.verdict.thresholds
    lower = min(now.lower, max(scores))
    strips = [strip.grade.score for strip in answer.knowledge.strips if not strip.grade.failed]
    return Thresholds(upper=now.upper, lower=lower, strip=min(now.strip, max(strips, default=-1.0)))
