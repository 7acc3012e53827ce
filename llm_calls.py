"""One call to a provider: waiting when asked to, trying again where that can help, typed errors where it cannot."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from config import Settings
from endpoints import Endpoint
from errors import ProviderAuthError, ProviderRateLimitError
from llm_errors import asked_wait, map_error, provider_errors, typed
from model_loop import Connection, model_loop

LONGEST_WAIT = 8.0
Result = TypeVar("Result")


class Caller:
    """Calls one endpoint; `llm_timeout` bounds a call with all its tries and waits."""

    def __init__(self, endpoint: Endpoint, *, settings: Settings) -> None:
        self.endpoint = endpoint
        self._settings = settings

    def connect(self) -> Connection:
        """Return the endpoint's connection; call it on the model loop."""
        settings = self._settings
        return model_loop().connect(self.endpoint, limit=settings.llm_concurrency, timeout=settings.llm_timeout)

    async def call(
        self,
        send: Callable[[], Awaitable[Result]],
        *,
        extras: bool = False,
        once: Callable[[], bool] = lambda: False,
    ) -> Result:
        """Send until it works, tries are spent, the time is over, or `once` says that output has gone out.

        `extras` tells that the request has options which not every endpoint knows; they are dropped when refused.

        :raises ProviderError: the call failed for good.
        """
        if self.endpoint.needs_key and not self.endpoint.key.get_secret_value():
            raise typed(ProviderAuthError, code="provider_key", endpoint=self.endpoint)
        connection = self.connect()
        deadline = time.monotonic() + self._settings.llm_timeout
        tries = 0
        while True:
            await self._keep_silence(connection, deadline=deadline)
            try:
                return await send()
            except provider_errors() as error:
                problem = map_error(error, endpoint=self.endpoint)
                if extras and self._drop_extras(error, code=problem.code, connection=connection):
                    continue
                tries += 1
                backoff = min(LONGEST_WAIT, 0.5 * 2 ** (tries - 1)) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
                wait = asked_wait(error) or backoff
                if isinstance(problem, ProviderRateLimitError):
                    # Every other call to this provider would only be refused too.
                    connection.silent_until = max(connection.silent_until, time.monotonic() + wait)
                spent = tries > self._settings.llm_retries or time.monotonic() + wait > deadline
                if spent or not problem.retryable or once():
                    raise problem from error
                await anyio.sleep(wait)

    async def _keep_silence(self, connection: Connection, *, deadline: float) -> None:
        wait = connection.silent_until - time.monotonic()
        if wait <= 0:
            return
        if time.monotonic() + wait > deadline:
            raise typed(ProviderRateLimitError, endpoint=self.endpoint, seconds=round(wait))
        await anyio.sleep(wait)

    def _drop_extras(self, error: Exception, *, code: str, connection: Connection) -> bool:
        """Some endpoints reject log-probabilities or thinking switches: leave them out from then on."""
        known = self.endpoint.model in connection.refused_extras
        if getattr(error, "status_code", 0) not in {400, 422} or code == "provider_context" or known:
            return False
        connection.refused_extras.add(self.endpoint.model)
        return True
