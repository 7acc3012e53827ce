"""The page's outermost boundary: whatever goes wrong inside is logged, and a person reads a sentence in words."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

import streamlit as st

from errors import CragError
from i18n import translate
from views.markup import plain_markdown
from views.session import language

logger = logging.getLogger(__name__)


class Boundary:
    """Shows an error that leaves its block in words; Streamlit's own signals (rerun, stop) pass through.

    `area` names the part of the page in the log.
    """

    def __init__(self, area: str) -> None:
        self.area = area

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Show what went wrong, and go on after the block."""
        if isinstance(error, CragError):
            logger.warning("%s: %s (%s)", self.area, error.code, error.message)
            show_error(error)
            return True
        if isinstance(error, Exception):
            logger.error("%s failed", self.area, exc_info=(type(error), error, traceback))
            st.error(translate("error.internal", language=language()), icon=":material/error:")
            return True
        return False


def error_words(error: CragError) -> str:
    """Return an error in the session's language, safe as Markdown."""
    return plain_markdown(translate(f"error.{error.code}", language=language(), **error.values))


def remedy(code: str) -> str:
    """Return what to do about an error; "" where there is nothing better than its own words."""
    key = f"page.remedy_{code}"
    advice = translate(key, language=language())
    return "" if advice == key else advice


def show_error(error: CragError) -> None:
    """Draw a typed error with what to do about it."""
    st.error("  \n".join(filter(None, (error_words(error), remedy(error.code)))), icon=":material/error:")
