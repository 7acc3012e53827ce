"""The knowledge base with the real parser, chunker, embedder and retriever, in Chinese and English."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

from build_report import Outcome
from config import Settings
from knowledge_base import KnowledgeBase, open_knowledge_base
from retriever import HybridRetriever
from schema import BlockParser, Document
from tests.integration.helpers_store import check_complete, settings_at

ENGLISH = (
    "Loan periods",
    "Members of the Alder library borrow books for twenty-one days.",
    "A tape recorder may be kept for one week and needs a deposit.",
)
CHINESE = ("开放时间", "青禾图书馆周三晚上九点闭馆。", "自行车棚由物业在每年三月检修。")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("library")
    settings = settings_at(folder)
    write_text(settings.files_dir / "loans.pdf", lines=ENGLISH, font="Helvetica")
    write_text(settings.files_dir / "开放 时间.pdf", lines=CHINESE, font="STSong-Light")
    with open_knowledge_base(settings) as base:
        report = base.build()
        assert report.count(Outcome.INDEXED) == 2
        yield base


def write_text(path: Path, *, lines: tuple[str, ...], font: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if font == "STSong-Light":
        pdfmetrics.registerFont(UnicodeCIDFont(font))
    drawing = canvas.Canvas(str(path), invariant=1)
    for number, line in enumerate(lines):
        drawing.setFont(font, 20 if number == 0 else 11)
        drawing.drawString(72, 720 - 40 * number, line)
    drawing.showPage()
    drawing.save()


def retrieve(base: KnowledgeBase, question: str, **arguments: list[str]) -> list[Document]:
    retriever = HybridRetriever(base, embedder=base.embedder, settings=base.settings)
    return retriever.retrieve(question, limit=3, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("How long may I borrow a book?", "loans.pdf"),
        ("图书馆几点闭馆？", "开放 时间.pdf"),
    ],
)
def test_question_finds_its_page(library: KnowledgeBase, question: str, file: str) -> None:
    found = retrieve(library, question)
    assert found[0].file == file
    assert found[0].page == 1
    assert found[0].chunk is not None
    assert all(0 <= side <= 1 for region in found[0].regions(0, 10) for side in region.bbox)


def test_store_is_whole_and_a_second_start_reads_it_as_it_is(library: KnowledgeBase) -> None:
    check_complete(library)
    status = library.status()
    assert (status.documents, status.failed, status.mismatch) == (2, 0, "")
    with open_knowledge_base(library.settings) as again:
        assert again.build().count(Outcome.UNCHANGED) == 2
        assert retrieve(again, "tape recorder deposit")[0].file == "loans.pdf"


def test_filter_by_file_reaches_the_answer(library: KnowledgeBase) -> None:
    found = retrieve(library, "How long may I borrow a book?", files=["开放 时间.pdf"])
    assert {document.file for document in found} == {"开放 时间.pdf"}


def test_deleted_document_is_found_no_more(tmp_path: Path) -> None:
    settings: Settings = settings_at(tmp_path)
    write_text(settings.files_dir / "loans.pdf", lines=ENGLISH, font="Helvetica")
    with open_knowledge_base(settings) as base:
        base.build()
        assert retrieve(base, "tape recorder deposit")
        base.delete("loans.pdf")
        check_complete(base)
        assert retrieve(base, "tape recorder deposit") == []


def test_a_page_tells_what_read_it_and_why(library: KnowledgeBase) -> None:
    from views import page_viewer

    page = library.parsed_page("开放 时间.pdf", page=1)
    assert page is not None
    assert library.parsed_page("开放 时间.pdf", page=2) is None
    assert page_viewer.reading_words(page) == "Read by: text layer"
    again = replace(page, parser=BlockParser.OCR, reason="mineru_timeout; no_text")
    assert page_viewer.reading_words(again) == (
        "Read by: OCR · MinerU did not answer in time: read by the embedded parser"
        " · no text layer: read by character recognition"
    )
