"""What a page's own style sheets hide, written onto the elements themselves; no sheet is ever fetched.

Only rules with plain selectors (`.note`, `p.note`, `#ad.wide`) are read: a selector that looks at neighbours, parents
or contents can take longer than a page is worth, and what hides text from readers is nearly always a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinycss2.ast import Node

MAX_STYLE_CHARACTERS = 200_000
"""Style sheets beyond are not read."""
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?!\.?\d)|opacity\s*:\s*0(?!\.?\d)"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}|(?<![\w-])color\s*:\s*transparent"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE,
)
_FLAT = re.compile(r"(?<![\w-])height\s*:\s*0(?!\.?\d)", re.IGNORECASE)
_CUT = re.compile(r"overflow\s*:\s*hidden", re.IGNORECASE)
_SHEET = re.compile(r"<style\b[^<>]*>(.*?)</style", re.IGNORECASE | re.DOTALL)
_END = re.compile(r"</style", re.IGNORECASE)
_PLAIN = re.compile(r"[\w-]*(?:[.#][\w-]+)+|[a-z][a-z0-9]*", re.IGNORECASE)
_SCREEN = re.compile(r"(?:only\s+)?(?:all|screen)?", re.IGNORECASE)


def hides(style: str) -> bool:
    """Tell whether declarations, or a sheet of them, hide anything."""
    return bool(_HIDING.search(style) or (_FLAT.search(style) and _CUT.search(style)))


def with_styles(html: str) -> str:
    """Return the page with the declarations of its style sheets in its `style` attributes, where a sheet may hide."""
    # A tag that is never closed would be followed to the end of the page, every one of them.
    last = max((match.end() for match in _END.finditer(html)), default=0)
    sheets = "\n".join(match.group(1) for match in _SHEET.finditer(html, 0, last))[:MAX_STYLE_CHARACTERS]
    if not hides(sheets):
        return html
    import tinycss2
    from css_inline import CSSInliner, InlineError

    rules = "\n".join(_plain_rules(tinycss2.parse_stylesheet(sheets, skip_comments=True, skip_whitespace=True)))
    inliner = CSSInliner(inline_style_tags=False, load_remote_stylesheets=False, extra_css=rules)
    try:
        return inliner.inline(html)
    except InlineError:
        return html


def _plain_rules(nodes: list[Node]) -> Iterator[str]:
    """Rules for a screen, with their plain selectors only."""
    import tinycss2

    for node in nodes:
        if node.type == "at-rule" and node.lower_at_keyword == "media" and node.content is not None:
            if _SCREEN.fullmatch(tinycss2.serialize(node.prelude).strip()):
                yield from _plain_rules(
                    tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
                )
        elif node.type == "qualified-rule":
            selectors = [part.strip() for part in tinycss2.serialize(node.prelude).split(",")]
            plain = ", ".join(part for part in selectors if _PLAIN.fullmatch(part))
            if plain:
                yield f"{plain} {{{tinycss2.serialize(node.content)}}}"
