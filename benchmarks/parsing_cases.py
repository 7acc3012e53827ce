"""What a reader sees in the PDFs of the evaluation data: rows, reading order, headings; checked by eye."""

from __future__ import annotations

# Rows as they are printed (file in pdf_corpus, label and figures): each must be the cells of one table row, in order.
ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rapiddoc_byd_finreport_zh.pdf", ("营业收入（元）", "170,360,448,000.00", "124,944,397,000.00", "36.35%")),
    ("rapiddoc_byd_finreport_zh.pdf", ("基本每股收益（元/股）", "3.12", "1.57", "98.73%")),
    ("rapiddoc_byd_finreport_zh.pdf", ("货币资金", "117,406,726,000.00", "102,738,734,000.00")),
    ("rapiddoc_byd_finreport_zh.pdf", ("应收账款", "53,182,767,000.00", "62,298,988,000.00")),
    ("rapiddoc_byd_finreport_zh.pdf", ("存货", "154,373,616,000.00", "116,036,237,000.00")),
    ("fb_adobe_10q.pdf", ("Goodwill", "12,796", "12,787")),
    ("fb_adobe_10q.pdf", ("Total assets", "$27,838", "$27,165")),
    ("fb_adobe_10q.pdf", ("Total revenue", "4,816", "4,386", "9,471", "8,648")),
    ("fb_adobe_10q.pdf", ("Total assets", "$6,220", "$5,008", "$1,212")),
    ("pdfjs_tracemonkey_2col.pdf", ("3d-cube", "25", "27", "29", "3", "0", "1.1", "1.1", "1.2", "2.20x")),
)
# Beginnings of stretches in the order in which a person reads them.
ORDER: dict[str, tuple[str, ...]] = {
    "pypdf_multicolumn.pdf": (
        "Abstract", "This is a sample document", "Nam dui ligula", "pellentesque ante", "Fusce mauris",
    ),
    "pdfjs_tracemonkey_2col.pdf": (
        "Abstract", "1. Introduction", "Compilers for statically typed", "Each compiled trace covers",
    ),
    "mineru_demo2.pdf": ("I. INTRODUCTION", "II. BACKGROUND", "III. METHOD"),
}  # fmt: skip
# Headings that a reader sees on the page (file, texts in order).
HEADINGS: dict[str, tuple[str, ...]] = {
    "pdfjs_tracemonkey_2col.pdf": (
        "Abstract", "1. Introduction", "2. Overview: Example Tracing Run", "3. Trace Trees", "3.1 Traces",
        "3.2 Trace Trees", "3.3 Blacklisting", "4. Nested Trace Tree Formation", "4.1 Nesting Algorithm",
        "4.2 Blacklisting with Nesting", "5. Trace Tree Optimization", "5.1 Optimizations", "5.2 Register Allocation",
        "6. Implementation", "6.1 Calling Compiled Traces", "6.2 Trace Stitching", "6.3 Trace Recording",
        "6.4 Preemption", "6.5 Calling External Functions", "6.6 Correctness", "7. Evaluation", "8. Related Work",
        "9. Conclusions", "10. Future Work", "Acknowledgments", "References",
    ),
    "rapiddoc_byd_finreport_zh.pdf": (
        "一、主要财务数据", "（一） 主要会计数据和财务指标", "（二） 非经常性损益项目和金额", "二、股东信息",
        "三、其他重要事项", "四、季度财务报表", "（一） 财务报表", "1、合并资产负债表", "2、合并利润表",
        "3、合并现金流量表", "（三） 审计报告",
    ),
    "mineru_demo1.pdf": (
        "1. Introduction", "2. Methods", "3. Data sets", "4. Results", "4.1. Model evaluation", "4.5. Zero flow days",
        "5. Discussion", "Acknowledgements", "References",
    ),
}  # fmt: skip
