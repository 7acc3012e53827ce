"""Made-up tables and label lists as PDFs give them, with questions over their cells.

Nothing here is copied from anywhere: names, labels and numbers are drawn at random. What misses is always near: the
row's neighbour, another year, another company, another unit of the same table.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

ROWS = {
    "en": [
        (
            "Net sales|Cost of sales|Gross profit|Operating expenses|Operating income|"
            "Interest expense|Net income|Income taxes|Basic earnings per share|Diluted earnings per share"
        ),
        (
            "Cash and cash equivalents|Accounts receivable|Inventories|Total current assets|Property and equipment|"
            "Goodwill|Total assets|Accounts payable|Long-term debt|Total liabilities|Common equity|Retained earnings"
        ),
        (
            "Net cash from operating activities|Capital expenditure|Net cash used in investing activities|"
            "Dividends paid|Share repurchases|Net cash used in financing activities|Depreciation and amortization"
        ),
        (
            "Weight|Height|Width|Depth|Rated voltage|Power consumption|"
            "Operating temperature|Storage temperature|Battery capacity|Charging time|Measurement range|Accuracy"
        ),
        (
            "Number of employees|Number of stores|Training hours|Staff turnover|Accident rate|"
            "Share of women|Electricity used|Water used|Waste recycled|Carbon emissions"
        ),
        "Precision|Recall|F1 score|Accuracy|Training time|Parameters|Throughput|Latency|Memory use|Error rate",
        (
            "Application deadline|Registration fee|Opening hours|Contact person|"
            "Room number|Course length|Minimum age|Maximum group size|Examination date"
        ),
        (
            "Maximum bucket size|Default timeout|Retry limit|Maximum file size|"
            "Session length|Port number|Log retention|Password length|Backup interval"
        ),
    ],
    "zh": [
        "营业收入|营业成本|毛利润|销售费用|管理费用|研发费用|财务费用|净利润|所得税|基本每股收益|毛利率",
        "货币资金|应收账款|存货|流动资产合计|固定资产|商誉|资产总计|应付账款|长期借款|负债合计|股东权益",
        "经营活动现金流量净额|投资活动现金流量净额|筹资活动现金流量净额|资本开支|现金分红|折旧与摊销",
        "重量|高度|宽度|额定电压|额定功率|工作温度|储存温度|电池容量|充电时间|测量范围|精度|防护等级",
        "员工人数|门店数量|培训学时|离职率|事故率|女性占比|用电量|用水量|产能|产量|销量",
        "准确率|召回率|精确率|参数量|训练时间|吞吐量|延迟|内存占用|错误率",
        "报名截止日期|报名费|开放时间|联系人|办公室|学制|最低年龄|考试日期|招生人数",
        "默认超时时间|重试次数|最大文件大小|会话时长|端口号|日志保留期|密码长度|备份周期",
    ],
}
MONEY = 3
FIRST_NAMES = {
    "en": (
        "Alder Birch Cedar Delta Ember Falcon Granite Harbor Iris Juniper Keystone Lumen Meridian Nova Orchid Pioneer "
        "Quartz River Summit Terra Umbra Vertex Willow Zephyr"
    ),
    "zh": "恒信 金桥 远大 启明 华辰 中泰 瑞丰 海岳 天成 新源 东方 宏图 立德 星河 安达 博远 嘉禾 汇通 凌云 云帆",
}
LAST_NAMES = {
    "en": "Foods Systems Energy Retail Logistics Motors Health Software Mills Bank Devices Holdings",
    "zh": "科技 食品 能源 物流 汽车 医疗 软件 银行 电子 股份 新材料 集团",
}
CAPTIONS = {
    "en": [
        "Selected data",
        "Key figures",
        "Consolidated statements",
        "Summary",
        "Technical data",
        "Overview",
        "Results",
    ],
    "zh": ["主要数据", "关键指标", "合并报表", "概览", "技术参数", "主要结果", "基本情况"],
}
ASK = {
    "en": [
        "What was the {label} of {name} in {column}?", "What is {name}'s {label} for {column}?",
        "How much was {label} in {column}?", "{label} {column} {name}", "What was {label} in {column}?",
        "What is the amount of {label} as of {column}?", "How high was the {label} of {name} in {column}?",
    ],
    "zh": [
        "{name}{column}的{label}是多少？", "{column}{name}的{label}是多少", "{name}在{column}的{label}为多少？",
        "{column}的{label}是多少？", "{name} {column} {label}", "请问{name}{column}{label}是多少？",
    ],
}  # fmt: skip
ASK_PLAIN = {
    "en": [
        "What is the {label} of {name}?",
        "What is the {label}?",
        "{name} {label}",
        "What {label} does {name} have?",
    ],
    "zh": ["{name}的{label}是多少？", "{label}是多少？", "{name} {label}", "{name}的{label}是什么？"],
}


@dataclass(frozen=True, slots=True)
class TableSample:
    """A question over a table, the table's text, and the cell that answers it (None where it is missing)."""

    question: str
    text: str
    answer: str | None
    kind: str


@dataclass(frozen=True, slots=True)
class _Table:
    language: str
    name: str
    labels: Sequence[str]
    missing_labels: Sequence[str]
    columns: Sequence[str]
    missing_columns: Sequence[str]
    cells: Sequence[Sequence[str]]


def _name(language: str, chance: random.Random) -> str:
    joint = " " if language == "en" else ""
    return chance.choice(FIRST_NAMES[language].split()) + joint + chance.choice(LAST_NAMES[language].split())


def _cell(*, money: bool, chance: random.Random) -> str:
    value = chance.choice([chance.randint(2, 99), chance.randint(100, 9999), chance.randint(1000, 99999)])
    if money:
        shown = f"{value:,}" if chance.random() < 0.7 else f"{value / 100:.2f}"
        return f"({shown})" if chance.random() < 0.12 else ("$ " if chance.random() < 0.1 else "") + shown
    unit = chance.choice(["", "", "%", " kg", " mm", " h", " V", "°C", " MB", " s", " min"])
    return (f"{value}" if chance.random() < 0.6 else f"{value / 10:.1f}") + unit


def _made(language: str, chance: random.Random) -> _Table:
    number = chance.randrange(len(ROWS[language]))
    labels = ROWS[language][number].split("|")
    chance.shuffle(labels)
    kept = min(len(labels) - 1, chance.randint(2, 7))
    year = chance.randint(2008, 2024)
    years = [f"{y}年" if language == "zh" else str(y) for y in range(year, year - 6, -1)]
    if language == "en" and chance.random() < 0.25:
        years = [f"FY{y}" for y in years]
    elif chance.random() < 0.15:
        quarters = [f"第{q}季度" for q in "一二三四"] if language == "zh" else ["Q1", "Q2", "Q3", "Q4"]
        years = [f"{years[0]}{q}" if language == "zh" else f"{q} {years[0]}" for q in quarters]
    width = chance.choice([0, 0, 2, 2, 3]) if number >= MONEY else chance.choice([2, 2, 3])
    start = chance.randint(0, len(years) - max(1, width) - 1)
    columns = years[start : start + width]
    money = number < MONEY
    return _Table(
        language=language,
        name=_name(language, chance),
        labels=labels[:kept],
        missing_labels=labels[kept:],
        columns=columns,
        missing_columns=[y for y in years if y not in columns],
        cells=[[_cell(money=money, chance=chance) for _ in range(max(1, width))] for _ in labels[:kept]],
    )


def _printed(table: _Table, *, heading: bool, chance: random.Random) -> str:
    """The table in one of the shapes that PDF parsers give."""
    caption = chance.choice(CAPTIONS[table.language])
    rows = [[label, *cells] for label, cells in zip(table.labels, table.cells, strict=True)]
    first = chance.choice(["", "Item", "(in millions)"] if table.language == "en" else ["", "项目", "单位：万元"])
    shape = chance.choice(["markdown", "markdown", "label", "spaces", "lines"])
    lines = []
    if shape == "markdown":
        if table.columns:
            lines += ["| " + " | ".join([first, *table.columns]) + " |", "|" + " --- |" * (len(table.columns) + 1)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    elif shape == "label" and not table.columns:
        colon = "：" if table.language == "zh" else ": "
        lines += [row[0] + colon + row[1] for row in rows]
    else:
        between = "\n" if shape == "lines" else chance.choice(["  ", " ", " .... "])
        lines += [" ".join([first, *table.columns]).strip()] if table.columns else []
        lines += [between.join(row) for row in rows]
    prefix = f"{table.name} > {caption}\n" if chance.random() < 0.6 else f"{caption} – {table.name}\n"
    return (prefix if heading else "") + "\n".join(lines)


def table_sample(language: str, *, positive: bool, chance: random.Random) -> TableSample:
    """One question over a fresh table; a negative asks for what the table lacks."""
    table = _made(language, chance)
    row = chance.randrange(len(table.labels))
    column = chance.randrange(max(1, len(table.columns)))
    label, name = table.labels[row], table.name
    shown = table.columns[column] if table.columns else ""
    kind = "table"
    if not positive:
        lacks = ["label", "label", "name"] + (["column", "column"] if table.columns else [])
        kind = chance.choice(lacks)
        label = chance.choice(table.missing_labels) if kind == "label" else label
        shown = chance.choice(table.missing_columns) if kind == "column" else shown
        while kind == "name" and name == table.name:
            name = _name(language, chance)
        kind = f"table_{kind}"
    patterns = [p for p in (ASK if shown else ASK_PLAIN)[language] if positive or kind != "table_name" or "{name}" in p]
    asked = chance.choice(patterns)
    spoken = label.lower() if language == "en" and chance.random() < 0.8 else label
    question = asked.format(label=spoken, name=name, column=shown)
    heading = "{name}" in asked or chance.random() < 0.7
    text = _printed(table, heading=heading, chance=chance)
    return TableSample(question=question, text=text, answer=table.cells[row][column] if positive else None, kind=kind)
