"""A build in a thread of its own, with a plain state that any number of pages may read, and a stop.

Whoever shows it holds one `BuildJob` per knowledge base for the life of the process and polls it; the thread knows
nothing of pages, and ends with the process: a build that is cut off goes on at the next one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from build_report import BuildReport, Progress
from errors import CragError
from knowledge_base import KnowledgeBase

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobState:
    """One moment of a job; `started` and `finished` are seconds since the epoch."""

    running: bool = False
    stopping: bool = False
    progress: Progress | None = None
    report: BuildReport | None = None
    error: CragError | None = None
    started: float = 0.0
    finished: float = 0.0


class BuildJob:
    """The one build of a knowledge base in this process; safe to use from any thread."""

    def __init__(self, knowledge_base: KnowledgeBase) -> None:
        self.knowledge_base = knowledge_base
        self._lock = threading.Lock()
        self._state = JobState()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> JobState:
        """Everything at one moment."""
        with self._lock:
            return self._state

    @property
    def running(self) -> bool:
        """Whether a build goes on."""
        return self.state.running

    @property
    def stopping(self) -> bool:
        """Whether the running build was asked to stop."""
        return self.state.stopping

    @property
    def progress(self) -> Progress | None:
        """Where the running build stands."""
        return self.state.progress

    @property
    def report(self) -> BuildReport | None:
        """What the last build did; None while one runs or when it failed."""
        return self.state.report

    @property
    def error(self) -> CragError | None:
        """Why the last build failed as a whole."""
        return self.state.error

    def start(
        self, *, rebuild: bool = False, passwords: Mapping[str, str] | None = None, again: Collection[str] = ()
    ) -> bool:
        """Start a build as `KnowledgeBase.build` does; return False, and change nothing, when one runs already."""
        with self._lock:
            if self._state.running:
                return False
            self._cancel = threading.Event()
            self._state = JobState(running=True, started=time.time())
            self._thread = threading.Thread(
                target=self._run,
                kwargs={
                    "rebuild": rebuild,
                    "passwords": dict(passwords or {}),
                    "again": frozenset(again),
                    "cancel": self._cancel,
                },
                name="build",
                daemon=True,
            )
            self._thread.start()
            return True

    def stop(self) -> None:
        """Ask the running build to stop; it does so within a page."""
        self._cancel.set()
        with self._lock:
            if self._state.running:
                self._state = replace(self._state, stopping=True)

    def wait(self, timeout: float | None = None) -> JobState:
        """Wait for the end, at most `timeout` seconds; return the state then."""
        if self._thread:
            self._thread.join(timeout)
        return self.state

    def _run(
        self, *, rebuild: bool, passwords: Mapping[str, str], again: Collection[str], cancel: threading.Event
    ) -> None:
        report, failure = None, None
        try:
            report = self.knowledge_base.build(
                rebuild=rebuild, progress=self._note, cancel=cancel, passwords=passwords, again=again
            )
        except CragError as error:
            failure = error
        except BaseException as error:  # the thread ends here: whoever waits for the job must learn of it
            _logger.exception("a build ended with an error nobody expected")
            failure = CragError(f"{type(error).__name__}: {error}", hint="see the log")
        with self._lock:
            self._state = JobState(report=report, error=failure, started=self._state.started, finished=time.time())

    def _note(self, progress: Progress) -> None:
        with self._lock:
            self._state = replace(self._state, progress=progress)
