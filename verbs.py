"""The verbs of the terminal, DESIGN.md section 6: each takes the settings and its options and shows its result."""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import terminal
from bases import existing_base
from config import ROOT
from crag import Crag, build_crag, chosen_thresholds, judge
from errors import ConfigurationError, CragError
from i18n import LANGUAGES
from json_lines import (
    Json,
    Row,
    arriving_lines,
    error_record,
    print_json,
    read_rows,
    run_batch,
    show,
    text_of,
    texts_of,
)
from language import detect_language
from records import answer_record, document_record
from schema import Answered, Document, Knowledge, Origin, SearchMode, Strip, Thresholds

if TYPE_CHECKING:
    from calibration import Calibrated
    from config import Settings
    from knowledge_base import KnowledgeBase
    from stages import Evaluator


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def build(settings: Settings, options: argparse.Namespace) -> int:
    """Bring the knowledge base up to date with its folder."""
    from knowledge_base import open_knowledge_base

    with open_knowledge_base(settings, name=options.kb) as knowledge_base:
        report = knowledge_base.build(
            rebuild=options.rebuild,
            progress=terminal.show_progress,
            passwords=dict(options.password),
        )
    show(report.as_json(), options=options, text=terminal.build_text)
    return 0


def ask(settings: Settings, options: argparse.Namespace) -> int:
    """Answer one question, or one JSON line for each line of a batch."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        files = _known(options.file, knowledge_base=knowledge_base)
        crag = build_crag(settings, knowledge_base=knowledge_base)
        mode = SearchMode(options.web) if options.web else None
        if options.batch:
            return run_batch(options.batch, work=lambda row: _answer(crag, row=row, files=files, mode=mode))
        stream = crag.stream(options.question, files=files, search_mode=mode)
        if options.json:
            for event in stream:
                if isinstance(event, Answered):
                    print_json(answer_record(event.answer))
        else:
            terminal.show_events(stream)
    return 0


def retrieve(settings: Settings, options: argparse.Namespace) -> int:
    """Show what is retrieved, without grading."""
    from retriever import HybridRetriever

    limit = options.k or settings.retrieve_k
    with _open_knowledge_base(settings, options) as knowledge_base:
        files = _known(options.file, knowledge_base=knowledge_base)
        retriever = HybridRetriever(knowledge_base, embedder=knowledge_base.embedder, settings=settings)

        def record(document: Document) -> Json:
            shown = document_record(document)
            if options.around and document.chunk is not None:
                near = knowledge_base.neighbours(document.chunk.id, before=options.around, after=options.around)
                shown["neighbours"] = [{"page": chunk.page, "text": chunk.text} for chunk in near]
            return shown

        def search(question: str) -> Json:
            documents = retriever.retrieve(question, limit=limit, files=files, section=options.section)
            return {"documents": [record(document) for document in documents]}

        if options.batch:
            return run_batch(options.batch, work=lambda row: search(text_of(row, "question")))
        show(search(options.question), options=options, text=terminal.documents_text)
    return 0


def score(settings: Settings, options: argparse.Namespace) -> int:
    """Grade (question, passage) lines from standard input."""
    evaluator = _evaluator(settings)
    for lines in arriving_lines("-"):
        rows = [row.with_texts("question", "passage") for row in lines]
        for question, group in itertools.groupby(rows, key=lambda row: None if row.error else row.values["question"]):
            pairs = list(group)
            for row, result in zip(pairs, _scores(evaluator, question=question, rows=pairs), strict=True):
                print_json({"id": row.id, **result})
    return 0


def act(settings: Settings, options: argparse.Namespace) -> int:
    """Tell the action that passages trigger, for lines from standard input."""
    from question_parts import split_question

    evaluator = _evaluator(settings)

    def decide(row: Json) -> Json:
        question = text_of(row, "question")
        limits = chosen_thresholds(settings, detect_language(question), evaluator=evaluator)
        parts = split_question(question)
        judged = judge(evaluator, parts=parts, passages=texts_of(row, "passages"), thresholds=limits)
        return {
            "scores": [round(grade.score, 6) for grade in judged.grades],
            "action": judged.verdict.action.value,
            "missing": list(judged.verdict.missing) if len(parts) > 1 else [],
        }

    return run_batch("-", work=decide)


def refine(settings: Settings, options: argparse.Namespace) -> int:
    """Refine passages (or strips already cut), for lines from standard input."""
    from question_parts import split_question
    from refinement import StripRefiner

    evaluator = _evaluator(settings)
    refiner = StripRefiner(evaluator, max_strips=settings.max_strips)

    def work(row: Json) -> Json:
        question = text_of(row, "question")
        limits = chosen_thresholds(settings, detect_language(question), evaluator=evaluator)
        parts = split_question(question)
        if "strips" in row:
            knowledge = refiner.select(parts, groups=[_given_strips(texts_of(row, "strips"))], thresholds=limits)
        else:
            documents = [_passage(text, rank=rank) for rank, text in enumerate(texts_of(row, "passages"), start=1)]
            knowledge = refiner.refine(parts, documents=documents, thresholds=limits)
        return _knowledge_record(knowledge)

    return run_batch("-", work=work)


def parse(settings: Settings, options: argparse.Namespace) -> int:
    """Parse one PDF to blocks."""
    from pdf_loader import block_as_json, parse_pdf

    parsed = parse_pdf(Path(options.path), settings=settings, password=options.password)
    record = {
        "pages": parsed.pages,
        "parser": parsed.parser,
        "ocr_pages": parsed.ocr_pages,
        "reasons": [{"page": page, "reason": reason} for page, reason in parsed.reasons],
        "blocks": [block_as_json(block) for block in parsed.blocks],
    }
    show(record, options=options, text=terminal.parsed_text)
    return 0


def list_documents(settings: Settings, options: argparse.Namespace) -> int:
    """List the documents of a knowledge base."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        documents = [document.as_json() for document in knowledge_base.documents()]
    show({"documents": documents}, options=options, text=terminal.list_text)
    return 0


def delete(settings: Settings, options: argparse.Namespace) -> int:
    """Remove a document: its file, vectors, rows and cached pages."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        knowledge_base.delete(options.name)
    show({"deleted": options.name}, options=options, text=lambda _: terminal.word("deleted", name=options.name))
    return 0


def status(settings: Settings, options: argparse.Namespace) -> int:
    """Show counts, models, thresholds and places."""
    from doctor import status_record

    with _open_knowledge_base(settings, options) as knowledge_base:
        show(status_record(settings, knowledge_base=knowledge_base), options=options, text=terminal.status_text)
    return 0


def doctor(settings: Settings, options: argparse.Namespace) -> int:
    """Tell what works and what to fix."""
    from doctor import examine

    checks = examine(settings, knowledge_base=options.kb)
    show({"checks": [check.as_json() for check in checks]}, options=options, text=terminal.checks_text)
    return 0 if all(check.ok for check in checks) else 1


def calibrate(settings: Settings, options: argparse.Namespace) -> int:
    """Fit the thresholds to labelled questions; `--save` makes them the settings."""
    from calibration import calibrate as fit
    from config import load_settings, read_saved_settings, save_settings

    evaluator = _evaluator(settings)
    in_force = partial(chosen_thresholds, settings, evaluator=evaluator)
    fitted = fit(list(read_rows(options.path)), evaluator=evaluator, limits=in_force)
    if options.save:
        changes = _threshold_changes(fitted, saved=read_saved_settings(settings.data_dir))
        load_settings(**{name: value for name, value in changes.items() if value is not None})
        save_settings(settings.data_dir, changes=changes)
    show(fitted.as_json(), options=options, text=terminal.calibration_text)
    return 0


def _threshold_changes(fitted: Calibrated, *, saved: Json) -> dict[str, float | None]:
    """What to save: each fitted language's own; a language without keeps what was saved for both, which gives way."""

    def named(limits: Thresholds) -> dict[str, float | None]:
        return {"upper": limits.upper, "lower": limits.lower, "strip_floor": limits.strip}

    if not fitted.languages:
        return named(fitted.thresholds)
    changes: dict[str, float | None] = dict.fromkeys(named(fitted.thresholds))
    for language in LANGUAGES:
        own = fitted.languages.get(language)
        values = (
            named(own.thresholds) if own else {name: saved[name] for name in named(fitted.thresholds) if name in saved}
        )
        changes |= {f"{name}_{language}": value for name, value in values.items()}
    return changes


def serve(settings: Settings, options: argparse.Namespace) -> int:
    """Start the page: on this machine only, unless CRAG_AUTH_ALLOW says who may use it from elsewhere."""
    if settings.host not in LOOPBACK and not settings.auth_allow:
        raise ConfigurationError(
            f"{settings.host} is open to others",
            hint="set CRAG_AUTH_ALLOW (docs/page.md), or CRAG_HOST=127.0.0.1",
            code="host_open",
            host=settings.host,
        )
    command = [
        *(sys.executable, "-m", "streamlit", "run", str(ROOT / "app_streamlit.py")),
        *("--server.address", settings.host, "--server.port", str(options.port or settings.port)),
        *("--server.maxUploadSize", str(settings.max_upload_mb)),
    ]
    return subprocess.call(command, cwd=ROOT)  # noqa: S603


def download_mineru(settings: Settings, options: argparse.Namespace) -> int:
    """Download the MinerU weights to a visible folder."""
    from mineru_local import download_weights

    target = Path(options.target).absolute() if options.target else None
    folder = download_weights(settings, target=target, source=options.source)
    show({"path": str(folder)}, options=options, text=lambda found: str(found["path"]))
    return 0


def index_library(settings: Settings, options: argparse.Namespace) -> int:
    """Bring the index of the offline web (CRAG_WEB_LIBRARY_DIR) up to date, all of it."""
    from web_library import open_library

    library = open_library(settings)
    read = library.refresh()
    counts = library.counts()
    record = {"read": read, "files": counts.files, "passages": counts.passages}
    show(record, options=options, text=lambda found: terminal.word("library_indexed", **found))
    return 0


def clear_web_cache(settings: Settings, options: argparse.Namespace) -> int:
    """Forget all cached web results and pages."""
    from search import clear_cache

    clear_cache(settings)
    show({"cleared": True}, options=options, text=lambda _: terminal.word("cache_cleared"))
    return 0


def _open_knowledge_base(settings: Settings, options: argparse.Namespace) -> KnowledgeBase:
    from knowledge_base import open_knowledge_base

    return open_knowledge_base(settings, name=existing_base(settings, name=options.kb).name)


def _evaluator(settings: Settings) -> Evaluator:
    from embeddings import build_embedder
    from evaluator import build_evaluator

    return build_evaluator(settings, embedder=build_embedder(settings))


def _scores(evaluator: Evaluator, *, question: str | None, rows: Sequence[Row]) -> list[Json]:
    """Grade the passages of one question together; rows without a question are those with an error."""
    if question is None:
        return [{"error": error_record(row.error)} for row in rows if row.error]
    try:
        grades = evaluator.grade(question, passages=[row.values["passage"] for row in rows])
    except CragError as error:
        return [{"error": error_record(error)}] * len(rows)
    return [{"score": round(grade.score, 6), "grade_failed": grade.failed} for grade in grades]


def _answer(crag: Crag, *, row: Json, files: Sequence[str], mode: SearchMode | None) -> Json:
    for event in crag.stream(text_of(row, "question"), files=files, search_mode=mode):
        if isinstance(event, Answered):
            return answer_record(event.answer)
    raise AssertionError("the stream always ends with Answered")


def _known(files: Sequence[str], *, knowledge_base: KnowledgeBase) -> list[str]:
    """Return the files' exact names; one that is not there is an error, else it would read as an empty library."""
    return [knowledge_base.path(file).name for file in files]


def _passage(text: str, *, rank: int) -> Document:
    return Document(text=text, origin=Origin.KB, rank=rank)


def _given_strips(texts: list[str]) -> list[Strip]:
    document = _passage("\n".join(texts), rank=1)
    starts = itertools.accumulate((len(text) + 1 for text in texts), initial=0)
    return [
        Strip(text=text, document=document, start=start, end=start + len(text))
        for text, start in zip(texts, starts, strict=False)
    ]


def _knowledge_record(knowledge: Knowledge) -> Json:
    return {
        "strips": [
            {"text": strip.text, "score": round(strip.grade.score, 6), "kept": strip.kept} for strip in knowledge.strips
        ],
        "knowledge": knowledge.text,
    }
