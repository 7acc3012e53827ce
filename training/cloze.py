"""Questions made from single sentences by rule, so that every licensed passage yields training questions.

A clause loses its date, number, place, name or definition and asks for it; the grammar is plain and the answer exact.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
DATE = rf"(?:(?:{MONTH})(?: \d{{1,2}},?)?(?: \d{{4}})?|\d{{1,2}} (?:{MONTH}) \d{{4}}|[12]\d{{3}})"
WHEN = re.compile(rf",? ?\b(?:in|on|since|by|from|until|around) (?:early |late |mid-)?({DATE})\b(?! ?[-–])")
HOW_MANY = re.compile(r"(?<![\w.,$£€-])(\d[\d,]*(?:\.\d+)?(?: million| billion| thousand)?) ([a-z]+s)\b")
PERCENT = re.compile(r"(?<![\w.,])(\d[\d.,]* ?(?:%|percent))")
WHERE = re.compile(
    r"\b(located|born|held|based|situated|found|buried|filmed|headquartered|buil[td]) (?:in|at) "
    r"((?:the )?[A-Z][\w'’-]+(?:,? (?:of |the )?[A-Z][\w'’-]+){0,3})"
)
AUXILIARY = "is|was|are|were|has|had|have|can|could|will|would|may|must"
WITH_AUXILIARY = re.compile(rf"^((?:The |A |An )?[^,;:()]{{2,60}}?) ({AUXILIARY}) (.+)$")
VERB = (
    "was|is|became|won|wrote|led|made|began|held|gave|took|ran|left|built|met|found|sang|said|sold|set|saw|grew|rose|"
    "became|came|went|drew|broke|kept|lost|paid|sent|shot|fell|has|had|can|[a-z]{2,}ed"
)
SUBJECT = re.compile(
    rf"^((?:The )?[A-Z][\w'’.-]+(?: (?:of |the |and |de |von )?[A-Z][\w'’.-]+){{0,4}}) ((?:{VERB})\b .+)$"
)
DEFINITION = re.compile(
    r"^((?:The |A |An )?[\w'’ -]{3,50}?)(?: \([^)]*\))? (is|was|are|were) ((?:an?|the|any) [^.;]{10,160})"
)
PERSONAL = re.compile(r"\b(?:he|she|his|her|him|who)\b", re.IGNORECASE)
PRONOUN = re.compile(
    r"^(?:It|He|She|They|This|These|That|Those|There|His|Her|Its|Their|However|In|On|At|As|But|And|If|When|While|For|By)\b"
)

WHEN_ZH = re.compile(r"(?:于|在|自)?((?:前)?\d{3,4}年(?:\d{1,2}月)?(?:\d{1,2}日)?)")
UNIT_ZH = (
    "个|人|名|座|条|种|次|部|集|公里|千米|平方公里|平方千米|米|厘米|毫米|公斤|吨|元|美元|岁|所|家|张|首|枚|架|艘|层"
)
COUNT_ZH = re.compile(rf"(?<![\d年月第.])(\d[\d,，.]*万?亿?)({UNIT_ZH})")
WHERE_ZH = re.compile(r"(位于|坐落于|坐落在|出生于|分布于|分布在|毕业于|来自)([^，。；、（）]{2,20})")
DONE_ZH = (
    "创办|创建|执导|导演|主演|编剧|设计|发行|制作|担任|建造|发明|提出|出版|作曲|作词|演唱|开发|组成|构成|主持|命名"
)
BY_ZH = re.compile(rf"由([^，。；、（）的]{{2,14}})({DONE_ZH})")
IS_ZH = re.compile(
    r"^([^，。；（）]{2,18})(?:（[^）]*）)?(?:，[^，。]{0,24})?，?(?<!也)(?<!不)(是|为)([^，。；]{4,40})"
)
DEICTIC_ZH = re.compile(r"^(?:现在|这|此|其|该|他|她|它|因|但|而|当时|同时|后来)|(?:名|被|定义|认)$")
CALLED_ZH = re.compile(r"(又称|俗称|别名|原名|简称|又名|旧称|字|号|学名为?)[：:]?([^，。；、（）]{2,14})")
TITLE_ZH = re.compile(r"《([^》]{1,20})》")

YES_NO = 0.4
LEAST_ZH, MOST_ZH = 8, 30
DEFINE = (
    "What {v} {s}?", "What {v} {s}?", "What is meant by {s}?", "Define {s}.", "What kind of thing {v} {s}?"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cloze:
    """A question, its answer as printed in the sentence, and what it asks for."""

    question: str
    answer: str
    asks: str


def _lowered(subject: str) -> str:
    first = subject.split(" ", 1)[0]
    return subject[0].lower() + subject[1:] if first in {"The", "A", "An", "Most", "Many", "Some", "All"} else subject


def _asked(clause: str, wh: str) -> str | None:
    """A clause without its answer, as a question with inversion where there is an auxiliary verb."""
    clause = clause.strip(" ,.;")
    match = WITH_AUXILIARY.match(clause)
    if match and not PRONOUN.match(match[1]):
        return f"{wh} {match[2]} {_lowered(match[1])} {match[3]}?"
    if len(clause.split()) < 4 or PRONOUN.match(clause):
        return None
    return f"{wh} was it that {_lowered(clause)}?"


def _first_clause(sentence: str, start: int, end: int) -> str:
    """The sentence up to the first comma or semicolon after the answer, without it."""
    rest = re.split(r"[;:]|, (?:and|but|which|who|where|while|when|after|before|with)\b", sentence[end:])[0]
    return re.sub(r"\s+", " ", sentence[:start].rstrip() + " " + rest.strip(" .,;"))


def english(sentence: str, *, personal: bool, chance: random.Random) -> list[Cloze]:
    """Questions an English sentence answers; `personal` says whether its passage is about people."""
    found: list[Cloze] = []

    def add(question: str | None, answer: str, asks: str) -> None:
        if question and 4 <= len(question.split()) <= 24:
            found.append(Cloze(question=question, answer=answer, asks=asks))

    for match in WHEN.finditer(sentence):
        clause = _first_clause(sentence, match.start(), match.end())
        wh = chance.choice(["When", "When", "In what year", "In which year", "On what date"])
        add(_asked(clause, wh), match[1], "date")
    for match in HOW_MANY.finditer(sentence):
        clause = _first_clause(sentence, match.start(), match.end())
        add(_asked(clause, f"How many {match[2]}"), match[1], "number")
    for match in PERCENT.finditer(sentence):
        add(_asked(_first_clause(sentence, match.start(), match.end()), "What percentage"), match[1], "number")
    for match in WHERE.finditer(sentence):
        add(_asked(_first_clause(sentence, match.start() + len(match[1]), match.end()), "Where"), match[2], "place")
    first = re.split(r"[;:]|, ", sentence)[0].strip(" .")
    said = WITH_AUXILIARY.match(first)
    if said and not PRONOUN.match(said[1]) and chance.random() < YES_NO:
        add(f"{said[2].capitalize()} {_lowered(said[1])} {said[3]}?", f"{said[2]} {said[3]}", "yes_no")
    subject = SUBJECT.match(sentence)
    if subject and not PRONOUN.match(subject[1]):
        rest = re.split(r"[;:]|, ", subject[2])[0].strip(" .")
        who = chance.choice(["Who", "Who", "Which person"]) if personal else chance.choice(["What", "Which one"])
        add(f"{who} {rest}?", subject[1], "name")
    definition = DEFINITION.match(sentence)
    if definition and not PRONOUN.match(definition[1]):
        asked = chance.choice(DEFINE)
        question = asked.format(v=definition[2], s=_lowered(definition[1]))
        found.append(Cloze(question=question, answer=definition[3].strip(" ,"), asks="definition"))
    return found


def _asked_clauses(clause: str, chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """A Chinese clause with a question word in place of what it tells: question, answer, what is asked for."""
    if LEAST_ZH <= len(clause) <= MOST_ZH and chance.random() < YES_NO / 4:
        yield clause + chance.choice(["吗", "是吗", "，对吗"]), clause, "yes_no"
    for match in WHEN_ZH.finditer(clause):
        wh = chance.choice(["什么时候", "哪一年", "何时", "在哪年"])
        yield clause[: match.start()] + wh + clause[match.end() :].removeprefix("，"), match[1], "date"
    for match in COUNT_ZH.finditer(clause):
        wh = chance.choice(["多少", "多少", "几"]) + match[2]
        yield clause[: match.start()] + wh + clause[match.end() :], match[1] + match[2], "number"
    for match in WHERE_ZH.finditer(clause):
        yield clause[: match.start()] + match[1] + chance.choice(["哪里", "什么地方", "何处"]), match[2], "place"
    for match in BY_ZH.finditer(clause):
        yield clause[: match.start()] + "由" + chance.choice(["谁", "什么人"]) + match[2], match[1], "name"
    for match in CALLED_ZH.finditer(clause):
        yield clause[: match.start()] + match[1] + "什么", match[2], "name"
    for match in TITLE_ZH.finditer(clause):
        wh = chance.choice(["哪部作品", "什么"])
        yield clause[: match.start()] + wh + clause[match.end() :], match[0], "name"


def chinese(sentence: str, *, title: str, chance: random.Random) -> list[Cloze]:
    """Questions a Chinese sentence answers; clauses without a subject get the passage's title."""
    found: list[Cloze] = []
    subject = re.sub(r"\s*[（(].*", "", title)

    def add(clause: str, answer: str, asks: str) -> None:
        clause = re.sub(r"（[^）]*$|（）", "", clause.strip(" ，。；、"))
        if not re.search(r"\w", answer) or re.match(r"[：:]", answer):
            return
        if subject and subject not in clause and not re.match(r"[A-Z\u4e00-\u9fff]{2,8}(?:是|于|在|由)", clause):
            clause = subject + clause
        if 6 <= len(clause) <= 60:
            found.append(Cloze(question=clause + chance.choice(["？", "？", "?", ""]), answer=answer, asks=asks))

    for clause in re.split(r"[，。；！？]", sentence):
        for asked, answer, asks in _asked_clauses(clause, chance):
            add(asked, answer, asks)
    definition = IS_ZH.match(sentence)
    if definition and not DEICTIC_ZH.search(definition[1]) and re.match(r"\w", definition[3]):
        pattern = chance.choice(["{s}是什么？", "什么是{s}？", "{s}指的是什么", "请问{s}是什么？"])
        question = pattern.format(s=definition[1])
        found.append(Cloze(question=question, answer=definition[3], asks="definition"))
    return found


def cloze_questions(sentence: str, *, language: str, title: str, personal: bool, chance: random.Random) -> list[Cloze]:
    """All questions that rules can make from a sentence."""
    if language == "zh":
        return chinese(sentence, title=title, chance=chance)
    return english(sentence, personal=personal, chance=chance)


def is_personal(text: str) -> bool:
    """Whether a passage speaks of people."""
    return bool(PERSONAL.search(text))


VAGUE = {
    "en": {
        "date": ["an earlier date", "that time", "the same period", "an unknown date"],
        "number": ["several", "a number of", "many", "some"],
        "place": ["the area", "another place", "the region"],
        "name": ["it", "the other one", "someone", "this one", "the group"],
        "definition": ["well known", "described elsewhere", "discussed below", "often mentioned"],
    },
    "zh": {
        "date": ["当时", "后来", "此前", "某年"],
        "number": ["若干", "许多", "一些", "不少"],
        "place": ["当地", "别处", "该地", "某地"],
        "name": ["其", "有关方面", "该者", "另一个"],
        "definition": ["众所周知的", "另有说明", "下文讨论的内容", "常被提及"],
    },
}
PREPOSITION = r"(?:\b(?:in|on|at|by|from|since|until|to|of|for|with|around|about) )?"


def kind_of_answer(answer: str) -> str:
    """What kind of thing an answer string is, roughly."""
    if re.search(rf"\b[12]\d{{3}}\b|(?:{MONTH})|\d年|世纪", answer):
        return "date"
    if re.search(
        r"\d|^(?:one|two|three|four|five|six|seven|eight|nine|ten)\b|^[一二三四五六七八九十百千万两]+[^年]?$", answer
    ):
        return "number"
    return "name"


def made_vague(text: str, *, answer: str, asks: str, language: str, chance: random.Random) -> str:
    """The text with an answer taken out (often with its preposition) or replaced by something that says nothing."""
    if language == "zh":
        new = chance.choice([*VAGUE["zh"][asks], ""]) if asks != "number" else chance.choice(VAGUE["zh"]["number"])
        return text.replace(answer, new)
    removed = chance.random() < 0.4
    pattern = (PREPOSITION if removed else "") + re.escape(answer)
    new = "" if removed else chance.choice(VAGUE["en"][asks])
    return re.sub(r" +([,.;])", r"\1", re.sub(r"  +", " ", re.sub(pattern, new, text)))
