"""Every provider over real HTTP: results, none, slow down, broken, silent, HTML instead of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

import web_providers
from config import load_settings
from errors import (
    ConfigurationError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderUnavailableError,
)
from tests.integration.helpers_web import Site, site
from waiting import retry_after
from web_providers import (
    DdgsProvider,
    SearxngProvider,
    SlowDownError,
    TavilyProvider,
    WebProvider,
    WikipediaProvider,
    build_providers,
)
from web_results import WebResult

Make = Callable[[Site], WebProvider]
ROWS = [{"url": "https://a.test/1", "title": "One", "content": "First <b>hit</b> &amp; more", "score": 0.9}]
WIKI = {
    "batchcomplete": True,
    "query": {"search": [{"ns": 0, "title": "Tower (Pisa)?", "snippet": "The <span>tower</span>"}]},
}
DUCK = (
    '<html><body><div class="result__body links_main"><h2><a href="https://a.test/1">One</a></h2>'
    '<a href="https://a.test/1">First hit</a></div></body></html>'
)


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as running:
        yield running


PROVIDERS: dict[str, tuple[Make, str, Any, Any]] = {
    "tavily": (lambda web: TavilyProvider(web.url(), "key-1"), "/search", {"results": ROWS}, {"results": []}),
    "searxng": (lambda web: SearxngProvider(web.url()), "/search", {"results": ROWS}, {"results": []}),
    "wikipedia": (lambda web: WikipediaProvider(web.url()), "/w/api.php", WIKI, {"query": {"search": []}}),
}
JSON_PROVIDERS = pytest.mark.parametrize("name", sorted(PROVIDERS))


@JSON_PROVIDERS
def test_results(web: Site, name: str) -> None:
    make, path, found, _ = PROVIDERS[name]
    web.reply_json(path, found)
    (result,) = make(web).find("tower height", language="en", limit=5)
    if name == "wikipedia":
        assert result == WebResult(web.url("/wiki/Tower_(Pisa)%3F"), "Tower (Pisa)?", "The tower")
    else:
        assert result == WebResult("https://a.test/1", "One", "First hit & more")


@JSON_PROVIDERS
def test_no_result_is_not_an_error(web: Site, name: str) -> None:
    make, path, _, empty = PROVIDERS[name]
    web.reply_json(path, empty)
    assert make(web).find("tower height", language="en", limit=5) == []


@JSON_PROVIDERS
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (202, ProviderRateLimitError),
        (429, ProviderRateLimitError),
        (401, ProviderAuthError),
        (403, ProviderAuthError),
        (500, ProviderUnavailableError),
        (503, ProviderUnavailableError),
    ],
)
def test_refusals_are_typed(web: Site, name: str, status: int, error: type[ProviderError]) -> None:
    make, path, found, _ = PROVIDERS[name]
    web.page(path, json.dumps(found), status=status)
    with pytest.raises(error):
        make(web).find("tower height", language="en", limit=5)


@JSON_PROVIDERS
@pytest.mark.parametrize("body", ["<html>Are you a robot?</html>", "", "[]", '{"results": 3, "query": []}'])
def test_another_format_is_an_error(web: Site, name: str, body: str) -> None:
    make, path, _, _ = PROVIDERS[name]
    web.page(path, body)
    with pytest.raises(ProviderResponseError):
        make(web).find("tower height", language="en", limit=5)


@JSON_PROVIDERS
def test_silence_is_an_error(web: Site, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_providers, "REQUEST_SECONDS", 0.3)
    make, path, _, _ = PROVIDERS[name]
    web.hang(path)
    with pytest.raises(ProviderUnavailableError):
        make(web).find("tower height", language="en", limit=5)


@JSON_PROVIDERS
def test_nobody_there_is_an_error(name: str) -> None:
    with site() as closed:
        make = PROVIDERS[name][0](closed)
    with pytest.raises(ProviderUnavailableError):
        make.find("tower height", language="en", limit=5)


@JSON_PROVIDERS
def test_wait_that_is_asked_for_is_told(web: Site, name: str) -> None:
    make, path, _, _ = PROVIDERS[name]
    web.page(path, "", status=429, Retry_After="7")
    with pytest.raises(SlowDownError) as raised:
        make(web).find("tower height", language="en", limit=5)
    assert raised.value.seconds == 7.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), (" 12 ", 12.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("-1", None), ("", None), ("soon", None)],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_retry_after_a_moment() -> None:
    seconds = retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    assert seconds is not None
    assert 80 < seconds <= 90


def test_tavily_sends_its_key_and_nothing_but_the_query(web: Site) -> None:
    web.reply_json("/search", {"results": []})
    TavilyProvider(web.url(), "key-1").find("tower height", language="en", limit=3)
    (request,) = web.received
    assert request.headers["Authorization"] == "Bearer key-1"
    assert json.loads(request.body) == {"query": "tower height", "max_results": 3, "search_depth": "basic"}


def test_searxng_asks_for_json_in_the_language(web: Site) -> None:
    web.reply_json("/search", {"results": ROWS * 4})
    found = SearxngProvider(web.url() + "/").find("塔 高度", language="zh", limit=2)
    assert len(found) == 2
    assert web.received[0].query == {"q": ["塔 高度"], "format": ["json"], "language": ["zh-CN"]}


def test_wikipedia_asks_the_site_of_the_language(web: Site) -> None:
    web.reply_json("/zh/w/api.php", {"query": {"search": []}})
    assert WikipediaProvider(web.url("/{language}")).find("塔", language="zh", limit=2) == []
    assert web.received[0].query["srsearch"] == ["塔"]


def test_addresses_that_are_not_http_are_left_out(web: Site) -> None:
    rows = [
        {"url": url, "title": "t", "content": None} for url in ("javascript:alert(1)", "file:///x", "https://a.test")
    ]
    web.reply_json("/search", {"results": rows})
    found = SearxngProvider(web.url()).find("x", language="en", limit=5)
    assert [result.url for result in found] == ["https://a.test"]


@pytest.fixture
def duck(web: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    from ddgs.engines.duckduckgo import Duckduckgo

    monkeypatch.setattr(Duckduckgo, "search_url", web.url("/html/"))
    return web


def test_ddgs_results(duck: Site) -> None:
    duck.page("/html/", DUCK)
    found = DdgsProvider(engines="duckduckgo").find("tower height", language="en", limit=5)
    assert [(result.url, result.title) for result in found] == [("https://a.test/1", "One")]
    assert b"tower" in duck.received[0].body


@pytest.mark.parametrize(("status", "body"), [(200, "<html></html>"), (202, "slow down"), (429, ""), (500, "{")])
def test_ddgs_without_results_is_not_an_error(duck: Site, status: int, body: str) -> None:
    """ddgs itself does not tell a refusal from no result; either way the next provider is asked."""
    duck.page("/html/", body, status=status)
    assert DdgsProvider(engines="duckduckgo").find("tower height", language="en", limit=5) == []


def test_ddgs_silence_is_an_error(duck: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_providers, "REQUEST_SECONDS", 1.0)
    duck.hang("/html/")
    with pytest.raises(ProviderUnavailableError):
        DdgsProvider(engines="duckduckgo").find("tower height", language="en", limit=5)


def test_every_engine_named_is_known_to_ddgs() -> None:
    from ddgs.engines import ENGINES

    assert {name.strip() for name in web_providers.ENGINES.split(",")} <= set(ENGINES["text"])


def test_providers_keep_the_order_of_the_settings() -> None:
    settings = load_settings(
        web_providers="searxng, tavily,wikipedia,ddgs", searxng_url="http://a.test", tavily_api_key="k"
    )
    assert [provider.name for provider in build_providers(settings)] == ["searxng", "tavily", "wikipedia", "ddgs"]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("tavily", "TAVILY_API_KEY"),
        ("searxng", "CRAG_SEARXNG_URL"),
        ("library", "CRAG_WEB_LIBRARY_DIR"),
    ],
)
def test_what_a_provider_lacks_is_named(name: str, setting: str) -> None:
    with pytest.raises(ConfigurationError, match=setting) as raised:
        build_providers(load_settings(web_providers=name))
    assert raised.value.values["name"] == setting
