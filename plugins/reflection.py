"""Reflection: what was said is noted in short-term memory, right after the answer (seeds S11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.errors import ConflictError, ModelError
from brainiac.events import Event, ExchangeOffRecord, ExchangeReflected, create, update
from brainiac.formats.prompt import Command, Exchange, Prompt, Response, arguments
from brainiac.formats.short_term import Item, ShortTermDocument, StmEvent, matching
from brainiac.llm.redaction import kinds_of, redact
from brainiac.llm.schemas import Reflection, ReflectRequest
from brainiac.storage.filed import filed, waiting_events
from brainiac.storage.statements import text_hash

NAME = "reflection"
QUOTING = ("offline", "commands")  # as responses name who answered without saying anything of their own
ATTEMPTS = 20  # each further one means that somebody else wrote short-term memory in the same few milliseconds


@hookimpl
def response_arrived(brain: Brain, exchange: Exchange) -> None:
    """Append an exchange to the Event Log and what follows from it to Structured Data; leave the Summary alone."""
    if brain.answered.has_outcome(exchange.id):
        return  # handed out again for another plugin's sake; the log may not hold it any more
    if not exchange.prompt.remember:
        brain.record(ExchangeOffRecord(exchange=exchange.id), by=NAME)
        return
    try:
        reflection, is_extracted = _reflect(brain, exchange), True
    except ModelError as error:
        brain.log.warning("extraction_postponed", exchange=exchange.id, problem=error.problem)
        reflection, is_extracted = Reflection(), False  # what was said is noted now; what follows from it, later
    _note(brain, exchange, reflection, is_extracted=is_extracted)


@hookimpl
def quiet(brain: Brain, idle_seconds: float) -> None:
    """Extract again what no model could serve when it was said; the first failure ends the attempt."""
    unextracted = filed(brain).bare
    if not unextracted:
        return
    events = (*brain.short_term().memory.events, *waiting_events(brain)[0])
    bare = {event.id: event for event in events if event.id in unextracted}
    for event in sorted(bare.values(), key=lambda event: (event.at, event.id)):
        exchange = _exchange_of(event)
        if _note(brain, exchange, _reflect(brain, exchange), is_extracted=True, is_new=False) is None:
            brain.record(ExchangeReflected(exchange=exchange.id), by=NAME, cause=exchange.id)


def _reflect(brain: Brain, exchange: Exchange) -> Reflection:
    """Return what follows from an exchange; no model is asked about a prompt of nothing but commands."""
    if exchange.response is not None and exchange.response.model == "commands":
        return Reflection()
    request = ReflectRequest(
        now=brain.now(),
        is_private=exchange.is_private,
        exchange=exchange,
        short_term=brain.short_term().memory,
    )
    found = brain.models.run(request)
    assert isinstance(found, Reflection)
    return found


def _note(
    brain: Brain, exchange: Exchange, reflection: Reflection, *, is_extracted: bool, is_new: bool = True
) -> Event | None:
    """Write it, again and again where somebody else was quicker; None when it stands there already.

    Args:
        brain: The brain.
        exchange: What was said.
        reflection: What follows from it.
        is_extracted: Whether a model said so.
        is_new: Whether it was not in the Event Log before; one that was may have been filed from there.
    """
    for _ in range(ATTEMPTS):
        with brain.short_term_lock():
            document = brain.short_term()
            before = _without_superseded(brain, document, exchange)
            noted = _noted(brain, before, exchange, reflection, is_new=is_new)
            if str(noted) == str(document):
                return None
            path = brain.tree.relative(brain.tree.short_term)
            reflected = ExchangeReflected(
                exchange=exchange.id,
                prompt=exchange.prompt.path,
                is_extracted=is_extracted,
                # hashes tell what we wrote from a line that a person wrote
                items=tuple(_added(before, noted)),
                thoughts="" if before.has_event(exchange.id) else _thoughts(noted, exchange.id),
                is_redacted=bool(kinds_of(brain, exchange.prompt.text)),
                supersedes=exchange.supersedes or "",
            )
            try:
                is_missing = brain.read(path) is None
                change = create(path, str(noted)) if is_missing else update(path, str(document), str(noted))
                return brain.commit(reflected, by=NAME, changes=[change], cause=exchange.id)
            except ConflictError:
                continue
    raise ConflictError([brain.tree.relative(brain.tree.short_term)])


def _noted(
    brain: Brain, document: ShortTermDocument, exchange: Exchange, reflection: Reflection, *, is_new: bool
) -> ShortTermDocument:
    """Return short-term memory with an exchange and what follows from it."""
    commands = exchange.prompt.commands
    event = StmEvent(
        id=exchange.id,
        at=exchange.at,
        user=redact(brain, exchange.prompt.text),
        ai=redact(brain, _answer(exchange)),
        thoughts=redact(brain, reflection.thoughts),
        is_private=exchange.is_private,
    )
    logged = document.with_event(event) if is_new else document
    facts = [*arguments(commands, "remember"), *reflection.facts, *reflection.decisions]
    return logged.with_items(
        goals=_redacted(brain, reflection.goals),
        facts=_redacted(brain, facts if logged.has_event(event.id) else ()),  # else it was filed
        tasks=_redacted(brain, [*arguments(commands, "todo"), *reflection.tasks]),
        is_private=exchange.is_private,
    ).with_done([*_ticked(document.memory.tasks, commands), *reflection.done])


def _answer(exchange: Exchange) -> str:
    """Return what is recorded of an answer: of one that only quotes memory the links, so that no echo is found."""
    response = exchange.response
    if response is None:
        return ""
    return ", ".join(response.memories) if response.model in QUOTING else response.text


def _ticked(tasks: Sequence[Item], commands: Sequence[Command]) -> list[str]:
    """Return the tasks that `/done` names: each where exactly one open task holds its words."""
    named = [matching(tasks, words) for words in arguments(commands, "done")]
    return [matches[0].text for matches in named if len(matches) == 1]


def _without_superseded(brain: Brain, document: ShortTermDocument, exchange: Exchange) -> ShortTermDocument:
    """Return short-term memory without the exchange that this one revises, and without the items that it gave.

    What a person has worded anew or ticked stays.
    """
    superseded = exchange.supersedes
    if not superseded or superseded == exchange.id:
        return document
    given = {item for event in _reflected(brain, superseded) if event.exchange == superseded for item in event.items}

    def gone(items: Sequence[Item]) -> list[str]:
        return [item.text for item in items if not item.is_done and text_hash(item.text) in given]

    memory = document.memory
    return document.without_event(superseded).without_items(gone(memory.goals), gone(memory.facts), gone(memory.tasks))


def _added(before: ShortTermDocument, after: ShortTermDocument) -> list[str]:
    """Return the hashes of the list items that were written."""
    known = {item.text for item in _items(before)}
    return [text_hash(item.text) for item in _items(after) if item.text not in known]


def _thoughts(document: ShortTermDocument, event_id: str) -> str:
    """Return the hash of the thoughts that were written with an event; "" where there are none."""
    thoughts = next((event.thoughts for event in document.memory.events if event.id == event_id), "")
    return text_hash(thoughts) if thoughts else ""


def _items(document: ShortTermDocument) -> tuple[Item, ...]:
    memory = document.memory
    return (*memory.goals, *memory.facts, *memory.tasks)


def _redacted(brain: Brain, texts: Sequence[str]) -> list[str]:
    return [redact(brain, text) for text in texts]


def _reflected(brain: Brain, oldest: str) -> Iterator[ExchangeReflected]:
    """Yield what was recorded of reflections since an exchange, newest first; ids ascend in time."""
    events = brain.journal.events(kinds={ExchangeReflected}, reverse=True)
    recent = takewhile(lambda event: event.id >= oldest, events)
    return (event.what for event in recent if isinstance(event.what, ExchangeReflected))


def _exchange_of(event: StmEvent) -> Exchange:
    """Make an exchange of what short-term memory holds of it."""
    prompt = Prompt(path="", text=event.user, sha256="", at=event.at, private=event.is_private)
    response = Response(path="", text=event.ai) if event.ai else None
    return Exchange(event.id, prompt, response, event.at)
