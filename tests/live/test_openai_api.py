"""OpenAI's API at a running daemon, by clients that others wrote: openai, litellm, llm, and openai for Node.

`make clients` installs those that are no libraries of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from brainiac.formats.prompt import parse_prompt, parse_response
from brainiac.server.address import read_address, token_of
from tests.support.living import Living, living, living_brain, model_machine, places_of
from tests.support.openai_server import ChatServer, say
from tests.support.pipeline import eventually
from tests.support.served import free_port

HERON = {"type": "text", "text": "My heron is called Ada."}
SAID = {"role": "user", "content": [HERON]}
CLIENTS = Path(sys.prefix) / "clients"
MACHINE = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True)
class Served:
    """A daemon, its address, and the model behind it."""

    daemon: Living
    url: str
    token: str
    model: ChatServer
    known: frozenset[str] = frozenset()

    def client(self, **headers: str) -> Any:
        import openai

        return openai.OpenAI(base_url=self.url, api_key=self.token, default_headers=headers, max_retries=0, timeout=60)

    def text(self, path: str) -> str:
        """Return the words of a prompt."""
        return parse_prompt(path, (self.daemon.root / path).read_bytes(), at="").text

    def prompts(self) -> list[str]:
        inbox = self.daemon.root / "inbox"
        paths = {
            path.relative_to(self.daemon.root).as_posix()
            for path in inbox.rglob("*.md")
            if ".response" not in path.name and ".error" not in path.name
        }
        return sorted(paths - self.known)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon for all tests, whose model is a server on loopback that counts what it is asked."""
    home, port = tmp_path_factory.mktemp("served"), free_port()
    config = f"inbox: {{settle_ms: 20}}\nserver: {{port: {port}}}\nllm: {{model: openai/m}}\n"
    with ChatServer() as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        for variable in MACHINE:
            patch.setenv(variable, str(home / "machine"))
        model.default = answering
        model_machine(model.url)
        with living(living_brain(home / "brain", config), "--serve") as daemon:
            state = places_of(daemon.root).state
            eventually(lambda: read_address(state) is not None, "a server", 60)
            yield Served(daemon, f"http://127.0.0.1:{port}/v1", token_of(state), model)


@pytest.fixture
def served(running: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The daemon, in this test's environment, without the prompts of the tests before."""
    for variable in MACHINE:
        monkeypatch.setenv(variable, str(running.daemon.root.parent / "machine"))
    return replace(running, known=frozenset(running.prompts()))


def answering(exchange: Any) -> None:
    """Answer as a model does that also writes queries and notes."""
    wants_json = "JSON only" in exchange.request.text
    (say('{"queries": []}') if wants_json else say("Your heron is called Ada."))(exchange)


def test_openai_for_python(served: Served) -> None:
    """Whole and streamed; each turn is a pair of files with the person's words and the client's name."""
    client = served.client(**{"X-Brainiac-Client": "test"})
    assert {"brainiac", "brainiac/recall", "brainiac/openai/m"} == {model.id for model in client.models.list()}
    said = [{"role": "system", "content": "Be nice."}, {"role": "user", "content": "What is my heron called?"}]
    whole = client.chat.completions.create(model="brainiac", messages=said)
    assert "Ada" in whole.choices[0].message.content
    chunks = list(
        client.chat.completions.create(
            model="brainiac", messages=said, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert whole.choices[0].message.content == text
    assert chunks[-1].usage.total_tokens > 0
    first, second = served.prompts()
    prompt = parse_prompt(first, (served.daemon.root / first).read_bytes(), at="")
    assert ("person", "v1:test", "What is my heron called?") == (prompt.origin, prompt.by, prompt.text)
    assert first != second
    response = served.daemon.root / first.replace(".md", ".response.md")
    assert "Ada" in parse_response(first, response.read_bytes()).text


def test_memory_speaks_first_beside_an_answer(served: Served) -> None:
    """A field of ours has what memory says unasked, whole and streamed, once in a conversation; the answer has none.

    Seeds: H1.
    """
    told = "The espresso machine from Rancilio needs descaling with citric acid every March."
    served.daemon.answer("coffee.md", told)
    client = served.client(**{"X-Brainiac-Conversation": "coffee", "X-Brainiac-Client": "pushed"})
    said = [{"role": "user", "content": "Descaling the Rancilio espresso machine took me all evening."}]
    whole = client.chat.completions.create(model="brainiac", messages=said)
    assert told in whole.model_extra["push"]
    assert "citric" not in whole.choices[0].message.content
    said = [{"role": "user", "content": "The Rancilio espresso machine is fine after its descaling."}]
    assert "" == client.chat.completions.create(model="brainiac", messages=said).model_extra["push"]
    told = "The hedge trimmer from Stihl wants two-stroke oil at one to fifty."
    served.daemon.answer("hedge.md", told)
    said = [{"role": "user", "content": "The Stihl hedge trimmer ran out of two-stroke oil."}]
    other = served.client(**{"X-Brainiac-Conversation": "hedge", "X-Brainiac-Client": "another"})
    chunks = list(other.chat.completions.create(model="brainiac", messages=said, stream=True))
    assert [True] == [told in chunk.model_extra["push"] for chunk in chunks if "push" in (chunk.model_extra or {})]


def test_responses_are_refused_with_a_sentence(served: Served) -> None:
    """The other API of OpenAI's says what to use, and its client does not try again; nothing is written."""
    import openai

    with pytest.raises(openai.NotFoundError, match="set the program to chat completions"):
        served.client().responses.create(model="brainiac", input="What is my heron called?")
    assert [] == served.prompts()


def test_a_conversation_is_known_by_header_alone(served: Served) -> None:
    """Named, it is one folder and its files are the context; else the transcript is context and is not kept."""
    named = served.client(**{"X-Brainiac-Conversation": "birds"})
    for text in ("My heron is called Ada.", "What is my heron called?"):
        named.chat.completions.create(model="brainiac", messages=[{"role": "user", "content": text}])
    assert all(path.startswith("inbox/birds/") for path in served.prompts())
    asked = [request.text for request in served.model.requests if "What is my heron called?" in request.text]
    assert any("My heron is called Ada." in text for text in asked)
    before = len(served.prompts())
    told = [
        {"role": "user", "content": "I saw a zebra."},
        {"role": "assistant", "content": "How fine."},
        {"role": "user", "content": "What else than a heron?"},
    ]
    for _ in range(2):  # the same transcript twice is two conversations
        served.client().chat.completions.create(model="brainiac", messages=told)
    assert any("zebra" in request.text for request in served.model.requests)
    assert before + 2 == len(served.prompts())
    assert not any("zebra" in (served.daemon.root / path).read_text() for path in served.prompts())


def test_chores_and_recall_write_nothing(served: Served) -> None:
    """A title is made by the model and noted nowhere; recall quotes without a model."""
    ask = [{"role": "user", "content": "Write a title for a talk about a heron."}]
    task = served.client(**{"X-OpenWebUI-Chat-Id": "c", "X-OpenWebUI-Task": "title_generation"})
    assert (
        "Ada" in task.chat.completions.create(model="brainiac", messages=ask, stream=False).choices[0].message.content
    )
    chat = served.client(**{"X-OpenWebUI-Chat-Id": "c"})
    chat.chat.completions.create(model="brainiac", messages=ask)
    (served.daemon.root / "memory/long_term/heron.md").write_text("# Heron\n\n- Ada the heron likes fish. ^h1\n")
    asked = len(served.model.requests)
    found = served.client().chat.completions.create(
        model="brainiac/recall", messages=[{"role": "user", "content": "heron fish"}]
    )
    assert "likes fish" in found.choices[0].message.content
    assert (asked, []) == (len(served.model.requests), served.prompts())


def test_a_retry_is_answered_once_and_regenerate_supersedes(served: Served) -> None:
    """The same key is the same turn; another answer to the same message replaces the first, in the same files."""
    ask: Any = {"model": "brainiac", "messages": [{"role": "user", "content": "What is my heron called?"}]}
    keyed = served.client(**{"Idempotency-Key": "k1"})
    first = keyed.chat.completions.create(**ask).choices[0].message.content
    calls = len(served.model.requests)
    assert first == keyed.chat.completions.create(**ask).choices[0].message.content
    served.client().chat.completions.create(**ask)
    retried = len(served.prompts())
    served.client().chat.completions.create(**ask, extra_headers={"X-Stainless-Retry-Count": "1"})
    assert 2 == retried == len(served.prompts())
    assert calls < len(served.model.requests)
    head = {"X-OpenWebUI-Chat-Id": "c", "X-OpenWebUI-User-Message-Id": "u1"}
    for answer in ("a1", "a2"):
        chat = served.client(**head, **{"X-OpenWebUI-Message-Id": answer})
        list(chat.chat.completions.create(**ask, stream=True))
    assert 3 == len(served.prompts())
    exchanges = [e for e in events(served) if e["kind"] == "prompt-answered" and "chat-" in str(e["changes"])]
    assert 2 == len(exchanges)


def test_an_edited_message_is_a_revision(served: Served) -> None:
    """The same place in the chat is the same file: it gets the new words, and answer and memory follow; and back again.

    Words that somebody changed in the file by hand stay, and the new ones get a file of their own.
    """
    import openai

    chat = {"X-OpenWebUI-Chat-Id": "edited", "X-OpenWebUI-User-Message-Parent-Id": "a0"}

    def say_it(text: str, message: str) -> list[str]:
        head = chat | {"X-OpenWebUI-User-Message-Id": message, "X-OpenWebUI-Message-Id": f"to {message}"}
        asking: Any = {"model": "brainiac", "messages": [{"role": "user", "content": text}], "stream": True}
        assert "Ada" in "".join(
            chunk.choices[0].delta.content or "" for chunk in served.client(**head).chat.completions.create(**asking)
        )
        return [served.text(path) for path in served.prompts()]

    short_term = served.daemon.root / "memory/short_term.md"
    for text, message in (("My yak is old.", "u1"), ("My gnu is old.", "u2"), ("My yak is old.", "u1")):
        assert [text] == say_it(text, message)
        noted = partial(lambda words: words in short_term.read_text(), text)
        eventually(noted, "the exchange in short-term memory")
        assert ("gnu" in text) == ("gnu is old" in short_term.read_text())
    (path,) = served.prompts()
    file = served.daemon.root / path
    file.write_text(file.read_text().replace("yak", "emu"))
    assert {"My emu is old.", "My kea is old."} == set(say_it("My kea is old.", "u3"))
    keyed = served.client(**{"Idempotency-Key": "k2"})
    keyed.chat.completions.create(model="brainiac", messages=[{"role": "user", "content": "My heron?"}])
    with pytest.raises(openai.BadRequestError, match="another text"):
        keyed.chat.completions.create(model="brainiac", messages=[{"role": "user", "content": "My crane?"}])


def events(served: Served) -> list[dict[str, Any]]:
    lines = (path.read_text().splitlines() for path in (served.daemon.root / "logs/journal").rglob("*.jsonl"))
    return [json.loads(line) for part in lines for line in part]


def test_litellm(served: Served) -> None:
    """The library that Brainiac itself uses, whole and streamed."""
    import litellm

    say_it: Any = {"messages": [{"role": "user", "content": "What is my heron called?"}], "model": "openai/brainiac"}
    reply = litellm.completion(**say_it, api_base=served.url, api_key=served.token)
    assert "Ada" in reply.choices[0].message.content
    pieces = litellm.completion(**say_it, api_base=served.url, api_key=served.token, stream=True)
    assert "Ada" in "".join(piece.choices[0].delta.content or "" for piece in pieces)


def test_the_llm_program(served: Served) -> None:
    """A question, and one that goes on: `llm` sends the whole transcript, of which only what is new is kept."""
    llm = CLIENTS / "llm/bin/llm"
    if not llm.exists():
        pytest.skip("needs `make clients`")
    folder = served.daemon.root.parent / "llm"
    folder.mkdir()
    entry = f"- {{model_id: b, model_name: brainiac, api_base: '{served.url}', api_key_name: b}}\n"
    (folder / "extra-openai-models.yaml").write_text(entry)
    environment = {**os.environ, "LLM_USER_PATH": str(folder)}
    for more in (["What is my heron called?"], ["-c", "And does it like fish?"]):
        command = [str(llm), "-m", "b", "--key", served.token, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert "Ada" in done.stdout, done.stderr
    assert ["And does it like fish?", "What is my heron called?"] == sorted(map(served.text, served.prompts()))


NODE = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: process.argv[3] });
const messages = [{ role: "user", content: "What is my heron called?" }];
const whole = await client.chat.completions.create({ model: "brainiac", messages });
console.log(whole.choices[0].message.content);
let text = "";
for await (const part of await client.chat.completions.create({ model: "brainiac", messages, stream: true }))
  text += part.choices[0]?.delta?.content ?? "";
console.log(text);
"""


@pytest.fixture
def node_modules() -> Path:
    """Return the folder with the clients that are written for Node."""
    if not shutil.which("node") or not (CLIENTS / "node_modules/openai").is_dir():
        pytest.skip("needs node and `make clients`")
    return CLIENTS


def test_openai_for_node(served: Served, node_modules: Path) -> None:
    """Whole and streamed."""
    script = node_modules / f"brainiac-{os.getpid()}.mjs"
    script.write_text(NODE)
    try:
        done = subprocess.run(
            ["node", str(script), served.url, served.token], capture_output=True, text=True, timeout=240
        )
    finally:
        script.unlink()
    assert 2 == done.stdout.count("Ada"), done.stderr


def test_the_inspector_of_mcp(served: Served, node_modules: Path) -> None:
    """Its command line lists our tools over stdio and calls one."""
    inspector = [str(node_modules / "node_modules/.bin/mcp-inspector"), "--cli", sys.executable, "-m", "brainiac"]
    inspector += ["--brain", str(served.daemon.root), "mcp"]
    for more, expected in (
        (["--method", "tools/list"], '"remember"'),
        (["--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=heron"], "fresh"),
    ):
        done = subprocess.run(
            [*inspector, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
        )
        assert expected in done.stdout, done.stderr


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": "x" * 3, "model": "nobody"},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}, HERON]}]},
        {"messages": [{"role": "user", "content": [HERON, {"type": "input_audio", "input_audio": {}}]}]},
        {"messages": [SAID], "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"messages": [SAID], "functions": [{"name": "f"}]},
        {"messages": [SAID], "tool_choice": "required"},
    ],
)
def test_a_wrong_request_is_told(served: Served, body: dict[str, Any]) -> None:
    """In OpenAI's form, and nothing is written."""
    import httpx

    reply = httpx.post(
        f"{served.url}/chat/completions", json=body, headers={"Authorization": f"Bearer {served.token}"}, timeout=30
    )
    assert 400 == reply.status_code
    assert reply.json()["error"]["message"]
    assert [] == served.prompts()
