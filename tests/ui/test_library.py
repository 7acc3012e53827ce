"""Keeping the library on the page: upload, build, failures in words, delete; nothing is embedded twice."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from streamlit.testing.v1 import AppTest

from config import get_settings
from jobs import BuildJob, JobState
from tests.helpers_page import write_pdf
from tests.ui.conftest import OpenPage, all_text, ask, keys, shown, view
from views import resources

QUESTION = "Which tree stands in the yard of the Veltin school?"


def wait_for_build(page: AppTest) -> AppTest:
    """Let the background build end, as the poll of the page would see it."""
    job = resources._build_job(get_settings(), "default")
    until = time.monotonic() + 120
    while job.running and time.monotonic() < until:
        time.sleep(0.05)
    assert not job.running
    return shown(page.run())


@pytest.fixture
def new_pdf(tmp_path: Path) -> bytes:
    lines = ["1 The school", "In the yard of the Veltin school stands a walnut tree.", "It was planted in 1954."]
    return write_pdf(tmp_path / "new.pdf", pages=[lines]).read_bytes()


def test_upload_update_ask_and_delete(library: Path, open_page: OpenPage, new_pdf: bytes) -> None:
    page = open_page(library)
    name = "韦尔廷 学校 [终稿].pdf"
    page = shown(page.file_uploader(key="upload_0").upload(name, new_pdf, "application/pdf").run())
    assert (library / "Files" / name).read_bytes() == new_pdf
    page = shown(page.button(key="update").click().run())
    page = wait_for_build(page)
    assert "3 documents" in all_text(page)
    page = ask(page, QUESTION)
    assert "walnut" in all_text(page)

    page = view(page, "library")
    page = shown(page.selectbox(key="library_file").set_value(name).run())
    page = shown(page.button(key="delete_yes").click().run())
    assert not (library / "Files" / name).exists()
    page = shown(page.button(key="new_conversation").click().run())
    page = ask(page, QUESTION)
    assert page.info, "a deleted document answers nothing"
    assert not keys(page, "cite_")


def test_the_same_bytes_are_told_and_kept_once(library: Path, open_page: OpenPage) -> None:
    data = (library / "Files" / "ostrand.pdf").read_bytes()
    page = open_page(library)
    page = shown(page.file_uploader(key="upload_0").upload("copy.pdf", data, "application/pdf").run())
    assert "already in the library as ostrand" in all_text(page)
    assert not (library / "Files" / "copy.pdf").exists()


def test_reruns_and_a_second_update_embed_nothing(
    library: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(library)
    calls: list[int] = []
    embedder = resources._knowledge_base(get_settings(), "default").embedder
    embed = type(embedder).embed_passages

    def counted(self: Any, texts: list[str], **options: Any) -> Any:
        calls.append(len(texts))
        return embed(self, texts, **options)

    monkeypatch.setattr(type(embedder), "embed_passages", counted)
    for _ in range(3):
        page = shown(page.run())
    page = wait_for_build(shown(page.button(key="update").click().run()))
    assert calls == []
    page = wait_for_build(shown(page.button(key="rebuild").click().run()))
    assert sum(calls) > 0, "the counter does count"


def test_a_damaged_file_is_explained_and_the_others_are_indexed(
    library: Path, open_page: OpenPage, new_pdf: bytes
) -> None:
    (library / "Files" / "broken.pdf").write_bytes(b"%PDF-1.4 but not really")
    (library / "Files" / "school.pdf").write_bytes(new_pdf)
    page = open_page(library)
    page = wait_for_build(shown(page.button(key="update").click().run()))
    assert "could not be read" in all_text(page)
    page = view(page, "library")
    assert any("broken" in item.value for item in page.error)
    assert "walnut" in all_text(ask(view(page, "ask"), QUESTION))


def test_an_empty_library_says_what_to_do(tmp_path: Path, open_page: OpenPage) -> None:
    page = open_page(tmp_path)
    assert any("Add PDFs" in item.value for item in page.info)
    page = shown(page.button(key="go_library").click().run())
    assert "No PDF yet" in all_text(page)
    page = ask(view(page, "ask"), QUESTION)
    assert not keys(page, "cite_")
    assert page.info


def test_the_first_screen_indexes_what_waits_and_then_suggests_questions(library: Path, open_page: OpenPage) -> None:
    shutil.rmtree(library / "data")
    page = open_page(library)
    assert any("wait to be indexed" in item.value for item in page.info)
    assert page.expander[0].proto.expanded, "what works now is told at once"
    page = wait_for_build(shown(page.button(key="index_now").click().run()))
    assert "index_now" not in keys(page, "index")
    assert keys(page, "starter_")


def test_a_running_build_shows_progress_and_stops(library: Path, open_page: OpenPage) -> None:
    for number in range(6):
        pages = [
            [f"Page {page} of book {number}", f"The number {number * 100 + page} is written here."]
            for page in range(30)
        ]
        write_pdf(library / "Files" / f"book{number}.pdf", pages=pages)
    page = open_page(library)
    page = shown(page.button(key="rebuild").click().run())
    job = resources._build_job(get_settings(), "default")
    assert job.running
    assert page.button(key="stop_build")
    assert not [button for button in page.button if button.key == "update"]
    page = shown(page.button(key="stop_build").click().run())
    page = wait_for_build(page)
    report = job.report
    assert report is not None
    assert report.stopped
    assert "Stopped with" in all_text(page)


def test_retrieval_test_shows_ranks_of_each_channel(built: Path, open_page: OpenPage) -> None:
    page = view(open_page(built), "retrieval")
    page.text_input(key="retrieval_query").set_value("When was the mill pond dug?")
    run = next(button for button in page.button if button.label == "Retrieve")
    page = shown(run.click().run())
    text = all_text(page)
    assert "Retrieved" in text
    assert "#1" in text


def test_one_file_is_indexed_again_on_request(
    library: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = view(open_page(library), "library")
    base = resources._knowledge_base(get_settings(), "default")
    read: list[str] = []
    pages = base.loader.pages

    def watched(path: Path, **options: Any) -> Any:
        read.append(path.name)
        return pages(path, **options)

    monkeypatch.setattr(base.loader, "pages", watched)
    page = shown(page.selectbox(key="library_file").set_value("ostrand.pdf").run())
    page = wait_for_build(shown(page.button(key="read_again").click().run()))
    assert read == ["ostrand.pdf"]
    assert "2 documents" in all_text(page)
    assert "nine metres" in all_text(ask(view(page, "ask"), "How deep is the mill pond of Ostrand at the sluice?"))


def test_no_file_is_indexed_again_during_a_build(
    library: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = view(open_page(library), "library")
    monkeypatch.setattr(BuildJob, "state", JobState(running=True))
    page = shown(page.run())
    assert page.button(key="read_again").disabled
    assert any("being indexed" in item.value for item in page.info)
    assert page.button(key="stop_build")


def lock(path: Path, *, source: Path, password: str) -> None:
    writer = PdfWriter(clone_from=PdfReader(source))
    writer.encrypt(password)
    writer.write(path)


def try_password(page: AppTest, password: str) -> AppTest:
    field = next(item for item in page.text_input if str(item.key).startswith("password_"))
    field.set_value(password)
    return shown(next(button for button in page.button if button.label == "Try the password").click().run())


def test_a_locked_file_is_opened_with_its_password(
    library: Path, open_page: OpenPage, new_pdf: bytes, tmp_path: Path
) -> None:
    lock(library / "Files" / "locked [a].pdf", source=tmp_path / "new.pdf", password="sluice-9")
    page = wait_for_build(shown(open_page(library).button(key="update").click().run()))
    page = view(page, "library")
    label = next(item.label for item in page.text_input if str(item.key).startswith("password_"))
    assert label == "Password of locked a.pdf", "a screen reader speaks the label as it is written"
    page = wait_for_build(try_password(page, "wrong"))
    assert any("password" in item.value for item in page.error)
    page = wait_for_build(try_password(page, "sluice-9"))
    assert not page.error
    assert "walnut" in all_text(ask(view(page, "ask"), QUESTION))


def test_a_password_entered_during_a_build_is_not_dropped(
    library: Path, open_page: OpenPage, new_pdf: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(library / "Files" / "locked.pdf", source=tmp_path / "new.pdf", password="sluice-9")
    page = view(wait_for_build(shown(open_page(library).button(key="update").click().run())), "library")
    job = resources._build_job(get_settings(), "default")
    with monkeypatch.context() as busy:
        busy.setattr(job, "start", lambda **_: False)
        page = try_password(page, "sluice-9")
    assert any("next update" in item.value for item in page.info)
    page = wait_for_build(shown(page.button(key="update").click().run()))
    assert not page.error
