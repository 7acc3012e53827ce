"""The page by keyboard alone: everything is reached, a drawer gives the focus back, Stop works, words fit the language."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader, PdfWriter

from config import load_settings
from knowledge_base import open_knowledge_base
from tests.e2e.conftest import OpenBrowser, Server, ask, settle, start_server, stop_server
from tests.helpers_page import WATER, write_pdf
from tests.integration.helpers_providers import Scripted, serve

QUESTION = "How deep is the mill pond of Ostrand at the sluice?"
FOCUSED = """() => {
  const element = document.activeElement;
  const label = element.getAttribute('aria-label') || element.innerText || element.labels?.[0]?.innerText || '';
  return label.trim();
}"""


def test_escape_closes_the_drawer_and_gives_the_focus_back(built_server: Server, open_browser: OpenBrowser) -> None:
    page = open_browser(built_server.url)
    ask(page, QUESTION)
    opener = page.get_by_role("button", name="Open the page")
    opener.focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_test_id("stImage").locator("img")).to_be_visible()
    assert drawer.evaluate("each => each.contains(document.activeElement)"), "the focus is inside the drawer"
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()


def test_everything_is_reached_with_tab_and_has_a_name(built_server: Server, open_browser: OpenBrowser) -> None:
    page = open_browser(built_server.url)
    ask(page, QUESTION)
    page.get_by_role("heading", name="CRAG").click()
    reached: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    wanted = ["Choose files", "Update", "Rebuild", "New conversation", "Ask", "Edit", "ostrand.pdf", "Retry", "Copy"]
    wanted += ["Open the page", "Why this answer", "Ask about your documents"]
    missing = [name for name in wanted if not any(name in label for label in reached)]
    assert not missing, reached
    assert all(reached), "every stop has a name"


def test_stop_ends_an_answer_and_keeps_its_words(tmp_path: Path, open_browser: OpenBrowser) -> None:
    (tmp_path / "Files").mkdir()
    write_pdf(tmp_path / "Files" / "ostrand.pdf", pages=[WATER])
    with open_knowledge_base(load_settings(files_dir=tmp_path / "Files", data_dir=tmp_path / "data")) as base:
        assert base.build().failed == 0
    gate = threading.Event()

    def reply(body: Any) -> Scripted:
        if body.get("stream"):
            return Scripted(pieces=["The pond is nine metres deep [1]. ", "And then much more follows."], gate=gate)
        return Scripted(text="mill pond")

    with serve(reply) as provider:
        places = {"OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": "sk-none", "CRAG_LLM_MODEL": "known"}
        chosen = {"CRAG_LLM_PROVIDER": "openai", "CRAG_EVALUATOR": "reader"}
        server = start_server(tmp_path, environment={**chosen, **places})
        try:
            page = open_browser(server.url)
            page.get_by_test_id("stChatInputTextArea").fill(QUESTION)
            page.keyboard.press("Enter")
            expect(page.get_by_text("The pond is nine metres deep")).to_be_visible()
            page.locator(".st-key-stop_answer").get_by_role("button", name="Stop the answer").press("Enter")
            page.wait_for_timeout(1500)
            gate.set()
            settle(page)
            page.get_by_role("radio", name="English").click()
            expect(page.get_by_text("was stopped before it was answered")).to_be_visible()
            expect(page.get_by_text("And then much more follows.")).to_have_count(0)
            page.get_by_role("button", name="Retry").click()
            expect(page.get_by_text("And then much more follows.")).to_be_visible()
        finally:
            gate.set()
            stop_server(server)


@pytest.mark.parametrize(
    ("locale", "needs", "try_it", "ready"),
    [
        ("en-US", "Password of locked.pdf", "Try the password", "Ready: 1 documents"),
        ("zh-CN", "locked.pdf 的密码", "尝试密码", "就绪：1 个文档"),
    ],
)
def test_a_locked_pdf_asks_for_its_password(
    tmp_path: Path, open_browser: OpenBrowser, locale: str, needs: str, try_it: str, ready: str
) -> None:
    (tmp_path / "Files").mkdir()
    writer = PdfWriter(clone_from=PdfReader(write_pdf(tmp_path / "open.pdf", pages=[WATER])))
    writer.encrypt("sluice-9")
    writer.write(tmp_path / "Files" / "locked.pdf")
    server = start_server(tmp_path)
    try:
        page = open_browser(server.url, locale=locale)
        page.get_by_role("button", name={"en-US": "Update", "zh-CN": "更新"}[locale], exact=True).click()
        page.get_by_role("button", name={"en-US": "See why", "zh-CN": "查看原因"}[locale]).click()
        page.get_by_label(needs).fill("wrong")
        page.get_by_role("button", name=try_it).click()
        page.wait_for_timeout(1000)
        expect(page.get_by_test_id("stProgress")).to_have_count(0)
        settle(page)
        page.get_by_label(needs).fill("sluice-9")
        page.get_by_label(needs).press("Enter")
        expect(page.get_by_text(ready)).to_be_visible()
        assert "sluice-9" not in page.content()
        assert not [
            path for path in (tmp_path / "data").rglob("*") if path.is_file() and b"sluice-9" in path.read_bytes()
        ]
    finally:
        stop_server(server)


@pytest.mark.parametrize(
    ("locale", "own", "foreign"),
    [
        ("zh-CN", ["选择文件", "每个最多 200 MB • PDF"], ["Upload", "per file"]),
        ("en-US", ["Choose files", "At most 200 MB each • PDF"], ["per file"]),
    ],
)
def test_streamlits_words_are_ours(
    built_server: Server, open_browser: OpenBrowser, locale: str, own: list[str], foreign: list[str]
) -> None:
    page = open_browser(built_server.url, locale=locale)
    uploader = page.get_by_test_id("stFileUploader")
    for words in own:
        expect(uploader).to_contain_text(words)
    for words in foreign:
        expect(uploader).not_to_contain_text(words)
    send = {"zh-CN": "发送", "en-US": "Send"}[locale]
    expect(page.get_by_role("button", name=send, exact=True)).to_be_visible()
    page.get_by_role("button", name={"zh-CN": "菜单", "en-US": "Menu"}[locale], exact=True).click()
    menu = page.get_by_test_id("stMainMenuPopover")
    for name in {"zh-CN": ["浅色", "深色", "打印"], "en-US": ["Light", "Dark", "Print"]}[locale]:
        expect(menu).to_contain_text(name)
    page.keyboard.press("Escape")
    other = {"zh-CN": "English", "en-US": "中文"}[locale]
    page.get_by_role("radio", name=other).click()
    expect(uploader).to_contain_text({"zh-CN": "Choose files", "en-US": "选择文件"}[locale])
