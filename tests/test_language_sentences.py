"""Sentences, words, stems and near-synonyms."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.language.sentences import (
    content_stems,
    ends_of,
    kinds_of,
    needs_after,
    overlap,
    related,
    split_sentences,
    standard_spelling,
    stem,
    tokenize,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Dr. Okafor at 3 p.m. today. He is nice!", ["I met Dr. Okafor at 3 p.m. today.", "He is nice!"]),
        ("See https://a.b/c.d?x=1 for v1.2.3. Done.", ["See https://a.b/c.d?x=1 for v1.2.3.", "Done."]),
        ("- one\n- [ ] two\n3. three", ["one", "two", "three"]),
        ("a line that\nis wrapped. Next", ["a line that is wrapped.", "Next"]),
        ("", []),
        ("!!! ---", []),
    ],
)
def test_split_sentences(text: str, expected: list[str]) -> None:
    """Abbreviations, addresses and versions do not end a sentence; list items and ended lines do."""
    assert expected == split_sentences(text)


@given(st.text())
def test_no_word_is_lost_in_splitting(text: str) -> None:
    """Every letter and digit of a text is in one of its sentences, list numbers excepted."""
    letters = [c for c in text if c.isalpha()]
    assert letters == [c for sentence in split_sentences(text) for c in sentence if c.isalpha()]


def test_stems_of_irregular_forms() -> None:
    """An irregular form has the stem of its base form."""
    assert [stem("eat"), stem("buy"), stem("child")] == [stem("ate"), stem("bought"), stem("children")]


def test_clitics_are_no_words() -> None:
    """A possessive counts as its owner."""
    assert ["elena", "dog", "is", "ten"] == tokenize("Elena’s dog is ten")


def test_stop_words_carry_no_content() -> None:
    """Only words with content are stemmed."""
    assert [stem("lived"), stem("portland")] == content_stems("I have lived in Portland")


def test_near_synonyms_instances_and_kinds() -> None:
    """A word is related to its synonyms, a kind to its instances, and less so an instance to its kind."""
    assert (1.0, 0.9, 0.85, 0.6) == (
        related("bike")["bike"],
        related("bike")[stem("bicycle")],
        related("herb")[stem("cilantro")],
        related(stem("cilantro"))["herb"],
    )
    assert "herb" in kinds_of(stem("cilantro"))


def test_what_must_follow_an_ambiguous_word() -> None:
    """`move` means to live elsewhere only where a direction follows."""
    assert "to" in needs_after(stem("move"))


def test_overlap_counts_synonyms() -> None:
    """The share of words that are there, in other words too."""
    assert 0.5 == overlap(content_stems("buy a piano"), content_stems("I bought a boat"))
    assert 0.0 == overlap([], ["anything"])


def test_casual_spelling_becomes_standard() -> None:
    """Missing apostrophes and short forms are spelled out; parts of words, addresses and codes are not."""
    assert "I'm ok, I don't know what's up with you" == standard_spelling("im ok, i dont know whats up w/ u")
    assert "see i/o and vim" == standard_spelling("see i/o and vim")


def test_threads_do_not_share_a_stemmer() -> None:
    """Words stemmed by eight threads at once have the stems they have alone."""
    words = [
        f"{base}{number}{end}" for number in range(200) for base in ("organiz", "relat") for end in ("ations", "ing")
    ]
    expected = {word: stem.__wrapped__(word) for word in words}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda word: (word, stem.__wrapped__(word)), words * 8))
    assert [(word, expected[word]) for word, _ in found] == found


def test_the_ends_of_a_long_text_are_whole_sentences() -> None:
    """Half a sentence would say something else; a text without an end is cut where it must be."""
    text = "I live in Leith. " + "I like tea very much. " * 50 + "Do I like coffee?"
    first, _, last = ends_of(text, 100).partition("\n\n")
    assert ("I live in Leith.", "Do I like coffee?") == (first[:16], last)
    assert {"I like tea very much"} == {one.strip() for one in first[16:].split(".") if one.strip()}
    assert text == ends_of(text, len(text))
    assert "x" * 75 + "\n\n" + "x" * 25 == ends_of("x" * 1_000, 100)
