"""Run benchmarks: `python -m benchmarks all|NAME [--limit N] [--seed S] [--out DIR]`.

all runs everything but `scale` and `bounds` at the sizes below, one after the other, stores the results in
benchmarks/results, draws the plots, writes docs/benchmarks.md and the README's quoted figures anew.

errors NAME shows the wrong cases of the last run; plots, report and quotes redo only that part from stored results.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time

from benchmarks.common import RESULTS_DIR
from config import ROOT

SIZES: dict[str, tuple[str, ...]] = {
    "answering": ("--sample", "16"),
    "rgb": ("--limit", "30"),
    "ablations": (),
    "rivals": (),
    "evaluator": ("--limit", "100"),
    "retrieval": (),
    "embedding": (),
    "correction": ("--limit", "6", "--passages", "80"),
    "parsing": ("--limit", "4"),
    "llm_cost": ("--limit", "12"),
}
"""What `all` runs, most important first, and how much of it."""
OTHERS = ("scale", "bounds", "errors", "plots", "report", "quotes")


def main() -> None:
    names = (*SIZES, *OTHERS)
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "all":
        sys.exit(run_all(sys.argv[2:]))
    if name not in names:
        sys.exit(f"{__doc__}\nNAME: {', '.join(names)}")
    sys.argv = [f"python -m benchmarks {name}", *sys.argv[2:]]
    importlib.import_module(f"benchmarks.{name}").main()


def run_all(arguments: list[str]) -> int:
    """Run each benchmark in a process of its own; return how many failed. `--only A,B` runs these alone."""
    only = arguments[arguments.index("--only") + 1].split(",") if "--only" in arguments else list(SIZES)
    failed = []
    for name in only:
        started = time.perf_counter()
        command = (sys.executable, "-m", "benchmarks", name, *SIZES[name], "--out", str(RESULTS_DIR))
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        print(f"[{name}: {time.perf_counter() - started:.0f} s, exit {code}]\n", flush=True)
        failed += [name] * bool(code)
    for name in ("plots", "report", "quotes"):
        code = subprocess.run((sys.executable, "-m", "benchmarks", name), cwd=ROOT, check=False).returncode
        failed += [name] * bool(code)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    main()
