"""Evaluators on labelled pairs, actions, strips and answer spans, unseen material apart from trained sources.

Lexical overlap, cosine, the reader and, where a language model grades, that one too, on the same items. The paper's
T5-large (770 M) reached 84.3 % accuracy on PopQA, ChatGPT 58.0–64.7 %; its data differ, so that is no duel.
`unseen` are sources never trained on and documents held out by hash; `seen` has questions of trained documents.
"""

from __future__ import annotations

import random
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from benchmarks.common import Options, data_dir, environment, figures, finish, quantile, read_options, table
from benchmarks.labelled import StripCase, action_cases, cut_strips, given_strips, labelled_pairs, squad2_pairs
from config import load_settings
from crag import judge
from embeddings import build_embedder
from evaluator import ReaderEvaluator, build_evaluator
from language import detect_language, is_chinese
from question_parts import split_question
from reader import Reader
from refinement import StripRefiner, decompose
from schema import Document, Origin, Strip
from similarity import SimilarityEvaluator, TextEmbedder
from stages import Evaluator
from wording import terms

Row = dict[str, Any]
Score = Callable[[str, Sequence[str]], list[float]]

FIGURE_KEYS: Mapping[str, tuple[str, ...]] = {
    "pairs": ("lang", "part", "negatives"),
    "actions": ("lang", "part", "kind"),
    "strips": ("lang", "part", "strips"),
    "spans": ("lang", "part"),
    "speed": ("work",),
}
ACTION_CASES = 60
STRIP_CASES = 30
"""Documents of each source whose strips are graded one by one: the slowest part."""
SPEED_QUESTIONS = 12


class Item(Protocol):
    """What every labelled item has."""

    @property
    def language(self) -> str:
        """zh or en."""
        ...

    @property
    def unseen(self) -> bool:
        """Whether nothing of its document was trained on."""
        ...


Kind = TypeVar("Kind", bound=Item)


@dataclass(frozen=True, slots=True)
class System:
    """One way of scoring passages; `evaluator` where it also decides actions and grades strips."""

    name: str
    score: Score
    evaluator: Evaluator | None


def main() -> None:
    options = read_options(__doc__)
    folder = data_dir()
    systems = build_systems()
    pairs = measure_pairs(systems, options=options)
    actions = measure_actions(systems, options=options)
    strips = measure_strips(systems, options=options)
    reader = ReaderEvaluator(Reader())
    spans = measure_spans(reader, options=options)
    speed = measure_speed(reader, options=options)
    files = sorted(
        path for name in ("evaluator", "action", "refine", "refuse") for path in (folder / name).glob("*.jsonl")
    )
    result = {
        "environment": environment(seed=options.seed, files=files),
        "systems": [system.name for system in systems],
        "figures": stored_figures(pairs=pairs, actions=actions, strips=strips, spans=spans, speed=speed),
        "pairs": pairs,
        "actions": actions,
        "strips": strips,
        "spans": spans,
        "speed": speed,
    }
    parts = [
        ("AUC on labelled pairs", pairs),
        ("Action in the acceptable set", actions),
        ("Refinement: answer strip kept and first, share of strips kept", strips),
        ("Answer span, given the passage with the answer", spans),
        ("Seconds", speed),
    ]
    text = "\n\n".join(f"### {title}\n\n{table(rows)}" for title, rows in parts)
    finish("evaluator", result=result, options=options, text=text)


def stored_figures(**parts: Sequence[Row]) -> Row:
    """The figures by name, each under its part: `pairs.en.unseen.all.reader`."""
    return {
        f"{part}.{name}": value
        for part, rows in parts.items()
        for name, value in figures(rows, keys=FIGURE_KEYS[part]).items()
    }


def build_systems() -> list[System]:
    """Overlap, cosine, the reader, and the configured language model where there is one."""
    settings = load_settings(trace=False)
    embedder = build_embedder(settings)
    similarity = SimilarityEvaluator(embedder)
    reader = ReaderEvaluator(Reader())
    systems = [
        System("overlap", _overlap, None),
        System("cosine", lambda question, passages: _cosine(question, passages, embedder=embedder), None),
        System("cosine+overlap", _graded(similarity), similarity),
        System("reader", _graded(reader), reader),
    ]
    configured = build_evaluator(settings, embedder=embedder)
    if configured.name not in {reader.name, similarity.name}:
        systems.append(System(configured.name, _graded(configured), configured))
    return systems


def _graded(evaluator: Evaluator) -> Score:
    return lambda question, passages: [grade.score for grade in evaluator.grade(question, passages=passages)]


def _overlap(question: str, passages: Sequence[str]) -> list[float]:
    asked = terms(question)
    return [len(asked & terms(text)) / max(1, len(asked)) for text in passages]


def _cosine(question: str, passages: Sequence[str], *, embedder: TextEmbedder) -> list[float]:
    vectors = embedder.embed_passages(list(passages)) @ embedder.embed_queries([question])[0]
    return [float(value) for value in vectors]


def _part(item: Item) -> str:
    return "unseen" if item.unseen else "seen"


def _sampled(items: Sequence[Kind], *, kind: Callable[[Kind], str], options: Options) -> list[Kind]:
    """At most `--limit` items of each language, part and kind."""
    groups: defaultdict[tuple[str, str, str], list[Kind]] = defaultdict(list)
    for item in items:
        groups[item.language, _part(item), kind(item)].append(item)
    chance = random.Random(options.seed)
    limit = options.limit
    return [
        item for group in groups.values() for item in (chance.sample(group, limit) if 0 < limit < len(group) else group)
    ]


def _at_most(options: Options, limit: int) -> Options:
    return replace(options, limit=min(options.limit or limit, limit))


def auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Chance that a positive scores above a negative, ties half; None where one side is empty."""
    if not positive or not negative:
        return None
    low = np.sort(np.array(negative))
    scores = np.array(positive)
    below, not_above = np.searchsorted(low, scores, "left"), np.searchsorted(low, scores, "right")
    return float((below + not_above).sum() / 2 / len(scores) / len(low))


def measure_pairs(systems: Sequence[System], *, options: Options) -> list[Row]:
    """AUC of every system by language, part and kind of negative, against all positives of that language and part."""
    pairs = _sampled([*labelled_pairs(), *squad2_pairs()], kind=lambda pair: pair.kind, options=options)
    asked: defaultdict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        asked[pair.question].append(number)
    scores = {system.name: [0.0] * len(pairs) for system in systems}
    for question, numbers in asked.items():
        for system in systems:
            found = system.score(question, [pairs[n].passage for n in numbers])
            for number, score in zip(numbers, found, strict=True):
                scores[system.name][number] = score
    rows = []
    for language, part in _groups(pairs):
        inside = [n for n, pair in enumerate(pairs) if pair.language == language and _part(pair) == part]
        for kind in ["all", *sorted({pairs[n].kind for n in inside if not pairs[n].answered})]:
            negatives = [n for n in inside if not pairs[n].answered and kind in {"all", pairs[n].kind}]
            own = {pairs[n].source for n in negatives}
            positives = [n for n in inside if pairs[n].answered and (kind == "all" or pairs[n].source in own)]
            row: Row = {"lang": language, "part": part, "negatives": kind, "n": len(positives) + len(negatives)}
            for name, values in scores.items():
                row[name] = auc([values[n] for n in positives], [values[n] for n in negatives])
            rows.append(row)
    return rows


def _groups(items: Sequence[Item]) -> list[tuple[str, str]]:
    return sorted({(item.language, _part(item)) for item in items}, key=lambda group: (group[0], group[1] == "seen"))


def measure_actions(systems: Sequence[System], *, options: Options) -> list[Row]:
    """Share of cases whose action is in the acceptable set, by kind."""
    cases = _sampled(list(action_cases()), kind=lambda case: case.kind, options=_at_most(options, ACTION_CASES))
    deciding = [(system.name, system.evaluator) for system in systems if system.evaluator]
    results: defaultdict[tuple[str, str, str], list[dict[str, bool]]] = defaultdict(list)
    occurring: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for case in cases:
        right: dict[str, bool] = {}
        for name, evaluator in deciding:
            limits = evaluator.thresholds(language=detect_language(case.question))
            parts = split_question(case.question)
            verdict = judge(evaluator, parts=parts, passages=case.passages, thresholds=limits).verdict
            right[name] = verdict.action in case.accepted
            if name == "reader":
                for kind in (case.kind, "all"):
                    occurring[case.language, _part(case), kind][verdict.action.value] += 1
        for kind in (case.kind, "all"):
            results[case.language, _part(case), kind].append(right)
    return [
        {
            "lang": language,
            "part": part,
            "kind": kind,
            "n": len(found),
            **{name: sum(right[name] for right in found) / len(found) for name, _ in deciding},
            "reader's actions": ", ".join(f"{k} {v}" for k, v in occurring[language, part, kind].most_common()),
        }
        for (language, part, kind), found in sorted(
            results.items(), key=lambda item: (item[0][0], item[0][1] == "seen", item[0][2] != "all", item[0][2])
        )
    ]


def measure_strips(systems: Sequence[System], *, options: Options) -> list[Row]:
    """Answer strip kept, ranked first, and share of strips and characters kept."""
    sources = [("given", list(given_strips())), ("cut", list(cut_strips(per_source=STRIP_CASES, seed=options.seed)))]
    fewer = _at_most(options, STRIP_CASES)
    rows = []
    for name, cases in sources:
        chosen = _sampled(cases, kind=lambda case: case.source, options=fewer)
        for language, part in _groups(chosen):
            group = [case for case in chosen if case.language == language and _part(case) == part]
            row: Row = {"lang": language, "part": part, "strips": name, "n": len(group)}
            for system in systems:
                if system.evaluator:
                    row |= _refined(group, evaluator=system.evaluator, name=system.name)
            rows.append(row)
    return rows


def _refined(cases: Sequence[StripCase], *, evaluator: Evaluator, name: str) -> Row:
    kept = first = 0
    strips_kept, characters_kept = 0, 0
    refiner = StripRefiner(evaluator)
    for case in cases:
        limits = evaluator.thresholds(language=detect_language(case.question))
        whole = ("\n" if case.language == "zh" else " ").join(case.strips)
        evaluator.grade(case.question, passages=[whole])
        document = Document(text=whole, origin=Origin.KB, rank=1)
        strips = [Strip(text=text, document=document, start=0, end=len(text)) for text in case.strips]
        found = refiner.select([case.question], groups=[strips], thresholds=limits).strips
        best = max(range(len(found)), key=lambda n: found[n].grade.score)
        first += case.holding[best]
        kept += any(strip.kept and holds for strip, holds in zip(found, case.holding, strict=True))
        strips_kept += sum(strip.kept for strip in found)
        characters_kept += sum(len(strip.text) for strip in found if strip.kept)
    total = sum(len(case.strips) for case in cases)
    characters = sum(len(strip) for case in cases for strip in case.strips)
    return {
        f"{name} kept": kept / len(cases),
        f"{name} first": first / len(cases),
        f"{name} strips left": strips_kept / total,
        f"{name} text left": characters_kept / characters,
    }


def measure_spans(reader: ReaderEvaluator, *, options: Options) -> list[Row]:
    """Exact match and F1 (characters for Chinese, words for English) of the span against the best answer."""
    cases = _sampled([*given_strips()], kind=lambda case: case.source, options=options)
    rows = []
    for language, part in _groups(cases):
        group = [case for case in cases if case.language == language and _part(case) == part]
        matches, overlaps = [], []
        for case in group:
            passage = ("" if language == "zh" else " ").join(case.strips)
            span = reader.grade(case.question, passages=[passage])[0].span
            said = passage[span.start : span.end] if span else ""
            matches.append(max(_tokens(said) == _tokens(answer) for answer in case.answers))
            overlaps.append(max(_f1(said, answer) for answer in case.answers))
        rows.append(
            {
                "lang": language,
                "part": part,
                "n": len(group),
                "exact": float(np.mean(matches)),
                "f1": float(np.mean(overlaps)),
            }
        )
    return rows


def _tokens(text: str) -> list[str]:
    lowered = unicodedata.normalize("NFKC", text).lower()
    if is_chinese(text):
        return [character for character in lowered if character.isalnum()]
    return [word for word in re.findall(r"\w+", lowered) if word not in {"a", "an", "the"}]


def _f1(said: str, answer: str) -> float:
    mine, right = _tokens(said), _tokens(answer)
    common = sum((Counter(mine) & Counter(right)).values())
    return 2 * common / (len(mine) + len(right)) if common else 0.0


def measure_speed(reader: ReaderEvaluator, *, options: Options) -> list[Row]:
    """Ten passages of 150 words; a whole question: ten documents, then the strips of the four best."""
    texts = _long_texts(seed=options.seed)
    graded, whole = [], []
    for number in range(SPEED_QUESTIONS):
        passages = [next(texts) for _ in range(10)]
        question = f"Who was responsible for decision number {number} of the committee?"
        started = time.perf_counter()
        grades = reader.grade(question, passages=passages)
        graded.append(time.perf_counter() - started)
        best = sorted(range(10), key=lambda n: -grades[n].score)[:4]
        groups = [[s.text for s in decompose(Document(text=passages[n], origin=Origin.KB, rank=1))] for n in best]
        reader.grade_strips(question, groups=groups)
        whole.append(time.perf_counter() - started)
    named: Mapping[str, list[float]] = {"grade 10 × 150 words": graded, "grade, then strips of the best 4": whole}
    return [
        {"work": work, "median": quantile(seconds, q=0.5), "fastest": min(seconds), "90 %": quantile(seconds, q=0.9)}
        for work, seconds in named.items()
    ]


def _long_texts(*, seed: int) -> Iterator[str]:
    words = [word for pair in labelled_pairs() if pair.language == "en" for word in pair.passage.split()]
    start = random.Random(seed).randrange(len(words) // 2)
    while True:
        yield " ".join(words[start : start + 150])
        start = (start + 150) % (len(words) - 150)
