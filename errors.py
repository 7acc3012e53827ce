"""Typed errors: each names what failed, with which value, and what to do.

`code` is the i18n key under `error.`; `values` fill its placeholders. Only the page and the CLI catch CragError.
"""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

_SQLITE_CODE = re.compile(r"\(code: (\d+)\)")


class CragError(Exception):
    """Base of every error a person may meet.

    `code` names the words in locales/, `values` fill them, `hint` says what to do, `retryable` whether a
    second try may help.
    """

    code = "internal"
    retryable = False

    def __init__(self, message: str, *, hint: str = "", code: str = "", **values: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code
        self.values = values


class ConfigurationError(CragError):
    """A setting has a wrong value or something it needs is missing."""

    code = "configuration"


class ModelError(CragError):
    """An embedded model file is missing, damaged or cannot be loaded."""

    code = "model"


class ProviderError(CragError):
    """A language model, embedding or web provider failed."""

    code = "provider"


class ProviderUnavailableError(ProviderError):
    """The provider cannot be reached or does not answer in time."""

    code = "provider_unavailable"
    retryable = True


class ProviderAuthError(ProviderError):
    """The provider refuses the key, or there is none."""

    code = "provider_auth"


class ProviderRateLimitError(ProviderError):
    """The provider asks to slow down."""

    code = "provider_rate_limit"
    retryable = True


class ProviderResponseError(ProviderError):
    """The provider answered something that cannot be used."""

    code = "provider_response"


class PdfError(CragError):
    """A PDF cannot be read; the other files are read all the same."""

    code = "pdf"


class PdfEncryptedError(PdfError):
    """The PDF needs a password, or the one given is wrong."""

    code = "pdf_encrypted"


class PdfUnreadableError(PdfError):
    """The file is damaged, not a PDF, or broke a limit."""

    code = "pdf_unreadable"


class PdfEmptyError(PdfError):
    """The PDF has no pages, or no text could be found on them."""

    code = "pdf_empty"


class StoreError(CragError):
    """The store cannot be opened or written."""

    code = "store"


def is_disk_full(error: BaseException) -> bool:
    """Tell a full disk or quota from other failures, also where a library only passes the system's words on."""
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return True
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
        return True
    return any(words in str(error).lower() for words in ("disk is full", "no space left", "disk quota exceeded"))


class DiskFullError(StoreError):
    """There is no room left to write the store."""

    code = "disk_full"

    def __init__(self, error: BaseException, *, path: object) -> None:
        super().__init__(f"{path}: {error}", hint="free some space and build again", path=path)


@contextmanager
def telling_disk_full(path: object) -> Iterator[None]:
    """Turn the system's word that there is no room left into ours.

    :raises DiskFullError: there is none; other errors pass.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(error, path=path) from error
        raise


class EmbeddingMismatchError(StoreError):
    """The store was built with another embedder; a rebuild is needed."""

    code = "embedding_mismatch"


class StoreLockedError(StoreError):
    """Another process is building this knowledge base, or holds a file that only one may open."""

    code = "store_locked"
    retryable = True


def store_failure(error: Exception, *, path: object, local: bool = True) -> StoreError:
    """Return what a library's failure means for a store: a full disk, a lock, damage, or something else.

    Only a `local` file is ever called damaged: what a server says of its own disk is not for us to mend.
    """
    text = f"{path}: {error}"
    code = _sqlite_code(error)
    if is_disk_full(error):
        return DiskFullError(error, path=path)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} or "already accessed by another" in str(error):
        return StoreLockedError(text, hint="close it in the other process, or wait", path=path)
    if local and (code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or "no such table" in str(error)):
        return StoreError(text, hint="cli.py build --rebuild", code="store_damaged", path=path, reason=error)
    return StoreError(text, hint="check the store, its disk and its rights", path=path, reason=error)


def _sqlite_code(error: Exception) -> int:
    """Return SQLite's primary result code, also where a library only passes its words on; 0 when there is none."""
    told = _SQLITE_CODE.search(str(error))
    return (getattr(error, "sqlite_errorcode", 0) or int(told.group(1) if told else 0)) & 0xFF


class SearchError(CragError):
    """The web search failed."""

    code = "search"
    retryable = True


class CancelledError(CragError):
    """The user stopped the work."""

    code = "cancelled"
