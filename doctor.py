"""What works and what to fix: the models, the store, the parser, the providers, the settings."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bases import existing_base
from config import environment_warnings, interface_language
from crag import chosen_thresholds
from errors import CragError, StoreError
from i18n import LANGUAGES, SAID, Language, advice, translate
from schema import SearchMode

if TYPE_CHECKING:
    from config import Settings
    from knowledge_base import KnowledgeBase

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing examined: what was found, and what to do where it does not work."""

    name: str
    ok: bool
    detail: str
    hint: str = ""

    def as_json(self) -> Json:
        """Return a plain object with these names."""
        return asdict(self)


def examine(settings: Settings, *, knowledge_base: str) -> list[Check]:
    """Examine everything a question needs; a part that fails never hides the others."""
    language = interface_language(settings)
    checks = [Check("python", sys.version_info >= (3, 11), platform.python_version())]
    checks += [Check("settings", ok=False, detail=line) for line in environment_warnings()]
    checks.append(_check("embedder", language=language, work=lambda: _embedder(settings)))
    checks.append(_check("evaluator", language=language, work=lambda: _evaluator(settings)))
    checks.append(_check("parser", language=language, work=lambda: _parser(settings)))
    checks.append(_check("store", language=language, work=lambda: _store(settings, name=knowledge_base)))
    checks.append(_check("files", language=language, work=lambda: _files(settings, name=knowledge_base)))
    checks += list(_roles(settings, language=language))
    checks.append(_check("web", language=language, work=lambda: _web(settings)))
    return checks


def status_record(settings: Settings, *, knowledge_base: KnowledgeBase) -> Json:
    """Return counts, models, thresholds and places."""
    from evaluator import build_evaluator

    evaluator = build_evaluator(settings, embedder=knowledge_base.embedder)
    return {
        **knowledge_base.status().as_json(),
        "models": {
            "parser": settings.pdf_parser,
            "embedder": knowledge_base.embedder.name,
            "evaluator": evaluator.name,
            "generator": settings.answer_provider or settings.llm_provider,
        },
        "thresholds": {
            language: asdict(chosen_thresholds(settings, language, evaluator=evaluator)) for language in LANGUAGES
        },
        "web_search": settings.web_search.value,
        "paths": {"files": str(knowledge_base.files_dir.resolve()), "data": str(settings.data_dir.resolve())},
    }


def _check(name: str, *, language: Language, work: Callable[[], str]) -> Check:
    try:
        return Check(name, ok=True, detail=work())
    except CragError as error:
        lead = translate(f"error.{error.code}", language=language, **error.values)
        detail = lead if error.code in SAID or error.message in lead else f"{lead} {error.message}"
        return Check(name, ok=False, detail=detail, hint=_hint(error.code, hint=error.hint, language=language))


def _embedder(settings: Settings) -> str:
    from embeddings import build_embedder

    embedder = build_embedder(settings)
    return f"{embedder.name}, {embedder.embed_queries(['ready']).shape[1]}"


def _evaluator(settings: Settings) -> str:
    from embeddings import build_embedder
    from evaluator import build_evaluator

    return build_evaluator(settings, embedder=build_embedder(settings)).name


def _parser(settings: Settings) -> str:
    from pdf_loader import PdfLoader

    return PdfLoader(settings).parser


def _store(settings: Settings, *, name: str) -> str:
    from knowledge_base import open_knowledge_base

    with open_knowledge_base(settings, name=existing_base(settings, name=name).name) as knowledge_base:
        status = knowledge_base.status()
    return f"{status.documents} documents, {status.chunks} chunks, {status.vectors} vectors, {status.failed} failed"


def _files(settings: Settings, *, name: str) -> str:
    base = existing_base(settings, name=name)
    folder = base.files_dir.resolve()
    if folder.is_dir():
        return str(folder)
    if base.exists() or folder.exists():
        hint = "mount or make the folder, or correct CRAG_FILES_DIR"
        raise StoreError(f"{folder} is not a folder", hint=hint, code="files_missing", path=folder)
    return f"{folder} (the first build makes it)"


def _web(settings: Settings) -> str:
    from web_providers import build_providers

    if settings.web_search is SearchMode.OFF:
        return settings.web_search.value
    names = [provider.name for provider in build_providers(settings)]
    return f"{settings.web_search.value}: {', '.join(names)}"


def _roles(settings: Settings, *, language: Language) -> Iterator[Check]:
    from llm_probe import probe_roles

    for probe in probe_roles(settings):
        detail = " ".join(filter(None, (probe.provider, probe.model, probe.url)))
        if not probe.ok:
            lead = translate(f"error.{probe.code}", language=language, **dict(probe.values))
            detail = lead if probe.url in lead else f"{lead} {probe.url}"
        if probe.url:
            detail += f" ({probe.seconds:.2f} s)"
        hint = _hint(probe.code, hint=probe.hint, language=language)
        yield Check(f"role {probe.role}", ok=probe.ok, detail=detail, hint=hint)


def _hint(code: str, *, hint: str, language: Language) -> str:
    """The hint for scripts is in English, and always there."""
    return hint if language == "en" else advice(code, language=language, hint=hint)
