"""Hostile text from every side at once: a PDF, its name, the model's answer and a web page's title stay text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from config import load_settings
from knowledge_base import open_knowledge_base
from tests.e2e.conftest import OpenBrowser, Server, ask, settle, start_server, stop_server
from tests.helpers_page import write_pdf
from tests.integration.helpers_providers import Scripted, serve

ATTACK = (
    "![shown](https://evil.example/a.png) <img src=https://evil.example/b.png onerror=alert(1)> "
    "[your bank](https://evil.example/c) <a href='javascript:alert(1)'>here</a> www.evil.example $x$ :material/home:"
)
FILE = "tower ![p](https:evil.example) [bank](evil.example) <img src=x onerror=alert(1)> $x$ www.evil.example :a:.pdf"
QUESTION = "How tall is the tower of Gelmar?"
WEB_QUESTION = "Which opera did Verdi finish in 1871?"


def reply(body: Any) -> Scripted:
    if body.get("stream"):
        return Scripted(pieces=["It is forty metres tall [1]. ", ATTACK, " [1](https://evil.example/d) [2]"])
    return Scripted(text="Verdi opera 1871")


@pytest.fixture
def hostile_server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "Files").mkdir()
    printed = ATTACK.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    lines = [f"1 The tower {printed}", f"The tower of Gelmar is forty metres tall {printed}", "It was built in 1702."]
    write_pdf(tmp_path / "Files" / FILE, pages=[lines])
    with open_knowledge_base(load_settings(files_dir=tmp_path / "Files", data_dir=tmp_path / "data")) as base:
        assert base.build().failed == 0
    web = tmp_path / "web"
    web.mkdir()
    page = f"# Aida {ATTACK}\n\nGiuseppe Verdi finished the opera Aida in 1871. {ATTACK}\n"
    (web / "verdi [bank](evil.example) <b>.md").write_text(page, encoding="utf-8")
    with serve(reply) as provider:
        places = {"OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": "sk-none", "CRAG_LLM_MODEL": "known"}
        searched = {"CRAG_WEB_SEARCH": "ask", "CRAG_WEB_PROVIDERS": "library", "CRAG_WEB_LIBRARY_DIR": str(web)}
        chosen = {"CRAG_LLM_PROVIDER": "openai", "CRAG_EVALUATOR": "reader"}
        running = start_server(tmp_path, environment={**places, **searched, **chosen})
        yield running
        stop_server(running)


def check_harmless(page: Page) -> None:
    """Nothing of the attack is alive anywhere on the page."""
    links = page.evaluate("[...document.querySelectorAll('a')].map(each => each.getAttribute('href') ?? '')")
    assert not [link for link in links if "evil" in link or link.startswith("javascript")], links
    pictures = page.evaluate("[...document.querySelectorAll('img')].map(each => each.getAttribute('src') ?? '')")
    assert not [source for source in pictures if "evil" in source or source == "x"], pictures
    assert page.locator(".katex").count() == 0
    assert page.locator("[onerror]").count() == 0


def test_no_source_brings_anything_to_life(hostile_server: Server, open_browser: OpenBrowser) -> None:
    page = open_browser(hostile_server.url)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))

    ask(page, QUESTION)
    expect(page.get_by_text("forty metres tall").first).to_be_visible()
    expect(page.get_by_text("evil.example").first).to_be_visible()
    check_harmless(page)
    page.get_by_text("Why this answer").click()
    for name in ("Documents", "Strips", "Web", "Timings"):
        page.get_by_role("tab", name=name).click()
        settle(page)
        check_harmless(page)

    ask(page, WEB_QUESTION)
    page.get_by_role("button", name="Search the web once").click()
    expect(page.get_by_text("WEB 1").first).to_be_visible()
    settle(page)
    check_harmless(page)

    for view in ("library", "retrieval"):
        page.goto(f"{hostile_server.url}/?view={view}")
        page.get_by_role("heading", name={"library": "Library", "retrieval": "Retrieval test"}[view]).wait_for()
        settle(page)
        check_harmless(page)
    page.get_by_role("textbox", name="Query").fill("tower of Gelmar")
    page.get_by_role("button", name="Retrieve", exact=True).click()
    expect(page.get_by_text("Show on page 1").first).to_be_visible()
    check_harmless(page)
    assert not [url for url in requests if not url.startswith((hostile_server.url, "data:", "blob:"))]
