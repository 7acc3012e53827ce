"""The product in a terminal and for scripts: the verbs and JSON forms of DESIGN.md, section 6.

Results go to stdout, progress and logs to stderr. Exit code 0 is done, 1 a typed error, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import terminal
from config import ROOT, environment_warnings, load_settings
from crag import Crag, build_crag, chosen_thresholds, judge
from errors import ConfigurationError, CragError
from language import detect_language
from records import answer_record, document_record
from schema import Answered, Document, Knowledge, Origin, SearchMode, Strip

if TYPE_CHECKING:
    from config import Settings
    from knowledge_base import KnowledgeBase
    from stages import Evaluator

Json = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, stream=sys.stderr)
    for stream in (sys.stdout, sys.stdin, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")
    try:
        settings = load_settings()
        for warning in environment_warnings():
            terminal.say(warning)
        verb: Callable[[Settings, argparse.Namespace], int | None] = options.run
        return verb(settings, options) or 0
    except CragError as error:
        if options.json:
            _print({"error": _error_record(error)})
        else:
            terminal.say(terminal.error_text(error))
        return 1
    except KeyboardInterrupt:
        terminal.say(terminal.word("stopped"))
        return 130


def build(settings: Settings, options: argparse.Namespace) -> int:
    """Bring the knowledge base up to date with its folder."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        report = knowledge_base.build(
            rebuild=options.rebuild,
            progress=terminal.show_progress,
            passwords=dict(pair.split("=", 1) for pair in options.password),
        )
    _show(report.as_json(), options=options, text=terminal.build_text)
    return 0


def ask(settings: Settings, options: argparse.Namespace) -> int:
    """Answer one question, or one JSON line for each line of a batch."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        crag = build_crag(settings, knowledge_base=knowledge_base)
        mode = SearchMode(options.web) if options.web else None
        if options.batch:
            return _batch(options.batch, work=lambda row: _answer(crag, row=row, options=options, mode=mode))
        stream = crag.stream(_question(options), files=options.file, search_mode=mode)
        if options.json:
            for event in stream:
                if isinstance(event, Answered):
                    _print(answer_record(event.answer))
        else:
            terminal.show_events(stream)
    return 0


def retrieve(settings: Settings, options: argparse.Namespace) -> int:
    """Show what is retrieved, without grading."""
    from retriever import HybridRetriever

    limit = options.k or settings.retrieve_k
    with _open_knowledge_base(settings, options) as knowledge_base:
        retriever = HybridRetriever(knowledge_base, embedder=knowledge_base.embedder, settings=settings)

        def search(question: str) -> Json:
            documents = retriever.retrieve(question, limit=limit, files=options.file)
            return {"documents": [document_record(document) for document in documents]}

        if options.batch:
            return _batch(options.batch, work=lambda row: search(_text(row, "question")))
        _show(search(_question(options)), options=options, text=terminal.documents_text)
    return 0


def score(settings: Settings, options: argparse.Namespace) -> int:
    """Grade (question, passage) lines from standard input."""
    evaluator = _evaluator(settings)
    for question, rows in itertools.groupby(_rows("-"), key=lambda row: row.get("question")):
        group = list(rows)
        try:
            grades = evaluator.grade(str(question or ""), passages=[_text(row, "passage") for row in group])
        except CragError as error:
            for row in group:
                _print({"id": row.get("id"), "error": _error_record(error)})
            continue
        for row, grade in zip(group, grades, strict=True):
            _print({"id": row.get("id"), "score": round(grade.score, 6), "grade_failed": grade.failed})
    return 0


def act(settings: Settings, options: argparse.Namespace) -> int:
    """Tell the action that passages trigger, for lines from standard input."""
    from question_parts import split_question

    evaluator = _evaluator(settings)

    def decide(row: Json) -> Json:
        question = _text(row, "question")
        limits = chosen_thresholds(settings, detect_language(question), evaluator=evaluator)
        parts = split_question(question)
        judged = judge(evaluator, parts=parts, passages=_texts(row, "passages"), thresholds=limits)
        return {
            "scores": [round(grade.score, 6) for grade in judged.grades],
            "action": judged.verdict.action.value,
            "missing": list(judged.verdict.missing) if len(parts) > 1 else [],
        }

    return _batch("-", work=decide)


def refine(settings: Settings, options: argparse.Namespace) -> int:
    """Refine passages (or strips already cut), for lines from standard input."""
    from question_parts import split_question
    from refinement import StripRefiner

    evaluator = _evaluator(settings)
    refiner = StripRefiner(evaluator, max_strips=settings.max_strips)

    def work(row: Json) -> Json:
        question = _text(row, "question")
        limits = chosen_thresholds(settings, detect_language(question), evaluator=evaluator)
        parts = split_question(question)
        if "strips" in row:
            knowledge = refiner.select(parts, groups=[_given_strips(_texts(row, "strips"))], thresholds=limits)
        else:
            documents = [_passage(text, rank=rank) for rank, text in enumerate(_texts(row, "passages"), start=1)]
            knowledge = refiner.refine(parts, documents=documents, thresholds=limits)
        return _knowledge_record(knowledge)

    return _batch("-", work=work)


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
    _show(record, options=options, text=terminal.parsed_text)
    return 0


def list_documents(settings: Settings, options: argparse.Namespace) -> int:
    """List the documents of a knowledge base."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        documents = [document.as_json() for document in knowledge_base.documents()]
    _show({"documents": documents}, options=options, text=terminal.list_text)
    return 0


def delete(settings: Settings, options: argparse.Namespace) -> int:
    """Remove a document: its file, vectors, rows and cached pages."""
    with _open_knowledge_base(settings, options) as knowledge_base:
        knowledge_base.delete(options.name)
    _show({"deleted": options.name}, options=options, text=lambda _: terminal.word("deleted", name=options.name))
    return 0


def status(settings: Settings, options: argparse.Namespace) -> int:
    """Show counts, models, thresholds and places."""
    from doctor import status_record

    with _open_knowledge_base(settings, options) as knowledge_base:
        _show(status_record(settings, knowledge_base=knowledge_base), options=options, text=terminal.status_text)
    return 0


def doctor(settings: Settings, options: argparse.Namespace) -> int:
    """Tell what works and what to fix."""
    from doctor import examine

    checks = examine(settings, knowledge_base=options.kb)
    _show({"checks": [check.as_json() for check in checks]}, options=options, text=terminal.checks_text)
    return 0 if all(check.ok for check in checks) else 1


def calibrate(settings: Settings, options: argparse.Namespace) -> int:
    """Fit the thresholds to labelled questions; `--save` makes them the settings."""
    from calibration import calibrate as fit
    from config import save_settings

    fitted = fit(list(_rows(options.path)), evaluator=_evaluator(settings))
    if options.save:
        chosen = fitted.thresholds
        save_settings(
            settings.data_dir, changes={"upper": chosen.upper, "lower": chosen.lower, "strip_floor": chosen.strip}
        )
    _show(fitted.as_json(), options=options, text=terminal.calibration_text)
    return 0


def serve(settings: Settings, options: argparse.Namespace) -> int:
    """Start the page."""
    command = [
        *(sys.executable, "-m", "streamlit", "run", str(ROOT / "app_streamlit.py")),
        *("--server.address", settings.host, "--server.port", str(options.port or settings.port)),
        *("--server.maxUploadSize", str(settings.max_upload_mb)),
    ]
    return subprocess.call(command, cwd=ROOT)  # noqa: S603


def download_mineru(settings: Settings, options: argparse.Namespace) -> int:
    """Download the MinerU weights to a visible folder."""
    from mineru_local import download_weights

    folder = download_weights(settings, target=Path(options.target) if options.target else None)
    _show({"path": str(folder)}, options=options, text=lambda found: str(found["path"]))
    return 0


def clear_web_cache(settings: Settings, options: argparse.Namespace) -> int:
    """Forget all cached web results and pages."""
    from search import clear_cache

    clear_cache(settings)
    _show({"cleared": True}, options=options, text=lambda _: terminal.word("cache_cleared"))
    return 0


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument("--kb", default="default", help="name of the knowledge base")
    common.add_argument("--verbose", action="store_true", help="show log messages")
    parser = argparse.ArgumentParser(prog="cli.py", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name: str, run: Callable[[Settings, argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, parents=[common], help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        return added

    building = verb("build", build)
    building.add_argument("--rebuild", action="store_true", help="everything into a new collection")
    building.add_argument("--password", action="append", default=[], metavar="FILE=PASSWORD")
    for name, run in (("ask", ask), ("retrieve", retrieve)):
        asking = verb(name, run)
        asking.add_argument("question", nargs="?")
        asking.add_argument("--batch", metavar="FILE", help="JSONL of {id, question}; - is standard input")
        asking.add_argument("--file", action="append", default=[], help="search this file only (repeatable)")
        if name == "ask":
            asking.add_argument("--web", choices=[mode.value for mode in SearchMode])
        else:
            asking.add_argument("-k", type=int, default=0, help="how many documents")
    for name, run in (("score", score), ("act", act), ("refine", refine)):
        verb(name, run)
    parsing = verb("parse", parse)
    parsing.add_argument("path")
    parsing.add_argument("--password", default="")
    verb("list", list_documents)
    verb("delete", delete).add_argument("name")
    verb("status", status)
    verb("doctor", doctor)
    calibrating = verb("calibrate", calibrate)
    calibrating.add_argument("path", help="JSONL of {question, passages, expected_action or labels}")
    calibrating.add_argument("--save", action="store_true", help="make the fitted thresholds the settings")
    verb("serve", serve).add_argument("--port", type=int, default=0)
    verb("download-mineru", download_mineru).add_argument("--target", default="")
    verb("clear-web-cache", clear_web_cache)
    return parser


def _open_knowledge_base(settings: Settings, options: argparse.Namespace) -> KnowledgeBase:
    from knowledge_base import open_knowledge_base

    return open_knowledge_base(settings, name=options.kb)


def _evaluator(settings: Settings) -> Evaluator:
    from embeddings import build_embedder
    from evaluator import build_evaluator

    return build_evaluator(settings, embedder=build_embedder(settings))


def _answer(crag: Crag, *, row: Json, options: argparse.Namespace, mode: SearchMode | None) -> Json:
    for event in crag.stream(_text(row, "question"), files=options.file, search_mode=mode):
        if isinstance(event, Answered):
            return answer_record(event.answer)
    raise AssertionError("the stream always ends with Answered")


def _batch(path: str, *, work: Callable[[Json], Json]) -> int:
    """One line out for each line in; a line that fails says so and the next goes on."""
    for row in _rows(path):
        try:
            result = work(row)
        except CragError as error:
            result = {"error": _error_record(error)}
        _print({**result, "id": row.get("id", result.get("id"))})
    return 0


def _rows(path: str) -> Iterator[Json]:
    try:
        lines: Iterable[str] = sys.stdin if path == "-" else Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigurationError(str(error), hint="name a readable JSONL file", name=path) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigurationError(f"line {number}: {error}", hint="one JSON object a line", name=path) from error
        if not isinstance(row, dict):
            raise ConfigurationError(f"line {number} is not an object", hint="one JSON object a line", name=path)
        yield row


def _text(row: Json, name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{name!r} is missing or not a text: {value!r}", hint=f"give {name!r}", name=name)
    return value


def _texts(row: Json, name: str) -> list[str]:
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigurationError(f"{name!r} is not a list of texts: {value!r}", hint=f"give {name!r}", name=name)
    return value


def _question(options: argparse.Namespace) -> str:
    return _text({"question": options.question}, "question")


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


def _error_record(error: CragError) -> Json:
    return {"code": error.code, "message": error.message, "hint": error.hint}


def _show(result: Json, *, options: argparse.Namespace, text: Callable[[Json], str]) -> None:
    if options.json:
        _print(result)
    else:
        print(text(result))


def _print(result: Json) -> None:
    print(json.dumps(result, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
