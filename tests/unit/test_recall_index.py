"""The index and the words of a brain: what lasts, what is made anew, and which words lead to which."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recalled import CONCRETE, Folder, texts


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Give a folder whose searches are closed at the end."""
    made = Folder(tmp_path / "brain")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("termin", "zahnarzttermin"),
        ("gartenhausschlüssel", "schlüssel"),
        ("passprot", "passport"),
        ("haus", "häuser"),
        ("telefon", "telefonnummer"),
        ("книга", "книгами"),
    ],
)
def test_inflections_compounds_and_slips_are_alike(word: str, other: str, folder: Folder) -> None:
    """A word leads to one that shares most runs of signs with it, whatever the language."""
    folder.memory("words", other, "regen", "xyz")
    assert [other] == texts(folder.recall("none"), word)


@pytest.mark.parametrize(("word", "other"), [("regen", "termin"), ("tea", "team"), ("ab", "abc"), ("rat", "rot")])
def test_what_shares_little_is_not_alike(word: str, other: str, folder: Folder) -> None:
    """Short words and words with few runs in common are not taken for one another."""
    folder.memory("words", other)
    assert [] == texts(folder.recall("none"), word)


def test_words_outlive_the_process(folder: Folder) -> None:
    """A search opened anew knows the words of pages that it never read, compounds included; so does another language,
    for which the index is made anew."""
    folder.memory("a", "Der Zahnarzttermin ist am Montag.", "Der Nutzer hat zwei Häuser.")
    for language in ("none", "none", "german"):
        brain = folder.brain(language)
        assert ["Der Zahnarzttermin ist am Montag."] == texts(brain.recall, "Termin")
        brain.recall.flush()
        brain.close()
    assert ["Der Nutzer hat zwei Häuser."] == texts(folder.recall("german"), "Haus")


def test_words_that_another_process_wrote_are_learned(folder: Folder) -> None:
    """Two searches over one index: what each writes, the other one ranks by its words."""
    first, second = folder.recall("none"), folder.recall("none")
    assert [] == texts(second, "Termin")
    folder.memory("a", "Der Zahnarzttermin ist am Montag.")
    first.rescan()
    first.flush()
    second.rescan()
    assert ["Der Zahnarzttermin ist am Montag."] == texts(second, "Termin")
    second.note_change(folder.memory("b", "Der Friseurtermin ist am Freitag."))
    second.flush()
    first.rescan()
    assert 2 == len(texts(first, "Termin"))


def test_words_of_deleted_pages_crowd_out_none(folder: Folder) -> None:
    """A word leads to one like it however many words as like it stood on pages that are gone."""
    gone = [folder.memory(f"p{ending}", f"Gartenhaus{ending}x.") for ending in "abcdefghijklmnopqrstuvwxyz"]
    folder.memory("zz", "Gartenhausschlüssel hängt innen.")
    recall = folder.recall("none")
    recall.reindex()
    for path in gone:
        (folder.root / path).unlink()
        recall.note_change(path)
    recall.flush()
    assert ["Gartenhausschlüssel hängt innen."] == texts(recall, "Gartenhaus")


def test_the_best_are_the_first_of_all(folder: Folder) -> None:
    """A few hits are the first of many, of 400 pages with rare and common words."""
    for number in range(400):
        held = [word for word, by in {"saffron": 12, "cardamom": 5, "tea": 3}.items() if number % by == 0]
        folder.memory(f"p{number}", f"Number {number} {' '.join(held)}.")
    recall = folder.recall()
    many = texts(recall, "saffron cardamom tea", limit=60)
    assert all("saffron cardamom tea" in text for text in many[:7])  # 0, 60 .. 360
    assert [many[:5], many[:20]] == [texts(recall, "saffron cardamom tea", limit=limit) for limit in (5, 20)]


def test_any_sign_may_stand_in_a_tag(folder: Folder) -> None:
    """Tags are found by all of their signs; what looks like a query of SQLite's is a word."""
    tags = ("c++", "it's", "(or)", "x*", "^y", "ü-1", "near(a")
    for number, tag in enumerate(tags):
        folder.memory(f"p{number}", f"Page {number}.", meta=f'tags: ["{tag}"]\n')
    recall = folder.recall()
    assert [[f"Page {number}."] for number in range(len(tags))] == [texts(recall, f"tag:{tag}") for tag in tags]


def test_a_row_that_cannot_be_read_costs_no_answer(folder: Folder) -> None:
    """The damaged index is made anew, and what stands in the files is found all the same."""
    folder.memory("garden", "User grows tomatoes.")
    brain = folder.brain()
    brain.recall.reindex()
    with sqlite3.connect(brain.places.cache / "index/pages.db") as database:
        database.execute("update pages set head = 'no longer JSON'")
    database.close()
    for recall in (brain.recall, folder.recall()):
        assert ["User grows tomatoes."] == texts(recall, "tomatoes")


def test_what_there_was_no_time_for_is_counted(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """While very many files wait a search takes in as many as it has time for, and says how many are left."""
    monkeypatch.setattr("brainiac.search.pages._SETTLE_SECONDS", 600.0)  # in the background nothing is taken in
    monkeypatch.setattr("brainiac.search.pages._QUERY_SECONDS", -1.0)
    for name in ("garden", "kitchen", "cellar"):
        folder.memory(name, "Tomatoes.")
    (folder.root / "system/core_identity.md").unlink()
    recall = folder.recall()
    found = [(len(texts(recall, "tomatoes")), recall.status()["not_yet_indexed"]) for _ in range(3)]
    assert [(1, 2), (2, 1), (3, 0)] == found


def test_where_nothing_can_be_written_search_goes_on(folder: Folder) -> None:
    """With a file in place of the cache folder memory is found all the same, and the status says what is wrong."""
    folder.memory("garden", "User grows tomatoes.")
    brain = folder.brain()
    brain.places.cache.parent.mkdir(parents=True, exist_ok=True)
    brain.places.cache.write_text("no folder")
    assert ["User grows tomatoes."] == texts(brain.recall, "tomatoes")
    assert str(brain.places.cache) in brain.recall.status()["problem"]


def test_a_file_that_is_saved_between_two_searches_is_read_again(folder: Folder) -> None:
    """However often, and though nobody tells of it: what was read of a file that has changed is not taken for it."""
    path, recall = f"{CONCRETE}/garden.md", folder.recall()
    for number in range(20):
        folder.write(path, f"# Garden\n\n- User grows vegetable{number} now. ^a1\n")
        assert [f"User grows vegetable{number} now."] == texts(recall, f"vegetable{number}")
