"""Documents and questions written for this project: made-up facts, people and firms, answered and almost answered.

    PYTHONPATH=. python training/written.py          # checks every file of training/written and counts

A file holds documents. Each begins with `=== kind | heading path`, followed by its passages (`1 text`, `2 text`, …;
`⏎` stands for a line break), questions with the passages that answer them and the answer's words there
(`? question -> 1,3: words`), and questions that none of its passages answers (`! question`). A file `more_…` adds
questions to documents, each named by a line `+++ heading path`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from corpus import is_chinese

FOLDER = Path(__file__).parent / "written"
HELD_OUT_SHARE = 12
MOST_CHARACTERS = {"en": 1600, "zh": 700}


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """A question, the numbers of the passages that answer it (none: unanswerable) and the answer's words in them."""

    text: str
    answered_by: tuple[int, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A document's heading path, its passages by number, and its questions; language is that of its passages."""

    id: str
    kind: str
    headings: str
    language: str
    passages: dict[int, str]
    questions: tuple[WrittenQuestion, ...]

    @property
    def held_out(self) -> bool:
        """Whether the document is kept for measuring: one in HELD_OUT_SHARE, by the hash of its headings."""
        return int(hashlib.sha256(self.headings.encode()).hexdigest(), 16) % HELD_OUT_SHARE == 0


class WrittenError(ValueError):
    """A written file breaks the format; says file, line and why."""


def _question(line: str, *, where: str, passages: dict[int, str]) -> WrittenQuestion:
    if line.startswith("! "):
        if "->" in line:
            raise WrittenError(f"{where}: an unanswerable question has no '->'")
        return WrittenQuestion(line[2:].strip(), (), "")
    match = re.fullmatch(r"\? (.+?) -> ([\d,]+): (.+)", line)
    if match is None:
        raise WrittenError(f"{where}: expected '? question -> 1: words of passage 1'")
    numbers = tuple(int(number) for number in match[2].split(","))
    answer = match[3].replace("⏎", "\n").strip()
    for number in numbers:
        if answer not in passages.get(number, ""):
            raise WrittenError(f"{where}: passage {number} does not hold {answer!r}")
    return WrittenQuestion(match[1].strip(), numbers, answer)


def _document(block: list[tuple[int, str]], *, path: Path) -> WrittenDocument:
    number, head = block[0]
    match = re.fullmatch(r"=== (\w+) \| (.+)", head)
    if match is None:
        raise WrittenError(f"{path.name}:{number}: expected '=== kind | heading path'")
    passages: dict[int, str] = {}
    questions = []
    for number, line in block[1:]:
        where = f"{path.name}:{number}"
        if line[0].isdigit():
            key, _, text = line.partition(" ")
            passages[int(key)] = text.replace("⏎", "\n").strip()
        elif line[0] in "?!":
            questions.append(_question(line, where=where, passages=passages))
        else:
            raise WrittenError(f"{where}: a line begins with a passage number, '?' or '!': {line[:40]!r}")
    language = "zh" if is_chinese(" ".join(passages.values())) else "en"
    longest = max((len(text) for text in passages.values()), default=0)
    if len(passages) < 2 or longest > MOST_CHARACTERS[language]:
        raise WrittenError(f"{path.name}:{block[0][0]}: {len(passages)} passages, the longest of {longest} characters")
    return WrittenDocument(f"{path.stem}-{block[0][0]}", match[1], match[2], language, passages, tuple(questions))


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw.strip()
        if line.startswith(("===", "+++")) and block:
            yield block
            block = []
        if line:
            block.append((number, line))
    if block:
        yield block


def read_documents(paths: Iterable[Path]) -> list[WrittenDocument]:
    """The documents of the files with all their questions; WrittenError where a line breaks the format."""
    found: dict[str, WrittenDocument] = {}
    blocks = [(path, block) for path in paths for block in _blocks(path)]
    for path, block in blocks:
        if not block[0][1].startswith("+++"):
            document = _document(block, path=path)
            if document.headings in found:
                raise WrittenError(
                    f"{path.name}:{block[0][0]}: {document.headings!r} stands in {found[document.headings].id} already"
                )
            found[document.headings] = document
    for path, block in blocks:
        number, head = block[0]
        if head.startswith("+++"):
            named = found.get(head[3:].strip())
            if named is None:
                raise WrittenError(f"{path.name}:{number}: no document is headed {head[3:].strip()!r}")
            added = [
                _question(line, where=f"{path.name}:{place}", passages=named.passages) for place, line in block[1:]
            ]
            found[named.headings] = replace(named, questions=(*named.questions, *added))
    return list(found.values())


def written_documents(folder: Path = FOLDER) -> list[WrittenDocument]:
    """All documents of the folder's files, in order of name."""
    return read_documents(sorted(folder.glob("*.txt")))


def main() -> None:
    """Check the named files together, or all, and print what they hold."""
    documents = read_documents([Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.txt")))
    for language in ("en", "zh"):
        chosen = [document for document in documents if document.language == language]
        questions = [question for document in chosen for question in document.questions]
        answered = sum(bool(question.answered_by) for question in questions)
        twice = [text for text, times in Counter(question.text for question in questions).items() if times > 1]
        across = sum(is_chinese(question.text) != (language == "zh") for question in questions)
        print(
            f"{language}: {len(chosen)} documents, {sum(len(d.passages) for d in chosen)} passages, "
            f"{answered} answered, {len(questions) - answered} unanswerable, {across} in the other language"
            + (f"; asked twice: {twice[:3]}" if twice else "")
        )


if __name__ == "__main__":
    main()
