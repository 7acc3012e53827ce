"""Upload, build, progress and stop: the work goes on in the background and is seen from every tab."""

from __future__ import annotations

from typing import Any

import streamlit as st

from build_report import BuildReport, Outcome, Progress, Stage
from config import get_settings
from errors import CragError
from uploads import Arrival, Upload, save_upload
from views.boundary import Boundary, show_error
from views.markup import plain_markdown
from views.resources import build_job, files_dir, knowledge_base
from views.session import emphasis, go_to, words

POLL_SECONDS = 1.0


def draw_uploader() -> None:
    """Draw the field for new PDFs; what is handed in is written to the library at once."""
    state = st.session_state
    limit = get_settings().max_upload_mb
    key = f"upload_{state.upload_round}"
    st.file_uploader(
        words("upload"),
        type="pdf",
        accept_multiple_files=True,
        key=key,
        help=words("upload_help", limit=limit),
        max_upload_size=limit,
        on_change=_take,
        args=(key,),
    )
    for upload in state.get("uploads", ()):
        st.caption(_upload_words(upload))


def _take(key: str) -> None:
    """Write what was handed in and empty the field, so that a rerun takes nothing twice."""
    with Boundary("upload"):
        handed_in: list[Any] = st.session_state.get(key) or []
        st.session_state.uploads = [
            save_upload(files_dir(), name=file.name, data=file.getvalue()) for file in handed_in
        ]
        st.session_state.upload_round += 1


def _upload_words(upload: Upload) -> str:
    icon = ":material/info:" if upload.arrival is Arrival.ALREADY_HERE else ":material/check:"
    told = words(f"upload_{upload.arrival}", file=plain_markdown(upload.file), same=plain_markdown(upload.same_as))
    return f"{icon} {told}"


def draw_running_note() -> bool:
    """Say that a build goes on, and tell whether it does."""
    running = build_job().running
    st.session_state.running_note = running
    if running:
        st.info(words("build_running"), icon=":material/hourglass_top:")
    return running


def draw_build() -> None:
    """Draw the build buttons, or the progress of the running build with Stop."""
    state = build_job().state
    if state.running:
        _draw_running()
        return
    if st.session_state.pop("running_note", False):
        st.rerun()  # it ended while the rest of the page was drawn
    if knowledge_base().status().building is not None:
        st.info(words("build_elsewhere"), icon=":material/hourglass_top:")
    st.button(
        words("update"),
        icon=":material/sync:",
        key="update",
        type=emphasis(),
        width="stretch",
        help=words("update_help"),
        on_click=_start,
        args=(False,),
    )
    st.button(
        words("rebuild"),
        icon=":material/construction:",
        key="rebuild",
        width="stretch",
        help=words("rebuild_help"),
        on_click=_start,
        args=(True,),
    )
    _draw_outcome(state.report, error=state.error)


@st.fragment(run_every=POLL_SECONDS)
def _draw_running() -> None:
    state = build_job().state
    if not state.running:
        st.rerun(scope="app")
    progress = state.progress
    st.progress(_share(progress), text=_progress_words(progress))
    if progress is not None and progress.seconds_left is not None:
        st.caption(words("time_left", seconds=round(progress.seconds_left)))
    st.button(
        words("stopping" if state.stopping else "stop_build"),
        icon=":material/stop_circle:",
        key="stop_build",
        width="stretch",
        disabled=state.stopping,
        on_click=build_job().stop,
    )
    st.caption(words("build_meanwhile"))


def _share(progress: Progress | None) -> float:
    if progress is None or not progress.files:
        return 0.0
    within = progress.page / progress.pages if progress.pages else 0.0
    return min(max((progress.number - 1 + within) / progress.files, 0.0), 1.0)


def _progress_words(progress: Progress | None) -> str:
    if progress is None or progress.stage is Stage.SCAN:
        return words("progress_scan")
    return words(
        f"progress_{progress.stage}",
        file=plain_markdown(progress.file),
        number=progress.number,
        files=progress.files,
        page=progress.page,
        pages=progress.pages,
        chunks=progress.chunks,
    )


def _draw_outcome(report: BuildReport | None, *, error: CragError | None) -> None:
    if error is not None:
        show_error(error)
    if report is None:
        return
    told = words(
        "build_stopped" if report.stopped else "build_done",
        documents=report.documents,
        pages=report.pages,
        chunks=report.chunks,
        left=report.left,
        seconds=f"{report.seconds:.1f}",
    )
    st.caption(told)
    failed = report.count(Outcome.FAILED)
    if failed:
        st.warning(words("build_failed", count=failed), icon=":material/warning:")
        st.button(words("see_failed"), key="see_failed", on_click=go_to, args=("library",), type="tertiary")


def _start(rebuild: bool) -> None:  # noqa: FBT001
    with Boundary("build"):
        st.session_state.uploads = []
        build_job().start(rebuild=rebuild, passwords=dict(st.session_state.passwords))
