"""The library: every file with what was read from it, its failures with the remedy, preview, re-index and delete."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import streamlit as st

from errors import CragError
from views.base_choice import draw_base_choice, draw_new_base
from views.boundary import Boundary, show_error
from views.build_panel import draw_build, draw_running_note, draw_uploader
from views.markup import label_text, plain_markdown
from views.page_viewer import Sheet, draw_download, open_sheet
from views.resources import build_job, file_path, knowledge_base
from views.session import emphasis, words

if TYPE_CHECKING:
    from listing import DocumentInfo

UNREAD = ("new", "changed")
LOCKED = ("pdf_encrypted", "pdf_password_wrong")


def draw_library() -> None:
    """Draw the table of files and what can be done with one of them."""
    st.header(words("library_title"), anchor=False)
    draw_new_base()
    base = knowledge_base()
    status = base.status()
    with st.container(horizontal=True):
        st.metric(words("documents"), status.documents)
        st.metric(words("pages"), status.pages)
        st.metric(words("chunks"), status.chunks)
        st.metric(words("failed"), status.failed)
    if status.mismatch:
        st.warning(words(f"mismatch_{status.mismatch}"), icon=":material/warning:")
    documents = base.documents()
    if not documents:
        st.info(words("library_empty", folder=plain_markdown(status.files_dir)), icon=":material/info:")
        return
    waiting = sum(document.status in UNREAD for document in documents)
    if waiting and not build_job().running:
        st.info(words("library_waiting", count=waiting), icon=":material/pending:")
    draw_running_note()
    _draw_failures(documents)
    st.dataframe(
        [_row(document) for document in documents],
        hide_index=True,
        key="library_table",
        alt=words("library_alt", count=len(documents)),
    )
    if any(document.parser and "mineru" not in document.parser for document in documents):
        st.caption(words("parser_line"))
    _draw_one(documents)


def _row(document: DocumentInfo) -> dict[str, str | int]:
    path = file_path(document.file)
    changed = datetime.fromtimestamp(path.stat().st_mtime).astimezone() if path.is_file() else None
    return {
        words("file"): document.file,
        words("state"): words(f"state_{document.status}"),
        words("pages"): document.pages,
        words("chunks"): document.chunks,
        words("parser"): ", ".join(words(f"parser_{name}") for name in document.parser.split(", ") if name),
        words("ocr_pages"): document.ocr_pages,
        words("size"): _size(document.bytes),
        words("changed"): f"{changed:%Y-%m-%d %H:%M}" if changed else "",
    }


def _size(count: int) -> str:
    return f"{count / 1_048_576:.1f} MB" if count >= 1_048_576 else f"{count / 1024:.0f} KB"


def _draw_failures(documents: tuple[DocumentInfo, ...]) -> None:
    for document in documents:
        if document.error:
            code = document.error.get("code", "internal")
            values = {**document.error.get("values", {}), "file": document.file, "name": document.file}
            show_error(CragError("", code=code, **values))
            if code in LOCKED:
                with st.form(f"password_form_{document.document_id}", border=False):
                    password = st.text_input(
                        words("password", file=label_text(document.file)),
                        type="password",
                        key=f"password_{document.document_id}",
                        autocomplete="off",
                    )
                    if st.form_submit_button(words("unlock"), icon=":material/lock_open:") and password:
                        _unlock(document.file, password=password)


def _unlock(file: str, *, password: str) -> None:
    """Try a password at the next build; it is kept for this session only and never written down."""
    st.session_state.passwords[file] = password
    if build_job().start(passwords=dict(st.session_state.passwords)):
        st.rerun()
    st.info(words("password_later"), icon=":material/hourglass_top:")


def _draw_one(documents: tuple[DocumentInfo, ...]) -> None:
    names = [document.file for document in documents]
    file = st.selectbox(words("choose_file"), names, key="library_file")
    document = next((each for each in documents if each.file == file), documents[0])
    if document.same_as:
        st.caption(words("same_as", files=plain_markdown(", ".join(document.same_as))))
    with st.container(horizontal=True):
        if st.button(words("preview"), icon=":material/visibility:", key="preview"):
            open_sheet(Sheet(document.file, 1))
        draw_download(document.file, key="library_download")
        st.button(
            words("read_again"),
            icon=":material/restart_alt:",
            key="read_again",
            help=words("read_again_help"),
            disabled=build_job().running or document.status == "missing",
            on_click=_read_again,
            args=(document.file,),
        )
        with st.popover(words("delete"), icon=":material/delete:", key="delete_menu"):
            st.markdown(words("delete_sure", file=plain_markdown(document.file)))
            st.button(
                words("delete_yes"),
                icon=":material/delete_forever:",
                key="delete_yes",
                type=emphasis(),
                on_click=_delete,
                args=(document.file,),
            )


def _read_again(file: str) -> None:
    with Boundary("read again"):
        build_job().start(again=(file,), passwords=dict(st.session_state.passwords))


def _delete(file: str) -> None:
    with Boundary("delete"):
        knowledge_base().delete(file)
        st.toast(words("deleted", file=plain_markdown(file)), icon=":material/delete:")


def draw_shelf() -> None:
    """Draw the choice of knowledge base, upload and build in the sidebar."""
    draw_base_choice()
    draw_uploader()
    with Boundary("build"):
        draw_build()
