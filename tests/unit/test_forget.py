"""`forget`: an exchange, a conversation or a page goes, with what rests on it alone; it can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.history.forget import find_words, plan_forget
from brainiac.testing import command, make_brain, run_once
from tests.support.commands import do, quiet
from tests.support.promotions import ScriptedEngine, set_model, with_model
from tests.support.said import standing, tell, texts

pytestmark = pytest.mark.slow


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
    do(brain, "forget", second, "--yes")
    assert before == texts(brain)
    do(brain, "undo", "--last")
    assert with_it == texts(brain)


def test_a_summary_stays_as_a_person_laid_it_out(brain: Brain) -> None:
    """Where nothing of the summary was said in what goes, not a byte of it changes."""
    exchange = tell(brain, "one", "My cat is called Pixel and she is six years old.")
    before = brain.read_text(brain.tree.short_term) or ""
    summary = "- first thing\n- second thing\n\nA line with  two  spaces,\nbroken by hand.\n"
    brain.tree.short_term.write_text(before.replace("## Summary\n", f"## Summary\n{summary}", 1))
    brain.observed.adopt()
    do(brain, "forget", exchange, "--yes")
    assert summary in (brain.read_text(brain.tree.short_term) or "")


def test_what_rests_on_it_alone_goes(brain: Brain) -> None:
    """After promotion: its page, the words on the day's page, index lines; what others said stays."""
    tell(brain, "one", "I prefer tea over coffee.")
    second = tell(brain, "two", "My sister Anna works at Google.")
    do(brain, "promote")
    assert standing(brain, "Anna")
    do(brain, "forget", "inbox/two.md", "--yes")
    assert [] == standing(brain, "Anna")
    assert any("tea over coffee" in text for path, text in texts(brain).items() if "concrete/" in path)
    day = next(path for path in texts(brain) if "/events/" in path and not path.endswith("_index.md"))
    assert second not in (brain.read_text(day) or "")
    do(brain, "undo", "--last")
    assert standing(brain, "Anna")


def test_what_others_say_too_stays(brain: Brain) -> None:
    """A statement told twice loses this source and stands; it is said so."""
    tell(brain, "one", "I prefer tea over coffee.")
    do(brain, "promote")
    second = tell(brain, "two", "I prefer tea over coffee.")
    do(brain, "promote")
    done = do(brain, "forget", second, "--yes", "--json")
    assert [True] == ["rests on other exchanges too" in line for line in done.json["left"]]
    (page,) = [
        path for path in standing(brain, "prefer tea over coffee") if "concrete/" in path and "_index" not in path
    ]
    assert second not in (brain.read_text(page) or "")


def test_a_merge_is_taken_back(brain: Brain, engine: ScriptedEngine) -> None:
    """What held before the forgotten exchange changed it holds again, out of History."""
    engine.on("moved to Seattle", "replace", "Portland")
    tell(brain, "one", "I live in Portland since 2020.")
    do(brain, "promote")
    second = tell(brain, "two", "I moved to Seattle last week.")
    do(brain, "promote")
    assert standing(brain, "Seattle")
    do(brain, "forget", second, "--yes")
    assert [] == standing(brain, "Seattle")
    (page,) = [path for path in standing(brain, "live in Portland") if "concrete/" in path and "_index" not in path]
    text = brain.read_text(page) or ""
    assert (True, False) == ("- I live in Portland since 2020. ^" in text, "~~" in text)


def test_a_persons_words_are_left(brain: Brain) -> None:
    """A statement that was reworded by hand stays, and so does a prompt that says something else by now."""
    first = tell(brain, "one", "My sister Anna works at Google.")
    do(brain, "promote")
    (page,) = [path for path in standing(brain, "Anna works") if "concrete/" in path and "_index" not in path]
    path = brain.tree.absolute(page)
    path.write_text(path.read_text().replace("works at Google", "is a painter"))
    (brain.root / "inbox/one.md").write_text("Something else entirely.\n")
    brain.observed.adopt()
    do(brain, "forget", first, "--yes")
    assert "is a painter" in (brain.read_text(page) or "")
    assert b"Something else entirely.\n" == brain.read("inbox/one.md")


def test_a_conversation_is_its_folder(brain: Brain) -> None:
    """All exchanges of a subfolder of the inbox go together."""
    before = texts(brain)
    tell(brain, "trip/one", "I live in Portland.")
    tell(brain, "trip/two", "I prefer tea.")
    do(brain, "forget", "inbox/trip", "--yes")
    assert before == texts(brain)


def test_a_page_goes_and_what_was_said_stays(brain: Brain) -> None:
    """A memory is taken out by its path; the exchanges it rests on are named and stand word for word."""
    first = tell(brain, "one", "My sister Anna works at Google.")
    do(brain, "promote")
    (page,) = [path for path in standing(brain, "Anna works") if "concrete/" in path and "_index" not in path]
    done = do(brain, "forget", page, "--yes", "--json")
    said = f"{first}: “My sister Anna works at Google.”"
    assert [f"what was said stays, word for word: {said}"] == done.json["left"]
    assert [] == [path for path in standing(brain, "Anna") if "concrete/" in path]
    assert [path for path in standing(brain, "My sister Anna works at Google.") if "/events/" in path]


def test_the_command_shows_and_asks(brain: Brain) -> None:
    """What will go is listed first; without a terminal --yes is needed; nothing of that name is told."""
    tell(brain, "one", "I live in Portland.")
    asked = command(brain, "forget", "inbox/one.md")
    assert (2, True) == (asked.code, "inbox/one.md: the prompt" in asked.out)
    assert brain.read("inbox/one.md")
    assert "brainiac undo" in do(brain, "forget", "inbox/one.md", "--yes").out
    assert brain.read("inbox/one.md") is None
    assert "Nothing of it stands" in do(brain, "forget", "inbox/one.md", "--yes").out
    assert [1, 1] == [command(brain, "forget", named, "--yes").code for named in ("nothing of that name", "inbox")]


def test_a_persons_remark_stays_where_its_exchange_goes(brain: Brain) -> None:
    """Written below the exchange, in short-term memory or on the page of the day: it is no part of what was said."""
    exchange = tell(brain, "one", "I live in Portland.")
    brain.tree.short_term.write_text((brain.read_text("memory/short_term.md") or "") + "Call the plumber\n")
    do(brain, "forget", exchange, "--yes")
    assert ["memory/short_term.md"] == standing(brain, "call the plumber")
    exchange = tell(brain, "two", "I live in Boston.")
    do(brain, "promote")
    (day,) = (path for path in standing(brain, "boston") if "/events/" in path and not path.endswith("_index.md"))
    brain.tree.absolute(day).write_text((brain.read_text(day) or "") + "Call the painter\n")
    do(brain, "forget", exchange, "--yes")
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
        do(brain, "promote")
        assert [path for path in standing(brain, "Anna") if "concrete/" in path]
    do(brain, "forget", second, "--yes")
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
    do(brain, "promote")
    (page,) = [path for path in standing(brain, "nobody knows") if "/concrete/" in path]
    return page


def test_a_note_goes_with_its_page(tmp_path: Path) -> None:
    """Its page holds nothing but it: page, name in the index and in the summary go, and undo brings them back."""
    brain = make_brain(tmp_path / "brain")
    noted(brain)
    before = texts(brain)
    do(brain, "forget", "inbox/notes/one.md", "--yes")
    assert [] == standing(brain, "emeralds") == standing(brain, "nobody knows")
    do(brain, "undo", "--last")
    assert before == texts(brain)
    brain.close()


def test_a_page_of_a_note_that_a_person_wrote_into_stays(tmp_path: Path) -> None:
    """It is theirs by now, and that is said."""
    brain = make_brain(tmp_path / "brain")
    page = noted(brain)
    path = brain.tree.absolute(page)
    path.write_text(path.read_text() + "\nSapphires too.\n")
    brain.observed.adopt()
    do(brain, "forget", "inbox/notes/one.md", "--yes")
    assert "Sapphires too." in (brain.read_text(page) or "")
    assert [page] == standing(brain, "nobody knows")
    brain.close()


def ticked(brain: Brain) -> None:
    """Tick all that stands in the review, and let it be carried out."""
    text = brain.read_text(brain.tree.review) or ""
    brain.tree.review.write_text(text.replace("- [ ]", "- [x]"))
    brain.observed.adopt()
    quiet(brain)


def test_a_prompt_that_asks_shows_all_that_goes_with_it(brain: Brain) -> None:
    """`/forget` lists what `brainiac forget` would take out, what rests on it too, and takes just that."""
    config = brain.root / "system/config.yaml"
    config.write_text(config.read_text().replace("model: scripted", "model: offline"))
    tell(brain, "one", "/remember My father Ted plays the tuba.\nMy sister Anna works at Google.")
    do(brain, "promote")
    (brain.root / "inbox/f.md").write_text("/forget Google\n")
    run_once(brain)
    answer = (brain.root / "inbox/f.response.md").read_text()
    plan = plan_forget(brain, find_words(brain, "Google"))
    assert any("Ted plays the tuba" in str(each) for each in plan.effects())
    assert all(str(each) in answer for each in plan.effects() if each.kind != "file")
    assert "with that" in (brain.read_text(brain.tree.review) or "")
    ticked(brain)
    assert [] == standing(brain, "Anna") + standing(brain, "tuba")


def test_what_would_take_more_by_now_is_asked_anew(brain: Brain) -> None:
    """Memory was made of it after the person saw the plan: a tick does nothing but ask once more."""
    tell(brain, "one", "My sister Anna works at Google.")
    (brain.root / "inbox/f.md").write_text("/forget Google\n")
    run_once(brain)
    do(brain, "promote")
    ticked(brain)
    assert standing(brain, "Anna")
    review = brain.read_text(brain.tree.review) or ""
    assert 1 == review.count("- [ ]")
    assert "more than was listed beside inbox/f.md" in review
    ticked(brain)
    assert [] == standing(brain, "Anna")
