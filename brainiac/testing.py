"""For tests: `World`, a whole brain that a test speaks to as a person does, or just a brain, made and opened.

Nothing here stands in for a part of the program: folder, loader, pipeline and commands are the real ones.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

from brainiac.brain import Brain
from brainiac.cli.app import run
from brainiac.cli.session import lending
from brainiac.clock import SYSTEM, Clock, ManualClock
from brainiac.formats.prompt import error_path, parse_response, response_path
from brainiac.host.trust import TrustStore
from brainiac.pipeline.daemon import Daemon, Outcome, run_once
from brainiac.skeleton import create_brain
from brainiac.storage.files import Disk
from brainiac.terminal import guard
from brainiac.tree import is_brain
from brainiac.verbs import Caller, verb_named

__all__ = [
    "Asked",
    "CountingDisk",
    "Crash",
    "FileSync",
    "Said",
    "World",
    "command",
    "door",
    "install_plugin",
    "make_brain",
    "run_once",
]

# what a command imports that is killed
_PRELOADED = ["brainiac.testing", "brainiac.cli.run", "brainiac.llm.offline", "brainiac.search.retrieval", "Stemmer"]
KILL_SECONDS = 60.0
START = datetime(2025, 9, 15, 9, tzinfo=UTC)  # a Monday
Save = Literal["write", "append", "replace", "backup"]
Moment = Literal["before", "torn", "after"]


def make_brain(folder: Path, *, clock: Clock = SYSTEM) -> Brain:
    """Make a brain as `brainiac init` does and open it.

    Args:
        folder: Empty or not there yet. Set `XDG_STATE_HOME` and `XDG_CACHE_HOME` to temporary folders too,
            since locks and trust are kept there.
        clock: For tests that move time by hand, a `brainiac.clock.ManualClock`.
    """
    create_brain(folder, clock=clock)
    return Brain(folder, clock=clock)


def install_plugin(brain: Brain, file: Path | str) -> None:
    """Copy a plugin's file into a brain and trust it; before `brain.plugins` is first used."""
    path = shutil.copy(file, brain.tree.plugins)
    TrustStore(brain.places.state / "trust.json", brain.tree.plugins).trust(Path(path).stem)


def command(brain: Brain, *words: str, typed: str = "") -> Said:
    """Run a command on a brain that is open, with all that is registered in it, such as `command(brain, "promote")`.

    Args:
        brain: The brain, as a daemon lends its own.
        words: The command line after `brainiac`.
        typed: What stands at standard input, which is no terminal: a question needs `--yes`.
    """
    with lending(brain):
        return _said(["--brain", str(brain.root), *words], brain.clock, typed)


def door(brain: Brain, verb: str, *, by: str = "mcp:test", **arguments: Any) -> dict[str, Any]:
    """Return what a client at a door gets from a verb, as it stands in docs/verbs.md.

    Args:
        brain: The brain, as a daemon lends its own.
        verb: Its name.
        by: The client's name.
        arguments: Of the verb, as the client wrote them.

    Raises:
        UserError: As the client is told.
    """
    return verb_named(verb).call(brain, arguments, Caller(by))


# --- a whole brain ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """What a command left: its exit code and what it printed, as a person sees it who has sent it into a file."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed, read as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Asked:
    """A prompt that was dropped into the inbox."""

    prompt: Path

    @property
    def answer(self) -> str | None:
        """The text of its response, without front matter; None while there is none."""
        file = Path(response_path(str(self.prompt)))
        return parse_response(file.name, file.read_bytes()).text if file.exists() else None

    @property
    def error(self) -> str | None:
        """The text of its error file; None where there is none."""
        file = Path(error_path(str(self.prompt)))
        return file.read_text() if file.exists() else None


class World:
    """A brain on a machine of its own, with a clock that stands still until a test moves it.

    All that belongs to the machine (home, state, cache, config) stands in a folder of the world's, and no verb leaves a
    trace in this process's environment. Files are dated by the world's clock, those too that a test writes by itself.

    Args:
        folder: For the brain, `brain/`, and the machine's files, `home/`. A brain that is there already is taken.
        name: Of the machine.
        like: Another world, whose clock and sync tool it shares.

    Attributes:
        root: The brain's folder.
        home: The machine's own files; its settings are `home/config/brainiac/config.yaml`.
        clock: The world's clock, from 2025-09-15T09:00:00Z on.
    """

    def __init__(self, folder: Path, *, name: str = "laptop", like: World | None = None) -> None:
        self.folder, self.root, self.home = folder, folder / "brain", folder / "home"
        self.clock: ManualClock = like.clock if like else ManualClock(START)
        self.file_sync: FileSync = like.file_sync if like else FileSync()
        device = self.home / "state/brainiac/device_id"
        if not device.exists():  # else it would be named by the host
            device.parent.mkdir(parents=True, exist_ok=True)
            device.write_text(f"{name}-0a1b2c\n")
        if not is_brain(self.root):
            with self._here(), closing(make_brain(self.root, clock=self.clock)) as brain:
                brain.observed.adopt()  # as `brainiac init` does

    def save(self, path: str, text: str | bytes, how: Save = "write") -> Path:
        """Save a file of the brain, and return it.

        Args:
            path: Relative; its folder is made where it is missing.
            text: All of its text; what is added, for `append`.
            how: `write` into the file as nano does, `append` to it, `replace` it by a new one as Obsidian does, or
                `backup` as vim does: the old file is moved away, a new one is written, the old one is deleted.
        """
        target, content = self.root / path, text if isinstance(text, bytes) else text.encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.swp" if how == "replace" else f"{target.name}~")
        if how == "backup" and target.exists():
            target.rename(aside)
        with (aside if how == "replace" else target).open("ab" if how == "append" else "wb") as file:
            file.write(content)
        if how == "replace":
            aside.replace(target)
        elif how == "backup":
            aside.unlink(missing_ok=True)
        self._date()
        return target

    def drop(self, name: str, text: str | bytes) -> Asked:
        """Drop a prompt into the inbox, whole, and return what its answer is read by."""
        return Asked(self.save(f"inbox/{name}", text, "replace"))

    def run(self) -> Outcome:
        """Do what a daemon does until nothing is left to do now; what becomes due later is for `tick`.

        Raises:
            LockedError: A daemon serves this brain.
        """
        with self.opened() as brain:
            return run_once(brain)

    def tick(self, seconds: float) -> None:
        """Let time pass under a daemon, at once as for a machine that slept, and do all that is due then.

        Timers, the hook `quiet` (promotion, organization) and retries run once for all that time. Until `idle_seconds`
        have passed since the last exchange nothing is promoted.
        """
        with self.opened() as brain:
            daemon = Daemon(brain)
            daemon.start(is_watching=False)
            try:
                daemon.bus.wait_idle()
                daemon.quiet.start()
                self.clock.advance(seconds)
                daemon.bus.wait_idle()
            finally:
                daemon.stop()

    def cli(self, *words: str, typed: str = "") -> Said:
        """Run a command for this brain, such as `cli("search", "Mira", "--json")`; its exit code 1 raises nothing.

        Args:
            words: The command line after `brainiac`.
            typed: What stands at standard input, which is no terminal: a question needs `--yes`.
        """
        with self._here():
            return _said(["--brain", str(self.root), *words], self.clock, typed)

    def door(self, verb: str, *, by: str = "mcp:test", **arguments: Any) -> dict[str, Any]:
        """Return what a client at a door gets from a verb; see the function `door`."""
        with self.opened() as brain:
            return door(brain, verb, by=by, **arguments)

    def kill(self, at: int, how: Moment = "before", *words: str) -> bool:
        """Run a command in a process of its own and kill it (SIGKILL) at one of its operations on the disk.

        `at` from 1 on until it returns False kills a command at each moment that there is. Locks, state and temporaries
        stay as the process left them.

        Args:
            at: The number of the operation, from 1.
            how: `before` it, `torn` in the middle of it, or `after` it.
            words: The command line after `brainiac`; without any, `run --once`.

        Returns:
            Whether it was killed; False where it ended before.

        Raises:
            TimeoutError: It did neither within a minute.
        """
        # not forked from this process: the libraries below have locks and threads here that a fork would wait for
        machine = multiprocessing.get_context("forkserver")
        models = ["litellm"] if "litellm" in sys.modules else []  # takes seconds; this process has set it up already
        machine.set_forkserver_preload(_PRELOADED + models)
        with self._here():
            line = ["--brain", str(self.root), *(words or ("run", "--once"))]
            process = machine.Process(target=_run_killed, args=(dict(os.environ), self.clock.now(), at, how, line))
            main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
            try:
                process.start()  # which would import the test's program again
            finally:
                sys.modules["__main__"] = main
            process.join(KILL_SECONDS)
            if process.exitcode is None:
                process.kill()
                raise TimeoutError(f"brainiac {' '.join(line)} did not end")
        return process.exitcode == -signal.SIGKILL

    def tree(self) -> dict[str, str]:
        """Return the text of every file of the brain by its path, journal and hidden files included."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {file.relative_to(self.root).as_posix(): file.read_text(errors="surrogateescape") for file in files}

    def device(self, name: str) -> World:
        """Return another machine, `name/` in this one's folder, to which the sync tool has brought this brain."""
        self.file_sync.send(self.root, self.folder / name / "brain")
        return World(self.folder / name, name=name, like=self)

    def sync(self, other: World) -> None:
        """Let a file sync tool bring two devices to one state; where both changed a file it leaves a conflict copy."""
        for source, target in (
            (self, other),
            (other, self),
            (self, other),
        ):  # the last brings a copy that was made here
            self.file_sync.send(source.root, target.root)

    @contextmanager
    def opened(self) -> Iterator[Brain]:
        """Open the brain on its machine, for what no verb does."""
        with self._here():
            brain = Brain(self.root, clock=self.clock)
            try:
                yield brain
            finally:
                brain.close()

    @contextmanager
    def _here(self) -> Iterator[None]:
        """Be on this machine, at its time, and date what is written by its clock."""
        former = dict(os.environ)
        os.environ.update({f"XDG_{name.upper()}_HOME": str(self.home / name) for name in ("state", "cache", "config")})
        os.environ.update(HOME=str(self.home), TZ="UTC")
        os.environ.pop("BRAINIAC_HOME", None)
        self._date()
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(former)
            self._date()

    def _date(self) -> None:
        """Date the files that were written since by the world's clock, each a little later than the one before."""
        now = int(self.clock.now().timestamp() * 1e9)
        files = [path for top in ("inbox", "memory", "system") for path in (self.root / top).rglob("*")]
        new = [(path.lstat().st_mtime_ns, path) for path in files if path.lstat().st_mtime_ns > now + 1e9]
        for number, (_, path) in enumerate(sorted(new)):
            os.utime(path, ns=(now + number, now + number), follow_symlinks=False)


def _said(line: list[str], clock: Clock, typed: str) -> Said:
    """Run a command line in this process and return what it left."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(typed.encode()), "utf-8")
        try:
            guard()
            code = run(line, clock)
        finally:
            sys.stdin = stdin
    for stream in (out, err):
        stream.seek(0)
    return Said(code, out.read(), err.read())


def _run_killed(environment: dict[str, str], now: datetime, at: int, how: Moment, line: list[str]) -> None:
    """Run a command in a process made for it, which is killed at an operation on the disk."""
    os.environ.clear()
    os.environ.update(environment)
    disk = CountingDisk(at, how, is_killed=True)
    for name in disk.OPERATIONS:  # of all disks of this process
        setattr(Disk, name, getattr(disk, name))
    sys.exit(run(line, ManualClock(now)))


# --- a sync tool ------------------------------------------------------------------------------------------------------


class _Version(NamedTuple):
    """A file as a device last announced it: how many changes of each device it contains, its text (None where it is
    deleted), and when that was saved."""

    vector: Counter[str]
    content: bytes | None
    time: int


_NOTHING = _Version(Counter(), None, 0)


class FileSync:
    """A tool that syncs folders, as Syncthing was observed to do it.

    Of two versions that do not contain each other the later one stands, and the other becomes a copy on the device that
    had it; a deletion loses against a change.

    Args:
        left_out: Beginnings of paths that are not synced; what `.stignore` names is not anyway.

    Attributes:
        copies: How many conflict copies it made.
    """

    def __init__(self, left_out: tuple[str, ...] = ()) -> None:
        self._left_out, self.copies = ("logs/access.log", "logs/digest", ".git/", *left_out), 0
        self._announced: dict[Path, dict[str, _Version]] = {}  # by folder and path

    def send(self, source: Path, target: Path, part: str = "") -> None:
        """Bring what one folder has to another one.

        Args:
            source: The one.
            target: The other; it need not be there yet.
            part: The beginning of the paths that arrive; the rest is on its way.
        """
        theirs, ours = self._scan(source), self._scan(target)
        for path in sorted(path for path in theirs if path.startswith(part)):
            their, our = theirs[path], ours.get(path, _NOTHING)
            is_newer = our.vector <= their.vector or our.content == their.content
            if their.vector <= our.vector or not (is_newer or _rank(their) > _rank(our)):
                continue
            if not is_newer and our.content is not None:
                self.copies += 1
                copy = f".sync-conflict-20260101-{self.copies:06d}-ABCDEFG"
                self._write((target / path).with_stem(Path(path).stem + copy), our)
            ours[path] = their._replace(vector=their.vector | our.vector)
            self._write(target / path, their)

    def files(self, root: Path) -> dict[str, bytes]:
        """Return the files of a folder that are synced."""
        paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
        is_synced = re.compile(r"(?!.*(^|/)\.(~|brainiac-))").match
        return {
            path: file.read_bytes()
            for path, file in paths.items()
            if is_synced(path) and not path.startswith(self._left_out)
        }

    def _scan(self, root: Path) -> dict[str, _Version]:
        """Announce what changed in a folder since it was last looked at."""
        known, files = self._announced.setdefault(root, {}), self.files(root)
        for path in known.keys() | files.keys():
            former, content = known.get(path, _NOTHING), files.get(path)
            if former.content != content:
                vector = former.vector | Counter({str(root): max(former.vector.values(), default=0) + 1})
                known[path] = _Version(vector, content, (root / path).stat().st_mtime_ns if path in files else 0)
        return known

    @staticmethod
    def _write(place: Path, version: _Version) -> None:
        if version.content is None:
            place.unlink(missing_ok=True)
        elif not place.exists() or place.read_bytes() != version.content:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(version.content)
            os.utime(place, ns=(version.time, version.time))


def _rank(version: _Version) -> tuple[bool, int, bytes]:
    """Of two versions that do not contain each other the higher one stands, on every device alike."""
    return version.content is not None, version.time, version.content or b""


# --- a disk that fails ------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process ends here; nothing catches it."""


class CountingDisk(Disk):
    """A disk that counts its operations and stops at one of them.

    Args:
        stop_at: Number of the operation, from 1; 0: never.
        how: `before` it, `torn` in the middle of it (writes and copies only, else before), or `after` it.
        is_killed: Kill the process with SIGKILL instead of raising.
    """

    OPERATIONS = tuple(name for name in vars(Disk) if not name.startswith("_"))

    def __init__(self, stop_at: int = 0, how: str = "before", is_killed: bool = False) -> None:
        self.stop_at, self.how, self.is_killed = stop_at, how, is_killed
        self.done: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return partial(self.reached, name, found) if name in CountingDisk.OPERATIONS else found

    def reached(self, name: str, operation: Callable[..., object], *arguments: Any, **named: Any) -> object:
        """Do an operation, or stop at it; for subclasses, which may do more."""
        self.done.append(name)
        if len(self.done) != self.stop_at:
            return operation(*arguments, **named)
        if self.how == "torn" and name in ("write", "append"):
            operation(arguments[0], arguments[1][: len(arguments[1]) // 2], **named)
        elif self.how == "after" or (self.how == "torn" and name == "copy"):
            operation(*arguments, **named)
        if self.how == "torn" and name == "copy":
            os.truncate(arguments[1], arguments[1].stat().st_size // 2)
        if self.is_killed:
            os.kill(os.getpid(), signal.SIGKILL)
        self.stop_at = 0
        raise Crash
