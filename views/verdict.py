"""The verdict explained: the action, every score against both thresholds, and what other thresholds would do."""

from __future__ import annotations

import streamlit as st

from config import from_environment, get_settings, save_settings
from schema import Action, Answer, Graded, Origin, Thresholds
from views.markup import plain_markdown
from views.resources import forget_settings
from views.score_chart import Mark, score_chart
from views.session import dark, words
from what_if import reconsider, turning_score

CHART_WIDTH = 420
ICONS = {
    Action.CORRECT: (":material/check_circle:", "green"),
    Action.AMBIGUOUS: (":material/change_history:", "orange"),
    Action.INCORRECT: (":material/cancel:", "red"),
}


def draw_action(action: Action) -> None:
    """Draw the action as words, colour and shape."""
    icon, color = ICONS[action]
    st.badge(words(f"action_{action}"), icon=icon, color=color)  # type: ignore[arg-type]


def draw_chart(answer: Answer, *, thresholds: Thresholds, limit: int | None = None) -> None:
    """Draw the scores of the best `limit` documents (all when None); the picture's text says the same in words."""
    ranked = sorted(answer.graded, key=lambda item: -item.grade.score)[:limit] if limit else answer.graded
    marks = [Mark(mark_label(item), None if item.grade.failed else item.grade.score) for item in ranked]
    if not marks:
        st.caption(words("no_documents"))
        return
    svg = score_chart(
        marks,
        thresholds=thresholds,
        upper_label=words("upper_short"),
        lower_label=words("lower_short"),
        dark=dark(),
    )
    listed = "; ".join(f"{mark.label}: {'?' if mark.score is None else format(mark.score, '+.2f')}" for mark in marks)
    with st.container(width=CHART_WIDTH):
        st.image(svg, width="stretch", alt=words("chart_alt", scores=listed))
        st.caption(words("chart_legend"))


def mark_label(item: Graded) -> str:
    """Return the document's rank, file and page."""
    document = item.document
    if document.origin is Origin.WEB:
        return f"{document.rank}. {document.title or document.url}"
    return f"{document.rank}. {document.file} {words('page_short', page=document.page)}"


@st.fragment
def draw_verdict(turn_id: str, *, answer: Answer) -> None:
    """Draw the action, its reason, the chart, and sliders that re-decide from the same scores at once."""
    verdict = answer.verdict
    draw_action(verdict.action)
    st.markdown(_reason(answer))
    turn = turning_score(answer)
    if turn is not None:
        st.caption(words(f"change_{verdict.action}", best=f"{turn:+.2f}"))
    if len(verdict.parts) > 1:
        for part in verdict.parts:
            icon, _color = ICONS[part.action]
            st.markdown(
                f"- {icon} {plain_markdown(part.question)} — {words(f'action_{part.action}')}, {part.best_score:+.2f}"
            )
    upper = float(st.session_state.get(f"upper_{turn_id}", verdict.thresholds.upper))
    lower = float(st.session_state.get(f"lower_{turn_id}", verdict.thresholds.lower))
    draw_chart(answer, thresholds=Thresholds(upper=upper, lower=lower, strip=verdict.thresholds.strip))
    _draw_what_if(turn_id, answer=answer)


def _reason(answer: Answer) -> str:
    verdict = answer.verdict
    limits = verdict.thresholds
    return words(
        f"reason_{verdict.action}" if answer.graded else "reason_empty",
        best=f"{verdict.best_score:+.2f}",
        upper=f"{limits.upper:+.2f}",
        lower=f"{limits.lower:+.2f}",
    )


def _draw_what_if(turn_id: str, *, answer: Answer) -> None:
    limits = answer.verdict.thresholds
    st.markdown(f"**{words('what_if_title')}**")
    st.caption(words("what_if_help"))
    columns = st.columns(2)
    with columns[0]:
        lower = st.slider(words("lower"), -1.0, 1.0, value=limits.lower, step=0.01, key=f"lower_{turn_id}")
    with columns[1]:
        upper = st.slider(words("upper"), -1.0, 1.0, value=limits.upper, step=0.01, key=f"upper_{turn_id}")
    if lower > upper:
        st.warning(words("thresholds_crossed"), icon=":material/warning:")
        return
    action = reconsider(answer, upper=upper, lower=lower).action
    changed = action is not answer.verdict.action
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words("what_if_changed" if changed else "what_if_same"))
        draw_action(action)
    fixed = from_environment("upper") or from_environment("lower")
    st.button(
        words("make_mine"),
        icon=":material/tune:",
        key=f"make_mine_{turn_id}",
        disabled=fixed or (upper, lower) == (limits.upper, limits.lower),
        help=words("set_by_environment") if fixed else words("make_mine_help"),
        on_click=_save_thresholds,
        args=(upper, lower),
    )


def _save_thresholds(upper: float, lower: float) -> None:
    save_settings(get_settings().data_dir, changes={"upper": upper, "lower": lower})
    forget_settings()
    st.toast(words("thresholds_saved"), icon=":material/check:")
