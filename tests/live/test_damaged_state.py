"""Whatever becomes of a file in the state or cache folder, the brain goes on: nothing of it is the only copy."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.events import create
from brainiac.testing import command, run_once
from tests.support.living import events_of, living_brain, places_of, trusted, unfolded

CONFIG = "inbox: {settle_ms: 20, typing_seconds: 1}\nrecall: {embedder: none}\n"
STATE = ("state.db", "state.db-wal", "state.db-shm")
KEPT = ("trust.json", "device_id", "../../device_id")
LOCKS = ("commit.lock", "daemon.lock", "short_term.lock", "promotion.lock", "organization.lock")
CACHE = ("index/pages.db",)  # vectors: their own test
PLUGIN = (
    "from brainiac import hookimpl\n\n@hookimpl\ndef startup(brain):\n    brain.record('plugin-started', by='own')\n"
)
DAMAGES = ("random", "random pages", "truncated", "emptied", "folder")


@dataclass(frozen=True)
class Used:
    """A brain that was used, and what its machine keeps of it.

    Attributes:
        root: The brain.
        kept: A copy of it and of its machine's folders, to begin each case with.
    """

    root: Path
    home: Path
    kept: Path

    def restore(self) -> Any:
        """Put everything as it was."""
        for folder in (self.root, self.home):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.kept / folder.name, folder)
        return places_of(self.root)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Used:
    """Make a brain that has answered, learned, searched and trusted, with a commit that is not at its checkpoint."""
    folder = tmp_path_factory.mktemp("used")
    found = Used(folder / "brain", folder / "home", folder / "kept")
    with pytest.MonkeyPatch.context() as patch:
        point_to(found.home, patch)
        living_brain(found.root, CONFIG)
        trusted(found.root, "own", PLUGIN)
        (found.root / "inbox/first.md").write_text("I live in Portland.")
        brain = Brain(found.root)
        run_once(brain)
        for name in ("promotion", "organization"):
            (brain.places.state / f"{name}.lock").touch()
        brain.database.keep("running calls", "x", "[false, 0.5, 4000000000.0]")
        assert brain.recall.search("Portland")
        brain.recall.close()
        del brain.__dict__["recall"]
        brain.commit("note-made", by="test", changes=[create("memory/long_term/concrete/lily.md", "# Lily\n\n- A.\n")])
        for each in (found.root, found.home):
            shutil.copytree(each, found.kept / each.name)
        brain.close()
    return found


def point_to(home: Path, patch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        patch.setenv(variable, str(home / variable.lower()))


def damage(path: Path, how: str) -> None:
    """Damage a file; the same way each time."""
    content, chance = path.read_bytes(), random.Random(path.name)
    if how == "random":
        path.write_bytes(chance.randbytes(max(len(content), 100)))
    elif how == "random pages":  # the header stays valid
        head = len(content) // 4
        path.write_bytes(content[:head] + chance.randbytes(len(content) - head))
    elif how == "folder":
        path.unlink()
        path.mkdir()
    else:
        os.truncate(path, len(content) // 2 if how == "truncated" else 0)


def cases() -> Iterator[tuple[str, str, str]]:
    for name in (*STATE, *KEPT):
        yield from (("state", name, how) for how in DAMAGES)
    yield from (("state", name, "folder") for name in LOCKS)
    for name in CACHE:
        yield from (("cache", name, how) for how in DAMAGES if how != "folder" or name == "index/pages.db")


def test_every_file_of_the_state_and_the_cache_has_its_case(used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file must be damaged here too."""
    point_to(used.home, monkeypatch)
    places = used.restore()
    known = {path for pattern in (*STATE, *KEPT, *LOCKS) for path in places.state.glob(pattern)}
    known |= {path for pattern in CACHE for path in places.cache.glob(pattern)}
    known = {path.resolve() for path in known}
    standing = {path.resolve() for path in used.home.rglob("*") if path.is_file()}
    assert set() == {str(path) for path in standing - known}


@pytest.mark.parametrize(("folder", "name", "how"), list(cases()))
def test_a_damaged_file_costs_no_work_and_no_word(
    used: Used, folder: str, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing raises; what was known is found, a new prompt is answered and noted, and the journal goes on."""
    point_to(used.home, monkeypatch)
    places = used.restore()
    paths = list(getattr(places, folder).glob(name))
    assert paths
    for path in paths:
        damage(path, how)
    (used.root / "inbox/second.md").write_text("My dog is called Lily.")
    with opened(used.root) as brain:
        told = command(brain, "status", "--json").json["problems"]
        assert [] == [problem for problem in told if str(places.state) not in problem]
        assert "Portland" in searched(brain, "Portland")
    with opened(used.root) as brain:
        assert (1, 1) == ((outcome := run_once(brain)).answered, outcome.reflected)
        assert "Lily" in searched(brain, "Lily")
        found = command(brain, "doctor", "--json").json["problems"]
        problems = [(problem["path"], problem["what"].split(" uuid")[0]) for problem in found]
        assert {"lacks", "is missing"} >= {what for path, what in problems if str(places.state) not in path}
    assert 2 == (used.root / "memory/short_term.md").read_text().count("<!-- event: ")
    device = (used.kept / "home/xdg_state_home/brainiac/device_id").read_text().strip()
    assert {device} == {path.name for path in (used.root / "logs/journal").iterdir()} - {"blobs"}
    assert 2 == len(events_of(used.root, "prompt-answered"))
    assert [] == unfolded(used.root)
    if name == "state.db" and how in ("random", "random pages", "folder"):
        assert any("state.db.damaged" in path for path, _ in problems)


@contextmanager
def opened(root: Path) -> Iterator[Brain]:
    brain = Brain(root)
    try:
        yield brain
    finally:
        brain.close()


def searched(brain: Brain, words: str) -> str:
    return "\n".join(hit.text for hit in brain.recall.search(words))
