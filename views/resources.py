"""What all sessions of the process share: opened once, when first needed, never at import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from config import Settings, get_settings
from conversations import Conversations
from views.session import base_name

if TYPE_CHECKING:
    from crag import Crag
    from jobs import BuildJob
    from knowledge_base import KnowledgeBase

UNRELATED = {
    *("language", "trace", "retrieve_k", "dense_weight", "bm25_weight", "llm_provider", "llm_model", "answer_provider"),
    *("answer_model", "grade_provider", "grade_model", "rewrite_provider", "rewrite_model", "evaluator", "upper"),
    *("lower", "strip_floor", "max_strips", "refusal_zh", "refusal_en", "web_search", "web_providers", "web_results"),
    *("upper_en", "lower_en", "strip_floor_en", "upper_zh", "lower_zh", "strip_floor_zh"),
}
"""Settings that do not change a knowledge base: it stays open when they are saved."""


def conversations() -> Conversations:
    """Return the conversations of the data folder."""
    return _conversations(str(get_settings().data_dir))


def knowledge_base() -> KnowledgeBase:
    """Return the session's knowledge base, open.

    :raises CragError: it cannot be opened.
    """
    return _knowledge_base(get_settings(), base_name())


def pipeline() -> Crag:
    """Return the pipeline on the session's knowledge base.

    :raises CragError: a model or provider that the settings name cannot be used.
    """
    return _pipeline(get_settings(), base_name())


def build_job() -> BuildJob:
    """Return the one build job of the session's knowledge base: it lives through reruns, reloads and other tabs.

    :raises CragError: the knowledge base cannot be opened.
    """
    return _build_job(get_settings(), base_name())


def files_dir() -> Path:
    """Return the folder of the session's knowledge base."""
    return knowledge_base().files_dir


def file_path(file: str) -> Path:
    """Return where a file of the library lies."""
    return files_dir() / Path(file).name


def forget_settings() -> None:
    """Read the settings afresh; parts that depend on them are opened again when next needed."""
    get_settings.cache_clear()


def _whole(settings: Settings) -> str:
    return settings.model_dump_json()


def _related(settings: Settings) -> str:
    return settings.model_dump_json(exclude=UNRELATED)


def _close(base: KnowledgeBase) -> None:
    base.close()


@st.cache_resource(show_spinner=False)
def _conversations(data_dir: str) -> Conversations:
    return Conversations(Path(data_dir))


@st.cache_resource(show_spinner=False, hash_funcs={Settings: _related}, max_entries=8, on_release=_close)
def _knowledge_base(settings: Settings, name: str) -> KnowledgeBase:
    from knowledge_base import open_knowledge_base

    return open_knowledge_base(settings, name=name)


@st.cache_resource(show_spinner=False, hash_funcs={Settings: _whole}, max_entries=8)
def _pipeline(settings: Settings, name: str) -> Crag:
    from crag import build_crag

    return build_crag(settings, knowledge_base=_knowledge_base(settings, name))


@st.cache_resource(show_spinner=False, hash_funcs={Settings: _related}, max_entries=8)
def _build_job(settings: Settings, name: str) -> BuildJob:
    from jobs import BuildJob

    return BuildJob(_knowledge_base(settings, name))
