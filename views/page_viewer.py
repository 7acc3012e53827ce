"""The page that a citation points to, with the evidence boxed: beside the answer, and large in a drawer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from errors import CragError, PdfUnreadableError
from i18n import translate
from page_images import PageImage, crop_region, draw_page
from pdf_page import PageResult
from schema import Citation, Origin, Region
from views.boundary import show_error
from views.markup import plain_markdown
from views.resources import file_path, knowledge_base
from views.session import language, words

ZOOMS = {"page": 1.0, "closer": 1.6, "closest": 2.4}


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page to look at: the file, the page and the boxes on this and other pages."""

    file: str
    page: int
    regions: tuple[Region, ...] = ()


def citation_label(citation: Citation) -> str:
    """Return a citation's number and place in words, safe as a label."""
    if citation.origin is Origin.WEB:
        return words("citation_web", n=citation.n, title=plain_markdown(citation.title or citation.url))
    return words("citation_kb", n=citation.n, file=plain_markdown(citation.file), page=citation.page)


def open_sheet(sheet: Sheet) -> None:
    """Open the drawer on a page."""
    st.session_state.sheet_page = sheet.page
    _drawer(sheet)


def draw_sheet(sheet: Sheet, *, zoom: float = 1.0) -> PageImage | None:
    """Draw a page; a file that is gone, locked or damaged is explained instead."""
    try:
        picture = _picture(sheet, zoom=zoom)
    except CragError as error:
        show_error(error)
        return None
    st.image(
        picture.png,
        width="stretch",
        alt=words("page_alt", file=sheet.file, page=sheet.page, boxes=_boxes(sheet)),
        caption=words("page_of", file=plain_markdown(sheet.file), page=sheet.page, pages=picture.pages),
    )
    if parsed := _parsed(sheet):
        st.caption(reading_words(parsed))
    return picture


def _parsed(sheet: Sheet) -> PageResult | None:
    try:
        return knowledge_base().parsed_page(sheet.file, page=sheet.page)
    except CragError:
        return None


def reading_words(parsed: PageResult) -> str:
    """Return what read a page, and why when it was not read as usual."""
    reader = words("read_by", parser=words(f"parser_{parsed.parser}"))
    reasons = [translate(f"pdf.reason_{code}", language=language()) for code in parsed.reason.split("; ") if code]
    return " · ".join((reader, *reasons))


def draw_crop(file: str, *, region: Region) -> None:
    """Draw only a table or figure, as printed; nothing when the file cannot be read."""
    path = file_path(file)
    if path.is_file():
        try:
            picture = _crop(str(path), path.stat().st_mtime_ns, region.page, region.bbox, _password(file))
        except CragError:
            return
        st.image(picture.png, width="stretch", alt=words("crop_alt", file=file, page=region.page))


@st.fragment
def draw_beside(turn_id: str, *, citations: Sequence[Citation]) -> None:
    """Draw the page of one citation beside the answer, with a choice of the others."""
    by_number = {citation.n: citation for citation in citations}
    chosen = next(iter(by_number))
    if len(by_number) > 1:
        chosen = st.segmented_control(
            words("evidence_on_page"),
            list(by_number),
            format_func=lambda number: f"{number} · {words('page_short', page=by_number[number].page)}",
            default=chosen,
            required=True,
            key=f"beside_{turn_id}",
        )
    citation = by_number[chosen or next(iter(by_number))]
    sheet = Sheet(citation.file, citation.page, citation.regions)
    draw_sheet(sheet)
    if st.button(words("open_page"), icon=":material/open_in_full:", key=f"open_beside_{turn_id}", width="stretch"):
        open_sheet(sheet)


def _drawer(sheet: Sheet) -> None:
    @st.dialog(words("drawer_title"), width=900, position="right")
    def show() -> None:
        page = st.session_state.sheet_page
        controls = st.container(horizontal=True, vertical_alignment="bottom")
        with controls:
            zoom = st.segmented_control(
                words("zoom"),
                list(ZOOMS),
                default="page",
                required=True,
                format_func=lambda name: words(f"zoom_{name}"),
                key="sheet_zoom",
            )
        picture = draw_sheet(Sheet(sheet.file, page, sheet.regions), zoom=ZOOMS[zoom or "page"])
        with controls:
            _draw_turning(sheet, page=page, pages=picture.pages if picture else page)

    show()


def _draw_turning(sheet: Sheet, *, page: int, pages: int) -> None:
    st.button(
        words("previous_page"),
        icon=":material/chevron_left:",
        key="sheet_previous",
        disabled=page <= 1,
        on_click=_turn_to,
        args=(page - 1,),
    )
    st.button(
        words("next_page"),
        icon=":material/chevron_right:",
        key="sheet_next",
        disabled=page >= pages,
        on_click=_turn_to,
        args=(page + 1,),
    )
    if page != sheet.page:
        st.button(
            words("back_to_evidence", page=sheet.page),
            icon=":material/undo:",
            key="sheet_back",
            on_click=_turn_to,
            args=(sheet.page,),
        )
    draw_download(sheet.file, key="sheet_download")


def draw_download(file: str, *, key: str) -> None:
    """Draw a button that hands out the original file."""
    path = file_path(file)
    st.download_button(
        words("download_original"),
        data=path.read_bytes if path.is_file() else b"",
        file_name=path.name,
        mime="application/pdf",
        icon=":material/download:",
        key=key,
        on_click="ignore",
        disabled=not path.is_file(),
    )


def _turn_to(page: int) -> None:
    st.session_state.sheet_page = page


def _boxes(sheet: Sheet) -> int:
    return sum(region.page == sheet.page for region in sheet.regions)


def _password(file: str) -> str:
    return str(st.session_state.passwords.get(file, ""))


def _picture(sheet: Sheet, *, zoom: float) -> PageImage:
    path = file_path(sheet.file)
    if not path.is_file():
        raise PdfUnreadableError(f"{path.name} is gone", code="file_gone", file=path.name)
    regions = tuple((region.page, region.bbox) for region in sheet.regions)
    return _page(str(path), path.stat().st_mtime_ns, sheet.page, regions, zoom, _password(sheet.file))


@st.cache_data(max_entries=128, show_spinner=False)
def _page(
    path: str,
    changed: int,
    page: int,
    regions: tuple[tuple[int, tuple[float, float, float, float]], ...],
    zoom: float,
    password: str,
) -> PageImage:
    boxes = [Region(number, box) for number, box in regions]
    return draw_page(Path(path), page=page, regions=boxes, zoom=zoom, password=password)


@st.cache_data(max_entries=128, show_spinner=False)
def _crop(
    path: str,
    changed: int,
    page: int,
    box: tuple[float, float, float, float],
    password: str,
) -> PageImage:
    return crop_region(Path(path), region=Region(page, box), password=password)
