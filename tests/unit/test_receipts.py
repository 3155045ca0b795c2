"""Receipts: each answer says what it rested on, and that very thing can be explained, put right and forgotten."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from brainiac import verbs
from brainiac.errors import UserError
from brainiac.formats.prompt import parse_response
from brainiac.testing import World
from tests.support.models import set_sections
from tests.support.openai_server import Captured, ChatServer, by_request, say, say_json

MODEL = "openai/gpt-4.1-mini"
HOME = "memory/long_term/concrete/home.md"
UUID = "0199aaaa-7c00-7000-8000-000000000001"
PAGE = f"---\nuuid: {UUID}\n---\n\n# Home\n\n- My flat is in Graz. ^ab12\n- The rent is 640 euros. ^cd34\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.save(HOME, PAGE)
    world.run()
    return world


def receipts_of(world: World, question: str) -> list[dict[str, Any]]:
    """Ask at the command line, and return the receipts of the answer."""
    said = world.cli("ask", question, "--json")
    assert said.code == 0, said
    receipts: list[dict[str, Any]] = said.json["receipts"]
    return receipts


def of_statement(world: World, words: str) -> str:
    """Return the id of the receipt of a statement of the page, by what `why` says of it."""
    for receipt in receipts_of(world, "How much is the rent of my flat in Graz?"):
        if words in world.cli("why", receipt["id"]).out:
            return str(receipt["id"])
    raise AssertionError(words)


def test_an_answer_carries_what_it_rested_on(world: World) -> None:
    """In the response's front matter and as JSON; the id of the same thing is the same in every answer (F-RSP-6)."""
    first = receipts_of(world, "How much is the rent of my flat?")
    assert {
        "use": "cited",
        "who": "User",
        "outdated": False,
        "title": "Home",
        "path": HOME,
        "block": "cd34",
    }.items() <= first[0].items()
    (path,) = (path for path in world.tree() if path.endswith(".response.md"))
    response = parse_response(path, (world.root / path).read_bytes())
    assert [receipt.id for receipt in response.receipts] == [receipt["id"] for receipt in first]
    again = receipts_of(world, "What is the rent?")
    assert first[0]["id"] in {receipt["id"] for receipt in again}


def test_why_and_wrong_and_forget_act_on_that_item_alone(world: World) -> None:
    """`wrong ID TEXT` rewords it, `wrong ID` takes it back, `forget ID` takes it out; its neighbours stay."""
    rent = of_statement(world, "640 euros")
    assert "700" in world.cli("wrong", rent, "The rent is 700 euros.").out
    text = (world.root / HOME).read_text()
    assert "- The rent is 700 euros. ^cd34" in text
    assert "My flat is in Graz. ^ab12" in text
    assert world.cli("forget", rent, "-y").code == 0
    text = (world.root / HOME).read_text()
    assert "700 euros" not in text
    assert "My flat is in Graz. ^ab12" in text


def test_wrong_without_a_text_ends_what_nothing_came_before(world: World) -> None:
    """It stands under History then, and a second time nothing is done."""
    rent = of_statement(world, "640 euros")
    assert world.cli("wrong", rent).code == 0
    assert "~~The rent is 640 euros.~~" in (world.root / HOME).read_text()
    said = world.cli("wrong", rent)
    assert said.code == 1
    assert "no longer holds" in said.err


def test_the_receipt_of_an_exchange_is_that_exchange(tmp_path: Path) -> None:
    """What was only said is put right as a statement; the exchange is forgotten with its answer."""
    world = World(tmp_path)
    world.drop("a.md", "My landlord is called Pedro Varga.")
    world.drop("b.md", "My landlord was born in Lima.")
    world.run()
    receipts = receipts_of(world, "What is my landlord called?")
    by_words = {world.cli("why", each["id"]).out: each["id"] for each in receipts}
    name = next(each for words, each in by_words.items() if "Pedro Varga" in words)
    assert world.cli("wrong", name, "My landlord is called Paolo Varga.").code == 0
    assert any("Paolo Varga" in text for path, text in world.tree().items() if "/concrete/" in path)
    assert f"nothing of {name} holds any more" in world.cli("wrong", name, "It is so no more.").err
    assert world.cli("forget", name, "-y").code == 0
    assert not (world.root / "inbox/a.md").exists()
    assert (world.root / "inbox/b.md").exists()


def test_an_id_that_no_answer_gave_is_refused(world: World) -> None:
    said = world.cli("wrong", "rabc234", "x")
    assert said.code == 1
    assert "no answer gave the id" in said.err


def test_off_the_record_nothing_of_it_is_journaled(world: World) -> None:
    """The file has its receipts; the journal, which keeps nothing of the exchange, has none."""
    said = world.cli("ask", "How much is the rent of my flat?", "--off-record", "--json").json
    assert said["receipts"]
    journal = "".join(path.read_text() for path in (world.root / "logs/journal").rglob("*.jsonl"))
    assert said["receipts"][0]["id"] not in journal


def test_a_model_s_answer_tells_what_it_was_shown_and_what_it_cites(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link to one statement cites that alone; what the model was shown besides is marked so."""

    def answer(request: Captured) -> Any:
        if "search queries" in request.text or "queries" in str(request.body.get("response_format")):
            return say_json({"queries": []})
        return say(f'The rent is 640 euros: [Home](../{HOME}#^cd34 "uuid:{UUID}").')

    with ChatServer() as server:
        server.default = by_request(answer)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        set_sections(world.root, f"llm: {{model: {MODEL}}}")
        machine = world.home / "config/brainiac/config.yaml"
        machine.parent.mkdir(parents=True, exist_ok=True)
        machine.write_text(f"api_bases: {{openai: {server.url}}}\n")
        receipts = receipts_of(world, "How much is the rent of my flat in Graz?")
    uses = {world.cli("why", each["id"]).out.partition("^")[0].strip()[-22:]: each["use"] for each in receipts}
    assert sorted(uses.values()) == ["cited", "shown"], uses
    (cited,) = (each for each in receipts if each["use"] == "cited")
    assert "640 euros" in world.cli("why", cited["id"]).out


def test_a_suggestion_by_a_receipt_waits_for_the_person(world: World) -> None:
    """Through doors a receipt is acted on by `suggest`, which changes nothing by itself."""
    rent = of_statement(world, "640 euros")
    with world.opened() as brain:
        suggested = verbs.suggest(brain, rent, "replace", "The rent is 700 euros.")
    assert "Replace “The rent is 640 euros.”" in suggested.what
    assert "640 euros" in (world.root / HOME).read_text()


def test_a_purge_takes_the_receipts_of_what_it_destroys(world: World) -> None:
    """A title with the words, shown and not cited, is in no receipt any more."""
    receipts_of(world, "How much is the rent of my flat in Graz?")
    world.cli("forget", "Home", "--purge", "-y")
    responses = [text for path, text in world.tree().items() if path.endswith(".response.md")]
    assert all("[Home]" not in text for text in responses), json.dumps(responses)


def test_the_receipt_of_a_page_is_not_put_right_as_a_whole(tmp_path: Path) -> None:
    """Nothing on it has an id, so its statements are named by their words: this is said, and nothing is changed."""
    world = World(tmp_path)
    world.save(HOME, "# Home\n\n- My flat is in Graz.\n")
    world.run()
    (receipt,) = (each["id"] for each in receipts_of(world, "Where is my flat?") if each["path"] == HOME)
    for text in ([], ["My flat is in Linz."]):
        said = world.cli("wrong", receipt, *text)
        assert (said.code, f"is all of {HOME}" in said.err) == (1, True), said
    assert "- My flat is in Graz.\n" in (world.root / HOME).read_text()


def test_a_door_is_not_told_what_the_receipt_of_a_private_page_means(tmp_path: Path) -> None:
    """It hears the same as of a receipt that no answer gave: neither path nor uuid."""
    world = World(tmp_path)
    world.save(HOME, "---\nprivate: true\n---\n\n# Home\n\n- My flat is in Graz.\n")
    world.run()
    (receipt,) = (each["id"] for each in receipts_of(world, "Where is my flat?") if each["path"] == HOME)
    told = []
    with world.opened() as brain:
        assert verbs.fetch(brain, receipt).id == HOME
    for name in (receipt, "rabc234"):
        with pytest.raises(UserError) as error:
            world.door("fetch", id=name)
        told.append(str(error.value).replace(name, "ID"))
    assert told[0] == told[1]


def test_an_exchange_is_put_right_by_its_receipt_whatever_a_search_finds(tmp_path: Path) -> None:
    """Its own sentences are meant, however many others are nearer to its words; it has one receipt in an answer."""
    world = World(tmp_path)
    team = "The team is me, Anna on the backend, Tomasz on the frontend and Priya on testing."
    world.drop("heron.md", f"I lead a project called Heron, berth planning for a port. {team} What headings go first?")
    for number in range(25):
        words = f"Anna and Tomasz on the backend, Priya on the frontend: team {number} leads testing of the project."
        world.drop(f"n{number}.md", words)
    world.run()
    world.tick(86_400)  # out of short-term memory, onto the page of its day
    receipts = receipts_of(world, "Who plans berths for a port, which project do I lead?")
    assert len({each["id"] for each in receipts}) == len(receipts)
    (mine,) = (each["id"] for each in receipts if "called Heron" in world.cli("why", each["id"]).out)
    said = world.cli("wrong", mine, "I lead nothing any more.")
    assert said.code == 1
    assert "by all its words" in said.err
    assert team in said.err
    assert "team 3" not in said.err
    lead = "I lead a project called Heron, berth planning for a port."
    assert world.cli("correct", lead, "--to", "I lead nothing any more.").code == 0
    assert any("- I lead nothing any more." in text for text in world.tree().values())


def test_what_was_forgotten_is_offered_by_no_receipt(tmp_path: Path) -> None:
    """Neither an exchange's sentences nor a statement's words: each command says that it was forgotten, and on which
    day; a door hears what it hears of an id that never was. An `undo` brings the receipt back.
    """
    world = World(tmp_path)
    world.save(HOME, PAGE)
    world.drop("a.md", "My landlord is called Pedro Varga. He was born in Lima.")
    world.run()
    question = "What is my landlord called, and how much is the rent of my flat?"
    ids = [each["id"] for each in receipts_of(world, question)]
    by_words = {words: each for each in ids for words in ("Pedro", "640 euros") if words in world.cli("why", each).out}
    assert set(by_words) == {"Pedro", "640 euros"}
    for words, receipt in by_words.items():
        assert world.cli("forget", receipt, "-y").code == 0
        for command in (("why",), ("wrong",), ("wrong", "x"), ("forget",)):
            said = world.cli(command[0], receipt, *command[1:])
            assert said.code == 1, said
            assert re.search(r"that was forgotten on \d{4}-\d\d-\d\d", said.err), said
            assert words not in said.out + said.err
    told = []
    for receipt in (by_words["Pedro"], "rabc234"):
        for verb in ("fetch", "why"):
            with pytest.raises(UserError) as error:
                world.door(verb, id=receipt)
            told.append(str(error.value).replace(receipt, "ID"))
    assert told[:2] == told[2:]
    with world.opened() as brain, pytest.raises(UserError, match="that was forgotten on"):
        verbs.fetch(brain, by_words["Pedro"])
    world.cli("undo", "--last")
    world.cli("undo", "--last")
    assert "Pedro" in world.cli("why", by_words["Pedro"]).out
    assert "640 euros" in world.cli("why", by_words["640 euros"]).out


def test_a_correction_tells_the_words_and_their_day(tmp_path: Path) -> None:
    """`log` and `undo` tell the old words and the new ones; the statement has its own day and not its page's; History
    does not say that it held.
    """
    world = World(tmp_path)
    world.save(HOME, PAGE.replace("---\n\n", "updated_at: 2020-05-01T08:00:00Z\n---\n\n", 1))
    world.run()
    rent = of_statement(world, "640 euros")
    assert world.cli("wrong", rent, "The rent is 700 euros.").code == 0
    today = f"{world.clock.now():%Y-%m-%d}"
    days = {each["block"]: each["day"] for each in receipts_of(world, "How much is the rent of my flat in Graz?")}
    assert (days["cd34"], days["ab12"]) == (today, "2020-05-01")
    assert f"~~The rent is 640 euros.~~ (until {today}; replaced by ^cd34)" in (world.root / HOME).read_text()
    words = "“The rent is 640 euros.” → “The rent is 700 euros.”"
    assert words in world.cli("log").out
    undone = world.cli("undo", "--last")
    assert "resumed: “The rent is 640 euros.”\n" in undone.out
    assert "removed: “The rent is 700 euros.”\n" in undone.out


def test_what_was_only_said_is_put_right_in_words(tmp_path: Path) -> None:
    """That it is a note now, and on which page, is said in words; an `undo` takes all of it back."""
    world = World(tmp_path)
    world.drop("a.md", "My landlord is called Pedro Varga.")
    world.run()
    (receipt,) = (each["id"] for each in receipts_of(world, "What is my landlord called?"))
    said = world.cli("wrong", receipt, "My landlord is called Paolo Varga.")
    assert "It was said and no statement until now" in said.out
    assert "Paolo Varga" in world.cli("undo", "--last").out
    assert not list((world.root / "memory/long_term/concrete").rglob("notes/*.md"))
