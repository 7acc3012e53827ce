"""The generator that asks a language model: numbered sources in, streamed text with checked citations out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from agent_model import ChatModel, Prompt, Reply, build_chat_model
from config import Settings
from endpoints import Role
from errors import ProviderError
from generator import ExtractiveGenerator
from i18n import Language
from llm_citations import Matcher, make_draft, names_a_source
from llm_evaluator import CascadeEvaluator, LlmEvaluator
from llm_prompts import estimate_tokens, fence, read_prompt
from schema import Draft, Knowledge, Strip, Usage
from stages import Evaluator, Generator

logger = logging.getLogger(__name__)

NO_ANSWER = "NO_ANSWER"
ANSWER_TOKENS = 1024
NEARLY_FULL = 0.8
PROMPT_NEARLY_FULL = "models.prompt_nearly_full"
STRIPS_DROPPED = "models.strips_dropped"
CONTEXT_SHORT = "models.context_short"
ANSWER_CUT = "models.answer_cut"
ANSWER_FAILED = "models.answer_failed"
ANSWER_EMPTY = "models.answer_empty"
ANSWER_UNSUPPORTED = "models.answer_unsupported"


def build_generator(settings: Settings, *, matcher: Evaluator) -> Generator:
    """Return the answering model's generator, or the extractive one where none is configured.

    `matcher` is the evaluator in use; of one that asks a model, only the embedded part is taken.

    :raises ConfigurationError: the answering provider needs a model name and there is none.
    """
    model = build_chat_model(settings, role=Role.ANSWER)
    if model is None:
        return ExtractiveGenerator()
    embedded = matcher.reader if isinstance(matcher, LlmEvaluator | CascadeEvaluator) else matcher
    return LlmGenerator(model, matcher=embedded or matcher)


@dataclass(frozen=True, slots=True)
class LlmGenerator:
    """Streams an answer from the kept strips; quotes them instead, with a warning, where the model fails."""

    model: ChatModel
    matcher: Matcher
    fallback: ExtractiveGenerator = field(default_factory=ExtractiveGenerator)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def stream(self, question: str, *, knowledge: Knowledge, language: Language) -> Iterator[str | Draft]:
        """Yield the text as it is written, then the draft, whose text replaces it. Closing stops the model."""
        try:
            packed = pack(question, strips=knowledge.kept, context=self.model.context_tokens(), language=language)
        except ProviderError as error:
            logger.warning("answering failed: %s", error.code)
            yield from self._quote(question, knowledge=knowledge, language=language, warnings=(ANSWER_FAILED,))
            return
        warnings = (*packed.warnings, *((CONTEXT_SHORT,) if self.model.context_is_short else ()))
        written = ""
        reply = Reply("", usage=Usage(llm_calls=1))
        problem = ""
        held = _HeldBack()
        try:
            with closing(self.model.stream(packed.prompt, max_tokens=packed.answer_tokens)) as pieces:  # type: ignore[type-var]
                for piece in pieces:
                    if isinstance(piece, Reply):
                        reply = piece
                    else:
                        written += piece
                        yield from held.feed(piece)
        except ProviderError as error:
            logger.warning("answering failed: %s", error.code)
            problem = ANSWER_CUT if written else ANSWER_FAILED
        yield from held.finish()
        text = reply.text or _complete_sentences(written) if problem else reply.text
        if NO_ANSWER in text and names_a_source(text):
            text = text.replace(NO_ANSWER, "").strip()
        if NO_ANSWER in text:
            yield Draft(text=NO_ANSWER, declined=True, usage=reply.usage, warnings=warnings)
            return
        draft = make_draft(text, sources=packed.sources, question=question, matcher=self.matcher, language=language)
        if draft is None:
            reason = problem or (ANSWER_UNSUPPORTED if text else ANSWER_EMPTY)
            yield from ("\n\n",) if written else ()
            yield from self._quote(
                question, knowledge=knowledge, language=language, warnings=(*warnings, reason), usage=reply.usage
            )
            return
        if problem or reply.cut:
            warnings = (*warnings, ANSWER_CUT)
        yield replace(draft, usage=reply.usage, warnings=(*warnings, *draft.warnings))

    def _quote(
        self,
        question: str,
        *,
        knowledge: Knowledge,
        language: Language,
        warnings: tuple[str, ...],
        usage: Usage = Usage(),
    ) -> Iterator[str | Draft]:
        for piece in self.fallback.stream(question, knowledge=knowledge, language=language):
            yield replace(piece, warnings=warnings, usage=usage) if isinstance(piece, Draft) else piece


class _HeldBack:
    """Holds the beginning of a text back while it may still become NO_ANSWER."""

    def __init__(self) -> None:
        self._text = ""
        self._open = False

    def feed(self, piece: str) -> Iterator[str]:
        if self._open:
            yield piece
            return
        self._text += piece
        begun = self._text.lstrip(" \n*`\"'")
        if not NO_ANSWER.startswith(begun[: len(NO_ANSWER)]):
            self._open = True
            yield self._text

    def finish(self) -> Iterator[str]:
        if not self._open and self._text.strip() and NO_ANSWER not in self._text:
            yield self._text


def _complete_sentences(text: str) -> str:
    """Return a text that broke off without its last, unfinished sentence."""
    from sentences import sentence_spans

    spans = sentence_spans(text)
    if spans and text[spans[-1][1] - 1] not in ".!?。！？…]":
        spans = spans[:-1]
    return text[: spans[-1][1]] if spans else ""


@dataclass(frozen=True, slots=True)
class Packed:
    """A prompt that fits the model's context, the sources in it in their numbers' order, and what to warn about."""

    prompt: Prompt
    sources: tuple[Strip, ...]
    answer_tokens: int
    warnings: tuple[str, ...] = ()


def pack(question: str, *, strips: Sequence[Strip], context: int, language: Language) -> Packed:
    """Put as many strips into the prompt as the context holds, dropping those with the lowest scores.

    The question is never cut, and the best strip always goes in. Numbers follow document order.
    """
    answer_tokens = min(ANSWER_TOKENS, context // 4)
    instructions = read_prompt("answer", language=language)
    room = context - answer_tokens
    chosen = list(strips)
    while True:
        message = answer_message(question, strips=chosen, language=language)
        needed = estimate_tokens(instructions) + estimate_tokens(message)
        if needed <= room or len(chosen) == 1:
            break
        chosen.remove(min(chosen, key=lambda strip: strip.grade.score))
    dropped = (STRIPS_DROPPED,) if len(chosen) < len(strips) else ()
    nearly = (PROMPT_NEARLY_FULL,) if needed > NEARLY_FULL * room and not dropped else ()
    return Packed(Prompt(instructions, message=message), tuple(chosen), answer_tokens, warnings=(*dropped, *nearly))


def answer_message(question: str, *, strips: Sequence[Strip], language: Language) -> str:
    """Return the user message: numbered, fenced sources, then the question."""
    sources = [
        fence("source", text=strip.text, n=n, origin=strip.document.origin, title=_title(strip))
        for n, strip in enumerate(strips, start=1)
    ]
    ending = "请根据以上来源用中文回答：" if language == "zh" else "Answer from the sources above, in English:"
    return "\n\n".join((*sources, ending, fence("question", text=question)))


def _title(strip: Strip) -> str:
    document = strip.document
    return " > ".join(filter(None, (document.title or document.file, *document.heading_path)))
