from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.formats.markdown import (
    StmEvent,
    escape,
    find_events,
    parse_exchanges,
    render_event,
    render_exchange,
    text_outside_events,
)
from tests.support.notes_texts import BIG, ids, texts, times

events = st.builds(StmEvent, id=ids, at=times, user=texts, ai=texts, thoughts=texts, is_private=st.booleans())
AT = "2025-09-16T15:30:00Z"


def test_an_exchange_of_single_lines_stands_as_the_specification_shows() -> None:
    """F-TXT-2, F-TXT-3, F-STM-2: quotes behind the label, none behind Thoughts. Seeds: S4."""
    event = StmEvent("01", AT, "How do I time it?", 'Say "now".', "Asks.")
    expected = (
        f'### {AT}\n<!-- event: 01 -->\n**User:** "How do I time it?"\n**AI:** "Say "now"."\n**Thoughts:** Asks.\n'
    )
    assert expected == render_event(event)
    assert (event,) == parse_exchanges(expected)


def test_several_lines_stand_as_a_block_quote() -> None:
    """F-TXT-2: below the label, each line after `> `, a blank line after the last."""
    event = StmEvent("01", AT, "a\n\n## Event Log", "b", " c")
    expected = (
        f'### {AT}\n<!-- exchange: 01 -->\n**User:**\n> a\n> \n> ## Event Log\n\n**AI:** "b"\n**Thoughts:**\n>  c\n'
    )
    assert expected == render_exchange(event)
    assert (event,) == parse_exchanges(expected)


@given(st.lists(events, max_size=3), st.sampled_from(["\n", "\r\n"]))
def test_exchanges_read_back_word_for_word(said: list[StmEvent], newline: str) -> None:
    """F-MEM-7, F-TXT-2, F-STM-8: any texts, one below the other, in a file of either line end. Seeds: S4, S6."""
    page = "# A day\n\n" + "\n".join(render_exchange(event) for event in said)
    assert tuple(said) == parse_exchanges(page.replace("\n", newline))


@given(events)
def test_an_event_takes_no_line_for_structure(event: StmEvent) -> None:
    """F-TXT-2: nothing that was said begins a section, so what stands below is never swallowed."""
    text = render_event(event) + "\n## Notes\nmine\n"
    (found,) = find_events(text)
    assert event == found.event
    assert "## Notes\nmine\n" == text[found.end :]


def test_texts_without_quotes_are_read() -> None:
    """F-TXT-4: what a person typed by hand, several lines, no quotes, no comment."""
    (event,) = parse_exchanges(f"### {AT}\n\n**User:** hello\nthere\n\n**AI:** 'x'\n- y\n**Thoughts:**\n")
    assert ("hello\nthere", "'x'\n- y", "") == (event.user, event.ai, event.thoughts)


def test_a_hand_made_event_has_an_id_from_its_text() -> None:
    """F-STM-4: the id stays while the text does and changes with it."""
    page = f"### {AT}\n**User:** hello\n"
    first, again, other = (parse_exchanges(text)[0].id for text in (page, page, page.replace("hello", "bye")))
    assert first == again
    assert first != other
    assert first.startswith("hand-")


def test_what_else_stands_in_an_event_is_a_remark() -> None:
    """F-TXT-7: lines below a quoted text, one of Thoughts or a block quote, and any own label, are no part of it."""
    said = '**User:** "one"\n\nCall the plumber\n**AI:**\n> a\n- by hand\n> b\n\n**Thoughts:** t\nand more\n'
    (placed,) = find_events(f"### {AT} important\n<!-- event: 01 -->\n**Note:** mine\n{said}\n\n## Next\n")
    assert StmEvent("01", AT, "one", "a\nb", "t") == placed.event
    assert "important\n**Note:** mine\n\nCall the plumber\n- by hand\n\nand more\n" == placed.event.remarks


def test_a_heading_that_is_no_moment_is_a_remark() -> None:
    """F-TXT-7: its words stay where the event is taken out."""
    page = '### 2026-13-01 my words\n**User:** "one"\n'
    assert "2026-13-01 my words\n" == text_outside_events(page, find_events(page))


def test_remarks_of_a_private_event_are_marked() -> None:
    """F-STM-8: they stay private where they stand alone; lines that bear the mark are left as they are."""
    text = f'### {AT}\n<!-- event: 01 -->\n<!-- private -->\n**User:** "x"\na\nb\n\nc\n'
    (placed,) = find_events(text)
    assert "<!-- private -->\na\nb\n\nc\n" == placed.event.remarks
    assert placed.event.is_private
    (placed,) = find_events(f'### {AT}\n<!-- event: 01 -->\n**User:** "x"\na\n\nc <!-- private -->\n')
    assert ("a\n\nc <!-- private -->\n", True) == (placed.event.remarks, placed.event.is_private)


@given(
    st.lists(events, min_size=1, max_size=3), st.lists(texts, min_size=4, max_size=4), st.sampled_from(["\n", "\r\n"])
)
def test_what_is_outside_events_and_within_them_is_all_there_is(
    said: list[StmEvent], between: list[str], newline: str
) -> None:
    """F-TXT-7: whatever stands around and within events, taking them out leaves every line that was not said."""
    marks = [f"{escape(text)} zq{number}" for number, text in enumerate(between)]
    parts = [
        marks[0],
        *(part for event, mark in zip(said, marks[1:], strict=False) for part in (render_event(event), mark)),
    ]
    page = "\n".join(parts).replace("\n", newline)
    rest = text_outside_events(page, find_events(page))
    words = "".join(f"{event.user}{event.ai}{event.thoughts}" for event in parse_exchanges(page))
    assert [] == [mark for mark in marks[: len(said) + 1] if f"zq{marks.index(mark)}" not in rest + words]


@given(texts)
def test_any_text_is_read(text: str) -> None:
    """F-ALL-3: no text raises; below a heading it is an exchange, which reads back as it was."""
    parse_exchanges(text)
    exchanges = parse_exchanges(f"### {AT}\n{text}")
    assert exchanges
    assert exchanges == parse_exchanges("".join(map(render_exchange, exchanges)))


@pytest.mark.slow
def test_ten_megabytes_are_said_word_for_word() -> None:
    """F-TXT-2: a text of 10 MB full of headings and labels reads back."""
    event = StmEvent("01", AT, BIG, BIG[:100])
    assert (event,) == parse_exchanges(render_exchange(event))
