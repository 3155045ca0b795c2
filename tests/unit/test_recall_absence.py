"""Words of a prompt that stand nowhere in memory are named, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac.formats.markdown import StmEvent
from tests.support.notes_texts import exchange_text
from tests.support.recalled import Folder

TOLD = (
    "My bike has the lock code 2907.",
    "Lukas goes to the Gymnasium am Schlossplatz.",
    "The dentist appointment is in March.",
    "Der Zahnarzttermin ist am Montag.",
    "来月の15日に歯医者の予約を入れた。沖縄へ行く。旅行は楽しい。",
)


class Told:
    """A folder of exchanges and a search over it."""

    def __init__(self, root: Path, language: str = "english") -> None:
        self.folder, self.said = Folder(root), list[str]()
        self.recall = self.folder.recall(language)

    def say(self, *texts: str) -> None:
        """Add exchanges."""
        self.said += texts
        events = [
            StmEvent(f"e{n}", f"2025-03-01T{n:02d}:00:00Z", text, "[x](y.md)") for n, text in enumerate(self.said)
        ]
        self.write("memory/long_term/events/2025-03-01.md", "# Day\n\n" + "\n".join(map(exchange_text, events)))

    def write(self, path: str, text: str) -> None:
        """Write a page."""
        self.recall.note_change(self.folder.write(path, text))


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Told]:
    """Give a brain in which a few things were told."""
    made = Told(tmp_path / "brain")
    made.say(*TOLD)
    yield made
    made.folder.close()


@pytest.mark.parametrize(
    ("prompt", "absent"),
    [
        ("When does my passport expire?", ["passport", "expire"]),
        ("What is the code of my bike lock?", []),
        ("What is the code of Bertha's bike?", ["Bertha"]),
        ("How many dentists and locks are there?", []),  # other forms of words that stand there
        ("When is the Termin?", []),  # a compound holds it
        ("Which Reisezahnarzttermin is it?", ["Reisezahnarzttermin"]),
        ("歯医者の予約はいつ？", []),
        ("沖縄旅行はいつ？", []),  # both of its words stand there
        ("パスポートの期限はいつ？", ["パスポート", "期限"]),
        ("", []),
        ("?!", []),
    ],
)
def test_only_words_that_stand_nowhere_are_named(brain: Told, prompt: str, absent: list[str]) -> None:
    """As they are written, whole words and other forms looked for, in any script."""
    assert absent == brain.recall.absent(prompt)


def test_names_come_first_and_few_are_named(brain: Told) -> None:
    """What is written like a name tells most, then the longer word; three at most."""
    asked = "should the veterinary look at Quillfeather or the wallaby and the hedgehog"
    assert ["Quillfeather", "veterinary", "hedgehog"] == brain.recall.absent(asked)


def test_a_question_asked_before_is_no_place_to_stand_in(brain: Told) -> None:
    """The word stays absent however often it is asked for; once it is told, it stands there."""
    for _ in range(3):
        brain.say("When does my passport expire?")
        assert ["passport", "expire"] == brain.recall.absent("When does my passport expire?")
    assert ["passport", "expire"] == brain.recall.absent("when does my passport expire")
    brain.say("My passport lies in the tin.")
    assert ["expire"] == brain.recall.absent("When does my passport expire?")


def test_words_that_questions_are_made_of_are_not_named(tmp_path: Path) -> None:
    """Without stop words of the language, a word that two other questions hold says nothing about memory."""
    brain = Told(tmp_path / "brain", language="none")
    brain.say("Ich mag Tee.", "Wann kommt der Bus?", "Wann gehen wir?")
    assert ["Reisepass"] == [
        word for word in brain.recall.absent("Wann brauche ich den Reisepass?") if word[0].isupper()
    ]
    brain.folder.close()


def test_titles_tags_and_the_archive_count(brain: Told) -> None:
    """A word stands in memory wherever a search would find it."""
    brain.write("memory/archive/concrete/boat.md", "# Boat\n\n- It had a spinnaker. ^a1\n")
    brain.write(
        "memory/long_term/concrete/wine.md", "---\ntags: [cellar]\n---\n# Gewürztraminer\n\n- From Alsace. ^a1\n"
    )
    assert [] == brain.recall.absent("the spinnaker, the cellar and the gewürztraminer")


def test_a_word_that_is_quoted_is_not_said_to_stand_nowhere(brain: Told) -> None:
    """A question in the very words of what was told finds them all."""
    brain.say("The goat is called Bertil.")
    assert [] == brain.recall.absent("Is the goat called Bertil?")
    assert ["Agnes"] == brain.recall.absent("Is the goat called Agnes?")
