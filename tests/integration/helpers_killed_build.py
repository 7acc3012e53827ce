"""Runs a build that ends itself with SIGKILL at the nth write: `python helpers_killed_build.py FOLDER N [rebuild]`.

N = 0 counts the writes and prints their number instead.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers_store import open_base

from catalogue import Catalogue
from generations import Generations
from vector_store import ChromaStore

WRITES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (
        Catalogue,
        ("save_page", "mark_pending", "commit_document", "put_file", "remove_file", "clear_pending", "set_meta"),
    ),
    (ChromaStore, ("upsert", "delete", "delete_ids", "drop")),
    (Generations, ("switch", "remove")),
)


def main(folder: Path, *, at: int, rebuild: bool) -> None:
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
    sys.stdout.write(str(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), at=int(sys.argv[2]), rebuild=sys.argv[3:] == ["rebuild"])
