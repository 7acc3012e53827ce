"""Evaluators that ask a language model: for every document, or only where the embedded reader is unsure.

The model is asked yes or no. Its score is P(yes) − P(no) of the reply's token where the endpoint gives
log-probabilities, else 1, 0 or −1 for yes, partly and no. All texts of a question are graded in one round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np

from agent_model import ChatModel, Failure, Prompt, Reply, build_chat_model
from config import Settings
from endpoints import Role
from i18n import Language
from language import detect_language
from llm_prompts import cut_to_tokens, fence, read_prompt
from llm_replies import parse_verdict, score_tokens
from schema import Grade, Thresholds
from stages import Evaluator

logger = logging.getLogger(__name__)

LLM_THRESHOLDS = Thresholds(upper=0.6, lower=-0.6, strip=-0.2)
"""On the scale P(yes) − P(no): a plain yes is above, a plain no below, "partly" (0) between; 0.6 is 80 % against 20 %.
A strip is kept unless no is clearly likelier than yes."""
SURE, RULED_OUT = 0.95, -0.95
"""Scores of the reader beyond which a document is not asked about. Of labelled pairs that it was not trained on, 98 %
of those at or below −0.95 do not answer, and fewer than 97 % of those up to any score closer to the thresholds. No
score below 0.95 is as reliable on the other side: there, nearly every answer is confirmed by the model. Measured with
`python -m benchmarks bounds`."""
MOST_DOCUMENTS, MOST_UNLIKELY = 3, 2
"""The best ones decide the action; below the lower threshold the best two."""
STRIP_MARGIN = 0.15
"""How far from its floor the reader's score of a strip is still asked about."""
MOST_STRIPS = 4
PASSAGE_TOKENS = 3000
REPLY_TOKENS = 512
"""A plain reply needs one token; a model that thinks in spite of the switch needs room to come to its word."""
FELL_BACK = "models.graded_by_reader"

Kind = Literal["grade", "strip"]


def build_llm_evaluator(settings: Settings, *, base: Evaluator) -> Evaluator:
    """Return the evaluator that the settings name: `llm` or `cascade` with a model for grading, else `base`.

    Without a word from the user, a configured grading model is asked as a cascade.

    :raises ConfigurationError: the grading provider needs a model name and there is none.
    """
    if settings.evaluator not in {None, "llm", "cascade"}:
        return base
    model = build_chat_model(settings, role=Role.GRADE)
    if model is None:
        return base
    judge = Judge(model)
    if settings.evaluator == "llm":
        return LlmEvaluator(judge, reader=base)
    from crag import chosen_thresholds

    return CascadeEvaluator(judge, reader=base, chosen=partial(chosen_thresholds, settings, evaluator=base))


def without_model(evaluator: Evaluator) -> Evaluator:
    """Return the part of an evaluator that asks no model, on the same scale; an embedded evaluator as it is."""
    match evaluator:
        case CascadeEvaluator():
            return evaluator.reader
        case LlmEvaluator(reader=reader) if reader is not None:
            return OnModelScale(reader)
    return evaluator


@dataclass(frozen=True, slots=True)
class Judge:
    """A chat model that grades texts on the scale of `LLM_THRESHOLDS`."""

    model: ChatModel

    def grade(self, question: str, *, texts: Sequence[str], kind: Kind) -> list[Grade]:
        """Grade all texts in one round; a call or a reply that fails gives a failed grade."""
        language = detect_language(question)
        instructions = read_prompt(kind, language=language)
        prompts = [
            Prompt(instructions, message=grade_message(question, text=text, language=language)) for text in texts
        ]
        replies = self.model.ask(prompts, max_tokens=REPLY_TOKENS, logprobs=True)
        return [_grade_of(reply) for reply in replies]


def grade_message(question: str, *, text: str, language: Language) -> str:
    """Return the user message about one text, question and text fenced."""
    ending = "只回答：是、部分或否。" if language == "zh" else "Reply only: Yes, Partly or No."
    passage = fence("passage", text=cut_to_tokens(text, limit=PASSAGE_TOKENS))
    return "\n\n".join((fence("question", text=question), passage, ending))


def _grade_of(reply: Reply | Failure) -> Grade:
    if isinstance(reply, Failure):
        logger.warning("a grade failed: %s", reply.error.code)
        return Grade(0.0, failed=True, usage=reply.usage)
    verdict = parse_verdict(reply.text)
    if verdict is None:
        logger.warning("a grade failed: the reply is neither yes nor no")
        return Grade(0.0, failed=True, usage=reply.usage)
    chances = score_tokens(reply.tokens)
    # The probabilities of some other word that looks like a verdict would contradict the reply.
    agreed = chances is not None and chances * verdict >= 0
    return Grade(chances if chances is not None and agreed else float(verdict), usage=reply.usage)


@dataclass(frozen=True, slots=True)
class LlmEvaluator:
    """Asks the model about every document, and about the strips of which the reader is unsure.

    Scores are on the model's scale. What the model fails to grade, the reader grades, rescaled and labelled;
    without a reader, the model is asked about every strip and a failed grade stays failed.
    """

    judge: Judge
    reader: Evaluator | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.judge.model.name

    def thresholds(self, *, language: Language) -> Thresholds:
        """`LLM_THRESHOLDS`, in both languages."""
        return LLM_THRESHOLDS

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage."""
        grades = self.judge.grade(question, texts=passages, kind="grade")
        failed = [place for place, grade in enumerate(grades) if grade.failed]
        if self.reader is None or not failed:
            return grades
        stand_ins = OnModelScale(self.reader).grade(question, passages=[passages[place] for place in failed])
        for place, grade in zip(failed, stand_ins, strict=True):
            grades[place] = replace(grade, usage=grades[place].usage, warning=FELL_BACK)
        return grades

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip of each group."""
        if self.reader is None:
            grades = self.judge.grade(question, texts=list(chain.from_iterable(groups)), kind="strip")
            return _regroup(grades, groups=groups)
        own = self.reader.thresholds(language=detect_language(question))
        rows = _cascade_strips(self.judge, self.reader, question=question, groups=groups, limits=own)
        return OnModelScale(self.reader).rescale_strips(question, rows=rows)


@dataclass(frozen=True, slots=True)
class OnModelScale:
    """The reader with its scores on the model's scale."""

    reader: Evaluator

    @property
    def name(self) -> str:
        """The reader's name."""
        return self.reader.name

    def thresholds(self, *, language: Language) -> Thresholds:
        """`LLM_THRESHOLDS`, in both languages."""
        return LLM_THRESHOLDS

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage."""
        own = self.reader.thresholds(language=detect_language(question))
        return [
            replace(grade, score=rescale(grade.score, source=own, target=LLM_THRESHOLDS))
            for grade in self.reader.grade(question, passages=passages)
        ]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip of each group."""
        return self.rescale_strips(question, rows=self.reader.grade_strips(question, groups=groups))

    def rescale_strips(self, question: str, *, rows: Sequence[Sequence[Grade]]) -> list[list[Grade]]:
        """Return strips that were graded on the reader's scale on the model's."""
        own = self.reader.thresholds(language=detect_language(question))
        return [
            [replace(grade, score=rescale_strip(grade.score, source=own, target=LLM_THRESHOLDS)) for grade in row]
            for row in rows
        ]


@dataclass(frozen=True, slots=True)
class CascadeEvaluator:
    """Lets the reader grade everything and asks the model about what decides: the best few documents that the reader
    does not rule out, and the strips next to the floor.

    Scores are on the reader's scale; where the model fails, the reader's own score stays, labelled. `chosen` gives the
    thresholds in force where they are not the reader's own.
    """

    judge: Judge
    reader: Evaluator
    chosen: Callable[[Language], Thresholds] | None = None

    @property
    def name(self) -> str:
        """The names of both."""
        return f"{self.reader.name} → {self.judge.model.name}"

    def thresholds(self, *, language: Language) -> Thresholds:
        """The thresholds in force."""
        return self.chosen(language) if self.chosen else self.reader.thresholds(language=language)

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage."""
        grades = self.reader.grade(question, passages=passages)
        limits = self.thresholds(language=detect_language(question))
        if any(grade.score >= max(SURE, limits.upper) for grade in grades):
            return grades
        open_ones = [place for place, grade in enumerate(grades) if grade.score > min(RULED_OUT, limits.lower)]
        best = sorted(open_ones, key=lambda place: -grades[place].score)[:MOST_DOCUMENTS]
        asked = [
            place for rank, place in enumerate(best) if rank < MOST_UNLIKELY or grades[place].score >= limits.lower
        ]
        texts = [passages[place] for place in asked]
        for place, grade in zip(asked, self.judge.grade(question, texts=texts, kind="grade"), strict=True):
            score = rescale(grade.score, source=LLM_THRESHOLDS, target=limits)
            grades[place] = _merged(grades[place], judged=grade, score=score)
        return grades

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip of each group."""
        limits = self.thresholds(language=detect_language(question))
        return _cascade_strips(self.judge, self.reader, question=question, groups=groups, limits=limits)


def _cascade_strips(
    judge: Judge, reader: Evaluator, *, question: str, groups: Sequence[Sequence[str]], limits: Thresholds
) -> list[list[Grade]]:
    """The reader's grades, corrected by the model near the floor; on the reader's scale."""
    texts = list(chain.from_iterable(groups))
    grades = list(chain.from_iterable(reader.grade_strips(question, groups=groups)))
    near = [place for place, grade in enumerate(grades) if abs(grade.score - limits.strip) <= STRIP_MARGIN]
    asked = sorted(near, key=lambda place: abs(grades[place].score - limits.strip))[:MOST_STRIPS]
    judged = judge.grade(question, texts=[texts[place] for place in asked], kind="strip")
    for place, grade in zip(asked, judged, strict=True):
        score = rescale_strip(grade.score, source=LLM_THRESHOLDS, target=limits)
        grades[place] = _merged(grades[place], judged=grade, score=score)
    return _regroup(grades, groups=groups)


def _merged(grade: Grade, *, judged: Grade, score: float) -> Grade:
    """The reader's grade with the model's score, or as it was where the model failed."""
    if judged.failed:
        return replace(grade, usage=judged.usage, warning=FELL_BACK)
    return replace(grade, score=score, usage=judged.usage)


def _regroup(grades: Iterable[Grade], *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
    remaining = iter(grades)
    return [[next(remaining) for _ in group] for group in groups]


def rescale(score: float, *, source: Thresholds, target: Thresholds) -> float:
    """Return a document's score on another evaluator's scale; thresholds fall on thresholds, between them linear."""
    return _interpolate(score, source=(source.lower, source.upper), target=(target.lower, target.upper))


def rescale_strip(score: float, *, source: Thresholds, target: Thresholds) -> float:
    """Return a strip's score on another evaluator's scale; floor falls on floor."""
    return _interpolate(score, source=(source.strip,), target=(target.strip,))


def _interpolate(score: float, *, source: tuple[float, ...], target: tuple[float, ...]) -> float:
    """Piecewise linear and increasing through (−1, −1), each pair of thresholds, and (1, 1)."""
    return float(np.interp(score, (-1.0, *source, 1.0), (-1.0, *target, 1.0)))
