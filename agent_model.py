"""The chat models behind answering, grading and rewriting: pydantic-ai models called on the one model loop.

Concurrency limit, timeout, retries that honour Retry-After, and typed errors are the same for every provider.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import anyio

from config import Settings
from endpoints import OPENAI_URL, Endpoint, Role, find_endpoint
from errors import ProviderError
from llm_calls import Caller
from llm_errors import is_local
from llm_replies import ThoughtFilter, TokenChoice, read_tokens, strip_thoughts
from model_loop import Connection, model_loop
from schema import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings

TOP_LOGPROBS = 5
"""As many candidates as every endpoint with log-probabilities grants."""
CLOSE_SECONDS = 5.0
OLD_OLLAMA_CONTEXT = 4096
"""What an Ollama that does not tell its context length cuts prompts to, unless it was set."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Instructions, and the user message they are about."""

    instructions: str
    message: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, thoughts left out; `cut` when it was stopped by its length or the line broke."""

    text: str
    usage: Usage
    tokens: tuple[TokenChoice, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed for good, and what was spent on it."""

    error: ProviderError
    usage: Usage


def build_chat_model(settings: Settings, *, role: Role) -> ChatModel | None:
    """Return the role's model; None for the embedded default. Nothing is sent yet.

    :raises ConfigurationError: the provider needs a model name and there is none.
    """
    endpoint = find_endpoint(settings, role=role)
    return ChatModel(endpoint, settings=settings) if endpoint else None


class ChatModel:
    """A chat model of one provider: concurrent questions, or one streamed answer.

    `llm_timeout` bounds a whole call with its retries; for a streamed one, the wait for each piece.
    """

    def __init__(self, endpoint: Endpoint, *, settings: Settings) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self._settings = settings
        self._caller = Caller(endpoint, settings=settings)
        self._context: int | None = None

    def ask(self, prompts: Sequence[Prompt], *, max_tokens: int, logprobs: bool = False) -> list[Reply | Failure]:
        """Send all prompts at once, `llm_concurrency` at a time; one failure does not touch the others."""
        if not prompts:
            return []
        return model_loop().portal.call(self._ask_all, prompts, max_tokens, logprobs)

    def stream(self, prompt: Prompt, *, max_tokens: int) -> Iterator[str | Reply]:
        """Yield the answer in pieces, then the whole reply. Closing the iterator closes the connection.

        :raises ProviderError: the call failed, before the first piece or after some.
        """
        pieces: SimpleQueue[str | Reply | ProviderError | None] = SimpleQueue()
        closed = threading.Event()
        future = model_loop().portal.start_task_soon(self._pump, prompt, max_tokens, pieces.put, closed)
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, ProviderError):
                    raise piece
                yield piece
        finally:
            future.cancel()
            closed.wait(CLOSE_SECONDS)

    def context_tokens(self) -> int:
        """Tokens the model reads at most.

        Ollama cuts longer prompts silently and its OpenAI-compatible API cannot set the length, so the length it has
        loaded the model with is asked for, once; a server that does not tell has the old default.

        :raises ProviderError: the server cannot be reached or lacks the model.
        """
        if self.endpoint.provider != "ollama":
            return self._settings.context_tokens
        if self._context is None:
            loaded = model_loop().portal.call(self._loaded_context)
            self._context = min(self._settings.ollama_context, loaded)
        return self._context

    @property
    def context_is_short(self) -> bool:
        """Whether Ollama loaded the model with less context than the settings ask for."""
        return self._context is not None and self._context < self._settings.ollama_context

    async def _loaded_context(self) -> int:
        import ollama

        async def load() -> int:
            options: dict[str, Any] = {
                "timeout": self._settings.llm_timeout,
                "trust_env": not is_local(self.endpoint.url),
            }
            async with ollama.AsyncClient(host=self.endpoint.native_url, **options) as client:
                await client.generate(model=self.endpoint.model)
                running = await client.ps()
            names = {self.endpoint.model, f"{self.endpoint.model}:latest"}
            loaded = [model.context_length for model in running.models if model.model in names]
            return (loaded[0] if loaded else None) or OLD_OLLAMA_CONTEXT

        return await self._caller.call(load)

    async def _ask_all(self, prompts: Sequence[Prompt], max_tokens: int, logprobs: bool) -> list[Reply | Failure]:  # noqa: FBT001 - the portal passes positions
        replies: list[Reply | Failure | None] = [None] * len(prompts)

        async def ask_one(place: int, prompt: Prompt) -> None:
            replies[place] = await self._ask_one(prompt, max_tokens=max_tokens, logprobs=logprobs)

        async with anyio.create_task_group() as group:
            for place, prompt in enumerate(prompts):
                group.start_soon(ask_one, place, prompt)
        return [reply for reply in replies if reply is not None]

    async def _ask_one(self, prompt: Prompt, *, max_tokens: int, logprobs: bool) -> Reply | Failure:
        from pydantic_ai.direct import model_request

        connection = self._caller.connect()
        calls = 0

        async def send() -> ModelResponse:
            nonlocal calls
            calls += 1
            options = self._options(connection, max_tokens=max_tokens, logprobs=logprobs, thinking=False)
            return await model_request(self._model(connection), _messages(prompt), model_settings=options)

        async with connection.limiter:
            try:
                response = await self._caller.call(send, extras=True)
            except ProviderError as error:
                return Failure(error, usage=Usage(llm_calls=calls))
        return _reply(response, calls=calls)

    async def _pump(
        self,
        prompt: Prompt,
        max_tokens: int,
        put: Callable[[str | Reply | ProviderError | None], None],
        closed: threading.Event,
    ) -> None:
        """Stream into `put`: pieces, then the reply or the error, then None."""
        connection = self._caller.connect()
        try:
            async with connection.limiter:
                await self._stream(prompt, max_tokens=max_tokens, put=put, connection=connection)
        except ProviderError as error:
            put(error)
        finally:
            put(None)
            closed.set()

    async def _stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        put: Callable[[str | Reply | ProviderError | None], None],
        connection: Connection,
    ) -> None:
        from pydantic_ai.direct import model_request_stream

        calls, started = 0, False
        thoughts = ThoughtFilter()

        def show(text: str) -> None:
            nonlocal started
            if text:
                started = True
                put(text)

        async def send() -> ModelResponse:
            nonlocal calls
            calls += 1
            options = self._options(connection, max_tokens=max_tokens, logprobs=False, thinking=True)
            model = self._model(connection)
            async with model_request_stream(model, _messages(prompt), model_settings=options) as stream:
                async for event in stream:
                    show(thoughts.feed(_text_of(event)))
            return stream.get()

        response = await self._caller.call(send, once=lambda: started)
        show(thoughts.finish())
        put(_reply(response, calls=calls))

    def _model(self, connection: Connection) -> OpenAIChatModel:
        from pydantic_ai.models.ollama import OllamaModel
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.alibaba import AlibabaProvider
        from pydantic_ai.providers.ollama import OllamaProvider
        from pydantic_ai.providers.openai import OpenAIProvider
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        client, name = connection.client, self.endpoint.model
        if self.endpoint.provider == "openai" and self.endpoint.url == OPENAI_URL:
            return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))
        # Only OpenAI itself has renamed the limit; other servers ignore the new name and write on without one.
        profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
        match self.endpoint.provider:
            case "ollama":
                return OllamaModel(name, provider=OllamaProvider(openai_client=client), profile=profile)
            case "dashscope":
                return OpenAIChatModel(name, provider=AlibabaProvider(openai_client=client), profile=profile)
        compatible = OpenAICompatibleProvider("openai-compatible", openai_client=client)
        return OpenAIChatModel(name, provider=compatible, profile=profile)

    def _options(
        self, connection: Connection, *, max_tokens: int, logprobs: bool, thinking: bool
    ) -> OpenAIChatModelSettings:
        from pydantic_ai.models.openai import OpenAIChatModelSettings

        timeout = self._settings.llm_timeout
        options = OpenAIChatModelSettings(max_tokens=max_tokens, temperature=0.0, timeout=timeout)
        if thinking:
            options["first_event_timeout"] = timeout
        else:
            options["request_timeout"] = timeout
        if self.endpoint.model in connection.refused_extras:
            return options
        if logprobs:
            options["openai_logprobs"] = True
            options["openai_top_logprobs"] = TOP_LOGPROBS
        if not thinking and self.endpoint.url != OPENAI_URL:
            options["extra_body"] = _NO_THINKING[self.endpoint.provider]
        return options


_NO_THINKING: dict[str, dict[str, object]] = {
    "ollama": {"reasoning_effort": "none"},
    "openai": {"chat_template_kwargs": {"enable_thinking": False}},
    "dashscope": {"enable_thinking": False},
}


def _messages(prompt: Prompt) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest

    return [ModelRequest.user_text_prompt(prompt.message, instructions=prompt.instructions)]


def _text_of(event: object) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


def _reply(response: ModelResponse, *, calls: int) -> Reply:
    details = response.provider_details or {}
    raw = details.get("logprobs")
    return Reply(
        text=strip_thoughts(response.text or ""),
        usage=Usage(calls, input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens),
        tokens=read_tokens(raw) if isinstance(raw, list) else (),
        # A complete reply says why it ended.
        cut=details.get("finish_reason") in {None, "length"} and "refusal" not in details,
    )
