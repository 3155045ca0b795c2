"""One organization: how memory was used leads to proposals, which are checked, carried out on a draft and committed.

What a model or a rule proposes is checked against the tree, the counts and what a person did.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from math import ceil

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, ConflictError
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.index_page import IndexDocument
from brainiac.formats.markdown import find_events, format_link, one_line
from brainiac.formats.page import Memory, MemoryDocument, new_memory, shareable_text
from brainiac.history.digest import write_digest
from brainiac.llm.gate import is_hidden
from brainiac.llm.offline import organize as by_rule
from brainiac.llm.schemas import OrganizeRequest, Proposal, Proposals
from brainiac.storage.files import locked
from brainiac.storage.links import Draft, Folders, shortened, title_of_folder
from brainiac.storage.pages import INDEX, PageSet
from brainiac.storage.review import Records, asked_before, asking
from brainiac.storage.statements import text_hash
from brainiac.tree import slugify

from .usage import DIGEST_TAG, Patterns, Row, UsageHistory, find_patterns, log_removal, read_history, read_usage

NAME = "organization"
MANY, MANY_SHARE = 20, 0.3  # more than this put to rest at once is a person's decision
MAX_LINKED = 6
MIN_GROUP = 5  # fewer pages of a kind stay where they are: a folder for two of them is no order
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MAX_NAME = 40  # characters of a folder's name
_MAX_QUOTE = 200  # characters of what was said that a digest shows; the whole is one link away
ATTEMPTS = 3
GOALS = (
    "What is used much is found near the top.",
    "What is used together is linked.",
    "No folder holds more than a person can look over.",
    "What is unused is at rest in the archive, and nothing is lost.",
)
_SHOWN = 5
_WORDS = {"archive": "Archive", "compress": "Archive, with a digest in {target},"}

Progress = Callable[[str], None]


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
        checks = {"link": self._link, "move": self._move, "split": self._split}
        for proposal in proposals:
            checks.get(proposal.action, self._archive)(proposal)
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

        A page is moved by one proposal only. Where it may not, this part of the proposal is refused.
        """
        page, problem = self._pages.memories.get(path), ""
        if page is None or not page.uuid:
            problem = "there is no such memory"
        elif page.uuid not in self._pages.path_by_uuid:
            problem = "another page has its uuid"
        elif not self._history.is_resting(path, self._now):
            problem = "it was edited a moment ago"
        elif proposal.action not in ("link", "split") and path in self._claimed:
            problem = "another proposal has it already"
        if problem:
            self._refuse(proposal, problem, path)
        return not problem

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
            if not self._admits(proposal, path):
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
            if not self._admits(proposal, path):
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


def carry_out(
    brain: Brain, pages: PageSet, actions: Sequence[Action], is_resting: Callable[[str], bool]
) -> tuple[Draft, tuple[events.StatementRecord, ...]]:
    """Return a draft in which checked actions are carried out, moves first, and the records of new statements.

    Args:
        brain: The brain.
        pages: All pages as they stand.
        actions: The actions.
        is_resting: Returns whether nobody edits a page now; the links of another page are repaired later.
    """
    draft, records = Draft(brain, pages), list[events.StatementRecord]()
    new_names: dict[str, set[str]] = defaultdict(set)  # casefolded names of pages that move, by folder
    for action in actions:
        for path in action.paths if action.kind != "link" else ():
            archive_folder = pages.archive + posixpath.dirname(path).removeprefix(pages.root)
            folder = archive_folder if action.kind in ("archive", "compress") else action.target
            name = posixpath.basename(path)
            if name.casefold() in pages.names_in(folder) | new_names[folder]:  # its own name is taken there
                name = posixpath.basename(pages.free_path(folder, _stem(path), new_names[folder]))
            new_names[folder].add(name.casefold())
            draft.move(path, f"{folder}/{name}")
    # after all moves: a digest links to where its days will be, a relation goes to the new folder's index page
    for action in actions:
        if action.kind == "compress":
            records += _compress(brain, draft, action.target, [pages.memories[path] for path in action.paths])
    draft.begin_folders()  # those that exist are derived anew after the commit
    _remove_emptied(draft, pages)
    for action in actions:
        for first, second in permutations(action.paths, 2) if action.kind == "link" else ():
            _relate(brain, draft, pages.memories[first], pages.memories[second])
    if draft.moved:  # any page may link to one that moves, and editors follow a link by its path
        edited = set(draft.edited)
        # a page that a person edits is repaired later, unless it is written in any case
        draft.repair_links([path for path in pages.pages if path in edited or is_resting(path)])
    return draft, tuple(records)


def _compress(brain: Brain, draft: Draft, folder: str, days: Iterable[Memory]) -> Iterator[events.StatementRecord]:
    """Write the digest of days that go to the archive, or add to the existing one: a line for each exchange."""
    path = f"{folder}/digest.md"
    if (document := draft.page(path)) is None:
        title, now = f"{title_of_folder(folder)} in brief", iso(brain.clock.now())
        text = new_memory(title, uuid=events.new_id(), now=now, tags=[DIGEST_TAG], subject_type="concept")
        document = MemoryDocument(text, path)
    for page in sorted(days, key=_said_at):
        link = format_link(page.title, posixpath.relpath(draft.place(page.path), folder), page.uuid)
        for line in _digest_lines(page, brain.day_of):
            line = f"{line} ({link})"
            block = document.block_id_for(line)
            document = document.add_statement(line, block)
            since, uuid = brain.day_of(_said_at(page)), document.memory.uuid
            yield events.StatementRecord(page=uuid, block=block, hash=text_hash(line), since=since)
    draft.put(document)


def _remove_emptied(draft: Draft, pages: PageSet) -> None:
    """Remove the index pages of folders that moves empty, and of empty folders above, unless a page links to them."""
    depth_of_kind = pages.root.count("/") + 1  # `concrete/`, `skills/` and `events/` stay, even if empty
    standing = {*pages.pages, *pages.broken, *draft.edited, *draft.moved.values()} - draft.moved.keys()
    for folder in sorted({posixpath.dirname(path) for path in draft.moved}, key=lambda path: -path.count("/")):
        while folder.count("/") > depth_of_kind:
            index, parent = f"{folder}/{INDEX}", posixpath.dirname(folder)
            # the index page above links to it too, but is derived anew after the commit: its link does not count
            is_linked = bool(pages.linking_to.get(index, set()) - {f"{parent}/{INDEX}"})
            is_filled = any(path.startswith(folder + "/") for path in standing - {index})
            if is_linked or is_filled or index not in pages.pages:
                break
            draft.write(index, None)
            standing.discard(index)
            folder = parent


def _relate(brain: Brain, draft: Draft, page: Memory, other: Memory) -> None:
    """Add a link to another page to the index page of a page's folder, for the places that both will have."""
    folder = posixpath.dirname(draft.place(page.path))
    index = f"{folder}/{INDEX}"
    if (before := draft.read(index)) is None:
        return  # the folder has no index page that can be read; `brainiac doctor` reports it
    link, reason = posixpath.relpath(draft.place(other.path), folder), f"used together with {page.title}"
    after = IndexDocument(before, index).with_related(other.title, link, other.uuid, reason)
    if str(after) != before:
        draft.write(index, str(after.set_meta(updated_at=iso(brain.clock.now()))))


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


def derive_manifests(brain: Brain, folders: Iterable[str], cause: str | None = None) -> None:
    """Bring the index pages of folders, and of those above them, up to date; only bytes that differ are written.

    Where a person saves one of the pages meanwhile nothing is written: the next quiet tries again.

    Args:
        brain: The brain.
        folders: Relative paths; folders outside of long-term memory and empty ones are ignored.
        cause: The id of the event that changed them.
    """
    tree = brain.tree
    root = tree.relative(tree.long_term)
    inside = [folder for folder in sorted(set(folders)) if f"{folder}/".startswith(root + "/")]
    filled = [folder for folder in inside if next(tree.walk(tree.absolute(folder)), None)]
    # `Folders` takes the folders from changes of files
    changes = Folders(brain, [events.observe(f"{folder}/{INDEX}", b"") for folder in filled]).changes()
    if changes:
        with suppress(ConflictError):
            brain.commit(events.TreeTidied(what="index-pages"), by=NAME, changes=changes, cause=cause)


# --- a run -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        done: The actions that were carried out.
        asked: The proposals that were written into `review.md`, one sentence each.
        refused: Proposals that were not in order, with the reason.
        lines: The number of lines of the access log that were counted and removed.
        event: The id of the commit's event; "" where there was nothing to do.
    """

    done: tuple[Action, ...] = ()
    asked: tuple[str, ...] = ()
    refused: tuple[events.Refused, ...] = ()
    lines: int = 0
    event: str = ""


def organize(
    brain: Brain, *, progress: Progress = lambda step: None, abandon: Callable[[], bool] | None = None
) -> Outcome:
    """Organize long-term memory by how it was used; a second run right after changes nothing.

    Args:
        brain: The brain.
        progress: Called with a few words on what is being done.
        abandon: Called while a model answers; the run ends when it returns true.

    Raises:
        ModelError: The model cannot serve now; nothing was changed.
        ConflictError: Somebody changed the same files every time; nothing was changed.
        LockedError: Another run is at work.
    """
    with locked(brain.places.state / "organization.lock", wait_seconds=0):
        for left in reversed(range(ATTEMPTS)):  # until no file that it changes was changed meanwhile
            try:
                outcome = _Run(brain, progress, abandon).run()
                break
            except ConflictError:
                if not left:
                    raise
    write_digest(brain)
    return outcome


class _Run:
    """One attempt at an organization, on pages and counts as they are when it begins."""

    def __init__(self, brain: Brain, progress: Progress, abandon: Callable[[], bool] | None) -> None:
        self._brain, self._progress, self._abandon = brain, progress, abandon
        progress("reading memory and the access log")
        self._now = brain.clock.now()
        self._pages, self._history = brain.pages(), read_history(brain)
        self._usage = read_usage(brain, self._pages, self._history)
        self._question_hash = self._history.asked  # of the last run's question to a model, until this one asks
        llm = brain.settings.llm
        self._has_model = llm.models.get("organize", llm.model) != "offline"

    def run(self) -> Outcome:
        """Decide, carry out and commit."""
        patterns = find_patterns(self._brain, self._pages, self._history, self._usage)
        decisions = self._decide(patterns)
        draft, statements = carry_out(self._brain, self._pages, decisions.do, self._is_resting)
        # the counted citations go to the pages; one that is being edited is left out
        for uuid, times in self._usage.cited.items():
            page = self._pages.memories.get(self._pages.path_by_uuid.get(uuid, ""))
            if page is not None and self._is_resting(page.path):
                count = page.reinforcement_count + times
                draft.write(page.path, edit_meta(draft.read(page.path) or "", reinforcement_count=count))
        return self._write(decisions, draft, statements)

    def _is_resting(self, path: str) -> bool:
        """Return whether nobody edits a page now."""
        return self._history.is_resting(path, self._now)

    def _decide(self, patterns: Patterns) -> Decisions:
        """Return the checked actions for patterns: a model proposes them, and a rule those for private pages."""
        hidden, visible = dict[str, list[Row]](), dict[str, list[Row]]()
        for name, rows in patterns.items():
            for row in rows:
                (hidden if self._is_hidden(row) else visible).setdefault(name, []).append(row)
        proposals = by_rule(self._request(hidden)).proposals if hidden else []
        if visible:
            question = json.dumps(visible, sort_keys=True, ensure_ascii=True)
            question_hash = hashlib.sha256(question.encode()).hexdigest()[:16]
            # a model may cost money: the question of the last run is not sent again
            if question_hash != self._history.asked or not self._has_model:
                self._progress("asking what to change")
                answer = self._brain.models.run(self._request(visible))
                assert isinstance(answer, Proposals)
                proposals = [*proposals, *answer.proposals]
            self._question_hash = question_hash
        return Decisions(self._brain, self._pages, self._history, patterns, proposals)

    def _is_hidden(self, row: Row) -> bool:
        """Return whether a row names a private page or folder, which no model is shown; the offline engine sees all."""
        paths = row.get("paths") or [row.get("path") or row["folder"]]
        return self._has_model and any(is_hidden(self._brain.tree, path) for path in paths)

    def _request(self, patterns: Patterns) -> OrganizeRequest:
        """Return the request about patterns."""
        structure = {folder: len(children) for folder, children in self._pages.children.items()}
        now, abandon = self._brain.now(), self._abandon
        return OrganizeRequest(now=now, patterns=patterns, structure=structure, goals=GOALS, abandon=abandon)

    def _write(self, decisions: Decisions, draft: Draft, statements: tuple[events.StatementRecord, ...]) -> Outcome:
        """Commit the changes and the proposals, then bring the index pages up to date.

        Nothing is committed where no file changes, the access log has no new line, and no question to a model is new.
        """
        brain, changes = self._brain, draft.changes(indexes="none")
        proposals: Records = ()
        # while a person edits `review.md` nothing is added to it: the next run finds the same proposals
        if self._is_resting(brain.tree.relative(brain.tree.review)):
            proposals, added = asking(brain, new_proposals(brain, self._pages, decisions.ask))
            changes += added
        refused = tuple(decisions.refused)
        # recorded, so that no model is paid for the same answer twice, and the same refusals are journaled once
        is_new_question = self._question_hash != self._history.asked and bool(refused or self._has_model)
        if not changes and not self._usage.lines and not is_new_question:
            return Outcome(refused=refused)
        self._progress(f"writing {len(changes)} files")
        usage, done = self._usage, list[events.OrganizedAction]()
        for action in decisions.do:
            uuids, to = zip(
                *((self._pages.memories[path].uuid, draft.place(path)) for path in action.paths), strict=True
            )
            done.append(
                events.OrganizedAction(action=action.kind, uuids=uuids, from_=action.paths, to=to, reason=action.reason)
            )
        organized = events.MemoryOrganized(
            lines=usage.lines,
            used={uuid: (day, usage.cited[uuid]) for uuid, day in sorted(usage.used.items())},
            together=tuple((first, second, times) for (first, second), times in sorted(usage.together.items())),
            asked=self._question_hash,
            done=tuple(done),
            statements=statements,
            proposals=proposals,
            refused=refused,
        )
        # again where only the access log has grown meanwhile: lines added since stay in it
        removal = partial(log_removal, brain, usage)
        event = brain.retry(lambda: brain.commit(organized, by=NAME, changes=[*changes, *removal()]))
        self._progress("deriving manifests")
        derive_manifests(brain, folders_of(changes), cause=event.id)
        sentences = tuple(proposal.what for proposal in proposals if not proposal.waits)
        return Outcome(tuple(decisions.do), sentences, refused, self._usage.lines, event.id)


def new_proposals(brain: Brain, pages: PageSet, actions: list[Action]) -> Iterator[events.OrganizeProposal]:
    """Yield proposals for actions; a page is not proposed for the same action again until its text changes.

    Args:
        brain: The brain.
        pages: All pages.
        actions: The actions that need the person's consent.
    """
    # one that expired was wanted, so that it may be made again; one that lapsed was not
    earlier = {
        (asked.record.action, uuid, digest)
        for asked in asked_before(brain).values()
        if isinstance(asked.record, events.OrganizeProposal) and asked.how != "expired"
        for uuid, _, digest in asked.record.pages
    }
    for action in actions:
        memories = [pages.memories[path] for path in action.paths]
        rows = [(page.uuid, page.path, text_digest(page.text)) for page in memories]
        rows = [(uuid, path, digest) for uuid, path, digest in rows if (action.kind, uuid, digest) not in earlier]
        if not rows:
            continue
        verb = _WORDS.get(action.kind, "Move to {target}").format(target=f"`{action.target}`")
        names = ", ".join(f"`{path}`" for _, path, _ in rows[:_SHOWN])
        more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        yield events.OrganizeProposal(
            id=events.new_id(),
            what=f"{verb} {names}{more}" + (f" ({action.reason})" if action.reason else ""),
            action=action.kind,
            pages=tuple(rows),
            target=action.target,
            is_private=any(page.is_private for page in memories),
        )


def text_digest(text: str) -> str:
    """Return the hash of a page's text, by which a proposal recognizes that the page is unchanged."""
    return events.content_hash(text.encode("utf-8", "surrogateescape"))
