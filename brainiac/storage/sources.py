"""Sources: folders of a person's own notes that are searched and cited and never written (docs/obsidian.md).

The settings name them, and settings come with a synced or cloned folder. So a folder outside of the brain is read only
where this machine's person allowed it: the state folder lists the allowed ones by real path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ALLOWED = "sources.json"


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that the setting `sources` names.

    Attributes:
        name: As written in the settings.
        folder: Its real path.
        problem: Why it is not read; "" where it is read.
        todo: What a person can do about the problem.
        is_refused: It is not read because nobody allowed it on this machine.
    """

    name: str
    folder: Path
    problem: str = ""
    todo: str = ""
    is_refused: bool = False


def find_sources(root: Path, names: Sequence[str], state: Path) -> list[Source]:
    """Return the folders that the setting `sources` names, each with whether it is read.

    Args:
        root: The brain's folder, resolved.
        names: The setting.
        state: This brain's state folder on this machine.
    """
    allowed = _allowed(state) if names else frozenset()
    return [_source(root, name, allowed) for name in names]


def _source(root: Path, name: str, allowed: Iterable[str]) -> Source:
    """Return the source for a name in the settings.

    Args:
        root: The brain's folder, resolved.
        name: A path relative to the root, absolute, or beginning with `~`.
        allowed: Real paths of the folders outside the brain that may be read.
    """
    path = Path(name)
    if name.startswith("~"):
        path = Path(os.path.expanduser(name))  # an unknown user's home stays as it is written
    folder = Path(os.path.realpath(root / path))
    if not folder.is_dir():
        return Source(name, folder, "is not there", "make it, or take it out of `sources`")
    if folder.is_relative_to(root) or str(folder) in allowed:
        return Source(name, folder)
    if not path.is_absolute():
        return Source(name, folder, "leads out of the brain through a link", f"write {folder} instead")
    problem = "lies outside of the brain and is not allowed on this machine"
    return Source(name, folder, problem, f"`brainiac sources allow {name}` if it is to be read", is_refused=True)


def set_allowed(state: Path, folder: Path, *, is_allowed: bool) -> None:
    """Record that a folder outside of the brain may be read on this machine, or that it may not any more.

    Args:
        state: This brain's state folder.
        folder: Its real path.
        is_allowed: Whether it may.
    """
    folders = _allowed(state) - {str(folder)} | ({str(folder)} if is_allowed else set())
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = state / f".{ALLOWED}-{os.getpid()}"
    draft.write_text(json.dumps(sorted(folders)), encoding="utf-8", errors="surrogateescape")
    os.replace(draft, state / ALLOWED)


def _allowed(state: Path) -> frozenset[str]:
    """Return the real paths that may be read on this machine; none where the list is missing or damaged."""
    try:
        folders = json.loads((state / ALLOWED).read_text("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return frozenset()
    listed = folders if isinstance(folders, list) else []
    return frozenset(folder for folder in listed if isinstance(folder, str))
