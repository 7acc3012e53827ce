"""What a web provider returns, before pages are fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from web_guard import in_domains

AUTHORITIES = (
    "wikipedia.org",
    "gov",
    "edu",
    "int",
    "mil",
    "gov.cn",
    "edu.cn",
    "ac.cn",
    "gov.hk",
    "edu.hk",
    "gov.tw",
    "edu.tw",
    "gov.uk",
    "ac.uk",
    "gov.au",
    "edu.au",
    "europa.eu",
    "gov.sg",
    "edu.sg",
)
_TRACKING = ("utm_", "fbclid", "gclid", "msclkid", "spm", "ref_src")


@dataclass(frozen=True, slots=True)
class WebResult:
    """One result; `text` is filled when the provider already has the passage itself (a local library)."""

    url: str
    title: str
    snippet: str
    text: str = ""


def order_results(
    results: Iterable[WebResult], *, authorities: Sequence[str] = (), blocked: Sequence[str] = ()
) -> list[WebResult]:
    """Return the results without what is blocked, repeated or no address.

    The user's authorities come first, then public ones, then others; within a group the provider's order stays. Two
    addresses are one when they differ only in scheme, `www.`, a closing slash, the fragment or tracking parameters.
    """
    kept: dict[str, WebResult] = {}
    for result in results:
        host = _host(result.url)
        if host is not None and not in_domains(host, domains=blocked):
            kept.setdefault(plain_address(result.url), result)

    def group(result: WebResult) -> int:
        host = _host(result.url) or ""
        if in_domains(host, domains=authorities):
            return 0
        return 1 if in_domains(host, domains=AUTHORITIES) else 2

    return sorted(kept.values(), key=group)


def _host(url: str) -> str | None:
    """The host of an address, empty where it has none; None where it is no address."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None


def plain_address(url: str) -> str:
    """Return what two spellings of one address have in common; local addresses stay as they are."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return url
    host = (parts.netloc.lower()).removeprefix("www.").removesuffix(":443").removesuffix(":80")
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if not name.startswith(_TRACKING)])
    return urlunsplit(("", host, parts.path.rstrip("/"), query, ""))
