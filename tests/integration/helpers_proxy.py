"""A proxy on loopback as it stands before a Chroma server: a path of its own, credentials, and pages of its own."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


class Proxy(ThreadingHTTPServer):
    """Passes requests under `/chroma` on to `target`; `status` other than 0 is all it answers."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, target: str, *, name: str, password: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = httpx.Client(base_url=target, trust_env=False)
        self.expected = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
        self.status = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


@contextmanager
def proxy(target: str, *, name: str, password: str) -> Iterator[Proxy]:
    """Run a proxy in threads for the block."""
    server = Proxy(target, name=name, password=password)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        server.client.close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, *_: object) -> None:
        pass

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.status:
            self._page(self.server.status)
        elif self.headers.get("Authorization") != self.server.expected:
            self._page(401)
        elif not self.path.startswith("/chroma/api/"):
            self._page(404)
        else:
            kind = {"Content-Type": "application/json"}
            path = self.path.removeprefix("/chroma")
            reply = self.server.client.request(self.command, path, content=body, headers=kind)
            self._send(reply.status_code, kind="application/json", body=reply.content)

    do_GET = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815

    def _page(self, status: int) -> None:
        self.close_connection = True  # a client of Chroma's that did not start closes none
        self._send(status, kind="text/html", body=f"<html><h1>{status}</h1>nginx</html>".encode())

    def _send(self, status: int, *, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        self.end_headers()
        self.wfile.write(body)
