"""What a person sees of a question in the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

import terminal
from errors import ConfigurationError, PdfUnreadableError, StoreError
from schema import Answer, Answered, Citation, Origin, Token
from tests.helpers_page import make_answer

language_of_the_terminal = terminal._language


def test_wrong_settings_are_told_in_the_language_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_UPPER", "7")
    monkeypatch.setenv("CRAG_LANGUAGE", "zh")
    assert language_of_the_terminal() == "zh"


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_language", lambda: "en")


def shown(answer: Answer, *pieces: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    terminal.show_events([*map(Token, pieces), Answered(answer)])
    return [line for line in capsys.readouterr().out.splitlines() if line]


def test_an_answer_that_was_written_as_it_is_stands_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(make_answer(text="Nine metres [1]."), "Nine ", "metres [1].", capsys=capsys)
    assert lines == ["Nine metres [1].", "[1] a.pdf, page 1"]


def test_an_answer_that_checking_changed_is_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(make_answer(text="Nine metres [1]."), "Nine metres [1, 7].", capsys=capsys)
    assert lines[0] == "Nine metres [1, 7]."
    assert lines[1:] == ["The answer after its citations were checked:", "Nine metres [1].", "[1] a.pdf, page 1"]


def test_quotations_that_replaced_a_models_text_are_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(make_answer(text="“Nine.” [1]\n\n"), "Cheese.", "\n\n", "“Nine.” [1]\n\n", capsys=capsys)
    assert lines == ["Cheese.", "“Nine.” [1]", "[1] a.pdf, page 1"]


def test_a_refusal_is_shown_without_a_word_about_citations(capsys: pytest.CaptureFixture[str]) -> None:
    refused = replace(make_answer(text="Not in the documents.", refused=True), warnings=("warning.grade_failed",))
    lines = shown(refused, capsys=capsys)
    assert lines[0] == "Not in the documents."
    assert len(lines) == 2


def test_the_web_is_named_with_title_address_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    found = Citation(
        2, Origin.WEB, "Ten.", url="https://a.test/x", title="Water", fetched_at="2026-11-30T12:45:37+00:00"
    )
    answer = make_answer()
    lines = shown(replace(answer, citations=(*answer.citations, found)), capsys=capsys)
    assert lines[-2:] == ["[1] a.pdf, page 1", "[2] WEB Water <https://a.test/x>, fetched 2026-11-30 12:45 UTC"]


def test_a_failed_file_is_named_with_all_the_figures_of_its_error() -> None:
    values = {"file": "long.pdf", "pages": "12", "limit": "10"}
    error = {"code": "pdf_too_long", "message": "m", "hint": "h", "values": values}
    row = {"file": "long.pdf", "status": "failed", "pages": 0, "chunks": 0, "error": error}
    totals = {"documents": 0, "pages": 0, "chunks": 0, "failed": 1}
    text = terminal.build_text({"documents": [row], "totals": totals})
    assert "long.pdf has 12 pages; at most 10 are read." in text


@pytest.mark.parametrize(
    "error",
    [
        StoreError("there is no file 'a.pdf'", hint="list shows the names", code="file_unknown", name="a.pdf"),
        StoreError("there is no knowledge base 'x'", hint="h", code="base_unknown", name="x", known="默认"),
        ConfigurationError("line 2: not UTF-8", hint="one JSON object a line", code="input_line", line=2, reason="x"),
    ],
)
def test_an_error_whose_words_say_all_is_one_sentence_in_chinese(
    error: StoreError | ConfigurationError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_language", lambda: "zh")
    shown = terminal.error_text(error)
    assert "\n" not in shown
    assert error.message not in shown
    assert error.hint not in shown


def test_a_hint_is_given_in_chinese_where_there_are_words_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    error = PdfUnreadableError("a.pdf: broken", hint="open and save it anew", file="a.pdf")
    wrong = ConfigurationError("CRAG_UPPER=7: too big", hint="correct it", name="CRAG_UPPER=7: too big")
    assert terminal.error_text(error).endswith("open and save it anew")
    monkeypatch.setattr(terminal, "_language", lambda: "zh")
    assert "open and save" not in terminal.error_text(error)
    assert "a.pdf: broken" in terminal.error_text(error), "the detail is kept"
    assert terminal.error_text(wrong).count("too big") == 1
    assert "请" in terminal.error_text(wrong)
