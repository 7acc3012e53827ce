"""The search stage from the question to its documents, over real HTTP on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import search
import web_providers
from config import ROOT, load_settings
from errors import ProviderUnavailableError
from i18n import Language
from keywords import Keywords
from schema import Origin, SearchMode, SearchOutcome, Usage
from search import WebSearcher, build_searcher
from tests.integration.helpers_web import Site, site
from web_cache import clear_cache
from web_results import WebResult

QUESTION = "How tall is the Lighthouse of Alexandria?"
FACT = "The Lighthouse of Alexandria was at least 100 metres tall."


@pytest.fixture(autouse=True, scope="module")
def imports() -> None:
    """Time budgets of a second or two are for the search, not for a first import on a busy machine."""
    import langchain_text_splitters
    import trafilatura

    assert trafilatura
    assert langchain_text_splitters


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as running:
        yield running


@pytest.fixture
def searcher(web: Site, tmp_path: Path) -> WebSearcher:
    return make_searcher(web, tmp_path)


def make_searcher(web: Site, folder: Path, *, rewriter: Any = None, **changes: Any) -> WebSearcher:
    values = {"web_search": "auto", "web_providers": ("searxng",), "searxng_url": web.url(), "data_dir": folder}
    return WebSearcher(load_settings(**{**values, **changes}), allowed_hosts={"127.0.0.1"}, rewriter=rewriter)


def give(web: Site, *rows: tuple[str, str], snippet: str = "") -> None:
    results = [{"url": url, "title": title, "content": snippet} for url, title in rows]
    web.reply_json("/search", {"results": results})


def test_documents_carry_text_title_address_and_time(web: Site, searcher: WebSearcher) -> None:
    give(web, (web.article("/a", FACT), "Lighthouse"))
    report = searcher.search(QUESTION, language="en")
    (document,) = report.documents
    assert FACT in document.text
    assert (document.origin, document.url, document.title) == (Origin.WEB, web.url("/a"), "Lighthouse")
    assert (document.rank, document.heading_path) == (1, ("Lighthouse",))
    assert document.fetched_at.endswith("+00:00")
    assert (report.mode, report.error, report.provider) == (SearchMode.AUTO, "", "searxng")
    assert (report.queries, report.urls) == (("tall Lighthouse Alexandria",), (web.url("/a"),))


def test_off_does_nothing(web: Site, tmp_path: Path) -> None:
    report = make_searcher(web, tmp_path, web_search="off").search(QUESTION, language="en")
    assert report.mode is SearchMode.OFF
    assert (report.error, report.queries, web.received) == ("", (), [])


def test_ask_searches_when_it_is_called(web: Site, tmp_path: Path) -> None:
    give(web, (web.article("/a", FACT), "Lighthouse"))
    report = make_searcher(web, tmp_path, web_search="ask").search(QUESTION, language="en")
    assert report.mode is SearchMode.AUTO
    assert len(report.documents) == 1


def test_pipeline_may_allow_one_question_while_the_setting_is_off(web: Site, tmp_path: Path) -> None:
    give(web, ("https://a.test", "Lighthouse"), snippet=FACT)
    settings = load_settings(web_providers=("searxng",), searxng_url=web.url(), data_dir=tmp_path, web_budget=2.0)
    assert settings.web_search is SearchMode.OFF
    assert len(build_searcher(settings).search(QUESTION, language="en").documents) == 1


def test_what_a_search_would_ask_is_shown_without_a_request(web: Site, searcher: WebSearcher) -> None:
    shown = searcher.propose(QUESTION, language="en")
    assert (shown.mode, shown.queries, web.received) == (SearchMode.ASK, (), [])
    give(web)
    assert searcher.search(QUESTION, language="en").queries[:1] == shown.proposed
    assert web.received[0].query["q"] == list(shown.proposed)


def test_keywords_of_the_language_model_are_the_same_when_allowed(web: Site, tmp_path: Path) -> None:
    model = FixedKeywords(("Pharos", "height"))
    searcher = make_searcher(web, tmp_path, rewriter=model)
    shown = searcher.propose(QUESTION, language="en")
    assert (shown.proposed, shown.usage.llm_calls) == (("Pharos height",), 1)
    model.words = ("another", "thought")
    give(web)
    report = searcher.search(QUESTION, language="en")
    assert (report.queries[0], report.usage.llm_calls) == ("Pharos height", 0)


def test_proposal_of_a_wrong_setting_names_the_keywords(web: Site, tmp_path: Path) -> None:
    searcher = make_searcher(web, tmp_path, web_providers=("tavily",))
    assert searcher.propose(QUESTION, language="en").proposed == ("tall Lighthouse Alexandria",)


def test_a_library_is_asked_the_question_and_the_web_its_keywords(web: Site, tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    searcher = make_searcher(web, tmp_path, web_providers=("library", "searxng"), web_library_dir=folder)
    assert searcher.propose(QUESTION, language="en").proposed == (QUESTION, "tall Lighthouse Alexandria")
    searcher = make_searcher(web, tmp_path, web_providers=("library",), web_library_dir=folder)
    assert searcher.propose(QUESTION, language="en").proposed == (QUESTION,)


def test_pages_that_cannot_be_read_are_a_failure(web: Site, searcher: WebSearcher) -> None:
    give(web, (web.page("/a", "", status=500), "Lighthouse"))
    report = searcher.search(QUESTION, language="en")
    assert (report.error_code, report.documents, report.urls) == ("unreadable", (), (web.url("/a"),))
    assert report.outcome is SearchOutcome.FAILED


def test_repeated_question_makes_no_new_request(web: Site, searcher: WebSearcher, tmp_path: Path) -> None:
    give(web, (web.article("/a", FACT), "Lighthouse"), (web.page("/gone", "", kind="image/png"), "Picture"))
    first = searcher.search(QUESTION, language="en")
    asked = len(web.received)
    assert searcher.search(QUESTION, language="en").documents == first.documents
    assert make_searcher(web, tmp_path).search(QUESTION, language="en").documents == first.documents
    assert len(web.received) == asked == 3
    assert clear_cache(load_settings(data_dir=tmp_path)) == 3
    searcher.search(QUESTION, language="en")
    assert len(web.received) == 2 * asked


def test_repeated_question_without_an_answer_makes_no_new_request_for_a_while(
    web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing found and a page that is gone are remembered too, but not for the day."""
    give(web, (web.page("/gone", "", status=404), "Lighthouse"), snippet=FACT)
    searcher = make_searcher(web, tmp_path)
    found, none = QUESTION, "Who painted the Zanzibar frescoes?"
    searcher.search(found, language="en")
    give(web)
    searcher.search(none, language="en")
    asked = len(web.received)
    for question in (found, none):
        searcher.search(question, language="en")
    assert len(web.received) == asked
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 601)
    for question in (found, none):
        searcher.search(question, language="en")
    assert (web.asked("/gone"), len(web.received)) == (2, asked + 3), "the results of the first are kept for the day"


def test_a_page_that_was_late_is_asked_for_again(web: Site, tmp_path: Path) -> None:
    give(web, (web.hang("/a"), "Lighthouse"), snippet=FACT)
    searcher = make_searcher(web, tmp_path, web_budget=1.0)
    searcher.search(QUESTION, language="en")
    web.article("/a", "The lighthouse stood on the island of Pharos for many hundred years.")
    assert "Pharos" in searcher.search(QUESTION, language="en").documents[0].text


def test_cache_of_no_hours_asks_again(web: Site, tmp_path: Path) -> None:
    searcher = make_searcher(web, tmp_path, web_cache_hours=0)
    give(web, (web.article("/a", FACT), "Lighthouse"))
    searcher.search(QUESTION, language="en")
    searcher.search(QUESTION, language="en")
    assert web.asked("/a") == 2


def test_snippet_stands_in_for_a_page_without_text(web: Site, searcher: WebSearcher) -> None:
    give(web, (web.page("/a", "", status=500), "Lighthouse"), snippet=FACT)
    (document,) = searcher.search(QUESTION, language="en").documents
    assert (document.text, document.url) == (FACT, web.url("/a"))


def test_private_result_gives_its_snippet_only(web: Site, tmp_path: Path) -> None:
    give(web, (web.article("/a", "A secret of the inner network."), "Inside"), snippet=FACT)
    settings = load_settings(web_search="auto", web_providers=("searxng",), searxng_url=web.url(), data_dir=tmp_path)
    (document,) = build_searcher(settings).search(QUESTION, language="en").documents
    assert document.text == FACT
    assert web.asked("/a") == 0


def test_nothing_found_is_not_an_error(web: Site, searcher: WebSearcher) -> None:
    give(web)
    report = searcher.search(QUESTION, language="en")
    assert (report.documents, report.error, report.outcome) == ((), "", SearchOutcome.NOTHING)


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "rate_limit"), (202, "rate_limit"), (500, "unavailable"), (401, "auth"), (200, "response")],
)
def test_failure_is_told_in_the_language_of_the_question(web: Site, tmp_path: Path, status: int, code: str) -> None:
    web.page("/search", "<html>", status=status)
    report = make_searcher(web, tmp_path).search(QUESTION, language="en")
    assert (report.error_code, report.documents) == (code, ())
    assert report.error.isascii()
    report = make_searcher(web, tmp_path).search("亚历山大灯塔有多高？", language="zh")
    assert not report.error.isascii()
    assert "search." not in report.error


@pytest.mark.parametrize("status", [429, 500, 200])
def test_failure_moves_on_to_the_next_provider(web: Site, tmp_path: Path, status: int) -> None:
    web.page("/search", "<html>", status=status)
    wiki = {"query": {"search": [{"title": "Lighthouse", "snippet": FACT}]}}
    web.reply_json("/w/api.php", wiki)
    web.article("/wiki/Lighthouse", FACT)
    searcher = make_searcher(web, tmp_path, web_providers=("searxng", "wikipedia"), wikipedia_url=web.url())
    report = searcher.search(QUESTION, language="en")
    assert (report.provider, report.error, len(report.documents)) == ("wikipedia", "", 1)
    assert [(attempt.provider, bool(attempt.error)) for attempt in report.attempts] == [
        ("searxng", True),
        ("wikipedia", False),
    ]


def test_empty_moves_on_to_the_next_provider(web: Site, tmp_path: Path) -> None:
    give(web)
    web.reply_json("/w/api.php", {"query": {"search": []}})
    searcher = make_searcher(web, tmp_path, web_providers=("searxng", "wikipedia"), wikipedia_url=web.url())
    report = searcher.search(QUESTION, language="en")
    assert (web.asked("/w/api.php"), report.error) == (2, "")


def test_too_many_keywords_are_narrowed_to_the_longest(web: Site, searcher: WebSearcher) -> None:
    give(web)
    report = searcher.search(QUESTION, language="en")
    assert [item.query["q"] for item in web.received] == [["tall Lighthouse Alexandria"], ["Lighthouse"]]
    assert report.queries == ("tall Lighthouse Alexandria", "Lighthouse")


def test_provider_that_asks_to_slow_down_is_left_alone(web: Site, searcher: WebSearcher) -> None:
    web.page("/search", "", status=429)
    assert searcher.search(QUESTION, language="en").error_code == "rate_limit"
    assert searcher.search("Who built the Lighthouse of Alexandria?", language="en").error_code == "rate_limit"
    assert web.asked("/search") == 1


@pytest.mark.parametrize("status", [202, 429, 503])
def test_a_short_wait_is_kept_and_the_provider_asked_again(web: Site, tmp_path: Path, status: int) -> None:
    found = {"results": [{"url": "https://a.test", "title": "Lighthouse", "content": FACT}]}
    web.turns("/search", (status, {"Retry_After": "1"}, {}), (200, {}, found))
    started = time.monotonic()
    report = make_searcher(web, tmp_path, web_budget=6.0).search(QUESTION, language="en")
    assert (report.provider, report.error, len(report.documents)) == ("searxng", "", 1)
    assert web.asked("/search") == 2
    assert 1.0 <= time.monotonic() - started < 6.5


def test_a_wait_that_is_asked_for_twice_is_given_up(web: Site, tmp_path: Path) -> None:
    web.page("/search", "", status=429, Retry_After="1")
    report = make_searcher(web, tmp_path, web_budget=6.0).search(QUESTION, language="en")
    assert (report.error_code, web.asked("/search")) == ("rate_limit", 2)


@pytest.mark.parametrize("wait", ["60", "Wed, 21 Oct 2065 07:28:00 GMT", "soon", ""])
def test_a_long_wait_moves_on_at_once(web: Site, tmp_path: Path, wait: str) -> None:
    web.page("/search", "", status=429, Retry_After=wait)
    web.reply_json("/w/api.php", {"query": {"search": [{"title": "Lighthouse", "snippet": FACT}]}})
    web.article("/wiki/Lighthouse", FACT)
    searcher = make_searcher(web, tmp_path, web_providers=("searxng", "wikipedia"), wikipedia_url=web.url())
    started = time.monotonic()
    report = searcher.search(QUESTION, language="en")
    assert time.monotonic() - started < 2.0
    assert (report.provider, web.asked("/search")) == ("wikipedia", 1)


def test_a_wait_lasts_as_long_as_it_was_asked_for(web: Site, tmp_path: Path) -> None:
    """Longer than a search may wait, shorter than the usual rest."""
    web.page("/search", "", status=429, Retry_After="1")
    searcher = make_searcher(web, tmp_path, web_budget=2.0)
    assert searcher.search(QUESTION, language="en").error_code == "rate_limit"
    assert (web.asked("/search"), searcher.search(QUESTION, language="en").error_code) == (1, "rate_limit")
    time.sleep(1.0)
    give(web, ("https://a.test", "Lighthouse"), snippet=FACT)
    assert searcher.search(QUESTION, language="en").error == ""


def test_requests_to_a_provider_keep_their_distance(web: Site, searcher: WebSearcher, monkeypatch: Any) -> None:
    monkeypatch.setattr(web_providers.SearxngProvider, "interval", 0.4)
    give(web)
    started = time.monotonic()
    searcher.search(QUESTION, language="en")
    searcher.search("Who built the Lighthouse of Alexandria?", language="en")
    assert time.monotonic() - started >= 0.4


def test_time_budget_gives_partial_results(web: Site, tmp_path: Path) -> None:
    hanging = [(web.hang(f"/hang{n}"), f"Hang {n}") for n in range(2)]
    give(web, hanging[0], (web.article("/a", FACT), "Lighthouse"), hanging[1])
    searcher = make_searcher(web, tmp_path, web_budget=2.0)
    started = time.monotonic()
    report = searcher.search(QUESTION, language="en")
    assert time.monotonic() - started < 3.0
    assert [FACT in document.text for document in report.documents] == [True]


def test_silent_provider_leaves_time_for_the_next(web: Site, tmp_path: Path) -> None:
    web.hang("/search")
    web.reply_json("/w/api.php", {"query": {"search": [{"title": "Lighthouse", "snippet": FACT}]}})
    web.article("/wiki/Lighthouse", FACT)
    searcher = make_searcher(
        web, tmp_path, web_providers=("searxng", "wikipedia"), wikipedia_url=web.url(), web_budget=4.0
    )
    started = time.monotonic()
    report = searcher.search(QUESTION, language="en")
    assert time.monotonic() - started < 5.0
    assert report.attempts[0].error == "timeout"
    assert len(report.documents) == 1


def test_authorities_come_first_and_blocked_domains_never(web: Site, tmp_path: Path) -> None:
    names = ["https://blog.test/x", "https://en.wikipedia.org/wiki/X", "https://spam.test/x", "https://own.test/x"]
    give(web, *((url, url) for url in names), snippet=FACT)
    searcher = make_searcher(web, tmp_path, web_blocked="spam.test", web_authorities="own.test", web_budget=1.0)
    report = searcher.search(QUESTION, language="en")
    assert report.urls == ("https://own.test/x", "https://en.wikipedia.org/wiki/X", "https://blog.test/x")
    assert [document.url for document in report.documents] == ["https://own.test/x"], "one text is one document"


def test_long_page_is_cut_and_the_best_passages_kept(web: Site, searcher: WebSearcher) -> None:
    filler = "".join(
        f"<p>Paragraph {n} tells of the sea and the weather on day {n}. {'Rain fell. ' * 30}</p>" for n in range(60)
    )
    give(web, (web.article("/a", f"{filler}<p>{FACT}</p>{filler}"), "Log"))
    documents = searcher.search(QUESTION, language="en").documents
    assert 1 < len(documents) <= search.MAX_DOCUMENTS
    assert any(FACT in document.text for document in documents)
    assert all(len(document.text) <= 900 for document in documents)
    assert [document.rank for document in documents] == list(range(1, len(documents) + 1))


def test_pdf_result_leads_to_its_page(web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web_fetch.PAGE_SECONDS", 60.0)
    searcher = make_searcher(web, tmp_path, web_budget=60.0)
    sample = min((ROOT / "Files").glob("*sample*.pdf"))
    give(web, (web.page("/k2.pdf", sample.read_bytes(), kind="application/pdf"), "Handbook"))
    documents = searcher.search("青禾 K2 的重量是多少？", language="zh").documents
    assert documents
    assert all(document.url.startswith(web.url("/k2.pdf#page=")) for document in documents)


@dataclass
class FixedKeywords:
    words: tuple[str, ...]

    def keywords(self, question: str, *, language: Language) -> Keywords:
        return Keywords(self.words, usage=Usage(1, 20, 5))


def test_keywords_of_the_language_model_are_asked_and_booked(web: Site, tmp_path: Path) -> None:
    give(web)
    searcher = make_searcher(web, tmp_path, rewriter=FixedKeywords(("Pharos", "height", "metres", "ancient")))
    report = searcher.search(QUESTION, language="en")
    assert (report.queries[0], report.usage.llm_calls) == ("Pharos height metres", 1)


def test_question_without_a_content_word(web: Site, searcher: WebSearcher) -> None:
    report = searcher.search("What is it?", language="en")
    assert (report.error_code, web.received) == ("no_keywords", [])


def test_time_for_the_keywords_is_not_taken_from_the_search(web: Site, tmp_path: Path) -> None:
    class Slow(FixedKeywords):
        def keywords(self, question: str, *, language: Language) -> Keywords:
            time.sleep(1.2)
            return super().keywords(question, language=language)

    give(web, ("https://a.test", "Lighthouse"), snippet=FACT)
    report = make_searcher(web, tmp_path, rewriter=Slow(("Pharos",)), web_budget=1.0).search(QUESTION, language="en")
    assert (report.error, len(report.documents)) == ("", 1)


def test_setting_that_is_missing_is_named(web: Site, tmp_path: Path) -> None:
    report = make_searcher(web, tmp_path, web_providers=("tavily",)).search(QUESTION, language="en")
    assert report.error_code == "configuration"
    assert "TAVILY_API_KEY" in report.error


def test_no_provider(web: Site, tmp_path: Path) -> None:
    report = make_searcher(web, tmp_path, web_providers=()).search(QUESTION, language="en")
    assert report.error_code == "no_provider"


class BrokenProvider:
    name: ClassVar[str] = "broken"
    local: ClassVar[bool] = False
    interval: ClassVar[float] = 0.0

    def __init__(self, error: Exception) -> None:
        self.error = error

    def find(self, query: str, *, language: Language, limit: int) -> list[WebResult]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [(RuntimeError("a bug"), "failed"), (KeyError("x"), "failed"), (ProviderUnavailableError("x"), "unavailable")],
)
def test_search_never_raises(tmp_path: Path, error: Exception, code: str) -> None:
    settings = load_settings(web_search="auto", data_dir=tmp_path)
    report = WebSearcher(settings, providers=[BrokenProvider(error)]).search(QUESTION, language="en")
    assert report.error_code == code


def test_page_that_breaks_its_reader_costs_the_page_only(
    web: Site, searcher: WebSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise RecursionError

    monkeypatch.setattr("web_fetch.html_text", fail)
    give(web, (web.article("/a", "Text."), "Lighthouse"), snippet=FACT)
    assert [document.text for document in searcher.search(QUESTION, language="en").documents] == [FACT]
