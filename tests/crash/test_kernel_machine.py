"""Commits, people, editors, git, stops and kills in any order: the fold equals the tree and no line is ever missing.

A line is *owed*, and stands in some file of the tree, from the moment a person saved it or a commit that holds it is
in the journal, until somebody takes it out: a person who had it before their eyes, a process, a deletion, git.
A line that is only in a blob is a failure.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from brainiac.errors import ConflictError
from brainiac.events import Change, append, create, move, observe, remove, update
from brainiac.storage.external_edits import NotRestedError
from brainiac.storage.files import Disk
from tests.support.examples import examples
from tests.support.kernel import (
    OPERATIONS,
    STM,
    CountingDisk,
    Crash,
    Kernel,
    everything,
    failing_kernel,
    forget_seen,
    make_root,
    open_kernel,
)

FOLDER = "memory/long_term/concrete/"
PATHS = [FOLDER + "a.md", FOLDER + "b.md", "memory/archive/c.md", "inbox/p.md", STM]
WAYS = ["in place", "replaced", "held open"]  # how editors save: the last into the file as it was when it was opened
paths = st.sampled_from(PATHS)
operations = st.integers(1, 30)
edits = st.tuples(st.sampled_from(["top", "end", "changed", "removed"]), st.integers(0, 9))


class InterruptedDisk(CountingDisk):
    """A disk at whose n-th operation somebody else does something, and at another of which the process dies."""

    def __init__(self, at: int, act: Callable[[], None], stop_at: int = 0, how: str = "before") -> None:
        super().__init__(stop_at, how)
        self._at, self._act = at, act

    def reached(self, name: str, operation: Callable[..., object], *arguments: object, **named: object) -> object:
        if len(self.done) + 1 == self._at:
            self._act()
        return super().reached(name, operation, *arguments, **named)


class KernelMachine(RuleBasedStateMachine):
    """One brain, its processes, and the people and tools that work in it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.number = 0
        self.saved: set[bytes] = set()  # every line a person ever saved
        self.owed: dict[str, set[bytes]] = {}
        self.buffers: dict[str, bytes] = {}  # what editors hold
        self.commits: list[str] = []
        self.uncertain: dict[bytes, set[str]] = {}  # a killed process's line, and where it was to stand

    @initialize(is_journal_in_git=st.booleans())
    def start(self, is_journal_in_git: bool) -> None:
        make_root(self.folder / "brain")
        self.kernel = open_kernel(self.folder / "brain")
        self.kernel.write(".gitignore", "logs/access.log\n" if is_journal_in_git else "logs/\n")
        self.git("init", "-q")
        self.kernel.committer.recover()
        self.kernel.observed.adopt()

    # what people do

    @rule(path=paths, edit=edits, is_replaced=st.booleans())
    def person_edits(self, path: str, edit: tuple[str, int], is_replaced: bool) -> None:
        """In sight of what stands; what they take out goes, and stays away."""
        self.look()
        before = self.kernel.read(path) or b""
        after = self.edited(before, edit)
        self.person_saves(path, before, after, is_replaced)
        self.look()
        gone = {line for line in _lines(before) - _lines(after) if line.startswith(b"person")}
        assert not gone & _lines(self.kernel.read(path) or b"")

    @rule(path=paths)
    def person_rewrites(self, path: str) -> None:
        self.look()
        self.person_saves(path, self.kernel.read(path) or b"", self.line("person") + self.line("person"))

    @rule(path=paths)
    def person_deletes(self, path: str) -> None:
        self.look()
        self.kernel.tree.absolute(path).unlink(missing_ok=True)
        self.forget(path)

    @rule(source=paths, place=paths)
    def person_moves(self, source: str, place: str) -> None:
        self.look()
        if self.kernel.read(source) is not None and self.kernel.read(place) is None:
            self.kernel.tree.absolute(place).parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.kernel.tree.absolute(source), self.kernel.tree.absolute(place))
            self.owed[place] = self.owed.pop(source, set())
            self.forget(source)

    @rule(path=paths)
    def editor_opens(self, path: str) -> None:
        self.look()
        content = self.kernel.read(path)
        if content:
            self.buffers[path] = content

    @rule(path=paths, edit=edits, is_kept_open=st.booleans())
    def editor_saves(self, path: str, edit: tuple[str, int], is_kept_open: bool) -> None:
        """It has not seen what was written since it opened the file; what we added stays all the same."""
        self.look()
        self.buffer_saved(path, edit, is_kept_open)
        self.look()
        self.compare()

    @rule(path=paths, commits=st.integers(1, 3), edit=edits, is_ours_at_top=st.booleans())
    def editor_saves_over_our_commits(
        self, path: str, commits: int, edit: tuple[str, int], is_ours_at_top: bool
    ) -> None:
        """The same in one stroke, which chance would seldom put together."""
        self.editor_opens(path)
        for _ in range(commits):
            self.commit_adds(path, is_ours_at_top, path)
        self.editor_saves(path, edit, False)

    @rule(
        path=paths,
        is_killed=st.booleans(),
        is_opened_before=st.booleans(),
        also=paths,
        edit=edits,
        torn=st.sampled_from(["whole", "empty", "half"]),
    )
    def saves_while_no_process_runs(
        self, path: str, is_killed: bool, is_opened_before: bool, also: str, edit: tuple[str, int], torn: str
    ) -> None:
        """A buffer opened before our last commits is saved after a stop or a kill, perhaps unfinished at the start."""
        self.look()  # what a person overwrites before anybody saw it, nobody has
        if is_opened_before:
            self.editor_opens(path)
            self.commit_adds(path, True, also)
            self.commit_adds(path, False, also)
        if is_killed:
            self.kernel.committer.database.close()
        else:
            self.kernel.committer.close()
        self.buffer_saved(path, edit, True)
        whole = self.kernel.read(path)
        if torn != "whole" and whole:
            self.kernel.write(path, whole[: len(whole) // 2] if torn == "half" else b"")
            moment = time.time() + 60  # written this instant, however slow the machine is
            os.utime(self.kernel.tree.absolute(path), (moment, moment))
        self.reopen()
        if torn != "whole" and whole:
            self.kernel.write(path, whole)
        self.look()
        self.compare()

    @rule(index=st.integers(0, 20), is_down=st.booleans())
    def git_checks_out(self, index: int, is_down: bool) -> None:
        """What stood before stands again as it was, also when nobody was there to see it."""
        self.look()
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")
        self.commits.append(self.git("rev-parse", "HEAD").strip())
        if is_down:
            self.kernel.committer.close()
        self.git("checkout", "-q", "-f", self.commits[index % len(self.commits)])
        self.owed, self.buffers = {}, {}
        standing = self.kernel.tracked()
        if is_down:
            self.reopen()
        self.look()
        assert standing == self.kernel.tracked()

    # what processes do

    @rule(path=paths, is_at_top=st.booleans(), also=paths)
    def commit_adds(self, path: str, is_at_top: bool, also: str) -> None:
        line = self.line("process")
        targets = {path, also}
        with contextlib.suppress(ConflictError):
            self.commit(self.kernel, self.additions(targets, line, is_at_top))
            for each in targets:
                assert line in (self.kernel.read(each) or b"")
                self.owe(each, line)

    @rule(path=paths, index=st.integers(0, 9))
    def commit_takes_a_line_of_ours(self, path: str, index: int) -> None:
        """As a promotion does with short-term memory."""
        self.look()
        content = self.kernel.read(path) or b""
        if ours := sorted(line for line in _lines(content) if line.startswith(b"process")):
            gone = ours[index % len(ours)]
            with contextlib.suppress(ConflictError):
                self.commit(self.kernel, [update(path, content, content.replace(gone, b""))])
                self.owed[path] = self.owed.get(path, set()) - {gone}

    @rule(path=paths)
    def commit_removes(self, path: str) -> None:
        content = self.kernel.read(path)
        if content is not None:
            with contextlib.suppress(ConflictError):
                self.commit(self.kernel, [remove(path, content)])
                self.forget(path)

    @rule(source=paths, place=paths)
    def commit_moves(self, source: str, place: str) -> None:
        content, line = self.kernel.read(source), self.line("process")
        if content is not None and self.kernel.read(place) is None:
            with contextlib.suppress(ConflictError):
                self.commit(self.kernel, [move(source, place, content, content + line)])
                self.owed[place] = self.owed.pop(source, set())
                self.forget(source)

    @rule(path=paths)
    def commit_on_an_old_reading_is_refused(self, path: str) -> None:
        content = self.kernel.read(path)
        if content is not None:
            self.person_saves(path, content, content + self.line("person"))
            standing = self.kernel.tracked()
            changes = [update(path, content, content + self.line("process")), create("inbox/n.md", "n")]
            with pytest.raises(ConflictError):
                self.commit(self.kernel, changes)
            assert "inbox/n.md" not in self.kernel.tracked()
            assert standing.keys() == self.kernel.tracked().keys()

    @rule(
        path=paths,
        also=paths,
        saves=st.lists(st.tuples(operations, st.sampled_from(WAYS), st.none() | operations), min_size=1, max_size=4),
        how=st.sampled_from(["before", "torn", "after"]),
        is_saved_after=st.booleans(),
        is_rested=st.booleans(),
    )
    def several_saves_are_displaced(
        self,
        path: str,
        also: str,
        saves: list[tuple[int, str, int | None]],
        how: str,
        is_saved_after: bool,
        is_rested: bool,
    ) -> None:
        """Each falls between two operations of a commit, which may be killed at another; none is merged meanwhile.

        At last the person saves once more, in sight of what stands, and a new process starts.
        """
        self.kernel.committer.database.close()
        late: list[tuple[BinaryIO, bytes, bytes]] = []
        with ExitStack() as stack:
            for at, way, stop_at in saves:
                self.commit_while_a_person_saves(stack, late, path, also, (at, way, stop_at, how))
            for held, before, after in late:
                self.late_save(path, held, before, after)
        if is_saved_after and (content := self.kernel.read(path)):
            self.person_saves(path, content, content + self.line("person"))
        self.reopen()
        if is_rested:
            self.rest()
        self.look()
        self.compare()

    def commit_while_a_person_saves(
        self,
        stack: ExitStack,
        late: list[tuple[BinaryIO, bytes, bytes]],
        path: str,
        also: str,
        save: tuple[int, str, int | None, str],
    ) -> None:
        at, way, stop_at, how = save
        before = self.kernel.read(path)
        if not before:
            return
        after, line = before + self.line("person"), self.line("process")
        if way == "held open":
            held = stack.enter_context(self.kernel.tree.absolute(path).open("r+b", buffering=0))
            late.append((held, before, after))

        def act() -> None:
            if way != "held open" and self.kernel.read(path) is not None:
                self.person_saves(path, before, after, is_replaced=way == "replaced")

        other = failing_kernel(self.kernel.tree.root, InterruptedDisk(at, act, stop_at or 0, how), self.kernel.clock)
        with contextlib.suppress(ConflictError, Crash):
            self.commit(other, self.additions({path, also}, line, False), line)
        other.committer.database.close()

    def late_save(self, path: str, held: BinaryIO, before: bytes, after: bytes) -> None:
        """Write into the file that was opened, whatever its name is now, as an editor in place does."""
        if os.fstat(held.fileno()).st_nlink == 0 or os.pread(held.fileno(), len(before) + 1, 0) != before:
            return  # gone, or saved by another hand meanwhile
        held.truncate(0)
        held.write(after)
        self.saved |= {line for line in _lines(after) if line.startswith(b"person")}
        self.owed.setdefault(path, set()).update(_lines(after) - _lines(before))

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
        self.kernel.committer.database.close()
        broken = failing_kernel(self.kernel.tree.root, CountingDisk(at, how), self.kernel.clock)
        with contextlib.suppress(ConflictError, Crash):
            self.commit(broken, changes, line)
        broken.committer.database.close()
        if edited is not None:
            content = self.kernel.read(edited) or b""
            self.person_saves(edited, content, content + self.line("person"))
        self.reopen()
        self.look()
        standing = {each: line in (self.kernel.read(each) or b"") for each in {path, also}}
        left = {p for event in self.kernel.journal.events() for p in event.data.get("left", ())}
        assert left & set(standing) or len(set(standing.values())) == 1, standing

    @rule(is_forgotten=st.booleans())
    def restart(self, is_forgotten: bool) -> None:
        self.kernel.committer.close()
        if is_forgotten:
            forget_seen(self.kernel.places)
        self.reopen()

    @rule()
    def rest(self) -> None:
        self.kernel.advance(11)
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
        """Nothing is missing; what was swapped out and not merged yet is merged first."""
        self.kernel.committer.check_displaced()
        self.look()
        assert self.kernel.tracked() == self.kernel.folded()
        texts = b"\0".join(everything(self.kernel)) + self.git_texts()
        for line in self.saved:
            assert line in texts, line
        tree = _lines(b"\n".join(self.kernel.tracked().values()))
        for path, lines in self.owed.items():
            assert lines <= tree, (path, lines - tree, self.kernel.read(path))

    # parts

    def look(self) -> None:
        """Look at what changed, as the bus does."""
        for path in self.kernel.changed():
            try:
                self.kernel.observed.note_change(path)
            except NotRestedError as error:
                self.kernel.advance(error.again_in_seconds)
                self.kernel.observed.note_change(path)

    def reopen(self) -> None:
        with contextlib.suppress(Exception):
            self.kernel.committer.database.close()
        self.kernel = open_kernel(self.kernel.tree.root, clock=self.kernel.clock)
        self.kernel.committer.recover()
        self.kernel.observed.adopt()
        for event in self.kernel.journal.events(kinds={"test-done"}):
            line = str(event.data.get("line", "")).encode()
            for path in self.uncertain.pop(line, set()) - set(event.data.get("left", ())):
                self.owe(path, line)
        self.uncertain.clear()

    def commit(self, kernel: Kernel, changes: list[Change], line: bytes = b"") -> None:
        """Make a commit; the line of one that a kill may fall into is owed if it came to be recorded."""
        if line:
            self.uncertain[line] = {change.path for change in changes}
        log = [append("logs/access.log", "a line\n")]
        prompt = kernel.read("inbox/p.md")
        if prompt is not None and all("inbox/p.md" not in (c.path, c.source) for c in changes):
            log.append(observe("inbox/p.md", prompt))
        kernel.committer.commit("test-done", by="test", changes=[*changes, *log], data={"line": line.decode()})

    def additions(self, targets: set[str], line: bytes, is_at_top: bool) -> list[Change]:
        changes = []
        for path in sorted(targets):
            content = self.kernel.read(path)
            after = line + (content or b"") if is_at_top else (content or b"") + line
            changes.append(create(path, after) if content is None else update(path, content, after))
        return changes

    def buffer_saved(self, path: str, edit: tuple[str, int], is_kept_open: bool) -> None:
        """Save what an editor holds, changed; without one, what stands, changed."""
        standing = self.kernel.read(path)
        before = self.buffers.pop(path, standing)
        if before is None or standing is None:
            return
        after = self.edited(before, edit)
        if not any(line.startswith(b"person") for line in _lines(after) - _lines(before)):
            after += self.line("person")  # a save that equals what stood once is a revert
        self.person_saves(path, before, after)
        if is_kept_open:
            self.buffers[path] = after

    def person_saves(self, path: str, before: bytes, after: bytes, is_replaced: bool = False) -> None:
        """Save `after`, made of `before` by somebody who has nothing else before their eyes."""
        self.saved |= {line for line in _lines(after) if line.startswith(b"person")}
        standing, owed = _lines(self.kernel.read(path) or b""), self.owed.get(path, set())
        if _lines(before).isdisjoint(_lines(after)):
            owed = owed - standing  # written anew
        removed = _lines(before) - _lines(after)
        overwritten = {line for line in standing - _lines(after) if line.startswith(b"person")}  # by another editor
        self.owed[path] = (owed - removed - overwritten) | (_lines(after) - _lines(before))
        absolute = self.kernel.tree.absolute(path)
        absolute.parent.mkdir(parents=True, exist_ok=True)
        if is_replaced:
            draft = absolute.with_name(".draft.swp")
            draft.write_bytes(after)
            os.replace(draft, absolute)
        else:
            absolute.write_bytes(after)

    def owe(self, path: str, line: bytes) -> None:
        self.owed.setdefault(path, set()).add(line)

    def forget(self, path: str) -> None:
        self.owed.pop(path, None)
        self.buffers.pop(path, None)

    def edited(self, content: bytes, edit: tuple[str, int]) -> bytes:
        how, index = edit
        lines = content.splitlines(keepends=True)
        own = [at for at, line in enumerate(lines) if line.startswith((b"person", b"process"))]
        if how in ("changed", "removed") and own:
            at = own[index % len(own)]
            lines[at : at + 1] = [self.line("person")] if how == "changed" else []
            return b"".join(lines)
        return self.line("person") + content if how == "top" else content + self.line("person")

    def line(self, who: str) -> bytes:
        self.number += 1
        return f"{who} {self.number}.\n".encode()

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


def _lines(text: bytes) -> set[bytes]:
    """Return the lines that people and processes wrote."""
    return {line + b"\n" for line in text.splitlines() if line.startswith((b"person", b"process"))}


assert set(OPERATIONS) <= set(dir(Disk))
TestKernelMachine = KernelMachine.TestCase
TestKernelMachine.settings = examples(20, stateful_step_count=20)
