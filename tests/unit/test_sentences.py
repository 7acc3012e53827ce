import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import is_table_rule, sentence_spans, width


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One thing. Another thing!", ["One thing.", "Another thing!"]),
        (
            "Dr. Smith met Mr. J. Doe in the U.S. Army. They spoke.",
            ["Dr. Smith met Mr. J. Doe in the U.S. Army.", "They spoke."],
        ),
        ("It grew 3.5 percent. In 2020 it fell.", ["It grew 3.5 percent.", "In 2020 it fell."]),
        ("他来了。她走了！真的吗？是的；好…", ["他来了。", "她走了！", "真的吗？", "是的；", "好…"]),
        ("“他说：好。”然后离开。", ["“他说：好。”", "然后离开。"]),
        ("没有标点的一行", ["没有标点的一行"]),
        ("使用 Python 3.11。Works too. 好", ["使用 Python 3.11。", "Works too.", "好"]),
        ("   ", []),
    ],
)
def test_sentences_of_both_languages(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


@given(st.text(alphabet="ab。.!？ \nA1", max_size=60))
def test_no_character_is_lost_or_doubled(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(a < b for a, b in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_width_counts_a_chinese_character_twice() -> None:
    assert width("ab中文") == 6


def test_table_rule() -> None:
    assert is_table_rule("| --- | :-: |")
    assert not is_table_rule("| a | - |")
