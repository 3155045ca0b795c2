"""Scans the whole tree, at start-up and periodically, for changes without a file system event (design: pipeline).

Only stats are compared; unchanged files are not read again: ten thousand files take a tenth of a second a minute.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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


def scan(tree: Tree, more: Sequence[Path] = ()) -> dict[str, Stamp]:
    """Return the stamp of every file that is watched, by relative path."""
    stamps: dict[str, Stamp] = {}
    for entry in tree.walk(*_tops(tree), *more):
        relative = tree.relative(entry.path)
        try:
            stamps[relative] = stamp_from(entry.stat(follow_symlinks=False))
        except OSError:
            continue  # vanished between listing and looking
    log = stamp_of(tree.access_log)
    if log is not None:
        stamps[tree.relative(tree.access_log)] = log
    return stamps


def differences(tree: Tree, known: Mapping[str, Stamp], more: Sequence[Path] = ()) -> list[str]:
    """Return the relative paths that are new, changed or deleted compared with known stamps.

    Files of a watched folder that is missing as a whole (a drive not mounted) are not reported as deleted.
    """
    stamps = scan(tree, more)
    changed = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    # a drive that is not mounted must not look as if the person had deleted all of it
    missing = tuple(tree.relative(top) + "/" for top in _tops(tree) if not top.is_dir())
    deleted = [path for path in list(known) if path not in stamps and not path.startswith(missing)]
    return changed + deleted


def read_prompt(brain: Brain, path: str) -> Prompt | None:
    """Return the prompt or note at a path; None when it is deleted, blank or a draft.

    Raises:
        FormatError: It is too large, unreadable, not UTF-8, or its front matter is broken.
    """
    limit = brain.settings.inbox.max_bytes
    try:
        # looked at before it is read: a file of gigabytes must not fill memory
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
    """The files of the inbox that are still to be processed, by relative path.

    Attributes:
        unanswered: Prompts to answer, notes to capture, and files that cannot be parsed.
        moved: Answered prompts that were moved and whose responses were not.
        withdrawn: Answered prompts that became private or off the record after they were answered.
    """

    unanswered: tuple[str, ...]
    moved: tuple[str, ...]
    withdrawn: tuple[str, ...] = ()


def backlog(brain: Brain, known: Mapping[str, Stamp]) -> Backlog:
    """Return the known files that are to be processed; only files changed since their answer are read."""
    unanswered: list[str] = []
    moved: list[str] = []
    withdrawn: list[str] = []
    for path in known:
        # by hashes known already: a start with ten thousand answered prompts reads none of them
        if brain.tree.kind_of(path) not in TO_ANSWER or brain.answered.is_settled(path, brain.observed.hash_of(path)):
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
        # marked while no daemon ran: what was remembered of it is withdrawn now
        elif prompt.private or not prompt.remember:
            withdrawn.append(path)
    return Backlog(tuple(unanswered), tuple(moved), tuple(withdrawn))


def is_free(brain: Brain) -> bool:
    """Return whether answering costs nothing: the offline engine serves both queries and answers."""
    llm = brain.settings.llm
    return all(llm.models.get(purpose, llm.model) == FREE_MODEL for purpose in ("queries", "answer"))


def folders_beside(brain: Brain) -> list[Path]:
    """Return the folders of the sources, and all of the person's own where a plugin wants to hear of them."""
    own = brain.tree.own_folders() if brain.plugins.has_foreign("file_changed") else []
    sources = [folder for folder, is_deep in brain.tree.source_folders() if is_deep]
    return [*own, *(folder for folder in sources if not any(map(folder.is_relative_to, own)))]


def _tops(tree: Tree) -> tuple[Path, ...]:
    return tree.inbox, tree.memory, tree.system, tree.plugins
