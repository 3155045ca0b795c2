"""`--at`: memory as it stood at a moment, with what is hidden as it is now, and nothing written by asking."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import yaml

from brainiac.history.as_of import standing
from brainiac.testing import World, door
from tests.support.as_of import DENTIST, HOME, everything, found, made, page, process, say, through_door
from tests.support.openai_server import ChatServer
from tests.support.openai_server import say as answer

DAY = 86400.0


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
    """`--at` takes what `show --at` takes, an event's id too; what is no time, or is to come, is refused."""
    if when == "EVENT":
        events = json.loads(world.cli("log", "--all", "--json", "-n", "500").out)
        when = [event["id"] for event in events if event["at"].startswith("2025-09-15")][-1]
    assert "I live in Leeds." in found(world, "Where do I live?", when)
    assert "I live in Leeds." in world.cli("show", HOME, "--at", when).out
    assert (
        1 == world.cli("search", "Leeds", "--at", "2031-01-01").code == world.cli("why", "Leeds", "--at", "soon").code
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
    for verb in ("remember", "suggest"):
        assert f"`at` is no argument of `{verb}`" in through_door(world, verb, "2025-09-15")


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


@pytest.mark.parametrize("mark", ["private: true", "remember: false"])
def test_a_page_that_is_private_now(world: World, mark: str) -> None:
    """Private or off the record: it is hidden in the past too, at once, by hand alone; the person still sees it."""
    assert "Leeds" in through_door(world, "search", "2025-09-15", query="Where do I live?")
    page(world, HOME, "Home", "I live in Portland.", head=f"{mark}\n")
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
    for file in top.rglob("made"):
        file.unlink()  # as one that was killed leaves it
    assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")
    pages = [path for path in top.rglob("home.md") if path.stat().st_mode & 0o222]
    assert [] == pages


def test_nothing_can_be_written_there(world: World) -> None:
    """Whoever gets the brain as it stood can change nothing by it."""
    from brainiac.errors import BrainiacError

    before = everything(world)
    with world.opened() as brain, standing(brain, "2025-09-15") as then:
        with pytest.raises(BrainiacError, match="as it stood"):
            door(then, "suggest", id="I live in Leeds.", change="replace", text="I live in Rome.")
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


def test_a_day_ends_where_the_person_lives(world: World) -> None:
    """What was said after midnight there is of the next day, and a moment with a zone is that moment."""
    settings = yaml.safe_load((world.root / "system/config.yaml").read_text()) | {"time_zone": "Pacific/Auckland"}
    world.save("system/config.yaml", yaml.safe_dump(settings))
    world.run()
    world.tick(4 * 3600)  # to 13:00 UTC, which is 01:00 there
    page(world, HOME, "Home", "I live in Bristol.")
    assert "I live in Portland." in found(world, "Where do I live?", "2025-09-18")
    assert "I live in Bristol." in found(world, "Where do I live?", "2025-09-19")
    assert "I live in Portland." in found(world, "Where do I live?", "2025-09-18T12:30:00+00:00")


def test_an_event_named_at_a_door(world: World) -> None:
    """A client names an event wholly or not at all: by a part of an id it learns of no event, its kind or its time."""
    [*_, event] = [e for e in json.loads(world.cli("log", "--all", "--json").out) if e["at"].startswith("2025-09-15")]
    assert "I live in Leeds." in through_door(world, "search", event["id"], query="Where do I live?")
    for part in (event["id"][:8], event["id"][-8:], event["id"][:-1] + "g", "0" * 36):
        refused = through_door(world, "search", part, query="Where do I live?")
        assert "is no time" in refused, part
        assert not any(word in refused for word in (event["id"], event["kind"]))


def test_a_private_page_that_was_deleted_or_moved_with_its_folder(world: World) -> None:
    """What a page was at last counts, and where it is; a folder's new name brings no file of it a new time."""
    page(world, HOME, "Home", "I live in Portland.", head="private: true\n")
    assert "Leeds" not in through_door(world, "search", "2025-09-15", query="Where do I live?")
    places = (world.root / HOME).parent
    places.rename(places.with_name("places"))
    for is_seen in (False, True):
        if is_seen:
            world.run()
        assert "Leeds" not in through_door(world, "search", "2025-09-15", query="Where do I live?")
    (world.root / HOME.replace("concrete", "places")).unlink()
    world.run()
    for verb, name in (("search", "query"), ("briefing", "prompt"), ("ask", "text")):
        assert "Leeds" not in through_door(world, verb, "2025-09-15", **{name: "Where do I live?"}), verb
    assert "Dr Novak" in through_door(world, "search", "2025-09-15", query="Who is my dentist?")


def test_another_process_makes_a_moment_again(world: World) -> None:
    """A process that has it open sees at once what was forgotten through another one."""
    with world.opened() as brain:
        with standing(brain, "2025-09-15") as then:
            assert "shed" in str(door(then, "search", query="spare key"))
        assert 0 == world.cli("forget", "spare key", "--yes").code
        assert not any("shed" in text for text in found(world, "spare key", "2025-09-15"))
        with standing(brain, "2025-09-15") as then:
            assert "shed" not in str(door(then, "search", query="spare key"))
            assert not any("shed" in event.user for event in then.short_term().memory.events)


def test_processes_make_a_moment_and_are_killed(world: World) -> None:
    """Two at once find the same; one that is killed while it makes it, or has no room for it, leaves nothing half."""
    search = ("search", "Where do I live?", "--json", "--at", "2025-09-15")
    first, second = process(world, *search), process(world, *search)
    texts = [[hit["text"] for hit in json.loads(each.communicate()[0])["hits"]] for each in (first, second)]
    assert texts[0] == texts[1]
    assert "I live in Leeds." in texts[0]
    [moment] = made(world)
    for file in ("made", "brain/memory/short_term.md"):
        (moment.parent / file).unlink()
    killed = process(world, *search)
    while not (moment.parent / "brain/memory/short_term.md").exists() and killed.poll() is None:
        time.sleep(0.001)
    killed.kill()
    killed.communicate()
    assert [] == made(world)
    assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")
    [moment] = made(world)
    moment.unlink()
    full = process(world, *search, limit=60_000)
    _, told = full.communicate()
    assert 1 == full.returncode, told
    assert "Traceback" not in told
    assert not moment.parent.exists(), told
    assert "I live in Leeds." in found(world, "Where do I live?", "2025-09-15")


def test_a_model_is_asked_of_then(world: World) -> None:
    """It gets memory of then with the identity of now, its cost counts now, and the question is nobody's memory."""
    with ChatServer() as server:
        server.default = answer("You live in Leeds.", tokens=(1000, 100))
        settings = {"llm": {"model": "openai/gpt-4o-mini"}, "recall": {"embedder": "none"}}
        (world.home / "config/brainiac").mkdir(parents=True, exist_ok=True)
        machine = {"api_bases": {"openai": server.url}, "api_key_variables": {"openai": "HOME"}}
        (world.home / "config/brainiac/config.yaml").write_text(yaml.safe_dump(machine))
        config = world.root / "system/config.yaml"
        config.write_text(yaml.safe_dump((yaml.safe_load(config.read_text()) or {}) | settings))
        world.run()
        before = json.loads(world.cli("costs", "--json").out)
        with world.opened() as brain:
            for name in ("Ada", "Bea"):
                text = f"# Identity\n\nYour name is {name}.\n"
                (world.root / "system/core_identity.md").write_text(text)
                asked = door(brain, "ask", text="Where do I live?", at="2025-09-15")
                assert "You live in Leeds." in json.dumps(asked)
                [*_, body] = map(json.dumps, server.bodies)
                assert f"Your name is {name}." in body
                assert "I live in Leeds." in body
                assert "Portland" not in body
                with standing(brain, "2025-09-15") as then:
                    assert not list(then.tree.scan(then.tree.inbox))
    after = json.loads(world.cli("costs", "--json").out)
    assert before != after
    kinds = {event["kind"] for event in json.loads(world.cli("log", "--all", "--json").out)[-2:]}
    assert {"model-called"} == kinds


def test_all_commands_name_a_moment_alike(world: World) -> None:
    """`show`, `diff`, `log`, `digest`, `rebuild` read the times that `search` reads; `undo` the same ids of events."""
    event = json.loads(world.cli("log", "--all", "--json", "--memory").out)[-1]["id"]
    commands = [("search", "Leeds", "--at"), ("show", HOME, "--at"), ("diff", "--since"), ("log", "--since")]
    commands += [("digest", "--since"), ("rebuild", "--into", str(world.folder / "other"), "--yes", "--from")]
    for command in commands:
        for when in ("2025-09-15", "3 days ago", "last Monday", "September 2025", event, event[-8:]):
            assert world.cli(*command, when).code in (0, 1), (command, when)
        for when, why in (("soon", "is no time"), ("2031-01-01", "still to come")):
            wrong = world.cli(*command, when)
            assert (1, True) == (wrong.code, why in " ".join(wrong.err.split())), (command, when)
        unknown = world.cli(*command, "abcdef12")
        assert (1, True) == (unknown.code, "no event has the id 'abcdef12'" in unknown.err), command
    assert "no event has the id 'abcdef12'" in world.cli("undo", "abcdef12").err
