"""Devices write, go offline, meet, and agree: whatever they do, nothing a person wrote is lost.

`pytest tests/unit/test_sync.py --hypothesis-profile=thorough` does it more often.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from brainiac import Brain, ConflictError, UserError
from brainiac.events import DeviceTookOver, EventUndone, PromptAnswered, content_hash, update
from brainiac.formats.page import parse_exchanges
from brainiac.formats.short_term import document_of
from brainiac.history.copies import settle_versions
from brainiac.history.forget import find_target, forget
from brainiac.history.purge import purge
from brainiac.history.undo import undo
from brainiac.pipeline.daemon import answer_one
from brainiac.testing import Crash, command, make_brain, run_once
from tests.support.commands import do
from tests.support.devices import JOURNALS, Device, Git, Syncthing
from tests.support.examples import examples
from tests.support.kernel import CountingDisk, on_disk

PAGES = [f"memory/long_term/concrete/{name}.md" for name in ("bob", "garden")]
PAGE = """\
---
uuid: 0199aaaa-0000-7000-8000-00000000000{}
updated_at: 2026-11-01T00:00:00Z
---
# Page

- Begun. ^aaaa
"""
STM = "memory/short_term.md"
NAMES = ("desk", "laptop", "attic")
DEVICES, PLACES = st.integers(0, 2), st.integers(0, 3)
PARTS = st.sampled_from(["", "", "", "memory/", JOURNALS, "inbox/"])
WORD = re.compile(r"word\d+")
ROUNDS = 10


@dataclass
class Watched(Device):
    """A device of which is known what its daemon saw.

    Attributes:
        seen: The hash of each text that stood in a file of memory, inbox or settings when its daemon looked.
    """

    seen: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Do what a daemon does of its own accord: take in what changed, and merge what two devices wrote."""
        with self.opened() as brain:
            brain.observed.adopt()
            self._note_texts(brain)
            settle_versions(brain)
            self._note_texts(brain)

    def _note_texts(self, brain: Brain) -> None:
        texts = {path: content_hash(raw) for path, raw in self.files().items() if brain.tree.is_tracked(path)}
        # what is being saved at this moment is looked at again
        self.seen |= {digest for path, digest in texts.items() if brain.observed.hash_of(path) == digest}

    def run(self) -> None:
        with self.opened() as brain:
            run_once(brain)
            self._note_texts(brain)

    def crash(self, disk: CountingDisk) -> None:
        """Take in what changed, merge and promote, on a disk that stops in the middle; nothing is put in order then."""
        self.enter()
        brain = on_disk(Brain(self.root), disk)
        with suppress(Crash):
            brain.observed.adopt()
            settle_versions(brain)
            if brain.is_active:
                command(brain, "promote")
        brain.committer.database.close()
        brain.database.close()


class Devices(RuleBasedStateMachine):
    """A desk that runs the processes, and others; each word that is written is the only one of its kind."""

    @initialize(count=st.integers(2, 3), way=st.sampled_from(["git", "syncthing", "no journals", "both active"]))
    def begin(self, count: int, way: str) -> None:
        self.patch, self.folder = pytest.MonkeyPatch(), tempfile.TemporaryDirectory()
        base = Path(self.folder.name)
        self.devices = [Watched(base / f"home-{name}", base / name, self.patch) for name in NAMES[:count]]
        self.is_single, self.has_journals = way != "both active", way != "no journals"
        desk = self.devices[0]
        self.patch.setenv("XDG_STATE_HOME", str(desk.home / "XDG_STATE_HOME"))
        make_brain(desk.root).close()
        for number, path in enumerate(PAGES):
            (desk.root / path).write_text(PAGE.format(number))
        desk.look()
        if self.is_single:
            with desk.opened() as brain:
                do(brain, "takeover")
        left_out = () if self.has_journals else (JOURNALS,)
        self.transport: Git | Syncthing = Git() if way == "git" else Syncthing(left_out)
        self.transport.begin(self.devices)
        self.words: set[str] = set()
        self.deleted: set[str] = set()  # taken away by a person, also by `forget` and `undo`
        self.purged: set[str] = set()
        self.prompts: dict[str, str] = {}  # by path: the word in it
        self.moves = 0
        self.movers: list[Watched] = []  # whose daemon has not seen yet that a page was moved

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.agree()
            self.patch.undo()
            self.folder.cleanup()

    def device(self, number: int) -> Watched:
        return self.devices[number % len(self.devices)]

    def word(self) -> str:
        name = f"word{len(self.words)}"
        self.words.add(name)
        return name

    def page(self, device: Watched, number: int) -> Path | None:
        """Return one of the pages that a person wrote, wherever it stands by now."""
        files = sorted((device.root / "memory/long_term").rglob("*.md"))
        pages = [file for file in files if re.match(r"(bob|garden|moved\d+)\.md", file.name)]
        return pages[number % len(pages)] if pages else None

    # what a person does

    @rule(number=DEVICES, place=PLACES, is_first=st.booleans())
    def add(self, number: int, place: int, is_first: bool) -> None:
        """A person adds a statement to a page, at its beginning or end."""
        if file := self.page(self.device(number), place):
            word, text = self.word(), file.read_text()
            line = f"- Fact {word}. ^{word}\n"
            file.write_text(text.replace("# Page\n\n", f"# Page\n\n{line}", 1) if is_first else text + line)

    @rule(number=DEVICES, place=PLACES)
    def edit(self, number: int, place: int) -> None:
        """A person writes more into the first statement."""
        if file := self.page(self.device(number), place):
            lines = file.read_text().splitlines(keepends=True)
            place = next((at for at, line in enumerate(lines) if line.startswith("- ") and ". ^" in line), -1)
            if place >= 0:
                lines[place] = lines[place].replace(". ^", f" {self.word()}. ^", 1)
                file.write_text("".join(lines))

    @rule(number=DEVICES, place=PLACES)
    def delete(self, number: int, place: int) -> None:
        """A person deletes the last line."""
        if file := self.page(self.device(number), place):
            lines = file.read_text().splitlines(keepends=True)
            if lines[-1].startswith("- Fact"):
                self.deleted |= set(WORD.findall(lines[-1]))
                file.write_text("".join(lines[:-1]))

    @rule(number=DEVICES, place=PLACES, folder=st.sampled_from(["concrete", "skills", "concrete/friends"]))
    def move(self, number: int, place: int, folder: str) -> None:
        """A person moves and renames a page."""
        device = self.device(number)
        device.look()  # what is moved before a daemon saw it nobody can tell from a copy
        if file := self.page(device, place):
            self.moves += 1
            self.movers.append(device)
            target = device.root / "memory/long_term" / folder / f"moved{self.moves}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)

    @rule(number=DEVICES, place=PLACES, others=st.lists(st.sampled_from(["edit", "move", "look"]), max_size=3))
    def move_and_edit(self, number: int, place: int, others: list[str]) -> None:
        """A person moves a page on one device while it is edited or moved on another, and edited on the first too."""
        first, second = number, number + 1
        self.sync_all()
        self.move(first, place, "skills")
        for what in others:
            if what == "move":
                self.move(second, place, "concrete/friends")
            elif what == "look":
                self.device(first).look()
            else:
                self.edit(second, place)
                self.edit(first, place)

    @rule(number=DEVICES)
    def note_task(self, number: int) -> None:
        """A person writes a task into short-term memory."""
        file, word = self.device(number).root / STM, self.word()
        file.write_text(str(document_of(file.read_text()).with_items(tasks=[f"task {word}"])))

    @rule(number=DEVICES)
    def say(self, number: int) -> None:
        """A person drops a prompt; the device that runs the processes answers it when it gets it."""
        self.drop(self.device(number), "")

    @rule(number=DEVICES)
    def ask(self, number: int) -> None:
        """A person asks on a device, which answers at once, whether it runs the processes or not."""
        device = self.device(number)
        with device.opened() as brain:
            path = self.drop(device, f"---\ndevice: {brain.journal.device}\n---\n")
            answer_one(brain, path)

    def drop(self, device: Watched, meta: str) -> str:
        path, word = f"inbox/p{len(self.prompts)}.md", self.word()
        self.prompts[path] = word
        (device.root / "inbox").mkdir(exist_ok=True)  # git keeps no empty folder
        (device.root / path).write_text(f"{meta}I said {word}.\n")
        return path

    @precondition(lambda self: self.prompts)
    @rule(number=DEVICES, place=PLACES, is_purged=st.booleans())
    def take_back(self, number: int, place: int, is_purged: bool) -> None:
        """A person has an exchange forgotten, where it is known."""
        path = sorted(self.prompts)[place % len(self.prompts)]
        with self.device(number).opened() as brain:
            brain.observed.adopt()
            try:
                target = find_target(brain, path)
            except UserError:  # not answered, or another device's journal has not arrived
                return
            purge(brain, target) if is_purged else forget(brain, target)
            self.deleted.add(self.prompts[path])
            self.purged |= {self.prompts[path]} if is_purged else set()

    @rule(number=DEVICES, back=st.integers(1, 3))
    def undo(self, number: int, back: int) -> None:
        """A person undoes one of the last changes of a device."""
        device = self.device(number)
        with device.opened() as brain:
            brain.observed.adopt()
            kinds = (EventUndone.kind, DeviceTookOver.kind)
            events = [event for event in brain.journal.events() if event.changes and event.kind not in kinds]
            before = notes(device)
            try:
                undo(brain, events[-back % len(events)])
            except (UserError, ConflictError):
                return
        after = notes(device)
        self.deleted |= _words(*before.values()) - _words(*after.values())
        undone = {path for path in self.prompts if path.replace(".md", ".response.md") in before.keys() - after.keys()}
        self.deleted |= {self.prompts[path] for path in undone}  # its answer: `undo` of one asks for no other

    # what programs do

    @rule(number=DEVICES)
    def look(self, number: int) -> None:
        self.device(number).look()

    @rule(number=DEVICES, stop_at=st.integers(1, 40), how=st.sampled_from(["before", "torn", "after"]))
    def crash(self, number: int, stop_at: int, how: str) -> None:
        """A device loses power in the middle of a commit."""
        self.device(number).crash(CountingDisk(stop_at, how))

    @rule(number=DEVICES, place=PLACES)
    def polish(self, number: int, place: int) -> None:
        """A newer version of the program changes a page and writes events of which this one has never heard."""
        device = self.device(number)
        if file := self.page(device, place):
            with device.opened() as brain:
                brain.observed.adopt()
                path, text = brain.tree.relative(file), file.read_bytes()
                after = text + f"- Polished {(word := self.word())}. ^{word}\n".encode()
                brain.committer.commit("page-polished", by="polisher", changes=[update(path, text, after)])

    @precondition(lambda self: self.prompts)
    @rule(number=DEVICES)
    def answer(self, number: int) -> None:
        """A daemon answers what is its, and reflects."""
        self.device(number).run()

    @precondition(lambda self: self.prompts)
    @rule()
    def promote(self) -> None:
        """The desk consolidates short-term memory."""
        self.devices[0].promote()

    @rule(one=DEVICES, other=DEVICES, part=PARTS)
    def sync(self, one: int, other: int, part: str) -> None:
        self.see_moves()
        if self.device(one) is not self.device(other):
            self.transport.sync(self.device(one), self.device(other), part)

    def see_moves(self) -> None:
        """Have the devices look on which a page was moved: with the next version at its old path it would be a copy."""
        while self.movers:
            self.movers.pop().look()

    # what holds

    def agree(self) -> None:
        """When all is synced, all hold the same, and nothing is written any more (G1, G2, G3, G5)."""
        for _ in range(ROUNDS):
            before = [device.files() for device in self.devices]
            for device in self.devices:
                device.run() if self.prompts else device.look()
            self.sync_all()
            if before == [device.files() for device in self.devices]:
                break
        else:
            changed = {path for path in before[0] if before[0].get(path) != self.devices[0].files().get(path)}
            raise AssertionError(f"no rest after {ROUNDS} rounds: {changed}")
        trees = [self.synced_files(device) for device in self.devices]
        for tree in trees[1:]:
            assert trees[0] == tree, {path for path in trees[0].keys() | tree if trees[0].get(path) != tree.get(path)}
        self.check(trees[0])
        if not self.purged:
            self.check_journals()

    def sync_all(self) -> None:
        self.see_moves()
        for source in self.devices:
            for target in self.devices:
                if source is not target:
                    self.transport.sync(source, target)

    def synced_files(self, device: Watched) -> dict[str, bytes]:
        return {path: text for path, text in device.files().items() if self.has_journals or path[:5] != JOURNALS}

    def check(self, files: dict[str, bytes]) -> None:
        """Look for lost words, doubled exchanges, and what should not stand there any more."""
        texts = notes(self.devices[0]).values()
        assert [] == [text for text in texts if b"<<<<<<<" in text]
        assert [] == [path for path in files if "sync-conflict" in path]
        assert set() == self.words - self.deleted - _words(*texts)
        for path, word in self.prompts.items():
            assert word in self.deleted or path.replace(".md", ".response.md") in files
        if self.has_journals:
            uuids = [page_uuid(raw) for path, raw in files.items() if path.startswith("memory/long_term/")]
            assert [] == [uuid for uuid, count in Counter(uuids).items() if uuid and count > 1]
            purged = self.purged - self.quoted(files)
            assert {} == {path: words for path, raw in files.items() if (words := purged & _words(raw))}
        pages = [raw.decode() for path, raw in files.items() if path.startswith("memory/long_term/events/")]
        noted = [
            *document_of(files[STM].decode()).memory.events,
            *(each for page in pages for each in _exchanges(page)),
        ]
        assert [] == [event for event, count in Counter(event.id for event in noted).items() if count > 1]
        if self.is_single:
            assert [] == [word for word, count in Counter(event.user for event in noted).items() if count > 1]
            assert [] == [path for path, count in self.answers().items() if count > 1]

    def quoted(self, files: dict[str, bytes]) -> set[str]:
        """Return the words of prompts that the answer to another prompt quotes, which `purge` names and leaves."""
        answers = {path.replace(".md", ".response.md"): word for path, word in self.prompts.items()}
        quoting = [_words(files[path]) - {word} for path, word in answers.items() if path in files]
        return set().union(*quoting)

    def check_journals(self) -> None:
        """Every text that ever stood in a file is kept by some device, word for word (the second half of G2)."""
        missing = set().union(*(device.seen for device in self.devices))
        for device in self.devices:
            with device.opened() as brain:
                missing -= {digest for digest in missing if brain.kept_text(digest) is not None}
        assert set() == missing

    def answers(self) -> Counter[str]:
        """Return how often each prompt was answered, by the journals of all devices."""
        answers: Counter[str] = Counter()
        for device in self.devices:
            with device.opened() as brain:
                answers.update(event.data["prompt"] for event in brain.journal.events(kinds={PromptAnswered}))
        return answers


def notes(device: Watched) -> dict[str, bytes]:
    """Return what a person reads and writes."""
    return {path: text for path, text in device.files().items() if path.startswith(("memory/", "inbox/"))}


def page_uuid(raw: bytes) -> str:
    match = re.search(rb"^uuid: (\S+)", raw, re.MULTILINE)
    return match[1].decode() if match else ""


def _words(*texts: bytes) -> set[str]:
    return {word for text in texts for word in WORD.findall(text.decode("utf-8", "replace"))}


def _exchanges(page: str) -> list:  # type: ignore[type-arg]
    return list(parse_exchanges(page))


TestDevices = Devices.TestCase
TestDevices.settings = examples(
    4,
    stateful_step_count=14,
    phases=(Phase.generate,),  # an example takes seconds: a failing one is not shrunk
)
TestDevices.pytestmark = [pytest.mark.slow]  # type: ignore[attr-defined]
