"""Training samples: questions with passages that answer them, and with passages that almost do.

Every way of editing a passage or a question happens to answered pairs too (dropped sentences, vague words, headings,
broken lines, a repeated question), so that the edit itself says nothing about the label.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cloze import VAGUE, Cloze, cloze_questions, is_personal, kind_of_answer, made_vague
from corpus import (
    STOP_WORDS,
    Corpus,
    Passage,
    Question,
    is_chinese,
    overlap,
    sentences_of,
)
from swaps import entities, swap
from tables import table_sample

from benchmarks.labelled import contains, read_lines

MIX = {
    "human": 0.30, "cloze": 0.075, "table": 0.045,
    "removed": 0.085, "strip": 0.035, "bm25": 0.09, "same": 0.05, "swap": 0.105, "vague": 0.06,
    "cloze_vague": 0.03, "cloze_removed": 0.025, "cloze_swap": 0.02, "missing_cell": 0.04, "random": 0.025,
    "squad2": 0.045,
}  # fmt: skip
ENGLISH = 0.54
CROSS_LANGUAGE = 0.12
SECTIONS = {
    "en": ["Overview", "Background", "Scope", "1. Introduction", "History", "Chapter 3", "2.1 Details", "Appendix A"],
    "zh": ["概述", "背景", "第一章", "适用范围", "1 引言", "2.1 说明", "历史", "附录"],
}
RESTATED = {
    "en": ["{q}", "FAQ: {q}", "This section discusses the question: {q}", "{q} See the notes below.", "Many ask: {q}"],
    "zh": ["{q}", "常见问题：{q}", "本节讨论：{q}", "{q}详见下文。", "很多人想知道{q}"],
}
UNSURE_SPAN = None
MISREAD = "  .,;|-'$lIotirnec"
MOST_CHARACTERS = {"en": 1000, "zh": 380}


@dataclass(frozen=True, slots=True)
class Sample:
    """A question and a passage; `span` are the answer's characters where it is answered and known."""

    question: str
    passage: str
    answered: bool
    span: tuple[int, int] | None
    kind: str
    language: str


@dataclass(frozen=True, slots=True)
class _Window:
    """Some sentences of a passage as one text, and the characters of the middle sentence in it."""

    text: str
    start: int
    end: int


def find_answer(text: str, *, answers: Sequence[str], start: int, end: int) -> tuple[int, int] | None:
    """Characters of the answer in the text, in `start..end` where it occurs there."""
    for low, high in ((start, end), (0, len(text))):
        for answer in answers:
            place = text[low:high].find(answer)
            if place < 0:
                place = text[low:high].lower().find(answer.lower())
            if place >= 0:
                return low + place, low + place + len(answer)
    return None


class SampleMaker:
    """Draws samples from the training part (or the held-out part) of the corpus; same seed, same samples."""

    def __init__(self, corpus: Corpus, *, seed: int, held_out: bool = False, long: bool = False) -> None:
        self.chance = random.Random(seed)
        self.long = long
        self._corpus = corpus
        self._questions = {
            language: [q for q in corpus.questions if q.held_out == held_out and q.language == language]
            for language in ("en", "zh")
        }
        self._by_id = {q.id: q for q in corpus.questions}
        self._passages: dict[str, list[Passage]] = {
            language: [
                p
                for p in corpus.passages.values()
                if (p.document in corpus.held_out_documents) == held_out and p.language == language
            ]
            for language in ("en", "zh")
        }
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        self._words: defaultdict[str, list[str]] = defaultdict(list)
        self._collect_material()
        self._human = _squad2(held_out=held_out)
        self._makers: dict[str, Callable[[str], Sample | None]] = {
            "human": lambda language: self._crossed(self._question(language), self.positive),
            "cloze": self.cloze_positive,
            "table": lambda language: self._table(language, positive=True),
            "missing_cell": lambda language: self._table(language, positive=False),
            "squad2": lambda _: self.chance.choice(self._human),
            "random": self.random_negative,
        }
        for kind in ("removed", "strip", "bm25", "same"):
            self._makers[kind] = self._crossing(kind)
        for kind in ("swap", "vague"):
            self._makers[kind] = self._plain(kind)
        for kind in ("cloze_vague", "cloze_removed", "cloze_swap"):
            self._makers[kind] = self._cloze_maker(kind)

    def draw(self) -> Sample:
        """One sample of the mixture, decorated."""
        while True:
            kind = self.chance.choices(list(MIX), list(MIX.values()))[0]
            language = "en" if self.chance.random() < ENGLISH else "zh"
            sample = self._makers[kind](language)
            if sample is not None:
                return sample if kind in {"table", "missing_cell"} else self._decorated(sample)

    def _crossing(self, kind: str) -> Callable[[str], Sample | None]:
        return lambda language: self._crossed(self._question(language), lambda q: self.negative(q, kind=kind))

    def _plain(self, kind: str) -> Callable[[str], Sample | None]:
        return lambda language: self.negative(self._question(language), kind=kind)

    def _cloze_maker(self, kind: str) -> Callable[[str], Sample | None]:
        return lambda language: self.cloze_negative(language, kind=kind)

    def _question(self, language: str) -> Question:
        return self.chance.choice(self._questions[language])

    def _collect_material(self) -> None:
        """Names and content words of each passage and language, for swaps."""
        for passage in self._corpus.passages.values():
            names = entities(passage.text) + ([passage.title] if passage.source.startswith("cmrc") else [])
            self._names[passage.id] = [name for name in names if 1 < len(name) < 40]
            self._names[passage.language] += self._names[passage.id][:6]
        for question in self._corpus.questions:
            if question.language == "en":
                words = [w for w in re.findall(r"(?<![\w'])[a-z]{4,}", question.text) if w not in STOP_WORDS]
                self._words[question.document] += words
                self._words["en"] += words

    def _crossed(self, question: Question, make: Callable[[Question], Sample | None]) -> Sample | None:
        """Sometimes the same question asked in the other language (parallel questions only)."""
        if question.source != "xquad" or self.chance.random() > CROSS_LANGUAGE:
            return make(question)
        other = "xquad-zh-" if question.language == "en" else "xquad-en-"
        twin = self._by_id.get(other + question.id[9:])
        sample = make(twin) if twin else None
        return replace(sample, question=question.text, kind=sample.kind + "_cross") if sample else None

    def _window(self, sentences: Sequence[str], middle: int, *, drop: bool) -> _Window:
        """Sentences around `middle` up to a drawn length (in tokens, roughly); some lose one in between."""
        chinese = is_chinese(sentences[middle])
        chance = self.chance
        draw = chance.random()
        single, middling = (0.15, 0.5) if self.long else (0.3, 0.78)
        room = 1.0 if draw < single else chance.uniform(30, 115) if draw < middling else chance.uniform(115, 230)

        def size(first: int, last: int) -> float:
            return sum(len(s) * 0.75 if chinese else len(s.split()) * 1.4 for s in sentences[first : last + 1])

        first = last = middle
        while True:
            wider = [(first - 1, last)] * (first > 0) + [(first, last + 1)] * (last < len(sentences) - 1)
            if not wider:
                break
            low, high = chance.choice(wider)
            if size(low, high) > room:
                break
            first, last = low, high
        numbers = list(range(first, last + 1))
        if drop and len(numbers) > 2 and chance.random() < 0.35:
            numbers.remove(chance.choice([n for n in numbers if n != middle]))
        return _joined(sentences, numbers, middle)

    def _best(self, question: str, sentences: Sequence[str]) -> int:
        """Mostly the sentence most like the question, else any."""
        if self.chance.random() > 0.75:
            return self.chance.randrange(len(sentences))
        scores = [overlap(question, sentence) + self.chance.random() * 0.05 for sentence in sentences]
        return scores.index(max(scores))

    def _answer_sentence(self, question: Question, sentences: Sequence[str]) -> int | None:
        holding = [n for n, sentence in enumerate(sentences) if contains(question.answers, sentence)]
        if not holding:
            return None
        return max(holding, key=lambda n: overlap(question.text, sentences[n]))

    def positive(self, question: Question) -> Sample | None:
        """The question with a window around its answer sentence."""
        passage = self._corpus.passages[self.chance.choice(question.gold)]
        middle = self._answer_sentence(question, passage.sentences)
        if middle is None:
            return None
        window = self._window(passage.sentences, middle, drop=True)
        span = find_answer(window.text, answers=question.answers, start=window.start, end=window.end)
        return Sample(question.text, window.text, True, span, "human", question.language)  # noqa: FBT003

    def negative(self, question: Question, *, kind: str) -> Sample | None:
        """The question with a passage that lacks its answer, or changed so that its passage does."""
        if kind == "swap":
            return self._swapped(question)
        if kind == "vague":
            return self._vague(question)
        gold = self._corpus.passages[self.chance.choice(question.gold)]
        if kind in {"removed", "strip"}:
            sentences = [s for s in gold.sentences if not contains(question.answers, s)]
        else:
            keys = question.same if kind == "same" and question.same else question.hard
            if not keys:
                return None
            sentences = list(self._corpus.passages[self.chance.choice(keys)].sentences)
        if not sentences:
            return None
        middle = self._best(question.text, sentences)
        window = (
            _joined(sentences, [middle], middle) if kind == "strip" else self._window(sentences, middle, drop=False)
        )
        if contains(question.answers, window.text):
            return None
        return Sample(question.text, window.text, False, None, kind, question.language)  # noqa: FBT003

    def _swapped(self, question: Question) -> Sample | None:
        base = self.positive(question)
        if base is None:
            return None
        changed = self._swap(question.text, passage_id=question.gold[0], document=question.document, text=base.passage)
        return replace(base, question=changed[0], answered=False, span=None, kind=changed[1]) if changed else None

    def _swap(self, question: str, *, passage_id: str, document: str, text: str) -> tuple[str, str] | None:
        passage = self._corpus.passages[passage_id]
        return swap(
            question,
            passage=text,
            near_names=self._names[passage_id],
            far_names=self._names[passage.language],
            words=self._words[document] if self.chance.random() < 0.6 else self._words["en"],
            chance=self.chance,
        )

    def _vague(self, question: Question) -> Sample | None:
        base = self.positive(question)
        if base is None or base.span is None or base.span[1] - base.span[0] > 40:
            return None
        answer = base.passage[base.span[0] : base.span[1]]
        asks = kind_of_answer(answer)
        text = made_vague(base.passage, answer=answer, asks=asks, language=question.language, chance=self.chance)
        if contains(question.answers, text):
            return None
        return replace(base, passage=text, answered=False, span=None, kind="vague")

    def random_negative(self, language: str) -> Sample | None:
        """The question with any passage, one in five in the other language."""
        question = self._question(language)
        other = language if self.chance.random() < 0.8 else "zh" if language == "en" else "en"
        passage = self.chance.choice(self._passages[other])
        if contains(question.answers, passage.text):
            return None
        window = self._window(passage.sentences, self.chance.randrange(len(passage.sentences)), drop=False)
        return Sample(question.text, window.text, False, None, "random", language)  # noqa: FBT003

    def _cloze(self, language: str) -> tuple[Passage, int, Cloze] | None:
        passage = self.chance.choice(self._passages[language])
        middle = self.chance.randrange(len(passage.sentences))
        found = cloze_questions(
            passage.sentences[middle],
            language=language,
            title=passage.title,
            personal=is_personal(passage.text),
            chance=self.chance,
        )
        return (passage, middle, self.chance.choice(found)) if found else None

    def cloze_positive(self, language: str) -> Sample | None:
        """A rule-made question with a window around its sentence."""
        found = self._cloze(language)
        if found is None:
            return None
        passage, middle, cloze = found
        window = self._window(passage.sentences, middle, drop=True)
        span = find_answer(window.text, answers=[cloze.answer], start=window.start, end=window.end)
        return Sample(cloze.question, window.text, True, span, "cloze", language) if span else None  # noqa: FBT003

    def cloze_negative(self, language: str, *, kind: str) -> Sample | None:
        """A rule-made question whose fact was taken out, whose sentence is gone, or that was changed."""
        found = self._cloze(language)
        if found is None:
            return None
        passage, middle, cloze = found
        question = cloze.question
        if cloze.asks == "yes_no":
            kind = "cloze_removed"
        if kind == "cloze_removed":
            left = [s for n, s in enumerate(passage.sentences) if n != middle]
            if not left:
                return None
            text = self._window(left, min(middle, len(left) - 1), drop=False).text
        else:
            text = self._window(passage.sentences, middle, drop=True).text
        if kind == "cloze_vague":
            text = made_vague(text, answer=cloze.answer, asks=cloze.asks, language=language, chance=self.chance)
        if kind == "cloze_swap":
            changed = self._swap(question, passage_id=passage.id, document=passage.document, text=text)
            if changed is None:
                return None
            question = changed[0]
        elif contains([cloze.answer], text):
            return None
        return Sample(question, text, False, None, kind, language)  # noqa: FBT003

    def _table(self, language: str, *, positive: bool) -> Sample | None:
        made = table_sample(language, positive=positive, chance=self.chance)
        if made.answer is None:
            return Sample(made.question, made.text, False, None, made.kind, language)  # noqa: FBT003
        places = [m.start() for m in re.finditer(rf"(?<![\d.,]){re.escape(made.answer)}(?![\d.,])", made.text)]
        span = (places[0], places[0] + len(made.answer)) if len(places) == 1 else UNSURE_SPAN
        return Sample(made.question, made.text, True, span, made.kind, language)  # noqa: FBT003

    def _decorated(self, sample: Sample) -> Sample:
        """The passage as a parser or a search result gives it: headings, snippets, broken lines, other vague words."""
        chance = self.chance
        if chance.random() < 0.12:
            sample = self._vague_elsewhere(sample)
        if self.long and chance.random() < 0.18:
            sample = self._surrounded(sample)
        if chance.random() < 0.09:
            sample = _broken(sample, width=chance.randint(8, 16))
        if chance.random() < 0.08:
            sample = _hyphenated(sample, chance=chance)
        if chance.random() < 0.08:
            sample = _noisy(sample, chance=chance)
        if chance.random() < 0.07:
            sample = _cut(sample, chance=chance)
        draw = chance.random()
        if draw < 0.22:
            sample = _prefixed(sample, self._heading(sample) + "\n")
        elif draw < 0.28:
            dates = ["Nov 10, 2022 ... ", "Mar 3, 2021 ... ", "2023-07-20 08:19，", "... "]
            sample = _prefixed(sample, chance.choice(dates))
        elif draw < 0.315:
            pattern = chance.choice(RESTATED["zh" if is_chinese(sample.passage) else "en"])
            sample = _prefixed(sample, pattern.format(q=sample.question) + "\n")
        return sample

    def _surrounded(self, sample: Sample) -> Sample:
        """Another paragraph before or after, or the end of a sentence in front, as where a page was cut."""
        language = "zh" if is_chinese(sample.passage) else "en"
        other = self.chance.choice(self._passages[language])
        room = MOST_CHARACTERS[language] - len(sample.passage)
        if self.chance.random() < 0.3:
            tail = other.sentences[-1].strip()
            return _prefixed(sample, tail[len(tail) // 2 :] + "\n")
        text = other.text[: max(0, room)]
        if not text:
            return sample
        if self.chance.random() < 0.5:
            return _prefixed(sample, text + "\n")
        return replace(sample, passage=sample.passage + "\n" + text)

    def _heading(self, sample: Sample) -> str:
        language = "zh" if is_chinese(sample.passage) else "en"
        names = entities(sample.question) or entities(sample.passage) or SECTIONS[language]
        parts = [self.chance.choice(names), self.chance.choice(SECTIONS[language])]
        return " > ".join(parts[: self.chance.choice([1, 2, 2])])

    def _vague_elsewhere(self, sample: Sample) -> Sample:
        """Vague words put where they do no harm to the answer."""
        language = "zh" if is_chinese(sample.passage) else "en"
        kinds = {"date": r"(?<!\d)[12]\d{3}(?!\d)年?", "number": r"(?<![\d.,])\d{1,3}(?![\d.,年月日])"}
        asks = self.chance.choice(list(kinds))
        low, high = sample.span or (0, 0)
        places = [m for m in re.finditer(kinds[asks], sample.passage) if m.end() <= low or m.start() >= high]
        if not places or (sample.answered and sample.span is None):
            return sample
        place = self.chance.choice(places)
        new = self.chance.choice(VAGUE[language][asks])
        text = sample.passage[: place.start()] + new + sample.passage[place.end() :]
        shift = len(new) - (place.end() - place.start()) if place.end() <= low else 0
        return replace(sample, passage=text, span=(low + shift, high + shift) if sample.span else None)


def _joined(sentences: Sequence[str], numbers: Sequence[int], middle: int) -> _Window:
    between = "" if is_chinese(sentences[middle]) else " "
    text, start, end = "", 0, 0
    for number in numbers:
        piece = sentences[number].strip() if between else sentences[number]
        text += between if text else ""
        if number == middle:
            start, end = len(text), len(text) + len(piece)
        text += piece
    return _Window(text=text, start=start, end=end)


def _prefixed(sample: Sample, prefix: str) -> Sample:
    span = (sample.span[0] + len(prefix), sample.span[1] + len(prefix)) if sample.span else None
    return replace(sample, passage=prefix + sample.passage, span=span)


def _broken(sample: Sample, *, width: int) -> Sample:
    """Line breaks in place of some blanks, so that character positions stay."""
    parts = sample.passage.split(" ")
    text = "".join(p + ("\n" if n % width == width - 1 else " ") for n, p in enumerate(parts))[:-1]
    return replace(sample, passage=text)


def _noisy(sample: Sample, *, chance: random.Random) -> Sample:
    """Some characters outside the answer misread, as on a scan; positions stay."""
    if sample.answered and sample.span is None:
        return sample
    low, high = sample.span or (0, 0)
    characters = list(sample.passage)
    for place in chance.sample(range(len(characters)), len(characters) // chance.randint(25, 90)):
        if not low <= place < high and not characters[place].isdigit():
            characters[place] = chance.choice(MISREAD)
    return replace(sample, passage="".join(characters))


def _cut(sample: Sample, *, chance: random.Random) -> Sample:
    """The passage's last part left out, after the answer, as search results end."""
    if sample.answered and sample.span is None:
        return sample
    least = max(len(sample.passage) // 3, sample.span[1] if sample.span else 0)
    return replace(sample, passage=sample.passage[: chance.randint(least, len(sample.passage))].rstrip() + " ...")


def _hyphenated(sample: Sample, *, chance: random.Random) -> Sample:
    """One long Latin word broken over a line, outside the answer."""
    low, high = sample.span or (0, 0)
    words = [m for m in re.finditer(r"[a-z]{7,}", sample.passage) if m.end() <= low or m.start() >= high]
    if not words or (sample.answered and sample.span is None):
        return sample
    word = chance.choice(words)
    place = word.start() + (word.end() - word.start()) // 2
    shift = 2 if place <= low else 0
    text = sample.passage[:place] + "-\n" + sample.passage[place:]
    return replace(sample, passage=text, span=(low + shift, high + shift) if sample.span else None)


def _squad2(*, held_out: bool) -> list[Sample]:
    """The human-written unanswerable questions and their answerable neighbours; one in ten is held out."""
    found = []
    for number, row in enumerate(read_lines("refuse/squad2_en.jsonl")):
        if (number % 10 == 0) != held_out:
            continue
        passage, answers = row["passage"], row["answers"]
        if not row["answerable"]:
            found.append(Sample(row["question"], passage, False, None, "squad2_no", "en"))  # noqa: FBT003
            continue
        holding = [s for s in sentences_of(passage) if contains(answers, s)]
        start = passage.find(holding[0]) if holding else 0
        span = find_answer(passage, answers=answers, start=max(0, start), end=start + len(holding[0]) if holding else 0)
        found.append(Sample(row["question"], passage, True, span, "squad2_yes", "en"))  # noqa: FBT003
    return found
