"""Asking a provider: in its turn, within a time, and once more after a short wait that it asks for."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from threading import Lock

from errors import ProviderAuthError, ProviderRateLimitError, ProviderResponseError, ProviderUnavailableError
from i18n import Language
from web_providers import SlowDownError, WebProvider
from web_results import WebResult

PATIENCE = 0.75
"""Share of a provider's time that may pass in waiting for its turn; the request needs the rest."""
COOL_DOWN_SECONDS = 60.0
"""How long a provider that asked to slow down is left alone, unless it says for how long itself."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a provider gave, or why it gave nothing."""

    results: list[WebResult]
    error: BaseException | None = None


@dataclass(slots=True)
class ProviderAsker:
    """Asks providers and knows when each may be asked again; one for all sessions of a process."""

    ready: dict[str, float] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def ask(self, provider: WebProvider, *, query: str, language: Language, limit: int, end: float) -> Asked:
        """Return the results by `end` (on the clock of `time.monotonic`) or the failure; raises nothing.

        A short wait that the provider asks for is kept; a long one leaves the turn to the next provider.
        """
        asked = self._ask(provider, query=query, language=language, limit=limit, end=end)
        if isinstance(asked.error, SlowDownError):
            self._rest(provider, seconds=asked.error.seconds)
            asked = self._ask(provider, query=query, language=language, limit=limit, end=end)
            if isinstance(asked.error, SlowDownError):
                self._rest(provider, seconds=asked.error.seconds)
        return asked

    def _ask(self, provider: WebProvider, *, query: str, language: Language, limit: int, end: float) -> Asked:
        if not self._enter(provider, patience=PATIENCE * (end - time.monotonic())):
            return Asked([], ProviderRateLimitError(f"{provider.name}: its turn comes too late", name=provider.name))
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="web-provider")
        future = executor.submit(provider.find, query, language=language, limit=limit)
        executor.shutdown(wait=False)
        try:
            error = future.exception(timeout=max(0.0, end - time.monotonic()))
        except FutureTimeoutError as late:
            return Asked([], late)
        if error is not None:
            logger.warning("web provider %s: %s", provider.name, type(error).__name__)
            return Asked([], error)
        return Asked(future.result())

    def _enter(self, provider: WebProvider, *, patience: float) -> bool:
        """Wait for the provider's turn; False when it would not come within `patience` seconds."""
        with self.lock:
            now = time.monotonic()
            turn = max(now, self.ready.get(provider.name, 0.0))
            if turn > now and turn - now > patience:
                return False
            self.ready[provider.name] = turn + provider.interval
        time.sleep(turn - now)
        return True

    def _rest(self, provider: WebProvider, *, seconds: float | None) -> None:
        """Leave a provider alone that asked to slow down, for as long as it said."""
        with self.lock:
            self.ready[provider.name] = time.monotonic() + (COOL_DOWN_SECONDS if seconds is None else seconds)


def failure_kind(error: BaseException) -> str:
    """Return the words under `search.` for a provider's failure."""
    match error:
        case ProviderRateLimitError():
            return "rate_limit"
        case FutureTimeoutError():
            return "timeout"
        case ProviderAuthError():
            return "auth"
        case ProviderResponseError():
            return "response"
        case ProviderUnavailableError():
            return "unavailable"
        case _:
            return "failed"
