"""Conflict copies and conflict markers become one file again: what both versions say is merged by what things are.

`storage.versions.merge` does it, with the version that both grew from where the journals have it. A copy goes in the
commit that takes its words over; the journal keeps its text. Where both changed one statement both texts stand, and a
line in `memory/review.md` says so.

A page that one device moved while another edited it is merged in the same way: what stands at its former path goes to
the new one, as the journals tell the move.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import BlobError, ConflictError, FormatError
from brainiac.events import (
    Change,
    CopyFound,
    CopyMerged,
    CopyProposal,
    CopySetAside,
    Event,
    MarkersMerged,
    PathKind,
    ProposalDeclined,
    append,
    content_hash,
    create,
    move,
    remove,
    update,
)
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.markdown import (
    PRIVATE,
    PRIVATE_MARK,
    Link,
    decode_text,
    find_links,
    one_line,
    retarget_links,
)
from brainiac.formats.markers import CONFLICT, Sides, has_markers, split_markers
from brainiac.formats.page import is_private_note
from brainiac.formats.short_term import ShortTermDocument
from brainiac.storage.blobs import SPLICE_SUFFIX
from brainiac.storage.copies import original_of, possible_originals, twin_of
from brainiac.storage.files import read_bytes
from brainiac.storage.lineage import common_version, new_paths
from brainiac.storage.pages import linked_path
from brainiac.storage.review import EMPTY as EMPTY_REVIEW
from brainiac.storage.review import Proposal, review_change
from brainiac.storage.versions import Difference, Merge, merge

TAKE = "take-copy"  # the operation of a proposal
_BY = "kernel"
_MERGED = frozenset(
    {
        PathKind.SHORT_TERM,
        PathKind.MEMORY,
        PathKind.ARCHIVED,
        PathKind.INDEX_PAGE,
        PathKind.REVIEW,
        PathKind.CONFIG,
        PathKind.SYSTEM,
        PathKind.RESPONSE,
        PathKind.ERROR,
    }
)
_PROMPTS = frozenset({PathKind.PROMPT, PathKind.CAPTURE})
_MAX_TOLD = 300  # characters of a statement in `review.md`


def settle_versions(brain: Brain, marked: Iterable[str] | None = None) -> list[Event]:
    """Merge every conflict copy, moved pages, and files with conflict markers.

    Only the device that runs the processes does, since two that merged the same copy would make new ones. Where its
    journal does not arrive, it does not hear of moves, so that the device that moved a page merges it.

    Args:
        brain: The brain.
        marked: Files that may have conflict markers; None to look for them.

    Returns:
        The events of what was merged, set aside or proposed.
    """
    if not brain.is_active:
        return [] if brain.git_operation or _knows_active_device(brain) else settle_moved(brain)
    return [*settle_copies(brain), *settle_moved(brain), *settle_logs(brain), *settle_markers(brain, marked)]


def _knows_active_device(brain: Brain) -> bool:
    """Return whether a journal of the device that the settings name stands here; else none of the others' arrives."""
    active = brain.settings.active_device
    return active is None or (brain.tree.journal / active).is_dir()


# --- copies --------------------------------------------------------------------------------------------------------


def find_copies(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield (copy, original) of every conflict copy in memory, inbox and settings."""
    for top in (brain.tree.memory, brain.tree.inbox, brain.tree.system):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = set(files)
            for name in sorted(files):
                path = brain.tree.relative(os.path.join(folder, name))
                original = original_of(path)
                if original is None and any(possible_originals(name, names)):
                    original = twin_of(brain.tree, path)
                if original is not None:
                    yield path, original


def settle_copies(brain: Brain) -> list[Event]:
    """Handle every conflict copy.

    Returns:
        The events of the copies that were merged, set aside or proposed.
    """
    if not brain.is_active:
        return []
    return _settled(brain, _settle_copy, list(find_copies(brain)), "conflict_copy_waits")


def _settled(
    brain: Brain, settle: Callable[..., Event | None], files: Iterable[tuple[str, ...]], warning: str
) -> list[Event]:
    """Settle files one by one and return the events; one that is being written or is broken is left to the next look.

    Args:
        brain: The brain.
        settle: Takes the brain and the paths of one entry of `files`.
        files: The file itself, and what else is to be known of it.
        warning: What the log calls a file that has to wait.
    """
    events = []
    for paths in files:
        try:
            event = brain.retry(partial(settle, brain, *paths))
        except (ConflictError, FormatError) as error:
            brain.log.warning(warning, path=paths[0], problem=str(error))
            continue
        if event is not None:
            events.append(event)
    return events


def _settle_copy(brain: Brain, copy: str, original: str) -> Event | None:
    """Merge, set aside or propose one conflict copy; return None where it waits for a person's decision."""
    raw, standing, kind = brain.read(copy), brain.read(original), brain.tree.kind_of(original)
    if raw is None or kind not in _MERGED | _PROMPTS:
        return None
    if standing is None and (path := _path_of_page(brain, original, raw)):
        return _merge_moved(brain, copy, path, original)
    if standing is None and kind is not PathKind.SHORT_TERM:
        return _propose_copy(brain, copy, original, raw) if kind not in _PROMPTS else _as_own_file(brain, copy, raw)
    standing_text = b"" if standing is None else standing
    if kind is PathKind.SHORT_TERM:
        ShortTermDocument(decode_text(raw))  # a copy that is still being written lacks its headings
    if kind is PathKind.INDEX_PAGE or raw == standing:
        return brain.commit(CopySetAside(copy=copy, of=original), by=_BY, changes=[remove(copy, raw)])
    base = common_version(brain, original, standing_text, raw)
    if kind in _PROMPTS and base not in (standing, raw):
        return _as_own_file(brain, copy, raw)
    merged = merge(kind, base, standing_text, raw, _Removals(brain, original).has)
    if merged.text == standing:
        return brain.commit(CopySetAside(copy=copy, of=original), by=_BY, changes=[remove(copy, raw)])
    changes = [remove(copy, raw), _change(original, standing, merged.text)]
    changes += _review_lines(brain, original, merged)
    return brain.commit(CopyMerged(copy=copy, of=original, differs=_hashes(merged)), by=_BY, changes=changes)


def _as_own_file(brain: Brain, copy: str, raw: bytes) -> Event:
    """Make a copy of a prompt a prompt of its own, named alike on every device: both may be answered."""
    original = original_of(copy) or copy
    stem, ending = posixpath.splitext(original)
    path = f"{stem}-{content_hash(raw)[:6]}{ending}"
    changes = [remove(copy, raw)] if brain.read(path) == raw else [move(copy, path, raw)]
    return brain.commit(CopyMerged(copy=copy, of=original, differs=()), by=_BY, changes=changes)


def _propose_copy(brain: Brain, copy: str, original: str, raw: bytes) -> Event | None:
    """Ask whether another device's version of a file that was deleted here is to be taken back."""
    copy_hash = content_hash(raw)
    name = content_hash(f"{copy}\n{copy_hash}\nNone".encode())[:24]
    is_asked, is_declined = _proposal_state(brain, name)
    if is_declined:
        return brain.commit(CopySetAside(copy=copy, of=original), by=_BY, changes=[remove(copy, raw)])
    if is_asked:
        return None
    beside = copy.rpartition("/")[2]
    what = f"Take another device's version of {original}, which is deleted here and stands as {beside}; `-` drops it"
    proposal = CopyProposal(
        id=name, what=what, operation=TAKE, copy=copy, copy_hash=copy_hash, path=original, hash=None
    )
    changes = review_change(brain, [Proposal(proposal, is_private_note(decode_text(raw)))])
    return brain.commit(CopyFound(proposals=(proposal,)), by=_BY, changes=changes)


def _proposal_state(brain: Brain, proposal_id: str) -> tuple[bool, bool]:
    """Return whether this device has asked in `review.md` about a conflict copy, and whether the person declined it."""
    brain.projection.follow()
    ((is_made, is_declined),) = brain.projection.query(
        "SELECT EXISTS (SELECT 1 FROM proposals WHERE id = ?1 AND device = ?2),"
        " EXISTS (SELECT 1 FROM decisions WHERE proposal = ?1 AND device = ?2 AND kind = ?3)",
        proposal_id,
        brain.journal.device,
        ProposalDeclined.kind,
    )
    return is_made, is_declined


def changes_for_copy(brain: Brain, proposal: CopyProposal) -> list[Change]:
    """Return the changes that replace an original by its copy; none where either changed since the proposal."""
    copy, standing = brain.read(proposal.copy), brain.read(proposal.path)
    digest = content_hash(standing) if standing is not None else None
    if copy is None or content_hash(copy) != proposal.copy_hash or digest != proposal.hash:
        return []
    return [_change(proposal.path, standing, copy), remove(proposal.copy, copy)]


# --- pages that moved ----------------------------------------------------------------------------------------------


def find_moved(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield (former path, new path) of every page that one device moved while another edited or moved it."""
    for uuid, paths in brain.pages().by_uuid.items():
        if len(paths) > 1:
            yield from sorted(new_paths(brain, uuid, paths).items())


def is_moved(brain: Brain, path: str, uuid: str, paths: Collection[str]) -> bool:
    """Return whether a page stands at several paths because a device moved it, and one of these is the given path.

    Args:
        brain: The brain.
        path: The path.
        uuid: The page's.
        paths: Where files with that uuid stand.
    """
    moved = new_paths(brain, uuid, paths)
    return path in moved or path in moved.values()


def settle_moved(brain: Brain) -> list[Event]:
    """Merge what stands at the former path of a moved page into the page, and remove it there.

    Returns:
        The events of the pages that were merged.
    """
    moved = [(path, new_path, path) for path, new_path in find_moved(brain)]
    return _settled(brain, _merge_moved, moved, "moved_page_waits")


def _merge_moved(brain: Brain, path: str, new_path: str, former_path: str) -> Event | None:
    """Merge a file into the page of which it is a version, and remove it; None where one of them is not there.

    Args:
        brain: The brain.
        path: The file.
        new_path: Where the page stands.
        former_path: Where the version stood of which the file is a copy; the file's own path where it is none.
    """
    raw, standing = brain.read(path), brain.read(new_path)
    if raw is None or standing is None:
        return None
    base = common_version(brain, new_path, standing, raw, former_path)
    moved = _Relinking(former_path, new_path, decode_text(raw))
    former, ours, theirs = None if base is None else moved(base), moved(standing, is_moved=True), moved(raw)
    removals = _Removals(brain, new_path, former_path)
    merged = merge(brain.tree.kind_of(new_path), former, ours, theirs, removals.has)
    # it must differ: to a sync tool a change counts more than a removal that another device may have made meanwhile
    text = merged.text if merged.text != standing else _with_later_update(new_path, standing, raw)
    changes = [remove(path, raw), update(new_path, standing, text), *_review_lines(brain, new_path, merged)]
    return brain.commit(CopyMerged(copy=path, of=new_path, differs=_hashes(merged)), by=_BY, changes=changes)


class _Relinking:
    """Makes the relative links on versions of a moved page lead from its new path where they led from the former one.

    Args:
        former_path: The one path.
        new_path: The other.
        text: A version that was written at the former path.
    """

    def __init__(self, former_path: str, new_path: str, text: str) -> None:
        self._former_path, self._folder = former_path, posixpath.dirname(new_path)
        self._is_due = posixpath.dirname(former_path) != self._folder
        self._written = {link.target for link in find_links(text)}

    def __call__(self, raw: bytes, *, is_moved: bool = False) -> bytes:
        """Return a version with its links changed.

        Args:
            raw: The version.
            is_moved: It stands at the new path; a link on it is changed only where nobody has repaired it yet.
        """
        text = decode_text(raw)
        present = {link.target for link in find_links(text)} if is_moved else set()

        def target_of(link: Link) -> str:
            target = posixpath.relpath(linked_path(link, self._former_path), self._folder)
            is_repaired = is_moved and (link.target not in self._written or target in present)
            return "" if link.target.startswith("/") or is_repaired else target

        return _encoded(retarget_links(text, target_of)) if self._is_due else raw


def _with_later_update(path: str, raw: bytes, other: bytes) -> bytes:
    """Return a page with an `updated_at` a second after those of both versions, alike on every device.

    Raises:
        FormatError: It has none yet; it gets one when it has rested for a minute.
    """
    text = decode_text(raw)
    times = [split(each)[0].get("updated_at") for each in (text, decode_text(other))]
    try:
        latest = max(parse_iso(str(at)) for at in times if at)
    except ValueError as error:
        raise FormatError(path, "has no `updated_at`") from error
    return _encoded(edit_meta(text, updated_at=iso(latest + timedelta(seconds=1))))


def _path_of_page(brain: Brain, path: str, copy: bytes) -> str:
    """Return where the page stands that was moved from a path, by the uuid in a copy of it; "" for none."""
    if brain.tree.kind_of(path) not in (PathKind.MEMORY, PathKind.ARCHIVED):
        return ""
    with suppress(FormatError):
        return brain.pages().path_by_uuid.get(str(split(decode_text(copy))[0].get("uuid") or ""), "")
    return ""


# --- logs ----------------------------------------------------------------------------------------------------------


def settle_logs(brain: Brain) -> list[Event]:
    """Take over the lines of copies of the access log, and remove copies of journals that have nothing of their own.

    A copy of a journal with lines of its own stays: all devices read it like a journal. A copy of a kept text goes
    where the text can be read: two devices may store one text as different splices.

    Returns:
        The events of the copies of the access log.
    """
    for original, copy in _copies_in(brain, *brain.tree.journal.glob("*/")):
        if _own_lines(original, copy) == b"":
            copy.unlink()
    for original, copy in _copies_in(brain, *brain.tree.journal.glob("blobs/*/")):
        with suppress(BlobError):  # the text is damaged here; the copy may have it
            brain.journal.blobs.get(original.parent.name + original.name.removesuffix(SPLICE_SUFFIX))
            copy.unlink()
    return [
        brain.retry(partial(_take_lines, brain, original, copy))
        for original, copy in _copies_in(brain, brain.tree.access_log.parent)
        if original == brain.tree.access_log
    ]


def _copies_in(brain: Brain, *folders: Path) -> list[tuple[Path, Path]]:
    """Return (original, copy) of the files in some folders whose names are those of conflict copies."""
    copies = [path for folder in folders for path in sorted(folder.iterdir()) if path.is_file()]
    return [(copy.with_name(name), copy) for copy in copies if (name := original_of(copy.name))]


def _own_lines(original: Path, copy: Path) -> bytes:
    """Return the lines of a copy that the original lacks."""
    lines = (read_bytes(copy) or b"").splitlines(keepends=True)
    known = set((read_bytes(original) or b"").splitlines())
    return b"".join(line for line in lines if line.rstrip(b"\r\n") not in known)


def _take_lines(brain: Brain, original: Path, copy: Path) -> Event:
    """Append the lines of a copy of the access log that the log lacks, and remove the copy."""
    name, of, lines = brain.tree.relative(copy), brain.tree.relative(original), _own_lines(original, copy)
    changes = [append(of, lines if lines.endswith(b"\n") else lines + b"\n")] if lines else []
    event = brain.commit(CopyMerged(copy=name, of=of, differs=()), by=_BY, changes=changes)
    copy.unlink(missing_ok=True)  # after a crash before this its lines are all there, and it goes then
    return event


# --- markers -------------------------------------------------------------------------------------------------------


def find_marked(brain: Brain, paths: Iterable[str] | None = None) -> Iterator[str]:
    """Return those files of memory, inbox and settings that have conflict markers.

    Args:
        brain: The brain.
        paths: The files to look at; None for all that may have some.
    """
    return (path for path in (brain.observed.unread() if paths is None else paths) if is_marked(brain, path))


def is_marked(brain: Brain, path: str) -> bool:
    """Return whether a file that is merged has conflict markers of git; a prompt only where git keeps the brain."""
    kind = brain.tree.kind_of(path)
    # in a prompt somebody may ask about a merge of theirs
    if kind not in _MERGED | _PROMPTS or (kind in _PROMPTS and brain.git is None):
        return False
    try:
        raw = brain.read(path)
    except OSError:  # what nobody may read costs nothing but itself; `doctor` names it
        return False
    return raw is not None and CONFLICT in raw and has_markers(decode_text(raw))


def settle_markers(brain: Brain, paths: Iterable[str] | None = None) -> list[Event]:
    """Merge the versions that files with conflict markers hold.

    Args:
        brain: The brain.
        paths: Files that may have some; None to look for them.

    Returns:
        The events.
    """
    return _settled(brain, _settle_marked, [(path,) for path in find_marked(brain, paths)], "conflict_markers_wait")


def _settle_marked(brain: Brain, path: str) -> Event | None:
    """Merge the versions that a file with conflict markers holds; None where there are none any more."""
    raw = brain.read(path)
    sides = split_markers(decode_text(raw)) if raw is not None else None
    if raw is None or sides is None:
        return None
    ours, theirs = _encoded(sides.ours), _encoded(sides.theirs)
    merged = merge(brain.tree.kind_of(path), _base_of(brain, path, sides), ours, theirs, _Removals(brain, path).has)
    event = MarkersMerged(path=path, ours=content_hash(ours), theirs=content_hash(theirs), differs=_hashes(merged))
    changes = [update(path, raw, merged.text), *_review_lines(brain, path, merged)]
    return brain.commit(event, by=_BY, changes=changes)


def _base_of(brain: Brain, path: str, sides: Sides) -> bytes | None:
    """Return the version that both sides grew from: git's own, else the journals'."""
    if sides.base is not None:
        return _encoded(sides.base)
    return common_version(brain, path, _encoded(sides.ours), _encoded(sides.theirs))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# --- both ----------------------------------------------------------------------------------------------------------


def _change(path: str, before: bytes | None, after: bytes) -> Change:
    return create(path, after) if before is None else update(path, before, after)


def _hashes(merged: Merge) -> tuple[str, ...]:
    return tuple(content_hash(_encoded(difference.other)) for difference in merged.differences)


def _review_lines(brain: Brain, path: str, merged: Merge) -> list[Change]:
    """Return the change that adds a line to `memory/review.md` for each statement of which both texts stand."""
    review = brain.tree.relative(brain.tree.review)
    if not merged.differences or path == review:
        return []
    before = brain.read_text(review)
    text = EMPTY_REVIEW if before is None or not before.strip() else before
    is_private = is_private_note(decode_text(merged.text))
    for difference in merged.differences:
        line = _review_line(path, difference, is_private=is_private)
        if line not in text:
            text += ("" if text.endswith("\n") else "\n") + line
    if text == before:
        return []
    return [_change(review, None if before is None else _encoded(before), _encoded(text))]


def _review_line(path: str, difference: Difference, *, is_private: bool) -> str:
    """Return the line that names both texts; it is the same on every device that merges the same two versions."""
    kept, other = (one_line(PRIVATE.sub("", text))[:_MAX_TOLD] for text in (difference.kept, difference.other))
    is_private |= any(PRIVATE.search(text) for text in (difference.kept, difference.other))
    mark = f" {PRIVATE_MARK}" if is_private else ""
    return f"- {path}: two devices changed it, and both stand; keep what holds: `{kept}` or `{other}`{mark}\n"


class _Removals:
    """The texts that processes, on any device, removed from a file, by its paths; a person's removals do not count."""

    def __init__(self, brain: Brain, *paths: str) -> None:
        self._brain, self._paths = brain, paths

    def has(self, text: str) -> bool:
        """Return whether a process removed a text."""
        return any(text in before and text not in after for before, after in self._pairs)

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        # read only when a copy has something that the original lacks, which is rare
        events = (event for _, event in self._brain.journal.all_events() if event.by != "person")
        changes = [change for event in events for change in event.changes]
        texts = self._brain.kept_text
        return [
            (texts(change.before) or "", texts(change.after) or "")
            for change in changes
            if change.path in self._paths and change.op == "update"
        ]
