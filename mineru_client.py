"""MinerU's model, in this process (transformers) or behind an OpenAI-compatible server (http-client)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from config import Settings
from errors import ConfigurationError, ProviderUnavailableError
from mineru_blocks import RawBlock, fault_of
from mineru_local import weights_folder

if TYPE_CHECKING:
    from pdf_process import Picture

logger = logging.getLogger(__name__)

WINDOW = 6
"""Pages rendered and extracted at a time: memory stays flat however long the file is."""
PICTURE_WIDTH = 1600
TRIES = 2
MAX_NEW_TOKENS = 8192
"""No block is longer; without a cap a repetition loop runs until the context is full."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """MinerU's blocks for one page, or the reason why there are none (an i18n-free code)."""

    blocks: tuple[RawBlock, ...]
    fault: str = ""


def normal_url(address: str) -> str:
    """Return a server address as mineru-vl-utils wants it: with a scheme, and a path that ends in /v1 or /.

    :raises ConfigurationError: it names no host.
    """
    text = address.strip()
    text = text if "://" in text else f"http://{text}"
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(
            f"CRAG_MINERU_URL={address!r} is no http address",
            hint="e.g. http://localhost:30000",
            name="CRAG_MINERU_URL",
        )
    path = parts.path.rstrip("/")
    for ending in ("/chat/completions", "/models"):
        path = path.removesuffix(ending)
    if path and not path.endswith("/v1"):
        path += "/"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


class MineruModel:
    """Extracts the blocks of page pictures; `local` loads the weights at the first page."""

    def __init__(self, settings: Settings, *, local: bool) -> None:
        self.settings = settings
        self.local = local
        self.name = f"mineru-{'local' if local else 'server'}"
        if local:
            weights_folder(settings)
        elif not settings.mineru_url:
            raise ConfigurationError(
                "CRAG_PDF_PARSER=mineru-server needs CRAG_MINERU_URL",
                hint="set it to the address of your MinerU server, e.g. http://localhost:30000",
                name="CRAG_MINERU_URL",
            )
        else:
            self.url = normal_url(settings.mineru_url)

    @cached_property
    def client(self) -> Any:
        """The library's client.

        :raises ProviderUnavailableError: the server does not answer.
        :raises ConfigurationError: the packages of requirements-mineru.txt are missing.
        """
        import httpx
        from loguru import logger as library_logger
        from mineru_vl_utils import MinerUClient
        from mineru_vl_utils.mineru_client import DEFAULT_SAMPLING_PARAMS

        library_logger.disable("mineru_vl_utils")  # it logs what it reads
        capped = {
            name: replace(parameters, max_new_tokens=MAX_NEW_TOKENS)
            for name, parameters in DEFAULT_SAMPLING_PARAMS.items()
        }
        if self.local:
            try:
                return MinerUClient(
                    backend="transformers",
                    model_path=str(weights_folder(self.settings)),
                    use_tqdm=False,
                    sampling_params=capped,
                )
            except ImportError as error:
                raise ConfigurationError(
                    f"mineru-local: {error}", hint="pip install -r requirements-mineru.txt", name="CRAG_PDF_PARSER"
                ) from error
        try:
            return MinerUClient(
                backend="http-client",
                server_url=self.url,
                model_name=None,
                max_concurrency=self.settings.mineru_concurrency,
                http_timeout=max(1, round(self.settings.mineru_timeout)),
                max_retries=1,
                use_tqdm=False,
                sampling_params=capped,
            )
        except (RuntimeError, ValueError, OSError, httpx.HTTPError) as error:
            raise ProviderUnavailableError(
                f"MinerU server {self.url}: {error}", hint="is it running?", name=f"MinerU ({self.url})"
            ) from error

    def extract(self, pictures: Sequence[Picture]) -> list[Extracted]:
        """Return the blocks of each picture; a page that fails or comes back empty is tried again.

        :raises ProviderUnavailableError: the server cannot be reached at all.
        """
        client = self.client
        workers = 1 if self.local else min(len(pictures), self.settings.mineru_concurrency)
        pool = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="mineru")
        try:  # threads, because the client must not run inside an event loop
            futures = [pool.submit(self._page, client, picture) for picture in pictures]
            found = []
            for future in futures:
                try:
                    found.append(future.result(timeout=self.settings.mineru_timeout * TRIES * 2))
                except FutureTimeoutError:
                    future.cancel()
                    found.append(Extracted((), "mineru_timeout"))
            return found
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _page(self, client: Any, picture: Picture) -> Extracted:
        import httpx

        fault = ""
        for _ in range(TRIES):
            try:
                blocks = tuple(_plain(block) for block in client.two_step_extract(picture.image))
            except (RuntimeError, ValueError, AssertionError, OSError, httpx.HTTPError) as error:
                fault = "mineru_timeout" if "timeout" in type(error).__name__.lower() else "mineru_error"
                logger.warning("MinerU, page %d: %s", picture.page, type(error).__name__)
                continue
            fault = fault_of(blocks, ink=picture.ink)
            if not fault:
                return Extracted(blocks)
            logger.warning("MinerU, page %d: %s", picture.page, fault)
        return Extracted((), fault)


def _plain(block: Any) -> RawBlock:
    """Return a block as plain JSON values."""
    names = ("type", "bbox", "angle", "content", "merge_prev")
    return {name: block[name] for name in names if block.get(name) is not None}
