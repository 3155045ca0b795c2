"""What memory learned, changed, ended, moved, refused and asked, derived from the journal and the pages.

Words are taken from the pages alone: what was forgotten, purged or taken back stands on none, and is not told. What is
private is only counted. `logs/digest.md` is written anew after each run, and whenever something is taken out of memory.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from brainiac.clock import iso
from brainiac.errors import BrainiacError, storage_trouble
from brainiac.events import (
    Event,
    EventsAnalyzed,
    MemoryOrganized,
    MemoryPromoted,
    ProposalApplied,
    ProposalRecord,
    Refused,
    StatementCorrected,
    StatementRecord,
    content_hash,
)
from brainiac.formats.markdown import PRIVATE, format_link, one_line
from brainiac.formats.page import Memory, parse_exchanges
from brainiac.storage.files import Disk, temporary_beside
from brainiac.storage.pages import PageSet
from brainiac.storage.record import undone_events
from brainiac.storage.review import decisions_in, find_ticks
from brainiac.storage.statements import text_hash
from brainiac.storage.store import Store

NAME = "digest.md"
DAYS = 30  # that the file tells of
MAX_LINES = 400
FIRST_LINE = "<!-- Derived, and written anew after each run; a copy that you change is moved aside. Checksum: {} -->\n"
KINDS = (MemoryPromoted, MemoryOrganized, ProposalApplied, StatementCorrected)


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One thing that was done.

    Attributes:
        at: When, ISO 8601.
        what: `learned`, `changed`, `ended`, `moved`, `refused` or `asked`.
        text: The statement, or what was moved, refused or asked.
        before: The former wording, or place; "".
        path: The page where it stands; "" for what stands on none.
        title: Of that page.
        reason: Why it was refused or moved; "".
        event: Id of the event, by which `brainiac undo` takes it back; "" where there is nothing to take back.
    """

    at: str
    what: str
    text: str
    before: str = ""
    path: str = ""
    title: str = ""
    reason: str = ""
    event: str = ""

    @property
    def undo(self) -> str:
        """The command that takes it back; "" where there is nothing to take back."""
        return f"brainiac undo {self.event}" if self.event else ""

    def sentence(self) -> str:
        """Return it for a person, without its page and its undo."""
        words = f"“{self.before}” → “{self.text}”" if self.before and self.text else f"“{self.text or self.before}”"
        return f"{self.what}: {words}" + (f" ({self.reason})" if self.reason else "")


@dataclass(slots=True)
class Digest:
    """What was done since a moment.

    Attributes:
        lines: Newest first.
        withheld: How many more there are that are private.
    """

    lines: list[DigestLine] = field(default_factory=list)
    withheld: int = 0


def digest_since(store: Store, since: str) -> Digest:
    """Return what was done since an ISO 8601 moment on this device and is not taken back."""
    return _Reader(store).read(since)


def write_digest(store: Store) -> None:
    """Write `logs/digest.md` anew; a copy that a person changed is moved aside first, and a failure is only logged."""
    since = iso(store.clock.now() - timedelta(days=DAYS))
    try:
        text = _rendered(store, digest_since(store, since))
        with storage_trouble():
            _put(store, text)
    except (BrainiacError, OSError) as error:  # the run that it tells of is done and stands in the journal
        store.log.warning("digest_not_written", problem=str(error))


class _Reader:
    def __init__(self, store: Store) -> None:
        self._store, self._pages = store, store.pages()
        self._digest = Digest()
        self._texts = _texts_of(self._pages)

    def read(self, since: str) -> Digest:
        undone = undone_events(self._store)
        for event in self._store.journal.events(kinds=set(KINDS), reverse=True):
            if event.at < since or len(self._digest.lines) >= MAX_LINES:
                break
            if event.id not in undone:
                self._take(event)
        return self._digest

    def _take(self, event: Event) -> None:
        match event.what:
            case MemoryPromoted(statements=statements, refused=refused, proposals=proposals):
                self._take_statements(event, statements)
                self._take_refused(event, refused)
                self._take_asked(event, proposals)
            case MemoryOrganized(proposals=proposals):
                self._take_moved(event)
                self._take_asked(event, proposals)
            case ProposalApplied(statements=statements) | StatementCorrected(statements=statements):
                self._take_statements(event, statements)

    def _take_statements(self, event: Event, rows: Sequence[StatementRecord]) -> None:
        moved = {row.hash for row in rows if row.operation == "NEW"}
        moved &= {row.replaced.hash for row in rows if row.operation == "DELETE" and row.replaced}
        for row in rows:
            former = row.replaced.hash if row.replaced else ""
            what = {"NEW": "learned", "UPDATE": "changed", "DELETE": "ended"}.get(row.operation)
            if what and former not in moved:
                self._add(event, "moved" if row.hash in moved else what, row, former)

    def _add(self, event: Event, what: str, row: StatementRecord, former: str) -> None:
        """Add a line for a statement as far as its words stand on a page."""
        page, text, is_private = self._texts.get(row.hash, (None, "", False))
        past_page, before, was_private = self._texts.get(former, (None, "", False))
        if is_private or was_private:
            self._digest.withheld += 1
        elif place := page or past_page:
            line = DigestLine(event.at, what, text, before, place.path, place.title, event=event.id)
            self._digest.lines.append(line)

    def _take_refused(self, event: Event, refused: Iterable[Refused]) -> None:
        for row in refused:
            if not row.statement:
                continue  # its words were purged
            if self._is_open(row.candidate):
                text, reason = one_line(row.statement), one_line(row.reason)
                self._digest.lines.append(DigestLine(event.at, "refused", text, reason=reason))
            else:
                self._digest.withheld += 1

    def _is_open(self, candidate: str) -> bool:
        """Return whether all that a candidate was looked for in stands openly, so that its words may be told."""
        analysis = self._store.journal.find(candidate.partition("#")[0])
        if analysis is None or not isinstance(analysis.what, EventsAnalyzed):
            return False
        return self._open_exchanges.issuperset(analysis.what.events)

    @cached_property
    def _open_exchanges(self) -> set[str]:
        pages = (page for page in self._pages.memories.values() if not page.is_private)
        said = [event for page in pages for event in parse_exchanges(page.text)]
        said += self._store.short_term().memory.events
        return {event.id for event in said if not event.is_private}

    def _take_asked(self, event: Event, proposals: Iterable[ProposalRecord]) -> None:
        """Add what still waits in `review.md`; a line there with the private mark is counted."""
        text = self._store.read_text(self._store.tree.relative(self._store.tree.review)) or ""
        waiting = {tick.id: text[tick.start : tick.end] for tick in find_ticks(text)}
        for proposal in proposals:
            if proposal.id not in waiting or proposal.id in decisions_in(text):
                continue
            if PRIVATE.search(waiting[proposal.id]):
                self._digest.withheld += 1
            else:
                reason = "tick it in memory/review.md"
                self._digest.lines.append(DigestLine(event.at, "asked", one_line(proposal.what), reason=reason))

    def _take_moved(self, event: Event) -> None:
        for change in event.changes:
            page = self._pages.pages.get(change.path)
            if change.op != "move" or page is None:
                continue
            if page.is_private:
                self._digest.withheld += 1
                continue
            former = change.source or ""
            line = DigestLine(event.at, "moved", change.path, former, page.path, page.title, event=event.id)
            self._digest.lines.append(line)


def _texts_of(pages: PageSet) -> Mapping[str, tuple[Memory, str, bool]]:
    """Return the statements that stand, past ones too, by their hash: page, text and whether it is private."""
    texts: dict[str, tuple[Memory, str, bool]] = {}
    for page in pages.pages.values():
        for statement in page.statements:
            is_private = page.is_private or PRIVATE.search(statement.text) is not None
            known = texts.get(text_hash(statement.text))
            if known is None or is_private:
                texts[text_hash(statement.text)] = page, one_line(statement.text), is_private
    return texts


# --- the file ------------------------------------------------------------------------------------------------------


def _rendered(store: Store, digest: Digest) -> str:
    parts = [f"# Digest\n\nWhat became of memory in the last {DAYS} days, newest first.\n"]
    if digest.withheld:
        parts.append(f"\n{digest.withheld} private changes are not listed.\n")
    day = ""
    folder = store.tree.relative(store.tree.logs)
    for line in digest.lines:
        if (on := store.day_of(line.at)) != day:
            day = on
            parts.append(f"\n## {day}\n\n")
        link = " " + format_link(line.title, posixpath.relpath(line.path, folder), "") if line.path else ""
        undo = f" `{line.undo}`" if line.undo else ""
        parts.append(f"- {line.sentence()}{link}{undo}\n")
    return "".join(parts)


def _put(store: Store, text: str) -> None:
    """Put the file in place, atomically; one that a person changed keeps its words under another name."""
    path, disk = store.tree.logs / NAME, Disk()
    if path.exists() and not _is_as_written(content := path.read_text("utf-8", "replace")):
        os.replace(path, path.with_name(f"digest-edited-{content_hash(content.encode())[:8]}.md"))
    draft = path.parent / posixpath.basename(temporary_beside(str(path)))
    whole = FIRST_LINE.format(content_hash(text.encode())[:16]) + text
    disk.write(draft, whole.encode(), mode=0o666)
    os.replace(draft, path)


def _is_as_written(content: str) -> bool:
    """Return whether a file has the checksum that its first line names."""
    first, _, rest = content.partition("\n")
    return first + "\n" == FIRST_LINE.format(content_hash(rest.encode())[:16])
