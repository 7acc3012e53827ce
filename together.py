"""Calls that need nothing of each other run side by side, so that their waits for a language model overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def together(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Return the results in the order of the calls; a single call runs on the caller's thread.

    Raises what the first failing call raised, after all have ended.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(len(calls), thread_name_prefix="together") as pool:
        return list(pool.map(lambda call: call(), calls))
