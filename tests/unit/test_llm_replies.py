"""What models write is read without trusting its form."""

from __future__ import annotations

import math

import pytest

from llm_replies import ThoughtFilter, TokenChoice, Verdict, parse_verdict, read_tokens, score_tokens, strip_thoughts

YES = ("Yes", "yes.", "YES", "是", "是的。", "相关", "**Yes**", "Yes, the passage names the year.", '{"relevant": true}',
       '```json\n{"binary_score": "yes"}\n```', "<think>hm, no?</think>\n\nYes", "Answer: yes", "答案：是", "Ｙｅｓ",
       "The passage is relevant.", "文中包含答案。", "The passage names the year.\n\nYes", "Verdict: **Yes**",
       "reasoning without an opening tag, no</think>yes", '{"reason": "No other passage has it", "answer": "yes"}')  # fmt: skip
NO = ("No", "no.", "否", "不相关", "无关", "没有", "Not relevant", "**No**, the document is about something else.",
      "No, the document is not relevant.", '{"relevant": false}', '{"grade": "no"}', "<think>yes yes</think>No",
      "不，文中没有提到。", "The document does not contain the answer.", "It is not relevant.", "判断：否", '"No"', "irrelevant",
      "未提及")  # fmt: skip
PARTLY = ("Partly", "partially.", "部分", '{"answer": "partly"}', "Partly: only the year is given")
FAILED = ("", "   ", "<think>It could be yes", "<think></think>", "Yes/No", "yes or no?", "I'm sorry, I can't help with that.",
          "抱歉，我无法回答这个问题。", "maybe", "{", "{broken json", "是否相关？", "42", "Nothing", "Note the date",
          "It contains the name but does not give the year")  # fmt: skip


@pytest.mark.parametrize("reply", YES)
def test_yes(reply: str) -> None:
    assert parse_verdict(reply) is Verdict.YES


@pytest.mark.parametrize("reply", NO)
def test_no(reply: str) -> None:
    assert parse_verdict(reply) is Verdict.NO


@pytest.mark.parametrize("reply", PARTLY)
def test_partly(reply: str) -> None:
    assert parse_verdict(reply) is Verdict.PARTLY


@pytest.mark.parametrize("reply", FAILED)
def test_anything_else_is_no_verdict(reply: str) -> None:
    assert parse_verdict(reply) is None


def test_thoughts_are_left_out_closed_or_not() -> None:
    assert strip_thoughts("<think>a</think><think>c</think>d") == "d"
    assert strip_thoughts("a<THINK>never closed") == "a"
    assert strip_thoughts("no opening</think> b") == "b"


def _tokens(*pairs: tuple[str, dict[str, float]]) -> list[TokenChoice]:
    return [TokenChoice(token, candidates) for token, candidates in pairs]


def test_score_is_the_difference_of_the_chances() -> None:
    tokens = _tokens((" Yes", {" Yes": 0.6, "yes": 0.1, "No": 0.2, "The": 0.1}), (".", {".": 1.0}))
    assert score_tokens(tokens) == pytest.approx(0.5)
    assert score_tokens(_tokens(("不", {"不": 0.7, "是": 0.3}), ("相关", {"相关": 1.0}))) == pytest.approx(-0.4)
    assert score_tokens(_tokens(("Part", {"Part": 0.8, "No": 0.2}))) == pytest.approx(-0.2)


def test_score_passes_over_thoughts_and_stops_looking_in_long_text() -> None:
    yes = ("yes", {"yes": 1.0})
    no = ("no", {"no": 1.0})
    assert score_tokens(_tokens(("<think>", {}), yes, ("</think>", {}), no)) == -1.0
    assert score_tokens(_tokens(("<think>", {}), yes)) is None
    assert score_tokens(_tokens(yes, ("</think>", {}), no)) == -1.0
    assert score_tokens(_tokens(("It is a long way before the verdict comes out here ", {}), yes)) is None
    assert score_tokens([]) is None


def test_logprobs_are_read_whatever_is_missing() -> None:
    read = read_tokens(
        [
            {
                "token": "Yes",
                "logprob": math.log(0.5),
                "top_logprobs": [{"token": "Yes", "logprob": math.log(0.5)}, {}],
            },
            {"token": "No", "logprob": math.log(0.25), "top_logprobs": []},
            {"token": None},
        ]
    )
    assert [dict(choice.candidates) for choice in read] == [{"Yes": pytest.approx(0.5)}, {"No": pytest.approx(0.25)}]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_streamed_thoughts_never_show(size: int) -> None:
    text = "A <b>x</b> 1 < 2 <think>secret < </think>B<thinking>more</thinking> C <think>open"
    shown = ThoughtFilter()
    pieces = [shown.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(pieces) + shown.finish() == "A <b>x</b> 1 < 2 B C "


def test_a_tag_that_never_comes_is_shown_at_the_end() -> None:
    shown = ThoughtFilter()
    assert shown.feed("a <th") + shown.finish() == "a <th"
