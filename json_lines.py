"""JSON in and out of the terminal: JSONL rows read with named errors, results printed one a line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from errors import ConfigurationError, CragError

Json = dict[str, Any]


def run_batch(path: str, *, work: Callable[[Json], Json]) -> int:
    """One line out for each line in; a line that fails says so and the next goes on."""
    for row in read_rows(path):
        try:
            result = work(row)
        except CragError as error:
            result = {"error": error_record(error)}
        print_json({**result, "id": row.get("id", result.get("id"))})
    return 0


def read_rows(path: str) -> Iterator[Json]:
    """Yield the objects of a JSONL file, of standard input for `-`.

    :raises ConfigurationError: the file cannot be read, or a line is not a JSON object.
    """
    try:
        lines: Iterable[str] = sys.stdin if path == "-" else Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigurationError(str(error), hint="name a readable JSONL file", name=path) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigurationError(f"line {number}: {error}", hint="one JSON object a line", name=path) from error
        if not isinstance(row, dict):
            raise ConfigurationError(f"line {number} is not an object", hint="one JSON object a line", name=path)
        yield row


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
