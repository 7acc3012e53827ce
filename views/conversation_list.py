"""The list of conversations: open, rename, delete, export; and what was learned from judged answers."""

from __future__ import annotations

import streamlit as st

from conversation_export import labelled_lines, to_json, to_markdown
from conversations import Conversation
from views.markup import plain_markdown
from views.resources import conversations
from views.session import emphasis, language, open_conversation, owner, use_conversation, words

SHOWN = 15


def draw_conversations() -> None:
    """Draw the list in the sidebar."""
    st.button(
        words("new_conversation"),
        icon=":material/add_comment:",
        key="new_conversation",
        width="stretch",
        on_click=open_conversation,
        args=("",),
    )
    shown = st.session_state.setdefault("shown_conversations", SHOWN)
    listed = conversations().list(owner=owner(), limit=shown + 1)
    if not listed:
        return
    st.caption(words("conversations"))
    for conversation in listed[:shown]:
        current = conversation.id == st.session_state.conversation
        st.button(
            plain_markdown(conversation.title),
            key=f"open_{conversation.id}",
            type="secondary" if current else "tertiary",
            icon=":material/chat_bubble:",
            width="stretch",
            wrap=False,
            on_click=open_conversation,
            args=(conversation.id,),
        )
        if current:
            _draw_menu(conversation)
    if len(listed) > shown:
        st.button(
            words("older_conversations"),
            icon=":material/history:",
            key="older_conversations",
            type="tertiary",
            width="stretch",
            on_click=_show_older,
        )


def _show_older() -> None:
    st.session_state.shown_conversations += SHOWN


def _draw_menu(conversation: Conversation) -> None:
    with st.popover(
        words("conversation_menu"), icon=":material/more_horiz:", type="tertiary", key=f"menu_{conversation.id}"
    ):
        st.text_input(
            words("rename"),
            value=conversation.title,
            key=f"rename_{conversation.id}",
            max_chars=60,
            on_change=_rename,
            args=(conversation.id,),
        )
        name = f"crag-{conversation.created[:10]}"
        st.download_button(
            words("export_markdown"),
            data=lambda: to_markdown(
                conversation, turns=conversations().turns(conversation.id), language=language()
            ).encode(),
            file_name=f"{name}.md",
            mime="text/markdown",
            icon=":material/download:",
            key=f"markdown_{conversation.id}",
            on_click="ignore",
        )
        st.download_button(
            words("export_json"),
            data=lambda: to_json(conversation, turns=conversations().turns(conversation.id)).encode(),
            file_name=f"{name}.json",
            mime="application/json",
            icon=":material/data_object:",
            key=f"json_{conversation.id}",
            on_click="ignore",
        )
        _draw_delete(conversation)


def _draw_delete(conversation: Conversation) -> None:
    st.button(
        words("delete_conversation"),
        icon=":material/delete:",
        key=f"delete_{conversation.id}",
        on_click=_ask_to_delete,
        args=(conversation.id,),
    )
    if st.session_state.get("delete_asked") == conversation.id:
        st.markdown(words("delete_conversation_sure"))
        st.button(
            words("delete_yes"),
            icon=":material/delete_forever:",
            key="delete_conversation_yes",
            type=emphasis(),
            on_click=_delete,
            args=(conversation.id,),
        )


def draw_labelled() -> None:
    """Draw the download of judged questions as labelled data for `calibrate`."""
    rated = conversations().rated(owner=owner())
    st.markdown(words("labelled_help", count=len(rated)))
    st.download_button(
        words("labelled_download"),
        data=labelled_lines(rated).encode(),
        file_name="crag-labelled.jsonl",
        mime="application/jsonl",
        icon=":material/download:",
        key="labelled",
        on_click="ignore",
        disabled=not rated,
    )


def _rename(conversation_id: str) -> None:
    title = st.session_state[f"rename_{conversation_id}"]
    conversations().rename(conversation_id, title=title, owner=owner())


def _ask_to_delete(conversation_id: str) -> None:
    st.session_state.delete_asked = conversation_id


def _delete(conversation_id: str) -> None:
    conversations().delete(conversation_id, owner=owner())
    if st.session_state.conversation == conversation_id:
        use_conversation("")
