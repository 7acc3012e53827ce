"""Asking on the page: answers with citations, refusals with next steps, the verdict and what would change it."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from schema import Action
from tests.helpers_page import make_answer
from tests.ui.conftest import OpenPage, all_text, ask, keys, shown, view
from views import resources

QUESTION = "How deep is the mill pond of Ostrand at the sluice?"
UNANSWERED = "Who won the chess olympiad in 1990?"


def open_panel(page: AppTest) -> AppTest:
    """The page with the panel of the latest answer open."""
    turn = keys(page, "retry_")[-1].removeprefix("retry_")
    page.session_state[f"panel_{turn}"] = True
    return shown(page.run())


def test_first_screen_follows_the_browser_language(built: Path, open_page: OpenPage) -> None:
    page = open_page(built, locale="zh-CN")
    assert "向 PDF 提问" in page.title[0].value
    assert page.button(key="rebuild").label == "重新构建知识库"
    page = shown(page.segmented_control(key="language").set_value("en").run())
    assert "Ask your PDFs" in page.title[0].value
    assert page.button(key="rebuild").label == "Rebuild"


def test_starter_questions_come_from_the_documents(built: Path, open_page: OpenPage) -> None:
    page = open_page(built)
    labels = [page.button(key=key).label for key in keys(page, "starter_")]
    assert labels
    assert any(
        "Joining a wireless network" in label or "wireless" in label or "Battery" in label or "Clean" in label
        for label in labels
    ), labels


def test_an_answer_shows_its_citation_page_action_and_scores(built: Path, open_page: OpenPage) -> None:
    page = ask(open_page(built), QUESTION)
    text = all_text(page)
    assert "nine metres" in text
    (cite,) = [key for key in keys(page, "cite_") if key.endswith("_1")]
    assert "ostrand" in page.button(key=cite).label
    assert "p\\. 1" in page.button(key=cite).label or "p. 1" in page.button(key=cite).label
    assert page.image, "the boxed page stands beside the answer"
    page = open_panel(page)
    text = all_text(page)
    assert "kept" in text
    assert any(slider.key.startswith("upper_") for slider in page.slider if slider.key)


def test_what_if_reconsiders_without_a_new_call(
    built: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_panel(ask(open_page(built), QUESTION))
    turn = keys(page, "retry_")[-1].removeprefix("retry_")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a what-if must not ask again")

    monkeypatch.setattr("views.ask.pipeline", refuse)
    page.slider(key=f"lower_{turn}").set_value(0.99)
    page = shown(page.slider(key=f"upper_{turn}").set_value(1.0).run())
    assert "The action would be:" in all_text(page)
    assert "Incorrect" in all_text(page)
    assert not page.button(key=f"make_mine_{turn}").disabled
    page.slider(key=f"lower_{turn}").set_value(0.5)
    page = shown(page.slider(key=f"upper_{turn}").set_value(0.2).run())
    assert "must not be above" in all_text(page)


def test_own_thresholds_are_saved_and_decide_the_next_question(library: Path, open_page: OpenPage) -> None:
    page = open_panel(ask(open_page(library), QUESTION))
    turn = keys(page, "retry_")[-1].removeprefix("retry_")
    page.slider(key=f"lower_{turn}").set_value(0.99)
    page = shown(page.slider(key=f"upper_{turn}").set_value(1.0).run())
    page = shown(page.button(key=f"make_mine_{turn}").click().run())
    assert '"upper": 1.0' in (library / "data" / "settings.json").read_text(encoding="utf-8")
    page = ask(page, QUESTION)
    assert resources.conversations().list()
    assert Action.INCORRECT.value in (library / "data" / "traces.jsonl").read_text(encoding="utf-8").splitlines()[-1]


@pytest.mark.parametrize(
    ("question", "words"), [(UNANSWERED, "do not answer"), ("谁赢得了1990年的国际象棋奥林匹克？", "文档")]
)
def test_a_refusal_is_in_the_language_of_the_question(
    built: Path, open_page: OpenPage, question: str, words: str
) -> None:
    page = ask(open_page(built), question)
    assert any(words in item.value for item in page.info), [item.value for item in page.info]
    assert not keys(page, "cite_")
    assert not keys(page, "web_"), "web search is off"
    assert keys(page, "upload_")


def test_a_refusal_offers_the_web_only_when_allowed(built: Path, open_page: OpenPage) -> None:
    page = ask(open_page(built, CRAG_WEB_SEARCH="ask"), UNANSWERED)
    assert keys(page, "web_")


def test_a_web_answer_shows_its_query_addresses_and_scores(library: Path, open_page: OpenPage, tmp_path: Path) -> None:
    web = tmp_path / "web"
    web.mkdir()
    (web / "verdi.md").write_text("# Verdi\n\nGiuseppe Verdi finished the opera Aida in 1871.\n", encoding="utf-8")
    searched = {"CRAG_WEB_SEARCH": "auto", "CRAG_WEB_PROVIDERS": "library", "CRAG_WEB_LIBRARY_DIR": str(web)}
    page = open_panel(ask(open_page(library, **searched), "Which opera did Verdi finish in 1871?"))
    text = all_text(page)
    assert "Aida" in text
    assert ":violet-badge[WEB 1]" in text
    for part in ("Exact queries sent to", "Visited addresses", "Pages of the web"):
        assert part in text


def test_lowering_the_threshold_asks_again_in_place(built: Path, open_page: OpenPage) -> None:
    page = ask(open_page(built), "What is the name of the baker's dog in Ostrand?")
    lower = keys(page, "lower_once_")
    assert lower
    page = shown(page.button(key=lower[0]).click().run())
    assert len(keys(page, "retry_")) == 1


def test_a_reload_shows_the_same_answer_with_its_citations(built: Path, open_page: OpenPage) -> None:
    page = ask(open_page(built), QUESTION)
    before = (keys(page, "cite_"), [item.value for item in page.markdown])
    again = open_page(built, query={"conversation": page.query_params["conversation"]})
    assert (keys(again, "cite_"), [item.value for item in again.markdown]) == before


def test_editing_replaces_the_question_and_what_followed(built: Path, open_page: OpenPage) -> None:
    page = ask(ask(open_page(built), QUESTION), "When does the bakery of Ostrand open?")
    first = keys(page, "edit_")[0]
    turn = first.removeprefix("edit_")
    page = shown(page.button(key=first).click().run())
    page.text_area(key=f"editor_{turn}").set_value("Who dug the mill pond of Ostrand?")
    page = shown(page.run())
    page = shown(page.button(key=f"ask_again_{turn}").click().run())
    assert len(keys(page, "edit_")) == 1
    assert "Aldo Brenn" in all_text(page)


def test_thumbs_and_comments_are_kept(built: Path, open_page: OpenPage) -> None:
    page = ask(open_page(built), QUESTION)
    turn = keys(page, "retry_")[-1].removeprefix("retry_")
    page = shown(page.feedback(key=f"rating_{turn}").set_value(1).run())
    page = shown(page.text_input(key=f"comment_{turn}").set_value("exactly").run())
    rated = {item.id: item for item in resources.conversations().rated()}
    assert rated[turn].comment == "exactly"
    page = view(page, "settings")
    assert not page.download_button(key="labelled").disabled


def test_conversations_are_listed_renamed_and_deleted(library: Path, open_page: OpenPage) -> None:
    page = ask(open_page(library), QUESTION)
    conversation = page.query_params["conversation"]
    page = shown(page.text_input(key=f"rename_{conversation}").set_value("Pond").run())
    assert page.button(key=f"open_{conversation}").label == "Pond"
    page = shown(page.button(key="new_conversation").click().run())
    assert not keys(page, "retry_")
    page = shown(page.button(key=f"open_{conversation}").click().run())
    assert keys(page, "retry_")
    page = shown(page.button(key=f"delete_{conversation}").click().run())
    assert f"open_{conversation}" in keys(page, "open_")
    page = shown(page.button(key="delete_conversation_yes").click().run())
    assert f"open_{conversation}" not in keys(page, "open_")
    assert "conversation" not in page.query_params


def test_a_long_conversation_draws_its_last_turns_only(library: Path, open_page: OpenPage) -> None:
    page = open_page(library)
    store = resources.conversations()
    conversation = store.create("long")
    for number in range(300):
        store.add(conversation.id, answer=make_answer(question=f"question {number}", file="ostrand.pdf"))
    page = open_page(library, query={"conversation": conversation.id})
    assert len(keys(page, "retry_")) == 10
    assert "290" in page.button(key="show_earlier").label
    page = shown(page.button(key="show_earlier").click().run())
    assert len(keys(page, "retry_")) == 30


def test_older_conversations_are_listed_on_request(library: Path, open_page: OpenPage) -> None:
    open_page(library)
    for number in range(20):
        resources.conversations().create(f"conversation {number}")
    page = shown(open_page(library).run())
    assert len(keys(page, "open_")) == 15
    page = shown(page.button(key="older_conversations").click().run())
    assert len(keys(page, "open_")) == 20
    assert "older_conversations" not in keys(page, "older")


def test_another_owners_conversation_is_not_shown(library: Path, open_page: OpenPage) -> None:
    open_page(library)
    foreign = resources.conversations().create("secret", owner="someone@example.org")
    resources.conversations().add(foreign.id, answer=make_answer(question="secret question"))
    page = open_page(library, query={"conversation": foreign.id})
    assert "secret question" not in all_text(page)
