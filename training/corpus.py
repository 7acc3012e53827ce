"""The training corpus: passages and questions whose licences allow derived works, split by document.

Reads the evaluation pack named by `CRAG_BENCH_DATA`; only the CC-BY-SA parts are taken (`LICENSED`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.labelled import contains, held_out_documents, read_lines

LICENSED = frozenset({"xquad", "nq-open-oracle", "cmrc2018-dev", "cmrc2018-trial"})
STOP_WORDS = frozenset(
    "the a an of in on at to for and or is are was were be been do does did what which who whom when where how "
    "why that this it its by with from as has have had his her their s many much".split()
)
SHORTEST_SENTENCE = {"zh": 12, "en": 25}


def is_chinese(text: str) -> bool:
    """Whether at least a fifth of the characters are Han."""
    return sum("\u4e00" <= character <= "\u9fff" for character in text) > 0.2 * max(1, len(text))


def sentences_of(text: str) -> tuple[str, ...]:
    """Sentences of a passage; very short ones stay with the sentence before."""
    chinese = is_chinese(text)
    pattern = r"(?<=[。！？；])\s*" if chinese else r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])"
    shortest = SHORTEST_SENTENCE["zh" if chinese else "en"]
    found: list[str] = []
    for sentence in re.split(pattern, text):
        if not sentence.strip():
            continue
        if found and len(found[-1]) < shortest:
            found[-1] += ("" if chinese else " ") + sentence
        else:
            found.append(sentence)
    return tuple(found) or (text,)


def terms(text: str) -> list[str]:
    """Words without stop words, and Han bigrams."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    found = [word for word in re.findall(r"[a-z0-9]+", lowered) if word not in STOP_WORDS]
    for run in re.findall(r"[\u4e00-\u9fff]+", lowered):
        found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    return found


def overlap(question: str, text: str) -> float:
    """Share of the question's terms that occur in the text."""
    asked = set(terms(question))
    return len(asked & set(terms(text))) / max(1, len(asked))


class LexicalIndex:
    """BM25 over a fixed list of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        for number, text in enumerate(texts):
            counts = Counter(terms(text))
            self._lengths.append(sum(counts.values()))
            for term, frequency in counts.items():
                self._postings[term].append((number, frequency))
        self._mean = sum(self._lengths) / max(1, len(self._lengths))

    def top(self, question: str, *, count: int) -> list[int]:
        """Numbers of the best texts, best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term in set(terms(question)):
            found = self._postings.get(term, [])
            rarity = math.log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for number, frequency in found:
                scale = 1.2 * (0.25 + 0.75 * self._lengths[number] / self._mean)
                scores[number] += rarity * frequency * 2.2 / (frequency + scale)
        return sorted(scores, key=lambda number: -scores[number])[:count]


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage with its sentences."""

    id: str
    language: str
    document: str
    title: str
    source: str
    text: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One answerable question; `hard` are lexical neighbours and `same` other passages of its document."""

    id: str
    language: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    document: str
    source: str
    hard: tuple[str, ...]
    same: tuple[str, ...]
    held_out: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything the sample maker draws from."""

    passages: dict[str, Passage]
    questions: tuple[Question, ...]
    held_out_documents: frozenset[str]


def load_corpus() -> Corpus:
    """Licensed passages and questions of both languages."""
    passages: dict[str, Passage] = {}
    rows: list[dict[str, Any]] = []
    for language in ("en", "zh"):
        for row in read_lines(f"qa/passages_{language}.jsonl"):
            if row["source"] in LICENSED:
                passages[row["pid"]] = Passage(
                    id=row["pid"],
                    language=language,
                    document=row["doc_id"],
                    title=row["title"],
                    source=row["source"],
                    text=row["text"],
                    sentences=sentences_of(row["text"]),
                )
        rows += [
            row
            for row in read_lines(f"qa/questions_{language}.jsonl")
            if row["source"] in LICENSED and row["gold_pids"] and row["gold_pids"][0] in passages
        ]
    held_out = held_out_documents(passage.document for passage in passages.values())
    return Corpus(passages=passages, questions=_with_neighbours(rows, passages, held_out), held_out_documents=held_out)


def _with_neighbours(
    rows: Sequence[dict[str, Any]], passages: dict[str, Passage], held_out: frozenset[str]
) -> tuple[Question, ...]:
    """Questions with their lexical neighbours and document mates that lack the answer."""
    ids = {
        language: [passage.id for passage in passages.values() if passage.language == language]
        for language in ("en", "zh")
    }
    indexes = {language: LexicalIndex([passages[key].text for key in keys]) for language, keys in ids.items()}
    mates: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for passage in passages.values():
        mates[passage.document, passage.language].append(passage.id)
    found = []
    for row in rows:
        language, answers = row["lang"], tuple(row["answers"])
        lacking = [
            key
            for key in (ids[language][number] for number in indexes[language].top(row["question"], count=12))
            if key not in row["gold_pids"] and not contains(answers, passages[key].text)
        ]
        same = [
            key
            for key in mates[row["doc_id"], language]
            if key not in row["gold_pids"] and not contains(answers, passages[key].text)
        ]
        found.append(
            Question(
                id=row["qid"],
                language=language,
                text=row["question"],
                answers=answers,
                gold=tuple(key for key in row["gold_pids"] if key in passages),
                document=row["doc_id"],
                source=row["source"],
                hard=tuple(lacking[:8]),
                same=tuple(same),
                held_out=row["doc_id"] in held_out,
            )
        )
    return tuple(found)
