"""Where the model of each role is reached: provider, base URL, model name and key, from the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import SecretStr

from config import Settings
from errors import ConfigurationError

OPENAI_URL = "https://api.openai.com/v1"
DASHSCOPE_MODEL = "qwen-plus"


class Role(StrEnum):
    """What a chat model is used for; each can have its own provider and model."""

    ANSWER = "answer"
    GRADE = "grade"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached: provider, base URL without a slash at its end, model name, key."""

    provider: Literal["ollama", "openai", "dashscope"]
    url: str
    model: str
    key: SecretStr = field(default_factory=lambda: SecretStr(""))

    @property
    def name(self) -> str:
        """Provider and model, as shown and traced."""
        return f"{self.provider}/{self.model}"

    @property
    def needs_key(self) -> bool:
        """Whether nothing is answered there without a key."""
        return self.provider == "dashscope" or self.url == OPENAI_URL

    @property
    def native_url(self) -> str:
        """Ollama's own API, beside its OpenAI-compatible one."""
        return self.url.removesuffix("/v1")


def find_endpoint(settings: Settings, *, role: Role) -> Endpoint | None:
    """Return where the role's model is; None for the embedded default.

    :raises ConfigurationError: the provider needs a model name and there is none.
    """
    provider = getattr(settings, f"{role}_provider") or settings.llm_provider
    model = getattr(settings, f"{role}_model") or (settings.llm_model if provider == settings.llm_provider else "")
    match provider:
        case "embedded":
            return None
        case "ollama":
            root = settings.ollama_url.rstrip("/").removesuffix("/v1")
            return Endpoint("ollama", url=f"{root}/v1", model=model or settings.ollama_llm)
        case "dashscope":
            url = settings.dashscope_url.rstrip("/")
            return Endpoint("dashscope", url=url, model=model or DASHSCOPE_MODEL, key=settings.dashscope_api_key)
    if not model:
        raise ConfigurationError(
            f"{role}: an OpenAI-compatible provider needs a model name",
            hint="set CRAG_LLM_MODEL",
            name="CRAG_LLM_MODEL",
        )
    url = settings.openai_api_base.rstrip("/") or OPENAI_URL
    return Endpoint("openai", url=url, model=model, key=settings.openai_api_key)
