"""What one browser session remembers, and the language it is shown in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import streamlit as st

from bases import DEFAULT
from config import get_settings
from i18n import Language, translate
from schema import SearchMode, Thresholds

VIEWS = ("ask", "library", "retrieval", "settings")


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that the next run of the script is to ask.

    `rewind` is the turn that it replaces, with all that follow.
    """

    question: str
    thresholds: Thresholds | None = None
    search_mode: SearchMode | None = None
    rewind: str = ""
    standalone: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """A question under way, with what is written so far: what is left of it when it is stopped or fails.

    Streamlit allows no change of state once the reader pressed Stop, so it is kept from the start.
    """

    pending: Pending
    written: list[str]


def start_session() -> None:
    """Give every key of the session its first value; the language follows the browser's."""
    state = st.session_state
    chosen = get_settings().language
    if chosen == "auto":
        chosen = "zh" if (st.context.locale or "").lower().startswith("zh") else "en"
    state.setdefault("language", chosen)
    asked_view = st.query_params.get("view", "")
    state.setdefault("view", asked_view if asked_view in VIEWS else "ask")
    state.setdefault("conversation", st.query_params.get("conversation", ""))
    state.setdefault("pending", None)
    state.setdefault("stopped", None)
    state.setdefault("shown_turns", 10)
    state.setdefault("passwords", {})
    state.setdefault("upload_round", 0)
    state.setdefault("base", st.query_params.get("kb", DEFAULT))


def language() -> Language:
    """Return the language that the session is shown in."""
    return cast(Language, st.session_state.get("language") or "en")


def words(key: str, **values: object) -> str:
    """Return the page's text of `key` in the session's language."""
    return translate(f"page.{key}", language=language(), **values)


def dark() -> bool:
    """Tell whether the browser shows the dark theme."""
    return st.context.theme.type == "dark"


def emphasis() -> Literal["primary", "secondary"]:
    """Return the type of a main button: Streamlit's white label is unreadable on the accent of the dark theme."""
    return "secondary" if dark() else "primary"


def owner() -> str:
    """Return whose conversations these are: the signed-in person's address, "" without sign-in."""
    return str(st.user.get("email", "")) if get_settings().auth_allow else ""


def base_name() -> str:
    """Return the display name of the knowledge base that the session works with."""
    return str(st.session_state.get("base") or DEFAULT)


def ask_next(pending: Pending) -> None:
    """Have the next run ask this question; a callback of buttons."""
    st.session_state.pending = pending
    st.session_state.stopped = None
    st.session_state.editing = ""
    go_to("ask")


def open_conversation(conversation_id: str) -> None:
    """Show another conversation; "" starts a new one; a callback of buttons."""
    use_conversation(conversation_id)
    st.session_state.stopped = None
    st.session_state.shown_turns = 10
    go_to("ask")


def use_conversation(conversation_id: str) -> None:
    """Go on in this conversation; its id stays in the address, so that a reload shows it again."""
    st.session_state.conversation = conversation_id
    _remember("conversation", conversation_id)


def use_base(name: str) -> None:
    """Work with another knowledge base; its name stays in the address."""
    st.session_state.base = name
    _remember("kb", "" if name == DEFAULT else name)


def go_to(view: str) -> None:
    """Show another view; a callback of buttons."""
    st.session_state.view = view
    remember_view()


def remember_view() -> None:
    """Keep the view in the address, so that a reload shows it again."""
    _remember("view", "" if st.session_state.view == "ask" else st.session_state.view)


def _remember(name: str, value: Any) -> None:
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)
