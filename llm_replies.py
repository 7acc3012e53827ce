"""Reads what language models write: verdicts, token probabilities, thoughts to be left out."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Verdict(IntEnum):
    """A model's word on whether a text holds what answers the question; the value is its score."""

    NO = -1
    PARTLY = 0
    YES = 1


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One written token and the probabilities of the candidates at its place."""

    token: str
    candidates: Mapping[str, float]


_TAG = r"(?:think|thinking|thought|reasoning)"
_OPENING = re.compile(rf"<{_TAG}>", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_TAG}>", re.IGNORECASE)

_YES = r"yes|yeah|true|relevant|sufficient|correct|是的?|相关|有关|包含|可以|能够?|对的?|足够"
_NO = r"no|none|nope|not|false|irrelevant|insufficient|incorrect|unrelated|否|不|没有?|无|并非|未"
_PARTLY = r"part|partly|partial|partially|somewhat|部分|一部分"
_WORD = rf"(?:(?P<partly>{_PARTLY})|(?P<no>{_NO})|(?P<yes>{_YES}))"
_BARE = re.compile(_WORD, re.IGNORECASE)
_LEADING = re.compile(rf"\W*{_WORD}(?![a-z])", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:the\s+|final\s+)*(?:answer|verdict|grade|judge?ment|result|relevance|relevant|score|"
    r"答案|回答|判断|结论|结果|评分|是否相关|相关性)\s*(?:is|为|是)?\s*[:=]\s*",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:yes|no)\s*(?:/|or|或)\s*(?:yes|no|partly)\b|是\s*(?:/|或)\s*否|是否(?:相关)?", re.IGNORECASE
)
_MARKS = re.compile(r"[*_`#>\"“”‘’「」\[\](){}]+|(?<!\w)'|'(?!\w)")
_SENTENCE = re.compile(
    r"(?P<no>\b(?:does|do|did|is|are)(?:\s+not|n't)(?:\s+\w+){0,2}|\bnot\s+(?:relevant|enough)|\birrelevant\b"
    r"|不相关|无关|不包含|没有\w{0,2}|未\w{0,2})"
    r"|(?P<yes>\bis\s+(?:highly\s+|directly\s+)?relevant\b|\bcontains?\b|\banswers\b|相关|包含|能够?回答|可以回答)",
    re.IGNORECASE,
)
_KEYS = ("answer", "verdict", "grade", "relevant", "relevance", "binary_score", "score", "result", "判断", "答案")


def strip_thoughts(text: str) -> str:
    """Return a reply without its think blocks: closed, never closed, or closed without having been opened."""
    text = text[max((closing.end() for closing in _CLOSING.finditer(text)), default=0) :]
    opening = _OPENING.search(text)
    return (text[: opening.start()] if opening else text).strip()


def parse_verdict(text: str) -> Verdict | None:
    """Read yes, partly or no from a reply in either language; None when it says neither, both or refuses.

    Accepts a bare word, a word with reasons after or before it, Markdown, JSON, think blocks, a plain sentence.
    """
    text = unicodedata.normalize("NFKC", strip_thoughts(text))
    if (structured := _parse_json(text)) is not None:
        return structured
    lines = [plain for line in text.splitlines() if (plain := _MARKS.sub(" ", line).strip())]
    if not lines:
        return None
    # Most models put the word first, those that reason aloud put it last.
    for line in dict.fromkeys((lines[0], lines[-1])):
        label = _LABEL.match(line)
        rest = line[label.end() :] if label else line
        if not _UNDECIDED.search(rest) and (found := _LEADING.match(rest)):
            return _verdict_of(found)
    sentence = _UNDECIDED.sub(" ", " ".join(lines))
    said = {found.lastgroup for found in _SENTENCE.finditer(sentence) if found.lastgroup}
    return Verdict[said.pop().upper()] if len(said) == 1 else None


def _verdict_of(found: re.Match[str]) -> Verdict:
    return Verdict[(found.lastgroup or "partly").upper()]


def _parse_json(text: str) -> Verdict | None:
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    for key in sorted(value, key=lambda name: name.lower() not in _KEYS):
        match value[key]:
            case bool() | 0 | 1 as flag:
                return Verdict.YES if flag else Verdict.NO
            case str() as word if found := _BARE.fullmatch(word.strip(" .。!")):
                return _verdict_of(found)
    return None


def score_tokens(tokens: Sequence[TokenChoice], *, lead: int = 40) -> float | None:
    """Return P(yes) − P(no), in −1..1, at the first token that is a verdict; None when there is none.

    Think blocks are passed over; a verdict must stand within the first `lead` characters of the reply proper.
    """
    written = "".join(token.token for token in tokens)
    start = max((found.end() for found in _CLOSING.finditer(written)), default=0)
    if start == 0 and _OPENING.search(written):
        return None
    place = 0
    for token in tokens:
        here, place = place, place + len(token.token)
        if here < start or _token_verdict(token.token) is None:
            continue
        if len(written[start:here].strip()) > lead:
            return None
        chances = dict.fromkeys(Verdict, 0.0)
        for text, chance in token.candidates.items():
            if (verdict := _token_verdict(text)) is not None:
                chances[verdict] += chance
        return max(-1.0, min(1.0, chances[Verdict.YES] - chances[Verdict.NO]))
    return None


def _token_verdict(token: str) -> Verdict | None:
    plain = _MARKS.sub("", unicodedata.normalize("NFKC", token)).strip(" \n.,:。，：")
    found = _BARE.fullmatch(plain)
    return _verdict_of(found) if found else None


def read_tokens(raw: Sequence[Mapping[str, object]]) -> tuple[TokenChoice, ...]:
    """Convert an endpoint's `logprobs` list; entries it does not fill in properly are left out."""
    choices = []
    for entry in raw:
        token, candidates = entry.get("token"), entry.get("top_logprobs")
        if not isinstance(token, str):
            continue
        chances: dict[str, float] = {}
        for candidate in candidates if isinstance(candidates, list) and candidates else [entry]:
            text, logprob = candidate.get("token"), candidate.get("logprob")
            if isinstance(text, str) and isinstance(logprob, int | float):
                chances[text] = chances.get(text, 0.0) + math.exp(min(0.0, float(logprob)))
        choices.append(TokenChoice(token=token, candidates=chances))
    return tuple(choices)


class ThoughtFilter:
    """Passes a streamed reply on without its think blocks; a tag may arrive in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False

    def feed(self, piece: str) -> str:
        """Return what of the text so far can be shown."""
        self._held += piece
        shown = ""
        while found := (_CLOSING if self._thinking else _OPENING).search(self._held):
            shown += "" if self._thinking else self._held[: found.start()]
            self._held = self._held[found.end() :]
            self._thinking = not self._thinking
        # What may be the beginning of a tag waits for the next piece.
        waiting = re.search(r"<[/a-z]{0,10}\Z", self._held, re.IGNORECASE)
        keep = waiting.start() if waiting else len(self._held)
        shown += "" if self._thinking else self._held[:keep]
        self._held = self._held[keep:]
        return shown

    def finish(self) -> str:
        """Return what was held back at the end; nothing from a think block that was never closed."""
        return "" if self._thinking else self._held
