"""The refusal: a fixed sentence decided in code that says what was searched, the best score and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from i18n import Language, translate
from schema import Action, Answer, SearchOutcome


@dataclass(frozen=True, slots=True)
class Refusal:
    """Turns an answer without support into a refusal; the texts a user set come first."""

    text_zh: str = ""
    text_en: str = ""

    def apply(self, answer: Answer) -> Answer:
        """Return the answer as a refusal in the question's language, without citations."""
        language: Language = "zh" if answer.language == "zh" else "en"
        reason = refusal_reason(answer)
        lead = (self.text_zh if language == "zh" else self.text_en) or translate("answer.refused", language=language)
        files = {item.document.file for item in answer.graded}
        facts = translate(
            f"answer.reason_{reason}",
            language=language,
            passages=len(answer.graded),
            files=len(files),
            best=f"{answer.verdict.best_score:.2f}",
            lower=f"{answer.verdict.thresholds.lower:.2f}",
            floor=f"{answer.verdict.thresholds.strip:.2f}",
            error=answer.search.error,
        )
        web = translate(
            f"answer.web_{web_state(answer)}",
            language=language,
            error=answer.search.error,
            queries=" · ".join(answer.search.proposed),
            pages=len(answer.search.urls),
        )
        return replace(
            answer, text=" ".join((lead, facts, web)).strip(), refused=True, refusal_reason=reason, citations=()
        )


def refusal_reason(answer: Answer) -> str:
    """Return why there is no answer: empty, incorrect, no_strip or declined."""
    if answer.text:
        return "declined"
    if not answer.graded and not answer.search.documents:
        return "empty"
    return "incorrect" if answer.verdict.action is Action.INCORRECT else "no_strip"


def web_state(answer: Answer) -> str:
    """Return what a refusal says of the web: off, ask, ask_empty (no words to search for), unused, failed, nothing, or
    unanswered (pages, but no answer).
    """
    outcome = answer.search.outcome
    if outcome is SearchOutcome.ASK and not answer.search.proposed:
        return "ask_empty"
    return "unanswered" if outcome is SearchOutcome.FOUND else outcome.value
