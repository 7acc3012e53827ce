"""PDF → answer: gold page among citations and retrieved, answer string, refusals, seconds, on the PDFs of the data.

Beside CRAG two baselines answer from the same store with the same generator: plain RAG (the first four passages, no
evaluation) and the best sentence by BM25.
"""

from __future__ import annotations

import argparse
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines import best_sentence, plain_rag
from benchmarks.common import (
    Options,
    data_dir,
    environment,
    figures,
    finish,
    quantile,
    rate,
    read_jsonl,
    read_options,
    table,
)
from build_report import BuildReport
from config import Settings, load_settings
from crag import Crag, build_crag
from errors import EmbeddingMismatchError
from knowledge_base import KnowledgeBase, open_knowledge_base
from pdf_lines import mend
from records import bbox
from retriever import HybridRetriever
from schema import Answer

Row = dict[str, Any]

STORE = Path("artifacts/bench/pdf")
CRAG, PLAIN, SENTENCE = "CRAG", "plain RAG", "BM25 sentence"
HANDWRITTEN = "handwritten"
STORED = ("id", "system", "retrieved", "cited", "first_cited", "contains", "refused", "action", "best_score", "wrong")
TOLD = ("retrieve_k", "max_strips", "chunk_size", "upper", "lower", "strip_floor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="append", help="handwritten, OHR-Bench, MMLongBench-Doc, FinanceBench")
    parser.add_argument("--sample", type=int, default=0, help="at most so many of each source but the handwritten ones")
    parser.add_argument("--store", type=Path, default=STORE, help="folder of the store, kept for the next run")
    parser.add_argument("--only-crag", action="store_true", help="leave the baselines out")
    options = read_options(__doc__, parser=parser)
    path = data_dir() / "pdf" / "pdf_qa.jsonl"
    questions = chosen(read_jsonl(path), options=options)
    settings = pdf_settings(options.rest.store)
    with open_knowledge_base(settings) as knowledge_base:
        report = built(knowledge_base)
        systems = build_systems(settings, knowledge_base=knowledge_base)
        if options.rest.only_crag:
            systems = {CRAG: systems[CRAG]}
        next(iter(systems.values())).answer("warm up")
        rows = [judge(crag, row=row, system=name) for name, crag in systems.items() for row in questions]
    summary, kinds = summarise(rows), by_kind([row for row in rows if row["system"] == CRAG])
    result = {
        "environment": environment(seed=options.seed, files=[path]),
        "build": report.as_json()["totals"],
        "settings": {name: getattr(settings, name) for name in TOLD},
        "figures": figures(summary, keys=("system", "source", "lang")),
        "summary": summary,
        "kinds": kinds,
        "rows": [{name: row[name] for name in STORED} for row in rows],
    }
    text = f"{table(summary)}\n\nCRAG by kind of evidence:\n\n{table(kinds)}"
    finish("answering", result=result, options=options, text=text, cases=[r for r in rows if r["system"] == CRAG])


def pdf_settings(store: Path = STORE, **values: Any) -> Settings:
    """Settings of the embedded default over the PDFs of the data."""
    return load_settings(files_dir=data_dir() / "pdf" / "files", data_dir=store, trace=False, **values)


def built(knowledge_base: KnowledgeBase) -> BuildReport:
    """Bring the store up to date, anew where another embedder or chunking made it."""
    try:
        return knowledge_base.build()
    except EmbeddingMismatchError:
        return knowledge_base.build(rebuild=True)


def build_systems(settings: Settings, *, knowledge_base: KnowledgeBase) -> dict[str, Crag]:
    """CRAG and what it is compared with, over one store."""
    crag = build_crag(settings, knowledge_base=knowledge_base)
    words = settings.model_copy(update={"dense_weight": 0.0})
    lexical = HybridRetriever(knowledge_base, embedder=knowledge_base.embedder, settings=words)
    return {CRAG: crag, PLAIN: plain_rag(crag), SENTENCE: best_sentence(crag, retriever=lexical)}


def chosen(rows: Iterable[Row], *, options: Options) -> list[Row]:
    """The wanted sources; of each source and kind of answerability a seeded sample where a limit is given."""
    groups: dict[tuple[str, str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        if not options.rest.source or row["source"] in options.rest.source:
            groups[row["source"], row["lang"], row["answerable"]].append(row)
    picked = []
    for (source, _, _), found in sorted(groups.items()):
        limit = options.limit or (0 if source == HANDWRITTEN else options.rest.sample)
        sampled = random.Random(options.seed).sample(found, limit) if 0 < limit < len(found) else found
        picked += sorted(sampled, key=lambda row: str(row["id"]))
    return picked


def judge(crag: Crag, *, row: Row, system: str) -> Row:
    """Ask one question and judge the answer: a case for the error browser."""
    answer = crag.answer(row["question"])
    judged = {
        **{name: row[name] for name in ("id", "lang", "question", "kind", "source", "answerable")},
        "system": system,
        "expected": row["answers"],
        "gold": [[row["pdf"], page] for page in row["pages"]],
        **marks(answer, row=row),
        **told(answer, gold={(row["pdf"], page) for page in row["pages"]}),
    }
    return {**judged, "wrong": kind_of_error(judged)}


def told(answer: Answer, *, gold: set[tuple[str, int]]) -> Row:
    """What the error browser shows of an answer, the strips of the gold pages included."""
    strips = [strip for strip in answer.knowledge.strips if (strip.document.file, strip.page) in gold or strip.kept]
    return {
        "action": answer.verdict.action.value,
        "best_score": round(answer.verdict.best_score, 4),
        "thresholds": [answer.verdict.thresholds.upper, answer.verdict.thresholds.lower],
        "floor": answer.verdict.thresholds.strip,
        "parts": [part.question for part in answer.verdict.parts],
        "refused": answer.refused,
        "refusal_reason": answer.refusal_reason,
        "answer": answer.text,
        "citations": [[c.file, c.page, bbox(c.regions), c.quote] for c in answer.citations],
        "documents": [[item.document.file, item.document.page, round(item.grade.score, 3)] for item in answer.graded],
        "strips": [[s.document.file, s.page, round(s.grade.score, 3), s.kept, s.text] for s in strips],
        "seconds": answer.seconds.total,
    }


def marks(answer: Answer, *, row: Row) -> Row:
    """Tell whether the gold page was retrieved and cited, and whether the answer string is in the answer."""
    gold = {(row["pdf"], page) for page in row["pages"]}
    retrieved = {
        (item.document.file, region.page)
        for item in answer.graded
        for region in item.document.regions(0, len(item.document.text))
    }
    cited = {(citation.file, region.page) for citation in answer.citations for region in citation.regions}
    found = answered(row["answers"], text=answer.text, needs_all=row.get("answer_type") == "all_of_list")
    return {
        "retrieved": bool(gold & retrieved),
        "cited": bool(gold & cited),
        "first_cited": bool(answer.citations) and (answer.citations[0].file, answer.citations[0].page) in gold,
        "contains": found and not answer.refused,
    }


def kind_of_error(row: Row) -> str:
    """Name the first stage that went wrong; empty when the answer is right."""
    if not row["answerable"]:
        return "" if row["refused"] else "answered the unanswerable"
    if row["contains"] and row["cited"]:
        return ""
    if not row["retrieved"]:
        return "gold page not retrieved"
    if row["refused"]:
        return f"refused ({row['refusal_reason']})"
    return "gold page not cited" if not row["cited"] else "answer string not quoted"


def answered(answers: Iterable[str], *, text: str, needs_all: bool = False) -> bool:
    """Tell whether any answer (or each of them) occurs in the text; whitespace, width, radicals and case aside."""
    plain = _plain(text)
    found = [_plain(answer) in plain for answer in answers if _plain(answer)]
    return bool(found) and (all(found) if needs_all else any(found))


def _plain(text: str) -> str:
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", mend(text)).lower())


def summarise(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each system, source and language (where there are several), the unanswerable ones apart."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    languages: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for source in (row["source"], "all"):
            languages[source].add(row["lang"])
            for language in (row["lang"], "all"):
                groups[source, language, row["system"]].append(row)
    groups = {key: group for key, group in groups.items() if key[1] == "all" or len(languages[key[0]]) > 1}
    order = {CRAG: 0, PLAIN: 1, SENTENCE: 2}
    found = sorted(groups.items(), key=lambda item: (item[0][0] == "all", *item[0][:2], order.get(item[0][2], 3)))
    plain = {key[:2]: quantile([row["seconds"] for row in group], q=0.5) for key, group in found if key[2] == PLAIN}
    return [
        _summary(group, source=source, language=language, system=system, base=plain.get((source, language)))
        for (source, language, system), group in found
    ]


def _summary(rows: Sequence[Row], *, source: str, language: str, system: str, base: float | None) -> Row:
    answerable = [row for row in rows if row["answerable"]]
    unanswerable = [row for row in rows if not row["answerable"]]
    seconds = [row["seconds"] for row in rows]
    middle = quantile(seconds, q=0.5)
    return {
        "source": source,
        "lang": language,
        "system": system,
        "n": len(answerable),
        "page retrieved": rate(answerable, "retrieved"),
        "page cited": rate(answerable, "cited"),
        "cited first": rate(answerable, "first_cited"),
        "answer string": rate(answerable, "contains"),
        "false refusals": rate(answerable, "refused"),
        "n unanswerable": len(unanswerable),
        "refused": rate(unanswerable, "refused"),
        "characters": int(quantile([len(row["answer"]) for row in answerable], q=0.5)),
        "median s": middle,
        "p90 s": quantile(seconds, q=0.9),
        "time ×": middle / base if base else None,
    }


def by_kind(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each kind of evidence of the answerable questions."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["answerable"]:
            groups[row["kind"]].append(row)
    return [
        {
            "kind": kind,
            "n": len(found),
            "page retrieved": rate(found, "retrieved"),
            "page cited": rate(found, "cited"),
            "answer string": rate(found, "contains"),
            "false refusals": rate(found, "refused"),
        }
        for kind, found in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


if __name__ == "__main__":
    main()
