"""What goes wrong is told in words; the settings say where they come from; sign-in keeps strangers out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from schema import Token
from tests.ui.conftest import OpenPage, all_text, keys, shown, view

SECRET = "do-not-show-7f3a"


class Exploding:
    """A pipeline with a fault of our own in it."""

    def stream(self, *_: object, **__: object) -> object:
        raise ValueError(SECRET)


class Halting:
    """A pipeline that the reader stops after the first words."""

    asked = 0

    def stream(self, *_: object, **__: object) -> Iterator[Token]:
        Halting.asked += 1
        yield Token("The first words")
        st.stop()


def test_a_stopped_question_keeps_its_words_and_is_not_asked_again(
    library: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(library)
    monkeypatch.setattr("views.ask.pipeline", Halting)
    page = shown(page.chat_input(key="question").set_value("anything").run())
    page = shown(page.run())
    assert Halting.asked == 1
    assert "The first words" in all_text(page)
    page = shown(page.button(key="retry_stopped").click().run())
    assert Halting.asked == 2


def test_an_unexpected_fault_is_one_sentence_and_nothing_of_it(
    library: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(library)
    monkeypatch.setattr("views.ask.pipeline", Exploding)
    page = shown(page.chat_input(key="question").set_value("anything").run())
    assert any("Something unexpected" in item.value for item in page.error)
    assert SECRET not in all_text(page)
    assert "Traceback" not in all_text(page)
    page = shown(page.run())
    assert "retry_stopped" in keys(page, "retry_"), "the question is not lost"


def test_a_wrong_setting_names_itself(built: Path, open_page: OpenPage) -> None:
    page = open_page(built, CRAG_UPPER="7")
    assert any("CRAG\\_UPPER" in item.value for item in page.error)
    assert "Traceback" not in all_text(page)


def test_a_missing_key_is_told_with_the_remedy(library: Path, open_page: OpenPage) -> None:
    page = open_page(library, CRAG_LLM_PROVIDER="openai", CRAG_LLM_MODEL="some-model")
    page = shown(page.chat_input(key="question").set_value("How deep is the mill pond?").run())
    assert page.error or page.warning
    assert "Traceback" not in all_text(page)


def test_a_store_of_another_embedder_offers_a_rebuild(library: Path, open_page: OpenPage) -> None:
    page = open_page(library, CRAG_CHUNK_SIZE="400")
    page = view(page, "library")
    assert any("rebuild" in item.value.lower() for item in page.warning)


def test_settings_are_saved_and_read_back(library: Path, open_page: OpenPage) -> None:
    page = view(open_page(library), "settings")
    page.selectbox(key="setting_web_search").set_value("ask")
    page.number_input(key="setting_retrieve_k").set_value(7)
    page = shown(page.button(key="save_settings").click().run())
    assert page.success
    saved = json.loads((library / "data" / "settings.json").read_text(encoding="utf-8"))
    assert saved == {"web_search": "ask", "retrieve_k": 7}


def test_what_the_environment_sets_is_shown_as_such(built: Path, open_page: OpenPage) -> None:
    page = view(open_page(built, CRAG_RETRIEVE_K="5", OPENAI_API_KEY=SECRET), "settings")
    assert "setting_retrieve_k" not in [item.key for item in page.number_input]
    assert "CRAG\\_RETRIEVE\\_K" in all_text(page)
    assert SECRET not in all_text(page)
    assert all(SECRET not in str(item.value) for item in page.text_input)


def test_crossed_thresholds_are_not_saved(library: Path, open_page: OpenPage) -> None:
    page = view(open_page(library), "settings")
    page.number_input(key="setting_lower").set_value(0.9)
    page.number_input(key="setting_upper").set_value(0.1)
    page = shown(page.button(key="save_settings").click().run())
    assert page.warning
    assert not page.error
    assert not (library / "data" / "settings.json").exists()


def test_a_lower_threshold_above_the_environments_upper_one_is_not_saved(library: Path, open_page: OpenPage) -> None:
    page = view(open_page(library, CRAG_UPPER="0.1"), "settings")
    page.number_input(key="setting_lower").set_value(0.9)
    page = shown(page.button(key="save_settings").click().run())
    assert page.warning
    assert not page.error
    assert not (library / "data" / "settings.json").exists()


def test_what_the_dotenv_file_sets_cannot_be_changed_on_the_page(
    library: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library)
    (library / ".env").write_text("CRAG_RETRIEVE_K=7\n", encoding="utf-8")
    page = view(open_page(library), "settings")
    assert not [field for field in page.number_input if field.key == "setting_retrieve_k"]
    assert "CRAG\\_RETRIEVE\\_K" in all_text(page)


@pytest.mark.parametrize("view_name", ["ask", "library", "retrieval", "settings"])
@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
def test_every_view_has_all_its_words(built: Path, open_page: OpenPage, view_name: str, locale: str) -> None:
    page = open_page(built, locale=locale, query={"view": view_name})
    labels = [
        str(getattr(item, "label", "")) for kind in (page.button, page.selectbox, page.text_input) for item in kind
    ]
    text = all_text(page) + "\n".join(labels)
    assert not re.search(r"\bpage\.[a-z]", text)
    assert all(label.strip() for label in labels)


ALLOWED = {"CRAG_AUTH_ALLOW": "me@example.org, @team.example"}


@pytest.mark.parametrize(
    ("user", "inside"),
    [
        ({"is_logged_in": False}, False),
        ({"is_logged_in": True, "email": "you@example.org"}, False),
        ({"is_logged_in": True, "email": "me@example.org"}, True),
        ({"is_logged_in": True, "email": "Me@Team.example"}, True),
        ({"is_logged_in": True, "email": "x@team.example.evil.org"}, False),
        ({"is_logged_in": True, "email": "me@example.org", "email_verified": False}, False),
    ],
)
def test_only_the_allow_list_comes_in(
    built: Path, open_page: OpenPage, user: dict[str, object], *, inside: bool
) -> None:
    page = open_page(built, user=user, **ALLOWED)
    assert bool(page.chat_input) is inside
    assert bool(keys(page, "rebuild")) is inside


def test_everybody_comes_in_when_the_list_says_so(built: Path, open_page: OpenPage) -> None:
    page = open_page(built, user={"is_logged_in": False}, CRAG_AUTH_ALLOW="*")
    assert page.chat_input
    assert "sign_in" not in keys(page, "sign_in")
