"""The one event loop, in one background thread, that every model call of the process runs on.

A loop for each of Streamlit's short-lived threads leaks loops and sockets.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import anyio
from anyio.from_thread import start_blocking_portal

from endpoints import Endpoint
from llm_errors import is_local

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(slots=True)
class Connection:
    """The one client to an endpoint's address, its limit, and until when the provider asked for silence."""

    client: AsyncOpenAI
    limiter: anyio.CapacityLimiter
    silent_until: float = 0.0
    refused_extras: set[str] = field(default_factory=set)


class ModelLoop:
    """One event loop in one background thread, with one HTTP client for each address."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.portal = self._stack.enter_context(start_blocking_portal(name="models"))
        self._connections: dict[tuple[str, str], Connection] = {}
        self._stack.callback(self.portal.call, self._close_clients)

    def connect(self, endpoint: Endpoint, *, limit: int, timeout: float) -> Connection:
        """Return the connection to an endpoint, made on first use; call it on the loop."""
        key = (endpoint.url, endpoint.key.get_secret_value())
        if key not in self._connections:
            self._connections[key] = Connection(
                client=_client(endpoint, timeout=timeout), limiter=anyio.CapacityLimiter(limit)
            )
        connection = self._connections[key]
        connection.limiter.total_tokens = limit
        return connection

    async def _close_clients(self) -> None:
        for connection in self._connections.values():
            await connection.client.close()
        self._connections.clear()

    def close(self) -> None:
        """Close every client and end the thread."""
        self._stack.close()


_LOOP_LOCK = threading.Lock()


@cache
def _start_loop() -> ModelLoop:
    loop = ModelLoop()
    atexit.register(close_model_loop)
    return loop


def model_loop() -> ModelLoop:
    """Return the process's model loop, started on first use."""
    with _LOOP_LOCK:
        return _start_loop()


def close_model_loop() -> None:
    """End the model loop if it runs; the next call starts a new one."""
    with _LOOP_LOCK:
        if _start_loop.cache_info().currsize:
            _start_loop().close()
            _start_loop.cache_clear()


def _client(endpoint: Endpoint, *, timeout: float) -> AsyncOpenAI:
    import httpx2
    from openai import AsyncOpenAI

    # A proxy of the environment cannot reach this machine's own servers.
    transport = httpx2.AsyncClient(trust_env=not is_local(endpoint.url), timeout=timeout, follow_redirects=True)
    return AsyncOpenAI(
        base_url=endpoint.url,
        api_key=endpoint.key.get_secret_value() or "none",
        max_retries=0,
        timeout=timeout,
        http_client=transport,
    )
