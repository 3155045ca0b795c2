"""Proposals of a model or a rule: checked against the tree, the counts and what a person did, then carried out.

Nothing is written here: `Draft.changes` returns the changes for one commit.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, ConflictError
from brainiac.formats.index_page import IndexDocument
from brainiac.formats.markdown import find_events, format_link, one_line
from brainiac.formats.page import Memory, MemoryDocument, new_memory, shareable_text
from brainiac.llm.schemas import Proposal
from brainiac.storage.links import Folders, shortened, title_of_folder, with_repaired_links
from brainiac.storage.pages import INDEX, PageSet
from brainiac.storage.statements import text_hash
from brainiac.tree import slugify

from .usage import DIGEST_TAG, Patterns, UsageHistory

NAME = "organization"
MANY, MANY_SHARE = 20, 0.3  # more than this put to rest at once is a person's decision
MAX_LINKED = 6
MIN_GROUP = 5  # fewer pages of a kind stay where they are: a folder for two of them is no order
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MAX_NAME = 40  # characters of a folder's name
_MAX_QUOTE = 200  # characters of what was said that a digest shows; the whole is one link away


@dataclass(frozen=True, slots=True)
class Action:
    """One change of long-term memory, checked and complete.

    Attributes:
        kind: `link`, `move`, `archive`, `split` or `compress`.
        paths: The pages, where they stand before it.
        target: The folder that pages move to, or that gets a digest; "" for `link` and `archive`.
        reason: Why, for the journal and for a person.
    """

    kind: str
    paths: tuple[str, ...]
    target: str = ""
    reason: str = ""


# --- checking ----------------------------------------------------------------------------------------------


class Decisions:
    """The actions that proposals lead to, checked against the tree, the counts, and what a person did.

    A page is moved, split or archived by one of them at most. To archive very many pages is proposed to the person.

    Args:
        brain: The brain.
        pages: All pages.
        history: Which pages a person wrote and moved.
        patterns: What stands out in the counts.
        proposals: The proposals.

    Attributes:
        do: Actions to be carried out now.
        ask: Actions to be proposed to the person.
        refused: Proposals that were not in order, with the reason.
    """

    def __init__(
        self, brain: Brain, pages: PageSet, history: UsageHistory, patterns: Patterns, proposals: Iterable[Proposal]
    ) -> None:
        self._brain, self._pages, self._history = brain, pages, history
        self._now = brain.clock.now()
        self._unused = {row["path"] for row in patterns.get("unused", ())}
        self._overgrown = {row["folder"] for row in patterns.get("overgrown", ())}
        self._claimed: set[str] = set()  # pages that an earlier proposal moves or archives
        self.do: list[Action] = []
        self.ask: list[Action] = []
        self.refused: list[events.Refused] = []
        checks = {
            "link": self._link,
            "move": self._move,
            "split": self._split,
            "archive": self._archive,
            "compress": self._archive,
        }
        for proposal in proposals:
            checks[proposal.action](proposal)
        # where a large part of memory would be archived, as by a wrong clock, the person is asked before
        archiving = [action for action in self.do if action.kind in ("archive", "compress")]
        count = sum(len(action.paths) for action in archiving)
        if count > MANY and count > MANY_SHARE * len(pages.memories):
            self.do = [action for action in self.do if action not in archiving]
            self.ask += archiving

    def _refuse(self, proposal: Proposal, reason: str, *names: str) -> None:
        """Note why a proposal, or the named part of it, is refused."""
        subject = ", ".join(names or proposal.paths[:3])
        self.refused.append(events.Refused(proposal=f"{proposal.action} {subject}"[:300], reason=reason))

    def _admits(self, proposal: Proposal, path: str) -> bool:
        """Return whether a proposal may be about a page: one with a uuid of its own, which nobody edits now.

        Where it may not, this part of the proposal is refused.
        """
        page = self._pages.memories.get(path)
        if page is None or not page.uuid:
            self._refuse(proposal, "there is no such memory", path)
        elif page.uuid not in self._pages.path_by_uuid:
            self._refuse(proposal, "another page has its uuid", path)
        elif not self._history.is_resting(path, self._now):
            self._refuse(proposal, "it was edited a moment ago", path)
        else:
            return True
        return False

    def _admits_move(self, proposal: Proposal, path: str) -> bool:
        """Return whether a proposal may move a page, which no earlier one has moved; where not, refuse this part."""
        if not self._admits(proposal, path):
            return False
        if path in self._claimed:
            self._refuse(proposal, "another proposal has it already", path)
            return False
        return True

    def _folder(self, target: str) -> str:
        """Return the path of a proposed folder; "" where it is outside of long-term memory, or none is named."""
        folder = posixpath.dirname(target) if target.endswith(".md") else target.rstrip("/")
        try:
            absolute = self._brain.tree.confine(folder, inside=self._brain.tree.long_term)
        except ConfinementError:
            return ""
        return self._brain.tree.relative(absolute) if folder else ""

    def _link(self, proposal: Proposal) -> None:
        """Accept a proposal to link two to `MAX_LINKED` pages."""
        paths = [path for path in dict.fromkeys(proposal.paths) if self._admits(proposal, path)]
        if not 2 <= len(paths) <= MAX_LINKED:
            self._refuse(proposal, f"two to {MAX_LINKED} memories are linked at once")
            return
        self.do.append(Action("link", tuple(paths), reason=proposal.reason))

    def _move(self, proposal: Proposal) -> None:
        """Accept a proposal to move pages up, within their kind (`concrete/`, `skills/`); pages of days stay."""
        folder = self._folder(proposal.target)
        is_within_kind = folder.count("/") > self._pages.root.count("/")
        for path in proposal.paths:
            if not self._admits_move(proposal, path):
                continue
            if not is_within_kind or not posixpath.dirname(path).startswith(folder + "/"):
                self._refuse(proposal, f"it may move up within its kind, not to {proposal.target[:100]!r}", path)
            elif self._pages.kind_of(path) == "events":
                self._refuse(proposal, "what happened stays with its date", path)
            else:
                self._accept(Action("move", (path,), folder, proposal.reason))

    def _accept(self, action: Action) -> None:
        """Accept a move: it is done now for pages that a process put there, and proposed for those of a person."""
        self._claimed.update(action.paths)
        for actions, is_persons in ((self.do, False), (self.ask, True)):
            if paths := tuple(path for path in action.paths if (path in self._history.placed) == is_persons):
                actions.append(Action(action.kind, paths, action.target, action.reason))

    def _split(self, proposal: Proposal) -> None:
        """Accept a proposal to divide an overgrown folder.

        Pages that a person put there are moved only where those of processes alone are too few.
        """
        folder = self._folder(proposal.paths[0]) if proposal.paths else ""
        if folder not in self._overgrown:
            self._refuse(proposal, "it is not overgrown")
            return
        children, memories = self._pages.children[folder], self._pages.memories
        paths = [path for path in sorted(children) if path in memories and path not in self._claimed]
        movable = [memories[path] for path in paths if self._admits(proposal, path)]
        by_process = [page for page in movable if page.path not in self._history.placed]
        limit = self._brain.settings.organization.max_entries
        day_of = self._brain.day_of if self._pages.kind_of(folder) == "events" else None
        groups = divide(by_process, n_others=len(children) - len(by_process), limit=limit, day_of=day_of)
        groups = groups or divide(movable, n_others=len(children) - len(movable), limit=limit, day_of=day_of)
        if not groups:
            self._refuse(proposal, "no division brings it under the limit", folder)
            return
        for name, members in groups.items():
            self._accept(Action("split", tuple(members), f"{folder}/{name}", proposal.reason))

    def _archive(self, proposal: Proposal) -> None:
        """Archive or compress unused pages; important ones and those a person edited only with their consent.

        A proposal to compress has the days of a month compressed into one digest, but for those with a private line.
        """
        days_by_month: dict[str, list[str]] = defaultdict(list)  # by the folder that gets the month's digest
        others: list[str] = []
        to_ask: dict[str, list[str]] = defaultdict(list)  # by folder
        for path in dict.fromkeys(proposal.paths):
            if not self._admits_move(proposal, path):
                continue
            if path not in self._unused:
                self._refuse(proposal, "it is used", path)
                continue
            self._claimed.add(path)
            page = self._pages.memories[path]
            if page.meta.get("importance") == "high" or path in self._history.edited:
                to_ask[posixpath.dirname(path)].append(path)
                continue
            # a digest has no private marks, so that no private line may come into it
            is_open_day = self._pages.kind_of(path) == "events" and shareable_text(page.text) == page.text
            if is_open_day and proposal.action == "compress":
                month = re.match(rf"{re.escape(self._pages.root)}/events/\d{{4}}/\d\d(?=/)", path)
                # a day without a date has its digest beside it
                days_by_month[month[0] if month else posixpath.dirname(path)].append(path)
            else:
                others.append(path)
        for folder, days in days_by_month.items():  # one alone in its month needs no digest
            kind, target = ("compress", folder) if len(days) > 1 else ("archive", "")
            self.do.append(Action(kind, tuple(days), target, proposal.reason))
        self.do += [Action("archive", tuple(others), reason=proposal.reason)] if others else []
        self.ask += [Action("archive", tuple(paths), reason=proposal.reason) for paths in to_ask.values()]


# --- dividing a folder -------------------------------------------------------------------------------------


def divide(
    pages: Sequence[Memory], n_others: int, limit: int, day_of: Callable[[str], str] | None = None
) -> dict[str, list[str]]:
    """Return the pages to move, by the name of their subfolder; {} when no division brings the folder under the limit.

    Args:
        pages: The pages of the folder that may move.
        n_others: How many further entries the folder has.
        limit: The most entries of a folder (`organization.max_entries`).
        day_of: Returns the person's day of a stamp; for a folder in `events/`, where the date comes first.
    """
    ordered = sorted(pages, key=lambda page: page.path)
    # the user themselves are no subject: most pages are about them
    subjects = [_folder_name(page.subject) if page.subject not in ("", "User") else "" for page in ordered]
    tags = [_folder_name(page.tags[0]) if page.tags else "" for page in ordered]
    names = [subjects, tags]
    if day_of is not None:
        days = [day if _ISO_DAY.fullmatch(day := day_of(page.created_at)) else "" for page in ordered]
        names = [[day[:7] for day in days], days, *names]
    # the first that works, from the one that says most to alphabetic groups, which nearly always work
    divisions = []
    for row in names:  # "" left out, groups of at least `MIN_GROUP` only
        by_name: dict[str, list[str]] = defaultdict(list)
        for page, name in zip(ordered, row, strict=True):
            by_name[name].append(page.path)
        divisions.append({name: paths for name, paths in sorted(by_name.items()) if name and len(paths) >= MIN_GROUP})
    for groups in [*divisions, _alphabetic_groups(ordered, limit)]:
        n_moving = sum(map(len, groups.values()))
        n_staying = n_others + len(pages) - n_moving
        is_division = len(groups) > 1 or n_staying > 0  # one subfolder with everything is none
        is_within_limit = all(n <= limit for n in (n_staying + len(groups), *map(len, groups.values())))
        if groups and is_division and is_within_limit:
            return groups
    return {}


def _folder_name(text: str) -> str:
    """Return a text as the name of a folder."""
    return slugify(text)[:_MAX_NAME].strip("-")


def _alphabetic_groups(pages: Sequence[Memory], limit: int) -> dict[str, list[str]]:
    """Return the paths of pages in groups of equal size, each named by its first and last page.

    Args:
        pages: The pages, in the order of their names.
        limit: The most entries of a folder.
    """
    # at least two groups, each at most half full, so that none is overgrown again soon
    count = max(2, ceil(len(pages) / max(1, limit // 2)))
    size = max(1, ceil(len(pages) / count))
    groups = {}
    for start in range(0, len(pages), size):
        paths = [page.path for page in pages[start : start + size]]
        first, last = (_folder_name(_stem(path)) for path in (paths[0], paths[-1]))
        groups[f"{first}-to-{last}"] = paths
    return groups


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


# --- carrying out ------------------------------------------------------------------------------------------


class Draft:
    """All pages as an organization will leave them; one commit writes the differences.

    Arguments named `path` are paths before the organization.

    Args:
        brain: The brain.
        pages: All pages as they stand.
        is_resting: Returns whether nobody edits a page now; the links of another page are repaired later.

    Attributes:
        statements: Records of the statements that were written, for the journal.
    """

    def __init__(self, brain: Brain, pages: PageSet, is_resting: Callable[[str], bool]) -> None:
        self._brain, self._pages, self._is_resting = brain, pages, is_resting
        self._now = iso(brain.clock.now())
        self._moved: dict[str, str] = {}  # the new path of each page that moves, by its former one
        self._texts: dict[str, str] = {}  # of edited and new pages, by path, before links are repaired
        self._removed: set[str] = set()
        self._new_names: dict[str, set[str]] = defaultdict(set)  # casefolded names of pages that move, by folder
        self.statements: list[events.StatementRecord] = []

    def place(self, path: str) -> str:
        """Return the path that a page will have."""
        return self._moved.get(path, path)

    def text(self, path: str) -> str | None:
        """Return a page's text with the edits so far; None where there is no page."""
        page = self._pages.pages.get(path)
        return self._texts.get(path, page.text if page else None)

    def edit(self, path: str, text: str) -> None:
        """Set the text of a page, or of one to be added; its links have to lead to the paths that pages will have."""
        self._texts[path] = text

    def carry_out(self, actions: Sequence[Action]) -> None:
        """Carry out checked actions, moves first."""
        for action in actions:
            for path in action.paths if action.kind != "link" else ():
                archive_folder = self._pages.archive + posixpath.dirname(path).removeprefix(self._pages.root)
                self._move(path, archive_folder if action.kind in ("archive", "compress") else action.target)
        # after all moves: a digest links to where its days will be, a relation goes to the new folder's index page
        for action in actions:
            if action.kind == "compress":
                self._compress(action)
        # the index pages that new folders need; those that exist are derived anew after the commit
        old_paths = {new: old for old, new in self._moved.items()}
        new_paths = [path for path in (*old_paths, *self._added) if path.startswith(self._pages.root + "/")]
        # as if the pages were new: `Folders` takes the folders from changes of files
        created = [events.create(path, self.text(old_paths.get(path, path)) or "") for path in new_paths]
        for change in Folders(self._brain, created).changes() if created else ():
            if change.op == "create" and self.text(change.path) is None:
                self.edit(change.path, (change.after or b"").decode("utf-8", "surrogateescape"))
        for folder in sorted({posixpath.dirname(path) for path in self._moved}, key=lambda path: -path.count("/")):
            self._remove_empty(folder)
        for action in actions:
            if action.kind == "link":
                for first, second in combinations(action.paths, 2):
                    self._relate(first, second)
                    self._relate(second, first)

    def _move(self, path: str, folder: str) -> None:
        """Move a page to a folder, under another name where its own is taken."""
        new_names, target = self._new_names[folder], f"{folder}/{posixpath.basename(path)}"
        if posixpath.basename(path).casefold() in self._pages.names_in(folder) | new_names:
            target = self._pages.free_path(folder, _stem(path), new_names)
        new_names.add(posixpath.basename(target).casefold())
        self._moved[path] = target

    def _compress(self, action: Action) -> None:
        """Write the digest of days that go to the archive, or add to the existing one: a line for each exchange."""
        path = f"{action.target}/digest.md"
        text = self.text(path)
        if text is None:
            title = f"{title_of_folder(action.target)} in brief"
            text = new_memory(title, uuid=events.new_id(), now=self._now, tags=[DIGEST_TAG], subject_type="concept")
        document = MemoryDocument(text, path)
        for page in sorted((self._pages.memories[path] for path in action.paths), key=_said_at):
            link = format_link(page.title, posixpath.relpath(self.place(page.path), action.target), page.uuid)
            for line in _digest_lines(page, self._brain.day_of):
                line = f"{line} ({link})"
                block = document.block_id_for(line)
                document = document.add_statement(line, block)
                since, uuid = self._brain.day_of(_said_at(page)), document.memory.uuid
                self.statements.append(
                    events.StatementRecord(page=uuid, block=block, hash=text_hash(line), since=since)
                )
        self.edit(path, str(document))

    @property
    def _added(self) -> list[str]:
        """The paths of pages that do not exist yet."""
        return [path for path in self._texts if path not in self._pages.pages]

    def _remove_empty(self, folder: str) -> None:
        """Remove the index pages of an empty folder and of empty folders above it, unless a page links to them."""
        depth_of_kind = self._pages.root.count("/") + 1  # `concrete/`, `skills/` and `events/` stay, even if empty
        while folder.count("/") > depth_of_kind:
            leaving = {f"{folder}/{INDEX}", *self._removed, *self._moved}
            staying = [path for path in (*self._pages.pages, *self._pages.broken) if path not in leaving]
            if any(path.startswith(folder + "/") for path in (*staying, *self._moved.values(), *self._added)):
                return
            # the index page above links to it too, but is derived anew after the commit: its link does not count
            index, parent = f"{folder}/{INDEX}", posixpath.dirname(folder)
            sources = self._pages.linking_to.get(index, set())
            if index not in self._pages.pages or sources - {f"{parent}/{INDEX}"}:
                return
            self._removed.add(index)
            folder = parent

    def _relate(self, path: str, other: str) -> None:
        """Add a link to another page to the index page of a page's folder, for the places that both will have."""
        folder = posixpath.dirname(self.place(path))
        index, target = f"{folder}/{INDEX}", self._pages.memories[other]
        before = self.text(index)
        if before is None:
            return  # the folder has no index page that can be read; `brainiac doctor` reports it
        link_target = posixpath.relpath(self.place(other), folder)
        reason = f"used together with {self._pages.memories[path].title}"
        after = IndexDocument(before, index).with_related(target.title, link_target, target.uuid, reason)
        if str(after) != before:
            self.edit(index, str(after.set_meta(updated_at=self._now)))

    def changes(self) -> list[events.Change]:
        """Return the changes for the commit, with the links to moved pages repaired on every page."""
        path_by_uuid = {uuid: self.place(path) for uuid, path in self._pages.path_by_uuid.items()}
        hidden = {self.place(path) for path, page in self._pages.pages.items() if page.is_private}
        changes: list[events.Change] = []
        # every page: any of them may link to one that moves, and editors follow a link by its path
        for path, page in self._pages.pages.items():
            now, after = self.place(path), self._texts.get(path, page.text)
            if path in self._removed:
                changes.append(events.remove(path, page.text))
                continue
            # a page that a person edits is repaired later, unless it is written in any case
            if self._moved and (now != path or path in self._texts or self._is_resting(path)):
                after = with_repaired_links(
                    after,
                    was=path,
                    now=now,
                    moved=self._moved,
                    places=path_by_uuid,
                    is_standing=self._brain.tree.holds,
                    is_hidden=hidden.__contains__,
                )
            if now != path:
                changes.append(events.move(path, now, page.text, after))
            elif after != page.text:
                changes.append(events.update(path, page.text, after))
        return changes + [events.create(path, self._texts[path]) for path in self._added]


def _said_at(page: Memory) -> str:
    """Return when the first exchange on a page was said, or else when the page was created."""
    first = next(find_events(page.text), None)
    return first.event.at if first else page.created_at


def _digest_lines(page: Memory, day_of: Callable[[str], str]) -> Iterator[str]:
    """Yield a short line for each exchange on a page; one for all its statements where it has no exchange."""
    exchanges = [placed.event for placed in find_events(page.text)]
    for event in exchanges:
        yield f"{day_of(event.at)}: " + (f"“{_cut(event.user)}”" if event.user.strip() else _cut(event.ai))
    if not exchanges:
        statements = [statement.text for statement in page.current_statements]
        yield f"{day_of(page.created_at)}: {_cut(' '.join(statements) or page.title)}"


def _cut(text: str) -> str:
    """Return a text as one line of at most `_MAX_QUOTE` characters, without brackets that would end a link."""
    return shortened(one_line(text).replace("[", "(").replace("]", ")"), _MAX_QUOTE)


# --- manifests ---------------------------------------------------------------------------------------------


def folders_of(changes: Iterable[events.Change]) -> set[str]:
    """Return the folders whose index pages have to be derived anew after changes."""
    paths = {path for change in changes for path in (change.path, change.source) if path}
    # the index page of the folder above quotes the summary of an index page
    indexed = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == INDEX}
    return {posixpath.dirname(path) for path in (*paths, *indexed)}


def derive_manifests(brain: Brain, folders: Iterable[str], cause: str | None = None) -> events.Event | None:
    """Bring the index pages of folders, and of those above them, up to date; only bytes that differ are written.

    Args:
        brain: The brain.
        folders: Relative paths; folders outside of long-term memory and empty ones are ignored.
        cause: The id of the event that changed them.

    Returns:
        The event; None where nothing differed, or a person saved one of the pages meanwhile.
    """
    tree = brain.tree
    root = tree.relative(tree.long_term)
    inside = [folder for folder in sorted(set(folders)) if f"{folder}/".startswith(root + "/")]
    filled = [folder for folder in inside if next(tree.walk(tree.absolute(folder)), None)]
    # `Folders` takes the folders from changes of files
    changes = Folders(brain, [events.observe(f"{folder}/{INDEX}", b"") for folder in filled]).changes()
    if not changes:
        return None
    try:
        return brain.commit(events.TreeTidied(what="index-pages"), by=NAME, changes=changes, cause=cause)
    except ConflictError:
        return None  # the next quiet tries again
