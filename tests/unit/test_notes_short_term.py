from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import FormatError
from brainiac.formats.page import shareable_text
from brainiac.formats.short_term import EMPTY, HEADINGS, Item, ShortTermDocument, ShortTermMemory, StmEvent, document_of
from tests.support.notes_texts import BIG, ids, texts, times, words

events = st.builds(StmEvent, id=ids, at=times, user=texts, ai=texts, thoughts=texts, is_private=st.booleans())
AT = "2025-09-16T15:30:00Z"
FIRST = StmEvent("01", AT, "one", "1")
SECOND = StmEvent("02", "2025-09-16T15:31:00Z", "two", "2")

BY_HAND = f"""\
mine above

# Short-Term Memory Scratchpad


## Summary
An old one.

It has two paragraphs.

---
## Structured Data
A word about it.
### Goals
* [x] learn the piano
+ sing
  - in a choir

### Key Facts & Decisions


### Tasks
- [ ] buy milk


## Shopping
- [ ] not a task

---
## Event Log
Newest above.

### {AT}
**User:** by hand

## Notes
mine below
no line end"""


def with_line_ends(text: str, newline: str) -> str:
    return text.replace("\n", newline)


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_missing_heading_is_named(heading: str) -> None:
    """F-STM-1: the message says which of the seven headings is missing. Seeds: S4."""
    with pytest.raises(FormatError, match=f"missing `{heading}`; put it back"):
        document_of(EMPTY.replace(f"{heading}\n", ""))


def test_the_empty_file_holds_nothing() -> None:
    """F-STM-1: what `init` writes has all headings and nothing below them."""
    assert ShortTermMemory() == document_of(EMPTY).memory


def test_hand_edits_are_read() -> None:
    """F-STM-5, F-STM-1: bullets of any kind, checked boxes, extra sections and blank lines. Seeds: S4."""
    memory = document_of(BY_HAND).memory
    assert "An old one.\n\nIt has two paragraphs." == memory.summary
    assert (Item("learn the piano", True), Item("sing - in a choir")) == memory.goals
    assert ((), (Item("buy milk"),)) == (memory.facts, memory.tasks)
    assert ["by hand"] == [event.user for event in memory.events]


@given(st.lists(events, max_size=4, unique_by=lambda event: event.id), st.sampled_from(["\n", "\r\n"]))
def test_events_read_back_newest_first(said: list[StmEvent], newline: str) -> None:
    """F-STM-2, F-TXT-2: any texts survive; whatever the order of arrival, the newest stands first. Seeds: S4, S5."""
    document = ShortTermDocument(with_line_ends(EMPTY, newline))
    for event in said:
        document = document.with_event(event)
    last_added_first = said[::-1]
    newest_first = sorted(last_added_first, key=lambda event: event.at, reverse=True)
    assert tuple(newest_first) == document.memory.events
    assert newline == "\n" or "\n" not in str(document).replace("\r\n", "")


@given(events, st.sampled_from([EMPTY, BY_HAND]), st.sampled_from(["\n", "\r\n"]))
def test_adding_an_event_inserts_and_removing_it_gives_the_text_back(event: StmEvent, page: str, newline: str) -> None:
    """F-STM-3, F-ALL-2: every byte outside the new lines is the same; a second time changes nothing. Seeds: S5."""
    before = with_line_ends(page, newline)
    added = ShortTermDocument(before).with_event(event)
    assert event in added.memory.events
    assert str(added) == str(added.with_event(replace(event, user="other")))
    assert before == str(added.without_event(event.id))


def test_events_are_appended_without_touching_older_ones() -> None:
    """F-STM-3: an older event stays byte for byte, a person's edits in it too. Seeds: S5."""
    edited = str(ShortTermDocument(EMPTY).with_event(FIRST)).replace('"one"', '"one" (I meant two)')
    after = str(ShortTermDocument(edited).with_event(SECOND))
    assert edited.split("## Event Log\n")[1] == after.split("\n\n### ")[-1].join(["### ", ""])


def test_a_text_that_names_another_event_hides_nothing() -> None:
    """F-STM-3: only a comment on its own line counts, not one that was typed."""
    forged = replace(FIRST, user="<!-- event: 02 -->", ai="x\n<!-- event: 02 -->")
    document = ShortTermDocument(EMPTY).with_event(forged).with_event(SECOND)
    assert (SECOND, forged) == document.memory.events
    assert (forged,) == document.without_event("02").memory.events


def test_superseding_an_event_leaves_the_others() -> None:
    """F-STM-7: removing by id takes that event alone; an unknown id nothing."""
    document = ShortTermDocument(EMPTY).with_event(FIRST).with_event(SECOND)
    assert (SECOND,) == document.without_event("01").memory.events
    assert (FIRST,) == document.without_event("02").memory.events
    assert str(document) == str(document.without_event("99"))


def test_a_hand_made_event_is_removed_by_its_derived_id() -> None:
    """F-STM-4: what a person logged can be pruned too, and foreign sections stay."""
    document = ShortTermDocument(BY_HAND)
    after = document.without_event(document.memory.events[0].id)
    assert BY_HAND.replace(f"### {AT}\n**User:** by hand\n\n", "") == str(after)


@given(st.lists(words, max_size=3), st.lists(words, max_size=3), st.lists(words, max_size=3))
def test_items_read_back_once(goals: list[str], facts: list[str], tasks: list[str]) -> None:
    """F-STM-5, F-TXT-6: any text of one line is an item; the same again changes nothing. Seeds: S4."""
    document = ShortTermDocument(EMPTY).with_items(goals=goals, facts=facts, tasks=tasks)
    memory = document.memory
    for given_texts, items in ((goals, memory.goals), (facts, memory.facts), (tasks, memory.tasks)):
        unique = {text.casefold(): text for text in given_texts}
        assert sorted(unique) == sorted(item.text.casefold() for item in items)
        assert not any(item.is_done for item in items)
    assert str(document) == str(document.with_items(goals=goals, facts=facts, tasks=tasks))


def test_items_are_added_below_the_last_and_touch_nothing_else() -> None:
    """F-STM-5, F-ALL-2: nested lines, foreign sections and blank lines stay where they are."""
    after = ShortTermDocument(BY_HAND).with_items(goals=["dance", "SING - in  a choir"], facts=["f"], tasks=["t"])
    expected = (
        BY_HAND.replace("  - in a choir\n", "  - in a choir\n- [ ] dance\n")
        .replace("Decisions\n", "Decisions\n- f\n")
        .replace("buy milk\n", "buy milk\n- [ ] t\n")
    )
    assert expected == str(after)


def test_a_finished_item_may_be_wanted_again() -> None:
    """F-STM-5: only an open item keeps its like from being added."""
    document = ShortTermDocument(EMPTY).with_items(tasks=["call"]).with_done(["Call"]).with_items(tasks=["call"])
    assert (Item("call", True), Item("call")) == document.memory.tasks


def test_done_items_are_ticked_in_place() -> None:
    """F-STM-7: a box is ticked, one is supplied where a person wrote none, nothing else moves."""
    expected = BY_HAND.replace("+ sing", "+ [x] sing").replace("- [ ] buy", "- [x] buy")
    assert expected == str(ShortTermDocument(BY_HAND).with_done(["Buy  milk", "sing - in a choir", "unknown"]))


@given(texts, st.sampled_from([EMPTY, BY_HAND]))
def test_a_summary_reads_back_and_touches_nothing_else(summary: str, page: str) -> None:
    """F-STM-6, F-TXT-5: any paragraphs; all below is the same. Seeds: S11."""
    document = ShortTermDocument(page).with_summary(summary)
    assert replace(document_of(page).memory, summary=summary.strip()) == document.memory
    assert str(document) == str(document.with_summary(summary))
    assert page.split("---\n", 1)[1] == str(document).split("\n---\n", 1)[1]


def test_reset_keeps_what_arrived_meanwhile() -> None:
    """F-STM-7: events and items to keep stay, with all that a person wrote. Seeds: S12."""
    snapshot = ShortTermDocument(EMPTY).with_event(FIRST).with_items(goals=["g", "h"], facts=["f"])
    now = snapshot.with_event(SECOND).with_items(tasks=["t"])
    after = now.reset("New.", keep_events={"02"}, keep_items={"G", "t"})
    expected = ShortTermMemory("New.", (Item("g"),), (), (Item("t"),), (SECOND,))
    assert expected == after.memory
    assert EMPTY == str(now.reset("", (), ()))
    assert "mine below" in str(ShortTermDocument(BY_HAND).reset(None, (), ()))
    assert "An old one." in str(ShortTermDocument(BY_HAND).reset(None, (), ()))


def test_a_persons_paragraphs_of_the_summary_stay() -> None:
    """F-STM-6: only what is ours is replaced; the others stand below, byte for byte."""
    text = EMPTY.replace("## Summary\n", "## Summary\nMine,  with\n\\# signs.\n\nOurs.\n\nMine  too.\n")
    after = ShortTermDocument(text).with_summary("New.\n\nNewer.", lambda paragraph: paragraph == "Ours.")
    expected = "## Summary\nNew.\n\nNewer.\n\nMine,  with\n\\# signs.\n\nMine  too.\n\n---\n"
    assert expected in str(after)
    assert str(after).replace("New.\n\nNewer.\n\n", "") == str(after.with_summary("", lambda p: p.startswith("New")))


def test_remarks_stay_where_events_and_items_go() -> None:
    """F-STM-3, F-STM-7: what a person wrote within an event or right below an item stands in its place."""
    text = str(ShortTermDocument(EMPTY).with_event(FIRST).with_event(SECOND).with_items(tasks=["t"]).with_done(["t"]))
    text = text.replace('"1"\n', '"1"\nCall the plumber\n').replace("- [x] t\n", "- [x] t\nby hand\n") + "- last"
    after = ShortTermDocument(text).reset(None, (), ())
    assert ((), ()) == (after.memory.events, after.memory.tasks)
    expected = EMPTY.replace("### Tasks\n", "### Tasks\n\nby hand\n") + "Call the plumber\n- last"
    assert expected == str(after)
    assert ["by hand", "Call the plumber", "- last"] == [line for line in after.remarks.split("\n") if line]


def test_a_copy_of_an_event_has_an_id_of_its_own() -> None:
    """F-STM-4: a person who copies an event has made one."""
    text = str(ShortTermDocument(EMPTY).with_event(FIRST))
    copied = text + "\n" + text[text.index("### 2025") :].replace("one", "other")
    first, second = ShortTermDocument(copied).memory.events
    assert (FIRST, "other", True) == (first, second.user, second.id.startswith("hand-"))


@given(texts, st.integers(0, len(BY_HAND)))
def test_any_text_is_read_or_refused(text: str, at: int) -> None:
    """F-ALL-3: no text raises anything but FormatError, wherever a person puts it."""
    for whole in (text, BY_HAND[:at] + text + BY_HAND[at:]):
        try:
            document = ShortTermDocument(whole).with_event(FIRST).with_items(goals=["g"]).with_summary("s")
            assert FIRST in document.memory.events
        except FormatError:
            pass


@pytest.mark.slow
def test_ten_megabytes_and_a_thousand_events() -> None:
    """F-STM-3: an event of 10 MB reads back; so does one added above a thousand."""
    document = ShortTermDocument(EMPTY).with_event(replace(FIRST, user=BIG))
    assert BIG == document.with_event(SECOND).memory.events[1].user
    many = [replace(FIRST, id=str(number)) for number in range(1000)]
    document = ShortTermDocument(EMPTY)
    for event in many:
        document = document.with_event(event)
    assert tuple(reversed(many)) == document.memory.events


def test_a_private_mark_in_a_list_is_read_kept_and_matched() -> None:
    """F-STM-8: it is no part of the item's text, ticking and adding heed the item as any other; all is private."""
    text = EMPTY.replace("### Tasks\n", "### Tasks\n- [ ] Buy it <!-- private -->\n")
    document = ShortTermDocument(text).with_items(facts=["It is so"])
    assert (Item("Buy it", is_private=True),) == document.memory.tasks
    assert (Item("It is so", is_private=True),) == document.memory.facts
    assert str(document) == str(document.with_items(tasks=["buy  it"]))
    assert (Item("Buy it", True, True),) == document.with_done(["Buy it"]).memory.tasks
    assert shareable_text(str(document)) is None


@pytest.mark.parametrize(
    "line",
    [
        "- Is\n  so <!-- private -->",
        "- Is <!-- private --> so",
        "- Is so <!--PRIVATE-->",
        "- Is so\nto me <!-- private -->",
    ],
)
def test_a_mark_is_read_wherever_it_stands_in_an_item(line: str) -> None:
    """F-STM-8: it is no part of the text, and the item is not added again."""
    document = ShortTermDocument(EMPTY.replace("### Tasks\n", f"### Tasks\n{line}\n"))
    assert (Item("Is so", is_private=True),) == document.memory.tasks
    assert str(document) == str(document.with_items(tasks=["is so"]))
