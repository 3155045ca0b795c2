"""Conflict copies and conflict markers become one file again: what both versions say is merged by what things are.

`storage.versions.merge` does it, with the version that both grew from where the journals have it. A copy goes in the
commit that takes its words over; the journal keeps its text. Where both changed one statement both texts stand, and a
line in `memory/review.md` says so.

A page that one device moved while another edited it is merged in the same way: what stands at its former path goes to
the new one, as the journals tell the move. What git's merge driver merged is named in the review afterwards.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import BlobError, ConflictError, FormatError
from brainiac.events import Change, Event, PathKind, append, content_hash, move, new_id, remove, update, write
from brainiac.formats import markdown
from brainiac.formats.discretion import Audience
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.markdown import Link, decode_text, find_links, retarget_links
from brainiac.formats.page import audience_of
from brainiac.formats.short_term import ShortTermDocument
from brainiac.storage.files import Disk, read_bytes
from brainiac.storage.journal import SPLICE_SUFFIX
from brainiac.storage.lineage import common_version, new_paths
from brainiac.storage.pages import linked_path
from brainiac.storage.review import asked_before, asking
from brainiac.storage.versions import Difference, Merge, differences_change, merge
from brainiac.tree import original_of, possible_original

TAKE = "take-copy"  # the operation of a proposal
_BY, _WHO = "kernel", "two devices"
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
_MERGED = _PAGES | {
    *(PathKind.SHORT_TERM, PathKind.INDEX_PAGE, PathKind.REVIEW, PathKind.TODAY),
    *(PathKind.CONFIG, PathKind.SYSTEM, PathKind.RESPONSE, PathKind.ERROR),
}
_PROMPTS = frozenset({PathKind.PROMPT, PathKind.CAPTURE})
_DIFFERENCES = "differences"  # a folder in this machine's state
# Syncthing's, as it names them: by the second, and by the device whose version stands now
_UNMARKED_COPY = re.compile(r"(.+\.sync-conflict-\d{8}-\d{6}-[A-Z0-9]{7})(\.[a-z]+)")


def settle_versions(brain: Brain, marked: Iterable[str] | None = None) -> list[Event]:
    """Merge every conflict copy, moved pages, and files with conflict markers; name what git merged in the review.

    Only the device that runs the processes does so: two devices that merged the same copy would make new copies. Where
    journals are not synced, that device does not learn which pages were moved here; then this device merges those.

    Args:
        brain: The brain.
        marked: Files that may have conflict markers; None to look for them.

    Returns:
        The events of what was merged, set aside, proposed or named.
    """
    settled = settle_differences(brain)
    if brain.is_active:
        settled += _settle_all(brain, _settle_copy, list(find_copies(brain)), warning="conflict_copy_waits")
        settled += [*settle_moved(brain), *settle_logs(brain)]
        files = [(path,) for path in find_marked(brain, marked)]
        settled += _settle_all(brain, _settle_marked, files, warning="conflict_markers_wait")
    elif not brain.git_operation:  # git itself may be about to merge them
        active = brain.settings.active_device
        if active is not None and not (brain.tree.journal / active).is_dir():
            settled += settle_moved(brain)
    return settled


# --- copies --------------------------------------------------------------------------------------------------------


def find_copies(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield (copy, original) of every conflict copy in memory, inbox and settings, by its name."""
    for top in (brain.tree.memory, brain.tree.inbox, brain.tree.system):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths = (brain.tree.relative(os.path.join(folder, name)) for name in sorted(files))
            yield from ((path, original) for path in paths if (original := original_of(path)))


def mark_copy(brain: Brain, copy: str) -> None:
    """Put a mark of its content into the name of a copy of Syncthing's that just came about.

    Where two devices lose against a third within a second, their copies have one name, and Syncthing drops one of them.
    """
    match = _UNMARKED_COPY.fullmatch(copy)
    if match is None or brain.git_operation or brain.tree.kind_of(original_of(copy) or "") not in _MERGED | _PROMPTS:
        return
    with suppress(OSError):  # it is gone, may not be read, or one of this name is there
        marked = f"{match[1]}_{content_hash(brain.tree.absolute(copy).read_bytes())[:6]}{match[2]}"
        brain.committer.disk.rename_new(brain.tree.absolute(copy), brain.tree.absolute(marked))


def _settle_all(
    brain: Brain, settle: Callable[..., Event | None], files: Iterable[tuple[str, ...]], *, warning: str
) -> list[Event]:
    """Call a function for each file and return the events; a file that is being written or broken waits for next time.

    Args:
        brain: The brain.
        settle: Takes the brain and the paths of one entry of `files`.
        files: For each file its path, then the other paths that `settle` takes.
        warning: The name of the log line for a file that has to wait.
    """
    settled = []
    for paths in files:
        try:
            event = brain.retry(partial(settle, brain, *paths))
        except (ConflictError, FormatError) as error:
            brain.log.warning(warning, path=paths[0], problem=str(error))
            continue
        if event is not None:
            settled.append(event)
    return settled


def _settle_copy(brain: Brain, copy: str, original: str) -> Event | None:
    """Merge, set aside or propose one conflict copy; return None where it waits for a person's decision."""
    raw, standing, kind = brain.read(copy), brain.read(original), brain.tree.kind_of(original)
    if raw is None or kind not in _MERGED | _PROMPTS:
        return None
    if kind is PathKind.SHORT_TERM:
        ShortTermDocument(decode_text(raw))  # raises: a copy that is still being written lacks its headings
    elif standing is None:
        return _settle_without_original(brain, copy, original, raw)
    if kind is PathKind.INDEX_PAGE or raw == standing:
        return _set_aside(brain, copy, original, raw)
    base = common_version(brain, original, standing or b"", raw)
    if kind in _PROMPTS and base not in (standing, raw):  # both were edited: two prompts
        return _as_own_file(brain, copy, raw)
    merged = _merged(brain, original, base, standing or b"", raw)
    if merged.text == standing:
        return _set_aside(brain, copy, original, raw)
    changes = [remove(copy, raw), write(original, standing, merged.text)]
    changes += differences_change(brain.tree, original, merged, _WHO)
    event = events.CopyMerged(copy=copy, of=original, differs=_hashes_of_differences(merged))
    return brain.commit(event, by=_BY, changes=changes)


def _settle_without_original(brain: Brain, copy: str, original: str, raw: bytes) -> Event | None:
    """Settle a copy whose original was moved or removed; return None where it waits for a person's decision."""
    kind = brain.tree.kind_of(original)
    if kind in _PAGES:  # the page may be elsewhere now, by the uuid in the copy
        with suppress(FormatError):
            uuid = str(split(decode_text(raw))[0].get("uuid") or "")
            if path := brain.pages().path_by_uuid.get(uuid, ""):
                return _merge_moved(brain, copy, path, original)
    return _as_own_file(brain, copy, raw) if kind in _PROMPTS else _propose_copy(brain, copy, original, raw)


def _set_aside(brain: Brain, copy: str, original: str, raw: bytes) -> Event:
    """Remove a copy that has nothing of its own, or that the person declined; the journal keeps its text."""
    return brain.commit(events.CopySetAside(copy=copy, of=original), by=_BY, changes=[remove(copy, raw)])


def _as_own_file(brain: Brain, copy: str, raw: bytes) -> Event:
    """Make a copy of a prompt a prompt of its own, named alike on every device: both may be answered."""
    original = original_of(copy) or copy
    stem, ending = posixpath.splitext(original)
    path = f"{stem}-{content_hash(raw)[:6]}{ending}"
    changes = [remove(copy, raw)] if brain.read(path) == raw else [move(copy, path, raw)]
    return brain.commit(events.CopyMerged(copy=copy, of=original, differs=()), by=_BY, changes=changes)


def _propose_copy(brain: Brain, copy: str, original: str, raw: bytes) -> Event | None:
    """Ask whether another device's version of a file that was deleted here is to be taken back.

    Returns:
        The event of the proposal, or of the removal of a copy that the person declined; None where it was asked before.
    """
    copy_hash = content_hash(raw)
    # by what is asked, so that the same question has the same id each time; None: no original
    proposal_id = content_hash(f"{copy}\n{copy_hash}\nNone".encode())[:24]
    if asked := asked_before(brain).get(proposal_id):
        return _set_aside(brain, copy, original, raw) if asked.how == "declined" else None
    name = copy.rpartition("/")[2]
    what = f"Take another device's version of {original}, which is deleted here and stands as {name}; `-` drops it"
    is_private = audience_of(decode_text(raw)) > Audience.ANYONE
    common: dict[str, Any] = {"id": proposal_id, "what": what, "is_private": is_private}
    proposal = events.CopyProposal(operation=TAKE, copy=copy, copy_hash=copy_hash, path=original, hash=None, **common)
    proposals, changes = asking(brain, [proposal])
    return brain.commit(events.ProposalMade(proposals=proposals), by=_BY, changes=changes)


def changes_for_copy(brain: Brain, proposal: events.CopyProposal) -> list[Change]:
    """Return the changes that replace an original by its copy; none where either changed since the proposal."""
    copy, standing = brain.read(proposal.copy), brain.read(proposal.path)
    digest = content_hash(standing) if standing is not None else None
    if copy is None or content_hash(copy) != proposal.copy_hash or digest != proposal.hash:
        return []
    return [write(proposal.path, standing, copy), remove(proposal.copy, copy)]


# --- pages that moved ----------------------------------------------------------------------------------------------


def find_moved(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield (former path, new path) of every page that one device moved while another edited or moved it.

    A copy that a sync service made of a page under a name that may be meant is told like one, with its original.
    """
    for uuid, paths in brain.pages().by_uuid.items():
        if len(paths) > 1:
            yield from sorted(new_paths(brain, uuid, paths).items())


def is_moved(brain: Brain, path: str, uuid: str, paths: Collection[str]) -> bool:
    """Return whether a file is at the former or the new path of a page that one device moved while another edited it.

    Args:
        brain: The brain.
        path: The file.
        uuid: The uuid on it.
        paths: All files with that uuid; a person's copies of a page are among them.
    """
    new_path_by_former = new_paths(brain, uuid, paths)
    return path in new_path_by_former or path in new_path_by_former.values()


def settle_moved(brain: Brain) -> list[Event]:
    """Merge what stands at the former path of a moved page into the page and remove it there; return the events."""
    files = [
        (former_path, new_path, former_path)
        for former_path, new_path in find_moved(brain)
        # two devices that merged the same copy would make new copies
        if brain.is_active or not possible_original(former_path, (new_path,))
    ]
    return _settle_all(brain, _merge_moved, files, warning="moved_page_waits")


def _merge_moved(brain: Brain, path: str, new_path: str, former_path: str) -> Event | None:
    """Merge a file into the page of which it is a version, and remove it; return None where one of them is missing.

    Args:
        brain: The brain.
        path: The file: at the page's former path, or a conflict copy of what was there.
        new_path: Where the page is now.
        former_path: Where the page was.
    """
    raw, standing = brain.read(path), brain.read(new_path)
    if raw is None or standing is None:
        return None
    base = common_version(brain, new_path, standing, raw, former_path)
    # all with the links of the new path, so that only what somebody wrote differs
    relinked = partial(_relinked, former_path, new_path)
    former = None if base is None else relinked(base)
    merged = _merged(brain, new_path, former, relinked(standing, decode_text(raw)), relinked(raw), former_path)
    # it must differ: to a sync tool a change counts more than a removal that another device may have made meanwhile
    text = merged.text if merged.text != standing else _with_later_update(new_path, standing, raw)
    changes = [remove(path, raw), update(new_path, standing, text)]
    changes += differences_change(brain.tree, new_path, merged, _WHO)
    event = events.CopyMerged(copy=path, of=new_path, differs=_hashes_of_differences(merged))
    return brain.commit(event, by=_BY, changes=changes)


def _with_later_update(path: str, raw: bytes, other: bytes) -> bytes:
    """Return a page with an `updated_at` a second after those of both versions, the same on every device.

    Raises:
        FormatError: Neither version has an `updated_at`; a page gets one when it was left alone for a minute.
    """
    text = decode_text(raw)
    times = [split(each)[0].get("updated_at") for each in (text, decode_text(other))]
    try:
        latest = max(parse_iso(str(at)) for at in times if at)
    except ValueError as error:
        raise FormatError(path, "has no `updated_at`") from error
    return _encoded(edit_meta(text, updated_at=iso(latest + timedelta(seconds=1))))


# --- logs ----------------------------------------------------------------------------------------------------------


def settle_logs(brain: Brain) -> list[Event]:
    """Take over the lines of copies of the access log, and remove copies of journals and blobs that nobody needs.

    A copy of a journal with lines of its own stays: all devices read it like a journal. A copy of a blob is removed if
    the blob can be read: two devices may store one text as different splices.

    Returns:
        The events of the copies of the access log.
    """
    for original, copy in _copies_in(*brain.tree.journal.glob("*/")):
        if _own_lines(original, copy) == b"":
            copy.unlink()
    for original, copy in _copies_in(*brain.tree.journal.glob("blobs/*/")):
        digest = original.parent.name + original.name.removesuffix(SPLICE_SUFFIX)
        with suppress(BlobError):  # the blob is damaged; the copy may have its text
            brain.journal.blobs.get(digest)
            copy.unlink()
    copies = [copy for original, copy in _copies_in(brain.tree.access_log.parent) if original == brain.tree.access_log]
    return [brain.retry(partial(_take_lines, brain, copy)) for copy in copies]


def _copies_in(*folders: Path) -> list[tuple[Path, Path]]:
    """Return (original, copy) of the files in some folders whose names are those of conflict copies."""
    # by these two, which pass over what may not be looked at
    copies = [path for folder in folders for path in sorted(folder.glob("*")) if os.path.isfile(path)]
    return [(copy.with_name(name), copy) for copy in copies if (name := original_of(copy.name))]


def _own_lines(original: Path, copy: Path) -> bytes:
    """Return the lines of a copy that the original lacks."""
    lines = (read_bytes(copy) or b"").splitlines(keepends=True)
    known = set((read_bytes(original) or b"").splitlines())
    return b"".join(line for line in lines if line.rstrip(b"\r\n") not in known)


def _take_lines(brain: Brain, copy: Path) -> Event:
    """Append the lines of a copy of the access log that the log lacks, and remove the copy."""
    path, log = brain.tree.relative(copy), brain.tree.relative(brain.tree.access_log)
    lines = _own_lines(brain.tree.access_log, copy)
    changes = [append(log, lines if lines.endswith(b"\n") else lines + b"\n")] if lines else []
    event = brain.commit(events.CopyMerged(copy=path, of=log, differs=()), by=_BY, changes=changes)
    copy.unlink(missing_ok=True)  # after a crash before this the next look finds no new lines, and removes it
    return event


# --- markers -------------------------------------------------------------------------------------------------------


def find_marked(brain: Brain, paths: Iterable[str] | None = None) -> Iterator[str]:
    """Yield the files of memory, inbox and settings that have conflict markers.

    Args:
        brain: The brain.
        paths: The files to look at; None for all that may have some.
    """
    return (path for path in (brain.observed.restamped() if paths is None else paths) if is_marked(brain, path))


def is_marked(brain: Brain, path: str) -> bool:
    """Return whether a file of memory, inbox or settings has git's conflict markers; False if it may not be read.

    In a prompt of a brain without git they are words: somebody asks about a merge of theirs.
    """
    kind = brain.tree.kind_of(path)
    if kind not in _MERGED | _PROMPTS or (kind in _PROMPTS and brain.git is None):
        return False
    try:
        raw = brain.read(path)
    except OSError:  # one such file must not stop the others; `doctor` names it
        return False
    return raw is not None and markdown.CONFLICT in raw and markdown.has_markers(decode_text(raw))


def _settle_marked(brain: Brain, path: str) -> Event | None:
    """Merge the versions that a file with conflict markers holds; None where there are none any more."""
    raw = brain.read(path)
    sides = markdown.split_markers(decode_text(raw)) if raw is not None else None
    if raw is None or sides is None:
        return None
    ours, theirs = _encoded(sides.ours), _encoded(sides.theirs)
    base = common_version(brain, path, ours, theirs) if sides.base is None else _encoded(sides.base)
    merged = _merged(brain, path, base, ours, theirs)
    changes = [update(path, raw, merged.text), *differences_change(brain.tree, path, merged, _WHO)]
    return brain.commit(_merge_event(path, ours, theirs, merged), by=_BY, changes=changes)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# --- git's merge driver --------------------------------------------------------------------------------------------


def note_differences(state: Path, path: str, ours: bytes, theirs: bytes, merged: Merge) -> None:
    """Write what both sides of git's merge had changed to a file, for `settle_differences` to commit later.

    The merge driver cannot commit it, since git is writing the tree just now.

    Args:
        state: The brain's state folder on this machine.
        path: The file.
        ours: The version that was checked out.
        theirs: The version that was merged into it.
        merged: The result.
    """
    event = _merge_event(path, ours, theirs, merged)
    note = {"event": event.to_json(), "differences": [asdict(difference) for difference in merged.differences]}
    disk, draft, folder = Disk(), state / new_id(), state / _DIFFERENCES
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    disk.mkdir(folder)
    disk.write(draft, json.dumps(note).encode())
    disk.fsync(draft)
    disk.rename_new(draft, folder / draft.name)


def settle_differences(brain: Brain) -> list[Event]:
    """Name in `memory/review.md` the statements of which git's merge driver left both texts; return the events."""
    folder = brain.places.state / _DIFFERENCES
    if brain.git_operation or not folder.is_dir():
        return []
    files = [(os.fspath(file),) for file in sorted(folder.iterdir())]
    return _settle_all(brain, _settle_differences, files, warning="differences_wait")


def _settle_differences(brain: Brain, file: str) -> Event | None:
    """Name the statements of one merge that still stand in both texts; None where there are none."""
    note = json.loads(Path(file).read_bytes())
    event = events.MarkersMerged.from_json(note["event"])
    text = brain.read_text(event.path) or ""
    differences = [Difference(**texts) for texts in note["differences"]]
    # all lines of both; what counts no more may stand there as a comment
    lines = [(each, (*each.kept.splitlines(), *each.other.splitlines())) for each in differences]
    standing = tuple(difference for difference, both in lines if all(line in text for line in both))
    changes = differences_change(brain.tree, event.path, Merge(_encoded(text), standing), _WHO)
    recorded = brain.commit(event, by=_BY, changes=changes) if changes else None
    brain.committer.disk.unlink(Path(file))
    return recorded


# --- both ----------------------------------------------------------------------------------------------------------


def _merge_event(path: str, ours: bytes, theirs: bytes, merged: Merge) -> events.MarkersMerged:
    """Return the event of a merge of git's two versions, whether from between markers or by the merge driver."""
    differs = _hashes_of_differences(merged)
    return events.MarkersMerged(path=path, ours=content_hash(ours), theirs=content_hash(theirs), differs=differs)


def _hashes_of_differences(merged: Merge) -> tuple[str, ...]:
    """Return the hashes of the texts that stand second where both sides' texts stand; the event keeps these."""
    return tuple(content_hash(_encoded(difference.other)) for difference in merged.differences)


def _merged(brain: Brain, path: str, base: bytes | None, ours: bytes, theirs: bytes, *former_paths: str) -> Merge:
    """Return two versions of a file merged; what processes, on any device, removed from it does not come back.

    Args:
        brain: The brain.
        path: The file.
        base: The version that both grew from; None for none.
        ours: The one version.
        theirs: The other.
        former_paths: Other paths that the file had.
    """

    @cache  # read only when a version has something that the other lacks, which is rare
    def updates() -> list[tuple[str, str]]:
        """Return the text before and after each change of the file by a process."""
        by_processes = (event for _, event in brain.journal.all_events() if event.by != "person")
        changes = [change for event in by_processes for change in event.changes if change.op == "update"]
        texts = [(change.before, change.after) for change in changes if change.path in (path, *former_paths)]
        return [(brain.kept_text(before) or "", brain.kept_text(after) or "") for before, after in texts]

    def was_removed(text: str) -> bool:
        return any(text in before and text not in after for before, after in updates())

    return merge(brain.tree.kind_of(path), base, ours, theirs, was_removed=was_removed)


def _relinked(former_path: str, new_path: str, raw: bytes, former: str | None = None) -> bytes:
    """Return a version of a moved page with relative links from its new path, in place of those from its former one.

    Args:
        former_path: Where the page was.
        new_path: Where it is now.
        raw: The version.
        former: If it is the one at the new path: a version of the former path. A link that somebody repaired already,
            which this lacks or whose new form is on the page, stays.
    """
    folder, text = posixpath.dirname(new_path), decode_text(raw)
    if posixpath.dirname(former_path) == folder:
        return raw
    present = {link.target for link in find_links(text)}
    former_targets = present if former is None else {link.target for link in find_links(former)}

    def target_of(link: Link) -> str:
        """Return the new target of a link; "" leaves the link as it is."""
        target = posixpath.relpath(linked_path(link, former_path), folder)
        is_repaired = former is not None and (link.target not in former_targets or target in present)
        return "" if link.target.startswith("/") or is_repaired else target

    return _encoded(retarget_links(text, target_of))
