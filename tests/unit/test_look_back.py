"""What a brain held earlier, and what two brains hold differently: `diff`, and `show --at`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.clock import ManualClock, iso
from brainiac.events import new_id
from tests.support.commands import Shell, do
from tests.support.promotions import ScriptedEngine, make_brain, page_with, pages, tell

RENT, NEW_RENT = "I pay 640 euros rent in Graz.", "I pay 700 euros rent in Graz."
SAID = (RENT, "Anna lives in Ghent.", "Anna plays the viola.")


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "b", engine=ScriptedEngine())
    for text in SAID:
        tell(brain, text)
    do(brain, "promote")
    wait(brain)
    yield brain
    brain.close()


def wait(brain: Brain) -> str:
    """Let an hour pass; return the moment in the middle of it."""
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(1800)
    moment = iso(brain.clock.now())
    brain.clock.advance(1800)
    return moment


def since(brain: Brain, moment: str) -> dict[str, Any]:
    brain.observed.adopt()
    told: dict[str, Any] = do(brain, "diff", "--since", moment, "--json").json
    return told


def rewrite(brain: Brain, words: str, line: str) -> None:
    """Put a line in place of the statement with some words, as a person does."""
    page = page_with(brain, words)
    (statement,) = (each for each in page.statements if words in each.text)
    text = page.text[: statement.start] + line + page.text[statement.end :]
    (brain.root / page.path).write_text(text)


def summary(told: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["what"], one["before"], one["text"]) for one in told["differences"] if one["kind"] == "statement"]


def test_each_change_of_a_statement_is_told_once(brain: Brain) -> None:
    """What was put right, ended, added and deleted by hand, moved to another page, and what came back."""
    start, before = wait(brain), {page.path: page.text for page in pages(brain).values()}
    do(brain, "correct", RENT, "--to", NEW_RENT)
    rewrite(brain, "viola", "- Anna sails.\n")
    rewrite(brain, "Ghent", "")
    (brain.root / "memory/long_term/concrete/moved.md").write_text("# Belgium\n\n- Anna lives in Ghent. ^mine\n")
    changes = [
        ("added", "", "Anna sails."),
        ("changed", RENT, NEW_RENT),
        ("moved", "Anna lives in Ghent.", "Anna lives in Ghent."),
        ("removed", "Anna plays the viola.", ""),
    ]
    assert changes == sorted(summary(since(brain, start)))
    later = wait(brain)
    (brain.root / "memory/long_term/concrete/moved.md").unlink()
    for path, text in before.items():
        (brain.root / path).write_text(text)
    back = summary(since(brain, later))
    assert ("resumed", RENT, RENT) in back
    assert ("removed", NEW_RENT, "") in back
    assert [] == since(brain, start)["differences"]


def test_pages_that_went_overnight_are_named_with_all_they_held(brain: Brain) -> None:
    """Deleted pages, with statements and exchanges; a page in another folder is moved, not lost."""
    start = wait(brain)
    anna, (day,) = page_with(brain, "viola"), (brain.root / "memory/long_term/events").rglob("2026-03-02.md")
    (brain.root / anna.path).rename(brain.root / "memory/long_term/concrete/anna-of-ghent.md")
    day.unlink()
    difference = since(brain, start)
    assert [("moved", "memory/long_term/concrete/anna-of-ghent.md"), ("removed", str(day.relative_to(brain.root)))] == [
        (one["what"], one["path"]) for one in difference["differences"] if one["kind"] == "page"
    ]
    assert list(SAID) == [text for one in difference["differences"] for text in SAID if text in one["before"]]
    assert [] == summary(difference)


def test_brains_with_other_ids_and_dates_hold_the_same(brain: Brain, tmp_path: Path) -> None:
    """Every id, block id and stamp of a copy is another one: nothing differs; with one word changed, that is told."""
    copy = tmp_path / "copy"
    shutil.copytree(brain.root, copy)
    for page in (copy / "memory/long_term").rglob("*.md"):
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", lambda _: new_id(), page.read_text())
        text = re.sub(r" \^[a-z0-9]{4}$", " ^other", text, flags=re.MULTILINE)
        page.write_text(text.replace("2026-03-02T", "2026-04-05T"))
    result = do(brain, "diff", str(copy), "--json").json
    assert ([], 3) == (result["differences"], len(result["renumbered"]))
    page_file = copy / page_with(brain, "viola").path
    page_file.write_text(page_file.read_text().replace("viola", "cello"))
    assert [("added", "", "Anna plays the cello."), ("removed", "Anna plays the viola.", "")] == sorted(
        summary(do(brain, "diff", str(copy), "--json").json)
    )


def test_two_wordings_of_one_memory_differ_only_in_what_differs(tmp_path: Path, shell: Shell) -> None:
    """Of two brains `diff` pairs each statement with the one that says the same; values and additions are told."""
    for name, texts in {
        "one": {"anna": ["Anna lives in Ghent, in the Hoogpoort.", "Anna pays 80 euros for the garage."],
              "bob": ["Bob works at the harbour as an engineer.", "Bob voted by post.",
                      "Bob leaves at 10:09 by the train.", "The account of the choir is at -5 francs."]},
        "two": {"anna": ["The garage costs Anna 95 euros.", "Bob is an engineer at the harbour."],
              "bob": ["Anna's home is in the Hoogpoort in Ghent.", "The choir sings Bach in December.",
                      "Bob leaves at 09:10 by the train.", "The account of the choir is at 5 francs."]},
    }.items():  # fmt: skip
        brain = make_brain(tmp_path / name)
        for title, lines in texts.items():
            page = brain.tree.long_term / "concrete" / f"{title}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f"# {title}\n\n" + "".join(f"- {line}\n" for line in lines))
        brain.close()
    result = shell("diff", str(tmp_path / "one"), str(tmp_path / "two"), "--json").json
    assert {
        ("reworded", "Anna lives in Ghent, in the Hoogpoort.", "Anna's home is in the Hoogpoort in Ghent."),
        ("reworded", "Bob works at the harbour as an engineer.", "Bob is an engineer at the harbour."),
        ("changed", "Anna pays 80 euros for the garage.", "The garage costs Anna 95 euros."),
        ("changed", "Bob leaves at 10:09 by the train.", "Bob leaves at 09:10 by the train."),
        ("changed", "The account of the choir is at -5 francs.", "The account of the choir is at 5 francs."),
        ("removed", "Bob voted by post.", ""),
        ("added", "", "The choir sings Bach in December."),
    } == {(each["what"], each["before"], each["text"]) for each in result["differences"]}
    told = shell("diff", str(tmp_path / "one"), str(tmp_path / "two")).out
    assert "2 statements reworded" in told
    assert "Hoogpoort" not in told
    assert "Hoogpoort" in shell("diff", str(tmp_path / "one"), str(tmp_path / "two"), "--reworded").out


def test_what_was_purged_is_not_told(brain: Brain) -> None:
    """The page of then cannot be compared, which is said; no other page is taken for new."""
    start = wait(brain)
    do(brain, "forget", RENT, "--purge", "--yes")
    result = since(brain, start)
    assert "640" not in str(result)
    assert result["unreadable"]
    assert all("purged" in problem for problem in result["unreadable"])
    assert [] == summary(result)


def test_a_brain_that_came_later_is_seen_as_the_former_device_saw_it(brain: Brain, tmp_path: Path) -> None:
    """On a new machine the journal of the old one tells; before any journal there is nothing to tell."""
    start = wait(brain)
    page = page_with(brain, "viola")
    brain.close()
    (brain.places.device / "device_id").unlink()  # as on another machine
    (brain.places.state / "device_id").unlink(missing_ok=True)
    shutil.copytree(brain.root, tmp_path / "later")
    later = Brain(tmp_path / "later")
    later.observed.adopt()
    assert page.text == do(later, "show", page.path, "--at", start).out
    assert "this device's journal begins later" in do(later, "diff", "--since", start).out
    later.close()


def test_a_page_as_it_stood(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """By the names it has now and had then, though it was moved, edited and deleted since; short-term memory too."""
    page, start = page_with(brain, "viola"), wait(brain)
    moved = brain.root / "memory/long_term/concrete/moved.md"
    (brain.root / page.path).rename(moved)
    brain.observed.adopt()
    wait(brain)
    moved.write_text(page.text.replace(f"# {page.title}", "# Strings"))
    brain.observed.adopt()
    shell = Shell(capsys, str(brain.root))
    for name in (
        page.path,
        "memory/long_term/concrete/moved.md",
        "concrete/moved.md",
        "Strings",
        page.title,
        page.uuid,
    ):
        assert page.text == shell("show", name, "--at", start).out
    assert moved.read_text() == shell("show", "strings").out == shell("show", "concrete/moved.md").out
    wait(brain)
    moved.unlink()
    brain.observed.adopt()
    end = wait(brain)
    for name in (page.title, page.uuid, page.path):
        assert page.text == shell("show", name, "--at", start, "--json").json["text"]
    assert "stood there then" in shell("show", page.title, "--at", end).err
    assert 1 == shell("show", page.title, "--at", "2999-01-01").code
    assert "Ghent" not in shell("show", "memory/short_term.md").out.split("## Event Log")[1]
    assert "lives in Ghent" in shell("show", "memory/short_term.md", "--at", "2026-03-02T09:02:30").out


def test_a_page_that_was_purged_is_not_shown(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """It says that it was, and nothing of what it said."""
    page, start = page_with(brain, "640"), wait(brain)
    do(brain, "forget", RENT, "--purge", "--yes")
    shown = Shell(capsys, str(brain.root))("show", page.path, "--at", start)
    assert (1, "") == (shown.code, shown.out)
    assert "was purged" in shown.err


def test_diff_as_a_command(brain: Brain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one brain since a day, of two brains; what cannot be compared says what to do."""
    do(brain, "correct", RENT, "--to", NEW_RENT)
    shutil.copytree(brain.root, tmp_path / "copy")
    brain.close()
    shell = Shell(capsys, str(brain.root))
    assert f"changed: “{RENT}” → “{NEW_RENT}”" in shell("diff", "--since", "2026-03-02T09:50").out
    assert "Nothing differs" in shell("diff", str(tmp_path / "copy")).out
    assert [] == shell("diff", str(brain.root), str(tmp_path / "copy"), "--json").json["differences"]
    assert "--since DAY" in shell("diff", str(brain.root)).err
    assert f"added: “{NEW_RENT}”" in shell("diff", "--since", "2025-01-01").out
    assert "the oldest begins at 2026-03-02" in shell("diff", "--until", "2025-01-01", "--since", "2024-01-01").err
    assert 1 == shell("diff", "--since", "soon").code


def test_times_are_named_alike_everywhere(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """`show`, `diff`, `digest`, `log` and `promote` read the same times, and refuse the same with examples."""
    shell, path = Shell(capsys, str(brain.root)), page_with(brain, "Ghent").path
    wait(brain)
    do(brain, "correct", "Anna lives in Ghent.", "--to", "Anna lives in Bruges.")
    do(brain, "correct", "Anna lives in Bruges.", "--to", "Anna lives in Mons.")  # in the same second
    corrected, mended = brain.journal.events(kinds={"statement-corrected"})
    assert corrected.at == mended.at
    assert "Mons" in shell("show", path, "--at", "yesterday").out
    at_event = shell("show", path, "--at", corrected.id[-8:]).out
    assert ("Anna lives in Bruges." in at_event, "Mons" in at_event) == (True, False)
    since_event = shell("diff", "--since", corrected.id).out
    assert "“Anna lives in Bruges.” → “Anna lives in Mons.”" in since_event
    assert ["statement-corrected"] * 2 == [
        event["kind"] for event in shell("log", "--since", corrected.id, "--json").json
    ]
    assert "Nothing became" in shell("digest", "--since", "today").out
    for command in (("show", path, "--at"), ("diff", "--since"), ("digest", "--since"), ("log", "--since")):
        done = shell(*command, "soon")
        assert (1, True) == (done.code, "'soon' is no time; give a day (2026-03-01)" in " ".join(done.err.split())), (
            done
        )
        assert "deadbeef" in shell(*command, "deadbeef").err
    assert (1, True) == ((done := shell("show", path, "--at", "tomorrow")).code, "still to come" in done.err)
