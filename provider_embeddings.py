"""Embeddings from a provider: Ollama, any OpenAI-compatible endpoint, DashScope."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from config import Settings
from endpoints import OPENAI_URL, Endpoint
from errors import ConfigurationError, ProviderResponseError
from llm_calls import Caller
from llm_errors import is_local, typed
from model_loop import model_loop

if TYPE_CHECKING:
    from model_loop import Connection

logger = logging.getLogger(__name__)

BATCH_SIZES = {"ollama": 16, "openai": 64, "dashscope": 10}
"""Texts a request; DashScope refuses more than 10."""
DASHSCOPE_EMBEDDING_MODEL = "text-embedding-v4"
OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"

Vectors = NDArray[np.float32]


def find_embedding_endpoint(settings: Settings) -> Endpoint | None:
    """Return where embeddings are made; None for the embedded model.

    :raises ConfigurationError: the provider needs a model name and there is none.
    """
    model = settings.embedding_model
    match settings.embedding_provider:
        case "embedded":
            return None
        case "ollama":
            root = settings.ollama_url.rstrip("/").removesuffix("/v1")
            return Endpoint("ollama", url=f"{root}/v1", model=model or settings.ollama_embed)
        case "dashscope":
            url = settings.dashscope_url.rstrip("/")
            model = model or DASHSCOPE_EMBEDDING_MODEL
            return Endpoint("dashscope", url=url, model=model, key=settings.dashscope_api_key)
    url = settings.openai_api_base.rstrip("/") or OPENAI_URL
    model = model or (OPENAI_EMBEDDING_MODEL if url == OPENAI_URL else "")
    if not model:
        name = "CRAG_EMBEDDING_MODEL"
        raise ConfigurationError(f"embeddings from {url} need a model name", hint=f"set {name}", name=name)
    return Endpoint("openai", url=url, model=model, key=settings.openai_api_key)


class ProviderEmbedder:
    """Embeds with the provider that the settings name, several batches at a time.

    :raises ConfigurationError: the settings name no provider, or a provider without a model name.
    """

    def __init__(self, settings: Settings) -> None:
        endpoint = find_embedding_endpoint(settings)
        if endpoint is None:
            raise ConfigurationError(
                "no embedding provider", hint="set CRAG_EMBEDDING_PROVIDER", name="CRAG_EMBEDDING_PROVIDER"
            )
        self.endpoint = endpoint
        self.name = endpoint.name
        self._settings = settings
        self._caller = Caller(endpoint, settings=settings)
        self._dimension = 0

    @property
    def dimension(self) -> int:
        """Length of a vector; asked from the provider on first use.

        :raises ProviderError: the provider failed.
        """
        return self._dimension or self.embed_queries(["dimension"]).shape[1]

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one normalised vector for each question, [n, dimension].

        :raises ProviderError: the provider failed.
        """
        return self.embed_passages(texts)

    def embed_passages(self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> Vectors:
        """Return one normalised vector for each passage, [n, dimension]; `progress` gets done and total.

        :raises ProviderError: the provider failed, or answered vectors that do not fit.
        """
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = self._collect(list(texts), progress=progress)
        lengths = {len(vector) for vector in vectors}
        if len(lengths) != 1 or lengths == {0} or self._dimension not in {0, *lengths}:
            raise typed(ProviderResponseError, code="provider_vectors", endpoint=self.endpoint)
        self._dimension = lengths.pop()
        matrix = np.asarray(vectors, dtype=np.float32)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(matrix).all() or not norms.all():
            raise typed(ProviderResponseError, code="provider_vectors", endpoint=self.endpoint)
        normalised: Vectors = matrix / norms
        return normalised

    def _collect(self, texts: list[str], *, progress: Callable[[int, int], None] | None) -> list[Sequence[float]]:
        """All batches at once under the limit; `progress` is called on the caller's thread."""
        size = BATCH_SIZES[self.endpoint.provider]
        start_task = model_loop().portal.start_task_soon
        futures = {
            start_task(self._embed_batch, texts[start : start + size]): start for start in range(0, len(texts), size)
        }
        vectors: list[Sequence[float]] = [()] * len(texts)
        done = 0
        try:
            for future in as_completed(futures):
                batch = future.result()
                vectors[futures[future] : futures[future] + len(batch)] = batch
                done += len(batch)
                if progress:
                    progress(done, len(texts))
        finally:
            for future in futures:
                future.cancel()
        return vectors

    async def _embed_batch(self, batch: list[str]) -> list[Sequence[float]]:
        connection = self._caller.connect()
        async with connection.limiter:
            return await self._caller.call(lambda: self._send(batch, connection=connection))

    async def _send(self, batch: list[str], *, connection: Connection) -> list[Sequence[float]]:
        """One request; vectors in the order of the batch."""
        if self.endpoint.provider == "ollama":
            return await self._send_to_ollama(batch)
        reply = await connection.client.embeddings.create(
            model=self.endpoint.model, input=batch, encoding_format="float"
        )
        found = sorted(reply.data, key=lambda item: item.index)
        if [item.index for item in found] != list(range(len(batch))):
            raise typed(ProviderResponseError, code="provider_vectors", endpoint=self.endpoint)
        return [item.embedding for item in found]

    async def _send_to_ollama(self, batch: list[str]) -> list[Sequence[float]]:
        import ollama

        options: dict[str, Any] = {"timeout": self._settings.llm_timeout, "trust_env": not is_local(self.endpoint.url)}
        async with ollama.AsyncClient(host=self.endpoint.native_url, **options) as client:
            try:
                reply = await client.embed(model=self.endpoint.model, input=batch, truncate=False)
            except ollama.ResponseError as error:
                if error.status_code != 400:
                    raise
                # Ollama says no to a text longer than the model reads; its beginning is better than no vector.
                logger.warning("%s reads only the beginning of a text in this batch", self.name)
                reply = await client.embed(model=self.endpoint.model, input=batch, truncate=True)
        if len(reply.embeddings) != len(batch):
            raise typed(ProviderResponseError, code="provider_vectors", endpoint=self.endpoint)
        return list(reply.embeddings)
