"""Memory as it stood at a moment: a brain in this machine's cache that only answers (docs/decisions/as-of.md).

Its pages and short-term memory are the versions that the journal keeps of them; its journals and their projection end
at the moment, and its clock stands still there. Settings and identity are the present ones. What is private, off the
record, forgotten or purged is so as it is now: what took it out of the present tree takes it out of that of then.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from brainiac import __version__, events
from brainiac.brain import Brain, Turn
from brainiac.clock import ManualClock, parse_iso
from brainiac.errors import ConfinementError, FormatError, StorageError, UserError
from brainiac.events import Change, Event, EventData, PathKind, PluginEvent
from brainiac.formats.discretion import Audience, asks_for_privacy, is_private_event, is_private_text
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.markdown import PRIVATE, decode_text, edited, find_events, one_line, render_exchange
from brainiac.formats.page import MemoryDocument, audience_of, parse_memory
from brainiac.formats.prompt import Response, is_off_record, parse_commands, parse_response, prompt_path_of
from brainiac.formats.short_term import EMPTY, ShortTermDocument, document_of
from brainiac.history.forget import Target, plan_forget
from brainiac.history.past import PagesAt, Past, Version, compare
from brainiac.history.private import Withdrawal
from brainiac.library import read_prompt
from brainiac.llm.gate import Gate
from brainiac.llm.gateway import Gateway
from brainiac.search.embed import share
from brainiac.search.pages import Pages
from brainiac.search.text import Analyzer
from brainiac.storage.causes import moment_named, undone_events
from brainiac.storage.files import locked, read_bytes
from brainiac.storage.journal import Journal
from brainiac.storage.links import Edits
from brainiac.storage.projection import TABLES, VERSION, Projection, set_undone
from brainiac.storage.said import exchanges_in_pages
from brainiac.storage.statements import text_hash
from brainiac.storage.withheld import units_of
from brainiac.text.tokens import pieces

FOLDER = "as_of"  # in the cache
KEPT = 4  # moments; the one that was asked for longest ago goes
VECTOR_SECONDS = 4.0  # for those that the present brain has not; what is left comes later
_MADE, _MARKS = "made", "private.json"
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
_LISTS = ("tasks", "goals", "facts")  # of short-term memory
_READING = frozenset({"find", "tasks", "help", "private", "off"})  # commands of a prompt that change nothing
_FORGETTING = frozenset({events.ExchangeForgotten, events.MemoryForgotten, events.TextsPurged})
# what hides or brings back something that was said before: tables with a row for each such order
_ORDERS = ("forgotten", "withdrawals", "undoings")


# --- the brain of then ---------------------------------------------------------------------------------------------


class _JournalUntil(Journal):
    """The present brain's journals up to an event."""

    def __init__(self, present: Brain, last: Event) -> None:
        super().__init__(present.tree, present.places)
        self._last = last

    def last(self) -> tuple[int, str]:
        return self._last.seq, self._last.id

    def _parse(
        self, lines: Iterable[tuple[Path, bytes]], kinds: Collection[type[EventData] | str] | None
    ) -> Iterator[Event]:
        return (event for event in super()._parse(lines, kinds) if event.id <= self._last.id)


class _ProjectionUntil(Projection):
    """The rows of the present projection that come from events up to one; they are copied once."""

    def __init__(self, then: AsOf, last: Event) -> None:
        self._source, self._last = then.present.database.path, last
        super().__init__(then.database, then.tree, then.journal)

    def follow(self) -> None:
        self._database.run(self._follow)

    follow_own = follow

    def _follow(self, connection: Any, *, is_own: bool = False) -> None:
        if connection.execute("SELECT 1 FROM positions").fetchone():
            return
        connection.execute("ATTACH DATABASE ? AS present", (str(self._source),))
        for table in TABLES:
            # what was withdrawn later is withdrawn; and an id of a receipt names the same at any time
            is_whole = table in ("withdrawals", "receipts")
            if table not in ("positions", "undone"):
                rows = f"INSERT OR IGNORE INTO main.{table} SELECT * FROM present.{table}"
                connection.execute(
                    rows if is_whole else f"{rows} WHERE event <= ?", () if is_whole else (self._last.id,)
                )
        set_undone(connection)
        connection.execute("INSERT INTO positions VALUES ('', 0, 'as of', 0)")
        connection.commit()
        connection.execute("DETACH DATABASE present")


class AsOf(Brain):
    """A brain as it stood; it refuses whatever would change it.

    Args:
        present: The brain as it stands now.
        folder: In its cache.
        last: The last event that counts.
        at: The moment, ISO 8601 UTC.
        past: Its files by the journal.

    Attributes:
        at: The moment.
        past: Its files by the journal.
        users: How many are reading in it.
        made: Which making of the folder it reads: another process may have made it again.
    """

    def __init__(self, present: Brain, folder: Path, last: Event, at: str, past: Past) -> None:
        super().__init__(folder / "brain", clock=ManualClock(parse_iso(at)), is_reading=True)
        self._now, self._last, self.at, self.past, self.users, self.made = present, last, at, past, 0, b""
        self.places = replace(present.places, state=folder / "state", cache=folder / "cache")
        self.__dict__["git"] = None  # the cache may lie in a repository of another kind
        self._answers: dict[str, bytes] = {}  # by prompt

    @property
    def present(self) -> Brain:
        return self._now

    @cached_property
    def journal(self) -> Journal:
        return _JournalUntil(self._now, self._last)

    @cached_property
    def projection(self) -> Projection:
        return _ProjectionUntil(self, self._last)

    @cached_property
    def models(self) -> Gateway:
        gateway = Gateway(self)
        gateway.ledger = self._now.models.ledger  # calls cost now, whatever they ask
        return gateway

    def _said_in(self, path: str) -> None:
        """Return nothing: what somebody asks of then is no memory of then, for others who ask meanwhile."""

    def kept_text(self, digest: str | None) -> str | None:
        return self._now.kept_text(digest)

    def commit(
        self,
        event: EventData | PluginEvent | str,
        *,
        by: str,
        changes: Sequence[Change] = (),
        data: Any = None,
        cause: str | None = None,
        expect: Any = None,
    ) -> Event:
        """Refuse a change; an answer is taken from it instead.

        Raises:
            StorageError: It is another change.
        """
        if not isinstance(event, events.PromptAnswered):
            raise StorageError(f"this is memory as it stood at {self.at}: nothing can be written there")
        self._answers[event.prompt] = next(change.after or b"" for change in changes if change.path == event.response)
        return Event(0, events.new_id(), self.at, event.kind, by)

    def answer(self, path: str, content: bytes, turn: Turn) -> Response:
        """Return the answer to a prompt, by the plugin that answers those of the inbox; nothing of it is kept.

        Args:
            path: What it would be called in the inbox.
            content: Of the file.
            turn: What the caller gave beside it.

        Raises:
            UserError: It has a command that would change memory, or nothing answered.
            ModelError: The model cannot serve.
        """
        file = self.tree.confine(path, inside=self.tree.inbox)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        try:
            prompt = read_prompt(self, path)
            if prompt is None:
                raise UserError("there is nothing to ask: the text is empty")
            if changing := [f"/{each.name}" for each in prompt.commands if each.name not in _READING]:
                raise UserError(
                    f"{changing[0]} changes memory, and memory as it stood cannot be changed; leave out the time"
                )
            with self.turn(path, turn):
                self.call_hook("prompt_arrived", brain=self, prompt=prompt)
            if path not in self._answers:
                raise UserError("no plugin answered it; see `brainiac plugins`")
            return parse_response(path.removesuffix(".md") + ".response.md", self._answers.pop(path))
        finally:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        self.__dict__.pop("models", None)
        super().close()


# --- opening one ---------------------------------------------------------------------------------------------------


class _Opened(dict[str, AsOf]):
    """The moments that a process has open, by the names of their folders, and the marks that it has read."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: dict[str, Any] = {}

    def drop(self, name: str) -> None:
        """Close a moment, if it is open; while somebody reads in it, whoever ends last closes it."""
        then = self.pop(name, None)
        if then and not then.users:
            then.close()

    def close(self) -> None:
        """Close all."""
        for name in list(self):
            self.drop(name)


_mutex = threading.Lock()  # of what is opened


@contextmanager
def standing(brain: Brain, when: str, *, is_door: bool = False) -> Iterator[AsOf]:
    """Within this context there is the brain as it stood at a time that a person names, of a day at its end.

    Args:
        brain: As it stands now.
        when: As `moment_named` reads it.
        is_door: Whether a client asks, which gets no hint of events that it cannot name wholly.

    Raises:
        UserError: It is no time, or no journal goes back so far.
    """
    at, event_id = moment_named(brain, when, is_end=True, is_whole=is_door)
    past = Past(brain, at, event_id)
    last = brain.journal.find(event_id) if event_id else brain.journal.last_until(at, past.other_device)
    assert last is not None, "the journal goes back so far"
    opened, top = brain.state_of(FOLDER, _Opened), brain.places.cache / FOLDER
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _mutex, locked(brain.places.state / f"{FOLDER}.lock"):
        for gone in [each for each in opened if not (top / each).exists()]:  # another process made room
            opened.drop(gone)
        try:
            marks = _Marks(brain, top / _MARKS, opened.marks)
            name = _name(brain, last, marks)
            folder = top / name
            if (made := read_bytes(folder / _MADE)) is None:
                opened.drop(name)
                shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
                _make_room(top, opened)
                made = _make(brain, folder, last, Past(brain, at, last.id), marks)
        except (OSError, sqlite3.Error):  # where the disk is full, it is the first to make room
            opened.close()
            shutil.rmtree(top, ignore_errors=True)
            raise
        os.utime(folder)
        then = opened.get(name)
        if then is None or (then.made, then.at) != (made, at):
            opened.drop(name)
            then = opened[name] = AsOf(brain, folder, last, at, past)
            then.made = made
        then.users += 1
    try:
        yield then
    finally:
        with _mutex:
            then.users -= 1
            if opened.get(name) is not then and not then.users:
                then.close()


def _name(brain: Brain, last: Event, marks: _Marks) -> str:
    """Return the name of a moment's folder: a hash of all that it depends on, so that another one is another folder.

    Beside its last event that is the program, what is hidden by now, and the files of `system/`.
    """
    brain.projection.follow()
    orders = [brain.projection.query(f"SELECT count(*), max(event) FROM {table}") for table in _ORDERS]
    stamps = sorted((path, str(stamp)) for path, stamp in brain.tree.scan(brain.tree.system).items())
    purges = len(brain.projection.purges())
    basis = [last.id, __version__, VERSION, marks.digest, orders, purges, stamps]
    return events.content_hash(json.dumps(basis).encode())[:32]


def _make_room(top: Path, opened: _Opened) -> None:
    """Remove the moments that were asked for longest ago, so that there is room for one more."""
    folders = sorted((folder for folder in top.iterdir() if folder.is_dir()), key=lambda folder: folder.stat().st_mtime)
    for folder in folders[: max(0, len(folders) - KEPT + 1)]:
        opened.drop(folder.name)
        shutil.rmtree(folder, ignore_errors=True)


# --- what is private now -------------------------------------------------------------------------------------------


class _Marks:
    """What persons marked in the present files as private or off the record; only files that changed are read again.

    Args:
        brain: The brain.
        file: Keeps it.
        known: What this process knows of it: for each path the time of its last change, and its marks.

    Attributes:
        exchanges: Ids.
        pages: Uuids, or paths of pages without one.
        units: Hashes of the statements on private pages.
    """

    def __init__(self, brain: Brain, file: Path, known: dict[str, Any]) -> None:
        tree, prompts = brain.tree, f"{brain.tree.layout.inbox}/"
        # a daemon in this process has recorded what became of prompts; the pages are few
        is_seen = bool(known) and brain.unsettled is not None and brain.unsettled() == []
        with suppress(OSError, ValueError):
            known.update({} if known else json.loads(file.read_bytes()))
        files = {path: known[path] for path in known if is_seen and path.startswith(prompts)}
        newest = max((changed for changed, _ in known.values()), default=0)
        for path, stamp in tree.scan(tree.memory, *(() if is_seen else (tree.inbox,))).items():
            kept = known.get(path)
            # within one tick of the file system's clock a file may be written twice
            is_kept = kept and kept[0] == stamp.ctime_ns < newest
            files[path] = kept if is_kept else [stamp.ctime_ns, self._read(brain, path)]
        if files != known:
            known.clear()
            known.update(files)
            file.write_text(json.dumps(files), "utf-8")
        now = [marks for _, marks in files.values() if marks]
        self.exchanges = {each for marks in now for each in marks.get("exchanges", ())}
        self.pages = {each for marks in now for each in marks.get("page", ())}
        self.units = {each for marks in now for each in marks.get("units", ())}
        marked = [sorted(each) for each in (self.exchanges, self.pages, self.units)]
        self.digest = events.content_hash(json.dumps(marked).encode())

    @staticmethod
    def _read(brain: Brain, path: str) -> dict[str, list[str]]:
        """Return what of a file is private or off the record; empty for nothing."""
        with suppress(OSError, ConfinementError):
            content = read_bytes(Path(f"{brain.tree.root}/{path}")) or b""  # a scan has passed no link
            if not any(key in content.replace(b"\0", b"").lower() for key in (b"priv", b"remember", b"\xef\xbd")):
                return {}
            text = decode_text(content)
            if prompts := (*prompt_path_of(path), path) if path.startswith(brain.tree.layout.inbox + "/") else ():
                is_hidden = is_private_text(text) or is_off_record(content)
                exchanges = [each for prompt in prompts for each in brain.answered.exchanges_at(prompt)]
                return {"exchanges": exchanges} if is_hidden and exchanges else {}
            exchanges = [each.event.id for each in find_events(text) if is_private_event(each.event)]
            audience = audience_of(text)
            if audience is Audience.ANYONE:
                return {"exchanges": exchanges} if exchanges else {}
            if asks_for_privacy(text) or audience is Audience.NOBODY:
                exchanges = [each.event.id for each in find_events(text)]
            with suppress(FormatError):
                page = parse_memory(path, text)
                units = [text_hash(PRIVATE.sub("", each.text)) for each in page.statements]
                is_page = brain.tree.kind_of(path) in _PAGES
                return {"exchanges": exchanges, "page": [page.uuid or path] if is_page else [], "units": units}
        return {"exchanges": [], "page": [path]}  # what cannot be read counts as private


# --- making one ----------------------------------------------------------------------------------------------------


def _make(brain: Brain, folder: Path, last: Event, past: Past, marks: _Marks) -> bytes:
    """Make the brain of a moment in a folder; it counts only when its last file is there, which has an id: returned."""
    root, layout = folder / "brain", brain.tree.layout
    for name in (layout.inbox, layout.memory, layout.logs, layout.plugins):
        (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(brain.tree.system, root / "system", dirs_exist_ok=True, ignore_dangling_symlinks=True)
    then = AsOf(brain, folder, last, last.at, past)
    try:
        was_private: set[str] = set()
        for path, version in past.files().items():
            text = brain.kept_text(version.digest)
            if text is None:
                text = _mended(then, version)
            if text is not None:
                _write(then, path, text.encode("utf-8", "surrogateescape"), version.at)
                if PRIVATE.search(text):
                    was_private.update(each.event.id for each in find_events(text) if is_private_event(each.event))
        if target := _forgotten(then):
            _carry_out(then, plan_forget(then, target))
        rows = brain.projection.query("SELECT exchange FROM withdrawals")
        private = ({exchange for (exchange,) in rows} | marks.exchanges) - was_private
        if private := {exchange for exchange in private if exchange <= last.id}:
            withdrawal = Withdrawal(then, private)
            withdrawal.plan_all()
            _carry_out(then, withdrawal)
        _carry_out(then, _hidden_by_hand(then, marks))
        then.projection.follow()  # now, while nobody else does
        _index(then)
    finally:
        then.close()
    made = events.new_id().encode()
    (folder / _MADE).write_bytes(made)
    return made


def _write(then: AsOf, path: str, content: bytes, at: str) -> None:
    """Write a file of then with the date that it had; one outside of memory is left out."""
    with suppress(ConfinementError):  # journals come from other devices too
        file = then.tree.confine(path, inside=then.tree.memory)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(content)
        file.chmod(0o400)  # an editor that is led there refuses to save
        os.utime(file, (parse_iso(at).timestamp(),) * 2)


def _carry_out(then: AsOf, edits: Edits) -> None:
    """Make planned edits in the tree of then."""
    for change in edits.changes():
        file = then.tree.absolute(change.path)
        if change.after is None:
            file.unlink(missing_ok=True)
        else:
            at = then.written_at(change.path) if file.exists() else then.at
            _write(then, change.path, change.after, at)


def _forgotten(then: AsOf) -> Target:
    """Return all that was forgotten or purged since, on any device, and was not brought back."""
    present = then.present
    uuids = {page.uuid: path for path, page in then.pages().pages.items() if page.uuid}
    undone, parts = undone_events(present), dict[str, set[Any]]()
    for _, event in present.journal.all_events(_FORGETTING):
        what = event.what
        if event.id in undone:
            continue
        assert isinstance(what, events.ExchangeForgotten | events.MemoryForgotten | events.TextsPurged)
        parts.setdefault("exchanges", set()).update(what.exchanges)
        if event.id > then.journal.last()[1]:  # the same words may be said again after they were forgotten
            page = getattr(what, "page", "") or ""
            paths = {uuids.get(page, page), *getattr(what, "pages", ())}
            parts.setdefault("pages", set()).update(path for path in paths if then.tree.holds(path) and path)
            parts.setdefault("items", set()).update(getattr(what, "items", ()))
            parts.setdefault("blocks", set()).update(map(tuple, getattr(what, "blocks", ())))
    named: dict[str, Any] = {name: tuple(sorted(part)) for name, part in parts.items()}
    return Target(**named)


def _hidden_by_hand(then: AsOf, marks: _Marks) -> Edits:
    """Plan the private mark for the pages of then that are private now, or have a statement of such a page."""
    edits = Edits(then)
    for path, page in then.pages().pages.items():
        now = then.past.present_path(path)
        is_hidden = bool({page.uuid, now} & marks.pages)
        if not then.present.tree.holds(now):  # gone: it counts as what it was at last
            sql = "SELECT coalesce(after, before) FROM changes WHERE path = ? ORDER BY event DESC LIMIT 1"
            text = then.present.kept_text(then.present.projection.value(sql, now))
            is_hidden |= text is None or audience_of(text) > Audience.ANYONE
        if is_hidden or (marks.units and any(text_hash(each.text) in marks.units for each in page.statements)):
            edits.write(path, edit_meta(edits.read(path) or "", private=True))
    path = then.tree.relative(then.tree.short_term)
    if (text := edits.read(path)) and marks.units:
        memory = ShortTermDocument(text).memory
        if any(text_hash(each.text) in marks.units for each in (*memory.goals, *memory.facts, *memory.tasks)):
            edits.write(path, edit_meta(text, private=True))
    return edits


def _index(then: AsOf) -> None:
    """Make the index of then, with the vectors that the present brain has of the same texts."""
    pages = Pages(then.tree, then.places.cache / "index", Analyzer(then.settings.recall.language, then.zone))
    pages.rebuild()
    contents = pages.ask(lambda index: [content for _, content in index.contents()]) or []
    pages.close()
    share(then.present.places.cache / "vectors", then.places.cache / "vectors", contents)
    then.recall.flush(VECTOR_SECONDS)


# --- what a purge has left ---------------------------------------------------------------------------------------


def _mended(then: AsOf, version: Version) -> str | None:
    """Return a file whose version of then is destroyed, as far as the versions around it tell it; None for nothing.

    It is the last version before that is kept. To it comes what stands in the next one, or elsewhere by now, and was
    recorded before the moment.
    """
    present, last = then.present, then.journal.last()[1]
    earlier, later, since = "", "", ""
    for event in present.journal.events_naming(version.path, then.past.other_device):
        texts = (present.kept_text(change.after) for change in event.changes if change.path == version.path)
        if text := next(texts, None):
            if event.id <= last:
                earlier, since = text, event.id
                break
            later = text
    kind = present.tree.kind_of(version.path)
    with suppress(FormatError):
        if kind is PathKind.SHORT_TERM:
            return _mended_short_term(then, earlier, later, since)
        if kind in _PAGES and (earlier or later):
            return _mended_page(then, version, earlier, later)
    return earlier or later or None


def _mended_page(then: AsOf, version: Version, earlier: str, later: str) -> str:
    """Return a page with the statements and exchanges that were recorded on it by then."""
    others, page = parse_memory(version.path, later or earlier), MemoryDocument(earlier or later, version.path)
    if not earlier:  # nothing but its head is known to have stood there
        page = MemoryDocument(edited(later, ((*span, "") for span in units_of(later))), version.path)
    statements = then.projection.query("SELECT hash FROM statements WHERE page = ?", others.uuid)
    wanted = {digest for (digest,) in statements} - {text_hash(each.text) for each in page.memory.statements}
    for statement in others.statements:
        if text_hash(statement.text) in wanted:
            lines = others.text[statement.start : statement.end].rstrip() + "\n"
            page = page.with_item(lines, is_history=statement.is_history)
    filings = then.projection.query("SELECT exchange FROM filings WHERE page IS NOT NULL")
    filed, text = {exchange for (exchange,) in filings}, str(page.set_meta(updated_at=version.at))
    for placed in find_events(others.text):
        if placed.event.id in filed and placed.event.id not in text:
            text = f"{text.rstrip()}\n\n{render_exchange(placed.event)}"
    return text


def _mended_short_term(then: AsOf, earlier: str, later: str, since: str) -> str:
    """Return short-term memory with the exchanges and items that were in it, from wherever they are by now.

    Args:
        then: The brain of then.
        earlier: The last version before that is kept; "" for none.
        later: The next one.
        since: The event of the earlier one.
    """
    present = then.present
    rows = then.projection.query(
        "SELECT exchange FROM outcomes WHERE is_extracted IS NOT NULL"
        " AND exchange NOT IN (SELECT exchange FROM filings)"
    )
    wanted = [exchange for (exchange,) in rows]
    others = [document_of(later or EMPTY), present.short_term()]
    sql = "SELECT hash, exchange FROM writings WHERE part = 'item' AND event > ? ORDER BY event"
    written = then.projection.query(sql, since)
    told_in = dict.fromkeys([*wanted, *(exchange for _, exchange in written if exchange)])
    known = {exchange: event for exchange, (_, event) in exchanges_in_pages(present, list(told_in)).items()}
    for other in others:
        known |= {event.id: event for event in other.memory.events}
    document = document_of(earlier or EMPTY)
    document = document.without_event(*(each.id for each in document.memory.events if each.id not in wanted))
    for exchange in filter(known.__contains__, wanted):
        document = document.with_event(known[exchange])
    for digest, exchange in written:
        memories, event = [other.memory for other in others], known.get(exchange)
        commands, said = parse_commands(event.user if event else "")
        told = {
            name: [each.argument for each in commands if (each.name == "todo") == (name == "tasks")] for name in _LISTS
        }
        items: dict[str, list[str]] = {}
        for name in _LISTS:
            stand = [str(item.text) for memory in memories for item in getattr(memory, name)]
            items[name] = [*stand, *told[name], *pieces(said)]
        for name in (name for name in _LISTS if digest in map(text_hash, items[name])):
            document = document.with_items(**{name: [text for text in items[name] if text_hash(text) == digest][:1]})
            break
    return str(document.with_summary(""))  # which exchanges it told of is not known any more


# --- what has changed since ----------------------------------------------------------------------------------------


def changed_since(then: AsOf, gate: Gate, paths: Iterable[str], words: Sequence[str] = ()) -> list[str]:
    """Return what became of pages of then, a line each.

    Args:
        then: The brain of then.
        gate: What of the present brain may be shown.
        paths: The pages, as they were called.
        words: Only what became of statements that are, or stand in, one of these; of all where there are none.
    """
    lines = list[str]()
    for path in dict.fromkeys(paths):
        before = then.read_text(path) if then.tree.kind_of(path) in _PAGES else None
        if before is None:
            continue
        now = then.past.present_path(path)
        after = gate.read_note(now)
        if after is None:
            lines.append(f"{path} is gone")
            continue
        if now != path:
            lines.append(f"{path} is {now} now")
        for each in compare(_side(now, before), _side(now, after)).differences:
            was = each.before or each.text
            is_meant = not words or any(was in said or said in was for said in words)
            if is_meant and each.what not in ("added", "reordered") and each.kind in ("statement", "exchange", "line"):
                texts = dict.fromkeys(filter(None, (each.before, each.text)))
                lines.append(one_line(f"{now}: {each.what}: " + " → ".join(f"“{text}”" for text in texts)))
    return lines


def _side(path: str, text: str) -> PagesAt:
    """Return a page as one side of a comparison."""
    return PagesAt({path: events.content_hash(text.encode("utf-8", "surrogateescape"))}, lambda _: text)
