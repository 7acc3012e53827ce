import io
import json
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cli
from config import ROOT, get_settings

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base with the sample PDF, and a file that is none, built once."""
    files, data = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("data")
    for sample in (ROOT / "Files").glob("*sample*.pdf"):
        shutil.copy(sample, files)
    (files / "坏 文件 (1).pdf").write_bytes(b"not a pdf at all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRAG_FILES_DIR", str(files))
        patch.setenv("CRAG_DATA_DIR", str(data))
        get_settings.cache_clear()
        assert cli.main(["build"]) == 0
    return files, data


@pytest.fixture
def run(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("CRAG_FILES_DIR", str(folders[0]))
    monkeypatch.setenv("CRAG_DATA_DIR", str(folders[1]))
    get_settings.cache_clear()

    def call(*arguments: str, rows: list[dict[str, Any]] | None = None, code: int = 0) -> list[dict[str, Any]]:
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows or [])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
        capsys.readouterr()
        assert cli.main([*arguments, "--json"]) == code
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return call


def test_build_reports_each_file_and_totals_read_back(run: Run) -> None:
    (report,) = run("build")
    states = {document["file"]: document for document in report["documents"]}
    assert states["坏 文件 (1).pdf"]["status"] == "failed"
    assert states["坏 文件 (1).pdf"]["error"]["code"] == "pdf_not_pdf"
    good = [document for document in report["documents"] if document["status"] == "unchanged"]
    assert good
    assert report["totals"]["failed"] == 1
    assert report["totals"]["chunks"] == sum(document["chunks"] for document in good) > 0


def test_ask_one_and_a_batch(run: Run, tmp_path: Path) -> None:
    batch = tmp_path / "questions.jsonl"
    batch.write_text('{"id": "a", "question": "What is the capital of Mongolia?"}\n\n{"id": "b"}\n', encoding="utf-8")
    first, second = run("ask", "--batch", str(batch))
    assert (first["id"], first["refused"], first["citations"]) == ("a", True, [])
    assert first["action"] in {"incorrect", "ambiguous"}
    assert second["id"] == "b"
    assert second["error"]["code"] == "configuration"
    (single,) = run("ask", "蒙古的首都是哪里？")
    assert single["language"] == "zh"
    assert single["refused"]


def test_retrieve_gives_documents_with_channels(run: Run) -> None:
    (found,) = run("retrieve", "office", "-k", "3")
    assert 0 < len(found["documents"]) <= 3
    assert all(document["channels"] and document["bbox"] for document in found["documents"])


def test_retrieve_keeps_to_a_section_and_shows_the_neighbours(run: Run) -> None:
    (found,) = run("retrieve", "office", "-k", "20")
    headings = {heading for document in found["documents"] for heading in document["heading_path"]}
    assert len(headings) > 1
    wanted = sorted(headings)[0]
    (kept,) = run("retrieve", "office", "-k", "20", "--section", wanted, "--around", "1")
    assert 0 < len(kept["documents"]) < len(found["documents"])
    for document in kept["documents"]:
        assert wanted in document["heading_path"]
        assert document["text"] in [neighbour["text"] for neighbour in document["neighbours"]]
        assert 1 <= len(document["neighbours"]) <= 3


def test_score_act_and_refine_read_lines(run: Run) -> None:
    question = "In which year was the observatory opened?"
    good, bad = "The observatory was opened in 1931 by the city.", "The bakery sells bread and cakes every morning."
    pairs = [{"id": 1, "question": question, "passage": good}, {"id": 2, "question": question, "passage": bad}]
    one, two = run("score", rows=pairs)
    assert (one["id"], two["id"]) == (1, 2)
    assert -1 <= two["score"] < one["score"] <= 1
    (acted,) = run("act", rows=[{"id": "x", "question": question, "passages": [good, bad]}])
    assert acted["action"] == "correct"
    assert acted["scores"] == pytest.approx([one["score"], two["score"]], abs=2e-3)
    refined, given = run(
        "refine",
        rows=[
            {"id": "p", "question": question, "passages": [f"{good} {bad} {bad}"]},
            {"id": "s", "question": question, "strips": [bad, good]},
        ],
    )
    assert good in refined["knowledge"]
    assert [strip["kept"] for strip in given["strips"]][1]
    assert given["strips"][1]["score"] > given["strips"][0]["score"]


def test_parse_list_and_status(run: Run, folders: tuple[Path, Path]) -> None:
    sample = next(folders[0].glob("*sample*.pdf"))
    (parsed,) = run("parse", str(sample))
    assert parsed["pages"] >= 1
    names = {"page", "order", "type", "level", "text", "html", "bbox", "parts", "parser", "confidence"}
    assert all(names <= block.keys() for block in parsed["blocks"])
    (listed,) = run("list")
    assert {document["file"] for document in listed["documents"]} >= {sample.name}
    (status,) = run("status")
    assert status["chunks"] == status["vectors"] > 0
    assert set(status["thresholds"]) == {"zh", "en"}


def test_a_typed_error_is_json_and_exit_code_one(run: Run, tmp_path: Path) -> None:
    (failed,) = run("parse", str(tmp_path / "missing.pdf"), code=1)
    assert failed["error"].keys() >= {"code", "message", "hint"}
    assert failed["error"]["hint"]
    (failed,) = run("delete", "no such file.pdf", code=1)
    assert failed["error"]["code"]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["ask"], ["ask", " "], ["retrieve"], ["build", "--password", "abc"]]
)
def test_wrong_usage_is_exit_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: cli.py" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["ask", "retrieve"])
def test_a_file_that_is_in_no_list_is_named(run: Run, verb: str) -> None:
    (failed,) = run(verb, "office", "--file", "qinghe.pdf", code=1)
    assert failed["error"]["code"] == "file_unknown"
    assert "qinghe.pdf" in failed["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [["ask", "office"], ["retrieve", "office"], ["list"], ["status"], ["delete", "a.pdf"], ["ask", "--batch", "-"]],
)
def test_a_knowledge_base_that_was_never_built_is_named(
    run: Run, folders: tuple[Path, Path], arguments: list[str]
) -> None:
    before = sorted(folders[1].rglob("*"))
    (failed,) = run(*arguments, "--kb", "tpyo", code=1)
    assert failed["error"]["code"] == "base_unknown"
    assert "tpyo" in failed["error"]["message"]
    assert sorted(folders[1].rglob("*")) == before


def test_a_file_is_found_in_another_form_of_its_name(
    run: Run, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = tmp_path / "Files"
    files.mkdir()
    shutil.copy(next(folders[0].glob("*sample*.pdf")), files / unicodedata.normalize("NFD", "café.pdf"))
    monkeypatch.setenv("CRAG_FILES_DIR", str(files))
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path / "data"))
    get_settings.cache_clear()
    run("build")
    (found,) = run("retrieve", "office", "--file", unicodedata.normalize("NFC", "café.pdf"))
    assert found["documents"]


def test_help_is_quick_and_loads_no_model() -> None:
    code = "import sys, cli; print([m for m in ('chromadb', 'onnxruntime', 'torch', 'streamlit') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_people_read_words_not_json(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAG_FILES_DIR", str(folders[0]))
    monkeypatch.setenv("CRAG_DATA_DIR", str(folders[1]))
    monkeypatch.setenv("CRAG_LANGUAGE", "zh")
    get_settings.cache_clear()
    for arguments in (["ask", "蒙古的首都是哪里？"], ["list"], ["status"], ["retrieve", "office"], ["build"]):
        assert cli.main(arguments) == 0
        shown = capsys.readouterr()
        assert shown.out.strip()
        assert "cli." not in shown.out + shown.err
        assert "Traceback" not in shown.err
