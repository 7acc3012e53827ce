"""At most three keywords of a question, taken from the question alone and kept in its language."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from errors import CragError
from i18n import Language
from schema import Usage

logger = logging.getLogger(__name__)

MAX_KEYWORDS = 3
MAX_CHARACTERS = 120
"""Longest query that leaves the machine; longer keywords are cut at a word."""

_KEPT_TAGS = ("n", "v", "a", "t", "m", "i", "j", "l", "s", "f", "eng", "x", "z", "b", "q", "g", "h", "k")
_DROPPED_WORDS = frozenset(
    "是 有 为 叫 叫做 被 把 让 使 会 能 可以 可能 应该 包括 属于 进行 等于 请问 告诉 知道 介绍 多少 几 如何 怎样"
    " 时候 一下 成为 作为 称为 年 月 日 人 中 上 下 里".split()
)
_QUESTION_WORDS = re.compile(r"[何哪]|什么|甚么|怎么|多少|几[个名位次年月日岁]|多[高长大远久重深]")
_GLUE = frozenset("的是在有和与及为由于于被把了吗呢吧这那个些什么怎样多少几哪谁时何")
"""Letters that completing a Chinese question may add."""
ENGLISH_FUNCTION_WORDS = frozenset(
    "a an the this that these those each every either neither any some such no nor not only own same so than too very"
    " i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones"
    " myself himself herself itself themselves who whom whose which what when where why how whats whos theres"
    " am is are was were be been being do does did doing done have has had having will would shall should can could"
    " may might must ought and or but if because as until while of at by for with about against between into through"
    " during before after above below to from up down in out on off over under again further then once here there"
    " both all few more most other others also just now ever often much many long get gets got tell know please give"
    " list name named called upon whether else within without".split()
)


@dataclass(frozen=True, slots=True)
class Keywords:
    """At most three keywords, and what a language model spent on them."""

    words: tuple[str, ...] = ()
    usage: Usage = Usage()


class KeywordRewriter(Protocol):
    """A language model that turns a question into keywords."""

    def keywords(self, question: str, *, language: Language) -> Keywords:
        """Return keywords of the question, best first.

        :raises CragError: the model failed; keyphrases are used then.
        """
        ...


def extract_keywords(question: str, *, language: Language, rewriter: KeywordRewriter | None = None) -> Keywords:
    """Return at most three keywords of the question alone; none when it holds no content word.

    The rewriter's keywords are taken when it gives any, else keyphrases in the question's order: runs of content
    words, which for Chinese jieba finds (its part-of-speech tags and idf weights).
    """
    proposed = Keywords()
    if rewriter is not None:
        try:
            proposed = rewriter.keywords(question, language=language)
        except CragError as error:
            logger.warning("keywords by the language model failed: %s", error.code)
    words = _capped(proposed.words)
    if not words:
        words = _capped(_chinese_phrases(question) if language == "zh" else _english_phrases(question))
    return Keywords(words, usage=proposed.usage)


def says_only(question: str, *, typed: Sequence[str]) -> bool:
    """Tell whether every content word of a question stands in what a person typed; stems and single letters count.

    A question completed from an answer may hold words of a document, which must not leave the machine.
    """
    known = " ".join(typed).casefold()
    words = re.findall(r"[^\W\u3400-\u9fff]+|[\u3400-\u9fff]", question.casefold())
    return all(word in known or word in ENGLISH_FUNCTION_WORDS or word in _GLUE for word in words)


def _capped(keywords: Sequence[str]) -> tuple[str, ...]:
    """At most three, without repeats, on one line each, `MAX_CHARACTERS` together."""
    kept: list[str] = []
    left = MAX_CHARACTERS
    for keyword in keywords:
        text = " ".join(keyword.split()).strip(" ,;，；。.?？!！\"'“”")
        if len(text) > left:
            cut = text[: left + 1]
            text = cut.rsplit(" ", 1)[0] if " " in cut else text[:left]
        if text and text.lower() not in (known.lower() for known in kept):
            kept.append(text)
            left -= len(text) + 1
        if len(kept) == MAX_KEYWORDS or left <= 0:
            break
    return tuple(kept)


def _english_phrases(question: str) -> list[str]:
    """Runs of words that are not stop words; the three most telling ones in the question's order."""
    phrases: list[list[str]] = [[]]
    for word in re.findall(r"(?:[A-Z]\.){2,}|[^\W_]+(?:[-'’.&/][^\W_]+)*|[^\s\w]", question):
        bare = re.sub(r"['’]s?$", "", word)
        if bare.lower() in ENGLISH_FUNCTION_WORDS or not bare[:1].isalnum():
            phrases.append([])
        elif word != bare:
            phrases[-1].append(bare)
            phrases.append([])
        else:
            phrases[-1].append(word)
    found = [" ".join(words) for words in phrases if words]
    return _best(found, weights=[_english_weight(phrase) for phrase in found])


def _english_weight(phrase: str) -> float:
    """Names and numbers weigh most, then long words."""
    words = phrase.split()
    names = sum(word[0].isupper() or any(char.isdigit() for char in word) for word in words)
    return 100.0 * names + sum(len(word) for word in words)


def _chinese_phrases(question: str) -> list[str]:
    """Runs of content words, quoted titles whole; the three heaviest by idf, in the question's order."""
    tagger, idf = _jieba()
    phrases: list[str] = []
    weights: list[float] = []
    for part in re.split(r"[《》“”‘’\"「」『』（）()，,。？?！!；;：:、\s]+", question):
        joined = False
        for pair in tagger.cut(part):
            word = pair.word
            content = pair.flag.startswith(_KEPT_TAGS) and word not in _DROPPED_WORDS
            if not content or _QUESTION_WORDS.search(word) or not re.search(r"\w", word):
                joined = False
                continue
            weight = idf.get(word)
            if joined:
                gap = " " if phrases[-1][-1].isascii() and word[0].isascii() else ""
                phrases[-1] += gap + word
                weights[-1] += weight
            else:
                phrases.append(word)
                weights.append(weight)
            joined = True
    return _best(phrases, weights=weights)


def _best(phrases: list[str], *, weights: list[float]) -> list[str]:
    heaviest = sorted(range(len(phrases)), key=lambda index: -weights[index])[:MAX_KEYWORDS]
    return [phrases[index] for index in sorted(heaviest)]


class _Idf:
    def __init__(self, weights: dict[str, float], *, median: float) -> None:
        self._weights = weights
        self._median = median

    def get(self, word: str) -> float:
        return self._weights.get(word, self._median)


@cache
def _jieba() -> tuple[Any, _Idf]:
    """The tagger and the idf weights of jieba; it warns about its own resources and logs while it loads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
        import jieba.analyse
        import jieba.posseg

        jieba.setLogLevel(logging.WARNING)
        tagger = jieba.posseg.dt
        tagger.initialize()
        weights, median = jieba.analyse.TFIDF().idf_loader.get_idf()
    return tagger, _Idf(weights, median=median)
