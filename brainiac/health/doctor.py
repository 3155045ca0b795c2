"""`brainiac doctor`: checks a brain for damage that loses memories or links, and repairs what is safe.

A repair is safe if it only adds (a missing key, page or file) or follows a known identity (the path of a link). A
journal is checked for every `seq` once and in order, and every text that an event names kept as a blob; it can be
damaged by hand, by a merge of git, by an interrupted sync, or by a restored backup. It is not repaired: which of two
lines is the true one cannot be known, and history is not rewritten.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import time
import unicodedata
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path, PurePosixPath
from uuid import UUID

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import (
    Event,
    NoteMended,
    PurgeHonoured,
    TextsPurged,
    TreeAdopted,
    content_hash,
    create,
    new_id,
    update,
)
from brainiac.formats.access_log import parse_access_log
from brainiac.formats.discretion import asks_for_privacy
from brainiac.formats.index_page import new_index
from brainiac.formats.markdown import PRIVATE, find_events
from brainiac.formats.page import MemoryDocument, is_private_note
from brainiac.health.overview import Fix, Problem, setup_problems, unwritable
from brainiac.history.copies import find_copies, find_marked, find_moved, is_marked, settle_versions
from brainiac.history.purge import apply_tombstones, remains
from brainiac.skeleton import create_brain
from brainiac.storage.external_edits import MAX_BYTES
from brainiac.storage.journal import from_line
from brainiac.storage.lineage import new_paths
from brainiac.storage.links import with_repaired_links
from brainiac.storage.pages import INDEX, PageSet, linked_path
from brainiac.storage.serving import is_running
from brainiac.tree import OUR_TEMPORARY_PREFIX, Misfit, shown

KEYS = ("uuid", "created_at", "updated_at", "tags", "emotion", "reinforcement_count")
LEFTOVER_SECONDS = 3600  # younger temporary files may be displaced files that are still checked for saves
MAX_SHOWN = 200  # characters of a link's path


def examine(brain: Brain) -> Iterator[Problem]:
    """Yield every problem, in the order in which they are best repaired."""
    yield from check_structure(brain)
    yield from check_git(brain)
    pages = brain.pages()
    yield from check_versions(brain)
    for check in (check_names, check_front_matter, check_uuids, check_index_pages, check_links):
        yield from check(brain, pages)
    yield from check_short_term(brain)
    yield from check_marks(brain)
    yield from check_access_log(brain)
    yield from check_journal(brain)
    for tombstone, path in remains(brain):
        yield Problem(path, f"was purged ({tombstone.at}) and is here again", "--fix destroys it", apply_tombstones)
    yield from check_leftovers(brain)


def mend(brain: Brain, problems: list[Problem]) -> list[Problem]:
    """Carry out the fixes of problems and return the problems that were repaired.

    A file that a person saves at this moment is left to the next run.
    """
    repaired = []
    for problem in problems:
        if problem.fix is not None:
            with suppress(ConflictError):
                problem.fix(brain)
                repaired.append(problem)
    return repaired


def _edit(path: str, edit: Callable[[Brain, str], str]) -> Fix:
    """Return a fix that edits a page's text as it is when the fix runs: an earlier fix may have changed it."""

    def fix(brain: Brain) -> None:
        text = brain.read_text(path)
        if text is not None and (after := edit(brain, text)) != text:
            brain.commit(NoteMended(), by="doctor", changes=[update(path, text, after)])

    return fix


# --- files and folders -------------------------------------------------------------------------------------


def check_structure(brain: Brain) -> Iterator[Problem]:
    """Check that every shipped file and folder exists and is writable, and that the settings can be carried out."""
    yield from setup_problems(brain, is_thorough=True)
    yield from unwritable(brain)
    tree = brain.tree
    for path in (tree.core_identity, tree.config, tree.short_term, tree.long_term, tree.notes):
        if not path.exists():
            yield Problem(tree.relative(path), "is missing", "--fix makes it anew", _create_missing)


def _create_missing(brain: Brain) -> None:
    create_brain(brain.root, is_shared=True, clock=brain.clock)


def check_git(brain: Brain) -> Iterator[Problem]:
    """Check that git merges a brain with a remote repository by what its files hold."""
    if brain.git is None:
        return
    needed = {"merge.brainiac.driver", "merge.renames", "pull.twohead"}
    command = ["git", "-C", os.fspath(brain.root), "config", "--get-regexp", r"^(merge|pull|remote)\."]
    with suppress(OSError):  # git itself is not there
        lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        names = {line.partition(" ")[0] for line in lines}
        if any(name.startswith("remote.") for name in names) and not needed <= names:
            what = "is merged by git's own rules here, which can mix up a page that was moved and edited at once"
            yield Problem(".gitattributes", what, "run `brainiac git setup`")


def check_names(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that no page's name equals another on some file systems, or keeps the page from being read."""
    paths_by_key: dict[str, list[str]] = defaultdict(list)
    for path in sorted((*pages.pages, *pages.broken)):
        paths_by_key[unicodedata.normalize("NFC", path).casefold()].append(path)
    for first, *others in paths_by_key.values():
        for path in others:
            what = f"has the same name as {first} where case or accents are not told apart"
            yield Problem(path, what, "rename one of them; links are healed by their uuid")
    misfits: list[Misfit] = []
    deque(brain.tree.walk(brain.tree.long_term, brain.tree.archive, misfits=misfits), maxlen=0)
    yield from (Problem(*misfit) for misfit in misfits)


def check_index_pages(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that every folder of long-term memory has its `_index.md`."""
    now = iso(brain.clock.now())
    folders = {pages.root}
    for path in (*pages.pages, *pages.broken):
        folders_above = map(str, PurePosixPath(path).parents)
        folders.update(folder for folder in folders_above if folder.startswith(pages.root + "/"))
    for folder in sorted(folders):
        path = f"{folder}/{INDEX}"
        if path not in pages.pages and path not in pages.broken and brain.tree.absolute(folder).is_dir():
            title = posixpath.basename(folder).replace("_", " ").replace("-", " ").title()
            yield Problem(path, "is missing", "--fix makes an empty one", _create(path, title, now))


def _create(path: str, title: str, now: str) -> Fix:
    """Return a fix that makes an empty index page."""
    page = create(path, new_index(title, uuid=new_id(), now=now))
    return lambda brain: brain.commit(NoteMended(), by="doctor", changes=[page])


def check_leftovers(brain: Brain) -> Iterator[Problem]:
    """Check for temporary files that a crash left; not while a daemon runs, which may be using them."""
    if is_running(brain):
        return
    latest = brain.clock.now().timestamp() - LEFTOVER_SECONDS
    todo = "--fix keeps its text in the journal and removes it"
    for folder, _, names in os.walk(brain.root):
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(OUR_TEMPORARY_PREFIX) and os.lstat(path).st_ctime < latest:
                what = "is left over from a commit that was cut short"
                yield Problem(brain.tree.relative(path), what, todo, lambda brain: brain.committer.recover())


def check_versions(brain: Brain) -> Iterator[Problem]:
    """Check for copies of sync services, for markers that git left in a file, and for moved pages that came back."""
    todo = "--fix merges both versions" if brain.is_active else brain.waits_for
    fix: Fix | None = settle_versions if brain.is_active else None
    for copy, original in find_copies(brain):
        yield Problem(copy, f"is another device's version of {original}", todo, fix)
    for path in find_marked(brain):
        yield Problem(path, "holds conflict markers of git", todo, fix)
    for path, new_path in find_moved(brain):
        yield Problem(path, f"is a version of {new_path}", todo, fix)


# --- pages -------------------------------------------------------------------------------------------------


def check_front_matter(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that every page has valid front matter with the keys that a memory must have."""
    for path, error in pages.broken.items():
        if is_marked(brain, path):
            continue  # reported by `check_versions`
        yield Problem(path, error.problem, "mend it by hand: nobody else can tell what was meant")
    for path, page in pages.pages.items():
        if missing := [key for key in KEYS if page.meta.get(key) is None]:
            fix = _edit(path, partial(_with_missing_keys, path))
            yield Problem(path, f"lacks {', '.join(missing)}", "--fix adds what is missing", fix)


def _with_missing_keys(path: str, brain: Brain, text: str) -> str:
    """Return a page's text with the keys that it lacks."""
    return str(MemoryDocument(text, path).with_missing_keys(new_id(), brain.written_at(path)))


def check_uuids(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that every uuid is valid and belongs to one page; of two pages with the same, the newer gets a new one."""

    def age(path: str) -> tuple[str, int, str]:
        # a copy often has the original's date, so the file's own time decides next
        return pages.pages[path].created_at, os.stat(brain.tree.absolute(path)).st_mtime_ns, path

    for uuid, paths in pages.by_uuid.items():
        if not _is_uuid(uuid):
            yield from (Problem(path, f"{uuid!r} is not a uuid", "put one there, or remove the line") for path in paths)
            continue
        # what is at the former path of a moved page is no copy of it; `check_versions` reports it
        former_paths = new_paths(brain, uuid, paths) if len(paths) > 1 else {}
        oldest, *others = sorted((path for path in paths if path not in former_paths), key=age)
        for path in others:
            fix = _edit(path, lambda _, text: str(MemoryDocument(text).set_meta(uuid=new_id())))
            yield Problem(path, f"has the uuid of {oldest}", "--fix gives it one of its own", fix)


def _is_uuid(text: str) -> bool:
    """Return whether a text is a UUID in its usual spelling."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def check_links(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that every link leads to an existing file, and a link with a uuid to the page that has this uuid."""
    for path, page in pages.pages.items():
        exchanges = [range(placed.start, placed.end) for placed in find_events(page.text)]
        for link in page.links:
            if link.is_wiki or link.is_external or not link.target:
                continue
            target, pages_with_uuid = linked_path(link, path), pages.by_uuid.get(link.uuid, [])
            # an exchange is kept word for word, also a link in it that leads nowhere
            if not pages_with_uuid and any(link.start in exchange for exchange in exchanges):
                continue
            # a uuid tells which page is meant, whatever is at the path of the link
            is_whole = target in pages_with_uuid if pages_with_uuid else brain.tree.holds(target)
            if is_whole:
                continue
            what = f"links to {shown(target[:MAX_SHOWN])}, which is "
            if len(pages_with_uuid) == 1:
                fix = _edit(path, partial(_with_repaired_links, path))
                yield Problem(path, f"{what}{pages_with_uuid[0]} now", "--fix heals it", fix)
            else:  # none has the uuid, or it cannot be known which of several is meant
                yield Problem(path, f"{what}not there", "mend or remove the link")


def _with_repaired_links(path: str, brain: Brain, text: str) -> str:
    """Return a page's text in which links with a uuid lead to the page that has it."""
    return with_repaired_links(text, was=path, now=path, moved={}, places=brain.pages().path_by_uuid)


# --- what the processes read -------------------------------------------------------------------------------


def check_short_term(brain: Brain) -> Iterator[Problem]:
    """Check that short-term memory and `review.md` are readable text, and that short-term memory has its headings."""
    for path in map(brain.tree.relative, (brain.tree.short_term, brain.tree.review)):
        try:
            brain.read_page(path)
        except FormatError as error:
            yield Problem(path, error.problem, "mend it by hand; what stands there is kept")
    if brain.tree.short_term.is_file():
        try:
            _ = brain.short_term().memory
        except FormatError as error:
            if is_marked(brain, brain.tree.relative(brain.tree.short_term)):
                return  # reported by `check_versions`
            todo = "put the heading back; what stands there is kept"
            yield Problem(brain.tree.relative(brain.tree.short_term), error.problem, todo)


def check_marks(brain: Brain) -> Iterator[Problem]:
    """Check that no private mark outside of an exchange makes a whole file private; those of `review.md` are ours."""
    tree = brain.tree
    for path in sorted(tree.scan(tree.memory, tree.system).keys() - {tree.relative(tree.review)}):
        text = ""
        with suppress(OSError):  # a page without read permission is reported by another check
            text = brain.read_text(path) or ""
        if PRIVATE.search(text) and is_private_note(text) and not asks_for_privacy(text):
            what = "has a mark `<!-- private -->`, by which all of it is private: no model elsewhere is shown any of it"
            todo = "move what is private to a page with `private: true`, or write that there, and take the mark out"
            yield Problem(path, what, todo)


def check_access_log(brain: Brain) -> Iterator[Problem]:
    """Check that every line of the access log is an entry."""
    unreadable = parse_access_log(brain.read_text(brain.tree.access_log) or "").unreadable
    if unreadable:
        lines = ", ".join(map(str, unreadable[:10])) + (" …" if len(unreadable) > 10 else "")
        todo = "remove them; they are passed over"
        yield Problem(brain.tree.relative(brain.tree.access_log), f"lines {lines} are no entries", todo)


def check_journal(brain: Brain) -> Iterator[Problem]:
    """Check that the journals are whole, and that this device's journal has the present content of every note."""
    for fault in faults(brain):
        yield Problem(brain.tree.relative(fault.file), fault.what, fault.todo)
    if next(brain.journal.events(kinds={TreeAdopted}), None):  # else nobody has run this brain here yet
        yield from _check_fold(brain, brain.journal.fold())


def _check_fold(brain: Brain, fold: dict[str, str]) -> Iterator[Problem]:
    """Yield a problem for the notes that differ from the journal's fold, and one for each unconfirmed deletion.

    A deletion waits to be confirmed where too many files vanished at once.

    Args:
        brain: The brain.
        fold: The content hash of each file by the journal, by path.
    """
    unconfirmed = set(brain.observed.held_deletions())
    changed = [path for path, digest in _kept_files(brain) if fold.get(path) != digest]
    tracked = (path for path in fold if brain.tree.is_tracked(path) and path not in unconfirmed)
    missing = [path for path in tracked if not brain.tree.absolute(path).exists()]
    if paths := sorted(changed + missing):
        verb = f"and {len(paths) - 1} more were" if len(paths) > 1 else "was"
        what, todo = f"{verb} changed while nobody watched", "--fix (or `brainiac run`) takes it in"
        yield Problem(paths[0], what, todo, lambda brain: brain.observed.adopt())
    for path in sorted(unconfirmed):
        what = "is gone, among too many others to be believed"
        yield Problem(path, what, "put it back, or run `brainiac doctor --confirm-deletions` if all of them are to go")


def _kept_files(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield path and content hash of every note whose text the journal keeps; none that a daemon may be taking in."""
    latest = time.time() - brain.settings.watch.rescan_seconds if is_running(brain) else inf
    for path, stamp in brain.tree.tracked().items():
        with suppress(OSError):  # a page without read permission is reported by another check
            if stamp.size <= MAX_BYTES and stamp.ctime_ns <= latest * 1e9:
                content = brain.read(path)
                if content is not None and not brain.committer.is_hash_only(path, content):
                    yield path, content_hash(content)


# --- the journals: whether they are whole ----------------------------------------------------------------------------

_SEQ = re.compile(rb'\s*\{\s*"seq"\s*:\s*(\d+)')
_MARKERS = (b"<<<<<<< ", b"=======", b">>>>>>> ", b"||||||| ")
_RESTORE = "put the file back from git, a sync or a backup; the notes themselves stand"
_RESTORE_TEXTS = "put logs/journal/blobs back from git, a sync or a backup, or that version cannot be brought back"


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of damage in one journal file.

    Attributes:
        file: The file.
        what: The first damaged line, and what is wrong with it.
        todo: What a person can do.
    """

    file: Path
    what: str
    todo: str


@dataclass(frozen=True, slots=True)
class _BadLine:
    """A damaged line.

    Attributes:
        file: The journal file.
        number: The line's number in it.
        of_others: The end of the sentence on other lines with the same damage, `3 more are out of order`.
        what: What is wrong with it.
        todo: What a person can do.
    """

    file: Path
    number: int
    of_others: str
    what: str
    todo: str


def faults(brain: Brain) -> Iterator[Fault]:
    """Yield the damage in the journals of all devices, each kind once for each file."""
    blobs = set(brain.journal.blobs.digests())
    lines: list[_BadLine] = []
    missing: list[tuple[str, _BadLine]] = []  # when the event was recorded, and its line
    purged_at = ""
    for folder in sorted(path for path in brain.tree.journal.glob("*/") if path.name != "blobs"):
        is_own = folder.name == brain.journal.device
        journal = _Journal(_RESTORE if is_own else f"{_RESTORE}; it is not whole until its journal is here whole")
        for file, number, event in journal.read(folder):
            if isinstance(event.what, TextsPurged | PurgeHonoured):
                purged_at = max(purged_at, event.at)
            for digest in _named_hashes(event):
                if digest not in blobs:
                    what = f"the text {digest[:12]}… that it names is not kept"
                    missing.append((event.at, _BadLine(file, number, "are not", what, todo=_RESTORE_TEXTS)))
        lines += journal.lines
    # a purge destroys more texts on each device than its tombstone names: older missing texts are no damage
    lines += [line for at, line in missing if at > purged_at]
    yield from _faults_by_kind(lines)


def _faults_by_kind(lines: Iterable[_BadLine]) -> Iterator[Fault]:
    """Yield one fault for all lines of a file that have the same damage."""
    groups: dict[tuple[Path, str], list[_BadLine]] = {}
    for line in lines:
        groups.setdefault((line.file, line.of_others), []).append(line)
    for (file, of_others), (first, *others) in sorted(groups.items(), key=lambda group: group[1][0].file):
        rest = f"; {len(others)} more {of_others}" if others else ""
        yield Fault(file, f"line {first.number}: {first.what}{rest}", first.todo)


@dataclass(slots=True)
class _Journal:
    """One device's journal while it is read line by line.

    Attributes:
        how_to_restore: What a person can do about missing lines.
        lines: The damaged lines.
        places: File and line number by `seq`.
        ids: `seq`, file and line number by event id.
        highest: The highest `seq` so far.
    """

    how_to_restore: str
    lines: list[_BadLine] = field(default_factory=list)
    places: dict[int, tuple[Path, int]] = field(default_factory=dict)
    ids: dict[str, tuple[int, Path, int]] = field(default_factory=dict)
    highest: int = 0

    def read(self, folder: Path) -> Iterator[tuple[Path, int, Event]]:
        """Yield each event once, with its file and line."""
        files = sorted(folder.glob("[0-9]*.jsonl"))
        for file in files:
            if not os.access(file, os.R_OK):
                self._add_bad_line(file, 1, "it cannot be read", "give yourself the right to it", of_others="are")
                continue
            with open(file, "rb") as lines:
                for number, raw in enumerate(lines, 1):
                    # a torn last line is normal after a crash: the next event removes it
                    is_torn = file == files[-1] and not raw.endswith(b"\n")
                    event = None if is_torn else self._parse_line(file, number, raw)
                    if event is not None and self._add_if_new(file, number, event):
                        yield file, number, event
        self._find_missing()

    def _add_bad_line(self, file: Path, number: int, what: str, todo: str, *, of_others: str) -> None:
        """Add a damaged line to `lines`."""
        self.lines.append(_BadLine(file, number, of_others, what, todo))

    def _parse_line(self, file: Path, number: int, raw: bytes) -> Event | None:
        """Return the event of a line; None for a damaged line, which is added to `lines`."""
        try:
            if raw.endswith(b"\n"):
                return _parse_event(raw[:-1])
            todo = "end it with a newline; if it is no whole line, remove it"
            self._add_bad_line(file, number, "its end is cut off, so it is not read", todo, of_others="are")
        except ValueError as error:
            is_marker = raw.startswith(_MARKERS)
            why = "a conflict marker of git" if is_marker else str(error)
            todo = "remove the marker lines and keep all others" if is_marker else self.how_to_restore
            self._add_bad_line(file, number, f"a line is no event ({why})", todo, of_others="lines are none")
        if match := _SEQ.match(raw):  # a damaged event is not reported as missing too
            self.places.setdefault(int(match[1]), (file, number))
        return None

    def _add_if_new(self, file: Path, number: int, event: Event) -> bool:
        """Remember the line of an event and check its order; return False for an event that was read before."""
        seq = event.seq
        if event.id in self.ids:
            first_seq, other, line = self.ids[event.id]
            what = f"event {first_seq} stands twice, first in line {line} of {other.name}"
            self._add_bad_line(file, number, what, "remove the line", of_others="do")
            return False
        if seq in self.places:
            other, line = self.places[seq]
            what = f"number {seq} is given twice, first in line {line} of {other.name}, to different events"
            todo = "nothing is lost, both are kept and read; restart `brainiac run`, and let one daemon at a time write"
            self._add_bad_line(file, number, what, todo, of_others="numbers are")
        elif seq < self.highest:
            what = f"event {seq} stands after event {self.highest}"
            todo = "put the lines in the order of their numbers (`seq`)"
            self._add_bad_line(file, number, what, todo, of_others="are out of order")
        self.ids[event.id] = (seq, file, number)
        self.highest = max(self.highest, seq)
        self.places.setdefault(seq, (file, number))
        return True

    def _find_missing(self) -> None:
        """Add the gaps in the numbers to `lines`; numbers before the first one were archived and are no gap."""
        for former, seq in pairwise(sorted(self.places)):
            if seq > former + 1:
                first, last = former + 1, seq - 1
                missing = f"event {first} is" if first == last else f"events {first} to {last} are"
                what = f"{missing} missing before it"
                self._add_bad_line(*self.places[seq], what, self.how_to_restore, of_others="lines miss some")


def _parse_event(raw: bytes) -> Event:
    """Return the event of a line.

    Raises:
        ValueError: The line is no event, or has values of wrong types, which could not be compared.
    """
    event = from_line(raw)
    texts = (event.id, event.at, event.kind, *_named_hashes(event))
    if not isinstance(event.seq, int) or not all(isinstance(text, str) for text in texts):
        raise ValueError("its number, id, time or hashes are none")
    return event


def _named_hashes(event: Event) -> list[str]:
    """Return the hashes of the texts before and after an event's changes; of logs, which grow, no text is kept."""
    hashes = (digest for change in event.changes if change.op != "append" for digest in (change.before, change.after))
    return [digest for digest in hashes if digest]
