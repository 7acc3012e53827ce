"""Wall time and calls a question before its answer: the cascade against one sequential call a document and strip.

Ten documents a question: those of the action cases, filled up with passages of other cases. The model is a loopback
server that answers from the labels after a fixed delay, whatever the number of calls at once; `--error` makes it wrong
for a share of the texts. The default of one second a call is an assumption: what a hosted model needs for a passage
and one word, network included, is of that order, and a model on one's own machine is slower.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from agent_model import build_chat_model
from benchmarks.common import data_dir, environment, figures, finish, read_options, table
from benchmarks.oracle import DOCUMENTS, Case, Oracle, cases_of, loopback_model
from config import Settings, load_settings
from crag import judge
from endpoints import Role
from evaluator import ReaderEvaluator
from i18n import LANGUAGES
from language import detect_language
from llm_evaluator import CascadeEvaluator, Judge, LlmEvaluator
from question_parts import split_question
from reader import Reader
from refinement import StripRefiner
from schema import Action, Document, Origin
from stages import Evaluator

PLAIN_WORKERS = 8
"""Questions of the plain design run side by side, each one call after the other; only waiting is shared."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One question's way to its knowledge; `rounds` and `cpu` hold where questions run one at a time."""

    action: Action
    calls: int
    seconds: float
    rounds: int
    cpu: float


def run(case: Case, *, evaluator: Evaluator, oracle: Oracle) -> Ran:
    """Grade, trigger and refine as the pipeline does."""
    started, rounds, cpu = time.perf_counter(), oracle.rounds, time.process_time()
    parts = split_question(case["question"]) or [case["question"]]
    limits = evaluator.thresholds(language=detect_language(case["question"]))
    judged = judge(evaluator, parts=parts, passages=case["documents"], thresholds=limits)
    grades = list(judged.grades)
    strips = []
    if judged.verdict.action is not Action.INCORRECT:
        relevant = [
            Document(text=text, origin=Origin.KB, rank=rank, file=f"{rank}.pdf")
            for rank, (text, grade) in enumerate(zip(case["documents"], judged.grades, strict=True), start=1)
            if grade.failed or grade.score >= limits.lower
        ]
        knowledge = StripRefiner(evaluator).refine(parts, documents=relevant, thresholds=limits)
        strips = [strip.grade for strip in knowledge.strips]
    calls = sum(grade.usage.llm_calls for grade in (*grades, *strips))
    return Ran(
        judged.verdict.action,
        calls=calls,
        seconds=time.perf_counter() - started,
        rounds=oracle.rounds - rounds,
        cpu=time.process_time() - cpu,
    )


def judge_of(settings: Settings) -> Judge:
    """Return the grading model of the settings."""
    model = build_chat_model(settings, role=Role.GRADE)
    assert model is not None
    return Judge(model)


def summary(rows: Sequence[Mapping[str, Any]], *, delay: float) -> list[dict[str, Any]]:
    """Return calls, seconds and right actions of both designs, and their ratios; waiting is rounds times the delay."""

    def mean(name: str, column: str) -> float:
        return sum(float(row[name][column]) for row in rows) / len(rows)

    plain, cascade = (
        {
            "design": name,
            "calls a question": mean(name, "calls"),
            "rounds a question": mean(name, "rounds"),
            "waiting s": mean(name, "rounds") * delay,
            "own processor s": mean(name, "cpu") if name == "cascade" else None,
            "seconds a question": mean(name, "seconds"),
            "action right": mean(name, "right"),
        }
        for name in ("plain", "cascade")
    )
    compared = ("calls a question", "rounds a question", "seconds a question")
    ratio = {
        name: float(str(plain[name])) / max(0.01, float(str(cascade[name]))) if name in compared else None
        for name in plain
    }
    return [plain, cascade, {**ratio, "design": "ratio"}]


def run_both(cases: Sequence[Case], *, oracle: Oracle) -> list[dict[str, Any]]:
    """Return a row a case: what each design decided and what it cost."""
    reader = ReaderEvaluator(Reader())
    with loopback_model(oracle) as url:
        values: dict[str, Any] = {"llm_provider": "openai", "openai_api_base": url, "llm_model": "loopback"}
        cascade = CascadeEvaluator(judge_of(load_settings(**values)), reader=reader)
        # Clients and models are loaded once a process, not once a question.
        run(cases[0], evaluator=cascade, oracle=oracle)
        ours = [run(case, evaluator=cascade, oracle=oracle) for case in cases]
        # Questions of the plain design run side by side, each with one call open at a time.
        plain = LlmEvaluator(judge_of(load_settings(**values, llm_concurrency=PLAIN_WORKERS)))
        with ThreadPoolExecutor(PLAIN_WORKERS) as pool:
            theirs = list(pool.map(lambda case: run(case, evaluator=Sequential(plain), oracle=oracle), cases))
    return [
        {
            "id": case["id"],
            "kind": case["kind"],
            "expected_action": case["expected_action"],
            **{
                name: {
                    "action": ran.action.value,
                    "calls": ran.calls,
                    "seconds": round(ran.seconds, 3),
                    "rounds": ran.calls if name == "plain" else ran.rounds,
                    "cpu": None if name == "plain" else round(ran.cpu, 3),
                    "right": ran.action.value.capitalize() in case["acceptable_actions"],
                }
                for name, ran in (("plain", slow), ("cascade", fast))
            },
        }
        for case, fast, slow in zip(cases, ours, theirs, strict=True)
    ]


def main() -> None:
    """Run both designs on the same cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds a call of the model takes")
    parser.add_argument("--error", type=float, default=0.0, help="share of texts that the model gets wrong")
    options = read_options(__doc__, parser=parser)
    delay, error = options.rest.delay, options.rest.error
    folder = data_dir() / "action"
    cases = cases_of(folder, limit=options.limit, seed=options.seed)
    oracle = Oracle(error=error, delay=delay)
    for case in cases:
        oracle.learn(case, parts=split_question(case["question"]) or [case["question"]])
    rows = run_both(cases, oracle=oracle)
    lines = summary(rows, delay=delay)
    same = sum(row["plain"]["action"] == row["cascade"]["action"] for row in rows) / len(rows)
    what = f"{len(rows)} questions, {DOCUMENTS} documents each, {delay} s a call, model error {error}"
    text = f"{what}\n\n{table(lines)}\n\nsame action: {same:.3f}"
    files = [folder / f"cases_{language}.jsonl" for language in LANGUAGES]
    result = {
        "environment": environment(seed=options.seed, files=files),
        "delay": delay,
        "error": error,
        "summary": lines,
        "figures": figures(lines, keys=("design",)),
        "same_action": same,
        "rows": rows,
    }
    finish("llm_cost", result=result, options=options, text=text)


@dataclass(frozen=True, slots=True)
class Sequential:
    """The plain design: one text after the other, whatever part of the question it is graded for."""

    evaluator: LlmEvaluator
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.evaluator.name

    def thresholds(self, *, language: Any) -> Any:
        """The model's thresholds."""
        return self.evaluator.thresholds(language=language)

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Any]:
        """One call after the other."""
        with self.lock:
            return [self.evaluator.grade(question, passages=[text])[0] for text in passages]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Any]]:
        """One call after the other."""
        with self.lock:
            return [[self.evaluator.grade_strips(question, groups=[[text]])[0][0] for text in row] for row in groups]


if __name__ == "__main__":
    main()
