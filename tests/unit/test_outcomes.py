"""Whole questions, kept or refused: where the shipped lower threshold is put."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from config import ROOT

sys.path.insert(0, str(ROOT / "training"))

from outcomes import Outcome, best_lower, kept_and_refused

WEIGHTS = np.array([1.0])


def asked(source: str, *scores: float, answerable: bool) -> list[Outcome]:
    """One question a score, its one document scoring that."""
    return [Outcome(source, answerable, ((score,),)) for score in scores]


def test_a_question_counts_by_its_best_document_and_a_source_by_its_share() -> None:
    outcomes = [
        Outcome("many", answerable=True, documents=((-1.0,), (2.0,))),
        *asked("many", -1.0, -1.0, -1.0, answerable=True),
        *asked("few", 1.0, answerable=True),
        *asked("none", -1.0, 1.0, answerable=False),
    ]
    kept, refused = kept_and_refused(outcomes, weights=WEIGHTS, lower=0.0)
    assert kept == pytest.approx(0.625)
    assert refused == pytest.approx(0.5)


def test_of_equally_good_levels_the_lowest_is_taken() -> None:
    outcomes = [
        *asked("none", *np.linspace(-3.0, -2.0, 50), answerable=False),
        *asked("kb", *np.linspace(2.0, 3.0, 50), answerable=True),
    ]
    assert -2.1 < best_lower(outcomes, weights=WEIGHTS) < 0.0
