"""Wall time and calls a question before its answer: the cascade against one sequential call a document and strip.

Ten documents a question: those of the action cases, filled up with passages of other cases. The model is a loopback
server that answers from the labels after a fixed delay; `--error` makes it wrong for a share of the texts.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agent_model import build_chat_model
from benchmarks.common import data_dir, environment, finish, read_jsonl, read_options, table
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

DOCUMENTS = 10
PLAIN_WORKERS = 24
"""Questions of the plain design run side by side, each one call after the other; only waiting is shared."""

Case = dict[str, Any]


@dataclass
class Oracle:
    """What is true of (part, passage), and how often the model says otherwise."""

    error: float
    delay: float
    passages: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    active: int = 0
    rounds: int = 0

    def learn(self, case: Case, *, parts: Sequence[str]) -> None:
        """Take over the labels of a case; a passage with one of two facts answers a whole question partly."""
        nested = [item if isinstance(item, list) else [item] for item in case["answers"]]
        half = "Ambiguous" in case["expected_action"]
        for number, part in enumerate(parts):
            own = nested[number] if half and len(parts) == len(nested) else [text for item in nested for text in item]
            self.answers[part] = tuple(map(_plain, own))
            for text, label in zip(case["passages"], case["passage_labels"], strict=True):
                holds = bool(label) and (len(parts) == 1 or any(_plain(answer) in _plain(text) for answer in own))
                self.passages[part, _plain(text)] = ("Partly" if half and len(parts) == 1 else "Yes") if holds else "No"

    def reply(self, question: str, text: str) -> str:
        """Return Yes, Partly or No for a passage or a strip."""
        plain = _plain(text)
        said = self.passages.get((question, plain))
        if said is None:
            supported = any(
                plain in known for (part, known), word in self.passages.items() if part == question and word != "No"
            )
            said = "Yes" if supported and any(answer in plain for answer in self.answers.get(question, ())) else "No"
        chance = zlib.crc32(f"{question}\0{plain}".encode()) / 2**32
        return ("No" if said == "Yes" else "Yes") if chance < self.error else said


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()


@contextmanager
def loopback_model(oracle: Oracle) -> Iterator[str]:
    """Serve the oracle as an OpenAI-compatible chat model; yields its base URL."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            """Answer one chat request after the delay."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                # A request that meets no other one begins a round: true while one question runs at a time.
                oracle.rounds += oracle.active == 0
                oracle.active += 1
            time.sleep(oracle.delay)
            with lock:
                oracle.active -= 1
            message = body["messages"][-1]["content"]
            question, text = (_fenced(message, tag=tag) for tag in ("question", "passage"))
            data = json.dumps(_completion(oracle.reply(question, text))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _fenced(message: str, *, tag: str) -> str:
    return message.split(f"<{tag}>\n", 1)[1].split(f"\n</{tag}>", 1)[0].replace("&lt;", "<")


def _completion(word: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": word}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [choice],
        "usage": usage,
    }


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


def cases_of(folder: Path, *, limit: int, seed: int) -> list[Case]:
    """Return cases of both languages, each filled up to ten documents with passages of other cases."""
    chooser = random.Random(seed)
    chosen: list[Case] = []
    for language in LANGUAGES:
        cases = list(read_jsonl(folder / f"cases_{language}.jsonl"))
        chooser.shuffle(cases)
        for case in cases[:limit] if limit else cases:
            others = [
                text for other in chooser.sample(cases, 12) if other["id"] != case["id"] for text in other["passages"]
            ]
            filler = [text for text in others if text not in case["passages"]]
            documents = [*case["passages"], *chooser.sample(filler, DOCUMENTS - len(case["passages"]))]
            chooser.shuffle(documents)
            chosen.append({**case, "documents": documents})
    return chosen


def judge_of(settings: Settings) -> Judge:
    """Return the grading model of the settings."""
    model = build_chat_model(settings, role=Role.GRADE)
    assert model is not None
    return Judge(model)


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return calls, seconds and right actions of both designs, and their ratios."""
    count = len(rows)
    plain, cascade = (
        {
            "design": name,
            "calls a question": sum(row[name]["calls"] for row in rows) / count,
            "rounds a question": sum(row[name]["rounds"] for row in rows) / count,
            "processor seconds": sum(row[name]["cpu"] or 0.0 for row in rows) / count if name == "cascade" else None,
            "seconds a question": sum(row[name]["seconds"] for row in rows) / count,
            "action right": sum(row[name]["right"] for row in rows) / count,
        }
        for name in ("plain", "cascade")
    )
    ratio = {
        "design": "plain / cascade",
        "calls a question": plain["calls a question"] / max(0.01, cascade["calls a question"]),
        "rounds a question": plain["rounds a question"] / max(0.01, cascade["rounds a question"]),
        "processor seconds": None,
        "seconds a question": plain["seconds a question"] / cascade["seconds a question"],
        "action right": None,
    }
    return [plain, cascade, ratio]


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
    reader = ReaderEvaluator(Reader())
    with loopback_model(oracle) as url:
        values: dict[str, Any] = {"llm_provider": "openai", "openai_api_base": url, "llm_model": "loopback"}
        cascade = CascadeEvaluator(judge_of(load_settings(**values)), reader=reader)
        ours = [run(case, evaluator=cascade, oracle=oracle) for case in cases]
        # The plain designs wait on one call at a time; a limit of one per question is one process each.
        plain = LlmEvaluator(judge_of(load_settings(**values, llm_concurrency=PLAIN_WORKERS)))
        with ThreadPoolExecutor(PLAIN_WORKERS) as pool:
            theirs = list(pool.map(lambda case: run(case, evaluator=Sequential(plain), oracle=oracle), cases))
    rows = [
        {
            "id": case["id"],
            "kind": case["kind"],
            "expected": case["expected_action"],
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
    lines = summary(rows)
    same = sum(row["plain"]["action"] == row["cascade"]["action"] for row in rows) / len(rows)
    what = f"{len(rows)} questions, {DOCUMENTS} documents each, {delay} s a call, model error {error}"
    text = f"{what}\n\n{table(lines)}\n\nsame action: {same:.3f}"
    files = [folder / f"cases_{language}.jsonl" for language in LANGUAGES]
    result = {
        "environment": environment(seed=options.seed, files=files),
        "delay": delay,
        "error": error,
        "summary": lines,
        "same_action": same,
        "rows": rows,
    }
    finish("llm_cost", result=result, options=options, text=text)


@dataclass(frozen=True, slots=True)
class Sequential:
    """The plain design: one text after the other."""

    evaluator: LlmEvaluator

    @property
    def name(self) -> str:
        """The model's name."""
        return self.evaluator.name

    def thresholds(self, *, language: Any) -> Any:
        """The model's thresholds."""
        return self.evaluator.thresholds(language=language)

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Any]:
        """One call after the other."""
        return [self.evaluator.grade(question, passages=[text])[0] for text in passages]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Any]]:
        """One call after the other."""
        return [[self.evaluator.grade_strips(question, groups=[[text]])[0][0] for text in group] for group in groups]


if __name__ == "__main__":
    main()
