from pathlib import Path

import pytest
from pydantic import SecretStr

from config import environment_warnings, from_environment, load_settings, save_settings
from errors import ConfigurationError


def test_a_wrong_value_says_which_why_and_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_LLM_PROVIDER", "olama")
    monkeypatch.setenv("CRAG_UPPER", "3")
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert "CRAG_LLM_PROVIDER='olama'" in caught.value.message
    assert "'ollama'" in caught.value.message
    assert "CRAG_UPPER='3'" in caught.value.message


def test_an_unknown_name_is_warned_about_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_EVALUATR", "reader")
    assert environment_warnings() == ["CRAG_EVALUATR is not a setting; did you mean CRAG_EVALUATOR?"]


def test_environment_wins_over_what_the_page_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path))
    save_settings(tmp_path, changes={"retrieve_k": 7, "upper": 0.25})
    assert (load_settings().retrieve_k, load_settings().upper) == (7, 0.25)
    monkeypatch.setenv("CRAG_RETRIEVE_K", "9")
    assert load_settings().retrieve_k == 9
    assert from_environment("retrieve_k")
    assert not from_environment("upper")
    save_settings(tmp_path, changes={"upper": None})
    assert load_settings().upper is None


def test_secrets_are_not_saved_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError):
        save_settings(tmp_path, changes={"openai_api_key": "sk-secret"})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert load_settings().openai_api_key == SecretStr("sk-secret")
    assert "sk-secret" not in repr(load_settings())
    assert not list(tmp_path.iterdir())


def test_names_may_be_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_WEB_PROVIDERS", "wikipedia, library")
    assert load_settings().web_providers == ("wikipedia", "library")


def test_a_damaged_settings_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.json").write_text("[", encoding="utf-8")
    monkeypatch.setenv("CRAG_DATA_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"settings\.json"):
        load_settings()
