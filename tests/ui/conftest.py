"""The page in AppTest, on real PDFs, the real store and the real embedded models."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from config import ROOT, get_settings, load_settings
from tests.helpers_page import BREAD, WATER, write_pdf

APP = ROOT / "app_streamlit.py"
OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Files/ and a built data/; tests add conversations to it, nothing else."""
    from knowledge_base import open_knowledge_base

    folder = tmp_path_factory.mktemp("library")
    (folder / "Files").mkdir()
    write_pdf(folder / "Files" / "ostrand.pdf", pages=[WATER, BREAD])
    for sample in (ROOT / "Files").glob("*sample*.pdf"):
        shutil.copy(sample, folder / "Files")
    settings = load_settings(files_dir=folder / "Files", data_dir=folder / "data")
    with open_knowledge_base(settings) as base:
        report = base.build()
    assert report.failed == 0
    return folder


@pytest.fixture
def library(built: Path, tmp_path: Path) -> Path:
    """A copy of the built folder that a test may change."""
    copied = tmp_path / "library"
    shutil.copytree(built, copied, ignore=shutil.ignore_patterns("conversations*", "traces*"))
    return copied


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open the page on a folder; `environment` are settings, `query` the address's parameters."""

    def start(
        folder: Path,
        *,
        locale: str = "en-US",
        query: dict[str, str] | None = None,
        user: Any = None,
        **environment: str,
    ) -> AppTest:
        values = {"CRAG_FILES_DIR": str(folder / "Files"), "CRAG_DATA_DIR": str(folder / "data"), **environment}
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        get_settings.cache_clear()
        page = AppTest.from_file(str(APP), default_timeout=120)
        page.context["locale"] = locale
        page.query_params.update(query or {})
        if user is not None:
            page.user = user
        return shown(page.run())

    return start


def shown(page: AppTest) -> AppTest:
    """The page, after making sure that no exception reached it."""
    assert not page.exception, [item.value for item in page.exception]
    return page


def ask(page: AppTest, question: str) -> AppTest:
    """Ask a question and wait for its answer."""
    return shown(page.chat_input(key="question").set_value(question).run())


def view(page: AppTest, name: str) -> AppTest:
    """Go to a view."""
    return shown(page.segmented_control(key="view").set_value(name).run())


def all_text(page: AppTest) -> str:
    """Every text on the page."""
    kinds = (page.markdown, page.caption, page.info, page.warning, page.error, page.success, page.title, page.header)
    return "\n".join(str(item.value) for kind in kinds for item in kind)


def plain(page: AppTest) -> str:
    """Every text on the page without what keeps it from being Markdown."""
    return all_text(page).replace("\\", "").replace("\u2060", "")


def keys(page: AppTest, prefix: str) -> list[str]:
    """Keys of the buttons that begin with `prefix`."""
    return [str(button.key) for button in page.button if str(button.key).startswith(prefix)]
