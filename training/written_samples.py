"""Training samples from the written documents beside those of the generator: answered, and almost answered.

Passages of other documents stand among the negatives too: within a document an unanswerable question shares more words
with the passages than an answered one, and a reader that saw nothing else would learn to distrust shared words.
"""

from __future__ import annotations

from collections.abc import Sequence

from corpus import Corpus, LexicalIndex, is_chinese, overlap, sentences_of
from samples import Sample, SampleMaker
from written import WrittenDocument, WrittenQuestion, written_documents

UNANSWERABLE = 0.5
"""Share of the unanswerable questions drawn that are taken; the others are drawn again."""
GOLD = 0.62
"""Share of the answered questions given a passage that answers them; the others get one that does not."""
REMOVED = 0.15
STRANGERS = 0.6
"""Share of the passages without the answer that are another document's, mostly one with the same words."""
NEIGHBOURS = 8
WHOLE = 0.6
HEADED = 0.25
JOINED = {False: 0.15, True: 0.3}
MOST_JOINED = {"en": 1000, "zh": 400}


class WrittenMaker(SampleMaker):
    """The generator with a share of samples from the written documents; same seed, same samples."""

    def __init__(self, corpus: Corpus, *, seed: int, held_out: bool = False, long: bool = False, share: float) -> None:
        super().__init__(corpus, seed=seed, held_out=held_out, long=long)
        self._share = share
        documents = [document for document in written_documents() if document.held_out == held_out]
        self._asked = [(document, question) for document in documents for question in document.questions]
        self._texts = {
            language: [
                (document.id, text)
                for document in documents
                if document.language == language
                for text in document.passages.values()
            ]
            for language in ("en", "zh")
        }
        self._indexes = {language: LexicalIndex([text for _, text in texts]) for language, texts in self._texts.items()}

    def draw(self) -> Sample:
        """One sample, decorated: of the written documents in the given share of draws."""
        if self.chance.random() >= self._share:
            return super().draw()
        while True:
            document, question = self.chance.choice(self._asked)
            if not question.answered_by and self.chance.random() > UNANSWERABLE:
                continue
            sample = self.written(document, question)
            if sample is not None:
                return self._decorated(sample)

    def written(self, document: WrittenDocument, question: WrittenQuestion) -> Sample | None:
        """The question with a passage that answers it, or with one of its document or of another that does not."""
        if question.answered_by and self.chance.random() < GOLD:
            return self._answered(document, question)
        if question.answered_by and self.chance.random() < REMOVED:
            return self._answer_removed(document, question)
        if self.chance.random() < STRANGERS:
            text = self._stranger(document, question)
        else:
            others = [text for number, text in document.passages.items() if number not in question.answered_by]
            if not others:
                return None
            text = self.chance.choices(others, [0.15 + overlap(question.text, other) for other in others])[0]
            if self.chance.random() < JOINED[self.long]:
                text = self._joined(text, others=[other for other in others if other != text])
        return self._sample(document, question, text=self._shortened(text), span=None, kind="written_no")

    def _stranger(self, document: WrittenDocument, question: WrittenQuestion) -> str:
        """Another document's passage, three times in four one that shares many words with the question."""
        texts = self._texts[document.language]
        near = self._indexes[document.language].top(question.text, count=NEIGHBOURS + len(document.passages))
        places = [place for place in near if texts[place][0] != document.id][:NEIGHBOURS]
        if not places or self.chance.random() > 0.75:
            places = [place for place in range(len(texts)) if texts[place][0] != document.id]
        return texts[self.chance.choice(places)][1]

    def _answered(self, document: WrittenDocument, question: WrittenQuestion) -> Sample | None:
        text = document.passages[self.chance.choice(question.answered_by)]
        if "|" not in text and self.chance.random() > WHOLE:
            sentences = sentences_of(text)
            middle = self._answer_at(sentences, question)
            if middle is None:
                return None
            text = self._window(sentences, middle, drop=False).text
        elif self.chance.random() < JOINED[self.long]:
            text = self._joined(text, others=[other for other in document.passages.values() if other != text])
        places = [n for n in range(len(text)) if text.startswith(question.answer, n)]
        span = (places[0], places[0] + len(question.answer)) if len(places) == 1 else None
        return self._sample(document, question, text=text, span=span, kind="written_yes")

    def _answer_removed(self, document: WrittenDocument, question: WrittenQuestion) -> Sample | None:
        text = document.passages[question.answered_by[0]]
        between = "\n" if "|" in text else "" if is_chinese(text) else " "
        sentences = text.split("\n") if "|" in text else sentences_of(text)
        left = [sentence for sentence in sentences if question.answer not in sentence]
        if not left or len(left) == len(sentences):
            return None
        text = between.join(left)
        return self._sample(document, question, text=text, span=None, kind="written_removed")

    @staticmethod
    def _answer_at(sentences: Sequence[str], question: WrittenQuestion) -> int | None:
        holding = [number for number, sentence in enumerate(sentences) if question.answer in sentence]
        return max(holding, key=lambda number: overlap(question.text, sentences[number]), default=None)

    def _shortened(self, text: str) -> str:
        if "|" in text or self.chance.random() < WHOLE:
            return text
        sentences = sentences_of(text)
        return self._window(sentences, self.chance.randrange(len(sentences)), drop=False).text

    def _joined(self, text: str, *, others: Sequence[str]) -> str:
        """The passage with another before or after it, where both are short enough together."""
        room = MOST_JOINED["zh" if is_chinese(text) else "en"] - len(text)
        fitting = [other for other in others if len(other) < room]
        if not fitting:
            return text
        pair = [text, self.chance.choice(fitting)]
        self.chance.shuffle(pair)
        return "\n".join(pair)

    def _sample(
        self,
        document: WrittenDocument,
        question: WrittenQuestion,
        *,
        text: str,
        span: tuple[int, int] | None,
        kind: str,
    ) -> Sample:
        if self.chance.random() < HEADED:
            head = document.headings + "\n"
            text, span = head + text, (span[0] + len(head), span[1] + len(head)) if span else None
        language = "zh" if is_chinese(question.text) else "en"
        return Sample(question.text, text, kind == "written_yes", span, kind, language)
