"""Words in Chinese and English, read from locales/<language>/*.json."""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

from config import LOCALES_DIR

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")


SAID = frozenset(
    {
        *("input_unreadable", "input_line", "base_unknown", "file_unknown", "base_name", "files_missing", "host_open"),
        *("provider_key", "provider_quota", "provider_empty", "provider_vectors", "provider_model", "ollama_model"),
        *("provider_url", "provider_context", "provider_timeout", "provider_cut", "provider_server"),
        *("pdf_too_long", "pdf_no_access", "pdf_zero_bytes", "pdf_not_pdf", "pdf_no_pages", "pdf_no_text"),
        *("disk_full", "file_changed", "pdf_api_limit"),
    }
)
"""Codes of errors whose words say all there is to say, and what to do; detail and hint, in English, are for scripts."""


@cache
def words(language: Language) -> dict[str, str]:
    """Return every text of one language by its key (`<file>.<key>`)."""
    found: dict[str, str] = {}
    for path in sorted((LOCALES_DIR / language).glob("*.json")):
        entries = json.loads(path.read_text(encoding="utf-8"))
        found.update({f"{path.stem}.{key}": text for key, text in entries.items()})
    return found


def translate(key: str, *, language: Language, **values: object) -> str:
    """Return the text of `key` with `{placeholders}` filled; the key itself when there is no such text."""
    text = words(language).get(key)
    return text.format_map(_Values(values)) if text is not None else key


def advice(code: str, *, language: Language, hint: str, **values: object) -> str:
    """Return what to do about an error of this code, in the language where there are words for it, else its hint.

    "" where there is nothing to say, or the error's own words say it.
    """
    if code in SAID or not hint:
        return ""
    key = f"error.{code}_hint"
    shown = translate(key, language=language, hint=hint, **values)
    return hint if shown == key else shown


class _Values(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return ""
