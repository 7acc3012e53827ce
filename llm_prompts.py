"""The prompts of prompts/, and how untrusted text goes into them: between tags, tags in it escaped."""

from __future__ import annotations

import math
import re
from functools import cache

from config import PROMPTS_DIR
from i18n import Language

_TAGS = re.compile(r"<(?=\s*/?\s*(?:question|passage|sources?|history|turn)\b)", re.IGNORECASE)
_WIDE = re.compile(r"[\u2e80-\U0003ffff]")


@cache
def read_prompt(name: str, *, language: Language) -> str:
    """Return prompts/<name>.<language>.md."""
    return (PROMPTS_DIR / f"{name}.{language}.md").read_text(encoding="utf-8").strip()


def fence(tag: str, *, text: str, **attributes: object) -> str:
    """Return `text` between `<tag>` and `</tag>`; a tag of ours inside it cannot close the fence."""
    named = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items() if value != "")
    return f"<{tag}{named}>\n{_TAGS.sub('&lt;', text)}\n</{tag}>"


def _attribute(value: object) -> str:
    return re.sub(r"[<>\"\n\r]", " ", str(value))


def estimate_tokens(text: str) -> int:
    """Upper estimate of a text's tokens: a wide character counts as one, three others as one."""
    wide = len(_WIDE.findall(text))
    return wide + math.ceil((len(text) - wide) / 3)


def cut_to_tokens(text: str, *, limit: int) -> str:
    """Return the beginning of a text that is estimated to fit `limit` tokens."""
    if estimate_tokens(text) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= limit else (low, middle - 1)
    return text[:low]
