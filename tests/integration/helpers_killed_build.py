"""A build that ends itself with SIGKILL at the nth write, in a process forked from one that has everything loaded."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from catalogue import Catalogue
from generations import Generations
from tests.integration.helpers_store import open_base
from vector_store import ChromaStore

WRITES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (
        Catalogue,
        ("save_page", "mark_pending", "commit_document", "put_files", "remove_file", "clear_pending", "set_meta"),
    ),
    (ChromaStore, ("upsert", "delete", "delete_ids", "drop")),
    (Generations, ("switch", "remove")),
)


def main(folder: Path, *, at: int, rebuild: bool) -> None:
    """Build; die before or after the `at`-th write. 0 counts the writes and notes their number in `writes`."""
    seen = 0

    def deadly(write: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)
            result = write(*arguments, **named)
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    for owner, names in WRITES:
        for name in names:
            setattr(owner, name, deadly(getattr(owner, name)))
    with open_base(folder) as base:
        base.build(rebuild=rebuild)
    (folder / "writes").write_text(str(seen), encoding="utf-8")


def run(folder: Path, *, at: int = 0, rebuild: bool = False) -> int:
    """Build in another process; return its exit code: 0, or -9 when it died at write `at`."""
    target: dict[str, Any] = {"target": main, "args": (folder,), "kwargs": {"at": at, "rebuild": rebuild}}
    if "forkserver" in multiprocessing.get_all_start_methods():
        forking = multiprocessing.get_context("forkserver")
        forking.set_forkserver_preload(["tests.integration.helpers_killed_build", "chromadb", "chromadb_rust_bindings"])
        process: BaseProcess = forking.Process(**target)
    else:
        process = multiprocessing.get_context("spawn").Process(**target)
    process.start()
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode
