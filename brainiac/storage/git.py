"""Whether git keeps a brain, and whether it is in the middle of something; its files are looked at, nothing is run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

# what stands in git's folder while an operation is under way, and what a person calls it
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


def git_folder(root: Path) -> Path | None:
    """Return the folder in which git keeps the repository that a folder is in; None outside of any."""
    for folder in (root, *root.parents):
        place = folder / ".git"
        if place.is_dir():
            return place
        with suppress(OSError, UnicodeDecodeError):  # a worktree or a submodule has a file that names it
            named = place.read_text("utf-8").strip()
            if named.startswith("gitdir: "):
                return folder / named.removeprefix("gitdir: ")
    return None


def operation_under_way(folder: Path) -> str:
    """Return what git is in the middle of, such as "merge"; "" for nothing.

    Args:
        folder: Git's own, of `git_folder`.
    """
    return next((name for file, name in _OPERATIONS.items() if (folder / file).exists()), "")
