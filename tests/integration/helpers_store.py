"""Small PDFs, a small embedder, and the invariants of a knowledge base, for the tests of the store."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from reportlab.pdfgen import canvas

from config import Settings, load_settings
from errors import PdfUnreadableError
from indexing import Loader
from knowledge_base import KnowledgeBase
from pdf_loader import PageResult
from pdf_page import Element
from schema import Block, BlockParser, BlockType

DIMENSION = 64
SENTENCES = (
    "The heron of section {n} waits beside the weir until the water clears.",
    "Lamp {n} was bought in a shop that closed the same winter.",
    "Nobody counted the {n} stairs that lead up to the observatory.",
    "Recipe {n} asks for barley, leeks and a slow afternoon.",
)


class WordEmbedder:
    """Hashes words into a few dimensions: deterministic and fast, and enough to tell these texts apart."""

    def __init__(self, *, name: str = "words", dimension: int = DIMENSION) -> None:
        self.name = name
        self.dimension = dimension
        self.embedded = 0

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._vectors(texts)

    def embed_passages(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> NDArray[np.float32]:
        self.embedded += len(texts)
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, int.from_bytes(hashlib.md5(word.encode()).digest()[:4]) % self.dimension] += 1
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


class LineLoader:
    """Reads each printed line as a block, in this process: the files of these tests need no more."""

    def pages(
        self, path: Path, *, document_id: str, password: str = "", done: Collection[int] = ()
    ) -> Iterator[PageResult]:
        try:
            document = pypdfium2.PdfDocument(path)
        except pypdfium2.PdfiumError as error:
            raise PdfUnreadableError(f"{path.name}: {error}", name=path.name) from error
        total = len(document)
        for page in range(1, total + 1):
            if page not in done:
                text = document[page - 1].get_textpage().get_text_bounded()
                elements = tuple(Element(block) for block in _blocks(text, page=page, document_id=document_id))
                yield PageResult(document_id, page, total, BlockParser.TEXT, elements)
        document.close()

    def assemble(self, pages: Sequence[PageResult]) -> tuple[Block, ...]:
        return tuple(block for page in pages for block in page.blocks)


def _blocks(text: str, *, page: int, document_id: str) -> tuple[Block, ...]:
    return tuple(
        Block(document_id, page, order, BlockType.TEXT, line, (0.1, 0.1, 0.9, 0.2), BlockParser.TEXT)
        for order, line in enumerate(line.strip() for line in text.splitlines() if line.strip())
    )


def write_pdf(path: Path, *, pages: Sequence[Sequence[str]]) -> Path:
    """Write a PDF with these paragraphs on its pages; the same text gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing = canvas.Canvas(str(path), invariant=1)
    for page in pages:
        for number, paragraph in enumerate(page):
            drawing.drawString(72, 720 - 60 * number, paragraph)
        drawing.showPage()
    drawing.save()
    return path


def write_library(folder: Path, *, files: int, pages: int = 2) -> None:
    """Write `files` PDFs, each with text of its own."""
    for number in range(files):
        write_pdf(
            folder / f"file-{number:04d}.pdf",
            pages=[[sentence.format(n=f"{number}x{page}") for sentence in SENTENCES] for page in range(pages)],
        )


def settings_at(folder: Path, **values: object) -> Settings:
    """Return settings with files and data under `folder`."""
    return load_settings(**{"files_dir": folder / "Files", "data_dir": folder / "data", **values})


def open_base(
    folder: Path,
    *,
    name: str = "default",
    embedder: WordEmbedder | None = None,
    loader: Loader | None = None,
    **values: object,
) -> KnowledgeBase:
    """Open a knowledge base under `folder` with the small embedder and reader, or with those given."""
    settings = settings_at(folder, **values)
    return KnowledgeBase(settings, name=name, embedder=embedder or WordEmbedder(), loader=loader or LineLoader())


def find(base: KnowledgeBase, text: str, *, limit: int = 3, files: Sequence[str] = ()) -> list[str]:
    """Return the texts nearest to `text`."""
    near = base.dense(base.embedder.embed_queries([text])[0], limit=limit, files=files)
    return [chunk.text for chunk in base.chunks([key for key, _ in near]).values()]


def stored_ids(base: KnowledgeBase) -> tuple[set[str], set[str]]:
    """Return (chunk ids of the catalogue, ids of the vectors) of the generation that answers."""
    generation = base._answering.current()
    assert generation is not None
    listed = {key for document in generation.catalogue.documents() for key in generation.catalogue.chunk_ids(document)}
    everything = generation.store._collection.get(include=[])["ids"]  # type: ignore[attr-defined]
    assert len(everything) == len(set(everything))
    return listed, set(everything)


def check_committed(base: KnowledgeBase) -> None:
    """Whatever happened: what the catalogue lists is whole, with a vector for each chunk and a sound BM25 index."""
    generation = base._answering.current()
    if generation is None:
        return
    listed, vectors = stored_ids(base)
    assert listed <= vectors
    for document_id, row in generation.catalogue.documents().items():
        assert len(generation.catalogue.chunk_ids(document_id)) == row.chunks > 0
        assert len(generation.catalogue.pages(document_id)) == row.pages > 0
        assert generation.catalogue.names([document_id])
        assert generation.catalogue.blocks(document_id)
    with sqlite3.connect(generation.catalogue.path) as connection:
        connection.execute("INSERT INTO lexicon (lexicon) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def check_complete(base: KnowledgeBase) -> None:
    """After a build that was not stopped: nothing pending, no orphan vector, one generation."""
    check_committed(base)
    generation = base._answering.current()
    assert generation is not None
    listed, vectors = stored_ids(base)
    assert listed == vectors
    assert not generation.catalogue.pending()
    assert [path.name for path in base.base.folder.glob("catalogue-*.sqlite3")] == [generation.catalogue.path.name]
    collections = generation.store._client.list_collections()  # type: ignore[attr-defined]
    assert len(collections) == 1
    files = {document.file for document in base.documents()}
    assert files == {path.name for path in base.files_dir.glob("*.[pP][dD][fF]")}

    with sqlite3.connect(generation.catalogue.path) as connection:
        for table in ("blocks", "pages", "chunks"):
            query = f"SELECT count(*) FROM {table} WHERE document_id NOT IN (SELECT document_id FROM documents)"
            left = connection.execute(query).fetchone()
            assert left == (0,), table
    connection.close()
