"""Files that cannot be read, or try to do harm: each has its own typed message, and nothing else is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import pdf_process
from config import ROOT, Settings, load_settings
from errors import PdfEmptyError, PdfEncryptedError, PdfError, PdfUnreadableError
from pdf_loader import PdfLoader, parse_pdf
from pdf_render import MAX_SIDE, render_page
from tests.integration import helpers_pdf as made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(data_dir=tmp_path / "data", pdf_parser="embedded", _env_file=None)


def code_of(path: Path, settings: Settings, *, password: str = "") -> str:
    with pytest.raises(PdfError) as caught:
        parse_pdf(path, settings=settings, password=password)
    assert caught.value.values["file"] == path.name
    assert caught.value.hint
    return caught.value.code


def test_password_is_asked_for_tried_and_not_kept(tmp_path: Path, settings: Settings) -> None:
    page = made.canvas(tmp_path / "locked.pdf", encrypt="seagull")
    made.write(page, "The lock opens with the right word.", x=72, y=80)
    page.save()
    path = tmp_path / "locked.pdf"
    assert code_of(path, settings) == "pdf_encrypted"
    assert code_of(path, settings, password="wrong") == "pdf_password_wrong"
    with pytest.raises(PdfEncryptedError):
        render_page(path, 1)
    parsed = parse_pdf(path, settings=settings, password="seagull")
    assert "right word" in parsed.blocks[0].text
    assert render_page(path, 1, width=100, password="seagull").width == 100


def test_zero_bytes_other_formats_and_missing_files(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "empty.pdf").touch()
    (tmp_path / "word.pdf").write_bytes(b"PK\x03\x04 not a PDF at all")
    with pytest.raises(PdfEmptyError):
        parse_pdf(tmp_path / "empty.pdf", settings=settings)
    assert code_of(tmp_path / "empty.pdf", settings) == "pdf_zero_bytes"
    assert code_of(tmp_path / "word.pdf", settings) == "pdf_not_pdf"
    assert code_of(tmp_path / "gone.pdf", settings) == "pdf_no_access"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_no_permission_to_read(tmp_path: Path, settings: Settings) -> None:
    path = made.plain_pdf(tmp_path / "closed.pdf")
    path.chmod(0)
    assert code_of(path, settings) == "pdf_no_access"


def test_damaged_beyond_repair(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "junk.pdf").write_bytes(b"%PDF-1.7\n" + os.urandom(3000))
    assert code_of(tmp_path / "junk.pdf", settings) == "pdf_unreadable"


def test_truncated_file_is_repaired_when_its_pages_are_there(tmp_path: Path, settings: Settings) -> None:
    whole = made.plain_pdf(tmp_path / "whole.pdf", pages=3).read_bytes()
    cut = tmp_path / "cut.pdf"
    cut.write_bytes(whole[: whole.rindex(b"xref") + 30])
    parsed = parse_pdf(cut, settings=settings)
    assert parsed.pages == 3
    assert "Lime trees" in parsed.blocks[0].text


@pytest.mark.parametrize("packed", [False, True], ids=["plain objects", "object streams"])
def test_truncated_file_that_lost_its_page_tree_gives_the_pages_that_are_left(
    tmp_path: Path, settings: Settings, packed: bool
) -> None:
    import pikepdf

    path = made.plain_pdf(tmp_path / "whole.pdf", pages=40, lines=[made.sentence(number) for number in range(12)])
    mode = pikepdf.ObjectStreamMode.generate if packed else pikepdf.ObjectStreamMode.disable
    with pikepdf.open(path) as pdf:
        pdf.save(tmp_path / "late.pdf", object_stream_mode=mode, linearize=not packed)  # the page tree comes last
    data = (tmp_path / "late.pdf").read_bytes()
    cut = tmp_path / "cut.pdf"
    cut.write_bytes(data[: len(data) * 9 // 10])
    assert packed == (b"/ObjStm" in data)
    with pytest.raises(pikepdf.PdfError):
        pikepdf.open(cut)
    parsed = parse_pdf(cut, settings=settings)
    assert 20 <= parsed.pages <= 40
    text = " ".join(block.text for block in parsed.blocks)
    assert made.sentence(3) in text
    assert "Page 2 holds number 48." in text
    assert dict(parsed.reasons)[1] == "repaired"
    assert render_page(cut, 2, width=100).width == 100, "the page can show what was recovered"


def test_repair_of_junk_says_no_and_unfolds_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zlib

    import pdf_repair

    packed = zlib.compress(b"7 0 " + b"<</Type/Page>>" * 1000)
    bomb = b"%%PDF-1.5\n1 0 obj<</Type/ObjStm/N 1/First 4/Filter/FlateDecode>>stream\n%s\nendstream endobj" % packed
    (tmp_path / "bomb.pdf").write_bytes(bomb)
    monkeypatch.setattr(pdf_repair, "MAX_UNPACKED", 1000)
    assert not pdf_repair.repair(tmp_path / "bomb.pdf", copy=tmp_path / "copy.pdf", password="")
    assert not (tmp_path / "copy.pdf").exists()
    monkeypatch.undo()
    assert pdf_repair.repair(tmp_path / "bomb.pdf", copy=tmp_path / "copy.pdf", password="")


def test_no_pages_and_no_text(tmp_path: Path, settings: Settings) -> None:
    import pikepdf

    with pikepdf.new() as pdf:
        pdf.save(tmp_path / "none.pdf")
        pdf.add_blank_page()
        pdf.save(tmp_path / "blank.pdf")
    assert code_of(tmp_path / "none.pdf", settings) == "pdf_no_pages"
    assert code_of(tmp_path / "blank.pdf", settings) == "pdf_no_text"


def test_more_pages_than_allowed(tmp_path: Path, settings: Settings) -> None:
    path = made.plain_pdf(tmp_path / "long.pdf", pages=12)
    few = settings.model_copy(update={"max_pages": 10})
    with pytest.raises(PdfUnreadableError) as caught:
        parse_pdf(path, settings=few)
    assert caught.value.code == "pdf_too_long"
    assert (caught.value.values["pages"], caught.value.values["limit"]) == (12, 10)


def test_page_of_two_hundred_inches_is_read_and_drawn_small(tmp_path: Path, settings: Settings) -> None:
    from reportlab.pdfgen.canvas import Canvas

    page = Canvas(str(tmp_path / "poster.pdf"), pagesize=(14400, 14400))
    page.setFont("Helvetica", 400)
    page.drawString(1000, 7000, "A very large sheet")
    page.save()
    text = parse_pdf(tmp_path / "poster.pdf", settings=settings).blocks[0].text
    assert text.replace(" ", "") == "Averylargesheet"  # liteparse takes the kerning of huge letters for spaces
    assert max(render_page(tmp_path / "poster.pdf", 1, scale=10).size) <= MAX_SIDE


def test_scripts_and_attachments_are_ignored(tmp_path: Path, settings: Settings) -> None:
    import pikepdf

    path = made.plain_pdf(tmp_path / "plain.pdf")
    with pikepdf.open(path) as pdf:
        pdf.attachments["evil.txt"] = b"attached secret"
        pdf.Root.OpenAction = pikepdf.Dictionary(
            Type=pikepdf.Name.Action, S=pikepdf.Name.JavaScript, JS=pikepdf.String("app.alert('run')")
        )
        pdf.save(tmp_path / "active.pdf")
    text = " ".join(block.text for block in parse_pdf(tmp_path / "active.pdf", settings=settings).blocks)
    assert "Lime trees" in text
    assert "attached secret" not in text
    assert "alert" not in text


def test_deeply_nested_objects_do_not_take_the_app_down(tmp_path: Path, settings: Settings) -> None:
    depth = 60_000
    nested = b"[" * depth + b"]" * depth
    (tmp_path / "deep.pdf").write_bytes(
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/X " + nested + b">>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
    )
    with pytest.raises(PdfError):
        parse_pdf(tmp_path / "deep.pdf", settings=settings)
    assert parse_pdf(made.plain_pdf(tmp_path / "next.pdf"), settings=settings).pages == 1


def test_child_that_hangs_is_stopped_and_the_next_file_is_read(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made.plain_pdf(tmp_path / "fine.pdf")
    pdf_process.close_children()
    with monkeypatch.context() as patch:
        (tmp_path / "pdf_worker.py").write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
        patch.setattr(pdf_process, "ROOT", tmp_path)
        hasty = settings.model_copy(update={"parse_timeout": 0.5})
        began = time.monotonic()
        assert code_of(path, hasty) == "pdf_timeout"
        assert time.monotonic() - began < 20
    assert parse_pdf(path, settings=settings).pages == 1


def test_page_that_crashes_the_child_is_left_empty_and_the_others_are_read(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made.plain_pdf(tmp_path / "mixed.pdf", pages=4)
    root = ROOT
    (tmp_path / "pdf_worker.py").write_text(
        f"import os, sys\nsys.path.insert(0, {str(root)!r})\nimport pdf_text\nread = pdf_text._read\n"
        "def _read(found, **rest):\n    if found[0].page_num in (1, 3):\n        os._exit(7)\n    return read(found, **rest)\n"
        f"pdf_text._read = _read\nimport runpy\nrunpy.run_path({str(root / 'pdf_worker.py')!r}, run_name='__main__')\n",
        encoding="utf-8",
    )
    pdf_process.close_children()
    monkeypatch.setattr(pdf_process, "ROOT", tmp_path)
    pages = list(PdfLoader(settings).pages(path, document_id="d"))
    pdf_process.close_children()
    assert sorted(page.page for page in pages) == [1, 2, 3, 4]
    assert {page.page: page.reason for page in pages if page.reason} == {1: "pdf_crashed", 3: "pdf_crashed"}


@pytest.mark.skipif(os.name == "nt", reason="no memory limit on Windows")
def test_image_bomb_breaks_only_the_child(tmp_path: Path, settings: Settings) -> None:
    import zlib

    import pikepdf

    side = 10_000
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page()
        stream = zlib.compressobj(9)
        data = b"".join([*(stream.compress(b"\0" * side) for _ in range(side)), stream.flush()])
        image = pikepdf.Stream(pdf, data)
        image.Type, image.Subtype, image.Filter = pikepdf.Name.XObject, pikepdf.Name.Image, pikepdf.Name.FlateDecode
        image.Width = image.Height = side
        image.BitsPerComponent, image.ColorSpace = 8, pikepdf.Name.DeviceGray
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=image))
        page.Contents = pikepdf.Stream(pdf, b"612 0 0 792 0 0 cm /Im0 Do")
        pdf.save(tmp_path / "bomb.pdf")
    small = settings.model_copy(update={"parse_memory_mb": 400})
    with pytest.raises(PdfError):
        parse_pdf(tmp_path / "bomb.pdf", settings=small)
    pdf_process.close_children()
    assert parse_pdf(made.plain_pdf(tmp_path / "next.pdf"), settings=settings).pages == 1
