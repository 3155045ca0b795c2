"""From what a caller asks for to what will be done: checked against the tree before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from brainiac.errors import UserError
from brainiac.events import Change, RecordedChange, content_hash
from brainiac.formats.discretion import is_off_record
from brainiac.formats.prompt import prompt_path_of
from brainiac.storage.file_state import LastSeen
from brainiac.storage.files import read_bytes, temporary_beside
from brainiac.storage.write_ahead import Step
from brainiac.tree import Tree

_ORDER = {"append": 0, "create": 1, "update": 2, "remove": 3}


def is_unkept(tree: Tree, seen: LastSeen, path: str, content: bytes | None) -> bool:
    """Return whether no text of a file may be kept: it is off the record, or the answer to a prompt that is or was.

    Args:
        tree: The brain's folder.
        seen: Tells what was not kept while its prompt still stood.
        path: Relative.
        content: What stands there, or is to.
    """
    if content is None or is_off_record(content):
        return content is not None
    prompts = prompt_path_of(path)
    try:
        standing = [raw for prompt in prompts if (raw := read_bytes(tree.absolute(prompt))) is not None]
    except OSError:
        return True  # nobody can tell
    if prompts and not standing:
        return seen.unkept(path) == content_hash(content)
    return any(map(is_off_record, standing))


def confined(tree: Tree, path: str) -> str:
    """Return the relative path of a file that may be written.

    Raises:
        ConfinementError: It leaves the brain.
        UserError: It is a symbolic link.
    """
    absolute = tree.confine(path)
    if absolute.is_symlink():
        raise UserError(f"{path}: a symbolic link; Brainiac changes files, not links; replace it by the file")
    return tree.relative(absolute)


def confined_change(tree: Tree, change: Change) -> Change:
    """Return a change with its paths confined, or refuse it as `confined` does."""
    source = None if change.source is None else confined(tree, change.source)
    return replace(change, path=confined(tree, change.path), source=source)


@dataclass(slots=True)
class Plan:
    """What a commit will do.

    Attributes:
        steps: In the order of their doing.
        recorded: As the journal will name them.
        texts: Content by hash, all that the steps and the journal need.
        off_record: Hashes of the texts that are written, or looked at, but not kept.
        conflicts: Paths that are not as the decision took them.
    """

    steps: list[Step] = field(default_factory=list)
    recorded: list[RecordedChange] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    off_record: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


class Planner:
    """Makes the plan of one commit.

    Args:
        tree: The brain's folder.
        seen: What each tracked note was when last seen.
        is_unkept: Whether the text of a path is to be in no journal.
    """

    def __init__(self, tree: Tree, seen: LastSeen, is_unkept: Callable[[str, bytes | None], bool]) -> None:
        self._tree, self._seen, self._is_unkept = tree, seen, is_unkept
        self._plan = Plan()
        self._standing: dict[str, bytes | None] = {}

    def plan(
        self, changes: Sequence[Change], expect: Mapping[str, str | None], standing: Mapping[str, bytes | None]
    ) -> Plan:
        """Return the plan; with conflicts in it nothing may be done.

        Args:
            changes: What is asked for; their paths are confined.
            expect: Path → hash of further files, None for "must not exist".
            standing: Content of files that were read already.

        Raises:
            UserError: Two changes name one path.
        """
        self._standing.update(standing)
        for path, expected in expect.items():
            self._expect(path, expected)
        joined = _join_appends(changes)
        _check_distinct(joined)
        for change in joined:
            self._add(change)
        last = self._tree.relative(self._tree.short_term)
        self._plan.steps.sort(key=lambda step: (step.path == last, _ORDER[step.op]))
        return self._plan

    def _add(self, change: Change) -> None:
        before = None if change.before is None else content_hash(change.before)
        after = None if change.after is None else self._keep(change.after)
        match change.op:
            case "append":
                self._append(change)
            case "observe":
                self._expect(change.path, after)
            case "move":
                assert change.source is not None
                self._expect(change.path, None)
                self._step("create", change.path, None, after)
                self._expect(change.source, before)
                self._step("remove", change.source, before, None)
            case _:
                self._expect(change.path, before)
                self._step(change.op, change.path, before, after)
        if change.before is not None:
            self._keep(change.before)
        self._record(change, before, after)

    def _append(self, change: Change) -> None:
        size, last = _end_of(self._tree.absolute(change.path))
        text = change.after or b""
        if last not in (b"", b"\n"):
            text = b"\n" + text
        self._plan.steps.append(Step("append", change.path, after=self._keep(text), size=size))

    def _step(self, op: str, path: str, before: str | None, after: str | None) -> None:
        assert op in ("create", "update", "remove")
        if op == "update" and before == after:
            return
        absolute = self._tree.absolute(path)
        inode = os.stat(absolute).st_ino if before is not None and self._standing.get(path) is not None else 0
        known = self._seen.get(path)
        versions = known.versions if known is not None and known.hash == before else ()
        step = Step(op, path, before, after, temporary_beside(path), inode, versions=versions)  # type: ignore[arg-type]
        self._plan.steps.append(step)

    def _record(self, change: Change, before: str | None, after: str | None) -> None:
        is_hidden = self._is_unkept(change.path, change.after)
        if is_hidden and after is not None:
            self._plan.off_record.append(after)
        path = change.source or change.path
        if change.op != "append" and (is_hidden or self._is_unkept(path, change.before)):
            known = self._seen.get(path)
            if known is not None:  # it was on the record until now
                self._plan.recorded.append(RecordedChange("observe", path, known.hash, None))
            if is_hidden or after is None:
                return
            self._plan.recorded.append(RecordedChange("create", change.path, None, after))
            return
        if change.op == "observe":
            known = self._seen.get(change.path)
            before = known.hash if known else None
        self._plan.recorded.append(RecordedChange(change.op, change.path, before, after, change.source))

    def _expect(self, path: str, expected: str | None) -> None:
        standing = self._read(path)
        if (None if standing is None else content_hash(standing)) != expected:
            self._plan.conflicts.append(path)

    def _read(self, path: str) -> bytes | None:
        if path not in self._standing:
            self._standing[path] = read_bytes(self._tree.absolute(path))
        return self._standing[path]

    def _keep(self, text: bytes) -> str:
        digest = content_hash(text)
        self._plan.texts[digest] = text
        return digest


def _end_of(path: Path) -> tuple[int, bytes]:
    """Return a file's size and last byte; (0, b"") when it is empty or there is none."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return size, file.read(1)
    except (FileNotFoundError, NotADirectoryError):
        return 0, b""


def _join_appends(changes: Sequence[Change]) -> list[Change]:
    """Make one addition of several to the same log."""
    joined: dict[str, Change] = {}
    others = []
    for change in changes:
        if change.op != "append":
            others.append(change)
        elif change.path in joined:
            first = joined[change.path]
            joined[change.path] = replace(first, after=(first.after or b"") + (change.after or b""))
        else:
            joined[change.path] = change
    return [*joined.values(), *others]


def _check_distinct(changes: list[Change]) -> None:
    paths = [path for change in changes for path in (change.path, change.source) if path is not None]
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        raise UserError(*(f"{path}: named by two changes of one commit; make them one" for path in repeated))
