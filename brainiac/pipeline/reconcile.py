"""Looking the whole tree over: at start-up and now and then, for what no event told of (design: pipeline).

Stats are compared, nothing is read again that did not change: ten thousand files cost a tenth of a second a minute.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import PathKind
from brainiac.formats.prompt import Prompt, parse_prompt
from brainiac.pipeline.settle import Stamp, stamp_from, stamp_of
from brainiac.tree import Tree

TO_ANSWER = frozenset({PathKind.PROMPT, PathKind.CAPTURE})
FREE_MODEL = "offline"


def scan(tree: Tree) -> dict[str, Stamp]:
    """Return the stamp of every file that is watched, by relative path."""
    found: dict[str, Stamp] = {}
    for entry in tree.walk(*_tops(tree)):
        relative = tree.relative(entry.path)
        try:
            found[relative] = stamp_from(entry.stat(follow_symlinks=False))
        except OSError:
            continue  # vanished between listing and looking
    log = stamp_of(tree.access_log)
    if log is not None:
        found[tree.relative(tree.access_log)] = log
    return found


def differences(tree: Tree, known: Mapping[str, Stamp]) -> list[str]:
    """Return the relative paths that are not as they were known: new, changed or gone.

    A whole watched folder that is missing (a drive not mounted) deletes nothing: its files are not reported.
    """
    found = scan(tree)
    changed = [path for path, stamp in found.items() if known.get(path) != stamp]
    missing = tuple(tree.relative(top) + "/" for top in _tops(tree) if not top.is_dir())
    gone = [path for path in list(known) if path not in found and not path.startswith(missing)]
    return changed + gone


def read_prompt(brain: Brain, path: str) -> Prompt | None:
    """Return the prompt or note at a path; None when it is gone, blank or a draft.

    Raises:
        FormatError: It is too large, unreadable, not UTF-8, or its front matter is broken.
    """
    limit = brain.settings.inbox.max_bytes
    try:
        if os.lstat(brain.tree.absolute(path)).st_size > limit:
            raise FormatError(path, f"larger than {limit:,} bytes (inbox.max_bytes); split it, or raise the limit")
        raw = brain.read(path)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise FormatError(path, f"cannot be read ({error.strerror}); check its permissions") from error
    if raw is None:
        return None
    prompt = parse_prompt(path, raw, at=iso(brain.clock.now()), inbox=brain.tree.layout.inbox)
    return None if prompt.is_draft or not prompt.text.strip() else prompt


@dataclass(frozen=True, slots=True)
class Backlog:
    """What stands in the inbox and was not dealt with, by relative path.

    Attributes:
        unanswered: Prompts and notes to answer or take in, and files that cannot be read.
        moved: Answered prompts that have another place now.
        withdrawn: Answered prompts that ask to be kept to themselves, as they did not when they were answered.
    """

    unanswered: tuple[str, ...]
    moved: tuple[str, ...]
    withdrawn: tuple[str, ...] = ()


def backlog(brain: Brain, known: Mapping[str, Stamp]) -> Backlog:
    """Return what waits among the known files; only what is not byte for byte as it was answered is read."""
    unanswered: list[str] = []
    moved: list[str] = []
    withdrawn: list[str] = []
    for path in known:
        if brain.tree.kind_of(path) not in TO_ANSWER or is_settled(brain, path):
            continue
        try:
            prompt = read_prompt(brain, path)
        except FormatError:
            unanswered.append(path)
            continue
        if prompt is None:
            continue
        if brain.answered.moved_from(prompt) is not None:
            moved.append(path)
        elif not brain.answered.is_answered(prompt):
            unanswered.append(path)
        elif prompt.private or not prompt.remember:
            withdrawn.append(path)
    return Backlog(tuple(unanswered), tuple(moved), tuple(withdrawn))


def is_settled(brain: Brain, path: str) -> bool:
    """Tell without reading it that a prompt is as it was answered, with its response where it belongs."""
    return brain.answered.is_unchanged(path, brain.observed.hash_of(path)) and not brain.answered.is_response_elsewhere(
        path
    )


def is_free(brain: Brain) -> bool:
    """Tell whether answering costs nothing: the offline engine serves what a prompt needs."""
    llm = brain.settings.llm
    return all(llm.models.get(purpose, llm.model) == FREE_MODEL for purpose in ("queries", "answer"))


def _tops(tree: Tree) -> tuple[Path, ...]:
    return tree.inbox, tree.memory, tree.system, tree.plugins
