"""`brainiac doctor`: checks a brain for damage that loses memories or links, and repairs what is safe.

A repair is safe if it only adds (a missing key, page or file) or follows a known identity (the path of a link). A
journal is checked for every `seq` once and in order, and every text that an event names kept as a blob; it can be
damaged by hand, by a merge of git, by an interrupted sync, or by a restored backup. It is not repaired: which of two
lines is the true one cannot be known, and history is not rewritten.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
import unicodedata
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path, PurePosixPath

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.formats.access_log import parse_access_log
from brainiac.formats.discretion import Audience, asks_for_privacy
from brainiac.formats.index_page import new_index
from brainiac.formats.markdown import PRIVATE, find_events
from brainiac.formats.page import MemoryDocument, audience_of
from brainiac.health.overview import Fix, Problem, setup_problems, unwritable
from brainiac.history.copies import find_copies, find_marked, find_moved, is_marked, settle_versions
from brainiac.history.purge import honour, remains, typed_anew
from brainiac.skeleton import create_brain
from brainiac.storage.external_edits import MAX_BYTES
from brainiac.storage.journal import from_line
from brainiac.storage.lineage import new_paths
from brainiac.storage.links import title_of_folder, with_repaired_links
from brainiac.storage.pages import INDEX, PageSet, linked_path
from brainiac.storage.serving import is_running
from brainiac.tree import OUR_TEMPORARY_PREFIX, Misfit, shown

KEYS = ("uuid", "created_at", "updated_at", "tags", "emotion", "reinforcement_count")
LEFTOVER_SECONDS = 3600  # younger temporary files may be displaced files that are still checked for saves
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
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
        yield Problem(path, f"was purged ({tombstone.at}) and is here again", "--fix destroys it", honour)
    for tombstone, path in typed_anew(brain):
        what = f"has words that were purged ({tombstone.at}), typed or brought here since"
        yield Problem(path, what, "it is yours and stays; `brainiac forget` takes it out")
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


def _edit(path: str, edit: Callable[[Brain, str, str], str]) -> Fix:
    """Return a fix that edits a page's text as it is when the fix runs: an earlier fix may have changed it.

    Args:
        path: The page.
        edit: Called with the brain, the path and the text.
    """

    def fix(brain: Brain) -> None:
        text = brain.read_text(path)
        if text is not None and (after := edit(brain, path, text)) != text:
            brain.commit(events.NoteMended(), by="doctor", changes=[events.update(path, text, after)])

    return fix


# --- files and folders -------------------------------------------------------------------------------------


def check_structure(brain: Brain) -> Iterator[Problem]:
    """Check that every shipped file and folder exists and is writable, and that the settings can be carried out."""

    def anew(brain: Brain) -> None:
        create_brain(brain.root, is_shared=True, clock=brain.clock)

    yield from setup_problems(brain, is_thorough=True)
    yield from unwritable(brain)
    tree = brain.tree
    for path in (tree.core_identity, tree.config, tree.short_term, tree.long_term, tree.notes):
        if not path.exists():
            yield Problem(tree.relative(path), "is missing", "--fix makes it anew", anew)


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
            page = events.create(path, new_index(title_of_folder(folder), uuid=events.new_id(), now=now))
            fix = partial(Brain.commit, event=events.NoteMended(), by="doctor", changes=[page])
            yield Problem(path, "is missing", "--fix makes an empty one", fix)


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

    def completed(brain: Brain, path: str, text: str) -> str:
        return str(MemoryDocument(text, path).with_missing_keys(events.new_id(), brain.written_at(path)))

    for path, error in pages.broken.items():
        if is_marked(brain, path):
            continue  # reported by `check_versions`
        yield Problem(path, error.problem, "mend it by hand: nobody else can tell what was meant")
    for path, page in pages.pages.items():
        if missing := [key for key in KEYS if page.meta.get(key) is None]:
            what, todo = f"lacks {', '.join(missing)}", "--fix adds what is missing"
            yield Problem(path, what, todo, _edit(path, completed))


def check_uuids(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that every uuid is valid and belongs to one page; of two pages with the same, the newer gets a new one."""

    def age(path: str) -> tuple[str, int, str]:
        # a copy often has the original's date, so the file's own time decides next
        return pages.pages[path].created_at, os.stat(brain.tree.absolute(path)).st_mtime_ns, path

    for uuid, paths in pages.by_uuid.items():
        if not _UUID.fullmatch(uuid):
            yield from (Problem(path, f"{uuid!r} is not a uuid", "put one there, or remove the line") for path in paths)
            continue
        # what is at the former path of a moved page is no copy of it; `check_versions` reports it
        former_paths = new_paths(brain, uuid, paths) if len(paths) > 1 else {}
        oldest, *others = sorted((path for path in paths if path not in former_paths), key=age)
        for path in others:
            fix = _edit(path, lambda brain, path, text: str(MemoryDocument(text).set_meta(uuid=events.new_id())))
            yield Problem(path, f"has the uuid of {oldest}", "--fix gives it one of its own", fix)


def check_links(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Check that every link leads to an existing file, and a link with a uuid to the page that has this uuid."""

    def healed(brain: Brain, path: str, text: str) -> str:
        return with_repaired_links(text, was=path, now=path, moved={}, places=brain.pages().path_by_uuid)

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
                what += f"{pages_with_uuid[0]} now"
                yield Problem(path, what, "--fix heals it", _edit(path, healed))
            else:  # none has the uuid, or it cannot be known which of several is meant
                yield Problem(path, f"{what}not there", "mend or remove the link")


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
        if PRIVATE.search(text) and audience_of(text) is Audience.HERE and not asks_for_privacy(text):
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
    """Check that the journals are whole, and that this device's journal has the present content of every note.

    A deletion waits to be confirmed where too many files vanished at once.
    """
    yield from faults(brain)
    if not next(brain.journal.events(kinds={events.TreeAdopted}), None):
        return  # nobody has run this brain here yet
    fold, unconfirmed = brain.journal.fold(), set(brain.observed.held_deletions())
    changed = []
    # none that a daemon may be taking in
    latest = time.time() - brain.settings.watch.rescan_seconds if is_running(brain) else inf
    for path, stamp in brain.tree.tracked().items():
        with suppress(OSError):  # a page without read permission is reported by another check
            if stamp.size <= MAX_BYTES and stamp.ctime_ns <= latest * 1e9:
                content = brain.read(path)
                if content is not None and not brain.committer.is_hash_only(path, content):
                    changed += [path] if fold.get(path) != events.content_hash(content) else []
    tracked = (path for path in fold if brain.tree.is_tracked(path) and path not in unconfirmed)
    missing = [path for path in tracked if not brain.tree.absolute(path).exists()]
    if paths := sorted(changed + missing):
        verb = f"and {len(paths) - 1} more were" if len(paths) > 1 else "was"
        what, todo = f"{verb} changed while nobody watched", "--fix (or `brainiac run`) takes it in"
        yield Problem(paths[0], what, todo, lambda brain: brain.observed.adopt())
    for path in sorted(unconfirmed):
        what = "is gone, among too many others to be believed"
        yield Problem(path, what, "put it back, or run `brainiac doctor --confirm-deletions` if all of them are to go")


# --- the journals: whether they are whole ----------------------------------------------------------------------------

_SEQ = re.compile(rb'\s*\{\s*"seq"\s*:\s*(\d+)')
_MARKERS = (b"<<<<<<< ", b"=======", b">>>>>>> ", b"||||||| ")
_RESTORE = "put the file back from git, a sync or a backup; the notes themselves stand"
_RESTART = "nothing is lost, both are kept and read; restart `brainiac run`, and let one daemon at a time write"
_RESTORE_TEXTS = "put logs/journal/blobs back from git, a sync or a backup, or that version cannot be brought back"


# told of a damaged line: file, number, what is wrong, what a person can do, and the end of the sentence on others
_Tell = Callable[[Path, int, str, str, str], None]


def faults(brain: Brain) -> Iterator[Problem]:
    """Yield the damage in the journals of all devices, each kind once for each file."""
    blobs = set(brain.journal.blobs.digests())
    damage: dict[tuple[Path, str], list[tuple[int, str, str]]] = {}  # by file and kind; number, what, todo
    missing: list[tuple[str, Path, int, str]] = []  # when the event was recorded, its line, and the text
    purged_at, destroyed = "", set[str]()

    def tell(file: Path, number: int, what: str, todo: str, others: str) -> None:
        damage.setdefault((file, others), []).append((number, what, todo))

    for folder in sorted(path for path in brain.tree.journal.glob("*/") if path.name != "blobs"):
        is_own = folder.name == brain.journal.device
        restore = _RESTORE if is_own else f"{_RESTORE}; it is not whole until its journal is here whole"
        for file, number, event in _events_in(folder, restore, tell):
            if isinstance(event.what, events.TextsPurged | events.PurgeHonoured):
                purged_at = max(purged_at, event.at)
                destroyed.update(event.what.hashes)
            # of logs, which grow, no text is kept
            named = (
                text for change in event.changes if change.op != "append" for text in (change.before, change.after)
            )
            missing += [(event.at, file, number, digest) for digest in named if digest and digest not in blobs]
    for at, file, number, digest in missing:
        # a purge destroys more texts on each device than its tombstone names: those are no damage
        if at > purged_at and digest not in destroyed:
            tell(file, number, f"the text {digest[:12]}… that it names is not kept", _RESTORE_TEXTS, "are not")
    for (file, others), lines in sorted(damage.items(), key=lambda found: found[0][0]):
        number, what, todo = lines[0]
        rest = f"; {len(lines) - 1} more {others}" if len(lines) > 1 else ""
        yield Problem(brain.tree.relative(file), f"line {number}: {what}{rest}", todo)


def _events_in(folder: Path, restore: str, tell: _Tell) -> Iterator[tuple[Path, int, events.Event]]:
    """Yield each event of a device's journal once, with its file and line, and tell of each damaged line.

    Args:
        folder: The journal.
        restore: What a person can do about missing lines.
        tell: Called for each damaged line.
    """
    places: dict[int, tuple[Path, int]] = {}  # file and line by `seq`
    ids: dict[str, tuple[int, Path, int]] = {}  # `seq`, file and line by id
    highest, files = 0, sorted(folder.glob("[0-9]*.jsonl"))
    for file in files:
        if not os.access(file, os.R_OK):
            tell(file, 1, "it cannot be read", "give yourself the right to it", "are")
            continue
        with open(file, "rb") as lines:
            for number, raw in enumerate(lines, 1):
                is_whole = raw.endswith(b"\n")
                if not is_whole and file == files[-1]:
                    continue  # normal after a crash: the next event removes it
                try:
                    event = from_line(raw[:-1]) if is_whole else None
                    if event is None:
                        todo = "end it with a newline; if it is no whole line, remove it"
                        tell(file, number, "its end is cut off, so it is not read", todo, "are")
                except ValueError as error:
                    event, is_marker = None, raw.startswith(_MARKERS)
                    why = "a conflict marker of git" if is_marker else str(error)
                    todo = "remove the marker lines and keep all others" if is_marker else restore
                    tell(file, number, f"a line is no event ({why})", todo, "lines are none")
                if event is None:
                    if match := _SEQ.match(raw):  # a damaged event is not reported as missing too
                        places.setdefault(int(match[1]), (file, number))
                    continue
                seq = event.seq
                if event.id in ids:
                    first, other, line = ids[event.id]
                    what = f"event {first} stands twice, first in line {line} of {other.name}"
                    tell(file, number, what, "remove the line", "do")
                    continue
                if seq in places:
                    other, line = places[seq]
                    what = f"number {seq} is given twice, first in line {line} of {other.name}, to different events"
                    tell(file, number, what, _RESTART, "numbers are")
                elif seq < highest:
                    todo = "put the lines in the order of their numbers (`seq`)"
                    tell(file, number, f"event {seq} stands after event {highest}", todo, "are out of order")
                ids[event.id], highest = (seq, file, number), max(highest, seq)
                places.setdefault(seq, (file, number))
                yield file, number, event
    for former, seq in pairwise(sorted(places)):  # numbers before the first one were archived and are no gap
        if seq > former + 1:
            gap = f"event {former + 1} is" if seq == former + 2 else f"events {former + 1} to {seq - 1} are"
            tell(*places[seq], f"{gap} missing before it", restore, "lines miss some")
