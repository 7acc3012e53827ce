"""Chroma's clients: the folder of an embedded one, the address of a server, and their errors as ours."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from errors import ConfigurationError, StoreError, store_failure

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_EPOCHS = 50
_PORT = 8000
_REFUSED = {401, 403, 407}
_AWAY = {502, 503, 504}
_opening = threading.Lock()


def server_client(url: str) -> ClientAPI:
    """Return a client of the Chroma server at this address; a name and password in it are sent as basic credentials.

    :raises ConfigurationError: this is no address of a server.
    :raises StoreError: `store_auth` when the credentials are refused, else `store_unreachable`.
    """
    import chromadb
    from chromadb.config import Settings as ChromaSettings

    address = _address(url)
    where = without_password(url)
    headers = {}
    if address.username is not None:
        words = f"{unquote(address.username)}:{unquote(address.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(words.encode()).decode()}"
    secure = address.scheme == "https"
    host = f"[{address.hostname}]" if ":" in str(address.hostname) else address.hostname
    port = address.port or (443 if secure else _PORT)
    # Chroma takes a whole address as the host, and only so does it keep a path.
    base = f"{address.scheme}://{host}:{port}{address.path.rstrip('/')}"
    try:
        with chroma_errors(where, local=False):
            return chromadb.HttpClient(
                base, port=port, ssl=secure, headers=headers, settings=ChromaSettings(anonymized_telemetry=False)
            )
    except StoreError as error:
        raise StoreError(
            f"no Chroma server at {error.message}",
            hint="start it, or correct CRAG_CHROMA_URL",
            code="store_auth" if error.code == "store_auth" else "store_unreachable",
            path=where,
        ) from error


def _address(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        known = address.scheme in {"http", "https"} and address.hostname and address.port != 0
    except ValueError:
        known = False
    if not known or address.query or address.fragment:
        raise ConfigurationError(
            f"CRAG_CHROMA_URL={without_password(url)!r} is not an address",
            hint="use http://host:8000 or https://name:password@host/path",
            name="CRAG_CHROMA_URL",
        )
    return address


def without_password(url: str) -> str:
    """Return an address as it may be shown: without name, password and query, however they are written."""
    before, secret, host = url.rpartition("@")
    scheme = f"{before.partition('://')[0]}://" if "://" in before else ""
    return f"{scheme}***@{host.partition('?')[0]}" if secret else url.partition("?")[0]


def embedded_client(folder: Path, *, epoch: int) -> ClientAPI:
    """Return the client of a folder; those of one `epoch` share what they hold in memory.

    :raises StoreError: the folder cannot be opened; `store_damaged` when what is in it is no store of this Chroma.
    """
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings as ChromaSettings
    from chromadb.errors import ChromaError, NotFoundError

    folder.mkdir(parents=True, exist_ok=True)
    # Chroma shares one instance per spelling of a path.
    path = str(folder) + "/." * (epoch % _EPOCHS)
    with _opening:
        try:
            return chromadb.PersistentClient(path, settings=ChromaSettings(anonymized_telemetry=False))
        except (ChromaError, ValueError, RuntimeError, AttributeError, OSError) as error:
            # Chroma keeps a client that did not start and hands it out again; whatever is put in its place would fail
            # too.
            getattr(SharedSystemClient, "_identifier_to_system", {}).pop(path, None)
            failure = store_failure(error, path=folder)
            # Tables of another version ("Inconsistent version", "Inconsistent hash"), or without Chroma's own rows.
            if isinstance(error, NotFoundError) or "Inconsistent" in str(error):
                failure.code = "store_damaged"
            raise failure from error


@contextmanager
def chroma_errors(where: str, *, local: bool = True) -> Iterator[None]:
    """Turn what Chroma raises into StoreError that names the place.

    :raises StoreError: `store_gone` when the collection was removed meanwhile, `store_auth` and `store_unreachable`
        from a server, else as `errors.store_failure` says.
    """
    import httpx
    from chromadb.errors import AuthorizationError, ChromaAuthError, ChromaError, NotFoundError

    try:
        yield
    except NotFoundError as error:
        raise StoreError(f"{where}: {error}", hint="ask again", code="store_gone", path=where, reason=error) from error
    except (ChromaAuthError, AuthorizationError) as error:
        raise _server_failure(error, where=where, code="store_auth") from error
    except httpx.TransportError as error:
        raise _server_failure(error, where=where, code="store_unreachable") from error
    except (ChromaError, ValueError, RuntimeError, httpx.HTTPError, OSError) as error:
        raise _failure(error, where=where, local=local) from error
    except Exception as error:
        # Chroma's HTTP client raises the bare class, from httpx's error, for an answer that is not in Chroma's own
        # words, such as a proxy's page (chromadb 1.5.9). Nothing else is caught here.
        if not isinstance(error.__context__, httpx.HTTPStatusError):
            raise
        raise _failure(error, where=where, local=local) from error


def _failure(error: Exception, *, where: str, local: bool) -> StoreError:
    status = _status(error)
    if status in _REFUSED:
        return _server_failure(f"HTTP {status}", where=where, code="store_auth")
    if status in _AWAY:
        return _server_failure(f"HTTP {status}", where=where, code="store_unreachable")
    return store_failure(error, path=where, local=local)


def _server_failure(reason: object, *, where: str, code: str) -> StoreError:
    return StoreError(f"{where}: {reason}", hint="check the server and CRAG_CHROMA_URL", code=code, path=where)


def _status(error: BaseException | None) -> int:
    """Return the HTTP status that a failure of Chroma's client comes from; 0 when it comes from none."""
    import httpx

    while error is not None:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code
        error = error.__context__
    return 0
