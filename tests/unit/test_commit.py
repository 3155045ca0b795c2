"""Commits: checked, whole, recorded, gentle to what stands there."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from brainiac.errors import ConfinementError, ConflictError, UserError
from brainiac.events import Change, append, content_hash, create, move, observe, remove, update
from brainiac.storage.external_edits import MAX_BYTES
from brainiac.storage.files import Disk
from tests.support.kernel import EMPTY_STM, STM, CountingDisk, Kernel, failing_kernel, make_root, open_kernel

A, B = "memory/long_term/concrete/a.md", "memory/long_term/concrete/b.md"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    kernel = open_kernel(make_root(tmp_path / "brain"))
    kernel.committer.recover()
    kernel.observed.adopt()
    return kernel


def test_a_commit_makes_all_its_changes_and_one_event(kernel: Kernel) -> None:
    """Creates, updates, moves, removals and log lines stand together under one event with its cause."""
    kernel.committer.commit("made", by="t", changes=[create(A, "a\n"), create(B, "b\n")])
    event = kernel.committer.commit(
        "changed",
        by="t",
        cause="earlier",
        data={"n": 1},
        changes=[update(A, "a\n", "A\n"), move(B, "memory/archive/b.md", "b\n"), append("logs/access.log", "x\n")],
    )
    assert b"A\n" == kernel.read(A)
    assert b"b\n" == kernel.read("memory/archive/b.md")
    assert kernel.read(B) is None
    assert b"x\n" == kernel.read("logs/access.log")
    assert event == kernel.journal.find(event.id)
    assert ("earlier", {"n": 1}) == (event.cause, event.data)
    assert kernel.tracked() == kernel.folded()


@pytest.mark.parametrize(
    ("changes", "expect", "conflicts"),
    [
        ([update(A, "other\n", "x\n")], {}, [A]),
        ([create(A, "x\n")], {}, [A]),
        ([remove(A, "other\n")], {}, [A]),
        ([move(A, STM, "a\n")], {}, [STM]),
        ([observe(A, b"other\n")], {}, [A]),
        ([create(B, "x\n")], {A: None}, [A]),
        ([create(B, "x\n")], {A: content_hash(b"other\n")}, [A]),
        ([update(B, "x\n", "y\n")], {}, [B]),
    ],
)
def test_a_commit_on_what_moved_changes_nothing(
    kernel: Kernel, changes: list[Change], expect: dict[str, str | None], conflicts: list[str]
) -> None:
    """Each kind of change, and each further file the decision rested on, is checked before anything is written."""
    kernel.committer.commit("made", by="t", changes=[create(A, "a\n")])
    before, seq = kernel.tracked(), kernel.journal.last()
    with pytest.raises(ConflictError) as caught:
        kernel.committer.commit("x", by="t", changes=[*changes, append("logs/access.log", "x\n")], expect=expect)
    assert tuple(conflicts) == caught.value.paths
    assert before == kernel.tracked()
    assert kernel.read("logs/access.log") is None
    assert seq == kernel.journal.last()


def test_paths_are_confined_and_named_once(kernel: Kernel, tmp_path: Path) -> None:
    """A path outside the brain, a symbolic link, and two changes of one file are refused."""
    with pytest.raises(ConfinementError):
        kernel.committer.commit("x", by="t", changes=[create("../out.md", "x")])
    kernel.write(A, "a\n")
    kernel.tree.absolute(B).symlink_to(kernel.tree.absolute(A))
    with pytest.raises(UserError, match="symbolic link"):
        kernel.committer.commit("x", by="t", changes=[update(B, "a\n", "x")])
    with pytest.raises(UserError, match="two changes"):
        kernel.committer.commit("x", by="t", changes=[update(A, "a\n", "x"), remove(A, "a\n")])


def test_mode_and_attributes_of_a_replaced_file_stay(kernel: Kernel) -> None:
    """An update gives the new file the mode and the extended attributes of the old."""
    kernel.write(A, "a\n")
    path = kernel.tree.absolute(A)
    path.chmod(0o640)
    os.setxattr(path, "user.colour", b"green")
    kernel.committer.commit("x", by="t", changes=[update(A, "a\n", "b\n")])
    assert 0o640 == path.stat().st_mode & 0o777
    assert b"green" == os.getxattr(path, "user.colour")


def test_an_answer_costs_few_fsyncs(kernel: Kernel) -> None:
    """A log line, a response and the observed prompt wait for four; texts and journal lines reach the disk later."""
    kernel.write("inbox/q.md", "question\n")
    kernel.write("logs/access.log", "")
    kernel.committer.close()
    disk = CountingDisk()
    again = failing_kernel(kernel.tree.root, disk)
    again.observed.note_change("inbox/q.md")
    del disk.done[:]
    response = create("inbox/q.response.md", "a")
    changes = [append("logs/access.log", "x\n"), observe("inbox/q.md", b"question\n"), response]
    again.committer.commit("prompt-answered", by="t", changes=changes)
    assert 4 == disk.done.count("fsync") + disk.done.count("transact")
    again.committer.close()
    assert {} == again.committer.database.kept("commits")


def test_threads_commit_one_after_another(kernel: Kernel) -> None:
    """Of many threads that each add a line to one file, none loses another's."""

    def add(number: int) -> None:
        while True:
            text = kernel.read(STM) or b""
            try:
                kernel.committer.commit("x", by="t", changes=[update(STM, text, text + b"line %d\n" % number)])
                return
            except ConflictError:
                continue

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {b"line %d" % number for number in range(8)} <= set((kernel.read(STM) or b"").splitlines())
    assert list(range(1, 10)) == [event.seq for event in kernel.journal.events()]


def test_an_unseen_edit_is_recorded_before_it_is_built_on(kernel: Kernel) -> None:
    """The history names the person's version as the person's, and the bus still hears of it."""
    kernel.write(A, "by hand\n")
    kernel.committer.commit("x", by="t", changes=[update(A, "by hand\n", "by hand\nadded\n")])
    assert ["person", "person", "t"] == [event.by for event in kernel.journal.events()]
    change = kernel.observed.note_change(A)
    assert change is not None
    assert (A, False) == (change.path, change.is_ours)
    assert kernel.observed.note_change(A) is None


def test_an_editor_that_holds_the_old_file_open_is_merged(kernel: Kernel) -> None:
    """What is written into the file that we swapped out is found ten seconds later and merged."""
    kernel.write(A, "one\ntwo\n")
    with open(kernel.tree.absolute(A), "r+b") as held:
        kernel.committer.commit("x", by="t", changes=[update(A, "one\ntwo\n", "one\ntwo\nours\n")])
        held.write(b"ONE\ntwo\n")
    kernel.advance(11)
    kernel.committer.check_displaced()
    assert b"ONE\ntwo\nours\n" == kernel.read(A)
    assert "note-merged" == next(kernel.journal.events(reverse=True)).kind
    kernel.advance(11)
    kernel.committer.check_displaced()
    assert [] == [p.name for p in kernel.tree.absolute(A).parent.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("is_stale", [False, True])
def test_of_a_line_that_both_changed_both_texts_stand(kernel: Kernel, is_stale: bool) -> None:
    """The person's has the place, ours stands below it, and a line in review.md names both."""
    kernel.write(A, "head\none\n")
    kernel.observed.note_change(A)
    with open(kernel.tree.absolute(A), "r+b") as held:
        kernel.committer.commit("x", by="t", changes=[update(A, "head\none\n", "head\nours\n")])
        if not is_stale:
            held.write(b"head\nmine\n")
    if is_stale:
        kernel.write(A, "head\nmine\n")
        assert kernel.observed.note_change(A) is not None
    kernel.advance(11)
    kernel.committer.check_displaced()
    assert b"head\nmine\nours\n" == kernel.read(A)
    assert (
        f"- {A}: you and Brainiac changed it, and both stand; keep what holds: `mine` or `ours`\n"
        in (kernel.read("memory/review.md") or b"").decode()
    )
    assert kernel.tracked() == kernel.folded()


def test_a_save_of_a_statement_that_we_reworded_keeps_both(kernel: Kernel) -> None:
    """A stale buffer with another wording takes the place; ours stands below it under a new id, and is named."""
    text = "# Ines\n\n- Lives in Porto. ^ab12\n- Likes tea. ^cd34\n"
    kernel.write(A, text)
    kernel.observed.note_change(A)
    changes = [update(A, text, text.replace("Porto", "Lisbon"))]
    kernel.committer.commit("x", by="t", changes=changes)
    kernel.write(A, text.replace("Porto", "Braga").replace("- Likes tea. ^cd34\n", ""))
    assert kernel.observed.note_change(A) is not None
    kept, other, *rest = (kernel.read(A) or b"").decode().splitlines()[2:]
    assert ("- Lives in Braga. ^ab12", True, []) == (kept, other.startswith("- Lives in Lisbon. ^"), rest)
    assert "^ab12" not in other
    review = (kernel.read("memory/review.md") or b"").decode()
    assert f"keep what holds: `{kept}` or `{other}`" in review


def test_a_save_too_large_to_be_merged_stands(kernel: Kernel) -> None:
    """Ours is kept in the journal, and review.md names the file."""
    kernel.write(A, "one\n")
    kernel.observed.note_change(A)
    kernel.committer.commit("x", by="t", changes=[update(A, "one\n", "one\nours\n")])
    save = b"one\n" + b"x" * (MAX_BYTES + 1)
    for _ in range(2):
        kernel.write(A, save)
        kernel.observed.note_change(A)
        save += b"y"
    assert save[:-1] == kernel.read(A)
    review = (kernel.read("memory/review.md") or b"").decode()
    assert 1 == review.count(f"{A}: you and Brainiac changed it, and it is too large to be merged")
    assert b"one\nours\n" == kernel.journal.blobs.get(content_hash(b"one\nours\n"))


def test_a_displaced_save_survives_the_end_of_the_process(kernel: Kernel) -> None:
    """What was swapped out less than ten seconds before the end is looked at by the next start."""
    kernel.write(A, "one\n")
    with open(kernel.tree.absolute(A), "ab") as held:
        kernel.committer.commit("x", by="t", changes=[update(A, "one\n", "ours\none\n")])
        kernel.committer.close()
        held.write(b"mine\n")
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    assert b"ours\none\nmine\n" == again.read(A)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_displaced_save_is_not_merged_by_what_came_after_it(kernel: Kernel, is_killed: bool) -> None:
    """Two saves are displaced, nobody merges them, the person saves again: no line of any of the three goes."""
    kernel.write(A, "one\n")
    kernel.observed.note_change(A)
    texts = [b"one\n", b"one\nours 1\n", b"one\nours 1\nours 2\n"]
    with ExitStack() as stack:
        editors = []
        for before, after in pairwise(texts):
            editors.append(stack.enter_context(open(kernel.tree.absolute(A), "ab")))
            kernel.committer.commit("x", by="t", changes=[update(A, before, after)])
        for number, editor in enumerate(editors):
            editor.write(b"mine %d\n" % number)
    (kernel.committer.database if is_killed else kernel.committer).close()
    kernel.write(A, texts[-1] + b"mine, later\n")
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    again.observed.adopt()
    for path in again.observed.open_paths:
        again.observed.note_change(path)
    lines = {b"one", b"ours 1", b"ours 2", b"mine 0", b"mine 1", b"mine, later"}
    assert lines == set((again.read(A) or b"").splitlines())
    assert again.tracked() == again.folded()


def test_a_file_that_an_editor_moved_away_for_a_moment_is_waited_for(kernel: Kernel) -> None:
    """Some move the old file aside before they put the new one there; our change is not given up for that."""
    kernel.write(A, "one\n")
    path = kernel.tree.absolute(A)

    class Editor(Disk):
        saving: threading.Timer | None = None

        def exchange(self, one: Path, other: Path) -> bool:
            if self.saving is None:
                os.rename(path, path.with_name("a.md~"))
                self.saving = threading.Timer(0.03, path.write_bytes, [b"one\nmine\n"])
                self.saving.start()
            return super().exchange(one, other)

    other = failing_kernel(kernel.tree.root, Editor(), kernel.clock)
    event = other.committer.commit("x", by="t", changes=[update(A, "one\n", "ours\none\n")])
    assert "left" not in event.data
    assert b"ours\none\nmine\n" == kernel.read(A)


def test_off_the_record_texts_are_not_kept(kernel: Kernel) -> None:
    """A prompt with `remember: false` and its response are in no blob and not named; id and hash are."""
    prompt, response = b"---\nremember: false\n---\nsecret\n", "---\nremember: false\n---\nhush\n"
    kernel.write("inbox/private.md", prompt)
    assert kernel.observed.note_change("inbox/private.md") is not None
    assert kernel.observed.note_change("inbox/private.md") is None
    changes = [observe("inbox/private.md", prompt), create("inbox/private.response.md", response)]
    event = kernel.committer.commit("prompt-answered", by="t", changes=changes)
    kernel.committer.close()
    assert (response.encode(), ()) == (kernel.read("inbox/private.response.md"), event.changes)
    assert content_hash(prompt) in event.data["off_record"]
    kept = b"".join(path.read_bytes() for path in kernel.tree.logs.rglob("*") if path.is_file())
    for text in (b"secret", b"hush", b"private"):
        assert text not in kept
    again = open_kernel(kernel.tree.root)
    again.committer.recover()
    assert [] == [change for change in again.observed.adopt() if "response" not in change.path]


def test_without_an_atomic_exchange_a_newer_save_still_stands(kernel: Kernel) -> None:
    """Where files cannot be swapped, the check right before replacing leaves a newer save and names it."""

    class Plain(Disk):
        def exchange(self, one: Path, other: Path) -> bool:
            other.write_bytes(b"saved just now\n")
            return False

    kernel.write(A, "a\n")
    other = failing_kernel(kernel.tree.root, Plain())
    event = other.committer.commit("x", by="t", changes=[update(A, "a\n", "b\n")])
    assert b"saved just now\n" == kernel.read(A)
    assert [A] == event.data["left"]
    assert b"b\n" == other.journal.blobs.get(event.data["left_texts"][A])


def test_a_full_disk_leaves_nothing_half_done(kernel: Kernel) -> None:
    """An error in the middle is raised; the next commit finishes the first before it begins."""

    class Full(Disk):
        def exchange(self, one: Path, other: Path) -> bool:
            raise OSError(28, "No space left on device")

    disk = Full()
    other = failing_kernel(kernel.tree.root, disk)
    with pytest.raises(OSError, match="No space"):
        other.committer.commit("first", by="t", changes=[create(A, "a\n"), update(STM, EMPTY_STM, EMPTY_STM + "x\n")])
    kernel.committer.commit("second", by="t", changes=[create(B, "b\n")])
    assert ["first", "second"] == [event.kind for event in kernel.journal.events()][1:]
    assert (EMPTY_STM + "x\n").encode() == kernel.read(STM)
    assert kernel.tracked() == kernel.folded()
