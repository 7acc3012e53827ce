"""Whatever is done to the files between builds, the store ends up as a fresh build of what is there."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogue import Catalogue
from knowledge_base import KnowledgeBase
from tests.integration.helpers_store import (
    SENTENCES,
    LineLoader,
    WordEmbedder,
    check_complete,
    open_base,
    settings_at,
    stored_ids,
    write_pdf,
)

NAMES = st.sampled_from(["a.pdf", "b.pdf", "章 节.pdf"])
STEPS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("copy"), NAMES, NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("delete"), NAMES, st.none()),
    st.tuples(st.just("break"), NAMES, st.none()),
    st.tuples(st.just("build"), st.none(), st.booleans()),
)


def apply(base: KnowledgeBase, step: tuple[str, str | None, object]) -> None:
    kind, name, what = step
    path = base.files_dir / (name or "")
    match kind:
        case "write":
            write_pdf(path, pages=[[sentence.format(n=what)] for sentence in SENTENCES])
        case "copy" if path.is_file() and what != name:
            shutil.copy(path, base.files_dir / str(what))
        case "rename" if path.is_file():
            path.rename(base.files_dir / str(what))
        case "remove":
            path.unlink(missing_ok=True)
        case "delete" if path.is_file():
            base.delete(path.name)
        case "break":
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(b"%PDF-1.7 torn")
        case "build":
            build(base, rebuild=bool(what))


def build(base: KnowledgeBase, *, rebuild: bool = False) -> None:
    base.build(rebuild=rebuild or not any(base.files_dir.glob("*.pdf")))
    check_complete(base)


def check_steps(steps: list[tuple[str, str | None, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder, open_base(Path(folder)) as base:
        base.files_dir.mkdir()
        for step in steps:
            apply(base, step)
        build(base)
        fresh_settings = settings_at(Path(folder), data_dir=Path(folder) / "fresh")
        with KnowledgeBase(fresh_settings, embedder=WordEmbedder(), loader=LineLoader()) as fresh:
            fresh.build()
            assert stored_ids(fresh) == stored_ids(base)
            listed = [(each.file, each.status, each.chunks, each.same_as) for each in base.documents()]
            assert listed == [(each.file, each.status, each.chunks, each.same_as) for each in fresh.documents()]


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=4, max_size=10))
def test_any_history_ends_as_a_fresh_build(steps: list[tuple[str, str | None, object]]) -> None:
    check_steps(steps)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=4, max_size=20))
def test_any_long_history_ends_as_a_fresh_build(steps: list[tuple[str, str | None, object]]) -> None:
    check_steps(steps)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_question_breaks_the_lexical_index(terms: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Catalogue(Path(folder) / "catalogue.sqlite3")
        assert catalogue.lexical(terms, limit=3) == []
        catalogue.close()
