"""What is kept without a model, why, what short-term memory still holds afterwards, and what is asked about it."""

from __future__ import annotations

import re

import pytest

from brainiac.formats.markdown import PRIVATE_MARK
from brainiac.formats.page import shareable_text
from brainiac.testing import World

DAY = 24 * 3600.0
STM, REVIEW, TOP = "memory/short_term.md", "memory/review.md", "memory/long_term/"


def say(world: World, *texts: str) -> None:
    """Say one thing after the other, an hour between them."""
    for text in texts:
        world.drop(f"{world.clock.now():%m%d%H%M}.md", f"{text}\n")
        world.run()
        world.clock.advance(3600)


def promote(world: World) -> str:
    """Promote; return short-term memory as it is then."""
    assert 0 == world.cli("promote").code
    return world.tree()[STM]


def statements(world: World) -> list[str]:
    """Return the statements that hold, in their words; the pages of days have none."""
    pages = [
        text for path, text in world.tree().items() if re.match(rf"{TOP}(concrete|skills)/.*(?<!_index)\.md", path)
    ]
    return [
        item
        for page in pages
        for item in re.findall(r"(?m)^- (.+?)(?: \(\[[^)]*\)\))? \^\w+$", page.split("## History")[0])
    ]


def asked(world: World) -> list[tuple[str, str]]:
    """Return what the lines of the review ask: the new words and the old ones."""
    return re.findall(r"(?m)^- \[ \] Does “(.*?)” \(.*?\) replace “(.*?)” \(", world.tree().get(REVIEW, ""))


def tick(world: World, mark: str = "x") -> None:
    """Put a mark into every box of the review, and let it be seen."""
    world.save(REVIEW, world.tree()[REVIEW].replace("- [ ]", f"- [{mark}]"))
    world.tick(2 * DAY)
    world.tick(60)


# --- what is kept, and why -----------------------------------------------------------------------------------------


def test_what_answers_quote_is_not_kept_for_it(world: World) -> None:
    """A fact that is asked for on four days stays what it is, something that was said."""
    say(world, "My locker at the gym is number 23.")
    for _ in range(4):
        promote(world)
        world.clock.advance(DAY)
        say(world, "What is the number of my locker at the gym?")
    promote(world)
    assert [] == [text for text in statements(world) if "23" in text]


def test_a_tagged_question_is_kept_like_anything_tagged(world: World) -> None:
    """The tag is the person's mark; a question mark decides nothing."""
    say(world, "---\ntags: [rex]\n---\nIs Rex allergic to chicken?")
    promote(world)
    assert ["Is Rex allergic to chicken?"] == statements(world)


def test_why_says_in_plain_words_what_marked_a_statement(world: World) -> None:
    """A command, a note, a tag, a link, a line under Key Facts, the same words on two days: each is named."""
    say(world, "Mira dislikes the smell of lavender soap.", "/remember The spare key hangs in the shed.")
    say(world, "The boiler was serviced in May. #boiler", "Tom moved in with [[Ruth]].")
    world.save("inbox/notes/a.md", "The bins go out on Mondays.\n")
    world.run()
    fact = "### Key Facts & Decisions\n"
    world.save(STM, world.tree()[STM].replace(fact, f"{fact}- Jonas takes no sugar\n"))
    world.run()
    world.clock.advance(DAY)
    say(world, "Mira dislikes the smell of lavender soap.")
    promote(world)
    marks = {
        "The spare key hangs in the shed.": "you wrote it behind /remember",
        "The boiler was serviced in May. #boiler": "it has a #tag of yours",
        "Tom moved in with [[Ruth]].": "it has a [[link]] of yours",
        "The bins go out on Mondays.": "it was saved as a note",
        "Jonas takes no sugar": "you wrote it under Key Facts",
        "Mira dislikes the smell of lavender soap.": "you said it on two days in nearly the same words",
    }
    assert set(marks) == set(statements(world))
    for text, mark in marks.items():
        assert f"because: {mark}" in world.cli("why", text).out, text


def test_a_note_with_a_heading_and_numbered_steps_is_a_skill(world: World) -> None:
    """It stands under `skills/` by its title, as it was written; `why` leads back to the note."""
    note = "# Baking bread\n\nMy own way.\n\n1. Mix flour and water.\n2. Wait a night.\n3. Bake at 240.\n"
    world.save("inbox/notes/bread.md", note)
    world.run()
    promote(world)
    assert world.tree()[f"{TOP}skills/baking-bread.md"].endswith(note)
    explained = world.cli("why", "Baking bread").out
    assert explained.startswith("Baking bread")
    assert "because: it was saved as a note" in explained
    assert "inbox/notes/bread.md" in explained


# --- short-term memory afterwards ----------------------------------------------------------------------------------


def test_short_term_memory_is_no_empty_form_after_five_quiet_minutes(world: World) -> None:
    """Tasks, what was pinned, and the last things said in whole sentences stand there; of what is private nothing."""
    say(
        world, "/todo call Ruth\n/remember The spare key hangs in the shed.", "We moved to Lund in June. What a summer!"
    )
    say(world, "/private\nMy diagnosis is quillwort.", "/off\nNothing of the giraffe.", "x" * 300 + ".", "/find Lund")
    fact = "### Key Facts & Decisions\n"
    world.save(STM, world.tree()[STM].replace(fact, f"{fact}- Jonas takes no sugar\n"))
    for number in range(4):
        world.drop(f"{number}.md", f"Box {number} is in the attic. It is red.\n")
    world.run()
    world.tick(310)
    memory = world.tree()[STM]
    if "Event Log\n###" in memory:  # the timers came while something else was done
        world.tick(60)
        memory = world.tree()[STM]
    assert memory.endswith("## Event Log\n"), memory
    assert "- [ ] call Ruth\n" in memory
    assert "- Jonas takes no sugar\n- The spare key hangs in the shed.\n" in memory
    assert "“We moved to Lund in June. What a summer!”" in memory
    assert memory.count(" is in the attic. It is red.”") == 4
    assert not any(word in memory for word in ("quillwort", "giraffe", "xxx", "/find"))


def test_what_is_pinned_stays_and_is_filed_once(world: World) -> None:
    """Promotion after promotion the pinned lines stand there; each is on one day's page and one statement."""
    fact = "### Key Facts & Decisions\n"
    say(world, "/remember The spare key hangs in the shed.")
    world.save(STM, world.tree()[STM].replace(fact, f"{fact}- Jonas takes no sugar\n"))
    for text in ("We moved to Lund.", "Ruth has a new cat called Bo.", "The boiler was serviced in May."):
        world.clock.advance(DAY)
        say(world, text)
        assert "- Jonas takes no sugar\n- The spare key hangs in the shed.\n" in promote(world)
    assert ["Jonas takes no sugar", "The spare key hangs in the shed."] == sorted(statements(world))
    pages = (
        text
        for path, text in world.tree().items()
        if path.startswith(f"{TOP}events/") and path.endswith(".md") and "_index" not in path
    )
    days = "".join(pages)
    assert (1, 1) == (days.count("Jonas takes no sugar"), days.count("The spare key hangs"))


def test_what_was_put_right_is_pinned_no_more(world: World) -> None:
    """`correct` takes the former wording out of Key Facts at once; a page edited by hand does so with the next run."""
    say(world, "/remember The spare key hangs in the shed.\n/remember Jonas takes no sugar")
    promote(world)
    assert (
        0 == world.cli("correct", "The spare key hangs in the shed.", "--to", "The spare key hangs in the hall.").code
    )
    assert "in the shed" not in world.tree()[STM]
    [page] = [path for path in world.tree() if path.startswith(f"{TOP}concrete/notes/2")]
    world.save(page, world.tree()[page].replace("Jonas takes no sugar", "Jonas takes two sugars"))
    world.run()
    world.clock.advance(DAY)
    say(world, "Box 1 is in the attic.")
    assert "no sugar" not in promote(world)


def test_without_carrying_the_lists_are_emptied(world: World) -> None:
    """`promotion.carry_open_items: false` gives empty lists. Seeds: S12."""
    config = world.tree()["system/config.yaml"]
    world.save("system/config.yaml", config.replace("promotion:\n", "promotion:\n  carry_open_items: false\n"))
    say(world, "/todo call Ruth\n/remember The spare key hangs in the shed.")
    memory = promote(world)
    assert "- [ ]" not in memory
    assert "spare key" not in memory


def test_forgetting_takes_the_quotation_out_of_the_summary(world: World) -> None:
    """What is forgotten is quoted no more, and no empty marks stay. `why` leads to what was said."""
    say(world, "My locker at the gym is number 23.", "We moved to Lund in June.")
    assert "“My locker at the gym is number 23.” “We moved to Lund in June.”" in promote(world)
    assert "you typed" in world.cli("why", "My locker at the gym is number 23.").out
    assert 0 == world.cli("forget", "My locker at the gym is number 23.", "--yes").code
    memory = world.tree()[STM]
    assert "“We moved to Lund in June.”" in memory
    assert "locker" not in memory
    assert "“”" not in memory


# --- does this replace …? ------------------------------------------------------------------------------------------

OLD, NEW = "My locker at the gym is number 23.", "My locker at the gym is now number 31."


def told_twice(world: World, old: str = OLD, new: str = f"/remember {NEW}") -> None:
    """Tell something, days later something newer, and promote after each."""
    say(world, "Ruth has a new cat called Bo.", old)
    promote(world)
    world.clock.advance(5 * DAY)
    say(world, new)
    promote(world)


def test_an_earlier_telling_is_asked_about_and_stands_without_a_tick(world: World) -> None:
    """One line with both texts; until it is ticked, and after a dash, nothing changes."""
    told_twice(world)
    assert [(NEW, OLD)] == asked(world)
    assert "no longer holds" not in world.cli("search", "locker gym").out
    tick(world, "-")
    assert [] == asked(world)
    assert "no longer holds" not in world.cli("search", "locker gym").out


def test_with_a_tick_the_earlier_exchange_names_what_holds_now(world: World) -> None:
    """What was only said stays as it was typed; where it is quoted it says what came later, until that is forgotten."""
    told_twice(world)
    tick(world)
    quoted = f"“{OLD}” no longer holds; now: {NEW}"
    assert quoted in world.cli("search", "locker gym").out
    answer = world.drop("q.md", "What is the number of my locker at the gym?\n")
    world.run()
    assert OLD not in (answer.answer or "") or quoted in (answer.answer or "")
    assert 0 == world.cli("forget", NEW, "--yes").code
    assert "now:" not in world.cli("search", "locker gym").out


def test_with_a_tick_the_earlier_statement_goes_to_history(world: World) -> None:
    """A statement that was kept is retired with its dates, and is pinned no more."""
    told_twice(world, old=f"/remember {OLD}")
    assert [(NEW, OLD)] == asked(world)
    assert {OLD, NEW} == set(statements(world))
    tick(world)
    assert [NEW] == statements(world)
    [page] = [text for path, text in world.tree().items() if path.startswith(TOP) and "## History" in text]
    assert OLD in page.split("## History")[1]
    assert OLD not in world.tree()[STM]
    assert "Nothing is wrong." in world.cli("doctor").out


def test_on_another_subject_and_in_the_same_words_nothing_is_asked(world: World) -> None:
    """What is not near, what is said again, and a question that was asked before give no line."""
    say(world, OLD, "What is the number of my locker at the gym?", "Anna works at the town library.")
    promote(world)
    world.clock.advance(DAY)
    say(world, f"/remember {OLD}", "/remember The dishwasher tabs are under the sink.")
    promote(world)
    assert [] == asked(world)


def test_a_telling_asks_once(world: World) -> None:
    """Of a message with two changes the nearer one is asked about."""
    say(world, OLD, "The alarm code of the cottage is 2290.")
    promote(world)
    world.clock.advance(DAY)
    say(world, f"/remember {NEW}\n/remember The alarm code of the cottage is 7781 now.")
    promote(world)
    assert 1 == len(asked(world))


@pytest.mark.parametrize("mark", ["/private\n", "/off\n"])
@pytest.mark.parametrize("is_new", [False, True])
def test_nothing_private_is_asked_about(world: World, mark: str, is_new: bool) -> None:
    """Neither a private nor an unrecorded telling stands in the review, be it the older or the newer one."""
    told_twice(world, *((OLD, f"{mark}/remember {NEW}") if is_new else (f"{mark}{OLD}", f"/remember {NEW}")))
    assert REVIEW not in world.tree()


def test_what_became_private_while_it_waited_has_its_line_with_the_mark(world: World) -> None:
    """F-REV-7: The words wait in the journal; once they have a line, no model elsewhere and no door may see it."""
    world.save("system/config.yaml", world.tree()["system/config.yaml"] + "\nreview: {max_new: 1}\n")
    say(world, "/remember The bike is blue.")
    promote(world)
    world.door("suggest", id="The bike is blue.", change="end")
    told_twice(world)
    assert ([], True) == (asked(world), "1 more waits" in world.tree()[REVIEW])
    [prompt] = [path for path, text in world.tree().items() if path.startswith("inbox/") and text.endswith(f"{OLD}\n")]
    world.save(prompt, f"---\nprivate: true\n---\n{OLD}\n")
    world.run()
    tick(world, "-")
    world.tick(8 * DAY)
    (line,) = [line for line in world.tree()[REVIEW].splitlines() if "Does “" in line]
    assert PRIVATE_MARK in line
    assert "Does “" not in (shareable_text(world.tree()[REVIEW]) or "")


@pytest.mark.parametrize("words", [OLD, NEW])
def test_forgetting_either_telling_takes_the_line_away(world: World, words: str) -> None:
    """The line quotes both: it goes with either."""
    told_twice(world)
    assert 0 == world.cli("forget", words, "--yes").code
    assert words not in world.tree()[REVIEW]
    assert [] == asked(world)


def test_words_that_look_like_an_id_are_words(world: World) -> None:
    """A comment in what was said ticks no other proposal."""
    told_twice(world, new=f"/remember {NEW} <!-- proposal: 01995b2e -->")
    [line] = [line for line in world.tree()[REVIEW].split("\n") if line.startswith("- [ ]")]
    assert 1 == line.count("<!-- proposal: ")
