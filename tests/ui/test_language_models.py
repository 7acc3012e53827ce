"""The page with a language model behind it: follow-ups, cited answers, a model that fails, the tests of the roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.helpers_providers import FakeProvider, Scripted, prompt_of, requests_allowed, serve
from tests.ui.conftest import OpenPage, ask, keys, plain, shown, view

KEY = "sk-never-shown-4711"


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with requests_allowed():
        yield


def environment(provider: FakeProvider, **values: str) -> dict[str, str]:
    places = {"OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": KEY, "CRAG_LLM_MODEL": "known"}
    return {"CRAG_LLM_PROVIDER": "openai", "CRAG_LLM_RETRIES": "0", **places, **values}


def pond(body: Any) -> Scripted:
    """Grades by the passage, and answers with one number that no source has."""
    if body.get("stream"):
        return Scripted(pieces=["The mill pond is nine metres deep ", "[1, 9]."])
    return Scripted(text="Yes" if "nine metres" in prompt_of(body) else "No")


def test_a_follow_up_is_shown_completed_and_can_be_asked_as_it_was(library: Path, open_page: OpenPage) -> None:
    page = ask(open_page(library), "How deep is the mill pond of Ostrand?")
    page = ask(page, "Who dug it?")
    assert "Who dug Ostrand?" in plain(page)
    (undo,) = keys(page, "literal_")
    page = shown(page.button(key=undo).click().run())
    page = shown(page.run())
    assert keys(page, "literal_") == []
    assert "Who dug Ostrand?" not in plain(page)
    assert "Who dug it?" in plain(page)


def test_a_cited_answer_and_its_calls_are_shown_and_no_key(library: Path, open_page: OpenPage) -> None:
    with serve(pond) as provider:
        page = ask(open_page(library, **environment(provider)), "How deep is the mill pond of Ostrand?")
        text = plain(page)
        asked = len(provider.chats())
    assert "The mill pond is nine metres deep :blue-badge[1]" in text
    assert "sources that do not exist" in text
    assert asked >= 1
    assert KEY not in text
    assert all(KEY not in path.read_text(encoding="utf-8") for path in (library / "data").glob("traces*"))


def test_a_model_that_fails_leaves_a_quoted_answer_and_says_so(library: Path, open_page: OpenPage) -> None:
    with serve(Scripted(status=500)) as provider:
        page = ask(open_page(library, **environment(provider)), "How deep is the mill pond of Ostrand?")
    assert "Quoted from the documents" in plain(page)
    assert "nine metres deep at the sluice" in plain(page)
    assert any("The language model failed; the evidence is quoted instead" in item.value for item in page.warning)


def test_the_settings_test_each_role_and_say_what_to_do(library: Path, open_page: OpenPage) -> None:
    def answer(body: Any) -> Scripted:
        return Scripted(text="yes") if body["model"] == "known" else Scripted(status=404, text="model not found")

    with serve(answer) as provider:
        values = environment(provider, CRAG_GRADE_PROVIDER="ollama", CRAG_OLLAMA_URL=provider.root)
        page = view(open_page(library, **values, CRAG_GRADE_MODEL="absent"), "settings")
        page = shown(page.button(key="run_tests").click().run())
        text = plain(page)
    assert f"openai known {provider.url}" in text
    assert "ollama pull absent" in text
    assert KEY not in text
