"""The documents written for training: their format, and what every one of them promises."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from config import ROOT

sys.path.insert(0, str(ROOT / "training"))

from written import WrittenError, written_documents

DOCUMENT = """=== manual | Helios 3 > Network
1 The gateway waits 45 seconds.⏎It then retries.
2 网关等待90秒。
? How long does it wait? -> 1: 45 seconds
! How long does it wait before it gives up?
"""


def write(folder: Path, text: str) -> Path:
    (folder / "made.txt").write_text(text, encoding="utf-8")
    return folder


def test_a_document_is_read_with_its_questions(tmp_path: Path) -> None:
    (document,) = written_documents(write(tmp_path, DOCUMENT))
    answered, unanswerable = document.questions
    assert (document.kind, document.headings, document.language) == ("manual", "Helios 3 > Network", "en")
    assert document.passages[1] == "The gateway waits 45 seconds.\nIt then retries."
    assert (answered.answered_by, answered.answer) == ((1,), "45 seconds")
    assert unanswerable.answered_by == ()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("1: 45 seconds", "2: 45 seconds", "passage 2 does not hold '45 seconds'"),
        ("-> 1: 45 seconds", "-> 45 seconds", "expected '\\? question"),
        ("! How long", "! How -> long", "has no '->'"),
        ("! How long", "How long", "a line begins with"),
        ("=== manual | Helios", "=== Helios", "expected '=== kind"),
        ("2 网关等待90秒。\n", "", "1 passages"),
    ],
)
def test_a_broken_document_says_where_and_why(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(WrittenError, match=why) as caught:
        written_documents(write(tmp_path, DOCUMENT.replace(old, new)))
    assert "made.txt:" in str(caught.value)


def test_questions_are_added_to_the_document_named(tmp_path: Path) -> None:
    write(tmp_path, DOCUMENT)
    more = tmp_path / "more_made.txt"
    more.write_text("+++ Helios 3 > Network\n? 网关等多久？ -> 2: 90秒\n", encoding="utf-8")
    (document,) = written_documents(tmp_path)
    assert [question.answered_by for question in document.questions] == [(1,), (), (2,)]
    more.write_text("+++ Helios 4\n? How long? -> 1: 45 seconds\n", encoding="utf-8")
    with pytest.raises(WrittenError, match=r"more_made.txt:1: no document is headed 'Helios 4'"):
        written_documents(tmp_path)


def test_no_two_documents_have_the_same_heading(tmp_path: Path) -> None:
    with pytest.raises(WrittenError, match="stands in made-1 already"):
        written_documents(write(tmp_path, DOCUMENT + DOCUMENT))


def test_every_document_has_answered_and_unanswerable_questions() -> None:
    documents = written_documents()
    assert len(documents) > 500
    for document in documents:
        answered = sum(bool(question.answered_by) for question in document.questions)
        assert answered >= 4, document.id
        assert len(document.questions) - answered >= 4, document.id
        asked = [question.text for question in document.questions]
        assert len(set(asked)) == len(asked), document.id


def test_both_languages_and_parts_are_there() -> None:
    parts = Counter((document.language, document.held_out) for document in written_documents())
    assert min(parts.values()) >= 10
    assert len(parts) == 4
