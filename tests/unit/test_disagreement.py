"""Whether the knowledge base and the web give different answers."""

from __future__ import annotations

import pytest

from disagreement import find_disagreement
from schema import Document, Grade, Origin, Span, Strip


def strip(text: str, answer: str, *, origin: Origin, score: float = 0.5, margin: float = 5.0) -> Strip:
    start = text.index(answer)
    grade = Grade(score, span=Span(start, start + len(answer), margin))
    return Strip(text, Document(text, origin, 1), 0, len(text), grade=grade, kept=True)


def differ(kb: tuple[str, str], web: tuple[str, str]) -> bool:
    return find_disagreement([strip(*kb, origin=Origin.KB), strip(*web, origin=Origin.WEB)]) is not None


@pytest.mark.parametrize(
    ("kb", "web"),
    [
        (("Opened in 1998.", "1998"), ("Opened in 2001.", "2001")),
        (("大桥于1998年通车。", "1998年"), ("大桥于2001年通车。", "2001年")),
        (("It weighs 5 kg.", "5 kg"), ("It weighs 15 kg.", "15 kg")),
        (("It was built by Ann Lee.", "Ann Lee"), ("It was built by Bo Kim.", "Bo Kim")),
        (("The plant has 500 workers.", "500"), ("The plant has 50 workers.", "50")),
        (("In 2019 it had 35 members.", "35"), ("It had 20 members.", "20")),
        (("Growth was 35 %.", "35"), ("Growth was 3.5 %.", "3.5")),
        (("It is -5 degrees.", "-5"), ("It is 5 degrees.", "5")),
        (("It is \u22125 degrees.", "\u22125"), ("It is 5 degrees.", "5")),
        (("It rose by 1,5 of 12.", "12"), ("It rose to 512.", "512")),
    ],
)
def test_different_answers(kb: tuple[str, str], web: tuple[str, str]) -> None:
    assert differ(kb, web)


@pytest.mark.parametrize(
    ("kb", "web"),
    [
        (("Opened in 1998.", "1998"), ("It was in May 1998 that it opened.", "May 1998")),
        (("大桥于一九九八年通车。", "一九九八年"), ("大桥于1998年5月通车。", "1998年5月")),
        (("It had 35 members.", "35"), ("In 2019, 35 members met.", "35 members")),
        (("It lasted 1998-2001.", "1998-2001"), ("It began in 1998.", "1998")),
        (("It costs 3.5 euros.", "3.5"), ("3.5 euros is its price.", "3.5 euros")),
        (("It seats 12,000.", "12,000"), ("It seats 12000 people.", "12000 people")),
        (("Built by the Romans.", "the Romans"), ("Romans built it.", "Romans")),
        (("Ａｎｎ Lee did.", "Ａｎｎ Lee"), ("ann lee, of course.", "ann lee")),
        (("Opened in 1998.", "1998"), ("Opened in 2001, not in 1998 as is often said.", "2001")),
    ],
)
def test_one_answer_in_two_spellings(kb: tuple[str, str], web: tuple[str, str]) -> None:
    assert not differ(kb, web)


def test_unsure_answers_and_one_origin_never_differ() -> None:
    kb, web = ("Opened in 1998.", "1998"), ("Opened in 2001.", "2001")
    sure, unsure = strip(*kb, origin=Origin.KB), strip(*web, origin=Origin.WEB, margin=0.5)
    assert find_disagreement([sure, unsure]) is None
    assert find_disagreement([sure, strip(*web, origin=Origin.KB)]) is None
    assert find_disagreement([]) is None


def test_the_best_strip_of_each_origin_speaks_for_it() -> None:
    strips = [
        strip("Opened in 1997.", "1997", origin=Origin.KB, score=0.1),
        strip("Opened in 1998.", "1998", origin=Origin.KB, score=0.9),
        strip("Opened in 2001.", "2001", origin=Origin.WEB, score=0.9),
        strip("Opened in 1998.", "1998", origin=Origin.WEB, score=0.2),
    ]
    found = find_disagreement(strips)
    assert found is not None
    assert (found.kb.text, found.web.text) == ("Opened in 1998.", "Opened in 2001.")
