"""When a file is finished."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.pipeline.watch import Settler, ends_with_send
from brainiac.settings import InboxSettings
from brainiac.tree import Stamp, stamp_of

SETTLE, TYPING = 0.1, 20.0
SHORT = Stamp(5, 1, 7, 1)
LONG = Stamp(9, 2, 7, 2)
LONGER = Stamp(12, 3, 7, 3)
EMPTY = Stamp(0, 1, 7, 1)


def settler(sent: frozenset[str] = frozenset()) -> Settler:
    pace = InboxSettings(settle_ms=round(SETTLE * 1000), typing_seconds=TYPING)
    return Settler(lambda: pace, lambda path: path in sent)


def finished(given_settler: Settler, now: float, standing: dict[str, Stamp | None]) -> list[str]:
    """Let time come to a moment and return what is finished then."""
    return [path for path in given_settler.take_due(now) if given_settler.finish(path, standing.get(path))]


def test_a_file_seen_with_content_is_finished_after_the_settle_time() -> None:
    settling = settler()
    settling.observe("q.md", SHORT, 0.0, is_typed=True)
    assert [] == finished(settling, 0.099, {"q.md": SHORT})
    assert ["q.md"] == finished(settling, 0.1, {"q.md": SHORT})
    assert settling.next_due() is None


def test_growth_while_it_is_first_written_starts_the_settle_time_anew_and_is_not_typing() -> None:
    """A copy in several writes is not mistaken for somebody who types."""
    settling = settler()
    settling.observe("q.md", EMPTY, 0.0, is_typed=True)
    settling.observe("q.md", SHORT, 0.05, is_typed=True)
    settling.observe("q.md", LONG, 0.14, is_typed=True)
    assert [] == finished(settling, 0.2, {"q.md": LONG})
    assert ["q.md"] == finished(settling, 0.25, {"q.md": LONG})


@pytest.mark.parametrize("first", [EMPTY, SHORT])
def test_a_file_that_rested_before_and_changes_again_is_being_typed(first: Stamp) -> None:
    settling = settler()
    settling.observe("q.md", first, 0.0, is_typed=True)
    assert ["q.md"] == finished(settling, 0.1, {"q.md": first})
    settling.observe("q.md", LONG, 1.0, is_typed=True)
    assert 21.0 == settling.next_due()
    settling.observe("q.md", LONGER, 15.0, is_typed=True)
    assert [] == finished(settling, 21.0, {"q.md": LONGER})
    assert ["q.md"] == finished(settling, 35.0, {"q.md": LONGER})


def test_a_last_line_of_send_ends_the_wait_at_once() -> None:
    settling = settler(frozenset({"q.md"}))
    settling.set_settled("q.md", EMPTY)
    settling.observe("q.md", LONG, 1.0, is_typed=True)
    assert ["q.md"] == finished(settling, 1.0, {"q.md": LONG})


def test_files_that_are_not_typed_for_us_settle_quickly_each_time() -> None:
    settling = settler()
    settling.set_settled("memory/a.md", SHORT)
    settling.observe("memory/a.md", LONG, 1.0, is_typed=False)
    assert ["memory/a.md"] == finished(settling, 1.1, {"memory/a.md": LONG})


def test_a_file_that_changed_in_the_very_moment_is_not_finished() -> None:
    settling = settler()
    settling.observe("q.md", SHORT, 0.0, is_typed=True)
    assert [] == finished(settling, 0.1, {"q.md": LONG})
    assert settling.is_waiting("q.md")


def test_an_editor_that_moves_the_old_file_away_before_it_saves_deletes_nothing() -> None:
    settling = settler()
    settling.set_settled("memory/a.md", SHORT)
    settling.observe("memory/a.md", None, 1.0, is_typed=False)
    settling.observe("memory/a.md", LONG, 1.01, is_typed=False)
    assert ["memory/a.md"] == finished(settling, 1.2, {"memory/a.md": LONG})
    assert {"memory/a.md": LONG} == settling.settled


def test_a_change_that_is_taken_back_is_nothing() -> None:
    settling = settler()
    settling.set_settled("q.md", SHORT)
    settling.observe("q.md", None, 1.0, is_typed=True)
    settling.observe("q.md", SHORT, 1.01, is_typed=True)
    assert [] == finished(settling, 30.0, {"q.md": SHORT})
    assert [] == settling.waiting_paths


def test_a_deletion_is_told_once_and_forgets_the_file() -> None:
    settling = settler()
    settling.set_settled("q.md", SHORT)
    settling.observe("q.md", None, 1.0, is_typed=True)
    assert ["q.md"] == finished(settling, 1.1, {})
    settling.observe("q.md", None, 2.0, is_typed=True)
    assert [] == finished(settling, 9.0, {})
    assert {} == settling.settled


def test_what_is_known_below_a_folder_is_found_without_its_neighbours() -> None:
    settling = settler()
    settling.set_settled("inbox/a/q.md", SHORT)
    settling.set_settled("inbox/ab/q.md", SHORT)
    settling.observe("inbox/a/new.md", LONG, 0.0, is_typed=True)
    assert {"inbox/a/q.md", "inbox/a/new.md"} == set(settling.known_below("inbox/a"))


Step = tuple[float, Stamp | None]


@given(
    st.lists(
        st.tuples(
            st.floats(0.001, 30, allow_nan=False),
            st.none() | st.builds(Stamp, st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), st.integers(0, 3)),
        ),
        max_size=30,
    )
)
def test_every_state_that_rests_is_told_exactly_once_and_no_other(steps: list[Step]) -> None:
    """Whatever the order of changes and pauses: told is what rested, in order, without repetition."""
    settling, now, standing = settler(), 0.0, None
    told: list[Stamp | None] = [None]
    for pause, stamp in [*steps, (60.0, None), (60.0, None)]:
        while (due := settling.next_due()) is not None and due <= now + pause:
            now, pause = max(now, due), pause - max(0.0, due - now)
            told += [standing for path in settling.take_due(now) if settling.finish(path, standing)]
        now, standing = now + pause, stamp
        settling.observe("q.md", stamp, now, is_typed=True)
    assert all(one != other for one, other in pairwise(told))
    assert settling.settled.get("q.md") == told[-1]


@pytest.mark.parametrize(
    ("text", "is_sent"),
    [
        ("Hello\n/send", True),
        ("Hello\n/send\n\n", True),
        ("/send", True),
        ("Hello\r\n  /send \r\n", True),
        ("Hello /send", False),
        ("/send\nmore", False),
        ("", False),
        ("x" * 100_000 + "\n/send\n", True),
    ],
)
def test_send_counts_as_the_last_line_only(tmp_path: Path, text: str, is_sent: bool) -> None:
    path = tmp_path / "q.md"
    path.write_bytes(text.encode())
    assert is_sent == ends_with_send(path)


def test_only_regular_files_have_a_stamp(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    assert stamp_of(tmp_path / "file") is not None
    assert (None, None, None) == tuple(stamp_of(tmp_path / name) for name in ("link", "folder", "absent"))
