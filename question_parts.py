"""Compound questions to their parts, by rule: each part is graded on its own, so that "half supported" can be said.

A question is left whole unless a rule is sure: a name or a list with "and" in it has one answer.
"""

from __future__ import annotations

import re

from language import is_chinese

MOST_PARTS = 4
MIN_WORDS = 2

# English
_WH = r"who|whom|whose|what|when|where|why|which|how"
_AUXILIARY = r"is|are|was|were|do|does|did|can|could|will|would|should|has|have|had"
_ASKS = re.compile(
    rf"^(?:(?:in|on|at|by|for|from|to|of|with|under|during|since|until) )?(?:{_WH})\b|^(?:{_AUXILIARY})\b",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r",?\s+(?:and|&|as well as|but)\s+(?:also\s+)?"
    rf"(?=(?:(?:in|on|at|by|for|from|to|with|under|during) )?(?:{_WH})\s+\S+\s+\S)",
    re.IGNORECASE,
)
_TWO_WH = re.compile(rf"^({_WH})(?:,)? and ({_WH})\s+(?=(?:{_AUXILIARY})\b)(.+)$", re.IGNORECASE)
_BY_WHOM = re.compile(
    rf"^((?:in )?(?:{_WH})(?: \w+)?) ((?:{_AUXILIARY})\b.+?),? and ((?:by|for|to|from|with) (?:whom|which \w+))\s*\??$",
    re.IGNORECASE,
)
_RESPECTIVELY = re.compile(
    r"^(what|who|when|where|how many|how much) (are|were|is|was|did|do) (.+?) and (.+?),? respectively\s*\??$",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"^(?:compare|how (?:does|do|did)) (the .+?) (of|in|for) (.+?)"
    r" (?:and|with|to|compare[sd]? (?:to|with)) (?:that of |those of |the \w+ of )?(.+?)\s*[.?]?$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:also|and|additionally|in addition|besides|furthermore|moreover|then|but|secondly|second|finally|plus)\b"
    r"[,:]?\s+",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(it|they|he|she|him|her|them|its|his|their)\b", re.IGNORECASE)
_NAME = re.compile(r"\"[^\"]+\"|“[^”]+”|(?<=\S )[A-Z][\w’'.-]*(?: (?:of |the |and )?[A-Z][\w’'.-]*)*")
_LEANS = re.compile(
    r"\b(?:it|they|he|she|him|them|its|his|their)\b|^(?:它|他|她|其(?![中他余它实次间])|该)", re.IGNORECASE
)
"""A later part that does not say what it is about."""
_POSSESSIVE = frozenset({"its", "his", "their"})

# Chinese
_ASKS_ZH = re.compile(
    r"谁|什么|多少|几[个年月日人次种位家岁级层条所天]|哪|(?<!任)何[时地处人]|为何|怎么|怎样|如何|为什么|是否|吗|多[久长大高远重]"
)
_APART_ZH = re.compile(r"^(?:另外|此外|还有|再者|其次|请问)[，,、：:]?")
"""Begins a part that has its own subject."""
_LEAD_ZH = re.compile(r"^(?:另外|此外|还有|以及|并且|而且|同时|那么|再者|其次|又|并|且|请问|和|与)[，,、：:]?")
_JOINT_ZH = re.compile(r"[，,；;]\s*(?:以及|并且|而且|同时|另外|还有)?|以及|并且|而且|还有")
_EACH_ZH = re.compile(
    r"^(.+?)(和|与|及|跟|以及)(.+?)(?:分别|各自|各(?![国地种类项部级省市条方界个家位自人样式大]))(.+)$"
)
_VERSUS_ZH = re.compile(
    r"^(.+?)(?:和|与|跟|同)(.+?)(?:相比|比较|比起来|之间)?[，,]?"
    r"(?:谁|哪个|哪一个|哪家|哪座|哪种)的(.{1,10}?)(?:更|较|最|比较)?[高低大小多少长短快慢早晚重轻好]"
)
_SUBJECT_ZH = re.compile(
    r"^(.{2,20}?)(?=的|是|在|于|由|有|为|何|什么|哪|谁|多少|几|怎|如何|被|会|能|曾|成立|创|出生|位于|发)"
)
_FACT = (
    "时间|地点|日期|结果|导演|主演|编剧|作者|译者|出版社|[出死离就失]\\w{0,2}率|价格|售价|票房|处理器|芯片|面积|人口|长度|宽度|高度|重量|"
    "深度|海拔|首都|货币|颜色|形状|收入|支出|利润|营收|成本|原因|影响|优点|缺点|校长|院长|主席|书记|市长|省长|冠军|亚军|季军|学名|别名|字|号"
)
_PLACE = (
    "\\d{4}年|[男女][子单双]|混双|内地|大陆|国内|国外|海外|北美|欧洲|亚洲|非洲|香港|澳门|台湾|中国|美国|英国|法国|德国|日本|韩国|俄罗斯|印度|"
    "加拿大|澳大利亚|意大利|西班牙|巴西|欧盟|北京|上海|天津|重庆|广东|江苏|浙江|山东|四川|河南|河北|湖北|湖南|福建|安徽|江西|辽宁|吉林|黑龙江|"
    "陕西|山西|甘肃|青海|宁夏|新疆|西藏|内蒙古|广西|云南|贵州|海南|广州|深圳|杭州|南京|武汉|成都|西安|苏州"
)
_MEASURE = (
    "增速|增长率|增长了?多少|GDP|CPI|人口|票房|时间|日期|人数|交付量|销量|产量|营收|"
    "利润|成绩|排名|冠军|金牌\\w{0,2}|举办地|面积|价格|得主"
)
_WHAT_ZH = r"(?:是(?:谁|什么|多少|哪\w{0,3}|什么时候|何时)|有多少|多少|为多少)?"
_FACTS_ZH = re.compile(rf"^(.{{2,}}?)({_FACT})(?:和|与|及|以及|、)({_FACT})({_WHAT_ZH})$")
_PLACES_ZH = re.compile(
    rf"^(.*?)({_PLACE})(?:和|与|及|、)({_PLACE})((?:的|在|于|年|\d)?.{{0,12}}?(?:{_MEASURE}){_WHAT_ZH})$"
)
_END_ZH = "？?。！! "


def split_question(question: str) -> list[str]:
    """Return the parts of a compound question as questions that stand alone, or the question itself.

    More than `MOST_PARTS` share the last one.
    """
    text = " ".join(question.split())
    if not text:
        return [question]
    parts = _chinese_parts(text) if is_chinese(text) else _english_parts(text)
    if len(parts) < 2 or any(_LEANS.search(part) for part in parts[1:]):
        return [question]
    return parts if len(parts) <= MOST_PARTS else [*parts[: MOST_PARTS - 1], " ".join(parts[MOST_PARTS - 1 :])]


def _english_parts(text: str) -> list[str]:
    sentences = [part.strip() for part in re.findall(r"[^?]+\?*", text)]
    asking = [_LEAD.sub("", part) for part in sentences if _is_asking(part)]
    if len(asking) > 1:
        return [part for sentence in _resolved(asking) for part in _english_parts(sentence) or [sentence]]
    compared = _COMPARED.match(text)
    if compared and not (text.lower().startswith("how") and "compare" not in text.lower()):
        noun, of, first, second = compared.groups()
        return [f"What is {noun} {of} {first}?", f"What is {noun} {of} {second}?"]
    for pattern, build in ((_TWO_WH, _two_wh), (_BY_WHOM, _by_whom), (_RESPECTIVELY, _respectively)):
        match = pattern.match(text)
        if match:
            return build(match)
    joints = [m for m in _JOINT.finditer(text) if _ASKS.match(text) and len(text[: m.start()].split()) > 2]
    if not joints:
        return []
    pieces, start = [], 0
    for joint in joints:
        pieces.append(text[start : joint.start()])
        start = joint.end()
    pieces.append(text[start:])
    return _resolved([_as_question(piece) for piece in pieces])


def _is_asking(part: str) -> bool:
    """A question of its own: not "Answer in millions.", nor "And in Spain?", which needs the one before."""
    bare = _LEAD.sub("", part)
    long = len(bare.split()) > MIN_WORDS
    return long and (bool(_ASKS.match(bare)) or (part.endswith("?") and ". " not in part) or bare != part)


def _as_question(piece: str) -> str:
    piece = piece.strip(" ,.?")
    return piece[:1].upper() + piece[1:] + "?"


def _two_wh(match: re.Match[str]) -> list[str]:
    rest = match[3].rstrip(" ?")
    return [f"{match[1].capitalize()} {rest}?", f"{match[2].capitalize()} {rest}?"]


def _by_whom(match: re.Match[str]) -> list[str]:
    return [_as_question(f"{match[1]} {match[2]}"), _as_question(f"{match[3]} {match[2]}")]


def _respectively(match: re.Match[str]) -> list[str]:
    asked, verb, first, second = match.groups()
    head = re.match(r"^((?:the )?[\w ]+? (?:of|for|in|at) )(.+)$", first)
    shared = head[1] if head and not re.search(r"\b(?:of|for|in|at)\b", second) else ""
    tail = re.search(r"\b(?:of|for|in|at) .+$", second)
    first = first + " " + tail[0] if tail and not shared else first
    return [f"{asked} {verb} {first}?", f"{asked} {verb} {shared}{second}?"]


def _resolved(parts: list[str]) -> list[str]:
    """Later parts with the first part's name in place of a pronoun, where there is just one name."""
    names = list(dict.fromkeys(name.strip('"“”') for name in _NAME.findall(parts[0])))
    if len(names) != 1:
        return parts
    name = names[0]

    def named(match: re.Match[str]) -> str:
        owns = match[1].lower() in _POSSESSIVE or (
            match[1].lower() == "her" and match.string[match.end() : match.end() + 2].strip()
        )
        return f"{name}'s" if owns else name

    return [parts[0], *(_PRONOUN.sub(named, part, count=1) for part in parts[1:])]


def _chinese_parts(text: str) -> list[str]:
    asking = [part.strip(_END_ZH) for part in re.split(r"[？?]", text) if len(part.strip(_END_ZH)) > 3]
    if len(asking) > 1:
        return [part for sentence in _with_subject(asking) for part in _chinese_parts(sentence) or [sentence + "？"]]
    whole = text.strip(_END_ZH)
    each = _EACH_ZH.match(whole)
    if each:
        return _each(each[1], each[3], each[4])
    two = _two_facts(whole)
    if two:
        return two
    versus = _VERSUS_ZH.match(whole)
    if versus:
        return [f"{versus[1]}的{versus[3]}是多少？", f"{versus[2]}的{versus[3]}是多少？"]
    pieces = [piece.strip() for piece in _JOINT_ZH.split(whole)]
    clauses: list[str] = []
    for piece in pieces:
        if clauses and not _ASKS_ZH.search(clauses[-1]):
            clauses[-1] += "，" + piece
        else:
            clauses.append(piece)
    if len(clauses) < 2 or not all(_ASKS_ZH.search(clause) and len(clause) > 3 for clause in clauses):
        return []
    return [clause + "？" for clause in _with_subject(clauses)]


def _with_subject(clauses: list[str]) -> list[str]:
    """Short later clauses with the subject of the first in front, where they share nothing with it."""
    subject = _SUBJECT_ZH.match(clauses[0])
    if not subject:
        return clauses
    name = subject[1]
    bigrams = {name[i : i + 2] for i in range(len(name) - 1)}
    found = [clauses[0]]
    for clause in clauses[1:]:
        if _APART_ZH.match(clause):
            found.append(_LEAD_ZH.sub("", clause))
            continue
        clause = _LEAD_ZH.sub("", clause)
        bare = re.sub(r"^(?:它|他|她|其|该\w{1,3}?|它们|他们)的?", "", clause)
        known = any(bigram in clause for bigram in bigrams)
        found.append(
            clause
            if known or (len(clause) > 9 and bare == clause)
            else name + "的" * (bare[:1] not in "是在由有何什哪于写被获建发拍") + bare
        )
    return found


def _each(left: str, right: str, asked: str) -> list[str]:
    """ "2022年澳网男单" and "女单冠军", "是谁": the shared beginning and end go to both."""
    asked = asked.strip(_END_ZH) + "？"
    items = re.split(r"[、，,]", left)
    if len(items) > 1:
        return [f"{item}{asked}" for item in [*items, right]]
    first, second, shared, tail = _conjuncts(left, right)
    return [f"{shared}{first}{tail}{asked}", f"{shared}{second}{tail}{asked}"]


def _conjuncts(left: str, right: str) -> tuple[str, str, str, str]:
    """The two things joined, what stands before both, and what stands after both."""
    first_year, second_year = re.search(r"\d{4}年?度?$", left), re.match(r"\d{4}年?度?", right)
    if first_year and second_year:
        return first_year[0], second_year[0], left[: first_year.start()], right[second_year.end() :]
    end = right.find(left[-1]) + 1
    if 0 < end <= len(left):
        return left[-end:], right[:end], left[:-end], right[end:]
    for size in range(len(right), 1, -1):
        start = left.rfind(right[:size])
        if start >= 0:
            return left[start:], right, left[:start], ""
    year = re.search(r"\d{4}年", right)
    if year and year.start() > 1:
        return left, right[: year.start()], "", right[year.start() :]
    owned = right.find("的")
    if owned > 0:
        place = max(left.rfind(mark) for mark in "在于的") + 1 or max(0, len(left) - owned)
        return left[place:], right[:owned], left[:place], right[owned:]
    for size in range(2, min(len(left), len(right), 6) + 1):
        if set(left[-size:]) & set(right[:size]):
            return left[-size:], right[:size], left[:-size], right[size:]
    owner = left.rfind("的") + 1
    return left[owner:], right, left[:owner], ""


def _two_facts(whole: str) -> list[str]:
    """Two facts of one thing ("时间和地点"), or one fact of two places, years or sexes ("中国和美国经济增速")."""
    match = _FACTS_ZH.match(whole)
    if match:
        return [f"{match[1]}{match[2]}{match[4]}？", f"{match[1]}{match[3]}{match[4]}？"]
    match = _PLACES_ZH.match(whole)
    return [f"{match[1]}{match[2]}{match[4]}？", f"{match[1]}{match[3]}{match[4]}？"] if match else []
