"""Two versions of one file merge by what things are: alike on every device, and nothing that a person wrote is lost."""

from __future__ import annotations

import re
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from brainiac.events import PathKind
from brainiac.formats.markdown import StmEvent, has_markers, split_markers
from brainiac.formats.page import parse_memory
from brainiac.storage.versions import merge
from tests.support.examples import examples
from tests.support.notes_texts import stm_text

BOB = """---
uuid: 0199aaaa-0000-7000-8000-000000000001
created_at: 2025-01-01
updated_at: 2025-01-01
tags: [a, b]
emotion: neutral
reinforcement_count: 2
---
# Bob

- Lives in Porto. ^ab12
- Likes tea. ^cd34

A paragraph.
Its second line.

```sh
echo 1
```

## History
- ~~Lived in Faro.~~ (until 2020-01-01) ^ee55
"""


def merged(base: str | None, ours: str, theirs: str, kind: PathKind = PathKind.MEMORY) -> str:
    """Merge, and check that exchanging the sides changes nothing."""
    former = None if base is None else base.encode()
    result = merge(kind, former, ours.encode(), theirs.encode())
    assert result == merge(kind, former, theirs.encode(), ours.encode())
    return result.text.decode()


def test_both_change_a_page() -> None:
    """Each side's additions, changes and removals count; of a statement that both changed both texts stand, with ids
    of their own; tags, counts and dates are merged as what they are."""
    ours = BOB.replace("Porto", "Lisbon").replace("[a, b]", "[a, b, c]").replace("count: 2", "count: 3")
    theirs = BOB.replace("Porto", "Braga").replace("[a, b]", "[b]").replace("count: 2", "count: 4")
    theirs = theirs.replace("A paragraph.", "A better paragraph.").replace("^cd34\n", "^cd34\n- Has a cat. ^ef56\n")
    ours = ours.replace("updated_at: 2025-01-01", "updated_at: 2025-02-01").replace("Its second line.\n", "")
    result = merge(PathKind.MEMORY, BOB.encode(), ours.encode(), theirs.encode())
    page = parse_memory("bob.md", merged(BOB, ours, theirs))
    assert (("b", "c"), 5, "2025-02-01") == (page.tags, page.reinforcement_count, page.updated_at)
    assert ["Lives in Braga.", "Lives in Lisbon.", "Likes tea.", "Has a cat.", "Lived in Faro."] == [
        statement.text for statement in page.statements
    ]
    assert 5 == len({statement.block_id for statement in page.statements})
    assert "A better paragraph.\n" in page.body
    assert "Its second line." not in page.body
    assert [("- Lives in Braga. ^ab12", "- Lives in Lisbon. ^7562")] == [
        (difference.kept, difference.other) for difference in result.differences
    ]


def test_what_is_retired_on_one_side_and_edited_on_the_other() -> None:
    """The person's new words hold; what the other side knows stands under History."""
    ours = BOB.replace("- Lives in Porto. ^ab12\n", "") + "- ~~Lives in Porto.~~ (until 2025-02-01) ^ab12\n"
    page = parse_memory("bob.md", merged(BOB, ours, BOB.replace("Porto", "Porto, near the river")))
    assert {"Lives in Porto, near the river.", "Lives in Porto."} <= {each.text for each in page.statements}
    assert merged(BOB, ours, BOB) == ours


def test_without_a_base_nothing_counts_as_removed() -> None:
    """Both texts stand, once each, and merging again with either side adds nothing."""
    ours, theirs = BOB.replace("A paragraph.", "Ours."), BOB.replace("- Likes tea. ^cd34\n", "")
    both = merged(None, ours, theirs)
    assert all(1 == both.count(line) for line in ("Ours.", "A paragraph.", "Likes tea", "echo 1"))
    assert [both, both] == [merged(None, side, both) for side in (ours, theirs)]


def test_front_matter_that_both_changed() -> None:
    """The other value stays as a comment; privacy counts if either side asks for it."""
    ours, theirs = BOB.replace("neutral", "joy"), BOB.replace("neutral", "grief")
    both = merged(BOB, ours, theirs)
    assert {"emotion: joy\n", "# emotion: grief\n"} <= set(both.splitlines(keepends=True))
    ours, theirs = (BOB.replace("---\n# Bob", f"private: {flag}\n---\n# Bob") for flag in ("true", "false"))
    assert "private: true" in merged(None, ours, theirs)


def test_counts_and_dates_are_merged_by_what_they_mean() -> None:
    """A count never falls below what either side says, and a date counts as the same with quotes or without."""
    sides = [BOB.replace("count: 2", f"count: {count}") for count in (0, 1)]
    assert "reinforcement_count: 1\n" in merged(BOB.replace("count: 2", "count: 5"), sides[0], sides[1])
    keys = ("created_at", "updated_at")
    quoted, plain = BOB, BOB
    for key in keys:
        quoted = quoted.replace(f"{key}: 2025-01-01", f"{key}: '2025-03-01'")
        plain = plain.replace(f"{key}: 2025-01-01", f"{key}: 2025-02-01")
    page = parse_memory("bob.md", merged(BOB, quoted, plain))
    assert ("2025-02-01", "2025-03-01") == (page.created_at, page.updated_at)


@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_the_preferred_side_has_the_place(prefer: Literal["ours", "theirs"]) -> None:
    """Of a statement, an entry and lines that both changed, its text stands first; all that stands twice is told."""
    ours = BOB.replace("Porto", "Lisbon").replace("neutral", "joy").replace("A paragraph.\n", "One.\nMore.\n")
    theirs = BOB.replace("Porto", "Braga").replace("neutral", "calm").replace("A paragraph.\n", "Two.\n")
    result = merge(PathKind.MEMORY, BOB.encode(), ours.encode(), theirs.encode(), prefer=prefer)
    lines = result.text.decode().splitlines()
    texts = [("Lives in Lisbon", "Lives in Braga"), ("emotion: joy", "emotion: calm"), ("More.", "Two.")]
    for pair in texts:
        kept, other = pair if prefer == "ours" else pair[::-1]
        (place,) = (number for number, line in enumerate(lines) if kept in line)
        other = other if other != "More." else "One."
        assert other in lines[place + 1]
    assert 3 == len(result.differences)
    alone = merge(PathKind.MEMORY, BOB.encode(), ours.encode(), theirs.encode(), prefer=prefer, keeps_other=False)
    assert (ours if prefer == "ours" else theirs) == alone.text.decode()
    assert 3 == len(alone.differences)


def stm(*numbers: int, tasks: tuple[str, ...] = (), done: tuple[str, ...] = ()) -> str:
    events = [StmEvent(f"e{number}", f"2025-09-16T15:3{number}:00Z", f"said {number}") for number in numbers]
    return stm_text(*events, tasks=tasks, done=done)


def test_short_term_memory_merges_by_event_and_item() -> None:
    """Newest first, ticks of either side; what one side promoted goes, what the other added stays."""
    base = stm(1, 2, tasks=("a", "b"))
    ours, theirs = stm(2, 3, tasks=("a", "b", "c"), done=("a",)), stm(1, 2, 4, tasks=("a", "b", "d"))
    text = merged(base, ours, theirs, PathKind.SHORT_TERM)
    assert ["e4", "e3", "e2"] == re.findall("<!-- event: (.*) -->", text)
    assert {("x", "a"), (" ", "b"), (" ", "c"), (" ", "d")} == set(re.findall(r"- \[(.)\] (.)\n", text))


@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_what_both_added_to_a_half_saved_exchange_stands_once(prefer: Literal["ours", "theirs"]) -> None:
    half = f"{stm_text()}### 2025-09-16T15:30:00Z\n<!-- event: e1 -->\n"
    said = "**User:** A bolt.\n\n{}**AI:** Yes.\n\n- By hand.\n{}"
    one, other = (half + said.format(*lines) for lines in (("", "- Mine.\n"), ("**Mood:** good\n", "")))
    merged = merge(PathKind.SHORT_TERM, half.encode(), one.encode(), other.encode(), prefer=prefer)
    assert half + said.format("**Mood:** good\n", "- Mine.\n") == merged.text.decode()


def test_a_review_keeps_each_proposal_once() -> None:
    """A mark counts more than an empty box; two marks that contradict each other both stand, which decides nothing."""
    line = "- [{}] Do it <!-- proposal: p1 -->\n"
    assert line.format("x") == merged(None, line.format(" "), line.format("x"), PathKind.REVIEW)
    assert 2 == merged(None, line.format("-"), line.format("x"), PathKind.REVIEW).count("p1")


def test_settings_stay_readable() -> None:
    """Sections and lists are merged entry by entry; of one entry that both set the other value stays as a comment."""
    base = "brain_id: b\nsources: [a]\ninbox:\n  settle_ms: 100\nactive_device: a\n"
    ours = base.replace("device: a", "device: desk").replace("100", "100\n  keep_days: 3").replace("[a]", "[a, b]")
    theirs = base.replace("device: a", "device: laptop").replace("[a]", "[c]")
    both = merged(base, ours, theirs, PathKind.CONFIG)
    assert "inbox:\n  settle_ms: 100\n  keep_days: 3\n" in both
    assert ["b", "c"] == sorted(yaml.safe_load(both)["sources"])
    assert {"active_device: laptop\n", "# active_device: desk\n"} <= set(both.splitlines(keepends=True))


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_markers_hold_both_versions(style: str) -> None:
    """Both sides, and the base where git wrote it; a block within a code fence is text, half a block too."""
    base = "||||||| 1234\nLives in Porto.\n" if style == "diff3" else ""
    text = f"# Bob\n<<<<<<< HEAD\nLisbon.\n{base}=======\nBraga.\n>>>>>>> other\nend\n"
    sides = split_markers(text)
    assert sides is not None
    assert ("# Bob\nLisbon.\nend\n", "# Bob\nBraga.\nend\n") == (sides.ours, sides.theirs)
    assert ("# Bob\nLives in Porto.\nend\n" if style == "diff3" else None) == sides.base
    assert not has_markers(f"```\n{text}```\n")
    assert not has_markers("# Title\n=======\n<<<<<<< HEAD\n")
    assert has_markers(text.replace("Lisbon.\n", ""))  # where one side took the lines out


LINES = [
    "- Lives in Porto. ^ab12", "- Lives in Faro. ^ab12", "- Likes tea. ^cd34", "- plain item", "- [ ] task",
    "- [x] task",
    "word", "two words", "", "## Part", "## History", "---", "```", "tags: [a]", "tags: [b]", "emotion: joy",
    "### 2025-09-16T15:30:00Z", "<!-- exchange: e1 -->", '**User:** "hi"', "  nested", "~~~", "\ufeff", "title: [",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)
CALM = st.lists(st.sampled_from([*LINES[:10], "tags: [a]", "# Title"]), max_size=10).map("\n".join)
CALM = CALM.filter(lambda text: text.count("^ab12") < 2)  # a page has each block id once
KINDS = (PathKind.MEMORY, PathKind.SHORT_TERM, PathKind.REVIEW, PathKind.CONFIG, PathKind.PROMPT, PathKind.INDEX_PAGE)


def words(text: str) -> set[str]:
    return {word for word in re.sub(r"[\[\],]", " ", text).split() if word.isalnum()}


@examples(300)
@given(st.sampled_from(KINDS), TEXTS, TEXTS, st.none() | TEXTS)
def test_any_two_texts_merge_alike_and_lose_nothing(kind: PathKind, ours: str, theirs: str, base: str | None) -> None:
    """Whatever the texts: exchanging them changes nothing, equal ones stay, and no word that is new is lost."""
    text = merged(base, ours, theirs, kind)
    assert ours == merged(base, ours, ours, kind)
    if kind is not PathKind.INDEX_PAGE:
        assert (words(ours) | words(theirs)) - words(base or "") <= words(text)


@examples(150)
@given(st.sampled_from(KINDS[:3]), CALM, CALM)
def test_merging_again_adds_nothing(kind: PathKind, ours: str, theirs: str) -> None:
    """A device that gets what the other has merged, and merges its own version with that, repeats no line."""
    both = merged(None, ours, theirs, kind)
    for side in (ours, theirs):
        again = merged(None, side, both, kind)
        assert (words(both), True) == (words(again), len(again.split("\n- ")) <= len(both.split("\n- ")))
