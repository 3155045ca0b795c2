"""Two devices write, go offline, meet, and agree: whatever they do, nothing a person wrote is lost.

`BRAINIAC_SYNC_EXAMPLES=200 pytest tests/unit/test_sync.py` does it more often.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from brainiac.formats.short_term import document_of
from brainiac.history.devices import takeover
from brainiac.testing import make_brain
from tests.support.devices import Device, Git, Syncthing

PAGES = [f"memory/long_term/concrete/{name}.md" for name in ("bob", "garden")]
STM = "memory/short_term.md"
DEVICES = st.sampled_from([0, 1])
ROUNDS = 8


class TwoDevices(RuleBasedStateMachine):
    """A desk that runs the processes and a laptop; each word that is written is one of its kind."""

    @initialize(is_git=st.booleans())
    def begin(self, is_git: bool) -> None:
        self.patch, self.folder = pytest.MonkeyPatch(), tempfile.TemporaryDirectory()
        base = Path(self.folder.name)
        self.devices = tuple(Device(base / f"home-{name}", base / name, self.patch) for name in ("desk", "laptop"))
        desk, laptop = self.devices
        self.patch.setenv("XDG_STATE_HOME", str(desk.home / "XDG_STATE_HOME"))
        make_brain(desk.root).close()
        for path in PAGES:
            (desk.root / path).write_text("# Page\n\n- Begun. ^aaaa\n")
        with desk.opened() as brain:
            takeover(brain)
        desk.look()
        self.transport: Git | Syncthing = Git() if is_git else Syncthing()
        self.transport.begin((desk, laptop))
        self.words: set[str] = set()
        self.deleted: set[str] = set()
        self.prompts = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.agree()
            self.patch.undo()
            self.folder.cleanup()

    def word(self) -> str:
        name = f"word{len(self.words)}"
        self.words.add(name)
        return name

    @rule(number=DEVICES, path=st.sampled_from(PAGES), is_first=st.booleans())
    def add(self, number: int, path: str, is_first: bool) -> None:
        """A person adds a statement to a page, at its beginning or end."""
        file, word = self.devices[number].root / path, self.word()
        text = file.read_text() if file.exists() else "# Page\n\n"
        line = f"- Fact {word}. ^{word}\n"
        file.write_text(text.replace("# Page\n\n", f"# Page\n\n{line}", 1) if is_first else text + line)

    @rule(number=DEVICES, path=st.sampled_from(PAGES))
    def edit(self, number: int, path: str) -> None:
        """A person writes more into the first statement."""
        file = self.devices[number].root / path
        lines = file.read_text().splitlines(keepends=True)
        place = next((at for at, line in enumerate(lines) if line.startswith("- ")), None)
        if place is not None:
            lines[place] = lines[place].replace(". ^", f" {self.word()}. ^", 1)
            file.write_text("".join(lines))

    @rule(number=DEVICES, path=st.sampled_from(PAGES))
    def delete(self, number: int, path: str) -> None:
        """A person deletes the last line."""
        file = self.devices[number].root / path
        lines = file.read_text().splitlines(keepends=True)
        if len(lines) > 3:
            self.deleted |= {word for word in self.words if f"{word}." in lines[-1] or f"{word} " in lines[-1]}
            file.write_text("".join(lines[:-1]))

    @rule(number=DEVICES)
    def note_task(self, number: int) -> None:
        """A person writes a task into short-term memory."""
        file, word = self.devices[number].root / STM, self.word()
        file.write_text(str(document_of(file.read_text()).with_items(tasks=[f"task {word}"])))

    @rule(number=DEVICES)
    def say(self, number: int) -> None:
        """A person drops a prompt; the desk answers it when it gets it."""
        self.prompts += 1
        inbox = self.devices[number].root / "inbox"
        inbox.mkdir(exist_ok=True)  # git keeps no empty folder
        (inbox / f"p{self.prompts}.md").write_text(f"I said {self.word()}.\n")

    @rule(number=DEVICES)
    def look(self, number: int) -> None:
        self.devices[number].look()

    @rule(number=DEVICES)
    def sync(self, number: int) -> None:
        self.transport.sync(self.devices[number], self.devices[1 - number])

    @precondition(lambda self: self.prompts)
    @rule()
    def answer(self) -> None:
        """The desk answers and reflects."""
        self.devices[0].run()

    def agree(self) -> None:
        """When all is synced, both hold the same, and nothing is written any more (G1, G2, G3, G5)."""
        desk, laptop = self.devices
        for _ in range(ROUNDS):
            before = [device.files() for device in self.devices]
            for device in self.devices:
                device.run() if self.prompts else device.look()
            self.transport.sync(desk, laptop)
            self.transport.sync(laptop, desk)
            if before == [device.files() for device in self.devices]:
                break
        else:
            changed = {path for path in before[0] if before[0].get(path) != desk.files().get(path)}
            raise AssertionError(f"no rest after {ROUNDS} rounds: {changed}")
        files = desk.files()
        assert files == laptop.files()
        assert [] == [path for path in files if "sync-conflict" in path]
        text = b"\n".join(content for path, content in files.items() if path.startswith(("memory/", "inbox/"))).decode()
        assert "<<<<<<<" not in text
        assert set() == {
            word
            for word in self.words - self.deleted
            if f"{word}." not in text and f"{word} " not in text and f"{word}\n" not in text
        }
        for number in range(1, self.prompts + 1):
            assert f"inbox/p{number}.response.md" in files
        events = [event.id for event in document_of(files[STM].decode()).memory.events]
        assert len(events) == len(set(events)) == self.prompts


TestTwoDevices = TwoDevices.TestCase
TestTwoDevices.settings = settings(
    max_examples=int(os.environ.get("BRAINIAC_SYNC_EXAMPLES", "4")),
    stateful_step_count=12,
    deadline=None,
    phases=(Phase.generate,),  # an example takes seconds: a failing one is not shrunk
    suppress_health_check=list(HealthCheck),
)
