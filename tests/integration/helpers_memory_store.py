"""A vector store of LangChain itself, as a user's own function would return it."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

_stores: dict[str, InMemoryVectorStore] = {}


class FilteredStore(InMemoryVectorStore):
    """Takes the usual dictionary as its filter."""

    def similarity_search_with_score(self, query: str, k: int = 4, **arguments: Any) -> list[tuple[Document, float]]:
        wanted = arguments.pop("filter", {}).get("document_id", {}).get("$in")
        keep = None if wanted is None else lambda document: document.metadata["document_id"] in wanted
        return super().similarity_search_with_score(query, k, filter=keep)


def make(*, collection: str, embedding: Embeddings, url: str) -> InMemoryVectorStore:
    """Return the store of this collection, the same one each time."""
    store = _stores.setdefault(collection, FilteredStore(embedding))
    store.embedding = embedding
    return store


def held() -> dict[str, int]:
    """Return how many vectors each collection holds."""
    return {name: len(store.store) for name, store in _stores.items()}


def forget() -> None:
    """Forget every collection."""
    _stores.clear()
