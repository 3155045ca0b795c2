"""The real program as a process of its own, for tests and benchmarks that are hard on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from brainiac import Brain, Event
from brainiac.testing import command as told_by
from brainiac.testing import install_plugin
from tests.support.notes_texts import EMPTY_STM
from tests.support.pipeline import eventually, make_folder
from tests.support.program import Program

CONFIG = "inbox: {settle_ms: 20, typing_seconds: 1}\nwatch: {rescan_seconds: 1}\nrecall: {embedder: none}\n"
START_SECONDS = 300.0  # also of a hundred thousand pages, on a busy machine


def living_brain(root: Path, config: str = CONFIG) -> Path:
    """Make a brain with an empty short-term memory."""
    make_folder(root, config)
    (root / "memory/short_term.md").write_text(EMPTY_STM)
    return root


def trusted(root: Path, name: str, source: str) -> None:
    """Put a plugin of its own into a brain, trusted on this machine."""
    file = root.parent / f"{name}.py"
    file.write_text(source)
    with closing(Brain(root)) as brain:
        install_plugin(brain, file)
    file.unlink()


def model_machine(url: str) -> None:
    """Let this machine's own config name a server as the one of OpenAI's models."""
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "brainiac/config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"api_bases: {{openai: {url}}}\n")


def command(root: Path, *arguments: str) -> list[str]:
    """Return the command line of the daemon."""
    return [sys.executable, "-m", "brainiac", "--brain", str(root), "run", *arguments]


def unprivileged() -> tuple[str, ...]:
    """Return a command that runs another as one to whom permissions apply, also where we are root."""
    if os.geteuid() != 0:
        return ()
    return "setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"


class Living:
    """A brain's folder and the process that serves it."""

    def __init__(self, root: Path, process: subprocess.Popen[bytes] | Program, log: Path) -> None:
        self.root, self.process, self.log = root, process, log

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def status(self) -> dict[str, Any]:
        """What `brainiac status --json` tells."""
        with closing(Brain(self.root, is_reading=True)) as brain:
            found: dict[str, Any] = told_by(brain, "status", "--json").json
            return found

    def serves_as(self, pid: int | None) -> bool:
        """Return whether the daemon that serves the brain is this process."""
        return bool(self.status["daemon"].get("pid") == pid)

    def drop(self, path: str, text: str | bytes) -> Path:
        """Put a whole file below the inbox."""
        target = self.root / "inbox" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = self.root / f".aside-{target.name}"
        aside.write_bytes(text if isinstance(text, bytes) else text.encode())
        aside.rename(target)
        return target

    def response(self, path: str) -> str | None:
        """Return the response of a prompt of the inbox, or None."""
        file = self.root / "inbox" / (path.removesuffix(".md") + ".response.md")
        return file.read_text() if file.is_file() else None

    def wait_for_answer(self, path: str, seconds: float = 30) -> str:
        """Wait for the response of a prompt of the inbox."""
        eventually(lambda: self.response(path) is not None or not self.is_alive, f"an answer to {path}", seconds)
        answer = self.response(path)
        assert answer is not None, f"the daemon ended: {self.log.read_text()[-2000:]}"
        return answer

    def wait_for_event(self, kind: str, seconds: float = 30, **data: object) -> Event:
        """Wait until an event of a kind, with such data, stands in the journal."""
        found: list[Event] = []

        def has_come() -> bool:
            found[:] = [event for event in events_of(self.root, kind) if data.items() <= event.data.items()]
            return bool(found)

        eventually(has_come, f"{kind} {data}", seconds)
        return found[0]

    def answer(self, path: str, text: str = "I live in Portland.") -> str:
        """Drop a prompt and wait for its response: the proof that the daemon lives."""
        self.drop(path, text)
        return self.wait_for_answer(path)

    def terminate(self) -> int:
        """End it as a person does and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        """End it as a power failure does."""
        self.process.kill()
        self.process.wait(30)


@contextmanager
def living(
    root: Path,
    *arguments: str,
    environment: Mapping[str, str] = {},
    is_awaited: bool = True,
    prefix: Sequence[str] = (),
) -> Iterator[Living]:
    """Run the program until it watches; kill it at the end if the test did not end it.

    Args:
        root: A brain.
        arguments: More of the command line.
        environment: More variables, which its start needs.
        is_awaited: Whether to wait until it watches.
        prefix: A command that runs the program.
    """
    log = root.parent / f"{root.name}.log"
    with log.open("ab") as out:
        process: subprocess.Popen[bytes] | Program
        line = command(root, *arguments)
        if prefix or environment:
            process = subprocess.Popen([*prefix, *line], stdout=out, stderr=out, env={**os.environ, **environment})
        else:
            process = Program(*line[3:], out=out)
    one = Living(root, process, log)
    try:
        if is_awaited:
            eventually(
                lambda: not one.is_alive or one.status["daemon"].get("pid") == process.pid, "start", START_SECONDS
            )
            assert one.is_alive, f"it did not start: {log.read_text()[-3000:]}"
        yield one
    finally:
        if one.is_alive:
            process.kill()
        process.wait(30)


def places_of(root: Path) -> Any:
    """Return where this machine keeps what belongs to a brain."""
    with closing(Brain(root, is_reading=True)) as brain:
        return brain.places


def journal_of(root: Path) -> Any:
    """Return a brain's journal for reading."""
    with closing(Brain(root, is_reading=True)) as brain:
        return brain.journal


def events_of(root: Path, *kinds: str) -> list[Event]:
    """Return the journal's events of some kinds."""
    return list(journal_of(root).events(kinds=set(kinds)))


def temporaries(root: Path) -> list[str]:
    """Return the temporary files of ours that stand in the tree."""
    return sorted(path.name for path in root.rglob(".brainiac-*"))


def unfolded(root: Path) -> list[str]:
    """Return the tracked files that are not, byte for byte, what the journal folds to; none is as it must be."""
    brain = Brain(root)
    try:
        brain.observed.adopt()
        fold = {path: digest for path, digest in brain.journal.fold().items() if brain.tree.is_tracked(path)}
        standing = {
            path: (root / path).read_bytes()
            for entry in brain.tree.walk(brain.tree.inbox, brain.tree.memory, brain.tree.system)
            if brain.tree.is_tracked(path := brain.tree.relative(entry.path))
        }
        differ = [path for path in fold if standing.get(path) != brain.committer.text_of(fold[path])]
        return sorted({*differ, *(standing.keys() - fold.keys())})
    finally:
        brain.close()
