"""The reference panel of an answer: documents with scores, strips kept and dropped, the web's part, timings."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby

import streamlit as st

from conversations import StoredTurn
from i18n import translate
from records import fetch_time
from schema import Answer, BlockType, Document, Graded, Origin, Strip
from views.markup import plain_markdown, quote_markdown, safe_url
from views.page_viewer import Sheet, draw_crop, open_sheet
from views.session import language, words
from views.verdict import draw_verdict

PICTURED = frozenset({BlockType.TABLE, BlockType.IMAGE, BlockType.EQUATION})


def draw_evidence(turn: StoredTurn) -> None:
    """Draw the panel's tabs."""
    answer = turn.answer
    strips = answer.knowledge.strips
    tabs = st.tabs(
        [
            words("tab_verdict"),
            words("tab_documents", count=len(answer.graded)),
            words("tab_strips", kept=len(answer.knowledge.kept), count=len(strips)),
            words("tab_web"),
            words("tab_timings"),
        ]
    )
    with tabs[0]:
        draw_verdict(turn.id, answer=answer)
    with tabs[1]:
        for item in answer.graded:
            _draw_document(turn.id, item=item)
        if not answer.graded:
            st.caption(words("no_documents"))
    with tabs[2]:
        draw_strips(turn.id, strips=strips, answer=answer)
    with tabs[3]:
        _draw_search(answer)
    with tabs[4]:
        _draw_timings(answer)


def origin_badge(origin: Origin) -> str:
    """Return the Markdown badge of an origin; the knowledge base and the web never look alike."""
    if origin is Origin.WEB:
        return f":violet-badge[:material/public: {words('origin_web')}]"
    return f":blue-badge[:material/description: {words('origin_kb')}]"


def place(document: Document, *, page: int) -> str:
    """Return where a text stands, safe as Markdown."""
    if document.origin is Origin.WEB:
        return plain_markdown(document.title or document.url)
    return f"{plain_markdown(document.file)} · {words('page_short', page=page)}"


def _draw_document(turn_id: str, *, item: Graded) -> None:
    document = item.document
    score = words("grade_failed") if item.grade.failed else f"{item.grade.score:+.2f}"
    with st.expander(f"{document.rank} · {score} · {place(document, page=document.page)}"):
        st.markdown(origin_badge(document.origin))
        if document.heading_path:
            st.caption(plain_markdown(" › ".join(document.heading_path)))
        if len(document.sources) > 0:
            st.caption(words("also_in", files=plain_markdown(", ".join(document.sources))))
        st.markdown(quote_markdown(document.text))
        _draw_opener(document, regions_of=None, key=f"document_{turn_id}_{document.rank}")


def draw_strips(turn_id: str, *, strips: tuple[Strip, ...], answer: Answer) -> None:
    """Draw strips in document order, grouped by document; a dropped one is struck through."""
    if not strips:
        st.caption(words("no_strips"))
        return
    st.caption(words("strips_help", floor=f"{answer.verdict.thresholds.strip:+.2f}"))
    order = sorted(range(len(strips)), key=lambda index: _group(strips[index]))
    for group, indices in groupby(order, key=lambda index: _group(strips[index])):
        members = list(indices)
        first = strips[members[0]]
        with st.container(border=True):
            st.markdown(f"{origin_badge(first.document.origin)} **{place(first.document, page=first.page)}**")
            for index in members:
                _draw_strip(strips[index], key=f"strip_{turn_id}_{group[0]}_{group[1]}_{index}")


def _group(strip: Strip) -> tuple[int, int]:
    return (int(strip.document.origin is Origin.WEB), strip.document.rank)


def _draw_strip(strip: Strip, *, key: str) -> None:
    score = words("grade_failed") if strip.grade.failed else f"{strip.grade.score:+.2f}"
    text = quote_markdown(strip.text)
    if strip.kept:
        st.markdown(f":green-badge[:material/check: {words('kept')} {score}]  \n{text}")
        if strip.document.chunk and strip.document.chunk.type in PICTURED and strip.regions:
            draw_crop(strip.document.file, region=strip.regions[0])
        _draw_opener(strip.document, regions_of=strip, key=key)
    else:
        struck = "  \n".join(f"~~{line}~~" for line in text.split("  \n") if line)
        st.markdown(f":gray-badge[:material/close: {words('dropped')} {score}]  \n{struck}")


def _draw_opener(document: Document, *, regions_of: Strip | None, key: str) -> None:
    if document.origin is Origin.WEB:
        draw_link(document.url, key=key)
        st.caption(translate("search.fetched", language=language(), time=fetch_time(document)))
        return
    regions = regions_of.regions if regions_of else document.regions(0, max(len(document.text), 1))
    page = regions[0].page if regions else document.page
    if st.button(words("show_on_page", page=page), icon=":material/find_in_page:", key=key, type="tertiary"):
        open_sheet(Sheet(document.file, page, regions))


def draw_link(url: str, *, key: str) -> None:
    """Draw a link whose label is its own address; anything but http(s) is shown as text."""
    address = safe_url(url)
    if address:
        st.link_button(plain_markdown(address), address, icon=":material/open_in_new:", type="tertiary", key=key)
    elif url:
        st.caption(plain_markdown(url))


def _draw_search(answer: Answer) -> None:
    search = answer.search
    st.markdown(words(f"web_mode_{search.mode}"))
    if search.queries:
        st.markdown(f"**{words('web_queries', provider=plain_markdown(search.provider))}**")
        for query in search.queries:
            st.markdown(f"- {plain_markdown(query)}")
    if search.urls:
        st.markdown(f"**{words('web_visited')}**")
        for number, url in enumerate(search.urls):
            draw_link(url, key=f"visited_{answer.id}_{number}")
    if search.graded:
        st.markdown(f"**{words('web_graded')}**")
        for item in search.graded:
            score = words("grade_failed") if item.grade.failed else f"{item.grade.score:+.2f}"
            st.markdown(f"- {score} · {place(item.document, page=item.document.page)}")
    if search.error:
        st.warning(f"{words('web_failed')} ({plain_markdown(search.error)})", icon=":material/cloud_off:")


def _draw_timings(answer: Answer) -> None:
    rows = [
        {words("stage"): words(f"stage_{name}"), words("seconds"): f"{value:.2f}"}
        for name, value in asdict(answer.seconds).items()
    ]
    st.table(rows)
    models = asdict(answer.models)
    st.caption(" · ".join(f"{words(f'role_{role}')}: {plain_markdown(name)}" for role, name in models.items() if name))
    usage = answer.usage
    st.caption(
        words("usage", calls=usage.llm_calls, input=usage.input_tokens, output=usage.output_tokens)
        if usage.llm_calls
        else words("usage_none")
    )
