"""Reflection: right after the answer, the exchange is noted in short-term memory."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import partial

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.errors import ConflictError, FormatError, ModelError
from brainiac.events import Event, ExchangeOffRecord, ExchangeReflected, write
from brainiac.formats.authors import PERSON, Author, plain_name
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import one_line, without_quotes
from brainiac.formats.prompt import Exchange, Prompt, Response, arguments
from brainiac.formats.short_term import Item, ShortTermDocument, StmEvent, matching
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import hide, target_of_hits
from brainiac.llm.gate import Gate
from brainiac.llm.redaction import kinds_of, redact
from brainiac.llm.schemas import Existing, Reflection, ReflectRequest
from brainiac.storage.links import with_links_from, with_rooted_links
from brainiac.storage.said import FiledExchanges, waiting_events
from brainiac.storage.statements import StatementLog, text_hash, without_items
from brainiac.text.tokens import coverage, holds_phrase

NAME = "reflection"
QUOTING = ("offline", "commands")  # the `model` of responses that only quote memory
FEW, MOST = 0.5, 0.8  # shares of an item's character trigrams: one that the person said has more, in whatever words
NEAR = 24  # hits of which a model says which are to be forgotten
EARLIER = 20  # exchanges before one whose words a model may have taken for it


@hookimpl
def response_arrived(brain: Brain, exchange: Exchange) -> None:
    """Append an exchange to the Event Log and what follows from it to Structured Data; leave the Summary alone."""
    if brain.answered.has_outcome(exchange.id):
        return  # the hook is called again because another plugin failed; the exchange may be filed already
    if not exchange.prompt.remember:
        brain.record(ExchangeOffRecord(exchange=exchange.id), by=NAME)
        return
    try:
        reflection, is_extracted = _reflect(brain, exchange), True
        _hide(brain, exchange, reflection)  # before it is noted: what is to be hidden is hidden first
    except ModelError as error:
        brain.log.warning("extraction_postponed", exchange=exchange.id, problem=error.problem)
        reflection, is_extracted = Reflection(), False  # the exchange is noted now, its goals, facts and tasks later
    _note(brain, exchange, reflection, is_extracted=is_extracted)


@hookimpl
def quiet(brain: Brain, idle_seconds: float) -> None:
    """Reflect on the exchanges that were noted while no model could answer; the first failure ends the attempt."""
    unextracted = FiledExchanges(brain).unextracted
    if not unextracted:
        return
    events = (*brain.short_term().memory.events, *waiting_events(brain).events)
    by_id = {event.id: event for event in events if event.id in unextracted}
    for event in sorted(by_id.values(), key=lambda event: (event.at, event.id)):
        # with the texts that short-term memory has of it
        prompt = Prompt("", event.user, "", event.at, private=event.is_private, origin=event.origin, by=event.by)
        exchange = Exchange(event.id, prompt, Response(path="", text=event.ai) if event.ai else None, event.at)
        reflection = _reflect(brain, exchange)
        if typed := Exchanges(brain).texts_of(event.id):  # what short-term memory has does not say whose words it is
            _hide(brain, typed, reflection)
        if _note(brain, exchange, reflection, is_extracted=True, is_new=False) is None:
            # nothing followed from it: that it was read is recorded, so that it is not tried again
            brain.record(ExchangeReflected(exchange=exchange.id), by=NAME, cause=exchange.id)


def _reflect(brain: Brain, exchange: Exchange, existing: Sequence[Existing] | None = None) -> Reflection:
    """Have the model extract goals, facts, decisions and tasks from an exchange, unless it is nothing but commands.

    Args:
        brain: The brain.
        exchange: The exchange.
        existing: Memories of which it is asked instead which are to be forgotten; none, and it is not asked.
    """
    if existing == [] or not exchange.prompt.said.strip():
        return Reflection()
    turns = brain.conversation(exchange.prompt)
    request = ReflectRequest(
        now=brain.now(),
        is_private=exchange.is_private,
        exchange=exchange,
        short_term=brain.short_term().memory,
        existing=existing or (),
        conversation=[turn for turn in turns if turn.at < exchange.at],
    )
    reflection = brain.models.run(request)
    assert isinstance(reflection, Reflection)
    return reflection


def _hide(brain: Brain, exchange: Exchange, reflection: Reflection) -> None:
    """Hide what a person asked to have forgotten or not kept, by words that they typed in this very prompt.

    What stands in a quotation, a note, an import or what came through a door asks nothing.

    Raises:
        ModelError: The model cannot say now which memories are meant.
    """
    prompt = exchange.prompt
    quotes = [quote for quote in reflection.forget if holds_phrase(without_quotes(prompt.said), quote)]
    if not prompt.is_typed or prompt.is_capture or not quotes:
        return
    # of an open exchange the answer, which names what is hidden, is open
    gate = Gate(brain, Audience.HERE if exchange.is_private else Audience.ANYONE)
    hits = gate.hits(brain.recall.search(" ".join(quotes), limit=NEAR, now=brain.now(), is_private=True))
    memory = brain.tree.relative(brain.tree.memory) + "/"
    named = {f"m{n}": hit for n, hit in enumerate([hit for hit in hits if hit.path.startswith(memory)], 1)}
    meant = _reflect(brain, exchange, [Existing(name, hit.said, hit.path) for name, hit in named.items()])
    chosen = [named[name] for row in meant.forget if (name := row.strip("[] ")) in named]
    hide(brain, exchange, quotes, target_of_hits(brain, chosen))


def _note(
    brain: Brain, exchange: Exchange, reflection: Reflection, *, is_extracted: bool, is_new: bool = True
) -> Event | None:
    """Write an exchange and its reflection into short-term memory.

    Args:
        brain: The brain.
        exchange: The exchange.
        reflection: The goals, facts, decisions and tasks that follow from it.
        is_extracted: Whether a model extracted them; false where it has to be tried again.
        is_new: Whether the exchange was never noted before; one that was is not added again.

    Returns:
        The event; None where short-term memory does not change.

    Raises:
        ConflictError: In each of 20 attempts somebody saved short-term memory, or it cannot be read now.
    """
    path = brain.tree.relative(brain.tree.short_term)

    def attempt() -> Event | None:
        with brain.short_term_lock():
            try:
                document = brain.short_term()
            except FormatError as error:  # git left conflict markers, or a heading is missing: noted when it is mended
                raise ConflictError([path]) from error
            before, superseded = document, exchange.supersedes or ""
            if superseded and superseded != exchange.id:  # what this one revises; a reworded or ticked item of it stays
                log = StatementLog(brain)
                items = [item.text for item in _items(document) if superseded in log.sources_of_item(item.text)]
                before = document.without_event(superseded)
                before = without_items(before, lambda item: not item.is_done and item.text in items)[0]
            after = _with_exchange(brain, before, exchange, reflection, is_new=is_new)
            if str(after) == str(document):
                return None
            texts_before = {item.text for item in _items(before)}
            thoughts = next((event.thoughts for event in after.memory.events if event.id == exchange.id), "")
            reflected = ExchangeReflected(
                exchange=exchange.id,
                prompt=exchange.prompt.path,
                is_extracted=is_extracted,
                # by these hashes Promotion knows our lines from those that a person wrote
                items=tuple(text_hash(item.text) for item in _items(after) if item.text not in texts_before),
                thoughts=text_hash(thoughts) if thoughts and not before.has_event(exchange.id) else "",
                is_redacted=bool(kinds_of(brain, exchange.prompt.text)),
                supersedes=superseded,
            )
            change = write(path, None if brain.read(path) is None else str(document), str(after))
            return brain.commit(reflected, by=NAME, changes=[change], cause=exchange.id)

    return brain.retry(attempt)


def _with_exchange(
    brain: Brain, document: ShortTermDocument, exchange: Exchange, reflection: Reflection, *, is_new: bool
) -> ShortTermDocument:
    """Return short-term memory with an exchange, the items of its commands and those of its reflection.

    One that is not new may have left the Event Log for the page of its day; then its facts are on that page, too.
    """
    commands = exchange.prompt.commands
    event = StmEvent(
        id=exchange.id,
        at=exchange.at,
        user=redact(brain, exchange.prompt.text),
        ai=redact(brain, _answer_to_note(brain, exchange)),
        thoughts=redact(brain, reflection.thoughts),
        is_private=exchange.is_private,
        origin=exchange.prompt.author.origin,
        by=exchange.prompt.author.by,
    )
    logged = document.with_event(event) if is_new else document
    facts = [*arguments(commands, "remember"), *reflection.facts, *reflection.decisions]
    tasks, prompt = [*arguments(commands, "todo"), *reflection.tasks], exchange.prompt
    if prompt.due:  # its front matter has a day for its tasks; without any it is one itself
        first_line = next((line for line in prompt.said.split("\n") if line.strip()), "")
        tasks = [f"{one_line(task)} (due {one_line(prompt.due)})" for task in tasks or filter(None, [first_line])]
    if not exchange.is_private:  # the lists are open: what follows from a private exchange stays within it
        earlier = [other for other in document.memory.events if other.at < exchange.at and other.id != exchange.id]
        items = partial(_items_from, brain, exchange, earlier[:EARLIER])
        logged = logged.with_items(
            goals=items(reflection.goals),
            facts=items(facts if logged.has_event(event.id) else ()),
            tasks=items(tasks),
        )
    # words that several open tasks have, or none, name no task
    matches = [matching(document.memory.tasks, words) for words in arguments(commands, "done")]
    ticked = [tasks[0].text for tasks in matches if len(tasks) == 1]
    # what another says is done may be so; the person's list goes by the person's words
    return logged.with_done([*ticked, *(reflection.done if event.origin == PERSON else ())])


def _answer_to_note(brain: Brain, exchange: Exchange) -> str:
    """Return the text of an answer, or only its links where it quotes memory: else a search finds the words twice.

    Its links lead from short-term memory, which stands in another folder.
    """
    response = exchange.response
    if response is None:
        return ""
    text = ", ".join(response.memories) if response.model in QUOTING else response.text
    rooted = with_rooted_links(brain, text, [posixpath.dirname(response.path)]) if response.path else text
    return with_links_from(brain, rooted, brain.tree.relative(brain.tree.short_term))


def _items(document: ShortTermDocument) -> tuple[Item, ...]:
    """Return the items of all three lists."""
    memory = document.memory
    return (*memory.goals, *memory.facts, *memory.tasks)


def _items_from(brain: Brain, exchange: Exchange, earlier: Sequence[StmEvent], texts: Sequence[str]) -> list[str]:
    """Return the texts of items that follow from an exchange: without secrets, and marked where others said them.

    Args:
        brain: The brain.
        exchange: The exchange.
        earlier: Those before it, of which a model is shown the last: it may take their words for this one's.
        texts: What a model or a command listed.
    """
    prompt, response, items = exchange.prompt, exchange.response, []
    others = [(response.text, Author("assistant", plain_name(response.model)))] if response else []
    others += [said for event in earlier for said in ((event.user, event.author), (event.ai, Author("assistant")))]
    for text in texts:
        author = prompt.author  # whose words they are, or theirs who said them where the prompt does not have them
        if author.origin == PERSON and coverage(text, prompt.text) < FEW:
            # who said most of its words; what an answer says again is the person's
            said = ((coverage(text, words), each.origin == PERSON, each) for words, each in others)
            most, _, nearest = max(said, key=lambda each: each[:2], default=(0.0, False, author))
            author = nearest if most >= MOST else author
        items.append(f"{redact(brain, text)}{author.mark()}")
    return items
