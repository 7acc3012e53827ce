"""Conversations on disk: whole answers come back as first drawn; judgement, rewinding and export."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conversation_export import labelled_lines, to_json, to_markdown
from conversations import Conversations, Rating, slim_answer
from errors import StoreError
from schema import Citation, Origin
from tests.helpers_page import make_answer


@pytest.fixture
def kept(tmp_path: Path) -> Conversations:
    return Conversations(tmp_path)


def test_an_answer_comes_back_with_every_box(kept: Conversations, tmp_path: Path) -> None:
    answer = make_answer()
    conversation = kept.create("first")
    kept.add(conversation.id, answer=answer)
    (turn,) = Conversations(tmp_path).turns(conversation.id)
    assert turn.answer.text == answer.text
    assert turn.answer.citations == answer.citations
    for before, after in zip(answer.knowledge.strips, turn.answer.knowledge.strips, strict=True):
        assert (after.text, after.regions, after.page, after.kept) == (
            before.text,
            before.regions,
            before.page,
            before.kept,
        )
    for asked, stored in zip(answer.graded, turn.answer.graded, strict=True):
        length = len(asked.document.text)
        assert stored.document.regions(0, length) == asked.document.regions(0, length)
        assert stored.document.text == asked.document.text


def test_strips_of_one_document_keep_different_boxes() -> None:
    strips = slim_answer(make_answer()).knowledge.strips
    assert strips[0].regions != strips[1].regions


def test_what_is_stored_is_small() -> None:
    answer = make_answer(scores=tuple(0.1 for _ in range(10)))
    assert slim_answer(answer).graded[0].document.chunk is not None
    assert slim_answer(answer).graded[0].document.chunk.text == ""  # type: ignore[union-attr]
    assert all(not strip.document.text for strip in slim_answer(answer).knowledge.strips)


def test_listing_renaming_and_deleting(kept: Conversations) -> None:
    first, second = kept.create("x" * 100), kept.create("second")
    kept.rename(first.id, title=" 新的 标题 ")
    kept.rename(second.id, title="   ")
    assert {item.title for item in kept.list()} == {"新的 标题", "second"}
    kept.add(second.id, answer=make_answer())
    kept.delete(second.id)
    assert [item.id for item in kept.list()] == [first.id]
    assert kept.turns(second.id) == ()


def test_owners_do_not_see_each_other(kept: Conversations) -> None:
    mine = kept.create("mine", owner="me@example.org")
    assert kept.list(owner="you@example.org") == ()
    assert kept.find(mine.id, owner="you@example.org") is None
    kept.delete(mine.id, owner="you@example.org")
    kept.rename(mine.id, title="stolen", owner="you@example.org")
    assert kept.find(mine.id, owner="me@example.org").title == "mine"  # type: ignore[union-attr]


def test_asking_again_removes_the_turn_and_what_follows(kept: Conversations) -> None:
    conversation = kept.create("c")
    turns = [kept.add(conversation.id, answer=make_answer(question=f"q{n}")) for n in range(4)]
    kept.rewind(turns[2].id)
    assert [turn.answer.question for turn in kept.turns(conversation.id)] == ["q0", "q1"]
    assert kept.count(conversation.id) == 2
    assert [turn.answer.question for turn in kept.turns(conversation.id, limit=1)] == ["q1"]


def test_export_holds_answers_and_citations(kept: Conversations) -> None:
    conversation = kept.create("Depth")
    kept.add(conversation.id, answer=replace(make_answer(), original_question="And how deep?"))
    turns = kept.turns(conversation.id)
    text = to_markdown(conversation, turns=turns, language="en")
    assert "## And how deep?" in text
    assert "[1] KB · a.pdf" in text
    record = json.loads(to_json(conversation, turns=turns))
    assert record["turns"][0]["citations"][0]["page"] == 1
    assert record["turns"][0]["citations"][0]["bbox"] == [0.1, 0.2, 0.5, 0.3]


@pytest.mark.parametrize(
    ("rating", "refused", "expected"),
    [
        (Rating.UP, False, "correct"),
        (Rating.DOWN, False, "incorrect"),
        (Rating.UP, True, "incorrect"),
        (Rating.DOWN, True, "correct"),
    ],
)
def test_judged_answers_become_labelled_questions(
    kept: Conversations, rating: Rating, *, refused: bool, expected: str
) -> None:
    conversation = kept.create("c")
    turn = kept.add(conversation.id, answer=make_answer(refused=refused))
    kept.add(conversation.id, answer=make_answer())
    kept.rate(turn.id, rating=rating, comment=" why ")
    rows = [json.loads(line) for line in labelled_lines(kept.rated()).splitlines()]
    assert [row["expected_action"] for row in rows] == [expected]
    assert rows[0]["passages"][0].startswith("The water")
    assert rows[0]["comment"] == "why"
    kept.rate(turn.id, rating=None)
    assert kept.rated() == ()


@pytest.mark.parametrize(("rating", "mixed"), [(Rating.UP, False), (Rating.DOWN, False), (Rating.UP, True)])
def test_an_answer_from_the_web_alone_says_that_the_documents_do_not_answer(
    kept: Conversations, rating: Rating, *, mixed: bool
) -> None:
    answer = make_answer(scores=(-0.8,))
    web = Citation(1, Origin.WEB, "Nine.", url="https://a.test/x", title="Water")
    turn = kept.add(
        kept.create("c").id, answer=replace(answer, citations=(web, *answer.citations) if mixed else (web,))
    )
    kept.rate(turn.id, rating=rating)
    (row,) = [json.loads(line) for line in labelled_lines(kept.rated()).splitlines()]
    assert row["expected_action"] == ("correct" if mixed else "incorrect")


def test_a_damaged_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "conversations.sqlite").write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(StoreError):
        Conversations(tmp_path)
