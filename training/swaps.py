"""Questions changed so that the passage that answered them no longer does.

Entity, number, date, relation, negation, antonym and content-word swaps, mostly with material of the same passage:
what stays on topic is what fools a matcher.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from corpus import STOP_WORDS, is_chinese

YEAR = re.compile(r"(?<!\d)(1[0-9]\d\d|20[0-2]\d)(?!\d)")
NUMBER = re.compile(r"(?<![\d.,])\d{1,3}(?![\d.,])")
ENTITY = re.compile(r"(?<=[a-z,;'’] )((?:[A-Z][\w'’.-]+)(?: (?:of |the |and )?[A-Z][\w'’.-]+)*)")
TITLED = re.compile(r"《[^》]{1,20}》|“[^”]{1,12}”")

OPPOSITES = (
    "first/last largest/smallest before/after north/south east/west northern/southern eastern/western "
    "increase/decrease increased/decreased highest/lowest most/least older/younger oldest/youngest "
    "longest/shortest winner/loser won/lost early/late male/female best/worst begin/end began/ended "
    "start/finish always/never up/down higher/lower larger/smaller more/less upper/lower major/minor "
    "same/different public/private include/exclude allowed/forbidden support/oppose supported/opposed "
    "king/queen father/mother brother/sister son/daughter husband/wife modern/ancient old/new "
    "earliest/latest import/export imported/exported domestic/foreign open/closed success/failure "
    "strength/weakness advantage/disadvantage minimum/maximum internal/external inside/outside "
    "positive/negative rich/poor winter/summer arrive/leave arrived/left raised/lowered accepted/rejected "
    "left/right"
).split()
RELATIONS = (
    "born/died/married/buried/educated wrote/directed/produced/published/translated/reviewed "
    "founded/acquired/closed/renamed/sold invented/discovered/patented/banned "
    "built/destroyed/restored/designed/sold capital/population/area/currency/climate/language "
    "released/recorded/announced/cancelled played/wrote/directed/voiced sang/wrote/produced "
    "height/weight/width/depth/age/speed author/editor/publisher/translator "
    "president/treasurer/secretary/founder/governor married/divorced/met/employed win/lose/host/sponsor "
    "cost/weigh/measure name/nickname/address/age cause/cure/symptom/cost river/lake/mountain/forest "
    "city/province/village/county revenue/profit/cost/tax studied/taught/graduated attack/defend/visit "
    "conquered/visited/fled/sold visited/left/founded used/banned/sold"
).split()
OPPOSITES_ZH = (
    "最大/最小 最高/最低 最早/最晚 第一/第二 第一/最后 以前/以后 之前/之后 东部/西部 南部/北部 出生/去世 "
    "开始/结束 增加/减少 父亲/母亲 男性/女性 上游/下游 前身/后身 国内/国外 优点/缺点 进口/出口 丈夫/妻子 "
    "哥哥/弟弟 儿子/女儿 成功/失败 胜利/失利 支持/反对 公立/私立 古代/现代 冬季/夏季 上升/下降 内部/外部 "
    "多数/少数 最多/最少 最长/最短 左/右 东/西 南/北"
).split()
RELATIONS_ZH = (
    "位于/始建于/改名为 出生/毕业/任职/定居 创办/收购/关闭 导演/主演/编剧/配音/作曲 作者/译者/主编/出版社 "
    "首都/人口/面积/货币/气候 发明/发现/禁止 建成/拆除/重建/改名 发行/录制/取消 毕业于/任教于 主唱/作词/作曲 "
    "校长/创始人/董事长/秘书长 总部/分部 原因/后果/费用 高度/重量/宽度/深度/年龄 面积/人口/海拔 "
    "播出/停播/重播 成立/解散/改组 长度/宽度/速度 属于/毗邻/来自 冠军/亚军/季军 分布/繁殖 颜色/形状/大小 "
    "成员/对手 爵位/封号/谥号 体长/体重/寿命 学名/俗名/别名 收入/利润/成本/税额"
).split()
NEGATIONS = (
    ("is", "isn't"), ("are", "aren't"), ("was", "wasn't"), ("were", "weren't"), ("did", "didn't"),
    ("does", "doesn't"), ("do", "don't"), ("can", "cannot"), ("could", "couldn't"), ("has", "hasn't"),
)  # fmt: skip
RARE_NEGATION = 0.25
NEGATIONS_ZH = (
    ("是", "不是"),
    ("能", "不能"),
    ("可以", "不可以"),
    ("属于", "不属于"),
    ("会", "不会"),
    ("包括", "不包括"),
)


def _replaced(text: str, old: str, new: str, *, word: bool) -> str:
    pattern = rf"\b{re.escape(old)}\b" if word else re.escape(old)
    return re.sub(pattern, new.replace("\\", r"\\"), text, count=1)


def _from_groups(text: str, groups: Sequence[str], chance: random.Random) -> list[str]:
    """The text with one word of a group replaced by another of the same group."""
    word = not is_chinese(text)
    found = []
    for group in groups:
        names = group.split("/")
        for name in names:
            present = re.search(rf"\b{name}\b", text) if word else name in text
            if present:
                found.append(_replaced(text, name, chance.choice([n for n in names if n != name]), word=word))
    return found


def _other_years(text: str, passage: str, chance: random.Random) -> list[str]:
    found = []
    for match in YEAR.finditer(text):
        year = int(match.group())
        printed = [y for y in YEAR.findall(passage) if int(y) != year]
        near = str(year + chance.choice([-11, -10, -7, -4, -3, -2, -1, 1, 2, 3, 5, 9, 10, 20]))
        new = chance.choice(printed) if printed and chance.random() < 0.5 else near
        found.append(text[: match.start()] + new + text[match.end() :])
    return found


def _other_numbers(text: str, chance: random.Random) -> list[str]:
    return [
        text[: match.start()] + str(int(match.group()) + chance.choice([1, 2, 3, 5, 8, 13])) + text[match.end() :]
        for match in NUMBER.finditer(text)
    ]


def entities(text: str) -> list[str]:
    """Names in the middle of English sentences; titles and quoted names in Chinese ones."""
    return [m.strip("《》“”") for m in TITLED.findall(text)] if is_chinese(text) else ENTITY.findall(text)


def _other_names(text: str, near: Sequence[str], far: Sequence[str], chance: random.Random) -> list[str]:
    found = []
    for name in entities(text):
        pool = near if near and chance.random() < 0.65 else far
        others = [other for other in pool if other not in text and name not in other and len(other) > 1]
        if others:
            found.append(text.replace(name, chance.choice(others)))
    return found


def _other_words(text: str, pool: Sequence[str], chance: random.Random) -> list[str]:
    """An English content word replaced by one with the same ending from `pool`."""
    words = [w for w in re.findall(r"(?<![\w'])[a-z]{4,}(?![\w'])", text) if w not in STOP_WORDS]
    chance.shuffle(words)
    for word in words[:3]:
        others = [o for o in pool if o[-2:] == word[-2:] and o[:4] != word[:4] and o not in text]
        if others:
            return [_replaced(text, word, chance.choice(others), word=True)]
    return []


def _negated(text: str, chance: random.Random) -> list[str]:
    pairs = NEGATIONS_ZH if is_chinese(text) else NEGATIONS
    word = not is_chinese(text)
    present = [(a, b) for a, b in pairs if (re.search(rf"\b{a}\b", text) if word else a in text)]
    if not present or (is_chinese(text) and "不" in text) or "n't" in text:
        return []
    old, new = chance.choice(present)
    return [_replaced(text, old, new, word=word)]


def swap(
    question: str,
    *,
    passage: str,
    near_names: Sequence[str],
    far_names: Sequence[str],
    words: Sequence[str],
    chance: random.Random,
) -> tuple[str, str] | None:
    """A changed question and the kind of change, or None where nothing can be changed."""
    chinese = is_chinese(question)
    options = [
        ("year", 1.2, _other_years(question, passage, chance)),
        ("number", 0.8, _other_numbers(question, chance)),
        ("name", 1.5, _other_names(question, near_names, far_names, chance)),
        ("opposite", 1.0, _from_groups(question, OPPOSITES_ZH if chinese else OPPOSITES, chance)),
        ("relation", 1.0, _from_groups(question, RELATIONS_ZH if chinese else RELATIONS, chance)),
        ("word", 0.6, [] if chinese else _other_words(question, words, chance)),
        ("negation", 0.25, _negated(question, chance)),
    ]
    possible = [(kind, weight, found) for kind, weight, found in options if found]
    if not possible:
        return None
    if len(possible) == 1 and possible[0][0] == "negation" and chance.random() > RARE_NEGATION:
        return None
    kind, _, found = chance.choices(possible, [weight for _, weight, _ in possible])[0]
    changed = chance.choice(found)
    return (changed, f"swap_{kind}") if changed != question else None
