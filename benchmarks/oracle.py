"""A loopback language model that grades from the labels of the action cases, and these cases with ten documents."""

from __future__ import annotations

import json
import random
import re
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.common import read_jsonl
from i18n import LANGUAGES

DOCUMENTS = 10

Case = dict[str, Any]


def cases_of(folder: Path, *, limit: int, seed: int) -> list[Case]:
    """Return cases of both languages, each filled up to ten documents with passages of other cases."""
    chooser = random.Random(seed)
    chosen: list[Case] = []
    for language in LANGUAGES:
        cases = list(read_jsonl(folder / f"cases_{language}.jsonl"))
        chooser.shuffle(cases)
        for case in cases[:limit] if limit else cases:
            others = [
                text for other in chooser.sample(cases, 12) if other["id"] != case["id"] for text in other["passages"]
            ]
            filler = [text for text in others if text not in case["passages"]]
            documents = [*case["passages"], *chooser.sample(filler, DOCUMENTS - len(case["passages"]))]
            chooser.shuffle(documents)
            chosen.append({**case, "documents": documents})
    return chosen


@dataclass
class Oracle:
    """What is true of (part, passage), and how often the model says otherwise."""

    error: float
    delay: float
    passages: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    active: int = 0
    rounds: int = 0

    def learn(self, case: Case, *, parts: Sequence[str]) -> None:
        """Take over the labels of a case; a passage with one of two facts answers a whole question partly."""
        nested = [item if isinstance(item, list) else [item] for item in case["answers"]]
        half = "Ambiguous" in case["expected_action"]
        for number, part in enumerate(parts):
            own = nested[number] if half and len(parts) == len(nested) else [text for item in nested for text in item]
            self.answers[part] = tuple(map(_plain, own))
            for text, label in zip(case["passages"], case["passage_labels"], strict=True):
                holds = bool(label) and (len(parts) == 1 or any(_plain(answer) in _plain(text) for answer in own))
                self.passages[part, _plain(text)] = ("Partly" if half and len(parts) == 1 else "Yes") if holds else "No"

    def reply(self, question: str, text: str) -> str:
        """Return Yes, Partly or No for a passage or a strip."""
        plain = _plain(text)
        said = self.passages.get((question, plain))
        if said is None:
            supported = any(
                plain in known for (part, known), word in self.passages.items() if part == question and word != "No"
            )
            said = "Yes" if supported and any(answer in plain for answer in self.answers.get(question, ())) else "No"
        chance = zlib.crc32(f"{question}\0{plain}".encode()) / 2**32
        return ("No" if said == "Yes" else "Yes") if chance < self.error else said


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()


@contextmanager
def loopback_model(oracle: Oracle) -> Iterator[str]:
    """Serve the oracle as an OpenAI-compatible chat model; yields its base URL."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            """Answer one chat request after the delay."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                # A request that meets no other one begins a round: true while one question runs at a time.
                oracle.rounds += oracle.active == 0
                oracle.active += 1
            time.sleep(oracle.delay)
            with lock:
                oracle.active -= 1
            message = body["messages"][-1]["content"]
            question, text = (_fenced(message, tag=tag) for tag in ("question", "passage"))
            data = json.dumps(_completion(oracle.reply(question, text))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _fenced(message: str, *, tag: str) -> str:
    return message.split(f"<{tag}>\n", 1)[1].split(f"\n</{tag}>", 1)[0].replace("&lt;", "<")


def _completion(word: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": word}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [choice],
        "usage": usage,
    }
