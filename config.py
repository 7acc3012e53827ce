"""Settings: the `CRAG_*` names of the README, from the environment, `.env`, and what the page saved.

The environment wins over `.env`, which wins over `settings.json` in the data folder (written by the page), which
wins over the defaults. This is the only module that reads the environment.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from errors import ConfigurationError
from schema import SearchMode

ROOT = Path(__file__).resolve().parent
MODELS_DIR = ROOT / "models"
PROMPTS_DIR = ROOT / "prompts"
LOCALES_DIR = ROOT / "locales"
SETTINGS_FILE = "settings.json"

Provider = Literal["embedded", "ollama", "openai", "dashscope"]
Parser = Literal["auto", "embedded", "mineru-local", "mineru-server", "mineru-api"]
WebProviderName = Literal["ddgs", "wikipedia", "tavily", "searxng", "library"]
Score = Annotated[float, Field(ge=-1.0, le=1.0)]


def _split_names(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_names)]


class Settings(BaseSettings):
    """All settings of the product; unknown values fail at once and name what is allowed."""

    model_config = SettingsConfigDict(
        env_prefix="CRAG_",
        env_file=".env",
        env_file_encoding="utf-8-sig",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    # Places
    files_dir: Path = Field(Path("Files"), description="folder of the PDFs")
    data_dir: Path = Field(Path("chroma_db"), description="folder of the store, the catalogue and the traces")
    language: Literal["auto", "zh", "en"] = "auto"
    trace: bool = True

    # Parsing
    pdf_parser: Parser = "auto"
    mineru_url: str = ""
    mineru_model: str = ""
    mineru_api_key: SecretStr = SecretStr("")
    mineru_api_url: str = "https://mineru.net/api/v4"
    mineru_api_consent: bool = Field(default=False, description="PDFs may be uploaded to the hosted MinerU service")
    mineru_concurrency: int = Field(8, ge=1, le=256)
    mineru_timeout: float = Field(120.0, gt=0)
    parse_timeout: float = Field(600.0, gt=0, description="seconds without a new page before the parser is stopped")
    parse_memory_mb: int = Field(4096, ge=256)
    max_pages: int = Field(5000, ge=1)

    # Chunking and retrieval
    chunk_size: int = Field(900, ge=100, le=8000, description="letters; a Chinese character counts as two and a half")
    chunk_overlap: int = Field(0, ge=0, le=2000)
    retrieve_k: int = Field(10, ge=1, le=100)
    dense_weight: float = Field(1.0, ge=0)
    bm25_weight: float = Field(1.0, ge=0)
    vector_store: str = "chroma"
    chroma_url: str = ""
    vector_store_url: str = ""

    # Language models
    llm_provider: Provider = "embedded"
    llm_model: str = ""
    answer_provider: Provider | None = None
    answer_model: str = ""
    grade_provider: Provider | None = None
    grade_model: str = ""
    rewrite_provider: Provider | None = None
    rewrite_model: str = ""
    embedding_provider: Provider = "embedded"
    embedding_model: str = ""
    ollama_url: str = Field(
        "http://localhost:11434", validation_alias=AliasChoices("CRAG_OLLAMA_URL", "OLLAMA_BASE_URL")
    )
    ollama_llm: str = "qwen3:4b"
    ollama_embed: str = "bge-m3"
    ollama_context: int = Field(8192, ge=1024)
    openai_api_key: SecretStr = Field(
        SecretStr(""), validation_alias=AliasChoices("OPENAI_API_KEY", "CRAG_OPENAI_API_KEY")
    )
    openai_api_base: str = Field(
        "", validation_alias=AliasChoices("OPENAI_API_BASE", "OPENAI_BASE_URL", "CRAG_OPENAI_API_BASE")
    )
    dashscope_api_key: SecretStr = Field(
        SecretStr(""), validation_alias=AliasChoices("DASHSCOPE_API_KEY", "DASH_API_KEY", "CRAG_DASHSCOPE_API_KEY")
    )
    dashscope_url: str = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    llm_concurrency: int = Field(8, ge=1, le=128)
    llm_timeout: float = Field(60.0, gt=0)
    llm_retries: int = Field(2, ge=0, le=10)
    context_tokens: int = Field(8192, ge=1024)

    # Evaluation and refinement
    evaluator: Literal["reader", "llm", "cascade", "similarity"] | None = None
    upper: Score | None = None
    lower: Score | None = None
    strip_floor: Score | None = None
    upper_en: Score | None = None
    lower_en: Score | None = None
    strip_floor_en: Score | None = None
    upper_zh: Score | None = None
    lower_zh: Score | None = None
    strip_floor_zh: Score | None = None
    max_strips: int = Field(8, ge=1, le=50)
    refusal_zh: str = ""
    refusal_en: str = ""

    # Web search
    web_search: SearchMode = SearchMode.OFF
    web_providers: Annotated[tuple[WebProviderName, ...], NoDecode, BeforeValidator(_split_names)] = (
        "ddgs",
        "wikipedia",
    )
    web_library_dir: Path | None = None
    web_results: int = Field(5, ge=1, le=20)
    web_budget: float = Field(12.0, gt=0)
    web_cache_hours: float = Field(24.0, ge=0)
    web_cache_mb: int = Field(200, ge=1)
    web_blocked: Names = ()
    web_authorities: Names = ()
    searxng_url: str = ""
    wikipedia_url: str = Field("https://{language}.wikipedia.org", description="{language} becomes zh or en")
    tavily_url: str = "https://api.tavily.com"
    tavily_api_key: SecretStr = Field(
        SecretStr(""), validation_alias=AliasChoices("TAVILY_API_KEY", "CRAG_TAVILY_API_KEY")
    )

    # Page
    host: str = "127.0.0.1"
    port: int = Field(8501, ge=1, le=65535)
    max_upload_mb: int = Field(200, ge=1)
    auth_allow: Names = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for language in ("en", "zh"):
            lower, upper = (
                next((name for name in (end, f"{end}_{language}") if getattr(self, name) is not None), "")
                for end in ("lower", "upper")
            )
            if lower and upper and getattr(self, lower) > getattr(self, upper):
                shown = [f"CRAG_{name.upper()}={getattr(self, name)}" for name in (lower, upper)]
                raise ValueError(" is above ".join(shown))
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Explicit values, then the environment, then `.env`, then what the page saved."""
        return init_settings, env_settings, dotenv_settings, _SavedSource(settings_cls, env_settings, dotenv_settings)


class _SavedSource(PydanticBaseSettingsSource):
    """Reads `settings.json` of the data folder that the stronger sources name."""

    def __init__(self, settings_cls: type[BaseSettings], *stronger: PydanticBaseSettingsSource) -> None:
        super().__init__(settings_cls)
        self.stronger = stronger

    def get_field_value(self, field: object, field_name: str) -> tuple[object, str, bool]:
        """Not used: all values are read at once."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Saved values by field name."""
        folder = next((found["data_dir"] for source in self.stronger if "data_dir" in (found := source())), None)
        return read_saved_settings(Path(folder or self.settings_cls.model_fields["data_dir"].default))


def read_saved_settings(data_dir: Path) -> dict[str, Any]:
    """Return what the page saved in `data_dir`; empty when nothing was.

    :raises ConfigurationError: the file is not a JSON object.
    """
    path = data_dir / SETTINGS_FILE
    if not path.is_file():
        return {}
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {error}", hint=f"delete or correct {path}", name=path.name) from error
    if not isinstance(saved, dict):
        raise ConfigurationError(f"{path} is not a JSON object", hint=f"delete or correct {path}", name=path.name)
    return saved


def save_settings(data_dir: Path, *, changes: dict[str, Any]) -> None:
    """Merge `changes` (field name → plain value, None removes) into the saved settings; secrets are refused.

    :raises ConfigurationError: a name is unknown, or names a secret.
    """
    for name in changes:
        field = Settings.model_fields.get(name)
        if field is None or field.annotation is SecretStr:
            raise ConfigurationError(f"{name!r} cannot be saved", hint="set it in the environment", name=name)
    merged = {**read_saved_settings(data_dir), **changes}
    data_dir.mkdir(parents=True, exist_ok=True)
    temporary = data_dir / f"{SETTINGS_FILE}.new"
    kept = {name: value for name, value in merged.items() if value is not None}
    temporary.write_text(json.dumps(kept, ensure_ascii=False, indent=2), encoding="utf-8")
    temporary.replace(data_dir / SETTINGS_FILE)


def environment_names(name: str) -> tuple[str, ...]:
    """Return the environment names of a setting, strongest first."""
    alias = Settings.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices)
    return (f"CRAG_{name.upper()}",)


def from_environment(name: str) -> bool:
    """Tell whether the environment or `.env` sets this setting, so that the page cannot change it."""
    return not _environment().isdisjoint(environment_names(name))


def environment_warnings() -> list[str]:
    """Return one line for each unknown `CRAG_*` name of the environment or `.env`, with the nearest known one."""
    known = {choice for name in Settings.model_fields for choice in environment_names(name)} | {"CRAG_BENCH_DATA"}
    lines = []
    for name in sorted(_environment()):
        if name.startswith("CRAG_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            lines.append(f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else ""))
    return lines


def _environment() -> set[str]:
    """Names that the environment or `.env` gives a value, in capitals as settings are read whatever their case."""
    with _telling_encoding():
        written = DotEnvSettingsSource(Settings).env_vars
    return {name.upper() for name, value in (*written.items(), *os.environ.items()) if value}


@contextmanager
def _telling_encoding() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise ConfigurationError(f".env: {error}", hint="save .env as UTF-8", name=".env") from error


def bench_data_dir() -> Path:
    """Folder of the evaluation data (`CRAG_BENCH_DATA`, default ../shared/data); it may not exist."""
    return Path(os.environ.get("CRAG_BENCH_DATA") or ROOT.parent / "shared" / "data")


def load_settings(**values: Any) -> Settings:
    """Read the settings afresh; `values` override every source.

    :raises ConfigurationError: a value is wrong; the message says which, why and what is allowed.
    """
    try:
        with _telling_encoding():
            return Settings(**values)
    except ValidationError as error:
        problems = []
        for item in error.errors():
            if not item["loc"]:
                problems.append(item["msg"].removeprefix("Value error, "))
                continue
            field = str(item["loc"][0])
            shown = environment_names(field)[0] if field in Settings.model_fields else field
            secret = field in Settings.model_fields and Settings.model_fields[field].annotation is SecretStr
            value = "***" if secret else repr(item.get("input"))
            problems.append(f"{shown}={value}: {item['msg']}")
        text = "; ".join(problems)
        raise ConfigurationError(text, hint="correct the value or remove it", name=text) from None


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the process's settings; `get_settings.cache_clear()` after `save_settings`."""
    return load_settings()


def interface_language(settings: Settings | None) -> Literal["zh", "en"]:
    """Return the language of the terminal: the setting, else the system's locale; None where settings are wrong."""
    chosen = settings.language if settings else os.environ.get("CRAG_LANGUAGE")
    system = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    named = chosen if chosen in ("zh", "en") else system
    return "zh" if named.lower().startswith("zh") else "en"
