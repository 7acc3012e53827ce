"""Answers and PDFs for the tests of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from action_trigger import trigger
from schema import (
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
    Line,
    Models,
    Origin,
    Piece,
    Region,
    SearchMode,
    SearchReport,
    Seconds,
    Strip,
    Thresholds,
)

WATER = [
    "1 The mill pond",
    "The mill pond of Ostrand is nine metres deep at the sluice.",
    "It was dug in 1871 by the miller Aldo Brenn and his two sons.",
    "Every spring the pond is drained for eleven days to mend the gate.",
]
BREAD = ["2 The bakery", "The bakery of Ostrand opens at five in the morning.", "It sells rye bread on Mondays only."]
LIMITS = Thresholds(upper=0.5, lower=-0.5, strip=0.0)
BOX = (0.1, 0.2, 0.5, 0.3)
OTHER_BOX = (0.1, 0.4, 0.9, 0.5)


def make_document(text: str, *, rank: int, file: str = "a.pdf", page: int = 1) -> Document:
    """A document of one block with two printed lines."""
    middle = len(text) // 2
    lines = (Line(0, middle, page, BOX), Line(middle, len(text), page, OTHER_BOX))
    block = Block("id", page, 0, BlockType.TEXT, text, BOX, BlockParser.TEXT, lines=lines)
    chunk = Chunk(f"chunk{rank}", "id", file, text, ("Heading",), (Piece(0, len(text), block),))
    return Document(text, Origin.KB, rank, file, page, ("Heading",), chunk)


def make_answer(
    *,
    question: str = "How deep is the water?",
    text: str = "“The water is nine metres deep.” [1]",
    scores: Sequence[float | None] = (0.7, -0.8),
    refused: bool = False,
    file: str = "a.pdf",
    language: str = "en",
) -> Answer:
    """An answer from as many documents as there are scores; None is a failed grade."""
    graded = tuple(
        Graded(
            make_document("The water is nine metres deep. Nothing else is known.", rank=rank, file=file),
            Grade(0.0, failed=True) if score is None else Grade(score),
        )
        for rank, score in enumerate(scores, start=1)
    )
    strips = tuple(
        Strip(item.document.text[start:end], item.document, start, end, item.grade, kept=item.grade.score > 0)
        for item in graded
        for start, end in ((0, 26), (26, 53))
    )
    verdict = trigger([question], grades=[[item.grade for item in graded]], thresholds=LIMITS)
    citation = Citation(1, Origin.KB, "The water is nine metres deep.", file, 1, (Region(1, BOX),))
    return Answer(
        question=question,
        language=language,
        text=text,
        refused=refused,
        refusal_reason="incorrect" if refused else "",
        verdict=verdict,
        graded=graded,
        knowledge=Knowledge(() if refused else strips),
        citations=() if refused or not graded else (citation,),
        search=SearchReport(SearchMode.OFF),
        models=Models("text", "embedder", "reader", "extractive"),
        seconds=Seconds(retrieve=0.01, evaluate=0.2, total=0.3),
        id="answer",
    )


def write_pdf(path: Path, *, pages: Sequence[Sequence[str]]) -> Path:
    """A small PDF with lines of text in Helvetica, one list of lines a page."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for lines in pages:
        shown = "".join(f"({line}) Tj 0 -20 Td " for line in lines)
        stream = f"BT /F1 14 Tf 72 720 Td {shown}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        content = len(objects)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % content
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    body, offsets = b"%PDF-1.4\n", []
    for number, content_bytes in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content_bytes)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    body += b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        table,
        len(objects) + 1,
        len(body),
    )
    path.write_bytes(body)
    return path
