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
HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?!\.?\d)|opacity\s*:\s*0(?!\.?\d)"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}|(?<![\w-])color\s*:\s*transparent"
    r"|(?<![\w-])height\s*:\s*0(?!\.?\d).*overflow\s*:\s*hidden|overflow\s*:\s*hidden.*(?<![\w-])height\s*:\s*0(?!\.?\d)"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE | re.DOTALL,
)
_SHEET = re.compile(r"<style\b[^>]*>(.*?)</style", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"[\w-]*(?:[.#][\w-]+)+|[a-z][a-z0-9]*", re.IGNORECASE)
_SCREEN = re.compile(r"(?:only\s+)?(?:all|screen)?", re.IGNORECASE)


def with_styles(html: str) -> str:
    """Return the page with the declarations of its style sheets in its `style` attributes, where a sheet may hide."""
    sheets = "\n".join(match.group(1) for match in _SHEET.finditer(html))[:MAX_STYLE_CHARACTERS]
    if not HIDING.search(sheets):
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
