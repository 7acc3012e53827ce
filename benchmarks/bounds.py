"""Where the embedded reader needs no language model: the bounds of the cascade (llm_evaluator.py).

Parts of the action cases, ten documents each, and labelled pairs, none of them trained on. Outside the bounds the
reader decides alone: a part whose best score is at or above SURE is taken for answered, one at or below RULED_OUT for
not answered. The derived bounds are the closest to the thresholds beyond which at least 97 % of these decisions and
of the pairs are right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.common import data_dir, environment, finish, read_options, table
from benchmarks.labelled import is_unseen, labelled_pairs
from benchmarks.oracle import Oracle, cases_of
from evaluator import ReaderEvaluator
from i18n import LANGUAGES
from llm_evaluator import RULED_OUT, SURE
from question_parts import split_question
from reader import Reader

RIGHT = 0.97
PAIRS = 400
"""Labelled pairs a language."""
GRID = (*(round(step / 100, 2) for step in range(30, 100, 5)), 0.97, 0.98, 0.99)
FEWEST = 20
"""Fewer decisions than these prove nothing."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A score of the reader, and whether the text, or one of a part's texts, answers."""

    score: float
    answered: bool
    kind: str


def decisions(*, limit: int, seed: int) -> Iterator[Decided]:
    """Yield the parts of the action cases by their best score, and the pairs."""
    evaluator = ReaderEvaluator(Reader())
    folder = data_dir() / "action"
    oracle = Oracle(error=0.0, delay=0.0)
    for case in cases_of(folder, limit=limit, seed=seed):
        if not is_unseen(str(case.get("qid", "rgb"))):
            continue
        parts = split_question(case["question"]) or [case["question"]]
        oracle.learn(case, parts=parts)
        for part in parts:
            best = max(grade.score for grade in evaluator.grade(part, passages=case["documents"]))
            answered = any(oracle.reply(part, text) != "No" for text in case["documents"])
            yield Decided(best, answered, kind="part")
    pairs = [pair for pair in labelled_pairs() if pair.unseen]
    for language in LANGUAGES:
        own = [pair for pair in pairs if pair.language == language]
        for pair in random.Random(seed).sample(own, min(PAIRS, len(own))):
            (grade,) = evaluator.grade(pair.question, passages=[pair.passage])
            yield Decided(grade.score, pair.answered, kind="pair")


def shares(decided: Sequence[Decided], *, bound: float) -> dict[str, object]:
    """Return how many lie beyond a bound, and the share of them that is right; negative bounds rule out."""
    row: dict[str, object] = {"bound": bound}
    for kind in ("part", "pair"):
        inside = [item for item in decided if item.kind == kind]
        beyond = [item for item in inside if (item.score >= bound if bound > 0 else item.score <= bound)]
        right = sum(item.answered == (bound > 0) for item in beyond)
        row[f"{kind}s beyond"] = len(beyond)
        row[f"{kind}s right"] = right / len(beyond) if beyond else None
    return row


def derive(rows: Sequence[dict[str, object]]) -> float | None:
    """Return the bound nearest to the thresholds from which on all rows are right often enough."""
    found = None
    for row in sorted(rows, key=lambda row: -abs(float(str(row["bound"])))):
        known = [row[f"{kind} right"] for kind in ("parts", "pairs") if int(str(row[f"{kind} beyond"])) >= FEWEST]
        if not all(float(str(value)) >= RIGHT for value in known):
            break
        found = float(str(row["bound"])) if known else found
    return found


def main() -> None:
    options = read_options(__doc__)
    decided = list(decisions(limit=options.limit, seed=options.seed))
    sides: dict[str, Callable[[float], float]] = {"sure": lambda bound: bound, "ruled out": lambda bound: -bound}
    lines = {side: [shares(decided, bound=sign(bound)) for bound in GRID] for side, sign in sides.items()}
    derived = {side: derive(rows) for side, rows in lines.items()}
    folder = data_dir()
    files = [
        folder / name
        for language in LANGUAGES
        for name in (f"action/cases_{language}.jsonl", f"evaluator/pairs_{language}.jsonl")
    ]
    text = "\n\n".join(f"{side}: derived {derived[side]}\n\n{table(rows)}" for side, rows in lines.items())
    text += f"\n\nshipped: sure {SURE}, ruled out {RULED_OUT}"
    result = {"environment": environment(seed=options.seed, files=files), "derived": derived, "bounds": lines}
    finish("bounds", result=result, options=options, text=text)


if __name__ == "__main__":
    main()
