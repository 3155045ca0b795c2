"""A brain on several devices: which of them runs its processes, and what is done with copies of files that two wrote.

The former is a hand-over by a synced file, not a distributed lock. Copies are made by a sync service and told by their
names: short-term memory's are merged by event and item, a memory's is put before a person, unless its text is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property

from brainiac.brain import Brain
from brainiac.errors import ConflictError, FormatError, UserError
from brainiac.events import (
    Change,
    CopyFound,
    CopyMerged,
    CopyProposal,
    CopySetAside,
    DeviceTookOver,
    Event,
    PathKind,
    ProposalDeclined,
    content_hash,
    create,
    remove,
    update,
)
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.page import is_private_note
from brainiac.history.short_term import with_copy
from brainiac.storage.heartbeat import devices_in_folder
from brainiac.storage.review import Proposal, review_change

RECENT_DAYS = 7
TAKE = "take-copy"  # the operation of a proposal
_BY = "kernel"
_COPY = re.compile(
    r"(.+?)(?:\.sync-conflict-\d{8}-\d{6}(?:-\w+)?| \([^()]*conflicted copy[^()]*\))(\.[a-z]+)", re.IGNORECASE
)


# --- which device runs the processes -------------------------------------------------------------------------------


def takeover(brain: Brain) -> Event | None:
    """Make this device the one that runs the processes; the others follow once `system/config.yaml` is synced.

    Returns:
        The event; None when it is that already.

    Raises:
        SettingsError: The settings are broken.
        ConflictError: The file was saved meanwhile; nothing was changed.
    """
    former, device = brain.check_settings().active_device, brain.journal.device
    if former == device:
        return None
    path = brain.tree.relative(brain.tree.config)
    before = brain.read_text(path)
    after = with_setting(before or "", "active_device", device)
    change = create(path, after) if before is None else update(path, before, after)
    return brain.commit(DeviceTookOver(device=device, from_=former), by="person", changes=[change])


def with_setting(text: str, name: str, value: str) -> str:
    """Return settings with one entry set; every other line, comments too, stays byte for byte."""
    newline = "\r\n" if "\r\n" in text else "\n"
    body = text if text.endswith("\n") or not text else text + newline
    fence = f"---{newline}"  # settings are YAML as front matter is
    return edit_meta(f"{fence}{body}{fence}", **{name: value})[len(fence) : -len(fence)]


def require_active(brain: Brain) -> None:
    """Refuse what only the device may do that runs the processes.

    Raises:
        UserError: Another device does.
    """
    if not brain.is_active:
        raise UserError(waiting_message(brain))


def waiting_message(brain: Brain) -> str:
    """Say who runs the processes and how to change it."""
    return f"{brain.settings.active_device} runs the processes of this brain; `brainiac takeover` makes it this device"


def other_active_devices(brain: Brain) -> list[str]:
    """Return the other devices whose journals grew in the last days, while none is named to run the processes.

    Other homes on this very folder are none: of their daemons one serves, and the others wait.
    """
    if brain.settings.active_device is not None:
        return []
    since = (brain.clock.now() - timedelta(days=RECENT_DAYS)).date().isoformat()
    ours = {brain.journal.device, "blobs", *devices_in_folder(brain)}
    folders = (path for path in brain.tree.journal.glob("*/") if path.name not in ours)
    return sorted(path.name for path in folders if any(file.stem >= since for file in path.glob("[0-9]*.jsonl")))


# --- conflict copies -----------------------------------------------------------------------------------------------


def original_of(path: str) -> str | None:
    """Return the file that a sync-conflict copy is one of; None for any other name."""
    folder, _, name = path.rpartition("/")
    match = _COPY.fullmatch(name)
    return f"{folder}/{match[1]}{match[2]}" if match else None


def find_copies(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield (copy, original) of every conflict copy in memory."""
    for folder, folders, names in os.walk(brain.tree.memory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in sorted(names):
            path = brain.tree.relative(os.path.join(folder, name))
            if (original := original_of(path)) is not None:
                yield path, original


def settle_copies(brain: Brain) -> list[Event]:
    """Deal with every copy on the device that runs the processes; two that did would make new copies."""
    events = []
    for copy, original in find_copies(brain) if brain.is_active else ():
        try:
            event = _settle(brain, copy, original)
        except (ConflictError, FormatError) as error:  # still being written, or broken: looked at again
            brain.log.warning("conflict_copy_waits", path=copy, problem=str(error))
            continue
        if event is not None:
            events.append(event)
    return events


def _settle(brain: Brain, copy: str, original: str) -> Event | None:
    raw, standing, kind = brain.read(copy), brain.read(original), brain.tree.kind_of(original)
    if raw is None:
        return None
    if kind is PathKind.SHORT_TERM:
        return _merge(brain, copy, original, raw)
    copy_hash, digest = content_hash(raw), content_hash(standing) if standing is not None else None
    name = content_hash(f"{copy}\n{copy_hash}\n{digest}".encode())[:24]
    is_asked, is_declined = _was_asked(brain, name)
    if is_asked and not is_declined:
        return None  # it may wait for long, and to know its text the whole journal is read
    is_known = kind is PathKind.INDEX_PAGE or raw == standing or is_declined
    if is_known or copy_hash in _hashes_of(brain, original):
        # The journal keeps it, or a person declined it.
        return brain.commit(CopySetAside(copy=copy, of=original), by=_BY, changes=[remove(copy, raw)])
    if kind not in (PathKind.MEMORY, PathKind.ARCHIVED):
        return None
    beside = copy.rpartition("/")[2]
    what = f"Take another device's version of {original}, which stands beside it as {beside}; `-` keeps this one"
    proposal = CopyProposal(
        id=name, what=what, operation=TAKE, copy=copy, copy_hash=copy_hash, path=original, hash=digest
    )
    is_private = any(is_private_note(brain.read_text(path) or "") for path in (copy, original))
    changes = review_change(brain, [Proposal(proposal, is_private)])
    return brain.commit(CopyFound(proposals=(proposal,)), by=_BY, changes=changes)


def _was_asked(brain: Brain, name: str) -> tuple[bool, bool]:
    """Return whether this device put a copy before the person, and whether they declined it."""
    brain.projection.follow()
    ((is_made, is_declined),) = brain.projection.query(
        "SELECT EXISTS (SELECT 1 FROM proposals WHERE id = ?1 AND device = ?2),"
        " EXISTS (SELECT 1 FROM decisions WHERE proposal = ?1 AND device = ?2 AND kind = ?3)",
        name,
        brain.journal.device,
        ProposalDeclined.kind,
    )
    return is_made, is_declined


def _hashes_of(brain: Brain, path: str) -> set[str | None]:
    """Return the hashes of all that this device ever saw at a path: what a copy of those says is no news."""
    changes = (change for event in brain.journal.events() for change in event.changes if change.path == path)
    return {digest for change in changes for digest in (change.before, change.after)}


def changes_for_copy(brain: Brain, proposal: CopyProposal) -> list[Change]:
    """Return the changes that put a copy in its original's place; none where either is not as it was proposed."""
    copy, standing = brain.read(proposal.copy), brain.read(proposal.path)
    digest = content_hash(standing) if standing is not None else None
    if copy is None or content_hash(copy) != proposal.copy_hash or digest != proposal.hash:
        return []
    change = create(proposal.path, copy) if standing is None else update(proposal.path, standing, copy)
    return [change, remove(proposal.copy, copy)]


def _merge(brain: Brain, copy: str, original: str, raw: bytes) -> Event:
    """Bring into short-term memory what only the copy has."""
    with brain.short_term_lock():
        text = brain.read_text(original)
        theirs = raw.decode("utf-8", "surrogateescape")
        after, differs = with_copy(str(brain.short_term()), theirs, _Removals(brain, original).holds)
        changes = [remove(copy, raw)]
        if text is None:
            changes.append(create(original, after))
        elif after != text:
            changes.append(update(original, text, after))
        merged = CopyMerged(copy=copy, of=original, differs=tuple(differs))
        return brain.commit(merged, by=_BY, changes=changes)


class _Removals:
    """What processes took out of a file, on any device; an outside save that lacks something took nothing out."""

    def __init__(self, brain: Brain, path: str) -> None:
        self._brain, self._path = brain, path

    def holds(self, text: str) -> bool:
        return any(text in before and text not in after for before, after in self._pairs)

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        # read only once something is missing: most copies have nothing that stands nowhere else
        events = (event for _, event in self._brain.journal.all_events() if event.by != "person")
        changes = [change for event in events for change in event.changes]
        texts = self._brain.kept_text
        return [
            (texts(change.before) or "", texts(change.after) or "")
            for change in changes
            if change.path == self._path and change.op == "update"
        ]
