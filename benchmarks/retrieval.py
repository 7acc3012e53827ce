"""Retrieval alone: gold page (PDFs) and gold passage (questions and answers) among the first k; vectors, BM25, both.

A question whose language is not that of its document or passage counts as cross-language.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from benchmarks.answering import STORE, pdf_settings
from benchmarks.common import data_dir, environment, figures, finish, quantile, read_jsonl, read_options, table
from benchmarks.passages import PassageStore, Sample, crossed, read_sample
from config import Settings, load_settings
from embeddings import build_embedder
from knowledge_base import KnowledgeBase, open_knowledge_base
from language import detect_language
from retriever import HybridRetriever, Store
from schema import Document

Row = dict[str, Any]
Gold = Callable[[Document], bool]

CHANNELS = {
    "vectors": {"bm25_weight": 0.0},
    "BM25": {"dense_weight": 0.0},
    "both": {},
}
DEPTHS = (1, 5, 10)
QUESTIONS, PASSAGES = 300, 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pdf-only", action="store_true", help="leave the passages out")
    options = read_options(__doc__, parser=parser)
    folder = data_dir()
    rows = pdf_rows(limit=options.limit)
    if not options.rest.pdf_only:
        number = options.limit or QUESTIONS
        embedder = build_embedder(load_settings())
        for name, sample in samples(folder, number=number, seed=options.seed).items():
            store = PassageStore(sample.passages, embedder=embedder)
            rows += passage_rows(store, sample=sample, name=name)
            store.close()
    summary = summarise(rows)
    result = {
        "environment": environment(seed=options.seed, files=[folder / "pdf" / "pdf_qa.jsonl"]),
        "figures": figures(summary, keys=("set", "questions", "channel")),
        "summary": summary,
    }
    finish(
        "retrieval",
        result=result,
        options=options,
        text=table(summary),
        cases=[row for row in rows if row["channel"] == "both"],
    )


def pdf_rows(*, limit: int) -> list[Row]:
    """Rank of the gold page for each answerable question, over all PDFs together."""
    questions = [row for row in read_jsonl(data_dir() / "pdf" / "pdf_qa.jsonl") if row["answerable"] and row["pages"]]
    settings = pdf_settings(STORE)
    rows: list[Row] = []
    with open_knowledge_base(settings) as knowledge_base:
        knowledge_base.build()
        languages = file_languages(knowledge_base, files={row["pdf"] for row in questions})
        seen: Counter[str] = Counter()
        for question in questions:
            seen[question["source"]] += 1
            if limit and seen[question["source"]] > limit:
                continue
            cross = languages[question["pdf"]] != question["lang"]
            rows += ranks(
                question["question"],
                store=knowledge_base,
                settings=settings,
                gold=partial(on_page, file=question["pdf"], wanted=set(question["pages"])),
                known={"id": question["id"], "set": question["source"], "lang": question["lang"], "cross": cross},
            )
    return rows


def on_page(document: Document, *, file: str, wanted: set[int]) -> bool:
    """Tell whether some of the document's text stands on a wanted page of the file."""
    regions = document.regions(0, len(document.text))
    return document.file == file and any(region.page in wanted for region in regions)


def is_passage(document: Document, *, wanted: set[str]) -> bool:
    """Tell whether the document is a wanted passage."""
    return document.chunk is not None and document.chunk.id in wanted


def file_languages(knowledge_base: KnowledgeBase, *, files: Iterable[str]) -> dict[str, str]:
    """Language of each file by its blocks."""
    found: dict[str, str] = {}
    for file in files:
        found[file] = detect_language(" ".join(block.text for block in knowledge_base.blocks(file)[:400]))
    return found


def samples(folder: Any, *, number: int, seed: int) -> dict[str, Sample]:
    """The passage sets: each language alone, and questions in one language on passages of the other."""
    drawn = {
        f"passages {language}": read_sample(folder, language=language, questions=number, passages=PASSAGES, seed=seed)
        for language in ("en", "zh")
    }
    drawn["passages zh cross"] = crossed(folder, asked="en", found="zh", limit=number, seed=seed)
    drawn["passages en cross"] = crossed(folder, asked="zh", found="en", limit=number, seed=seed)
    return {name: sample for name, sample in drawn.items() if sample.questions}


def passage_rows(store: PassageStore, *, sample: Sample, name: str) -> list[Row]:
    """Rank of a gold passage for each question."""
    rows: list[Row] = []
    for question in sample.questions:
        known = {"id": question["qid"], "set": "passages", "lang": question["lang"], "cross": name.endswith("cross")}
        gold = set(question["gold_pids"])
        rows += ranks(
            question["question"],
            store=store,
            settings=load_settings(),
            gold=partial(is_passage, wanted=gold),
            known=known,
        )
    return rows


def ranks(question: str, *, store: Store, settings: Settings, gold: Gold, known: Row) -> list[Row]:
    """Rank of the first gold document (0: not among the first ten) and milliseconds, for each choice of channels."""
    rows = []
    for channel, weights in CHANNELS.items():
        chosen = settings.model_copy(update=weights)
        retriever = HybridRetriever(store, embedder=build_embedder(settings), settings=chosen)
        started = time.perf_counter()
        documents = retriever.retrieve(question, limit=DEPTHS[-1])
        seconds = time.perf_counter() - started
        rank = next((place for place, document in enumerate(documents, start=1) if gold(document)), 0)
        wrong = "" if rank else f"{known['set']}: not among the first {DEPTHS[-1]}"
        rows.append(
            {**known, "channel": channel, "question": question, "rank": rank, "wrong": wrong, "ms": 1000 * seconds}
        )
    return rows


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Share of questions with gold among the first k, by set, language and channel."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        questions = f"{row['lang']}{' cross' if row['cross'] else ''}"
        groups[row["set"], questions, row["channel"]].append(row)
    return [
        {
            "set": name,
            "questions": questions,
            "channel": channel,
            "n": len(found),
            **{f"@{depth}": sum(0 < row["rank"] <= depth for row in found) / len(found) for depth in DEPTHS},
            "ms p50": quantile([row["ms"] for row in found], q=0.5),
        }
        for (name, questions, channel), found in sorted(groups.items(), key=lambda item: item[0][:2])
    ]


if __name__ == "__main__":
    main()
