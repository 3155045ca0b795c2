"""What the index has not taken in: read once, never lost, never older than the file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from brainiac.formats.markdown import StmEvent
from brainiac.formats.short_term import EMPTY, ShortTermDocument
from brainiac.search import documents, features
from brainiac.search.index import Asked
from brainiac.search.pages import Unindexed
from brainiac.search.text import Analyzer
from brainiac.text.dates import dates_in
from brainiac.tree import Tree

PAGE = "memory/long_term/concrete/garden.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a folder with places for memory."""
    (tmp_path / "memory/long_term/concrete").mkdir(parents=True)
    return tmp_path


def unindexed_of(root: Path) -> Unindexed:
    """Return what is not indexed in a folder, nothing yet."""
    return Unindexed(Tree(root), Analyzer("english"), lambda path: None)


def log_of(first: int, end: int) -> str:
    """Return short-term memory with these exchanges, newest first."""
    document = ShortTermDocument(EMPTY)
    for number in range(first, end):
        event = StmEvent(f"e{number}", "2025-09-14T08:00:00Z", f"I swam {number} lengths yesterday.", "Well done.")
        document = document.with_event(event)
    return str(document)


def test_of_a_growing_log_only_what_is_new_is_analyzed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one more exchange, dates are looked for in that one alone, and the page is what a first reading gives."""
    asked: list[str] = []

    def find_and_note(text: str) -> Iterator[tuple[date, str]]:
        asked.append(text)
        return dates_in(text)

    monkeypatch.setattr(features, "dates_in", find_and_note)
    unindexed, file = unindexed_of(root), root / "memory/short_term.md"
    file.write_text(log_of(0, 50), "utf-8")
    unindexed.catch_up()
    asked.clear()
    file.write_text(log_of(0, 51), "utf-8")
    unindexed.catch_up()
    assert ["I swam 50 lengths yesterday."] == asked
    assert unindexed_of(root).encoded("memory/short_term.md") == unindexed.pages["memory/short_term.md"]


def test_a_log_is_parsed_once_for_all_queries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as short-term memory stands as it was ranked it is not read again; then it is no page of that time."""
    (root / "memory/short_term.md").write_text(log_of(0, 3), "utf-8")
    unindexed = unindexed_of(root)
    unindexed.catch_up()
    ranked = unindexed.pages["memory/short_term.md"]
    assert ranked
    stamp = ranked.stamp
    with monkeypatch.context() as patched:
        patched.delattr(documents, "document_of")
        page = unindexed.page_as_of("memory/short_term.md", stamp)
    assert page
    assert 6 == len(page.units)
    (root / "memory/short_term.md").write_text(log_of(0, 4), "utf-8")
    assert unindexed.page_as_of("memory/short_term.md", stamp) is None


def test_a_file_written_while_it_was_read_stays_to_be_read(root: Path) -> None:
    """What was read of a file that has changed since is not taken for the file."""
    unindexed = unindexed_of(root)
    (root / PAGE).write_text("# Garden\n\n- User grows tomatoes. ^a1\n", "utf-8")
    unindexed.note(PAGE)
    unindexed.collect_noted()
    before = unindexed.encoded(PAGE)
    (root / PAGE).write_text("# Garden\n\n- User grows courgettes now. ^a1\n", "utf-8")
    unindexed.record_read({PAGE: before})
    assert [PAGE] == list(unindexed.unread)
    unindexed.catch_up()
    assert [PAGE] == [
        found.page.path for found in unindexed.holding(Asked(terms=["courgett"], limit=5), ["courgettes"])
    ]


def test_what_there_was_no_time_for_is_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While very many files wait a search looks into as many as it has time for, and says how many are left."""
    for name in ("garden", "kitchen"):
        (root / f"memory/long_term/concrete/{name}.md").write_text(f"# {name}\n\n- Tomatoes. ^a1\n", "utf-8")
    unindexed = unindexed_of(root)
    unindexed.start_anew([f"memory/long_term/concrete/{name}.md" for name in ("garden", "kitchen")])
    asked = Asked(terms=["tomato"], limit=5)
    assert (2, 0) == (len(unindexed.holding(asked, ["tomatoes"])), unindexed.n_passed_over)
    with monkeypatch.context() as patched:
        patched.setattr("brainiac.search.pages._SCANNED_PAGES", 1)
        assert (1, 1) == (len(unindexed.holding(asked, ["tomatoes"])), unindexed.n_passed_over)
    monkeypatch.setattr("brainiac.search.pages._SCAN_SECONDS", -1.0)
    assert (0, 2) == (len(unindexed.holding(asked, ["tomatoes"])), unindexed.n_passed_over)
