"""A folder of files as the web: found in both languages, kept up to date, nothing of this machine in its addresses."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import cli
import web_library
from chunker import split_blocks
from config import ROOT, load_settings
from errors import ProviderUnavailableError
from keywords import Keywords
from schema import FULL_PAGE, Block, BlockParser, BlockType, Origin
from search import WebSearcher
from web_library import LibraryProvider


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(web_library, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(web_library, "REFRESH_SECONDS", 60.0)
    folder = tmp_path / "web 资料"
    (folder / "sub").mkdir(parents=True)
    (folder / "towers.md").write_text(
        "# Towers\n\nGeneral remarks.\n\n## Pharos\n\nThe lighthouse was 100 metres tall.\n", encoding="utf-8"
    )
    (folder / "sub" / "长城 笔记.txt").write_text("长城全长二万一千一百九十六公里。\n\n秦始皇修筑。", encoding="utf-8")
    (folder / "ignored.html").write_text("The lighthouse was one metre tall.", encoding="utf-8")
    return folder


@pytest.fixture
def library(tmp_path: Path, folder: Path) -> LibraryProvider:
    return LibraryProvider(load_settings(data_dir=tmp_path / "data"), folder=folder)


def test_english_by_stem_with_the_headings_as_title(library: LibraryProvider) -> None:
    (best, *_) = library.find("How tall were the lighthouses?", language="en", limit=3)
    assert (best.url, best.title) == ("library:towers.md", "Towers – Pharos")
    assert best.text == "The lighthouse was 100 metres tall."


def test_chinese_by_pairs(library: LibraryProvider) -> None:
    (best,) = library.find("万里长城有多长", language="zh", limit=3)
    assert "二万一千" in best.text
    assert best.title == "长城 笔记"
    assert best.url == "library:sub/%E9%95%BF%E5%9F%8E%20%E7%AC%94%E8%AE%B0.txt"


def test_pdf_leads_to_its_page(library: LibraryProvider, folder: Path) -> None:
    sample = min((ROOT / "Files").glob("*sample*.pdf"))
    shutil.copy(sample, folder / "k2.pdf")
    found = library.find("青禾 重量", language="zh", limit=5)
    assert any(result.url.startswith("library:k2.pdf#page=") for result in found)


def test_nothing_shared_is_nothing_found(library: LibraryProvider) -> None:
    assert library.find("xylophone", language="en", limit=3) == []
    assert library.find("!?", language="en", limit=3) == []
    assert library.find('" OR search:*', language="en", limit=3) == []


def test_only_what_changed_is_read_again(library: LibraryProvider, folder: Path) -> None:
    assert library.refresh() == 2
    assert library.refresh() == 0
    path = folder / "towers.md"
    path.write_text("# Towers\n\nThe campanile leans.", encoding="utf-8")
    os.utime(path, (1, 1))
    assert library.refresh() == 1
    assert library.find("lighthouse", language="en", limit=3) == []
    assert len(library.find("campanile", language="en", limit=3)) == 1
    path.unlink()
    assert library.find("campanile", language="en", limit=3) == []


def test_large_folder_is_indexed_over_several_searches(
    library: LibraryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_library, "REFRESH_SECONDS", 0.0)
    assert len(library.find("lighthouse 长城", language="zh", limit=3)) == 1
    assert len(library.find("lighthouse 长城", language="zh", limit=3)) == 2
    assert library.refresh() == 0


def test_index_outlives_the_process_and_not_the_folder(library: LibraryProvider, folder: Path, tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data")
    library.refresh()
    assert LibraryProvider(settings, folder=folder).refresh() == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("Only this file is in the other folder.", encoding="utf-8")
    assert (
        LibraryProvider(settings, folder=other).find("lighthouse file", language="en", limit=5)[0].url
        == "library:a.txt"
    )
    assert len(LibraryProvider(settings, folder=other).find("lighthouse file", language="en", limit=5)) == 1


def test_index_is_made_anew_for_other_passages(library: LibraryProvider, folder: Path, tmp_path: Path) -> None:
    library.refresh()
    smaller = load_settings(data_dir=tmp_path / "data", chunk_size=100)
    assert LibraryProvider(smaller, folder=folder).refresh() == 2


def test_passages_are_those_that_the_knowledge_base_would_make(library: LibraryProvider, folder: Path) -> None:
    text = "长城很长，也很旧，修了很多年才修完。" * 60
    (folder / "wall.txt").write_text(text, encoding="utf-8")
    block = Block("x", 1, 0, BlockType.TEXT, text, FULL_PAGE, BlockParser.TEXT)
    chunks = [chunk.text for chunk in split_blocks([block], file="x", chunk_size=900)]
    found = [result.text for result in library.find("长城很旧", language="zh", limit=9) if "wall" in result.url]
    assert sorted(found) == sorted(chunks)


def test_a_slow_start_costs_the_library_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is asked the question itself: no keywords are made for it, and none of its time is spent on them."""

    def never(*_: object, **__: object) -> Keywords:
        raise AssertionError("keywords are for providers elsewhere")

    monkeypatch.setattr("search.extract_keywords", never)
    settings = load_settings(
        data_dir=tmp_path / "data", web_search="auto", web_providers=("library",), web_library_dir=folder
    )
    assert WebSearcher(settings).search("What is it about lighthouses?", language="en").documents


def test_broken_file_leaves_the_others(
    library: LibraryProvider, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "a.pdf").write_bytes(b"%PDF-1.7 broken")
    assert library.find("lighthouse", language="en", limit=3)
    assert "a.pdf" in caplog.text


def test_links_out_of_the_folder_are_not_followed(library: LibraryProvider, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("A secret zeppelin.", encoding="utf-8")
    (folder / "link.txt").symlink_to(outside)
    assert library.find("zeppelin", language="en", limit=3) == []


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    library = LibraryProvider(load_settings(data_dir=tmp_path), folder=tmp_path / "none")
    with pytest.raises(ProviderUnavailableError):
        library.find("x", language="en", limit=3)


def test_folder_that_is_not_there_is_named_as_a_wrong_setting(tmp_path: Path) -> None:
    settings = load_settings(
        data_dir=tmp_path, web_search="auto", web_providers=("library",), web_library_dir=tmp_path / "none"
    )
    report = WebSearcher(settings).search("How tall was the lighthouse?", language="en")
    assert (report.error_code, report.error) == ("configuration", "CRAG_WEB_LIBRARY_DIR is not set correctly")


def test_the_verb_indexes_all_of_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CRAG_WEB_LIBRARY_DIR", str(folder))
    monkeypatch.setattr(web_library, "REFRESH_SECONDS", 0.0)
    for read in (2, 0):
        assert cli.main(["index-library", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"read": read, "files": 2, "passages": 3}


def test_index_that_is_not_complete_is_told(
    library: LibraryProvider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(web_library, "REFRESH_SECONDS", 0.0)
    library.find("lighthouse", language="en", limit=3)
    assert "index-library" in caplog.text
    caplog.clear()
    library.find("lighthouse", language="en", limit=3)
    assert caplog.text == ""


def test_search_with_the_library(folder: Path, tmp_path: Path) -> None:
    settings = load_settings(
        data_dir=tmp_path / "data", web_search="auto", web_providers=("library",), web_library_dir=folder
    )
    question = "How tall was the lighthouse?"
    report = WebSearcher(settings).search(question, language="en")
    document = report.documents[0]
    assert (document.origin, document.url, document.heading_path) == (
        Origin.WEB,
        "library:towers.md",
        ("Towers – Pharos",),
    )
    assert (report.queries, report.provider) == ((question,), "library")
    assert str(tmp_path) not in repr(report)
