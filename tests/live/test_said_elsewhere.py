"""What is said to an assistant comes into memory where the person asked for it, each turn once, whatever happens.

The hook's own script runs as hosts run it, beside a real daemon; transcripts are written as the hosts write them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.hooks.files import SCRIPT, write_script
from brainiac.server.address import call, read_address
from brainiac.storage.database import StateDatabase
from brainiac.storage.turns import Turns
from tests.support.living import CONFIG, Living, living, living_brain, places_of
from tests.support.pipeline import eventually

# as hosts give them: the fields of Claude Code 2.1.330, Codex 0.163 and Cursor 3.20
PROMPTS: dict[str, dict[str, Any]] = {
    "claude-code": {"hook_event_name": "UserPromptSubmit", "permission_mode": "default", "source": "user"},
    "codex": {"hook_event_name": "UserPromptSubmit", "permission_mode": "default", "model": "gpt-5.2-codex"},
    "cursor": {"hook_event_name": "beforeSubmitPrompt", "attachments": [], "cursor_version": "3.20.17"},
}
ENDS: dict[str, list[dict[str, Any]]] = {
    "claude-code": [{"hook_event_name": "Stop", "stop_hook_active": False, "permission_mode": "default"}],
    "codex": [{"hook_event_name": "Stop", "stop_hook_active": False, "model": "gpt-5.2-codex"}],
    "cursor": [{"hook_event_name": "afterAgentResponse"}, {"hook_event_name": "stop", "status": "completed"}],
}
ASKED, ANSWERED = "Which torque do the bolts of the Zwolle tandem take?", "The bolts of the tandem take twelve newton."


class Session:
    """A host's session in a folder, with its own transcript where the host keeps one that is read."""

    def __init__(self, state: Path, host: str, name: str, folder: Path, transcript: Path | None = None) -> None:
        self.state, self.host, self.name, self.folder, self.transcript = state, host, name, folder, transcript

    def ids(self, key: str) -> dict[str, Any]:
        if self.host == "cursor":
            return {"conversation_id": self.name, "generation_id": key, "workspace_roots": [str(self.folder)]}
        prompt = {"claude-code": "prompt_id", "codex": "turn_id"}[self.host]
        path = str(self.transcript) if self.transcript else None
        return {"session_id": self.name, "transcript_path": path, "cwd": str(self.folder), prompt: key}

    def tell(self, event: dict[str, Any]) -> str:
        """Run the script with an event, and return what it prints; it must fail in no way."""
        ran = subprocess.run(
            [self.state / SCRIPT, "20"],
            input=json.dumps(event),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert (0, "") == (ran.returncode, ran.stderr)
        return ran.stdout

    def prompt(self, key: str, text: str, **more: Any) -> str:
        return self.tell({**PROMPTS[self.host], **self.ids(key), "prompt": text, **more})

    def end(self, key: str, text: str) -> None:
        for event in ENDS[self.host]:
            words = {"Stop": "last_assistant_message", "afterAgentResponse": "text"}.get(event["hook_event_name"])
            assert "" == self.tell({**event, **self.ids(key), **({words: text} if words else {})})

    def start(self, source: str = "startup") -> str:
        event = {**PROMPTS[self.host], "hook_event_name": "SessionStart", **self.ids("none"), "source": source}
        return self.tell({name: value for name, value in event.items() if name not in ("prompt_id", "turn_id")})

    def write(self, key: str, text: str, answer: str = "", at: datetime | None = None, **more: Any) -> None:
        """Let the host write a turn into its transcript, as its versions of this autumn do."""
        assert self.transcript
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        stamp = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.123Z")
        lines: list[dict[str, Any]]
        if self.host == "claude-code":
            head = {"sessionId": self.name, "cwd": str(self.folder), "timestamp": stamp, "isSidechain": False, **more}
            lines = [{"type": "user", "uuid": f"u-{key}", "promptId": key, "promptSource": "typed",
                      "message": {"role": "user", "content": text}, **head}]  # fmt: skip
            said = {"role": "assistant", "content": [{"type": "text", "text": answer}]}
            lines += [{"type": "assistant", "uuid": f"a-{key}", "message": said, **head}] if answer else []
        else:
            context = {"turn_id": key, "cwd": str(self.folder), "model": "gpt-5.2-codex"}
            typed = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            event = {"type": "user_message", "message": text, "kind": "plain"}
            kinds = {"turn_context": context, "response_item": typed, "event_msg": event}
            lines = [{"type": kind, "payload": payload} for kind, payload in kinds.items()]
            said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}
            lines += [{"type": "response_item", "payload": said}] if answer else []
            if not self.transcript.exists():
                meta = {"id": self.name, "cwd": str(self.folder), "originator": "codex_cli_rs"}
                lines.insert(0, {"type": "session_meta", "payload": meta})
            lines = [{"timestamp": stamp, **line} for line in lines]
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Living]:
    with living(living_brain(tmp_path / "brain", CONFIG)) as alive:
        wait_for_server(alive)
        with closing(Brain(alive.root)) as brain:
            write_script(brain)
        yield alive


def state_of(daemon: Living) -> Path:
    return Path(places_of(daemon.root).state)


def wait_for_server(daemon: Living) -> None:
    def is_there() -> bool:
        address = read_address(state_of(daemon))  # a killed daemon leaves its own
        return address is not None and address.pid == daemon.process.pid

    eventually(is_there, "a server", 60)


def hooks(root: Path, *words: str) -> str:
    line = [sys.executable, "-m", "brainiac", "--brain", str(root), "hooks", *words]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert 0 == ran.returncode, ran.stderr
    return ran.stdout


@pytest.fixture
def code(daemon: Living, tmp_path: Path) -> Path:
    """A folder of which the person asked that what is said there comes into memory."""
    folder = tmp_path / "code"
    (folder / "deep").mkdir(parents=True)
    hooks(daemon.root, "capture", str(folder), "--yes")
    return folder


def pages(root: Path, host: str = "*") -> str:
    """Return what is in memory of what was said elsewhere."""
    found = sorted((root / "memory/long_term/events/imported").glob(f"{host}/[0-9]*/**/*.md"))
    return "\n".join(page.read_text() for page in found if page.name != "_index.md")


def wait_for(root: Path, *texts: str) -> str:
    eventually(lambda: all(text in pages(root) for text in texts), f"{texts} in memory", 90)
    return pages(root)


def settled(root: Path) -> None:
    """Wait until nothing waits to be taken in."""

    def is_empty() -> bool:
        with closing(StateDatabase(places_of(root))) as database:
            return not Turns(database).over(datetime.now(UTC))

    eventually(is_empty, "all taken in", 90)


def ids_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("<!-- exchange: ")]


@pytest.mark.parametrize("host", PROMPTS)
def test_a_turn_of_each_host_comes_with_its_origin(daemon: Living, code: Path, host: str) -> None:
    """The person's words and the assistant's, by the hook alone; found, with whose they are; told twice, kept once.

    Seeds: H2, H3.
    """
    session = Session(state_of(daemon), host, f"{host}-1", code / "deep")
    for _ in range(2):
        session.prompt("p1", ASKED)
    for _ in range(2):
        session.end("p1", ANSWERED)
    text = wait_for(daemon.root, ASKED, ANSWERED)
    session.prompt("p1", ASKED)
    session.end("p1", ANSWERED)
    session.prompt("p2", "And which saddle does it have?")
    session.end("p2", "A leather one.")
    text = wait_for(daemon.root, "A leather one.")
    settled(daemon.root)
    text = pages(daemon.root)
    assert [1, 1, 2] == [text.count(f'"{ASKED}"'), text.count(ANSWERED), len(ids_of(text))]
    assert f'by: {host}\nconversation: "{host}-1"\n' in text
    assert 1 == text.count("origin: import")  # one page for the session
    name = {"claude-code": "Claude Code", "codex": "Codex", "cursor": "Cursor"}[host]
    line = [sys.executable, "-m", "brainiac", "--brain", str(daemon.root), "why"]
    log = hooks(daemon.root, "log")
    receipt = log.partition("kept: ")[2].split()[0]
    told = subprocess.run([*line, receipt], capture_output=True, text=True, check=True).stdout
    assert f"you said to {name}" in " ".join(told.split())
    assert 2 == sum("kept: " in row for row in log.splitlines())
    assert "torque" not in log.replace("\n", " ").partition("kept: ")[2]


def test_nothing_comes_unasked(daemon: Living, tmp_path: Path) -> None:
    """Without a folder none, and of another folder none, also where its name begins alike.

    Seeds: H2.
    """
    for name in ("code", "code-of-work"):
        (tmp_path / name).mkdir()
    for folder in (tmp_path / "code", tmp_path / "code-of-work"):
        session = Session(state_of(daemon), "claude-code", f"in-{folder.name}", folder, tmp_path / "t" / folder.name)
        session.write("p1", ASKED, ANSWERED)
        session.prompt("p1", ASKED)
        session.end("p1", ANSWERED)
        hooks(daemon.root, "capture", str(tmp_path / "code"), "--yes")
    assert hooks(daemon.root, "capture").startswith(str(tmp_path / "code"))
    time.sleep(2.5)
    assert "" == pages(daemon.root)
    with closing(StateDatabase(places_of(daemon.root))) as database:
        assert [] == Turns(database).all()


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_transcript_fills_the_gaps_and_no_more(daemon: Living, code: Path, tmp_path: Path, host: str) -> None:
    """A turn while no daemon ran and an answer that no hook told come from the host's own file, each once; what was
    typed before the person asked, in another folder or by a machine does not; an import of that file adds nothing.

    Seeds: H3.
    """
    places = {"claude-code": "projects/-code", "codex": "sessions/2026/11/27"}
    file = tmp_path / places[host] / "s1.jsonl"
    session = Session(state_of(daemon), host, "s1", code, file)
    asked = datetime.now(UTC) - timedelta(hours=3)  # so long ago
    with closing(StateDatabase(places_of(daemon.root))) as database:
        database.keep("turns since", f"{host}\n{code}", iso(asked))
    session.write("old", "Before anybody asked for it.", "Noted.", asked - timedelta(hours=1))
    now = datetime.now(UTC)
    session.write("p0", "The tandem is from Zwolle.", "It is.", now)  # no hook ran
    session.write("p1", ASKED, at=now)
    session.prompt("p1", ASKED)
    session.folder = tmp_path
    session.write("elsewhere", "Typed in a folder of somebody else.", "Yes.")
    session.folder = code
    session.write("p2", "And which saddle does it have?", at=now)
    session.prompt("p2", "And which saddle does it have?")
    wait_for(daemon.root, "from Zwolle", ASKED)  # which are over, and the last is not
    session.end("p2", "A leather one.")
    text = wait_for(daemon.root, "leather one")
    daemon.kill()
    session.write("p3", "Its chain is by Connex.", "Noted, Connex.")
    session.write("p4", "Its rims are by Ryde.", "Noted, Ryde.")
    assert "" == session.prompt("p4", "Its rims are by Ryde.")
    other = Session(state_of(daemon), host, "s2", code, file.with_name("s2.jsonl"))
    other.write("q1", "The bell is by Billy.", "Noted, Billy.")
    old = time.time() - 7200  # that session has long ended
    os.utime(file.with_name("s2.jsonl"), (old, old))
    with living(daemon.root) as again:
        wait_for_server(again)
        session.start("resume")
        text = wait_for(daemon.root, "Connex.", "Billy.")
        session.end("p4", "Noted, Ryde.")  # of a prompt that nobody heard
        assert "Ryde" not in text  # the last turn there may go on
        os.utime(file, (old, old))
        session.start("compact")
        text = wait_for(daemon.root, "Ryde.")
        settled(daemon.root)
        before = ids_of(pages(daemon.root))
        assert 6 == len(before) == len({*before})
        assert [0, 0, 2] == [text.count(each) for each in ("Before anybody", "somebody else", "conversation: ")]
        line = [sys.executable, "-m", "brainiac", "--brain", str(daemon.root), "import", str(file.parent)]
        subprocess.run(line, check=True, capture_output=True)
        text = pages(daemon.root)
        assert [1, 1] == [text.count(f'"{said}') for said in ("Before anybody", "Typed in a folder")]
        typed = (ASKED, "The tandem", "And which saddle", "Its chain", "Its rims", "The bell")
        assert [1] * 6 == [text.count(f'"{said}') for said in typed]


def test_an_assistant_may_work_for_hours(daemon: Living, code: Path, tmp_path: Path) -> None:
    """A turn is not over while its transcript grows; at rest for an hour it is, and has what stands there."""
    for name in ("works", "rests"):
        session = Session(state_of(daemon), "claude-code", name, code, tmp_path / f"projects/-code/{name}.jsonl")
        session.write("p1", f"How is it? It {name}.", f"It said that it {name}.")
        session.prompt("p1", f"How is it? It {name}.")
        began = iso(datetime.now(UTC) - timedelta(hours=2))
        with closing(StateDatabase(places_of(daemon.root))) as database:
            database.keep("turns since", f"claude-code\n{code}", began)
            Turns(database).keep([replace(Turns(database).of_session(name)[0], at=began)])
    old = time.time() - 5400
    os.utime(tmp_path / "projects/-code/rests.jsonl", (old, old))
    assert "works" not in wait_for(daemon.root, "It said that it rests.")
    Session(state_of(daemon), "claude-code", "works", code).end("p1", "It is done.")
    wait_for(daemon.root, "It is done.")


@pytest.mark.parametrize("moment", range(3))
def test_a_kill_loses_and_doubles_nothing(daemon: Living, code: Path, moment: int) -> None:
    """What a hook was answered for is in memory once, wherever the daemon is killed; what it was not told of is not.

    Seeds: H3.
    """
    session = Session(state_of(daemon), "cursor", "k1", code)
    for number in range(4):
        session.prompt(f"p{number}", f"The number of the shed is {number}.")
        session.end(f"p{number}", f"Noted: {number}.")
    session.prompt("p4", "The number of the shed is 4.")
    if moment:
        time.sleep(0.4 * moment)
    os.kill(daemon.process.pid, signal.SIGKILL)
    daemon.process.wait(30)
    session.end("p4", "Nobody hears this.")
    session.prompt("p5", "Nobody hears that.")
    with living(daemon.root) as again:
        wait_for_server(again)
        for number in range(5):
            session.prompt(f"p{number}", f"The number of the shed is {number}.")
            session.end(f"p{number}", f"Noted: {number}.")
        text = wait_for(daemon.root, "Noted: 4.")
        settled(daemon.root)
        text = pages(daemon.root)
        assert [1] * 5 == [text.count(f'**User:** "The number of the shed is {number}.') for number in range(5)]
        assert 5 == len(ids_of(text))
        assert "Nobody" not in text


def test_what_is_not_to_be_kept_is_not(daemon: Living, code: Path, tmp_path: Path) -> None:
    """Secrets, what memory said, words off the record, what no person typed: none of it, by hook or transcript; what is
    private is so, and passes no door.

    Seeds: H4.
    """
    file = tmp_path / "projects/-code/s1.jsonl"
    session = Session(state_of(daemon), "claude-code", "s1", code, file)
    daemon.answer("coffee.md", "The espresso machine from Rancilio needs descaling with citric acid every March.")
    said = session.prompt("p0", "what was it again with descaling the Rancilio espresso machine?")
    fenced = json.loads(said)["hookSpecificOutput"]["additionalContext"]
    answer = f"I was told:\n{fenced}\nSo March."
    session.write("p0", "what was it again with descaling the Rancilio espresso machine?", answer)
    session.end("p0", answer)
    spoken = {
        "p1": "My key is AKIAIOSFODNN7EXAMPLF and ghp_0123456789abcdefghijABCDEFGHIJ012345, use it.",
        "p2": "---\nremember: false\n---\nThe treehouse is our secret.",
        "p3": "My diary lies under the third stair. <!-- private -->",
        "p4": "/review the treehouse of yesterday",
    }
    for key, words in spoken.items():
        session.write(key, words, f"Yes, {key}.")
        session.prompt(key, words)
        session.end(key, f"Yes, {key}.")
    session.write("p5", "The treehouse of a machine.", "Yes, p5.")
    session.prompt("p5", "The treehouse of a machine.", source="loop_wakeup")
    session.end("p5", "Yes, p5.")
    session.start("compact")
    text = wait_for(daemon.root, "So March.", "Yes, p1.", "third stair")
    settled(daemon.root)
    text = pages(daemon.root)
    assert 3 == len(ids_of(text)), text
    assert [0, 0, 0, 0] == [text.count(word) for word in ("treehouse", "ghp_", "citric", "Brainiac: words")]
    assert 1 == text.count("<!-- private -->\n**User:**")
    log = hooks(daemon.root, "log", "--json")
    assert {"off the record", "a command", "no person typed it"} <= {row["reason"] for row in json.loads(log)}
    assert "treehouse" not in log
    found = session.prompt("p6", "what about the diary under the third stair?")
    assert "" == found
    private = code / "deep"
    hooks(daemon.root, "capture", str(private), "--private", "--yes")
    inner = Session(state_of(daemon), "codex", "s2", private)
    inner.prompt("p1", "The lawyer is called Quispel.")
    inner.end("p1", "Noted.")
    text = wait_for(daemon.root, "Quispel")
    assert not list(daemon.root.rglob("*quispel*"))
    assert 2 == text.count("<!-- private -->\n**User:**")


@pytest.mark.parametrize("purge", [False, True])
def test_what_was_forgotten_stays_so(daemon: Living, code: Path, tmp_path: Path, purge: bool) -> None:
    """Neither a retry nor the transcript brings it back, also after a kill.

    Seeds: H4.
    """
    file = tmp_path / "projects/-code/s1.jsonl"
    session = Session(state_of(daemon), "claude-code", "s1", code, file)
    for key, words in (("p1", ASKED), ("p2", "My aunt Leonie lives in Dordrecht.")):
        session.write(key, words, f"Yes, {key}.")
        session.prompt(key, words)
        session.end(key, f"Yes, {key}.")
    wait_for(daemon.root, "Leonie", ASKED)
    settled(daemon.root)
    line = [sys.executable, "-m", "brainiac", "--brain", str(daemon.root), "forget", "Leonie", "--yes"]
    done = subprocess.run([*line, *(["--purge"] if purge else [])], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    eventually(lambda: "Leonie" not in pages(daemon.root), "it gone", 90)
    daemon.kill()
    with living(daemon.root) as again:
        wait_for_server(again)
        session.start("resume")
        session.prompt("p2", "My aunt Leonie lives in Dordrecht.")
        session.end("p2", "Yes, p2.")
        session.write("p3", "The saddle is of leather.", "Yes, p3.")
        session.prompt("p3", "The saddle is of leather.")
        session.end("p3", "Yes, p3.")
        wait_for(daemon.root, "of leather")
        settled(daemon.root)
        assert "Leonie" not in pages(daemon.root)
        assert 1 == pages(daemon.root).count("conversation: ")


def test_a_purge_reaches_a_turn_that_is_still_open(daemon: Living, code: Path) -> None:
    """Words that no answer has come to yet stand in no file; they go all the same, and their answer brings nothing."""
    session = Session(state_of(daemon), "claude-code", "s1", code)
    session.prompt("p1", "My aunt Leonie lives in Dordrecht.")
    line = [sys.executable, "-m", "brainiac", "--brain", str(daemon.root), "forget", "Leonie", "--purge", "--yes"]
    subprocess.run(line, capture_output=True, check=True)
    session.end("p1", "Dordrecht is in Holland.")
    session.prompt("p2", ASKED)
    session.end("p2", ANSWERED)
    assert "Dordrecht" not in wait_for(daemon.root, "twelve newton")
    files = (*state_of(daemon).glob("state.db*"), *daemon.root.rglob("*.md"))
    assert not [path for path in files if b"Leonie" in path.read_bytes()]


def test_which_folder_goes_to_which_brain(daemon: Living, code: Path, tmp_path: Path) -> None:
    """A folder's words come to its own brain alone, also where that starts later; one within another may be kept out;
    `hooks off` ends it, and what is said until it is installed again never comes.

    Seeds: H2.
    """
    work, inner = tmp_path / "work", code / "deep"
    work.mkdir()
    other = living_brain(tmp_path / "other", CONFIG)
    hooks(other, "capture", str(work), "--yes")
    hooks(daemon.root, "capture", str(inner), "--off", "--yes")
    for number, folder in enumerate((code, work, inner)):
        session = Session(state_of(daemon), "codex", f"s{number}", folder)
        session.prompt("p1", f"The folder has the number {number}.")
        session.end("p1", "Noted.")
    wait_for(daemon.root, "number 0")
    assert "" == pages(other)
    with living(other):
        wait_for(other, "number 1")
    assert [0, 0] == [pages(daemon.root).count(f"number {number}") for number in (1, 2)]
    assert [0, 0] == [pages(other).count(f"number {number}") for number in (0, 2)]
    hooks(daemon.root, "install", "claude-code", "--yes")
    file = tmp_path / "projects/-code/s9.jsonl"
    session = Session(state_of(daemon), "claude-code", "s9", code, file)
    session.write("p1", "The vase is blue.", "Yes.")
    session.prompt("p1", "The vase is blue.")
    session.end("p1", "Yes.")
    wait_for(daemon.root, "vase")
    hooks(daemon.root, "off", "claude-code", "--yes")
    time.sleep(1.1)
    session.write("p2", "The vase is broken.", "Oh.")
    time.sleep(1.1)
    hooks(daemon.root, "install", "claude-code", "--yes")
    session.write("p3", "The vase is glued.", "Ah.")
    session.prompt("p3", "The vase is glued.")
    session.end("p3", "Ah.")
    wait_for(daemon.root, "glued")
    session.start("compact")
    settled(daemon.root)
    assert "broken" not in pages(daemon.root)


def test_only_the_persons_own_token_brings_their_words(daemon: Living, code: Path) -> None:
    """A program with the token for programs, and a model by MCP, bring in none of them.

    Seeds: H2.
    """
    state = state_of(daemon)
    asked = {"text": ASKED, "session": "s", "key": "k", "project": str(code)}
    assert "" == call(state, "/api/push", asked, client="claude-code")["text"]
    assert "" == call(state, "/api/push", {**asked, "kind": "end"}, client="mcp:claude-code")["text"]
    with closing(StateDatabase(places_of(daemon.root))) as database:
        assert [] == Turns(database).all()
