"""Backups hold what the person may want back, name what they do not hold, and are checked on the way back."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.testing import command, make_brain, run_once
from tests.support.commands import Shell, do, problems_of

pytestmark = pytest.mark.slow

SECRET = "Rosalind hides emeralds under the old willow."


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    for name, text in {
        "one": "I live in Portland.",
        "two": SECRET,
        "three": "---\nprivate: true\n---\nI owe Tom.",
    }.items():
        (brain.root / f"inbox/{name}.md").write_text(text + "\n")
    run_once(brain)
    yield brain
    brain.close()


def back_up(brain: Brain, folder: Path) -> dict[str, Any]:
    """Make a backup and return what is told of it."""
    made: dict[str, Any] = do(brain, "backup", str(folder), "--json").json
    return made


def place(made: dict[str, Any]) -> Path:
    return Path(made["backup"]["folder"])


def held(made: dict[str, Any]) -> dict[str, bytes]:
    folder = place(made) / "brain"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_holds_the_brain_and_names_what_it_does_not(brain: Brain, tmp_path: Path) -> None:
    """Private files and files of any name are in it; off the record neither a prompt nor its answer, beside no note."""
    (brain.root / "inbox/off.md").write_text("---\nremember: false\n---\nHush.\n")
    run_once(brain)
    strange = ["a\nb.md", "back\\slash.md", os.fsdecode(b"\xff.md"), "copy (conflicted copy).md"]
    for name in strange:
        (brain.root / "inbox" / name).write_text("Mine.\n")
    (brain.root / "inbox/link.md").symlink_to("/etc/hostname")
    (brain.root / "inbox/empty/folder").mkdir(parents=True)
    (brain.root / "vault").mkdir()
    made = back_up(brain, tmp_path / "backups")
    assert {*made["off_record"]} == {"inbox/off.md", "inbox/off.response.md"}
    assert (["inbox/link.md"], []) == (made["links"], made["unreadable"])
    assert "vault" in made["beside"]
    assert not any(b"Hush" in content for content in held(made).values())
    assert b"I owe Tom." in held(made)["inbox/three.md"]
    assert {f"inbox/{name}" for name in strange} <= held(made).keys()
    command = ["sha256sum", "--quiet", "-c", "../SHA256SUMS"]
    assert 0 == subprocess.run(command, cwd=place(made) / "brain", check=False).returncode
    into = tmp_path / "restored"
    do(brain, "restore", str(place(made)), "--into", str(into))
    assert (into / "inbox/empty/folder").is_dir()
    assert held(made) == {
        path.relative_to(into).as_posix(): path.read_bytes() for path in into.rglob("*") if path.is_file()
    }


def test_a_restored_brain_goes_on(brain: Brain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the place where the lost one lay: journals whole, undo works, and no commit of the lost one is carried on."""
    made = back_up(brain, tmp_path / "backups")
    (brain.root / "inbox/later.md").write_text("Said after the backup.\n")
    run_once(brain)
    brain.close()
    brain.root.rename(tmp_path / "lost")
    restored = Shell(capsys)("restore", str(place(made)), "--into", str(tmp_path / "brain"), "--json").json
    assert restored["state"] is not None
    again = Brain(tmp_path / "brain")
    assert [] == problems_of(again)
    assert [] == again.observed.adopt()
    again.close()
    again = Brain(tmp_path / "brain")
    events = [event.id for event in again.journal.events()]
    run_once(again)
    assert events == [event.id for event in again.journal.events()][: len(events)]
    assert not (again.root / "inbox/later.md").exists()
    do(again, "undo", next(again.journal.events(kinds={"exchange-reflected"}, reverse=True)).id)
    again.close()


def test_a_backup_that_shares_files_with_the_one_before_is_restored(brain: Brain, tmp_path: Path) -> None:
    """Earlier versions made hard links of what had not changed: such a backup is a whole one too."""
    first, made = (place(back_up(brain, tmp_path / "backups")) for _ in range(2))
    files = [path.relative_to(made) for path in (made / "brain").rglob("*") if path.is_file()]
    for path in files:
        if (first / path).exists() and (first / path).read_bytes() == (made / path).read_bytes():
            (made / path).unlink()
            (made / path).hardlink_to(first / path)
    about = json.loads((made / "backup.json").read_text())
    (made / "backup.json").write_text(json.dumps(about | {"format": 1, "begun_ns": 1_760_000_000_000_000_000}))
    into = tmp_path / "restored"
    do(brain, "restore", str(made), "--into", str(into))
    assert {*files} == {Path("brain") / path.relative_to(into) for path in into.rglob("*") if path.is_file()}


def test_an_interrupted_backup_is_made_anew(brain: Brain, tmp_path: Path) -> None:
    """What a killed run left is no backup and gets into none."""
    part = tmp_path / "backups/.brainiac-backup"
    (part / "brain/inbox").mkdir(parents=True)
    (part / "brain/inbox/one.md").write_text("Half")
    (part / "brain/inbox/never.md").write_text("Mine.")
    assert "not finished" in command(brain, "restore", str(tmp_path / "backups")).err
    made = back_up(brain, tmp_path / "backups")
    assert b"I live in Portland.\n" == held(made)["inbox/one.md"]
    assert "inbox/never.md" not in held(made)
    assert not part.exists()


def test_a_purge_is_followed_by_the_next_backup_and_the_earlier_ones_are_named(brain: Brain, tmp_path: Path) -> None:
    """No word of what was purged is in the next; the one before has it still, and is named for deletion."""
    first = back_up(brain, tmp_path / "backups")
    assert any(b"emeralds" in content for content in held(first).values())
    do(brain, "forget", "emeralds under the old willow", "--purge", "--yes")
    (brain.root / "inbox/two.md").unlink(missing_ok=True)
    made = back_up(brain, tmp_path / "backups")
    assert not any(b"emeralds" in content for content in held(made).values())
    assert [str(place(first))] == made["outdated"]


def test_what_cannot_be_is_refused_and_nothing_is_changed(brain: Brain, tmp_path: Path) -> None:
    """Places for backups and for restored brains that would mix, be lost, or overwrite."""
    made = place(back_up(brain, tmp_path / "backups"))
    other = make_brain(tmp_path / "other")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("Mine.\n")
    for store, folder in (
        (brain, brain.root / "inbox/backups"),
        (brain, made),
        (brain, full),
        (other, tmp_path / "backups"),
    ):
        assert 1 == command(store, "backup", str(folder)).code
    for into in (full, made / "new", brain.root / "inbox/new", full / "mine.txt"):
        assert 1 == command(brain, "restore", str(made), "--into", str(into)).code
    assert ["mine.txt"] == os.listdir(full)
    other.close()


def test_damage_is_named_and_not_restored(brain: Brain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed byte, a lost file, a list that leads elsewhere; without --into the backups are listed and checked."""
    shell = Shell(capsys, str(brain.root))
    told = shell("backup", str(tmp_path / "backups"))
    assert "private pages too" in told.out
    assert "brainiac restore" in told.out
    shell = Shell(capsys)
    (made,) = (path for path in (tmp_path / "backups").iterdir() if path.is_dir())
    assert "whole" in shell("restore", str(tmp_path / "backups")).out
    (made / "brain/inbox/one.md").write_text("I live in Seatttle\n")
    (made / "brain/inbox/two.md").unlink()
    refused = shell("restore", str(tmp_path / "backups"), "--into", str(tmp_path / "new"))
    assert 1 == refused.code
    assert all(part in refused.err for part in ("inbox/one.md", "inbox/two.md", "nothing was restored"))
    assert not (tmp_path / "new").exists()
    assert 1 == shell("restore", str(tmp_path / "backups")).code
    sums = made / "SHA256SUMS"
    sums.write_bytes(sums.read_bytes().replace(b"inbox/one.md", b"../../one.md"))
    refused = shell("restore", str(made), "--into", str(tmp_path / "new"))
    assert f"error: {made.name}/SHA256SUMS is missing or damaged" in " ".join(refused.err.split())
    assert "no backup" in shell("restore", str(tmp_path)).err


def test_a_pipe_or_link_in_a_backup_is_named_and_not_waited_for(
    brain: Brain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence for each, whether the backup is checked or restored."""
    made = place(back_up(brain, tmp_path / "backups"))
    pipe, link = made / "brain/inbox/one.md", made / "brain/inbox/two.md"
    pipe.unlink()
    os.mkfifo(pipe)
    link.unlink()
    link.symlink_to(brain.root / "inbox/two.md")
    shell = Shell(capsys)
    for words in ((), ("--into", str(tmp_path / "new"))):
        refused = shell("restore", str(tmp_path / "backups"), *words)
        assert 1 == refused.code
        told = " ".join((refused.out + refused.err).split())
        assert all(f"inbox/{name}.md: missing, or no file" in told for name in ("one", "two"))
    assert not (tmp_path / "new").exists()


def test_a_list_that_leads_out_of_the_backup_is_refused(brain: Brain, tmp_path: Path) -> None:
    """Also where whoever made it made its checksum fit."""
    made = place(back_up(brain, tmp_path / "backups"))
    sums = made / "SHA256SUMS"
    listed = json.loads((made / "backup.json").read_text())["sums"]
    for path in (b"../../../out.md", b"/out.md", b"inbox/../../../out.md"):
        content = sums.read_bytes().replace(b"inbox/one.md", path)
        changed = made.with_name(f"hostile-{len(path)}")
        made.rename(changed)
        (changed / "SHA256SUMS").write_bytes(content)
        about = changed / "backup.json"
        about.write_text(about.read_text().replace(listed, hashlib.sha256(content).hexdigest()))
        assert "leads outside" in command(brain, "restore", str(changed), "--into", str(tmp_path / "new")).err
        (changed / "SHA256SUMS").write_bytes(content.replace(path, b"inbox/one.md"))
        about.write_text(about.read_text().replace(hashlib.sha256(content).hexdigest(), listed))
        changed.rename(made)
    assert not (tmp_path / "new").exists()
