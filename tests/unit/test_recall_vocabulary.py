"""The words of a brain: numbers by hash, similarity by runs of signs, and what an index keeps of them."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from brainiac.search.search import Recall
from brainiac.search.vocabulary import Vocabulary, grams_of, similarity
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree


def vocabulary(*words: str) -> Vocabulary:
    """Return a vocabulary of words that are their own stems."""
    made = Vocabulary()
    made.load((word, word) for word in words)
    return made


def hashes(*words: str) -> np.ndarray:
    """Return words as pages hold them."""
    return np.array([zlib.crc32(word.encode()) for word in words], np.uint32)


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
def test_inflections_compounds_and_slips_are_alike(word: str, other: str) -> None:
    """A word leads to one that shares most runs of signs with it, whatever the language."""
    assert [other] == [found for found, _ in vocabulary(word, other, "regen", "xyz").similar(word, 5)]


@pytest.mark.parametrize(("word", "other"), [("regen", "termin"), ("tea", "team"), ("ab", "abc"), ("rat", "rot")])
def test_what_shares_little_is_not_alike(word: str, other: str) -> None:
    """Short words and words with few runs in common are not taken for one another."""
    assert [] == vocabulary(word, other).similar(word, 5)


def test_similarity_is_the_share_of_the_shorter_word() -> None:
    """Half of its runs and three of them at least are shared, else it is none."""
    given = np.array([5, 3, 2, 3]), np.array([6, 7, 2, 6]), np.array([14, 9, 9, 6])
    assert [5 / 6, 0, 0, 0.5] == similarity(*given).tolist()


def test_every_word_is_found_by_its_hash_however_many_there_are() -> None:
    """Words that come one after another, many or few, keep their numbers; unknown ones are 0."""
    chosen, made, given = random.Random(5), Vocabulary(), list[str]()
    for size in (0, 1, 7, 300, 5000, 2):
        new = ["".join(chosen.choices("abcdefghij", k=8)) for _ in range(size)]
        for word in new:
            made.add(word, word[:3])
        given = list(dict.fromkeys([*given, *new]))
        table = made.table
        assert list(range(1, len(given) + 1)) == table.numbers(hashes(*given)).tolist()
        assert [0] == table.numbers(hashes("nobody")).tolist()
        assert hashes(*(word[:3] for word in given)).tolist() == table.stems[1:].tolist()


def test_words_met_meanwhile_are_none_of_an_earlier_table() -> None:
    """A query looks at the words that there were when it began, whatever others asked for since."""
    words = vocabulary("boat")
    table = words.table
    words.add("boats", "boat")
    grams = grams_of("boat")
    assert {1, 2} == set(words.sharing(words.table, grams).tolist())
    assert {1} == set(words.sharing(table, grams).tolist())


def test_words_outlive_the_process(tmp_path: Path) -> None:
    """A search opened anew knows the words of pages that it never read, compounds included."""
    root = tmp_path / "brain"
    (root / "memory/long_term").mkdir(parents=True)
    (root / "memory/long_term/a.md").write_text("# A\n\n- Der Zahnarzttermin ist am Montag. ^a1\n", "utf-8")
    for _ in range(2):
        settings = Settings(recall=RecallSettings(embedder="none", language="none"))
        recall = Recall(Tree(root), LocalPlaces.of(root, "test"), settings)
        assert ["Der Zahnarzttermin ist am Montag."] == [hit.text for hit in recall.search("Termin")]
        recall.close()


def test_words_that_another_process_wrote_are_learned(tmp_path: Path) -> None:
    """Two searches over one index: what the first one writes, the second one ranks by its words."""
    root = tmp_path / "brain"
    (root / "memory/long_term").mkdir(parents=True)
    settings = Settings(recall=RecallSettings(embedder="none", language="none"))
    first, second = (Recall(Tree(root), LocalPlaces.of(root, "test"), settings) for _ in range(2))
    assert [] == second.search("Termin")
    (root / "memory/long_term/a.md").write_text("# A\n\n- Der Zahnarzttermin ist am Montag. ^a1\n", "utf-8")
    first.rescan()
    first.flush()
    second.rescan()
    assert ["Der Zahnarzttermin ist am Montag."] == [hit.text for hit in second.search("Termin")]
    first.close()
    second.close()


def test_words_of_deleted_pages_crowd_out_none(tmp_path: Path) -> None:
    """A word leads to one like it however many words as like it stood on pages that are gone."""
    root = tmp_path / "brain"
    folder = root / "memory/long_term"
    folder.mkdir(parents=True)
    gone = [folder / f"{ending}.md" for ending in "abcdefghijklmnopqrstuvwxyz"]
    for file in gone:
        file.write_text(f"# Page\n\n- Gartenhaus{file.stem}x. ^a1\n", "utf-8")
    (folder / "zz.md").write_text("# Page\n\n- Gartenhausschlüssel hängt innen. ^a1\n", "utf-8")
    settings = Settings(recall=RecallSettings(embedder="none", language="none"))
    recall = Recall(Tree(root), LocalPlaces.of(root, "test"), settings)
    recall.reindex()
    for file in gone:
        file.unlink()
        recall.note_change(f"memory/long_term/{file.name}")
    recall.flush()
    assert ["Gartenhausschlüssel hängt innen."] == [hit.text for hit in recall.search("Gartenhaus")]
    recall.close()
