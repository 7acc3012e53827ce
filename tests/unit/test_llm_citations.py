"""Citations are checked: known numbers only, matched where none is named, marked where nothing supports."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llm_citations import make_draft, normalise_citations
from schema import Document, Draft, Grade, Origin, Strip


class Matcher:
    """Grades 1 where the passage holds the given word, else −1."""

    def __init__(self, word: str = "") -> None:
        self.word = word
        self.asked: list[str] = []

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        self.asked.append(question)
        return [Grade(1.0 if self.word and self.word in passage else -1.0) for passage in passages]


def strip(text: str, *, file: str = "a.pdf", page: int = 1) -> Strip:
    document = Document(text=text, origin=Origin.KB, rank=1, file=file, page=page)
    return Strip(text=text, document=document, start=0, end=len(text), grade=Grade(0.9), kept=True)


SOURCES = (
    strip("The bridge opened in 1932 and is 1,149 metres long.", page=3),
    strip("Its architect was John Bradfield.", page=4),
    strip("大桥于1932年通车，全长1149米。", file="b.pdf", page=7),
)


def draft(text: str, *, matcher: Matcher | None = None, language: str = "en", question: str = "What?") -> Draft | None:
    return make_draft(
        text,
        sources=SOURCES,
        question=question,
        matcher=matcher or Matcher(),
        language="zh" if language == "zh" else "en",
    )


@pytest.mark.parametrize(
    ("text", "expected", "numbers", "dropped"),
    [
        ("A [1][3].", "A [1][3].", (1, 3), 0),
        ("A [1, 3].", "A [1][3].", (1, 3), 0),
        ("A [1-3].", "A [1][2][3].", (1, 2, 3), 0),
        ("甲【1、2】。", "甲[1][2]。", (1, 2), 0),
        ("A [Source 2].", "A [2].", (2,), 0),
        ("甲[来源1]。", "甲[1]。", (1,), 0),
        ("A [9].", "A.", (), 1),
        ("A [1][9].", "A [1].", (1,), 1),
        ("A [2](http://evil.example/x).", "A [2].", (2,), 0),
        ("A ![x](http://evil.example/?q=secret) [1].", "A  [1].", (1,), 0),
        ("A [2019-2021].", "A.", (), 2),
        ("A [note] and [b].", "A [note] and [b].", (), 0),
    ],
)
def test_citations_take_one_form(text: str, expected: str, numbers: tuple[int, ...], dropped: int) -> None:
    cited = normalise_citations(text, count=3)
    assert (cited.text, cited.numbers, cited.dropped) == (expected, numbers, dropped)


def test_named_sources_become_citations_with_their_place() -> None:
    made = draft("The bridge opened in 1932 [1]. Its architect was John Bradfield [2].")
    assert made is not None
    assert [(citation.n, citation.file, citation.page, citation.matched) for citation in made.citations] == [
        (1, "a.pdf", 3, False),
        (2, "a.pdf", 4, False),
    ]
    assert made.warnings == ()
    assert made.text == "The bridge opened in 1932 [1]. Its architect was John Bradfield [2]."


def test_an_invented_number_is_dropped_and_said() -> None:
    made = draft("The bridge opened in 1932 [1][8].")
    assert made is not None
    assert made.text == "The bridge opened in 1932 [1]."
    assert made.warnings == ("models.citation_unknown",)
    assert made.unknown_citations == 1


def test_without_citations_each_sentence_is_matched() -> None:
    made = draft("The bridge opened in 1932. The architect was John Bradfield.")
    assert made is not None
    assert made.text == "The bridge opened in 1932. [1] The architect was John Bradfield. [2]"
    assert [(citation.n, citation.matched) for citation in made.citations] == [(1, True), (2, True)]
    assert made.warnings == ("models.citations_matched",)


def test_a_source_that_does_not_say_it_gives_way_to_the_one_that_does() -> None:
    made = draft("The bridge opened in 1932 [2]. Its architect was John Bradfield [2].")
    assert made is not None
    assert made.text == "The bridge opened in 1932. [1] Its architect was John Bradfield [2]."
    assert [(citation.n, citation.matched) for citation in made.citations] == [(1, True), (2, False)]
    assert made.warnings == ("models.citations_matched",)


def test_a_sentence_without_a_number_is_matched_beside_one_that_has_it() -> None:
    made = draft("The bridge opened in 1932. Its architect was John Bradfield [2].")
    assert made is not None
    assert made.text == "The bridge opened in 1932. [1] Its architect was John Bradfield [2]."


def test_chinese_sentences_are_matched_too() -> None:
    made = draft("大桥1932年通车。全长1149米。", language="zh")
    assert made is not None
    assert {citation.n for citation in made.citations} == {3}
    assert made.text == "大桥1932年通车。[3]全长1149米。[3]"


def test_a_sentence_that_nothing_supports_is_marked() -> None:
    made = draft("The bridge opened in 1932 [1]. It was painted green by volunteers [2].")
    assert made is not None
    assert made.text.endswith("It was painted green by volunteers [2]. (not found in the sources)")
    assert made.warnings == ("models.sentence_unsupported",)


def test_a_wrong_number_is_not_supported_however_alike_the_words() -> None:
    made = draft("The bridge opened in 1932 [1]. It is 1,490 metres long [1].", matcher=Matcher("bridge"))
    assert made is not None
    assert "1,490 metres long [1]. (not found in the sources)" in made.text


def test_a_paraphrase_is_supported_on_the_readers_word() -> None:
    sentence = "The bridge was ready for traffic in 1932 after years [1]."
    believed, doubted = Matcher("bridge"), Matcher()
    made = draft(f"Its architect was John Bradfield [2]. {sentence}", matcher=believed)
    assert made is not None
    assert made.warnings == ()
    assert len(believed.asked) == 1
    made = draft(f"Its architect was John Bradfield [2]. {sentence}", matcher=doubted)
    assert made is not None
    assert made.warnings == ("models.sentence_unsupported",)


def test_an_answer_without_any_support_is_no_answer() -> None:
    assert draft("I'm sorry, I can't assist with that request.") is None
    assert draft("Unicorns built the whole thing in one night.") is None
    assert draft("") is None


def test_citations_after_the_full_stop_belong_to_the_sentence_before() -> None:
    made = draft("The bridge opened in 1932. [1] Its architect was John Bradfield. [2]")
    assert made is not None
    assert made.text == "The bridge opened in 1932. [1] Its architect was John Bradfield. [2]"
    assert made.warnings == ()
    made = draft("大桥于1932年通车。[3]", language="zh")
    assert made is not None
    assert made.text == "大桥于1932年通车。[3]"
