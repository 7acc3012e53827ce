"""What is handed in is written whole, once, under a harmless name."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from errors import StoreError
from uploads import Arrival, library_name, save_upload


def test_same_bytes_are_kept_once(tmp_path: Path) -> None:
    assert save_upload(tmp_path, name="a.pdf", data=b"%PDF-1").arrival is Arrival.ADDED
    again = save_upload(tmp_path, name="b.pdf", data=b"%PDF-1")
    assert (again.arrival, again.same_as) == (Arrival.ALREADY_HERE, "a.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pdf"]


def test_new_bytes_replace(tmp_path: Path) -> None:
    save_upload(tmp_path, name="a.pdf", data=b"%PDF-1")
    assert save_upload(tmp_path, name="a.pdf", data=b"%PDF-2").arrival is Arrival.REPLACED
    assert (tmp_path / "a.pdf").read_bytes() == b"%PDF-2"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.pdf", "passwd.pdf"),
        ("C:\\Users\\x\\report.PDF", "report.pdf"),
        ("年度报告（终稿） v2 [1].pdf", "年度报告（终稿） v2 [1].pdf"),
        (unicodedata.normalize("NFD", "café.pdf"), "café.pdf"),
        (".hidden.pdf", "hidden.pdf"),
        ("a\nb\u202e.pdf", "ab.pdf"),
        ("..pdf", "document.pdf"),
        ("noending", "noending.pdf"),
    ],
)
def test_names_are_harmless(name: str, kept: str) -> None:
    assert library_name(name) == kept


def test_long_chinese_names_fit_the_file_system(tmp_path: Path) -> None:
    upload = save_upload(tmp_path, name="报" * 200 + ".pdf", data=b"%PDF")
    assert len(upload.file.encode()) <= 240
    assert (tmp_path / upload.file).is_file()


def test_a_folder_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StoreError) as caught:
        save_upload(blocked, name="a.pdf", data=b"%PDF")
    assert caught.value.code == "upload_failed"
