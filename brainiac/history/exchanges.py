"""An exchange traced to the words typed: in the file itself, the journal, short-term memory or its day's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.events import Event
from brainiac.formats.dialogue import StmEvent, find_events
from brainiac.pipeline.dispatch import exchange_of
from brainiac.storage.answered import EXCHANGES, MOVED
from brainiac.text.tokens import coverage, pieces


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange.

    Attributes:
        exchange: Its id.
        at: ISO 8601 UTC.
        user: What was typed; "" when no text of it is left.
        ai: The answer.
        prompt: Path of the prompt as it was answered; "" if unknown.
        device: Where it was answered; "" for this one.
        model: Who answered; "" for a note, or if unknown.
        cost_usd: Of the answer.
        read_from: Path of the file that the words were read from, or `journal`.
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

    def sentence_for(self, statement: str) -> str:
        """Return the words typed that a statement rests on: all of them where it is them, else the nearest piece."""
        if statement in self.user:
            return statement
        return max(pieces(self.user), key=lambda piece: coverage(statement, piece), default=self.user)


class Exchanges:
    """The exchanges of all devices, found by id.

    Args:
        brain: The brain.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain

    @cached_property
    def events(self) -> dict[str, tuple[str, Event]]:
        """Device ("" for this one) and event that made each exchange known, by exchange id."""
        found = {event.id: (device, event) for device, event in self._brain.journal.foreign_events()
                 if event.kind in EXCHANGES}  # fmt: skip
        return found | {event.id: ("", event) for event in self._brain.journal.events(kinds=EXCHANGES)}

    def said(self, exchange: str) -> Said:
        """Return what is known of an exchange; without words where none are left."""
        device, event = self.events.get(exchange, ("", None))
        spoken = exchange_of(self._brain, event) if event else None
        if event is not None and spoken is not None:
            is_standing = self._brain.read(spoken.prompt.path) is not None
            return Said(
                exchange,
                event.at,
                spoken.prompt.text,
                spoken.response.text if spoken.response else "",
                spoken.prompt.path,
                device,
                (spoken.response.model or "") if spoken.response else "",
                (spoken.response.cost_usd or 0.0) if spoken.response else 0.0,
                spoken.prompt.path if is_standing else "journal",
            )
        path, noted = self._place_of(exchange)
        at, user, ai = (noted.at, noted.user, noted.ai) if noted else (event.at if event else "", "", "")
        data = event.data if event else {}
        prompt, model = str(data.get("prompt") or ""), str(data.get("model") or "")
        return Said(exchange, at, user, ai, prompt, device, model, read_from=path)

    def noted(self, exchange: str) -> StmEvent | None:
        """Return an exchange as memory holds it: in short-term memory, or on the page of its day."""
        return self._place_of(exchange)[1]

    def _place_of(self, exchange: str) -> tuple[str, StmEvent | None]:
        for path, text in self._pages(exchange):
            for placed in find_events(text):
                if placed.event.id == exchange:
                    return path, placed.event
        return "", None

    def _pages(self, exchange: str) -> Iterator[tuple[str, str]]:
        """Yield the files that hold an exchange: those where it should stand are looked at first."""
        tree = self._brain.tree
        yield from self._holding([tree.relative(tree.short_term)], exchange)
        _, event = self.events.get(exchange, ("", None))
        folder = tree.long_term / "events" / self._brain.day_of(event.at).replace("-", "/") if event else None
        if folder is not None and folder.is_dir():
            yield from self._holding(sorted(tree.relative(entry.path) for entry in tree.walk(folder)), exchange)
        everywhere = tree.walk(tree.long_term / "events", tree.archive)
        yield from self._holding(sorted(tree.relative(entry.path) for entry in everywhere), exchange)

    def _holding(self, paths: Iterable[str], exchange: str) -> Iterator[tuple[str, str]]:
        for path in paths:
            text = self._brain.read_text(path) or ""
            if exchange in text:
                yield path, text

    def place_of(self, event: Event) -> str:
        """Return where the prompt of an exchange stands by now, moves followed."""
        path = str(event.data["prompt"])
        for later in self._moves:
            if later.id > event.id and later.data.get("moved_from") == path:
                path = str(later.data["prompt"])
        return path

    @cached_property
    def _moves(self) -> list[Event]:
        foreign = (event for _, event in self._brain.journal.foreign_events() if event.kind == MOVED)
        return sorted((*foreign, *self._brain.journal.events(kinds={MOVED})), key=lambda event: event.id)

    def with_same_prompt(self, exchange: str) -> list[str]:
        """Return an exchange with its earlier and later revisions, oldest first."""
        _, event = self.events.get(exchange, ("", None))
        if event is None:
            return [exchange]
        prompt = event.data.get("prompt_id")
        return sorted(each for each, (_, one) in self.events.items() if one.data.get("prompt_id") == prompt)

    def in_folder(self, folder: str) -> list[str]:
        """Return the exchanges of a conversation."""
        prompts = ((each, self.place_of(event)) for each, (_, event) in self.events.items())
        return [each for each, prompt in prompts if prompt.startswith(folder.rstrip("/") + "/")]

    def find(self, named: str) -> str | None:
        """Return the exchange that an id, a part of one, or the path of its prompt or response names."""
        if named in self.events:
            return named
        by_path = [
            each
            for each, (_, event) in self.events.items()
            if named in (event.data.get("prompt"), event.data.get("response"), self.place_of(event))
        ]
        if by_path:
            return max(by_path)
        part = [each for each in self.events if len(named) >= 6 and (each.startswith(named) or each.endswith(named))]
        if len(part) == 1:
            return part[0]
        return named if self._is_noted(named) else None

    def _is_noted(self, exchange: str) -> bool:
        try:
            return len(exchange) >= 6 and self.noted(exchange) is not None
        except FormatError:
            return False
