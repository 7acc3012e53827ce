"""Keywords come from the question alone: at most three, short, in its language."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import ProviderUnavailableError
from i18n import Language
from keywords import MAX_CHARACTERS, Keywords, extract_keywords, says_only
from schema import Usage


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            "Who is the first administrator of the Federal Energy Office?",
            ("first administrator", "Federal Energy Office"),
        ),
        ("What is Edward Gunasekara's occupation?", ("Edward Gunasekara", "occupation")),
        ("How long is the Great Wall in 2012?", ("Great Wall", "2012")),
        ("What does error E-03 mean?", ("error E-03 mean",)),
        ("Is TCP/IP older than U.S. highways?", ("TCP/IP older", "U.S. highways")),
    ],
)
def test_english_phrases(question: str, words: tuple[str, ...]) -> None:
    assert extract_keywords(question, language="en").words == words


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("中国（南京）国际象棋超级大赛的原名是什么？", ("南京", "国际象棋超级大赛", "原名")),
        ("阿部正丰被通称为什么？", ("阿部正丰", "通称")),
        ("《红楼梦》的作者是谁？", ("红楼梦", "作者")),
    ],
)
def test_chinese_phrases(question: str, words: tuple[str, ...]) -> None:
    assert extract_keywords(question, language="zh").words == words


@pytest.mark.parametrize(
    ("question", "language"), [("What is it?", "en"), ("这是什么？", "zh"), ("???", "en"), ("", "zh")]
)
def test_question_without_content_has_no_keyword(question: str, language: Language) -> None:
    assert extract_keywords(question, language=language).words == ()


def test_names_and_numbers_are_preferred() -> None:
    question = (
        "Which extraordinarily complicated circumstances, notwithstanding everything, brought Ada to Turin in 1840?"
    )
    assert {"brought Ada", "Turin", "1840"} == set(extract_keywords(question, language="en").words)


@given(st.text(max_size=400), st.sampled_from(["zh", "en"]))
@settings(max_examples=60, deadline=None)
def test_any_question_gives_few_short_keywords_of_its_own(question: str, language: Language) -> None:
    words = extract_keywords(question, language=language).words
    assert len(words) <= 3
    assert len(" ".join(words)) <= MAX_CHARACTERS
    assert all("\n" not in word and word == word.strip() and word for word in words)
    own = set(question)
    assert all(char in own or char == " " for word in words for char in word)


def test_long_keyword_is_cut_at_a_word() -> None:
    (keyword,) = extract_keywords("zebra " * 60, language="en").words
    assert len(keyword) <= MAX_CHARACTERS
    assert set(keyword.split()) == {"zebra"}


@dataclass
class Model:
    """Stands in for the language model that makes keywords."""

    words: tuple[str, ...] = ()
    error: ProviderUnavailableError | None = None

    def keywords(self, question: str, *, language: Language) -> Keywords:
        if self.error is not None:
            raise self.error
        return Keywords(self.words, usage=Usage(llm_calls=1))


def test_keywords_of_a_model_are_capped_and_cleaned() -> None:
    model = Model(words=(" Pharos\nof  Alexandria. ", "pharos of alexandria", "", '"height"', "metres", "fourth"))
    found = extract_keywords("How tall is it?", language="en", rewriter=model)
    assert found.words == ("Pharos of Alexandria", "height", "metres")
    assert found.usage.llm_calls == 1


@pytest.mark.parametrize("model", [Model(), Model(words=(" ", "?")), Model(error=ProviderUnavailableError("down"))])
def test_a_model_that_fails_or_says_nothing_is_replaced(model: Model) -> None:
    assert extract_keywords("How tall is the Pharos?", language="en", rewriter=model).words == ("tall", "Pharos")


@pytest.mark.parametrize(
    ("question", "typed", "expected"),
    [
        ("How tall is the Pharos?", ["What is the Pharos?", "How tall is it?"], True),
        ("How tall is the Pharos of Alexandria?", ["What is the Pharos?", "How tall is it?"], False),
        ("长城有多长？", ["长城是什么？", "它有多长？"], True),
        ("秦长城有多长？", ["长城是什么？", "它有多长？"], False),
        ("Who paid 40 euros?", ["Who paid?"], False),
    ],
)
def test_words_that_nobody_typed_are_noticed(question: str, typed: list[str], *, expected: bool) -> None:
    assert says_only(question, typed=typed) is expected
