"""The words of a brain: similarity by runs of signs, and what an index keeps of them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from brainiac.search.documents import Page, Unit
from brainiac.search.features import encode
from brainiac.search.index import Index
from brainiac.search.search import Recall
from brainiac.search.text import Analyzer, grams_of
from brainiac.search.vocabulary import LikeWords, similarity
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree


def words_like(word: str, *others: str) -> list[str]:
    """Return which of some words are like a word, in a brain where they and the word stand."""
    index, analyzer = Index(None, "none"), Analyzer("none")
    text = encode(Page("p.md", "P", (Unit(" ".join((word, *others))),)), analyzer)
    with index.writing():
        index.replace({"p.md": text}, analyzer.met)
    found = [stem for stem, *_ in LikeWords(index, [(word, word)], [word]).variants([word])]
    index.close()
    return found


def hashes(words: Iterable[str]) -> np.ndarray:
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
    assert [other] == words_like(word, other, "regen", "xyz")


@pytest.mark.parametrize(("word", "other"), [("regen", "termin"), ("tea", "team"), ("ab", "abc"), ("rat", "rot")])
def test_what_shares_little_is_not_alike(word: str, other: str) -> None:
    """Short words and words with few runs in common are not taken for one another."""
    assert [] == words_like(word, other)


def test_similarity_is_the_share_of_the_shorter_word() -> None:
    """Half of its runs and three of them at least are shared, else it is none."""
    given = np.array([5, 3, 2, 3]), np.array([6, 7, 2, 6]), np.array([14, 9, 9, 6])
    assert [5 / 6, 0, 0, 0.5] == similarity(*given).tolist()


def test_of_very_many_words_those_are_found_that_share_something_with_a_query() -> None:
    """Where they stand in texts, whatever the last bits of their hashes; and how many trigrams each text has of it."""
    chosen, analyzer, index = random.Random(5), Analyzer("none"), Index(None, "none")
    words = ["".join(chosen.choices("abcdefghijkl", k=8)) for _ in range(20_000)]
    with index.writing():
        index.replace({"p.md": encode(Page("p.md", "P", (Unit(" ".join(words)),)), analyzer)}, analyzer.met)
    like = LikeWords(index, [("abcdefgh", "abcdefgh")], ["abcdefgh"])
    given = [*words, "nobody", "abcdefgh"]  # the last two stand on no page
    places, numbers = like.matches_in(hashes(given))
    sharing = {place: len(grams_of("abcdefgh") & grams_of(word)) for place, word in enumerate(words)}
    assert [place for place, shared in sharing.items() if shared] == places.tolist()
    counts = like.gram_counts(numbers, np.arange(len(places)), len(places)).sum(0)
    assert [sharing[place] for place in places.tolist()] == counts.tolist()
    index.close()


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
