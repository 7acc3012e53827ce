"""Reads PDFs in a child process, so that a hostile file takes neither the app nor the machine down.

A child is kept for the next file; it is killed when it gives no page in time, breaks its memory limit or crashes.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import io
import json
import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import errors
from config import ROOT, Settings
from errors import CragError, PdfUnreadableError
from pdf_page import PageResult, load_page
from schema import BlockParser

if TYPE_CHECKING:
    from PIL.Image import Image

logger = logging.getLogger(__name__)

_AHEAD = 16
"""Replies a child may be ahead of its reader."""
_MAX_FAILURES = 3
"""Pages of one file that may fail before the file does."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One page as a picture; `ink` tells it from a blank one."""

    page: int
    total: int
    image: Image
    ink: bool


class _StoppedError(Exception):
    """The child gave no answer in time (`code` pdf_timeout), ran out of memory (pdf_memory) or died (pdf_crashed)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Child:
    """One running pdf_worker and the thread that reads from it."""

    def __init__(self, *, memory_mb: int) -> None:
        self.memory_mb = memory_mb
        self._process = subprocess.Popen(  # noqa: S603 our own script, no shell
            [sys.executable, str(ROOT / "pdf_worker.py"), str(memory_mb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._replies: queue.Queue[str | None] = queue.Queue(maxsize=_AHEAD)
        self._closing = threading.Event()
        threading.Thread(target=self._pump, name="pdf-worker-reader", daemon=True).start()

    def _pump(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                if not self._put(line):
                    return
        self._put(None)

    def _put(self, line: str | None) -> bool:
        while not self._closing.is_set():
            with contextlib.suppress(queue.Full):
                self._replies.put(line, timeout=0.5)
                return True
        return False

    def ask(self, request: dict[str, Any], *, timeout: float) -> Iterator[dict[str, Any]]:
        """Yield the replies to one request.

        :raises CragError: what the child reports.
        :raises _StoppedError: no reply within `timeout` seconds, out of memory, or dead.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise _StoppedError("pdf_crashed") from error
        while True:
            try:
                line = self._replies.get(timeout=timeout)
            except queue.Empty as error:
                raise _StoppedError("pdf_timeout") from error
            if line is None:
                raise _StoppedError("pdf_crashed")
            reply: dict[str, Any] = json.loads(line)
            if "end" in reply:
                return
            if "error" in reply:
                raise _error(reply["error"])
            yield reply

    def alive(self) -> bool:
        """Tell whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process and its reader."""
        self._closing.set()
        self._process.kill()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()


def _error(found: dict[str, Any]) -> Exception:
    if found["type"] == "MemoryError":
        return _StoppedError("pdf_memory")
    kind = getattr(errors, found["type"], CragError)
    error: CragError = kind(found["message"], hint=found["hint"], code=found["code"], **found["values"])
    return error


_idle: list[_Child] = []
_idle_lock = threading.Lock()


@contextlib.contextmanager
def _borrowed(memory_mb: int) -> Iterator[_Child]:
    """Lend a child; it comes back only when its request ended well or with a reported error."""
    with _idle_lock:
        child = next((child for child in _idle if child.memory_mb == memory_mb and child.alive()), None)
        if child is not None:
            _idle.remove(child)
    child = child or _Child(memory_mb=memory_mb)
    kept = False
    try:
        yield child
        kept = True
    except CragError:
        kept = True
        raise
    finally:
        with _idle_lock:
            if kept and child.alive() and not _idle:
                _idle.append(child)
                child = None
        if child is not None:
            child.kill()


@atexit.register
def close_children() -> None:
    """End the child that waits for the next file."""
    with _idle_lock:
        while _idle:
            _idle.pop().kill()


def child_pages(
    path: Path, *, document_id: str, password: str, done: Collection[int], settings: Settings
) -> Iterator[PageResult]:
    """Yield each page not in `done` as the child reads it.

    A page that hangs or crashes the child is left empty, with the reason; the others are read by a new child.

    :raises PdfError: as the child reports, or when the file fails as a whole.
    """
    finished, failed = set(done), 0
    total, at = 0, 0
    one_by_one = False
    while True:
        request = {
            "do": "pages",
            "path": str(path.absolute()),
            "document_id": document_id,
            "password": password,
            "done": sorted(finished),
            "max_pages": settings.max_pages,
            "one_by_one": one_by_one,
        }
        try:
            with _borrowed(settings.parse_memory_mb) as child:
                for reply in child.ask(request, timeout=settings.parse_timeout):
                    if "start" in reply:
                        at, total = reply["start"], reply["total"]
                        continue
                    page = load_page(reply["page"])
                    total = page.total
                    finished.add(page.page)
                    yield page
            return
        except _StoppedError as stopped:
            failed += 1
            logger.warning("%s: the parser stopped (%s) near page %d", path.name, stopped.code, at)
            if failed > _MAX_FAILURES or (one_by_one and not at) or (failed > 1 and not total):
                raise stopped_error(stopped.code, path=path, settings=settings) from stopped
            if one_by_one or at in finished or stopped.code == "pdf_timeout":
                bad = at if at and at not in finished else max(finished, default=0) + 1
                if total and bad <= total:
                    finished.add(bad)
                    yield PageResult(document_id, bad, total, BlockParser.TEXT, (), reason=stopped.code)
                elif total:
                    return
            one_by_one, at = True, 0


def stopped_error(code: str, *, path: Path, settings: Settings) -> PdfUnreadableError:
    """Return the error for a file that stopped its parser."""
    return PdfUnreadableError(
        f"{path.name}: the parser was stopped ({code})",
        hint="open and save the file anew, or raise CRAG_PARSE_TIMEOUT or CRAG_PARSE_MEMORY_MB",
        code=code,
        file=path.name,
        seconds=round(settings.parse_timeout),
        limit=settings.parse_memory_mb,
    )


def child_pictures(
    path: Path, *, password: str, wanted: Sequence[int], width: int, settings: Settings
) -> Iterator[Picture]:
    """Yield the wanted pages (all when empty) as pictures `width` pixels across, rendered by the child.

    :raises PdfError: as the child reports, or when it is stopped.
    """
    from PIL import Image

    request = {
        "do": "pictures",
        "path": str(path.absolute()),
        "password": password,
        "wanted": list(wanted),
        "width": width,
        "max_pages": settings.max_pages,
    }
    try:
        with _borrowed(settings.parse_memory_mb) as child:
            for reply in child.ask(request, timeout=settings.parse_timeout):
                with Image.open(io.BytesIO(base64.b64decode(reply["png"]))) as opened:
                    picture = opened.convert("RGB")
                yield Picture(reply["picture"], reply["total"], picture, reply["ink"])
    except _StoppedError as stopped:
        raise stopped_error(stopped.code, path=path, settings=settings) from stopped
