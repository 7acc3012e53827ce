"""Many people at once, and long conversations: real sessions of a real server, without a browser."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

from conversations import Conversations
from tests.e2e.conftest import ARTIFACTS, Server
from tests.e2e.helpers_socket import Run, SocketVisitor
from tests.helpers_page import make_answer

VISITORS = 20
QUESTIONS = {
    "How deep is the mill pond of Ostrand at the sluice?": "nine metres",
    "Who dug the mill pond of Ostrand?": "Aldo Brenn",
    "When does the bakery of Ostrand open?": "five in the morning",
    "校准二氧化碳传感器时，仪器要在室外静置多久？": "20 分钟",
}


def write_figures(name: str, **figures: float) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    (ARTIFACTS / f"{name}.json").write_text(json.dumps(figures, indent=2), encoding="utf-8")


def test_twenty_sessions_ask_at_once_without_an_error(built_server: Server) -> None:
    with SocketVisitor(built_server.url) as first:
        first.open()
        first.ask(next(iter(QUESTIONS)))
    chosen = [list(QUESTIONS)[number % len(QUESTIONS)] for number in range(VISITORS)]

    def visit(question: str) -> tuple[str, Run, Run]:
        with SocketVisitor(built_server.url) as visitor:
            return question, visitor.open(), visitor.ask(question)

    began = time.perf_counter()
    with ThreadPoolExecutor(VISITORS) as pool:
        visits = list(pool.map(visit, chosen))
    whole = time.perf_counter() - began
    waits = sorted(answered.seconds for _, _, answered in visits)
    write_figures("visitors", visitors=VISITORS, whole=whole, median=waits[VISITORS // 2], longest=waits[-1])

    for question, opened, answered in visits:
        assert not opened.errors
        assert not answered.errors
        expected = QUESTIONS[question]
        assert expected in answered.text.replace("\\", ""), f"{question}: {answered.text[:500]}"


def test_a_conversation_of_300_questions_is_redrawn_in_a_second(built_server: Server) -> None:
    store = Conversations(built_server.folder / "data")
    conversation = store.create("long")
    scores = (0.7, 0.4, 0.1, -0.1, -0.4, -0.5, -0.6, -0.7, -0.8, -0.9)
    for number in range(300):
        store.add(conversation.id, answer=make_answer(question=f"question {number}", file="ostrand.pdf", scores=scores))
    with SocketVisitor(built_server.url, query=f"conversation={conversation.id}") as visitor:
        first = visitor.open()
        runs = [visitor.open() for _ in range(5)]
    store.delete(conversation.id)
    assert "question 299" in first.text.replace("\\", "")
    assert not [error for run in (first, *runs) for error in run.errors]
    best = min(run.seconds for run in runs)
    write_figures("long_conversation", turns=300, first=first.seconds, again=best)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert best < max(load, 1.0), f"{best:.2f} s at a load of {load:.1f}"
