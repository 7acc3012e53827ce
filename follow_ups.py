"""Which questions lean on the conversation before them, and how to complete the plain cases by rule."""

from __future__ import annotations

import re
from collections.abc import Sequence

from i18n import Language
from language import detect_language
from schema import Turn
from sentences import width

SHORT_QUESTION = 12
"""Reading width up to which a question without a name or number of its own is taken for a follow-up."""

_ENGLISH_LEAD = re.compile(r"^\W*(?:and|but|so|also|then|what about|how about|what if not|why not)\b", re.IGNORECASE)
_ENGLISH_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there"
    r"|the (?:same|former|latter|other|others)|(?:the )?(?:first|second|third|last) one)\b",
    re.IGNORECASE,
)
# "this document", "is it possible", "the one that …" refer to nothing said before.
_ENGLISH_FREE = re.compile(
    r"\b(?:this|these|that|those)\s+(?:documents?|files?|pdfs?|reports?|papers?|manuals?|books?|knowledge base)\b"
    r"|\b(?:is|was|would) it (?:possible|true|necessary|safe|allowed)\b"
    r"|\b(?:does|did|would) it (?:take|cost|mean)(?: \w+){0,3} to\b"
    r"|\bis there\b|\bare there\b|\bthere (?:is|are|was|were)\b"
    r"|(?<!\bis )(?<!\bwas )(?<!does )(?<!did )(?<=[a-z] )that"
    r"(?= (?:[a-z]+s|[a-z]+ed|is|are|was|were|has|have|can|the|a)\b)",
    re.IGNORECASE,
)
_CHINESE_LEAD = re.compile(r"^\W*(?:那么?|还有|另外|而且|所以|然后|再(?:说|问))")
_CHINESE_TAIL = re.compile(r"呢\W*$")
_CHINESE_PRONOUN = re.compile(
    r"[它他她](?:们)?|(?<![尤极与如])其(?![中他余它实次间])|(?:这|那)(?:个|些|种|里|时|家|位|项|款|两|次|是|样)?"
    r"|该(?=[\u4e00-\u9fff])|上述|前者|后者|前面|刚才|此(?:人|事|外|时)"
)
_CHINESE_FREE = re.compile(
    r"(?:这|那|该)[个些份篇本]?(?:文档|文件|报告|论文|资料|手册|书|知识库)|应该|刹那|其[中他余它实次间]"
)
_BARE = re.compile(
    r"^\W*(?:why|when|where|who|how|how much|how many|为什么|怎么|何时|多少钱?|谁|哪里|在哪里?|什么时候)\W*$",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<!^)(?<![.?!] )\b[A-Z][\w&'-]*(?: (?:of |the |de )?[A-Z][\w&'-]*)*|\b[A-Z]{2,}\w*\b")
_QUOTED = re.compile(r"[《“\"「]([^》”\"」]{2,40})[》”\"」]")
_VALUE = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"(?<![\d.,])(?:1[5-9]|20)\d\d(?![\d,]|\.\d)")
_WHAT_ABOUT = re.compile(
    r"^\W*(?:and what about|what about|how about|and)\s+(?:in |for |the )?(?P<new>[^?]{1,60})\W*$", re.IGNORECASE
)
_WHAT_ABOUT_ZH = re.compile(r"^\W*(?:那么?|还有)?(?P<new>[^？?呢]{1,30})呢\W*$")
_SUBJECT = re.compile(r"^\W*(?P<subject>[\u4e00-\u9fff]{2,12}?)(?:的|是|在|有|于|何|什么|怎么|为什么|由|属于|位于)")


def leans_on_history(question: str, *, history: Sequence[Turn]) -> bool:
    """Tell whether a question can only be understood with the conversation before it."""
    if not history:
        return False
    if _BARE.match(question):
        return True
    if detect_language(question) == "zh":
        return _chinese_leans(question)
    return _english_leans(question)


def _english_leans(question: str) -> bool:
    if _ENGLISH_LEAD.match(question):
        return True
    plain = _ENGLISH_FREE.sub(" ", question)
    pronoun = _ENGLISH_PRONOUN.search(plain)
    if pronoun and not _NAME.search(plain[: pronoun.start()]) and not _QUOTED.search(plain[: pronoun.start()]):
        return True
    words = re.findall(r"\w+", question)
    return len(words) <= 2 and not _NAME.search(question) and not _VALUE.search(question) and len(words) > 0


def _chinese_leans(question: str) -> bool:
    if _CHINESE_LEAD.match(question) or _CHINESE_TAIL.search(question):
        return True
    plain = _CHINESE_FREE.sub("", question)
    pronoun = _CHINESE_PRONOUN.search(plain)
    if pronoun and not _QUOTED.search(plain[: pronoun.start()]) and width(plain[: pronoun.start()]) <= SHORT_QUESTION:
        return True
    return width(re.sub(r"\W", "", question)) <= SHORT_QUESTION and not re.search(r"[A-Za-z0-9《“]", question)


def resolve(question: str, *, history: Sequence[Turn]) -> str:
    """Return the follow-up completed from the last question, or unchanged where that is not plain."""
    last = history[-1].question
    language = detect_language(question)
    if swapped := _swap(question, last=last, language=language):
        return swapped
    topic = _topic(last)
    if not topic or topic.casefold() in question.casefold():
        return question
    if replaced := _replace_pronoun(question, topic=topic, language=language):
        return replaced
    ending = question.rstrip(" ?？。")
    return f"{ending}（{topic}）？" if language == "zh" else f"{ending} ({topic})?"


def _swap(question: str, *, last: str, language: Language) -> str:
    """ "And in 2021?" after a question about one other year, "What about Spain?" after one about one other name."""
    found = (_WHAT_ABOUT_ZH if language == "zh" else _WHAT_ABOUT).match(question)
    if not found:
        return ""
    new = " " + found["new"].strip()
    bare = bool(re.fullmatch(rf"\s*{_VALUE.pattern}\s*", new))
    for kind in (_YEAR, *((_VALUE,) if bare else ()), _NAME, _QUOTED):
        ours, theirs = kind.findall(new), {match.group() for match in kind.finditer(last)}
        if len(ours) == 1 and len(theirs) == 1:
            replacement = kind.search(new)
            assert replacement is not None
            return last.replace(theirs.pop(), replacement.group())
    return ""


def _topic(question: str) -> str:
    """What the last question is about: the one quoted title or name in it; nothing when there are several."""
    for kind in (_QUOTED, _NAME):
        group = kind.groups
        found = {str(match.group(group)): None for match in kind.finditer(question)}
        if len(found) == 1:
            return next(iter(found))
        if found:
            return ""
    subject = _SUBJECT.match(question)
    topic: str = subject["subject"] if subject else ""
    return "" if _CHINESE_PRONOUN.search(topic) else topic


def _replace_pronoun(question: str, *, topic: str, language: Language) -> str:
    if language == "zh":
        plain, count = re.subn(r"[它他她](?!们)|其(?![中他余它实次间])|该(?=[\u4e00-\u9fff])", topic, question, count=1)
        return plain if count else ""
    plain, count = re.subn(r"\b(?:its|his|their)\b", f"{topic}'s", question, count=1, flags=re.IGNORECASE)
    if not count:
        plain, count = re.subn(r"\b(?:it|he|she|they|him|them)\b", topic, question, count=1, flags=re.IGNORECASE)
    return plain if count else ""
