"""Write docs/benchmarks.md from the stored results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS_DIR, table
from config import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

What the README claims, measured. This page is written by `python -m benchmarks report` from the stored results in
[benchmarks/results](../benchmarks/results); don't edit it.

## Repeat it

```
make bench                                     # everything below but scale, one after the other
python -m benchmarks NAME [--limit N] [--seed S] [--out DIR]
python -m benchmarks errors answering          # every wrong case: question, expected, answer, scores, page boxes
```

The evaluation data (22 public PDFs with 248 questions, question sets in Chinese and English, RGB) may not be
redistributed; set `CRAG_BENCH_DATA` to its folder. Results hold figures and ids only. Everything runs with the
embedded models, without a key, a GPU or the internet; the web and the language models of the comparisons are servers
on loopback. Seconds are wall time on the machine named under each table; where machines differ, compare the ratios.
"""
SECTIONS = {
    "answering": """PDF to answer

The gold page among the retrieved and among the cited pages, the answer string in the answer, refusals of unanswerable
questions and false refusals, beside two baselines on the same store with the same quoting generator: plain RAG (four
nearest passages) and the best sentence by BM25. Neither can refuse. `characters` is the length of an answer: whoever
quotes everything also quotes the answer.
""",
    "rgb": """Noise, rejection, integration, counterfactuals (RGB)

Five passages a question, a share of them noise. The published figures are those of the paper (arXiv 2309.01431) on
its whole sets, for orientation. The embedded pipeline quotes what the passages say: from passages that were falsified
it quotes the false answer, and beside true ones it shows both.
""",
    "ablations": """What each part is worth

One thing changed at a time. A removed action becomes Ambiguous as in the paper; without Ambiguous one threshold
decides. Score order changes nothing here, because the quoting generator ranks its quotations itself.
""",
    "rivals": """Beside other corrective-RAG flows

The flows of the LangGraph and LlamaIndex tutorials, written here from their descriptions, and plain RAG, on the same
store, embedder and loopback model. The model knows the labels, so that only the flows differ. `questions lost` raised
an error instead of giving an answer. haiku.rag was not run: it asks for Python 3.12, and these figures are of 3.11.
""",
    "evaluator": "Retrieval evaluator\n",
    "retrieval": "Retrieval\n",
    "embedding": "Embedder\n",
    "correction": "Correction by a web search\n",
    "parsing": "PDF parsing\n",
    "llm_cost": "Language models: calls and time\n",
    "scale": "Scale\n",
    "all": """A whole run

What each took when `python -m benchmarks all` ran them one after the other.
""",
}
"""Heading and introduction of each section, in order."""
ERRORS = """
What was wrong. The error browser's cases of the first full run (commit 6389fb6) fell into these kinds, and each was
mended where it arose, not case by case:

- **tables** (7 of the 15 wrong handwritten cases: another column's figure, a row's label not understood, a table taken
  for a drawing): the cell that the question names by row and column is the answer; table strips are found in their
  document with all their rows; a well-filled table above "Figure …" stays a table;
- **question and document in different languages** (5): the other language counts in the calibrated scale of documents
  and strips, traditional characters are read as simplified ones;
- **near misses taken for answers**: all retrieved documents are refined once the question is not Incorrect and the
  strip floor filters; thresholds were fitted again on what PDF questions retrieve, which refuses more.
"""
BEFORE: dict[str, dict[str, float]] = {
    "kind: table": {"page cited": 0.725, "answer string": 0.625, "false refusals": 0.175},
    "kind: text": {"page cited": 0.878, "answer string": 0.765, "false refusals": 0.082},
    "unanswerable, all PDFs": {"refused": 0.744},
}
"""Figures of the run at commit 6389fb6, of the same 248 questions."""
PLOTS = """
<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/sensitivity-dark.png">
  <img alt="Sensitivity to k, strip width and thresholds" src="images/sensitivity-light.png">
</picture>

The dotted line is the default; the default thresholds are calibrated for each language (models/reader/reader.json).
"""


def main() -> None:
    PAGE.write_text("\n".join(page(RESULTS_DIR)) + "\n", encoding="utf-8")


def page(folder: Path) -> Iterator[str]:
    """Yield the page's parts: the head, then a section for each stored result."""
    yield HEAD
    for name, introduction in SECTIONS.items():
        path = folder / f"{name}.json"
        if path.is_file():
            yield f"## {introduction}"
            yield from _section(name, result=json.loads(path.read_text(encoding="utf-8")))


def _section(name: str, *, result: Mapping[str, Any]) -> Iterator[str]:
    yield result.get("report") or "(this stored result has no table)"
    if name == "ablations" and result.get("sweeps"):
        yield PLOTS
    if name == "answering":
        yield ERRORS
        yield table(list(_compared(result)))
    ran = result["environment"]
    data = ", ".join(f"{file} {digest}" for file, digest in ran["data"].items())
    yield (
        f"\n<sub>`python -m benchmarks {name}`, {ran['time']}, commit {ran['commit']}, Python {ran['python']}, "
        f"{ran['machine']}, load {ran['load']}, seed {ran['seed']}{'; data ' + data if data else ''}</sub>\n"
    )


def _compared(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The first full run beside the stored one."""
    now = {f"kind: {row['kind']}": row for row in result["kinds"]}
    whole = [row for row in result["summary"] if (row["source"], row["lang"], row["system"]) == ("all", "all", "CRAG")]
    if whole:
        now["unanswerable, all PDFs"] = whole[0]
    for name, figures in BEFORE.items():
        for measure, before in figures.items():
            yield {"questions": name, "measure": measure, "first run": before, "now": now.get(name, {}).get(measure)}


if __name__ == "__main__":
    main()
