"""How the terminal shows events, answers and errors to a person; progress goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from config import get_settings, interface_language
from errors import ConfigurationError, CragError
from i18n import SAID, Language, advice, translate
from records import fetch_time
from schema import (
    Answer,
    Answered,
    Citation,
    Evaluated,
    Event,
    Origin,
    Prepared,
    Retrieved,
    Rewritten,
    Searched,
    SearchMode,
    Token,
)

if TYPE_CHECKING:
    from knowledge_base import Progress

Json = dict[str, Any]


def say(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def word(key: str, **values: object) -> str:
    """Return a text of the terminal in its language."""
    return translate(f"cli.{key}", language=_language(), **values)


def error_text(error: CragError) -> str:
    """Return what failed, the details and what to do."""
    lead = translate(f"error.{error.code}", language=_language(), **error.values)
    detail = "" if error.code in SAID or error.message in lead else error.message
    hint = advice(error.code, language=_language(), hint=error.hint)
    lines = [lead, detail, hint and word("hint", hint=hint)]
    return "\n".join(filter(None, lines))


def show_progress(progress: Progress) -> None:
    """Write one line of build progress to stderr."""
    say(
        word(
            "progress",
            number=progress.file_number,
            files=progress.files,
            file=progress.file,
            page=progress.page,
            pages=progress.pages,
            chunks=progress.chunks,
        )
    )


def show_events(events: Iterable[Event]) -> None:
    """Show a question's stages on stderr as they happen, its answer and sources on stdout.

    A model's text is written as it comes and once more where checking its citations changed it.
    """
    written = ""
    for event in events:
        match event:
            case Rewritten():
                say(word("rewritten", question=event.question))
            case Retrieved():
                say(word("retrieved", count=len(event.documents), seconds=f"{event.seconds:.2f}"))
            case Evaluated():
                verdict = event.verdict
                action = word(f"action_{verdict.action.value}")
                say(word("evaluated", action=action, best=f"{verdict.best_score:.2f}", seconds=f"{event.seconds:.2f}"))
            case Searched() if event.report.mode is SearchMode.AUTO:
                queries = " · ".join(event.report.queries)
                say(word("searched", queries=queries, count=len(event.report.documents), error=event.report.error))
            case Prepared():
                kept, total = len(event.knowledge.kept), len(event.knowledge.strips)
                say(word("prepared", kept=kept, total=total))
            case Token():
                written += event.text
                sys.stdout.write(event.text)
                sys.stdout.flush()
            case Answered():
                sys.stdout.write("\n" * bool(written) + _ending(event.answer, written=written) + "\n")
            case _:
                pass


def _ending(answer: Answer, *, written: str) -> str:
    language: Language = "zh" if answer.language == "zh" else "en"
    lines = [word("checked_answer") if written and not answer.refused else "", answer.text]
    if written.strip().endswith(answer.text.strip()):
        lines = []
    lines += [f"[{citation.n}] {_source(citation)}" for citation in answer.citations]
    lines += [translate(warning, language=language) for warning in answer.warnings]
    return "\n".join(filter(None, lines))


def _source(citation: Citation) -> str:
    if citation.origin is Origin.KB:
        return f"{citation.file}, {word('page', page=citation.page)}"
    fetched = translate("search.fetched", language=_language(), time=fetch_time(citation))
    return f"WEB {citation.title} <{citation.url}>, {fetched}"


def build_text(report: Json) -> str:
    """Return the closing summary of a build."""
    rows = [_document_line(document) for document in report["documents"]]
    return "\n".join([*rows, word("build_totals", **report["totals"])])


def list_text(found: Json) -> str:
    """Return one line a document."""
    return "\n".join(map(_document_line, found["documents"])) or word("no_documents")


def _document_line(document: Json) -> str:
    error = document.get("error") or {}
    values = {**error.get("values", {}), "file": document["file"]}
    detail = translate(f"error.{error['code']}", language=_language(), **values) if error else ""
    state = word(f"status_{document['status']}")
    counts = word("counts", pages=document["pages"], chunks=document["chunks"])
    return "  ".join(filter(None, (document["file"], state, counts, document.get("parser") or "", detail)))


def documents_text(found: Json) -> str:
    """Return one paragraph a retrieved document."""
    return "\n\n".join(
        f"{item['rank']}. {item['file']}, {word('page', page=item['page'])}  "
        + "  ".join(f"{channel['name']} #{channel['rank']}" for channel in item["channels"])
        + "\n"
        + "\n…\n".join(near["text"] for near in item.get("neighbours", (item,)))
        for item in found["documents"]
    ) or word("nothing_found")


def parsed_text(parsed: Json) -> str:
    """Return the blocks as plain text with page and type in front."""
    return "\n".join(f"[{block['page']}:{block['type']}] {block['text']}" for block in parsed["blocks"])


def status_text(record: Json) -> str:
    """Return one line a fact."""
    return "\n".join(f"{name}: {_plain(value)}" for name, value in record.items())


def checks_text(found: Json) -> str:
    """Return one line a check, with what to do where it failed."""
    return "\n".join(
        ("✓ " if check["ok"] else "✗ ")
        + f"{check['name']}: {check['detail']}"
        + (f" → {check['hint']}" if check["hint"] else "")
        for check in found["checks"]
    )


def calibration_text(fitted: Json) -> str:
    """Return the fitted thresholds beside the ones before."""
    return "\n".join(f"{name}: {_plain(value)}" for name, value in fitted.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def _language() -> Language:
    try:
        return interface_language(get_settings())
    except ConfigurationError:
        return interface_language(None)
