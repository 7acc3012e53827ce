"""Knowledge searching (paper, section 4.5): keywords → provider → pages → documents for the evaluator.

Only the question leaves this machine, as at most three keywords. Nothing here raises: no provider, no result and
every failure end in a report that says so, and the pipeline goes on.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock

from config import Settings
from errors import (
    ConfigurationError,
    CragError,
    ProviderAuthError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderUnavailableError,
)
from i18n import Language, translate
from keywords import KeywordRewriter, Keywords, extract_keywords
from schema import Document, Origin, SearchAttempt, SearchMode, SearchReport, Usage
from web_cache import build_cache, clear_cache
from web_fetch import FetchProblem, Page, PageFetcher, Section
from web_index import best_passages
from web_providers import SlowDownError, WebProvider, build_providers
from web_results import WebResult, order_results
from web_text import seen, split_text

PROVIDER_SHARE = 0.4
"""Share of the time budget that one provider may use; pages need the rest."""
MAX_DOCUMENTS = 10
REMEMBERED = 256
"""Questions whose keywords by a language model are kept."""
FORMAT = "1"
"""Of what is cached; a new one makes the old entries unknown."""
PATIENCE = 0.75
"""Share of a provider's time that may pass in waiting for its turn; the request needs the rest."""
COOL_DOWN_SECONDS = 60.0
"""How long a provider that asked to slow down is left alone, unless it says for how long itself."""

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
        self._pace = _Pace()
        self._known: dict[str, Keywords] = {}
        self._lock = Lock()

    def propose(self, question: str, *, language: Language) -> SearchReport:
        """Return what a search for the question would ask for first, without asking; a search then asks for that."""
        try:
            providers = self._chosen_providers()
        except ConfigurationError:
            providers = ()
        if providers and providers[0].local:
            return SearchReport(SearchMode.ASK, proposed=(question,))
        keywords = self._keywords(question, language=language)
        proposed = (" ".join(keywords.words),) if keywords.words else ()
        return SearchReport(SearchMode.ASK, proposed=proposed, usage=keywords.usage)

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
        end = time.monotonic() + min(self._settings.web_budget * PROVIDER_SHARE, run.left)
        results, error = self._call(provider, query=query, run=run, end=end)
        if isinstance(error, SlowDownError):
            # A short wait that it asks for is kept; a long one leaves the turn to the next provider.
            self._pace.rest(provider, seconds=error.seconds)
            results, error = self._call(provider, query=query, run=run, end=end)
            if isinstance(error, SlowDownError):
                self._pace.rest(provider, seconds=error.seconds)
        if error is None and not provider.local:
            text = json.dumps([asdict(result) for result in results], ensure_ascii=False)
            self._cache.put(key, text=text, brief=not results)
        return results, _kind(error) if error else ""

    def _call(
        self, provider: WebProvider, *, query: str, run: _Run, end: float
    ) -> tuple[list[WebResult], BaseException | None]:
        """Results of one request, or why there are none; `end` is on the clock of `time.monotonic`."""
        if not self._pace.enter(provider, patience=PATIENCE * (end - time.monotonic())):
            return [], ProviderRateLimitError(f"{provider.name}: its turn comes too late", name=provider.name)
        limit = MAX_DOCUMENTS if provider.local else self._settings.web_results
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="web-provider")
        future = executor.submit(provider.find, query, language=run.language, limit=limit)
        executor.shutdown(wait=False)
        try:
            error = future.exception(timeout=max(0.0, end - time.monotonic()))
        except FutureTimeoutError as late:
            return [], late
        if error is not None:
            logger.warning("web provider %s: %s", provider.name, type(error).__name__)
            return [], error
        return future.result(), None

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


@dataclass(slots=True)
class _Pace:
    """When each provider may be asked again."""

    ready: dict[str, float] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def enter(self, provider: WebProvider, *, patience: float) -> bool:
        """Wait for the provider's turn; False when it would not come within `patience` seconds."""
        with self.lock:
            now = time.monotonic()
            turn = max(now, self.ready.get(provider.name, 0.0))
            if turn > now and turn - now > patience:
                return False
            self.ready[provider.name] = turn + provider.interval
        time.sleep(turn - now)
        return True

    def rest(self, provider: WebProvider, *, seconds: float | None) -> None:
        """Leave a provider alone that asked to slow down, for as long as it said."""
        with self.lock:
            self.ready[provider.name] = time.monotonic() + (COOL_DOWN_SECONDS if seconds is None else seconds)


def build_searcher(settings: Settings, *, rewriter: KeywordRewriter | None = None) -> WebSearcher:
    """Return the pipeline's searcher; `rewriter` is the language model that makes keywords, if there is one.

    The pipeline decides for each question whether it may be searched for, so that one question can be allowed while
    the setting is off; whoever calls this searcher has permission.
    """
    allowed = settings.model_copy(update={"web_search": SearchMode.AUTO})
    return WebSearcher(allowed, rewriter=rewriter)


def _kind(error: BaseException) -> str:
    """The words under `search.` for a provider's failure."""
    match error:
        case ProviderRateLimitError():
            return "rate_limit"
        case FutureTimeoutError():
            return "timeout"
        case ProviderAuthError():
            return "auth"
        case ProviderResponseError():
            return "response"
        case ProviderUnavailableError():
            return "unavailable"
        case CragError():
            return "failed"
    return "failed"


def _loaded(text: str) -> Page:
    values = json.loads(text)
    sections = tuple(Section(**section) for section in values.pop("sections"))
    return Page(**{**values, "sections": sections, "problem": FetchProblem(values["problem"])})
