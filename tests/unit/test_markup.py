"""Attacks through text we did not write: nothing of it may become a link, a picture, HTML, a formula or a directive."""

from __future__ import annotations

import re

import pytest

from views.markup import label_text, mark_citations, plain_markdown, quote_markdown, safe_markdown, safe_url

ATTACKS = [
    "![x](https://evil.example/steal.png)",
    "![x][y]\n\n[y]: https://evil.example/steal.png",
    "[your bank](https://evil.example)",
    "[your bank][b]\n\n[b]: https://evil.example",
    "<https://evil.example>",
    "https://evil.example/path",
    "see www.evil.example now",
    "mail me@evil.example",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<a href='javascript:alert(1)'>x</a>",
    "&lt;img src=x&gt; &#x3C;script>",
    "$\\href{https://evil.example}{bank}$ and $$x$$",
    ":red[urgent] :material/home: :smile: :blue-badge[1]",
    "[^1] and\n\n[^1]: note",
    "`code` and\n```html\n<b>x</b>\n```",
    "    indented code <b>",
    "\ttab code <b>",
    "text\\![x](https://evil.example/a.png)",
    "\\\\[x](https://evil.example)",
    "a\u202egnp.exe\u202c b",
    "|a|b|\n|-|-|\n|![x](https://evil.example/a.png)|<b>|",
]


def live(markdown: str) -> str:
    """The text with every backslash escape taken out: what is left of active characters is live Markdown."""
    return re.sub(r"\\[!-/:-@\[-`{-~]", "", markdown)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("treat", [safe_markdown, plain_markdown, quote_markdown])
def test_no_attack_leaves_an_active_character(attack: str, treat: object) -> None:
    assert callable(treat)
    left = live(treat(attack))
    assert not re.search(r"[<\[\]()!$`&@:]", left), left
    assert not re.search(r"(?m)^(\t| {4})", left), "no code block can start"
    assert "\u202e" not in left


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_label_has_neither_active_characters_nor_backslashes(attack: str) -> None:
    left = label_text(attack)
    assert not re.search(r"[<\[\]()!$`&@:\\*~^={}|#>]", left), left
    assert not re.search(r"www\.", left)
    assert "\n" not in left


def test_a_label_keeps_an_ordinary_name() -> None:
    assert label_text("年度报告 2023_v1.pdf") == "年度报告 2023_v1.pdf"


@pytest.mark.parametrize(
    "address", ["https://evil.example", "http://evil.example", "www.evil.example", "a@evil.example"]
)
def test_bare_addresses_are_broken_up(address: str) -> None:
    """Addresses are linked after escapes are resolved, so a joiner has to keep them apart."""
    for treat in (safe_markdown, plain_markdown):
        shown = treat(address).replace("\\", "")
        assert "http://" not in shown
        assert "https://" not in shown
        assert not re.search(r"www\.", shown)
        assert not re.search(r"\w@\w", shown)


def test_an_answer_keeps_paragraphs_lists_emphasis_and_tables() -> None:
    text = "# Title\n\n**bold** and *soft*\n\n- one\n    - two\n\n| a | b |\n|:--|--:|\n| 1 | 2 |"
    shown = safe_markdown(text)
    assert "**Title**" in shown
    assert "**bold** and *soft*" in shown
    assert "- one\n   - two" in shown
    assert "| a | b |\n|--|--|\n| 1 | 2 |" in shown


def test_a_quoted_table_stands_apart_from_its_quotation_marks() -> None:
    shown = safe_markdown("“Table 1\n| a | b |\n|---|---|\n| 1 | 2 |” [2]")
    assert "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" in shown


def test_an_underline_does_not_turn_a_line_into_a_heading() -> None:
    assert "\n---" not in safe_markdown("not a heading\n---")
    assert "\n===" not in safe_markdown("not a heading\n===")


def test_only_known_citations_become_badges() -> None:
    shown = mark_citations(safe_markdown("a [1] b [7] c [1](https://x)"), known={1}, badge=lambda n: f"<{n}>")
    assert shown.count("<1>") == 2
    assert "\\[7\\]" in shown
    assert "](" not in shown


def test_a_name_stays_on_one_line() -> None:
    assert plain_markdown("a\n# b\r\nc") == "a \\# b c"
    assert plain_markdown("年度报告（终稿）.pdf") == "年度报告（终稿）\\.pdf"


def test_quotes_keep_their_lines() -> None:
    assert quote_markdown("one\n\n- two") == "one  \n\\- two"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://example.org/a?b=1", True),
        ("http://example.org", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("https://good.example@evil.example/", False),
        ("https://evil.example/ onclick=x", False),
        ("//evil.example", False),
        ("", False),
    ],
)
def test_only_plain_web_addresses_are_linked(url: str, *, kept: bool) -> None:
    assert safe_url(url) == (url if kept else "")
