from dataclasses import replace

from generator import ExtractiveGenerator
from schema import Document, Draft, Grade, Knowledge, Origin, Span, Strip


def strip(
    text: str, *, score: float, answer: str = "", margin: float = 5.0, origin: Origin = Origin.KB, kept: bool = True
) -> Strip:
    document = Document(
        text, origin, 1, file="a.pdf" if origin is Origin.KB else "", page=1, url="https://example.org/"
    )
    start = text.find(answer)
    span = Span(start, start + len(answer), margin) if answer else None
    return Strip(text, document, 0, len(text), grade=Grade(score, span=span), kept=kept)


def write(*strips: Strip, language: str = "en") -> Draft:
    *pieces, draft = ExtractiveGenerator().stream(
        "q", knowledge=Knowledge(strips), language="zh" if language == "zh" else "en"
    )
    assert isinstance(draft, Draft)
    assert "".join(str(piece) for piece in pieces) == draft.text
    return draft


def test_each_part_of_a_compound_question_is_quoted_and_answered() -> None:
    dates = [strip(f"Built in 18{n}0.", score=0.95, answer=f"18{n}0") for n in range(1)]
    dates += [strip(f"In 18{n}0 it was painted.", score=0.8) for n in range(1, 5)]
    architect = replace(strip("It was designed by Ann Lee.", score=0.0, answer="Ann Lee"), part=1)
    *_, draft = ExtractiveGenerator().stream(
        "q", knowledge=Knowledge((architect, *dates), compound=True), language="en"
    )
    assert isinstance(draft, Draft)
    assert draft.text.startswith("1800 [1]\n\nAnn Lee [3]\n\n")
    assert [citation.quote for citation in draft.citations] == [dates[0].text, dates[1].text, architect.text]


def test_the_short_answer_comes_first_and_is_marked_in_its_quotation() -> None:
    draft = write(strip("It weighs 12 kg in all.", score=0.9, answer="12 kg"), strip("It is red.", score=0.4))
    assert draft.text.startswith("12 kg [1]")
    assert "“It weighs 12 kg in all.” [1]" in draft.text
    first = draft.citations[0]
    assert first.mark is not None
    assert first.quote[slice(*first.mark)] == "12 kg"


def test_rival_answers_stand_side_by_side() -> None:
    draft = write(
        strip("It weighs 12 kg.", score=0.9, answer="12 kg"), strip("It weighs 15 kg.", score=0.88, answer="15 kg")
    )
    assert not draft.text.startswith("12 kg")
    assert [citation.n for citation in draft.citations] == [1, 2]


def test_two_strips_with_the_same_answer_agree() -> None:
    draft = write(
        strip("It weighs 12 kg.", score=0.9, answer="12 kg"), strip("12 kg is its weight.", score=0.88, answer="12 kg")
    )
    assert draft.text.startswith("12 kg [1]")


def test_an_unsure_span_is_not_given_as_the_answer() -> None:
    assert not write(strip("It weighs 12 kg.", score=0.9, answer="12 kg", margin=0.1)).text.startswith("12 kg")


def test_best_first_dropped_never_and_web_apart() -> None:
    draft = write(
        strip("Second best.", score=0.5),
        strip("Best.", score=0.9),
        strip("Dropped.", score=0.95, kept=False),
        strip("From the web.", score=0.99, origin=Origin.WEB),
        language="zh",
    )
    assert [(c.quote, c.origin) for c in draft.citations] == [
        ("Best.", Origin.KB),
        ("Second best.", Origin.KB),
        ("From the web.", Origin.WEB),
    ]
    assert draft.text.index("文档原文") < draft.text.index("网页原文")


def test_answers_of_knowledge_base_and_web_stand_side_by_side_when_they_differ() -> None:
    own = strip("The bridge was opened in 1998 by the mayor.", score=0.9, answer="1998")
    web = strip("The bridge was opened in 2001.", score=0.4, answer="2001", origin=Origin.WEB)
    draft = write(own, web)
    assert draft.text.startswith("Documents: 1998 [1]\n\nWeb: 2001 [2]\n\n")
    assert [(c.n, c.origin, c.quote) for c in draft.citations] == [
        (1, Origin.KB, own.text),
        (2, Origin.WEB, web.text),
    ]
    assert write(web, own, language="zh").text.startswith("文档：1998 [1]\n\n网页：2001 [2]\n\n")


def test_answers_that_agree_are_given_once() -> None:
    own = strip("The bridge was opened in 1998.", score=0.4, answer="1998")
    web = strip("Opened in May 1998, the bridge is old.", score=0.9, answer="May 1998", origin=Origin.WEB)
    assert write(own, web).text.startswith("1998 [1]\n\n")


def test_the_answer_of_the_web_alone_is_labelled() -> None:
    web = strip("The bridge was opened in 2001.", score=0.4, answer="2001", origin=Origin.WEB)
    assert write(strip("A bridge.", score=0.5), web).text.startswith("Web: 2001 [2]\n\n")


def test_a_strip_far_below_the_best_is_not_quoted() -> None:
    assert len(write(strip("Best.", score=0.9), strip("Weak.", score=-0.5)).citations) == 1
