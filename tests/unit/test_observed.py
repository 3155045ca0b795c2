"""The tree as found: adopted, followed, never rewritten; deletions in bulk are held."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from brainiac.events import FileChange, create, update
from brainiac.storage.external_edits import MAX_BYTES, NotRestedError
from brainiac.storage.files import Disk
from brainiac.testing import World
from tests.support.kernel import EMPTY_STM, STM, Kernel, failing_kernel, make_root, open_kernel
from tests.support.living import events_of, living, living_brain
from tests.support.pipeline import eventually

FOLDER = "memory/long_term/concrete/"
A, B = FOLDER + "a.md", FOLDER + "b.md"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    kernel = open_kernel(make_root(tmp_path / "brain"))
    kernel.write(A, "one\ntwo\nthree\n")
    kernel.committer.recover()
    kernel.observed.adopt()
    return kernel


def reopened(kernel: Kernel) -> Kernel:
    kernel.committer.close()
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    return again


def seen(changes: list[FileChange]) -> set[tuple[str, str, str | None]]:
    return {(change.action, change.path, change.old_path) for change in changes}


def test_the_first_start_records_the_whole_tree(kernel: Kernel) -> None:
    """One event holds every tracked file; a second look finds nothing new."""
    assert ["tree-adopted"] == [event.kind for event in kernel.journal.events()]
    assert kernel.tracked() == kernel.folded()
    assert [] == kernel.observed.adopt()


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_what_changed_while_away_is_adopted_as_found(kernel: Kernel, is_forgotten: bool) -> None:
    """Edits, new files, deletions and moves are told and recorded in one event, with or without the derived table."""
    kernel.write(B, "b\n")
    kernel.observed.note_change(B)
    kernel.committer.close()
    kernel.write(STM, EMPTY_STM + "x\n")
    kernel.write("inbox/new.md", "new\n")
    kernel.tree.absolute(B).unlink()
    os.rename(kernel.tree.absolute(A), kernel.tree.absolute("memory/archive/a.md"))
    if is_forgotten:
        (kernel.places.state / "state.db").unlink()
    again = open_kernel(kernel.tree.root)
    again.committer.recover()
    before = again.tracked()
    expected = {
        ("modified", STM, None),
        ("created", "inbox/new.md", None),
        ("deleted", B, None),
        ("moved", "memory/archive/a.md", A),
    }
    assert expected == seen(again.observed.adopt())
    assert "notes-edited" == next(again.journal.events(reverse=True)).kind
    assert before == again.tracked() == again.folded()


def test_our_own_write_is_nothing_new(kernel: Kernel) -> None:
    """Recognized by content: the same text saved again by anybody is nothing new either."""
    kernel.committer.commit("x", by="t", changes=[create(B, "b\n")])
    assert kernel.observed.note_change(B) is None
    kernel.write(B, "b\n")
    assert kernel.observed.note_change(B) is None
    kernel.write(B, "c\n")
    assert kernel.observed.note_change(B) == FileChange("modified", B, kernel.tree.kind_of(B))


@pytest.mark.parametrize("is_deletion_first", [False, True])
def test_a_moved_file_is_recognized_in_either_order(kernel: Kernel, is_deletion_first: bool) -> None:
    """Whichever of the two reports comes first, the move is told once."""
    os.rename(kernel.tree.absolute(A), kernel.tree.absolute(B))
    order = [A, B] if is_deletion_first else [B, A]
    told = [change for path in order if (change := kernel.observed.note_change(path))]
    assert ("moved", B, A) in seen(told)
    assert kernel.tracked() == kernel.folded()


def test_a_stale_editor_buffer_keeps_our_addition(kernel: Kernel) -> None:
    """A save that grew from the version before ours is merged, again and again as the editor goes on."""
    text = "one\ntwo\nthree\n"
    kernel.committer.commit("x", by="t", changes=[update(A, text, text + "ours\n")])
    kernel.write(A, "ONE\ntwo\nthree\n")
    assert kernel.observed.note_change(A) is not None
    assert b"ONE\ntwo\nthree\nours\n" == kernel.read(A)
    kernel.write(A, "ONE\nTWO\nthree\n")
    assert kernel.observed.note_change(A) is not None
    assert b"ONE\nTWO\nthree\nours\n" == kernel.read(A)
    assert kernel.tracked() == kernel.folded()


@pytest.mark.parametrize(
    "save",
    [
        "one\ntwo\nthree\n",  # an earlier version itself: a revert
        "one\nthree\nours\n",  # made in sight of ours
        "one\ntwo\nthree\nours, mended\nours too\n",
        "ours\n",
        "another text\n",
    ],
)
def test_any_other_removal_is_the_persons(kernel: Kernel, save: str) -> None:
    """What a person removed, reverted or rewrote in sight of our addition stands as saved."""
    text = "one\ntwo\nthree\n"
    kernel.committer.commit("x", by="t", changes=[update(A, text, text + "ours\nours too\n")])
    kernel.write(A, save)
    assert kernel.observed.note_change(A) is not None
    assert save.encode() == kernel.read(A)


@pytest.mark.parametrize("line", ["- [{}] Forget it <!-- proposal: 01a2 -->\n", "- Mira has {} cats. ^f3k9\n"])
def test_a_change_of_a_line_that_we_added_stands_alone(kernel: Kernel, line: str) -> None:
    """Who ticks a new proposal, or mends a new statement, has seen it: its id is there."""
    text = "one\ntwo\nthree\n"
    kernel.committer.commit("x", by="t", changes=[update(A, text, text + line.format(" "))])
    kernel.write(A, text + line.format("x"))
    assert kernel.observed.note_change(A) is not None
    assert (text + line.format("x")).encode() == kernel.read(A)


@pytest.mark.parametrize("save", ["", "# Short-Term Memory Scratchpad\n"])
def test_short_term_memory_without_headings_is_believed_after_a_rest(kernel: Kernel, save: str) -> None:
    """An editor that empties it for a moment is not taken at its word; ten seconds later it is."""
    kernel.write(STM, save)
    with pytest.raises(NotRestedError) as caught:
        kernel.observed.note_change(STM)
    assert 10 == caught.value.again_in_seconds
    kernel.advance(10)
    assert ("modified", STM) == ((change := kernel.observed.note_change(STM)) and change.action, STM)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("path", [A, STM])
def test_a_save_made_while_no_process_ran_is_merged(kernel: Kernel, path: str, is_killed: bool) -> None:
    """What we added after the version that the save grew from stays; what the person took out goes."""
    opened = (kernel.read(path) or b"") + b"by hand\n"
    kernel.write(path, opened)
    kernel.observed.note_change(path)
    kernel.committer.commit("x", by="t", changes=[update(path, opened, opened + b"ours\n")])
    (kernel.committer.database if is_killed else kernel.committer).close()
    kernel.write(path, opened.replace(b"by hand\n", b"") + b"new\n")
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    reported = [change.path for change in again.observed.adopt()]
    assert {path} == {*reported, *again.observed.open_paths}
    for each in again.observed.open_paths:
        again.observed.note_change(each)
    lines = (again.read(path) or b"").splitlines()
    assert (True, True, False) == (b"ours" in lines, b"new" in lines, b"by hand" in lines)
    assert again.tracked() == again.folded()


@pytest.mark.parametrize(("path", "torn"), [(A, b""), (A, b"one\n"), (STM, b""), (STM, EMPTY_STM[:60].encode())])
def test_a_file_in_the_middle_of_a_save_at_a_start_is_waited_for(kernel: Kernel, path: str, torn: bytes) -> None:
    """It is not taken for a person who emptied it: nothing is recorded until it rests, and then its whole text."""
    before = kernel.read(path) or b""
    kernel.committer.close()
    kernel.write(path, torn)
    moment = time.time() + 60  # written this instant, however slow the machine is
    os.utime(kernel.tree.absolute(path), (moment, moment))
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    assert [] == again.observed.adopt()
    assert [path] == again.observed.open_paths
    assert before == again.folded()[path]
    again.write(path, before + b"saved\n")
    assert again.observed.note_change(path) is not None
    assert before + b"saved\n" == again.read(path) == again.folded()[path]


def test_an_empty_file_that_rested_before_a_start_is_believed(kernel: Kernel) -> None:
    """Who emptied short-term memory an hour ago meant it; a start does not wait for what rested long."""
    kernel.committer.close()
    kernel.write(STM, b"")
    os.utime(kernel.tree.absolute(STM), (time.time() - 3600, time.time() - 3600))
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    assert [("modified", STM, None)] == list(seen(again.observed.adopt()))
    assert again.tracked() == again.folded()


def test_an_empty_file_dated_in_the_future_keeps_nobody_waiting(kernel: Kernel) -> None:
    """It is believed when it has rested before our eyes."""
    kernel.write(A, b"")
    os.utime(kernel.tree.absolute(A), (time.time() + 1e8, time.time() + 1e8))
    assert kernel.observed.note_change(A) is not None
    assert b"" == kernel.folded()[A]


@pytest.mark.parametrize("is_down", [False, True])
def test_a_version_that_stood_before_is_never_merged(kernel: Kernel, is_down: bool) -> None:
    """A checkout of an older commit stands as it is, however old, whether anybody was there or not."""
    oldest = kernel.read(A) or b""
    edited = oldest + b"by hand\n"
    kernel.write(A, edited)
    kernel.observed.note_change(A)
    kernel.committer.commit("x", by="t", changes=[update(A, edited, edited + b"ours\n")])
    if is_down:
        kernel.committer.close()
    kernel.write(A, oldest)
    if is_down:
        kernel = open_kernel(kernel.tree.root, clock=kernel.clock)
        kernel.committer.recover()
        kernel.observed.adopt()
    for path in [*kernel.observed.open_paths, A]:
        kernel.observed.note_change(path)
    assert oldest == kernel.read(A) == kernel.folded()[A]


def test_what_we_added_outlives_a_save_in_between(kernel: Kernel) -> None:
    """A stale buffer is one also after somebody else, who had seen our addition, saved the file."""
    text = b"one\ntwo\nthree\n"
    kernel.committer.commit("x", by="t", changes=[update(A, text, text + b"ours\n")])
    kernel.write(A, b"zero\n" + text + b"ours\n")
    kernel.observed.note_change(A)
    kernel.write(A, b"one\ntwo\nthree, mended\n")
    kernel.observed.note_change(A)
    assert b"ours" in (kernel.read(A) or b"").splitlines()
    assert b"zero" in (kernel.read(A) or b"").splitlines()
    for _ in range(2):
        kernel.write(A, b"one\ntwo\nfour\n")
        kernel.observed.note_change(A)
    assert b"one\ntwo\nfour\n" == kernel.read(A)  # who says so twice is obeyed


@pytest.mark.parametrize(
    ("save", "merged"),
    [
        ("- [x] last\n\n## Log\nold\n", "- [x] last\n- [ ] ours\n\n## Log\nours too\nold\n"),  # beside our line
        ("\n## Log\nmine\n", "- [ ] ours\n\n## Log\nours too\nmine\n"),  # took out what stood beside both
        ("- [ ] last\n\n## Log\nold\nmine", "- [ ] last\n- [ ] ours\n\n## Log\nours too\nold\nmine"),  # no newline
    ],
)
def test_an_edit_right_beside_ours_is_no_conflict(kernel: Kernel, save: str, merged: str) -> None:
    """Who ticks the last task, or takes the newest event out, in a stale buffer: what we added there stays."""
    text = "- [ ] last\n\n## Log\nold\n"
    kernel.write(A, text)
    ours = "- [ ] last\n- [ ] ours\n\n## Log\nours too\nold\n"
    kernel.committer.commit("x", by="t", changes=[update(A, text, ours)])
    kernel.write(A, save)
    assert kernel.observed.note_change(A) is not None
    assert merged == (kernel.read(A) or b"").decode()


@pytest.mark.slow
def test_a_same_size_edit_with_its_time_put_back_is_seen(kernel: Kernel) -> None:
    """The time of change tells that something happened; the content, whether it was written.

    A file with conflict markers counts as written until somebody has merged it.
    """
    path = kernel.tree.absolute(A)
    os.utime(path, (time.time() - 60, time.time() - 60))
    kernel.observed.note_change(A)
    kernel.write(B, "<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n")
    kernel.committer.close()
    time.sleep(2.1)  # stamps are kept of what is older than the coarsest of clocks
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.observed.adopt()
    assert [B] == again.changed() == again.observed.conflicted
    stat = path.stat()
    path.chmod(0o600)
    assert {A, B} == set(again.changed())
    assert again.observed.note_change(A) is None
    path.write_bytes(b"ONE\ntwo\nthree\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert {A, B} == set(again.changed())
    assert again.observed.note_change(A) is not None
    assert again.tracked() == again.folded()


def test_a_large_file_that_was_not_written_is_no_news(kernel: Kernel) -> None:
    """What is not hashed is known by its size and times of writing: a `chmod` of it is nothing."""
    kernel.write(B, b"x" * (MAX_BYTES + 1))
    assert kernel.observed.note_change(B) is not None
    kernel.tree.absolute(B).chmod(0o600)
    assert kernel.observed.note_change(B) is None
    assert B not in kernel.changed()


def test_a_table_of_an_earlier_version_is_read(kernel: Kernel) -> None:
    """Stamps without the time of change cost one more hash, and nothing else."""
    kernel.committer.close()
    table = kernel.places.state / "state.db"
    with closing(sqlite3.connect(table)) as database, database:
        database.execute("UPDATE seen SET stamp = '14:1:2'")
    again = open_kernel(kernel.tree.root, clock=kernel.clock)
    again.committer.recover()
    assert [] == again.observed.adopt()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_live", [False, True])
def test_a_table_with_random_pages_is_made_anew(kernel: Kernel, seed: int, is_live: bool) -> None:
    """The header is sound, so that it opens; whoever meets the damage first mends it, at a start or while running."""
    notes = {f"{FOLDER}{number}.md": f"note {number}\n" for number in range(300)}
    kernel.committer.commit("x", by="t", changes=[create(path, text) for path, text in notes.items()])
    kernel.committer.close()
    table = kernel.places.state / "state.db"
    content, chance = bytearray(table.read_bytes()), Random(seed)
    running = open_kernel(kernel.tree.root, clock=kernel.clock)
    for page in chance.sample(range(1, len(content) // 4096), 8):
        content[page * 4096 : (page + 1) * 4096] = chance.randbytes(4096)
    table.write_bytes(content)
    if not is_live:
        running.committer.database.close()
        running = open_kernel(kernel.tree.root, clock=kernel.clock)
        running.committer.recover()
        assert [] == running.observed.adopt()
    text = notes[A.replace("a.md", "7.md")]
    running.committer.commit("x", by="t", changes=[update(A.replace("a.md", "7.md"), text, text + "more\n")])
    assert running.tracked().keys() == running.committer.file_states.all().keys()
    assert running.tracked() == running.folded()
    assert "x" == next(running.journal.events(reverse=True)).kind


def test_many_deletions_at_once_are_held_until_confirmed(kernel: Kernel) -> None:
    """An unmounted folder deletes nothing; what comes back is nothing new; what a person confirms is recorded."""
    notes = {f"{FOLDER}{number}.md": f"note {number}\n" for number in range(40)}
    kernel.committer.commit("x", by="t", changes=[create(path, text) for path, text in notes.items()])
    for path in notes:
        kernel.tree.absolute(path).unlink()
    assert [None] * 40 == [kernel.observed.note_change(path) for path in notes]
    assert sorted(notes) == kernel.observed.held_deletions()
    assert notes.keys() <= kernel.journal.fold().keys()
    assert 1 == len(list(kernel.journal.events(kinds={"deletions-held"})))
    kernel.write(f"{FOLDER}0.md", "note 0\n")
    assert kernel.observed.note_change(f"{FOLDER}0.md") is None

    again = reopened(kernel)
    assert [] == again.observed.adopt()
    assert 39 == len(again.observed.held_deletions())
    assert {("deleted", path, None) for path in notes if not path.endswith("/0.md")} == seen(
        again.observed.confirm_deletions()
    )
    assert again.tracked() == again.folded()


def test_a_small_brain_that_vanishes_whole_is_held_and_a_few_pages_are_not(tmp_path: Path) -> None:
    """All of twenty memories are gone at a start: told, with the way to confirm it; five of twenty are deleted."""
    world = World(tmp_path)
    for number in range(25):
        world.save(f"{FOLDER}{number}.md", f"# Page {number}\n\n- Fact {number}.\n")
    world.run()
    for number in range(5):
        (world.root / f"{FOLDER}{number}.md").unlink()
    world.run()
    assert "confirm-deletions" not in world.cli("status").out
    shutil.rmtree(world.root / "memory/long_term")
    world.run()
    assert "and 19 more notes are gone" in world.cli("status").out
    assert f"deleted {FOLDER}7.md" not in world.cli("log").out


def test_drafts_deleted_in_the_inbox_do_not_hold_the_deletion_of_a_memory(tmp_path: Path) -> None:
    """A person clears the inbox under a running daemon, then deletes one page of forty: both are simply recorded."""
    root = living_brain(tmp_path / "brain")
    for number in range(40):
        (root / FOLDER).mkdir(parents=True, exist_ok=True)
        (root / f"{FOLDER}{number}.md").write_text(f"# Page {number}\n\n- Fact {number}.\n")
    with living(root) as one:
        for number in range(25):
            one.drop(f"{number}.md", "I live in Portland.\n")
        for number in range(25):
            one.wait_for_answer(f"{number}.md")
        for number in range(25):
            (root / f"inbox/{number}.md").unlink()
        eventually(lambda: len(events_of(root, "note-deleted")) == 25, "the drafts are gone")
        (root / f"{FOLDER}7.md").unlink()
        eventually(lambda: len(events_of(root, "note-deleted")) == 26, "the page is gone")
        assert [] == events_of(root, "deletions-held")
        assert 0 == one.terminate()


def test_large_files_are_known_by_their_stat(kernel: Kernel) -> None:
    """A file over the limit is told and not kept."""
    kernel.write(B, b"x" * (MAX_BYTES + 1))
    assert kernel.observed.note_change(B) is not None
    assert kernel.observed.note_change(B) is None
    assert B not in kernel.journal.fold()
    assert [] == [change for change in kernel.observed.adopt() if change.path == B]


def test_a_journal_that_git_took_back_is_folded_anew(kernel: Kernel) -> None:
    """A file that the checkout left alone is recorded again when its journal line went."""
    kernel.write(A, "edited\n")
    journal = next(kernel.journal.folder.iterdir())
    old = journal.read_bytes()
    assert kernel.observed.note_change(A) is not None
    journal.unlink()
    journal.write_bytes(old)
    for path in kernel.changed():
        kernel.observed.note_change(path)
    assert kernel.tracked() == kernel.folded()
    assert [1, 2] == [event.seq for event in kernel.journal.events()]


class SlowSave(Disk):
    """A disk on which a person's save is cut by our exchange, and completed a tenth of a second later."""

    def __init__(self, save: bytes) -> None:
        self.save, self.is_done = save, False

    def exchange(self, one: Path, other: Path) -> bool:
        if self.is_done or other.name != "short_term.md":
            return super().exchange(one, other)
        self.is_done = True
        handle = os.open(other, os.O_WRONLY | os.O_TRUNC)
        os.write(handle, self.save[:400])

        def complete() -> None:
            os.write(handle, self.save[400:])
            os.close(handle)

        exchanged = super().exchange(one, other)
        threading.Timer(0.1, complete).start()
        return exchanged


def test_a_save_that_our_write_cut_in_two_is_no_deletion(tmp_path: Path) -> None:
    """The lines that the person's editor has not written yet never vanish from the file, nor does ours or theirs."""
    full = EMPTY_STM + "".join(
        f'### 2026-01-01T00:00:0{n}Z\n<!-- event: e{n} -->\n**User:** "token{n}"\n\n' for n in range(9, 0, -1)
    )
    save = full.replace("### Goals\n", "### Goals\n- [ ] by hand\n")
    root = make_root(tmp_path / "b")
    (root / STM).write_text(full)
    kernel = failing_kernel(root, SlowSave(save.encode()))
    kernel.observed.adopt()
    ours = full.replace("## Event Log\n", "## Event Log\nOURS\n")
    kernel.committer.commit("done", by="t", changes=[update(STM, full.encode(), ours.encode())])
    text = (root / STM).read_text()
    assert [] == [n for n in range(1, 10) if f"token{n}" not in text]
    assert "OURS" in text
    assert "by hand" in text


def test_lines_that_recur_hide_no_version_that_a_buffer_grew_from(tmp_path: Path) -> None:
    """A buffer from before promotion is saved after ten more exchanges, of which one has a line as the buffer has."""
    said = '### 2026-01-01T00:00:{0:02d}Z\n<!-- event: e{0} -->\n**User:** "told{0}"\n**AI:** "{1}"\n\n'
    head = EMPTY_STM

    def log(*events: tuple[int, str]) -> bytes:
        return (head + "".join(said.format(*event) for event in reversed(events))).encode()

    kernel = open_kernel(make_root(tmp_path / "b"))
    old = log(*((n, "Nothing.") for n in range(5)))
    (kernel.tree.root / STM).write_bytes(old)
    kernel.observed.adopt()
    events: list[tuple[int, str]] = []
    versions = [old, log()]
    for n in range(10, 20):
        events.append((n, "Nothing." if n == 19 else f"Answer {n}."))
        versions.append(log(*events))
    for before, after in pairwise(versions):
        kernel.committer.commit("done", by="t", changes=[update(STM, before, after)])
    (kernel.tree.root / STM).write_bytes(old.replace(b"### Goals\n", b"### Goals\n- [ ] by hand\n"))
    kernel.observed.note_change(STM)
    text = (kernel.tree.root / STM).read_text()
    assert [] == [n for n in range(10, 20) if f"told{n}" not in text]
    assert [] == [n for n in range(5) if f'told{n}"' in text]
    assert "by hand" in text


def test_a_buffer_from_a_version_that_nobody_knows_takes_nothing_out(tmp_path: Path) -> None:
    """What stands is kept, what it holds besides is added: its own lines, and what was put to rest since."""
    kernel = open_kernel(make_root(tmp_path / "b"))
    line = "- [ ] task {}\n"
    known = EMPTY_STM.replace("### Tasks\n", "### Tasks\n" + "".join(map(line.format, range(3))))
    (kernel.tree.root / STM).write_text(known)
    kernel.observed.adopt()
    ours = known.replace("### Goals\n", "### Goals\n" + "".join(f"- [ ] goal {n}\n" for n in range(20)))
    kernel.committer.commit("done", by="t", changes=[update(STM, known.encode(), ours.encode())])
    unknown = EMPTY_STM.replace("### Tasks\n", "### Tasks\n" + "".join(map(line.format, range(100, 130))))
    (kernel.tree.root / STM).write_text(unknown)
    kernel.observed.note_change(STM)
    text = (kernel.tree.root / STM).read_text()
    assert [] == [each for each in (*ours.splitlines(), *unknown.splitlines()) if each not in text]
