import ast
import re
import string
from pathlib import Path

import pytest

import errors
from config import LOCALES_DIR, ROOT
from i18n import LANGUAGES, translate, words


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_say_the_same_things() -> None:
    chinese, english = words("zh"), words("en")
    assert chinese.keys() == english.keys()
    assert [key for key in chinese if placeholders(chinese[key]) != placeholders(english[key])] == []


def test_every_area_file_exists_twice() -> None:
    names = [{path.name for path in (LOCALES_DIR / language).glob("*.json")} for language in LANGUAGES]
    assert names[0] == names[1]


def error_codes() -> list[str]:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    return sorted({kind.code for kind in classes if issubclass(kind, errors.CragError)})


@pytest.mark.parametrize("code", error_codes())
def test_every_error_has_words(code: str) -> None:
    assert f"error.{code}" in words("en")


def test_every_key_used_in_the_code_exists() -> None:
    known = words("en")
    areas = {key.split(".")[0] for key in known}
    used = set()
    for path in [*ROOT.glob("*.py"), *ROOT.glob("views/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = re.fullmatch(r"([a-z_]+)\.[a-z0-9_]*[a-z0-9]", node.value)
                if match and match.group(1) in areas:
                    used.add(node.value)
    files = ("json", "py", "md", "html", "txt", "pdf", "sqlite", "db")
    assert sorted(key for key in used if key not in known and key.split(".")[1] not in files) == []


def test_chinese_has_one_word_for_each_thing() -> None:
    chinese = words("zh")
    for action in ("correct", "ambiguous", "incorrect"):
        assert chinese[f"cli.action_{action}"].startswith(chinese[f"page.action_{action}"])
    strips = [key for key, text in words("en").items() if "strip" in text.lower()]
    assert [key for key in strips if "片段" not in chinese[key] and key != "error.provider_context"] == []
    chunks = [key for key, text in chinese.items() if "{chunks}" in text]
    assert [key for key in chunks if "{chunks} 个文本块" not in chinese[key]] == []
    assert chinese["page.chunks"] == "文本块"
    assert "保留线" in chinese["page.setting_strip_floor"]


def test_switched_off_web_search_promises_nothing_about_models() -> None:
    """A remote model is sent passages whatever the web search is."""
    for key in ("page.web_mode_off", "page.option_web_search_off"):
        assert "machine" not in words("en")[key]
        assert "本机" not in words("zh")[key]


def test_a_missing_value_leaves_a_gap_not_an_error() -> None:
    assert "{" not in translate("answer.reason_incorrect", language="en")
    assert translate("no.such_key", language="en") == "no.such_key"
    assert Path(LOCALES_DIR).is_dir()
