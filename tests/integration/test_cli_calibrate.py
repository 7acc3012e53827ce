"""`calibrate FILE --save`: thresholds of each language that the file has, beside those in force before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli import main
from config import load_settings
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
