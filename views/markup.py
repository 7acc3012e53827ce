"""Text from documents, models, the web and file names, made harmless as Markdown.

Streamlit renders Markdown with links, remote images, formulas and its own directives. None of these may come from
text that we did not write: no image is loaded, no HTML runs, no link hides its target, nothing is coloured or typeset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ACTIVE = re.compile(r"([\\<>&\[\]()!$:@~`{}^=])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ADDRESS = re.compile(r"(?i)(https?|ftp|mailto|xmpp)(?=:)|\b(www)(?=\.)|(?<=\w)(?=@\w)")
_SHORTCODE = re.compile(r":(?=[\w+/-]+:)")
_HEADING = re.compile(r"(?m)^[ \t]{0,3}#{1,6}[ \t]+(.*?)[ \t#]*$")
_UNDERLINE = re.compile(r"(?m)^([ \t]{0,3})(-+|=+)[ \t]*$")
_INDENT = re.compile(r"(?m)^[ \t]+")
_MARK = re.compile(r"\\\[(\d{1,3})\\\]")
_RULER = re.compile(r"(?m)^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_ROW = re.compile(r"[ \t]*[“\"「]?(?P<row>\|.*\|)[ \t]*[”\"」]?(?P<rest>[^|]*)")
_NOT_SPOKEN = re.compile(r"[^\w .\-]")
_BREAK = "\u2060"
"""A word joiner: unseen, it keeps bare addresses and icon names from being linked or replaced after parsing."""


def plain_markdown(text: str) -> str:
    """Return `text` so that Markdown shows it as it is, on one line: for names, titles, labels and quotations."""
    flat = " ".join(_CONTROL.sub("", text).split())
    return _PUNCTUATION.sub(r"\\\1", _inert(flat))


def label_text(text: str) -> str:
    """Return a name for the label of a field, which screen readers speak as it is written, backslashes and all.

    What Markdown could act on is left out instead of escaped.
    """
    return _inert(_NOT_SPOKEN.sub("", " ".join(_CONTROL.sub("", text).split())))


def safe_markdown(text: str) -> str:
    """Return an answer's Markdown with paragraphs, lists, tables and emphasis only.

    Headings become bold lines; links, images, HTML, code, formulas, directives and addresses become plain text.
    """
    clean = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    bold = _HEADING.sub(lambda found: f"**{found[1].strip().strip('*')}**" if found[1].strip() else "", clean)
    bold = _tables_apart(bold)
    bold = _RULER.sub(lambda found: found[0].replace(":", ""), bold)
    escaped = _ACTIVE.sub(r"\\\1", _inert(_INDENT.sub(_shallow, bold)))
    return _UNDERLINE.sub(r"\1\\\2", escaped)


def quote_markdown(text: str) -> str:
    """Return a passage so that its line breaks are kept and nothing in it is Markdown."""
    return "  \n".join(plain_markdown(line) for line in text.splitlines() if line.strip())


def mark_citations(markdown: str, *, known: Collection[int], badge: Callable[[int], str]) -> str:
    """Replace the escaped marks `[n]` of known citations in safe Markdown by `badge(n)`; others stay plain text."""

    def replace(found: re.Match[str]) -> str:
        number = int(found[1])
        return badge(number) if number in known else found[0]

    return _MARK.sub(replace, markdown)


def safe_url(url: str) -> str:
    """Return an http(s) address without credentials or control characters, "" for anything else."""
    stripped = url.strip()
    if not re.fullmatch(r"https?://[^\s\x00-\x20\"<>\\@]+(/[^\s\x00-\x20\"<>\\]*)?", stripped, flags=re.IGNORECASE):
        return ""
    return stripped


def _inert(text: str) -> str:
    return _SHORTCODE.sub(":" + _BREAK, _ADDRESS.sub(lambda found: found[0] + _BREAK, text))


def _tables_apart(text: str) -> str:
    """Set table rows apart from the sentence and the quotation marks around them, as Markdown needs."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        found = _ROW.fullmatch(line)
        if found and not inside:
            lines.append("")
        lines.append(found["row"] if found else line)
        if found and found["rest"].strip():
            lines += ["", found["rest"].strip()]
        inside = found is not None and not found["rest"].strip()
    return "\n".join(lines)


def _shallow(found: re.Match[str]) -> str:
    """Indentation for nested lists is kept up to three spaces, so that no code block can start."""
    return " " * min(len(found[0].expandtabs(4)), 3)
