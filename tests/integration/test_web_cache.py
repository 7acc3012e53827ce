"""The cache of the web: a day, a size, a verb to clear it, and never a reason to fail."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import cli
from config import load_settings
from web_cache import WebCache, build_cache, clear_cache


@pytest.fixture
def cache(tmp_path: Path) -> WebCache:
    return WebCache(tmp_path / "cache.sqlite3", hours=24, max_bytes=1000)


def test_keeps_and_replaces(cache: WebCache) -> None:
    assert cache.get("a") is None
    cache.put("a", text="一")
    cache.put("a", text="二")
    assert cache.get("a") == "二"


def test_forgets_after_its_hours(cache: WebCache, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    cache.put("old", text="x")
    now += 24 * 3600 - 1
    assert cache.get("old") == "x"
    now += 1
    assert cache.get("old") is None
    cache.put("new", text="y")
    assert cache.clear() == 1, "the old entry was removed from the file"


@pytest.mark.parametrize(("hours", "seconds"), [(24.0, 600), (0.1, 360)])
def test_forgets_a_brief_one_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float, seconds: int
) -> None:
    cache = WebCache(tmp_path / "cache.sqlite3", hours=hours, max_bytes=1000)
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    cache.put("none", text="[]", brief=True)
    now += seconds - 1
    assert cache.get("none") == "[]"
    now += 2
    assert cache.get("none") is None


def test_file_stays_near_its_size(tmp_path: Path) -> None:
    cache = WebCache(tmp_path / "cache.sqlite3", hours=24, max_bytes=1_000_000)
    for number in range(60):
        cache.put(str(number), text=str(number % 10) * 100_000)
    assert cache.path.stat().st_size < 1_500_000
    assert cache.get("59") is not None


def test_drops_the_oldest_over_its_size(cache: WebCache, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        monkeypatch.setattr(time, "time", lambda now=1_000_000.0 + number: now)
        cache.put(str(number), text="字" * 100)
    assert [cache.get(str(number)) is not None for number in range(6)] == [False, False, False, True, True, True]


def test_of_no_hours_keeps_nothing(tmp_path: Path) -> None:
    cache = WebCache(tmp_path / "cache.sqlite3", hours=0, max_bytes=1000)
    cache.put("a", text="x")
    assert cache.get("a") is None
    assert not cache.path.exists()


def test_broken_file_costs_the_cache_only(cache: WebCache) -> None:
    cache.path.write_bytes(b"this is no database, and long enough to be read as one" * 40)
    cache.put("a", text="x")
    assert cache.get("a") is None


def test_clear_by_settings(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data")
    assert clear_cache(settings) == 0
    build_cache(settings).put("a", text="x")
    assert clear_cache(settings) == 1
    assert build_cache(settings).get("a") is None


def test_cleared_by_the_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path / "data"))
    cache = build_cache(load_settings())
    cache.put("a", text="x")
    assert cli.main(["clear-web-cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"cleared": True}
    assert cache.get("a") is None
