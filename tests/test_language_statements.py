"""What was typed as durable statements, and what kind each is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.language.person import in_third_person
from brainiac.language.statements import statements_of

NOW = datetime(2026, 3, 16, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "statement"),
    [
        ("I moved to Portland in June 2020.", "User moved to Portland in June 2020"),
        ("I work at Google and I'm happy with my boss", "User works at Google and they are happy with their boss"),
        ("My sister lives in Madrid", "User's sister lives in Madrid"),
        ("Bought a bike off Craigslist", "User bought a bike off Craigslist"),
        ("Marcus introduced me to Jun", "Marcus introduced User to Jun"),
        ("Tom and I were there", "Tom and User were there"),
        ("The car broke down on I-84", "The car broke down on I-84"),
        ("I never drink on weeknights", "User never drinks on weeknights"),
        ("We agreed to use Redis", "We agreed to use Redis"),
        ("I no longer live in Lisbon", "User no longer lives in Lisbon"),
        ("I too like chess", "User too likes chess"),
        ("I myself painted it", "User themselves painted it"),
        ("I deeply regret it, but I rely on Ana", "User deeply regrets it, but they rely on Ana"),
        ("I kind of like it", "User kind of likes it"),
    ],
)
def test_third_person(typed: str, statement: str) -> None:
    """The writer becomes User, verbs agree, and every detail stays."""
    assert statement == in_third_person(typed)


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("My dog is called Biscuit", "fact"),
        ("I'd rather get notes by email", "preference"),
        ("We decided to use Postgres because the team knows it", "decision"),
        ("todo: renew my passport", "task"),
        ("remind me to call the landlord", "task"),
        ("gotta pick up the parcel", "task"),
        ("User needs to renew their passport", "task"),
        ("Passport renewal is done", "done"),
        ("I left Google for Microsoft last month", "change"),
        ("I don't like coffee anymore", "change"),
        ("Please delete my reminder about buying milk", "forget"),
        ("forget what I said about the dog", "forget"),
        ("Where do I live?", "question"),
        ("whats my dogs name", "question"),
        ("how many users do we have", "question"),
        ("To restart staging: ssh in, run the script, check the page", "how-to"),
        ("thanks, have a nice day!", "small-talk"),
        ("did the laundry today", "fact"),
        ("when I was young I lived in Rome", "fact"),
    ],
)
def test_kinds(typed: str, kind: str) -> None:
    """Wording tells what a sentence is for."""
    assert [kind] == [said.kind for said in statements_of(typed, NOW)]


def test_old_and_new_of_a_change() -> None:
    """A change names what it leaves and what stands instead."""
    (said,) = statements_of("I left Google for Microsoft last month.", NOW)
    assert ("Google", "Microsoft") == (said.old, said.new)


def test_importance_follows_the_wording() -> None:
    """Strong words weigh more, tentative ones less. Seeds: R9."""
    texts = ("I am allergic to peanuts", "I live in Rome", "Maybe I will learn Welsh")
    assert ["high", "medium", "low"] == [statements_of(text, NOW)[0].importance for text in texts]


def test_command_words_are_no_part_of_the_statement() -> None:
    """What is remembered starts behind "remember that" and "todo:"."""
    (told,) = statements_of("Remember that my car is blue", NOW)
    (task,) = statements_of("todo: renew my passport", NOW)
    assert ("User's car is blue", "renew my passport") == (told.text, task.what)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    """Whatever is typed, each sentence is kept as typed."""
    for said in statements_of(text, NOW):
        assert said.original
        assert said.kind


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("> I am rich\n\nI live in Rome.", [("fact", "User lives in Rome")]),
        ("```\nI am root\n```\nI like tea.", [("preference", "User likes tea")]),
        ("| Who | Where |\n|---|---|\n| Bob | I am in Rome |\n", []),
        ("- [ ] buy cork\n- [x] call Bob", [("task", "User needs to buy cork"), ("done", "Done: call Bob")]),
        ("- I have a cat\nI live in Rome", [("fact", "User has a cat"), ("fact", "User lives in Rome")]),
        ("- I have a cat\n  called Max", [("fact", "User has a cat called Max")]),
        ("Translate: I am a fish. It swims.\n\nI live in Rome.", [("question", ""), ("fact", "User lives in Rome")]),
        ("Put the following into French: I am a fish", [("question", "")]),
        ("Remember this: I am a vegan", [("fact", "User is a vegan")]),
    ],
)
def test_markdown_and_matter_of_instructions(typed: str, told: list[tuple[str, str]]) -> None:
    """Quotes, code, tables and what is to be worked on are no facts; boxes are tasks, lines stay apart."""
    assert told == [(one.kind, "" if one.kind == "question" else one.text) for one in statements_of(typed, NOW)]
