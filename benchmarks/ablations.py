"""What each part is worth: the ablations of the paper's tables, and how sensitive the answers are to the settings.

Three parts. On the handwritten PDF questions (web off): refinement, its order and its sizes, the parts of retrieval,
the thresholds of the paper. On the question sets with an offline web: each action taken away, as in the paper (a
removed action becomes Ambiguous; without Ambiguous there is one threshold). And sweeps of k, strip length and
thresholds, which `plots` draws.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.answering import CRAG, HANDWRITTEN, PLAIN, STORE, answered, build_systems, built, marks, pdf_settings
from benchmarks.baselines import (
    Asked,
    Bm25Retriever,
    WholeDocuments,
    passages_crag,
    plain_rag,
    remembering_evaluator,
    whole,
)
from benchmarks.common import Options, data_dir, environment, figures, finish, rate, read_jsonl, read_options, table
from benchmarks.strip_variants import FixedWidthRefiner, ScoreOrder, fixed_words, sentence_groups
from config import Settings, load_settings
from crag import Crag
from i18n import Language
from knowledge_base import KnowledgeBase, open_knowledge_base
from refinement import StripRefiner
from retriever import HybridRetriever
from schema import Action, Document, Origin, SearchMode, SearchReport, Thresholds
from stages import Evaluator

Row = dict[str, Any]
Limits = Callable[[Language], Thresholds]

FULL = "full"
DEEPEST = 20
STRIP_FLOOR_OF_PAPER = -0.5
PAPER = {
    "PopQA": Thresholds(0.592, -0.995, STRIP_FLOOR_OF_PAPER),
    "PubHealth, ARC": Thresholds(0.5, -0.915, STRIP_FLOOR_OF_PAPER),
    "Biography": Thresholds(0.95, -0.91, STRIP_FLOOR_OF_PAPER),
}
SWEEPS: dict[str, tuple[float, ...]] = {
    "k": (1, 3, 5, 10, 15, 20),
    "strip width": (80, 150, 220, 350, 600),
    "upper": (-0.4, 0.0, 0.35, 0.6, 0.9),
    "lower": (-0.95, -0.8, -0.55, -0.3, 0.0, 0.3),
    "strip floor": (-1.0, -0.8, -0.6, -0.3, 0.0, 0.3, 0.6),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE, help="folder of the store that `answering` made")
    parser.add_argument("--questions", type=int, default=20, help="of each language and store in the action ablation")
    parser.add_argument("--no-sweeps", action="store_true")
    options = read_options(__doc__, parser=parser)
    settings = pdf_settings(options.rest.store)
    evaluator = remembering_evaluator(settings)
    path = data_dir() / "pdf" / "pdf_qa.jsonl"
    questions = [row for row in read_jsonl(path) if row["source"] == HANDWRITTEN]
    if options.limit:
        questions = random.Random(options.seed).sample(questions, min(options.limit, len(questions)))
    with open_knowledge_base(settings) as knowledge_base:
        built(knowledge_base)
        bench = PdfBench(settings, evaluator=evaluator, knowledge_base=knowledge_base, questions=questions)
        parts = [bench.row(name, crag) for name, crag in variants(bench).items()]
        sweeps = [] if options.rest.no_sweeps else sweep(bench)
    actions = action_rows(settings, evaluator=evaluator, options=options)
    result = {
        "environment": environment(seed=options.seed, files=[path]),
        "evaluator": evaluator.name,
        "figures": figures(parts, keys=("variant",)) | figures(actions, keys=("variant",)),
        "parts": parts,
        "actions": actions,
        "sweeps": sweeps,
    }
    text = (
        f"Parts, {len(questions)} handwritten PDF questions, web off:\n\n{table(parts)}\n\n"
        f"Actions, passages with an offline web:\n\n{table(actions)}"
    )
    finish("ablations", result=result, options=options, text=text)


@dataclass
class RememberingRetriever:
    """Retrieves deeply once for each question, whatever the limit."""

    inner: Asked
    known: dict[str, list[Document]] = field(default_factory=dict)

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = ()) -> list[Document]:
        """The first `limit` of what was found."""
        if question not in self.known:
            self.known[question] = self.inner.retrieve(question, limit=DEEPEST)
        return self.known[question][:limit]


class PdfBench:
    """The handwritten questions, and a pipeline that reads nothing twice."""

    def __init__(
        self, settings: Settings, *, evaluator: Evaluator, knowledge_base: KnowledgeBase, questions: Sequence[Row]
    ) -> None:
        self.settings, self.evaluator = settings, evaluator
        self.knowledge_base, self.questions = knowledge_base, questions
        made = build_systems(settings, knowledge_base=knowledge_base)[CRAG]
        self.crag = replace(
            made,
            retriever=RememberingRetriever(made.retriever),
            evaluator=evaluator,
            refiner=StripRefiner(evaluator, max_strips=settings.max_strips),
        )

    def retriever(self, **weights: float) -> RememberingRetriever:
        """A retriever with other weights."""
        settings = self.settings.model_copy(update=weights)
        embedder = self.knowledge_base.embedder
        return RememberingRetriever(HybridRetriever(self.knowledge_base, embedder=embedder, settings=settings))

    def limits(self, **changes: float) -> Limits:
        """The calibrated thresholds with changes."""
        return lambda language: replace(self.crag.thresholds(language), **changes)

    def row(self, variant: str, crag: Crag) -> Row:
        """What the handwritten questions give with a variant of the pipeline."""
        rows = []
        for question in self.questions:
            answer = crag.answer(question["question"])
            knowledge = answer.knowledge.text
            rows.append(
                {
                    **marks(answer, row=question),
                    "answerable": question["answerable"],
                    "refused": answer.refused,
                    "correct": answer.verdict.action is Action.CORRECT,
                    "known": answered(question["answers"], text=knowledge),
                    "characters": len(knowledge),
                }
            )
        answerable = [row for row in rows if row["answerable"]]
        unanswerable = [row for row in rows if not row["answerable"]]
        return {
            "variant": variant,
            "page cited": rate(answerable, "cited"),
            "cited first": rate(answerable, "first_cited"),
            "answer string": rate(answerable, "contains"),
            "answer in knowledge": rate(answerable, "known"),
            "knowledge characters": round(sum(row["characters"] for row in answerable) / max(1, len(answerable))),
            "false refusals": rate(answerable, "refused"),
            "refused": rate(unanswerable, "refused"),
            "judged correct": rate(answerable, "correct"),
        }


def variants(bench: PdfBench) -> dict[str, Crag]:
    """The pipeline, and the pipeline with one thing changed."""
    full, evaluator, most = bench.crag, bench.evaluator, bench.settings.max_strips

    def grades(question: str, texts: Sequence[str]) -> list[Any]:
        return evaluator.grade(question, passages=texts)

    changed: dict[str, dict[str, Any]] = {
        FULL: {},
        "without refinement (documents whole)": {"refiner": WholeDocuments(grades=grades)},
        "three best documents whole (paper: selection)": {"refiner": WholeDocuments(limit=3, grades=grades)},
        "groups of three sentences (paper: excerption)": {
            "refiner": FixedWidthRefiner(evaluator, cut=sentence_groups, max_strips=most)
        },
        "fifty words (paper: fixed_num)": {"refiner": FixedWidthRefiner(evaluator, cut=fixed_words, max_strips=most)},
        "score order instead of document order": {"refiner": ScoreOrder(full.refiner)},
        "without a floor for strips": {"thresholds": bench.limits(strip=-1.0)},
        "without splitting compound questions": {"split": whole},
        "without BM25": {"retriever": bench.retriever(bm25_weight=0.0)},
        "without vectors": {"retriever": bench.retriever(dense_weight=0.0)},
    }
    for name, thresholds in PAPER.items():
        changed[f"thresholds of the paper ({name})"] = {"thresholds": _fixed(thresholds)}
    made = {name: replace(full, **parts) for name, parts in changed.items()}
    return {**made, f"without evaluation ({PLAIN})": plain_rag(full)}


def _fixed(thresholds: Thresholds) -> Limits:
    return lambda _language: thresholds


def sweep(bench: PdfBench) -> list[Row]:
    """One row for each value of each setting; the others stay at their defaults."""
    rows = []
    for name, values in SWEEPS.items():
        for value in values:
            row = bench.row(name, _swept(bench, name=name, value=value))
            rows.append({"setting": name, "value": value, **{k: v for k, v in row.items() if k != "variant"}})
    return rows


def _swept(bench: PdfBench, *, name: str, value: float) -> Crag:
    match name:
        case "k":
            return replace(bench.crag, limit=int(value))
        case "strip width":
            refiner = StripRefiner(bench.evaluator, max_strips=bench.settings.max_strips, strip_width=int(value))
            return replace(bench.crag, refiner=refiner)
        case "upper":
            return replace(bench.crag, thresholds=_ordered(bench, upper=value))
        case "lower":
            return replace(bench.crag, thresholds=_ordered(bench, lower=value))
    return replace(bench.crag, thresholds=bench.limits(strip=value))


def _ordered(bench: PdfBench, **changes: float) -> Limits:
    """Thresholds with a change; the other one gives way where it would be on the wrong side."""

    def limits(language: Language) -> Thresholds:
        own = replace(bench.crag.thresholds(language), **changes)
        if "upper" in changes:
            return replace(own, lower=min(own.lower, own.upper))
        return replace(own, upper=max(own.lower, own.upper))

    return limits


class OfflineWeb:
    """A web of passages, searched by BM25; counts how often it is asked."""

    def __init__(self, passages: Sequence[Row]) -> None:
        texts, names = [row["text"] for row in passages], [row["pid"] for row in passages]
        self.found = Bm25Retriever(texts, names=names, origin=Origin.WEB)
        self.asked = 0

    def search(self, question: str, *, language: Language) -> SearchReport:
        """The five best passages."""
        self.asked += 1
        documents = self.found.retrieve(question, limit=5)
        return SearchReport(SearchMode.AUTO, queries=(question,), documents=tuple(documents), provider="offline")


def action_rows(settings: Settings, *, evaluator: Evaluator, options: Options) -> list[Row]:
    """The question sets with each action taken away in turn, and with the web never or always asked."""
    totals: dict[str, list[Row]] = {}
    for language in ("en", "zh"):
        passages = list(read_jsonl(data_dir() / "qa" / f"passages_{language}.jsonl"))
        inside = [row for row in passages if row["store"] == "kb"]
        web = OfflineWeb([row for row in passages if row["store"] == "web"])
        retriever = RememberingRetriever(
            Bm25Retriever([row["text"] for row in inside], names=[row["pid"] for row in inside])
        )
        crag = passages_crag(load_settings(trace=False), evaluator=evaluator, retriever=retriever)
        crag = replace(crag, searcher=web, search_mode=SearchMode.AUTO)
        for name, changed in action_variants(crag).items():
            for row in _sampled(language, options=options):
                totals.setdefault(name, []).append(_asked(changed, web=web, row=row))
    return [_action_row(name, rows=rows) for name, rows in totals.items()]


def action_variants(crag: Crag) -> dict[str, Crag]:
    """Full, each action away, and the web never or always asked."""

    def changed(**parts: float) -> Limits:
        return lambda language: replace(crag.thresholds(language), **parts)

    def single(language: Language) -> Thresholds:
        own = crag.thresholds(language)
        return replace(own, lower=own.upper)

    return {
        FULL: crag,
        "without Correct": replace(crag, thresholds=changed(upper=1.01)),
        "without Incorrect": replace(crag, thresholds=changed(lower=-1.01)),
        "without Ambiguous": replace(crag, thresholds=single),
        "web never asked": replace(crag, search_mode=SearchMode.OFF),
        "plain RAG, no evaluation": plain_rag(crag),
    }


def _sampled(language: str, *, options: Options) -> list[Row]:
    rows = list(read_jsonl(data_dir() / "qa" / f"questions_{language}.jsonl"))
    found = []
    for store in ("kb", "web", "none"):
        here = [row for row in rows if row["store"] == store]
        wanted = min(options.limit or options.rest.questions, len(here))
        found += random.Random(options.seed).sample(here, wanted)
    return found


def _asked(crag: Crag, *, web: OfflineWeb, row: Row) -> Row:
    before = web.asked
    answer = crag.answer(row["question"])
    return {
        "store": row["store"],
        "right": not answer.refused and answered(row["answers"], text=answer.text),
        "refused": answer.refused,
        "searched": web.asked > before,
        "characters": len(answer.text),
    }


def _action_row(name: str, *, rows: Sequence[Row]) -> Row:
    stores = {store: [row for row in rows if row["store"] == store] for store in ("kb", "web", "none")}
    return {
        "variant": name,
        "n": len(rows),
        "right, answer in the documents": rate(stores["kb"], "right"),
        "right, answer on the web": rate(stores["web"], "right"),
        "refused, answer nowhere": rate(stores["none"], "refused"),
        "web searches a question": rate(rows, "searched"),
    }


if __name__ == "__main__":
    main()
