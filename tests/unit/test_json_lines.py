"""JSONL in: a line that cannot be read is an error line of its own, and the others are answered."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import verbs
from config import load_settings
from errors import ConfigurationError
from json_lines import read_rows, run_batch
from schema import Grade

GOOD = '{"id": 1, "question": "水有多深？"}'
LAST = '{"id": 3, "question": "last"}'


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def echo(path: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert run_batch(path, work=lambda row: {"question": row["question"]}) == 0
    return [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]


@pytest.mark.parametrize("wrong", [b"{oops", b'"text"', '{"id": 2, "question": "你好"}'.encode("gbk")])
@pytest.mark.parametrize("piped", [False, True])
def test_a_wrong_line_is_an_error_line_and_the_others_are_answered(
    wrong: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, piped: bool
) -> None:
    data = b"\n".join([GOOD.encode(), wrong, b"", LAST.encode()])
    (tmp_path / "rows.jsonl").write_bytes(data)
    give(monkeypatch, data)
    first, second, third = echo("-" if piped else str(tmp_path / "rows.jsonl"), capsys)
    assert (first["id"], first["question"], third["id"]) == (1, "水有多深？", 3)
    assert second["id"] is None
    assert second["error"]["code"] == "input_line"
    assert "line 2" in second["error"]["message"]


@pytest.mark.parametrize("piped", [False, True])
def test_a_byte_order_mark_and_carriage_returns_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, piped: bool
) -> None:
    data = f"{GOOD}\r\n{LAST}\r\n".encode("utf-8-sig")
    (tmp_path / "rows.jsonl").write_bytes(data)
    give(monkeypatch, data)
    found = echo("-" if piped else str(tmp_path / "rows.jsonl"), capsys)
    assert [row["id"] for row in found] == [1, 3]


def test_only_a_line_feed_ends_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "question": "a\u2028b\u0085c"}\n', encoding="utf-8")
    assert [row["question"] for row in echo(str(tmp_path / "rows.jsonl"), capsys)] == ["a\u2028b\u0085c"]


def test_where_all_rows_are_needed_the_first_wrong_one_is_the_error(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(f"{GOOD}\n{{oops\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 2"):
        list(read_rows(str(tmp_path / "rows.jsonl")))
    with pytest.raises(ConfigurationError) as caught:
        list(read_rows(str(tmp_path / "none.jsonl")))
    assert caught.value.code == "input_unreadable"


class Lengths:
    """An evaluator whose score is the length of a passage; it notes what it was asked together."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        self.asked.append((question, len(passages)))
        return [Grade(len(passage) / 100) for passage in passages]


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> Lengths:
    evaluator = Lengths()
    monkeypatch.setattr(verbs, "_evaluator", lambda _: evaluator)
    return evaluator


def test_a_row_that_lacks_something_spoils_no_other(
    lengths: Lengths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": "a", "question": "q", "passage": "x"},
        {"id": "b", "question": "q"},
        {"id": "c", "passage": "xx"},
        {"id": "d", "question": "q", "passage": "xxx"},
    ]
    give(monkeypatch, "\n".join(map(json.dumps, rows)).encode())
    assert verbs.score(load_settings(), argparse.Namespace()) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in found] == ["a", "b", "c", "d"]
    assert [row.get("score") for row in found] == [0.01, None, None, 0.03]
    assert "'passage'" in found[1]["error"]["message"]
    assert "'question'" in found[2]["error"]["message"]


def test_passages_of_one_question_that_come_together_are_graded_together(
    lengths: Lengths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": n, "question": "q" if n < 10 else "r", "passage": "x" * n} for n in range(1, 13)]
    give(monkeypatch, "\n".join(map(json.dumps, rows)).encode())
    assert verbs.score(load_settings(), argparse.Namespace()) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == list(range(1, 13))
    assert lengths.asked == [("q", 9), ("r", 3)]


def test_a_caller_that_waits_for_each_answer_gets_it(lengths: Lengths, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_read, rows_written = os.pipe()
    lines_read, lines_written = os.pipe()
    with (
        os.fdopen(rows_read, encoding="utf-8") as stdin,
        os.fdopen(lines_written, "w", encoding="utf-8") as stdout,
        os.fdopen(lines_read, encoding="utf-8") as answers,
        os.fdopen(rows_written, "w", encoding="utf-8") as asked,
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        received: list[str] = []
        worker = threading.Thread(target=verbs.score, args=(load_settings(), argparse.Namespace()), daemon=True)
        worker.start()
        for number in (1, 2):
            print(json.dumps({"id": number, "question": "same", "passage": "x"}), file=asked, flush=True)
            reader = threading.Thread(target=lambda: received.append(answers.readline()), daemon=True)
            reader.start()
            reader.join(10)
            assert len(received) == number, "no answer came while the caller waited"
        asked.close()
        worker.join(10)
    assert [json.loads(line)["id"] for line in received] == [1, 2]
