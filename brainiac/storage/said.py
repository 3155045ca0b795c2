"""What was said: which prompts were answered by which file, and which exchanges were filed to the pages of their days.

These are queries on the projection, the files of the inbox and those pages. The bus asks what to answer, the Core Loop
where an answer goes; Promotion which exchanges wait for consolidation, and which no model has read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import posixpath
import re
import stat
from collections.abc import Collection, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from brainiac.clock import is_within, iso
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.events import Change, Event, EventUndone, ExchangeEvent, PathKind, PromptMoved, content_hash, remove
from brainiac.formats import prompt as prompts
from brainiac.formats.authors import ORIGINS, PERSON, Author, author_in
from brainiac.formats.discretion import is_private
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import StmEvent, find_events
from brainiac.storage.causes import undone_events
from brainiac.storage.journal import from_line
from brainiac.storage.pushes import names_said
from brainiac.storage.statements import LINE
from brainiac.storage.store import Store
from brainiac.storage.turns import Turns
from brainiac.storage.withheld import Withheld
from brainiac.tree import is_printable

_RECEIPT = re.compile(r"r[a-z2-7]{6}")


def receipt_id(name: str) -> str:
    """Return the short id by which an answer's receipt names something: a page, `page#^block`, or an exchange."""
    return "r" + base64.b32encode(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()).decode()[:6].lower()


def meant_by(store: Store, named: str) -> str:
    """Return the page, `page#^block` or exchange that a receipt names; what is no receipt as it is.

    Raises:
        UserError: Two things happen to have this id.
    """
    if not _RECEIPT.fullmatch(receipt := named.strip().lower()):
        return named
    store.projection.follow()
    names = [name for (name,) in store.projection.query("SELECT name FROM receipts WHERE id = ?", receipt)]
    # or what was said unasked, or to an assistant
    others = [*names_said(store.database), *(turn.exchange for turn in Turns(store.database).all())]
    names += [name for name in dict.fromkeys(others) if receipt_id(name) == receipt and name not in names]
    if len(names) > 1:
        raise UserError(f"{named} may be {' or '.join(names)}; name it so")
    return names[0] if names else named


def forgotten_at(store: Store, name: str) -> str:
    """Return when the exchange, page or `page#^block` with a name was last forgotten, ISO 8601; "" for never."""
    store = store.present
    undone = undone_events(store)
    rows = store.projection.query("SELECT event, at FROM forgotten WHERE name = ? ORDER BY event DESC", name)
    return next((at for event, at in rows if event not in undone), "")


def check_gone(store: Store, named: str) -> None:
    """Tell the person of a receipt, or of another name, of which nothing is in memory, that it was there once.

    Raises:
        UserError: Memory knew the name.
    """
    meant = meant_by(store, named)
    if at := forgotten_at(store, meant):
        raise UserError(f"that was forgotten on {store.day_of(at)}")
    if store.tree.kind_of(meant) is PathKind.SHORT_TERM:
        raise UserError(f"{named} is short-term memory as a whole: edit {meant}; its exchanges have ids of their own")
    if meant != named:
        raise UserError(f"what {named} named is not in memory any more")


# --- exchanges that were answered -----------------------------------------------------------------------------------

MAX_TURNS = 20
MAX_RESPONSES = 99  # to one prompt; a file's name must have room for the number
MOVE_SECONDS = 10.0  # a text that vanished here and appears there within this time has moved


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a prompt, as a journal has it.

    Attributes:
        prompt: The prompt's path.
        prompt_id: Its identity, which it keeps when it moves.
        prompt_sha256: Of its normalized text.
        prompt_hash: Content hash of the prompt file as it was answered; None when unknown.
        response: The response's path; None for a captured note.
        response_hash: Content hash of the response as it was left then; None when unknown.
        is_ours: Whether a process wrote the response.
        exchange: Id of the exchange, which is the id of the event that recorded it.
        at: When it was recorded, ISO 8601.
        origin: Whose words the prompt held, as its event says; the person's where it does not.
        author: The client by which the prompt came; "" for none.
    """

    prompt: str
    prompt_id: str
    prompt_sha256: str
    prompt_hash: str | None
    response: str | None
    response_hash: str | None
    is_ours: bool
    exchange: str
    at: str
    origin: str = PERSON
    author: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The path that an answer is written to, and the present bytes of the file there; None where there is none."""

    path: str
    before: bytes | None


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt that was answered, where it stands now.

    Attributes:
        answers: To it, oldest first, one for each revision; the last has its present path, and that of its response.
        removed_at: When its file was removed, ISO 8601; "" where it was not.
    """

    answers: tuple[Answer, ...]
    removed_at: str = ""


_LAST = "~"  # sorts behind every id and every time
_ANSWER = "prompt, prompt_id, sha256, prompt_hash, response, response_hash, is_ours, event, at, origin, author"


class Answered:
    """Queries on the projection; thread-safe.

    Args:
        store: Whose journals are asked, all devices' of them.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._projection, self._device = store, store.projection, store.journal.device
        self._inbox = store.tree.relative(store.tree.inbox)
        self.refresh()

    def refresh(self) -> None:
        """Bring the projection up to date with what other processes and other devices recorded."""
        self._projection.follow()

    @property
    def last_exchange_at(self) -> str | None:
        """When something was last said, ISO 8601."""
        at: str | None = self._projection.value("SELECT at FROM exchanges ORDER BY event DESC LIMIT 1")
        return at

    def of(self, path: str) -> Answer | None:
        """Return the last answer to the prompt at a path, to its present text or an earlier one; None for none."""
        return next(reversed(self._answers(path)), None)

    def path_of(self, exchange: str) -> str | None:
        """Return the present path of an exchange's prompt, which may have moved.

        None for an exchange that is unknown or off the record.
        """
        rows = self._projection.query("SELECT prompt_id FROM exchanges WHERE event = ? AND is_kept", exchange)
        return self._prompt(rows[0][0]).answers[-1].prompt if rows else None

    def exchanges_at(self, path: str) -> list[str]:
        """Return the ids of the exchanges of the prompt at a path, one for each revision.

        Those off the record, and those that were made private since, are left out.
        """
        answer = self.of(path)
        rows = self._projection.query(
            "SELECT event FROM exchanges WHERE prompt_id = ? AND is_kept"
            " AND event NOT IN (SELECT exchange FROM withdrawals) ORDER BY event",
            answer.prompt_id if answer else "",
        )
        return [exchange for (exchange,) in rows]

    def is_answered(self, prompt: prompts.Prompt) -> bool:
        """Return whether a prompt's text was answered: a journal says so, or a response file beside it does.

        The file says so by the hash in it. A response that a person wrote has none; it counts for a prompt that no
        journal has an answer to.
        """
        answers = self._answers(prompt.path)
        if any(answer.prompt_sha256 == prompt.sha256 for answer in answers):
            return True
        for target in self._response_targets(prompt.path):
            if target.before is None:
                break
            try:
                response = prompts.parse_response(target.path, target.before)
            except FormatError:
                return not answers  # broken, but it may be a person's answer: it is not overwritten
            is_by_hand = not response.prompt_sha256 and not answers and bool(response.text.strip())
            if is_by_hand or response.prompt_sha256 == prompt.sha256:
                return True
        return False

    def has_answered_beside(self, path: str) -> bool:
        """Return whether another prompt was answered in the same folder, which may be the inbox itself."""
        folder = posixpath.dirname(path)
        # `0` is the character after `/`: this range of an index has exactly the paths below the folder
        sql = """SELECT 1 FROM exchanges WHERE prompt > ?1 || '/' AND prompt < ?1 || '0' AND prompt != ?2
            AND NOT instr(substr(prompt, length(?1) + 2), '/') LIMIT 1"""
        return bool(self._projection.query(sql, folder, path))

    def is_settled(self, path: str, file_hash: str | None) -> bool:
        """Return whether a prompt needs nothing: unchanged since its last answer, with the response beside it.

        Args:
            path: Of the prompt.
            file_hash: Content hash of the prompt's file; None where it is not known.
        """
        answer = self.of(path)
        is_unchanged = answer is not None and file_hash is not None and answer.prompt_hash == file_hash
        return is_unchanged and not _is_response_elsewhere(answer, path)

    def knows_response(self, prompt_path: str, response_hash: str) -> bool:
        """Return whether a journal has this response to this prompt; also where the prompt was removed since."""
        answers = (answer for prompt in self._prompts(prompt_path) for answer in prompt.answers)
        return any(answer.response_hash == response_hash for answer in answers)

    def moved_from(self, prompt: prompts.Prompt) -> Answer | None:
        """Return the answer of a prompt that was moved to its present path and whose response was not.

        None for a prompt that was not moved.
        """
        if (answer := self.of(prompt.path)) is not None:  # the journal has the move already
            return answer if _is_response_elsewhere(answer, prompt.path) else None
        sql, moved = "SELECT DISTINCT prompt_id FROM exchanges WHERE sha256 = ?", list[Answer]()
        for former in (self._prompt(prompt_id) for (prompt_id,) in self._projection.query(sql, prompt.sha256)):
            last, at = former.answers[-1], former.removed_at
            # it may have been removed a moment ago; where the file is still there, it was copied and not moved
            is_gone = not at or is_within(MOVE_SECONDS, at, self._store.clock.now())
            if is_gone and last.prompt_sha256 == prompt.sha256 and not self._store.tree.absolute(last.prompt).is_file():
                moved.append(last)
        return max(moved, key=lambda answer: answer.exchange, default=None)

    def previous_version(self, exchange: str) -> str | None:
        """Return the id of the exchange that an exchange revises; None where it is the first of its prompt."""
        # ids sort by time: of the same prompt's exchanges the greatest id below this one is the version before
        sql = """SELECT max(event) FROM exchanges WHERE event < ?1
            AND prompt_id = (SELECT prompt_id FROM exchanges WHERE event = ?1)"""
        previous: str | None = self._projection.value(sql, exchange)
        return previous

    def has_outcome(self, exchange: str) -> bool:
        """Return whether a journal has an outcome of an exchange."""
        return bool(self._projection.value("SELECT 1 FROM outcomes WHERE exchange = ? LIMIT 1", exchange))

    def taken_in(self, paths: Sequence[str]) -> list[str]:
        """Return those of some prompts, by path, whose last exchange has an outcome: memory has it, or never will."""
        sql = """WITH RECURSIVE former(present, path) AS (SELECT value, value FROM json_each(?)
            UNION SELECT present, source FROM former JOIN changes USING (path) WHERE source IS NOT NULL)
            SELECT DISTINCT present FROM former JOIN exchanges ON exchanges.prompt = path
            JOIN outcomes ON exchange = exchanges.event"""
        found = self._projection.query(sql, json.dumps(list(paths), ensure_ascii=False))
        return [path for (path,) in found if (answer := self.of(path)) and self.has_outcome(answer.exchange)]

    def undelivered(self, own_until: str = _LAST, exchange: str = "") -> list[Event]:
        """Return the events of exchanges without an outcome (no process handled them), oldest first.

        They are those of the devices that this one handles: all where `active_device` names it, else its own. Those of
        another device are left out until their files are here, which may arrive after its journal.

        Args:
            own_until: ISO 8601 moment; later exchanges of this machine are left out, since another process may be
                handling them.
            exchange: The id of the only exchange that is asked about; "" for all.
        """
        # `lines` has those exchanges alone that have no outcome
        sql = """SELECT exchanges.device, line FROM lines JOIN exchanges USING (event)
            WHERE (?1 OR exchanges.device = ?2) AND (exchanges.at <= ?3 OR exchanges.device != ?2)
            AND event BETWEEN ?4 AND ?5 ORDER BY event"""
        own, found = self._device, list[Event]()
        is_for_all = "1" if self._store.settings.active_device == own else "0"
        for device, line in self._projection.query(sql, is_for_all, own, own_until, exchange, exchange or _LAST):
            event = from_line(line.encode())
            what = event.what
            paths = [path for path in (what.prompt, what.response) if path] if isinstance(what, ExchangeEvent) else []
            if device == own or all(self._store.tree.absolute(path).is_file() for path in paths):
                found.append(event)
        return found

    def response_target(self, prompt: prompts.Prompt) -> Target:
        """Return the path for a prompt's answer and the content of the file that is there now.

        The answer to a revision replaces our last answer if that is unchanged. A response that a person wrote or
        edited is kept, and the answer gets the next number.

        Raises:
            FormatError: It has as many responses as a prompt may have.
        """
        answer = self.of(prompt.path)
        our_response = (answer.response, answer.response_hash) if answer and answer.is_ours else None
        for target in self._response_targets(prompt.path):
            if target.before is None or our_response == (target.path, content_hash(target.before)):
                return target
        raise FormatError(prompt.path, f"has {MAX_RESPONSES} responses; move some of them away")

    def _response_targets(self, prompt_path: str) -> Iterator[Target]:
        """Yield the first, second, … path for a response to a prompt; passed over where a link, a pipe, … stands."""
        for number in range(1, MAX_RESPONSES + 1):
            path = prompts.response_path(prompt_path, number)
            file = self._store.tree.absolute(path)
            if not os.path.lexists(file):
                yield Target(path, None)
            elif stat.S_ISREG(os.lstat(file).st_mode):
                yield Target(path, self._store.read(path))

    def error_removal(self, prompt: prompts.Prompt) -> list[Change]:
        """Return the change that removes a prompt's error file; no change where there is no such file."""
        path = prompts.error_path(prompt.path)
        before = self._store.read(path)
        return [] if before is None else [remove(path, before)]

    def fingerprint(self, path: str, raw: bytes) -> str | None:
        """Return the hash of a prompt's normalized text, given its file's bytes; None where it cannot be parsed."""
        try:
            return prompts.parse_prompt(path, raw, at="", inbox=self._inbox).sha256
        except FormatError:
            return None

    def _answers(self, path: str) -> list[Answer]:
        """Return the answers to the prompt at a path, oldest first: one for each revision, also at its former paths."""
        return [answer for prompt in self._prompts(path) if not prompt.removed_at for answer in prompt.answers]

    def _prompts(self, path: str) -> list[_Prompt]:
        """Return the answered prompts whose place is a path, by the time of their last answers."""
        # all that were answered there, or somewhere from where files were moved there
        sql = """WITH RECURSIVE former(path) AS (SELECT ?1 UNION SELECT source FROM former JOIN changes USING (path)
            WHERE source IS NOT NULL) SELECT DISTINCT prompt_id FROM exchanges JOIN former ON prompt = path"""
        prompts = [self._prompt(prompt_id) for (prompt_id,) in self._projection.query(sql, path)]
        there = [prompt for prompt in prompts if prompt.answers[-1].prompt == path]
        return sorted(there, key=lambda prompt: prompt.answers[-1].exchange)

    def _prompt(self, prompt_id: str) -> _Prompt:
        """Return an answered prompt by its identity, its moves followed since its last answer.

        A move of the file is in the journal as such; or as `PromptMoved`, when the inbox recognized the prompt by its
        text and had the response follow; or as both, one after the other.
        """
        sql = f"SELECT {_ANSWER} FROM exchanges WHERE prompt_id = ? ORDER BY event"
        *earlier, last = (Answer(*row) for row in self._projection.query(sql, prompt_id))
        sql = """SELECT event, position, at, kind, op, path, source, after, about, response FROM changes
            WHERE (path = ?1 OR source = ?1) AND (source IS NOT NULL OR op = 'remove' OR kind = ?2)
            AND (event, position) > (?3, CAST(?4 AS INTEGER)) ORDER BY event, position LIMIT 1"""
        removed_at, moment = "", (last.exchange, "-1")  # the answer comes before the changes of its own event
        while rows := self._projection.query(sql, last.prompt, EventUndone.kind, *moment):
            event, position, at, kind, op, path, source, after, about, response = rows[0]
            moment = event, str(position)
            if source == last.prompt:
                # another prompt may have been put at its path since; only the inbox's moves name the prompt
                is_this_prompt = about == prompt_id if kind == PromptMoved.kind else not removed_at
                if is_this_prompt:  # the removal of the old path may come before the inbox recognizes it at the new one
                    last, removed_at = replace(last, prompt=path), ""
                if is_this_prompt and kind == PromptMoved.kind:
                    last = replace(last, response=response, response_hash=after or last.response_hash)
            elif source is None and op == "remove":
                removed_at = at
            elif source is None and last.prompt_hash == after:  # a removal was undone: the file is as it was
                removed_at = ""
        return _Prompt((*earlier, last), removed_at)

    # --- conversations: the answered prompts of a folder, and those that a prompt replies to --------------------

    def earlier_exchanges(self, prompt: prompts.Prompt) -> list[prompts.Exchange]:
        """Return the earlier exchanges of a prompt's conversation, oldest first, at most 20.

        A prompt in a subfolder of the inbox is in one conversation with the others there; `reply_to` adds further ones.
        Exchanges off the record are returned only for a prompt that is off the record too.
        """
        folder = prompts.conversation_of(prompt.path, inbox=self._inbox)
        exchanges: dict[str, prompts.Exchange] = {}  # by the prompt's path
        for exchange in self._exchanges_in(folder) if folder != prompt.path else ():
            exchanges.setdefault(exchange.prompt.path, exchange)
            if len(exchanges) > MAX_TURNS:  # one of them may be the prompt itself
                break
        for exchange in self._replied_to(prompt):
            exchanges[exchange.prompt.path] = exchange
        exchanges.pop(prompt.path, None)
        # an answer that is kept might repeat what must be kept nowhere
        allowed = [exchange for exchange in exchanges.values() if exchange.prompt.remember or not prompt.remember]
        allowed.sort(key=lambda exchange: (exchange.at, exchange.prompt.path))
        return allowed[-MAX_TURNS:]

    def _exchanges_in(self, folder: str) -> Iterator[prompts.Exchange]:
        """Yield the exchanges of a folder, newest first; a caller that stops early has few files read."""
        responses: list[tuple[str, bool, str, str]] = []  # when, whether it is the recorded one, its prompt, its path
        for file in self._store.tree.absolute(folder).glob("*.response*.md"):
            path = f"{folder}/{file.name}"
            for prompt in prompts.prompt_path_of(path) if is_printable(file.name) else ():
                if answer := self.of(prompt):  # its time is known without reading the files
                    responses.append((answer.at, answer.response == path, prompt, path))
                elif exchange := self._exchange(prompt, path):
                    responses.append((exchange.at, True, prompt, path))
                else:
                    continue
                break
        for _, _, prompt, path in sorted(responses, reverse=True):
            if exchange := self._exchange(prompt, path):
                yield exchange

    def _replied_to(self, prompt: prompts.Prompt) -> Iterator[prompts.Exchange]:
        """Yield the exchange that a prompt's `reply_to` names, then the one that this one replies to, and so on."""
        tree, seen, last = self._store.tree, set[str](), prompt
        while last.reply_to and len(seen) < MAX_TURNS:
            paths: list[str] = []  # of the prompt, likeliest first
            # the name is relative to the prompt's folder, or to the root; it may be the response's, or the prompt's
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(last.path), last.reply_to))
            for name in (beside, last.reply_to):
                with suppress(ConfinementError):
                    path = tree.relative(tree.confine(name, inside=tree.inbox))
                    paths += [*prompts.prompt_path_of(path), path]
            exchange = next(filter(None, (self._exchange(path, prompts.response_path(path)) for path in paths)), None)
            # two prompts may name each other
            if exchange is None or exchange.prompt.path in seen:
                return
            seen.add(exchange.prompt.path)
            yield exchange
            last = exchange.prompt

    def _exchange(self, prompt_path: str, answer_path: str) -> prompts.Exchange | None:
        """Return the exchange of two files; None where one is missing or cannot be parsed."""
        try:
            raw_prompt, raw_response = self._store.read(prompt_path), self._store.read(answer_path)
            if raw_prompt is None or raw_response is None:
                return None
            response = prompts.parse_response(answer_path, raw_response)
            at = response.created_at or iso(self._store.clock.now())
            prompt = prompts.parse_prompt(prompt_path, raw_prompt, at=at, inbox=self._inbox)
        except (UserError, OSError):
            return None  # the person is told when the file itself is handled
        return prompts.Exchange(response.prompt_id or prompt.sha256, prompt, response, at)


def _is_response_elsewhere(answer: Answer | None, path: str) -> bool:
    """Return whether the response to the prompt at a path is not beside it: the prompt was moved without it."""
    return answer is not None and answer.response is not None and path not in prompts.prompt_path_of(answer.response)


# --- exchanges that were filed --------------------------------------------------------------------------------------

MAX_WAITING = 200  # so many are consolidated in one run, which must not take an hour
# SQL conditions; `it` is the row of an exchange in `FiledExchanges._exchanges`
_UNDONE = "(SELECT event FROM undone)"
_IS_REVISED = f"""EXISTS (SELECT 1 FROM outcomes later WHERE later.supersedes = it.exchange
    AND later.supersedes != '' AND later.event NOT IN {_UNDONE})"""
_IS_CONSOLIDATED = f"""EXISTS (SELECT 1 FROM filings done WHERE done.exchange = it.exchange
    AND done.is_consolidated AND done.event NOT IN {_UNDONE})"""
_NOT_DONE = f"NOT {_IS_CONSOLIDATED} AND NOT {_IS_REVISED}"


class FiledExchanges:
    """Queries on filed exchanges; events that were undone do not count.

    Args:
        store: Whose journals are asked.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._projection = store, store.projection
        store.projection.follow()

    @property
    def waiting(self) -> list[str]:
        """Ids of the exchanges that were filed and not consolidated, oldest first; those that are hidden wait on."""
        return self._exchanges("filings", f"is_filed AND {_NOT_DONE}", Withheld(self._store).exchanges)

    @property
    def without_model(self) -> list[str]:
        """Ids of the exchanges that were consolidated without a model, oldest first.

        An exchange was consolidated with a model where one was asked about it and a later promotion used its answer.
        Forgotten, hidden and revised exchanges are left out.
        """
        # the promotion for which the model was asked must not be undone either
        is_read = f"""EXISTS (SELECT 1 FROM analyses asked, filings done
            WHERE asked.exchange = it.exchange AND done.exchange = it.exchange AND done.is_consolidated
            AND done.event > asked.event AND done.event NOT IN {_UNDONE} AND NOT EXISTS (
                SELECT 1 FROM promotions WHERE promotions.run = asked.run AND promotions.event IN {_UNDONE}))"""
        is_gone = f"""EXISTS (SELECT 1 FROM filings gone
            WHERE gone.exchange = it.exchange AND gone.is_gone AND gone.event NOT IN {_UNDONE})"""
        where = f"is_consolidated AND NOT {is_read} AND NOT {is_gone} AND NOT {_IS_REVISED}"
        return self._exchanges("filings", where, Withheld(self._store).exchanges)

    @property
    def withheld(self) -> frozenset[str]:
        """Ids of the exchanges that the last catch-up did not show to its model, since they are private."""
        sql = "SELECT withheld FROM catch_ups WHERE withheld IS NOT NULL ORDER BY event DESC LIMIT 1"
        return frozenset(json.loads(self._projection.value(sql) or "[]"))

    @property
    def unextracted(self) -> set[str]:
        """Ids of the exchanges that Reflection noted without a model, and that are not consolidated yet.

        Their goals, facts and tasks are still to be extracted.
        """
        is_extracted_later = f"""EXISTS (SELECT 1 FROM outcomes later WHERE later.exchange = it.exchange
            AND later.is_extracted AND later.event > it.event AND later.event NOT IN {_UNDONE})"""
        # 0 where it was noted without a model; NULL in the rows of other outcomes
        return set(self._exchanges("outcomes", f"is_extracted = 0 AND NOT {is_extracted_later} AND {_NOT_DONE}"))

    @property
    def lines(self) -> list[str]:
        """Ids of the lines under Key Facts that were consolidated, while they may stand there still."""
        return self._exchanges("filings", f"is_consolidated AND exchange GLOB '{LINE}*'")

    @property
    def filed_at(self) -> str:
        """When exchanges were last filed, ISO 8601; "" for never."""
        sql = f"SELECT max(at) FROM filings WHERE is_filed AND event NOT IN {_UNDONE}"
        return self._projection.value(sql) or ""

    def page_of(self, exchange: str) -> str:
        """Return the path of the page that an exchange was put on; "" for none."""
        sql = f"""SELECT page FROM filings WHERE event NOT IN {_UNDONE} AND exchange = ? AND page IS NOT NULL
            ORDER BY event DESC LIMIT 1"""
        return self._projection.value(sql, exchange) or ""

    def _exchanges(self, table: str, where: str, hidden: Container[str] = ()) -> list[str]:
        """Return the ids of exchanges in a table, oldest first, but for the hidden ones.

        Args:
            table: With the columns `exchange` and `event`.
            where: A SQL condition, in which `it` is the row.
            hidden: Ids.
        """
        # ids ascend in time
        sql = f"SELECT DISTINCT exchange FROM {table} it WHERE {where} AND event NOT IN {_UNDONE} ORDER BY exchange"
        return [exchange for (exchange,) in self._projection.query(sql) if exchange not in hidden]


class WaitingExchanges(NamedTuple):
    """The oldest exchanges that wait to be consolidated, as their pages have them now.

    Attributes:
        events: The exchanges, oldest first.
        removed: Ids of those that are on no page any more: a person removed them.
        is_partial: Whether further exchanges wait.
    """

    events: list[StmEvent]
    removed: list[str]
    is_partial: bool


def waiting_events(store: Store) -> WaitingExchanges:
    """Return the oldest exchanges that wait to be consolidated, at most `MAX_WAITING`."""
    waiting = FiledExchanges(store).waiting
    ids = waiting[:MAX_WAITING]
    found = exchanges_in_pages(store, ids)
    removed = [exchange for exchange in ids if exchange not in found]
    events = sorted((event for _, event in found.values()), key=said_at)
    return WaitingExchanges(events, removed, len(waiting) > len(ids))


def said_at(event: StmEvent) -> tuple[str, str]:
    """Return the sort key that puts exchanges into the order in which they were said."""
    return event.at, event.id


def exchanges_in_pages(store: Store, ids: Sequence[str]) -> dict[str, tuple[str, StmEvent]]:
    """Return exchanges by id, each as its page has it now, behind the path of the page; none for those on no page."""
    filed = FiledExchanges(store)
    found = exchanges_on_pages(store, {filed.page_of(exchange) for exchange in ids} - {""}, ids)
    if left := [exchange for exchange in ids if exchange not in found]:  # a person may have moved their page
        paths = store.tree.scan(store.tree.long_term / "events", store.tree.archive)
        found |= exchanges_on_pages(store, sorted(paths), left)
    return found


def exchanges_on_pages(store: Store, paths: Collection[str], ids: Collection[str]) -> dict[str, tuple[str, StmEvent]]:
    """Return the exchanges with these ids that are on these pages, by id, each behind the path of its page.

    All of a page are private where its front matter says so or cannot be parsed.
    """
    exchanges: dict[str, tuple[str, StmEvent]] = {}
    for path in paths:
        text = store.read_text(path) or ""
        if not any(exchange in text for exchange in ids):
            continue
        try:
            meta, offset = split(text, path)
        except FormatError:
            meta, offset = {"private": True}, 0
        events = (placed.event for placed in find_events(text, offset) if placed.event.id in ids)
        private = is_private(meta)
        exchanges |= {each.id: (path, replace(each, is_private=private or each.is_private)) for each in events}
    return exchanges


def author_on_page(store: Store, path: str) -> Author:
    """Return the author of the exchanges on a page by its front matter; of an import this is the service.

    Args:
        store: Of the brain.
        path: Of the page; "" for none, which gives the person.
    """
    try:
        meta, _ = split(store.read_text(path) or "", path) if path else ({}, 0)
    except FormatError:
        return Author(ORIGINS[-1])  # unclear, so the least trusted
    return author_in(meta)
