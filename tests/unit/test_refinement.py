from collections.abc import Sequence

from refinement import StripRefiner, decompose
from schema import Block, BlockParser, BlockType, Chunk, Document, Grade, Line, Origin, Piece, Region, Thresholds

LIMITS = Thresholds(upper=0.5, lower=-0.5, strip=0.0)


class WordEvaluator:
    """Scores a strip 1 when it holds the question's first word, else −1."""

    def __init__(self) -> None:
        self.calls = 0

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        self.calls += 1
        word = question.split()[0]
        return [[Grade(1.0 if word in text else -1.0) for text in group] for group in groups]


def passage(text: str, *, rank: int = 1) -> Document:
    return Document(text=text, origin=Origin.KB, rank=rank)


def texts(document: Document) -> list[str]:
    return [strip.text for strip in decompose(document)]


def test_chinese_is_cut_at_its_own_punctuation() -> None:
    text = "公司成立于一九九八年，总部位于上海浦东新区张江高科技园区，现有员工三千余人。" * 4
    assert len(texts(passage(text))) > 1
    assert "".join(texts(passage(text))) == text


def test_strips_cover_the_document_in_order() -> None:
    text = ("The first sentence says what this text is about. " * 12).strip()
    strips = decompose(passage(text))
    assert " ".join(strip.text for strip in strips) == text
    assert all(text[strip.start : strip.end] == strip.text for strip in strips)


def test_a_table_is_cut_only_between_rows_and_repeats_its_header() -> None:
    rows = [f"| Department number {n} of the company | {n * 1000} | {n * 2000} | remarks go here |" for n in range(30)]
    table = "\n".join(["| Department | 2023 | 2024 | Remarks |", "| --- | --- | --- | --- |", *rows])
    found = texts(passage(table))
    assert len(found) > 3
    assert all(text.startswith("| Department | 2023 | 2024 | Remarks |\n") for text in found)
    assert [row for text in found for row in text.splitlines()[2:]] == rows


def test_a_long_document_gets_longer_strips() -> None:
    sentence = "This sentence has a handful of words in it. "
    short, long = passage(sentence * 10), passage(sentence * 100)
    assert max(map(len, texts(long))) > max(map(len, texts(short)))


def test_kept_strips_stay_in_document_order_with_provenance() -> None:
    first = passage(
        "Nothing of interest is said here at all, really nothing. zebra lives in Africa and eats grass all day."
    )
    second = passage("A zebra has stripes that differ from animal to animal.", rank=2)
    knowledge = StripRefiner(WordEvaluator()).refine(["zebra ?"], documents=[first, second], thresholds=LIMITS)
    assert [strip.document.rank for strip in knowledge.kept] == sorted(strip.document.rank for strip in knowledge.kept)
    assert all("zebra" in strip.text for strip in knowledge.kept)
    assert knowledge.text == "\n".join(strip.text for strip in knowledge.kept)
    assert any(not strip.kept for strip in knowledge.strips) or len(knowledge.strips) == 2


def test_at_most_max_strips_are_kept_and_repeats_count_once() -> None:
    documents = [
        passage(f"The zebra number {n} was seen near the river on that day in June.", rank=n) for n in range(1, 9)
    ]
    documents.append(passage(documents[0].text, rank=9))
    knowledge = StripRefiner(WordEvaluator(), max_strips=3).refine(["zebra"], documents=documents, thresholds=LIMITS)
    assert len(knowledge.kept) == 3
    knowledge = StripRefiner(WordEvaluator(), max_strips=20).refine(["zebra"], documents=documents, thresholds=LIMITS)
    assert len(knowledge.kept) == 8


def test_each_part_of_a_compound_question_keeps_its_strips() -> None:
    documents = [
        passage("The zebra is an animal with stripes and hooves."),
        passage("The lion is a big cat that hunts at night.", rank=2),
    ]
    knowledge = StripRefiner(WordEvaluator(), max_strips=1).refine(
        ["zebra", "lion"], documents=documents, thresholds=LIMITS
    )
    assert [strip.document.rank for strip in knowledge.kept] == [1, 2]


def test_no_documents_need_no_evaluation() -> None:
    evaluator = WordEvaluator()
    assert StripRefiner(evaluator).refine(["zebra"], documents=[], thresholds=LIMITS).strips == ()
    assert evaluator.calls == 0


def test_a_strip_knows_its_lines_on_the_page() -> None:
    text = "First line of text that is long enough to stand alone. Second line of the text is also long."
    lines = (Line(0, 54, 3, (0.1, 0.1, 0.9, 0.12)), Line(55, 93, 3, (0.1, 0.13, 0.9, 0.15)))
    block = Block("d", 3, 0, BlockType.TEXT, text, (0.1, 0.1, 0.9, 0.2), BlockParser.TEXT, lines=lines)
    chunk = Chunk("c", "d", "a.pdf", text, (), (Piece(0, len(text), block),))
    strips = decompose(Document(text=text, origin=Origin.KB, rank=1, file="a.pdf", page=3, chunk=chunk))
    assert strips[-1].regions[-1] == Region(3, (0.1, 0.13, 0.9, 0.15))
    assert strips[0].regions[0] == Region(3, (0.1, 0.1, 0.9, 0.12))


def test_a_lead_in_goes_with_the_items_it_introduces() -> None:
    lead_in = "The following commands of the operating system can be used to display or change function usage:"
    items = ["- Work Function Usage (WRKFCNUSG)", "- Display Function Usage (DSPFCNUSG)"]
    after = "Any other matter of the administration of this system is described in the chapters after this one."
    found = texts(passage("\n".join([lead_in, *items, "", after])))
    assert found == ["\n".join([lead_in, *items]), after]


def test_a_chinese_lead_in_goes_with_as_many_items_as_fit() -> None:
    lead_in = "服务端发生错误时，返回给前端的响应信息必须包含以下几个部分："
    items = [f"（{n}）第{n}部分说明用户应当如何处理这一错误，并给出相应的联系方式和处理时限。" for n in range(1, 9)]
    text = "\n".join([lead_in, *items])
    found = texts(passage(text))
    assert found[0].startswith(lead_in + "\n" + items[0])
    assert len(found) > 1
    assert "\n".join(found) == text


def test_a_label_before_a_table_is_left_to_the_table() -> None:
    label = "The fees of each department in the last three years of the company are as follows:"
    rows = ["| Department | 2023 |", "| --- | --- |", "| Sales | 10 |"]
    assert texts(passage("\n".join([label, *rows]))) == [label, "\n".join(rows)]
