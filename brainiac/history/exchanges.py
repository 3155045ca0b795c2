"""Finds an exchange by its id, or by the path of its prompt, and its words wherever they are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

from brainiac.brain import Brain
from brainiac.events import Event, ExchangeEvent, ImportStarted, PromptAnswered
from brainiac.formats.authors import PERSON, door_and_name, least_trusted, without_mark
from brainiac.formats.markdown import StmEvent
from brainiac.formats.prompt import Exchange
from brainiac.llm.gate import Gate
from brainiac.llm.redaction import redact
from brainiac.pipeline.dispatch import exchange_of
from brainiac.storage.said import author_on_page, exchanges_in_pages, exchanges_on_pages, forgotten_at
from brainiac.text.tokens import coverage, pieces

MIN_ID_PART = 6  # fewer characters of an exchange's id are not looked up


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange, with its texts as far as they are kept.

    Attributes:
        exchange: Its id.
        at: When it was recorded, ISO 8601 UTC; "" if unknown.
        user: What was said, by the person or by whom `origin` and `by` name; "" when no text of it is left.
        ai: The answer.
        prompt: Path of the prompt as it was answered; "" if unknown.
        device: Where it was answered; "" for this one.
        model: Who answered; "" for a note, or if unknown.
        cost_usd: Of the answer.
        read_from: Path of the file that the words were read from, or `journal`.
        is_private: It must not leave this machine, or it is off the record.
        origin: Whose words `user` holds, one of `ORIGINS`.
        by: The client by which they came, such as `mcp:claude`; of an import the service that answered.
        imported: How it was imported, such as `imported from chat.json on 2026-05-03`; "" where it was said here.
        is_answer: Whether the words in question are the answer's.
    """

    exchange: str
    at: str
    user: str
    ai: str = ""
    prompt: str = ""
    device: str = ""
    model: str = ""
    cost_usd: float = 0.0
    read_from: str = ""
    is_private: bool = False
    origin: str = PERSON
    by: str = ""
    imported: str = ""
    is_answer: bool = False

    @property
    def words(self) -> str:
        """The words in question."""
        return self.ai if self.is_answer else self.user

    @property
    def told(self) -> str:
        """Who said the words in question, and by which way, for a line before them."""
        door, name = door_and_name(self.by)
        if self.is_answer:
            return f"said by {name if self.imported else self.model or 'the AI'}"
        if self.origin != PERSON:
            return f"written by {name or f'an unnamed {self.origin}'}" + (f" through {door}" if door else "")
        if self.imported:
            return f"you said to {name}"
        return f"you said by way of {name}" if name else "you typed"

    def on_side_of(self, origin: str) -> Said:
        """Return it with the words in question being those of an origin: an assistant's are the answer's."""
        return replace(self, is_answer=origin == "assistant" and self.origin != origin)

    def sentence_for(self, statement: str) -> str:
        """Return the sentence that a statement rests on: the statement if it was said so, else the nearest."""
        words = without_mark(statement)
        if words in self.words:
            return words
        return max(pieces(self.words), key=lambda piece: coverage(words, piece), default=self.words)


class Exchanges:
    """Finds exchanges of all devices by id, with their texts from the journal, the inbox or memory.

    Args:
        brain: The brain.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._events: dict[str, Event | None] = {}  # by id of the exchange, those that were asked for
        self._imports: dict[str, str] = {}  # by id of the event
        brain.projection.follow()

    def event(self, exchange: str) -> Event | None:
        """Return the event that recorded an exchange; None for no exchange, or if its journal is not here now."""
        if exchange not in self._events:
            rows = self._brain.projection.query("SELECT at, device FROM exchanges WHERE event = ?", exchange)
            self._events[exchange] = self._brain.journal.event_of_day(exchange, *rows[0]) if rows else None
        return self._events[exchange]

    def what(self, exchange: str) -> ExchangeEvent | None:
        """Return what the journal records of an exchange; None where it records none."""
        event = self.event(exchange)
        return event.what if event and isinstance(event.what, ExchangeEvent) else None

    def texts_of(self, exchange: str) -> Exchange | None:
        """Return an exchange as its prompt and response have it, in the journal or the inbox; None for neither."""
        event = self.event(exchange)
        return exchange_of(self._brain, event) if event else None

    def said(self, exchange: str) -> Said:
        """Return an exchange with its texts from journal and inbox, else from memory; "" where neither has them."""
        sql = "SELECT device FROM exchanges WHERE event = ? AND device != ?"
        device = self._brain.projection.value(sql, exchange, self._brain.journal.device) or ""
        event, texts = self.event(exchange), self.texts_of(exchange)
        if event is None or texts is None:
            return self._from_memory(exchange, device, event)
        prompt, response = texts.prompt, texts.response
        return Said(
            exchange,
            event.at,
            prompt.text,
            ai=response.text if response else "",
            prompt=prompt.path,
            device=device,
            model=(response and response.model) or "",
            cost_usd=(response and response.cost_usd) or 0.0,
            read_from="journal" if self._brain.read(prompt.path) is None else prompt.path,
            is_private=texts.is_private or not prompt.remember,
            origin=prompt.origin,
            by=prompt.by,
        )

    def _from_memory(self, exchange: str, device: str, event: Event | None) -> Said:
        """Return an exchange whose texts are in neither journal nor inbox, with the texts that memory has."""
        path, found = self._find_in_memory(exchange)
        in_memory = found or StmEvent(exchange, event.at if event else "", "")
        record, author = self.what(exchange), in_memory.author
        page = author_on_page(self._brain, path)
        is_imported = page.origin == "import"
        return Said(
            exchange,
            in_memory.at,
            user=in_memory.user,
            ai=in_memory.ai,
            prompt=record.prompt if record else "",
            device=device,
            model=record.model if isinstance(record, PromptAnswered) else "",
            read_from=path,
            origin=least_trusted(author.origin, record.origin if record else ""),
            by=page.by if is_imported else (record.author if record else "") or author.by,
            imported=self._import_of(exchange) if is_imported else "",
        )

    def _import_of(self, exchange: str) -> str:
        """Return how an exchange was imported, in words for a person, as far as this device's journal knows."""
        sql = "SELECT event FROM filings WHERE exchange = ? AND page IS NOT NULL ORDER BY event LIMIT 1"
        event_id = next((event for (event,) in self._brain.projection.query(sql, exchange)), "")
        if event_id not in self._imports:
            event = self._brain.journal.find(event_id) if event_id else None
            started = self._brain.journal.find(event.cause or "") if event else None
            self._imports[event_id] = "imported"
            if event and started and isinstance(started.what, ImportStarted):
                self._imports[event_id] += f" from {started.what.source} on {self._brain.day_of(event.at)}"
        return self._imports[event_id]

    def shown(self, exchange: str, gate: Gate | None) -> Said | None:
        """Return an exchange as far as a reader may see it.

        Args:
            exchange: Its id.
            gate: What decides what the reader sees; None for the person, who sees all.

        Returns:
            The exchange without secrets; None where it is private, off the record, forgotten, or where a person deleted
            the page that was made from it.
        """
        whole = self.said(exchange)
        if gate is None and not forgotten_at(self._brain, exchange):
            return whole
        in_memory = self.in_memory(exchange)
        # the journal keeps the texts of a forgotten exchange too
        if in_memory is None and (not whole.prompt or self._brain.read(whole.prompt) is None):
            return None
        if gate is None:
            return whole
        # when it was answered, by its files and in memory now, or by what is recorded since
        now = in_memory or StmEvent(exchange, whole.at, whole.user, whole.ai)
        is_private = whole.is_private or not gate.events([now])
        if is_private or self._brain.projection.query("SELECT 1 FROM withdrawals WHERE exchange = ?", exchange):
            return None
        return replace(whole, user=redact(self._brain, whole.user), ai=redact(self._brain, whole.ai))

    def standing(self, exchange: str) -> tuple[Said, str] | None:
        """Return an exchange, and the file of memory that has it ("" for none); None where nothing of it stands."""
        if forgotten_at(self._brain, exchange):
            return None
        path = self._find_in_memory(exchange)[0]
        is_there = path or self._brain.read(self.path_of(exchange)) is not None
        return (self.said(exchange), path) if is_there else None

    def in_memory(self, exchange: str) -> StmEvent | None:
        """Return an exchange from short-term memory or from the page of its day; None where neither has it."""
        return self._find_in_memory(exchange)[1]

    def _find_in_memory(self, exchange: str) -> tuple[str, StmEvent | None]:
        """Return the file in memory with an exchange, and the exchange as it is there; "" and None for none."""
        path = self._brain.tree.relative(self._brain.tree.short_term)
        if found := exchanges_on_pages(self._brain, [path], [exchange]) or exchanges_in_pages(self._brain, [exchange]):
            return found[exchange]
        return "", None

    def path_of(self, exchange: str) -> str:
        """Return the present path of an exchange's prompt, which may have been moved; "" for no exchange."""
        record = self.what(exchange)
        return self._brain.answered.path_of(exchange) or (record.prompt if record else "")

    def with_same_prompt(self, exchange: str) -> list[str]:
        """Return an exchange with its earlier and later revisions, oldest first."""
        same_prompt = "WHERE prompt_id = (SELECT prompt_id FROM exchanges WHERE event = ?)"
        return self._ids(same_prompt, exchange) or [exchange]

    def in_folder(self, folder: str) -> list[str]:
        """Return the exchanges of a conversation, by its folder, oldest first."""
        top = folder.rstrip("/") + "/"
        return [exchange for exchange in self._ids() if self.path_of(exchange).startswith(top)]

    def find(self, named: str) -> str | None:
        """Return the exchange that an id, a part of one, or the path of its prompt or response names; None for none."""
        matches = self._ids("WHERE ? IN (event, prompt, response)", named)
        if answer := self._brain.answered.of(named):  # to the prompt that is at this path now
            matches.append(answer.exchange)
        if matches:
            return max(matches)  # the last revision, as ids sort by time
        if len(named) < MIN_ID_PART:
            return None
        matches = [exchange for exchange in self._ids() if exchange.startswith(named) or exchange.endswith(named)]
        if len(matches) == 1:
            return matches[0]
        # in no journal that is here, but on a page: an imported one, or of another device
        return named if self.in_memory(named) else None

    def _ids(self, where: str = "", *values: str) -> list[str]:
        """Return the ids of exchanges, oldest first, all of them or those of an SQL condition."""
        rows = self._brain.projection.query(f"SELECT event FROM exchanges {where} ORDER BY event", *values)
        return [exchange for (exchange,) in rows]
