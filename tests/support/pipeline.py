"""A real brain with a real daemon and a scripted plugin in place of the processes, for the tests of the pipeline."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from brainiac import Brain, Exchange, Prompt, hookimpl
from brainiac.clock import Clock, ManualClock, iso
from brainiac.events import content_hash, create, observe, update
from brainiac.formats.frontmatter import render_meta
from brainiac.pipeline.daemon import Daemon

PROCESSES = ("core_loop", "reflection", "promotion", "organization")
CONFIG = f"""\
plugins: {{disabled: [{", ".join(PROCESSES)}]}}
inbox: {{settle_ms: 20, typing_seconds: 0.4}}
recall: {{embedder: none}}
"""


def make_folder(root: Path, config: str = CONFIG) -> Path:
    """Make the folders and files that a brain needs."""
    for folder in ("inbox/notes", "memory/long_term/concrete", "memory/archive", "system", "plugins", "logs"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "system/core_identity.md").write_text("# Identity\n")
    (root / "system/config.yaml").write_text(config)
    return root


class Scripted:
    """A plugin that answers at once, remembers all it hears, and can be told to do otherwise."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.exchanges: list[Exchange] = []
        self.heard: list[tuple[str, object]] = []
        self.before_answer: Callable[[Prompt], None] = lambda prompt: None
        self.on_exchange: Callable[[Exchange], None] = lambda exchange: None
        self._mutex = threading.Lock()

    @hookimpl
    def prompt_arrived(self, brain: Brain, prompt: Prompt) -> None:
        with self._mutex:
            self.prompts.append(prompt)
        raw = brain.read(prompt.path)
        self.before_answer(prompt)
        if raw is not None:
            answer(brain, prompt, raw)

    @hookimpl
    def response_arrived(self, exchange: Exchange, brain: Brain) -> None:
        self.on_exchange(exchange)
        self.exchanges.append(exchange)
        brain.record("exchange-reflected", by="scripted", data={"exchange": exchange.id})

    @hookimpl
    def quiet(self, idle_seconds: float) -> None:
        self.heard.append(("quiet", idle_seconds))

    @hookimpl
    def quiet_on_any_device(self, idle_seconds: float) -> None:
        self.heard.append(("quiet_on_any_device", idle_seconds))

    @hookimpl
    def memory_created(self, path: str) -> None:
        self.heard.append(("memory_created", path))

    @hookimpl
    def memory_modified(self, path: str) -> None:
        self.heard.append(("memory_modified", path))

    @hookimpl
    def memory_moved(self, path: str, old_path: str) -> None:
        self.heard.append(("memory_moved", (path, old_path)))

    @hookimpl
    def memory_deleted(self, path: str) -> None:
        self.heard.append(("memory_deleted", path))

    def texts(self) -> list[str]:
        """The prompts it was asked, in order."""
        return [prompt.text for prompt in self.prompts]

    def of(self, hook: str) -> list[object]:
        """What it heard by one hook."""
        return [what for name, what in list(self.heard) if name == hook]


def answer(brain: Brain, prompt: Prompt, raw: bytes) -> None:
    """Answer a prompt as it was read, in one commit."""
    target = brain.answered.response_target(prompt)
    names = {"prompt_id": prompt.id, "prompt_sha256": prompt.sha256, "created_at": iso(brain.clock.now())}
    in_reply_to = posixpath.relpath(prompt.path, posixpath.dirname(target.path))
    text = f"{render_meta({'in_reply_to': in_reply_to, **names})}\nAnswer to: {prompt.text}\n"
    written = create(target.path, text) if target.before is None else update(target.path, target.before, text)
    data = {"prompt": prompt.path, "prompt_id": prompt.id, "prompt_sha256": prompt.sha256, "response": target.path}
    expect = {prompt.path: content_hash(raw)}
    brain.commit(
        "prompt-answered", by="scripted", changes=[observe(prompt.path, raw), written], data=data, expect=expect
    )


class Running:
    """A brain with its daemon."""

    def __init__(self, brain: Brain, daemon: Daemon, plugin: Scripted) -> None:
        self.brain, self.daemon, self.plugin, self.root = brain, daemon, plugin, brain.root

    def drop(self, path: str, text: str) -> Path:
        """Write a file of the tree, whole."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def text(self, path: str) -> str | None:
        """Read a file of the tree."""
        return self.brain.read_text(path)

    def wait_for(self, path: str, holding: str = "") -> str:
        """Wait until a file stands and holds a text; return what it holds."""
        eventually(lambda: holding in (self.text(path) or "") and self.text(path) is not None, path)
        return self.text(path) or ""

    def wait_idle(self) -> None:
        """Wait until nothing is left to do, now and a moment later."""
        for _ in range(2):
            time.sleep(0.06)
            eventually(lambda: self.daemon.bus.is_idle, "idle")


def opened(root: Path, plugin: Scripted, clock: Clock | None = None) -> Brain:
    """Open a brain with a scripted plugin."""
    brain = Brain(root, clock=clock or Clock())
    brain.plugins.register(plugin, "scripted")
    return brain


@contextmanager
def running(
    root: Path, plugin: Scripted | None = None, clock: Clock | None = None, *, is_backlog_answered: bool = False
) -> Iterator[Running]:
    """Run a daemon in this process; the folder is made when it is not there."""
    plugin = plugin or Scripted()
    brain = opened(root if root.exists() else make_folder(root), plugin, clock)
    daemon = Daemon(brain, is_backlog_answered=is_backlog_answered)
    daemon.start()
    try:
        yield Running(brain, daemon, plugin)
    finally:
        daemon.stop()
        brain.close()


def eventually(condition: Callable[[], bool], what: str = "", seconds: float = 15.0) -> None:
    """Wait for something that other threads or processes do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"did not happen: {what}"
        time.sleep(0.005)


def advance_until(clock: ManualClock, condition: Callable[[], bool], step_seconds: float = 0.25) -> None:
    """Move a clock on, bit by bit, until something happens."""
    end = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < end, "did not happen"
        clock.advance(step_seconds)
        time.sleep(0.005)
