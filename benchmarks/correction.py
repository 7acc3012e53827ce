"""Correcting: plain RAG, CRAG without search, CRAG with search, on ../shared/data/qa, Chinese and English.

The passages of store `kb` are the knowledge base; those of store `web` are a folder that the library provider serves;
those of store `none` are nowhere. Each language has its own (some passages are translations of each other). Runs:

- plain: the same retriever and generator without evaluation: the first passages are the answer;
- off: CRAG, web search off;
- search: CRAG, web search by the library provider;
- inside (store `web` only): CRAG, web search off, with the web's passages in the knowledge base: what search can reach.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sqlite3
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.answering import answered
from benchmarks.baselines import plain_rag
from benchmarks.common import Options, data_dir, environment, figures, finish, rate, read_jsonl, read_options, table
from chunker import split_blocks
from config import Settings, load_settings
from crag import Crag, build_crag
from embeddings import Embedder, build_embedder
from i18n import Language
from knowledge_base import KnowledgeBase
from retriever import HybridRetriever
from schema import FULL_PAGE, Action, Answer, Answered, Block, BlockParser, BlockType, Chunk, SearchMode, SearchOutcome
from web_index import Passage, add_passages, create_index, find_ranked
from web_library import LibraryProvider

Row = dict[str, Any]

LANGUAGES: tuple[Language, ...] = ("en", "zh")
STORES = ("kb", "web", "none")
TEXTS = ("question", "expected", "answer")
"""What is not stored with a result."""
EMBEDDED_AT_ONCE = 256
"""Passages whose vectors are kept in one file, so that a run that was stopped goes on from there."""
DEFAULT_LIMIT = 20
"""Questions of each store and language unless --limit says otherwise."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("artifacts/bench/correction"), help="folder of what is kept")
    parser.add_argument(
        "--passages",
        type=int,
        default=0,
        help="in the knowledge base at most so many of each store and language; 0 is all",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="for each language; what is done by then counts",
    )
    parser.add_argument("--language", choices=LANGUAGES, default="", help="this one only")
    parser.add_argument("--beside", type=Path, help="stored result of the other language, to be told in the same table")
    options = read_options(__doc__, parser=parser)
    folder, work = data_dir() / "qa", options.rest.work
    earlier = json.loads(options.rest.beside.read_text(encoding="utf-8")) if options.rest.beside else {}
    rows: list[Row] = earlier.get("rows", [])
    ran: dict[str, Any] = earlier.get("ran", {})
    for language in [options.rest.language] if options.rest.language else LANGUAGES:
        questions = sample(folder, language=language, options=options)
        passages = chosen_passages(
            folder, language=language, questions=questions, limit=options.rest.passages, seed=options.seed
        )
        web = work / f"web_{language}"
        write_library(web, passages=list(read_jsonl(folder / f"passages_{language}.jsonl")))
        settings = load_settings(
            data_dir=work / language, trace=False, web_search="auto", web_providers=("library",), web_library_dir=web
        )
        LibraryProvider(settings, folder=web).refresh()
        inside = MemoryStore(as_chunks(passages, settings=settings), embedder=build_embedder(settings), cache=work)
        outside = inside.only({row["pid"] for row in passages if row["store"] == "kb"})
        crag = make_crag(settings, store=outside)
        everything = cast("KnowledgeBase", inside)
        reach = replace(crag, retriever=HybridRetriever(everything, embedder=inside.embedder, settings=settings))
        end = time.monotonic() + 60 * options.rest.minutes
        for question in questions:
            if time.monotonic() < end:
                rows += ask(question, crag=crag, reach=reach)
        ran[language] = {
            "embedder": inside.embedder.name,
            "evaluator": crag.evaluator.name,
            "generator": crag.generator.name,
            "thresholds": asdict(crag.thresholds(language)),
            "chunks outside": len(outside.ids),
            "chunks inside": len(inside.ids),
        }
    summary, reached, ends = summarise(rows), targets(rows), endings(rows)
    result = {
        "environment": environment(seed=options.seed, files=sorted(folder.glob("*.jsonl"))),
        "ran": ran,
        "summary": summary,
        "targets": reached,
        "endings": ends,
        "figures": figures(summary, keys=("language", "store", "run")),
        "rows": [{name: value for name, value in row.items() if name not in TEXTS} for row in rows],
    }
    text = f"{table(summary)}\n\n{table(reached)}\n\nQuestions of the web, with search:\n\n{table(ends)}"
    finish(
        "correction", result=result, options=options, text=text, cases=[row for row in rows if row["run"] == "search"]
    )


def make_crag(settings: Settings, *, store: MemoryStore) -> Crag:
    """The pipeline of the settings over passages in memory."""
    return build_crag(settings, knowledge_base=cast("KnowledgeBase", store))


def ask(question: Row, *, crag: Crag, reach: Crag) -> Iterable[Row]:
    """All runs of one question; the reader remembers passages, so that they cost little more than one."""
    off, auto = SearchMode.OFF, SearchMode.AUTO
    runs = {"plain": (plain_rag(crag), off), "off": (crag, off), "search": (crag, auto)}
    if question["store"] == "web":
        runs["inside"] = (reach, off)
    for run, (pipeline, mode) in runs.items():
        events = pipeline.stream(question["question"], search_mode=mode)
        answer = next(event.answer for event in events if isinstance(event, Answered))
        yield judge(answer, question=question, run=run)


def judge(answer: Answer, *, question: Row, run: str) -> Row:
    """What one run did with one question."""
    expected = "correct" if run == "inside" else question["expected_action"].lower()
    found = not answer.refused and answered(question["answers"], text=answer.text)
    end = "answered" if found else ending(answer, answers=question["answers"])
    right = answer.refused if question["store"] == "none" else found
    return {
        "id": f"{question['qid']} {run}",
        "lang": question["lang"],
        "store": question["store"],
        "run": run,
        "action": answer.verdict.action.value,
        "action_right": answer.verdict.action.value == expected,
        "contains": found,
        "refused": answer.refused,
        "unfounded": not answer.refused and not found,
        "wrong": "" if right else f"{question['store']}, {run}: {end}",
        "best_score": answer.verdict.best_score,
        "pages": len(answer.search.documents),
        "outcome": answer.search.outcome.value,
        "end": end,
        "error": answer.search.error_code,
        "seconds": answer.seconds.total,
        "question": question["question"],
        "expected": question["answers"],
        "answer": answer.text,
    }


def ending(answer: Answer, *, answers: Sequence[str]) -> str:
    """Where the answer string was lost on its way from the search to the quotation."""
    holding = [strip for strip in answer.knowledge.strips if answered(answers, text=strip.text)]
    stages = (
        (answer.verdict.action is Action.CORRECT, "documents judged enough"),
        (answer.search.outcome is SearchOutcome.FAILED, "search failed"),
        (not any(answered(answers, text=page.text) for page in answer.search.documents), "not found"),
        (not holding, "page graded too low"),
        (not any(strip.kept for strip in holding), "strip graded too low"),
    )
    return next((name for holds, name in stages if holds), "not quoted")


def endings(rows: Sequence[Row]) -> list[Row]:
    """How the questions of the web ended with search, by language."""
    found = Counter((row["lang"], row["end"]) for row in rows if (row["store"], row["run"]) == ("web", "search"))
    return [{"language": language, "end": end, "n": n} for (language, end), n in sorted(found.items())]


def summarise(rows: Sequence[Row]) -> list[Row]:
    """One line for each language, store and run."""
    grouped: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["lang"], row["store"], row["run"]].append(row)
    return [
        {
            "language": language,
            "store": store,
            "run": run,
            "n": len(found),
            "action right": None if run == "plain" else rate(found, "action_right"),
            "answer string": None if store == "none" else rate(found, "contains"),
            "refused": rate(found, "refused"),
            "answered without it": rate(found, "unfounded"),
            "median seconds": statistics.median(row["seconds"] for row in found),
        }
        for (language, store, run), found in grouped.items()
    ]


def targets(rows: Sequence[Row]) -> list[Row]:
    """The figures that search is judged by, for each language."""

    def share(language: str, store: str, run: str, name: str) -> float:
        chosen = [row for row in rows if (row["lang"], row["store"], row["run"]) == (language, store, run)]
        return rate(chosen, name) or 0.0

    return [
        {
            "language": language,
            "web answered / inside (≥ .80)": share(language, "web", "search", "contains")
            / max(1e-9, share(language, "web", "inside", "contains")),
            "none refused (≥ .90)": share(language, "none", "search", "refused"),
            "kb loss by search (≤ .01)": share(language, "kb", "off", "contains")
            - share(language, "kb", "search", "contains"),
        }
        for language in LANGUAGES
    ]


def sample(folder: Path, *, language: Language, options: Options) -> list[Row]:
    """The same number of questions of each store in turn, chosen by the seed."""
    rows = list(read_jsonl(folder / f"questions_{language}.jsonl"))
    chosen = []
    for store in STORES:
        found = [row for row in rows if row["store"] == store]
        random.Random(options.seed).shuffle(found)
        chosen.append(found[: options.limit or DEFAULT_LIMIT])
    return [row for turn in zip_longest(*chosen) for row in turn if row]


def chosen_passages(folder: Path, *, language: Language, questions: Sequence[Row], limit: int, seed: int) -> list[Row]:
    """At most `limit` passages of each store, those that the questions need among them."""
    needed = {pid for question in questions for pid in question["gold_pids"]}
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in read_jsonl(folder / f"passages_{language}.jsonl"):
        groups[row["store"]].append(row)
    chosen: list[Row] = []
    for rows in groups.values():
        random.Random(seed).shuffle(rows)
        rows.sort(key=lambda row: row["pid"] not in needed)
        chosen += rows[: limit or len(rows)]
    return sorted(chosen, key=lambda row: str(row["pid"]))


def write_library(folder: Path, *, passages: Sequence[Row]) -> None:
    """One Markdown file for each document of the web, a section for each passage; nothing is written twice."""
    folder.mkdir(parents=True, exist_ok=True)
    web = sorted((row for row in passages if row["store"] == "web"), key=itemgetter("doc_id"))
    for number, (_, rows) in enumerate(groupby(web, key=itemgetter("doc_id"))):
        path = folder / f"{number:05}.md"
        text = "\n\n".join(f"# {row['title']}\n\n{row['text']}" for row in rows)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def as_chunks(passages: Sequence[Row], *, settings: Settings) -> list[Chunk]:
    """Passages as if each were a page with its title as heading."""
    chunks = []
    for row in passages:
        block = Block(
            document_id=row["pid"],
            page=1,
            order=0,
            type=BlockType.TEXT,
            text=row["text"],
            bbox=FULL_PAGE,
            parser=BlockParser.TEXT,
            heading_path=(row["title"],) if row["title"] else (),
        )
        for number, chunk in enumerate(split_blocks([block], file=row["pid"], chunk_size=settings.chunk_size)):
            chunks.append(replace(chunk, id=f"{row['pid']}#{number}"))
    return chunks


class MemoryStore:
    """Chunks with vectors and a full-text index in memory, as the retriever asks for them."""

    def __init__(self, chunks: Sequence[Chunk], *, embedder: Embedder, cache: Path | None = None) -> None:
        self.embedder = embedder
        self.ids = [chunk.id for chunk in chunks]
        self._chunks = {chunk.id: chunk for chunk in chunks}
        self._vectors = self._embed(chunks, cache=cache) if cache else np.zeros((0, embedder.dimension), np.float32)
        self._index = sqlite3.connect(":memory:")
        create_index(self._index)
        add_passages(self._index, passages=[Passage(chunk.embedding_text, source=chunk.id) for chunk in chunks])

    def only(self, documents: Collection[str]) -> MemoryStore:
        """The part of the store that holds these documents."""
        rows = [row for row, key in enumerate(self.ids) if self._chunks[key].document_id in documents]
        part = MemoryStore([self._chunks[self.ids[row]] for row in rows], embedder=self.embedder)
        part._vectors = self._vectors[rows]
        return part

    def _embed(self, chunks: Sequence[Chunk], *, cache: Path) -> NDArray[np.float32]:
        texts = [chunk.embedding_text for chunk in chunks]
        parts = [np.zeros((0, self.embedder.dimension), np.float32)]
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            part = texts[start : start + EMBEDDED_AT_ONCE]
            key = hashlib.sha256("\0".join([self.embedder.name, *part]).encode()).hexdigest()[:24]
            path = cache / f"vectors-{key}.npy"
            if not path.is_file():
                np.save(path, self.embedder.embed_passages(part))
            parts.append(np.load(path))
        return np.concatenate(parts)

    def dense(
        self, vector: NDArray[np.float32], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Chunk ids with their cosine, best first."""
        scores = self._vectors @ vector
        return [(self.ids[row], float(scores[row])) for row in np.argsort(-scores)[:limit]]

    def lexical(
        self, terms: Sequence[str], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """Chunk ids with their BM25 score, best first."""
        found = find_ranked(self._index, terms, limit=limit)
        return [(passage.source, score) for passage, score in found]

    def chunks(self, chunk_ids: Sequence[str], *, files: Collection[str] = ()) -> dict[str, Chunk]:
        """Chunks by id."""
        return {key: self._chunks[key] for key in chunk_ids}

    def file_names(self, document_id: str) -> tuple[str, ...]:
        """Each passage is its own file."""
        return (document_id,)


if __name__ == "__main__":
    main()
