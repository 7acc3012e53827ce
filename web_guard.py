"""Connections that reach public addresses only: the name is resolved once, checked, and that address is used.

Fetching what a search result names must not reach this machine, its network or a cloud's metadata service,
whatever the address looks like, wherever it redirects, and whatever its name resolves to a moment later.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Collection, Iterable, Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from errors import SearchError

MAX_REDIRECTS = 5
NETWORK_ERRORS = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    OSError,
    UnicodeError,
)
"""What may be raised while a page is fetched."""

_PLATFORM_ADDRESSES = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Public by number, but answered by the cloud platform itself (Azure)."""
_RESERVED = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


class AddressRefusedError(SearchError):
    """The address is private, blocked, or not http(s)."""


def is_public(address: str) -> bool:
    """Tell whether an IP address is an ordinary public one.

    IPv6 forms that carry an IPv4 address (mapped, 6to4, Teredo, NAT64) are never public: they could hide any.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if not parsed.is_global or parsed.is_multicast or parsed in _PLATFORM_ADDRESSES:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _RESERVED)
    return parsed in _GLOBAL_UNICAST and parsed.sixtofour is None


def in_domains(host: str, *, domains: Iterable[str]) -> bool:
    """Tell whether a host is one of the domains or below one."""
    name = host.lower().rstrip(".")
    return any(name == domain or name.endswith(f".{domain}") for domain in (d.lower().strip(".") for d in domains))


class _TimedStream(httpcore.NetworkStream):
    """A connection that ends at the deadline, however slowly the other side drips."""

    def __init__(self, stream: httpcore.NetworkStream, *, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, timeout=_left(self._deadline, limit=timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout=_left(self._deadline, limit=timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, _left(self._deadline, limit=timeout))
        return _TimedStream(stream, deadline=self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _GuardedBackend(httpcore.NetworkBackend):
    """Opens connections to checked addresses only."""

    def __init__(self, *, allowed_hosts: Collection[str], deadline: float) -> None:
        self._allowed_hosts = allowed_hosts
        self._deadline = deadline
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._addresses(host, port=port):
            try:
                stream = self._backend.connect_tcp(
                    address, port, _left(self._deadline, limit=timeout), local_address, socket_options
                )
                return _TimedStream(stream, deadline=self._deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def _addresses(self, host: str, *, port: int) -> list[str]:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        addresses = list(dict.fromkeys(found))
        if host not in self._allowed_hosts:
            for address in addresses:
                if not is_public(address):
                    raise AddressRefusedError(f"{host} is {address}, which is not a public address")
        return addresses


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _GuardedTransport(httpx.BaseTransport):
    """Checks every request of a redirect chain, then sends it over a guarded connection."""

    def __init__(self, *, allowed_hosts: Collection[str], blocked: Collection[str], deadline: float) -> None:
        self._blocked = blocked
        backend = _GuardedBackend(allowed_hosts=allowed_hosts, deadline=deadline)
        self._pool = httpcore.ConnectionPool(network_backend=backend)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.scheme not in ("http", "https") or url.userinfo:
            raise AddressRefusedError(f"{url.scheme}: only plain http and https addresses are fetched")
        if in_domains(url.host, domains=self._blocked):
            raise AddressRefusedError(f"{url.host} is a blocked domain")
        response = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    def close(self) -> None:
        self._pool.close()


def guarded_client(
    *, deadline: float, headers: dict[str, str], allowed_hosts: Collection[str] = (), blocked: Collection[str] = ()
) -> httpx.Client:
    """Return a client for one page: public addresses only, at most 5 redirects, no cookies.

    A transport of its own also means that the environment's proxies are not used.

    `deadline` is on the clock of `time.monotonic`. `allowed_hosts` skip the address check (loopback tests).
    :raises AddressRefusedError: when used, an address is private, blocked, or not http(s).
    """
    return httpx.Client(
        transport=_GuardedTransport(allowed_hosts=allowed_hosts, blocked=blocked, deadline=deadline),
        headers=headers,
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        timeout=4.0,
    )


def _left(deadline: float, *, limit: float | None) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time for this page is over")
    return left if limit is None else min(limit, left)
