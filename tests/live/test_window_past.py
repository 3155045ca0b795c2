"""The pages of the window on what waits, what happened and why: in a real browser before a running daemon."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.testing import door
from tests.support.browser import NARROW, SECONDS, visiting, windowed, with_and_without_script
from tests.support.living import Living, events_of, living_brain
from tests.support.models import write_memory
from tests.support.organized import Scene
from tests.support.pipeline import eventually

PORTLAND = "memory/long_term/concrete/portland.md"
STATEMENTS = {"f3k9": "User lives in Portland.", "d1d1": "The house has a red door.", "n1n1": "The neighbour is Ada."}
WISHES = {"f3k9": "User lives in Oslo.", "d1d1": "The house has a green door.", "n1n1": "The neighbour is Eda."}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Living]:
    """A daemon of a brain with one page of three statements."""
    root = living_brain(tmp_path / "brain")
    first, *others = (f"{text} ^{block}" for block, text in STATEMENTS.items())
    write_memory(root, "concrete/portland.md", "Portland", 1, first, "".join(f"- {other}\n" for other in others))
    with windowed(root) as daemon:
        yield daemon


def ask_all(root: Path) -> None:
    """Have another wording of each statement proposed."""
    brain = Brain(root)
    for block, text in WISHES.items():
        door(brain, "suggest", id=f"{PORTLAND}#^{block}", change="replace", text=text)
    brain.close()


def standing(root: Path) -> set[str]:
    """Return the statements that hold now, without their ids."""
    lines = (root / PORTLAND).read_text().partition("## History")[0].splitlines()
    return {line[2:].partition(" (")[0].partition(" ^")[0] for line in lines if line.startswith("- ")}


def edits(root: Path) -> list[str]:
    """Return the files that a person changed, as the journal has them."""
    return [change.path for event in events_of(root, "note-edited") for change in event.changes]


# --- review ----------------------------------------------------------------------------------------------------------


def test_what_waits_is_decided_by_keys_alone(browser: Any, daemon: Living) -> None:
    """j, k and y, n, l: a yes, a no and one put off; both texts stand side by side with the difference marked."""
    ask_all(daemon.root)
    with visiting(browser, daemon.root) as visitor:
        visitor.go("/review")
        first, here = visitor.page.locator(".choice").first, visitor.page.locator(".choice:focus")
        assert ["Portland"] == first.locator("del").all_inner_texts()
        assert ["Oslo"] == first.locator("ins").all_inner_texts()
        for keys, word in (("jjk", "Oslo"), ("y", "green"), ("n", "Eda")):
            for key in keys:
                visitor.page.keyboard.press(key)
            here.get_by_text(word, exact=True).wait_for()
        visitor.page.keyboard.press("l")
        visitor.await_text("Put off until tomorrow: 1")
        visitor.go("/")
        assert "Waits for you" not in visitor.text()
        visitor.go("/review")
        eventually(lambda: 2 == len(events_of(daemon.root, "proposal-decided")), "both decisions", SECONDS)
        assert {"User lives in Oslo.", *list(STATEMENTS.values())[1:]} == standing(daemon.root)
        decided = visitor.page.locator("section", has=visitor.page.get_by_role("heading", name="Decided today"))
        # both came without a reload
        decided.locator("li", has_text="done").get_by_role("button", name="undo").click()
        eventually(lambda: set(STATEMENTS.values()) == standing(daemon.root), "the former wording", SECONDS)
        decided.locator("li", has_text="left as it was").get_by_role("button", name="undo").click()
        again = visitor.page.locator(".kind .choice", has_text="green")  # it waits again
        again.get_by_role("button", name="yes, write it").click()
        eventually(lambda: "The house has a green door." in standing(daemon.root), "the new wording", SECONDS)
    assert "- [ ]" in (daemon.root / "memory/review.md").read_text()  # what is put off stays


@with_and_without_script
def test_many_are_decided_at_once_and_taken_back_as_one(browser: Any, daemon: Living, script: bool) -> None:
    """What is marked, and all of a kind; without a mark there is no button for it."""
    ask_all(daemon.root)
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/review")
        yes = visitor.page.get_by_role("button", name="yes to what is marked")
        assert not yes.is_visible()
        for box in visitor.page.get_by_role("checkbox").all()[:2]:
            box.check()
        yes.click()
        visitor.await_text("Done (2).")
        wanted = {*list(WISHES.values())[:2], STATEMENTS["n1n1"]}
        eventually(lambda: wanted == standing(daemon.root), "the new wordings", SECONDS)
        visitor.await_text("Decided today", reloads=not script)
        visitor.page.get_by_role("button", name="undo").click()
        eventually(lambda: set(STATEMENTS.values()) == standing(daemon.root), "the former wordings", SECONDS)


@pytest.mark.parametrize("kept", ["one", "other"])
def test_of_two_devices_texts_one_is_kept(browser: Any, daemon: Living, kept: str) -> None:
    """The other line is taken out of its page, and the question out of `review.md`; it can be taken back."""
    page, review = daemon.root / PORTLAND, daemon.root / "memory/review.md"
    texts = {"one": "- The neighbour is Ada. ^n1n1", "other": "- The neighbour is Ida. ^n2n2"}
    page.write_text(page.read_text() + texts["other"] + "\n")
    line = f"- {PORTLAND}: you and laptop changed it, and both stand; keep what holds: `{texts['one']}`"
    review.write_text(f"# Review\n\n{line} or `{texts['other']}`\n")
    with visiting(browser, daemon.root) as visitor:
        visitor.go("/review")
        visitor.page.keyboard.press("j")
        visitor.page.keyboard.press("y" if kept == "one" else "n")
        visitor.await_text("The other is taken out.")
        assert texts.pop(kept) in page.read_text()
        assert texts.popitem()[1] not in page.read_text()
        assert "both stand" not in review.read_text()
        visitor.page.get_by_role("button", name="undo: that").click()
        eventually(lambda: "both stand" in review.read_text(), "the question", SECONDS)


# --- timeline --------------------------------------------------------------------------------------------------------


@with_and_without_script
def test_a_run_opens_to_its_changes_and_is_undone_after_a_look(browser: Any, daemon: Living, script: bool) -> None:
    """What a person changed by hand is told apart from what an answer did; the page says first what undo would do."""
    daemon.answer("trip/one.md", "I live in Portland.")
    page = daemon.root / PORTLAND
    former = page.read_text()
    page.write_text(former.replace("red door", "blue door"))
    eventually(lambda: PORTLAND in str(edits(daemon.root)), "the edit", SECONDS)
    with visiting(browser, daemon.root, java_script_enabled=script, viewport=NARROW) as visitor:
        visitor.go("/timeline")
        by_hand, answer = (
            visitor.page.locator(".rows .hand"),
            visitor.page.locator(".rows li", has_text="I live in Portland."),
        )
        assert "Portland → edited by hand" in by_hand.first.inner_text()
        assert "you said" in answer.inner_text()
        assert 0 == visitor.page.locator(".hand", has_text="I live in Portland.").count()
        answer.get_by_role("link").click()
        words = visitor.page.locator("main blockquote").first.inner_text()
        assert ["I live in Portland.", "Noted."] == words.split("\n\n")[:2]
        assert "seen:" not in visitor.text().lower()
        visitor.page.get_by_role("link", name="the conversation").click()
        assert "I live in Portland." in visitor.text()
        visitor.page.go_back()
        visitor.page.get_by_role("link", name="the page that has it").click()
        assert "I live in Portland." in visitor.text()
        visitor.go("/timeline")
        by_hand.first.get_by_role("link").click()
        assert ["red"] == visitor.page.locator("[aria-labelledby=h-changes] del").all_inner_texts()
        assert ["blue"] == visitor.page.locator("[aria-labelledby=h-changes] ins").all_inner_texts()
        assert "change back: Portland" in visitor.text()
        assert "blue door" in page.read_text()  # a look alone does nothing
        visitor.page.get_by_role("button", name="undo all of this").click()
        visitor.await_text("Taken back: ")
        assert page.read_text() == former
        visitor.page.get_by_role("button", name="bring it back: that").click()
        eventually(lambda: "blue door" in page.read_text(), "the edit again", SECONDS)


@with_and_without_script
def test_one_line_of_a_run_takes_back_no_run_without_a_look(browser: Any, tmp_path: Path, script: bool) -> None:
    """Beside what a run did with other things stands no undo but a way to what that would take back."""
    root = living_brain(tmp_path / "brain")
    brain = Brain(root)
    scene = Scene(brain, brain.clock)
    scene.page("concrete/boats/heron")
    old = [root / scene.page(f"concrete/past/thing-{number}", days_ago=200) for number in range(3)]
    brain.observed.adopt()
    brain.close()
    subprocess.run([sys.executable, "-m", "brainiac", "--brain", str(root), "organize"], check=True)
    with windowed(root), visiting(browser, root, java_script_enabled=script) as visitor:
        visitor.go("/")
        moved = visitor.page.locator("li.moved")
        assert 3 == moved.count()
        assert 0 == moved.get_by_role("button", name="undo").count()
        moved.first.get_by_role("link", name="undo all of its run").click()
        assert 3 == visitor.text().lower().count("move back: thing")
        assert not any(file.exists() for file in old)
        visitor.page.get_by_role("button", name="undo all of this").click()
        visitor.await_text("Taken back: memory → organized (1 change)")
        assert all(file.exists() for file in old)


def test_what_stands_in_the_way_is_told_before(browser: Any, daemon: Living) -> None:
    """Undoing is not offered where a later change is in its way."""
    page = daemon.root / PORTLAND
    page.write_text(page.read_text().replace("red", "blue"))
    eventually(lambda: 1 == edits(daemon.root).count(PORTLAND), "the first edit", SECONDS)
    page.write_text(page.read_text().replace("blue", "grey"))
    eventually(lambda: 2 == edits(daemon.root).count(PORTLAND), "the second edit", SECONDS)
    with visiting(browser, daemon.root) as visitor:
        visitor.go("/timeline")
        visitor.page.locator(".rows .hand a").last.click()
        visitor.await_text("In the way")
        assert "brainiac undo" not in visitor.text()
        assert 0 == visitor.page.get_by_role("button", name="undo all of this").count()
        visitor.page.get_by_role("link", name="undo", exact=True).click()
        visitor.await_text("grey")  # of what is in the way


@with_and_without_script
def test_the_journal_is_filtered_and_drawn_by_day(browser: Any, daemon: Living, script: bool) -> None:
    """By kind, page, conversation, device and author; a month is a picture in which each day is a link."""
    daemon.answer("trip/one.md", "I live in Portland.")
    daemon.answer("two.md", "I have a heron.")
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/timeline")
        rows = "[aria-labelledby=h-list] li a"
        today = visitor.page.locator(".month a[aria-current]")
        assert "event" in str(today.get_attribute("aria-label"))
        visitor.page.get_by_text("Filter").click()
        visitor.page.get_by_label("Conversation").fill("trip")
        visitor.page.get_by_label("Kind").select_option("prompt-answered")
        visitor.page.get_by_role("button", name="Show").click()
        assert ["I live in Portland."] == visitor.page.locator(rows).all_inner_texts()
        today.click()  # a day of the picture keeps the filter
        assert 1 == visitor.page.locator(rows).count()
        for query, is_there in (("by=you", False), ("page=two", True), ("device=nobody", False), ("kind=bogus", False)):
            visitor.go(f"/timeline?{query}")
            assert is_there == ("I have a heron." in visitor.text()), query
        visitor.go("/timeline?day=2001-02-03")
        visitor.page.get_by_role("link", name="the whole month").click()
        assert "February 2001" in visitor.text()
        visitor.go("/timeline?month=2001-02&kind=prompt-answered&by=you")  # without entries: the filter stays
        visitor.page.get_by_role("button", name="Show").click()
        assert "prompt-answered" == visitor.page.get_by_label("Kind").input_value()
        assert "you" == visitor.page.get_by_label("Author").input_value()
        visitor.go("/timeline?all=1")
        assert "exchange-reflected" in visitor.text()


# --- why -------------------------------------------------------------------------------------------------------------


@with_and_without_script
def test_a_statement_leads_to_the_sentence_that_was_typed(browser: Any, daemon: Living, script: bool) -> None:
    """It is marked where it stands in what was said; another wording shows its difference, and each step its run."""
    daemon.answer("one.md", "/remember My boat is called Heron.\n/remember The crane is blue.")
    subprocess.run([sys.executable, "-m", "brainiac", "--brain", str(daemon.root), "promote"], check=True)
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/why?name=My boat is called Heron.")
        quote = visitor.page.locator("blockquote")
        assert ["My boat is called Heron."] == quote.locator("mark").all_inner_texts()
        assert "/remember The crane is blue." in quote.locator(".text").inner_text()
        visitor.page.get_by_role("link", name="wrong").click()
        visitor.page.get_by_label("What is so instead").fill("My boat is called Crane.")
        visitor.page.get_by_role("button", name="Put right").click()
        visitor.await_text("“My boat is called Heron.” → “My boat is called Crane.”")
        visitor.go("/why?name=My boat is called Crane.")
        assert ["Heron"] == visitor.page.locator(".versus del").all_inner_texts()
        assert ["Crane"] == visitor.page.locator(".versus ins").all_inner_texts()
        if script:  # without it axe may wait for ever
            visitor.check_access()
        visitor.page.get_by_role("link", name="all of it").last.click()
        if script:
            visitor.check_access()
        assert "put right by you" in visitor.text()
        files = daemon.root.glob("memory/long_term/**/[!_]*.md")
        page = next(file for file in files if "- My boat is called Crane." in file.read_text())
        visitor.go(f"/forget?name={page.relative_to(daemon.root)}")
        assert "stays, word for word: this: “" in visitor.text()
        assert not re.search("[0-9a-f]{8}-[0-9a-f]{4}-|_index|replaced by|\\^", visitor.text())
