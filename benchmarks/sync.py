"""One memory on several machines, with real daemons and real ways to sync.

    python benchmarks/sync.py clone [--prompts 10000]
    python benchmarks/sync.py syncthing [--prompts 200] [--devices 2] [--seed 1]

`clone`: a brain with answered prompts and a model that costs money is cloned with git, and a daemon starts there. How
long until it watches, what does it answer once more, and what does it ask the model for?

`syncthing`: real Syncthing on loopback, a daemon on each machine. Prompts are dropped and asked on all of them, pages
are edited and moved on all of them, online and offline by turns. When all have met: are the trees equal, was each
prompt answered and noted once, does every word stand that was written, is a copy or marker left, what says `doctor`?
And is a file still written when nobody does anything for minutes?

The last line printed is one line of JSON; exit 1 unless every count of what went wrong is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.events import Event, RecordedChange, content_hash, new_id
from brainiac.formats.prompt import Response, parse_prompt, render_response
from brainiac.storage.journal import to_line
from tests.support.machines import START_SECONDS, Machine, Syncthing
from tests.support.openai_server import ChatServer
from tests.support.pipeline import eventually

AT = "2026-11-01T00:00:00Z"
PAID = """\
brain_id: shared
inbox: {settle_ms: 20, typing_seconds: 1}
recall: {embedder: none}
llm:
  model: openai/test-model
  daily_budget_usd: 1000
  prices: {openai/test-model: [0.1, 0.1]}
"""
FREE = """\
inbox: {settle_ms: 20, typing_seconds: 1}
watch: {rescan_seconds: 5}
recall: {embedder: none}
"""
PAGES = 4
PAGE = """\
---
uuid: 0199aaaa-0000-7000-8000-00000000000{number}
created_at: 2026-11-01T00:00:00Z
updated_at: 2026-11-01T00:00:00Z
tags: []
emotion: neutral
reinforcement_count: 0
---
# Page {number}

- Begun. ^aaaa
"""
SYNC_SECONDS, OFFLINE_SECONDS, REST_SECONDS = 900.0, 3.0, 5.0
IDLE_SECONDS, IDLE_MINUTES = 60.0, 5
FRESH = "zanzibar locker"


# --- a clone -------------------------------------------------------------------------------------------------------


@dataclass
class CloneResult:
    """What starting in a clone cost; the counts are to be 0.

    Attributes:
        prompts: Answered prompts in the repository.
        first_seconds: Of the first start, until the daemon watches.
        second_seconds: Of the second start.
        fresh_seconds: Until a prompt that was dropped after the first start had its answer.
        answered: Prompts that were answered once more.
        calls: Calls of the model that were not for that fresh prompt.
        waiting: Prompts that wait.
    """

    prompts: int
    first_seconds: float = 0.0
    second_seconds: float = 0.0
    fresh_seconds: float = 0.0
    answered: int = 0
    calls: int = 0
    waiting: int = 0

    @property
    def is_good(self) -> bool:
        return not (self.answered or self.calls or self.waiting)


def write_history(root: Path, prompts: int) -> None:
    """Write prompts, their responses, and the journal of the device that answered and noted them."""
    lines = []
    for number in range(prompts):
        path, raw = f"inbox/c{number % 100}/p{number}.md", f"I said thing {number}.\n".encode()
        prompt, exchange, prompt_id = parse_prompt(path, raw, at=AT, inbox="inbox"), new_id(), new_id()
        target = path.replace(".md", ".response.md")
        answer = render_response(
            Response(
                target,
                "Noted.",
                in_reply_to=path,
                prompt_id=prompt_id,
                prompt_sha256=prompt.sha256,
                created_at=AT,
                model="m",
            )
        ).encode()
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)
        (root / target).write_bytes(answer)
        data: dict[str, object] = {"prompt": path, "prompt_id": prompt_id, "prompt_sha256": prompt.sha256}
        data |= {"response": target, "response_hash": content_hash(answer), "model": "m"}
        changes = (
            RecordedChange("observe", path, None, content_hash(raw)),
            RecordedChange("create", target, None, content_hash(answer)),
        )
        noted = {"exchange": exchange, "prompt": path, "is_extracted": True, "items": [], "thoughts": ""}
        answered = Event(2 * number + 1, exchange, AT, "prompt-answered", "core_loop", None, data, changes)
        reflected = Event(2 * number + 2, new_id(), AT, "exchange-reflected", "reflection", exchange, noted, ())
        lines += [to_line(answered), to_line(reflected)]
    journal = root / "logs/journal/desk-abcdef/2026-11-01.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"".join(lines))


def clone(folder: Path, prompts: int) -> CloneResult:
    """Clone a brain with answered prompts and start daemons in the clone.

    Args:
        folder: Where all is made.
        prompts: How many were answered.
    """
    desk = Machine(folder / "desk-home", folder / "desk")
    laptop = Machine(folder / "laptop-home", folder / "laptop")
    result = CloneResult(prompts)
    desk.run("init", os.fspath(desk.root))
    (desk.root / "system/config.yaml").write_text(PAID)
    write_history(desk.root, prompts)
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "a brain")):
        subprocess.run(["git", *words], cwd=desk.root, check=True)
    subprocess.run(["git", "clone", "-q", desk.root, laptop.root], check=True)
    with ChatServer() as server:
        config = laptop.home / "config/brainiac/config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        with laptop.served() as seconds:
            result.first_seconds = seconds
            begun = time.monotonic()
            (laptop.root / "inbox/fresh.md").write_text(f"Where is my {FRESH}?\n")
            eventually((laptop.root / "inbox/fresh.response.md").exists, "the fresh prompt is answered", START_SECONDS)
            result.fresh_seconds = round(time.monotonic() - begun, 1)
        with laptop.served() as seconds:
            result.second_seconds = seconds
            result.waiting = len(json.loads(laptop.run("status", "--json").stdout)["pending"])
        result.calls = sum(FRESH.encode() not in request.raw for request in server.requests)
        assert server.requests, "the fresh prompt was answered without the model"
    result.answered = len(laptop.events("prompt-answered")) - prompts - 1
    return result


# --- Syncthing -----------------------------------------------------------------------------------------------------


@dataclass
class SyncResult:
    """What is wrong when all have met; every list is to be empty.

    Attributes:
        devices: How many daemons ran.
        prompts: How many prompts were dropped or asked.
        edits: How often a page was edited or moved by hand.
        seconds: From the first prompt until nothing moved any more.
        unequal: Files that are not the same everywhere.
        unanswered: Prompts without a response.
        doubled: Prompts that were answered or noted more than once, or never noted.
        lost: Words that stand nowhere.
        left: Conflict copies and files with markers.
        written: Files that were still written when nobody had done anything for minutes.
        complaints: What `doctor` says.
    """

    devices: int
    prompts: int = 0
    edits: int = 0
    seconds: float = 0.0
    unequal: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        problems = (self.unequal, self.unanswered, self.doubled, self.lost, self.left, self.written, self.complaints)
        return not any(problems)


class People:
    """What people do on several machines with one memory.

    Args:
        machines: Theirs; the first one runs the processes.
        seed: Of what they do.
    """

    def __init__(self, machines: Sequence[Machine], seed: int) -> None:
        self.machines, self._random = machines, random.Random(seed)
        self.prompts: dict[str, str] = {}  # by path: the word in it
        self.words: list[str] = []
        self.edits = 0

    def act(self, count: int) -> None:
        """Drop prompts and work on pages, on every machine."""
        for number in range(count):
            machine = self.machines[number % len(self.machines)]
            self._drop(machine)
            if number % 5 == 0:
                for each in self.machines:  # all at the same page, so that copies come about
                    self._edit(each)
        self._move(self._random.choice(self.machines))
        self._ask(self.machines[-1])

    def _word(self) -> str:
        self.words.append(f"word{len(self.words)}x")
        return self.words[-1]

    def _drop(self, machine: Machine) -> None:
        path, word = f"inbox/{machine.root.name}-{len(self.prompts)}.md", self._word()
        self.prompts[path] = word
        (machine.root / path).write_text(f"/remember I said {word}.\n")

    def _ask(self, machine: Machine) -> None:
        """Ask on a machine, which answers at once also where it does not run the processes."""
        word, before = self._word(), set((machine.root / "inbox").glob("*.md"))
        machine.run("ask", f"/remember I asked {word}.")
        texts = {path: path.read_text() for path in set((machine.root / "inbox").glob("*.md")) - before}
        asked = next(path for path, text in texts.items() if f"I asked {word}" in text and "prompt_id:" not in text)
        self.prompts[machine.relative(asked)] = word

    def _edit(self, machine: Machine) -> None:
        """Add a statement at the end of a page, or more words to its first one."""
        if not (pages := self._pages(machine)):
            return
        page, word = pages[self._random.randrange(len(pages))], self._word()
        lines = page.read_text().splitlines(keepends=True)
        first = next((at for at, line in enumerate(lines) if line.startswith("- ") and ". ^" in line), None)
        if first is not None and self._random.random() < 0.5:
            lines[first] = lines[first].replace(". ^", f" {word}. ^", 1)
        else:
            lines.append(f"- Fact {word}. ^{word}\n")
        save(page, "".join(lines))
        self.edits += 1

    def _move(self, machine: Machine) -> None:
        if pages := self._pages(machine):
            page = pages[self._random.randrange(len(pages))]
            target = machine.root / "memory/long_term/skills" / f"moved{self.edits}.md"
            with suppress(FileNotFoundError):  # the daemon merges a copy, or Syncthing moves it at this moment
                page.rename(target)
                self.edits += 1

    @staticmethod
    def _pages(machine: Machine) -> list[Path]:
        """Return the pages that people wrote, wherever they stand by now."""
        files = (machine.root / "memory/long_term").rglob("*.md")
        return sorted(file for file in files if re.fullmatch(r"(page|moved)\d+\.md", file.name))


def save(file: Path, text: str) -> None:
    """Save a file as editors do: whole, in its place."""
    aside = file.with_name(f".{file.name}.swp")
    aside.write_text(text)
    aside.replace(file)


def share(folder: Path, devices: int, prompts: int, seed: int = 1, rounds: int = 4) -> SyncResult:
    """Let people work on machines that Syncthing connects, online and offline by turns.

    Args:
        folder: Where all is made.
        devices: How many machines.
        prompts: How many prompts they drop, all together.
        seed: Of what they do.
        rounds: How often they act; in every second round the machines are offline.
    """
    names = ("desk", "laptop", "attic")[:devices]
    machines = [Machine(folder / f"{name}-home", folder / name) for name in names]
    desk, people, result = machines[0], People(machines, seed), SyncResult(devices)
    desk.run("init", os.fspath(desk.root))
    (desk.root / "system/config.yaml").write_text(FREE)
    for number in range(PAGES):
        (desk.root / f"memory/long_term/concrete/page{number}.md").write_text(PAGE.format(number=number))
    desk.run("takeover")
    with Syncthing(machines, folder / "syncthing") as syncthing, ExitStack() as daemons:
        syncthing.wait_until_same(SYNC_SECONDS)
        for machine in machines:
            daemons.enter_context(machine.served())
        begun = time.monotonic()
        for number in range(rounds):
            for machine in machines:
                syncthing.set_online(number % 2 == 0, machine)
            people.act(prompts // rounds)
            time.sleep(OFFLINE_SECONDS)
        for machine in machines:
            syncthing.set_online(True, machine)
        eventually(lambda: _is_done(desk, people), "every prompt is noted", SYNC_SECONDS)
        _wait_for_rest(machines, syncthing)
        result.seconds = round(time.monotonic() - begun, 1)
        result.written = _written_while_idle(machines)
    result.prompts, result.edits = len(people.prompts), people.edits
    judge(people, result)
    return result


def _is_done(desk: Machine, people: People) -> bool:
    noted = {str(event["data"]["prompt"]) for event in desk.events("exchange-reflected")}
    return people.prompts.keys() <= noted


def _wait_for_rest(machines: Sequence[Machine], syncthing: Syncthing) -> None:
    """Wait until nothing has moved for a while anywhere."""
    deadline = time.monotonic() + SYNC_SECONDS
    before: list[dict[str, bytes]] = []
    while time.monotonic() < deadline:
        syncthing.wait_until_same(SYNC_SECONDS)
        if before == (before := [machine.files() for machine in machines]):
            return
        time.sleep(REST_SECONDS)


def _written_while_idle(machines: Sequence[Machine]) -> list[str]:
    """Return the files that were written in the last of some minutes in which nobody did anything.

    In the first ones what was said is consolidated and the pages are put in order.
    """
    after = _stamps(machines)
    for _ in range(IDLE_MINUTES):
        before = after
        time.sleep(IDLE_SECONDS)
        after = _stamps(machines)
        if before == after:
            return []
    return sorted(path for path in before.keys() | after if before.get(path) != after.get(path))


def _stamps(machines: Sequence[Machine]) -> dict[str, int]:
    """Return when each synced file of each machine was written."""
    paths = [machine.root / path for machine in machines for path in machine.files()]
    return {os.fspath(path): path.stat().st_ctime_ns for path in paths}


def judge(people: People, result: SyncResult) -> None:
    """Look for what is wrong when all have met."""
    trees = [machine.files() for machine in people.machines]
    desk = people.machines[0]
    paths = {path for tree in trees for path in tree}
    result.unequal = sorted(path for path in paths if len({tree.get(path) for tree in trees}) > 1)
    result.unanswered = sorted(path for path in people.prompts if path.replace(".md", ".response.md") not in trees[0])
    for kind in ("prompt-answered", "exchange-reflected"):
        counts = Counter(str(event["data"]["prompt"]) for event in desk.events(kind))
        result.doubled += [f"{kind} {path}: {counts[path]}" for path in people.prompts if counts[path] != 1]
    written = {path: raw for path, raw in trees[0].items() if path.startswith(("memory/", "inbox/"))}
    text = b"\n".join(written.values())
    result.lost = [word for word in people.words if word.encode() not in text]
    result.left = sorted(path for path in paths if "sync-conflict" in path)
    result.left += sorted(path for path, raw in written.items() if b"<<<<<<<" in raw)
    for machine in people.machines:
        done = machine.run("doctor", is_checked=False)
        if done.returncode:
            result.complaints.append(f"{machine.root.name}: {done.stdout}{done.stderr}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("clone", "syncthing"))
    parser.add_argument("--prompts", type=int)
    parser.add_argument("--devices", type=int, choices=(2, 3), default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        result: CloneResult | SyncResult
        if options.what == "clone":
            result = clone(Path(folder), options.prompts or 10_000)
        else:
            result = share(Path(folder), options.devices, options.prompts or 200, options.seed)
    print(json.dumps(asdict(result)))
    return 0 if result.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
