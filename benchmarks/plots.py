"""Draw the sensitivity plots from the stored ablations: docs/images/sensitivity-light.png and -dark.png."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS_DIR
from config import ROOT

IMAGES_DIR = ROOT / "docs" / "images"
DEFAULTS = {"k": 10, "strip width": 220}
LABELS = {
    "k": "documents retrieved (k)",
    "strip width": "strip width (a Chinese character is 2)",
    "upper": "upper threshold",
    "lower": "lower threshold",
    "strip floor": "floor for strips",
}
LINES = {
    "page cited": "gold page cited",
    "answer string": "answer quoted",
    "refused": "unanswerable refused",
    "false refusals": "answerable refused",
}
COLOURS: Mapping[str, Sequence[str]] = {
    "light": ("#ffffff", "#24292f", "#d0d7de", "#0969da", "#1a7f37", "#8250df", "#cf222e"),
    "dark": ("#0d1117", "#e6edf3", "#30363d", "#58a6ff", "#3fb950", "#bc8cff", "#ff7b72"),
}
"""Page, ink, grid, then one for each line."""


def main() -> None:
    path = RESULTS_DIR / "ablations.json"
    if not path.is_file():
        sys.exit("no stored ablations: run `python -m benchmarks ablations --out benchmarks/results` first")
    sweeps = json.loads(path.read_text(encoding="utf-8"))["sweeps"]
    if not sweeps:
        sys.exit("the stored ablations have no sweeps: run them without --no-sweeps")
    IMAGES_DIR.mkdir(parents=True, exist_ok=True)
    for name in COLOURS:
        draw(sweeps, scheme=name, path=IMAGES_DIR / f"sensitivity-{name}.png")


def draw(sweeps: Sequence[Mapping[str, Any]], *, scheme: str, path: Path) -> None:
    """One panel for each setting, one line for each measure; a dotted line marks the default where it is one number."""
    from matplotlib.figure import Figure

    paper, ink, grid, *lines = COLOURS[scheme]
    settings = list(dict.fromkeys(row["setting"] for row in sweeps))
    figure = Figure(figsize=(12, 6.4), dpi=110, facecolor=paper, layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    for panel, setting in zip(panels, settings, strict=False):
        rows = [row for row in sweeps if row["setting"] == setting]
        for (measure, label), colour in zip(LINES.items(), lines, strict=True):
            panel.plot(
                [row["value"] for row in rows],
                [row[measure] for row in rows],
                color=colour,
                label=label,
                marker="o",
                markersize=4,
            )
        if setting in DEFAULTS:
            panel.axvline(DEFAULTS[setting], color=ink, linestyle=":", linewidth=1)
        panel.set_title(LABELS[setting], color=ink, fontsize=11)
        panel.set_ylim(-0.03, 1.03)
        panel.set_facecolor(paper)
        panel.grid(color=grid, linewidth=0.6)
        panel.tick_params(colors=ink)
        for spine in panel.spines.values():
            spine.set_color(grid)
    for panel in panels[len(settings) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    legend = panels[-1].legend(handles, labels, loc="center", frameon=False, fontsize=11)
    for text in legend.get_texts():
        text.set_color(ink)
    figure.savefig(path, facecolor=paper, metadata={"Software": None})


if __name__ == "__main__":
    main()
