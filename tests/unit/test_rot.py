"""What the doctor says grows old, found without a model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac.events import new_id
from brainiac.testing import command
from tests.support.commands import do
from tests.support.organized import NOW, TOP, Scene, make_scene

HOME = f"{TOP}/concrete/home.md"
KEYS = """\
created_at: 2026-01-01T00:00:00Z
updated_at: 2026-01-01T00:00:00Z
tags: []
emotion: neutral
reinforcement_count: 1
"""
OTHER = "\n# Other\n\n- Is known.\n\nSee [home](home.md).\n"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain", config="\norganization: {max_entries: 5}\n")
    yield made
    made.brain.close()


def found(scene: Scene) -> list[tuple[str, str, str]]:
    rot = command(scene.brain, "doctor", "--json").json["rot"]
    return [(one["kind"], one["path"], one["what"]) for one in rot]


def home(scene: Scene, statements: str) -> None:
    """Put a page with statements there, and another one that links to it; both are used."""
    for path, text in ((HOME, f"\n# Home\n\n{statements}"), (f"{TOP}/concrete/other.md", OTHER)):
        file = scene.brain.tree.absolute(path)
        file.write_text(f"---\nuuid: {new_id()}\n{KEYS}---\n{text}")
        os.utime(file, (time.time() - 60,) * 2)  # a file of this moment may be half written
    scene.brain.observed.adopt()


def test_a_sound_memory_has_no_rot(scene: Scene) -> None:
    """Statements that hold together, pages that are linked, folders within the limit."""
    home(scene, "- User lives in Portland. ^aaaa\n- User works at Google. ^bbbb\n- User has a dog named Rex. ^cccc\n")
    assert [] == found(scene)


def test_history_that_names_nothing(scene: Scene) -> None:
    """A retired statement says what replaced it, and that is not on the page: it is listed, and is no fault."""
    retired = "- ~~User lives in Portland.~~ (until 2026-01-01; replaced by ^zzzz) ^bbbb\n"
    home(scene, f"- User lives in Seattle. ^aaaa\n\n## History\n\n{retired}")
    assert [("superseded", HOME, "“User lives in Portland.” ^bbbb was replaced by ^zzzz, which is not there")] == found(
        scene
    )
    told = do(scene.brain, "doctor")
    assert "Nothing is wrong." in told.out
    assert "Grows old (superseded, 1):" in told.out


def test_orphans_uncited_pages_and_overgrown_folders(scene: Scene) -> None:
    """Nobody links to it; nobody ever cited it; more entries than a person can look over."""
    old = scene.page("concrete/past/old", days_ago=300)
    crowd = [scene.page(f"skills/{number}", links=(old,)) for number in range(6)]
    lonely = scene.page("concrete/lonely")
    scene.brain.observed.adopt()
    assert [
        ("orphan", lonely, "no page links to it, and it links to none"),
        ("uncited", old, "was never cited, and not used since 2025-08-05"),
        ("overgrown", f"{TOP}/skills", f"holds {len(crowd)} entries, 5 are meant"),
    ] == found(scene)
    scene.log("CITE", old, at=NOW)
    assert "uncited" not in {rot[0] for rot in found(scene)}
