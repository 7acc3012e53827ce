"""The chart of scores: every score, both thresholds, colour and shape by band, no markup from names."""

from __future__ import annotations

from xml.etree import ElementTree

from schema import Thresholds
from views.score_chart import Mark, score_chart

LIMITS = Thresholds(upper=0.5, lower=-0.5, strip=0.0)


def draw(*marks: Mark, dark: bool = False) -> ElementTree.Element:
    svg = score_chart(marks, thresholds=LIMITS, upper_label="upper", lower_label="lower", dark=dark)
    return ElementTree.fromstring(svg)


def names(root: ElementTree.Element) -> list[str]:
    return [element.tag.rpartition("}")[2] for element in root]


def test_each_band_has_its_own_shape() -> None:
    shapes = names(draw(Mark("a", 0.9), Mark("b", 0.0), Mark("c", -0.9), Mark("d", None)))
    assert shapes.count("circle") == 1
    assert shapes.count("path") == 2
    assert shapes.count("rect") == 4 * 3 + 1, "three bands for each score, and the failed grade"


def test_both_thresholds_and_all_scores_are_written() -> None:
    texts = [element.text for element in draw(Mark("a", 0.123), Mark("b", None)) if element.text]
    assert "upper +0.50" in texts
    assert "lower -0.50" in texts
    assert "+0.12" in texts
    assert "?" in texts


def test_names_cannot_bring_markup() -> None:
    root = draw(Mark("<script>alert(1)</script>&\u202e", 0.1))
    assert "script" not in names(root)
    assert any("<script>" in (element.text or "") for element in root)


def test_nothing_is_drawn_outside_the_picture() -> None:
    limits = Thresholds(upper=1.0, lower=-1.0, strip=0.0)
    svg = score_chart([Mark("a", 1.0), Mark("b", -1.0)], thresholds=limits, upper_label="upper", lower_label="lower")
    root = ElementTree.fromstring(svg)
    height = float(root.attrib["height"])
    assert all(0 <= float(each.attrib["y"]) <= height for each in root if "y" in each.attrib)
    anchors = {each.text: each.attrib["text-anchor"] for each in root if each.text}
    assert anchors["lower -1.00"] == "start"
    assert anchors["upper +1.00"] == "end"


def test_long_names_keep_their_page() -> None:
    label = next(
        element.text
        for element in draw(Mark("1. " + "很长的文件名" * 10 + ".pdf p. 12", 0.1))
        if "p. 12" in (element.text or "")
    )
    assert label is not None
    assert "…" in label
