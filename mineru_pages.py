"""Whole files through MinerU, page by page; `faults` gathers the pages that the embedded parser has to read."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config import Settings
from errors import PdfUnreadableError, ProviderError
from mineru_blocks import fault_of, page_of_raw
from mineru_client import PICTURE_WIDTH, WINDOW
from pdf_page import PageResult
from pdf_process import Picture, child_pictures

logger = logging.getLogger(__name__)

_GIVE_UP = 2
"""Windows in a row without one good page after which the rest of the file is left to the embedded parser."""


@dataclass(frozen=True, slots=True)
class Source:
    """The file to read."""

    path: Path
    document_id: str
    password: str
    settings: Settings


def read_windows(model: Any, *, source: Source, done: Collection[int], faults: dict[int, str]) -> Iterator[PageResult]:
    """Yield the pages that a MinerU model reads; `faults[page]` says why one is missing, `faults[0]` why the rest is.

    Only WINDOW pages are in memory at a time, so that a long file takes no more of it than a short one.

    :raises PdfError: the file itself cannot be read.
    """
    barren = 0
    window: list[Picture] = []
    total = 1
    for picture in _pictures(source, done=done):
        total = picture.total
        window.append(picture)
        if len(window) < WINDOW and picture.page < total:
            continue
        good = 0
        for page in _read_window(model, window=window, source=source, faults=faults):
            good += 1
            yield page
        window = []
        barren = 0 if good else barren + 1
        if barren >= _GIVE_UP or 0 in faults:
            faults.setdefault(0, "mineru_unavailable")
            return
    if window:
        yield from _read_window(model, window=window, source=source, faults=faults)


def _pictures(source: Source, *, done: Collection[int]) -> Iterator[Picture]:
    """Yield the pages not in `done` as pictures, rendered by the child in windows."""
    first, total = 1, 1
    while first <= total:
        wanted = [page for page in range(first, first + WINDOW) if page not in done]
        for picture in child_pictures(
            source.path,
            password=source.password,
            wanted=wanted or [first],
            width=PICTURE_WIDTH,
            settings=source.settings,
        ):
            total = picture.total
            if picture.page not in done:
                yield picture
        first += WINDOW


def _read_window(model: Any, *, window: list[Picture], source: Source, faults: dict[int, str]) -> Iterator[PageResult]:
    try:
        results = model.extract(window)
    except ProviderError as error:
        logger.warning("%s: %s", source.path.name, error)
        faults[0] = "mineru_unavailable"
        return
    for picture, result in zip(window, results, strict=True):
        if result.fault:
            faults[picture.page] = result.fault
            continue
        yield page_of_raw(
            result.blocks,
            document_id=source.document_id,
            page=picture.page,
            total=picture.total,
            reason="" if picture.ink else "blank",
            pixels=picture.image.size,
        )


def read_hosted(api: Any, *, source: Source, done: Collection[int], faults: dict[int, str]) -> Iterator[PageResult]:
    """Yield the pages that the hosted service reads; when it fails, `faults[0]` says why.

    :raises PdfError: the file itself cannot be read.
    """
    first = next(
        iter(child_pictures(source.path, password=source.password, wanted=[1], width=200, settings=source.settings))
    )
    total = first.total
    if source.password:
        faults[0] = "mineru_api_encrypted"  # the service takes no password, and we do not upload it
        return
    try:
        found = api.extract(source.path, pages=total)
    except (ProviderError, PdfUnreadableError) as error:
        logger.warning("%s: %s", source.path.name, error)
        faults[0] = error.code if error.code == "pdf_api_limit" else "mineru_unavailable"
        return
    for page in range(1, total + 1):
        if page in done:
            continue
        raw = found.get(page, [])
        fault = fault_of(raw, ink=True)
        if fault:
            faults[page] = fault
        else:
            yield page_of_raw(raw, document_id=source.document_id, page=page, total=total, pixels=(1000, 1000))
