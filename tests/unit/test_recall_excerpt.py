"""Hits are shown around the match, in whole words."""

from __future__ import annotations

import pytest

from brainiac.search.query import SHOWN_CHARACTERS, excerpt, matches
from brainiac.search.text import Analyzer

FILLER = "Words of no weight go on and on here. " * 40
SAID = "Our plumber Marek comes on Tuesday at nine to look at the boiler in the cellar."


def test_a_short_text_is_shown_whole() -> None:
    """Nothing is cut that a glance takes in."""
    assert SAID == excerpt(f" {SAID}\n", "boiler")


@pytest.mark.parametrize("text", [SAID + FILLER, FILLER + SAID, FILLER + SAID + " " + FILLER])
def test_a_long_text_is_shown_around_the_match(text: str) -> None:
    """The excerpt holds what was asked for, in whole words, and says where something is left out."""
    shown = excerpt(text, "When does the plumber look at the boiler?")
    assert "plumber Marek comes on Tuesday" in shown
    assert len(shown) <= SHOWN_CHARACTERS
    words = shown.strip("…").split()
    assert " ".join(words) in " ".join(text.split())
    assert set(words) <= set(text.split())
    assert (shown.startswith("…"), shown.endswith("…")) == (
        not text.strip().startswith(shown[:20]),
        not text.strip().endswith(shown[-20:]),
    )


def test_the_stretch_with_most_of_the_words_is_chosen() -> None:
    """One place with two words of the query is worth more than many with one of them."""
    text = "The boiler hums. " * 60 + FILLER + SAID + FILLER + "The boiler hums. " * 60
    assert "plumber Marek" in excerpt(text, "boiler plumber")


def test_other_forms_of_a_word_are_matches() -> None:
    """Stems, compounds and slips are marked; stop words of the brain's language are not."""
    text = "The Zahnarzttermin and the passports."
    found = [text[start:end] for start, end, _ in matches(text, "the Termin of my passprot", Analyzer("english"))]
    assert ["Zahnarzttermin", "passports"] == found


def test_scripts_without_spaces() -> None:
    """A word inside a sentence is marked whole, and a long text without blanks is cut all the same."""
    text = "来年の春に京都旅行へ行きます。"
    assert ["京都旅行"] == [text[start:end] for start, end, _ in matches(text, "京都旅行")]
    assert "京都旅行" in excerpt("あ" * 900 + text + "い" * 900, "京都旅行")
