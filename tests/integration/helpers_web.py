"""A site of our own on loopback, and names that resolve where a test says."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[BaseHTTPRequestHandler], None]
ARTICLE = "<p>{text}</p><p>A second paragraph keeps the page long enough to be taken for an article of its own.</p>"


@dataclass
class Received:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Message
    body: bytes = b""


@dataclass
class Site:
    """Routes by path; remembers what was asked and how many bytes went out."""

    server: ThreadingHTTPServer
    routes: dict[str, Answer] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    sent: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def url(self, path: str = "", *, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def asked(self, path: str) -> int:
        return sum(item.path == path for item in self.received)

    def page(
        self, path: str, body: bytes | str, *, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str
    ) -> str:
        """Serve a body and return its address."""
        content = body.encode() if isinstance(body, str) else body

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            if kind:
                handler.send_header("Content-Type", kind)
            for name, value in headers.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)

        self.routes[path] = answer
        return self.url(path)

    def article(self, path: str, text: str, *, title: str = "Title") -> str:
        body = f"<html><head><title>{title}</title></head><body><article>{ARTICLE.format(text=text)}</article></body></html>"
        return self.page(path, body)

    def turns(self, path: str, *pages: tuple[int, dict[str, str], Any]) -> str:
        """Serve (status, headers, JSON value) in turn, the last one for ever."""
        left = list(pages)

        def answer(handler: BaseHTTPRequestHandler) -> None:
            status, headers, value = left.pop(0) if len(left) > 1 else left[0]
            self.page(path, json.dumps(value), kind="application/json", status=status, **headers)
            self.routes[path](handler)
            self.routes[path] = answer

        self.routes[path] = answer
        return self.url(path)

    def reply_json(self, path: str, value: Any) -> str:
        return self.page(path, json.dumps(value), kind="application/json")

    def redirect(self, path: str, *, to: str, **headers: str) -> str:
        return self.page(path, b"", status=302, Location=to, **headers)

    def hang(self, path: str) -> str:
        """Accept the request and never answer."""

        def answer(_: BaseHTTPRequestHandler) -> None:
            self.closing.wait(30)

        self.routes[path] = answer
        return self.url(path)

    def drip(self, path: str, *, head: bytes, piece: bytes, pause: float) -> str:
        """Write `head`, then `piece` again and again, for 30 s at most."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(head)
            end = time.monotonic() + 30
            while time.monotonic() < end and not self.closing.is_set():
                handler.wfile.write(piece)
                handler.wfile.flush()
                self.sent += len(piece)
                time.sleep(pause)

        self.routes[path] = answer
        return self.url(path)


@contextmanager
def site() -> Iterator[Site]:
    """Run a site on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            running.received.append(Received(self.command, parts.path, parse_qs(parts.query), self.headers, body))
            answer = running.routes.get(parts.path)
            try:
                if answer is None:
                    self.send_error(404)
                else:
                    answer(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = handle_any  # noqa: N815
        do_POST = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Site(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Names:
    """Stands in for DNS: each name gives its answers in turn, the last one for ever."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self._resolve = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, *args: Any, **kwargs: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name not in self.answers:
            return list(self._resolve(host, port, *args, **kwargs))
        turn = self.answers[name]
        addresses = turn.pop(0) if len(turn) > 1 else turn[0]
        self.asked.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]
