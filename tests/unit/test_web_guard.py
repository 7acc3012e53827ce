"""Which addresses and domains count as public, blocked, or one and the same."""

from __future__ import annotations

import socket
import ssl
import time
from ssl import SSLContext

import httpcore
import pytest

from web_guard import _GuardedBackend, _TimedStream, in_domains, is_public
from web_results import WebResult, order_results, plain_address


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1"]
)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.170.2",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "localhost",
        "",
    ],
)
def test_not_public(address: str) -> None:
    assert not is_public(address)


def test_domains_below_and_not_beside() -> None:
    assert in_domains("zh.Wikipedia.org.", domains=["wikipedia.org"])
    assert in_domains("wikipedia.org", domains=[".wikipedia.org"])
    assert not in_domains("notwikipedia.org", domains=["wikipedia.org"])
    assert not in_domains("wikipedia.org.evil.test", domains=["wikipedia.org"])


def result(url: str) -> WebResult:
    return WebResult(url=url, title="", snippet="")


def test_order_is_users_then_public_then_others() -> None:
    urls = [
        "https://a.test/",
        "https://www.nasa.gov/x",
        "https://zh.wikipedia.org/wiki/X",
        "https://mine.test/",
        "https://b.test/",
    ]
    ordered = order_results(map(result, urls), authorities=["mine.test"])
    assert [item.url for item in ordered] == [urls[3], urls[1], urls[2], urls[0], urls[4]]


def test_blocked_domains_are_left_out() -> None:
    kept = order_results(map(result, ["https://x.spam.test/", "https://spam.test.org/"]), blocked=["spam.test"])
    assert [item.url for item in kept] == ["https://spam.test.org/"]


def test_what_is_no_address_is_left_out() -> None:
    urls = ["http://[www.example.com]/a", "http://[::1/", "https://exa\u2100mple.com/", "https://a.test/"]
    assert [item.url for item in order_results(map(result, urls))] == urls[-1:]


def test_spellings_of_one_address_are_merged() -> None:
    urls = [
        "https://www.a.test/page/?utm_source=x&id=1#top",
        "http://a.test/page?id=1",
        "HTTPS://A.test:443/page?id=1&fbclid=9",
    ]
    assert [item.url for item in order_results(map(result, urls))] == urls[:1]
    assert (
        len({plain_address(url) for url in ["https://a.test/p?id=1", "https://a.test/p?id=2", "https://a.test/P?id=1"]})
        == 3
    )


def test_pages_of_one_library_file_are_not_merged() -> None:
    assert len(order_results(map(result, ["library:a.pdf#page=1", "library:a.pdf#page=2"]))) == 2


class OpenStream(httpcore.NetworkStream):
    """A connection on which everything succeeds at once."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return b"x"

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        return None

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return self


def test_nothing_is_sent_read_or_opened_after_the_deadline() -> None:
    late = _TimedStream(OpenStream(), deadline=time.monotonic())
    with pytest.raises(httpcore.TimeoutException):
        late.write(b"GET")
    with pytest.raises(httpcore.TimeoutException):
        late.read(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        backend = _GuardedBackend(allowed_hosts={"127.0.0.1"}, deadline=time.monotonic())
        with pytest.raises(httpcore.TimeoutException):
            backend.connect_tcp("127.0.0.1", server.getsockname()[1], timeout=4.0)


def test_encrypted_connection_ends_at_the_deadline_too() -> None:
    context = ssl.create_default_context()
    deadline = time.monotonic() + 0.5
    encrypted = _TimedStream(OpenStream(), deadline=deadline).start_tls(context)
    assert encrypted.read(1) == b"x"
    time.sleep(max(0.0, deadline - time.monotonic()) + 0.01)
    with pytest.raises(httpcore.TimeoutException):
        encrypted.read(1)
