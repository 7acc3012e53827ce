"""Action cases over questions the reader never saw: with and without their passage, and half supported."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from corpus import LexicalIndex

from benchmarks.labelled import ActionCase, contains, is_unseen, read_lines
from schema import Action

BOTH = frozenset({Action.INCORRECT, Action.AMBIGUOUS})
ALSO = {"en": "{a} Also, {b}", "zh": "{a}另外，{b}"}


class _CaseMaker:
    """Makes cases of one language over all passages of the pack."""

    def __init__(self, language: str, *, chance: random.Random) -> None:
        self.language = language
        self.chance = chance
        rows = list(read_lines(f"qa/passages_{language}.jsonl"))
        self.texts = [row["text"] for row in rows]
        self.by_id = {row["pid"]: row["text"] for row in rows}
        self._index = LexicalIndex(self.texts)

    def near(self, row: dict[str, Any]) -> list[str]:
        """Lexical neighbours of a question that lack its answer."""
        found = (self.texts[n] for n in self._index.top(row["question"], count=16))
        return [text for text in found if not contains(row["answers"], text)]

    def case(self, question: str, passages: Sequence[str], *, accepted: frozenset[Action], kind: str) -> ActionCase:
        """A case with its passages in any order."""
        mixed = self.chance.sample(passages, len(passages))
        return ActionCase(question, tuple(mixed), accepted, kind, self.language, unseen=True)

    def cases(self, row: dict[str, Any], *, other: dict[str, Any]) -> Iterator[ActionCase]:
        """Every kind of case of one question; `other` is the unsupported half of the composite."""
        text, neighbours, right = row["question"], self.near(row), self.by_id[row["gold_pids"][0]]
        correct, incorrect = frozenset({Action.CORRECT}), frozenset({Action.INCORRECT})
        yield self.case(text, [right, *neighbours[:9]], accepted=correct, kind="gold among 10")
        yield self.case(text, neighbours[:10], accepted=incorrect, kind="no gold among 10")
        yield self.case(text, neighbours[:5], accepted=BOTH, kind="5 near-miss")
        yield self.case(text, self.chance.sample(self.texts, 5), accepted=incorrect, kind="5 off-topic")
        mark = "？" if self.language == "zh" else "?"
        whole = ALSO[self.language].format(a=text.rstrip("?？ ") + mark, b=other["question"])
        rest = [right, *neighbours[:2], *self.near(other)[:2]]
        yield self.case(whole, rest, accepted=frozenset({Action.AMBIGUOUS}), kind="two-part, one part supported")


def made_cases(*, language: str, questions: int, seed: int) -> Iterator[ActionCase]:
    """Cases over unseen questions: with and without their passage among neighbours, off topic, and half supported."""
    chance = random.Random(seed)
    maker = _CaseMaker(language, chance=chance)
    asked = [
        row
        for row in read_lines(f"qa/questions_{language}.jsonl")
        if is_unseen(row["qid"]) and row["gold_pids"] and row["gold_pids"][0] in maker.by_id
    ]
    chance.shuffle(asked)
    for number, row in enumerate(asked[:questions]):
        yield from maker.cases(row, other=asked[(number + 1) % len(asked)])
