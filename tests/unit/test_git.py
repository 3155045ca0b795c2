"""Two clones of a brain in git: its merge driver, its settings, and what stands where the driver is not set up."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.history.copies import settle_moved, settle_versions
from brainiac.testing import install_plugin, make_brain
from tests.support.commands import Shell

PAGE = "memory/long_term/concrete/bob.md"
MOVED = "memory/long_term/concrete/robert.md"
TEXT = """\
---
uuid: 0199aaaa-0000-7000-8000-000000000001
updated_at: 2026-11-01T00:00:00Z
tags: [a]
---
# Bob

- Lives in Porto. ^ab12
"""


class Clone:
    """A clone of a repository with a brain in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *arguments: str, is_checked: bool = True) -> int:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, capture_output=True, check=is_checked)
        return done.returncode

    def told(self, *command: str) -> str:
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout

    def commit(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "edited")

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def name_author(patch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        patch.setenv(f"GIT_{role}_NAME", "Ada")
        patch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")


def clones(folder: Path, capsys: pytest.CaptureFixture[str], *, is_set_up: bool) -> tuple[Clone, Clone]:
    """Return two clones of one brain through a bare repository, a page in both."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", folder / "hub"], check=True)
    desk, laptop = Clone(folder / "desk"), Clone(folder / "laptop")
    make_brain(desk.root).close()
    desk.git("init", "-q", "-b", "main")
    desk.git("remote", "add", "origin", os.fspath(folder / "hub"))
    desk.commit(PAGE, TEXT)
    desk.git("push", "-qu", "origin", "main")
    subprocess.run(["git", "clone", "-q", folder / "hub", laptop.root], check=True)
    if is_set_up:
        for clone in (desk, laptop):
            shell = Shell(capsys, str(clone.root))
            assert 0 == shell("git", "setup").code
    return desk, laptop


@pytest.mark.slow
def test_both_clones_merge_to_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Git calls the driver for what both changed: no conflict, nothing lost, and the other way round it is the same."""
    desk, laptop = clones(tmp_path, capsys, is_set_up=True)
    desk.commit(PAGE, TEXT.replace("Porto", "Lisbon").replace("[a]", "[a, b]"))
    laptop.commit(PAGE, TEXT.replace("Porto", "Braga").replace("[a]", "[c]") + "- Has a cat. ^ef56\n")
    for clone, other in ((desk, laptop), (laptop, desk)):
        clone.git("fetch", "-q", os.fspath(other.root), "main:other")
    for clone in (desk, laptop):
        assert 0 == clone.git("merge", "-q", "-m", "merged", "other")
    assert desk.text(PAGE) == laptop.text(PAGE)
    assert all(word in desk.text(PAGE) for word in ("Lisbon", "Braga", "cat", "tags: [b, c]"))


def test_without_the_driver_markers_are_left_and_merged_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attributes do no harm where nothing is set up; while git waits for the person nothing is merged."""
    desk, laptop = clones(tmp_path, capsys, is_set_up=False)
    desk.commit(PAGE, TEXT.replace("Porto", "Lisbon"))
    desk.git("push", "-q")
    laptop.commit(PAGE, TEXT.replace("Porto", "Braga"))
    assert 1 == laptop.git("pull", "-q", "--no-rebase", is_checked=False)
    shell = Shell(capsys, str(laptop.root))
    assert "merge" in shell("status").out
    assert f"{PAGE}: holds conflict markers of git" in (said := shell("doctor").out)
    assert "run `brainiac git setup`" in said
    monkeypatch.setenv("GIT_EDITOR", "true")
    laptop.git("add", "-A")
    laptop.git("commit", "-q", "--no-edit")
    brain = Brain(laptop.root)
    assert 1 == len(settle_versions(brain))
    brain.close()
    assert {"Lisbon", "Braga"} == {word for word in ("Lisbon", "Braga", "<<<<") if word in laptop.text(PAGE)}


def test_the_driver_names_what_both_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Called as git does, it writes the merged text over our version, which the next look names in the review.

    A person's note beside the brain is left to git, and a file in no brain is refused.
    """
    make_brain(tmp_path / "brain").close()
    files = [tmp_path / name for name in ("base", "ours", "theirs")]
    for file, word in zip(files, ("Porto", "Lisbon", "Braga"), strict=True):
        file.write_text(TEXT.replace("Porto", word))
    shell = Shell(capsys, str(tmp_path / "brain"))
    done = shell("merge-driver", *map(str, files), str(tmp_path / "brain" / PAGE))
    assert (0, True) == (done.code, "Lisbon" in files[1].read_text() and "Braga" in files[1].read_text())
    assert "both stand" in done.err
    with closing(Brain(tmp_path / "brain")) as brain:
        (brain.root / PAGE).write_bytes(files[1].read_bytes())
        brain.observed.adopt()
        assert ["markers-merged"] == [event.kind for event in settle_versions(brain)]
        assert "`- Lives in Braga. ^ab12` or `- Lives in Lisbon. ^" in (brain.read_text("memory/review.md") or "")
        assert [] == settle_versions(brain)
    assert 1 == shell("merge-driver", *map(str, files), str(tmp_path / "brain" / "people" / "bob.md")).code
    assert 0 != shell("merge-driver", *map(str, files), str(tmp_path / "a.md")).code


def test_a_page_moved_in_one_clone_and_edited_in_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin concludes the merge, the edit stands at the new path, and no kept text was taken for the page."""
    name_author(monkeypatch)
    desk, laptop = clones(tmp_path, capsys, is_set_up=True)
    with closing(Brain(desk.root)) as brain:
        brain.observed.adopt()
        (desk.root / PAGE).rename(desk.root / MOVED)
        brain.observed.adopt()
    desk.commit("mine.txt", "of no brain")
    desk.git("push", "-q")
    laptop.commit(PAGE, TEXT.replace("Porto", "Lisbon"))
    laptop.git("config", "brainiac.sync", "true")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "laptop-state"))
    with closing(Brain(laptop.root)) as brain:
        install_plugin(brain, PLUGIN)
        brain.plugins.call("quiet_on_any_device", brain=brain, idle_seconds=600.0)
        assert "" == brain.git_operation
        brain.observed.adopt()
        assert ["copy-merged"] == [event.kind for event in settle_moved(brain)]
        assert (True, None) == ("Lisbon" in (brain.read_text(MOVED) or ""), brain.read_text(PAGE))
        assert [digest for digest in brain.journal.blobs.digests() if brain.journal.blobs.get(digest)]


PLUGIN = Path(__file__).parent.parent.parent / "examples/plugins/git_sync.py"


def test_the_plugin_commits_what_was_learned_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One commit when it is quiet, with the new statements as its message; private ones are not named, what the person
    staged stays staged, and a second quiet commits nothing."""
    name_author(monkeypatch)
    brain, clone = make_brain(tmp_path / "brain"), Clone(tmp_path / "brain")
    clone.git("init", "-q", "-b", "main")
    clone.commit("mine.txt", "one\n")
    install_plugin(brain, PLUGIN)
    (clone.root / PAGE).write_text(TEXT)
    (clone.root / PAGE.replace("bob", "eve")).write_text(
        TEXT.replace("tags: [a]", "private: true").replace("Porto", "Rome")
    )
    (clone.root / "mine.txt").write_text("two\n")
    clone.git("add", "mine.txt")
    for _ in range(3):  # organization has its say between
        brain.plugins.call("quiet_on_any_device", brain=brain, idle_seconds=600.0)
    first = clone.told("git", "log", "--format=%B", "--name-only")
    brain.plugins.call("quiet_on_any_device", brain=brain, idle_seconds=600.0)
    assert first == clone.told("git", "log", "--format=%B", "--name-only")
    assert "memory: 1 learned\n\n- Lives in Porto. ^ab12" in first
    assert (True, False, 1) == (PAGE in first, "Rome" in first, first.count("mine.txt"))
    assert 1 == clone.git("diff", "--cached", "--quiet", is_checked=False)
    brain.close()
