"""Knowledge searching (paper, section 4.5): keywords → provider → pages → documents for the evaluator.

Of all that is known, only the question is sent, as at most three keywords. Nothing here raises: no provider, no result
and every failure end in a report that says so, and the pipeline goes on.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from threading import Lock

from config import Settings
from errors import ConfigurationError
from i18n import Language, translate
from keywords import KeywordRewriter, Keywords, extract_keywords
from schema import Document, Origin, SearchAttempt, SearchMode, SearchReport, Usage
from web_asking import ProviderAsker, failure_kind
from web_cache import build_cache, clear_cache
from web_fetch import FetchProblem, Page, PageFetcher, Section
from web_index import best_passages
from web_providers import WebProvider, build_providers
from web_results import WebResult, order_results
from web_text import seen, split_text

PROVIDER_SHARE = 0.4
"""Share of the time budget that one provider may use; pages need the rest."""
MAX_DOCUMENTS = 10
REMEMBERED = 256
"""Questions whose keywords by a language model are kept."""
FORMAT = "1"
"""Of what is cached; a new one makes the old entries unknown."""

__all__ = ["WebSearcher", "build_searcher", "clear_cache"]

logger = logging.getLogger(__name__)


class WebSearcher:
    """Searches with the question alone; one for all sessions of a process."""

    def __init__(
        self,
        settings: Settings,
        *,
        providers: Sequence[WebProvider] | None = None,
        rewriter: KeywordRewriter | None = None,
        allowed_hosts: Collection[str] = frozenset(),
    ) -> None:
        """Use the providers of the settings unless others are given; `allowed_hosts` are for loopback tests only."""
        self._settings = settings
        self._providers = providers
        self._rewriter = rewriter
        self._fetcher = PageFetcher(settings, allowed_hosts=allowed_hosts)
        self._cache = build_cache(settings)
        self._asker = ProviderAsker()
        self._known: dict[str, Keywords] = {}
        self._lock = Lock()

    def propose(self, question: str, *, language: Language) -> SearchReport:
        """Return what a search would ask for, without asking; a search then asks for that.

        The question itself where a local library is asked, its keywords where anything leaves this machine.
        """
        try:
            providers = self._chosen_providers()
        except ConfigurationError:
            providers = ()
        whole = (question,) if any(provider.local for provider in providers) else ()
        if providers and all(provider.local for provider in providers):
            return SearchReport(SearchMode.ASK, proposed=whole)
        keywords = self._keywords(question, language=language)
        proposed = (" ".join(keywords.words),) if keywords.words else ()
        return SearchReport(SearchMode.ASK, proposed=(*whole, *proposed), usage=keywords.usage)

    def search(self, question: str, *, language: Language) -> SearchReport:
        """Return the documents found on the web for a question; what went wrong is in the report.

        With the mode OFF nothing is done. The report's error is in the question's language.
        """
        if self._settings.web_search is SearchMode.OFF:
            return SearchReport(SearchMode.OFF)
        run = _Run(question, language=language)
        try:
            providers = self._chosen_providers()
        except ConfigurationError as error:
            return run.failed("configuration", setting=str(error.values.get("name", "")))
        if not providers:
            return run.failed("no_provider")
        keywords = Keywords()
        if not all(provider.local for provider in providers):
            keywords = self._keywords(question, language=language)
            run.report = replace(run.report, usage=keywords.usage)
        run.deadline = time.monotonic() + self._settings.web_budget
        found = self._ask_providers(run, providers=providers, keywords=keywords.words)
        if not found:
            return run.report
        urls = tuple(result.url for result in found)
        run.report = replace(run.report, urls=urls, documents=self._documents(run, results=found))
        return run.report if run.report.documents else run.failed("unreadable")

    def _chosen_providers(self) -> Sequence[WebProvider]:
        """The providers, built once: a library keeps its lock and knows how fresh its index is.

        :raises ConfigurationError: a setting names an unknown one or lacks what one needs.
        """
        if self._providers is None:
            self._providers = build_providers(self._settings)
        return self._providers

    def _keywords(self, question: str, *, language: Language) -> Keywords:
        """The keywords of a question; a model's are remembered, so that what was proposed is what is asked."""
        with self._lock:
            known = self._known.get(question)
        if known is not None:
            return replace(known, usage=Usage())
        keywords = extract_keywords(question, language=language, rewriter=self._rewriter)
        if keywords.usage.llm_calls:
            with self._lock:
                self._known[question] = keywords
                while len(self._known) > REMEMBERED:
                    self._known.pop(next(iter(self._known)))
        return keywords

    def _ask_providers(
        self, run: _Run, *, providers: Sequence[WebProvider], keywords: Sequence[str]
    ) -> list[WebResult]:
        """Results of the first provider that has any; each attempt is noted in the report.

        A provider that has none for all keywords is asked for the longest alone.
        """
        narrow = tuple(dict.fromkeys((" ".join(keywords), max(keywords, key=len)))) if keywords else ()
        for provider in providers:
            for query in (run.question,) if provider.local else narrow:
                results = self._attempt(provider, query=query, run=run)
                if results:
                    return results
                if run.report.attempts[-1].error:
                    break
        if not run.report.attempts:
            run.failed("no_keywords")
        elif all(attempt.error for attempt in run.report.attempts):
            run.failed(run.report.attempts[-1].error)
        return []

    def _attempt(self, provider: WebProvider, *, query: str, run: _Run) -> list[WebResult]:
        """Ask one provider and note the attempt."""
        queries = tuple(dict.fromkeys((*run.report.queries, query)))
        run.report = replace(run.report, provider=provider.name, queries=queries)
        results, error = self._ask(provider, query=query, run=run)
        ordered = order_results(
            results, authorities=self._settings.web_authorities, blocked=self._settings.web_blocked
        )[:MAX_DOCUMENTS]
        attempt = SearchAttempt(provider.name, results=len(ordered), error=error)
        run.report = replace(run.report, attempts=(*run.report.attempts, attempt))
        return ordered

    def _ask(self, provider: WebProvider, *, query: str, run: _Run) -> tuple[list[WebResult], str]:
        """Results of one provider, from the cache if they are there, and the kind of failure if it failed."""
        key = json.dumps([FORMAT, provider.name, run.language, self._settings.web_results, query])
        if not provider.local and (kept := self._cache.get(key)) is not None:
            return [WebResult(**row) for row in json.loads(kept)], ""
        limit = MAX_DOCUMENTS if provider.local else self._settings.web_results
        end = time.monotonic() + min(self._settings.web_budget * PROVIDER_SHARE, run.left)
        asked = self._asker.ask(provider, query=query, language=run.language, limit=limit, end=end)
        if asked.error is not None:
            return [], failure_kind(asked.error)
        if not provider.local:
            text = json.dumps([asdict(result) for result in asked.results], ensure_ascii=False)
            self._cache.put(key, text=text, brief=not asked.results)
        return asked.results, ""

    def _documents(self, run: _Run, *, results: list[WebResult]) -> tuple[Document, ...]:
        """Passages of the pages, best pages first, at most `MAX_DOCUMENTS`, no text twice."""
        pages = self._pages(run, urls=[result.url for result in results if not result.text])
        share = max(2, MAX_DOCUMENTS // len(results))
        found: dict[str, Document] = {}
        for result in results:
            for document in self._passages(result, page=pages.get(result.url), question=run.question, limit=share):
                found.setdefault(document.text, document)
        return tuple(
            replace(document, rank=rank) for rank, document in enumerate(list(found.values())[:MAX_DOCUMENTS], start=1)
        )

    def _passages(self, result: WebResult, *, page: Page | None, question: str, limit: int) -> list[Document]:
        """The passages of a page nearest to the question; the snippet when the page has no text."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if page is None or not page.sections:
            page = Page(result.url, sections=(Section(result.text or result.snippet),), fetched_at=now)
        title = seen(result.title or page.title or result.url)
        pieces = [
            (piece, section.anchor)
            for section in page.sections
            for piece in split_text(section.text, size=self._settings.chunk_size)
        ]
        anchors = dict(reversed(pieces))
        chosen = best_passages([piece for piece, _ in pieces], question=question, limit=limit)
        return [
            Document(
                text=piece,
                origin=Origin.WEB,
                rank=0,
                heading_path=(title,),
                url=result.url.split("#")[0] + anchors[piece] if anchors[piece] else result.url,
                title=title,
                fetched_at=page.fetched_at,
            )
            for piece in chosen
        ]

    def _pages(self, run: _Run, *, urls: list[str]) -> dict[str, Page]:
        """Pages by address, from the cache or fetched now."""
        pages: dict[str, Page] = {}
        for url in urls:
            if (kept := self._cache.get(f"{FORMAT} {run.language} {url}")) is not None:
                pages[url] = _loaded(kept)
        missing = [url for url in urls if url not in pages]
        if missing:
            for page in self._fetcher.fetch(missing, language=run.language, deadline=run.deadline):
                pages[page.url] = page
                if page.problem not in (FetchProblem.UNREACHABLE, FetchProblem.TIMEOUT):
                    key = f"{FORMAT} {run.language} {page.url}"
                    text = json.dumps(asdict(page), ensure_ascii=False)
                    self._cache.put(key, text=text, brief=page.problem is FetchProblem.STATUS)
        return pages


@dataclass(slots=True)
class _Run:
    """One search: what it may still take, and the report so far."""

    question: str
    language: Language
    deadline: float = 0.0
    report: SearchReport = SearchReport(SearchMode.AUTO)

    @property
    def left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def failed(self, code: str, **values: object) -> SearchReport:
        """Note why the search failed, in the question's language, and return the report."""
        error = translate(f"search.{code}", language=self.language, **values)
        self.report = replace(self.report, error=error, error_code=code)
        return self.report


def build_searcher(settings: Settings, *, rewriter: KeywordRewriter | None = None) -> WebSearcher:
    """Return the pipeline's searcher; `rewriter` is the language model that makes keywords, if there is one.

    The pipeline decides for each question whether it may be searched for, so that one question can be allowed while
    the setting is off; whoever calls this searcher has permission.
    """
    allowed = settings.model_copy(update={"web_search": SearchMode.AUTO})
    return WebSearcher(allowed, rewriter=rewriter)


def _loaded(text: str) -> Page:
    values = json.loads(text)
    sections = tuple(Section(**section) for section in values.pop("sections"))
    return Page(**{**values, "sections": sections, "problem": FetchProblem(values["problem"])})
