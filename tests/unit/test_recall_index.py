"""The index: what lasts, and what happens to a damaged, old or foreign one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brainiac.events import PathKind
from brainiac.search import index as index_module
from brainiac.search.documents import page_of
from brainiac.search.features import EncodedPage, encode
from brainiac.search.index import DAMAGED, Index
from brainiac.search.text import Analyzer
from brainiac.tree import Stamp

ANALYZER = Analyzer("english")
CONCRETE = "memory/long_term/concrete"


def page(name: str, body: str) -> EncodedPage:
    """Return an encoded memory page of this file name and body, its stamp made of both."""
    text = f"---\nuuid: {name}-uuid\n---\n# {name}\n\n{body}\n"
    path = f"{CONCRETE}/{name}.md"
    return encode(page_of(path, text, PathKind.MEMORY), ANALYZER, Stamp(len(text), len(name), 1, 1))


def put(index: Index, *pages: EncodedPage, is_interrupted: bool = False) -> None:
    """Write pages into an index."""
    with index.writing():
        index.replace({encoded.page.path: encoded for encoded in pages}, ANALYZER.met)
        if is_interrupted:
            raise KeyboardInterrupt


def titles(index: Index, *terms: str, limit: int = 5) -> list[str]:
    """Return the titles of the pages that hold any of some terms."""
    return [found.page.title for found in index.query(terms, limit).pages]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Give an empty index."""
    opened = Index(tmp_path / "index", "english")
    yield opened
    opened.close()


def test_it_lasts(tmp_path: Path) -> None:
    """What was written is there after closing; of what was interrupted nothing is."""
    index = Index(tmp_path, "english")
    put(index, page("garden", "- Tomatoes. ^a1"))
    with pytest.raises(KeyboardInterrupt):
        put(index, page("garden", "- Leeks. ^a1"), is_interrupted=True)
    assert (["garden"], []) == (titles(index, "tomato"), titles(index, "leek"))
    index.close()
    index = Index(tmp_path, "english")
    assert [f"{CONCRETE}/garden.md"] == list(index.stamps())
    assert (["garden"], []) == (titles(index, "tomato"), titles(index, "leek"))
    index.close()


def test_another_language_is_refused(tmp_path: Path) -> None:
    """An index stemmed for one language does not serve another."""
    Index(tmp_path, "english").close()
    with pytest.raises(DAMAGED, match="english"):
        Index(tmp_path, "german")


def test_damage_is_told(tmp_path: Path) -> None:
    """A file that was overwritten makes the index unusable, by an error that its owner knows."""
    Index(tmp_path, "english").close()
    (tmp_path / "pages.db").write_bytes(b"not what it was" * 100)
    with pytest.raises(DAMAGED):
        Index(tmp_path, "english")


def test_two_write_in_turn(tmp_path: Path) -> None:
    """What one process writes the other finds, words like those asked for included."""
    first, second = Index(tmp_path, "english"), Index(tmp_path, "english")
    put(first, page("garden", "- Tomatoes. ^a1"))
    assert ["garden"] == titles(second, "tomato")
    assert 0 == len(second.having(["lee"])[0])
    put(first, page("kitchen", "- Tomatoes and leeks. ^a1"))
    put(second, page("garden", "- Beans. ^a1"))
    assert (["kitchen"], ["garden"]) == (titles(first, "tomato"), titles(first, "bean"))
    assert titles(second, "tomato", "bean") == titles(first, "tomato", "bean")
    assert 1 == len(second.having(["lee"])[0])
    first.close()
    second.close()


def test_terms_of_deleted_passages_hide_none(index: Index) -> None:
    """A word is found however many like it were deleted before it; they are forgotten."""
    gone = [page(f"p{number}", f"- Marke1{number:03d}a. ^a1") for number in range(300)]
    put(index, *gone, page("kept", "- Marke1999z. ^a1"))
    with index.writing():
        index.replace({encoded.page.path: None for encoded in gone}, {})
    assert ["kept"] == titles(index, "marke1999z")
    assert ["marke1999z"] == index.holding("marke")
    assert [1, 0] == [len(words) for words in index.having(["mar", "23a"])]


EVERY = {"saffron": 12, "cardamom": 5, "tea": 3, "kettle": 2}
TERMS = ("saffron", "cardamom", "tea", "kettl")


@pytest.fixture
def spices(index: Index) -> Index:
    """Give an index of 400 pages with rare and common words."""
    texts = (" ".join(word for word, by in EVERY.items() if number % by == 0) for number in range(400))
    put(index, *(page(f"p{number}", f"- Number {number} {text}. ^a1") for number, text in enumerate(texts)))
    return index


@pytest.mark.parametrize("limit", [5, 20, 60])
def test_the_best_are_the_first_of_all(limit: int, spices: Index) -> None:
    """Few candidates are the first of many."""
    many = titles(spices, *TERMS, limit=400)
    some = titles(spices, *TERMS, limit=limit)
    assert limit == len(some)
    assert many[:limit] == some


def test_common_words_are_passed_over_where_rarer_ones_stand_often(
    spices: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once there are enough passages, no more are looked at; within a folder all are."""
    monkeypatch.setattr(index_module, "_MOST_POSTINGS", 10)
    assert {f"p{number}" for number in range(0, 400, 12)} == set(titles(spices, *TERMS, limit=400))
    within = spices.query(TERMS, 400, allows=lambda page, _: "/p3" in page.path).pages
    assert "p33" in {found.page.title for found in within}


def test_counts_follow_each_commit(index: Index) -> None:
    """In how many passages a word stands is right after each change, deleted passages left out."""
    put(index, *(page(f"p{number}", f"- Tea number {number}. ^a1") for number in range(10)))
    counts = []
    for number in range(3):
        put(index, page(f"p{number}", f"- Wine number {number}. ^a1"))
        counts += [index.query(["tea", "wine"], 5).frequencies for _ in range(2)]
    assert [{"tea": 9 - done, "wine": 1 + done} for done in (0, 0, 1, 1, 2, 2)] == counts


def test_any_sign_may_stand_in_a_term(index: Index) -> None:
    """Tags are found by all of their signs; what looks like a query of SQLite's is a word."""
    tags = ("c++", "it's", 'a"b', "(or)", "x*", "^y", "ü-1", "a\\b", "near(a")
    put(index, *(replace(page(f"p{tag}", "Text."), passages=(f"text #{tag}",)) for tag in tags))
    assert [[f"p{tag}"] for tag in tags] == [titles(index, f"#{tag}") for tag in tags]
