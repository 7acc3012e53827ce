"""Noise, rejection, integration and counterfactual passages on RGB (arXiv 2309.01431), beside its published figures.

As there: five passages a question, a share of them noise; right when the answer string is in the answer. The passages
are given, so this measures evaluator, refinement and generator; plain RAG quotes the first four passages instead.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.answering import answered
from benchmarks.baselines import GivenPassages, passages_crag, plain_rag, remembering_evaluator
from benchmarks.common import Options, data_dir, environment, figures, finish, rate, read_jsonl, read_options, table
from config import Settings, load_settings
from schema import Answer
from stages import Evaluator

Row = dict[str, Any]

PASSAGES = 5
NOISE, REJECTION, INTEGRATION, FALSE, MIXED = "noise", "rejection", "integration", "counterfactual", "conflict"
PUBLISHED: Mapping[tuple[str, str, float], float] = {
    (REJECTION, "zh", 1.0): 0.433,
    (REJECTION, "en", 1.0): 0.450,
}
"""ChatGPT's rejections in the paper (arXiv 2309.01431), on its whole sets; the data here is a part of them, so the
figures stand beside each other and are no duel."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question with the passages that were found for it."""

    id: str
    kind: str
    language: str
    noise: float
    question: str
    passages: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]
    """The spellings of each thing that a right answer names."""
    false_answer: str = ""


def main() -> None:
    options = read_options(__doc__)
    folder = data_dir() / "rgb"
    settings = load_settings(trace=False)
    evaluator = remembering_evaluator(settings)
    rows = [
        row for task in tasks(options) for row in run(task, settings=settings, evaluator=evaluator, seed=options.seed)
    ]
    summary = summarise(rows)
    result = {
        "environment": environment(seed=options.seed, files=sorted(folder.glob("*.jsonl"))),
        "evaluator": evaluator.name,
        "figures": figures(summary, keys=("task", "lang", "noise")),
        "summary": summary,
        "rows": [
            {name: row[name] for name in ("id", "task", "noise", "system", "right", "refused", "fooled")}
            for row in rows
        ],
    }
    cases = [row for row in rows if row["system"] == "CRAG"]
    finish("rgb", result=result, options=options, text=table(summary), cases=cases)


def tasks(options: Options) -> Iterator[Task]:
    """All tasks of the data; `limit` is on the questions of each file."""
    folder = data_dir() / "rgb"
    for path in sorted(folder.glob("*.jsonl")):
        items = list(read_jsonl(path))
        if options.limit:
            items = random.Random(options.seed).sample(items, min(options.limit, len(items)))
        for item in items:
            yield from _tasks_of(item)


def _tasks_of(item: Row) -> Iterator[Task]:
    answers = tuple(tuple(_listed(part)) for part in _listed(item["answer"]))
    told = {"id": item["id"], "language": item["lang"], "question": item["query"], "answers": answers}
    noise = item["negative"]
    if item["task"] == "information_integration":
        for share in (0.0, 0.2, 0.4):
            passages = _integrated(item["positive_parts"], noise=noise, share=share)
            yield Task(**told, kind=INTEGRATION, noise=share, passages=passages)
        return
    for share in (0.0, 0.2, 0.4, 0.6, 0.8):
        yield Task(**told, kind=NOISE, noise=share, passages=_mixed(item["positive"], noise=noise, share=share))
    if len(noise) >= PASSAGES:
        yield Task(**told, kind=REJECTION, noise=1.0, passages=tuple(noise[:PASSAGES]))
    if item["task"] == "counterfactual":
        false = {**told, "false_answer": item["fake_answer"]}
        yield Task(**false, kind=FALSE, noise=0.0, passages=tuple(item["positive_wrong"][:PASSAGES]))
        both = (*item["positive"][: PASSAGES // 2], *item["positive_wrong"][: PASSAGES // 2])
        yield Task(**false, kind=MIXED, noise=0.0, passages=both)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _mixed(positive: Sequence[str], *, noise: Sequence[str], share: float) -> tuple[str, ...]:
    """Five passages, `share` of them noise; noise stands in where there are too few others, as in the paper's code."""
    wanted = PASSAGES - int(PASSAGES * share)
    kept = positive[: max(1, wanted)]
    return (*kept, *noise[: PASSAGES - len(kept)])


def _integrated(parts: Sequence[Sequence[str]], *, noise: Sequence[str], share: float) -> tuple[str, ...]:
    """One passage of each part first, then the parts' others in turn, then noise."""
    wanted = PASSAGES - int(PASSAGES * share)
    deepest = max(map(len, parts))
    turned = [part[depth] for depth in range(deepest) for part in parts if depth < len(part)]
    kept = turned[: max(wanted, len(parts))]
    return (*kept, *noise[: max(0, PASSAGES - len(kept))])


def run(task: Task, *, settings: Settings, evaluator: Evaluator, seed: int) -> Iterator[Row]:
    """Answer one task with CRAG and with plain RAG, its passages in a seeded order."""
    passages = list(task.passages)
    random.Random(f"{seed}{task.id}{task.noise}").shuffle(passages)
    crag = passages_crag(settings, evaluator=evaluator, retriever=GivenPassages(tuple(passages)))
    for system, pipeline in (("CRAG", crag), ("plain RAG", plain_rag(crag))):
        yield judged(pipeline.answer(task.question), task=task, system=system)


def judged(answer: Answer, *, task: Task, system: str) -> Row:
    """A case for the error browser."""
    found = not answer.refused and all(answered(part, text=answer.text) for part in task.answers)
    fooled = bool(task.false_answer) and not answer.refused and answered([task.false_answer], text=answer.text)
    right = answer.refused if task.kind == REJECTION else found
    missed = "refused" if answer.refused else "answer string not quoted"
    return {
        "id": f"{task.id} {task.kind} {task.noise}",
        "task": task.kind,
        "lang": task.language,
        "noise": task.noise,
        "system": system,
        "question": task.question,
        "expected": [" / ".join(part) for part in task.answers],
        "right": right,
        "refused": answer.refused,
        "fooled": fooled,
        "wrong": "" if right else f"{task.kind}: " + ("answered from noise" if task.kind == REJECTION else missed),
        "action": answer.verdict.action.value,
        "best_score": round(answer.verdict.best_score, 4),
        "parts": [part.question for part in answer.verdict.parts],
        "answer": answer.text,
        "documents": [[item.document.file, 1, round(item.grade.score, 3)] for item in answer.graded],
        "strips": [[s.document.file, 1, round(s.grade.score, 3), s.kept, s.text] for s in answer.knowledge.kept],
    }


def summarise(rows: Sequence[Row]) -> list[Row]:
    """One row for each task, language and share of noise."""
    places = sorted({(row["task"], row["lang"], row["noise"]) for row in rows})
    order = (NOISE, REJECTION, INTEGRATION, FALSE, MIXED)
    found = []
    for kind, language, noise in sorted(places, key=lambda place: (order.index(place[0]), place[1], place[2])):
        here = [row for row in rows if (row["task"], row["lang"], row["noise"]) == (kind, language, noise)]
        crag = [row for row in here if row["system"] == "CRAG"]
        plain = [row for row in here if row["system"] == "plain RAG"]
        disputed = kind in {FALSE, MIXED}
        found.append(
            {
                "task": kind,
                "lang": language,
                "noise": noise,
                "n": len(crag),
                "CRAG right": rate(crag, "right"),
                "CRAG refused": rate(crag, "refused"),
                "plain RAG right": rate(plain, "right"),
                "false answer shown": rate(crag, "fooled") if disputed else None,
                "ChatGPT (published)": PUBLISHED.get((kind, language, noise)),
            }
        )
    return found


if __name__ == "__main__":
    main()
