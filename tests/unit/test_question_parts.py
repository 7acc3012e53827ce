from __future__ import annotations

import pytest

from question_parts import split_question

WHOLE = [
    "",
    "What is Romeo and Juliet about?",
    "Which of the two rivers is longer and wider than the Rhine?",
    "What is the difference between cost and revenue?",
    "who wrote the song war and peace",
    "What is total debt of the company in 2021? Answer in millions.",
    "What is the capital of France? And of Spain?",
    "How did trade and industry grow after 1850?",
    "《战争与和平》的作者是谁？",
    "中国和美国的关系如何？",
    "谷歌和百度推出的产品叫什么？",
    "公司的主营业务是什么？",
    "他在任何时候，什么地方最常出现？",
    "中国与世界各国的贸易额是多少？",
    "该系统如何保护用户与企业的各类数据？",
    "How does the system store data and how long is it kept?",
    "What does the warranty cover and when does it apply?",
]


@pytest.mark.parametrize("question", WHOLE)
def test_a_question_with_one_answer_stays_whole(question: str) -> None:
    assert split_question(question) == [question]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("What is X-ray film? Also, who sang the song", ["What is X-ray film?", "who sang the song"]),
        ("Who wrote Dune and when was it published?", ["Who wrote Dune?", "When was Dune published?"]),
        ("When and where was Einstein born?", ["When was Einstein born?", "Where was Einstein born?"]),
        (
            "When was the firm founded and by whom?",
            ["When was the firm founded?", "By whom was the firm founded?"],
        ),
        (
            "What are the boiling points of water and ethanol, respectively?",
            ["What are the boiling points of water?", "What are the boiling points of ethanol?"],
        ),
        (
            "Compare the revenue of Alder Foods and Birch Mills.",
            ["What is the revenue of Alder Foods?", "What is the revenue of Birch Mills?"],
        ),
        ("甲厂的产量是多少？另外，乙厂的厂长是谁？", ["甲厂的产量是多少？", "乙厂的厂长是谁？"]),
        ("阿里巴巴是什么时候成立的，创始人是谁？", ["阿里巴巴是什么时候成立的？", "阿里巴巴的创始人是谁？"]),
        ("2022年澳网男单和女单冠军分别是谁？", ["2022年澳网男单冠军是谁？", "2022年澳网女单冠军是谁？"]),
        ("公司2022年和2023年的净利润分别是多少？", ["公司2022年的净利润是多少？", "公司2023年的净利润是多少？"]),
        ("我国人口的出生率和死亡率是多少？", ["我国人口的出生率是多少？", "我国人口的死亡率是多少？"]),
        ("苹果和微软相比，哪家的营收更高？", ["苹果的营收是多少？", "微软的营收是多少？"]),
    ],
)
def test_a_compound_question_gives_parts_that_stand_alone(question: str, parts: list[str]) -> None:
    assert split_question(question) == parts


def test_there_are_never_more_than_four_parts() -> None:
    question = " ".join(f"Who was king number {n} of France?" for n in range(9))
    parts = split_question(question)
    assert len(parts) == 4
    assert all(f"number {n} of" in parts[3] for n in range(3, 9))


def test_parts_of_parts_are_split_too() -> None:
    found = split_question("Who wrote Dune and when was it published? Also, where is the river Rhine?")
    assert found == ["Who wrote Dune?", "When was Dune published?", "where is the river Rhine?"]
