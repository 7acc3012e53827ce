"""Long work in a thread of its own, with a plain state that any number of pages may read, and a stop.

One job per key (a knowledge base): starting it twice gives the one that runs. Whoever shows it holds `Jobs` for the
life of the process and polls `Job.state`; the thread knows nothing of pages.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from errors import CragError

_logger = logging.getLogger(__name__)
ProgressT = TypeVar("ProgressT")
ResultT = TypeVar("ResultT")
Work = Callable[[Callable[[ProgressT], None], threading.Event], ResultT]
"""Takes where to report progress and an event that asks it to stop; returns the result."""


@dataclass(frozen=True, slots=True)
class JobState(Generic[ProgressT, ResultT]):
    """One moment of a job; times are seconds since the epoch. Running until `result` or `error` is there."""

    started: float
    progress: ProgressT | None = None
    stopping: bool = False
    result: ResultT | None = None
    error: CragError | None = None
    finished: float | None = None

    @property
    def running(self) -> bool:
        """Tell whether the work goes on."""
        return self.finished is None

    @property
    def seconds(self) -> float:
        """Return how long it has run, or ran."""
        return (self.finished or time.time()) - self.started


class Job(Generic[ProgressT, ResultT]):
    """Work that runs in a thread which ends with the process."""

    def __init__(self, work: Work[ProgressT, ResultT], *, name: str) -> None:
        self._work = work
        self._cancel = threading.Event()
        self._lock = threading.Lock()
        self._state: JobState[ProgressT, ResultT] = JobState(started=time.time())
        self._thread = threading.Thread(target=self._run, name=f"job {name}", daemon=True)
        self._thread.start()

    @property
    def state(self) -> JobState[ProgressT, ResultT]:
        """Return the present state."""
        with self._lock:
            return self._state

    def stop(self) -> None:
        """Ask the work to stop; it does so at its next safe point."""
        self._cancel.set()
        self._change(stopping=True)

    def wait(self, timeout: float | None = None) -> JobState[ProgressT, ResultT]:
        """Wait for the end (at most `timeout` seconds) and return the state."""
        self._thread.join(timeout)
        return self.state

    def _run(self) -> None:
        try:
            result = self._work(lambda progress: self._change(progress=progress), self._cancel)
        except CragError as error:
            self._change(error=error, finished=time.time())
        except BaseException as error:
            _logger.exception("a job failed")
            internal = CragError(f"{type(error).__name__}: {error}", hint="see the log")
            self._change(error=internal, finished=time.time())
        else:
            self._change(result=result, finished=time.time())

    def _change(self, **changes: object) -> None:
        with self._lock:
            self._state = replace(self._state, **changes)  # type: ignore[arg-type]


class Jobs(Generic[ProgressT, ResultT]):
    """The jobs of a process, at most one running per key; the last one of a key stays to be read."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[ProgressT, ResultT]] = {}
        self._lock = threading.Lock()

    def start(self, key: str, *, work: Work[ProgressT, ResultT]) -> Job[ProgressT, ResultT]:
        """Start work, or return the job of this key that still runs."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or not job.state.running:
                job = self._jobs[key] = Job(work, name=key)
            return job

    def get(self, key: str) -> Job[ProgressT, ResultT] | None:
        """Return the running or last job of a key."""
        with self._lock:
            return self._jobs.get(key)

    def dismiss(self, key: str) -> None:
        """Forget a finished job; a running one stays."""
        with self._lock:
            job = self._jobs.get(key)
            if job and not job.state.running:
                del self._jobs[key]
