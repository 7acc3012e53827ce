"""The retrieval test: a query in, documents with the rank and score of each channel out; nothing is generated."""

from __future__ import annotations

from time import perf_counter

import streamlit as st

from config import get_settings
from schema import Document
from views.evidence import place
from views.markup import plain_markdown, quote_markdown
from views.page_viewer import Sheet, open_sheet
from views.resources import knowledge_base, pipeline
from views.session import emphasis, words


def draw_retrieval() -> None:
    """Draw the query field and what it finds."""
    st.header(words("retrieval_title"), anchor=False)
    st.caption(words("retrieval_help"))
    with st.form("retrieval_form", border=False):
        query = st.text_input(words("retrieval_query"), key="retrieval_query", max_chars=2000)
        columns = st.columns([1, 2])
        with columns[0]:
            limit = st.number_input(
                words("retrieval_limit"), 1, 100, value=get_settings().retrieve_k, key="retrieval_limit"
            )
        with columns[1]:
            names = sorted(document.file for document in knowledge_base().documents())
            files = st.multiselect(
                words("retrieval_files"), names, key="retrieval_files", placeholder=words("retrieval_all_files")
            )
        asked = st.form_submit_button(words("retrieval_run"), icon=":material/search:", type=emphasis())
    if asked and query.strip():
        began = perf_counter()
        found = pipeline().retriever.retrieve(query.strip(), limit=int(limit), files=tuple(files))
        st.session_state.retrieved = (tuple(found), perf_counter() - began)
    if "retrieved" in st.session_state:
        documents, seconds = st.session_state.retrieved
        _draw_found(documents, seconds=seconds)


def _draw_found(documents: tuple[Document, ...], *, seconds: float) -> None:
    st.markdown(words("event_retrieved", count=len(documents), seconds=f"{seconds:.2f}"))
    for document in documents:
        channels = " · ".join(
            f"{words(f'channel_{channel.name}')} #{channel.rank} ({channel.score:.3f})" for channel in document.channels
        )
        title = f"{document.rank} · {place(document, page=document.page)} · {words('similarity')} "
        with st.expander(title + f"{document.similarity:.3f}", expanded=document.rank <= 3):
            st.caption(channels)
            if document.heading_path:
                st.caption(plain_markdown(" › ".join(document.heading_path)))
            st.markdown(quote_markdown(document.text))
            regions = document.regions(0, max(len(document.text), 1))
            if st.button(
                words("show_on_page", page=document.page),
                icon=":material/find_in_page:",
                key=f"found_{document.rank}",
                type="tertiary",
            ):
                open_sheet(Sheet(document.file, document.page, regions))
