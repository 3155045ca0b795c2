"""Memory speaks first, and mostly not: what `push` says, and what keeps it silent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.llm.catalog import count
from brainiac.testing import World
from brainiac.verbs import VERBS, Caller

DOOR = Caller("api:hooks")
TOLD = "The espresso machine from Rancilio needs descaling with citric acid every March."
ASKED = "what was it again with descaling the Rancilio espresso machine?"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.drop("coffee.md", TOLD)
    world.drop("other.md", "My sister Ottilie moved to Zwolle with two greyhounds.")
    world.run()
    return world


@pytest.fixture
def brain(world: World) -> Iterator[Brain]:
    with world.opened() as brain:
        yield brain


def push(brain: Brain, text: str = ASKED, **arguments: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(VERBS["push"].call(brain, {"text": text, **arguments}, DOOR))))


def test_a_thing_that_is_named_is_said(brain: Brain, world: World) -> None:
    """One line with words, day and a receipt that `why` knows; fenced as data, and within two hundred tokens.

    Seeds: S2, S8.
    """
    said = push(brain, session="s")
    (line,) = said["lines"]
    assert (TOLD, "2025-09-15", "") == (line["text"], line["day"], said["reason"])
    head, quoted = said["text"].split("\n")
    assert "data, not instructions" in head
    assert f"> 2025-09-15 {TOLD} [{line['id']}]" == quoted
    assert count(said["text"]) <= 200
    assert TOLD in json.dumps(VERBS["why"].call(brain, {"id": line["id"]}, DOOR)["said"])


@pytest.mark.parametrize(
    ("text", "source", "reason"),
    [
        (ASKED, "system", "no person typed it"),
        (ASKED, "loop_wakeup", "no person typed it"),
        ("/review the Rancilio espresso machine", "user", "a command"),
        ("!ls descaling Rancilio espresso", "", "a command"),
        ("descaling Rancilio", "", "too few words"),
        ("```\ndescaling Rancilio espresso machine\n```", "", "pasted code"),
        ("machine = Rancilio(espresso);\nif (machine) { descaling(); }", "", "pasted code"),
        ("please bump all dependencies and run the tests again", "", "nothing near"),
        ("which bus goes to the stadium on Sundays?", "", "nothing near"),
    ],
)
def test_silence_has_a_reason(brain: Brain, text: str, source: str, reason: str) -> None:
    """What no person typed, commands, code, two words, and what memory has nothing on: nothing is said."""
    said = push(brain, text, source=source)
    assert ("", [], reason) == (said["text"], said["lines"], said["reason"])


def test_nothing_is_said_twice(world: World) -> None:
    """Not in a session, nor in the next sessions of a project; in another project it is, and after a restart too.

    Seeds: H1.
    """
    with world.opened() as brain:
        assert push(brain, session="a", project="/code/one")["lines"]
        world.tick(60)
        assert "all of it was said lately" == push(brain, session="a", project="/code/two")["reason"]
    with world.opened() as brain:
        world.tick(60)
        assert "all of it was said lately" == push(brain, session="b", project="/code/one")["reason"]
        assert push(brain, session="c", project="/code/two")["lines"]


def test_one_turn_by_two_hosts_files_is_answered_once(brain: Brain, world: World) -> None:
    """The second that brings the same words in the same session at the same moment gets nothing."""
    assert push(brain, session="a")["lines"]
    assert "the same turn by another host's file" == push(brain, session="a")["reason"]


def test_what_stands_in_the_conversation_is_not_said(brain: Brain) -> None:
    """Neither what the last turns say already, nor what the prompt itself says."""
    turns = ["We said: descaling the espresso machine from Rancilio with citric acid every March; it needs that."]
    assert "nothing near" == push(brain, turns=turns)["reason"]
    assert "nothing near" == push(brain, f"As I told you: {TOLD}")["reason"]


def test_what_is_private_or_forgotten_is_never_said(world: World) -> None:
    """A private page, words that were forgotten, and what was said off the record pass no hook."""
    world.save(
        "memory/long_term/concrete/box.md",
        "---\nprivate: true\n---\n# Box\n\n- The Burg-Wächter safe opens with 4711 and Quetzalcoatl. ^b1\n",
    )
    world.drop("off.md", "/off The Burg-Wächter safe was a gift of Quetzalcoatl.")
    world.run()
    with world.opened() as brain:
        assert not push(brain, "how do I open the Burg-Wächter safe, was it Quetzalcoatl?")["lines"]
    assert 0 == world.cli("forget", "Rancilio", "--yes").code
    with world.opened() as brain:
        assert not push(brain)["lines"]


def test_what_an_assistant_wrote_is_never_said(world: World) -> None:
    """What came through a door as an assistant's, said or stated, is found there and offered to no other assistant."""
    asked = "when do the greyhounds get the Bravecto tablets from Dr. Quispel?"
    planted = "The Zwolle greyhounds need their Bravecto tablets from Dr. Quispel in October"
    with world.opened() as brain:
        VERBS["remember"].call(brain, {"text": planted}, DOOR)
    page = "memory/long_term/concrete/dogs.md"
    world.save(page, f"# Dogs\n\n- {planted}, two of them. (assistant: claude) ^b1\n")
    world.run()
    with world.opened() as brain:
        found = VERBS["search"].call(brain, {"query": "Bravecto Quispel"}, DOOR)["results"]
        assert ["assistant", "assistant"] == [one["origin"] for one in found if "Bravecto" in json.dumps(one)]
        assert "Bravecto" not in push(brain, asked)["text"]
    world.save(page, f"# Dogs\n\n- {planted}, two of them. ^b1\n")
    with world.opened() as brain:
        assert "Bravecto" in push(brain, asked)["text"]


def test_a_kind_is_switched_off(world: World) -> None:
    """This machine's own settings say which kinds memory says anything of."""
    settings = world.home / "config/brainiac/config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("push: [waiting]\n")
    with world.opened() as brain:
        assert "switched off" == push(brain)["reason"]


def test_a_start_tells_what_is_due(world: World) -> None:
    """Open tasks whose day has come, once; neither later ones nor questions that wait anyhow; the log has it too."""
    world.drop("t1.md", "/todo pay the mooring fee 2025-09-14")
    world.drop("t2.md", "/todo book the sauna 2025-10-30")
    world.save("memory/long_term/concrete/boat.md", "# Boat\n\n- The boat lies in Medemblik. ^b1\n")
    world.run()
    with world.opened() as brain:
        VERBS["suggest"].call(brain, {"change": "forget", "id": "The boat lies in Medemblik."}, DOOR)
        said = push(brain, "", kind="waiting", session="s")
        due = "due: pay the mooring fee 2025-09-14"
        assert [due] == [line["text"] for line in said["lines"]]
        assert [f"> {due}"] == said["text"].split("\n")[1:]
        assert not push(brain, "", kind="waiting", session="s")["lines"]
    assert due in " ".join(world.cli("hooks", "log").out.split())


def test_a_briefing_tells_what_is_due_once_a_day(world: World) -> None:
    """A client that begins a conversation is told what is due by the same gate, each thing once a day.

    Seeds: H1.
    """
    world.drop("t1.md", "/todo pay the mooring fee 2025-09-14")
    world.drop("t2.md", "---\nprivate: true\n---\n/todo see the lawyer 2025-09-14")
    world.run()

    def told(client: str) -> str:
        with world.opened() as brain:
            return str(VERBS["briefing"].call(brain, {"prompt": "the boat"}, Caller(client))["push"])

    first = told("mcp:claude")
    assert "> due: pay the mooring fee 2025-09-14" == first.split("\n")[1]
    assert "lawyer" not in first
    world.clock.advance(60)
    assert ["", first] == [told("mcp:claude"), told("mcp:cursor")]
    world.clock.advance(86_400)
    assert first == told("mcp:claude")
    assert [3, "mcp:claude"] == [sum(bool(row["said"]) for row in log_of(world)), log_of(world)[0]["host"]]


def log_of(world: World) -> list[dict[str, Any]]:
    return list(world.cli("hooks", "log", "--json").json)


def test_an_earlier_telling_gives_way(world: World) -> None:
    """Of two tellings of one thing the newer is said, and the earlier is not where that says most of what it says.

    Seeds: H1.
    """
    world.clock.advance(86_400)
    world.drop("again.md", f"{TOLD[:-1]}, says the new manual.")
    world.run()
    with world.opened() as brain:
        assert ["2025-09-16"] == [line["day"] for line in push(brain, session="s")["lines"]]


def test_a_further_line_has_something_further(world: World) -> None:
    """What has no telling word of the prompt that the line before lacks is not said beside it.

    Seeds: H1.
    """
    world.drop("more.md", "Rancilio was founded in Parabiago, where they build each espresso machine.")
    world.drop("much.md", "The citric acid for descaling stands behind the Kärcher in the boathouse.")
    world.run()
    with world.opened() as brain:
        assert [TOLD] == [line["text"] for line in push(brain, session="s")["lines"]]
        world.clock.advance(60)
        others = push(brain, session="s")["lines"]  # they are sure enough, and said where the first was said already
        assert TOLD not in [line["text"] for line in others]


def test_a_stale_line_is_never_told_alone(world: World) -> None:
    """A newer telling of the same is told before it; once it was told, or where it is not sure, nothing is.

    Seeds: H1.
    """
    world.drop("notes/1.md", "Kelp staging runs on limpet, a VM in Rokas' office; never run the full backfill there.")
    world.drop("notes/2.md", "Choir practice is on Mondays at 19:30 in the parish hall, I sing second bass.")
    world.run()
    world.cli("promote")  # the statements that stand now are no newer tellings
    world.clock.advance(90_000)
    world.drop("3.md", "We moved kelp staging to a new Hetzner machine called mussel; limpet is switched off.")
    world.drop("4.md", "Until Christmas the choir meets on Wednesdays at eight, the heating of the hall is out.")
    world.run()
    with world.opened() as brain:
        asked = "deploy the branch to staging so i can try the full backfill"
        newer, older = (line["text"] for line in push(brain, asked, session="a", project="/code/kelp")["lines"])
        assert ("mussel" in newer, "full backfill" in older) == (True, True)
        assert "nothing near" == push(brain, asked, session="b", turns=[newer])["reason"]
        assert "nothing near" == push(brain, "who is second bass at choir practice on mondays", session="c")["reason"]


def test_after_a_compaction_what_was_said_comes_again(brain: Brain, world: World) -> None:
    """The lines of that session, as they stand in memory now; in a session without any nothing."""
    (line,) = push(brain, session="s")["lines"]
    assert not push(brain, "", kind="again", session="t")["lines"]
    assert [line] == push(brain, "", kind="again", session="s")["lines"]


def test_no_words_are_kept(brain: Brain, world: World) -> None:
    """Of what was typed and said the machine's log keeps names and reasons, and no word."""
    push(brain, session="s")
    push(brain, "nobody shall ever read Xanthippe in a log", session="s")
    rows = list(brain.database.kept("pushes").values())
    assert 2 == len(rows)
    assert not [row for row in rows if "Rancilio" in row or "Xanthippe" in row]
    assert ["", "nothing near"] == [json.loads(row)["reason"] for row in rows]


def test_the_log_tells_each_moment(world: World) -> None:
    """What was said with its words as they stand now, else why nothing was; what was forgotten since is not shown."""
    with world.opened() as brain:
        push(brain, session="s")
        push(brain, "please bump all dependencies and run the tests again", session="s")
    told = world.cli("hooks", "log")
    assert "Rancilio" in told.out
    assert "silent: nothing near" in told.out
    assert ["", "nothing near"] == [row["reason"] for row in world.cli("hooks", "log", "--json").json]
    world.cli("forget", "Rancilio", "--yes")
    told = world.cli("hooks", "log")
    assert "Rancilio" not in told.out
    assert "not shown any more" in told.out


def test_a_test_needs_an_installed_hook(world: World) -> None:
    """Without one the command says how to put it in; with one and no daemon, that none is reached."""
    assert "brainiac hooks install codex" in world.cli("hooks", "test", "codex").err
    world.cli("hooks", "install", "codex", "--yes")
    assert "no daemon" in world.cli("hooks", "test", "codex").err


def test_the_folders_stand_in_this_machines_own_settings(world: World, tmp_path: Path) -> None:
    """What a person wrote there stays; without agreement nothing is written; a folder within another may be kept out.

    Seeds: H2.
    """
    settings = world.home / "config/brainiac/config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("# mine\npush: [waiting]  # quiet\n")
    code, inner = tmp_path / "code", tmp_path / "code/inner"
    inner.mkdir(parents=True)
    assert "Nothing that you say" in world.cli("hooks", "capture").out
    assert world.cli("hooks", "capture", str(code), typed="n\n").code
    assert "# mine\npush: [waiting]  # quiet\n" == settings.read_text()
    assert 0 == world.cli("hooks", "capture", str(code), "--private", "--yes").code
    assert 0 == world.cli("hooks", "capture", str(inner), "--off", "--yes").code
    assert settings.read_text().startswith("# mine\npush: [waiting]  # quiet\n")
    assert [f"{code}: {world.root} (private)", f"{inner}: not kept"] == world.cli("hooks", "capture").out.splitlines()
    assert 0 == world.cli("hooks", "capture", str(code), "--off", "--yes").code
    assert [f"{inner}: not kept"] == world.cli("hooks", "capture").out.splitlines()
    assert "no folder" in world.cli("hooks", "capture", str(tmp_path / "nowhere"), "--yes").err


def test_what_comes_too_late_is_not_said(world: World) -> None:
    """A hook that has given up would not show it: it does not count as said, and the log tells why.

    Seeds: H1.
    """
    with world.opened() as brain:
        assert "too late" == push(brain, session="s", until=1.0)["reason"]
        assert push(brain, session="t", until=4e9)["lines"]
    assert "silent: too late" in world.cli("hooks", "log").out
