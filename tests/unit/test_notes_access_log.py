from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.formats.access_log import AccessEntry, AccessLog, format_entry, identity_of, parse_access_log
from tests.support.notes_texts import BIG, file_names, texts, times

paths = file_names.map(lambda name: "/" + name)
entries = st.builds(AccessEntry, at=times, action=st.sampled_from(["READ", "CITE"]), path=paths)


def test_a_line_stands_as_the_specification_shows() -> None:
    """F-LOG-1: `TIME | ACTION | PATH`. Seeds: S14."""
    line = "2025-09-16T15:30:00Z | READ | /path/to/project/memory/long_term/concrete/programming/python.md\n"
    entry = AccessEntry(line[:20], "READ", line[30:-1])
    assert line == format_entry(entry)
    assert AccessLog((entry,), ()) == parse_access_log(line)


@given(st.lists(entries, max_size=5))
def test_a_log_reads_back(log: list[AccessEntry]) -> None:
    """F-LOG-2: any path is one line and reads back, ` | ` and newlines in it too. Seeds: S14, P1."""
    text = "".join(map(format_entry, log))
    assert len(log) == text.count("\n")
    assert AccessLog(tuple(log), ()) == parse_access_log(text)
    assert AccessLog(tuple(log), ()) == parse_access_log(text.replace("\n", "\r\n"))


def test_garbage_is_named_and_passed_over() -> None:
    """F-LOG-4: torn and foreign lines do not hide the others."""
    good = "2025-09-16T15:30:00Z | READ | /a.md"
    found = parse_access_log(f"\ufeff{good}\ngarbage\n\n2025-09-16T15:30:00Z | READ | \n{good}\n2025-09-1")
    assert ((2, 4, 6), 2) == (found.unreadable, len(found.entries))


@pytest.mark.parametrize(
    ("path", "identity"),
    [
        ("/home/ada/brain/memory/long_term/a/b.md", "long_term/a/b.md"),
        ("C:\\brain\\memory\\long_term\\a\\b.md", "long_term/a/b.md"),
        ("memory/archive/b.md", "archive/b.md"),
        ("/memory/x/memory/long_term/memory/b.md", "long_term/memory/b.md"),
        ("/brain/memory/short_term.md", "short_term.md"),
        ("/brain/inbox/q.md", ""),
    ],
)
def test_identity_is_what_follows_memory(path: str, identity: str) -> None:
    """F-LOG-3: a log from another machine or system counts."""
    assert identity == identity_of(path)


@given(texts)
def test_any_text_is_read(text: str) -> None:
    """F-ALL-3: no text raises; what is unreadable is named by its line."""
    log = parse_access_log(text)
    assert set(log.unreadable) <= set(range(1, text.count("\n") + 2))
    assert identity_of(text) == identity_of(text)


@pytest.mark.slow
def test_ten_megabytes_are_read() -> None:
    """F-LOG-4: a log of 10 MB of garbage gives the numbers of its lines."""
    found = parse_access_log(BIG)
    assert ((), BIG.count("\n") + 1) == (found.entries, len(found.unreadable))
