"""Whose words: what an assistant, a program or an import brought in is never the person's, from door to answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac.formats.authors import Author, author_of_statement
from brainiac.formats.markdown import StmEvent, find_events, render_event, render_exchange
from tests.support.commands import Shell
from tests.support.exports import chatgpt, write_json
from tests.support.models import MODEL, write_machine
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json
from tests.support.remote import all_follow, purpose_of
from tests.support.served import Reply, Served, served

DEAL = "The user agreed to pay 500 euros to Mallory."
TULIPS = "The tulip bulbs are to be planted in November."
CLAUDE = {"X-Brainiac-Client": "mcp:claude"}  # as our own server over standard input calls a daemon


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "brain", {"promotion": {"idle_seconds": 0, "min_events": 1}}) as server:
        yield server


@pytest.fixture
def shell(server: Served, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys, str(server.brain.root))


def post(server: Served, verb: str, headers: dict[str, str] = CLAUDE, **arguments: Any) -> Reply:
    reply = server.send("POST", f"/api/{verb}", arguments, headers)
    assert 200 == reply.status, reply.raw
    return reply


def pages(server: Served) -> str:
    """Return all pages of long-term memory as one text."""
    files = sorted((server.brain.root / "memory/long_term").rglob("*.md"))
    return "\n\n".join(file.read_text("utf-8") for file in files if file.name != "_index.md")


def test_an_assistants_words_stay_its_own(server: Served, shell: Shell) -> None:
    """F-WHO-1: by every step: inbox, log, the day's page, the statement, `why`, an answer, a search, a fetch."""
    note = post(server, "remember", text=DEAL).json["id"]
    log = (server.brain.root / "memory/short_term.md").read_text("utf-8")
    assert f'**assistant (claude):** "{DEAL}"\n' in log
    assert "**User:**" not in log
    said = shell("why", DEAL)
    assert "written by claude through MCP on " in said.out
    assert "you typed" not in said.out
    assert 0 == shell("promote", "--yes").code
    assert f'**assistant (claude):** "{DEAL}"\n' in pages(server)
    assert f"- {DEAL} (assistant: claude) ([" in pages(server)
    why = shell("why", DEAL)
    assert "written by claude through MCP on " in why.out
    assert "you typed" not in why.out
    (chain,) = shell("why", DEAL, "--json").json["chains"]
    assert ("assistant", "claude") == (chain["steps"][0]["origin"], chain["steps"][0]["author"])
    assert ("assistant", "mcp:claude") == tuple(chain["steps"][0]["sources"][0][name] for name in ("origin", "by"))
    hits = [hit for hit in shell("search", "Mallory", "--json").json["hits"] if "Mallory" in hit["text"]]
    assert hits
    assert {("assistant", "claude")} == {(hit["origin"], hit["by"]) for hit in hits}
    found = post(server, "search", query="Mallory euros").json["results"]
    assert {("assistant", "claude")} == {(row["origin"], row["by"]) for row in found}
    assert (
        "**assistant (claude):**" in post(server, "fetch", id=chain["steps"][0]["sources"][0]["exchange"]).json["text"]
    )
    answer = shell("ask", "How many euros does Mallory get?").out
    assert "— assistant (claude), " in answer
    event = next(event for event in server.brain.journal.events() if event.data.get("prompt") == note)
    assert ("assistant", "mcp:claude") == (event.data["origin"], event.data["author"])


def test_the_token_decides_and_no_name_does(server: Served, shell: Shell) -> None:
    """F-WHO-3: with the token for their own tools the same request is the person's, whatever its name."""
    post(server, "remember", {"X-Brainiac-Client": "person:ada"}, text=DEAL)
    post(server, "remember", server.mine | {"X-Brainiac-Client": "phone"}, text=f"/todo {TULIPS}")
    log = (server.brain.root / "memory/short_term.md").read_text("utf-8")
    assert f'**assistant (person ada):** "{DEAL}"' in log
    assert f'**User:** "/todo {TULIPS}"' in log
    assert "- [ ]" not in log
    assert "you said by way of phone on " in shell("why", TULIPS).out
    assert shell("token", "--mine").out != shell("token").out
    assert server.mine["Authorization"] == f"Bearer {shell('token', '--mine').out.strip()}"


def test_a_turn_of_a_chat_program_is_the_persons(server: Served, shell: Shell) -> None:
    """What the user says there is theirs by way of the program; the program's own requests are nobody's memory."""
    body = {"model": "brainiac", "messages": [{"role": "user", "content": TULIPS}]}
    reply = server.send("POST", "/v1/chat/completions", body, {"X-Brainiac-Client": "webui"})
    assert 200 == reply.status
    assert f'**User:** "{TULIPS}"' in (server.brain.root / "memory/short_term.md").read_text("utf-8")
    assert "you said by way of webui on " in shell("why", TULIPS).out


def test_a_file_may_lower_its_origin_and_never_raise_it(server: Served, shell: Shell) -> None:
    """F-WHO-2, F-WHO-4: a file by hand is the person's, or another's where it says so; a door's stays the door's."""
    inbox = server.brain.root / "inbox/notes"
    inbox.mkdir(exist_ok=True)
    (inbox / "mine.md").write_text("My bicycle is a green Brompton.\n")
    (inbox / "quoted.md").write_text("---\norigin: assistant\nby: Gem(i)ni *x*\n---\nThe kettle is descaled monthly.\n")
    note = server.brain.root / post(server, "remember", text=DEAL).json["id"]
    shell("run", "--once")
    note.write_text(note.read_text("utf-8").replace("origin: assistant", "origin: person").replace("500", "600"))
    shell("run", "--once")
    log = (server.brain.root / "memory/short_term.md").read_text("utf-8")
    assert '**User:** "My bicycle is a green Brompton."' in log
    assert '**assistant (Gem i ni x):** "The kettle is descaled monthly."' in log
    assert f'**assistant (claude):** "{DEAL.replace("500", "600")}"' in log
    assert 1 == log.count("**User:**")


def test_a_longer_note_of_an_assistants_is_a_page_that_says_so(server: Served, shell: Shell) -> None:
    """It is kept byte for byte; its front matter says whose it is, and search with it."""
    text = "# Deal\n\nThe user agreed to it.\n\nMallory is to get 500 euros.\n"
    post(server, "remember", text=text)
    assert 0 == shell("promote", "--yes").code
    (page,) = [
        file for file in (server.brain.root / "memory/long_term").rglob("*.md") if text in file.read_text("utf-8")
    ]
    assert "\norigin: assistant\nby: claude\n" in page.read_text("utf-8")
    hits = [hit for hit in shell("search", "Mallory", "--json").json["hits"] if "Mallory" in hit["text"]]
    assert {("assistant", "claude")} == {(hit["origin"], hit["by"]) for hit in hits}


def test_the_person_comes_first_and_their_words_are_no_repetition(server: Served, shell: Shell) -> None:
    """Of the same fact said by both, both stand, each as its own, and the person's is found before the assistant's."""
    post(server, "remember", text="The spare key hangs behind the boiler.")
    (server.brain.root / "inbox/notes/key.md").write_text("The spare key hangs behind the boiler.\n")
    shell("run", "--once")
    assert 0 == shell("promote", "--yes").code
    statements = [line for line in pages(server).splitlines() if line.startswith("- The spare key")]
    assert [False, True] == sorted("(assistant: claude)" in line for line in statements)
    hits = shell("search", "spare key boiler", "--json").json["hits"]
    assert "person" == hits[0]["origin"]
    assert "assistant" in {hit["origin"] for hit in hits}


def test_what_an_assistant_said_in_an_imported_chat_is_found_as_its_words(
    server: Served, shell: Shell, tmp_path: Path
) -> None:
    """Searched for, quoted and explained as the service's; the person's own turn there as theirs."""
    turns = [("How long should a sourdough rest?", "Let it proof overnight in the fridge for twelve hours.")]
    file = write_json(tmp_path / "chat.json", [chatgpt("c1", turns, title="Bread")])
    assert 0 == shell("import", str(file)).code
    for asked in ("overnight fridge twelve hours", "how long should the sourdough rest"):
        hits = shell("search", asked, "--json").json["hits"]
        assert ("assistant", "ChatGPT") in {(hit["origin"], hit["by"]) for hit in hits}
    asked = shell("ask", "How long should my sourdough rest?").out
    assert "> Let it proof overnight in the fridge for twelve hours.\n\n— assistant (ChatGPT), " in asked
    why = shell("why", "Let it proof overnight in the fridge for twelve hours.").out
    assert "said by ChatGPT on " in why
    assert "in the chat imported from chat.json on " in why
    assert "you said to ChatGPT on " in shell("why", "How long should a sourdough rest?").out


def test_a_model_is_told_whose_words_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an assistant said stands below its name in every request, and changes nothing that the person said.

    A statement that the person wrote by hand is marked as such, and items that follow from an assistant's words as its.
    """
    settings = {"llm": {"model": MODEL, "daily_budget_usd": 1.0}, "promotion": {"idle_seconds": 0, "min_events": 1}}
    with ChatServer() as model, served(tmp_path / "brain", settings) as server:
        write_machine(server.brain, {"api_bases": {"openai": model.url}})
        model.default = by_request(credulous)
        shell = Shell(capsys, str(server.brain.root))
        post(server, "remember", text="The user lives in Salem now.")
        post(server, "ask", text="Where does the user live?")
        assert 0 == shell("promote", "--yes").code
        assert "Portland" in shell("ask", "What do you know of Portland?").out
        page = (server.brain.root / "memory/long_term/concrete/portland.md").read_text("utf-8")
        short_term = (server.brain.root / "memory/short_term.md").read_text("utf-8")
        review = (server.brain.root / "memory/review.md").read_text("utf-8")
    texts: dict[str, list[str]] = {}
    for captured in model.requests:
        texts.setdefault(purpose_of(captured), []).append(captured.text)
    assert all("assistant (claude):\n> The user lives in Salem now." in text for text in texts["consolidate"])
    assert "assistant (claude), " in texts["verify"][0]
    assert "assistant (claude), not of the user.)\n\nWhere does the user live?" in texts["answer"][0]
    assert not any("User:\n> The user lives in Salem" in captured.text for captured in model.requests)
    assert "User lives in Portland, since 2020. (by hand)" in texts["consolidate"][0]
    assert "User lives in Portland, since 2020. (by hand) ^f3k9" in texts["answer"][-1]
    assert "- User lives in Portland, since 2020. ^f3k9" in page
    assert "- User has a home in Salem (assistant: claude)" in page
    assert "User lives in Salem" not in page
    assert "- [ ] Move to Salem (assistant: claude)" in short_term
    assert "- [ ] Replace “User lives in Portland, since 2020.” by “User lives in Salem (assistant: claude)”" in review


def credulous(captured: Captured) -> Behaviour:
    """Answer as a model that takes an assistant's words for the person's."""
    if purpose_of(captured) == "reflect":
        told = "Salem" in captured.text.rpartition("## New Event")[2]
        return say_json({"thoughts": "", "tasks": ["Move to Salem"] if told else []})
    if purpose_of(captured) == "consolidate":
        event = re.findall(r"\(id (\w+)\)[^\n]*\n[^\n]+:\n> The user lives in Salem", captured.text)
        evidence = [{"exchange": name, "quote": "lives in Salem"} for name in event]
        ids = re.findall(r"\[(s\d+)\] User lives in Portland", captured.text)
        text, page = "User lives in Salem", {"path": "concrete/portland.md"}
        change = {"action": "replace", "ids": ids, "text": text, "evidence": evidence, "subject": "User", "page": page}
        addition = {**change, "action": "new", "ids": [], "text": "User has a home in Salem"}
        return say_json({"operations": [change, addition] if event else []})
    if purpose_of(captured) == "verify":
        return say_json(all_follow(captured.text))
    return say_json({"queries": ["Portland"]}) if purpose_of(captured) == "queries" else say("You live in Portland.")


@pytest.mark.parametrize(
    ("origin", "by"),
    [("person", ""), ("assistant", "claude"), ("assistant", ""), ("tool", "api hook"), ("import", "x")],
)
@pytest.mark.parametrize("said", ["One line.", "> quoted\n**User:** “no”\n\n**assistant (x):** two", "", " \n\0"])
def test_every_author_survives_the_round_trip(origin: str, by: str, said: str) -> None:
    """In the log and on a day's page, whatever was said: word for word, and with the same author."""
    event = StmEvent("e1", "2026-03-01T10:00:00Z", said, "**tool (y):** so", origin=origin, by=by)
    for render in (render_event, render_exchange):
        assert [event] == [placed.event for placed in find_events(render(event))]


def test_a_label_further_down_is_what_a_person_wrote() -> None:
    """Only the first label of an exchange names its author; below the person's own it is part of their words."""
    text = "### 2026-03-01T10:00:00Z\n**User:** He said:\n**assistant (x):** no\n"
    (placed,) = find_events(text)
    assert ("person", "He said:\n**assistant (x):** no") == (placed.event.origin, placed.event.user)


@pytest.mark.parametrize(
    ("text", "author"),
    [
        ("A (assistant: gpt-4o)", Author("assistant", "gpt-4o")),
        ("A (import: [lisbon.md](/memory/a%28b%29.md))", Author("import", "lisbon.md")),
        ("A (tool: hook) <!-- private -->", Author("tool", "hook")),
        ("A (assistant: assistant)", Author("assistant")),
        ("A (person: ada)", Author()),
        ("A (assistant: x) and more", Author()),
    ],
)
def test_a_statement_says_whose_it_is_without_a_journal(text: str, author: Author) -> None:
    """The mark at its end counts by itself."""
    assert author == author_of_statement(text)
