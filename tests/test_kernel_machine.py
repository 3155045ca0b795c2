"""Commits, people, editors, git and crashes in any order: the fold equals the tree and no save is ever missing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from kernel import OPERATIONS, STM, CountingDisk, Crash, Kernel, make_root, open_kernel

from brainiac.errors import ConflictError
from brainiac.events import Change, append, create, move, observe, remove, update
from brainiac.kernel.exchange import Disk
from brainiac.kernel.noticing import NotRestedError

FOLDER = "memory/long_term/concrete/"
PATHS = [FOLDER + "a.md", FOLDER + "b.md", "memory/archive/c.md", "inbox/p.md", STM]
paths = st.sampled_from(PATHS)
operations = st.integers(1, 30)


class InterruptedDisk(CountingDisk):
    """A disk at whose n-th operation somebody else does something."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        super().__init__()
        self._at, self._act = at, act

    def reached(self, name: str, *arguments: object, **named: object) -> object:
        if len(self.done) + 1 == self._at:
            self._act()
        return super().reached(name, *arguments, **named)


class KernelMachine(RuleBasedStateMachine):
    """One brain, its processes, and the people and tools that work in it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.number = 0
        self.saved: set[bytes] = set()  # every line a person ever saved
        self.latest: dict[str, set[bytes]] = {}  # those of the latest save of each file
        self.buffers: dict[str, tuple[bytes, set[bytes]]] = {}  # what editors hold, and what we added since
        self.commits: list[str] = []

    @initialize(is_journal_in_git=st.booleans())
    def start(self, is_journal_in_git: bool) -> None:
        make_root(self.folder / "brain")
        self.kernel = open_kernel(self.folder / "brain")
        self.kernel.write(".gitignore", "logs/access.log\n" if is_journal_in_git else "logs/\n")
        self.git("init", "-q")
        self.kernel.committer.recover()
        self.kernel.observed.adopt()

    # what people do

    @rule(path=paths, is_at_top=st.booleans(), is_replaced=st.booleans())
    def person_adds(self, path: str, is_at_top: bool, is_replaced: bool) -> None:
        self.person_saves(path, self.added(self.kernel.read(path) or b"", self.line("person"), is_at_top), is_replaced)

    @rule(path=paths)
    def person_rewrites(self, path: str) -> None:
        self.look()
        self.latest.pop(path, None)
        self.person_saves(path, self.line("person") + self.line("person"))

    @rule(path=paths, index=st.integers(0, 5))
    def person_removes_a_line(self, path: str, index: int) -> None:
        self.look()
        lines = (self.kernel.read(path) or b"").splitlines(keepends=True)
        if len(lines) > 1:
            gone = lines.pop(index % len(lines))
            self.latest[path] = self.latest.get(path, set()) - {gone}
            self.person_saves(path, b"".join(lines))

    @rule(path=paths)
    def person_deletes(self, path: str) -> None:
        self.look()
        self.kernel.tree.absolute(path).unlink(missing_ok=True)
        self.latest.pop(path, None)
        self.buffers.pop(path, None)

    @rule(source=paths, place=paths)
    def person_moves(self, source: str, place: str) -> None:
        self.look()
        if self.kernel.read(source) is not None and self.kernel.read(place) is None:
            self.kernel.tree.absolute(place).parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.kernel.tree.absolute(source), self.kernel.tree.absolute(place))
            self.latest[place] = self.latest.pop(source, set())
            self.buffers.pop(source, None)

    @rule(path=paths)
    def editor_opens(self, path: str) -> None:
        self.look()
        content = self.kernel.read(path)
        if content:
            self.buffers[path] = (content, set())

    @rule(path=paths, is_at_top=st.booleans())
    def editor_saves(self, path: str, is_at_top: bool) -> None:
        """The editor has not seen what was written since it opened the file; what we added stays all the same."""
        if path not in self.buffers or self.kernel.read(path) is None:
            return
        self.look()
        content, ours = self.buffers.pop(path)
        self.latest.pop(path, None)
        content = self.added(content, self.line("person"), is_at_top)
        self.person_saves(path, content)
        self.look()
        standing = self.kernel.read(path) or b""
        for line in ours:
            assert line in standing, (path, line, standing)
        self.buffers[path] = (content, ours)

    @rule(path=paths, commits=st.integers(1, 3), is_at_top=st.booleans(), is_ours_at_top=st.booleans())
    def editor_saves_over_our_commits(self, path: str, commits: int, is_at_top: bool, is_ours_at_top: bool) -> None:
        """The same in one stroke, which chance would seldom put together."""
        self.editor_opens(path)
        for _ in range(commits):
            self.commit_adds(path, is_ours_at_top, path)
        self.editor_saves(path, is_at_top)

    @rule(index=st.integers(0, 20))
    def git_checks_out(self, index: int) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")
        self.commits.append(self.git("rev-parse", "HEAD").strip())
        self.git("checkout", "-q", "-f", self.commits[index % len(self.commits)])
        self.latest, self.buffers = {}, {}

    # what processes do

    @rule(path=paths, is_at_top=st.booleans(), also=paths)
    def commit_adds(self, path: str, is_at_top: bool, also: str) -> None:
        line = self.line("process")
        with contextlib.suppress(ConflictError):
            self.commit(self.kernel, self.additions({path, also}, line, is_at_top))
            for each in {path, also}:
                assert line in (self.kernel.read(each) or b"")
                if each in self.buffers:
                    self.buffers[each][1].add(line)

    @rule(path=paths)
    def commit_removes(self, path: str) -> None:
        content = self.kernel.read(path)
        if content is not None:
            with contextlib.suppress(ConflictError):
                self.commit(self.kernel, [remove(path, content)])
                self.latest.pop(path, None)
                self.buffers.pop(path, None)

    @rule(source=paths, place=paths)
    def commit_moves(self, source: str, place: str) -> None:
        content = self.kernel.read(source)
        if content is not None and self.kernel.read(place) is None:
            with contextlib.suppress(ConflictError):
                self.commit(self.kernel, [move(source, place, content, content + self.line("process"))])
                self.latest[place] = self.latest.pop(source, set())  # what a person takes out there is theirs to take
                self.buffers.pop(source, None)

    @rule(path=paths)
    def commit_on_an_old_reading_is_refused(self, path: str) -> None:
        content = self.kernel.read(path)
        if content is not None:
            self.person_adds(path, False, False)
            standing = self.kernel.tracked()
            changes = [update(path, content, content + self.line("process")), create("inbox/n.md", "n")]
            with pytest.raises(ConflictError):
                self.commit(self.kernel, changes)
            assert "inbox/n.md" not in self.kernel.tracked()
            assert standing.keys() == self.kernel.tracked().keys()

    @rule(path=paths, at=operations, how=st.sampled_from(["in place", "replaced", "held open"]), also=paths)
    def commit_while_a_person_saves(self, path: str, at: int, how: str, also: str) -> None:
        """The save falls between any two operations of the commit, in each way that editors save."""
        base = self.kernel.read(path)
        if not base:
            return
        save, ours = base + self.line("person"), self.line("process")
        with open(self.kernel.tree.absolute(path), "r+b") as held:

            def act() -> None:
                if how == "held open":
                    held.truncate(0)
                    held.write(save)
                    held.flush()
                    self.saved.update(save.splitlines(keepends=True)[-1:])
                    self.latest.setdefault(path, set()).add(save.splitlines(keepends=True)[-1])
                else:
                    self.person_saves(path, save, is_replaced=how == "replaced")

            disk = InterruptedDisk(at, act)
            other = open_kernel(self.kernel.tree.root, disk, self.kernel.clock)
            with contextlib.suppress(ConflictError):
                self.commit(other, self.additions({path, also}, ours, False))
            other.committer.seen.close()
        self.rest()
        self.look()
        self.buffers.clear()

    @rule(
        path=paths,
        at=operations,
        how=st.sampled_from(["before", "torn", "after"]),
        edited=st.none() | paths,
        also=paths,
    )
    def crash(self, path: str, at: int, how: str, edited: str | None, also: str) -> None:
        line = self.line("process")
        changes = self.additions({path, also}, line, False)
        self.kernel.committer.seen.close()
        broken = open_kernel(self.kernel.tree.root, CountingDisk(at, how), self.kernel.clock)
        with contextlib.suppress(ConflictError, Crash):
            self.commit(broken, changes)
        broken.committer.seen.close()
        if edited is not None:
            self.person_adds(edited, False, False)
        self.reopen()
        standing = {each: line in (self.kernel.read(each) or b"") for each in {path, also}}
        left = {p for event in self.kernel.journal.events() for p in event.data.get("left", ()) if line}
        assert edited in standing or left & set(standing) or len(set(standing.values())) == 1, standing
        self.buffers.clear()

    @rule(is_forgotten=st.booleans())
    def restart(self, is_forgotten: bool) -> None:
        self.kernel.committer.close()
        if is_forgotten:
            (self.kernel.places.state / "observed.sqlite").unlink()
        self.reopen()

    @rule()
    def rest(self) -> None:
        self.kernel.clock.advance(11)  # type: ignore[attr-defined]
        self.kernel.committer.check_displaced()

    @rule()
    def look_and_compare(self) -> None:
        self.look()
        self.compare()

    def teardown(self) -> None:
        if hasattr(self, "kernel"):
            self.rest()
            self.look()
            self.compare()
            self.kernel.committer.close()
            shutil.rmtree(self.kernel.places.state)
        shutil.rmtree(self.folder)

    # what must hold

    def compare(self) -> None:
        assert self.kernel.tracked() == self.kernel.folded()
        everything = b"\0".join(self.kernel.everything()) + self.git_texts()
        for line in self.saved:
            assert line in everything, line
        tree = b"\0".join(self.kernel.tracked().values())
        for path, lines in self.latest.items():
            for line in lines:
                assert line in tree, (path, line)

    # parts

    def look(self) -> None:
        """Look at what changed, as the bus does."""
        for path in self.kernel.observed.changed():
            try:
                self.kernel.observed.note_change(path)
            except NotRestedError as error:
                self.kernel.clock.advance(error.again_in_seconds)  # type: ignore[attr-defined]
                self.kernel.observed.note_change(path)

    def reopen(self) -> None:
        with contextlib.suppress(Exception):
            self.kernel.committer.seen.close()
        self.kernel = open_kernel(self.kernel.tree.root, clock=self.kernel.clock)
        self.kernel.committer.recover()
        self.kernel.observed.adopt()

    def commit(self, kernel: Kernel, changes: list[Change]) -> None:
        log = [append("logs/access.log", "a line\n")]
        prompt = kernel.read("inbox/p.md")
        if prompt is not None and all("inbox/p.md" not in (c.path, c.source) for c in changes):
            log.append(observe("inbox/p.md", prompt))
        kernel.committer.commit("test-done", by="test", changes=[*changes, *log])

    def additions(self, targets: set[str], line: bytes, is_at_top: bool) -> list[Change]:
        changes = []
        for path in sorted(targets):
            content = self.kernel.read(path)
            after = self.added(content or b"", line, is_at_top)
            changes.append(create(path, after) if content is None else update(path, content, after))
        return changes

    def person_saves(self, path: str, content: bytes, is_replaced: bool = False) -> None:
        lines = {line for line in content.splitlines(keepends=True) if line.startswith(b"person")}
        self.saved |= lines
        self.latest[path] = lines
        absolute = self.kernel.tree.absolute(path)
        absolute.parent.mkdir(parents=True, exist_ok=True)
        if is_replaced:
            draft = absolute.with_name(".draft.swp")
            draft.write_bytes(content)
            os.replace(draft, absolute)
        else:
            absolute.write_bytes(content)

    def line(self, who: str) -> bytes:
        self.number += 1
        return f"{who} {self.number}.\n".encode()

    @staticmethod
    def added(content: bytes, line: bytes, is_at_top: bool) -> bytes:
        return line + content if is_at_top else content + line

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gc.auto=0"]
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.folder / "brain", check=True, capture_output=True, text=True).stdout

    def git_texts(self) -> bytes:
        """All that git holds; a checkout may have taken the journal's blobs with it."""
        if not self.commits:
            return b""
        names = self.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()
        blobs = [name.split()[0] for name in names if " blob " in name]
        return "\0".join(self.git("cat-file", "blob", name) for name in blobs).encode()


assert set(OPERATIONS) <= set(dir(Disk))
TestKernelMachine = KernelMachine.TestCase
TestKernelMachine.settings = settings(
    max_examples=int(os.environ.get("KERNEL_EXAMPLES", "20")),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
