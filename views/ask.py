"""The conversation: earlier turns, the question being asked with its stages as they happen, the field for the next."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from time import perf_counter
from typing import assert_never, cast

import streamlit as st

from conversations import StoredTurn
from schema import (
    Answer,
    Answered,
    Evaluated,
    Event,
    Prepared,
    Retrieved,
    Rewritten,
    Searched,
    SearchMode,
    Token,
    Turn,
)
from views.answer import CRAG_ICON, USER_ICON, draw_turn
from views.chrome import show_from_its_start
from views.markup import plain_markdown, quote_markdown, safe_markdown
from views.resources import conversations, pipeline
from views.session import Pending, Stopped, ask_next, owner, use_conversation, words
from views.welcome import draw_welcome

HISTORY_TURNS = 3
MAX_QUESTION = 2000


def draw_ask() -> None:
    """Draw the conversation and ask what is pending."""
    state = st.session_state
    st.chat_input(
        words("ask_placeholder"), key="question", max_chars=MAX_QUESTION, submit_mode="stop", on_submit=_typed
    )
    pending: Pending | None = state.pending
    turns = _turns(without=pending.rewind if pending else "")
    for turn in turns:
        with st.container(key=f"turn_{turn.id}"):
            draw_turn(turn, latest=pending is None and turn is turns[-1])
    if turns and state.pop("arrived", "") == turns[-1].id:
        show_from_its_start(turns[-1].id)
    if pending is not None:
        _ask(pending, turns=turns)
    elif state.stopped is not None:
        _draw_stopped(state.stopped)
    elif not turns:
        draw_welcome()


def _typed() -> None:
    text = (st.session_state.question or "").strip()
    if text:
        ask_next(Pending(text))


def _turns(*, without: str) -> tuple[StoredTurn, ...]:
    """The last turns of the open conversation, up to the one that is being asked again."""
    state = st.session_state
    if not state.conversation:
        return ()
    if conversations().find(state.conversation, owner=owner()) is None:
        use_conversation("")
        return ()
    turns = conversations().turns(state.conversation, limit=state.shown_turns)
    hidden = conversations().count(state.conversation) - len(turns)
    if hidden:
        st.button(
            words("show_earlier", count=hidden),
            icon=":material/history:",
            key="show_earlier",
            on_click=_show_more,
        )
    places = [place for place, turn in enumerate(turns) if turn.id == without]
    return turns[: places[0]] if places else turns


def _show_more() -> None:
    st.session_state.shown_turns += 20


def _ask(pending: Pending, *, turns: tuple[StoredTurn, ...]) -> None:
    with st.chat_message("user", avatar=USER_ICON):
        st.markdown(quote_markdown(pending.question))
    written: list[str] = []
    st.session_state.stopped = Stopped(pending, written)
    st.session_state.pending = None
    with st.chat_message("assistant", avatar=CRAG_ICON):
        answer = _follow(pending, turns=turns, written=written)
    _keep(answer, pending=pending)
    st.session_state.stopped = None
    st.rerun()


def _follow(pending: Pending, *, turns: tuple[StoredTurn, ...], written: list[str]) -> Answer:
    """Draw the events of the pending question and return its answer."""
    status = st.status(words("working"), expanded=True)
    text = st.empty()
    # A click reruns the script, which ends this run; what was kept in `stopped` is drawn then.
    st.button(words("stop_answer"), icon=":material/stop_circle:", key="stop_answer")
    began = perf_counter()
    with status:
        st.caption(words("opening"))
        crag = pipeline()
    history = () if pending.standalone else tuple(_history(turns[-HISTORY_TURNS:]))
    stream = crag.stream(
        pending.question, history=history, thresholds=pending.thresholds, search_mode=pending.search_mode
    )
    with closing(cast("Generator[Event]", stream)):
        for event in stream:
            match event:
                case Token():
                    written.append(event.text)
                    text.markdown(safe_markdown("".join(written)), anchors=False)
                case Answered():
                    status.update(label=words("done", seconds=f"{perf_counter() - began:.1f}"), state="complete")
                    return event.answer
                case _:
                    with status:
                        st.markdown(_stage(event))
    raise AssertionError("the stream always ends with Answered")


def _stage(event: Event) -> str:
    """One line about a stage that is done."""
    match event:
        case Rewritten():
            return words("event_rewritten", question=plain_markdown(event.question))
        case Retrieved():
            return words("event_retrieved", count=len(event.documents), seconds=f"{event.seconds:.2f}")
        case Evaluated():
            return words(
                "event_evaluated",
                action=words(f"action_{event.verdict.action}"),
                best=f"{event.verdict.best_score:+.2f}",
                seconds=f"{event.seconds:.2f}",
            )
        case Searched():
            if event.report.mode is not SearchMode.AUTO:
                return words(f"event_web_{event.report.mode}")
            queries = plain_markdown(" · ".join(event.report.queries))
            return words(
                "event_searched", count=len(event.report.urls), queries=queries, seconds=f"{event.seconds:.2f}"
            )
        case Prepared():
            knowledge = event.knowledge
            return words(
                "event_prepared",
                kept=len(knowledge.kept),
                count=len(knowledge.strips),
                seconds=f"{event.seconds:.2f}",
            )
        case Token() | Answered():
            return ""
        case _:
            assert_never(event)


def _history(turns: tuple[StoredTurn, ...]) -> Iterator[Turn]:
    for turn in turns:
        yield Turn(question=turn.answer.original_question or turn.answer.question, answer=turn.answer.text)


def _keep(answer: Answer, *, pending: Pending) -> None:
    state = st.session_state
    if pending.rewind:
        conversations().rewind(pending.rewind)
    if not state.conversation:
        made = conversations().create(pending.question, owner=owner())
        use_conversation(made.id)
    state.arrived = conversations().add(state.conversation, answer=answer).id


def _draw_stopped(stopped: Stopped) -> None:
    with st.chat_message("user", avatar=USER_ICON):
        st.markdown(quote_markdown(stopped.pending.question))
    with st.chat_message("assistant", avatar=CRAG_ICON):
        if stopped.written:
            st.markdown(safe_markdown("".join(stopped.written)), anchors=False)
        st.warning(words("not_finished"), icon=":material/front_hand:")
        st.button(
            words("retry"),
            icon=":material/refresh:",
            key="retry_stopped",
            on_click=ask_next,
            args=(stopped.pending,),
        )
