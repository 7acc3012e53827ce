"""What a paragraph is, as far as its own look tells."""

from __future__ import annotations

import re

from pdf_lines import Paragraph, starts_item
from schema import BlockType

_MONOSPACED = re.compile(r"mono|courier|consol|menlo|cmtt|typewriter|inconsolata|fixed|monaco|lettergothic", re.I)
_CAPTION = re.compile(
    r"^(?:(?:Figure|Fig\.?|Table|Tab\.|Exhibit|Chart|Algorithm|Listing|Scheme|Plate)\s*(?:\d+|[IVX]+\b|[A-Z]?[-.]?\d+)"
    r"|(?:图|表|图表|附图|附表|圖)\s*[\d一二三四五六七八九十]+)",
)
_FORMULA_FONT = re.compile(
    r"^(?:\w{6}\+)?(?:CMMI|CMSY|CMEX|MSBM|MSAM|MTMI|MTSY|Math|Cambria-?Math|Euclid|STIX.*Math)", re.I
)


def kind_of(paragraph: Paragraph) -> BlockType:
    """Return what a paragraph is, as far as its own look tells."""
    text = " ".join(line.text for line in paragraph.lines)
    if all(_MONOSPACED.search(line.font) for line in paragraph.lines):
        return BlockType.CODE
    if _CAPTION.match(text) and len(text) < 600:
        return BlockType.CAPTION
    if _is_formula(paragraph):
        return BlockType.EQUATION
    return BlockType.LIST if starts_item(text) else BlockType.TEXT


def _is_formula(paragraph: Paragraph) -> bool:
    fonts = [line for line in paragraph.lines if _FORMULA_FONT.search(line.font)]
    text = " ".join(line.text for line in paragraph.lines)
    words = re.findall(r"[A-Za-z]{4,}|[\u4e00-\u9fff]{2,}", text)
    signs = re.search(r"[=+−×·∑∏∫√<>≤≥≈∈→∂^]", text)
    return len(fonts) * 2 >= len(paragraph.lines) and len(words) <= 3 and signs is not None and "@" not in text
