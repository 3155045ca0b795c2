"""An organization interrupted at disk operations, and raced by a person: nothing is lost, and it comes to its end."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from brainiac_plugins.organization.run import organize
from brainiac_plugins.organization.upkeep import Upkeep

from brainiac import Brain
from brainiac.clock import ManualClock
from tests.support.kernel import CountingDisk, Crash, Kernel, everything, on_disk
from tests.support.organized import NOW, SMALL, Constructed, Scene, construct, expected_places, make_scene


class Rounds:
    """The same brain again and again, each time with another disk.

    Args:
        folder: An empty one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        scene = make_scene(folder / "brain", config=SMALL)
        self.made: Constructed = construct(scene, crowd=21, unused=2)
        Upkeep(scene.brain).tend()
        self.uuids, self.before = scene.uuids, scene.tree()
        scene.brain.close()
        self._state = scene.brain.places.device
        shutil.copytree(folder / "brain", folder / "kept/brain")
        shutil.copytree(self._state, folder / "kept/state")

    def put_back(self) -> None:
        """Put the brain and its state back to where every round begins."""
        for name, target in (("brain", self._folder / "brain"), ("state", self._state)):
            shutil.rmtree(target)
            shutil.copytree(self._folder / "kept" / name, target)

    def open(self, disk: CountingDisk | None = None) -> Scene:
        """Open the brain as a fresh process would."""
        brain = Brain(self._folder / "brain", clock=ManualClock(NOW))
        if disk is not None:
            on_disk(brain, disk)
        return Scene(brain, brain.clock, self.uuids)

    def count(self) -> int:
        """Return how many disk operations an organization takes."""
        self.put_back()
        disk = CountingDisk()
        scene = self.open(disk)
        organize(scene.brain)
        scene.brain.committer.database.close()
        return len(disk.done)

    def crash(self, number: int, how: str) -> bool:
        """Crash at one operation, recover, check, and organize again; return whether the commit had been made."""
        self.put_back()
        broken = self.open(CountingDisk(number, how))
        with pytest.raises(Crash):
            organize(broken.brain)
        broken.brain.committer.database.close()
        scene = self.open()
        brain = scene.brain
        texts = everything(kernel_of(brain))
        for path, content in self.before.items():
            assert any(content in text for text in texts), (number, path)
        brain.committer.recover()
        is_done = next(brain.journal.events(kinds={"memory-organized"}), None) is not None
        if is_done:
            assert expected_places(self.made) == scene.pages(), number
        else:
            assert self.before == scene.tree(), number
        assert [] == brain.observed.adopt(), number
        assert kernel_of(brain).tracked() == kernel_of(brain).folded(), number
        organize(brain)
        Upkeep(brain).tend()
        assert expected_places(self.made) == scene.pages(), number
        assert [] == scene.problems(), number
        assert b"" == scene.tree()["logs/access.log"]
        brain.committer.database.close()
        return is_done


def kernel_of(brain: Brain) -> Kernel:
    return Kernel(brain)


@pytest.mark.parametrize("how", ["before", "torn", "after"])
def test_a_crash_leaves_all_or_nothing_and_the_next_run_ends_it(tmp_path: Path, how: str) -> None:
    """A sample of the operations; `benchmarks/organization.py` takes every one."""
    rounds = Rounds(tmp_path)
    total = rounds.count()
    assert [how == "after", True, True] == [rounds.crash(number, how) for number in (1, total // 2, total - 3)]


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_rename(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.swp")
    draft.write_text(text)
    draft.rename(path)


def race(scene: Scene, paths: list[str], save: Callable[[Path, str], None], seed: int) -> dict[str, str]:
    """Organize again and again while a person saves pages as an editor does; return the last line saved by path."""
    saved: dict[str, str] = {}
    is_over = threading.Event()
    chance = random.Random(seed)

    def person() -> None:
        buffers = {path: scene.brain.tree.absolute(path).read_text() for path in paths}
        while not is_over.is_set():
            path = chance.choice(paths)
            file = scene.brain.tree.absolute(path)
            if not file.exists():  # an editor says so, and the person opens it where it is now
                continue
            line = f"Saved {len(saved)} {chance.random()}."
            buffers[path] += f"\n{line}\n"
            save(file, buffers[path])
            saved[path] = line
            time.sleep(chance.random() * 0.01)

    editor = threading.Thread(target=person)
    editor.start()
    try:
        for _ in range(3):
            try:
                organize(scene.brain)
            except Exception as error:
                if type(error).__name__ != "ConflictError":
                    raise
    finally:
        is_over.set()
        editor.join()
    return saved


@pytest.mark.parametrize("save", [in_place, by_rename])
def test_no_save_is_lost_to_a_race(tmp_path: Path, save: Callable[[Path, str], None]) -> None:
    """A person keeps saving pages that are moved, split, archived or relinked: each last save stands in the tree."""
    scene = make_scene(tmp_path / "brain", config=SMALL)
    made = construct(scene, crowd=24, unused=2)
    Upkeep(scene.brain).tend()
    paths = [*made.frequent, *made.pair, *made.unused, *made.crowd[:4], *made.others[:2]]
    saved = race(scene, paths, save, seed=1)
    scene.advance(20)
    scene.brain.observed.adopt()
    scene.brain.committer.check_displaced()
    standing = b"\n".join(scene.tree().values()).decode()
    assert saved
    assert [] == [path for path, line in saved.items() if line not in standing]
    scene.brain.close()
