"""PDF → answer: gold page among citations and retrieved, answer string, refusals, seconds, on ../shared/data/pdf."""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.common import Options, data_dir, environment, finish, quantile, read_jsonl, read_options, table
from config import Settings, load_settings
from crag import Crag, build_crag
from knowledge_base import open_knowledge_base
from schema import Answer

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="append", help="handwritten, OHR-Bench, MMLongBench-Doc, FinanceBench")
    parser.add_argument("--store", type=Path, default=Path("artifacts/bench/pdf"), help="folder of the store, kept")
    options = read_options(__doc__, parser=parser)
    folder = data_dir() / "pdf"
    questions = [row for row in read_jsonl(folder / "pdf_qa.jsonl") if _wanted(row, options.rest.source)]
    settings = load_settings(files_dir=folder / "files", data_dir=options.rest.store, trace=False)
    with open_knowledge_base(settings) as knowledge_base:
        report = knowledge_base.build()
        crag = build_crag(settings, knowledge_base=knowledge_base)
        rows = [judge(crag, row=row) for row in _limited(questions, options=options)]
    result = {
        "environment": environment(seed=options.seed, files=[folder / "pdf_qa.jsonl"]),
        "build": report.as_json()["totals"],
        "settings": _told(settings),
        "summary": summarise(rows),
        "rows": rows,
    }
    finish("answering", result=result, options=options, text=table(result["summary"]))


def judge(crag: Crag, *, row: Row) -> Row:
    """Ask one question and judge the answer."""
    answer = crag.answer(row["question"])
    return {
        **{
            name: row[name]
            for name in ("id", "pdf", "lang", "question", "answers", "pages", "kind", "source", "answerable")
        },
        **marks(answer, row=row),
        "action": answer.verdict.action.value,
        "best_score": answer.verdict.best_score,
        "refused": answer.refused,
        "refusal_reason": answer.refusal_reason,
        "answer": answer.text,
        "citations": [[citation.file, citation.page, citation.quote] for citation in answer.citations],
        "documents": [[item.document.file, item.document.page, round(item.grade.score, 3)] for item in answer.graded],
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
    return {
        "retrieved": bool(gold & retrieved),
        "cited": bool(gold & cited),
        "contains": contains(row["answers"], text=answer.text),
        "first_cited": bool(answer.citations) and (answer.citations[0].file, answer.citations[0].page) in gold,
    }


def contains(answers: Iterable[str], *, text: str) -> bool:
    """Tell whether any answer occurs in the text, whitespace, width and case aside."""
    plain = _plain(text)
    return any(_plain(answer) in plain for answer in answers if _plain(answer))


def _plain(text: str) -> str:
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text).lower())


def summarise(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each source and language, unanswerable questions apart."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        for language in (row["lang"], "all"):
            groups[row["source"], language].append(row)
    return [_summary(source, language=language, rows=found) for (source, language), found in sorted(groups.items())]


def _summary(source: str, *, language: str, rows: list[Row]) -> Row:
    answerable = [row for row in rows if row["answerable"]]
    unanswerable = [row for row in rows if not row["answerable"]]
    seconds = [row["seconds"] for row in rows]
    return {
        "source": source,
        "lang": language,
        "n": len(answerable),
        "page retrieved": _rate(answerable, "retrieved"),
        "page cited": _rate(answerable, "cited"),
        "page cited first": _rate(answerable, "first_cited"),
        "answer string": _rate(answerable, "contains"),
        "false refusals": _rate(answerable, "refused"),
        "n unanswerable": len(unanswerable),
        "refused": _rate(unanswerable, "refused"),
        "median s": quantile(seconds, q=0.5),
        "p90 s": quantile(seconds, q=0.9),
    }


def _rate(rows: list[Row], name: str) -> float | None:
    return sum(bool(row[name]) for row in rows) / len(rows) if rows else None


def _wanted(row: Row, sources: list[str] | None) -> bool:
    return not sources or row["source"] in sources


def _limited(rows: list[Row], *, options: Options) -> list[Row]:
    counts: dict[tuple[str, bool], int] = defaultdict(int)
    chosen = []
    for row in rows:
        counts[row["source"], row["answerable"]] += 1
        if not options.limit or counts[row["source"], row["answerable"]] <= options.limit:
            chosen.append(row)
    return chosen


def _told(settings: Settings) -> Row:
    return {name: getattr(settings, name) for name in ("retrieve_k", "max_strips", "chunk_size")}


if __name__ == "__main__":
    main()
