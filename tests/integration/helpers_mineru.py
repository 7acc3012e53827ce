"""Loopback servers that answer as MinerU's model server and as its hosted service do, with their failures."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LAYOUT = "\n".join(
    f"<|box_start|>{box}<|box_end|><|ref_start|>{kind}<|ref_end|><|rotate_up|>{tail}"
    for box, kind, tail in (
        ("100 050 900 090", "header", ""),
        ("100 120 900 170", "title", ""),
        ("100 200 900 300", "text", ""),
        ("100 320 900 360", "text", "txt_contd_tgt"),
        ("100 400 900 430", "table_caption", ""),
        ("100 440 900 600", "table", ""),
        ("100 640 900 700", "equation", ""),
        ("480 950 520 970", "page_number", ""),
    )
)
TABLE = "<fcel>指标<fcel>2024<nl><fcel>收入<fcel>38.9<nl>"
LOOP = "the same words again and " * 400


@dataclass
class ModelServer:
    """What the server does next: each entry of `plan` is used by one layout request, then "good" follows."""

    plan: list[str] = field(default_factory=list)
    always: str = "good"
    seen: Counter[str] = field(default_factory=Counter)
    url: str = ""
    busiest: int = 0
    _busy: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, prompt: str) -> tuple[int, str, str]:
        """Status, text and finish reason for one request."""
        with self._lock:
            self.seen["layout" if "Layout" in prompt else "block"] += 1
            step = (self.plan.pop(0) if self.plan else self.always) if "Layout" in prompt else "good"
        if step == "error":
            return 500, "", ""
        if step == "hang":
            time.sleep(3)
        if step == "chatter":
            return 200, "I am sorry, I cannot see a page.", "stop"
        if "Layout" in prompt:
            return 200, LAYOUT + "<|im_end|>", "stop"
        if "Table" in prompt:
            return 200, TABLE + "<|im_end|>", "stop"
        if "Formula" in prompt:
            return 200, "E = m c^{2}<|im_end|>", "stop"
        if self.always == "loop":
            return 200, LOOP, "length"
        return 200, "Stone walls keep the harbour safe.<|im_end|>", "stop"


@contextmanager
def model_server(**given: Any) -> Iterator[ModelServer]:
    state = ModelServer(**given)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": "mineru", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = json.dumps(body["messages"][-1]["content"])[-4000:]
            with state._lock:
                state._busy += 1
                state.busiest = max(state.busiest, state._busy)
            try:
                status, text, finish = state.answer(prompt)
            finally:
                with state._lock:
                    state._busy -= 1
            if status != 200:
                self._send(status, {"error": {"message": "overloaded"}})
                return
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._send(200, {"id": "1", "object": "chat.completion", "model": "mineru", "choices": [choice]})

        def _send(self, status: int, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                return  # the client gave up waiting

        def log_message(self, *args: Any) -> None:
            return

    with serving(Handler) as address:
        state.url = address
        yield state


@dataclass
class HostedService:
    """The hosted service: what it got, and how it behaves."""

    url: str = ""
    refuse: bool = False
    fail: bool = False
    stuck: bool = False
    polls: int = 0
    uploads: list[bytes] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    upload_headers: list[dict[str, str]] = field(default_factory=list)

    def progress(self) -> dict[str, Any]:
        self.polls += 1
        if self.fail:
            return {"state": "failed", "err_msg": "cannot parse"}
        if self.stuck or self.polls < 2:
            return {"state": "running", "extract_progress": {"extracted_pages": 1, "total_pages": 2}}
        return {"state": "done", "full_zip_url": f"{self.url}/result.zip"}


def _chunks(stream: Any) -> bytes:
    """The body of a chunked request."""
    found = b""
    while size := int(stream.readline().strip() or b"0", 16):
        found += stream.read(size)
        stream.readline()
    stream.readline()
    return found


def result_archive() -> bytes:
    items = [
        {"type": "text", "text": "Harbour Report", "text_level": 1, "bbox": [100, 50, 900, 90], "page_idx": 0},
        {"type": "text", "text": "The walls were raised.", "bbox": [100, 120, 900, 200], "page_idx": 0},
        {
            "type": "table",
            "table_caption": ["Table 1. Catch"],
            "table_body": "<table><tr><td>Port</td><td>Tonnes</td></tr><tr><td>Brook</td><td>77</td></tr></table>",
            "table_footnote": [],
            "bbox": [100, 250, 900, 500],
            "page_idx": 0,
        },
        {"type": "text", "text": "Boats stayed in the river.", "bbox": [100, 100, 900, 150], "page_idx": 1},
    ]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("document_content_list.json", json.dumps(items))
    return buffer.getvalue()


@contextmanager
def hosted_service(**given: Any) -> Iterator[HostedService]:
    state = HostedService(**given)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if state.refuse or self.headers["Authorization"] != "Bearer token":
                self._send(401, b"{}")
                return
            self._json({"batch_id": "b1", "file_urls": [f"{state.url}/upload"]})

        def do_PUT(self) -> None:
            state.upload_headers.append(dict(self.headers))
            length = self.headers["Content-Length"]
            state.uploads.append(self.rfile.read(int(length)) if length else _chunks(self.rfile))
            self._send(200, b"")

        def do_GET(self) -> None:
            if self.path.endswith("/result.zip"):
                self._send(200, result_archive())
                return
            self._json({"extract_result": [{"file_name": "document.pdf", **state.progress()}]})

        def _json(self, data: dict[str, Any]) -> None:
            self._send(200, json.dumps({"code": 0, "msg": "ok", "data": data}).encode())

        def _send(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            return

    with serving(Handler) as address:
        state.url = address
        yield state


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
