"""What the correction benchmark counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import errors
from benchmarks.correction import ending, endings, judge, targets
from schema import Document, Grade, Knowledge, Origin, SearchAttempt, SearchMode, SearchReport, Strip
from tests.helpers_page import make_answer

FACT = "The bridge was opened in 1998."


def page(text: str) -> Document:
    return Document(text, Origin.WEB, 1, url="library:a.md")


def strip(text: str, *, kept: bool) -> Strip:
    return Strip(text, page(text), 0, len(text), Grade(0.1), kept=kept)


@pytest.mark.parametrize(
    ("documents", "strips", "error", "end"),
    [
        ((), (), "late", "search failed"),
        ((), (), "", "not found"),
        ((page("The bridge is long."),), (), "", "not found"),
        ((page(FACT),), (), "", "page graded too low"),
        ((page(FACT),), (strip(FACT, kept=False),), "", "strip graded too low"),
        ((page(FACT),), (strip(FACT, kept=True),), "", "not quoted"),
    ],
)
def test_where_an_answer_was_lost(
    documents: tuple[Document, ...], strips: tuple[Strip, ...], error: str, end: str
) -> None:
    attempts = (SearchAttempt("library", results=len(documents)),)
    report = SearchReport(SearchMode.AUTO, documents=documents, error=error, attempts=attempts)
    answer = replace(make_answer(scores=(-0.9,)), search=report, knowledge=Knowledge(strips))
    assert ending(answer, answers=["1998"]) == end


def test_documents_that_were_judged_enough_are_not_searched_beyond() -> None:
    assert ending(make_answer(scores=(0.9,)), answers=["1998"]) == "documents judged enough"


def test_wrong_cases_are_named_for_the_error_browser() -> None:
    question = {"qid": "7", "lang": "en", "question": "When?", "answers": ["1998"], "expected_action": "Incorrect"}
    answer = make_answer(scores=(0.9,))
    held = [judge(answer, question={**question, "store": store}, run="search") for store in ("web", "none")]
    refused = judge(replace(answer, refused=True), question={**question, "store": "none"}, run="search")
    assert [row["wrong"] for row in (*held, refused)] == [
        "web, search: documents judged enough",
        "none, search: documents judged enough",
        "",
    ]
    counted = errors.kinds([*held, refused])
    assert [row["ids"] for row in counted] == ["7 search", "7 search", ""]
    assert "\n".join(errors.shown(held[0])).startswith("### 7 search · web, search")


def row(store: str, run: str, *, contains: bool, refused: bool = False, end: str = "answered") -> dict[str, object]:
    return {"lang": "en", "store": store, "run": run, "contains": contains, "refused": refused, "end": end}


def test_targets_compare_the_runs() -> None:
    rows = [
        *[row("web", "inside", contains=True)] * 4,
        *[row("web", "search", contains=True)] * 3,
        row("web", "search", contains=False, end="not found"),
        *[row("none", "search", contains=False, refused=True)] * 9,
        row("none", "search", contains=False),
        *[row("kb", "off", contains=True)] * 2,
        row("kb", "search", contains=True),
        row("kb", "search", contains=False),
    ]
    reached = targets(rows)[0]
    assert list(reached.values()) == ["en", 0.75, 0.9, 0.5]
    assert endings(rows) == [
        {"language": "en", "end": "answered", "n": 3},
        {"language": "en", "end": "not found", "n": 1},
    ]
