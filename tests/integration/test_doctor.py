"""What `doctor` and `status` say of folders and of the web: what does not work is never shown as working."""

from __future__ import annotations

from pathlib import Path

import pytest

from bases import find_base
from config import Settings, load_settings
from doctor import Check, examine, status_record
from knowledge_base import open_knowledge_base


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(files_dir=tmp_path / "Files", data_dir=tmp_path / "data", language="en")


def check(settings: Settings, name: str, *, knowledge_base: str = "default") -> Check:
    return next(found for found in examine(settings, knowledge_base=knowledge_base) if found.name == name)


def test_a_folder_that_the_first_build_makes_says_so(settings: Settings) -> None:
    found = check(settings, "files")
    assert found.ok
    assert str(settings.files_dir) in found.detail
    assert "first build" in found.detail
    settings.files_dir.mkdir()
    assert check(settings, "files").detail == str(settings.files_dir)


def test_a_folder_that_is_gone_or_none_is_a_failure(settings: Settings) -> None:
    find_base(settings, name="default").create()
    settings.files_dir.rmdir()
    assert not check(settings, "files").ok
    settings.files_dir.write_text("a file", encoding="utf-8")
    assert not check(settings, "files").ok


def test_another_base_has_a_folder_of_its_own(settings: Settings) -> None:
    base = find_base(settings, name="Other")
    base.create()
    assert check(settings, "files", knowledge_base="Other").detail == str(base.files_dir)
    with open_knowledge_base(settings, name="Other") as knowledge_base:
        paths = status_record(settings, knowledge_base=knowledge_base)["paths"]
    assert paths["files"] == str(base.files_dir)


def test_a_base_that_does_not_exist_is_a_failure(settings: Settings) -> None:
    found = check(settings, "store", knowledge_base="tpyo")
    assert not found.ok
    assert "tpyo" in found.detail
    assert not check(settings, "files", knowledge_base="tpyo").ok


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_web_provider_without_its_key_is_a_failure(settings: Settings, mode: str) -> None:
    chosen = settings.model_copy(update={"web_providers": ("tavily",)})
    assert check(chosen, "web") == Check("web", ok=True, detail="off")
    found = check(load_settings(**{**settings.model_dump(), "web_search": mode, "web_providers": "tavily"}), "web")
    assert not found.ok
    assert "TAVILY_API_KEY" in found.detail
    assert found.hint
