"""The first screen: what works now, what could be added, and questions to start with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import streamlit as st

from config import get_settings
from i18n import translate
from language import detect_language
from schema import BlockType
from views.boundary import Boundary
from views.build_panel import draw_running_note
from views.markup import plain_markdown
from views.resources import build_job, knowledge_base
from views.session import Pending, ask_next, emphasis, go_to, language, words

if TYPE_CHECKING:
    from knowledge_base import KnowledgeBase

STARTERS = 4
HEADING_PAGES = 6
HEADING_LENGTH = 60
_NUMBER = re.compile(r"^[\d.、§]+[.、)]?\s*")


def draw_welcome() -> None:
    """Draw the screen of an empty conversation."""
    with st.container(key="welcome"):
        st.title(words("welcome_title"), anchor=False)
    st.markdown(words("welcome_lead"))
    with st.spinner(words("opening")):
        status = knowledge_base().status()
    if status.chunks:
        _draw_starters()
    elif draw_running_note():
        pass
    elif status.waiting:
        st.info(words("welcome_waiting", count=status.waiting), icon=":material/pending:")
        st.button(words("index_now"), icon=":material/sync:", key="index_now", type=emphasis(), on_click=_index)
    else:
        st.info(words("welcome_empty", folder=plain_markdown(status.files_dir)), icon=":material/info:")
        st.button(
            words("go_library"),
            icon=":material/library_books:",
            key="go_library",
            type=emphasis(),
            on_click=go_to,
            args=("library",),
        )
    _draw_abilities(expanded=not status.chunks)


def _index() -> None:
    with Boundary("build"):
        build_job().start(passwords=dict(st.session_state.passwords))


def _draw_starters() -> None:
    starters = starter_questions()
    if not starters:
        return
    st.caption(words("starters"))
    with st.container(horizontal=True):
        for number, question in enumerate(starters):
            st.button(
                plain_markdown(question),
                key=f"starter_{number}",
                icon=":material/lightbulb:",
                wrap=True,
                on_click=ask_next,
                args=(Pending(question),),
            )


def starter_questions() -> list[str]:
    """Return questions about headings of the indexed documents, in each heading's language, the page's own first."""
    base = knowledge_base()
    files = [document.file for document in base.documents() if document.status == "indexed"][:STARTERS]
    headings = [heading for file in files for heading in _headings(base, file=file)]
    own = [heading for heading in headings if detect_language(heading) == language()]
    others = [heading for heading in headings if detect_language(heading) != language()]
    chosen = [*_spread(own, count=STARTERS - min(len(others), 1)), *_spread(others, count=STARTERS)][:STARTERS]
    return [translate("page.starter", language=detect_language(heading), heading=heading) for heading in chosen]


def _headings(base: KnowledgeBase, *, file: str) -> list[str]:
    """Section headings of a file's first pages without their numbers, the document's own title left out."""
    found: dict[str, None] = {}
    for page in range(1, HEADING_PAGES + 1):
        for block in base.blocks(file, page=page):
            heading = _NUMBER.sub("", block.text).strip()
            if block.type is BlockType.TITLE and block.level > 1 and 2 <= len(heading) <= HEADING_LENGTH:
                found[heading] = None
    return list(found)


def _spread(headings: list[str], *, count: int) -> list[str]:
    """`count` of the headings, evenly from all of them."""
    step = max(len(headings) / max(count, 1), 1.0)
    return [headings[int(number * step)] for number in range(min(count, len(headings)))]


def _draw_abilities(*, expanded: bool) -> None:
    settings = get_settings()
    llm = settings.answer_provider or settings.llm_provider
    with st.expander(words("abilities"), icon=":material/checklist:", expanded=expanded):
        st.markdown(words("ability_embedded"))
        st.markdown(words("ability_llm_embedded" if llm == "embedded" else "ability_llm", name=plain_markdown(llm)))
        st.markdown(words(f"ability_web_{settings.web_search}"))
        st.button(
            words("go_settings"), icon=":material/settings:", key="go_settings", on_click=go_to, args=("settings",)
        )
