"""Where a query can be asked: DuckDuckGo and others by ddgs, Tavily, SearXNG, Wikipedia.

A provider gets keywords, never a document or the history. No result is an empty list; a failure is a typed
ProviderError, so that the next provider is asked. The endpoints come from the settings and are trusted; the
addresses they return are not (web_guard.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import ClassVar, Protocol, TypeVar, assert_never
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from config import Settings, WebProviderName
from errors import (
    ConfigurationError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderUnavailableError,
)
from i18n import Language
from waiting import retry_after
from web_library import open_library
from web_results import WebResult

REQUEST_SECONDS = 4.0
USER_AGENT = "CRAG/1.0 (PDF knowledge base; web search on a person's request)"
ENGINES = "duckduckgo, brave, mojeek, startpage, yahoo"
"""Search engines asked through ddgs; Wikipedia has its own provider, encyclopedias written by models are left out."""


class WebProvider(Protocol):
    """Answers a query with addresses, best first.

    `local`: nothing leaves this machine, so the whole question may be asked and nothing needs caching.
    `interval`: seconds to leave between two requests.
    """

    name: ClassVar[str]
    local: ClassVar[bool]
    interval: ClassVar[float]

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        """Return at most `limit` results; none is not an error.

        :raises ProviderError: no usable answer; the next provider may have one.
        """


class SlowDownError(ProviderRateLimitError):
    """The provider asks to slow down; `seconds` is for how long, where it says so."""

    def __init__(self, message: str, *, name: str, seconds: float | None = None) -> None:
        super().__init__(message, name=name)
        self.seconds = seconds


_Reply = TypeVar("_Reply", bound=BaseModel)


class _Row(BaseModel):
    """One result in the wire format of Tavily and SearXNG, and of the mapped ddgs rows."""

    model_config = ConfigDict(extra="ignore")
    url: str
    title: str | None = ""
    content: str | None = ""


class _Rows(BaseModel):
    results: list[_Row]


class _WikipediaHit(BaseModel):
    title: str
    snippet: str = ""


class _WikipediaHits(BaseModel):
    search: list[_WikipediaHit]


class _WikipediaReply(BaseModel):
    query: _WikipediaHits


@dataclass(frozen=True, slots=True)
class DdgsProvider:
    """Public search engines through ddgs; needs no key, and may be told to slow down."""

    engines: str = ENGINES
    name: ClassVar[str] = "ddgs"
    local: ClassVar[bool] = False
    interval: ClassVar[float] = 1.0

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        """Return at most `limit` results of the first engines that answer."""
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

        region = "cn-zh" if language == "zh" else "us-en"
        try:
            rows = DDGS(timeout=int(REQUEST_SECONDS)).text(
                query, region=region, max_results=limit, backend=self.engines
            )
        except RatelimitException as error:
            raise SlowDownError(f"ddgs: {error}", name=self.name) from error
        except TimeoutException as error:
            raise ProviderUnavailableError(f"ddgs: {error}", name=self.name) from error
        except DDGSException as error:
            if "no results" in str(error).lower():
                return []
            raise ProviderUnavailableError(f"ddgs: {error}", name=self.name) from error
        found = [_Row(url=row.get("href", ""), title=row.get("title"), content=row.get("body")) for row in rows]
        return _results(found, limit=limit)


@dataclass(frozen=True, slots=True)
class TavilyProvider:
    """Tavily's search API; needs a key."""

    url: str
    key: str
    name: ClassVar[str] = "tavily"
    local: ClassVar[bool] = False
    interval: ClassVar[float] = 0.0

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        """Return at most `limit` results; the language is the query's own."""
        body = {"query": query, "max_results": limit, "search_depth": "basic"}
        request = httpx.Request(
            "POST", f"{self.url.rstrip('/')}/search", json=body, headers={"Authorization": f"Bearer {self.key}"}
        )
        return _results(_ask(request, name=self.name, reply=_Rows).results, limit=limit)


@dataclass(frozen=True, slots=True)
class SearxngProvider:
    """A SearXNG server of one's own, with the JSON format switched on."""

    url: str
    name: ClassVar[str] = "searxng"
    local: ClassVar[bool] = False
    interval: ClassVar[float] = 0.0

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        """Return at most `limit` results in the question's language."""
        parameters = {"q": query, "format": "json", "language": "zh-CN" if language == "zh" else "en"}
        request = httpx.Request("GET", f"{self.url.rstrip('/')}/search", params=parameters)
        return _results(_ask(request, name=self.name, reply=_Rows).results, limit=limit)


@dataclass(frozen=True, slots=True)
class WikipediaProvider:
    """Full-text search of the Chinese or English Wikipedia."""

    url: str
    name: ClassVar[str] = "wikipedia"
    local: ClassVar[bool] = False
    interval: ClassVar[float] = 0.2

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        """Return at most `limit` articles of the question's language."""
        site = self.url.format(language=language).rstrip("/")
        parameters: dict[str, str | int] = {
            "action": "query",
            "list": "search",
            "srsearch": query,
            "srlimit": limit,
            "srprop": "snippet",
            "format": "json",
            "formatversion": 2,
        }
        request = httpx.Request("GET", f"{site}/w/api.php", params=parameters)
        hits = _ask(request, name=self.name, reply=_WikipediaReply).query.search
        rows = [
            _Row(
                url=f"{site}/wiki/{quote(hit.title.replace(' ', '_'), safe='/:(),!')}",
                title=hit.title,
                content=hit.snippet,
            )
            for hit in hits
        ]
        return _results(rows, limit=limit)


def build_providers(settings: Settings) -> list[WebProvider]:
    """Return the providers of the settings in their order.

    :raises ConfigurationError: what a provider needs is not set.
    """
    return [_build(name, settings=settings) for name in settings.web_providers]


def _build(name: WebProviderName, *, settings: Settings) -> WebProvider:
    match name:
        case "ddgs":
            return DdgsProvider()
        case "wikipedia":
            return WikipediaProvider(settings.wikipedia_url)
        case "tavily":
            key = settings.tavily_api_key.get_secret_value()
            if not key:
                raise _missing(name, setting="TAVILY_API_KEY")
            return TavilyProvider(settings.tavily_url, key)
        case "searxng":
            if not settings.searxng_url:
                raise _missing(name, setting="CRAG_SEARXNG_URL")
            return SearxngProvider(settings.searxng_url)
        case "library":
            return open_library(settings)
        case _:
            assert_never(name)


def _missing(name: str, *, setting: str) -> ConfigurationError:
    return ConfigurationError(f"web provider {name}: {setting} is not set", hint=f"set {setting}", name=setting)


def _ask(request: httpx.Request, *, name: str, reply: type[_Reply]) -> _Reply:
    """Send the request and read the JSON reply.

    :raises ProviderError: unreachable, refused, told to slow down, or not the wire format.
    """
    request.headers["User-Agent"] = USER_AGENT
    try:
        with httpx.Client(timeout=REQUEST_SECONDS, follow_redirects=True) as client:
            response = client.send(request)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderUnavailableError(f"{name}: {type(error).__name__} {error}", name=name) from error
    if (refusal := _refusal(response, name=name)) is not None:
        raise refusal
    try:
        return reply.model_validate_json(response.content)
    except ValidationError as error:
        raise ProviderResponseError(f"{name}: the reply is not its search format", name=name) from error


def _refusal(response: httpx.Response, *, name: str) -> ProviderError | None:
    status = response.status_code
    if status == httpx.codes.OK:
        return None
    seconds = retry_after(response.headers.get("Retry-After", ""))
    asked_to_wait = status == httpx.codes.SERVICE_UNAVAILABLE and seconds is not None
    if asked_to_wait or status in (httpx.codes.ACCEPTED, httpx.codes.TOO_MANY_REQUESTS, 432, 433):
        return SlowDownError(f"{name}: status {status}", name=name, seconds=seconds)
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return ProviderAuthError(f"{name}: status {status}", name=name)
    return ProviderUnavailableError(f"{name}: status {status}", name=name)


def _results(rows: list[_Row], *, limit: int) -> list[WebResult]:
    found = [
        WebResult(url=row.url, title=_plain(row.title), snippet=_plain(row.content))
        for row in rows
        if row.url.startswith(("http://", "https://"))
    ]
    return found[:limit]


def _plain(value: str | None) -> str:
    """Text of a snippet without its markup, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", value or "")).split())
