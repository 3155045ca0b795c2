"""What memory learned, changed, ended, moved, refused, asked and forgot, derived from the journal and the pages.

All words come from the pages, never from the journal: what was forgotten or purged is on no page, so it cannot appear
here. Private changes are only counted. `logs/digest.md` is written anew after each run, and whenever something is
forgotten or undone.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, cached_property
from itertools import groupby
from typing import Any, NamedTuple

from brainiac import events
from brainiac.clock import iso
from brainiac.errors import BrainiacError, storage_trouble
from brainiac.events import Event, StatementRecord, StatementRef, content_hash
from brainiac.formats.markdown import PRIVATE, format_link, one_line
from brainiac.formats.page import STEPS, Memory, Statement, parse_exchanges
from brainiac.storage.causes import paths_now, undone_events
from brainiac.storage.files import Disk, temporary_beside
from brainiac.storage.review import Asked, asked_before, decisions_in, find_ticks
from brainiac.storage.statements import text_hash
from brainiac.storage.store import Store
from brainiac.storage.today import DAYS as TODAY_DAYS
from brainiac.storage.today import write_today

NAME = "digest.md"
DAYS = 30  # that the file tells of
MAX_LINES = 400
# what is forgotten, and the word for each in messages
FORGOTTEN_PARTS = {"exchanges": "exchange", "blocks": "statement", "items": "item", "pages": "page", "answers": "file"}
_TASKS = {"open": "opened", "tick": "done", "drop": "dropped"}
_SIGNS = {"learned": "+", "changed": "~", "ended": "-", "over": "-"}
FIRST_LINE = "<!-- Derived, and written anew after each run; a copy that you change is moved aside. Checksum: {} -->\n"
PAGES = frozenset({events.PathKind.MEMORY, events.PathKind.ARCHIVED})
KINDS = (
    events.MemoryPromoted,
    events.MemoryOrganized,
    events.ProposalDecided,
    events.StatementCorrected,
    events.StatementsEnded,
    events.ExchangeForgotten,
    events.MemoryForgotten,
)


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One change of memory, or one question to the person.

    Attributes:
        at: When, ISO 8601.
        what: `learned`, `changed`, `ended`, `over` (its last day has passed), `restored` (by `brainiac undo`), `moved`,
            `refused`, `asked`, `lapsed` (asked, and undecided for 30 days), `forgotten`; `task opened`, `task done`,
            `task dropped`.
        text: The statement, or what was moved, refused or asked; "" for what was forgotten.
        before: The former wording or path; "" where there was none.
        path: The page that has it; "" for a refusal, a question, or what was forgotten.
        title: The title of that page.
        reason: Why it was refused or moved, how much was forgotten, or that it was edited since; "" for none of them.
        event: Id of the event, by which `brainiac undo` takes it back; "" where there is nothing to take back.
        statement: The name of the statement, `path#^block`, by which `brainiac undo` takes back this line alone; ""
            where another one holds instead or it ended since, and for what is no statement.
        is_part: Whether to undo the event would take back more than this line, as for the event of a run.
    """

    at: str
    what: str
    text: str
    before: str = ""
    path: str = ""
    title: str = ""
    reason: str = ""
    event: str = ""
    statement: str = ""
    is_part: bool = False

    @property
    def undo(self) -> str:
        """The command that takes back this line alone; "" where there is none."""
        if self.statement:
            return f"brainiac undo {shlex.quote(self.statement)}"
        return f"brainiac undo {self.event}" if self.event and not self.is_part else ""

    def sentence(self, *, is_short: bool = False) -> str:
        """Return the change as a sentence, without its page and its undo.

        Args:
            is_short: Below its page: with a sign for what happened, where there is one.
        """
        words = " → ".join(f"“{text}”" for text in (self.before, self.text) if text)
        sign = _SIGNS.get(self.what, "") if is_short and words else ""
        what = f"{sign} {words}" if sign else self.what + (f": {words}" if words else "")
        return what + (f" ({self.reason})" if self.reason else "")


@dataclass(slots=True)
class Digest:
    """The changes of memory since a moment.

    Attributes:
        lines: Newest first.
        withheld: The number of private changes, which are not among the lines.
    """

    lines: list[DigestLine] = field(default_factory=list)
    withheld: int = 0

    def runs(self) -> Iterator[tuple[list[list[DigestLine]], str]]:
        """Yield the lines of each run, page by page, with the command that undoes all of it.

        Pages come in the order of their first lines. A line without a page is by itself, and so is each that is of no
        run; the command is "" for these.
        """
        for event, lines in groupby(self.lines, key=lambda line: line.event if line.is_part else ""):
            pages: dict[str, list[DigestLine]] = {}
            for number, line in enumerate(lines):
                pages.setdefault((event and line.path) or str(number), []).append(line)
            yield list(pages.values()), f"brainiac undo {event}" if event else ""


def count_forgotten(what: Any) -> str:
    """Return how many exchanges, statements and so on are forgotten, in words.

    Args:
        what: A target of forgetting, or an event that took one out.
    """
    parts = {name: getattr(what, name, ()) for name in FORGOTTEN_PARTS}
    if isinstance(what, events.MemoryForgotten):
        parts["pages"] = (what.path,)
    counts = [(len(part), FORGOTTEN_PARTS[name]) for name, part in parts.items() if part]
    return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts) or "nothing"


def write_digest(store: Store) -> None:
    """Write `logs/digest.md` and `memory/Today.md` anew; a failure is only logged.

    A copy of the digest that a person changed is moved aside first; `Today.md` is merged.
    """
    since = iso(store.clock.now() - timedelta(days=DAYS))
    try:
        digest = digest_since(store, since)
        write_today(store, list(_lately(store, digest)))
        text = _rendered(store, digest)
        with storage_trouble():
            path, disk = store.tree.logs / NAME, Disk()
            content = path.read_text("utf-8", "replace") if path.exists() else None
            first, _, rest = (content or "").partition("\n")
            if content is not None and f"{first}\n" != _first_line_of(rest):  # their words stay
                os.replace(path, path.with_name(f"digest-edited-{content_hash(content.encode())[:8]}.md"))
            draft = path.parent / posixpath.basename(temporary_beside(str(path)))
            disk.write(draft, f"{_first_line_of(text)}{text}".encode(), mode=0o666)
            os.replace(draft, path)
    # the run itself is committed by now: it must not count as failed for want of a report
    except (BrainiacError, OSError) as error:
        store.log.warning("digest_not_written", problem=str(error))


def _lately(store: Store, digest: Digest) -> Iterator[str]:
    """Yield the open changes of the last days for `Today.md`, newest first; what is asked waits in a section there."""
    since, folder = iso(store.clock.now() - timedelta(days=TODAY_DAYS)), store.tree.relative(store.tree.memory)
    for line in digest.lines:
        if line.at >= since and line.what != "asked":
            link = format_link(line.title, posixpath.relpath(line.path, folder), "") if line.path else ""
            yield f"{store.day_of(line.at)}: {line.sentence()} {link}".rstrip()


def _first_line_of(text: str) -> str:
    """Return the line above a digest, with its checksum."""
    return FIRST_LINE.format(content_hash(text.encode())[:16])


class _Text(NamedTuple):
    """A statement on a page: the page, its words on one line, whether they are private, and the statement."""

    page: Memory | None
    text: str
    is_private: bool
    statement: Statement | None = None


_NO_TEXT = _Text(None, "", is_private=False)


def digest_since(store: Store, since: str, most: int = 0) -> Digest:
    """Return the changes on this device since a moment, those that were undone left out.

    Args:
        store: Whose journal and pages.
        since: The moment, ISO 8601.
        most: About how many lines at most, the newest, for the person alone; 0 for `MAX_LINES`, for a file, which may
            be read by others.
    """
    undone, reader = undone_events(store), _Reader(store, is_quick=most > 0)
    for event in store.journal.events(kinds=set(KINDS), reverse=True, since=since):
        if len(reader.digest.lines) >= (most or MAX_LINES):
            break
        if event.id not in undone:
            reader.add_event(event)
    return reader.digest


class _Reader:
    """Collects the lines of a digest from the events of this device's journal, newest first.

    Args:
        store: Whose journal and pages.
        is_quick: Whether to read only the pages that the events changed, where they stand by now: of what they wrote,
            only a newer event, or a person, can have put something on another page. Words that stand on a private page
            too are told then.
    """

    def __init__(self, store: Store, *, is_quick: bool) -> None:
        self._store, self._is_quick, self.digest = store, is_quick, Digest()
        self._hashes: set[str] = set()  # of the statements that newer events wrote
        self._looked_at: set[str] = set()
        self._pages: Mapping[str, Memory] = {}
        self._path_by_uuid: Mapping[str, str] = {}
        # the statements on pages by the hash of their text; of several with the same text a private one, so that
        # nothing private is shown; else one that holds now
        self._texts: dict[str, _Text] = {}

    def _read(self, paths: Iterable[str]) -> None:
        """Read the pages that stood at these paths, where they stand now; or all, once."""
        found = paths_now(self._store, paths) - self._looked_at if self._is_quick else set[str]()
        self._looked_at |= found
        if not found and (self._is_quick or self._pages):
            return
        read = self._store.pages(found if self._is_quick else None)
        self._pages, self._path_by_uuid = {**self._pages, **read.pages}, {**self._path_by_uuid, **read.path_by_uuid}
        for page in read.pages.values():
            for statement in page.statements:
                digest = text_hash(statement.text)
                text = _Text(page, one_line(statement.text), page.is_private, statement)
                other = self._texts.setdefault(digest, text)
                is_other_ended = other.statement is not None and other.statement.is_history
                if text.is_private or (is_other_ended and not other.is_private):
                    self._texts[digest] = text

    def _tell(self, line: DigestLine | None) -> None:
        """Add a line; None for one that is only counted, as it is or may be private."""
        if line is None:
            self.digest.withheld += 1
        else:
            self.digest.lines.append(line)

    def _page(self, uuid: str) -> Memory | None:
        return self._pages.get(self._path_by_uuid.get(uuid, "")) if uuid else None

    def add_event(self, event: Event) -> None:
        """Add the lines of one event."""
        self._read(change.path for change in event.changes)
        match event.what:
            case events.MemoryPromoted(statements=statements, refused=refused, proposals=proposals, tasks=tasks):
                self._add_statements(event, statements)
                for task in tasks:
                    if text := self._items.get(task.hash):
                        what = f"task {_TASKS[task.action]}"
                        self._tell(DigestLine(event.at, what, text, event=event.id, is_part=True))
                self._add_refused(event, refused)
                self._add_proposals(event, proposals)
            case events.MemoryOrganized(proposals=proposals):
                self._add_moves(event)
                self._add_proposals(event, proposals)
            case events.ProposalDecided(how="applied", proposal=proposal, statements=statements):
                self._add_statements(event, statements or list(self._proposed(proposal)))
                self._add_moves(event)
            case events.ProposalDecided(how="lapsed", proposal=proposal):
                self._add_lapsed(event, proposal)
            case events.StatementCorrected(statements=statements) | events.StatementsEnded(statements=statements):
                self._add_statements(event, statements)
            case events.ExchangeForgotten() | events.MemoryForgotten() as forgotten:
                blobs, count = self._store.journal.blobs, count_forgotten(forgotten)
                is_purged = any(change.before and change.before not in blobs for change in event.changes)
                undoable = "" if is_purged else event.id
                self._tell(DigestLine(event.at, "forgotten", "", reason=count, event=undoable))

    def _add_statements(self, event: Event, rows: Sequence[StatementRecord]) -> None:
        """Add a line for each statement that was written, changed or ended.

        One that an event ended on one page and wrote on another in the same words was moved.
        """
        moved = {row.hash for row in rows if row.operation == "NEW"}
        moved &= {row.replaced.hash for row in rows if row.operation == "DELETE" and row.replaced}
        replaced = {row.replaced.hash for row in rows if row.operation == "UPDATE" and row.replaced}
        # of corrections only undo adds a statement: one that was there before
        added = "restored" if isinstance(event.what, events.StatementCorrected) else "learned"
        ended = "over" if isinstance(event.what, events.StatementsEnded) else "ended"
        names = {"NEW": added, "UPDATE": "changed", "DELETE": ended}
        for row in rows:
            former = row.replaced.hash if row.replaced else ""
            # the `DELETE` of a moved statement is no line of its own, nor is what was only said until it was corrected
            is_passed = row.operation == "NEW" and row.hash in replaced
            if row.operation in names and former not in moved and not is_passed:
                self._add_line(event, "moved" if row.hash in moved else names[row.operation], row, former)

    def _proposed(self, proposal: str) -> Iterator[StatementRecord]:
        """Yield what a proposal did to a person's own statement, of which its event has no record."""
        match self._asked.get(proposal):
            case Asked(record=events.RetireProposal(block=block, hash=former)):
                yield StatementRecord(
                    operation="DELETE", replaced=StatementRef(block=block, hash=former, history=block)
                )
            case Asked(record=events.ReplaceProposal(block=block, hash=former, text=text)):
                replaced = StatementRef(block=block, hash=former, history=block)
                yield StatementRecord(operation="UPDATE", hash=text_hash(text), replaced=replaced)

    @cached_property
    def _asked(self) -> dict[str, Asked]:
        return asked_before(self._store)

    def _add_lapsed(self, event: Event, name: str) -> None:
        """Add a proposal that nobody decided; it is counted where what it quotes is private, or was forgotten."""
        proposal = self._asked[name].record if name in self._asked else None
        uuids, sources, former, text = set[str](), tuple[str, ...](), "", one_line(proposal.what) if proposal else ""
        match proposal:
            case events.OrganizeProposal(pages=rows, is_private=False):
                uuids, stands = {uuid for uuid, _, _ in rows}, "all stays where it is"
            case events.RetireProposal(page=page, held_by=held_by, sources=sources, hash=former, is_private=False):
                uuids, stands = {page, held_by} - {""}, "both stand" if proposal.words else "it stands"
            case events.ReplaceProposal(page=page, sources=sources, hash=former, is_private=False):
                uuids, stands = {page} - {""}, "it stands as it was" if former else "it was not written"
            case events.ForgetProposal(is_private=False):  # no word of it, as it stays hidden
                text, stands = "", f"{count_forgotten(proposal)} stay hidden, and are not destroyed"
            case _:
                self._tell(None)
                return
        if self._is_quick:  # such an event changed none
            self._read(filter(None, map(self._store.pages().path_by_uuid.get, uuids)))
        pages = [self._page(uuid) for uuid in uuids]
        is_open = all(page is not None and not page.is_private for page in pages)
        if former:
            statement = self._texts.get(former, _NO_TEXT)
            is_open &= statement.page is not None and not statement.is_private
        line = DigestLine(event.at, "lapsed", text, reason=f"undecided in memory/review.md for 30 days: {stands}")
        self._tell(line if is_open and self._open_exchanges.issuperset(sources) else None)

    def _add_line(self, event: Event, what: str, row: StatementRecord, former: str) -> None:
        """Add the line of one statement, if a page still has its new or its former words.

        Args:
            event: What changed it.
            what: See `DigestLine`.
            row: The operation on it.
            former: Hash of its former words; "" for none.
        """
        new_text = self._texts.get(row.hash, _NO_TEXT)
        page = self._page(row.page) if new_text is _NO_TEXT and row.block else None
        present = next((each for each in page.statements if each.block_id == row.block), None) if page else None
        # a person reworded it in the page; one in the words of a newer event is that event's line
        if page and present and text_hash(present.text) not in self._hashes:
            new_text = _Text(page, one_line(present.text), page.is_private, present)
        former_text = self._texts.get(former, _NO_TEXT)
        self._hashes.add(row.hash)
        if new_text.is_private or former_text.is_private:
            self._tell(None)
        elif on_page := new_text.page or former_text.page:
            places = on_page.path, on_page.title
            line = DigestLine(event.at, what, new_text.text, former_text.text, *places, event=event.id)
            is_edited = new_text.statement is not None and text_hash(new_text.statement.text) != row.hash
            # where a correction or a tick changed this statement alone, its event is the name for undo
            is_part = self._is_run(event)
            statement = self._undo_name(row, new_text, former_text) if is_part and what != "moved" else ""
            reason = "edited by hand since" if is_edited else f"since {row.valid_until}" if what == "over" else ""
            self._tell(replace(line, reason=reason, statement=statement, is_part=is_part))

    def _is_run(self, event: Event) -> bool:
        """Return whether an event did more than one thing, or may have."""
        rows = getattr(event.what, "statements", ())
        pages = [change for change in event.changes if self._store.tree.kind_of(change.path) in PAGES]
        is_one = len(pages) < 2 and sum(row.operation in ("NEW", "UPDATE", "DELETE") for row in rows) < 2
        return not is_one or isinstance(event.what, events.MemoryPromoted | events.StatementsEnded)

    def _undo_name(self, row: StatementRecord, new_text: _Text, former_text: _Text) -> str:
        """Return the `path#^block` by which `undo` takes back this operation alone; "" where it cannot.

        An ended statement is named by its place under History, another one by its place in the body. `undo` cannot
        take back an operation whose statement has changed since, nor a step of a how-to, which changes as a whole.
        """
        text, block = (new_text, row.block) if row.hash else (former_text, row.replaced.history if row.replaced else "")
        place, top = text.statement, f"{self._store.tree.relative(self._store.tree.long_term)}/"
        if text.page is None or place is None or place.section == STEPS:
            return ""
        is_unchanged = place.block_id == block and place.is_history == (not row.hash)
        return f"{text.page.path.removeprefix(top)}#^{block}" if block and is_unchanged else ""

    @cached_property
    def _items(self) -> dict[str, str]:
        """The goals and tasks of short-term memory, by the hash of their text; none where they are private."""
        memory = self._store.short_term().memory
        items = () if memory.is_private else (*memory.goals, *memory.tasks)
        return {text_hash(item.text): one_line(item.text) for item in items if not item.is_private}

    def _add_refused(self, event: Event, refused: Sequence[events.Refused]) -> None:
        """Add the operations that a check refused; those whose words may be private are counted."""
        find = cache(self._store.journal.find)
        for row in (row for row in refused if row.statement):  # else its words were purged
            # a candidate's id is that of the event that analyzed its exchanges, `#`, and a number
            analysis = find(row.candidate.partition("#")[0])
            what = analysis.what if analysis else None
            if isinstance(what, events.EventsAnalyzed) and self._open_exchanges.issuperset(what.events):
                self._tell(DigestLine(event.at, "refused", one_line(row.statement), reason=one_line(row.reason)))
            else:
                self._tell(None)

    @cached_property
    def _open_exchanges(self) -> set[str]:
        """The ids of the exchanges on pages and in short-term memory that are not private."""
        pages = (page for page in self._store.pages().memories.values() if not page.is_private)
        exchanges = [event for page in pages for event in parse_exchanges(page.text)]
        exchanges += self._store.short_term().memory.events
        return {event.id for event in exchanges if not event.is_private}

    def _add_proposals(self, event: Event, proposals: Iterable[events.ProposalRecord]) -> None:
        """Add the proposals that still wait in `review.md`; one whose line has the private mark is counted."""
        text = self._store.read_text(self._store.tree.relative(self._store.tree.review)) or ""
        waiting = {tick.id: text[tick.start : tick.end] for tick in find_ticks(text)}
        for proposal in proposals:
            if proposal.id in waiting and proposal.id not in decisions_in(text):
                line = DigestLine(event.at, "asked", one_line(proposal.what), reason="tick it in memory/review.md")
                self._tell(None if PRIVATE.search(waiting[proposal.id]) else line)

    def _add_moves(self, event: Event) -> None:
        """Add the pages that were moved and still exist."""
        for change in event.changes:
            page = self._pages.get(change.path)
            if change.op == "move" and page is not None:
                places = change.path, change.source or "", page.path, page.title
                line = DigestLine(event.at, "moved", *places, event=event.id, is_part=self._is_run(event))
                self._tell(None if page.is_private else line)


# --- the file ------------------------------------------------------------------------------------------------------


def _rendered(store: Store, digest: Digest) -> str:
    """Return `digest.md` without its first line: a heading for each day, a line for each page of a run."""
    parts = [f"# Digest\n\nWhat became of memory in the last {DAYS} days, newest first.\n"]
    if digest.withheld:
        parts.append(f"\n{digest.withheld} private changes are not listed.\n")
    day = ""
    folder = store.tree.relative(store.tree.logs)
    for groups, undo_all in digest.runs():
        if (on := store.day_of(groups[0][0].at)) != day:
            day = on
            parts.append(f"\n## {day}\n\n")
        for group in groups:
            link = format_link(group[0].title, posixpath.relpath(group[0].path, folder), "") if group[0].path else ""
            is_short = bool(undo_all and link)
            after = "" if is_short else f" {link}".rstrip()
            told = (
                line.sentence(is_short=is_short) + after + (f" `{line.undo}`" if line.undo else "") for line in group
            )
            parts.append(f"- {f'{link}: ' if is_short else ''}{'; '.join(told)}\n")
        parts += [f"- all of this run: `{undo_all}`\n"] if undo_all else []
    return "".join(parts)
