"""JSON in and out of the terminal: JSONL rows read with named errors, results printed one a line."""

from __future__ import annotations

import argparse
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from errors import ConfigurationError, CragError

Json = dict[str, Any]

AT_ONCE = 64
"""Lines worked on together at most."""
PAUSE = 0.01
"""Seconds without another line that tell that none follows at once."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of JSONL: its object, empty where there is none, and what is wrong with it."""

    values: Json
    error: CragError | None = None

    @property
    def id(self) -> object:
        """What the line calls itself."""
        return self.values.get("id")

    def with_texts(self, *names: str) -> Row:
        """Return the row, with an error where one of these texts is missing."""
        try:
            for name in () if self.error else names:
                text_of(self.values, name)
        except ConfigurationError as error:
            return Row(self.values, error)
        return self


def run_batch(path: str, *, work: Callable[[Json], Json]) -> int:
    """One line out for each line in; a line that fails says so and the next goes on."""
    for row in read_lines(path):
        try:
            result = {"error": error_record(row.error)} if row.error else work(row.values)
        except CragError as error:
            result = {"error": error_record(error)}
        print_json({**result, "id": row.values.get("id", result.get("id"))})
    return 0


def read_rows(path: str) -> Iterator[Json]:
    """Yield the objects of a JSONL file, of standard input for `-`, where every one is needed.

    :raises ConfigurationError: the file cannot be read, or a line is not a JSON object.
    """
    for row in read_lines(path):
        if row.error:
            raise row.error
        yield row.values


def read_lines(path: str) -> Iterator[Row]:
    """Yield each line of a JSONL file in UTF-8, of standard input for `-`; blank ones are left out.

    Lines are read as bytes: only a line feed ends one, and one in another encoding spoils no other.

    :raises ConfigurationError: the file cannot be read.
    """
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.removeprefix(BOM_UTF8).strip():
                    yield _row(line, number=number)
    except OSError as error:
        hint, reason = "name a readable JSONL file", error.strerror or error
        raise ConfigurationError(str(error), hint=hint, code="input_unreadable", name=path, reason=reason) from error


def arriving_lines(path: str) -> Iterator[list[Row]]:
    """Yield the lines that have come, 1 to AT_ONCE of them, as soon as no other follows at once.

    So what comes together is worked on together, and a caller who waits for an answer to each line gets it.
    """
    coming: Queue[Row | None] = Queue(maxsize=AT_ONCE)

    def read() -> None:
        try:
            for row in read_lines(path):
                coming.put(row)
        except CragError as error:
            coming.put(Row({}, error))
        finally:
            coming.put(None)

    Thread(target=read, daemon=True).start()
    row = coming.get()
    while row is not None:
        rows = [row]
        with suppress(Empty):
            while len(rows) < AT_ONCE and (row := coming.get(timeout=PAUSE)) is not None:
                rows.append(row)
        yield rows
        row = row and coming.get()


def _row(line: bytes, *, number: int) -> Row:
    try:
        values = json.loads(line.decode("utf-8-sig"))
        reason = "" if isinstance(values, dict) else "not an object"
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except ValueError as error:
        reason = str(error)
    if not reason:
        return Row(values)
    hint = "one JSON object a line, in UTF-8"
    message = f"line {number}: {reason}"
    return Row({}, ConfigurationError(message, hint=hint, code="input_line", line=number, reason=reason))


def text_of(row: Json, name: str) -> str:
    """Return a row's text.

    :raises ConfigurationError: it is missing or not a text.
    """
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{name!r} is missing or not a text: {value!r}", hint=f"give {name!r}", name=name)
    return value


def texts_of(row: Json, name: str) -> list[str]:
    """Return a row's list of texts.

    :raises ConfigurationError: it is missing or something else.
    """
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigurationError(f"{name!r} is not a list of texts: {value!r}", hint=f"give {name!r}", name=name)
    return value


def error_record(error: CragError) -> Json:
    """Return what scripts see of a typed error."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def print_json(result: Json) -> None:
    """Print one line of JSON."""
    print(json.dumps(result, ensure_ascii=False), flush=True)


def show(result: Json, *, options: argparse.Namespace, text: Callable[[Json], str]) -> None:
    """Print a result as JSON when it is asked for, else in words."""
    if options.json:
        print_json(result)
    else:
        print(text(result))
