"""Several knowledge bases with any display name, each with its own files and store."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bases import find_base, list_bases
from errors import ConfigurationError
from tests.integration.helpers_store import check_complete, find, open_base, settings_at, write_pdf

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(str.strip)


def test_bases_keep_their_files_and_answers_apart(tmp_path: Path) -> None:
    with open_base(tmp_path) as first, open_base(tmp_path, name="年度报告 / 2026") as second:
        write_pdf(first.files_dir / "a.pdf", pages=[["Herons wait."]])
        write_pdf(second.files_dir / "a.pdf", pages=[["Lamps glow."]])
        assert second.files_dir.parent == first.files_dir
        assert second.files_dir.name.startswith("年度报告_2026-")
        for base in (first, second):
            assert base.build().documents == 1
            check_complete(base)
        assert find(first, "heron") == ["Herons wait."]
        assert find(second, "heron") == ["Lamps glow."]
        assert first.build().as_json()["totals"]["documents"] == 1
        first.delete("a.pdf")
        assert find(second, "lamps") == ["Lamps glow."]
    assert [base.name for base in list_bases(settings_at(tmp_path))] == ["default", "年度报告 / 2026"]


def test_default_is_always_listed(tmp_path: Path) -> None:
    assert [base.name for base in list_bases(settings_at(tmp_path))] == ["default"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_impossible_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError):
        find_base(settings_at(tmp_path), name=name)


@given(NAMES)
def test_any_name_gives_one_safe_folder_of_its_own(name: str) -> None:
    settings = settings_at(Path("somewhere"))
    base = find_base(settings, name=name)
    assert base.folder.parent == settings.data_dir / "bases"
    assert len(base.folder.name.encode()) < 200
    assert not set(base.folder.name) & set('/\\:*?"<>|. \n\0')
    assert find_base(settings, name=f" {name} ") == base


@given(NAMES, NAMES)
def test_two_names_never_share_a_folder(first: str, second: str) -> None:
    settings = settings_at(Path("somewhere"))
    one, two = find_base(settings, name=first), find_base(settings, name=second)
    assert (one.name == two.name) == (one.folder == two.folder)
