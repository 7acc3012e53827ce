"""Makes a follow-up question standalone, and keywords for the web, with a language model; without one, by rule.

Only a question that leans on the conversation is touched, and only with words of the conversation.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_model import ChatModel, Failure, Prompt, build_chat_model
from config import Settings
from endpoints import Role
from follow_ups import leans_on_history, resolve
from i18n import Language
from keywords import MAX_KEYWORDS, KeywordRewriter, Keywords
from language import detect_language
from llm_prompts import fence, read_prompt
from schema import Rewritten, Turn
from stages import Rewriter

logger = logging.getLogger(__name__)

TURNS = 3
"""Earlier exchanges that a model sees."""
ANSWER_CHARACTERS = 300
LONGEST_QUESTION = 300
REPLY_TOKENS = 512
REMEMBERED = 64
REWRITE_FAILED = "models.rewrite_failed"

_LABELS = re.compile(r"^\W*(?:(?P<question>questions?|问题)|(?P<keywords>keywords?|关键词))\W*?[:：]\s*", re.IGNORECASE)
_QUOTES = " \t\"'“”‘’*`"


def build_rewriter(settings: Settings) -> Rewriter:
    """Return the rewriting model's rewriter, or the rules where none is configured.

    :raises ConfigurationError: the rewriting provider needs a model name and there is none.
    """
    model = build_chat_model(settings, role=Role.REWRITE)
    return LlmRewriter(model) if model else RuleRewriter()


def keyword_rewriter(rewriter: Rewriter) -> KeywordRewriter | None:
    """Return the rewriter for the web search's keywords; None without a model. Both share what one call found."""
    return rewriter if isinstance(rewriter, LlmRewriter) else None


class RuleRewriter:
    """Fills in what a follow-up leaves out where that is plain, and leaves the question alone elsewhere."""

    def rewrite(self, question: str, *, history: Sequence[Turn]) -> Rewritten:
        """Return the question unchanged when it stands alone or nothing is plain."""
        if not leans_on_history(question, history=history):
            return Rewritten(question, question=question)
        return Rewritten(question, question=resolve(question, history=history))


@dataclass(frozen=True, slots=True)
class LlmRewriter:
    """Asks a model for the standalone question and its keywords in one call; the rules stand in when it fails."""

    model: ChatModel
    _known: OrderedDict[str, tuple[str, ...]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rewrite(self, question: str, *, history: Sequence[Turn]) -> Rewritten:
        """Return the question unchanged when it stands alone; never raises for a model that fails."""
        if not leans_on_history(question, history=history):
            return Rewritten(question, question=question)
        language = detect_language(question)
        conversation = "\n".join(_turn(turn) for turn in history[-TURNS:])
        message = "\n\n".join((fence("history", text=conversation), fence("question", text=question)))
        prompt = Prompt(read_prompt("rewrite", language=language), message=message)
        (reply,) = self.model.ask([prompt], max_tokens=REPLY_TOKENS)
        by_rule = resolve(question, history=history)
        if isinstance(reply, Failure):
            logger.warning("rewriting failed: %s", reply.error.code)
            return Rewritten(question, question=by_rule, usage=reply.usage, warning=REWRITE_FAILED)
        rewritten, keywords = read_reply(reply.text)
        if not is_faithful(rewritten, question=question, conversation=conversation):
            logger.warning("rewriting failed: the reply is not the question made complete")
            return Rewritten(question, question=by_rule, usage=reply.usage, warning=REWRITE_FAILED)
        self._remember(rewritten, keywords=[word for word in keywords if word.casefold() in rewritten.casefold()])
        return Rewritten(question, question=rewritten, usage=reply.usage)

    def keywords(self, question: str, *, language: Language) -> Keywords:
        """Return at most three keywords of the question alone, best first; none leaves it to keyphrases.

        :raises ProviderError: the model failed.
        """
        with self._lock:
            known = next((words for asked, words in self._known.items() if _within(question, asked)), None)
        if known is not None:
            # One call a turn: a rewritten question, or what is missing of it, came with its keywords.
            return Keywords(tuple(word for word in known if word.casefold() in question.casefold()))
        prompt = Prompt(read_prompt("keywords", language=language), message=fence("question", text=question))
        (reply,) = self.model.ask([prompt], max_tokens=REPLY_TOKENS)
        if isinstance(reply, Failure):
            raise reply.error
        lines = reply.text.splitlines()
        return Keywords(tuple(_words(_LABELS.sub("", lines[0]))) if lines else (), usage=reply.usage)

    def _remember(self, question: str, *, keywords: Sequence[str]) -> None:
        with self._lock:
            self._known[question] = tuple(keywords)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


def _within(question: str, whole: str) -> bool:
    """Tell whether a question is made of the words of another."""
    pieces, others = (
        set(re.findall(r"[^\W\u3400-\u9fff]+|[\u3400-\u9fff]", text.casefold())) for text in (question, whole)
    )
    return pieces <= others


def _turn(turn: Turn) -> str:
    answer = " ".join(turn.answer.split())[:ANSWER_CHARACTERS]
    return f"Q: {turn.question}\nA: {answer}"


def read_reply(text: str) -> tuple[str, list[str]]:
    """Return the question and the keywords of a rewriting model's reply; labels may be missing."""
    question, keywords = "", []
    for line in filter(None, map(str.strip, text.splitlines())):
        label = _LABELS.match(line)
        rest = line[label.end() :] if label else line
        if label and label["keywords"]:
            keywords = _words(rest)
        elif not question:
            question = rest.strip(_QUOTES)
    return question, keywords


def _words(line: str) -> list[str]:
    parts = (part.strip(_QUOTES + ".。[]") for part in re.split(r"[;；,，、|\n]", line))
    return [part for part in parts if part][:MAX_KEYWORDS]


def is_faithful(rewritten: str, *, question: str, conversation: str) -> bool:
    """Tell whether a rewritten question only adds words of the conversation to the question, in its language."""
    if not rewritten or len(rewritten) > max(LONGEST_QUESTION, 2 * len(question)):
        return False
    if detect_language(rewritten) != detect_language(question):
        return False
    said = f"{conversation}\n{question}".casefold()
    if any(number not in said for number in re.findall(r"\d+(?:[.,]\d+)*", rewritten)):
        return False
    names = re.findall(r"(?<!^)\b[A-Z][\w-]+", rewritten)
    return all(name.casefold() in said for name in names)
