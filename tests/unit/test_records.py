import json
from dataclasses import replace
from pathlib import Path

from records import answer_record, bbox
from refusal import Refusal
from schema import (
    Action,
    Answer,
    Block,
    BlockParser,
    BlockType,
    Chunk,
    Citation,
    Document,
    Grade,
    Graded,
    Knowledge,
    Models,
    Origin,
    Part,
    Piece,
    Region,
    SearchAttempt,
    SearchMode,
    SearchReport,
    Seconds,
    Strip,
    Thresholds,
    Usage,
    Verdict,
)
from traces import TRACE_FILE, write_trace


def example() -> Answer:
    document = Document("text", Origin.KB, 1, file="手册 (1).pdf", page=2)
    return Answer(
        question="q",
        language="en",
        text="a [1]",
        refused=False,
        refusal_reason="",
        verdict=Verdict(Action.CORRECT, Thresholds(0.5, -0.5, 0.0), 0.7, (Part("q", Action.CORRECT, 0.7),)),
        graded=(Graded(document, Grade(0.7)),),
        knowledge=Knowledge((Strip("text", document, 0, 4, Grade(0.7), kept=True),)),
        citations=(Citation(1, Origin.KB, "text", file="手册 (1).pdf", page=2, regions=(Region(2, (0, 0, 1, 1)),)),),
        search=SearchReport(SearchMode.OFF),
        models=Models("embedded", "e5", "reader", "extractive"),
        seconds=Seconds(total=0.5),
        usage=Usage(1, 2, 3),
        id="x",
    )


def test_the_answer_object_has_every_field_that_others_script_against() -> None:
    record = json.loads(json.dumps(answer_record(example())))
    names = "id question language answer refused refusal_reason action thresholds documents strips citations search"
    assert set(f"{names} warnings usage seconds models".split()) <= record.keys()
    assert record["action"] == "correct"
    assert record["thresholds"] == {"upper": 0.5, "lower": -0.5, "strip": 0.0}
    assert {"rank", "file", "page", "bbox", "heading_path", "text", "score", "grade_failed"} <= record["documents"][
        0
    ].keys()
    assert {"text", "origin", "file", "page", "bbox", "url", "score", "kept"} <= record["strips"][0].keys()
    assert {"n", "origin", "file", "page", "bbox", "url", "quote"} <= record["citations"][0].keys()
    assert {"mode", "queries", "urls", "error"} <= record["search"].keys()
    assert {"outcome", "error_code", "proposed", "attempts", "documents"} <= record["search"].keys()
    assert record["usage"] == {"llm_calls": 1, "input_tokens": 2, "output_tokens": 3}
    assert {"retrieve", "evaluate", "refine", "search", "generate", "total"} == record["seconds"].keys()
    assert {"parser", "embedder", "evaluator", "generator"} == record["models"].keys()


def test_the_parser_is_the_one_that_read_the_cited_documents_not_the_setting() -> None:
    def document(file: str, *parsers: BlockParser) -> Document:
        blocks = [
            Block("d", 2, order, BlockType.TEXT, "text", (0, 0, 1, 1), parser) for order, parser in enumerate(parsers)
        ]
        pieces = tuple(Piece(4 * order, 4 * order + 4, block) for order, block in enumerate(blocks))
        chunk = Chunk(file, "d", file, "texttext", (), pieces)
        return Document("texttext", Origin.KB, 1, file=file, page=2, chunk=chunk)

    cited, other = document("手册 (1).pdf", BlockParser.TEXT, BlockParser.OCR), document("b.pdf", BlockParser.MINERU)
    answer = replace(example(), graded=(Graded(other, Grade(0.1)), Graded(cited, Grade(0.7))))
    answer = replace(answer, models=replace(answer.models, parser="auto"))
    record = answer_record(answer)
    assert record["models"]["parser"] == "ocr, text"
    assert [found["parser"] for found in record["documents"]] == ["mineru", "ocr, text"]
    assert answer_record(replace(answer, citations=()))["models"]["parser"] == "mineru, ocr, text"
    assert answer_record(replace(answer, citations=(), graded=()))["models"]["parser"] == "auto"


def test_what_the_web_gave_is_recorded_with_title_address_time_and_score() -> None:
    page = Document("text", Origin.WEB, 1, url="https://a.test/", title="T", fetched_at="2026-11-30T12:00:00+00:00")
    report = SearchReport(
        SearchMode.AUTO,
        queries=("q",),
        urls=("https://a.test/",),
        documents=(page,),
        provider="wikipedia",
        attempts=(SearchAttempt("searxng", error="rate_limit"), SearchAttempt("wikipedia", results=1)),
        graded=(Graded(page, Grade(-0.7)),),
    )
    dropped = Knowledge((Strip("text", page, 0, 4, Grade(-0.7)),))
    record = answer_record(replace(example(), search=report, knowledge=dropped))
    (found,), (strip,) = record["search"]["documents"], record["strips"]
    assert (found["url"], found["title"], found["score"]) == ("https://a.test/", "T", -0.7)
    assert found["fetched_at"] == strip["fetched_at"] == "2026-11-30T12:00:00+00:00"
    assert (strip["origin"], strip["kept"]) == ("web", False)
    assert record["search"]["outcome"] == "found"
    assert record["search"]["attempts"][0] == {"provider": "searxng", "results": 0, "error": "rate_limit"}


def test_one_box_surrounds_the_lines_of_the_first_page() -> None:
    lines = (Region(1, (0.1, 0.2, 0.5, 0.3)), Region(1, (0.2, 0.3, 0.9, 0.4)), Region(2, (0.0, 0.0, 1.0, 1.0)))
    assert bbox(lines) == [0.1, 0.2, 0.9, 0.4]
    assert bbox(()) is None


def test_a_trace_is_one_line_a_question(tmp_path: Path) -> None:
    write_trace(example(), data_dir=tmp_path / "new")
    write_trace(example(), data_dir=tmp_path / "new")
    lines = (tmp_path / "new" / TRACE_FILE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["citations"][0]["file"] for line in lines] == ["手册 (1).pdf"] * 2


def test_a_refusal_has_no_citations_and_names_what_was_searched() -> None:
    refused = Refusal().apply(example())
    assert refused.refused
    assert refused.citations == ()
    assert "searched: 1 (files: 1" in refused.text
    assert "0.70" in refused.text
