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


@pytest.fixture
def dotenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `.env` of the folder the program runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".env"


def test_what_the_dotenv_file_sets_counts_as_set_by_the_environment(dotenv: Path) -> None:
    dotenv.write_text("CRAG_WEB_SEARCH=ask\ncrag_retrieve_k=7\nCRAG_LOWER=\n", encoding="utf-8-sig")
    assert (load_settings().web_search, load_settings().retrieve_k) == ("ask", 7)
    assert from_environment("web_search")
    assert from_environment("retrieve_k")
    assert not from_environment("lower"), "an empty value sets nothing"
    assert not from_environment("upper")


def test_an_unknown_name_in_the_dotenv_file_is_warned_about(dotenv: Path) -> None:
    dotenv.write_text("CRAG_EVALUATR=reader\nOTHER_PROGRAM=1\n", encoding="utf-8")
    assert environment_warnings() == ["CRAG_EVALUATR is not a setting; did you mean CRAG_EVALUATOR?"]


def test_a_dotenv_file_in_another_encoding_is_named(dotenv: Path) -> None:
    dotenv.write_bytes("CRAG_REFUSAL_ZH=你好".encode("gbk"))
    for read in (load_settings, environment_warnings, lambda: from_environment("upper")):
        with pytest.raises(ConfigurationError, match=r"\.env"):
            read()


@pytest.mark.parametrize("names", [("CRAG_LOWER", "CRAG_UPPER"), ("CRAG_LOWER_ZH", "CRAG_UPPER")])
def test_a_lower_threshold_above_the_upper_one_is_an_error(
    names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv(names[0], "0.9")
    monkeypatch.setenv(names[1], "0")
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert f"{names[0]}=0.9 is above {names[1]}=0.0" in caught.value.message
    assert "sk-secret" not in caught.value.message


def test_an_unknown_web_provider_is_named_with_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_WEB_PROVIDERS", "wikipedia,duck")
    with pytest.raises(ConfigurationError, match=r"CRAG_WEB_PROVIDERS='duck': .*'searxng'"):
        load_settings()
