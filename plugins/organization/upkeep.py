"""Upkeep between organizations: links, new pages, index pages, and the proposals decided in `review.md`."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import ConflictError, FormatError, LockedError, ModelError
from brainiac.events import Change, Event, FileChange, PathKind, new_id, update
from brainiac.formats.page import MemoryDocument, new_memory, parse_memory
from brainiac.history import forget
from brainiac.history.copies import changes_for_copy, is_moved
from brainiac.history.digest import write_digest
from brainiac.history.why import folded
from brainiac.llm.gate import Gate, is_hidden
from brainiac.storage.links import MENTIONS, Draft, Mentions
from brainiac.storage.pages import PageSet, linked_path
from brainiac.storage.review import (
    asked_before,
    asking,
    decisions_in,
    find_ticks,
    lapses,
    room_for,
    with_proposals,
    without_proposals,
)
from brainiac.storage.statements import StatementLog, text_hash, without_fact

from .run import ATTEMPTS, NAME, Action, carry_out, derive_manifests, folders_of, organize, text_digest
from .usage import UsageHistory, read_history

EVERY_HOURS = 4  # a run also where each quiet is short
RETRY_SECONDS = 600.0  # after a run that failed, so that a failing model is not called all the time
MANY_NAMES = 50  # of more, no page is searched for each name: all mentions are derived anew, which is faster
COMPLETED_AT_ONCE = 200  # pages a commit
LAPSE_DAYS = 30  # a line of `review.md` that nobody decided for so long goes
_Revision = tuple[list[Change], tuple[events.StatementRecord, ...]]  # what carries a proposal out; none where it cannot
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED, PathKind.INDEX_PAGE})


@dataclass(slots=True)
class _Pending:
    """What is still to be put in order.

    Attributes:
        is_all: Every page and every folder, as at a start.
        new_paths: Pages that a person made or changed.
        mention_targets: Pages that appeared or left, so that other pages have to mention them, or no longer.
        folders: Folders whose index pages have to be derived anew.
        are_links_due: Links may lead to where a page no longer is.
    """

    is_all: bool = False
    new_paths: set[str] = field(default_factory=set)
    mention_targets: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    are_links_due: bool = False


class Upkeep:
    """Keeps pages, links and index pages of one running brain in order; it begins with all of them.

    Args:
        brain: The brain.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain, self._pending = brain, _Pending(is_all=True)
        self._failed_at: datetime | None = None
        self._told = ("", "")  # day and last event when `Today.md` was written
        last = next(brain.journal.events(kinds={events.MemoryOrganized}, reverse=True), None)
        self._started_at = brain.clock.now()
        self._last_at = parse_iso(last.at) if last else None

    # --- changes that the hooks report ------------------------------------------------------------------

    def note_page(self, path: str, *, has_appeared_or_left: bool = False) -> None:
        """Note that a page was made, changed, moved or removed: the index page of its folder is out of date.

        Args:
            path: Where it is, or was.
            has_appeared_or_left: Whether it was not there before, or is not there now.
        """
        self._pending.folders.add(posixpath.dirname(path))
        if has_appeared_or_left:
            self._pending.mention_targets.add(path)

    def note_change(self, change: FileChange) -> None:
        """Note a file that a person changed; a move has its links repaired at once, a tick is carried out at once."""
        if change.kind in (PathKind.REVIEW, PathKind.TODAY):
            settle_reviews(self._brain)
            return
        if change.kind not in _PAGES:
            return
        self.note_page(change.path)
        if change.kind is PathKind.INDEX_PAGE:
            self.note_page(posixpath.dirname(change.path))
        if change.old_path is not None:
            self.note_page(change.old_path)
            pages, moved = self._brain.pages(), {change.old_path: change.path}
            if change.path in pages.pages:  # else nobody knows whether it is private
                linking = (pages.linking_to.get(path, ()) for path in (change.path, change.old_path))
                paths = {change.path, self._brain.tree.relative(self._brain.tree.short_term)}.union(*linking)
                with suppress(ConflictError):  # a page is being saved: the next quiet tries again
                    repair_links(self._brain, pages, paths, moved)
            self._pending.are_links_due = True
        elif change.action == "deleted":
            self._ask_about(change)
        else:
            self._pending.new_paths.add(change.path)
            self._pending.are_links_due = True  # it may be a page that was moved and edited at once

    def _ask_about(self, change: FileChange) -> None:
        """Propose to forget the exchanges that a page was made from, where a person deleted it and did not move it."""
        if change.kind is not PathKind.MEMORY or change.is_ours:  # ours: a commit removed it, as `forget` does
            return
        brain = self._brain
        brain.projection.follow()
        sql = "SELECT before FROM changes WHERE path = ? AND after IS NULL ORDER BY event DESC LIMIT 1"
        # of an off-the-record page the journal has no text, and there is nothing to ask
        if (text := brain.kept_text(brain.projection.value(sql, change.path))) is not None:
            with suppress(FormatError):
                standing = brain.pages().by_uuid.get(parse_memory(change.path, text).uuid, [])
                if {change.path}.issuperset(standing):  # else it was moved
                    forget.ask_about_deleted(brain, change.path, text)

    # --- work while it is quiet -------------------------------------------------------------------------

    def tend(self) -> None:
        """Settle the review, complete new pages, repair links, derive index pages; a page being edited waits."""
        brain = self._brain
        settle_reviews(brain)
        tidy_review(brain)
        self._tell_today()
        if self._pending == _Pending():
            return
        # replaced first: what other threads add from here on is for the next call
        pending, self._pending = self._pending, _Pending()
        pages, history, now = brain.pages(), read_history(brain), brain.clock.now()
        if pending.is_all:
            pending.new_paths, pending.folders, pending.are_links_due = set(pages.memories), set(pages.children), True
        new_paths = pending.new_paths & pages.memories.keys()
        if complete(brain, pages, history, new_paths):
            pages = brain.pages()  # a copied page has a uuid of its own now, which links have to be resolved by
        if pending.are_links_due:
            astray = [
                path
                for path, page in pages.pages.items()
                if any(link.uuid and pages.target(page, link) != linked_path(link, path) for link in page.links)
                and history.is_resting(path, now)
            ]
            with suppress(ConflictError):
                repair_links(brain, pages, astray)
        # at a start every page is in `new_paths`, though few of them are new
        targets = pending.mention_targets if pending.is_all else pending.mention_targets | new_paths
        if targets and not derive_mentions(brain, pages, history, targets):
            self._pending.mention_targets |= targets  # a page is being edited: the next call tries again
        derive_manifests(brain, pending.folders | set(map(posixpath.dirname, new_paths)))
        being_edited = {path for path in new_paths if not history.is_resting(path, now)}
        self._pending.new_paths |= being_edited
        self._pending.are_links_due |= bool(being_edited)

    def _tell_today(self) -> None:
        """Bring `Today.md` up to date where something was recorded since, or a day began; not while it is edited."""
        brain, path = self._brain, self._brain.tree.relative(self._brain.tree.today)
        last = next(brain.journal.events(reverse=True), None)
        state = brain.now().date().isoformat(), last.id if last else ""
        if not brain.settings.today or state == self._told:
            return
        if read_history(brain).is_resting(path, brain.clock.now()):
            self._told = state
            write_digest(brain)

    def is_due(self, idle_seconds: float) -> bool:
        """Return whether to organize: once in each long quiet, every few hours, or when the log has grown."""
        settings, now = self._brain.settings.organization, self._brain.clock.now()
        if self._failed_at and now - self._failed_at < timedelta(seconds=RETRY_SECONDS):
            return False
        # new where the last run was before this quiet began
        is_new_quiet = self._last_at is None or now - self._last_at >= timedelta(seconds=idle_seconds)
        if idle_seconds >= settings.idle_seconds and is_new_quiet:
            return True
        if now - (self._last_at or self._started_at) >= timedelta(hours=EVERY_HOURS):
            return True
        with suppress(FileNotFoundError), open(self._brain.tree.access_log, "rb") as log:
            # lines of whichever program; read no further than needed
            return sum(1 for _ in islice(log, settings.min_entries)) >= settings.min_entries
        return False

    def organize(self) -> None:
        """Organize now, unless somebody does; the run ends early when somebody exchanges something meanwhile."""
        brain, last = self._brain, self._brain.answered.last_exchange_at
        try:
            outcome = organize(brain, abandon=lambda: brain.answered.last_exchange_at != last)
        except LockedError:
            return  # somebody runs `brainiac organize`
        except (ModelError, ConflictError):
            self._failed_at = brain.clock.now()
            raise
        self._last_at, self._failed_at = brain.clock.now(), None
        # the commit repaired no links on pages that a person was editing
        self._pending.are_links_due |= bool(outcome.done)
        brain.log.info("organized", done=len(outcome.done), asked=len(outcome.asked), refused=len(outcome.refused))


# --- notes that a person put into long-term memory ---------------------------------------------------------


def complete(brain: Brain, pages: PageSet, history: UsageHistory, paths: Iterable[str]) -> bool:
    """Add the front matter keys that pages lack, and give the newer of two pages with one uuid a new one.

    Args:
        brain: The brain.
        pages: All pages.
        history: Which page came first, and when a person last edited one.
        paths: The pages to complete; one that was edited within the last minute is left out.

    Returns:
        Whether a page was changed.
    """
    is_changed, waiting = False, list[events.Change]()
    for path in sorted(set(paths) & pages.memories.keys()):
        page = pages.memories[path]
        # a page with an edit that was not observed yet may have been edited just now
        is_as_seen = brain.observed.hash_of(path) == text_digest(page.text)
        if not is_as_seen or not history.is_resting(path, brain.clock.now()):
            continue
        try:
            document = MemoryDocument(page.text, path).with_missing_keys(new_id(), brain.written_at(path))
            standing = pages.by_uuid.get(page.uuid, [])
            # a page that no journal names counts as the oldest
            oldest = min(standing, key=lambda path: (history.order.get(path, 0), path), default=path)
            # the copy of an older one with the same uuid, and not that page itself, moved
            if oldest != path and not is_moved(brain, path, page.uuid, standing):
                document = document.set_meta(uuid=new_id())
        except FormatError:
            continue
        if str(document) != page.text:
            waiting.append(update(path, page.text, str(document)))
    while batch := waiting[:COMPLETED_AT_ONCE]:
        try:
            brain.commit(events.TreeTidied(what="note"), by=NAME, changes=batch)
            is_changed = True
            waiting = waiting[len(batch) :]
        except ConflictError as error:  # somebody saved some of them: these wait, the others do not
            saved = set(error.paths).intersection(change.path for change in batch)
            waiting = [change for change in waiting if change.path not in saved] if saved else waiting[len(batch) :]
    return is_changed


# --- links -------------------------------------------------------------------------------------------------


def repair_links(brain: Brain, pages: PageSet, paths: Iterable[str], moved: Mapping[str, str] | None = None) -> None:
    """Have links on pages lead to the page with their uuid, or to where a person moved a file, in one commit.

    Args:
        brain: The brain.
        pages: All pages.
        paths: Of the pages whose links to repair; short-term memory may be among them.
        moved: Old path to new one, of a page that a person moved.

    Raises:
        ConflictError: Somebody saved one of them meanwhile; nothing was changed.
    """
    draft = Draft(brain, pages)
    hidden = [path for path in (moved or {}).values() if is_hidden(brain.tree, path)]
    draft.repair_links(sorted(paths), moved, hidden)
    if changes := draft.changes(indexes="none"):
        brain.commit(events.TreeTidied(what="links", moved=moved or {}), by=NAME, changes=changes)


def derive_mentions(brain: Brain, pages: PageSet, history: UsageHistory, paths: Collection[str]) -> bool:
    """Bring the `mentions` of changed pages up to date, and of the pages that name them.

    Args:
        brain: The brain.
        pages: All pages.
        history: When a person last edited a page.
        paths: The changed pages, and those that were removed.

    Returns:
        Whether all are up to date; false where a page is being edited, so that this has to be done again.
    """
    # a page that names one of them has its title; of a removed page it still has the beginning of the link
    titles = [pages.memories[path].title for path in paths if path in pages.memories]
    removed = (posixpath.basename(path).removesuffix(".md") for path in paths if path not in pages.memories)
    names = [*titles, *(f"{name}|" for name in removed)]
    mentions = Mentions(pages.memories.values(), pages.root)
    changes, now, is_complete = [], brain.clock.now(), True
    for path, page in pages.memories.items():
        may_name = len(names) > MANY_NAMES or any(name in page.text for name in names)
        links = mentions.renewed(page) if path in paths or may_name else None
        if links is None:
            continue
        if not history.is_resting(path, now):
            is_complete = False
            continue
        with suppress(FormatError):  # front matter that no key can be added to: the page stays as it is
            after = MemoryDocument(page.text, path).set_meta(**{MENTIONS: links})
            changes.append(update(path, page.text, str(after)))
    try:
        if changes:
            brain.commit(events.TreeTidied(what="mentions"), by=NAME, changes=changes)
    except ConflictError:
        return False
    return is_complete


# --- decisions of a person in review.md --------------------------------------------------------------------


def settle_reviews(brain: Brain) -> list[Event]:
    """Carry out the proposals that a person ticked in `review.md` or `Today.md`, and note those they declined, once.

    The proposal in the journal is carried out; the text of its line may have been edited.

    Returns:
        The events, one for each decided proposal.
    """
    # of a mark in one of the files and another one in the other neither counts, as for two in one file
    text = "\n".join(brain.read_text(path) or "" for path in (brain.tree.review, brain.tree.today))
    # only the mark and the id count: what is carried out is the journaled proposal, whatever the line says by now
    if not decisions_in(text) and "<!-- proposals:" not in text:
        return []
    lapsed = {name for name, asked in asked_before(brain).items() if asked.how == "lapsed"}
    return decide(brain, decisions_in(text, lapsed))


def decide(brain: Brain, decisions: Mapping[str, bool]) -> list[Event]:
    """Do and note what a person decided on proposals, each once; several together can be undone as one.

    Args:
        brain: The brain.
        decisions: Whether they want it done, by the proposal's id.

    Returns:
        The events, one for each decided proposal.
    """
    asked, recorded = asked_before(brain), list[Event]()
    # once: the line may stand there ticked for weeks, or come back by a sync; what only lapsed can be ticked
    due = [name for name in decisions if name in asked and asked[name].how in ("", "lapsed")]
    cause = brain.record(events.ReviewSettled(count=len(due)), by="person").id if len(due) > 1 else None
    for name in due:
        proposal, by = asked[name].record, asked[name].by
        decided = events.ProposalDecided(proposal=name, how="applied" if decisions[name] else "declined")
        if not decisions[name]:
            recorded.append(brain.record(decided, by="person", cause=cause))
        elif isinstance(proposal, events.RetireProposal) and not proposal.block:
            # only exchanges say it: no file changes, and recall says of them what holds now
            recorded.append(brain.record(decided, by=by, cause=cause))
        elif isinstance(proposal, events.ForgetProposal):
            try:
                done = forget.carry_out_proposal(brain, proposal, cause=cause)
            except forget.MoreGoesError:  # it is asked anew
                recorded.append(brain.record(replace(decided, how="expired"), by="person", cause=cause))
                continue
            recorded.append(brain.record(decided, by="person", cause=done.id if done else cause))
        else:
            recorded.append(_apply(brain, proposal, by, cause))
    return recorded


def _apply(brain: Brain, proposal: events.ProposalRecord, by: str, cause: str | None) -> Event:
    """Carry out a proposal on the present pages.

    Where they changed since it was made, or somebody saved one at each of `ATTEMPTS` attempts, record its expiry.
    """
    for _ in range(ATTEMPTS):
        changes, statements = _changes_for(brain, proposal)
        if not changes:  # its target changed since
            break
        try:
            applied = events.ProposalDecided(proposal=proposal.id, how="applied", statements=statements)
            event = brain.commit(applied, by=by, changes=changes, cause=cause)
        except ConflictError:
            continue
        derive_manifests(brain, folders_of(changes), cause=event.id)
        return event
    return brain.record(events.ProposalDecided(proposal=proposal.id, how="expired"), by=by, cause=cause)


def _changes_for(brain: Brain, proposal: events.ProposalRecord) -> _Revision:
    """Return what carries a proposal out on the present pages; nothing where they changed since it was made."""
    match proposal:  # one to forget is carried out by `decide`
        case events.CopyProposal():
            return changes_for_copy(brain, proposal), ()
        case events.RetireProposal() | events.ReplaceProposal():
            return _revision(brain, proposal)
        case events.OrganizeProposal():
            pages, history, now = brain.pages(), read_history(brain), brain.clock.now()
            paths = tuple(pages.path_by_uuid.get(uuid, "") for uuid, _, _ in proposal.pages)
            texts = [pages.memories[path].text if path in pages.memories else None for path in paths]
            # the person agreed to a change of the pages as they were then
            if [text is not None and text_digest(text) for text in texts] == [digest for *_, digest in proposal.pages]:
                actions = [Action(proposal.action, paths, proposal.target)]
                draft, statements = carry_out(brain, pages, actions, lambda path: history.is_resting(path, now))
                return draft.changes(indexes="none"), statements
    return [], ()


def _revision(brain: Brain, proposal: events.RetireProposal | events.ReplaceProposal) -> _Revision:
    """Return the changes that move a statement to History, write another wording in its place, or write a new one.

    Nothing where the statement was changed meanwhile. Of another wording of a statement that a process wrote there is a
    record too, so that processes may go on changing it.
    """
    draft, statement = Draft(brain, pages := brain.pages()), pages.statement(proposal.page, proposal.block)
    path = pages.path_by_uuid.get(proposal.page, proposal.path)
    page, old = pages.memories.get(path), statement.text if statement and not statement.is_history else ""
    if proposal.block and (page is None or not old or text_hash(old) != proposal.hash):
        return [], ()
    if isinstance(proposal, events.RetireProposal):
        assert page is not None  # it has a block id
        # a block id names a statement of the same page
        replaced_by = proposal.replaced_by if proposal.held_by in ("", proposal.page) else ""
        draft.put(MemoryDocument(page.text, path).retire(proposal.block, proposal.on, replaced_by))
        return [*draft.changes(indexes="none"), *without_fact(brain, old)], ()
    is_private_by_now = any(map(Gate(brain).is_private_by_now, proposal.sources))
    is_elsewhere = page and not proposal.block and page.is_private != proposal.is_private
    if is_private_by_now > proposal.is_private or is_elsewhere:
        return [], ()  # its words, or its page, became private since, or open
    others = (other for other in pages.memories.values() if other.is_private == proposal.is_private)
    standing = (row.text for other in others for row in other.current_statements)
    if not proposal.block and folded(proposal.text) in map(folded, standing):
        return [], ()  # it was said again, and stands by now
    privacy: dict[str, Any] = {"private": True} if proposal.is_private else {}
    now = iso(brain.clock.now())
    if not page:
        draft.new(path, new_memory(proposal.title, uuid=new_id(), now=now, **privacy))
    document = MemoryDocument(draft.read(path) or "", path)
    block = document.block_id_for(proposal.text)
    document = document.add_statement(proposal.text, block)
    replaced = None
    if proposal.block:
        document = document.retire(proposal.block, proposal.on, block)
        replaced = events.StatementRef(block=proposal.block, hash=proposal.hash, history=proposal.block)
    draft.put(document)
    changes = draft.changes(indexes="none")
    if statement and not StatementLog(brain).is_ours(proposal.page, statement):
        return changes, ()
    row = events.StatementRecord(
        operation="UPDATE" if replaced else "NEW",
        path=path,
        page=document.memory.uuid or path,
        block=block,
        hash=text_hash(proposal.text),
        since=proposal.on,
        origin="person",  # who ticked it made it theirs
        sources=proposal.sources,
        reasoning=proposal.reason,
        replaced=replaced,
    )
    return changes, (row,)


def tidy_review(brain: Brain) -> None:
    """Remove the lines of decided proposals from `review.md`, unless a person edited it within the last minute.

    One that nobody decided for `LAPSE_DAYS` days is noted as lapsed and goes too, unless its box was touched. Proposals
    that wait get their lines where there is room.
    """
    path, now = brain.tree.relative(brain.tree.review), brain.clock.now()
    before = brain.read_text(path) or ""
    ticks, asked = find_ticks(before), asked_before(brain)
    n_waiting = sum(each.record.waits and not each.how for each in asked.values())
    if not (ticks or n_waiting) or not read_history(brain).is_resting(path, now):
        return
    untouched = {tick.id for tick in ticks} - {tick.id for tick in ticks if tick.mark != " "}
    gone = {name for name, each in asked.items() if each.how and (each.how != "lapsed" or name in untouched)}
    since = iso(now - timedelta(days=LAPSE_DAYS))
    for name in sorted(untouched & asked.keys() - gone):
        if asked[name].at <= since and lapses(asked[name].record):
            brain.record(events.ProposalDecided(proposal=name, how="lapsed"), by=NAME)
            gone.add(name)
    after = with_proposals(without_proposals(before, gone), n_waiting=n_waiting) if before else ""
    if after != before:
        brain.commit(events.TreeTidied(what="review"), by=NAME, changes=[update(path, before, after)])
    # not looked at without need: each of them is carried out for a try
    records, changes = asking(brain, still_waiting(brain) if n_waiting and room_for(brain, asked) else ())
    if shown := tuple(record for record in records if not record.waits):
        brain.commit(events.ProposalMade(proposals=shown), by=NAME, changes=changes)


def still_waiting(brain: Brain) -> list[events.ProposalRecord]:
    """Return the proposals without a line that can still be done, private where something of them is by now.

    What the others are about or rest on has changed since: they are noted as expired.
    """
    ready, gate = [], Gate(brain)
    undecided = [asked for asked in asked_before(brain).values() if not asked.how and asked.record.waits]
    sql = "SELECT exchange FROM filings WHERE is_gone AND event NOT IN (SELECT event FROM undone)"
    gone = {name for (name,) in brain.projection.query(sql)} if undecided else set[str]()
    for asked in undecided:
        record, sources = asked.record, getattr(asked.record, "sources", ())
        is_gone = not record.what or not gone.isdisjoint(sources)  # purged, or it rests on what was forgotten
        is_told = isinstance(record, events.RetireProposal) and not record.block
        if is_gone or not (is_told or isinstance(record, events.ForgetProposal) or _changes_for(brain, record)[0]):
            brain.record(events.ProposalDecided(proposal=record.id, how="expired"), by=asked.by)
        else:
            is_private = record.is_private or any(map(gate.is_private_by_now, sources))
            ready.append(replace(record, is_private=is_private))
    return ready
