"""Several knowledge bases: which one the session works with, and a new one."""

from __future__ import annotations

import streamlit as st

from bases import DEFAULT, find_base, list_bases
from config import get_settings
from views.boundary import Boundary
from views.session import base_name, use_base, words


def draw_base_choice() -> None:
    """Draw the choice in the sidebar when there is more than one knowledge base."""
    names = [base.name for base in list_bases(get_settings())]
    if base_name() not in names:
        use_base(DEFAULT)
    if len(names) > 1:
        st.selectbox(
            words("base"),
            names,
            index=names.index(base_name()),
            format_func=lambda name: words("base_default") if name == DEFAULT else name,
            key="base_choice",
            on_change=_choose,
        )


def draw_new_base() -> None:
    """Draw the field that makes a knowledge base with its own files."""
    with st.popover(words("new_base"), icon=":material/create_new_folder:", key="new_base_menu"):
        st.text_input(words("new_base_name"), key="new_base_name", max_chars=60, help=words("new_base_help"))
        st.button(words("create"), key="create_base", on_click=_create)


def _choose() -> None:
    use_base(st.session_state.base_choice)


def _create() -> None:
    name = str(st.session_state.new_base_name).strip()
    if name:
        with Boundary("new knowledge base"):
            base = find_base(get_settings(), name=name)
            base.create()
            use_base(base.name)
            st.session_state.base_choice = base.name
            st.session_state.new_base_name = ""
