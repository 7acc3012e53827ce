"""Which generation of a knowledge base answers: opened when first needed, closed when nobody reads it any more."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from errors import StoreError
from generations import Generation, Generations


@dataclass(frozen=True, slots=True)
class Reading:
    """The generation that answers (None before the first build), and the one before, for chunks found in it."""

    current: Generation | None
    previous: Generation | None


class Answering:
    """Hands out the generation that answers now to any number of threads."""

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        self._lock = threading.RLock()
        self._current: Generation | None = None
        self._previous: Generation | None = None
        self._readers: Counter[int] = Counter()
        self._retired: list[Generation] = []

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Keep both generations open for a block of code.

        :raises StoreError: the store cannot be opened.
        """
        with self._lock:
            reading = Reading(self.current(), self._previous)
            held = [id(each) for each in (reading.current, reading.previous) if each]
            self._readers.update(held)
        try:
            yield reading
        finally:
            with self._lock:
                self._readers.subtract(held)
                self._close_unread()

    def current(self) -> Generation | None:
        """Return the generation that answers now; the one before stays open for questions under way."""
        with self._lock:
            number = self._generations.current()
            opened = self._current
            if opened and opened.number == number and self._generations.is_fresh(opened):
                return opened
            if not number:
                return None
            try:
                fresh = self._generations.open(number)
            except StoreError as error:
                if error.code != "store_gone":
                    raise
                return self.current()
            if self._previous:
                self._retired.append(self._previous)
            self._previous, self._current = opened, fresh
            self._close_unread()
            return fresh

    def close(self) -> None:
        """Close everything that nobody reads; the rest when its last reader is done."""
        with self._lock:
            self._retired += [each for each in (self._current, self._previous) if each]
            self._current = self._previous = None
            self._close_unread()

    def _close_unread(self) -> None:
        unread = [each for each in self._retired if not self._readers[id(each)]]
        self._retired = [each for each in self._retired if self._readers[id(each)]]
        for each in unread:
            each.close()
            del self._readers[id(each)]
