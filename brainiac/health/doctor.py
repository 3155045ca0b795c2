"""Looks a brain over for what would make it forget, lose a link, or show less than it holds; mends what is safe.

Safe is what only adds (a missing key, page or file) or follows an identity that is known (the path of a link).
"""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import NoteMended, TreeAdopted, content_hash, create, new_id, update
from brainiac.formats.access_log import parse_access_log
from brainiac.formats.index_page import new_index
from brainiac.formats.markdown import find_events
from brainiac.formats.page import MemoryDocument
from brainiac.health.overview import Fix, Problem, setup_problems, unwritable
from brainiac.history.continuity import faults
from brainiac.history.purge import apply_tombstones, remains
from brainiac.pipeline.daemon import is_running
from brainiac.skeleton import create_brain
from brainiac.storage.external_edits import MAX_BYTES
from brainiac.storage.pages import INDEX, PageSet, linked_path
from brainiac.storage.relinking import with_repaired_links
from brainiac.tree import OUR_TEMPORARY_PREFIX, is_printable, is_temporary

KEYS = ("uuid", "created_at", "updated_at", "tags", "emotion", "reinforcement_count")
LEFTOVER_SECONDS = 3600  # younger ones may be what a commit displaced and looks at again
MAX_SHOWN = 200  # characters of a link's path


def examine(brain: Brain) -> Iterator[Problem]:
    """Yield every problem, in the order in which they are best mended."""
    yield from check_structure(brain)
    pages = brain.pages()
    for check in (check_names, check_front_matter, check_uuids, check_index_pages, check_links):
        yield from check(brain, pages)
    yield from check_short_term(brain)
    yield from check_access_log(brain)
    yield from check_journal(brain)
    for tombstone, path in remains(brain):
        yield Problem(path, f"was purged ({tombstone.at}) and is here again", "--fix destroys it", apply_tombstones)
    yield from check_leftovers(brain)


def mend(brain: Brain, problems: list[Problem]) -> list[Problem]:
    """Mend what can be mended and return what was; a file that a person saves meanwhile is left to the next run."""
    mended = []
    for problem in problems:
        if problem.fix is not None:
            with suppress(ConflictError):
                problem.fix(brain)
                mended.append(problem)
    return mended


def _edit(path: str, edit: Callable[[Brain, str], str]) -> Fix:
    """Return the fix that edits a page as it stands by then: an earlier fix may have changed it."""

    def fix(brain: Brain) -> None:
        text = brain.read_text(path)
        if text is not None and (after := edit(brain, text)) != text:
            brain.commit(NoteMended(), by="doctor", changes=[update(path, text, after)])

    return fix


# --- files and folders -------------------------------------------------------------------------------------


def check_structure(brain: Brain) -> Iterator[Problem]:
    """Every shipped file and folder is there, may be written, and what the settings ask for is to be had."""
    yield from setup_problems(brain, is_thorough=True)
    yield from unwritable(brain)
    tree = brain.tree
    for path in (tree.core_identity, tree.config, tree.short_term, tree.long_term, tree.notes):
        if not path.exists():
            yield Problem(tree.relative(path), "is missing", "--fix makes it anew", _complete)


def _complete(brain: Brain) -> None:
    create_brain(brain.root, is_shared=True, clock=brain.clock)


def check_names(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """No two pages of a folder have names that some file systems take for one, and none is passed over for its name."""
    same: dict[str, list[str]] = defaultdict(list)
    for path in sorted((*pages.pages, *pages.broken)):
        same[unicodedata.normalize("NFC", path).casefold()].append(path)
    for first, *others in same.values():
        for path in others:
            what = f"has the same name as {first} where case or accents are not told apart"
            yield Problem(path, what, "rename one of them; links are healed by their uuid")
    for top in (brain.tree.long_term, brain.tree.archive):
        for folder, folders, files in os.walk(top):
            yield from _misnamed(brain.root, brain.tree.relative(folder), folders, files)


def _misnamed(root: Path, folder: str, folders: Sequence[str], files: Sequence[str]) -> Iterator[Problem]:
    """Name what is passed over because of its name."""
    for name in folders:
        if name.endswith(".md") and not is_temporary(name):
            yield Problem(_shown(f"{folder}/{name}"), "is a folder with the name of a page", "rename it")
    for name in files:
        if name.endswith(".md") and not is_printable(f"{folder}/{name}"):
            what = "has a name with control characters, or bytes that are not UTF-8; it is passed over"
            yield Problem(_shown(f"{folder}/{name}"), what, "rename it")
        elif name.endswith(".md") and not is_temporary(name) and not (root / folder / name).is_file():
            what = "is no file but a pipe, a socket, a device or a link that leads nowhere; it is passed over"
            yield Problem(_shown(f"{folder}/{name}"), what, "remove it, or put a file in its place")


def _shown(path: str) -> str:
    return repr(path)[1:-1]


def check_index_pages(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Every folder of long-term memory has its `_index.md`."""
    now = iso(brain.clock.now())
    folders = {pages.root}
    for path in (*pages.pages, *pages.broken):
        while path.startswith(pages.root + "/") and (path := posixpath.dirname(path)) not in folders:
            folders.add(path)
    for folder in sorted(folders):
        path = f"{folder}/{INDEX}"
        if path not in pages.pages and path not in pages.broken and brain.tree.absolute(folder).is_dir():
            title = posixpath.basename(folder).replace("_", " ").replace("-", " ").title()
            yield Problem(path, "is missing", "--fix makes an empty one", _create(path, title, now))


def _create(path: str, title: str, now: str) -> Fix:
    page = create(path, new_index(title, uuid=new_id(), now=now))
    return lambda brain: brain.commit(NoteMended(), by="doctor", changes=[page])


def check_leftovers(brain: Brain) -> Iterator[Problem]:
    """No temporary file of ours is left over from a crash; a running daemon's are its own business."""
    if is_running(brain):
        return
    before = brain.clock.now().timestamp() - LEFTOVER_SECONDS
    todo = "--fix keeps its text in the journal and removes it"
    for folder, _, names in os.walk(brain.root):
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(OUR_TEMPORARY_PREFIX) and os.lstat(path).st_ctime < before:
                what = "is left over from a commit that was cut short"
                yield Problem(brain.tree.relative(path), what, todo, lambda brain: brain.committer.recover())


# --- pages -------------------------------------------------------------------------------------------------


def check_front_matter(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Every page has readable front matter with the keys that a memory must have."""
    now = iso(brain.clock.now())
    for path, error in pages.broken.items():
        yield Problem(path, error.problem, "mend it by hand: nobody else can tell what was meant")
    for path, page in pages.pages.items():
        if missing := [key for key in KEYS if page.meta.get(key) is None]:
            fix = _edit(path, lambda _, text: str(MemoryDocument(text).with_missing_keys(new_id(), now)))
            yield Problem(path, f"lacks {', '.join(missing)}", "--fix adds what is missing", fix)


def check_uuids(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Every uuid is one, and belongs to one page; of two pages with the same, the newer gets a new one."""

    def age(path: str) -> tuple[str, int, str]:
        # A copy often bears the original's date, so the file's own time decides next.
        return pages.pages[path].created_at, os.stat(brain.tree.absolute(path)).st_mtime_ns, path

    for uuid, paths in pages.by_uuid.items():
        if not _is_uuid(uuid):
            yield from (Problem(path, f"{uuid!r} is not a uuid", "put one there, or remove the line") for path in paths)
            continue
        first, *others = sorted(paths, key=age)
        for path in others:
            fix = _edit(path, lambda _, text: str(MemoryDocument(text).set_meta(uuid=new_id())))
            yield Problem(path, f"has the uuid of {first}", "--fix gives it one of its own", fix)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def check_links(brain: Brain, pages: PageSet) -> Iterator[Problem]:
    """Every link from a page leads to a file of the brain; one whose uuid stands elsewhere has that path."""
    for path, page in pages.pages.items():
        exchanges = [range(placed.start, placed.end) for placed in find_events(page.text)]
        for link in page.links:
            if link.is_wiki or link.is_external or not link.target:
                continue
            target, bearers = linked_path(link, path), pages.by_uuid.get(link.uuid, [])
            if not bearers and any(link.start in exchange for exchange in exchanges):
                continue  # word for word what was said once, wherever it led
            if target in bearers or (not bearers and brain.tree.holds(target)):
                continue
            what = f"links to {_shown(target[:MAX_SHOWN])}, which is "
            if len(bearers) == 1:
                yield Problem(path, f"{what}{bearers[0]} now", "--fix heals it", _edit(path, _healing(path)))
            else:
                yield Problem(path, f"{what}not there", "mend or remove the link")


def _healing(path: str) -> Callable[[Brain, str], str]:
    return lambda brain, text: with_repaired_links(text, was=path, now=path, moved={}, places=brain.pages().place_of)


# --- what the processes read -------------------------------------------------------------------------------


def check_short_term(brain: Brain) -> Iterator[Problem]:
    """Short-term memory and the review are text that every process can read; short-term memory has its headings."""
    for path in map(brain.tree.relative, (brain.tree.short_term, brain.tree.review)):
        try:
            brain.read_page(path)
        except FormatError as error:
            yield Problem(path, error.problem, "mend it by hand; what stands there is kept")
    if brain.tree.short_term.is_file():
        try:
            _ = brain.short_term().memory
        except FormatError as error:
            todo = "put the heading back; what stands there is kept"
            yield Problem(brain.tree.relative(brain.tree.short_term), error.problem, todo)


def check_access_log(brain: Brain) -> Iterator[Problem]:
    """Every line of the access log is an entry."""
    garbage = parse_access_log(brain.read_text(brain.tree.access_log) or "").garbage
    if garbage:
        lines = ", ".join(map(str, garbage[:10])) + (" …" if len(garbage) > 10 else "")
        todo = "remove them; they are passed over"
        yield Problem(brain.tree.relative(brain.tree.access_log), f"lines {lines} are no entries", todo)


def check_journal(brain: Brain) -> Iterator[Problem]:
    """The journals stand as they were written, and this device's tells of every note as it stands."""
    for fault in faults(brain):
        yield Problem(brain.tree.relative(fault.file), fault.what, fault.todo)
    if next(brain.journal.events(kinds={TreeAdopted}), None):  # else nobody has run this brain here yet
        yield from _check_fold(brain, brain.journal.fold())


def _check_fold(brain: Brain, fold: dict[str, str]) -> Iterator[Problem]:
    held = set(brain.observed.held_deletions())
    standing = dict(_standing(brain))
    changed = [path for path, digest in standing.items() if fold.get(path) != digest]
    gone = [
        path
        for path in fold
        if brain.tree.is_tracked(path) and path not in held and not brain.tree.absolute(path).exists()
    ]
    if missed := sorted(changed + gone):
        what = f"and {len(missed) - 1} more were" if len(missed) > 1 else "was"
        what, todo = f"{what} changed while nobody watched", "--fix (or `brainiac run`) takes it in"
        yield Problem(missed[0], what, todo, lambda brain: brain.observed.adopt())
    for path in sorted(held):
        what = "is gone, among too many others to be believed"
        yield Problem(path, what, "put it back, or run `brainiac doctor --confirm-deletions` if all of them are to go")


def _standing(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield path and content hash of every note whose text the journal keeps."""
    for entry in brain.tree.walk(brain.tree.inbox, brain.tree.memory, brain.tree.system):
        path = brain.tree.relative(entry.path)
        if brain.tree.is_tracked(path) and entry.stat(follow_symlinks=False).st_size <= MAX_BYTES:
            with suppress(OSError):  # a page that may not be read is named by itself
                content = brain.read(path)
                if content is not None and not brain.committer.is_hash_only(path, content):
                    yield path, content_hash(content)
