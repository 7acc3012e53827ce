"""Shows every wrong case of the last run of a benchmark: question, expected, answer, action, scores, page boxes.

    python -m benchmarks errors answering [--kind "not retrieved"] [--source handwritten] [--limit N] [--id ID]

A case is a row with `wrong` (what went wrong; empty when right) that the benchmark passed to `finish`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.common import CASES_DIR, read_jsonl, table

Case = Mapping[str, Any]
LONGEST = 400


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks errors", description=__doc__)
    parser.add_argument("name", help="a benchmark that was run on this machine")
    parser.add_argument("--kind", default="", help="only errors whose kind contains this")
    parser.add_argument("--source", default="", help="only cases of this source")
    parser.add_argument("--id", default="", help="one case, right or wrong")
    parser.add_argument("--limit", type=int, default=0)
    read = parser.parse_args()
    path = CASES_DIR / f"{read.name}.jsonl"
    if not path.is_file():
        sys.exit(f"no cases of {read.name!r}: run it first (python -m benchmarks {read.name})")
    cases = [case for case in read_jsonl(path) if not read.source or case.get("source") == read.source]
    if read.id:
        chosen = [case for case in cases if case["id"] == read.id]
    else:
        chosen = [case for case in cases if case["wrong"] and read.kind in case["wrong"]]
        print(table(kinds(cases)) + "\n")
    for case in chosen[: read.limit or None]:
        print("\n".join(shown(case)) + "\n")


def kinds(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Count the kinds of error, the most frequent first."""
    counts = Counter(case["wrong"] for case in cases if case["wrong"])
    rows = [
        {"kind": kind, "cases": count, "share": count / len(cases), "ids": _ids(cases, kind=kind)}
        for kind, count in counts.most_common()
    ]
    right = sum(not case["wrong"] for case in cases)
    return [*rows, {"kind": "(right)", "cases": right, "share": right / max(1, len(cases)), "ids": ""}]


def _ids(cases: Sequence[Case], *, kind: str) -> str:
    ids = [str(case["id"]) for case in cases if case["wrong"] == kind]
    return ", ".join(ids[:12]) + (" …" if len(ids) > 12 else "")


def shown(case: Case) -> Iterator[str]:
    """Lines about one case; what a benchmark doesn't record is left out."""
    yield f"### {case['id']} · {case['wrong'] or 'right'}"
    yield f"- question: {case['question']}"
    for name in ("expected", "parts", "gold", "action", "best_score", "thresholds", "floor", "refusal_reason"):
        if case.get(name) not in (None, "", []):
            yield f"- {name.replace('_', ' ')}: {case[name]}"
    yield f"- answer: {_short(case.get('answer', ''))}"
    for file, page, score in case.get("documents", ()):
        mark = " ← gold" if [file, page] in case.get("gold", ()) else ""
        yield f"  - document {score:+.3f} {file} p. {page}{mark}"
    for file, page, box, quote in case.get("citations", ()):
        yield f"  - cited {file} p. {page} {box}: {_short(quote)}"
    for file, page, score, kept, text in case.get("strips", ()):
        gold = " gold" if [file, page] in case.get("gold", ()) else ""
        yield f"  - strip {score:+.3f} {'kept' if kept else 'dropped'}{gold} {file} p. {page}: {_short(text)}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else flat[:LONGEST] + " …"


if __name__ == "__main__":
    main()
