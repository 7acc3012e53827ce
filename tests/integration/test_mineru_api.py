"""The hosted service over loopback: consent, limits, upload, waiting, result, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

import mineru_api
from config import Settings, load_settings
from errors import (
    ConfigurationError,
    PdfUnreadableError,
    ProviderAuthError,
    ProviderUnavailableError,
)
from mineru_api import MineruApi
from pdf_loader import PdfLoader, parse_pdf
from schema import BlockParser, BlockType
from tests.integration import helpers_pdf as made
from tests.integration.helpers_mineru import hosted_service


def settings_for(tmp_path: Path, url: str, **changes: object) -> Settings:
    return load_settings(
        data_dir=tmp_path / "data",
        mineru_api_url=url,
        _env_file=None,
        **{
            "pdf_parser": "mineru-api",
            "mineru_api_key": "token",
            "mineru_api_consent": True,
            "mineru_timeout": 5.0,
            **changes,
        },
    )


def test_nothing_is_uploaded_without_token_and_consent(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="CONSENT"):
        PdfLoader(settings_for(tmp_path, "", mineru_api_consent=False))
    with pytest.raises(ConfigurationError, match="API_KEY"):
        PdfLoader(settings_for(tmp_path, "", mineru_api_key=""))
    quiet = settings_for(tmp_path, "", pdf_parser="auto", mineru_api_consent=False)
    assert PdfLoader(quiet).parser == "embedded"


def test_file_is_uploaded_without_its_name_and_read_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mineru_api.time.sleep", lambda seconds: None)
    path = made.plain_pdf(tmp_path / "salaries of the board.pdf", pages=2)
    with hosted_service() as service:
        parsed = parse_pdf(path, settings=settings_for(tmp_path, service.url))
    assert service.uploads == [path.read_bytes()]
    assert "salaries" not in str(service.asked)
    assert "Authorization" not in service.upload_headers[0], "the token goes to the service, not to its storage"
    assert parsed.parser == "mineru-api"
    assert parsed.pages == 2
    assert [block.type for block in parsed.blocks] == [
        BlockType.TITLE,
        BlockType.TEXT,
        BlockType.CAPTION,
        BlockType.TABLE,
        BlockType.TEXT,
    ]
    assert parsed.blocks[3].text.splitlines()[-1] == "| Brook | 77 |"
    assert parsed.blocks[4].page == 2
    assert parsed.blocks[1].bbox == (0.1, 0.12, 0.9, 0.2)


def test_limits_are_checked_before_the_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made.plain_pdf(tmp_path / "long.pdf", pages=3)
    monkeypatch.setattr(mineru_api, "MAX_PAGES", 2)
    with hosted_service() as service:
        settings = settings_for(tmp_path, service.url)
        with pytest.raises(PdfUnreadableError) as caught:
            MineruApi(settings).extract(path, pages=3)
        assert caught.value.code == "pdf_api_limit"
        pages = list(PdfLoader(settings).pages(path, document_id="d"))
        assert service.uploads == []
    assert {page.reason for page in pages} == {"pdf_api_limit"}
    assert {page.parser for page in pages} == {BlockParser.TEXT}


def test_failures_have_their_own_types(tmp_path: Path) -> None:
    path = made.plain_pdf(tmp_path / "one.pdf")
    with hosted_service(refuse=True) as service, pytest.raises(ProviderAuthError):
        MineruApi(settings_for(tmp_path, service.url), pause=0.01).extract(path, pages=1)
    with hosted_service(fail=True) as service, pytest.raises(PdfUnreadableError, match="cannot parse"):
        MineruApi(settings_for(tmp_path, service.url), pause=0.01).extract(path, pages=1)
    with hosted_service(stuck=True) as service, pytest.raises(ProviderUnavailableError, match="no progress"):
        MineruApi(settings_for(tmp_path, service.url, mineru_timeout=0.5), pause=0.05).extract(path, pages=1)
    with pytest.raises(ProviderUnavailableError):
        MineruApi(settings_for(tmp_path, service.url), pause=0.01).extract(path, pages=1)


def test_archive_without_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"content_list\.json"):
        mineru_api.read_result(_empty_archive())


def _empty_archive() -> bytes:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    return buffer.getvalue()
