"""Copies that sync services make of one file: short-term memory merges, a memory is put before a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from brainiac_plugins.organization.upkeep import settle_reviews

from brainiac.brain import Brain
from brainiac.events import create, update
from brainiac.formats.page import shareable_text
from brainiac.formats.short_term import EMPTY, ShortTermDocument, StmEvent
from brainiac.history.devices import original_of, settle_copies
from brainiac.storage.review import find_ticks
from brainiac.testing import make_brain
from tests.support.pipeline import eventually, running

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
    document = ShortTermDocument(EMPTY).with_items(tasks=tasks).with_done(done).with_summary(summary)
    for number in numbers:
        document = document.with_event(StmEvent(f"e{number}", f"2025-09-16T15:3{number}:00Z", f"said {number}"))
    return str(document)


def put(brain: Brain, path: str, text: str) -> None:
    brain.tree.absolute(path).write_text(text)


def test_names_of_copies() -> None:
    """Syncthing's and Dropbox's names lead to the file they are copies of; other names to none."""
    assert STM == original_of(STM_COPY)
    assert STM == original_of("memory/short_term (Ada's conflicted copy 2025-09-16).md")
    assert PAGE == original_of(COPY)
    assert [None, None] == [original_of("memory/short_term.md"), original_of("memory/a (copy).md")]


def test_short_term_memory_merges(brain: Brain) -> None:
    """Events by id in their order, items by text, ticks of either side; the copy goes, its text is in the journal.

    Seeds: S5.
    """
    brain.commit("noted", by="x", changes=[update(STM, EMPTY, stm(1, 3, tasks=("a", "b")))])
    put(brain, STM_COPY, stm(1, 2, tasks=("a", "c"), done=("a",), summary="From there."))
    (event,) = settle_copies(brain)
    memory = brain.short_term().memory
    assert ["e3", "e2", "e1"] == [each.id for each in memory.events]
    assert {"a": True, "b": False, "c": False} == {item.text: item.is_done for item in memory.tasks}
    assert "From there." == memory.summary
    assert brain.read(STM_COPY) is None
    assert stm(1, 2, tasks=("a", "c"), done=("a",), summary="From there.").encode() == brain.committer.text_of(
        next(str(change.before) for change in event.changes if change.path == STM_COPY)
    )


def test_what_one_side_keeps_private_stays_so(brain: Brain) -> None:
    """F-STM-8: an event or item that either device marked is private in what they merge to."""
    text = stm(1, 2, tasks=("a", "b"))
    brain.commit("noted", by="x", changes=[update(STM, EMPTY, text)])
    marked = text.replace("<!-- event: e1 -->\n", "<!-- event: e1 -->\n<!-- private -->\n")
    put(brain, STM_COPY, marked.replace("[ ] b\n", "[ ] b <!-- private -->\n"))
    settle_copies(brain)
    memory = brain.short_term().memory
    assert {"e1": True, "e2": False} == {event.id: event.is_private for event in memory.events}
    assert {"a": False, "b": True} == {item.text: item.is_private for item in memory.tasks}


def test_what_was_promoted_does_not_come_back(brain: Brain) -> None:
    """An event that a process pruned is not revived by an old copy; one that only an outside save lacks is."""
    brain.commit("noted", by="x", changes=[update(STM, EMPTY, stm(1, 2, 4))])
    brain.commit("memory-promoted", by="promotion", changes=[update(STM, stm(1, 2, 4), stm(2, 4))])
    put(brain, STM, stm(3, 4))
    brain.observed.note_change(STM)
    put(brain, STM_COPY, stm(1, 2))
    settle_copies(brain)
    assert ["e4", "e3", "e2"] == [each.id for each in brain.short_term().memory.events]


def test_a_remark_that_only_a_copy_has_is_named(brain: Brain) -> None:
    """What a person wrote below an event on another device is told as what differs, whether the event is known or not;
    the event itself is taken."""
    brain.commit("noted", by="x", changes=[update(STM, EMPTY, stm(1))])
    put(
        brain,
        STM_COPY,
        stm(1, 2).replace('"said 1"\n', '"said 1"\nmine\n').replace('"said 2"\n', '"said 2"\nmine too\n'),
    )
    (event,) = settle_copies(brain)
    assert ["e2", "e1"] == event.data["differs"]
    assert ["e2", "e1"] == [each.id for each in brain.short_term().memory.events]


def test_a_half_written_copy_waits(brain: Brain) -> None:
    """What cannot be read as short-term memory is left for the next look."""
    put(brain, STM_COPY, "# Short-Term")
    assert [] == settle_copies(brain)
    put(brain, STM_COPY, stm(1))
    assert ["copy-merged"] == [event.kind for event in settle_copies(brain)]


def test_a_memorys_copy_is_proposed_once(brain: Brain) -> None:
    """One line in the review with an id; recall never finds the copy; a second look adds nothing."""
    brain.commit("made", by="x", changes=[create(PAGE, "# Garden\n\n- Tulips. ^aaaa\n")])
    put(brain, COPY, "# Garden\n\n- Zinnias. ^bbbb\n")
    (event,) = settle_copies(brain)
    review = brain.read_text("memory/review.md") or ""
    assert 1 == review.count(f"<!-- proposal: {event.data['proposals'][0]['id']} -->")
    assert [] == settle_copies(brain)
    assert [] == [hit for hit in brain.recall.search("zinnias") if "Zinnias" in hit.text]
    assert brain.recall.search("tulips")


def test_a_private_memorys_copy_is_named_to_no_remote_model(brain: Brain) -> None:
    """Its line in the review bears the mark, and is found by a person's tick as any other."""
    text = "---\nprivate: true\n---\n# Garden\n\n- Tulips. ^aaaa\n"
    brain.commit("made", by="x", changes=[create(PAGE, text)])
    put(brain, COPY, text.replace("Tulips", "Zinnias"))
    settle_copies(brain)
    review = brain.read_text("memory/review.md") or ""
    assert [True, False] == ["garden" in line for line in (review, shareable_text(review) or "")]
    assert 1 == len(find_ticks(review))


@pytest.mark.parametrize(("mark", "flower"), [("x", "Zinnias"), ("-", "Tulips")])
def test_a_person_decides(brain: Brain, mark: str, flower: str) -> None:
    """`[x]` puts the copy in place, `[-]` keeps what stands; either way the copy goes and both texts are kept."""
    brain.commit("made", by="x", changes=[create(PAGE, "# Garden\n\n- Tulips. ^aaaa\n")])
    put(brain, COPY, "# Garden\n\n- Zinnias. ^bbbb\n")
    settle_copies(brain)
    put(brain, "memory/review.md", (brain.read_text("memory/review.md") or "").replace("[ ]", f"[{mark}]"))
    settle_reviews(brain)
    settle_copies(brain)
    assert flower in (brain.read_text(PAGE) or "")
    assert brain.read(COPY) is None


def test_a_copy_of_what_was_known_is_set_aside(brain: Brain) -> None:
    """An equal text, an earlier version, and a derived page are no news to anybody."""
    brain.commit("made", by="x", changes=[create(PAGE, "# Old\n")])
    brain.commit("edited", by="x", changes=[update(PAGE, "# Old\n", "# New\n")])
    index = "memory/long_term/_index.sync-conflict-20250916-153000-ABCDEFG.md"
    for path, text in ((COPY, "# Old\n"), (COPY.replace("153000", "153001"), "# New\n"), (index, "# Index\n")):
        put(brain, path, text)
    assert ["copy-set-aside"] * 3 == [event.kind for event in settle_copies(brain)]
    assert "# New\n" == brain.read_text(PAGE)


def test_a_copy_of_what_is_gone_is_proposed(brain: Brain) -> None:
    """A page deleted here and edited there: the person may take it back."""
    put(brain, COPY, "# Garden\n\n- Zinnias. ^bbbb\n")
    settle_copies(brain)
    put(brain, "memory/review.md", (brain.read_text("memory/review.md") or "").replace("[ ]", "[x]"))
    settle_reviews(brain)
    assert "Zinnias" in (brain.read_text(PAGE) or "")


def test_only_the_active_device_settles(brain: Brain) -> None:
    """Two devices that merged the same copy would make new ones."""
    put(brain, "system/config.yaml", (brain.read_text("system/config.yaml") or "") + "\nactive_device: another-one\n")
    put(brain, STM_COPY, stm(1))
    assert [] == settle_copies(brain)
    assert brain.read(STM_COPY)


def test_a_daemon_settles_them(tmp_path: Path) -> None:
    """At the start and whenever the tree is looked over."""
    with running(tmp_path / "brain") as pair:
        pair.drop(STM, EMPTY)
        pair.drop(STM_COPY, stm(1))
        pair.daemon._scan_periodically()
        eventually(lambda: pair.text(STM_COPY) is None and "said 1" in (pair.text(STM) or ""), "merged")
