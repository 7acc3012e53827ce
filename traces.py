"""One line of JSON for each question, in the data folder, for the user's own analysis."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from records import answer_record
from schema import Answer

TRACE_FILE = "traces.jsonl"


def write_trace(answer: Answer, *, data_dir: Path) -> None:
    """Append the record of an answer: question, action, scores, thresholds, strips, models, seconds.

    :raises OSError: the folder cannot be written.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    record = {"time": datetime.now(tz=UTC).isoformat(timespec="seconds"), **answer_record(answer)}
    with (data_dir / TRACE_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
