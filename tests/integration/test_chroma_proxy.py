"""A Chroma server behind a proxy: its path, its credentials, and what it says when the server is away."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from chroma_client import chroma_errors, without_password
from errors import ConfigurationError, CragError, StoreError
from i18n import LANGUAGES, translate
from langchain_backends import ReadyVectors, open_backend
from tests.integration.helpers_proxy import Proxy, proxy
from tests.integration.helpers_server import chroma_server
from tests.integration.helpers_store import find, open_base, settings_at, write_library

PASSWORD = "p@ss/w:rd?é"
IN_URL = "p%40ss%2Fw%3Ard%3F%C3%A9"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def gate(server: str) -> Iterator[Proxy]:
    with proxy(server, name="someone", password=PASSWORD) as running:
        yield running


def check_no_password(error: CragError) -> None:
    told = [error.message, error.hint, *map(str, error.values.values())]
    told += [translate(f"error.{error.code}", language=language, **error.values) for language in LANGUAGES]
    assert not any(part in text for text in told for part in (PASSWORD, IN_URL, "someone", "secret"))


def test_name_password_and_path_of_the_address_are_used(
    tmp_path: Path, gate: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with open_base(tmp_path, chroma_url=f"http://someone:{IN_URL}@{gate.host}/chroma") as base:
        write_library(base.files_dir, files=2)
        assert base.build().documents == 2
        assert base.status().vectors == 2
        assert find(base, "heron")
        assert IN_URL not in str(base.status().as_json())
    assert PASSWORD not in caplog.text
    assert IN_URL not in caplog.text


@pytest.mark.parametrize("written", ["", "someone:secret@", "someone@"])
def test_refused_credentials_are_named_and_not_shown(tmp_path: Path, gate: Proxy, written: str) -> None:
    with open_base(tmp_path, chroma_url=f"http://{written}{gate.host}/chroma") as base:
        write_library(base.files_dir, files=1)
        with pytest.raises(StoreError) as caught:
            base.build()
    assert caught.value.code == "store_auth"
    assert gate.host in caught.value.message
    check_no_password(caught.value)


@pytest.mark.parametrize("status", [500, 502, 503, 401])
def test_page_of_the_proxy_is_a_store_error_and_moves_nothing(tmp_path: Path, gate: Proxy, status: int) -> None:
    with open_base(tmp_path, chroma_url=f"http://someone:{IN_URL}@{gate.host}/chroma") as base:
        write_library(base.files_dir, files=1)
        base.build()
        assert find(base, "heron")
        gate.status = status
        for again in (False, True):
            with pytest.raises(StoreError) as caught:
                base.build(rebuild=True) if again else find(base, "heron")
            assert caught.value.code == {401: "store_auth", 500: "store_unreachable" if again else "store"}.get(
                status, "store_unreachable"
            )
            check_no_password(caught.value)
        assert not list(base.base.folder.glob("damaged-*"))
        gate.status = 0
        assert find(base, "heron")


def test_other_bare_exceptions_are_not_taken_for_the_servers() -> None:
    with pytest.raises(Exception, match="a mistake of ours") as caught, chroma_errors("here"):
        raise Exception("a mistake of ours")  # noqa: TRY002
    assert type(caught.value) is Exception


@pytest.mark.parametrize(
    "url", ["someone:secret@host:8000", "http://someone:secret@host:port", "http://host:8000/?token=secret", "ftp://x"]
)
def test_wrong_address_is_named_without_its_password(tmp_path: Path, url: str) -> None:
    with open_base(tmp_path, chroma_url=url) as base:
        write_library(base.files_dir, files=1)
        with pytest.raises(ConfigurationError) as caught:
            base.build()
    assert "CRAG_CHROMA_URL" in caught.value.message
    check_no_password(caught.value)


def test_address_of_a_langchain_store_is_shown_without_its_password(tmp_path: Path) -> None:
    url = "http://someone:secret@127.0.0.1:9"
    settings = settings_at(tmp_path, vector_store="tests.integration.test_chroma_proxy:refuse", vector_store_url=url)
    with pytest.raises(StoreError) as caught:
        open_backend(settings, folder=tmp_path, collection="kb", vectors=ReadyVectors(4))
    assert caught.value.code == "store_unreachable"
    assert "127.0.0.1:9" in caught.value.message
    check_no_password(caught.value)


def refuse(*, url: str, **_: object) -> None:
    """A user's function whose library repeats the address in its error."""
    raise RuntimeError(f"cannot connect to {url}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:8000/path", "http://host:8000/path"),
        ("https://name:pass@host/path", "https://***@host/path"),
        ("https://name:p@ss@host", "https://***@host"),
        ("name:pass@host", "***@host"),
        ("postgresql://host/db?user=name&password=pass", "postgresql://host/db"),
    ],
)
def test_address_as_it_may_be_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
