"""`forget`: an exchange, a conversation or a page goes, with what rests on it alone; it can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.history.forget import Target, find_target, forget, plan_forget
from brainiac.history.undo import undo
from brainiac.pipeline.daemon import run_once
from brainiac.testing import make_brain
from tests.support.commands import Shell
from tests.support.promotions import ScriptedEngine, set_model, with_model
from tests.support.said import standing, tell, texts

pytestmark = pytest.mark.slow


def forgotten(brain: Brain, named: str) -> Target:
    target = find_target(brain, named)
    assert forget(brain, target)
    return target


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def brain(tmp_path: Path, engine: ScriptedEngine) -> Iterator[Brain]:
    """A brain with a model that keeps what was said word for word."""
    brain = with_model(make_brain(tmp_path / "brain"), engine)
    set_model(brain.root)
    yield brain
    brain.close()


def test_an_exchange_goes_before_it_is_promoted(brain: Brain) -> None:
    """The pair of files, its event, and the task it left; other exchanges stay to the byte; undo brings all of it.

    Seeds: S15.
    """
    tell(brain, "one", "I live in Portland.")
    before = texts(brain)
    second = tell(brain, "two", "/todo call Bob")
    with_it = texts(brain)
    forgotten(brain, second)
    assert before == texts(brain)
    (event,) = brain.journal.events(kinds={"exchange-forgotten"})
    undo(brain, event)
    assert with_it == texts(brain)


def test_a_summary_stays_as_a_person_laid_it_out(brain: Brain) -> None:
    """Where nothing of the summary was said in what goes, not a byte of it changes."""
    exchange = tell(brain, "one", "My cat is called Pixel and she is six years old.")
    before = brain.read_text(brain.tree.short_term) or ""
    summary = "- first thing\n- second thing\n\nA line with  two  spaces,\nbroken by hand.\n"
    brain.tree.short_term.write_text(before.replace("## Summary\n", f"## Summary\n{summary}", 1))
    brain.observed.adopt()
    forgotten(brain, exchange)
    assert summary in (brain.read_text(brain.tree.short_term) or "")


def test_what_rests_on_it_alone_goes(brain: Brain) -> None:
    """After promotion: its page, the words on the day's page, index lines; what others said stays."""
    tell(brain, "one", "I prefer tea over coffee.")
    second = tell(brain, "two", "My sister Anna works at Google.")
    promote(brain)
    assert standing(brain, "Anna")
    target = forgotten(brain, "inbox/two.md")
    assert [] == standing(brain, "Anna")
    assert (second,) == target.exchanges
    assert any("tea over coffee" in text for path, text in texts(brain).items() if "concrete/" in path)
    day = next(path for path in texts(brain) if "/events/" in path and not path.endswith("_index.md"))
    assert second not in (brain.read_text(day) or "")
    event = next(brain.journal.events(kinds={"exchange-forgotten"}))
    undo(brain, event)
    assert standing(brain, "Anna")


def test_what_others_say_too_stays(brain: Brain) -> None:
    """A statement told twice loses this source and stands; it is said so."""
    tell(brain, "one", "I prefer tea over coffee.")
    promote(brain)
    second = tell(brain, "two", "I prefer tea over coffee.")
    promote(brain)
    plan = plan_forget(brain, find_target(brain, second))
    assert [True] == ["rests on other exchanges too" in line for line in plan.kept]
    forgotten(brain, second)
    (page,) = [
        path for path in standing(brain, "prefer tea over coffee") if "concrete/" in path and "_index" not in path
    ]
    assert second not in (brain.read_text(page) or "")


def test_a_merge_is_taken_back(brain: Brain, engine: ScriptedEngine) -> None:
    """What held before the forgotten exchange changed it holds again, out of History."""
    engine.on("moved to Seattle", "replace", "Portland")
    tell(brain, "one", "I live in Portland since 2020.")
    promote(brain)
    second = tell(brain, "two", "I moved to Seattle last week.")
    promote(brain)
    assert standing(brain, "Seattle")
    forgotten(brain, second)
    assert [] == standing(brain, "Seattle")
    (page,) = [path for path in standing(brain, "live in Portland") if "concrete/" in path and "_index" not in path]
    text = brain.read_text(page) or ""
    assert (True, False) == ("- I live in Portland since 2020. ^" in text, "~~" in text)


def test_a_persons_words_are_left(brain: Brain) -> None:
    """A statement that was reworded by hand stays, and so does a prompt that says something else by now."""
    first = tell(brain, "one", "My sister Anna works at Google.")
    promote(brain)
    (page,) = [path for path in standing(brain, "Anna works") if "concrete/" in path and "_index" not in path]
    path = brain.tree.absolute(page)
    path.write_text(path.read_text().replace("works at Google", "is a painter"))
    (brain.root / "inbox/one.md").write_text("Something else entirely.\n")
    brain.observed.adopt()
    forgotten(brain, first)
    assert "is a painter" in (brain.read_text(page) or "")
    assert b"Something else entirely.\n" == brain.read("inbox/one.md")


def test_a_conversation_is_its_folder(brain: Brain) -> None:
    """All exchanges of a subfolder of the inbox go together."""
    before = texts(brain)
    tell(brain, "trip/one", "I live in Portland.")
    tell(brain, "trip/two", "I prefer tea.")
    forgotten(brain, "inbox/trip")
    assert before == texts(brain)


def test_a_page_goes_and_what_was_said_stays(brain: Brain) -> None:
    """A memory is taken out by its title; the exchanges it rests on are named and stand word for word."""
    first = tell(brain, "one", "My sister Anna works at Google.")
    promote(brain)
    plan = plan_forget(brain, find_target(brain, "Anna"))
    assert [f"what was said stays, word for word: {first}"] == plan.kept
    forgotten(brain, "Anna")
    assert [] == [path for path in standing(brain, "Anna") if "concrete/" in path]
    assert [path for path in standing(brain, "My sister Anna works at Google.") if "/events/" in path]


def test_the_command_shows_and_asks(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """What will go is listed first; without a terminal --yes is needed; nothing of that name is told."""
    shell = Shell(capsys, str(brain.root))
    tell(brain, "one", "I live in Portland.")
    asked = shell("forget", "inbox/one.md")
    assert (2, True) == (asked.code, "inbox/one.md: the prompt" in asked.out)
    assert brain.read("inbox/one.md")
    done = shell("forget", "inbox/one.md", "--yes")
    assert (0, True) == (done.code, "brainiac undo" in done.out)
    assert brain.read("inbox/one.md") is None
    assert "Nothing of it stands" in shell("forget", "inbox/one.md", "--yes").out
    assert 1 == shell("forget", "nothing of that name", "--yes").code
    with pytest.raises(UserError, match="names no exchange"):
        find_target(brain, "inbox")


def test_a_persons_remark_stays_where_its_exchange_goes(brain: Brain) -> None:
    """Written below the exchange, in short-term memory or on the page of the day: it is no part of what was said."""
    exchange = tell(brain, "one", "I live in Portland.")
    brain.tree.short_term.write_text((brain.read_text("memory/short_term.md") or "") + "Call the plumber\n")
    forgotten(brain, exchange)
    assert ["memory/short_term.md"] == standing(brain, "call the plumber")
    exchange = tell(brain, "two", "I live in Boston.")
    promote(brain)
    (day,) = (path for path in standing(brain, "boston") if "/events/" in path and not path.endswith("_index.md"))
    brain.tree.absolute(day).write_text((brain.read_text(day) or "") + "Call the painter\n")
    forgotten(brain, exchange)
    assert [day] == standing(brain, "call the painter")
    assert [] == standing(brain, "boston")


@pytest.mark.parametrize("is_promoted", [False, True])
def test_what_was_kept_without_a_model_goes_with_its_exchange(tmp_path: Path, is_promoted: bool) -> None:
    """Words behind `/remember`, on their page and in the list of facts; what was kept of others stays to the byte."""
    brain = make_brain(tmp_path / "brain")
    tell(brain, "one", "/remember I prefer tea over coffee.")
    before = texts(brain)
    second = tell(brain, "two", "/remember My sister Anna works at Google.")
    if is_promoted:
        promote(brain)
        assert [path for path in standing(brain, "Anna") if "concrete/" in path]
    forgotten(brain, second)
    assert [] == standing(brain, "Anna")
    assert standing(brain, "tea over coffee")
    assert is_promoted or before == texts(brain)
    brain.close()


NOTE = "Emeralds\n\nThey lie in a box below [the willow](../../memory/long_term/concrete/a.md),\nand nobody knows it.\n"


def noted(brain: Brain) -> str:
    """Drop a note of several lines, have it promoted to a page of its own, and return its path."""
    path = brain.root / "inbox/notes/one.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(NOTE)
    run_once(brain)
    promote(brain)
    (page,) = [path for path in standing(brain, "nobody knows") if "/concrete/" in path]
    return page


def test_a_note_goes_with_its_page(tmp_path: Path) -> None:
    """Its page holds nothing but it: page, name in the index and in the summary go, and undo brings them back."""
    brain = make_brain(tmp_path / "brain")
    noted(brain)
    before = texts(brain)
    forgotten(brain, "inbox/notes/one.md")
    assert [] == standing(brain, "emeralds") == standing(brain, "nobody knows")
    undo(brain, next(brain.journal.events(kinds={"exchange-forgotten"})))
    assert before == texts(brain)
    brain.close()


def test_a_page_of_a_note_that_a_person_wrote_into_stays(tmp_path: Path) -> None:
    """It is theirs by now, and that is said."""
    brain = make_brain(tmp_path / "brain")
    page = noted(brain)
    path = brain.tree.absolute(page)
    path.write_text(path.read_text() + "\nSapphires too.\n")
    brain.observed.adopt()
    target = forgotten(brain, "inbox/notes/one.md")
    assert "Sapphires too." in (brain.read_text(page) or "")
    assert [page] == standing(brain, "nobody knows")
    assert target.exchanges
    brain.close()
