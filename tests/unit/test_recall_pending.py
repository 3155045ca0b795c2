"""What the index has not taken in: taken in before an answer, never lost, never older than the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from brainiac.formats.markdown import StmEvent
from brainiac.formats.short_term import EMPTY, ShortTermDocument
from brainiac.search import documents, features
from brainiac.search import pages as pages_module
from brainiac.search.documents import Page
from brainiac.search.features import EncodedPage, encode
from brainiac.search.pages import Pages
from brainiac.search.search import Recall
from brainiac.search.text import Analyzer
from brainiac.settings import RecallSettings, Settings
from brainiac.text.dates import dates_in
from brainiac.tree import LocalPlaces, Stamp, Tree

CONCRETE = "memory/long_term/concrete"
LOG = "memory/short_term.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a folder with places for memory."""
    folder = tmp_path / "brain"
    (folder / CONCRETE).mkdir(parents=True)
    return folder


@pytest.fixture
def pages(root: Path, tmp_path: Path) -> Iterator[Pages]:
    """Give the pages of that folder, with an index of their own."""
    opened = Pages(Tree(root), tmp_path / "index", Analyzer("english"))
    yield opened
    opened.close()


def recall_of(root: Path, cache: Path) -> Recall:
    """Return a search over a folder by words, with this cache."""
    places = LocalPlaces(state=cache, cache=cache, config=cache / "config.yaml", device=cache)
    return Recall(Tree(root), places, Settings(recall=RecallSettings(embedder="none")))


def log_of(first: int, end: int) -> str:
    """Return short-term memory with these exchanges, newest first."""
    document = ShortTermDocument(EMPTY)
    for number in range(first, end):
        event = StmEvent(f"e{number}", "2025-09-14T08:00:00Z", f"I swam {number} lengths yesterday.", "Well done.")
        document = document.with_event(event)
    return str(document)


def test_of_a_growing_log_only_what_is_new_is_analyzed(
    root: Path, pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one more exchange, dates are looked for in that one alone, and the page is what a first reading gives."""
    asked: list[str] = []

    def find_and_note(text: str) -> Iterator[tuple[date, str]]:
        asked.append(text)
        return dates_in(text)

    monkeypatch.setattr(features, "dates_in", find_and_note)
    file = root / LOG
    file.write_text(log_of(0, 50), "utf-8")
    pages.catch_up()
    asked.clear()
    file.write_text(log_of(0, 51), "utf-8")
    pages.catch_up()
    assert ["I swam 50 lengths yesterday."] == asked
    other = Pages(Tree(root), tmp_path / "other", Analyzer("english"))
    other.catch_up()
    assert other.ask(lambda index: index.pages([LOG])) == pages.ask(lambda index: index.pages([LOG]))
    other.close()


def test_a_log_is_parsed_once_for_all_queries(root: Path, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as short-term memory stands as it was ranked it is not read again; then it is no page of that time."""
    (root / LOG).write_text(log_of(0, 3), "utf-8")
    pages.catch_up()
    [ranked] = pages.ask(lambda index: index.pages([LOG])) or []
    with monkeypatch.context() as patched:
        patched.delattr(documents, "document_of")
        page = pages.page_as_of(LOG, ranked.stamp)
    assert page
    assert 6 == len(page.units)
    (root / LOG).write_text(log_of(0, 4), "utf-8")
    assert pages.page_as_of(LOG, ranked.stamp) is None


def test_a_file_written_while_it_was_read_is_read_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of a file that has changed since is not taken for the file."""
    file, saves = root / CONCRETE / "garden.md", ["# Garden\n\n- User grows courgettes now. ^a1\n"]

    def encode_and_save(page: Page, analyzer: Analyzer, stamp: Stamp) -> EncodedPage:
        encoded = encode(page, analyzer, stamp)
        if saves:
            file.write_text(saves.pop(), "utf-8")
        return encoded

    file.write_text("# Garden\n\n- User grows tomatoes. ^a1\n", "utf-8")
    monkeypatch.setattr(pages_module, "encode", encode_and_save)
    recall = recall_of(root, tmp_path / "cache")
    assert [] == recall.search("tomatoes")
    assert ["User grows courgettes now."] == [hit.text for hit in recall.search("courgettes")]
    recall.close()


def test_a_mistake_in_a_question_costs_no_index(root: Path, pages: Pages, tmp_path: Path) -> None:
    """An error that the asker made is the asker's; a row that cannot be read is damage, and the index is made anew."""
    (root / f"{CONCRETE}/garden.md").write_text("# Garden\n\n- Tomatoes. ^a1\n", "utf-8")
    pages.note_change(f"{CONCRETE}/garden.md")
    pages.catch_up()
    index = pages.index
    with pytest.raises(ValueError, match="mistaken"):
        pages.ask(lambda index: int("mistaken"))
    assert index is pages.index
    with sqlite3.connect(tmp_path / "index/pages.db") as database:
        database.execute("update pages set head = 'no longer JSON'")
    database.close()
    assert pages.ask(lambda index: index.linked()) is None
    pages.catch_up()
    assert ["Garden"] == [page.title for page in pages.linked()]


def test_what_there_was_no_time_for_is_counted(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While very many files wait a search takes in as many as it has time for, and says how many are left."""
    monkeypatch.setattr(pages_module, "_SETTLE_SECONDS", 600.0)  # in the background nothing is taken in
    monkeypatch.setattr(pages_module, "_QUERY_SECONDS", -1.0)
    for name in ("garden", "kitchen", "cellar"):
        (root / f"{CONCRETE}/{name}.md").write_text(f"# {name}\n\n- Tomatoes. ^a1\n", "utf-8")
    recall = recall_of(root, tmp_path / "cache")
    found = [(len(recall.search("tomatoes")), recall.status()["not_yet_indexed"]) for _ in range(3)]
    assert [(1, 2), (2, 1), (3, 0)] == found
    recall.close()


def test_where_nothing_can_be_written_search_goes_on(root: Path, tmp_path: Path) -> None:
    """With a file in place of the cache folder memory is found all the same, and the status says what is wrong."""
    (root / f"{CONCRETE}/garden.md").write_text("# Garden\n\n- User grows tomatoes. ^a1\n", "utf-8")
    (tmp_path / "cache").write_text("no folder")
    recall = recall_of(root, tmp_path / "cache")
    assert ["User grows tomatoes."] == [hit.text for hit in recall.search("tomatoes")]
    assert str(tmp_path / "cache") in recall.status()["problem"]
    recall.close()
