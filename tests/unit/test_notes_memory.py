from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import FormatError
from brainiac.formats.page import Memory, MemoryDocument, new_memory, parse_exchanges, parse_memory, render_exchange
from brainiac.formats.short_term import StmEvent
from tests.support.notes_texts import BIG, block_ids, texts, words

NOW = "2025-09-16T15:30:00Z"
UUID = "01995b2e-7c00-7000-8000-000000000002"

BY_HAND = """\
---
tags: "home, #work"
mine: [1,   2]   # odd
---
```
# no title
- no statement
```
# My Page

- one
  more of it
  - nested
    ^zz99

  a paragraph of it
* two ^f3k9
lazy end of two

not an item

## Related
- three ^Some-Id

## HISTORY
- ~~old~~ (until 2024-01-01) ^old1
### Deeper
- still history
## After
1) four
no line end"""


def page(*statements: str) -> MemoryDocument:
    return MemoryDocument(new_memory("T", uuid=UUID, now=NOW, statements=statements))


def test_a_new_page_has_every_mandatory_key() -> None:
    """F-MEM-1: front matter as specified, further keys where they apply. Seeds: S7, P1, R9."""
    text = new_memory(
        "Work", uuid=UUID, now=NOW, tags=["a", "b c"], emotion="joy", statements=["s"],
        category="identity", subject="User", subject_type="person", importance="high",
        canonical_key="user-work", sources=["e1"], focused=["x"],
    )  # fmt: skip
    memory = parse_memory("memory/long_term/concrete/work.md", text)
    assert (UUID, "Work", NOW, NOW, ("a", "b c"), "joy", 0) == (
        memory.uuid,
        memory.title,
        memory.created_at,
        memory.updated_at,
        memory.tags,
        memory.emotion,
        memory.reinforcement_count,
    )
    keys = ("category", "subject", "subject_type", "importance", "canonical_key", "sources", "focused")
    assert ["identity", "User", "person", "high", "user-work", ["e1"], ["x"]] == [memory.meta[key] for key in keys]


def test_hand_made_pages_are_read() -> None:
    """F-MEM-3, F-MEM-4: nested, lazy and numbered items, foreign block ids, fences, a history with sections."""
    memory = parse_memory("x/y.md", BY_HAND)
    expected = [
        ("one\nmore of it", "", False, "My Page"),
        ("two ^f3k9\nlazy end of two", "", False, "My Page"),
        ("three", "Some-Id", False, "Related"),
        ("old", "old1", True, "HISTORY"),
        ("still history", "", True, "Deeper"),
        ("four\nno line end", "", False, "After"),
    ]
    assert expected == [(each.text, each.block_id, each.is_history, each.section) for each in memory.statements]
    assert ("", "2024-01-01", "") == (
        memory.statements[3].since,
        memory.statements[3].until,
        memory.statements[3].replaced_by,
    )
    assert (
        "- one\n  more of it\n  - nested\n    ^zz99\n\n  a paragraph of it\n"
        == (BY_HAND[memory.statements[0].start : memory.statements[0].end])
    )
    assert ("My Page", ("home", "work"), 0) == (memory.title, memory.tags, memory.reinforcement_count)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: A\n---\n# B", "A"),
        ("# B\n# C", "B"),
        ("~~~\n# no\n~~~\n# B", "B"),
        ("## B", "my-page"),
        ("", "my-page"),
    ],
)
def test_where_a_title_comes_from(text: str, title: str) -> None:
    """F-MEM-2: front matter, else the first heading outside a fence, else the stem."""
    assert title == parse_memory("a/my-page.md", text).title


@given(words, st.lists(words, max_size=4), st.lists(words, max_size=3), st.lists(words, max_size=3))
def test_a_new_page_reads_back(title: str, statements: list[str], steps: list[str], tags: list[str]) -> None:
    """F-MEM-3, F-MEM-6, F-TXT-6: any text of one line is a title, statement or step. Seeds: S6, S7."""
    memory = parse_memory("x.md", new_memory(title, uuid=UUID, now=NOW, statements=statements, steps=steps))
    assert (title, tuple(steps)) == (memory.title, memory.steps)
    assert statements == [each.text for each in memory.statements if each.section != "Steps"]
    ids = [each.block_id for each in memory.statements]
    assert len(statements) + len(steps) == len(set(ids))
    assert all(re.fullmatch("[a-z0-9]{4,6}", block_id) for block_id in ids)


def test_block_ids_follow_from_the_text() -> None:
    """F-MEM-3: the same page gives the same ids; of equal texts the second gets another."""
    assert str(page("a", "b")) == str(page("a", "b"))
    first, second = page("a", "a").memory.statements
    assert first.block_id != second.block_id
    assert page("x").block_id_for("a") == first.block_id
    assert "- a ^mine" in str(page().add_statement("a", "mine"))


def test_a_statement_is_added_below_what_still_holds() -> None:
    """F-MEM-5, F-ALL-2: one line goes in, every other byte stays."""
    added = MemoryDocument(BY_HAND).add_statement("new\nline", "ab12")
    assert BY_HAND.replace("^Some-Id\n", "^Some-Id\n- new line ^ab12\n") == str(added)
    without_ids = "# T\r\n\r\n- mine\r\n\r\n## Ideas\r\n- other\r\n"
    added = MemoryDocument(without_ids).add_statement("new", "ab12")
    assert without_ids.replace("- mine\r\n", "- mine\r\n- new ^ab12\r\n") == str(added)
    prose = "# T\n\nprose\n\n## History\n"
    assert "# T\n\nprose\n\n- new ^ab12\n\n## History\n" == str(MemoryDocument(prose).add_statement("new", "ab12"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_statements_move_below_headings_byte_for_byte(newline: str) -> None:
    """F-MEM-10, F-ALL-2: with nested lines, above History; what is not named stays, the last line of a file too."""
    top = "# T\n\n* a ^aaaa\n  - nested\n\n    more\n\nprose\n\n- mine\n-  b  ^bbbb\n- c ^cccc"
    history = "\n\n## history\n- ~~x~~ (until 2026-01-01) ^xxxx\n"
    below = "\n## One\n-  b  ^bbbb\n\n## Two\n- c ^cccc\n* a ^aaaa\n  - nested\n\n    more\n"
    for end in ("", history):
        document = MemoryDocument((top + end).replace("\n", newline))
        assert not document.is_divided
        divided = document.with_sections({"One": ["bbbb"], "Two": ["cccc", "aaaa"]})
        assert ("# T\n\n\nprose\n\n- mine\n" + below + end[1:]).replace("\n", newline) == str(divided)
        assert divided.is_divided
        added = divided.add_statement("new", "nnnn")
        assert "Two" == added.statement("nnnn").section


@pytest.mark.parametrize(
    "line", ["## Mine", "# Second", "# History", "###### 6", "Mine\n====", "Mine\n---", "#", "```\n# x\n```"]
)
def test_a_heading_of_a_persons_own_is_seen(line: str) -> None:
    """F-MEM-10: in every form that Markdown has, and rather once too often."""
    assert MemoryDocument(f"---\nuuid: x\n---\n# T\n\n{line}\n\n- a ^aaaa\n").is_divided
    assert MemoryDocument(f"# T\n\n- a ^aaaa\n\n## Steps\n1. a\n\n## History\n- x\n\n{line}\n").is_divided
    assert not MemoryDocument("---\ntitle: T\n---\n#tag\n\n- a #tag\n").is_divided


def test_a_replaced_statement_keeps_marker_id_and_nested_lines() -> None:
    """F-ALL-2: only its own text changes."""
    text = "* one\n  more ^f3k9\n  - nested\n* two\n"
    assert "* new ^f3k9\n  - nested\n* two\n" == str(MemoryDocument(text).replace_statement("f3k9", "new"))


def test_a_retired_statement_stands_in_history_with_dates_and_successor() -> None:
    """F-MEM-4: text, id and nested lines move; nothing of it is lost."""
    before = "# T\n\n- User works at Google ^f3k9\n  - in Zurich\n- x ^ab12\n"
    retired = MemoryDocument(before).retire("f3k9", "2026-03-01", "ab12", "2025-01-02")
    line = "- ~~User works at Google~~ (2025-01-02 – 2026-03-01; replaced by ^ab12) ^f3k9\n  - in Zurich\n"
    assert f"# T\n\n- x ^ab12\n\n## History\n{line}" == str(retired)
    found = retired.statement("f3k9")
    assert ("User works at Google", True, "2025-01-02", "2026-03-01", "ab12") == (
        found.text,
        found.is_history,
        found.since,
        found.until,
        found.replaced_by,
    )
    assert str(retired) == str(retired.retire("f3k9", "2027-01-01"))
    again = str(retired.retire("ab12", "2027-01-01"))
    assert f"# T\n\n\n## History\n{line}- ~~x~~ (until 2027-01-01) ^ab12\n" == again


@given(words, words, block_ids, st.sampled_from(["\n", "\r\n"]))
def test_any_statement_can_be_replaced_and_retired(text: str, other: str, block_id: str, newline: str) -> None:
    """F-MEM-3, F-MEM-4: whatever it says, it reads back from the list and from History; the rest stays."""
    document = MemoryDocument(BY_HAND.replace("\n", newline)).add_statement(text, block_id)
    assert text == document.statement(block_id).text
    document = document.replace_statement(block_id, other)
    assert other == document.statement(block_id).text
    retired = document.retire(block_id, "2026-01-01", "ab12")
    assert (other, True, "ab12") == (
        retired.statement(block_id).text,
        retired.statement(block_id).is_history,
        retired.statement(block_id).replaced_by,
    )
    rest = [each.text for each in retired.memory.statements if each.block_id != block_id]
    assert [each.text for each in MemoryDocument(BY_HAND).memory.statements] == rest
    assert newline == "\n" or "\n" not in str(retired).replace("\r\n", "")


def test_an_unknown_statement_is_named() -> None:
    """F-ALL-3: what a person removed meanwhile cannot be changed, and the error says so."""
    operations: tuple[Callable[[MemoryDocument], MemoryDocument], ...] = (
        lambda document: document.replace_statement("zzzz", "x"),
        lambda document: document.retire("zzzz", "2026-01-01"),
    )
    for operate in operations:
        with pytest.raises(FormatError, match=r"no statement \^zzzz"):
            operate(MemoryDocument(BY_HAND, "x.md"))
    with pytest.raises(ValueError, match="must not be empty"):
        page().add_statement(" \n")


def test_steps_are_numbered_in_order() -> None:
    """F-MEM-6: a skills page holds its recipe as a numbered list, above History. Seeds: S6."""
    text = new_memory("Tea", uuid=UUID, now=NOW, statements=["old"], steps=["Boil.", "Steep."])
    document = MemoryDocument(text).retire(MemoryDocument(text).memory.statements[0].block_id, "2026-01-01")
    document = document.add_step("Drink.")
    assert ("Boil.", "Steep.", "Drink.") == document.memory.steps
    assert ["1.", "2.", "3."] == re.findall(r"^\d\.", str(document), re.MULTILINE)
    assert str(document).index("## Steps") < str(document).index("## History")
    only_history = MemoryDocument("# T\n\n## History\n- ~~x~~ (until 2026-01-01) ^old1\n").add_step("Go.")
    assert re.search(r"# T\n\n## Steps\n1\. Go\. \^\w{4}\n\n## History\n", str(only_history))


def test_a_note_dropped_by_hand_gets_the_missing_keys_alone() -> None:
    """F-MEM-1: what stands there stays byte for byte. Seeds: S7."""
    after = str(MemoryDocument(BY_HAND).with_missing_keys(UUID, NOW))
    added = f"uuid: {UUID}\ncreated_at: {NOW}\nupdated_at: {NOW}\nemotion: neutral\nreinforcement_count: 0\n"
    assert BY_HAND.replace("# odd\n", f"# odd\n{added}") == after
    assert after == str(MemoryDocument(after).with_missing_keys("other", "later"))
    assert "Just text" == parse_memory("x.md", str(MemoryDocument("Just text").with_missing_keys(UUID, NOW))).body


def test_an_episodic_page_keeps_exchanges_word_for_word() -> None:
    """F-MEM-7: lists within what was said are not statements. Seeds: S6."""
    said = StmEvent("e1", NOW, "- a list\n- of mine ^ab12", "# Title", "t")
    text = new_memory("2025-09-16", uuid=UUID, now=NOW, body=render_exchange(said))
    assert (said,) == parse_exchanges(text)
    assert ("2025-09-16", ()) == (parse_memory("x.md", text).title, parse_memory("x.md", text).statements)


@given(texts, st.integers(0, len(BY_HAND)))
def test_any_page_is_read_or_refused(text: str, at: int) -> None:
    """F-ALL-3: no text raises anything but FormatError, and a statement can be added to all that is read."""
    for whole in (text, BY_HAND[:at] + text + BY_HAND[at:]):
        try:
            memory = parse_memory("x.md", whole)
        except FormatError:
            continue
        assert isinstance(memory, Memory)
        for each in memory.statements:
            assert 0 <= each.start < each.own[0] <= each.own[1] <= each.end <= len(whole)
        added = str(MemoryDocument(whole).add_statement("surely new", "q0q0"))
        assert "- surely new ^q0q0" in added


@pytest.mark.slow
def test_ten_megabytes_are_read() -> None:
    """A page of 10 MB, text or list, is read and added to."""
    assert () == parse_memory("x.md", BIG).statements
    items = MemoryDocument("# T\n\n" + "- x ^ab12\n" * 1_000)
    assert 1_001 == len(items.add_statement("new").memory.statements)
