"""The tree as found: adopted, followed, never rewritten; deletions in bulk are held."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kernel import EMPTY_STM, STM, Kernel, make_root, open_kernel

from brainiac.events import FileChange, create, update
from brainiac.kernel.noticing import MAX_BYTES, NotRestedError

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
        (kernel.places.state / "observed.sqlite").unlink()
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


@pytest.mark.parametrize("save", ["", "# Short-Term Memory Scratchpad\n"])
def test_short_term_memory_without_headings_is_believed_after_a_rest(kernel: Kernel, save: str) -> None:
    """An editor that empties it for a moment is not taken at its word; ten seconds later it is."""
    kernel.write(STM, save)
    with pytest.raises(NotRestedError) as caught:
        kernel.observed.note_change(STM)
    assert 10 == caught.value.again_in_seconds
    kernel.clock.advance(10)  # type: ignore[attr-defined]
    assert ("modified", STM) == ((change := kernel.observed.note_change(STM)) and change.action, STM)


def test_many_deletions_at_once_are_held_until_confirmed(kernel: Kernel) -> None:
    """An unmounted folder deletes nothing; what comes back is nothing new; what a person confirms is recorded."""
    notes = {f"{FOLDER}{number}.md": f"note {number}\n" for number in range(40)}
    kernel.committer.commit("x", by="t", changes=[create(path, text) for path, text in notes.items()])
    for path in notes:
        kernel.tree.absolute(path).unlink()
    assert [None] * 40 == [kernel.observed.note_change(path) for path in notes]
    assert sorted(notes) == kernel.observed.held()
    assert notes.keys() <= kernel.journal.fold().keys()
    assert 1 == len(list(kernel.journal.events(kinds={"deletions-held"})))
    kernel.write(f"{FOLDER}0.md", "note 0\n")
    assert kernel.observed.note_change(f"{FOLDER}0.md") is None

    again = reopened(kernel)
    assert [] == again.observed.adopt()
    assert 39 == len(again.observed.held())
    assert {("deleted", path, None) for path in notes if not path.endswith("/0.md")} == seen(
        again.observed.confirm_deletions()
    )
    assert again.tracked() == again.folded()


def test_deletions_found_at_a_start_are_held_too(kernel: Kernel) -> None:
    """A drive that is not mounted when the daemon starts has forgotten nothing."""
    notes = [f"{FOLDER}{number}.md" for number in range(30)]
    kernel.committer.commit("x", by="t", changes=[create(path, path) for path in notes])
    for path in notes:
        kernel.tree.absolute(path).unlink()
    again = reopened(kernel)
    assert [] == again.observed.adopt()
    assert sorted(notes) == again.observed.held()


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
    for path in kernel.observed.changed():
        kernel.observed.note_change(path)
    assert kernel.tracked() == kernel.folded()
    assert [1, 2] == [event.seq for event in kernel.journal.events()]
