"""Run benchmarks: `python -m benchmarks all|NAME [--limit N] [--seed S] [--out DIR]`.

all runs everything but `scale` and `bounds`, one after the other (`--only A,B`: these alone). Without other options it
runs at the sizes below, stores the results and what each took in benchmarks/results, draws the plots, and writes
docs/benchmarks.md and the README's quoted figures anew; with --limit, --seed or --out nothing but --out is written.

errors NAME shows the wrong cases of the last run; plots, report and quotes redo only that part from stored results.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time

from benchmarks.common import RESULTS_DIR, Options, environment, finish, table
from config import ROOT

SIZES: dict[str, tuple[str, ...]] = {
    "answering": (),
    "rgb": ("--limit", "30"),
    "ablations": (),
    "rivals": (),
    "evaluator": ("--limit", "100"),
    "retrieval": (),
    "embedding": ("--limit", "60"),
    "correction": ("--limit", "30", "--passages", "500"),
    "parsing": (),
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
    """Run each benchmark in a process of its own; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks all", description=__doc__)
    parser.add_argument("--only", default=",".join(SIZES), help="these benchmarks, in this order")
    for name in ("--limit", "--seed", "--out"):
        parser.add_argument(name, default="")
    read = parser.parse_args(arguments)
    only = read.only.split(",")
    changes = [
        part for name in ("limit", "seed", "out") if getattr(read, name) for part in (f"--{name}", getattr(read, name))
    ]
    ran = environment(seed=0)
    failed = []
    seconds: dict[str, float] = {}
    for name in only:
        started = time.perf_counter()
        command = (sys.executable, "-m", "benchmarks", name, *SIZES[name])
        code = subprocess.run((*command, *(changes or ("--out", str(RESULTS_DIR)))), cwd=ROOT, check=False).returncode
        seconds[name] = time.perf_counter() - started
        print(f"[{name}: {seconds[name]:.0f} s, exit {code}]\n", flush=True)
        failed += [name] * bool(code)
    if only == list(SIZES) and not failed and not changes:
        _store_times(seconds, ran=ran)
    for name in () if changes else ("plots", "report", "quotes"):
        code = subprocess.run((sys.executable, "-m", "benchmarks", name), cwd=ROOT, check=False).returncode
        failed += [name] * bool(code)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


def _store_times(seconds: dict[str, float], *, ran: dict[str, object]) -> None:
    total = sum(seconds.values())
    rows = [{"benchmark": name, "seconds": round(each)} for name, each in (*seconds.items(), ("together", total))]
    found = {f"{name}.seconds": each for name, each in seconds.items()} | {"together.minutes": total / 60}
    options = Options(limit=0, seed=0, out=RESULTS_DIR, rest=argparse.Namespace())
    finish("all", result={"environment": ran, "figures": found}, options=options, text=table(rows))


if __name__ == "__main__":
    main()
