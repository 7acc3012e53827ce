"""Small servers of ours on loopback that speak the wire formats of Ollama, OpenAI and DashScope."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pydantic_ai.models
import pytest

from config import Settings, load_settings
from model_loop import close_model_loop


@contextmanager
def requests_allowed() -> Iterator[None]:
    """Let pydantic-ai send requests inside the block; the model loop is closed after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pydantic_ai.models, "ALLOW_MODEL_REQUESTS", True)
        yield
    close_model_loop()


def settings_for(provider: FakeProvider, *, kind: str = "openai", **values: Any) -> Settings:
    """Settings that lead every role to a provider of the given kind."""
    places: dict[str, dict[str, Any]] = {
        "openai": {"openai_api_base": provider.url, "openai_api_key": "sk-secret"},
        "ollama": {"ollama_url": provider.root},
        "dashscope": {"dashscope_url": f"{provider.root}/compatible-mode/v1", "dashscope_api_key": "sk-secret"},
    }
    defaults: dict[str, Any] = {"llm_provider": kind, "llm_model": "known", "llm_timeout": 30.0, "llm_retries": 0}
    return load_settings(**{**defaults, "data_dir": Path("none"), **places[kind], **values})


@dataclass(frozen=True)
class Scripted:
    """What the server does with one request."""

    text: str = ""
    pieces: Sequence[str] = ()
    choices: Sequence[Mapping[str, float]] = ()
    """Log-probabilities: for each token, candidate → probability; the first candidate is the token."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    between: float = 0.0
    gate: threading.Event | None = None
    """What a streamed reply waits for after its first piece."""
    hang: bool = False
    cut_after: int | None = None
    """Close the line after so many pieces, without an end."""
    refusal: str = ""


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Any
    started: float
    connection: tuple[str, int]


class FakeProvider:
    """A running server; `answer` decides each reply from the request's body, `chat` requests only."""

    def __init__(self, answer: Callable[[Any], Scripted]) -> None:
        self.answer = answer
        self.received: list[Received] = []
        self.models = ["known", "known:latest", "embedder"]
        self.context_length: int | None = 8192
        self.embed_limit = 10_000
        self.dimension = 4
        self.active = 0
        self.most_active = 0
        self.disconnected = threading.Event()
        self.lock = threading.Lock()
        self.release = threading.Event()
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.provider = self

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def chats(self) -> list[Received]:
        return [item for item in self.received if item.path.endswith("/chat/completions")]


@contextmanager
def serve(answer: Callable[[Any], Scripted] | Scripted) -> Iterator[FakeProvider]:
    """Run a provider in threads for the block."""
    provider = FakeProvider(answer if callable(answer) else lambda _: answer)
    thread = threading.Thread(target=provider.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.release.set()
        provider.server.shutdown()
        provider.server.server_close()
        thread.join()


def prompt_of(body: Any) -> str:
    """All text of a chat request."""
    return "\n".join(message["content"] for message in body["messages"])


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    provider: FakeProvider

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.provider.disconnected.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        provider = self.server.provider
        self._note(None)
        if self.path == "/api/ps":
            running = {"model": "known", "name": "known", "size": 1, "size_vram": 0}
            if provider.context_length:
                running["context_length"] = provider.context_length
            self._json({"models": [running]})
        else:
            self._json({"error": "not found"}, status=404)

    def do_POST(self) -> None:
        provider = self.server.provider
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note(body)
        with provider.lock:
            provider.active += 1
            provider.most_active = max(provider.most_active, provider.active)
        try:
            self._route(body)
        finally:
            with provider.lock:
                provider.active -= 1

    def _route(self, body: Any) -> None:
        provider = self.server.provider
        if self.path.endswith("/chat/completions"):
            self._chat(body, scripted=provider.answer(body))
        elif body.get("model") not in provider.models:
            self._json({"error": f"model '{body.get('model')}' not found"}, status=404)
        elif self.path == "/api/generate":
            self._json({"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "response": "", "done": True})
        elif self.path == "/api/embed":
            self._json({"model": body["model"], "embeddings": [self._vector(text) for text in body["input"]]})
        elif self.path.endswith("/embeddings"):
            self._embeddings(body)
        else:
            self._json({"error": {"message": "no such route"}}, status=404)

    def _embeddings(self, body: Any) -> None:
        texts = body["input"]
        if len(texts) > self.server.provider.embed_limit:
            message = "batch size is invalid, it should not be larger than 10"
            self._json({"error": {"message": message, "type": "invalid_request_error"}}, status=400)
            return
        data = [{"object": "embedding", "index": n, "embedding": self._vector(text)} for n, text in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        # Out of order on purpose: `index` decides.
        self._json({"object": "list", "model": body["model"], "data": data[::-1], "usage": usage})

    def _vector(self, text: str) -> list[float]:
        return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0, 0.0][: self.server.provider.dimension]

    def _chat(self, body: Any, *, scripted: Scripted) -> None:
        time.sleep(scripted.delay)
        if scripted.hang:
            self.server.provider.release.wait(30)
            self.close_connection = True
            return
        if scripted.body is not None:
            self._send(scripted.body, status=scripted.status, headers=scripted.headers)
        elif scripted.status != 200:
            message = {"error": {"message": scripted.text or "failed", "type": "error", "code": None}}
            self._json(message, status=scripted.status, headers=scripted.headers)
        elif body.get("stream"):
            self._stream(body, scripted=scripted)
        else:
            self._json(_completion(body, scripted=scripted))

    def _stream(self, body: Any, *, scripted: Scripted) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = list(scripted.pieces) or [scripted.text]
        for number, piece in enumerate(pieces):
            if scripted.cut_after == number:
                self.close_connection = True
                return
            if number:
                time.sleep(scripted.between)
            if number and scripted.gate:
                scripted.gate.wait(30)
            self._event(_chunk(body, delta={"role": "assistant", "content": piece}))
        self._event(_chunk(body, delta={}, finish="stop"))
        usage = {"prompt_tokens": 100, "completion_tokens": len(pieces), "total_tokens": 100 + len(pieces)}
        self._event({**_chunk(body, delta={}), "choices": [], "usage": usage})
        self._write(b"data: [DONE]\n\n")
        self._write(b"")

    def _event(self, event: Mapping[str, Any]) -> None:
        self._write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _note(self, body: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.path, headers, body, time.monotonic(), self.client_address)
        self.server.provider.received.append(received)

    def _json(self, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._send(json.dumps(value).encode(), status=status, headers=headers or {})

    def _send(self, data: bytes, *, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _completion(body: Any, *, scripted: Scripted) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": scripted.text}
    if scripted.refusal:
        message |= {"content": None, "refusal": scripted.refusal}
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": message}
    if body.get("logprobs") and scripted.choices:
        choice["logprobs"] = {"content": [_logprob(candidates) for candidates in scripted.choices]}
    return {
        "id": "reply",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102},
    }


def _chunk(body: Any, *, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "reply",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
    }


def _logprob(candidates: Mapping[str, float]) -> dict[str, Any]:
    entries = [{"token": token, "logprob": math.log(chance), "bytes": None} for token, chance in candidates.items()]
    return {**entries[0], "top_logprobs": entries}
