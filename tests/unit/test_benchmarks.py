"""The benchmarks' own arithmetic, and that no text quotes a figure that the stored run doesn't have."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import errors, plots, quotes, report, rgb
from benchmarks.answering import answered, chosen, kind_of_error, summarise
from benchmarks.baselines import BestSentences, RankOrder, WholeDocuments, bm25_scores, passage_document
from benchmarks.common import RESULTS_DIR, Options, figures, rate, table
from benchmarks.strip_variants import fixed_words, sentence_groups
from config import ROOT
from schema import Thresholds

LIMITS = Thresholds(0.5, -0.5, -0.5)


def stored(folder: Path, **values: float) -> Path:
    (folder / "answering.json").write_text(json.dumps({"figures": values}), encoding="utf-8")
    return folder


def row(**changes: Any) -> dict[str, Any]:
    good = {
        "answerable": True,
        "contains": True,
        "cited": True,
        "retrieved": True,
        "refused": False,
        "refusal_reason": "",
        "first_cited": True,
        "source": "handwritten",
        "lang": "en",
        "system": "CRAG",
        "answer": "x",
        "seconds": 1.0,
    }
    return {**good, **changes}


@pytest.mark.parametrize("name", quotes.QUOTING)
def test_the_readme_quotes_only_stored_figures(name: str) -> None:
    path = ROOT / name
    if not path.is_file():
        pytest.skip(f"no {name}")
    found = list(quotes.quotes(path.read_text(encoding="utf-8")))
    assert [(quote.name, quote.shown) for quote in found] == [(quote.name, quote.stored) for quote in found]


def test_the_page_of_benchmarks_is_the_stored_run() -> None:
    if not any(RESULTS_DIR.glob("*.json")):
        pytest.skip("no stored results")
    assert report.PAGE.read_text(encoding="utf-8") == "\n".join(report.page(RESULTS_DIR)) + "\n"


def test_stored_results_hold_no_text_of_the_data() -> None:
    for path in RESULTS_DIR.glob("*.json"):
        for item in json.loads(path.read_text(encoding="utf-8")).get("rows", []):
            if isinstance(item, dict):
                assert not {"question", "answer", "answers", "expected", "quote", "text"} & item.keys(), path.name


def test_a_quoted_figure_that_differs_is_found(tmp_path: Path) -> None:
    folder = stored(tmp_path, zh_cited=0.953)
    text = "<!-- figure: answering.zh_cited -->0.94<!-- /figure --> of the pages"
    (quote,) = quotes.quotes(text, folder=folder)
    assert (quote.shown, quote.stored) == ("0.94", "0.95")
    assert quotes.requoted(text, folder=folder) == text.replace("0.94", "0.95")


@pytest.mark.parametrize(
    ("like", "expected"),
    [("95 %", "95 %"), ("94.1%", "95.3%"), ("0.9", "1.0"), ("约 0.123 秒", "约 0.953 秒"), ("90％", "95％")],
)
def test_a_quoted_figure_keeps_its_form(tmp_path: Path, like: str, expected: str) -> None:
    assert quotes.written("answering.value", like=like, folder=stored(tmp_path, value=0.953)) == expected


def test_thousands_keep_their_commas(tmp_path: Path) -> None:
    assert quotes.written("answering.value", like="1,000", folder=stored(tmp_path, value=20500.2)) == "20,500"


def test_an_unknown_figure_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no stored figure"):
        quotes.figure("answering.nothing", folder=tmp_path)


def test_figures_are_named_by_keys_and_column() -> None:
    rows = [{"lang": "zh", "n": 3, "page cited": 0.5, "refused": None, "ok": True}]
    assert figures(rows, keys=("lang",)) == {"zh.n": 3, "zh.page_cited": 0.5}


def test_tables_show_what_is_missing() -> None:
    assert table([{"a": 1, "b": None}, {"a": 0.5}]).splitlines()[2:] == ["| 1 | – |", "| 0.500 | – |"]
    assert rate([], "x") is None


def test_an_answer_is_found_whatever_its_spaces_width_and_case() -> None:
    assert answered(["４，０００ 万千米"], text="年产能 4,000\n万千米")
    assert answered(["IBM i 7.2"], text="since ibm I 7.2.")
    assert not answered(["2003年"], text="2013年")
    assert not answered([], text="anything")
    assert answered(["a", "z"], text="a b")
    assert not answered(["a", "z"], text="a b", needs_all=True)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, ""),
        ({"retrieved": False, "cited": False}, "gold page not retrieved"),
        ({"refused": True, "cited": False, "contains": False, "refusal_reason": "no_strip"}, "refused (no_strip)"),
        ({"cited": False}, "gold page not cited"),
        ({"contains": False}, "answer string not quoted"),
        ({"answerable": False}, "answered the unanswerable"),
        ({"answerable": False, "refused": True}, ""),
    ],
)
def test_errors_are_named_by_the_first_stage_that_failed(changes: dict[str, Any], kind: str) -> None:
    assert kind_of_error(row(**changes)) == kind


def test_the_summary_keeps_the_unanswerable_apart() -> None:
    rows = [row(), row(refused=True, contains=False), row(answerable=False, refused=True), row(system="plain RAG")]
    rows += [row(lang="zh", source=source) for source in ("handwritten", "OHR-Bench")]
    summary = {(line["source"], line["lang"], line["system"]): line for line in summarise(rows)}
    crag = summary["handwritten", "en", "CRAG"]
    assert (crag["n"], crag["n unanswerable"]) == (2, 1)
    assert (crag["answer string"], crag["false refusals"], crag["refused"]) == (0.5, 0.5, 1.0)
    assert crag["time ×"] == 1.0
    assert ("OHR-Bench", "all", "CRAG") in summary
    assert ("OHR-Bench", "zh", "CRAG") not in summary


def test_the_sample_is_seeded_and_spares_the_handwritten_questions() -> None:
    rows = [
        {"id": f"{source}{n}", "source": source, "lang": "en", "answerable": True}
        for source in ("handwritten", "OHR-Bench")
        for n in range(9)
    ]
    rest = argparse.Namespace(source=None, sample=3)
    options = Options(limit=0, seed=1, out=None, rest=rest)
    picked = [item["id"] for item in chosen(rows, options=options)]
    assert picked == [item["id"] for item in chosen(rows, options=options)]
    assert sum(name.startswith("handwritten") for name in picked) == 9
    assert sum(name.startswith("OHR") for name in picked) == 3


def test_the_baselines_answer_with_whole_passages_and_the_best_sentence() -> None:
    documents = [
        passage_document("Tulips are red. The river is long and wide.", name="a", rank=1),
        passage_document(
            "The castle was built in 1203 by the first duke of the valley. It has towers.", name="b", rank=2
        ),
    ]
    whole = WholeDocuments(limit=1).refine(["castle"], documents=documents, thresholds=LIMITS)
    assert [strip.text for strip in whole.kept] == [documents[0].text]
    best = BestSentences().refine(["When was the castle built?"], documents=documents, thresholds=LIMITS)
    assert "1203" in best.text
    assert bm25_scores("zzz", texts=["a b"]) == [0.0]
    assert [grade.score for grade in RankOrder().grade("", passages=["a", "b"])] == [1.0, 0.99]


def test_strip_variants_cover_the_text() -> None:
    text = "One is here. Two is here. Three is here. Four is here."
    assert [text[a:b] for a, b in sentence_groups(text)] == [
        "One is here. Two is here. Three is here.",
        "Four is here.",
    ]
    words = " ".join(f"w{n}" for n in range(120))
    assert [len(words[a:b].split()) for a, b in fixed_words(words)] == [50, 50, 20]
    assert [b - a for a, b in fixed_words("汉" * 150)] == [100, 50]


def test_rgb_mixes_noise_as_the_paper_does() -> None:
    item = {
        "id": "x",
        "lang": "zh",
        "task": "noise_robustness+negative_rejection",
        "query": "q",
        "answer": ["a"],
        "positive": [f"p{n}" for n in range(5)],
        "negative": [f"n{n}" for n in range(6)],
    }
    tasks = list(rgb._tasks_of(item))
    assert [sum(text.startswith("n") for text in task.passages) for task in tasks] == [0, 1, 2, 3, 4, 5]
    assert tasks[-1].kind == rgb.REJECTION
    assert all(len(task.passages) == 5 for task in tasks)
    parts = {**item, "task": "information_integration", "positive_parts": [["a1", "a2", "a3"], ["b1", "b2"]]}
    first, *_, last = rgb._tasks_of(parts)
    assert first.passages == ("a1", "b1", "a2", "b2", "a3")
    assert last.passages == ("a1", "b1", "a2", "n0", "n1")
    assert first.answers == (("a",),)
    spelt = {**item, "answer": [["4 May", "May 4"], "Bern"]}
    assert next(rgb._tasks_of(spelt)).answers == (("4 May", "May 4"), ("Bern",))


def test_the_error_browser_counts_kinds_and_shows_a_case() -> None:
    cases: list[dict[str, Any]] = [
        {"id": "1", "wrong": "gold page not cited", "question": "q?", "expected": ["x"], "gold": [["f.pdf", 2]],
         "documents": [["f.pdf", 2, 0.4]], "strips": [["f.pdf", 2, -0.7, False, "the strip"]], "answer": "long " * 200},
        {"id": "2", "wrong": ""},
    ]  # fmt: skip
    first, right = errors.kinds(cases)
    assert (first["kind"], first["cases"], first["share"], first["ids"]) == ("gold page not cited", 1, 0.5, "1")
    assert right["cases"] == 1
    text = "\n".join(errors.shown(cases[0]))
    assert "document +0.400 f.pdf p. 2 ← gold" in text
    assert "strip -0.700 dropped gold f.pdf p. 2: the strip" in text
    assert len(text) < 1000


def test_the_command_knows_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "nothing"])
    with pytest.raises(SystemExit, match="NAME: answering"):
        command.main()


def test_the_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sweeps = [
        {"setting": name, "value": value, **dict.fromkeys(plots.LINES, 0.5)}
        for name in plots.LABELS
        for value in (0.0, 1.0)
    ]
    for scheme in plots.COLOURS:
        path = tmp_path / f"{scheme}.png"
        plots.draw(sweeps, scheme=scheme, path=path)
        assert path.read_bytes().startswith(b"\x89PNG")
