"""Copies that a sync service made where two devices wrote one file: told by their names, kept out of recall.

Short-term memory's are merged by event and item; a memory's is put before a person, unless its text is known.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from brainiac.brain import Brain
from brainiac.errors import ConflictError, FormatError
from brainiac.events import (
    Change,
    CopyFound,
    CopyMerged,
    CopyProposal,
    CopySetAside,
    Event,
    PathKind,
    ProposalDeclined,
    content_hash,
    create,
    kinds_of,
    remove,
    update,
)
from brainiac.formats.discretion import is_private_note
from brainiac.history.merging_copies import Removals, merged
from brainiac.storage.following import Following
from brainiac.storage.review import Proposal, review_change
from brainiac.storage.store import Store

BY = "kernel"
TAKE = "take-copy"
_COPY = re.compile(
    r"(.+?)(?:\.sync-conflict-\d{8}-\d{6}(?:-\w+)?| \([^()]*conflicted copy[^()]*\))(\.[a-z]+)", re.IGNORECASE
)


def original_of(path: str) -> str | None:
    """Return the file that a sync-conflict copy is one of; None for any other name."""
    folder, _, name = path.rpartition("/")
    found = _COPY.fullmatch(name)
    return f"{folder}/{found[1]}{found[2]}" if found else None


def find_copies(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield (copy, original) of every conflict copy in memory."""
    for folder, folders, names in os.walk(brain.tree.memory):
        folders[:] = [each for each in folders if not each.startswith(".")]
        for name in sorted(names):
            path = brain.tree.relative(os.path.join(folder, name))
            if (original := original_of(path)) is not None:
                yield path, original


def settle_copies(brain: Brain) -> list[Event]:
    """Deal with every copy on the device that runs the processes; two that did would make new copies."""
    if not brain.is_active:
        return []
    events = []
    for copy, original in find_copies(brain):
        try:
            event = _settle(brain, copy, original)
        except (ConflictError, FormatError) as error:  # still being written, or broken: looked at again
            brain.log.warning("conflict_copy_waits", path=copy, problem=str(error))
            continue
        if event is not None:
            events.append(event)
    return events


def _settle(brain: Brain, copy: str, original: str) -> Event | None:
    raw = brain.read(copy)
    kind = brain.tree.kind_of(original)
    if raw is None:
        return None
    if kind is PathKind.SHORT_TERM:
        return _merge(brain, copy, original, raw)
    standing = brain.read(original)
    digest = content_hash(standing) if standing is not None else None
    name = content_hash(f"{copy}\n{content_hash(raw)}\n{digest}".encode())[:24]
    known = _PROPOSALS.of(brain)
    if name in known.made:  # asked first: a copy may wait for long, and to know its text the whole journal is read
        return _set_aside(brain, copy, original, raw) if name in known.declined else None
    if kind is PathKind.INDEX_PAGE or raw == standing or content_hash(raw) in _versions(brain, original):
        return _set_aside(brain, copy, original, raw)
    if kind not in (PathKind.MEMORY, PathKind.ARCHIVED):
        return None
    what = f"Take another device's version of {original}, which stands beside it as {posixpath.basename(copy)}"
    record = CopyProposal(
        id=name,
        what=f"{what}; `-` keeps this one",
        operation=TAKE,
        copy=copy,
        copy_hash=content_hash(raw),
        path=original,
        hash=digest,
    )
    is_private = any(is_private_note(brain.read_text(path) or "") for path in (copy, original))
    changes = review_change(brain, [Proposal(record, is_private)])
    return brain.commit(CopyFound(proposals=(record,)), by=BY, changes=changes)


def _merge(brain: Brain, copy: str, original: str, raw: bytes) -> Event:
    """Bring into short-term memory what only the copy has."""
    with brain.short_term_lock():
        text = brain.read_text(original)
        after, differs = merged(
            str(brain.short_term()), raw.decode("utf-8", "surrogateescape"), Removals(brain, original)
        )
        changes = [remove(copy, raw)]
        if text is None:
            changes.append(create(original, after))
        elif after != text:
            changes.append(update(original, text, after))
        return brain.commit(CopyMerged(copy=copy, of=original, differs=tuple(differs)), by=BY, changes=changes)


def _set_aside(brain: Brain, copy: str, original: str, raw: bytes) -> Event:
    """Take a copy away whose text is kept already, or that a person declined; the journal keeps it."""
    return brain.commit(CopySetAside(copy=copy, of=original), by=BY, changes=[remove(copy, raw)])


@dataclass(slots=True)
class _Proposals:
    made: set[str] = field(default_factory=set)
    declined: set[str] = field(default_factory=set)


def _take_proposals(store: Store, known: _Proposals, event: Event, is_own: bool) -> None:
    match event.what:
        case CopyFound(proposals=proposals) if is_own:
            known.made.update(proposal.id for proposal in proposals)
        case ProposalDeclined(proposal=declined) if is_own:
            known.declined.add(declined)


_PROPOSALS = Following(lambda brain: _Proposals(), _take_proposals, kinds_of(CopyFound, ProposalDeclined))


def taken(brain: Brain, proposal: CopyProposal) -> list[Change]:
    """Return the changes that put a copy in its original's place; none where either is not as it was proposed."""
    copy, standing = brain.read(proposal.copy), brain.read(proposal.path)
    digest = content_hash(standing) if standing is not None else None
    if copy is None or content_hash(copy) != proposal.copy_hash or digest != proposal.hash:
        return []
    change = create(proposal.path, copy) if standing is None else update(proposal.path, standing, copy)
    return [change, remove(proposal.copy, copy)]


def _versions(brain: Brain, path: str) -> set[str | None]:
    """Return the hashes of all that this device ever saw at a path: what a copy of those says is no news."""
    changes = (change for event in brain.journal.events() for change in event.changes if change.path == path)
    return {digest for change in changes for digest in (change.before, change.after)}
