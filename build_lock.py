"""One writer at a time: a lock file that names its holder and dies with it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from errors import StoreLockedError

_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes: process id, host, and since when (ISO, UTC)."""

    pid: int
    host: str
    since: str


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the write lock of a knowledge base's folder; the system frees it when the process ends in any way.

    :raises StoreLockedError: another build holds it; names process, host and time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "build.lock")
    try:
        lock.acquire(timeout=_PATIENCE, poll_interval=0.05)
    except Timeout:
        holder = _named(folder)
        raise StoreLockedError(
            f"{folder}: process {holder.pid} on {holder.host} has been building since {holder.since}",
            hint="wait for it or stop it",
            pid=holder.pid,
            host=holder.host,
            since=holder.since,
        ) from None
    try:
        mine = Holder(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"))
        (folder / "build.json").write_text(json.dumps(asdict(mine)), encoding="utf-8")
        yield
    finally:
        lock.release()


def holder(folder: Path) -> Holder | None:
    """Return who is writing now; None when nobody is."""
    if not (folder / "build.lock").exists():
        return None
    lock = FileLock(folder / "build.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _named(folder)
    lock.release()
    return None


def _named(folder: Path) -> Holder:
    try:
        return Holder(**json.loads((folder / "build.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Holder(0, "?", "?")
