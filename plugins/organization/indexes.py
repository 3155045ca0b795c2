"""Manifests of index pages, derived from what stands in their folders, in a commit of their own."""

from __future__ import annotations

from collections.abc import Iterable

from brainiac.brain import Brain
from brainiac.errors import ConflictError
from brainiac.events import Event, ManifestsDerived, observe
from brainiac.storage.folders import Folders


def derive_manifests(brain: Brain, folders: Iterable[str], cause: str | None = None) -> Event | None:
    """Bring the index pages of folders, and of those above them, up to date; only bytes that differ are written.

    Args:
        brain: The brain.
        folders: Relative; those outside of long-term memory and those that hold nothing are passed over.
        cause: Id of the event that changed them.

    Returns:
        The event; None when all was as it should be, or a person saved one of them this very moment.
    """
    tree = brain.tree
    root = tree.relative(tree.long_term)
    inside = [folder for folder in sorted(set(folders)) if folder == root or folder.startswith(root + "/")]
    held = [folder for folder in inside if next(tree.walk(tree.absolute(folder)), None)]
    changes = Folders(brain, [observe(f"{folder}/_index.md", b"") for folder in held]).changes()
    if not changes:
        return None
    try:
        return brain.commit(ManifestsDerived.kind, by="organization", changes=changes, cause=cause)
    except ConflictError:
        return None  # the next quiet looks again
