"""What a reader does on the page, in both languages, in a real browser."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import ARTIFACTS, OpenBrowser, Server, ask, settle, start_server, stop_server
from tests.helpers_page import write_pdf

WORDS: dict[str, dict[str, Any]] = {
    "en-US": {
        "title": "Ask your PDFs",
        "update": "Update",
        "ready": re.compile(r"Ready: \d+ documents"),
        "question": "How deep is the mill pond of Ostrand at the sluice?",
        "answer": "nine metres",
        "open": "Open the page",
        "next": "Next page",
        "close": "Close",
        "unanswered": "Which opera did Verdi finish in 1871?",
        "refused": "do not answer",
        "web": "Search the web once",
        "found": "Aida",
        "panel": "Why this answer",
        "changed": "The action would be:",
    },
    "zh-CN": {
        "title": "向 PDF 提问",
        "update": "更新",
        "ready": re.compile(r"就绪：\d+ 个文档"),
        "question": "校准二氧化碳传感器时，仪器要在室外静置多久？",
        "answer": "20 分钟",
        "open": "打开页面",
        "next": "下一页",
        "close": "关闭",
        "unanswered": "威尔第在1871年完成了哪部歌剧？",
        "refused": "文档",
        "web": "搜索一次网络",
        "found": "阿依达",
        "panel": "回答的依据",
        "changed": "判断会变为：",
    },
}


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_first_run_build_ask_and_open_the_boxed_page(server: Server, open_browser: OpenBrowser, locale: str) -> None:
    words = WORDS[locale]
    page = open_browser(server.url, locale=locale)
    expect(page.get_by_role("heading", name=words["title"])).to_be_visible()
    page.get_by_role("button", name=words["update"], exact=True).click()
    expect(page.get_by_text(words["ready"])).to_be_visible()

    ask(page, words["question"])
    expect(page.get_by_text(words["answer"]).first).to_be_visible()
    expect(page.get_by_test_id("stImage").first).to_be_visible()
    page.screenshot(path=ARTIFACTS / f"answer_{locale}.png")
    page.get_by_role("button", name=words["open"]).click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_test_id("stImage").locator("img")).to_be_visible()
    before = drawer.get_by_test_id("stImage").locator("img").get_attribute("src")
    drawer.get_by_role("button", name=words["next"]).click()
    expect(drawer.get_by_test_id("stImage").locator("img")).not_to_have_attribute("src", str(before))
    drawer.get_by_role("button", name=words["close"]).click()
    expect(drawer).to_be_hidden()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_refusal_then_the_web_once(built_server: Server, open_browser: OpenBrowser, locale: str) -> None:
    words = WORDS[locale]
    page = open_browser(built_server.url, locale=locale)
    ask(page, words["unanswered"])
    expect(page.get_by_test_id("stAlert").filter(has_text=words["refused"]).first).to_be_visible()
    page.get_by_role("button", name=words["web"]).click()
    expect(page.get_by_text(words["found"]).first).to_be_visible()
    expect(page.get_by_role("button", name=words["web"])).to_have_count(0)
    expect(page.get_by_text("WEB 1").first).to_be_visible()


def test_a_quoted_wide_table_stays_in_its_column(built_server: Server, open_browser: OpenBrowser) -> None:
    page = open_browser(built_server.url)
    ask(page, WORDS["en-US"]["question"])
    beyond = page.evaluate(
        """() => {
          const text = document.querySelector('[data-testid=stChatMessage] [class*=st-key-retry_]')
            .closest('[data-testid=stChatMessage]').querySelector('[data-testid=stMarkdownContainer]');
          const cells = Array.from({length: 12}, (_, n) => `<td>measurement-${n}</td>`).join('');
          text.insertAdjacentHTML('beforeend', `<table><tbody><tr>${cells}</tr></tbody></table>`);
          return text.querySelector('table').getBoundingClientRect().right - text.getBoundingClientRect().right;
        }"""
    )
    assert beyond <= 1


def test_what_if_slider_by_keyboard(built_server: Server, open_browser: OpenBrowser) -> None:
    words = WORDS["en-US"]
    page = open_browser(built_server.url)
    ask(page, words["question"])
    page.get_by_text(words["panel"]).click()
    slider = page.get_by_role("slider", name="Upper threshold")
    slider.focus()
    page.keyboard.press("End")
    expect(page.get_by_text(words["changed"])).to_be_visible()


def test_upload_and_delete_leave_nothing_behind(
    built_server: Server, open_browser: OpenBrowser, tmp_path: Path
) -> None:
    lines = ["1 The school", "In the yard of the Veltin school stands a walnut tree.", "It was planted in 1954."]
    pdf = write_pdf(tmp_path / "韦尔廷 学校（终稿）.pdf", pages=[lines])
    page = open_browser(built_server.url)
    page.locator("input[type=file]").set_input_files(pdf)
    expect(page.get_by_text("was added")).to_be_visible()
    page.get_by_role("button", name="Update", exact=True).click()
    expect(page.get_by_text(re.compile("Ready: 3 documents"))).to_be_visible()
    ask(page, "Which tree stands in the yard of the Veltin school?")
    expect(page.get_by_text("walnut").first).to_be_visible()

    page.get_by_role("radio", name="Library").or_(page.get_by_role("button", name="Library")).first.click()
    page.get_by_role("combobox", name=re.compile("Choose a file")).click()
    page.get_by_role("option", name=pdf.name).click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("was deleted")).to_be_visible()
    assert not (built_server.files / pdf.name).exists()
    page.get_by_role("button", name="New conversation").click()
    settle(page)
    ask(page, "Which tree stands in the yard of the Veltin school?")
    expect(page.get_by_test_id("stAlert").filter(has_text="do not answer").first).to_be_visible()


def test_a_killed_build_goes_on_after_a_reload(tmp_path: Path, open_browser: OpenBrowser) -> None:
    (tmp_path / "Files").mkdir()
    for number in range(4):
        pages = [
            [f"{page} Report {number}", f"Station {number} measured {page + 7} litres on day {page} of the year."]
            for page in range(10)
        ]
        write_pdf(tmp_path / "Files" / f"report{number}.pdf", pages=pages)
    first = start_server(tmp_path)
    port = int(first.url.rpartition(":")[2])
    try:
        page = open_browser(first.url)
        page.get_by_role("button", name="Update", exact=True).click()
        expect(page.get_by_text(re.compile("File [1-4] of 4"))).to_be_visible()
    finally:
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(timeout=20)
    second = start_server(tmp_path, port=port)
    try:
        page.reload()
        page.get_by_test_id("stChatInputTextArea").wait_for()
        page.get_by_role("button", name="Update", exact=True).click()
        expect(page.get_by_text(re.compile("Ready: 4 documents, 40 pages"))).to_be_visible()
    finally:
        stop_server(second)


def test_a_question_survives_a_reload(built_server: Server, open_browser: OpenBrowser) -> None:
    page = open_browser(built_server.url)
    ask(page, WORDS["en-US"]["question"])
    page.reload()
    page.get_by_test_id("stChatInputTextArea").wait_for()
    expect(page.get_by_text("nine metres").first).to_be_visible()
    expect(page.get_by_role("button", name="ostrand.pdf").first).to_be_visible()


def test_first_paint_is_quick(built_server: Server, open_browser: OpenBrowser) -> None:
    """The quickest of four visits counts: others may pay for what else the machine does."""
    taken = []
    for _ in range(4):
        began = time.perf_counter()
        open_browser(built_server.url).get_by_role("heading", name="CRAG").wait_for()
        taken.append(time.perf_counter() - began)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert min(taken) < 3.0 * max(load, 1.0), taken


def test_hostile_text_stays_text(built_server: Server, open_browser: OpenBrowser) -> None:
    page = open_browser(built_server.url)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    attack = (
        "![x](https://evil.example/a.png) <img src=https://evil.example/b.png> [bank](https://evil.example) "
        "https://evil.example www.evil.example :material/home: $x$"
    )
    ask(page, attack)
    chat = page.get_by_test_id("stChatMessage").first
    expect(chat).to_contain_text("evil.example")
    assert chat.locator("a").count() == 0
    assert chat.locator("img").count() == 0
    assert chat.locator(".katex").count() == 0
    assert not [url for url in requests if "evil.example" in url]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_no_serious_accessibility_issue(
    built_server: Server, open_browser: OpenBrowser, scheme: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_browser(built_server.url, scheme=scheme, width=width)
    ask(page, WORDS["en-US"]["question"])
    found = {}

    def examine(name: str) -> None:
        page.wait_for_timeout(1000)
        settle(page)
        page.wait_for_timeout(500)
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in {"serious", "critical"}:
                found[f"{name}: {violation['id']}"] = [node["html"][:200] for node in violation["nodes"]][:3]

    page.get_by_role("button", name=WORDS["en-US"]["open"]).click()
    page.get_by_role("dialog").get_by_test_id("stImage").wait_for()
    examine("Drawer")
    page.keyboard.press("Escape")
    page.get_by_text(WORDS["en-US"]["panel"]).click()
    examine("Ask")
    ask(page, WORDS["en-US"]["unanswered"])
    examine("Refusal")
    for name in ["Library", "Retrieval test", "Settings"]:
        page.get_by_role("radio", name=name).or_(page.get_by_role("button", name=name)).first.click()
        if name == "Settings":
            page.get_by_text("A provider for each role").click()
        examine(name)
    assert not found
    if width == 400:
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 400, "nothing makes a small screen scroll sideways"
