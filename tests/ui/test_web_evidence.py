"""What the page shows of the web: the query before it is sent, pages with title, address and time, and both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.conftest import OpenPage, ask, keys, plain

BRIDGE = "Who built the iron bridge of Karsund?"
POND = "When was the mill pond of Ostrand dug?"


@pytest.fixture
def web(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "offline"
    folder.mkdir()
    (folder / "bridge.md").write_text(
        "# Karsund\n\nThe iron bridge of Karsund was built by Hedda Moe in 1904.\n", encoding="utf-8"
    )
    (folder / "pond.md").write_text(
        "# Ostrand\n\nThe mill pond of Ostrand was dug in 1893 by the miller's sons.\n", encoding="utf-8"
    )
    return {"CRAG_WEB_PROVIDERS": "library", "CRAG_WEB_LIBRARY_DIR": str(folder)}


def test_a_refusal_says_what_a_search_would_ask_for(built: Path, open_page: OpenPage, web: dict[str, str]) -> None:
    page = ask(open_page(built, CRAG_WEB_SEARCH="ask", **web), BRIDGE)
    (refusal,) = page.info
    assert f"“{BRIDGE}” would be searched for" in refusal.value
    assert keys(page, "web_")


def test_an_answer_of_the_web_names_title_address_and_time(
    built: Path, open_page: OpenPage, web: dict[str, str]
) -> None:
    text = plain(ask(open_page(built, CRAG_WEB_SEARCH="auto", **web), BRIDGE))
    assert "WEB 1" in text
    assert "Hedda Moe" in text
    assert "Karsund" in text
    assert "library:bridge.md" in text
    assert "UTC" in text


def test_answers_that_differ_stand_side_by_side(built: Path, open_page: OpenPage, web: dict[str, str]) -> None:
    page = ask(open_page(built, CRAG_WEB_SEARCH="auto", CRAG_UPPER="1.0", **web), POND)
    text = plain(page)
    assert "Documents: 1871" in text
    assert "Web: 1893" in text
    assert any("give different answers" in item.value for item in page.warning)
    assert keys(page, "cite_"), "the documents' side opens its page"
    assert "library:pond.md" in text
