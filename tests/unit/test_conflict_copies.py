"""Copies that sync services make of one file, and what git leaves in it: both versions become one file again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.events import Event, NoteEdited, RecordedChange, content_hash, create, update
from brainiac.formats.markdown import StmEvent
from brainiac.formats.page import shareable_text
from brainiac.testing import command, make_brain, run_once
from tests.support.commands import do, problems_of, quiet
from tests.support.notes_texts import stm_text
from tests.support.pipeline import eventually, running

SETTLED = {"copy-merged", "copy-set-aside", "markers-merged", "proposal-made"}
STM = "memory/short_term.md"
STM_COPY = "memory/short_term.sync-conflict-20250916-153000-ABCDEFG.md"
PAGE = "memory/long_term/concrete/garden.md"
COPY = "memory/long_term/concrete/garden.sync-conflict-20250916-153000-ABCDEFG.md"


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    brain.observed.adopt()
    yield brain
    brain.close()


def stm(*numbers: int, tasks: tuple[str, ...] = (), done: tuple[str, ...] = (), summary: str = "") -> str:
    events = [StmEvent(f"e{number}", f"2025-09-16T15:3{number}:00Z", f"said {number}") for number in numbers]
    return stm_text(*events, tasks=tasks, done=done, summary=summary)


def settle_versions(brain: Brain) -> list[Event]:
    """Have what is there settled, as a daemon does when it starts, and return the events of it."""
    before = brain.journal.last()[0]
    run_once(brain)
    return [event for event in brain.journal.events(kinds=SETTLED) if event.seq > before]


def put(brain: Brain, path: str, text: str) -> None:
    brain.tree.absolute(path).write_text(text)


def statements_of(brain: Brain) -> list[str]:
    return sorted(re.findall(r"^- (\w+)", brain.read_text(PAGE) or "", re.MULTILINE))


@pytest.mark.parametrize(
    "copy", [STM_COPY, "memory/short_term (Ada's conflicted copy 2025-09-16).md"], ids=["syncthing", "dropbox"]
)
def test_short_term_memory_merges(brain: Brain, copy: str) -> None:
    """Events by id in their order, items by text, ticks of either side; the copy goes, its text is in the journal.

    Seeds: S5.
    """
    brain.commit("noted", by="x", changes=[update(STM, stm(), stm(1, 3, tasks=("a", "b")))])
    put(brain, copy, theirs := stm(1, 2, tasks=("a", "c"), done=("a",), summary="From there."))
    (event,) = settle_versions(brain)
    memory = brain.short_term().memory
    assert (["e3", "e2", "e1"], "From there.") == ([each.id for each in memory.events], memory.summary)
    assert {"a": True, "b": False, "c": False} == {item.text: item.is_done for item in memory.tasks}
    assert brain.read(copy) is None
    assert [theirs] == [brain.kept_text(change.before) for change in event.changes if change.path == copy]


def test_what_one_side_keeps_private_stays_so(brain: Brain) -> None:
    """F-STM-8: an event that either device marked is private in what they merge to; a mark elsewhere keeps it all."""
    text = stm(1, 2, tasks=("a", "b"))
    brain.commit("noted", by="x", changes=[update(STM, stm(), text)])
    marked = text.replace("<!-- event: e1 -->\n", "<!-- event: e1 -->\n<!-- private -->\n")
    put(brain, STM_COPY, marked.replace("[ ] b\n", "[ ] b <!-- private -->\n"))
    settle_versions(brain)
    memory = brain.short_term().memory
    assert {"e1": True, "e2": False} == {event.id: event.is_private for event in memory.events}
    assert [True, "a", "b"] == [memory.is_private, *(item.text for item in memory.tasks)]


def test_what_was_promoted_does_not_come_back(brain: Brain) -> None:
    """An event that a process pruned is not revived by an old copy; one that only an outside save lacks is."""
    brain.commit("noted", by="x", changes=[update(STM, stm(), stm(1, 2, 4))])
    brain.commit("memory-promoted", by="promotion", changes=[update(STM, stm(1, 2, 4), stm(2, 4))])
    put(brain, STM, stm(3, 4))
    brain.observed.note_change(STM)
    put(brain, STM_COPY, stm(1, 2))
    settle_versions(brain)
    assert ["e4", "e3", "e2"] == [each.id for each in brain.short_term().memory.events]


def test_a_remark_that_only_a_copy_has_is_kept(brain: Brain) -> None:
    """What a person wrote below an event on another device stands there, whether the event is known or not."""
    brain.commit("noted", by="x", changes=[update(STM, stm(), stm(1))])
    theirs = stm(1, 2).replace('"said 1"\n', '"said 1"\nmine\n').replace('"said 2"\n', '"said 2"\nmine too\n')
    put(brain, STM_COPY, theirs)
    settle_versions(brain)
    assert ["mine too\n", "mine\n"] == [event.remarks for event in brain.short_term().memory.events]


def test_a_half_written_copy_waits(brain: Brain) -> None:
    """What cannot be read as short-term memory is left for the next look."""
    put(brain, STM_COPY, "# Short-Term")
    assert [] == settle_versions(brain)
    put(brain, STM_COPY, stm(1))
    assert ["copy-merged"] == [event.kind for event in settle_versions(brain)]


def told_by_another_device(brain: Brain, before: str | None, after: str, device: str = "other-aaaaaa") -> None:
    """Write the journal of a device that saw one text of the page, and another one later."""
    digests = [None if text is None else content_hash(text.encode()) for text in (before, after)]
    change = RecordedChange("create" if before is None else "update", PAGE, *digests)
    line = {"seq": 1, "id": f"0199{device}", "at": "2025-09-16T15:30:00Z", "kind": NoteEdited.kind, "by": "person"}
    (journal := brain.tree.journal / device / "2025-09-16.jsonl").parent.mkdir()
    journal.write_text(json.dumps(line | {"cause": None, "data": {}, "changes": [asdict(change)]}) + "\n")


def test_both_versions_of_a_page_stand(brain: Brain) -> None:
    """The copy goes; of a statement that both changed both texts stand, and the review says so, once and in private
    where the page is; a second look does nothing."""
    text = "---\nprivate: true\n---\n# Garden\n\n- Tulips. ^aaaa\n- Roses. ^cccc\n"
    brain.commit("made", by="x", changes=[create(PAGE, text)])
    brain.commit("edited", by="x", changes=[update(PAGE, text, text.replace("Tulips", "Lilies"))])
    theirs = text.replace("Tulips", "Zinnias").replace("- Roses. ^cccc\n", "")
    put(brain, COPY, theirs)
    told_by_another_device(brain, text, theirs)
    (event,) = settle_versions(brain)
    page = brain.read_text(PAGE) or ""
    assert ("copy-merged", None, False) == (event.kind, brain.read(COPY), "Roses" in page)
    assert {"Lilies", "Zinnias"} == set(re.findall("Lilies|Zinnias", page))
    review = brain.read_text("memory/review.md") or ""
    assert [True, False] == ["Zinnias" in line for line in (review, shareable_text(review) or "")]
    assert [] == settle_versions(brain)
    assert brain.recall.search("zinnias")


@pytest.mark.parametrize("is_seen_twice", [False, True])
def test_what_lost_on_this_device_is_not_taken_for_old(brain: Brain, is_seen_twice: bool) -> None:
    """A sync tool put another version over a person's edit, and a third one over that; copies arrive one by one. All
    are kept, before a journal tells where the others' versions came from, and where others saw the same."""
    text = "# Garden\n\n- Tulips. ^aaaa\n"
    versions = [text + f"- {name}. ^{name}\n" for name in ("Mine", "Theirs", "Third")]
    for version in (text, *versions):
        put(brain, PAGE, version)
        brain.observed.note_change(PAGE)
    if is_seen_twice:
        told_by_another_device(brain, versions[0], versions[1], "attic-aaaaaa")
        told_by_another_device(brain, versions[1], versions[2], "shed-aaaaaa")
    for version in versions[:2]:
        put(brain, COPY, version)
        settle_versions(brain)
    assert ["Mine", "Theirs", "Third", "Tulips"] == statements_of(brain)


def test_a_version_that_gave_way_and_lived_on_elsewhere(brain: Brain) -> None:
    """A copy was merged here, and its version edited on the laptop; on the attic what stood before gave way to that."""
    text = "# Garden\n\n- Tulips. ^aaaa\n"
    mine, theirs = (text + f"- {name}. ^{name}\n" for name in ("Mine", "Theirs"))
    for version in (text, mine):
        put(brain, PAGE, version)
        brain.observed.note_change(PAGE)
    put(brain, COPY, theirs)
    settle_versions(brain)
    told_by_another_device(brain, theirs, theirs + "- More. ^dddd\n", "laptop-aaaaaa")
    told_by_another_device(brain, mine, theirs + "- More. ^dddd\n", "attic-aaaaaa")
    put(brain, COPY, brain.read_text(PAGE) or "")
    put(brain, PAGE, theirs + "- More. ^dddd\n")
    settle_versions(brain)
    assert ["Mine", "More", "Theirs", "Tulips"] == statements_of(brain)


def test_what_a_sync_tool_put_there_is_no_old_buffer(brain: Brain) -> None:
    """Another device's version lacks a person's line and ours after it, as an editor's old buffer would; the copy
    beside it has them, and all three stand."""
    begun = "# Garden\n\n- Tulips. ^aaaa\n"
    brain.commit("made", by="x", changes=[create(PAGE, begun)])
    put(brain, PAGE, mine := begun.replace("Tulips", "Tulips and mine"))
    brain.observed.note_change(PAGE)
    brain.commit("polished", by="x", changes=[update(PAGE, mine, ours := mine + "- Ours. ^bbbb\n")])
    put(brain, COPY, ours)
    put(brain, PAGE, "# Garden\n\n- Theirs. ^cccc\n- Tulips. ^aaaa\n")
    brain.observed.note_change(PAGE)
    settle_versions(brain)
    assert {"mine", "Ours", "Theirs"} == set(re.findall("mine|Ours|Theirs", brain.read_text(PAGE) or ""))
    assert brain.read(COPY) is None


def test_copies_of_logs(brain: Brain) -> None:
    """Uses that another device logged count here; a journal's copy is never written on, and goes once it says nothing
    that the journal does not say."""
    log, name = brain.tree.access_log, "sync-conflict-20250916-153000-ABCDEFG"
    log.write_text("2025-09-16T15:30:00Z | READ | /a.md\n")
    beside = log.with_name(f"access.{name}.log")
    beside.write_text("2025-09-16T15:30:00Z | READ | /a.md\n2025-09-16T15:31:00Z | READ | /b.md\n")
    journal = next(brain.journal.folder.glob("*.jsonl"))
    same, longer = (journal.with_name(f"{journal.stem}.{each}.jsonl") for each in (name, f"{name[:-1]}H"))
    same.write_bytes(journal.read_bytes())
    longer.write_bytes(kept := journal.read_bytes() + b'{"seq": 99}\n')
    base = brain.journal.blobs.put(b"a long text " * 100)
    texts = [brain.journal.blobs.put(b"a long text " * 100 + end, base=base) for end in (b"that ends", b"is damaged")]
    blobs = [brain.tree.journal / "blobs" / digest[:2] / f"{digest[2:]}.splice" for digest in texts]
    other_texts = [blob.with_name(f"{blob.stem}.{name}.splice") for blob in blobs]
    for blob, copy in zip(blobs, other_texts, strict=True):
        copy.write_bytes(blob.read_bytes())
    blobs[1].chmod(0o600)
    blobs[1].write_bytes(b"something else")
    assert ["copy-merged"] == [event.kind for event in settle_versions(brain)]
    assert [False, False, True] == [file.exists() for file in (beside, same, longer)]
    assert [False, True] == [copy.exists() for copy in other_texts]
    assert ["/a.md", "/b.md"] == re.findall(r"/\w+\.md", log.read_text())
    assert kept == longer.read_bytes()
    assert [event.seq for event in brain.journal.events()] == list(range(1, brain.journal.last()[0] + 1))


def test_what_was_new_on_one_device_has_no_known_origin(brain: Brain) -> None:
    """Of three devices one wrote a text before its first start; where it arrived, it did not grow from what stood."""
    begun = "# Garden\n\n- Tulips. ^aaaa\n"
    mine, theirs = begun + "- Mine. ^bbbb\n", begun + "- Theirs. ^cccc\n"
    brain.commit("made", by="x", changes=[create(PAGE, mine)])
    brain.commit("edited", by="x", changes=[update(PAGE, mine, mine + "- More. ^dddd\n")])
    put(brain, COPY, theirs)
    told_by_another_device(brain, mine, theirs, "laptop-aaaaaa")
    told_by_another_device(brain, None, theirs, "attic-aaaaaa")
    settle_versions(brain)
    assert ["Mine", "More", "Theirs", "Tulips"] == statements_of(brain)


UUID = "0199aaaa-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    "name", ["garden 2", "garden (1)", "garden-DESKTOP1", "garden.Conflict", "garden (Adas Konflikt 2025-09-16)"]
)
def test_names_that_may_be_meant(brain: Brain, name: str) -> None:
    """With the page's uuid it is a copy: never given a uuid of its own, named by `doctor`, and merged. With one of its
    own, or with none, it is a page like any other, however alike."""
    text = f"---\nuuid: {UUID}\nupdated_at: 2026-11-01T00:00:00Z\n---\n# Garden\n\n- Tulips. ^aaaa\n"
    brain.commit("made", by="x", changes=[create(PAGE, text)])
    path = PAGE.replace("garden", name)
    put(brain, path, text + "- Zinnias. ^bbbb\n")
    assert any(f"{path}: is a version of {PAGE}" in problem for problem in problems_of(brain))
    command(brain, "doctor", "--fix")
    assert (None, True) == (brain.read(path), "Zinnias" in (brain.read_text(PAGE) or ""))
    for other in (text.replace("0199aaaa", "0199bbbb"), "# Garden\n\n- Tulips. ^aaaa\n"):
        put(brain, path, other)
        assert [] == settle_versions(brain)
        assert path in brain.pages().pages


@pytest.mark.parametrize(
    "path", ["memory/short_term 2.md", "system/config (1).yaml", "system/core_identity-DESKTOP1.md"]
)
def test_a_copy_without_uuid_under_a_name_that_may_be_meant_is_named(brain: Brain, path: str) -> None:
    """Of the few files that are no pages: nobody merges it, `status` says so, and its words stay where they are."""
    put(brain, path, stm(1))
    assert [] == settle_versions(brain)
    (notice,) = (notice for notice in do(brain, "status", "--json").json["notices"] if path in notice)
    assert "nobody reads it" in notice
    assert stm(1) == brain.read_text(path)


def test_two_prompts_of_one_name_are_both_kept(brain: Brain) -> None:
    """A copy of a prompt that says something else becomes a prompt of its own, called alike on every device."""
    put(brain, "inbox/q.md", "Where is my key?\n")
    put(brain, "inbox/q.sync-conflict-20250916-153000-ABCDEFG.md", "Where is my hat?\n")
    settle_versions(brain)
    (other,) = (path for path in brain.tree.inbox.glob("q-*.md"))
    assert "Where is my hat?\n" == other.read_text()


@pytest.mark.parametrize("path", [STM, PAGE])
def test_conflict_markers_are_merged(brain: Brain, path: str) -> None:
    """Nothing of a file with markers is found, parsed or written between; both sides stand when they are merged."""
    ours, theirs = (
        (stm(1), stm(2)) if path == STM else ("# Garden\n\n- Tulips. ^aaaa\n", "# Garden\n\n- Roses. ^bbbb\n")
    )
    lines, others = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    same = next(at for at, (line, other) in enumerate(zip(lines, others, strict=False)) if line != other)
    sides = ["<<<<<<< HEAD\n", *lines[same:], "=======\n", *others[same:], ">>>>>>> other\n"]
    put(brain, path, "".join([*lines[:same], *sides]))
    words = ("said", "said") if path == STM else ("tulips", "roses")
    assert [] == [hit for word in words for hit in brain.recall.search(word) if hit.path == path]
    assert any(path in problem and "markers" in problem for problem in problems_of(brain))
    assert ["markers-merged"] == [event.kind for event in settle_versions(brain)]
    text = brain.read_text(path) or ""
    assert all(line in text for line in ("said 1", "said 2") if path == STM)
    assert not re.search("^(<<<<<<<|=======|>>>>>>>)", text, re.MULTILINE)
    assert all(brain.recall.search(word) for word in words)
    assert [] == settle_versions(brain)


def test_it_waits_while_git_is_at_work(brain: Brain) -> None:
    """Nothing is merged or answered in the middle of a rebase, and the reason is said."""
    (brain.root / ".git" / "rebase-merge").mkdir(parents=True)
    put(brain, STM_COPY, stm(1))
    assert ([], True) == (settle_versions(brain), "rebase" in brain.waits_for)


def test_a_copy_of_what_was_known_is_set_aside(brain: Brain) -> None:
    """An equal text, an earlier version, and a derived page are no news to anybody."""
    brain.commit("made", by="x", changes=[create(PAGE, "# Old\n")])
    brain.commit("edited", by="x", changes=[update(PAGE, "# Old\n", "# New\n")])
    index = "memory/long_term/_index.sync-conflict-20250916-153000-ABCDEFG.md"
    for path, text in ((COPY, "# Old\n"), (COPY.replace("153000", "153001"), "# New\n"), (index, "# Index\n")):
        put(brain, path, text)
    assert ["copy-set-aside"] * 3 == [event.kind for event in settle_versions(brain)]
    assert "# New\n" == brain.read_text(PAGE)


@pytest.mark.parametrize(("mark", "is_taken"), [("x", True), ("-", False)])
def test_a_copy_of_what_is_gone_is_proposed(brain: Brain, mark: str, is_taken: bool) -> None:
    """A page deleted here and edited there: the person is asked once whether to take it back."""
    put(brain, COPY, "# Garden\n\n- Zinnias. ^bbbb\n")
    settle_versions(brain)
    assert [] == settle_versions(brain)
    put(brain, "memory/review.md", (brain.read_text("memory/review.md") or "").replace("[ ]", f"[{mark}]"))
    quiet(brain)
    settle_versions(brain)
    assert (is_taken, None) == ("Zinnias" in (brain.read_text(PAGE) or ""), brain.read(COPY))


def test_only_the_active_device_settles(brain: Brain) -> None:
    """Two devices that merged the same copy would make new ones."""
    put(brain, "system/config.yaml", (brain.read_text("system/config.yaml") or "") + "\nactive_device: another-one\n")
    put(brain, STM_COPY, stm(1))
    assert ([], stm(1).encode()) == (settle_versions(brain), brain.read(STM_COPY))


def test_a_daemon_settles_them(tmp_path: Path) -> None:
    """As soon as they are there; first a copy gets a mark of its content, which another device's has not."""
    with running(tmp_path / "brain") as pair:
        pair.drop(STM, stm())
        pair.drop(STM_COPY, stm(1))
        eventually(lambda: pair.text(STM_COPY) is None and "said 1" in (pair.text(STM) or ""), "merged")
        [merged] = pair.brain.journal.events(kinds={"copy-merged"})
        assert STM_COPY.replace(".md", f"_{content_hash(stm(1).encode())[:6]}.md") == merged.data["copy"]
