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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from uuid import UUID

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import Change, NoteMended, PathKind, TreeAdopted, content_hash, create, new_id, update
from brainiac.formats.dialogue import find_events
from brainiac.formats.index_page import new_index
from brainiac.formats.links import Link, find_links, rewrite_link
from brainiac.formats.memory import Memory, MemoryDocument, parse_memory
from brainiac.health.readiness import shortfalls, unwritable
from brainiac.history.continuity import faults
from brainiac.storage.external_edits import MAX_BYTES
from brainiac.tree import OUR_TEMPORARY_PREFIX, is_printable, is_temporary

KEYS = ("uuid", "created_at", "updated_at", "tags", "emotion", "reinforcement_count")
LEFTOVER_SECONDS = 3600  # younger ones may be what a commit displaced and looks at again
MAX_SHOWN = 200  # characters of a link's path
_PAGES = frozenset({PathKind.MEMORY, PathKind.INDEX_PAGE, PathKind.ARCHIVED})

Fix = Callable[["Brain"], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be.

    Attributes:
        path: Relative.
        what: What is wrong.
        todo: What a person can do, or what `--fix` will.
        fix: Mends it; None where only a person can decide.
    """

    path: str
    what: str
    todo: str
    fix: Fix | None = None


class Pages:
    """The memory pages of a brain, each read once.

    Attributes:
        broken: Front matter that cannot be read, by path.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.paths = sorted(
            path
            for entry in brain.tree.walk(brain.tree.long_term, brain.tree.archive)
            if brain.tree.kind_of(path := brain.tree.relative(entry.path)) in _PAGES
        )
        self.broken: dict[str, FormatError] = {}

    @cached_property
    def memories(self) -> dict[str, Memory]:
        """The readable pages by path."""
        found = {}
        for path in self.paths:
            try:
                found[path] = parse_memory(path, self.brain.read_page(path) or "")
            except FormatError as error:
                self.broken[path] = error
        return found

    @cached_property
    def by_uuid(self) -> dict[str, list[str]]:
        """Paths by the uuid they bear."""
        found: dict[str, list[str]] = defaultdict(list)
        for path, memory in self.memories.items():
            if memory.uuid:
                found[memory.uuid].append(path)
        return found


def examine(brain: Brain) -> Iterator[Problem]:
    """Yield every problem, in the order in which they are best mended."""
    yield from check_structure(brain)
    pages = Pages(brain)
    for check in (check_names, check_front_matter, check_uuids, check_index_pages, check_links):
        yield from check(pages)
    yield from check_readable(brain)
    yield from check_short_term(brain)
    yield from check_access_log(brain)
    yield from check_journal(brain)
    yield from check_purged(brain)
    yield from check_leftovers(brain)


def mend(brain: Brain, problems: list[Problem]) -> list[Problem]:
    """Mend what can be mended and return what was; a file that a person saves meanwhile is left to the next run."""
    mended = []
    for problem in problems:
        if problem.fix is None:
            continue
        try:
            problem.fix(brain)
        except ConflictError:
            continue
        mended.append(problem)
    return mended


def _commit(change: Change) -> Fix:
    return lambda brain: _commit_now(brain, change)


def _commit_now(brain: Brain, change: Change) -> None:
    brain.commit(NoteMended(), by="doctor", changes=[change])


def _edit(path: str, edit: Callable[[MemoryDocument], MemoryDocument]) -> Fix:
    return lambda brain: _update(brain, path, lambda text: str(edit(MemoryDocument(text, path))))


def _update(brain: Brain, path: str, edit: Callable[[str], str]) -> None:
    """Mend a page as it stands by now: an earlier fix may have changed it."""
    text = brain.read_text(path)
    if text is not None and (after := edit(text)) != text:
        _commit_now(brain, update(path, text, after))


def check_structure(brain: Brain) -> Iterator[Problem]:
    """Every shipped file and folder is there, may be written, and what the settings ask for is to be had."""
    tree = brain.tree
    for found in (*shortfalls(brain, is_thorough=True), *unwritable(brain)):
        yield Problem(found.where, found.what, found.todo)
    needed = (tree.core_identity, tree.config, tree.short_term, tree.long_term, tree.notes)
    for path in needed:
        if not path.exists():
            yield Problem(tree.relative(path), "is missing", "--fix makes it anew", _complete)


def _complete(brain: Brain) -> None:
    from brainiac.skeleton import create_brain

    create_brain(brain.root, is_shared=True, clock=brain.clock)


def check_names(pages: Pages) -> Iterator[Problem]:
    """No two pages of a folder have names that some file systems take for one."""
    same: dict[str, list[str]] = defaultdict(list)
    for path in pages.paths:
        same[unicodedata.normalize("NFC", path).casefold()].append(path)
    for first, *others in same.values():
        for path in others:
            what = f"has the same name as {first} where case or accents are not told apart"
            yield Problem(path, what, "rename one of them; links are healed by their uuid")
    tree = pages.brain.tree
    for top in (tree.long_term, tree.archive):
        for folder, folders, files in os.walk(top):
            yield from _misnamed(tree.root, tree.relative(folder), folders, files)


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


def check_front_matter(pages: Pages) -> Iterator[Problem]:
    """Every page has readable front matter with the keys that a memory must have."""
    memories = pages.memories
    for path, error in pages.broken.items():
        yield Problem(path, error.problem, "mend it by hand: nobody else can tell what was meant")
    now = iso(pages.brain.clock.now())
    for path, memory in memories.items():
        if missing := [key for key in KEYS if memory.meta.get(key) is None]:
            yield Problem(
                path, f"lacks {', '.join(missing)}", "--fix adds what is missing", _edit(path, _with_keys(now))
            )


def _with_keys(now: str) -> Callable[[MemoryDocument], MemoryDocument]:
    return lambda page: page.with_missing_keys(new_id(), now)


def check_uuids(pages: Pages) -> Iterator[Problem]:
    """Every uuid is one, and belongs to one page; of two pages with the same, the newer gets a new one."""
    for uuid, paths in pages.by_uuid.items():
        if not _is_uuid(uuid):
            yield from (Problem(path, f"{uuid!r} is not a uuid", "put one there, or remove the line") for path in paths)
            continue
        first, *others = sorted(paths, key=lambda path: _age(pages, path))
        for path in others:
            fix = _edit(path, lambda page: page.set_meta(uuid=new_id()))
            yield Problem(path, f"has the uuid of {first}", "--fix gives it one of its own", fix)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _age(pages: Pages, path: str) -> tuple[str, int, str]:
    """Order pages by age; a copy often bears the original's date, so the file's own time decides next."""
    return pages.memories[path].created_at, os.stat(pages.brain.tree.absolute(path)).st_mtime_ns, path


def check_index_pages(pages: Pages) -> Iterator[Problem]:
    """Every folder of long-term memory has its `_index.md`."""
    tree = pages.brain.tree
    top = tree.relative(tree.long_term)
    folders = {top, *(posixpath.dirname(path) for path in pages.paths if path.startswith(f"{top}/"))}
    for folder in list(folders):
        folders.update(_up_to(folder, top))
    now = iso(pages.brain.clock.now())
    for folder in sorted(folders):
        page = f"{folder}/_index.md"
        if page not in pages.paths and tree.absolute(folder).is_dir():
            title = posixpath.basename(folder).replace("_", " ").replace("-", " ").title()
            fix = _commit(create(page, new_index(title, uuid=new_id(), now=now)))
            yield Problem(page, "is missing", "--fix makes an empty one", fix)


def _up_to(folder: str, top: str) -> Iterator[str]:
    while folder != top:
        yield folder
        folder = posixpath.dirname(folder)


def check_links(pages: Pages) -> Iterator[Problem]:
    """Every link from a page leads to a file of the brain; one whose uuid stands elsewhere has that path."""
    for path, memory in pages.memories.items():
        said = [range(one.start, one.end) for one in find_events(memory.text)]
        for link in find_links(memory.text):
            if link.is_wiki or link.is_external or not link.target:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link.target))
            standing = pages.by_uuid.get(link.uuid, [])
            if not standing and any(link.start in one for one in said):
                continue  # word for word what was said once, wherever it led
            if target in standing or (not standing and pages.brain.tree.holds(target)):
                continue
            shown = _shown(target[:MAX_SHOWN])
            if len(standing) == 1:
                what = f"links to {shown}, which is {standing[0]} now"
                yield Problem(path, what, "--fix heals it", _heal(path, link))
            else:
                yield Problem(path, f"links to {shown}, which is not there", "mend or remove the link")


def _heal(path: str, link: Link) -> Fix:
    def fix(brain: Brain) -> None:
        pages = Pages(brain)
        places = pages.by_uuid.get(link.uuid, [])
        if len(places) == 1:
            target = posixpath.relpath(places[0], posixpath.dirname(path))
            _update(brain, path, lambda text: _with_links_to(text, link.uuid, target))

    return fix


def _with_links_to(text: str, uuid: str, target: str) -> str:
    for link in reversed(find_links(text)):
        if link.uuid == uuid and link.target != target:
            text = rewrite_link(text, link, target)
    return text


def check_readable(brain: Brain) -> Iterator[Problem]:
    """Short-term memory and the review are text that every process can read."""
    for path in map(brain.tree.relative, (brain.tree.short_term, brain.tree.review)):
        try:
            brain.read_page(path)
        except FormatError as error:
            yield Problem(path, error.problem, "mend it by hand; what stands there is kept")


def check_short_term(brain: Brain) -> Iterator[Problem]:
    """Short-term memory has its headings."""
    if brain.tree.short_term.is_file():
        try:
            _ = brain.short_term().memory
        except FormatError as error:
            todo = "put the heading back; what stands there is kept"
            yield Problem(brain.tree.relative(brain.tree.short_term), error.problem, todo)


def check_access_log(brain: Brain) -> Iterator[Problem]:
    """Every line of the access log is an entry."""
    from brainiac.formats.access_log import parse_access_log

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
    held = set(brain.observed.held())
    standing = dict(_standing(brain))
    changed = [path for path, digest in standing.items() if fold.get(path) != digest]
    gone = [
        path
        for path in fold
        if brain.tree.is_tracked(path) and path not in held and not brain.tree.absolute(path).exists()
    ]
    if missed := sorted(changed + gone):
        what = f"and {len(missed) - 1} more were" if len(missed) > 1 else "was"
        yield Problem(
            missed[0], f"{what} changed while nobody watched", "--fix (or `brainiac run`) takes it in", _adopt
        )
    for path in sorted(held):
        what = "is gone, among too many others to be believed"
        yield Problem(path, what, "put it back, or run `brainiac doctor --confirm-deletions` if all of them are to go")


def check_purged(brain: Brain) -> Iterator[Problem]:
    """Nothing that was purged is here again."""
    from brainiac.history.purge import remains

    for tombstone, path in remains(brain):
        yield Problem(path, f"was purged ({tombstone.at}) and is here again", "--fix destroys it", _destroy)


def _destroy(brain: Brain) -> None:
    from brainiac.history.purge import apply_tombstones

    apply_tombstones(brain)


def _standing(brain: Brain) -> Iterator[tuple[str, str]]:
    """Yield path and content hash of every note whose text the journal keeps."""
    for entry in brain.tree.walk(brain.tree.inbox, brain.tree.memory, brain.tree.system):
        path = brain.tree.relative(entry.path)
        if brain.tree.is_tracked(path) and entry.stat(follow_symlinks=False).st_size <= MAX_BYTES:
            with suppress(OSError):  # a page that may not be read is named by itself
                content = brain.read(path)
                if content is not None and not brain.committer.is_unkept(path, content):
                    yield path, content_hash(content)


def _adopt(brain: Brain) -> None:
    brain.observed.adopt()


def check_leftovers(brain: Brain) -> Iterator[Problem]:
    """No temporary file of ours is left over from a crash; a running daemon's are its own business."""
    from brainiac.pipeline.daemon import is_running

    if is_running(brain):
        return
    before = brain.clock.now().timestamp() - LEFTOVER_SECONDS
    for folder, _, names in os.walk(brain.root):
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(OUR_TEMPORARY_PREFIX) and os.lstat(path).st_ctime < before:
                path = brain.tree.relative(path)
                todo = "--fix keeps its text in the journal and removes it"
                yield Problem(path, "is left over from a commit that was cut short", todo, _recover)


def _recover(brain: Brain) -> None:
    brain.committer.recover()
