"""`review.md`: what a person ticks is done once, by the journaled proposal, however their editor saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from brainiac_plugins.organization.run import organize
from brainiac_plugins.organization.upkeep import Upkeep, settle_reviews, tidy_review
from hypothesis import given
from hypothesis import strategies as st

from brainiac.events import ProposalDecided, RetireProposal, create
from brainiac.formats.page import MemoryDocument, new_memory, shareable_text
from brainiac.health.doctor import examine
from brainiac.history.copies import settle_versions
from brainiac.history.digest import digest_since
from brainiac.storage.review import decisions_in, find_ticks, with_proposals, without_proposals
from brainiac.storage.statements import text_hash
from brainiac.verbs import Caller, suggest
from tests.support.organized import ARCHIVE, NOW, TOP, Scene, make_scene

REVIEW = "memory/review.md"
DAY = 86400


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain")
    yield made
    made.brain.close()


def asked(scene: Scene) -> str:
    """Have an important unused page put before the person; return its path."""
    page = scene.page("concrete/past/vow", days_ago=300, importance="high")
    scene.page("concrete/people/mira", links=(page,))
    scene.brain.observed.adopt()
    Upkeep(scene.brain).tend()
    organize(scene.brain)
    return page


def save(scene: Scene, old: str, new: str) -> None:
    """Save review.md as a person does, and let it be seen."""
    file = scene.brain.tree.review
    file.write_text(file.read_text().replace(old, new))
    scene.brain.observed.note_change(REVIEW)


def decided(scene: Scene) -> list[str]:
    return [event.data["how"] for event in settle_reviews(scene.brain)]


def test_a_tick_has_the_proposal_done_once(scene: Scene) -> None:
    """`[x]` archives the page with its links healed; a second look at the same tick does nothing."""
    page = asked(scene)
    save(scene, "- [ ]", "- [x]")
    assert ["applied"] == decided(scene)
    assert page.replace(TOP, ARCHIVE) == scene.pages()[page]
    assert [("moved", page)] == [(line.what, line.before) for line in digest_since(scene.brain, "2020").lines]
    assert [] == list(examine(scene.brain))
    assert [] == decided(scene)


def test_what_is_asked_about_a_private_page_is_marked(scene: Scene) -> None:
    """The line names the page: no remote model is shown it; a tick has it done all the same."""
    page = scene.page("concrete/past/vow", days_ago=300, importance="high", private="yes")
    scene.page("concrete/people/mira", links=(page,))
    scene.brain.observed.adopt()
    Upkeep(scene.brain).tend()
    organize(scene.brain)
    review = scene.brain.tree.review.read_text()
    assert [True, False] == [page in text for text in (review, shareable_text(review) or "")]
    save(scene, "- [ ]", "- [x]")
    assert ["applied"] == decided(scene)


def test_a_dash_declines_for_good(scene: Scene) -> None:
    """`[-]` is noted; the page stays and is not put before the person again as it stands."""
    page = asked(scene)
    save(scene, "- [ ]", "- [-]")
    assert ["declined"] == decided(scene)
    organize(scene.brain)
    assert page == scene.pages()[page]
    assert 1 == len(find_ticks(scene.brain.tree.review.read_text()))


def test_the_lines_text_is_never_what_is_done(scene: Scene) -> None:
    """F-REV-1: Whatever a person or a model makes of the line's words, the journaled proposal is carried out."""
    page = asked(scene)
    other = scene.page("concrete/people/tom")
    save(scene, f"- [ ] Archive `{page}`", f"- [x] Archive `{other}`")
    assert ["applied"] == decided(scene)
    assert (page.replace(TOP, ARCHIVE), other) == (scene.pages()[page], scene.pages()[other])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- [ ]", "- ["),
        ("- [ ]", "- [x"),
        ("- [ ]", "- []"),
        ("- [ ] Archive", "- [xx] Archive"),
        (" -->", ""),
        ("- [ ]", "[x]"),
    ],
)
def test_a_half_typed_line_does_nothing(scene: Scene, old: str, new: str) -> None:
    """An editor that saves while one types has nothing done that was not said."""
    asked(scene)
    save(scene, old, new)
    assert [] == decided(scene)


def test_a_line_that_is_gone_means_nothing(scene: Scene) -> None:
    """Removing a line neither accepts nor declines, and it is not put there again."""
    page = asked(scene)
    scene.brain.tree.review.write_text("")
    scene.brain.observed.note_change(REVIEW)
    assert [] == decided(scene)
    organize(scene.brain)
    assert "" == scene.brain.tree.review.read_text()
    assert page == scene.pages()[page]


def test_a_proposal_expires_when_its_page_changed(scene: Scene) -> None:
    """F-REV-3: What a person wrote since was not what the proposal was about."""
    page = asked(scene)
    file = scene.brain.tree.absolute(page)
    file.write_text(file.read_text() + "\nNow it matters.\n")
    save(scene, "- [ ]", "- [x]")
    assert ["expired"] == decided(scene)
    assert page == scene.pages()[page]
    assert [] == decided(scene)


def test_a_page_that_only_moved_is_still_the_same(scene: Scene) -> None:
    """The proposal names the page by its uuid."""
    page = asked(scene)
    moved = scene.brain.tree.long_term / "concrete/vow.md"
    scene.brain.tree.absolute(page).rename(moved)
    scene.brain.observed.adopt()
    save(scene, "- [ ]", "- [x]")
    assert ["applied"] == decided(scene)
    assert f"{ARCHIVE}/concrete/vow.md" == scene.pages()[page]


def test_settled_lines_go_once_the_file_rests(scene: Scene) -> None:
    """F-REV-4: They go a minute after the person's last save, all else byte for byte; a stale save does nothing."""
    asked(scene)
    save(scene, "- [ ]", "My own remark.\n- [x]")
    stale = scene.brain.tree.review.read_text()
    decided(scene)
    tidy_review(scene.brain)
    assert stale == scene.brain.tree.review.read_text()
    scene.advance(61)
    tidy_review(scene.brain)
    ticked = find_ticks(stale)[0]
    assert stale[: ticked.start] + stale[ticked.end :] == scene.brain.tree.review.read_text()
    scene.brain.tree.review.write_text(stale)
    scene.brain.observed.note_change(REVIEW)
    assert [] == decided(scene)
    scene.advance(61)
    tidy_review(scene.brain)
    assert [] == find_ticks(scene.brain.tree.review.read_text())


def tended(scene: Scene) -> list[str]:
    """Let the daemon's quiet pass; return how proposals were decided so far."""
    Upkeep(scene.brain).tend()
    return [event.data["how"] for event in scene.brain.journal.events(kinds={ProposalDecided})]


def test_what_nobody_decides_for_30_days_lapses(scene: Scene) -> None:
    """F-REV-6: Its line goes with nothing done, the digest tells it once, and it is not asked again as it stands."""
    page = asked(scene)
    line = scene.brain.tree.review.read_text()
    scene.advance(30 * DAY - 1)
    assert ([], line) == (tended(scene), scene.text(REVIEW))
    scene.advance(1)
    assert ["lapsed"] == tended(scene) == tended(scene)
    organize(scene.brain)
    assert ([], page) == (find_ticks(scene.text(REVIEW)), scene.pages()[page])
    told = [line for line in (scene.brain.tree.logs / "digest.md").read_text().splitlines() if "lapsed" in line]
    assert 1 == len(told)
    assert page in told[0]


@pytest.mark.parametrize(("mark", "how"), [("x", "applied"), ("-", "declined")])
def test_a_mark_that_comes_late_counts(scene: Scene, mark: str, how: str) -> None:
    """F-REV-6: Of another device, or of an editor that still had the line: once, and then the line goes."""
    page = asked(scene)
    line = scene.brain.tree.review.read_text()
    scene.advance(30 * DAY)
    tended(scene)
    scene.brain.tree.review.write_text(line.replace("[ ]", f"[{mark}]"))
    scene.brain.observed.note_change(REVIEW)
    assert ["lapsed", how] == tended(scene)
    scene.advance(61)
    assert ["lapsed", how] == tended(scene)
    assert [] == find_ticks(scene.text(REVIEW))
    assert (how == "applied") == (scene.pages()[page] != page)


def test_a_box_that_a_person_touched_is_left_to_them(scene: Scene) -> None:
    """F-REV-6: What is half typed lapses as little as what is being saved."""
    asked(scene)
    scene.advance(30 * DAY)
    save(scene, "- [ ]", "- [")
    half = scene.text(REVIEW)
    scene.advance(61)
    assert ([], half) == (tended(scene), scene.text(REVIEW))


def test_the_digest_is_silent_on_private_words_that_lapsed(scene: Scene) -> None:
    """They are counted, as they were while they waited."""
    page = scene.page("concrete/past/vow", days_ago=300, importance="high", private="yes")
    scene.page("concrete/people/mira", links=(page,))
    scene.brain.observed.adopt()
    Upkeep(scene.brain).tend()
    organize(scene.brain)
    scene.advance(30 * DAY)
    assert ["lapsed"] == tended(scene)
    digest = digest_since(scene.brain, "2020")
    assert ([], 1) == (digest.lines, digest.withheld)


def test_what_is_to_be_forgotten_or_taken_over_never_lapses(scene: Scene) -> None:
    """F-REV-6: A wish to forget and another device's version of a file wait for the person however long."""
    page = scene.page("concrete/people/mira")
    suggest(scene.brain, scene.uuids[page], "forget", caller=Caller("test:client"))
    copy = scene.brain.tree.absolute(f"{TOP}/concrete/tom.sync-conflict-20250916-153000-ABCDEFG.md")
    copy.write_text("# Tom\n\n- Tom is known. ^bbbb\n")
    settle_versions(scene.brain)
    waiting = scene.text(REVIEW)
    assert 2 == len(find_ticks(waiting))
    scene.advance(400 * DAY)
    assert ([], waiting) == (tended(scene), scene.text(REVIEW))
    assert copy.exists()


def test_a_persons_statement_is_retired_by_their_tick(scene: Scene) -> None:
    """What Promotion proposed about a person's own statement is done when they say so, and expires when it changed."""
    brain = scene.brain
    page = new_memory(
        "Home",
        uuid="01995b2e-7c00-7000-8000-000000000002",
        now="2026-01-01T00:00:00Z",
        statements=["User lives in Oslo.", "User lives in Rome."],
    )
    old, new = MemoryDocument(page).memory.statements
    path = f"{TOP}/concrete/home.md"
    record = RetireProposal(
        id="one",
        what="Retire it",
        operation="retire",
        page="01995b2e-7c00-7000-8000-000000000002",
        path=path,
        block=old.block_id,
        hash=text_hash(old.text),
        replaced_by=new.block_id,
        on="2026-05-01",
        sources=(),
    )
    records = [record, replace(record, id="two", hash="other")]
    review = with_proposals("", records).replace("[ ]", "[x]")
    changes = [create(path, page), create(REVIEW, review)]
    data = {"proposals": [each.to_json() for each in records]}
    brain.commit("memory-promoted", by="promotion", changes=changes, data=data)
    assert ["applied", "expired"] == decided(scene)
    held = MemoryDocument(brain.read_text(path) or "").memory.statements
    assert [("User lives in Rome.", False), ("User lives in Oslo.", True)] == [
        (each.text, each.is_history) for each in held
    ]
    assert ["promotion", "promotion"] == [event.by for event in brain.journal.events(kinds={"proposal-decided"})]


def test_an_id_that_nobody_proposed_does_nothing(scene: Scene) -> None:
    """A line that a person or a synced file made up has no proposal in the journal."""
    scene.brain.tree.review.write_text("- [x] Delete all <!-- proposal: made-up -->\n")
    assert [] == decided(scene)
    assert NOW == scene.clock.now()


def test_both_marks_are_no_word() -> None:
    """F-REV-2: The same proposal ticked and declined, as a sync conflict leaves it, is undecided."""
    lines = "- [x] A <!-- proposal: a -->\n- [-] A <!-- proposal: a -->\n* [X] B <!-- proposal: b -->\n"
    assert {"b": True} == decisions_in(lines)


@given(st.text(alphabet="- [x]*\n\r\t<!>proposal: ab", max_size=80), st.sets(st.sampled_from("ab")))
def test_taking_lines_out_leaves_all_else(text: str, ids: set[str]) -> None:
    """Whatever stands there, only whole lines of these proposals go."""
    after = without_proposals(text, ids)
    assert [tick.id for tick in find_ticks(after)] == [tick.id for tick in find_ticks(text) if tick.id not in ids]
    assert after == without_proposals(after, ids)
