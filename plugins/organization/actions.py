"""What a model or a rule proposes: checked against the tree, the counts and what a person did, then carried out.

Nothing is written here: `Draft.changes` is what one commit writes.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, ConflictError
from brainiac.events import (
    Change,
    Event,
    ManifestsDerived,
    StatementRecord,
    create,
    move,
    new_id,
    observe,
    remove,
    update,
)
from brainiac.formats.index_page import IndexDocument
from brainiac.formats.markdown import find_events, format_link, one_line
from brainiac.formats.page import Memory, MemoryDocument, new_memory, shareable_text
from brainiac.llm.schemas import Proposal
from brainiac.storage.folders import Folders, title_of_folder
from brainiac.storage.pages import INDEX, PageSet
from brainiac.storage.relinking import with_repaired_links
from brainiac.storage.statements import text_hash
from brainiac.tree import slugify

from .usage import DIGEST_TAG, Patterns, UsageHistory

NAME = "organization"
MANY, MANY_SHARE = 20, 0.3  # more than this put to rest at once is a person's decision
MAX_LINKED = 6
MIN_GROUP = 5  # fewer pages of a kind stay where they are: a folder for two of them is no order
Key = Callable[[Memory], str]

_MAX_NAME = 40  # characters of a folder's name
_MAX_WORDS = 200  # characters of what was said that a digest shows; the whole is one link away


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to be done, in full.

    Attributes:
        kind: `link`, `move`, `archive`, `split`, `compress`.
        paths: Pages, as they stand.
        target: The folder of a move, of a split's part, of a digest.
        reason: For the journal and for a person.
    """

    kind: str
    paths: tuple[str, ...]
    target: str = ""
    reason: str = ""


@dataclass(slots=True)
class Decisions:
    """What came of proposals.

    Attributes:
        do: To be done now.
        ask: To be put before a person.
        refused: Proposal and why, in a few words.
    """

    do: list[Action] = field(default_factory=list)
    ask: list[Action] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


# --- checking ----------------------------------------------------------------------------------------------


class ProposalCheck:
    """Validates proposals against the tree, the counts, and what a person did.

    Args:
        brain: The brain.
        pages: As they stand.
        history: What a person wrote and placed.
        patterns: What the counts show.
    """

    def __init__(self, brain: Brain, pages: PageSet, history: UsageHistory, patterns: Patterns) -> None:
        self._brain, self._pages, self._history = brain, pages, history
        self._now = brain.clock.now()
        self._unused = {row["path"] for row in patterns.get("unused", ())}
        self._overgrown = {row["folder"] for row in patterns.get("overgrown", ())}
        self._taken: set[str] = set()
        self._decisions = Decisions()

    def decide(self, proposals: Iterable[Proposal]) -> Decisions:
        """Return what is to become of proposals; a page takes part in one change of place at most."""
        checks = {"link": self._link, "move": self._move, "split": self._split}
        for proposal in proposals:
            checks.get(proposal.action, self._rest)(proposal)
        self._hold_many()
        return self._decisions

    def _refuse(self, proposal: Proposal, why: str, *names: str) -> None:
        what = ", ".join(names or proposal.paths[:3])
        self._decisions.refused.append((f"{proposal.action} {what}"[:300], why))

    def _is_sound(self, proposal: Proposal, path: str) -> bool:
        """Return whether a path names a memory with an identity that nobody is changing at this moment."""
        page = self._pages.memories.get(path)
        if page is None or not page.uuid:
            self._refuse(proposal, "there is no such memory", path)
        elif page.uuid not in self._pages.place_of:
            self._refuse(proposal, "another page has its uuid", path)
        elif not self._history.is_resting(path, self._now):
            self._refuse(proposal, "it was edited a moment ago", path)
        else:
            return True
        return False

    def _is_free(self, proposal: Proposal, path: str) -> bool:
        if not self._is_sound(proposal, path):
            return False
        if path in self._taken:
            self._refuse(proposal, "another proposal has it already", path)
            return False
        return True

    def _folder(self, target: str) -> str:
        """Return a folder of long-term memory in our spelling; "" when it may not be used."""
        folder = posixpath.dirname(target) if target.endswith(".md") else target.rstrip("/")
        try:
            absolute = self._brain.tree.confine(folder, inside=self._brain.tree.long_term)
        except ConfinementError:
            return ""
        return self._brain.tree.relative(absolute) if folder else ""

    def _link(self, proposal: Proposal) -> None:
        paths = [path for path in dict.fromkeys(proposal.paths) if self._is_sound(proposal, path)]
        if not 2 <= len(paths) <= MAX_LINKED:
            self._refuse(proposal, f"two to {MAX_LINKED} memories are linked at once")
            return
        self._decisions.do.append(Action("link", tuple(paths), reason=proposal.reason))

    def _move(self, proposal: Proposal) -> None:
        """A memory that is used much goes up, never out of its kind, and a day stays where its date is."""
        folder = self._folder(proposal.target)
        is_within_kind = folder.count("/") > self._pages.root.count("/")
        for path in proposal.paths:
            if not self._is_free(proposal, path):
                continue
            if not is_within_kind or not posixpath.dirname(path).startswith(folder + "/"):
                self._refuse(proposal, f"it may move up within its kind, not to {proposal.target[:100]!r}", path)
            elif self._pages.kind_of(path) == "events":
                self._refuse(proposal, "what happened stays with its date", path)
            else:
                self._place(Action("move", (path,), folder, proposal.reason))

    def _place(self, action: Action) -> None:
        """A place that a person chose is not changed without their word."""
        self._taken.update(action.paths)
        theirs = tuple(path for path in action.paths if path in self._history.placed)
        ours = tuple(path for path in action.paths if path not in self._history.placed)
        for paths, actions in ((ours, self._decisions.do), (theirs, self._decisions.ask)):
            if paths:
                actions.append(Action(action.kind, paths, action.target, action.reason))

    def _split(self, proposal: Proposal) -> None:
        """Divide an overgrown folder; pages that a person put there stay, unless it cannot be done without them."""
        folder = self._folder(proposal.paths[0]) if proposal.paths else ""
        if folder not in self._overgrown:
            self._refuse(proposal, "it is not overgrown")
            return
        children, memories = self._pages.children[folder], self._pages.memories
        here = [path for path in sorted(children) if path in memories and path not in self._taken]
        free = [memories[path] for path in here if self._is_sound(proposal, path)]
        ours = [page for page in free if page.path not in self._history.placed]
        limit = self._brain.settings.organization.max_entries
        day_of = self._brain.day_of if self._pages.kind_of(folder) == "events" else None
        groups = divide(ours, len(children) - len(ours), limit, day_of)
        groups = groups or divide(free, len(children) - len(free), limit, day_of)
        if not groups:
            self._refuse(proposal, "no division brings it under the limit", folder)
        for name, paths in groups.items():
            self._place(Action("split", tuple(paths), f"{folder}/{name}", proposal.reason))

    def _rest(self, proposal: Proposal) -> None:
        """Put to rest what is unused; what is important or a person's, only by their word."""
        ours: list[str] = []
        theirs: dict[str, list[str]] = defaultdict(list)
        for path in dict.fromkeys(proposal.paths):
            if not self._is_free(proposal, path):
                continue
            if path not in self._unused:
                self._refuse(proposal, "it is used", path)
                continue
            self._taken.add(path)
            if self._pages.memories[path].meta.get("importance") == "high" or path in self._history.edited:
                theirs[posixpath.dirname(path)].append(path)
            else:
                ours.append(path)
        self._decisions.do += self._resting(proposal, ours)
        self._decisions.ask += [Action("archive", tuple(paths), reason=proposal.reason) for paths in theirs.values()]

    def _resting(self, proposal: Proposal, paths: list[str]) -> Iterator[Action]:
        """Compress days that hold nothing private, several of one month; archive all else."""
        months: dict[str, list[str]] = defaultdict(list)  # "": what is archived as it is
        for path in paths:
            text = self._pages.memories[path].text
            # A digest bears no marks, so that nothing marked may come into it.
            is_day = self._pages.kind_of(path) == "events" and shareable_text(text) == text
            months[self._month_of(path) if is_day and proposal.action == "compress" else ""].append(path)
        for month, days in months.items():
            kind = "compress" if month and len(days) > 1 else "archive"
            yield Action(kind, tuple(days), month if kind == "compress" else "", proposal.reason)

    def _month_of(self, path: str) -> str:
        """Return the folder that a day's digest goes to: its month's, or its own where folders are no dates."""
        match = re.match(rf"{re.escape(self._pages.root)}/events/\d{{4}}/\d\d(?=/)", path)
        return match[0] if match else posixpath.dirname(path)

    def _hold_many(self) -> None:
        """Ask before a large part of memory is put to rest: that is no upkeep but an import, or a clock gone wrong."""
        resting = [action for action in self._decisions.do if action.kind in ("archive", "compress")]
        count = sum(len(action.paths) for action in resting)
        if count > MANY and count > MANY_SHARE * len(self._pages.memories):
            self._decisions.do = [action for action in self._decisions.do if action not in resting]
            self._decisions.ask += resting


# --- dividing a folder -------------------------------------------------------------------------------------


def divide(
    pages: Sequence[Memory], standing: int, limit: int, day_of: Callable[[str], str] | None = None
) -> dict[str, list[str]]:
    """Return the pages to move, by the name of their subfolder; {} when no division brings the folder under the limit.

    Args:
        pages: Those that may move, of one folder.
        standing: How many further entries the folder has.
        limit: The most entries of a folder (`organization.max_entries`).
        day_of: Returns the person's day of a stamp; for a folder in `events/`, where the date comes first.
    """
    ordered = sorted(pages, key=lambda page: page.path)
    # The first that works, from what says most of a page to what always works: runs of equal length by name.
    keys: list[Key] = [_subject, _tag, _letter]
    if day_of is not None:
        keys = [lambda page: _day(page, day_of)[:7], lambda page: _day(page, day_of), *keys]
    for groups in [*(_grouped(ordered, key) for key in keys), _runs(ordered, limit)]:
        left = standing + len(pages) - sum(map(len, groups.values())) + len(groups)
        is_apart = len(groups) > 1 or left > len(groups)  # one subfolder with everything is no division
        if groups and is_apart and left <= limit and all(len(paths) <= limit for paths in groups.values()):
            return groups
    return {}


def _grouped(pages: Sequence[Memory], key: Key) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        if name := key(page):
            groups[name].append(page.path)
    return {name: paths for name, paths in sorted(groups.items()) if len(paths) >= MIN_GROUP}


def _day(page: Memory, day_of: Callable[[str], str]) -> str:
    match = re.match(r"\d{4}-\d\d-\d\d", day_of(page.created_at))
    return match[0] if match else ""


def _folder_name(text: str) -> str:
    return slugify(text)[:_MAX_NAME].strip("-")


def _subject(page: Memory) -> str:
    return _folder_name(page.subject) if page.subject not in ("", "User") else ""


def _tag(page: Memory) -> str:
    return _folder_name(page.tags[0]) if page.tags else ""


def _letter(page: Memory) -> str:
    match = re.search(r"[^\W_]", posixpath.basename(page.path))
    return slugify(match[0]) if match else ""


def _runs(pages: Sequence[Memory], limit: int) -> dict[str, list[str]]:
    """Return equal runs in the order of their names, each named by its first and last page."""
    count = max(2, ceil(len(pages) / max(1, limit // 2)))
    size = max(1, ceil(len(pages) / count))
    runs = {}
    for start in range(0, len(pages), size):
        paths = [page.path for page in pages[start : start + size]]
        first, last = (_folder_name(_stem(path)) for path in (paths[0], paths[-1]))
        runs[f"{first}-to-{last}"] = paths
    return runs


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


# --- carrying out ------------------------------------------------------------------------------------------


class Draft:
    """The pages as an organization will leave them: moved, edited, made and removed in memory, written by one commit.

    Paths are those before it, unless said otherwise.

    Args:
        brain: The brain.
        pages: As they stand.
        is_resting: Whether a page may be rewritten for the sake of its links; one a person is at is healed later.

    Attributes:
        statements: Records of the statements that were written, for the journal.
    """

    def __init__(self, brain: Brain, pages: PageSet, is_resting: Callable[[str], bool]) -> None:
        self._brain, self._pages, self._is_resting = brain, pages, is_resting
        self._now = iso(brain.clock.now())
        self._places: dict[str, str] = {}  # new path by former one
        self._texts: dict[str, str] = {}  # of pages that are changed beside their links, and of new ones
        self._removed: set[str] = set()
        self._arriving: dict[str, set[str]] = defaultdict(set)  # names that folders get, casefolded
        self.statements: list[StatementRecord] = []

    def place(self, path: str) -> str:
        """Return where a page will stand."""
        return self._places.get(path, path)

    def text(self, path: str) -> str | None:
        """Return a page's text as it is by now; None where there is none."""
        page = self._pages.pages.get(path)
        return self._texts.get(path, page.text if page else None)

    def edit(self, path: str, text: str) -> None:
        """Leave a page with a text, or make it; the links of a new page are written for where pages will stand."""
        self._texts[path] = text

    def carry_out(self, actions: Sequence[Action]) -> None:
        """Carry out actions that were found to be in order, changes of place first."""
        for action in actions:
            for path in action.paths if action.kind != "link" else ():
                rests = action.kind in ("archive", "compress")
                folder = self._pages.archive + posixpath.dirname(path).removeprefix(self._pages.root)
                self._move(path, folder if rests else action.target)
        # A digest links to where its days will stand, and a relation stands on the index page of the new folder.
        for action in actions:
            if action.kind == "compress":
                self._compress(action)
        self._complete_folders()
        for action in actions:
            if action.kind == "link":
                for first, second in combinations(action.paths, 2):
                    self._relate(first, second)
                    self._relate(second, first)

    def _move(self, path: str, folder: str) -> None:
        """Move a page to a folder, under another name where its own is taken."""
        arriving, target = self._arriving[folder], f"{folder}/{posixpath.basename(path)}"
        if posixpath.basename(path).casefold() in self._pages.names_in(folder) | arriving:
            target = self._pages.free_path(folder, _stem(path), arriving)
        arriving.add(posixpath.basename(target).casefold())
        self._places[path] = target

    def _compress(self, action: Action) -> None:
        """Write the digest of days that went to the archive, or add to the one there is, a line for what was said."""
        path = f"{action.target}/digest.md"
        text = self.text(path)
        if text is None:
            title = f"{title_of_folder(action.target)} in brief"
            text = new_memory(title, uuid=new_id(), now=self._now, tags=[DIGEST_TAG], subject_type="concept")
        document = MemoryDocument(text, path)
        for page in sorted((self._pages.memories[path] for path in action.paths), key=_when):
            link = format_link(page.title, posixpath.relpath(self.place(page.path), action.target), page.uuid)
            for line in _digest_lines(page, self._brain.day_of):
                line = f"{line} ({link})"
                block = document.block_id_for(line)
                document = document.add_statement(line, block)
                since, uuid = self._brain.day_of(_when(page)), document.memory.uuid
                self.statements.append(StatementRecord(page=uuid, block=block, hash=text_hash(line), since=since))
        self.edit(path, str(document))

    def _complete_folders(self) -> None:
        """Give every new folder its index page, and take it from the folders that nothing is left in."""
        origins = {new: old for old, new in self._places.items()}
        arrived = [path for path in (*origins, *self._new) if path.startswith(self._pages.root + "/")]
        texts = [create(path, self.text(origins.get(path, path)) or "") for path in arrived]
        for change in Folders(self._brain, texts).changes() if texts else ():
            if change.op == "create" and self.text(change.path) is None:
                self.edit(change.path, (change.after or b"").decode("utf-8", "surrogateescape"))
        for folder in sorted({posixpath.dirname(path) for path in self._places}, key=lambda path: -path.count("/")):
            self._remove_empty(folder)

    @property
    def _new(self) -> list[str]:
        return [path for path in self._texts if path not in self._pages.pages]

    def _remove_empty(self, folder: str) -> None:
        """Remove the index pages of a folder and those above it that hold nothing and that nobody links to."""
        while folder.count("/") > self._pages.root.count("/") + 1 and self._is_empty(folder):
            # The manifest above is derived anew after the commit: its link is none that keeps a page.
            index, above = f"{folder}/{INDEX}", posixpath.dirname(folder)
            sources = self._pages.linking_to.get(index, set())
            if index not in self._pages.pages or sources - {f"{above}/{INDEX}"}:
                return
            self._removed.add(index)
            folder = above

    def _is_empty(self, folder: str) -> bool:
        gone = {f"{folder}/{INDEX}", *self._removed, *self._places}
        standing = [path for path in (*self._pages.pages, *self._pages.broken) if path not in gone]
        return not any(path.startswith(folder + "/") for path in (*standing, *self._places.values(), *self._new))

    def _relate(self, path: str, other: str) -> None:
        """Link a page from the index page of another one's folder, as both will stand."""
        folder = posixpath.dirname(self.place(path))
        index, target = f"{folder}/{INDEX}", self._pages.memories[other]
        before = self.text(index)
        if before is None:
            return  # the folder was left without one that can be read; the doctor names it
        way = posixpath.relpath(self.place(other), folder)
        reason = f"used together with {self._pages.memories[path].title}"
        after = IndexDocument(before, index).with_related(target.title, way, target.uuid, reason)
        if str(after) != before:
            self.edit(index, str(after.set_meta(updated_at=self._now)))

    def changes(self) -> list[Change]:
        """Return all that is to be written, links healed on every page that leads to what moves."""
        places = {uuid: self.place(path) for uuid, path in self._pages.place_of.items()}
        holds = self._brain.tree.holds
        changes: list[Change] = []
        # Every page is looked at: an editor follows a link by its path, and any page may lead to what moves.
        for path, page in self._pages.pages.items():
            now, after = self.place(path), self._texts.get(path, page.text)
            if path in self._removed:
                changes.append(remove(path, page.text))
                continue
            if self._places and (now != path or path in self._texts or self._is_resting(path)):
                after = with_repaired_links(
                    after, was=path, now=now, moved=self._places, places=places, is_standing=holds
                )
            if now != path:
                changes.append(move(path, now, page.text, after))
            elif after != page.text:
                changes.append(update(path, page.text, after))
        return changes + [create(path, self._texts[path]) for path in self._new]


def _when(page: Memory) -> str:
    first = next(find_events(page.text), None)
    return first.event.at if first else page.created_at


def _digest_lines(page: Memory, day_of: Callable[[str], str]) -> Iterator[str]:
    events = [placed.event for placed in find_events(page.text)]
    for event in events:
        yield f"{day_of(event.at)}: " + (f"“{_cut(event.user)}”" if event.user.strip() else _cut(event.ai))
    if not events:
        statements = [statement.text for statement in page.statements if not statement.is_history]
        yield f"{day_of(page.created_at)}: {_cut(' '.join(statements) or page.title)}"


def _cut(text: str) -> str:
    text = one_line(text).replace("[", "(").replace("]", ")")
    return text if len(text) <= _MAX_WORDS else text[: _MAX_WORDS - 1].rsplit(" ", 1)[0] + "…"


# --- manifests ---------------------------------------------------------------------------------------------


def folders_of(changes: Iterable[Change]) -> set[str]:
    """Return the folders whose manifests are not as they were, once changes are made."""
    paths = {path for change in changes for path in (change.path, change.source) if path}
    return {posixpath.dirname(path) for path in paths} | {
        posixpath.dirname(posixpath.dirname(path)) for path in paths if posixpath.basename(path) == INDEX
    }


def derive_manifests(brain: Brain, folders: Iterable[str], cause: str | None = None) -> Event | None:
    """Bring the index pages of folders, and of those above them, up to date; only bytes that differ are written.

    Args:
        brain: The brain.
        folders: Relative; those outside of long-term memory and those that hold nothing are passed over.
        cause: Id of the event that changed them.

    Returns:
        The event; None when all was as it should be, or a person saved one of them this very moment.
    """
    tree = brain.tree
    root = tree.relative(tree.long_term)
    inside = [folder for folder in sorted(set(folders)) if f"{folder}/".startswith(root + "/")]
    held = [folder for folder in inside if next(tree.walk(tree.absolute(folder)), None)]
    changes = Folders(brain, [observe(f"{folder}/{INDEX}", b"") for folder in held]).changes()
    if not changes:
        return None
    try:
        return brain.commit(ManifestsDerived(), by=NAME, changes=changes, cause=cause)
    except ConflictError:
        return None  # the next quiet looks again
