"""Labelled material the reader was never trained on: other sources, and documents held out by hash.

What was trained on is marked, not dropped, so that a benchmark can show both apart.
"""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.common import data_dir, read_jsonl
from refinement import decompose
from schema import Action, Document, Origin

LANGUAGES = ("en", "zh")
LONGEST_WEB_TEXT = 1200


def read_lines(name: str) -> Iterator[dict[str, Any]]:
    """Rows of one JSONL file of the pack."""
    return read_jsonl(data_dir() / name)


def folded(text: str) -> str:
    """Text without case, width and white space, for comparing answers."""
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text).lower())


def contains(answers: Sequence[str], text: str) -> bool:
    """Whether any of the answers occurs in the text."""
    whole = folded(text)
    return any(folded(answer) in whole for answer in answers if answer.strip())


def is_held_out(document: str) -> bool:
    """One document in ten, by hash, is never trained on."""
    return int(hashlib.md5(document.encode(), usedforsecurity=False).hexdigest(), 16) % 10 == 0


def held_out_documents(documents: Iterable[str]) -> frozenset[str]:
    """The documents never trained on: those held out by hash, and three whose passages are in both languages."""
    known = set(documents)
    parallel = sorted(document for document in known if document.startswith("xquad"))[::9][:3]
    return frozenset(document for document in known if is_held_out(document)) | frozenset(parallel)


@dataclass(frozen=True, slots=True)
class Pair:
    """A labelled pair of the evaluation pack."""

    question: str
    passage: str
    answered: bool
    kind: str
    source: str
    language: str
    unseen: bool


@dataclass(frozen=True, slots=True)
class ActionCase:
    """A question with passages and the actions that are right."""

    question: str
    passages: tuple[str, ...]
    accepted: frozenset[Action]
    kind: str
    language: str
    unseen: bool


@dataclass(frozen=True, slots=True)
class StripCase:
    """A document cut into strips, `holding` telling which of them hold the answer."""

    question: str
    strips: tuple[str, ...]
    holding: tuple[bool, ...]
    answers: tuple[str, ...]
    source: str
    language: str
    unseen: bool


@cache
def _documents() -> tuple[dict[str, str], frozenset[str]]:
    """Document of every question, and the held-out documents."""
    documents: dict[str, str] = {}
    known: set[str] = set()
    for language in LANGUAGES:
        documents |= {row["qid"]: row["doc_id"] for row in read_lines(f"qa/questions_{language}.jsonl")}
        known |= {row["doc_id"] for row in read_lines(f"qa/passages_{language}.jsonl")}
    return documents, held_out_documents(known | set(documents.values()))


def is_unseen(question_id: str) -> bool:
    """Whether no question of this document was trained on."""
    documents, held_out = _documents()
    trained = question_id.startswith(("xquad", "nq", "cmrc", "squad2"))
    return not trained or documents.get(question_id, "") in held_out


def labelled_pairs() -> Iterator[Pair]:
    """evaluator/pairs of both languages."""
    for language in LANGUAGES:
        for row in read_lines(f"evaluator/pairs_{language}.jsonl"):
            yield Pair(
                question=row["question"],
                passage=row["passage"],
                answered=bool(row["label"]),
                kind=row["neg_type"] or "positive",
                source=row["source"].split(":")[0].split(" ")[0],
                language=language,
                unseen=is_unseen(row["qid"]),
            )


def squad2_pairs() -> Iterator[Pair]:
    """refuse/squad2_en: questions written to be unanswerable from their paragraph; nine in ten were trained on."""
    for number, row in enumerate(read_lines("refuse/squad2_en.jsonl")):
        yield Pair(
            question=row["question"],
            passage=row["passage"],
            answered=bool(row["answerable"]),
            kind="positive" if row["answerable"] else "squad2_unanswerable",
            source="squad2",
            language="en",
            unseen=number % 10 == 0,
        )


def action_cases() -> Iterator[ActionCase]:
    """action/cases of both languages; a composite is unseen only where both its questions are."""
    for language in LANGUAGES:
        texts = {r["question"]: r["qid"] for r in read_lines(f"qa/questions_{language}.jsonl")}
        for row in read_lines(f"action/cases_{language}.jsonl"):
            parts = [
                text for text in texts if row["kind"].startswith("two-part") and text.rstrip("?？") in row["question"]
            ]
            unseen = all(is_unseen(texts[part]) for part in parts) if parts else is_unseen(str(row.get("qid", "rgb")))
            yield ActionCase(
                question=row["question"],
                passages=tuple(row["passages"]),
                accepted=frozenset(Action(name.lower()) for name in row["acceptable_actions"]),
                kind=row["kind"],
                language=language,
                unseen=unseen,
            )


def given_strips() -> Iterator[StripCase]:
    """refine/strips of both languages, cut by the pack."""
    for language in LANGUAGES:
        for row in read_lines(f"refine/strips_{language}.jsonl"):
            yield StripCase(
                question=row["question"],
                strips=tuple(row["strips"]),
                holding=tuple(bool(keep) for keep in row["keep"]),
                answers=tuple(row["answers"]),
                source=row["qid"].split("-")[0],
                language=language,
                unseen=is_unseen(row["qid"]),
            )


def cut_strips(*, per_source: int, seed: int) -> Iterator[StripCase]:
    """Strips as the product cuts them, of answered documents that were never trained on."""
    chance = random.Random(seed)
    found: defaultdict[tuple[str, str], list[StripCase]] = defaultdict(list)
    for question, answers, passage, source, language in _answered():
        strips = [strip.text for strip in decompose(Document(text=passage, origin=Origin.KB, rank=1))]
        holding = tuple(contains(answers, strip) for strip in strips)
        if len(strips) > 1 and any(holding):
            case = StripCase(question, tuple(strips), holding, answers, source, language, unseen=True)
            found[source, language].append(case)
    for cases in found.values():
        yield from chance.sample(cases, min(per_source, len(cases)))


def _answered() -> Iterator[tuple[str, tuple[str, ...], str, str, str]]:
    """Unseen questions: question, answers, a passage that holds one, source, language."""
    for language in LANGUAGES:
        passages = {r["pid"]: r["text"] for r in read_lines(f"qa/passages_{language}.jsonl")}
        for row in read_lines(f"qa/questions_{language}.jsonl"):
            if is_unseen(row["qid"]):
                for key in row["gold_pids"][:1]:
                    if key in passages:
                        yield row["question"], tuple(row["answers"]), passages[key], row["source"], language
    for name in ("zh_refine", "zh_fact", "en_fact"):
        for row in read_lines(f"rgb/{name}.jsonl"):
            answers = _flat(row["answer"])
            for passage in row["positive"][:3]:
                if contains(answers, passage):
                    yield row["query"], answers, passage[:LONGEST_WEB_TEXT], "rgb", name[:2]
    answers_of = {r["question"]: _flat(r["answers"]) for r in read_lines("pdf/pdf_qa.jsonl")}
    for pair in labelled_pairs():
        if pair.answered and pair.question in answers_of and contains(answers_of[pair.question], pair.passage):
            yield pair.question, answers_of[pair.question], pair.passage, pair.source, pair.language


def _flat(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(item for part in value for item in _flat(part))
    return (str(value),)
