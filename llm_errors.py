"""Turns what pydantic-ai raises into the product's typed errors, each with what to do about it."""

from __future__ import annotations

from urllib.parse import urlsplit

from endpoints import Endpoint
from errors import (
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderUnavailableError,
)
from waiting import retry_after

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - compared with, never bound


def is_local(url: str) -> bool:
    """Tell whether an address names this machine, where a proxy must not be asked."""
    return (urlsplit(url).hostname or "") in LOCAL_HOSTS


def provider_errors() -> tuple[type[Exception], ...]:
    """Return what pydantic-ai and the clients of OpenAI and Ollama raise when a call fails."""
    import httpx
    import ollama
    import openai
    from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior

    return (ModelAPIError, UnexpectedModelBehavior, openai.OpenAIError, ollama.ResponseError, httpx.HTTPError, OSError)


def asked_wait(error: Exception) -> float | None:
    """Return the seconds that the provider asked to wait, if it did."""
    asked: float | None = getattr(error, "retry_after", None)
    headers = getattr(getattr(error, "response", None), "headers", {})
    return retry_after(str(headers.get("retry-after", ""))) if asked is None else asked


def map_error(error: Exception, *, endpoint: Endpoint) -> ProviderError:
    """Return the typed error for `error`, naming provider, address and model; its code is the i18n key.

    The reply's body stays out of the message: it may quote the prompt.
    """
    import httpx
    import openai
    from pydantic_ai import exceptions as raised

    match error:
        case raised.ModelQuotaExceededError():
            return typed(ProviderAuthError, code="provider_quota", endpoint=endpoint)
        case raised.ModelContextWindowExceededError():
            return typed(ProviderResponseError, code="provider_context", endpoint=endpoint)
        case raised.ModelRequestTimeout() | raised.ModelTimeoutError() | openai.APITimeoutError():
            return typed(ProviderUnavailableError, code="provider_timeout", endpoint=endpoint)
        case httpx.TimeoutException():
            return typed(ProviderUnavailableError, code="provider_timeout", endpoint=endpoint)
        case raised.ModelConnectionError(phase="read") | raised.ModelConnectionError(in_stream=True):
            return typed(ProviderUnavailableError, code="provider_cut", endpoint=endpoint)
        case raised.ModelConnectionError() | openai.APIConnectionError() | httpx.HTTPError() | OSError():
            return typed(ProviderUnavailableError, endpoint=endpoint)
    return _map_status(error, status=getattr(error, "status_code", 0), endpoint=endpoint)


def _map_status(error: Exception, *, status: int, endpoint: Endpoint) -> ProviderError:
    match status:
        case 401 | 403:
            return typed(ProviderAuthError, endpoint=endpoint, status=status)
        case 402:
            return typed(ProviderAuthError, code="provider_quota", endpoint=endpoint)
        case 429:
            return typed(ProviderRateLimitError, endpoint=endpoint, seconds=round(asked_wait(error) or 0))
        case 404:
            # Servers answer 404 both for a model they do not have and for an address that is not theirs.
            named = "model" in str(getattr(error, "body", "") or error).lower().replace("model_name", "")
            code = ("ollama_model" if endpoint.provider == "ollama" else "provider_model") if named else "provider_url"
            return typed(ProviderResponseError, code=code, endpoint=endpoint)
    if status >= 500 or status == 408:
        return typed(ProviderUnavailableError, code="provider_server", endpoint=endpoint, status=status)
    return typed(ProviderResponseError, endpoint=endpoint, status=status)


_HINTS = {
    "provider_auth": "check the key and that it belongs to this address",
    "provider_quota": "top up the account or choose another model",
    "provider_rate_limit": "wait, or lower CRAG_LLM_CONCURRENCY",
    "ollama_model": "run: ollama pull {model}",
    "provider_model": "correct the model's name",
    "provider_url": "correct the base URL; most end in /v1",
    "provider_context": "lower CRAG_MAX_STRIPS, or set CRAG_CONTEXT_TOKENS to the model's context",
    "provider_timeout": "try again, use a smaller model, or raise CRAG_LLM_TIMEOUT",
    "provider_cut": "try again; if it happens often, look at the server's log",
    "provider_unavailable": "start the server or correct its address{docker}",
    "provider_server": "look at the server's log",
    "provider_response": "check the base URL and the model's name",
    "provider_key": "set {variable} in the environment or in .env",
    "provider_vectors": "choose an embedding model; a chat model's vectors cannot be used",
    "provider_empty": "the model wrote nothing; a thinking model may need another template or model",
}


_KEY_NAMES = {"openai": "OPENAI_API_KEY", "dashscope": "DASHSCOPE_API_KEY"}


def typed(
    kind: type[ProviderError], *, endpoint: Endpoint, code: str = "", status: int = 0, seconds: int = 0
) -> ProviderError:
    """Build one typed error about `endpoint`."""
    code = code or kind.code
    # In a container, localhost is the container itself; people meet this before anything else.
    docker = "; inside Docker use host.docker.internal instead of localhost" if is_local(endpoint.url) else ""
    values = {
        "name": endpoint.provider,
        "url": endpoint.url,
        "model": endpoint.model,
        "status": status or "",
        "seconds": seconds,
        "variable": _KEY_NAMES.get(endpoint.provider, ""),
    }
    reason = f" (HTTP {status})" if status else ""
    return kind(
        f"{endpoint.provider} at {endpoint.url}, model {endpoint.model!r}: {code}{reason}",
        hint=_HINTS[code].format(docker=docker, **values),
        code=code,
        **values,
    )
