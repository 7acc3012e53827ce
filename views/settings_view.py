"""The settings: what each value is, where it comes from, and whether what it names works."""

from __future__ import annotations

from typing import Any, get_args

import streamlit as st

from config import Parser, Provider, Settings, environment_names, from_environment, get_settings, load_settings
from config import save_settings as save
from schema import SearchMode
from views.boundary import Boundary
from views.conversation_list import draw_labelled
from views.markup import plain_markdown
from views.resources import forget_settings, pipeline
from views.session import base_name, emphasis, language, words

PROVIDERS = get_args(Provider)
ROLES = ("answer", "grade", "rewrite")
EVALUATORS = (None, "reader", "llm", "cascade", "similarity")


def draw_settings() -> None:
    """Draw the form, the tests and the labelled data."""
    st.header(words("settings_title"), anchor=False)
    st.caption(words("settings_help"))
    settings = get_settings()
    with st.form("settings_form", border=False):
        changes = _draw_answering(settings)
        changes |= _draw_models(settings)
        changes |= _draw_general(settings)
        saved = st.form_submit_button(words("save"), icon=":material/save:", type=emphasis(), key="save_settings")
    if saved:
        _save(settings, wanted=changes)
    _draw_tests(settings)
    st.subheader(words("labelled_title"), anchor=False)
    draw_labelled()


def _draw_answering(settings: Settings) -> dict[str, Any]:
    st.subheader(words("settings_answering"), anchor=False)
    found: dict[str, Any] = {}
    found["web_search"] = _choice("web_search", options=[mode.value for mode in SearchMode], value=settings.web_search)
    columns = st.columns(2)
    with columns[0]:
        found["retrieve_k"] = _number("retrieve_k", low=1, high=100, value=settings.retrieve_k)
    with columns[1]:
        found["max_strips"] = _number("max_strips", low=1, high=50, value=settings.max_strips)
    st.caption(words("thresholds_help"))
    for name, column in zip(("lower", "upper", "strip_floor"), st.columns(3), strict=True):
        with column:
            found[name] = _score(name, value=getattr(settings, name))
    for name in ("refusal_zh", "refusal_en"):
        found[name] = _text(name, value=getattr(settings, name), placeholder=words("own_sentence"))
    return found


def _draw_models(settings: Settings) -> dict[str, Any]:
    st.subheader(words("settings_models"), anchor=False)
    st.caption(words("secrets_help"))
    found: dict[str, Any] = {}
    left, right = st.columns(2)
    with left:
        found["llm_provider"] = _choice("llm_provider", options=PROVIDERS, value=settings.llm_provider)
        found["embedding_provider"] = _choice(
            "embedding_provider", options=PROVIDERS, value=settings.embedding_provider
        )
        found["evaluator"] = _choice("evaluator", options=EVALUATORS, value=settings.evaluator)
        found["pdf_parser"] = _choice("pdf_parser", options=get_args(Parser), value=settings.pdf_parser)
    with right:
        found["llm_model"] = _text("llm_model", value=settings.llm_model)
        found["embedding_model"] = _text("embedding_model", value=settings.embedding_model)
        found["ollama_url"] = _text("ollama_url", value=settings.ollama_url)
        found["openai_api_base"] = _text("openai_api_base", value=settings.openai_api_base)
        found["mineru_url"] = _text("mineru_url", value=settings.mineru_url)
    with st.expander(words("settings_roles"), icon=":material/account_tree:"):
        st.caption(words("roles_help"))
        for role in ROLES:
            for name, column in zip((f"{role}_provider", f"{role}_model"), st.columns(2), strict=True):
                value = getattr(settings, name)
                with column:
                    found[name] = (
                        _choice(name, options=(None, *PROVIDERS), value=value)
                        if name.endswith("_provider")
                        else _text(name, value=value)
                    )
    return found


def _draw_general(settings: Settings) -> dict[str, Any]:
    st.subheader(words("settings_general"), anchor=False)
    chosen = _choice("language", options=("auto", "zh", "en"), value=settings.language)
    st.caption(words("theme_help"))
    return {"language": chosen}


def _choice(name: str, *, options: Any, value: Any) -> Any:
    listed = list(options)

    def shown(option: Any) -> str:
        key = f"option_{name}_{option}"
        return words(key) if words(key) != f"page.{key}" else str(option)

    if from_environment(name):
        return _fixed(name, value=value, shown=shown(value))
    return st.selectbox(
        words(f"setting_{name}"), listed, index=listed.index(value), format_func=shown, key=f"setting_{name}"
    )


def _number(name: str, *, low: int, high: int, value: int) -> int:
    if from_environment(name):
        return int(_fixed(name, value=value, shown=str(value)))
    return int(st.number_input(words(f"setting_{name}"), low, high, value=value, key=f"setting_{name}"))


def _score(name: str, *, value: float | None) -> float | None:
    if from_environment(name):
        _fixed(name, value=value, shown=f"{value:+.2f}")
        return value
    return st.number_input(
        words(f"setting_{name}"),
        -1.0,
        1.0,
        value=value,
        step=0.01,
        key=f"setting_{name}",
        placeholder=words("evaluators_own"),
    )


def _text(name: str, *, value: str, placeholder: str = "") -> str:
    if from_environment(name):
        return str(_fixed(name, value=value, shown=value))
    label = words(f"setting_{name}")
    return st.text_input(label, value=value, key=f"setting_{name}", max_chars=500, placeholder=placeholder).strip()


def _fixed(name: str, *, value: Any, shown: str) -> Any:
    """Draw a value that the environment sets as text: there is nothing to change here."""
    source = words("from_environment", name=plain_markdown(environment_names(name)[0]))
    st.markdown(f":material/lock: {words(f'setting_{name}')}: **{plain_markdown(shown)}** · {source}")
    return value


def _save(settings: Settings, *, wanted: dict[str, Any]) -> None:
    """Check and keep what differs; a value from the environment is never touched."""
    changes = {
        name: value for name, value in wanted.items() if value != getattr(settings, name) and not from_environment(name)
    }
    if not changes:
        st.info(words("nothing_changed"), icon=":material/info:")
        return
    lower, upper = wanted["lower"], wanted["upper"]
    if lower is not None and upper is not None and lower > upper:
        st.warning(words("thresholds_crossed"), icon=":material/warning:")
        return
    load_settings(**{name: value for name, value in changes.items() if value is not None})
    save(settings.data_dir, changes=changes)
    forget_settings()
    st.success(words("saved"), icon=":material/check:")


def _draw_tests(settings: Settings) -> None:
    st.subheader(words("tests_title"), anchor=False)
    if not st.button(words("run_tests"), icon=":material/network_check:", key="run_tests", help=words("tests_help")):
        return
    from doctor import examine

    with Boundary("doctor"), st.spinner(words("testing")):
        for check in examine(settings, knowledge_base=base_name()):
            icon = ":green[:material/check_circle:]" if check.ok else ":red[:material/error:]"
            st.markdown(f"{icon} **{plain_markdown(check.name)}** — {plain_markdown(check.detail)}")
            if check.hint and not check.ok:
                st.caption(plain_markdown(check.hint))
    thresholds = pipeline().thresholds(language())
    st.caption(
        words(
            "thresholds_now",
            upper=f"{thresholds.upper:+.2f}",
            lower=f"{thresholds.lower:+.2f}",
            strip=f"{thresholds.strip:+.2f}",
        )
    )
