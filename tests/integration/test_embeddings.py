from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from config import load_settings
from embeddings import EMBEDDER_DIR, EmbeddedEmbedder, build_embedder, chinese_share
from errors import ModelError


@pytest.fixture(scope="module")
def embedder() -> EmbeddedEmbedder:
    return EmbeddedEmbedder(threads=2)


def test_vectors_are_unit_length_and_of_the_stated_dimension(embedder: EmbeddedEmbedder) -> None:
    vectors = embedder.embed_passages(["The pump stops.", "水泵停止。", ""])
    assert vectors.shape == (3, embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How long does the warranty last?", 0),
        ("保修期有多长？", 0),
        ("Where should the device be stored?", 1),
        ("设备应该存放在哪里？", 1),
        ("設備應該存放在哪裡？", 1),
        ("Who founded the company?", 2),
        ("公司的创始人是谁？", 2),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_question_is_nearest_to_what_answers_it_in_both_languages(
    embedder: EmbeddedEmbedder, question: str, right: int, language: str
) -> None:
    passages = {
        "en": [
            "The manufacturer guarantees the product for two years after purchase.",
            "Keep the appliance in a dry place below forty degrees.",
            "The firm was started in 1987 by Lin Tao in Shenzhen.",
        ],
        "zh": [
            "厂家对产品提供自购买之日起两年的质保。",
            "请将设备放在四十度以下的干燥处。",
            "公司由林涛于1987年在深圳创办。",
        ],
    }
    scores = embedder.embed_queries([question]) @ embedder.embed_passages(passages[language]).T
    assert int(scores[0].argmax()) == right


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (
            "How long may annual leave be carried over?",
            "未休完的年假可以结转至次年三月底。",
            [
                "The pump must be switched off before cleaning.",
                "Visitors sign in at the front desk.",
                "Tickets cost 5 USD.",
            ],
        ),
        (
            "水泵多久需要检修一次？",
            "The pump is to be inspected every six months.",
            ["员工每年享有十五天年假。", "访客须在前台登记。", "门票五元一张，儿童免费。"],
        ),
    ],
)
def test_the_right_text_in_the_other_language_beats_wrong_ones_in_the_question_s_own(
    embedder: EmbeddedEmbedder, question: str, right: str, wrong: list[str]
) -> None:
    scores = embedder.embed_queries([question]) @ embedder.embed_passages([right, *wrong]).T
    assert int(scores[0].argmax()) == 0


def test_the_share_of_chinese_counts_a_character_like_a_word() -> None:
    assert chinese_share("水泵") == 1.0
    assert chinese_share("two words 两字") == 0.5
    assert chinese_share("1, 2, 3") == 0.5


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: EmbeddedEmbedder) -> None:
    texts = ["short", "水泵" * 200, "a sentence of middling length about boats", "短"]
    together = embedder.embed_passages(texts)
    alone = np.concatenate([embedder.embed_passages([text]) for text in texts])
    assert np.array_equal(together, alone)


def test_a_text_beyond_the_model_is_cut_and_progress_reaches_the_total(embedder: EmbeddedEmbedder) -> None:
    calls: list[tuple[int, int]] = []
    texts = ["word " * 3000, "word " * 2000, *(f"text {number}" for number in range(9)), "text 1"]
    vectors = embedder.embed_passages(texts, progress=lambda done, total: calls.append((done, total)))
    assert np.array_equal(vectors[0], vectors[1])
    assert np.array_equal(vectors[3], vectors[11])
    assert calls[-1] == (12, 12)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_what_progress_raises_stops_the_work(embedder: EmbeddedEmbedder) -> None:
    class StoppedError(RuntimeError):
        pass

    def stop(done: int, total: int) -> None:
        raise StoppedError(f"{done}/{total}")

    with pytest.raises(StoppedError):
        embedder.embed_passages([f"text {number}" for number in range(200)], progress=stop)
    assert embedder.embed_passages(["still works"]).shape == (1, embedder.dimension)


def test_a_question_asked_again_is_not_embedded_again(
    embedder: EmbeddedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embedder.embed_queries(["Is this remembered?", "And this?"])
    monkeypatch.setattr(embedder, "_session", None)
    assert np.array_equal(embedder.embed_queries(["And this?", "Is this remembered?"]), first[::-1])
    with pytest.raises(AttributeError):
        embedder.embed_queries(["Never asked before"])


def test_no_texts_give_no_vectors(embedder: EmbeddedEmbedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.dimension)
    assert embedder.embed_queries([]).shape == (0, embedder.dimension)


def test_threads_share_one_embedder(embedder: EmbeddedEmbedder) -> None:
    expected = embedder.embed_queries([f"question {number}" for number in range(8)])
    fresh = EmbeddedEmbedder(threads=2)
    found: dict[int, np.ndarray] = {}

    def ask(number: int) -> None:
        found[number] = fresh.embed_queries([f"question {number}"])[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(np.array([found[number] for number in range(8)]), expected)


@pytest.mark.parametrize("damage", ["missing", "changed", "no-json"])
def test_a_damaged_model_is_named_with_what_to_do(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "embedder"
    folder.mkdir()
    shutil.copy(EMBEDDER_DIR / "model.json", folder)
    shutil.copy(EMBEDDER_DIR / "tokenizer.json", folder)
    shutil.copy(EMBEDDER_DIR / "language_shifts.json", folder)
    (folder / "model.onnx").write_bytes(b"not a model")
    if damage == "missing":
        (folder / "model.onnx").unlink()
    elif damage == "no-json":
        (folder / "model.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        EmbeddedEmbedder(folder)
    assert caught.value.values["name"] == "embedder"
    assert "training/embedder.py" in caught.value.hint


def test_the_settings_choose_the_embedder_and_share_one_copy() -> None:
    settings = load_settings()
    assert build_embedder(settings) is build_embedder(settings)
    described = json.loads((EMBEDDER_DIR / "model.json").read_text(encoding="utf-8"))
    assert build_embedder(settings).name == described["name"]


def test_the_shipped_model_is_small() -> None:
    assert sum(path.stat().st_size for path in EMBEDDER_DIR.iterdir()) < 60_000_000
