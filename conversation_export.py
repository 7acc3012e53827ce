"""Conversations as Markdown and JSON with their citations, and judged questions as labelled data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from conversations import Conversation, Rating, StoredTurn
from i18n import Language, translate
from records import answer_record
from schema import Action, Citation, Origin


def to_markdown(conversation: Conversation, *, turns: Iterable[StoredTurn], language: Language) -> str:
    """Return a conversation to read: each question, its answer, its action and its numbered sources."""
    lines = [f"# {_one_line(conversation.title)}", ""]
    for turn in turns:
        answer = turn.answer
        lines += [f"## {_one_line(answer.original_question or answer.question)}", "", _fenceless(answer.text), ""]
        action = translate(f"page.action_{answer.verdict.action}", language=language)
        best = f"{answer.verdict.best_score:+.2f}"
        lines += [f"*{action} · {translate('page.best_score', language=language, best=best)} · {turn.created}*", ""]
        lines += [_source(citation, language=language) for citation in answer.citations]
        lines += [""] if answer.citations else []
    return "\n".join(lines)


def to_json(conversation: Conversation, *, turns: Iterable[StoredTurn]) -> str:
    """Return a conversation for scripts: each turn is the answer object of the terminal, with its judgement."""
    return json.dumps(
        {
            "id": conversation.id,
            "title": conversation.title,
            "created": conversation.created,
            "turns": [
                {
                    **answer_record(turn.answer),
                    "turn": turn.id,
                    "created": turn.created,
                    "rating": None if turn.rating is None else turn.rating.name.lower(),
                    "comment": turn.comment,
                }
                for turn in turns
            ],
        },
        ensure_ascii=False,
        indent=2,
    )


def labelled_lines(turns: Iterable[StoredTurn]) -> str:
    """Return JSONL for `calibrate`: a judged question with its passages and the action that would have been right.

    An answer found good, or a refusal found wrong, expects Correct; an answer found bad, or a refusal found right,
    expects Incorrect; so does an answer from the web alone, whose good says nothing good of the documents.
    """
    return "".join(json.dumps(_label(turn), ensure_ascii=False) + "\n" for turn in turns if turn.answer.graded)


def _label(turn: StoredTurn) -> dict[str, Any]:
    answer = turn.answer
    good = turn.rating is Rating.UP
    web_alone = bool(answer.citations) and all(citation.origin is Origin.WEB for citation in answer.citations)
    expected = Action.CORRECT if good is not answer.refused and not web_alone else Action.INCORRECT
    return {
        "id": answer.id,
        "question": answer.question,
        "passages": [item.document.text for item in answer.graded],
        "expected_action": expected.value,
        "action": answer.verdict.action.value,
        "comment": turn.comment,
    }


def _source(citation: Citation, *, language: Language) -> str:
    quote = _one_line(citation.quote)
    if citation.origin is Origin.WEB:
        place = f"{_one_line(citation.title)} <{citation.url}> ({citation.fetched_at})"
    else:
        place = f"{_one_line(citation.file)}, {translate('page.page_short', language=language, page=citation.page)}"
    return f"- [{citation.n}] {citation.origin.value.upper()} · {place}: “{quote}”"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fenceless(text: str) -> str:
    """Headings inside an answer are shown as text, so that the document keeps its outline."""
    return "\n".join(f"\\{line}" if line.startswith("#") else line for line in text.splitlines())
