"""Whether hidden words stay hidden, and whether an assistant's words are ever taken for the person's: 60 canaries.

    python benchmarks/canaries.py [--keyless]

Twenty private, twenty off-record and twenty assistant-written texts, each with a word of its own, go into a scratch
brain by every way: files, commands, MCP over stdio, REST, OpenAI's API, imports and the answers of a model, which is
one on loopback that counts as remote. It promotes and organizes. Then all doors, `/api/events`, the pages, `why`,
`search`, answers without a model, and every request to the model are read. Prints one line of JSON: how many words of
hidden texts came through doors, events and requests, and how many words of the assistant's stand anywhere as the
person's, each with where; `seen` counts how many of the assistant's were read at all. Exit 1 where either is not 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.brain import Brain
from brainiac.cli.app import run
from brainiac.formats.authors import author_in, author_of_statement
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import find_events, text_outside_events
from brainiac.server.address import read_address, token_of
from brainiac.tree import LocalPlaces
from tests.support.exports import chatgpt, write_json
from tests.support.living import Living, living, living_brain, model_machine, places_of
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json
from tests.support.pipeline import eventually
from tests.support.remote import elsewhere, purpose_of, read_twice
from tests.support.served import free_port

MODEL = "openai/test-model"
PRIVATE, OFF, ASSISTANTS = range(20), range(20, 40), range(40, 60)
_LABEL = re.compile(r"(?:##? .*|### \[.*|(?:\[w\d+\] |Before it, )?(User|AI|Thoughts|assistant|tool|import)\b[^:>]*:)$")
OTHERS = "not of the user.)"  # ends the line above a prompt that is another's


def word(number: int) -> str:
    return f"kanarie{number:02d}qz"


def text(number: int) -> str:
    return f"The topic{number:02d} {word(number)} hangs behind the boiler."


class Echo:
    """A model that makes of every exchange a fact, a task and a statement, quoting what it was shown."""

    def __call__(self, captured: Captured) -> Behaviour:
        purpose, shown = purpose_of(captured), captured.text
        if purpose == "answer":
            asked = re.findall(r"What is topic(\d\d)\?", shown)
            return say(text(int(asked[-1])) if asked and int(asked[-1]) in ASSISTANTS else "Noted.")
        return say_json(self.typed(purpose, shown))

    def typed(self, purpose: str, shown: str) -> dict[str, Any]:
        if purpose == "reflect":
            said = re.findall(r"^> (The topic.+)", shown.rpartition("## New Event")[2], re.MULTILINE)
            return {"thoughts": "So.", "facts": said, "tasks": [f"See to it: {line}" for line in said]}
        if purpose == "consolidate":
            quotes = re.findall(r"\(id (\w+)\)[^\n]*\n[^\n]+:\n> (The topic[^\n]+)", shown)
            quotes += re.findall(r"\(id (\w+)\)[^\n]*\n(?:[^\n]+\n)*?AI:\n> (The topic[^\n]+)", shown)
            return {"operations": [operation(*quote) for quote in dict.fromkeys(quotes)]}
        others: dict[str, dict[str, Any]] = {
            "queries": {"queries": re.findall(r"topic\d\d", shown)[-3:]},
            "verify": {
                "verdicts": [{"item": n, "verdict": "follows"} for n in re.findall(r"^> \[(\d+)\]", shown, re.M)]
            },
            "synthesize": {"kind": "concrete", "folder": "things", "title": "Things"},
            "summarize": {"text": "So."},
            "organize": {"proposals": []},
        }
        return others[purpose]


def operation(exchange: str, quote: str) -> dict[str, Any]:
    evidence = [{"exchange": exchange, "quote": quote}]
    return {"action": "new", "text": quote, "subject": "User", "page": {"title": "Things"}, "evidence": evidence}


class Doors:
    """A brain as programs, commands and a client of MCP reach it."""

    def __init__(self, daemon: Living, port: int) -> None:
        self.root, self.port, self.token = daemon.root, port, token_of(places_of(daemon.root).state)
        eventually(lambda: read_address(places_of(daemon.root).state) is not None, "a server", 60)

    def send(self, path: str, body: Any = None, method: str = "POST") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        read = connection.getresponse().read()
        connection.close()
        return json.loads(read)

    def events(self, after: str) -> str:
        """Return all events since one, as the stream gives them."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3)
        connection.request("GET", f"/api/events?after={after}", headers={"Authorization": f"Bearer {self.token}"})
        response, parts = connection.getresponse(), list[bytes]()
        with contextlib.suppress(TimeoutError):
            while part := response.read1(65536):
                parts.append(part)
        connection.close()
        return b"".join(parts).decode()

    def mcp(self, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
        """Return what a client of MCP over stdio gets for each call."""
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters

        line = ["-m", "brainiac", "--brain", str(self.root), "mcp"]

        async def use() -> list[str]:
            async with Client(StdioServerParameters(command=sys.executable, args=line, env=dict(os.environ))) as client:
                return [str((await client.call_tool(*call)).content[0].text) for call in calls]

        return asyncio.run(use())


def command(root: Path, *arguments: str) -> str:
    """Run a command in this process and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run([*arguments, "--brain", str(root)])
    return out.getvalue()


def put_in(doors: Doors, daemon: Living, folder: Path, *, is_keyless: bool) -> None:
    """Bring all texts in, each by another way in turn."""
    root, calls = doors.root, list[tuple[str, dict[str, Any]]]()
    hidden = {
        PRIVATE: ["---\nprivate: true\n---\n{}", "/private\n{}", "{} <!-- private -->"],
        OFF: ["---\nremember: false\nmodel: offline\n---\n{}", "---\nmodel: offline\n---\n/off\n{}"],
    }
    for numbers, forms in hidden.items():
        option = "--private" if numbers is PRIVATE else "--off-record"
        for number in numbers:
            form = forms[number % len(forms)].format(text(number)) + "\n"
            match number % 5:
                case 0:
                    daemon.drop(f"{number}.md", form)
                case 1:
                    daemon.drop(f"notes/{number}.md", form)
                case 2:
                    command(root, "ask", text(number), option, "--model", "offline")
                case 3 if numbers is PRIVATE:
                    calls.append(("remember", {"text": text(number), "private": True}))
                case 4 if numbers is PRIVATE:
                    doors.send("/api/remember", {"text": text(number), "private": True})
                case _:
                    daemon.drop(f"talk{number}/a.md", form)
    page = root / "memory/long_term/concrete/hidden.md"
    page.write_text(f"---\nprivate: true\n---\n# Hidden {word(0)}\n\n- {text(0)} ^h1\n")
    private = write_json(folder / "private.json", [chatgpt("p", [(text(1), text(2))], title="Hidden")])
    command(root, "import", str(private), "--private")
    for number in ASSISTANTS:
        match number % 6:
            case 0:
                calls.append(("remember", {"text": text(number)}))
            case 1:
                doors.send("/api/remember", {"text": text(number)})
            case 2:
                doors.send("/api/ask", {"text": text(number)})
            case 3:
                write_json(folder / f"{number}.json", [chatgpt(f"c{number}", [("Where is it?", text(number))])])
                command(root, "import", str(folder / f"{number}.json"))
            case 4:
                daemon.drop(f"notes/{number}.md", f"---\norigin: assistant\nby: gpt\n---\n# Note\n\n{text(number)}\n")
            case 5 if is_keyless:  # an answer that another program saved
                daemon.drop(f"{number}.md", "---\nmodel: none/none\n---\nWhere does it hang?\n")
                daemon.drop(f"{number}.response.md", text(number) + "\n")
            case _:
                daemon.answer(f"{number}.md", f"What is topic{number}?\n")
    doors.mcp(calls)
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": text(41)}]
    messages = [*said, {"role": "user", "content": "The shed is green."}]
    doors.send("/v1/chat/completions", {"model": "brainiac", "messages": messages})


def read_out(doors: Doors, first: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each door with what it gives."""
    yield "events", doors.events(first)
    yield "status", json.dumps(doors.send("/api/status", method="GET"))
    calls: list[tuple[str, dict[str, Any]]] = [("list", {}), ("fetch", {"id": "memory/short_term.md"})]
    for number in range(60):
        topic = f"topic{number:02d}"
        asked = f"The {topic} hangs behind the boiler."
        calls += [
            ("search", {"query": topic, "limit": 20}),
            ("why", {"id": asked}),
            ("fetch", {"id": f"inbox/{number}.md"}),
        ]
        calls += [("briefing", {"prompt": f"Where is {topic}?"})]
    for name, arguments in calls:
        answer = doors.send(f"/api/{name}", arguments)
        yield f"rest {name}", json.dumps(answer, ensure_ascii=False)
        for row in answer.get("results", ()):
            yield "rest fetch", json.dumps(doors.send("/api/fetch", {"id": row["id"]}), ensure_ascii=False)
            yield "rest why", json.dumps(doors.send("/api/why", {"id": row["id"]}), ensure_ascii=False)
    for (name, _), answer in zip(calls, doors.mcp(calls), strict=True):
        yield f"mcp {name}", answer
    for number in range(60):
        body = {"model": "brainiac/recall", "messages": [{"role": "user", "content": f"topic{number:02d}"}]}
        yield "v1", json.dumps(doors.send("/v1/chat/completions", body), ensure_ascii=False)


# --- whose words ---------------------------------------------------------------------------------------------------


def taken_in_pages(root: Path) -> Iterator[tuple[str, int]]:
    """Yield place and number of an assistant's words that a file of memory gives to the person."""
    for file in [*(root / "memory").rglob("*.md")]:
        content = file.read_text("utf-8")
        meta, start = split(content)
        events = list(find_events(content, start))
        for placed in events:
            yield from found(f"event in {file.name}", placed.event.user if placed.event.origin == "person" else "")
        for line in text_outside_events(content[start:], list(find_events(content[start:]))).splitlines():
            plain = re.sub(r"(?: \(\[\d{4}.*?\)\))?(?: \^\w+)?$", "", line)  # without day and block id
            is_others = author_of_statement(plain).origin != "person" or author_in(meta).origin != "person"
            if file.name != "review.md" and not is_others:
                yield from found(f"line in {file.name}", line)


def found(place: str, said: str) -> Iterator[tuple[str, int]]:
    yield from ((place, number) for number in ASSISTANTS if word(number) in said)


def taken_in_request(place: str, shown: str) -> Iterator[tuple[str, int]]:
    """Yield an assistant's words that a model is shown below the person's label, or below none."""
    lines = shown.splitlines()
    for number, line in enumerate(lines):
        if re.search(r"\((?:assistant|tool|import): ", line) or not any(word(each) in line for each in ASSISTANTS):
            continue
        above = [other.strip() for other in lines[:number][::-1]]
        label = next((other for other in above if _LABEL.match(other) or other.endswith(OTHERS)), "")
        label = re.sub(r"^\[w\d+\] ", "", label)  # the number of a passage of which a second reader is asked
        # a statement names the passages that it rests on; below a turn before, the answer has an ellipsis
        is_others = label.startswith("Before it, ") and (line.startswith("> …") or "it, User" not in label)
        if label == "## Statements" or is_others:
            continue
        if not (label.startswith(("AI", "Thoughts", "assistant", "tool", "import")) or label.endswith(OTHERS)):
            yield from found(f"{place} below “{label[:40]}”", line)


def taken_in_answers(root: Path) -> Iterator[tuple[str, int]]:
    """Yield an assistant's words that a command shows as the person's."""
    for number in ASSISTANTS:
        asked = f"topic{number:02d}"
        for hit in json.loads(command(root, "search", asked, "--json"))["hits"]:
            if hit["origin"] == "person":
                yield from found("search", hit["text"])
        told = command(root, "why", text(number)).splitlines()
        yield from found("why", "\n".join(line for line in told if re.search(r"\byou (?:typed|said)", line)))
        quotes = re.split(r"\n(?=> )", command(root, "ask", f"Where is the {asked}?", "--model", "offline"))
        named = re.compile(r"^— (?:assistant|tool)", re.MULTILINE)
        yield from found("answer", "\n".join(part for part in quotes if not named.search(part)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether hidden words stay hidden, and whose an assistant's are.")
    parser.add_argument("--keyless", action="store_true", help="without a model")
    is_keyless = parser.parse_args().keyless
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, ChatServer() as server:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = str(Path(scratch) / name.lower())
        os.environ["OPENAI_API_KEY"] = "test"
        server.default, port = by_request(Echo()), free_port()
        llm = {} if is_keyless else {"model": MODEL, "daily_budget_usd": 1000.0, "prices": {MODEL: [0.1, 0.1]}}
        config = {"llm": llm, "recall": {"embedder": "none"}, "server": {"port": port}, "inbox": {"settle_ms": 20}}
        root = living_brain(Path(scratch) / "brain", yaml.safe_dump(config))
        model_machine(elsewhere(server))
        with LocalPlaces.of(root, "default").config.open("a", encoding="utf-8") as machine:
            machine.write("serve: true\n")  # no setting of the brain opens a port
        with living(root) as daemon:
            doors = Doors(daemon, port)
            first = next(iter(Brain(root).journal.events())).id
            put_in(doors, daemon, Path(scratch), is_keyless=is_keyless)
            eventually(lambda: not command(root, "status", "--json").count('"pending": [{'), "all to be taken in", 60)
            before = list(read_out(doors, first))
            daemon.terminate()
        taken = [*taken_in_pages(root), *taken_in_answers(root)]
        for line in (("promote", "--yes"), ("promote", "--past", "--yes"), ("organize",), ("reindex",)):
            command(root, *line)
        with living(root) as daemon:
            read = [*before, *read_out(Doors(daemon, port), first)]
            daemon.terminate()
        taken += [*taken_in_pages(root), *taken_in_answers(root)]
        requests = [(f"request {purpose_of(captured)}", captured) for captured in server.requests]
        taken += [row for place, captured in requests for row in taken_in_request(place, captured.text)]
        told = [*read, *((place, read_twice(captured)) for place, captured in requests)]
        for place, given in read:
            if place.endswith("briefing"):
                taken += taken_in_request(place, json.loads(given).get("text", given.replace("\\n", "\n")))
        hidden = sorted({(place, n) for place, given in told for n in [*PRIVATE, *OFF] if word(n) in given})
        seen = {n for _, given in told for n in ASSISTANTS if word(n) in given}
    figures = {"texts": 60, "model": not is_keyless, "requests": len(requests), "read": len(told), "seen": len(seen)}
    figures |= {"hidden_found": len(hidden), "assistants_as_persons": len(set(taken))}
    print(json.dumps({**figures, "where": [*map(list, hidden), *map(list, sorted(set(taken)))][:40]}))
    sys.exit(bool(hidden or taken))


if __name__ == "__main__":
    main()
