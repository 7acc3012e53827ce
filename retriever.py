"""Question to documents: nearest vectors and BM25, fused; near-equal chunks give way to one, with all its sources."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from config import Settings
from embeddings import Embedder
from errors import ProviderError
from pdf_lines import mend
from schema import Channel, Chunk, Document, Origin
from wording import simplified

logger = logging.getLogger(__name__)

DENSE, BM25 = "dense", "bm25"
FOUND_BY_WORDS = "models.found_by_words"
POOL = 60
"""Candidates asked of each channel, at least."""
RANK_CONSTANT = 5
"""k of reciprocal rank fusion."""
ENOUGH_TERMS = 0.5
"""Share of the question's terms in BM25's best match from which BM25 has its whole weight."""
NEAR_EQUAL = 0.92
"""Share of common search terms (Jaccard) from which chunks with the same figures and negations are one paragraph."""
_LOADED_AT_ONCE = 16

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TERM = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+(?:[.,][0-9]+)*")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_RADICAL = re.compile(r"[\u2e80-\u2fdf]")
_ASKING = re.compile(r"什么|哪些|哪个|哪种|哪里|哪儿|怎么样|怎么|怎样|如何|为何|多少|是否|请问")
_DECISIVE = re.compile(r"\d|^(?:no|not|never|none|without|except|unless)$|[不未无非禁除勿]")
_STOP_WORDS = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it"
    " its many me much my of on or our she should so such than that the their them then there these they this"
    " those to was we were what when where which who whom whose why will with would you your".split()
)


class Store(Protocol):
    """What retrieval needs of a knowledge base."""

    def dense(
        self, vector: NDArray[np.float32], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """(Chunk id, cosine) of the nearest chunks of these files and under such headings, best first."""
        ...

    def lexical(
        self, terms: Sequence[str], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        """(Chunk id, BM25 score) of the best such chunks with any of the terms, best first."""
        ...

    def chunks(self, chunk_ids: Sequence[str], *, files: Collection[str] = ()) -> dict[str, Chunk]:
        """Chunks by id in the order asked; ids that are gone are left out."""
        ...

    def file_names(self, document_id: str) -> tuple[str, ...]:
        """Every file that holds this content."""
        ...


class HybridRetriever:
    """Finds the chunks of a knowledge base that a question is about."""

    def __init__(self, knowledge_base: Store, *, embedder: Embedder, settings: Settings) -> None:
        self._store = knowledge_base
        self._embedder = embedder
        self._weights = {DENSE: settings.dense_weight, BM25: settings.bm25_weight}

    def retrieve(self, question: str, *, limit: int, files: Sequence[str] = (), section: str = "") -> list[Document]:
        """Return at most `limit` documents, best first, of `files` and under headings that contain `section` only.

        `similarity` is the cosine, 0 where only BM25 found the chunk; `channels` hold rank and score of each channel.
        Where a provider fails to embed the question, its words alone find documents, which then say so.

        :raises EmbeddingMismatchError: the store was built with another embedder.
        :raises ProviderError: the embedder fails, and the words find nothing.
        """
        pool = max(POOL, 4 * limit)
        found: dict[str, list[tuple[str, float]]] = {}
        failure: ProviderError | None = None
        if self._weights[DENSE]:
            try:
                vector = self._embedder.embed_queries([question])[0]
            except ProviderError as error:
                logger.warning("the question cannot be embedded: %s", error.code)
                failure = error
            else:
                found[DENSE] = self._store.dense(vector, limit=pool, files=files, section=section)
        if self._weights[BM25] or failure:
            found[BM25] = self._store.lexical(search_terms(question), limit=pool, files=files, section=section)
        trust = self._trust(found[BM25], question, files=files) if len(found) > 1 else 1.0
        weights = {**self._weights, BM25: self._weights[BM25] * trust}
        order = fuse({name: [key for key, _ in rows] for name, rows in found.items()}, weights=weights)
        channels: dict[str, tuple[Channel, ...]] = {}
        for name, rows in found.items():
            for rank, (key, score) in enumerate(rows, start=1):
                channels[key] = (*channels.get(key, ()), Channel(name, rank, score))
        chunks = self._chunks(order, first=limit + 1, files=files)
        documents = self._documents(chunks, channels=channels, limit=limit)
        if failure and not documents:
            raise failure
        return [replace(document, warning=FOUND_BY_WORDS) for document in documents] if failure else documents

    def _trust(self, rows: Sequence[tuple[str, float]], question: str, *, files: Sequence[str]) -> float:
        """How far BM25 is to be trusted, 0 … 1: its best match should hold half of the question's terms.

        A question that the documents answer in another language shares only names and numbers with them, and its
        other words only with documents beside the point.
        """
        asked = set(search_terms(question))
        best = self._store.chunks([key for key, _ in rows[:1]], files=files).values()
        held = max((len(asked & set(search_terms(chunk.embedding_text))) for chunk in best), default=0)
        return min(1.0, held / (ENOUGH_TERMS * max(1, len(asked))))

    def _chunks(self, order: Sequence[str], *, first: int, files: Sequence[str]) -> Iterator[Chunk]:
        """Load the `first` chunks, then a few at a time: mostly the first ones are enough."""
        start, end = 0, first
        while start < len(order):
            yield from self._store.chunks(order[start:end], files=files).values()
            start, end = end, end + _LOADED_AT_ONCE

    def _documents(
        self, chunks: Iterable[Chunk], *, channels: Mapping[str, tuple[Channel, ...]], limit: int
    ) -> list[Document]:
        kept: list[tuple[Chunk, frozenset[str]]] = []
        sources: dict[str, dict[str, None]] = {}
        for chunk in chunks:
            terms = frozenset(search_terms(chunk.text))
            twin = next((other for other, known in kept if _near_equal(terms, known)), None)
            if twin is None:
                if len(kept) == limit:
                    break
                kept.append((chunk, terms))
            names = dict.fromkeys((chunk.file, *self._store.file_names(chunk.document_id)))
            sources.setdefault((twin or chunk).id, {}).update(names)
        return [
            Document(
                text=chunk.text,
                origin=Origin.KB,
                rank=rank,
                file=chunk.file,
                page=chunk.page,
                heading_path=chunk.heading_path,
                chunk=chunk,
                similarity=next((channel.score for channel in channels[chunk.id] if channel.name == DENSE), 0.0),
                channels=channels[chunk.id],
                sources=tuple(name for name in sources[chunk.id] if name != chunk.file),
            )
            for rank, (chunk, _) in enumerate(kept, start=1)
        ]


def fuse(rankings: Mapping[str, Sequence[str]], *, weights: Mapping[str, float]) -> list[str]:
    """Return the ids of all rankings, best first, by weighted reciprocal ranks."""
    scores: dict[str, float] = {}
    for name, keys in rankings.items():
        for rank, key in enumerate(keys, start=1):
            scores[key] = scores.get(key, 0.0) + weights[name] / (RANK_CONSTANT + rank)
    return sorted(scores, key=lambda key: -scores[key])


def search_terms(text: str) -> list[str]:
    """Return the terms of a text for BM25, in order: lower-case words, and pairs of Chinese characters.

    Full-width, compatibility and radical forms are folded, traditional characters become simplified ones; words that
    only ask or join are left out. Questions and chunks go through the same function.
    """
    plain = mend(text) if _RADICAL.search(text) else text
    folded = unicodedata.normalize("NFKC", plain).casefold()
    terms: list[str] = []
    for match in _TERM.finditer(_ASKING.sub(" ", simplified(folded))):
        term = match.group()
        if not _HAN_CHARACTER.match(term):
            if term not in _STOP_WORDS:
                terms.append(term)
        elif len(term) == 1:
            terms.append(term)
        else:
            terms += [term[place : place + 2] for place in range(len(term) - 1)]
    return terms


def _near_equal(first: frozenset[str], second: frozenset[str]) -> bool:
    if min(len(first), len(second)) < NEAR_EQUAL * max(len(first), len(second)):
        return False
    if len(first & second) < NEAR_EQUAL * len(first | second):
        return False
    return not any(_DECISIVE.search(term) for term in first ^ second)
