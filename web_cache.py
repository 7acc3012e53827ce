"""Results and pages of the web, kept for a day, so that a repeated question makes no new request."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from config import Settings

CACHE_FILE = "web_cache.sqlite3"
BRIEF_SECONDS = 600.0
"""How long it is remembered that there was nothing: long enough for a repeated question, no longer."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebCache:
    """Texts by key in one SQLite file; the oldest go when it holds more than `max_bytes`.

    `hours` 0 keeps nothing. A file that cannot be used costs the cache, never the search.
    """

    path: Path
    hours: float
    max_bytes: int

    def get(self, key: str) -> str | None:
        """Return the text kept under the key, unless it is too old."""
        if self.hours <= 0 or not self.path.is_file():
            return None
        try:
            with closing(self._connect()) as connection:
                row = connection.execute(
                    "SELECT text FROM entries WHERE key = ? AND kept_at > ?", (key, time.time() - self.hours * 3600)
                ).fetchone()
        except sqlite3.Error as error:
            logger.warning("web cache cannot be read: %s", error)
            return None
        return str(row[0]) if row else None

    def put(self, key: str, *, text: str, brief: bool = False) -> None:
        """Keep the text, a `brief` one for ten minutes at most; drop what is too old or too much."""
        if self.hours <= 0:
            return
        now = time.time()
        kept_at = now - max(0.0, self.hours * 3600 - BRIEF_SECONDS) if brief else now
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()) as connection, connection:
                connection.execute(
                    "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", (key, text, len(text.encode()), kept_at)
                )
                connection.execute("DELETE FROM entries WHERE kept_at <= ?", (now - self.hours * 3600,))
                connection.execute(
                    "DELETE FROM entries WHERE key IN (SELECT key FROM (SELECT key, SUM(size) OVER"
                    " (ORDER BY kept_at DESC, key ROWS UNBOUNDED PRECEDING) AS total FROM entries) WHERE total > ?)",
                    (self.max_bytes,),
                )
        except (OSError, sqlite3.Error) as error:
            logger.warning("web cache cannot be written: %s", error)

    def clear(self) -> int:
        """Forget everything and return how many entries there were."""
        if not self.path.is_file():
            return 0
        with closing(self._connect()) as connection:
            with connection:
                count = connection.execute("DELETE FROM entries").rowcount
            connection.execute("VACUUM")
        return count

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=2.0)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, text TEXT, size INTEGER, kept_at REAL)"
        )
        return connection


def build_cache(settings: Settings) -> WebCache:
    """Return the cache in the data folder."""
    return WebCache(
        settings.data_dir / CACHE_FILE, hours=settings.web_cache_hours, max_bytes=settings.web_cache_mb * 1_000_000
    )


def clear_cache(settings: Settings) -> int:
    """Forget all results and pages of the web and return how many entries there were."""
    return build_cache(settings).clear()
