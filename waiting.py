"""How long a service asks to be left alone: the Retry-After header of HTTP."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(value: str) -> float | None:
    """Return the seconds that a Retry-After header (seconds or an HTTP date) asks for; None without a usable one."""
    if re.fullmatch(r"\d{1,9}", value.strip()):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
