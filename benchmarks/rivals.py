"""Cost and behaviour beside what people would use instead: the corrective-RAG flows of two frameworks, and plain RAG.

All work on the same store, embedder, loopback model (a fixed delay a call; it grades and answers from the labels, so
every system has a perfect model) and loopback web search. Scenarios: all well; the model refuses one passage (a
provider's content filter); the web is down; the model answers in sentences instead of one word.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import httpx

from benchmarks.answering import HANDWRITTEN, STORE, answered, built, pdf_settings
from benchmarks.common import (
    Options,
    data_dir,
    environment,
    figures,
    finish,
    quantile,
    rate,
    read_jsonl,
    read_options,
    table,
)
from benchmarks.rival_flows import LangGraphFlow, LlamaIndexFlow, PlainFlow, Services
from config import Settings
from crag import Crag, build_crag
from knowledge_base import KnowledgeBase, open_knowledge_base
from llm_prompts import estimate_tokens
from schema import SearchMode
from tests.integration.helpers_providers import FakeProvider, Scripted, prompt_of, serve

Row = dict[str, Any]

WELL, FILTERED, OFFLINE, WORDY = "all well", "one passage refused", "web down", "wordy model"
SCENARIOS = (WELL, FILTERED, OFFLINE, WORDY)
SEARCH_DELAY = 0.2
MANY, FEW = {True: 8, False: 2}, {True: 4, False: 1}
"""Answerable and unanswerable questions of a language: where all is well, and where something goes wrong."""
LANGUAGES = ("en", "zh")


class Flow(Protocol):
    """What answers a question in words."""

    def answer(self, question: str) -> str:
        """The answer."""
        ...


@dataclass(frozen=True, slots=True)
class CragFlow:
    """The product's pipeline."""

    crag: Crag

    def answer(self, question: str) -> str:
        """The answer's text; empty when it is refused."""
        answer = self.crag.answer(question)
        return "" if answer.refused else answer.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE, help="folder of the store that `answering` made")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds the model takes for a call")
    options = read_options(__doc__, parser=parser)
    path = data_dir() / "pdf" / "pdf_qa.jsonl"
    handwritten = list(read_jsonl(path))
    questions, fewer = (chosen(handwritten, counts=counts, options=options) for counts in (MANY, FEW))
    settings = pdf_settings(options.rest.store)
    rows: list[Row] = []
    with open_knowledge_base(settings) as knowledge_base, web() as address:
        built(knowledge_base)
        for scenario in SCENARIOS:
            oracle = Oracle([*questions, *fewer], delay=options.rest.delay, wordy=scenario == WORDY)
            with serve(oracle.reply) as provider:
                search = f"http://127.0.0.1:{closed_port()}" if scenario == OFFLINE else address
                asked = questions if scenario == WELL else fewer
                systems = build_flows(settings, knowledge_base=knowledge_base, model=provider.url, search=search)
                if scenario == FILTERED:
                    oracle.filter(asked, knowledge_base=knowledge_base)
                for name, flow in systems.items():
                    rows += [ask(flow, row=q, system=name, scenario=scenario, provider=provider) for q in asked]
    summary = summarise(rows)
    costs = [row for row in summary if row["scenario"] == WELL]
    result = {
        "environment": environment(seed=options.seed, files=[path]),
        "delay": options.rest.delay,
        "figures": figures(summary, keys=("scenario", "lang", "system")),
        "summary": summary,
        "rows": rows,
    }
    text = (
        f"{len(questions)} questions, {options.rest.delay} s a model call, {SEARCH_DELAY} s a web search.\n\n"
        f"{table(costs)}\n\nWhen something goes wrong ({len(fewer)} questions):\n\n"
        f"{table([_trouble(row) for row in summary if row['scenario'] != WELL and row['lang'] == 'all'])}"
    )
    finish("rivals", result=result, options=options, text=text)


def chosen(rows: Sequence[Row], *, counts: Mapping[bool, int], options: Options) -> list[Row]:
    """Handwritten questions: of each language so many answerable (True) and unanswerable (False) ones."""
    found = []
    for language in LANGUAGES:
        for answerable, count in counts.items():
            here = [
                row
                for row in rows
                if row["source"] == HANDWRITTEN and row["lang"] == language and row["answerable"] is answerable
            ]
            found += random.Random(options.seed).sample(here, min(options.limit or count, len(here)))
    return found


class Oracle:
    """A model that knows the labels: grades yes where an answer string is in the text, and answers with it."""

    def __init__(self, questions: Sequence[Row], *, delay: float, wordy: bool) -> None:
        self.answers: Mapping[str, list[str]] = {row["question"]: row["answers"] for row in questions}
        self.delay, self.wordy = delay, wordy
        self.filtered: tuple[str, ...] = ()

    def filter(self, questions: Sequence[Row], *, knowledge_base: KnowledgeBase) -> None:
        """Refuse the second passage of every question, as a provider's content filter does."""
        found = [nearest(knowledge_base, question=row["question"], limit=2) for row in questions]
        self.filtered = tuple(texts[1] for texts in found if len(texts) > 1)

    def reply(self, body: Any) -> Scripted:
        """What the model does with a request; `model` says what it is asked for."""
        prompt = prompt_of(body)
        if body["model"] == "grade" and any(text in prompt for text in self.filtered):
            return Scripted(status=400, text="data_inspection_failed: the input may be inappropriate")
        question = next((known for known in self.answers if known in prompt), "")
        answers = self.answers.get(question, [])
        rest = prompt.replace(question, " ") if question else prompt
        held = next((answer for answer in answers if answered([answer], text=rest)), "")
        match body["model"]:
            case "grade":
                return Scripted(text=self._word(held, chinese="只回答" in prompt), delay=self.delay)
            case "rewrite":
                return Scripted(text=question, delay=self.delay)
        unknown = "NO_ANSWER" if "NO_ANSWER" in prompt else "I do not know."
        return Scripted(text=f"{held} [1]" if held else unknown, delay=self.delay)

    def _word(self, held: str, *, chinese: bool) -> str:
        if self.wordy:
            return "Yes, the document is relevant." if held else "No, the document is not relevant to this."
        if chinese:
            return "是" if held else "否"
        return "yes" if held else "no"


@contextmanager
def web() -> Iterator[str]:
    """A web search on loopback in the wire format of Tavily and SearXNG, whose one result answers nothing."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """SearXNG."""
            self._reply()

        def do_POST(self) -> None:
            """Tavily."""
            self.rfile.read(int(self.headers["Content-Length"]))
            self._reply()

        def _reply(self) -> None:
            time.sleep(SEARCH_DELAY)
            row = {"url": "http://127.0.0.1/page", "title": "Gardening", "content": "Tulips are planted in autumn."}
            data = json.dumps({"results": [row]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def closed_port() -> int:
    """A port where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def build_flows(settings: Settings, *, knowledge_base: KnowledgeBase, model: str, search: str) -> dict[str, Flow]:
    """The rivals, and CRAG without a model, with a model that answers, and with one that also grades."""
    services = Services(model_url=model, search_url=search)

    def retrieve(question: str, limit: int) -> list[str]:
        return nearest(knowledge_base, question=question, limit=limit)

    def crag(**changes: Any) -> CragFlow:
        own = {
            "web_search": SearchMode.AUTO,
            "web_providers": ("searxng",),
            "searxng_url": search,
            "web_cache_hours": 0.0,
            "openai_api_base": model,
            **changes,
        }
        return CragFlow(build_crag(pdf_settings(settings.data_dir, **own), knowledge_base=knowledge_base))

    answering = {"answer_provider": "openai", "answer_model": "answer"}
    grading = {"grade_provider": "openai", "grade_model": "grade", "evaluator": "cascade"}
    return {
        "plain RAG": PlainFlow(retrieve, services=services),
        "LangGraph flow": LangGraphFlow(retrieve, services=services),
        "LlamaIndex flow": LlamaIndexFlow(retrieve, services=services),
        "CRAG, no model": crag(),
        "CRAG, model answers": crag(**answering),
        "CRAG, model answers and grades": crag(**answering, **grading),
    }


def nearest(knowledge_base: KnowledgeBase, *, question: str, limit: int) -> list[str]:
    """The texts of the nearest chunks by vector, as the tutorials retrieve."""
    vector = knowledge_base.embedder.embed_queries([question])[0]
    keys = [key for key, _ in knowledge_base.dense(vector, limit=limit)]
    return [chunk.text for chunk in knowledge_base.chunks(keys).values()]


def ask(flow: Flow, *, row: Row, system: str, scenario: str, provider: FakeProvider) -> Row:
    """Ask one question; a flow that raises gives no answer."""
    before = len(provider.chats())
    started = time.perf_counter()
    text, failed = "", False
    try:
        text = flow.answer(row["question"])
    except httpx.HTTPError:
        failed = True
    seconds = time.perf_counter() - started
    calls = provider.chats()[before:]
    said = bool(text) and "I do not know" not in text
    right = said and answered(row["answers"], text=text) if row["answerable"] else not said and not failed
    return {
        "id": row["id"],
        "lang": row["lang"],
        "answerable": row["answerable"],
        "scenario": scenario,
        "system": system,
        "right": right,
        "failed": failed,
        "calls": len(calls),
        "tokens": sum(estimate_tokens(prompt_of(call.body)) for call in calls),
        "seconds": round(seconds, 3),
    }


def summarise(rows: Sequence[Row]) -> list[Row]:
    """One row for each scenario, system and language."""
    found = []
    for scenario in SCENARIOS:
        for system in dict.fromkeys(row["system"] for row in rows):
            for language in (*LANGUAGES, "all"):
                here = [
                    row
                    for row in rows
                    if (row["scenario"], row["system"]) == (scenario, system) and language in {row["lang"], "all"}
                ]
                if here:
                    found.append(_row(here, scenario=scenario, system=system, language=language))
    return found


def _row(rows: Sequence[Row], *, scenario: str, system: str, language: str) -> Row:
    return {
        "scenario": scenario,
        "system": system,
        "lang": language,
        "right, answerable": rate([row for row in rows if row["answerable"]], "right"),
        "refused, unanswerable": rate([row for row in rows if not row["answerable"]], "right"),
        "questions lost": rate(rows, "failed"),
        "median s": quantile([row["seconds"] for row in rows], q=0.5),
        "model calls": sum(row["calls"] for row in rows) / len(rows),
        "prompt tokens": round(sum(row["tokens"] for row in rows) / len(rows)),
    }


def _trouble(row: Row) -> Row:
    names = ("scenario", "system", "right, answerable", "questions lost", "median s", "model calls")
    return {name: row[name] for name in names}


if __name__ == "__main__":
    main()
