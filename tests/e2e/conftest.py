"""The page in Chromium, against one real server a session on a free port with folders of its own.

Screenshots go to artifacts/ (not in git): of each scenario as it ends, so that a failure can be looked at.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from config import ROOT, load_settings
from knowledge_base import open_knowledge_base
from tests.helpers_page import BREAD, WATER, write_pdf

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARTIFACTS = ROOT / "artifacts"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 120_000
"""Milliseconds a busy machine may take for one step."""


def chromium() -> str | None:
    """The system's Chromium, None when there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if chromium() is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="no Chromium here: install the package chromium"))


@dataclass
class Server:
    """A running page and its folders."""

    process: subprocess.Popen[bytes]
    url: str
    folder: Path

    @property
    def files(self) -> Path:
        return self.folder / "Files"


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def start_server(
    folder: Path, *, port: int = 0, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Server:
    """Start the page, on a free port unless one is named, and wait until it is healthy."""
    port = port or free_port()
    (folder / "Files").mkdir(parents=True, exist_ok=True)
    own = {"CRAG_FILES_DIR": str(folder / "Files"), "CRAG_DATA_DIR": str(folder / "data"), **(environment or {})}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CRAG_", "OPENAI_", "DASH"))}
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app_streamlit.py"), "--server.port", str(port)]
    command += options
    log = (folder / "server.log").open("ab")
    process = subprocess.Popen(command, cwd=ROOT, env={**kept, **own}, stdout=log, stderr=log)
    log.close()
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5):
                return Server(process, url, folder)
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.2)


def stop_server(server: Server) -> None:
    """End the server that we started."""
    server.process.terminate()
    try:
        server.process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait(timeout=20)


def make_library(folder: Path) -> Path:
    """A folder with Files/ that holds two small files."""
    (folder / "Files").mkdir()
    write_pdf(folder / "Files" / "ostrand.pdf", pages=[WATER, BREAD])
    for sample in (ROOT / "Files").glob("*sample*.pdf"):
        shutil.copy(sample, folder / "Files")
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the session; nothing is indexed when it starts."""
    running = start_server(make_library(tmp_path_factory.mktemp("page")))
    yield running
    stop_server(running)


@pytest.fixture(scope="session")
def built_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the session whose library is indexed."""
    folder = make_library(tmp_path_factory.mktemp("built"))
    settings = load_settings(files_dir=folder / "Files", data_dir=folder / "data")
    with open_knowledge_base(settings) as base:
        assert base.build().failed == 0
    web = folder / "web"
    web.mkdir()
    (web / "verdi.md").write_text("# Verdi\n\nGiuseppe Verdi finished the opera Aida in 1871.\n", encoding="utf-8")
    (web / "威尔第.md").write_text("# 威尔第\n\n威尔第在1871年完成了歌剧《阿依达》。\n", encoding="utf-8")
    searched = {"CRAG_WEB_SEARCH": "ask", "CRAG_WEB_PROVIDERS": "library", "CRAG_WEB_LIBRARY_DIR": str(web)}
    running = start_server(folder, environment=searched)
    yield running
    stop_server(running)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGUMENTS)
        yield started
        started.close()


OpenBrowser = Callable[..., "Page"]


@pytest.fixture
def open_browser(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenBrowser]:
    """Open the page as a visitor with a locale, colour scheme and window width."""
    opened = []
    ARTIFACTS.mkdir(exist_ok=True)

    def start(url: str, *, locale: str = "en-US", scheme: str = "light", width: int = 1440, height: int = 900) -> Page:
        context = browser.new_context(
            locale=locale,
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": height},
        )
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        opened.append(page)
        page.goto(url)
        page.get_by_test_id("stChatInputTextArea").wait_for()
        return page

    yield start
    for number, page in enumerate(opened):
        name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
        page.screenshot(path=ARTIFACTS / f"{name}_{number}.png")
        page.context.close()


def settle(page: Page) -> None:
    """Wait until the script of the page has run to its end."""
    page.wait_for_function(
        "document.querySelector('[data-testid=stApp]')?.getAttribute('data-test-script-state') === 'notRunning'"
    )


def ask(page: Page, question: str) -> None:
    """Ask and wait until the answer is drawn for good."""
    answers = page.get_by_test_id("stChatMessage").count()
    box = page.get_by_test_id("stChatInputTextArea")
    box.fill(question)
    box.press("Enter")
    page.wait_for_function(
        "count => document.querySelectorAll('[data-testid=stChatMessage]').length >= count"
        " && document.querySelectorAll('[class*=st-key-retry_]').length >= count / 2"
        " && document.querySelector('[data-testid=stApp]')?.getAttribute('data-test-script-state') === 'notRunning'",
        arg=answers + 2,
    )
