"""The JSON forms that others script against (DESIGN.md, section 6): fields may be added, never renamed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from schema import Answer, Citation, Document, Graded, Region, Strip, Usage

Json = dict[str, Any]


def answer_record(answer: Answer) -> Json:
    """Return the answer object."""
    return {
        "id": answer.id,
        "question": answer.question,
        "original_question": answer.original_question or answer.question,
        "language": answer.language,
        "answer": answer.text,
        "refused": answer.refused,
        "refusal_reason": answer.refusal_reason,
        "action": answer.verdict.action.value,
        "best_score": round(answer.verdict.best_score, 4),
        "thresholds": asdict(answer.verdict.thresholds),
        "parts": [
            {"question": part.question, "action": part.action.value, "best_score": round(part.best_score, 4)}
            for part in answer.verdict.parts
        ],
        "documents": [graded_record(graded) for graded in answer.graded],
        "strips": [strip_record(strip) for strip in answer.knowledge.strips],
        "citations": [citation_record(citation) for citation in answer.citations],
        "unknown_citations": answer.unknown_citations,
        "search": {
            "mode": answer.search.mode.value,
            "provider": answer.search.provider,
            "queries": list(answer.search.queries),
            "urls": list(answer.search.urls),
            "proposed": list(answer.search.proposed),
            "outcome": answer.search.outcome.value,
            "error": answer.search.error,
            "error_code": answer.search.error_code,
            "attempts": [asdict(attempt) for attempt in answer.search.attempts],
            "documents": [graded_record(graded) for graded in answer.search.graded],
        },
        "warnings": list(answer.warnings),
        "usage": usage_record(answer.usage),
        "seconds": {name: round(value, 4) for name, value in asdict(answer.seconds).items()},
        "models": {**asdict(answer.models), "parser": _parser_of_answer(answer)},
    }


def document_record(document: Document) -> Json:
    """Return a retrieved document, not graded."""
    regions = document.regions(0, len(document.text))
    return {
        "rank": document.rank,
        "origin": document.origin.value,
        "file": document.file,
        "page": document.page,
        "bbox": bbox(regions),
        "regions": regions_record(regions),
        "heading_path": list(document.heading_path),
        "text": document.text,
        "parser": _parsers((document,)),
        "url": document.url,
        "title": document.title,
        "fetched_at": document.fetched_at,
        "similarity": round(document.similarity, 4),
        "channels": [
            {"name": channel.name, "rank": channel.rank, "score": round(channel.score, 4)}
            for channel in document.channels
        ],
        "sources": list(document.sources),
    }


def graded_record(graded: Graded) -> Json:
    """Return a document with its score."""
    return {
        **document_record(graded.document),
        "score": round(graded.grade.score, 4),
        "grade_failed": graded.grade.failed,
    }


def strip_record(strip: Strip) -> Json:
    """Return a strip with its score and whether it was kept."""
    return {
        "text": strip.text,
        "origin": strip.document.origin.value,
        "file": strip.document.file,
        "page": strip.page,
        "bbox": bbox(strip.regions),
        "regions": regions_record(strip.regions),
        "url": strip.document.url,
        "title": strip.document.title,
        "fetched_at": strip.document.fetched_at,
        "document_rank": strip.document.rank,
        "score": round(strip.grade.score, 4),
        "grade_failed": strip.grade.failed,
        "kept": strip.kept,
    }


def citation_record(citation: Citation) -> Json:
    """Return a citation."""
    return {
        "n": citation.n,
        "origin": citation.origin.value,
        "file": citation.file,
        "page": citation.page,
        "bbox": bbox(citation.regions),
        "regions": regions_record(citation.regions),
        "url": citation.url,
        "title": citation.title,
        "fetched_at": citation.fetched_at,
        "quote": citation.quote,
        "mark": list(citation.mark) if citation.mark else None,
        "matched": citation.matched,
    }


def fetch_time(source: Citation | Document) -> str:
    """Return when a page of the web was fetched, for a person."""
    return f"{source.fetched_at[:16].replace('T', ' ')} UTC" if source.fetched_at else "–"


def _parser_of_answer(answer: Answer) -> str:
    """Return what read the cited documents (all retrieved ones when none is cited); the setting when no PDF was."""
    documents = [graded.document for graded in answer.graded]
    cited = {(citation.file, citation.page) for citation in answer.citations}
    return (
        _parsers(document for document in documents if (document.file, document.page) in cited)
        or _parsers(documents)
        or answer.models.parser
    )


def _parsers(documents: Iterable[Document]) -> str:
    """Return the parsers of the blocks that documents were made from: mineru, text, ocr."""
    chunks = (document.chunk for document in documents if document.chunk)
    return ", ".join(sorted({piece.block.parser.value for chunk in chunks for piece in chunk.pieces}))


def usage_record(usage: Usage) -> Json:
    """Return calls and tokens."""
    return asdict(usage)


def regions_record(regions: tuple[Region, ...]) -> list[Json]:
    """Return boxes with their pages."""
    return [{"page": region.page, "bbox": [round(value, 5) for value in region.bbox]} for region in regions]


def bbox(regions: tuple[Region, ...]) -> list[float] | None:
    """Return the one box around the regions of the first page; null when there is none."""
    if not regions:
        return None
    boxes = [region.bbox for region in regions if region.page == regions[0].page]
    lows, highs = [min(box[i] for box in boxes) for i in (0, 1)], [max(box[i] for box in boxes) for i in (2, 3)]
    return [round(value, 5) for value in lows + highs]
