"""MinerU's hosted service: upload, wait, fetch the result; only after the user's plain consent.

POST /file-urls/batch → PUT the file → GET /extract-results/batch/{id} → zip with content_list.json, whose page_idx
counts from 0 and whose boxes run 0–1000.
"""

from __future__ import annotations

import io
import json
import logging
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config import Settings
from errors import (
    ConfigurationError,
    PdfUnreadableError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitError,
    ProviderResponseError,
    ProviderUnavailableError,
)
from mineru_blocks import RawBlock

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

MAX_BYTES = 200 * 1024 * 1024
MAX_PAGES = 600
MAX_RESULT_BYTES = 500 * 1024 * 1024
_NAME = "MinerU API"
_CAPTIONS = (
    ("table_caption", "table_caption"),
    ("img_caption", "image_caption"),
    ("image_caption", "image_caption"),
    ("table_footnote", "table_footnote"),
    ("img_footnote", "image_footnote"),
    ("image_footnote", "image_footnote"),
)


class MineruApi:
    """One account at the hosted service."""

    name = "mineru-api"

    def __init__(self, settings: Settings, *, pause: float = 3.0) -> None:
        self.settings = settings
        self.pause = pause
        if not settings.mineru_api_key.get_secret_value():
            raise ConfigurationError(
                "CRAG_PDF_PARSER=mineru-api needs CRAG_MINERU_API_KEY",
                hint="create a token on the service's page and set it",
                name="CRAG_MINERU_API_KEY",
            )
        if not settings.mineru_api_consent:
            raise ConfigurationError(
                "CRAG_PDF_PARSER=mineru-api uploads whole PDFs; CRAG_MINERU_API_CONSENT is not set",
                hint="set CRAG_MINERU_API_CONSENT=true if your PDFs may leave this machine",
                name="CRAG_MINERU_API_CONSENT",
            )

    def extract(
        self, path: Path, *, pages: int, cancelled: Callable[[], bool] = lambda: False
    ) -> dict[int, list[RawBlock]]:
        """Return MinerU's blocks by page (1-based); the file's name is not sent.

        :raises PdfUnreadableError: the file is over the service's limits, or the service cannot read it.
        :raises ProviderError: the service fails; nothing was lost.
        """
        check_limits(path, pages=pages)
        import httpx

        token = self.settings.mineru_api_key.get_secret_value()
        with httpx.Client(timeout=self.settings.mineru_timeout, follow_redirects=False) as client:
            base = self.settings.mineru_api_url.rstrip("/")
            headers = {"Authorization": f"Bearer {token}"}
            try:
                asked = client.post(
                    f"{base}/file-urls/batch",
                    headers=headers,
                    json={
                        "files": [{"name": "document.pdf", "data_id": "document"}],
                        "model_version": "vlm",
                        "enable_formula": True,
                        "enable_table": True,
                    },
                )
                batch = _data(asked)
                with path.open("rb") as stream:  # the signed address takes the bytes alone, without our token
                    sent = client.put(str(batch["file_urls"][0]), content=stream)
                if sent.status_code >= 400:
                    raise ProviderResponseError(f"{_NAME}: upload answered {sent.status_code}", name=_NAME)
                found = self._wait(client, f"{base}/extract-results/batch/{batch['batch_id']}", headers, cancelled)
                return read_result(_fetch(client, str(found["full_zip_url"])))
            except httpx.HTTPError as error:
                raise ProviderUnavailableError(f"{_NAME}: {type(error).__name__}", name=_NAME) from error
            except (KeyError, IndexError, TypeError, ValueError, zipfile.BadZipFile) as error:
                raise ProviderResponseError(
                    f"{_NAME}: unexpected answer ({type(error).__name__})", name=_NAME
                ) from error

    def _wait(
        self, client: httpx.Client, address: str, headers: dict[str, str], cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        """Ask until the file is done; the time allowed starts anew with every page that the service finishes."""
        deadline = time.monotonic() + self.settings.mineru_timeout
        last = -1
        while not cancelled():
            result: dict[str, Any] = _data(client.get(address, headers=headers))["extract_result"][0]
            match result["state"]:
                case "done":
                    return result
                case "failed":
                    raise PdfUnreadableError(
                        f"{_NAME}: {result.get('err_msg', 'failed')}", hint="choose another parser", file="PDF"
                    )
            extracted = int((result.get("extract_progress") or {}).get("extracted_pages") or 0)
            if extracted != last:
                last, deadline = extracted, time.monotonic() + self.settings.mineru_timeout
            if time.monotonic() > deadline:
                raise ProviderUnavailableError(
                    f"{_NAME}: no progress for {self.settings.mineru_timeout:.0f} s", name=_NAME
                )
            time.sleep(self.pause)
        raise ProviderError(f"{_NAME}: stopped", name=_NAME)


def check_limits(path: Path, *, pages: int) -> None:
    """Refuse what the service would refuse, before anything is uploaded.

    :raises PdfUnreadableError: too many bytes or pages.
    """
    size = path.stat().st_size
    if size > MAX_BYTES or pages > MAX_PAGES:
        raise PdfUnreadableError(
            f"{path.name}: {size} bytes, {pages} pages; the hosted service takes {MAX_BYTES} bytes, {MAX_PAGES} pages",
            hint="split it, or use another parser",
            code="pdf_api_limit",
            file=path.name,
            pages=pages,
            limit=MAX_PAGES,
        )


def _data(response: httpx.Response) -> dict[str, Any]:
    """Return the data of an answer.

    :raises ProviderError: the service says no.
    """
    if response.status_code in {401, 403}:
        raise ProviderAuthError(f"{_NAME}: the token is refused", hint="check CRAG_MINERU_API_KEY", name=_NAME)
    if response.status_code == 429:
        raise ProviderRateLimitError(f"{_NAME}: too many requests", name=_NAME)
    if response.status_code >= 500:
        raise ProviderUnavailableError(f"{_NAME}: status {response.status_code}", name=_NAME)
    answer = response.json()
    if response.status_code != 200 or answer.get("code") != 0:
        if str(answer.get("code", "")) in {"A0202", "A0211"}:
            raise ProviderAuthError(f"{_NAME}: the token is refused", hint="check CRAG_MINERU_API_KEY", name=_NAME)
        raise ProviderResponseError(f"{_NAME}: {answer.get('msg', response.status_code)}", name=_NAME)
    data: dict[str, Any] = answer["data"]
    return data


def _fetch(client: httpx.Client, address: str) -> bytes:
    """Return the result archive, up to MAX_RESULT_BYTES."""
    found = bytearray()
    with client.stream("GET", address, follow_redirects=True) as response:
        response.raise_for_status()
        for piece in response.iter_bytes():
            found += piece
            if len(found) > MAX_RESULT_BYTES:
                raise ProviderResponseError(f"{_NAME}: the result is too large", name=_NAME)
    return bytes(found)


def read_result(archive: bytes) -> dict[int, list[RawBlock]]:
    """Return the blocks of a result archive by page (1-based).

    :raises ValueError: the archive holds no list of blocks, or it is too large.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        entry = next((info for info in opened.infolist() if info.filename.endswith("content_list.json")), None)
        if entry is None or entry.file_size > MAX_RESULT_BYTES:
            raise ValueError("no content_list.json")
        items = json.loads(opened.read(entry))
    pages: dict[int, list[RawBlock]] = defaultdict(list)
    for item in items:
        pages[int(item["page_idx"]) + 1].extend(_raw(item))
    return dict(pages)


def _raw(item: dict[str, Any]) -> Iterator[RawBlock]:
    """Yield the blocks of one entry: captions and footnotes become their own."""
    box = [min(1.0, max(0.0, float(value) / 1000)) for value in item.get("bbox") or (0, 0, 1000, 1000)]
    name = str(item.get("type", "text"))
    if name == "text" and item.get("text_level"):
        name = "doc_title" if item["text_level"] == 1 and int(item["page_idx"]) == 0 else "paragraph_title"
    content = item.get("table_body") or item.get("text") or item.get("code_body") or ""
    if not content and isinstance(item.get("list_items"), list):
        content = "\n".join(str(entry) for entry in item["list_items"])
    for key, kind in _CAPTIONS:
        if kind.endswith("caption") and item.get(key):
            yield {"type": kind, "bbox": box, "content": " ".join(map(str, item[key]))}
    yield {"type": name, "bbox": box, "content": content}
    for key, kind in _CAPTIONS:
        if kind.endswith("footnote") and item.get(key):
            yield {"type": kind, "bbox": box, "content": " ".join(map(str, item[key]))}
