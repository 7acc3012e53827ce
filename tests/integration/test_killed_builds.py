"""A build killed with SIGKILL anywhere leaves no half file, no duplicate and no orphan after the next build."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.helpers_killed_build import run
from tests.integration.helpers_store import (
    check_committed,
    check_complete,
    find,
    open_base,
    stored_ids,
    write_library,
    write_pdf,
)

FAST = 5
SLOW = 50


@dataclass(frozen=True)
class Scene:
    """A library in the middle of its life: one file replaced, one renamed, one removed, one added since the build."""

    folder: Path
    writes: int
    writes_of_rebuild: int
    ids: set[str]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("scene")
    with open_base(folder) as base:
        write_library(base.files_dir, files=4)
        base.build()
        (base.files_dir / "file-0000.pdf").unlink()
        (base.files_dir / "file-0001.pdf").rename(base.files_dir / "renamed.pdf")
        write_pdf(base.files_dir / "file-0002.pdf", pages=[["A lighthouse keeper writes letters."], ["He posts none."]])
        write_pdf(base.files_dir / "added.pdf", pages=[["Barges carry slate down the canal."]])
    counts = []
    for rebuild in (False, True):
        copy = tmp_path_factory.mktemp("dry")
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        assert run(copy, rebuild=rebuild) == 0
        counts.append(int((copy / "writes").read_text(encoding="utf-8")))
        with open_base(copy) as base:
            check_complete(base)
            ids = stored_ids(base)[0]
    return Scene(folder, counts[0], counts[1], ids)


def kill_and_check(scene: Scene, *, folder: Path, at: int, rebuild: bool) -> None:
    shutil.copytree(scene.folder, folder, dirs_exist_ok=True)
    assert run(folder, at=at, rebuild=rebuild) == -9
    with open_base(folder) as base:
        check_committed(base)
        assert find(base, "recipe barley leeks")
        base.build(rebuild=rebuild)
        check_complete(base)
        assert stored_ids(base)[0] == scene.ids
        assert {each.status for each in base.documents()} == {"indexed"}


@pytest.mark.parametrize("number", range(FAST))
def test_build_killed_at_a_write(scene: Scene, tmp_path: Path, number: int) -> None:
    at = 1 + (scene.writes - 1) * number // (FAST - 1)
    kill_and_check(scene, folder=tmp_path, at=at, rebuild=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SLOW))
def test_build_or_rebuild_killed_at_a_random_write(scene: Scene, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    rebuild = chance.random() < 0.5
    at = chance.randint(1, scene.writes_of_rebuild if rebuild else scene.writes)
    kill_and_check(scene, folder=tmp_path, at=at, rebuild=rebuild)


@pytest.mark.slow
def test_build_killed_again_and_again_still_gets_there(scene: Scene, tmp_path: Path) -> None:
    shutil.copytree(scene.folder, tmp_path, dirs_exist_ok=True)
    kills = 0
    while run(tmp_path, at=9, rebuild=True) == -9:
        kills += 1
        with open_base(tmp_path) as base:
            check_committed(base)
        assert kills < 40
    assert kills > 1
    with open_base(tmp_path) as base:
        check_complete(base)
        assert stored_ids(base)[0] == scene.ids
