"""Figures that a text quotes from the stored results, so that a claim can't outlive the run behind it.

In Markdown: `<!-- figure: answering.CRAG.handwritten.zh.page_cited -->95 %<!-- /figure -->`. The name is the stored
result's file, then the key in its `figures`. The shown text keeps its form: so many decimals, a percentage or not.
`python -m benchmarks quotes` writes the figures of both READMEs anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.common import RESULTS_DIR
from config import ROOT

_QUOTE = re.compile(r"<!-- figure: (?P<name>[^\n]*?) -->(?P<shown>[^<\n]*)<!-- /figure -->")
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.(?P<decimals>\d+))?")


QUOTING = ("README.md", "README.zh.md", "docs/scaling.md")


def main() -> None:
    for name in QUOTING:
        path = ROOT / name
        if path.is_file():
            path.write_text(requoted(path.read_text(encoding="utf-8")), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Quote:
    """A quoted figure: its name, the text shown, and the text that the stored result gives."""

    name: str
    shown: str
    stored: str


def quotes(text: str, *, folder: Path = RESULTS_DIR) -> Iterator[Quote]:
    """Yield every quoted figure of a text.

    :raises KeyError: no stored result has the figure.
    :raises ValueError: the shown text has no number.
    """
    for match in _QUOTE.finditer(text):
        yield Quote(match["name"], match["shown"], written(match["name"], like=match["shown"], folder=folder))


def requoted(text: str, *, folder: Path = RESULTS_DIR) -> str:
    """Return the text with every quoted figure as stored."""
    return _QUOTE.sub(
        lambda match: match[0].replace(
            f"-->{match['shown']}<!--", f"-->{written(match['name'], like=match['shown'], folder=folder)}<!--"
        ),
        text,
    )


def written(name: str, *, like: str, folder: Path = RESULTS_DIR) -> str:
    """Return a stored figure in the form of the text `like`: its decimals, its percent sign, what stands around it."""
    number = _NUMBER.search(like)
    if number is None:
        raise ValueError(f"{name}: {like!r} shows no number")
    value = figure(name, folder=folder)
    percent = like[number.end() :].lstrip()[:1] in {"%", "％"}
    decimals = len(number["decimals"] or "")
    text = f"{value * 100 if percent else value:,.{decimals}f}"
    return like[: number.start()] + (text if "," in number[0] else text.replace(",", "")) + like[number.end() :]


def figure(name: str, *, folder: Path = RESULTS_DIR) -> float:
    """Return a stored figure.

    :raises KeyError: there is no such result or figure.
    """
    benchmark, _, key = name.partition(".")
    stored = _figures(folder / f"{benchmark}.json")
    if key not in stored:
        raise KeyError(f"no stored figure {name!r}")
    return stored[key]


@lru_cache(maxsize=32)
def _figures(path: Path) -> dict[str, float]:
    if not path.is_file():
        return {}
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8")).get("figures", {})
    return found


if __name__ == "__main__":
    main()
