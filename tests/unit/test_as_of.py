"""`--at`: memory as it stood at a moment, with what is hidden as it is now, and nothing written by asking."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from brainiac import verbs
from brainiac.testing import World
from brainiac.verbs import VERBS, Caller

DAY = 86400.0
DOOR = Caller("api:test")
HOME = "memory/long_term/concrete/home.md"
DENTIST = "memory/long_term/concrete/dentist.md"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A brain with four days: a home and a dentist, then a move, then a cat, and today nothing."""
    world = World(tmp_path)
    page(world, HOME, "Home", "I live in Leeds.", "The rent is 900 pounds.")
    page(world, DENTIST, "Dentist", "My dentist is Dr Novak.")
    say(world, "one", "/remember The spare key hangs in the shed.")
    world.tick(DAY)
    page(world, HOME, "Home", "I live in Portland.", "The rent is 900 pounds.")
    say(world, "two", "/remember My cat is called Pixel.")
    world.tick(DAY)
    say(world, "three", "What is my cat called?")
    world.tick(DAY)
    return world


def page(world: World, path: str, title: str, *statements: str, head: str = "") -> None:
    """Save a page by hand, and have a daemon see it."""
    uuid = f"0199{title.encode().hex():0<28}"[:32]
    uuid = f"{uuid[:8]}-{uuid[8:12]}-7{uuid[13:16]}-8{uuid[17:20]}-{uuid[20:32]}"
    lines = "\n".join(f"- {text} ^s{number}a{number}" for number, text in enumerate(statements))
    world.save(path, f"---\nuuid: {uuid}\n{head}---\n# {title}\n\n{lines}\n")
    world.run()


def say(world: World, name: str, text: str) -> None:
    world.drop(f"{name}.md", text)
    world.run()


def found(world: World, query: str, at: str = "") -> list[str]:
    """Return the texts that a search finds."""
    said = world.cli("search", query, "--json", *(["--at", at] if at else []))
    assert said.code == 0, said.err
    return [hit["text"] for hit in json.loads(said.out)["hits"]]


def through_door(world: World, verb: str, at: str, **arguments: Any) -> str:
    with world.opened() as brain:
        try:
            return json.dumps(VERBS[verb].call(brain, {**arguments, "at": at}, DOOR), ensure_ascii=False)
        except Exception as error:  # noqa: BLE001 - what is refused is told in words, which are looked through too
            return str(error)


def everything(world: World) -> dict[str, bytes]:
    """Return every file of the brain."""
    return {str(path.relative_to(world.root)): path.read_bytes() for path in world.root.rglob("*") if path.is_file()}


def test_search_finds_what_stood(world: World) -> None:
    """A day is meant at its end; what came later is not there, and what has changed since is told."""
    assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")
    assert "I live in Leeds." not in found(world, "Where do I live?")
    assert "I live in Portland." in found(world, "Where do I live?", "2025-09-16")
    assert not any("Pixel" in text for text in found(world, "Pixel", "2025-09-15"))
    assert any("Pixel" in text for text in found(world, "Pixel", "2025-09-16"))
    said = world.cli("search", "Where do I live?", "--at", "2025-09-15")
    assert f"{HOME}: changed: “I live in Leeds.” → “I live in Portland.”" in said.err
    assert "rent" not in said.err.split("Since then:")[1].splitlines()[1]


@pytest.mark.parametrize("when", ["2025-09-15", "3 days ago", "last Monday", "2025-09-15T23:00", "EVENT"])
def test_one_reader_of_times(world: World, when: str) -> None:
    """`--at` takes what `show --at` takes, an event's id too; what is no time, or is to come, is wrong use."""
    if when == "EVENT":
        events = json.loads(world.cli("log", "--all", "--json", "-n", "500").out)
        when = [event["id"] for event in events if event["at"].startswith("2025-09-15")][-1]
    assert "I live in Leeds." in found(world, "Where do I live?", when)
    assert "I live in Leeds." in world.cli("show", HOME, "--at", when).out
    assert (
        2 == world.cli("search", "Leeds", "--at", "2031-01-01").code == world.cli("why", "Leeds", "--at", "soon").code
    )
    before = world.cli("search", "Leeds", "--at", "2020-01-01")
    assert 1 == before.code
    assert "the oldest begins at" in before.err


def test_all_reading_verbs(world: World) -> None:
    """`ask`, `context`, `why` and each verb of a door that reads answer from memory as it stood."""
    assert "I live in Leeds." in world.cli("ask", "Where do I live?", "--at", "2025-09-15").out
    context = world.cli("context", "Where do I live?", "--at", "2025-09-15").out
    assert "I live in Leeds." in context
    assert "Portland" not in context
    assert "I live in Leeds." in world.cli("why", HOME, "--at", "2025-09-15").out
    assert "Portland" in world.cli("why", HOME).out
    asked = {"search": {"query": "Where do I live?"}, "fetch": {"id": HOME}, "briefing": {"prompt": "Where do I live?"}}
    asked |= {"why": {"id": HOME}, "ask": {"text": "Where do I live?"}}
    for verb, arguments in asked.items():
        assert "I live in Leeds." in through_door(world, verb, "2025-09-15", **arguments), verb
    (world.root / DENTIST).unlink()
    world.run()
    listed = json.loads(through_door(world, "list", "2025-09-15", path="memory/long_term/concrete"))
    assert {HOME, DENTIST} <= {entry["id"] for entry in listed["entries"]}
    assert any(f"{DENTIST} is gone" in line for line in listed["since"])
    assert "at" not in VERBS["remember"].schema["properties"]
    assert "at" not in VERBS["suggest"].schema["properties"]


def test_asking_writes_nothing(world: World) -> None:
    """`ask --at` leaves no file, no line of a log and no event; a command that would change memory is refused."""
    before = everything(world)
    said = world.cli("ask", "Where do I live?", "--at", "2025-09-15", "--json")
    assert (0, None) == (said.code, json.loads(said.out)["response"])
    refused = world.cli("ask", "/remember I live in Rome.", "--at", "2025-09-15")
    assert 1 == refused.code
    assert "cannot be changed" in refused.err
    assert 2 == world.cli("ask", "--again", "inbox/three.md", "--at", "2025-09-15").code
    assert before == everything(world)


def test_a_moved_page(world: World) -> None:
    """A page is where it was, and told where it is."""
    moved = HOME.replace("concrete/", "concrete/places/")
    (world.root / moved).parent.mkdir()
    (world.root / HOME).rename(world.root / moved)
    world.run()
    said = world.cli("search", "Where do I live?", "--at", "2025-09-15")
    assert f"{HOME}#" in said.out
    assert f"{HOME} is {moved} now" in said.err


def test_a_page_that_is_private_now(world: World) -> None:
    """It is private in the past too, at once, by hand alone; the person still sees it."""
    assert "Leeds" in through_door(world, "search", "2025-09-15", query="Where do I live?")
    page(world, HOME, "Home", "I live in Portland.", head="private: true\n")
    for verb, name in (("search", "query"), ("briefing", "prompt"), ("ask", "text"), ("fetch", "id"), ("why", "id")):
        for words in ("I live in Leeds.", HOME, "Leeds Portland rent"):
            seen = through_door(world, verb, "2025-09-15", **{name: words})
            for word in ("Leeds", "Portland", "900 pounds"):
                assert word not in seen.replace(words, ""), (verb, words)
    assert HOME not in through_door(world, "list", "2025-09-15", path="memory/long_term/concrete")
    assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")


@pytest.mark.parametrize("mark", ["private: true", "remember: false"])
def test_an_exchange_withdrawn_later(world: World, mark: str) -> None:
    """An exchange that became private, or off the record, after it was answered stays out at doors in the past too."""
    assert "shed" in through_door(world, "search", "2025-09-15", query="spare key")
    prompt = world.root / "inbox/one.md"
    world.save("inbox/one.md", f"---\n{mark}\n---\n{prompt.read_text()}")
    for is_seen_by_daemon in (False, True):
        if is_seen_by_daemon:
            world.run()
        for verb, name in (("search", "query"), ("briefing", "prompt"), ("ask", "text")):
            assert "shed" not in through_door(world, verb, "2025-09-15", **{name: "Where is the spare key?"}), verb


def test_what_was_forgotten(world: World) -> None:
    """Forgotten is hidden, also from the person; what is brought back is there again."""
    assert any("shed" in text for text in found(world, "spare key", "2025-09-15"))
    forgotten = world.cli("forget", "spare key", "--yes", "--json")
    assert 0 == forgotten.code, forgotten.err
    assert not any("shed" in text for text in found(world, "spare key", "2025-09-15"))
    assert "shed" not in world.cli("context", "spare key", "--at", "2025-09-15").out
    assert 0 == world.cli("undo", "--last").code
    assert any("shed" in text for text in found(world, "spare key", "2025-09-15"))


def test_what_waits_to_be_forgotten(world: World) -> None:
    """What a proposal hides is hidden in the past too, until it is declined."""
    assert 0 == world.cli("promote").code
    at = "2025-09-18"
    assert any("shed" in text for text in found(world, "spare key", at))
    notes = "memory/long_term/concrete/notes/2025-09.md"
    assert "shed" in (world.root / notes).read_text()
    with world.opened() as brain:  # as a daemon sees it
        (world.root / notes).unlink()
        brain.plugins.call("file_changed", brain=brain, change=brain.observed.note_change(notes))
    review = world.root / "memory/review.md"
    assert "proposal:" in review.read_text()
    assert not any("shed" in text for text in found(world, "spare key", at))
    world.save("memory/review.md", review.read_text().replace("[ ]", "[-]"))
    world.run()
    assert any("shed" in text for text in found(world, "spare key", at))


def test_what_was_purged(world: World) -> None:
    """A purged word is nowhere, not in a file of a former moment; what stood beside it is there."""
    say(world, "four", "/remember The doctor said gastritis.")
    say(world, "five", "/remember The bakery opens at seven.")
    page(world, DENTIST, "Dentist", "My dentist is Dr Novak.", "The doctor said gastritis.")
    page(world, DENTIST, "Dentist", "My dentist is Dr Novak.", "The doctor said gastritis.", "Novak has a dog.")
    at = "2025-09-18"
    assert any("gastritis" in text for text in found(world, "doctor", at))
    world.tick(DAY)
    assert 0 == world.cli("forget", "gastritis", "--purge", "--yes").code
    assert not any("gastritis" in text for text in found(world, "doctor", at))
    assert any("bakery" in text for text in found(world, "bakery", at))
    assert any("Pixel" in text for text in found(world, "Pixel", at))
    assert "My dentist is Dr Novak." in found(world, "dentist", at)
    for file in (world.home / "cache").rglob("*"):
        assert not file.is_file() or b"gastritis" not in file.read_bytes(), file
    assert 0 == world.cli("prove", "forgotten", "gastritis").code


def test_few_moments_are_kept(world: World) -> None:
    """The disk that it takes is bounded, and it is derived: whatever is deleted is made again."""
    for hour in range(9, 16):
        say(world, f"hour-{hour}", f"It is {hour}.")
        world.tick(3600)
    for hour in range(9, 15):
        found(world, "Where do I live?", f"2025-09-18T{hour}:30")
    [top] = (world.home / "cache").rglob("as_of")
    assert 4 >= len([folder for folder in top.iterdir() if folder.is_dir()])
    for file in top.rglob("made.json"):
        file.unlink()
    assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")
    pages = [path for path in top.rglob("home.md") if path.stat().st_mode & 0o222]
    assert [] == pages


def test_nothing_can_be_written_there(world: World) -> None:
    """Whoever gets the brain as it stood can change nothing by it."""
    from brainiac.errors import BrainiacError
    from brainiac.history.as_of import standing

    before = everything(world)
    with world.opened() as brain, standing(brain, "2025-09-15") as then:
        with pytest.raises(BrainiacError, match="as it stood"):
            verbs.suggest(then, "I live in Leeds.", "replace", "I live in Rome.")
        with pytest.raises(BrainiacError, match="as it stood"):
            then.record("thing-happened", by="test")
    assert before == everything(world)


def test_a_second_device(tmp_path: Path) -> None:
    """What another device wrote is there from when it arrived here, and its words are explained."""
    first = World(tmp_path / "first")
    page(first, HOME, "Home", "I live in Leeds.")
    second = World(tmp_path / "second", name="phone", like=first)
    first.sync(second)
    second.run()
    first.tick(DAY)
    page(second, HOME, "Home", "I live in Bristol.")
    second.sync(first)
    first.run()
    first.tick(DAY)
    for world in (first, second):
        assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")
        assert "I live in Bristol." in found(world, "Where do I live?", "2025-09-16")
        assert re.search("Bristol", world.cli("why", HOME, "--at", "2025-09-16").out)
