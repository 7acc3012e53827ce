"""Evaluators: how surely a text contains what answers a question, from −1 (not at all) to 1 (it does).

`ReaderEvaluator` is the default; similarity.py stands in where the reader's model cannot be loaded. Both carry their
own calibrated thresholds, for `CRAG_UPPER` and its like to override.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from errors import ModelError
from i18n import Language
from language import detect_language
from reader import Reader, Reading
from schema import Grade, Span, Thresholds
from table_cells import named_cell
from wording import simplified, terms, without_latex

if TYPE_CHECKING:
    from config import Settings
    from similarity import TextEmbedder
    from stages import Evaluator

logger = logging.getLogger(__name__)

REMEMBERED_READINGS = 64
STRIPS_READ_ALONE = 16
"""Strips with the best evidence in their documents that are read on their own as well."""
NO_EVIDENCE = -12.0
LEAST_RELEVANCE = -40.0


def squashed(logit: float) -> float:
    """A logit on the scale −1 … 1."""
    return math.tanh(max(-40.0, logit) / 2)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights that turn what the reader says into a calibrated logit, and the thresholds on the squashed scale.

    `document` weighs (relevance, margin of the best span, share of the question's terms found, other language, 1);
    `strip` weighs (relevance alone, margin in the document, relevance of the document, terms found in the strip and in
    the document, other language, 1) of strips read alone, `glance` the same without the first of the others. Where a
    text is in the other language, terms say nothing: they count 0 and "other language" 1.
    """

    document: tuple[float, ...]
    strip: tuple[float, ...]
    glance: tuple[float, ...]
    thresholds: Thresholds

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Calibration:
        """The `calibration.LANGUAGE` part of reader.json."""
        weights = {name: tuple(map(float, values[name])) for name in ("document", "strip", "glance")}
        if [len(weights[name]) for name in ("document", "strip", "glance")] != [5, 7, 6]:
            raise ValueError(f"weights of another version: {weights}")
        limits = values["thresholds"]
        return cls(
            **weights,
            thresholds=Thresholds(
                upper=float(limits["upper"]), lower=float(limits["lower"]), strip=float(limits["strip"])
            ),
        )


class ReaderEvaluator:
    """Grades with the embedded reader; a strip's grade also counts what its whole document said about it.

    The last readings are remembered, so that the strips of documents just graded cost no second look at them.

    :raises ModelError: the model cannot be loaded, or its description lacks the calibration.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._readings: OrderedDict[tuple[str, str], Reading] = OrderedDict()
        try:
            parts = reader.description["calibration"]
            self._calibrations: dict[Language, Calibration] = {
                "zh": Calibration.from_json(parts["zh"]),
                "en": Calibration.from_json(parts["en"]),
            }
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"reader.json lacks its calibration: {error}", hint="fetch models/reader again") from error

    @property
    def name(self) -> str:
        """Name and version of the model."""
        return self._reader.name

    def thresholds(self, *, language: Language) -> Thresholds:
        """Thresholds of the shipped scale; training/README.md says what they were chosen on."""
        return self._calibrations[language].thresholds

    def grade(self, question: str, *, passages: Sequence[str]) -> list[Grade]:
        """One grade for each passage, with the likeliest answer in it."""
        weights = self._calibrations[detect_language(question)].document
        asked = Asked.of(question)
        return [
            Grade(squashed(weighed(weights, document_features(asked, text=text, reading=reading))), span=reading.span())
            for text, reading in zip(passages, self._read(question, passages=passages), strict=True)
        ]

    def grade_strips(self, question: str, *, groups: Sequence[Sequence[str]]) -> list[list[Grade]]:
        """One grade for each strip of each document.

        All strips are ranked by the evidence in their document's own pass; only the best are read alone as well.
        """
        calibration = self._calibrations[detect_language(question)]
        wholes = [self._whole(question, strips=strips) for strips in groups]
        readings = self._read(question, passages=[whole.text for whole in wholes])
        asked = Asked.of(question)
        glances = [
            _Glance(
                row,
                column,
                text=groups[row][column],
                features=glance_features(
                    asked, strip=groups[row][column], whole=whole.text, reading=reading, place=place
                ),
                span=_moved(reading.span(start=place[0], end=place[1]), by=len(groups[row][column]) - place[1]),
            )
            for row, (whole, reading) in enumerate(zip(wholes, readings, strict=True))
            for column, place in enumerate(whole.places)
        ]
        logits = [weighed(calibration.glance, glance.features) for glance in glances]
        graded = [[Grade(-1.0)] * len(strips) for strips in groups]
        for glance, logit in zip(glances, logits, strict=True):
            graded[glance.row][glance.column] = Grade(squashed(logit))
        best = sorted(range(len(glances)), key=lambda place: -logits[place])[:STRIPS_READ_ALONE]
        closest = [glances[place] for place in best]
        alone = self._read(question, passages=[glance.text for glance in closest])
        for glance, reading in zip(closest, alone, strict=True):
            logit = weighed(calibration.strip, (reading.relevance, *glance.features))
            span = answer_span(asked, text=glance.text, likeliest=_surer(reading.span(), whole=glance.span))
            graded[glance.row][glance.column] = Grade(squashed(logit), span=span)
        return graded

    def _whole(self, question: str, *, strips: Sequence[str]) -> _Whole:
        """The document that the strips were cut from, where it was just graded; else the strips joined."""
        with self._lock:
            graded = [text for asked, text in reversed(self._readings) if asked == question]
        for text in graded:
            places = _places(strips, text=text)
            if places is not None:
                return _Whole(text=text, places=places)
        joined = "\n".join(strips)
        places, start = [], 0
        for strip in strips:
            places.append((start, start + len(strip)))
            start += len(strip) + 1
        return _Whole(text=joined, places=places)

    def _read(self, question: str, *, passages: Sequence[str]) -> list[Reading]:
        with self._lock:
            known = {text: self._readings[question, text] for text in passages if (question, text) in self._readings}
        unread = [text for text in dict.fromkeys(passages) if text not in known]
        if unread:
            readings = self._reader.read(_as_trained(question), passages=[_as_trained(text) for text in unread])
            known.update(zip(unread, readings, strict=True))
        with self._lock:
            for text in passages:
                self._readings[question, text] = known[text]
                self._readings.move_to_end((question, text))
            while len(self._readings) > REMEMBERED_READINGS:
                self._readings.popitem(last=False)
        return [known[text] for text in passages]


def _as_trained(text: str) -> str:
    """The text in simplified characters and without LaTeX, as the model was trained; every place stays its own."""
    plain = without_latex(text)
    converted = simplified(plain)
    return converted if len(converted) == len(plain) else plain


@dataclass(frozen=True, slots=True)
class _Whole:
    """A document and the characters of its strips in it."""

    text: str
    places: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Glance:
    """What a document's own pass says about one of its strips."""

    row: int
    column: int
    text: str
    features: tuple[float, ...]
    span: Span | None


def _moved(span: Span | None, *, by: int) -> Span | None:
    return None if span is None else replace(span, start=span.start + by, end=span.end + by)


def _surer(own: Span | None, *, whole: Span | None) -> Span | None:
    """A strip's answer, as sure as its document is of it: alone, it says no more who "it" is.

    Where the strip alone has no answer, the place comes from its document's reading too.
    """
    if own is None or whole is None:
        return own or whole
    if own.margin > 0:
        return replace(own, margin=max(own.margin, whole.margin))
    return max(own, whole, key=lambda span: span.margin)


def margin_of(reading: Reading, *, start: int = 0, end: int | None = None) -> float:
    """Margin of the best span inside the characters; NO_EVIDENCE at least, also where there is no span."""
    span = reading.span(start=start, end=end)
    return NO_EVIDENCE if span is None else max(NO_EVIDENCE, span.margin)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question's words say about a text: its terms and its language."""

    terms: frozenset[str]
    language: Language

    @classmethod
    def of(cls, question: str) -> Asked:
        """Read a question once for all its passages."""
        return cls(frozenset(terms(question)), detect_language(question))

    def shared(self, text: str) -> float:
        """Share of the question's terms in a text, 0 … 1; 0 where the text is in the other language."""
        return 0.0 if self.foreign(text) else len(self.terms & terms(text)) / max(1, len(self.terms))

    def foreign(self, text: str) -> float:
        """1 where the text is in the other language, else 0."""
        return float(detect_language(text) != self.language)


def answer_span(asked: Asked, *, text: str, likeliest: Span | None) -> Span | None:
    """The likeliest answer in a text; in a table the whole cell that the question names by row and column."""
    cell = named_cell(asked.terms, text=text)
    if likeliest is None or cell is None:
        return likeliest
    return Span(start=cell[0], end=cell[1], margin=likeliest.margin)


def document_features(asked: Asked, *, text: str, reading: Reading) -> tuple[float, ...]:
    """What `Calibration.document` weighs."""
    return max(LEAST_RELEVANCE, reading.relevance), margin_of(reading), asked.shared(text), asked.foreign(text), 1.0


def glance_features(
    asked: Asked, *, strip: str, whole: str, reading: Reading, place: tuple[int, int]
) -> tuple[float, ...]:
    """What `Calibration.glance` weighs: a strip at `place` of a document that was read as a whole."""
    foreign = asked.foreign(whole)
    margin = margin_of(reading, start=place[0], end=place[1])
    found = 0.0 if foreign else len(asked.terms & terms(strip)) / max(1, len(asked.terms))
    return margin, reading.relevance, found, asked.shared(whole), foreign, 1.0


def weighed(weights: Sequence[float], features: Sequence[float]) -> float:
    """The weighted sum: a logit."""
    return sum(weight * feature for weight, feature in zip(weights, features, strict=True))


def _places(strips: Sequence[str], *, text: str) -> list[tuple[int, int]] | None:
    """Characters of the strips in the text, in order; None unless all are in it (a repeated header may differ)."""
    places = []
    start = 0
    for strip in strips:
        found = text.find(strip, start)
        body = strip
        while found < 0 and "\n" in body:
            body = body.split("\n", 1)[1]
            found = text.find(body, start)
        if found < 0:
            return None
        places.append((found, found + len(body)))
        start = found
    return places


def build_evaluator(settings: Settings, *, embedder: TextEmbedder) -> Evaluator:
    """The evaluator that the settings name: the reader, similarity where it cannot be loaded, a language model on top.

    :raises ConfigurationError: a language model is to grade and its settings are incomplete.
    :raises ModelError: the reader is named and cannot be loaded.
    """
    from llm_evaluator import build_llm_evaluator

    return build_llm_evaluator(settings, base=_embedded(settings, embedder=embedder))


def _embedded(settings: Settings, *, embedder: TextEmbedder) -> Evaluator:
    from similarity import SimilarityEvaluator

    if settings.evaluator == "similarity":
        return SimilarityEvaluator(embedder)
    try:
        return ReaderEvaluator(Reader())
    except ModelError as error:
        if settings.evaluator == "reader":
            raise
        logger.warning("the reader cannot be loaded, grading by similarity instead: %s (%s)", error, error.hint)
        return SimilarityEvaluator(embedder)
