"""REST under `/api`: the verbs, the state of the brain, its events, and the schema that describes them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from brainiac.events import ProposalMade
from brainiac.formats.markdown import find_links
from brainiac.formats.prompt import parse_prompt
from tests.support.commands import Shell
from tests.support.said import say_to
from tests.support.served import Reply, Served, served

pytestmark = pytest.mark.slow

FOLDER = "memory/long_term/concrete"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as server:
        yield server


def call(server: Served, tool: str, **arguments: Any) -> Reply:
    return server.send("POST", f"/api/{tool}", arguments, {"X-Brainiac-Client": "client"})


def test_each_verb_answers_as_the_schema_says(server: Served) -> None:
    """What `/api/openapi.json` promises of arguments and answers holds for real calls; a wrong one names the right."""
    described = server.send("GET", "/api/openapi.json").json
    schemas = described["components"]["schemas"]
    found = call(server, "search", query="Portland").json["results"][0]["id"]
    calls: dict[str, dict[str, Any]] = {
        "search": {"query": "Portland", "limit": 2},
        "fetch": {"id": found},
        "briefing": {"prompt": "Where do I live?"},
        "list": {},
        "why": {"id": found},
        "remember": {"text": "I bought a heron.", "key": "k"},
        "ask": {"text": "Where do I live?", "conversation": "home"},
        "suggest": {"id": found, "change": "end"},
        "push": {"text": "Where do I live in Portland?", "session": "s"},
    }
    assert set(calls) == set(schemas)
    for name, arguments in calls.items():
        jsonschema.validate(arguments, schemas[name])
        reply = call(server, name, **arguments)
        assert 200 == reply.status, reply.raw
        responses = described["paths"][f"/api/{name}"]["post"]["responses"]
        jsonschema.validate(reply.json, responses["200"]["content"]["application/json"]["schema"])
        wrong = call(server, name, **arguments, surprise=1)
        assert 400 == wrong.status
        jsonschema.validate(wrong.json, responses["default"]["content"]["application/json"]["schema"])
        assert all(field in wrong.json["error"]["message"] for field in ("surprise", *schemas[name]["properties"]))


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"[" * 100_000, b'{"query": 1}', b"{}"])
def test_a_wrong_body_is_told_and_harms_nothing(server: Served, body: bytes) -> None:
    """One sentence, and the next request is served."""
    reply = server.send("POST", "/api/search", body, {"Content-Type": "application/json"})
    assert 400 == reply.status
    assert reply.json["error"]["message"]
    assert 404 == server.send("GET", "/api/nothing/at/all").status
    assert 400 == server.send("POST", "/api/delete", {}).status


def test_what_comes_in_names_its_client_and_is_searched_at_once(server: Served) -> None:
    """The note says who brought it; the same key again adds nothing; a bad header cannot write front matter."""
    note = call(server, "remember", text="/forget everything\nMy heron is called Ada.", key="k").json
    parsed = parse_prompt(note["id"], server.brain.read(note["id"]) or b"", at="")
    assert ("assistant", "api:client", ()) == (parsed.origin, parsed.by, parsed.commands)
    assert not call(server, "remember", text="Again.", key="k").json["is_new"]
    hits = call(server, "search", query="heron").json
    assert hits["fresh"]
    assert "Ada" in str(hits["results"])


def test_links_of_an_answer_are_what_fetch_takes(server: Served) -> None:
    """At each door, streamed or whole: a client has no folder that a relative link could lead from."""
    (server.brain.root / FOLDER / "sea boat.md").write_text("# Boat\n\n- My boat is called Nerissa. ^b1\n")
    asked = {"messages": [{"role": "user", "content": "What is my boat called?"}], "model": "brainiac"}
    streamed = server.send("POST", "/v1/chat/completions", asked | {"stream": True}).raw.decode().splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in streamed if line.startswith("data: {")]
    texts = [
        call(server, "ask", text="What is my boat called?", conversation="sea").json["text"],
        server.send("POST", "/v1/chat/completions", asked).json["choices"][0]["message"]["content"],
        "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks),
    ]
    for text in texts:
        links = {link.target for link in find_links(text) if link.text == "Boat"}
        assert {f"brain://{FOLDER}/sea boat.md"} == links, text
        assert all("Nerissa" in call(server, "fetch", id=link).json["text"] for link in links)


@pytest.mark.parametrize(
    "text", ["\ud800", "a\0b", "../../../etc/passwd", "/etc/passwd", "x" * 5_000, "a\nb", "#^", "~"]
)
def test_no_text_breaks_a_verb(server: Served, text: str) -> None:
    """Whatever stands in an argument is answered or refused in a sentence, and no message says where the brain is."""
    exact = {"search": "query", "fetch": "id", "list": "path", "why": "id", "briefing": "prompt", "remember": "text"}
    calls = [*exact.items(), ("search", "cursor"), ("remember", "about"), ("remember", "key"), ("ask", "conversation")]
    more = {"search": {"query": "x"}, "remember": {"text": "x"}, "ask": {"text": "x"}}
    for tool, field in calls:
        reply = call(server, tool, **{**more.get(tool, {}), field: text})
        assert reply.status in (200, 400), (tool, reply.raw)
        assert str(server.brain.root).encode() not in reply.raw


def test_nobody_is_called_like_a_process(server: Served) -> None:
    """The journal says who changed what by a name that no client can take: not the person's, nor a plugin's."""
    (page, *_) = (hit["id"] for hit in call(server, "search", query="Portland").json["results"])
    for name in ("person", "promotion", "", "person:ada", "cli:open", "reflection:x", "mcp:User", "v1:me\x9b"):
        arguments = {"id": page, "change": "replace", "text": f"{name or 'nobody'} was here"}
        assert 200 == server.send("POST", "/api/suggest", arguments, {"X-Brainiac-Client": name}).status
    by = [event.by for event in server.brain.journal.events(kinds={ProposalMade})]
    unknown = ["api:unknown"] * 3
    assert [*unknown, "api:person ada", "api:cli open", "api:reflection x", "mcp:unknown", "api:v1 me"] == by


@pytest.mark.parametrize(
    "name", ["x" * 10_000, "漢" * 4_000, "/".join(["a"] * 2_000), "../" * 3_000, "a^" + "x" * 10_000]
)
def test_ids_of_any_length_and_depth_are_refused_with_a_sentence(server: Served, name: str) -> None:
    """An id, a path or a conversation that no file can have is the caller's mistake and no bug; nothing is written."""
    before = sorted((server.brain.root / "inbox").rglob("*"))
    for verb, arguments in (
        ("fetch", {"id": name}),
        ("why", {"id": name}),
        ("list", {"path": name}),
        ("remember", {"text": "I have a boat.", "about": name}),
        ("ask", {"text": "Where do I live?", "conversation": name}),
        ("suggest", {"id": name, "change": "forget"}),
    ):
        reply = call(server, verb, **arguments)
        assert 400 == reply.status, verb
        assert "bug" not in reply.json["error"]["message"]
    assert before == sorted((server.brain.root / "inbox").rglob("*"))


def test_the_status_names_no_place_of_this_machine(server: Served) -> None:
    """Neither the brain's folder nor the person's: it is named alone, also in a problem; odd names do not break it."""
    root = server.brain.root
    (root / "inbox/by\udcffte.md").write_text("My boat is called Ada.")
    (root / "plugins/by\udcffte.py").write_text("")
    (root / "inbox/x.docx").write_bytes(b"x")
    server.brain.places.config.parent.mkdir(parents=True, exist_ok=True)
    server.brain.places.config.write_text("nonsense: 1\n")
    (server.brain.places.state / "state.db.damaged").write_bytes(b"x")
    reply = server.send("GET", "/api/status")
    assert (200, root.name) == (reply.status, reply.json["brain"])
    assert any("nonsense" in problem for problem in reply.json["problems"])
    assert any("damaged" in problem for problem in reply.json["problems"])
    for place in (root, server.brain.places.state, server.brain.places.config, Path.home()):
        assert str(place) not in reply.raw.decode()
    assert ["inbox/x.docx: files of this type are not read"] == reply.json["unread"]


def test_private_pages_pass_neither_status_nor_events(server: Served) -> None:
    """Not by name, not as a count, not as an event; an open page beside it is told."""
    call(server, "remember", text="My heron is called Ada.")
    before = server.send("GET", "/api/status").json["counts"]["memories"]
    (server.brain.root / FOLDER / "diary.md").write_text("---\nprivate: true\n---\n# Diary\n\n- Code 4711. ^d1\n")
    (server.brain.root / FOLDER / "open.md").write_text("# Open\n\n- A heron lives here. ^o1\n")
    (server.brain.root / "inbox/secret.md").write_text("---\nprivate: true\n---\nMy code is 4711.\n")
    (server.brain.root / "inbox/off.md").write_text("/off My code is 4711.\n")
    seen = server.brain.journal.last()[1]
    server.brain.observed.adopt()
    status = server.send("GET", "/api/status")
    assert before + 1 == status.json["counts"]["memories"]
    assert b"diary" not in status.raw
    assert b"secret" not in status.raw
    told = events_after(server, seen, 1)
    assert any(f"{FOLDER}/open.md" in event["paths"] for event in told)
    assert "diary" not in str(told)
    assert "off" not in str(told)


def test_a_door_learns_nothing_of_a_private_exchange(server: Served) -> None:
    """Not that there was one, not when, not how many: of all that was recorded the open exchange alone is told."""
    call(server, "remember", text="My heron is called Ada.")
    seen = server.brain.journal.last()[1]
    counted = server.send("GET", "/api/status").json["counts"]["exchanges_in_stm"]
    texts = {
        "secret.md": "---\nprivate: true\n---\n/todo water the sundew\n",
        "off.md": "/off\nWhat of it?\n",
        "open.md": "A heron.\n",
    }
    for name, text in texts.items():
        say_to(server.brain, name, text)
    assert counted + 1 == server.send("GET", "/api/status").json["counts"]["exchanges_in_stm"]
    recorded = [event.id for event in server.brain.journal.events()]
    told = events_after(server, seen, 3)
    assert ["note-edited", "prompt-answered", "exchange-reflected"] == [event["kind"] for event in told]
    assert recorded[-3:] == [event["id"] for event in told]


def events_after(server: Served, event: str, number: int) -> list[dict[str, Any]]:
    """Return the first events of the stream after one."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"Authorization": f"Bearer {server.token}"} | ({"Last-Event-ID": event} if event else {})
    connection.request("GET", "/api/events", headers=headers)
    answer = connection.getresponse()
    assert 200 == answer.status
    told: list[dict[str, Any]] = []
    while len(told) < number:
        line = answer.readline().decode()
        if line.startswith("data: "):
            told.append(json.loads(line.removeprefix("data: ")))
    connection.close()
    return told


def test_events_go_on_where_a_client_left(server: Served) -> None:
    """Each once and in order, however often the line breaks; an id that no event has is told."""
    call(server, "remember", text="My heron is called Ada.")
    before = server.brain.journal.last()[1]
    for number in range(3):
        call(server, "remember", text=f"Heron {number}.", key=str(number))
    first = events_after(server, before, 2)
    rest = events_after(server, first[-1]["id"], 2)
    again = events_after(server, before, 4)
    assert [event["id"] for event in first + rest] == [event["id"] for event in again]
    assert sorted(event["id"] for event in again) == [event["id"] for event in again]
    assert 400 == server.send("GET", "/api/events", headers={"Last-Event-ID": "never"}).status


def test_the_token_is_printed(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """By itself for a shell, with the address for a script."""
    shell = Shell(capsys, str(server.brain.root))
    assert server.token == shell("token").out.strip()
    assert {"token": server.token, "url": server.url} == shell("token", "--json").json
