"""What is searched for when a prompt comes, and how several searches become one list."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.pipeline.daemon import answer_one
from brainiac.search.documents import Hit
from brainiac.search.query import DOUBT, PROMPT_CHARACTERS, merged, searches
from tests.support.models import make_brain, model_brain, write_memory
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json
from tests.support.remote import purpose_of


def hit(anchor: str, score: float) -> Hit:
    return Hit("exchange", "memory/long_term/events/a.md", "A", anchor, score, anchor=anchor)


def anchors(*found: list[Hit]) -> list[str]:
    return [one.anchor for one in merged(found)]


def test_the_prompt_comes_first_and_queries_without_a_word_of_their_own_are_left_out() -> None:
    """A query that only repeats words of the prompt would be counted twice. Seeds: S10."""
    queries = ["sister Mara", "Mara moved house", "Mara moved house"]
    assert ["When did my sister Mara move?", "Mara moved house"] == searches("When did my sister Mara move?", queries)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ('Who wrote "The Alchemist"?', "Who wrote The Alchemist ?"),
        ("It was -5 outside.", "It was 5 outside."),
        ("Is path:src in tag:garden or -type:event?", "Is path: src in tag: garden or type: event?"),
        ("- a well-known list - at 10:30", "- a well-known list - at 10:30"),
    ],
)
def test_a_prompt_is_prose_and_narrows_nothing(prompt: str, words: str) -> None:
    """What narrows a search that a person types as such is a word like another in a prompt."""
    assert words.split() == searches(prompt, [])[0].split()


def test_of_a_long_prompt_both_ends_are_searched_for() -> None:
    """A question stands before what it is about, or behind it; a query may still name what is between."""
    text = "Where is the lighthouse? " + "Words of a long page. " * 5_000 + "The anchor rusts. " + "More. " * 5_000
    prompt, further = searches(text + "Who wrote this?", ["anchor rusts"])
    assert (True, True) == ("lighthouse" in prompt, prompt.endswith("Who wrote this?"))
    assert ("anchor rusts", True) == (further, len(prompt) <= PROMPT_CHARACTERS + 2)


def test_a_place_stands_once_and_what_the_prompt_finds_weighs_more() -> None:
    """Scores of a further query count less by a constant; the better score of a place decides."""
    own = [hit("a", 3.0), hit("b", 1.0), hit("c", 0.5)]
    assert ["a", "d", "b", "c"] == anchors(own, [hit("d", 2.5 + DOUBT), hit("c", 0.9 + DOUBT)])
    assert ["a", "b", "c"] == anchors(own, [hit("c", 2.9)])
    assert ["c", "a", "b"] == anchors(own, [hit("c", 3.1 + DOUBT)])
    assert ["b", "a"] == anchors([], [hit("a", 1.0), hit("b", 2.0)])


def test_a_quotation_in_a_prompt_need_not_stand_in_memory(tmp_path: Path) -> None:
    """As search syntax it would demand the very words, and nothing would be found."""
    brain = make_brain(tmp_path / "brain")
    prompt = 'Do I live in the "City of Roses" in Portland?'
    [query] = searches(prompt, [])
    found = brain.recall.search(query)
    assert ([], "Portland") == (brain.recall.search(prompt), found[0].title)
    brain.close()


def test_a_model_writes_queries_only_where_the_words_find_nothing_sure(tmp_path: Path) -> None:
    """Words that find what is asked cost no call; where they do not, what the model writes is searched for too.

    Seeds: S10, P4.
    """

    def behave(captured: Captured) -> Behaviour:
        if (purpose := purpose_of(captured)) == "answer":
            return say("So.")
        return say_json({"queries": ["tram seven depot"]} if purpose == "queries" else {})

    with ChatServer() as server:
        server.default = by_request(behave)
        brain = model_brain(tmp_path, server)
        write_memory(brain.root, "concrete/work.md", "Work", 1, "User drives tram seven out of a depot in Linz. ^a1b2")
        brain.recall.reindex()
        sure, unsure = "Which tram does User drive in Linz?", "What colour is the boat of Ines?"
        for name, text in (("sure", sure), ("unsure", unsure)):
            (brain.root / f"inbox/{name}.md").write_text(text)
            answer_one(brain, f"inbox/{name}.md")
        brain.close()
    calls = [(purpose_of(captured), captured.text) for captured in server.requests]
    assert ["answer", "reflect", "queries", "answer", "reflect"] == [purpose for purpose, _ in calls]
    assert [False, True] == ["out of a depot" in calls[number][1] for number in (2, 3)]
