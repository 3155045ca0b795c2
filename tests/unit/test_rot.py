"""What the doctor says grows old, found without a model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from brainiac_plugins.organization.usage import find_stale

from brainiac.clock import iso
from brainiac.events import create, new_id
from brainiac.formats.page import MemoryDocument, new_memory
from brainiac.storage.statements import text_hash
from tests.support.commands import Shell
from tests.support.organized import NOW, TOP, Scene, make_scene

HOME = f"{TOP}/concrete/home.md"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain", config="\norganization: {max_entries: 5}\n")
    yield made
    made.brain.close()


def found(scene: Scene) -> list[tuple[str, str, str]]:
    return [(rot.kind, rot.path, rot.what) for rot in find_stale(scene.brain)]


def home(scene: Scene, *statements: str, since: tuple[str, ...] = ()) -> None:
    """Put a page with statements there, as Promotion does when it knows since when each holds."""
    uuid = new_id()
    page = new_memory("Home", uuid=uuid, now=iso(NOW), statements=statements)
    page = str(MemoryDocument(page).set_meta(reinforcement_count=1))
    held = MemoryDocument(page).memory.statements
    records = [
        {"page": uuid, "block": one.block_id, "hash": text_hash(one.text), "since": day}
        for one, day in zip(held, since, strict=False)
    ]
    link = f'\nSee [itself](home.md "uuid:{uuid}").\n'
    changes = [
        create(HOME, page),
        create(f"{TOP}/concrete/other.md", new_memory("Other", uuid=new_id(), now=iso(NOW), body=link)),
    ]
    scene.brain.commit("memory-promoted", by="promotion", changes=changes, data={"statements": records})


def test_a_sound_memory_has_no_rot(scene: Scene) -> None:
    """Statements that hold together, pages that are linked, folders within the limit."""
    home(scene, "User lives in Portland.", "User works at Google.", "User has a dog named Rex.")
    assert [] == found(scene)


def test_history_that_names_nothing(scene: Scene) -> None:
    """A retired statement says what replaced it, and that is not on the page."""
    home(scene, "User lives in Seattle.", "User lives in Portland.")
    text = scene.brain.read_text(HOME) or ""
    document = MemoryDocument(text)
    gone = document.memory.statements[1].block_id
    scene.brain.tree.absolute(HOME).write_text(str(document.retire(gone, "2026-01-01", "zzzz")))
    assert [("superseded", f"“User lives in Portland.” ^{gone} was replaced by ^zzzz, which is not there")] == [
        (rot[0], rot[2]) for rot in found(scene)
    ]


def test_orphans_uncited_pages_and_overgrown_folders(scene: Scene) -> None:
    """Nobody links to it; nobody ever cited it; more entries than a person can look over."""
    old = scene.page("concrete/past/old", days_ago=300)
    crowd = [scene.page(f"skills/{number}", links=(old,)) for number in range(6)]
    lonely = scene.page("concrete/lonely")
    assert [
        ("orphan", lonely, "no page links to it, and it links to none"),
        ("uncited", old, "was never cited, and not used since 2025-08-05"),
        ("overgrown", f"{TOP}/skills", f"holds {len(crowd)} entries, 5 are meant"),
    ] == found(scene)
    scene.log("CITE", old, at=NOW)
    assert "uncited" not in {rot[0] for rot in found(scene)}


def test_the_doctor_tells_of_it_and_is_content(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Rot is no fault of a file: it is listed, and the exit code stays 0."""
    home(scene, "User lives in Portland.", "User lives in Seattle.")
    text = scene.brain.read_text(HOME) or ""
    gone = MemoryDocument(text).memory.statements[1].block_id
    scene.brain.tree.absolute(HOME).write_text(str(MemoryDocument(text).retire(gone, "2026-01-01", "zzzz")))
    os.utime(scene.brain.tree.absolute(HOME), (time.time() - 60,) * 2)  # a file of this moment may be half written
    scene.brain.observed.adopt()
    shell = Shell(capsys, str(scene.brain.root))
    told = shell("doctor")
    assert 0 == told.code, told.out
    assert "Nothing is wrong." in told.out
    assert "Grows old (superseded, 1):" in told.out
    assert ["superseded"] == [rot["kind"] for rot in shell("doctor", "--json").json["rot"]]
