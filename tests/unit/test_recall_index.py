"""The index: what lasts, and what happens to a damaged, old or foreign one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from brainiac.events import PathKind
from brainiac.search.documents import page_of
from brainiac.search.features import EncodedPage, encode
from brainiac.search.index import Asked, Index, UnusableIndexError
from brainiac.search.text import Analyzer
from brainiac.tree import Stamp


def page(name: str, body: str) -> EncodedPage:
    """Return an encoded memory page of this file name and body, its stamp made of both."""
    text = f"---\nuuid: {name}-uuid\n---\n# {name}\n\n{body}\n"
    path = f"memory/long_term/concrete/{name}.md"
    return encode(page_of(path, text, PathKind.MEMORY), Analyzer("english"), Stamp(len(text), len(name), 1, 1))


def test_it_lasts(tmp_path: Path) -> None:
    """What was committed is there after closing, what was not is gone."""
    index = Index(tmp_path, "english")
    index.replace([page("garden", "- Tomatoes. ^a1")])
    index.commit()
    index.replace([page("kitchen", "- Tea. ^a1")])
    index.close()
    index = Index(tmp_path, "english")
    assert ["memory/long_term/concrete/garden.md"] == list(index.stamps())
    index.close()


def test_another_language_is_refused(tmp_path: Path) -> None:
    """An index stemmed for one language does not serve another."""
    Index(tmp_path, "english").close()
    with pytest.raises(UnusableIndexError, match="english"):
        Index(tmp_path, "german")


@pytest.mark.parametrize("damage", ["pages.db", "text/meta.json"])
def test_damage_is_told(tmp_path: Path, damage: str) -> None:
    """A file that was overwritten makes the index unusable, by one error."""
    Index(tmp_path, "english").close()
    (tmp_path / damage).write_bytes(b"not what it was" * 100)
    with pytest.raises(UnusableIndexError):
        Index(tmp_path, "english")


def test_one_writer(tmp_path: Path) -> None:
    """A second opener reads and knows that it may not write."""
    first, second = Index(tmp_path, "english"), Index(tmp_path, "english")
    first.replace([page("garden", "- Tomatoes. ^a1")])
    first.commit()
    assert (True, False) == (first.is_writable(), second.is_writable())
    first.close()
    second.close()


def test_table_is_behind_after_a_crash_between_the_commits(tmp_path: Path) -> None:
    """Pages the text engine has and the table has not are not found, so they count as not indexed."""
    index = Index(tmp_path, "english")
    index.replace([page("garden", "- Tomatoes. ^a1")])
    index.commit()
    index.close()
    database = sqlite3.connect(tmp_path / "pages.db")
    database.execute("delete from pages")
    database.commit()
    database.close()
    index = Index(tmp_path, "english")
    assert [] == list(index.query(Asked(terms=["tomato"], limit=5)).pages)
    index.close()


def test_terms_of_deleted_passages_hide_none(tmp_path: Path) -> None:
    """A word is found however many like it were deleted before it."""
    index = Index(tmp_path, "english")
    gone = [page(f"p{number}", f"- Marke1{number:03d}a. ^a1") for number in range(300)]
    index.replace([*gone, page("kept", "- Marke1999z. ^a1")])
    index.commit()
    index.remove([encoded.page.path for encoded in gone])
    index.commit()
    assert ["kept"] == [found.page.title for found in index.query(Asked(terms=["marke1999z"], limit=5)).pages]
    index.close()


@pytest.mark.parametrize("limit", [5, 20, 60])
def test_common_words_are_passed_over_only_where_they_choose_nothing(limit: int, tmp_path: Path) -> None:
    """Few candidates are the first of many: leaving out passages with common words alone loses none."""
    index = Index(tmp_path, "english")
    every = {"saffron": 12, "cardamom": 5, "tea": 3, "kettle": 2}
    index.replace(
        page(f"p{number}", f"- Number {number} {' '.join(w for w, by in every.items() if number % by == 0)}. ^a1")
        for number in range(400)
    )
    index.commit()
    some, many = (
        index.query(Asked(terms=["saffron", "cardamom", "tea", "kettl"], limit=size)).pages for size in (limit, 400)
    )
    assert limit == len(some)
    assert [found.page.path for found in many][: len(some)] == [found.page.path for found in some]
    index.close()


def test_counts_follow_each_commit(tmp_path: Path) -> None:
    """In how many passages a word stands is right after each change, deleted passages left out."""
    index = Index(tmp_path, "english")
    index.replace([page(f"p{number}", f"- Tea number {number}. ^a1") for number in range(10)])
    index.commit()
    counts = []
    for number in range(3):
        index.replace([page(f"p{number}", f"- Wine number {number}. ^a1")])
        index.commit()
        counts += [index.query(Asked(terms=["tea", "wine"], limit=5)).frequencies for _ in range(2)]
    assert [{"tea": 9 - done, "wine": 1 + done} for done in (0, 0, 1, 1, 2, 2)] == counts
    index.close()
