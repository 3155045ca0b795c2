"""A brain on several devices: which of them runs its processes, and how conflict copies of a sync service are handled.

The former is a setting in a synced file, not a distributed lock. Copies are recognized by their names: a copy of
short-term memory is merged by event and item; a copy of a memory becomes a proposal, unless its text is known.
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
        The event; None when it is this device already.

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
    """Raise unless this device is the one that runs the processes.

    Raises:
        UserError: Another device runs them.
    """
    if not brain.is_active:
        raise UserError(waiting_message(brain))


def waiting_message(brain: Brain) -> str:
    """Return a sentence that says which device runs the processes and how to change it."""
    return f"{brain.settings.active_device} runs the processes of this brain; `brainiac takeover` makes it this device"


def other_active_devices(brain: Brain) -> list[str]:
    """Return the other devices that wrote events in the last seven days; none where the settings name a device.

    Daemons of other homes on this very folder are left out: of these only one serves at a time.
    """
    if brain.settings.active_device is not None:
        return []
    since = (brain.clock.now() - timedelta(days=RECENT_DAYS)).date().isoformat()
    ours = {brain.journal.device, "blobs", *devices_in_folder(brain)}
    folders = (path for path in brain.tree.journal.glob("*/") if path.name not in ours)
    # by file names, which are days: no journal is read
    return sorted(path.name for path in folders if any(file.stem >= since for file in path.glob("[0-9]*.jsonl")))


# --- conflict copies -----------------------------------------------------------------------------------------------


def original_of(path: str) -> str | None:
    """Return the path of the file of which a path is a sync-conflict copy, by its name; None for any other name."""
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
    """Handle every conflict copy, on the device that runs the processes alone: two would make new copies.

    Returns:
        The events of the copies that were merged, set aside or proposed.
    """
    events = []
    for copy, original in find_copies(brain) if brain.is_active else ():
        try:
            event = _settle_copy(brain, copy, original)
        except (ConflictError, FormatError) as error:  # still being written, or broken: looked at again
            brain.log.warning("conflict_copy_waits", path=copy, problem=str(error))
            continue
        if event is not None:
            events.append(event)
    return events


def _settle_copy(brain: Brain, copy: str, original: str) -> Event | None:
    """Merge, set aside or propose one conflict copy; return None where it waits for a person's decision."""
    raw, standing, kind = brain.read(copy), brain.read(original), brain.tree.kind_of(original)
    if raw is None:
        return None
    if kind is PathKind.SHORT_TERM:
        return _merge_short_term_copy(brain, copy, original, raw)
    copy_hash, digest = content_hash(raw), content_hash(standing) if standing is not None else None
    name = content_hash(f"{copy}\n{copy_hash}\n{digest}".encode())[:24]
    is_asked, is_declined = _proposal_state(brain, name)
    if is_asked and not is_declined:
        return None  # checked first: below, the whole journal is read
    # index pages are derived: the next run writes them anew
    is_known = kind is PathKind.INDEX_PAGE or raw == standing or is_declined
    if is_known or copy_hash in _hashes_of(brain, original):
        # nothing is lost: the journal keeps its text, or a person declined it
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


def _proposal_state(brain: Brain, name: str) -> tuple[bool, bool]:
    """Return whether this device has proposed a copy, and whether the person declined it."""
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
    """Return the content hashes that a path ever had on this device; a copy with one of them has nothing new."""
    changes = (change for event in brain.journal.events() for change in event.changes if change.path == path)
    return {digest for change in changes for digest in (change.before, change.after)}


def changes_for_copy(brain: Brain, proposal: CopyProposal) -> list[Change]:
    """Return the changes that replace an original by its copy; none where either changed since the proposal."""
    copy, standing = brain.read(proposal.copy), brain.read(proposal.path)
    digest = content_hash(standing) if standing is not None else None
    if copy is None or content_hash(copy) != proposal.copy_hash or digest != proposal.hash:
        return []
    change = create(proposal.path, copy) if standing is None else update(proposal.path, standing, copy)
    return [change, remove(proposal.copy, copy)]


def _merge_short_term_copy(brain: Brain, copy: str, original: str, raw: bytes) -> Event:
    """Merge a copy of short-term memory: add what only the copy has, and remove the copy."""
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
    """The texts that processes, on any device, removed from a file; what a person removed does not count."""

    def __init__(self, brain: Brain, path: str) -> None:
        self._brain, self._path = brain, path

    def holds(self, text: str) -> bool:
        """Return whether a process removed a text."""
        return any(text in before and text not in after for before, after in self._pairs)

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        """Return the texts before and after each update of this file by a process."""
        # read only when a copy has something that the original lacks, which is rare
        events = (event for _, event in self._brain.journal.all_events() if event.by != "person")
        changes = [change for event in events for change in event.changes]
        texts = self._brain.kept_text
        return [
            (texts(change.before) or "", texts(change.after) or "")
            for change in changes
            if change.path == self._path and change.op == "update"
        ]
