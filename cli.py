"""The product in a terminal and for scripts: the verbs and JSON forms of DESIGN.md, section 6.

Results go to stdout, progress and logs to stderr. Exit code 0 is done, 1 a typed error, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import terminal
import verbs
from config import environment_warnings, load_settings
from errors import CragError
from json_lines import error_record, print_json
from schema import SearchMode

if TYPE_CHECKING:
    from config import Settings


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if "batch" in options and not options.batch and not (options.question or "").strip():
        parser.error(f"{options.verb} needs a question, or --batch FILE")
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, stream=sys.stderr)
    for stream in (sys.stdout, sys.stdin, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")
    try:
        settings = load_settings()
        for warning in environment_warnings():
            terminal.say(warning)
        verb: Callable[[Settings, argparse.Namespace], int | None] = options.run
        return verb(settings, options) or 0
    except CragError as error:
        if options.json:
            print_json({"error": error_record(error)})
        else:
            terminal.say(terminal.error_text(error))
        return 1
    except KeyboardInterrupt:
        terminal.say(terminal.word("stopped"))
        return 130


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not FILE=PASSWORD")
    return name, value


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument("--kb", default="default", help="name of the knowledge base")
    common.add_argument("--verbose", action="store_true", help="show log messages")
    parser = argparse.ArgumentParser(prog="cli.py", description=__doc__)
    subparsers = parser.add_subparsers(dest="verb", required=True)

    def verb(name: str, run: Callable[[Settings, argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = subparsers.add_parser(name, parents=[common], help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        return added

    building = verb("build", verbs.build)
    building.add_argument("--rebuild", action="store_true", help="everything into a new collection")
    building.add_argument("--password", action="append", default=[], metavar="FILE=PASSWORD", type=_pair)
    for name, run in (("ask", verbs.ask), ("retrieve", verbs.retrieve)):
        asking = verb(name, run)
        asking.add_argument("question", nargs="?")
        asking.add_argument("--batch", metavar="FILE", help="JSONL of {id, question}; - is standard input")
        asking.add_argument("--file", action="append", default=[], help="search this file only (repeatable)")
        if name == "ask":
            asking.add_argument("--web", choices=[mode.value for mode in SearchMode])
        else:
            asking.add_argument("-k", type=int, default=0, help="how many documents")
            asking.add_argument("--section", default="", help="search under headings that contain this only")
            asking.add_argument("--around", type=int, default=0, help="show so many neighbours on each side too")
    for name, run in (("score", verbs.score), ("act", verbs.act), ("refine", verbs.refine)):
        verb(name, run)
    parsing = verb("parse", verbs.parse)
    parsing.add_argument("path")
    parsing.add_argument("--password", default="")
    verb("list", verbs.list_documents)
    verb("delete", verbs.delete).add_argument("name")
    verb("status", verbs.status)
    verb("doctor", verbs.doctor)
    calibrating = verb("calibrate", verbs.calibrate)
    calibrating.add_argument("path", help="JSONL of {question, passages, expected_action or labels}")
    calibrating.add_argument("--save", action="store_true", help="make the fitted thresholds the settings")
    verb("serve", verbs.serve).add_argument("--port", type=int, default=0)
    fetching = verb("download-mineru", verbs.download_mineru)
    fetching.add_argument("--target", default="", help="folder for the weights")
    fetching.add_argument("--source", default="modelscope", help="modelscope or huggingface")
    verb("index-library", verbs.index_library)
    verb("clear-web-cache", verbs.clear_web_cache)
    return parser


if __name__ == "__main__":
    sys.exit(main())
