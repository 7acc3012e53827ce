"""`calibrate FILE --save`: thresholds of each language that the file has, beside those in force before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli import main
from config import load_settings, save_settings
from crag import chosen_thresholds
from evaluator import ReaderEvaluator
from reader import Reader

FACTS = [("pump", "red", "2010"), ("mill", "green", "2011"), ("crane", "blue", "2012"), ("ferry", "white", "2013")]


def test_what_is_fitted_is_saved_for_its_language_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = []
    for thing, colour, year in FACTS:
        text = f"The {thing} was built in {year}."
        rows.append({"question": f"When was the {thing} built?", "passages": [text], "labels": [1], "answers": [year]})
        rows.append({"question": f"What colour is the {thing}?", "passages": [text], "labels": [0]})
        rows.append({"question": f"Who owns the {thing}?", "passage": f"It is {colour}.", "label": 0})
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path / "data"))
    evaluator = ReaderEvaluator(Reader())
    assert main(["calibrate", str(path), "--save", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said["languages"]) == ["en"]
    after = load_settings()
    fitted = chosen_thresholds(after, "en", evaluator=evaluator)
    assert fitted.upper == said["languages"]["en"]["thresholds"]["upper"]
    assert chosen_thresholds(after, "zh", evaluator=evaluator) == evaluator.thresholds(language="zh")
    monkeypatch.setenv("CRAG_LOWER", "0.99")
    assert main(["calibrate", str(path), "--save", "--json"]) == 1
    assert "0.99" in json.loads(capsys.readouterr().out)["error"]["message"]
    monkeypatch.delenv("CRAG_LOWER")
    assert main(["calibrate", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["languages"]["en"]["previous"]["upper"] == fitted.upper


def test_what_was_saved_for_both_languages_stays_for_the_one_that_is_not_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"question": f"When was {thing} built?", "passage": f"The {thing} is {colour}.", "label": 0}
        for thing, colour, _ in FACTS * 2
    ]
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path / "data"))
    save_settings(tmp_path / "data", changes={"upper": 0.5})
    assert main(["calibrate", str(path), "--save", "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)["languages"]["en"]["thresholds"]["upper"]
    evaluator = ReaderEvaluator(Reader())
    after = load_settings()
    assert chosen_thresholds(after, "en", evaluator=evaluator).upper == fitted != 0.5
    kept = chosen_thresholds(after, "zh", evaluator=evaluator)
    assert kept == replace(evaluator.thresholds(language="zh"), upper=0.5)
