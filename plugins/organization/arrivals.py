"""Notes that a person put into long-term memory: given what they lack, and nothing else, once they rest (seeds S7)."""

from __future__ import annotations

from collections.abc import Iterable

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import NoteCompleted, content_hash, new_id, update
from brainiac.formats.memory import MemoryDocument

from .catalog import Catalog
from .past import Past


def complete(brain: Brain, catalog: Catalog, past: Past, paths: Iterable[str]) -> list[str]:
    """Add the keys that pages lack; of two pages with one uuid, give the newer another.

    Args:
        brain: The brain.
        catalog: The pages as they stand.
        past: Tells which page came first, and when a person last was at one.
        paths: Those to look at; one that does not rest yet is left.

    Returns:
        The pages that were changed; one that a person saves this very moment is not among them.
    """
    now, changed = iso(brain.clock.now()), []
    for path in sorted(set(paths) & catalog.pages.keys()):
        if not is_known(brain, catalog, path) or not past.is_resting(path, brain.clock.now()):
            continue
        before = catalog.texts[path]
        try:
            document = MemoryDocument(before, path).with_missing_keys(new_id(), now)
            if _is_copy(catalog, past, path):
                document = document.set_meta(uuid=new_id())
        except FormatError:
            continue
        if str(document) == before:
            continue
        try:
            brain.commit(NoteCompleted.kind, by="organization", changes=[update(path, before, str(document))])
        except ConflictError:
            continue
        changed.append(path)
        catalog.uuids[path] = document.memory.uuid
    return changed


def is_known(brain: Brain, catalog: Catalog, path: str) -> bool:
    """Tell whether a page stands as it was last seen: of one that was not, nobody knows how long it rests."""
    return brain.observed.hash_of(path) == content_hash(catalog.texts[path].encode("utf-8", "surrogateescape"))


def _is_copy(catalog: Catalog, past: Past, path: str) -> bool:
    """Tell whether another page bears the same uuid and came to be earlier, as the journals tell."""
    uuid = catalog.uuids.get(path)
    if uuid is None or uuid in catalog.place_of:
        return False
    others = [other for other, borne in catalog.uuids.items() if borne == uuid and other != path]
    return any((past.order.get(other, 0), other) < (past.order.get(path, 0), path) for other in others)
