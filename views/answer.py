"""One turn of a conversation: the question, the answer with numbered citations, the page beside it, the panel."""

from __future__ import annotations

import streamlit as st

from config import get_settings
from conversations import Rating, StoredTurn
from i18n import translate
from records import fetch_time
from schema import Answer, Citation, Origin, SearchMode
from views.evidence import draw_evidence, draw_link, origin_badge, place
from views.markup import mark_citations, plain_markdown, quote_markdown, safe_markdown
from views.page_viewer import Sheet, citation_label, draw_beside, open_sheet
from views.resources import conversations
from views.session import Pending, ask_next, emphasis, go_to, language, words
from views.verdict import draw_action, draw_chart
from what_if import lowered

USER_ICON = ":material/person:"
CRAG_ICON = ":material/menu_book:"
CHARTED = 3
"""Documents in the small chart under the latest answer; the panel shows all."""


def draw_turn(turn: StoredTurn, *, latest: bool) -> None:
    """Draw a stored turn; the latest one with its first boxed page beside the answer."""
    draw_question(turn)
    answer = turn.answer
    with st.chat_message("assistant", avatar=CRAG_ICON):
        if answer.original_question and answer.original_question != answer.question:
            _draw_rewrite(turn)
        pictured = [citation for citation in answer.citations if citation.origin is Origin.KB and citation.file]
        if latest and pictured:
            text, page = st.columns([3, 2], gap="medium")
            with text:
                _draw_answer(turn)
                draw_chart(answer, thresholds=answer.verdict.thresholds, limit=CHARTED)
            with page:
                draw_beside(turn.id, citations=pictured)
        else:
            _draw_answer(turn)
        label = words("panel", documents=len(answer.graded), seconds=f"{answer.seconds.total:.1f}")
        panel = st.expander(label, icon=":material/fact_check:", key=f"panel_{turn.id}", on_change="rerun")
        if panel.open:
            with panel:
                draw_evidence(turn)


def draw_question(turn: StoredTurn) -> None:
    """Draw the question, or the field in which it is being edited."""
    asked = turn.answer.original_question or turn.answer.question
    with st.chat_message("user", avatar=USER_ICON):
        if st.session_state.get("editing") == turn.id:
            _draw_editor(turn, asked=asked)
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(quote_markdown(asked), width="stretch")
            st.button(
                words("edit"),
                icon=":material/edit:",
                key=f"edit_{turn.id}",
                type="tertiary",
                on_click=_edit,
                args=(turn.id,),
            )


def answer_markdown(answer: Answer) -> str:
    """Return the answer's text with its known citations as badges; everything else in it is harmless."""
    origins = {citation.n: citation.origin for citation in answer.citations}

    def badge(number: int) -> str:
        return f":violet-badge[WEB {number}]" if origins[number] is Origin.WEB else f":blue-badge[{number}]"

    return mark_citations(safe_markdown(answer.text), known=set(origins), badge=badge)


def _draw_answer(turn: StoredTurn) -> None:
    answer = turn.answer
    for warning in answer.warnings:
        st.warning(translate(warning, language=language()), icon=":material/warning:")
    if answer.refused:
        st.info(answer_markdown(answer), icon=":material/block:")
        _draw_next_steps(turn)
    else:
        st.markdown(answer_markdown(answer), anchors=False)
        _draw_citations(turn)
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_action(answer.verdict.action)
        st.caption(
            words("best_score", best=f"{answer.verdict.best_score:+.2f}") if answer.graded else words("no_documents")
        )
    _draw_tools(turn)


def _draw_citations(turn: StoredTurn) -> None:
    for origin in Origin:
        citations = [citation for citation in turn.answer.citations if citation.origin is origin]
        if citations:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(origin_badge(origin), width="content")
                for citation in citations:
                    _draw_citation(citation, key=f"cite_{turn.id}_{citation.n}")
    if any(citation.matched for citation in turn.answer.citations):
        st.caption(words("matched"))


def _draw_citation(citation: Citation, *, key: str) -> None:
    if citation.origin is Origin.WEB:
        st.markdown(f"**{citation.n}** {plain_markdown(citation.title)}", width="content")
        draw_link(citation.url, key=key)
        st.caption(translate("search.fetched", language=language(), time=fetch_time(citation)), width="content")
    elif st.button(
        citation_label(citation),
        icon=":material/find_in_page:",
        key=key,
        type="tertiary",
        help=_quote_help(citation),
    ):
        open_sheet(Sheet(citation.file, citation.page, citation.regions))


def _quote_help(citation: Citation) -> str:
    quote = citation.quote if len(citation.quote) <= 160 else citation.quote[:159] + "…"
    return plain_markdown(quote)


def _draw_next_steps(turn: StoredTurn) -> None:
    answer = turn.answer
    if answer.graded:
        with st.expander(words("nearest"), icon=":material/search_off:"):
            for item in answer.graded[:3]:
                score = words("grade_failed") if item.grade.failed else f"{item.grade.score:+.2f}"
                st.markdown(f"**{score}** · {place(item.document, page=item.document.page)}")
                st.caption(quote_markdown(item.document.text[:300]))
    asked = answer.original_question or answer.question
    with st.container(horizontal=True):
        if get_settings().web_search is not SearchMode.OFF and answer.search.mode is not SearchMode.AUTO:
            st.button(
                words("search_web_once"),
                icon=":material/travel_explore:",
                key=f"web_{turn.id}",
                type=emphasis(),
                on_click=ask_next,
                args=(Pending(asked, search_mode=SearchMode.AUTO, rewind=turn.id),),
            )
        limits = lowered(answer)
        if limits is not None:
            st.button(
                words("lower_once"),
                icon=":material/vertical_align_bottom:",
                key=f"lower_once_{turn.id}",
                help=words("lower_once_help", lower=f"{limits.lower:+.2f}"),
                on_click=ask_next,
                args=(Pending(asked, thresholds=limits, rewind=turn.id),),
            )
        st.button(
            words("go_upload"),
            icon=":material/upload_file:",
            key=f"upload_{turn.id}",
            on_click=go_to,
            args=("library",),
        )


def _draw_tools(turn: StoredTurn) -> None:
    asked = turn.answer.original_question or turn.answer.question
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            words("retry"),
            icon=":material/refresh:",
            key=f"retry_{turn.id}",
            type="tertiary",
            on_click=ask_next,
            args=(Pending(asked, rewind=turn.id),),
        )
        with st.popover(words("copy"), icon=":material/content_copy:", type="tertiary", key=f"copy_{turn.id}"):
            st.code(turn.answer.text, language=None, wrap_lines=True)
        st.feedback(
            "thumbs",
            key=f"rating_{turn.id}",
            default=None if turn.rating is None else int(turn.rating),
            on_change=_rate,
            args=(turn.id,),
        )
        if st.session_state.get(f"rating_{turn.id}") is not None:
            st.text_input(
                words("comment"),
                value=turn.comment,
                key=f"comment_{turn.id}",
                placeholder=words("comment_placeholder"),
                label_visibility="collapsed",
                max_chars=500,
                on_change=_rate,
                args=(turn.id,),
            )


def _draw_rewrite(turn: StoredTurn) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(words("rewritten", question=plain_markdown(turn.answer.question)))
        st.button(
            words("undo_rewrite"),
            icon=":material/undo:",
            key=f"literal_{turn.id}",
            type="tertiary",
            on_click=ask_next,
            args=(Pending(turn.answer.original_question, rewind=turn.id, standalone=True),),
        )


def _draw_editor(turn: StoredTurn, *, asked: str) -> None:
    text = st.text_area(words("edit_label"), value=asked, key=f"editor_{turn.id}", max_chars=2000)
    with st.container(horizontal=True):
        st.button(
            words("ask_again"),
            key=f"ask_again_{turn.id}",
            type=emphasis(),
            disabled=not text.strip(),
            on_click=ask_next,
            args=(Pending(text.strip(), rewind=turn.id),),
        )
        st.button(words("cancel"), key=f"cancel_edit_{turn.id}", on_click=_edit, args=("",))


def _edit(turn_id: str) -> None:
    st.session_state.editing = turn_id


def _rate(turn_id: str) -> None:
    value = st.session_state.get(f"rating_{turn_id}")
    comment = st.session_state.get(f"comment_{turn_id}") or ""
    conversations().rate(turn_id, rating=None if value is None else Rating(value), comment=comment)
