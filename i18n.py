"""Words in Chinese and English, read from locales/<language>/*.json."""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

from config import LOCALES_DIR

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")


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


class _Values(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return ""
