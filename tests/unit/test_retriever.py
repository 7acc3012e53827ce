from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from config import Settings, load_settings
from embeddings import Progress
from errors import ProviderUnavailableError
from retriever import BM25, DENSE, FOUND_BY_WORDS, HybridRetriever, fuse, search_terms
from schema import Block, BlockParser, BlockType, Chunk, Piece
from wording import under


class WordEmbedder:
    """Vectors by hand: one direction a topic."""

    name = "by-hand"
    dimension = 3

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[float(topic in text) for topic in ("boat", "bread", "船")] for text in texts]
        return np.array(rows, dtype=np.float32)

    def embed_passages(self, texts: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
        return self.embed_queries(texts)


class MemoryStore:
    """A knowledge base in memory: exact cosine, and the count of common terms as lexical score."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.all = {chunk.id: chunk for chunk in chunks}
        self.vectors = dict(zip(self.all, WordEmbedder().embed_passages([c.text for c in chunks]), strict=True))
        self.names: dict[str, tuple[str, ...]] = {}
        self.loaded = 0

    def dense(
        self, vector: NDArray[np.float32], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        scored = [
            (key, float(vector @ self.vectors[key])) for key, chunk in self.all.items() if _of(chunk, files, section)
        ]
        return sorted((row for row in scored if row[1]), key=lambda row: -row[1])[:limit]

    def lexical(
        self, terms: Sequence[str], *, limit: int, files: Collection[str] = (), section: str = ""
    ) -> list[tuple[str, float]]:
        scored = [
            (key, float(len(set(terms) & set(search_terms(chunk.embedding_text)))))
            for key, chunk in self.all.items()
            if _of(chunk, files, section)
        ]
        return sorted((row for row in scored if row[1]), key=lambda row: -row[1])[:limit]

    def chunks(self, chunk_ids: Sequence[str], *, files: Collection[str] = ()) -> dict[str, Chunk]:
        self.loaded += len(chunk_ids)
        return {key: self.all[key] for key in chunk_ids if key in self.all}

    def file_names(self, document_id: str) -> tuple[str, ...]:
        return self.names.get(document_id, ())


def _of(chunk: Chunk, files: Collection[str], section: str) -> bool:
    return (not files or chunk.file in files) and (not section or under(chunk.heading_path, section=section))


def chunk(key: str, text: str, *, file: str = "a.pdf", path: tuple[str, ...] = ()) -> Chunk:
    block = Block(file, 1, 0, BlockType.TEXT, text, (0.0, 0.0, 1.0, 1.0), BlockParser.TEXT)
    return Chunk(key, file, file, text, path, (Piece(0, len(text), block),))


def retriever(chunks: Sequence[Chunk], **values: float) -> tuple[HybridRetriever, MemoryStore]:
    store = MemoryStore(chunks)
    settings: Settings = load_settings(**values)
    return HybridRetriever(store, embedder=WordEmbedder(), settings=settings), store


BOAT = chunk("boat", "A boat needs a keel against the wind.", file="sea.pdf", path=("Sailing", "Hulls"))
BREAD = chunk("bread", "The bread rests for an hour.", file="food.pdf", path=("Baking",))
TAX = chunk("tax", "Form 7004 extends the deadline.", file="tax.pdf", path=("Forms",))


def test_a_chunk_found_by_both_channels_comes_first_and_shows_both_ranks() -> None:
    found, _ = retriever([TAX, BREAD, BOAT])
    (first, *_) = found.retrieve("Which boat has a keel?", limit=3)
    assert first.chunk is BOAT
    assert {channel.name: channel.rank for channel in first.channels} == {DENSE: 1, BM25: 1}
    assert first.similarity == pytest.approx(1.0)
    assert (first.rank, first.file, first.page, first.heading_path) == (1, "sea.pdf", 1, ("Sailing", "Hulls"))


def test_a_number_that_vectors_miss_is_found_by_bm25() -> None:
    found, _ = retriever([BREAD, BOAT, TAX])
    (document,) = found.retrieve("7004", limit=3)
    assert document.chunk is TAX
    assert document.similarity == 0.0
    assert [channel.name for channel in document.channels] == [BM25]


def test_a_channel_of_weight_zero_is_not_asked() -> None:
    found, _ = retriever([BREAD, BOAT, TAX], bm25_weight=0)
    assert found.retrieve("7004", limit=3) == []


def test_files_and_sections_restrict_what_is_found() -> None:
    found, _ = retriever([BREAD, BOAT, TAX, chunk("other", "Another boat.", file="b.pdf", path=("船體",))])
    assert {document.file for document in found.retrieve("boat bread", limit=9, files=["food.pdf"])} == {"food.pdf"}
    assert [document.chunk for document in found.retrieve("boat bread", limit=9, section="hulls")] == [BOAT]
    assert [document.file for document in found.retrieve("boat bread", limit=9, section="船体")] == ["b.pdf"]


def test_near_equal_chunks_give_way_to_one_that_names_every_source() -> None:
    words = " ".join(f"term{number}" for number in range(40))
    twins = [chunk(f"twin{n}", f"The boat {words} {'!' * n}", file=f"copy{n}.pdf") for n in range(3)]
    found, store = retriever([*twins, BOAT])
    store.names["copy0.pdf"] = ("copy0.pdf", "renamed.pdf")
    documents = found.retrieve("the boat term1", limit=2)
    assert [document.chunk for document in documents] == [twins[0], BOAT]
    assert documents[0].sources == ("renamed.pdf", "copy1.pdf", "copy2.pdf")


def test_only_the_chunks_that_are_shown_are_loaded() -> None:
    found, store = retriever([chunk(f"c{n}", f"A boat named {'x' * n}.", file=f"f{n}.pdf") for n in range(1, 60)])
    assert len(found.retrieve("boat", limit=5)) == 5
    assert store.loaded == 1 + 6


def test_more_chunks_are_loaded_while_the_first_are_one_paragraph() -> None:
    words = " ".join(f"term{number}" for number in range(40))
    twins = [chunk(f"twin{n:02}", f"The boat {words} {'!' * n}", file=f"copy{n:02}.pdf") for n in range(30)]
    found, store = retriever([*twins, BOAT])
    documents = found.retrieve("the boat term1", limit=2)
    assert [document.chunk for document in documents] == [twins[0], BOAT]
    assert store.loaded == 1 + 31


@pytest.mark.parametrize(("one", "other"), [("in 2021", "in 2022"), ("shall pay", "shall not pay")])
def test_a_differing_figure_or_a_not_makes_another_paragraph(one: str, other: str) -> None:
    words = " ".join(f"clause{chr(97 + number)}" for number in range(20))
    chunks = [chunk(text, f"The boat owner {text} {words}", file=f"{text}.pdf") for text in (one, other)]
    found, _ = retriever(chunks)
    assert len(found.retrieve("boat owner", limit=5)) == 2


def test_limit_counts_documents_after_duplicates_are_taken_out() -> None:
    chunks = [chunk(f"c{n}", f"boat part{n} made of steel{n}", file=f"{n}.pdf") for n in range(20)]
    found, _ = retriever(chunks)
    documents = found.retrieve("boat", limit=7)
    assert [document.rank for document in documents] == list(range(1, 8))


def test_words_count_less_where_their_best_match_holds_few_of_them() -> None:
    motor, rest = chunk("motor", "Motorboats need a new filter."), chunk("rest", "An interval of rest.")
    found, _ = retriever([motor, rest], bm25_weight=1.5)
    assert [d.chunk for d in found.retrieve("boat oil interval change week", limit=2)] == [motor, rest]
    assert [d.chunk for d in found.retrieve("boat interval", limit=2)] == [rest, motor]


def test_fusion_is_by_weighted_reciprocal_ranks() -> None:
    assert fuse({"x": ["a", "b"], "y": ["b", "c"]}, weights={"x": 1.0, "y": 1.0}) == ["b", "a", "c"]
    assert fuse({"x": ["a", "b"], "y": ["c", "d"]}, weights={"x": 1.0, "y": 2.0})[:2] == ["c", "d"]
    assert fuse({"x": [], "y": []}, weights={"x": 1.0, "y": 1.0}) == []


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("資訊安全", "信息与资讯安全"),
        ("頭髮", "他的头发很长"),
        ("ＧＤＰ１２３", "gdp123"),
        ("⽣⻓", "植物生长"),
        ("What is OAuth?", "oauth 2.0 是协议"),
        ("1,234.5", "总额为 1,234.5 元"),
        ("什么是碳中和？", "实现碳中和"),
        ("Café", "CAFÉ"),
    ],
)
def test_terms_of_question_and_text_meet(question: str, text: str) -> None:
    assert set(search_terms(question)) & set(search_terms(text))


def test_terms_leave_out_words_that_only_ask_and_keep_their_order() -> None:
    assert search_terms("What is the warranty of the pump?") == ["warranty", "pump"]
    assert search_terms("保修期是多久") == ["保修", "修期", "期是", "是多", "多久"]
    assert search_terms("如何安装水泵？") == ["安装", "装水", "水泵"]
    assert search_terms("—— …… ！？") == []


class DownEmbedder(WordEmbedder):
    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ProviderUnavailableError("down")


@pytest.mark.parametrize("bm25_weight", [0.0, 1.0])
def test_a_provider_that_is_down_leaves_the_words_and_says_so(bm25_weight: float) -> None:
    settings = load_settings(bm25_weight=bm25_weight)
    search = HybridRetriever(MemoryStore([BOAT, BREAD]), embedder=DownEmbedder(), settings=settings)
    documents = search.retrieve("How long does bread rest?", limit=5)
    assert [(document.file, document.warning) for document in documents] == [("food.pdf", FOUND_BY_WORDS)]
    assert [channel.name for channel in documents[0].channels] == [BM25]
    with pytest.raises(ProviderUnavailableError):
        search.retrieve("Zebra?", limit=5)
