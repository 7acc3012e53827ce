"""Only what leans on the conversation is rewritten, and only where the rule is plain."""

from __future__ import annotations

import pytest

from follow_ups import leans_on_history, resolve
from rewriter import RuleRewriter, is_faithful, read_reply
from schema import Turn

ENGLISH = [Turn("How long is the battery life of the Roomba X10?", "About 120 minutes [1].")]
CHINESE = [Turn("青禾K2的续航是多少？", "续航约120分钟[1]。")]


@pytest.mark.parametrize(
    "question",
    ["And its price?", "What about the X20?", "How much does it cost?", "Why?", "who made them", "Is that included?",
     "And in 2021?", "What is the second one?", "它多少钱？", "那价格呢？", "价格呢？", "为什么？", "它的价格是多少？",
     "这个有保修吗？", "该产品的重量是多少？", "其重量是多少？", "还有别的颜色吗？", "多少钱"],
)  # fmt: skip
def test_leans(question: str) -> None:
    assert leans_on_history(question, history=ENGLISH)
    assert not leans_on_history(question, history=[])


@pytest.mark.parametrize(
    "question",
    ["What is the battery life of the Roomba X20?", "When did Marie Curie publish her thesis?",
     "What does this document say about refunds?", "Is it possible to return an opened box?",
     "How many countries are there in Europe?", "Which paper says that transformers scale?",
     "青禾K3的重量是多少？", "这份文档讲了什么内容？", "员工请假应该如何申请？", "《红楼梦》的作者是谁？",
     "其中国际业务收入占总收入的比例是多少？", "公司在2023年的净利润是多少？"],
)  # fmt: skip
def test_stands_alone(question: str) -> None:
    assert not leans_on_history(question, history=ENGLISH)


@pytest.mark.parametrize(
    ("question", "last", "expected"),
    [
        ("What about 2021?", "What was the revenue in 2020?", "What was the revenue in 2021?"),
        ("And in 2021?", "What was the revenue in 2020?", "What was the revenue in 2021?"),
        ("And Spain?", "What is the capital of France?", "What is the capital of Spain?"),
        ("2021年呢？", "2020年的营收是多少？", "2021年的营收是多少？"),
        ("How much does it cost?", "What is the weight of the Roomba X10?", "How much does Roomba X10 cost?"),
        ("What is its price?", "What is the weight of the Roomba X10?", "What is Roomba X10's price?"),
        ("它的作者是谁？", "《活着》是哪一年出版的？", "活着的作者是谁？"),
        ("Who made them?", "which colours are there?", "Who made them?"),
        ("What about chapter 3?", "What was the revenue in 2020?", "What about chapter 3?"),
        ("And the 5 largest customers?", "What was the revenue in 2020?", "And the 5 largest customers?"),
        ("And 5?", "What is step 4?", "What is step 5?"),
        ("And its price?", "Is the Roomba X10 better than the Braava M6?", "And its price?"),
    ],
)
def test_plain_cases_are_completed_and_others_left(question: str, last: str, expected: str) -> None:
    assert resolve(question, history=[Turn(last, "")]) == expected


def test_the_rules_leave_a_whole_question_alone() -> None:
    rewritten = RuleRewriter().rewrite("What is the weight of the Roomba X20?", history=ENGLISH)
    assert rewritten.question == rewritten.original


def test_a_rewriting_models_reply_is_read_with_and_without_labels() -> None:
    assert read_reply("Question: What is X?\nKeywords: X; price; cost; more") == ("What is X?", ["X", "price", "cost"])
    assert read_reply("**问题**：青禾K2多少钱？\n关键词：青禾K2；价格") == ("青禾K2多少钱？", ["青禾K2", "价格"])
    assert read_reply('"What is X?"') == ("What is X?", [])
    assert read_reply("") == ("", [])


@pytest.mark.parametrize(
    ("rewritten", "faithful"),
    [
        ("What is the price of the Roomba X10?", True),
        ("What is the price of the Roomba X10 in 2024?", False),
        ("What is the price of the Dyson V15?", False),
        ("Roomba X10的价格是多少，有没有优惠？", False),
        ("", False),
        ("word " * 200, False),
    ],
)
def test_a_rewritten_question_adds_only_words_of_the_conversation(rewritten: str, faithful: bool) -> None:
    conversation = "Q: How long is the battery life of the Roomba X10?\nA: 120 minutes"
    assert is_faithful(rewritten, question="And its price?", conversation=conversation) is faithful
