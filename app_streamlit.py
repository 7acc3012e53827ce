"""The page: `streamlit run app_streamlit.py`. It draws; what it draws is made elsewhere."""

from __future__ import annotations

import logging
from pathlib import Path

import streamlit as st

from views.ask import draw_ask
from views.boundary import Boundary
from views.chrome import draw_chrome
from views.conversation_list import draw_conversations
from views.library import draw_library, draw_shelf
from views.retrieval import draw_retrieval
from views.session import VIEWS, remember_view, start_session, words
from views.settings_view import draw_settings
from views.sign_in import admitted

ICON = Path(__file__).with_name("views") / "icon.png"
"""A file of ours: Streamlit would fetch a named icon, or an emoji, from the internet."""
LANGUAGE_NAMES = {"zh": "中文", "en": "English"}
VIEW_ICONS = {
    "ask": ":material/forum:",
    "library": ":material/library_books:",
    "retrieval": ":material/manage_search:",
    "settings": ":material/settings:",
}
DRAW = {"ask": draw_ask, "library": draw_library, "retrieval": draw_retrieval, "settings": draw_settings}


def main() -> None:
    """Draw one run of the page."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    st.set_page_config(page_title="CRAG", page_icon=str(ICON), layout="wide")
    with Boundary("page"):
        start_session()
        if admitted():
            draw_page()


def draw_page() -> None:
    """Draw the sidebar and the chosen view; what opens the knowledge base comes last, so the page is there first."""
    with st.sidebar:
        st.markdown(f"### :material/fact_check: {words('app_name')}")
        st.segmented_control(
            words("language"),
            list(LANGUAGE_NAMES),
            format_func=LANGUAGE_NAMES.__getitem__,
            key="language",
            required=True,
            label_visibility="collapsed",
        )
        shelf = st.container()
        st.divider()
        with Boundary("conversations"):
            draw_conversations()
    st.segmented_control(
        words("views"),
        VIEWS,
        format_func=lambda view: f"{VIEW_ICONS[view]} {words(f'view_{view}')}",
        key="view",
        required=True,
        label_visibility="collapsed",
        on_change=remember_view,
    )
    with Boundary(st.session_state.view):
        DRAW[st.session_state.view]()
    with shelf, Boundary("shelf"):
        draw_shelf()
    with st.sidebar:
        draw_chrome()


main()
