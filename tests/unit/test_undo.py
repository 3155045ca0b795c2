"""A whole commit is taken back by a new one, or each file in the way is named and nothing is done."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.events import Event, TextsPurged, TreeTidied, append, create, move, remove, update
from brainiac.formats.markdown import StmEvent
from brainiac.testing import CountingDisk, Crash, World, command, make_brain
from tests.support.commands import Shell, do
from tests.support.kernel import on_disk
from tests.support.notes_texts import stm_text

A, B, C = (f"memory/long_term/concrete/{name}.md" for name in "abc")
STM = "memory/short_term.md"


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    brain.observed.adopt()
    yield brain
    brain.close()


def taken_back(brain: Brain, event: str) -> dict[str, Any]:
    """Undo an event, by its id, and return what the command says of it."""
    said: dict[str, Any] = do(brain, "undo", event, "--json").json
    return said


def refused(brain: Brain, event: Event) -> str:
    """Return why an event cannot be undone."""
    done = command(brain, "undo", event.id)
    assert done.code == 1
    return done.err


def texts(brain: Brain) -> dict[str, str]:
    """Every tracked file that stands."""
    found = (brain.tree.relative(each.path) for each in brain.tree.walk(brain.tree.memory, brain.tree.system))
    return {path: brain.read_text(path) or "" for path in found}


def test_every_operation_is_reversed(brain: Brain) -> None:
    """Create, update, remove and move of one commit are turned round by one; taking that back brings all of it again.

    Seeds: S15.
    """
    brain.commit("pages-made", by="x", changes=[create(A, "a\n"), create(B, "b\n")])
    before = texts(brain)
    changes = [update(A, "a\n", "A\n"), move(B, C, "b\n", "c\n"), create("memory/long_term/concrete/d.md", "d\n")]
    event = brain.commit("pages-changed", by="x", changes=changes)
    after = texts(brain)
    undone = taken_back(brain, event.id)["event"]
    assert before == texts(brain)
    again = taken_back(brain, undone["id"])["event"]
    assert after == texts(brain)
    assert ("event-undone", event.id, undone["id"]) == (again["kind"], undone["cause"], again["cause"])
    assert brain.journal.fold()[A] == brain.observed.hash_of(A)


def test_a_removed_file_comes_back(brain: Brain) -> None:
    """Byte for byte, from the journal's texts."""
    brain.commit("page-made", by="x", changes=[create(A, b"\xff odd \r\n")])
    event = brain.commit("page-removed", by="x", changes=[remove(A, b"\xff odd \r\n")])
    do(brain, "undo", event.id)
    assert b"\xff odd \r\n" == brain.read(A)


def test_each_file_in_the_way_is_named(brain: Brain) -> None:
    """A file changed, gone or made anew since keeps the whole commit; each is named with what to do."""
    brain.commit("pages-made", by="x", changes=[create(B, "b\n")])
    event = brain.commit("pages-changed", by="x", changes=[create(A, "a\n"), create(C, "c\n"), remove(B, "b\n")])
    later = brain.commit("page-changed", by="y", changes=[update(A, "a\n", "A\n")])
    brain.tree.absolute(B).write_text("mine\n")
    brain.tree.absolute(C).unlink()
    standing = texts(brain)
    problems = refused(brain, event)
    assert [A, C, B] == re.findall(r"memory/\S+/[abc]\.md(?=:)", problems)
    for words in ("was changed since by y (page-changed", f"brainiac undo {later.id}", "is gone", "stands there anew"):
        assert words in problems
    assert standing == texts(brain)


def test_log_lines_stay_and_it_is_said(brain: Brain) -> None:
    """The access log tells what happened; taking an answer back does not make it untold."""
    event = brain.commit("answered", by="x", changes=[append("logs/access.log", "line\n"), create(A, "a\n")])
    stays = taken_back(brain, event.id)["stays"]
    assert ["logs/access.log: the lines that were added to this log stay"] == stays
    assert b"line\n" == brain.read("logs/access.log")
    only_log = brain.commit("logged", by="x", changes=[append("logs/access.log", "line\n")])
    assert "changed no file" in refused(brain, only_log)


def test_what_it_led_to_is_named(brain: Brain) -> None:
    """Events with it as their cause, or that rest on its exchange, are listed, theirs too."""
    first = brain.commit("answered", by="x", changes=[create(A, "a\n")])
    second = brain.commit("exchange-reflected", by="x", changes=[create(B, "b\n")], data={"exchange": first.id})
    third = brain.record("told", by="x", cause=second.id)
    brain.record("unrelated", by="x")
    assert [second.id, third.id] == [event["id"] for event in taken_back(brain, first.id)["later"]]


def test_what_it_led_to_is_found_past_a_purge(brain: Brain) -> None:
    """A purge names statements by their hashes: it is read over where consequences are looked for."""
    made = brain.commit("made", by="x", changes=[create(A, "a")])
    purged = TextsPurged(exchanges=(), page=None, statements=("0123",), items=(), hashes=(), events=())
    brain.record(purged, by="cli")
    after = brain.record("thing-followed", by="x", cause=made.id)
    assert [after.id] == [event["id"] for event in taken_back(brain, made.id)["later"]]


def stm(*ids: str, tasks: tuple[str, ...] = (), done: tuple[str, ...] = (), summary: str = "") -> str:
    events = [StmEvent(number, f"2025-09-16T15:3{number}:00Z", f"said {number}") for number in ids]
    return stm_text(*events, tasks=tasks, done=done, summary=summary)


def test_short_term_memory_is_taken_back_by_item(brain: Brain) -> None:
    """What one exchange added and ticked goes, though others came after it; theirs stays to the byte.

    Seeds: S5.
    """
    brain.commit("noted", by="x", changes=[update(STM, stm(), stm("1", tasks=("old", "kept")))])
    second = stm("1", "2", tasks=("old", "kept", "new"), done=("old",))
    event = brain.commit("noted", by="x", changes=[update(STM, stm("1", tasks=("old", "kept")), second)])
    third = stm("1", "2", "3", tasks=("old", "kept", "new"), done=("old",))
    brain.commit("noted", by="x", changes=[update(STM, second, third)])
    undone = taken_back(brain, event.id)["event"]
    assert stm("1", "3", tasks=("old", "kept")) == brain.read_text(STM)
    do(brain, "undo", undone["id"])
    memory = brain.short_term().memory
    assert (["3", "2", "1"], {"old": True, "kept": False, "new": False}) == (
        [each.id for each in memory.events],
        {item.text: item.is_done for item in memory.tasks},
    )


def test_what_was_pruned_comes_back_beside_what_came_since(brain: Brain) -> None:
    """A promotion taken back: its pages go, its events return word for word, and a later exchange stays."""
    before = stm("1", "2", tasks=("call",), summary="Old.")
    brain.commit("noted", by="x", changes=[update(STM, stm(), before)])
    pruned = stm(summary="New.")
    event = brain.commit("memory-promoted", by="x", changes=[create(A, "# A\n"), update(STM, before, pruned)])
    brain.commit("noted", by="x", changes=[update(STM, pruned, stm("3", summary="New."))])
    do(brain, "undo", event.id)
    memory = brain.short_term().memory
    assert (["3", "2", "1"], ["call"], "Old.") == (
        [each.id for each in memory.events],
        [item.text for item in memory.tasks],
        memory.summary,
    )
    assert brain.read(A) is None


@pytest.mark.slow
def test_runs_are_taken_back_one_after_the_other(tmp_path: Path) -> None:
    """Three runs and a person wrote on one page: each run goes in its turn, and what the person wrote stays.

    What cannot go yet is named with who wrote there since, and how that is taken back.
    """
    world, page = World(tmp_path), "memory/long_term/concrete/notes/2025-09.md"
    told = ["My sister Ines lives in Porto.", "My dentist is Dr. Weiss.", "My brother Paul plays the cello."]
    for text in told:
        world.cli("ask", f"/remember {text}")
        world.tick(3600)
        world.cli("promote")
        if text == told[0]:
            world.save(page, world.tree()[page] + "\nBy hand.\n")
            world.run()
        world.tick(86400)
    with world.opened() as opened:
        runs = [event.id for event in opened.journal.events(kinds={"memory-promoted"})]
    refused = world.cli("undo", runs[1])
    assert (1, True) == (refused.code, f"take that back first (`brainiac undo {runs[2]}`)" in refused.err)
    for number in (2, 1):
        assert 0 == world.cli("undo", runs[number]).code
        text = world.tree()[page]
        assert [each < number for each in range(3)] == [words in text for words in told]
        assert text.endswith("\nBy hand.\n")
    refused = world.cli("undo", runs[0])
    assert (1, True) == (refused.code, f"{page}: was changed since by person" in refused.err)
    by_hand = re.search(r"`brainiac undo (\S+)`", refused.err)
    assert by_hand is not None
    for event in (by_hand[1], runs[0]):
        assert 0 == world.cli("undo", event).code
    assert page not in world.tree()
    assert all(text in world.tree()[STM] for text in told)


def test_a_statement_edited_since_is_not_taken_out(brain: Brain) -> None:
    """What an event stated and somebody reworded since is named with who did; other statements are no obstacle."""
    brain.commit("page-made", by="x", changes=[create(A, "# A\n\n- One. ^aa11\n")])
    stated = "# A\n\n- One. ^aa11\n- Two. ^bb22\n"
    event = brain.commit("stated", by="x", changes=[update(A, "# A\n\n- One. ^aa11\n", stated)])
    longer = stated + "- Three. ^cc33\n"
    brain.commit("stated", by="y", changes=[update(A, stated, longer)])
    later = brain.commit("reworded", by="y", changes=[update(A, longer, longer.replace("Two.", "Two or so."))])
    problem = refused(brain, event)
    assert re.search(r"“- Two or so\. \^bb22” was edited since by y .*`brainiac undo", problem)
    assert later.id in problem
    do(brain, "undo", later.id)
    do(brain, "undo", event.id)
    assert "# A\n\n- One. ^aa11\n- Three. ^cc33\n" == brain.read_text(A)


def test_an_event_edited_by_hand_is_not_taken_out(brain: Brain) -> None:
    """The person's wording stands in the way and is named."""
    event = brain.commit("noted", by="x", changes=[update(STM, stm(), stm("1"))])
    brain.tree.absolute(STM).write_text(stm("1").replace("said 1", "I meant something else"))
    assert "its exchange of 2025-09-16T15:31:00Z was edited since" in refused(brain, event)


def test_an_index_page_never_stands_in_the_way(brain: Brain) -> None:
    """Its manifest is derived and rewritten at any time; what can be merged back is, the rest stays and is told."""
    page = "memory/long_term/concrete/_index.md"
    before = brain.read_text(page) or ""
    event = brain.commit("promoted", by="x", changes=[create(A, "a\n"), update(page, before, before + "\nlinked\n")])
    brain.tree.absolute(page).write_text(before.replace("## Manifest", "## Manifest\n- [A](a.md)") + "\nlinked\n")
    do(brain, "undo", event.id)
    text = brain.read_text(page) or ""
    assert ("- [A](a.md)" in text, "linked" in text, brain.read(A)) == (True, False, None)


def test_ids_are_found_by_a_part(brain: Brain, shell: Shell) -> None:
    """A unique beginning or the end that `log` shows names an event; others are refused with what to do."""
    event = brain.commit("page-made", by="x", changes=[create(A, "a\n")])
    back = taken_back(brain, event.id[-8:])["event"]
    assert (event.id, back["id"]) == (back["cause"], taken_back(brain, back["id"][:30])["event"]["cause"])
    for named, said in (("abc", "too short"), ("zzzzzzzz", "no event"), (event.id[:6], "events have")):
        done = shell("undo", named)
        assert 1 == done.code
        assert said in done.err


def test_last_goes_further_back_each_time(brain: Brain, shell: Shell) -> None:
    """`undo --last` takes back the newest change of memory that stands, a person's edit too, and no other file."""
    first = brain.commit("page-made", by="x", changes=[create(A, "a\n")])
    brain.commit("page-made", by="x", changes=[create(B, "b\n")])
    brain.tree.absolute(C).write_text("by hand\n")
    brain.observed.note_change(C)
    (brain.tree.inbox / "later.md").write_text("---\nstatus: draft\n---\nMine.\n")
    brain.observed.note_change("inbox/later.md")
    said = shell("undo", "--last")
    assert (0, True) == (said.code, f"{C} → put there by hand" in said.out)
    said = shell("undo", "--last")
    assert (0, True) == (said.code, f"- {B}" in said.out)
    assert first.id == shell("undo", "--last", "--json").json["event"]["data"]["undone"]
    assert (None, None, None) == (brain.read(A), brain.read(B), brain.read(C))
    assert (True, True) == ((brain.tree.inbox / "later.md").exists(), "nothing changed" in shell("undo", "--last").err)


def test_what_was_deleted_by_hand_comes_back(brain: Brain, shell: Shell) -> None:
    """`undo --last` passes over the upkeep that followed, and over what was undone."""
    brain.commit("page-made", by="x", changes=[create(A, "a\n"), create(B, "b\n")])
    brain.tree.absolute(A).unlink()
    brain.observed.note_change(A)
    brain.commit(TreeTidied(what="index-pages"), by="organization", changes=[update(B, "b\n", "B\n")])
    assert "deleted by hand" in shell("undo", "--last").out
    assert (b"a\n", b"B\n") == (brain.read(A), brain.read(B))


def test_the_last_exchange_goes_with_all_that_followed(brain: Brain, shell: Shell) -> None:
    """The answer and what was noted are taken back at once; the prompt, a person's file, stays and is told of."""
    shell("ask", "/remember My locker is 4711.")
    (prompt,) = (event.data["prompt"] for event in brain.journal.events(kinds={"prompt-answered"}))
    done = shell("undo", "--last")
    assert (0, True) == (done.code, f"brainiac ask --again {prompt}" in done.out)
    assert (True, None) == (brain.read(prompt) is not None, brain.read(prompt.replace(".md", ".response.md")))
    assert "My locker" not in (brain.read_text(STM) or "")
    assert f"{prompt}: its answer was taken back" in shell("status").out


def test_an_exchange_goes_with_what_rests_on_it(tmp_path: Path) -> None:
    """By its id, after it was consolidated: forgotten as by `forget`, but for the prompt, and all of it comes back."""
    world, page = World(tmp_path), "memory/long_term/concrete/notes/2025-09.md"
    told = world.drop("locker.md", "/remember My locker is 4711.\n")
    world.run()
    world.drop("ines.md", "/remember My sister Ines lives in Porto.\n")
    world.tick(3600)
    world.cli("promote")
    before = {path: text for path, text in world.tree().items() if re.match(r"[im][^.]*\.md$", path)}
    assert "My locker is 4711." in before[page]
    exchange = world.cli("log", "--kind", "prompt-answered", "--json").json[0]["id"]
    done = world.cli("undo", exchange)
    assert (0, True) == (done.code, "removed: “My locker is 4711.”" in done.out), done
    left = [
        path for path, text in world.tree().items() if "locker is 4711" in text and re.match(r"[im][^.]*\.md$", path)
    ]
    assert (["inbox/locker.md"], None) == (left, told.answer)
    assert "My sister Ines lives in Porto." in world.tree()[page]
    assert "taken back already" in world.cli("undo", exchange).err
    # the run that consolidated it would have it in short-term memory again
    refused = world.cli("undo", "--last")
    way_out = re.findall(r"`brainiac undo (\S+)`", done.out)[0]
    assert (1, True) == (refused.code, f"bring that back first (`brainiac undo {way_out}`)" in refused.err), refused
    assert "locker" not in world.tree()["memory/short_term.md"]
    for event in re.findall(r"`brainiac undo (\S+)`", done.out):
        assert 0 == world.cli("undo", event).code
    assert before[page] == world.tree()[page]
    after = world.tree()
    assert told.answer
    assert {} == {path: text for path, text in before.items() if text != after.get(path) and "Today" not in path}


@pytest.mark.parametrize("told", ["/remember My locker is 4711.", "/todo Call Ines", "note"])
def test_a_question_is_passed_over(brain: Brain, shell: Shell, told: str) -> None:
    """What was told is taken back, and not the question asked since; the question goes by its id."""
    if told == "note":
        (brain.tree.inbox / "notes").mkdir(exist_ok=True)
        (brain.tree.inbox / "notes/locker.md").write_text("My locker is 4711.\n")
        shell("run", "--once")
    else:
        shell("ask", told)
    before = brain.short_term().memory
    shell("ask", "Where is my locker?")
    shell("ask", "And what is my locker?")
    assert 0 == shell("undo", "--last").code
    memory = brain.short_term().memory
    assert ((), ()) == (memory.facts, memory.tasks)
    assert ["And what is my locker?", "Where is my locker?"] == [event.user for event in memory.events]
    assert before != memory
    refused = shell("undo", "--last")
    assert (1, True) == (refused.code, "`brainiac log` has the id" in refused.err)
    (*_, asked) = brain.journal.events(kinds={"prompt-answered"})
    assert (0, True) == (shell("undo", asked.id).code, brain.read(asked.data["response"]) is None)
    assert ["Where is my locker?"] == [event.user for event in brain.short_term().memory.events]


def test_a_tick_is_taken_back(brain: Brain, shell: Shell) -> None:
    """`/done` brought no line into memory, and changed it."""
    shell("ask", "/todo Call Ines")
    shell("ask", "/done Ines")
    shell("ask", "Who is Ines?")
    assert 0 == shell("undo", "--last").code
    assert [False] == [task.is_done for task in brain.short_term().memory.tasks]


def test_undone_twice_is_refused(brain: Brain, shell: Shell) -> None:
    """What is taken back already is told, with how to bring it back; then it can be taken back again."""
    event = brain.commit("page-made", by="x", changes=[create(A, "a\n")])
    undone = taken_back(brain, event.id)["event"]
    assert f"brainiac undo {undone['id']}" in refused(brain, event)
    do(brain, "undo", undone["id"])
    do(brain, "undo", event.id)
    assert brain.read(A) is None
    assert 2 == shell("undo").code


def test_the_beginning_cannot_be_undone(brain: Brain) -> None:
    """Adopting the tree is where the history of a device starts."""
    (baseline,) = brain.journal.events(kinds={"tree-adopted"})
    assert "nothing before it" in refused(brain, baseline)


def test_a_purged_text_stands_in_the_way(brain: Brain) -> None:
    """What was destroyed cannot come back, and that is said."""
    brain.commit("page-made", by="x", changes=[create(A, "a\n")])
    event = brain.commit("page-changed", by="x", changes=[update(A, "a\n", "A\n")])
    brain.committer.check_displaced()
    assert event.changes[0].before is not None
    brain.close()
    brain = Brain(brain.root)
    brain.journal.blobs.delete(event.changes[0].before)
    assert "not kept any more" in refused(brain, event)


def crashes(root: Path, stop_at: int) -> bool:
    """Undo the last commit on a disk that stops at an operation; tell whether it came that far."""
    brain = on_disk(Brain(root), CountingDisk(stop_at))
    try:
        command(brain, "undo", "--last")
    except Crash:
        return True
    finally:
        brain.committer.database.close()
    return False


@pytest.mark.slow
def test_a_crash_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    """Stopped before any operation, an undo is whole or did not happen, once the next start has looked."""
    outcomes = []
    for stop_at in itertools.count(1):
        brain = make_brain(tmp_path / str(stop_at))
        brain.observed.adopt()
        brain.commit("pages-made", by="x", changes=[create(A, "a\n"), create(B, "b\n")])
        before = texts(brain)
        changes = [update(A, "a\n", "A\n"), move(B, C, "b\n"), create("memory/long_term/d.md", "d")]
        brain.commit("pages-changed", by="x", changes=changes)
        after = texts(brain)
        brain.close()
        is_crashed = crashes(brain.root, stop_at)
        reopened = Brain(brain.root)
        reopened.committer.recover()
        outcomes.append([before, after].index(texts(reopened)))
        reopened.close()
        if not is_crashed:
            break
    assert (1, 0) == (outcomes[0], outcomes[-1])
    assert sorted(outcomes, reverse=True) == outcomes  # from one operation on it is whole


def test_a_person_who_saves_meanwhile_is_not_overwritten(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save between the look and the commit is noticed; the next look names it."""
    event = brain.commit("page-made", by="x", changes=[create(A, "a\n")])

    commit = brain.commit

    def save_and_commit(*args: Any, **values: Any) -> Event:
        brain.tree.absolute(A).write_text("mine\n")
        return commit(*args, **values)

    monkeypatch.setattr(brain, "commit", save_and_commit)
    assert "changed since by person" in refused(brain, event)
    assert b"mine\n" == brain.read(A)


def test_last_is_an_undo_that_was_named_and_nothing_that_was_purged(brain: Brain, shell: Shell) -> None:
    """What a person took back by its id is a change like any other; steps back go further.

    `log --memory` has a purge.
    """
    kept, gone = "# A\n\n- The key hangs in the hall. ^a1\n", "# B\n\n- The emeralds lie in the well. ^b1\n"
    first = brain.commit("page-made", by="x", changes=[create(A, kept)])
    brain.commit("page-made", by="x", changes=[create(B, gone)])
    assert 0 == shell("forget", "emeralds", "--purge", "-y").code
    assert "destroyed for good" in shell("log", "--memory").out
    assert "removed: “The key hangs in the hall.”" in shell("undo", first.id).out
    done = shell("undo", "--last")
    assert (0, True) == (done.code, "added: “The key hangs in the hall.”" in done.out), done
    done = shell("undo", "--last")
    assert (0, None) == (done.code, brain.read(A)), done
    assert "nothing changed memory" in shell("undo", "--last").err
