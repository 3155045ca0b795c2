"""What is to be kept without a model judging it: what the person marked, and what use has marked (design 8).

Marked by the person: `/remember`, a note in `inbox/notes/`, a line under Key Facts, a block with a `#tag` or `[[link]]`
of theirs. Marked by use: words that led an answer on two different days, or were said again on another day in nearly
the same words. All of it as written; no word decides anything.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Event, NoteCaptured
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import blocks_of, decoded, tags_in, wiki_links_in
from brainiac.formats.prompt import arguments, parse_commands
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.history.why import Exchanges
from brainiac.llm.schemas import OFFLINE, ConsolidateRequest, Consolidation, Marked, PageName
from brainiac.pipeline.dispatch import exchange_of
from brainiac.search.query import searches
from brainiac.storage.relinking import Origins
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.tokens import ends_as_question, likeness, words

from .apply import Candidate
from .draft import Draft

AGAIN = 0.8  # of their runs of signs: so alike, words were said again
MIN_WORDS = 4  # said again: shorter words are everybody's
MIN_RARE = 2  # of these, so many must be rare among what was said
LED_DAYS = 2
_LOOKED_AT = 10


def find_marked(
    brain: Brain,
    events: Sequence[StmEvent],
    lines: Mapping[str, str],
    log: StatementLog,
    known: Exchanges,
    *,
    with_earlier: bool,
) -> list[tuple[Marked, StmEvent]]:
    """Return what is to be kept of events, and what the use of earlier words has marked by now, oldest first.

    Args:
        brain: The brain.
        events: Of short-term memory, a person's own lines under Key Facts among them.
        lines: The texts of these lines, by event id.
        log: What the journals tell.
        known: What they tell of exchanges.
        with_earlier: Also what led answers, wherever it stands by now.
    """
    by_id: dict[str, tuple[Marked, StmEvent]] = {}
    for marked, event in (
        *_of_events(brain, events, lines, known),
        *(_led(brain, log, known) if with_earlier else ()),
    ):
        if not log.is_decided(candidate_id(marked)):
            by_id.setdefault(candidate_id(marked), (marked, event))
    return sorted(by_id.values(), key=lambda pair: (pair[0].at, candidate_id(pair[0])))


def candidate_id(marked: Marked) -> str:
    """Return what the journal knows a decision by: the same words of the same exchange are decided once."""
    return f"{marked.exchange}:{text_hash(marked.text)}"


def keyless_candidates(
    brain: Brain, draft: Draft, marked_words: Sequence[tuple[Marked, StmEvent]], origins: Origins
) -> list[Candidate]:
    """Return what the keyless engine makes of marked words: `same` where they stand already, else `new`.

    Args:
        brain: The brain.
        draft: The pages in work.
        marked_words: The words with the events they were said in.
        origins: Tells where the links of an event lead.
    """
    candidates = []
    for is_private in (False, True):
        group = [pair for pair in marked_words if pair[1].is_private == is_private]
        if not group:
            continue
        pages = [
            PageName(page.path, (page.title, *page.aliases))
            for page in draft.memories(is_private=is_private)
            if draft.pages.kind_of(page.path) in ("concrete", "skills")
        ]
        marked = [_with_standing(draft, given, is_private=is_private) for given, _ in group]
        request = ConsolidateRequest(
            now=brain.now(), is_private=is_private, said=(), short_term=ShortTermMemory(), pages=pages, marked=marked
        )
        result = brain.models.run(request)
        assert isinstance(result, Consolidation)
        for (given, event), operation in zip(group, result.operations, strict=True):
            text = origins.rooted(replace(event, user=operation.text, ai="")).user
            operation = operation.model_copy(update={"text": text})
            candidates.append(Candidate(candidate_id(given), operation, (event,), OFFLINE))
    return sorted(candidates, key=lambda candidate: (candidate.at, candidate.id))


def _with_standing(draft: Draft, marked: Marked, *, is_private: bool) -> Marked:
    """Return marked words with the statements in the same words; those that stand no more are left out."""
    same = [name for name in marked.same if (known := draft.known(name)) and known.is_private == is_private]
    if not same and (standing := draft.same_words(marked.text, is_private=is_private)):
        same = [standing]
    return replace(marked, same=tuple(same))


def _of_events(
    brain: Brain, events: Sequence[StmEvent], lines: Mapping[str, str], known: Exchanges
) -> Iterator[tuple[Marked, StmEvent]]:
    for event in events:
        if event.id in lines:
            yield Marked(lines[event.id], event.id, event.at, "key-fact"), event
            continue
        recorded = known.event(event.id)
        for marked in _of_event(brain, event, recorded):
            yield marked, event


def _of_event(brain: Brain, event: StmEvent, recorded: Event | None) -> Iterator[Marked]:
    """Yield what is marked of one exchange; of several marks on the same words the first counts."""
    base = Marked(event.user, event.id, event.at, "", conversation=_conversation(brain, recorded))
    spoken = exchange_of(brain, recorded) if recorded else None
    commands, said = parse_commands(event.user)
    if spoken is not None and not spoken.prompt.commands:
        commands, said = (), event.user  # it came through a door
    for text in arguments(commands, "remember"):
        yield _marked(replace(base, text=text, by="command"))
    if recorded is not None and recorded.kind == NoteCaptured.kind:
        yield _marked(replace(base, text=_as_saved(brain, recorded, said), by="note", is_note=True))
        return
    for block in blocks_of(said):
        if tags_in(block) or wiki_links_in(block):
            yield _marked(replace(base, text=block, by="tag" if tags_in(block) else "link"))
        elif _is_told(block):
            yield from _said_again(brain, replace(base, text=block, by="repetition"), event)


def _marked(base: Marked) -> Marked:
    return replace(base, tags=tuple(tags_in(base.text)), links=tuple(wiki_links_in(base.text)))


def _conversation(brain: Brain, recorded: Event | None) -> str:
    """Return the name of the folder of the inbox that an exchange was held in; "" at its top and among notes."""
    inbox = brain.tree.relative(brain.tree.inbox)
    folder = posixpath.dirname(str(recorded.data.get("prompt") or "")) if recorded else ""
    name = folder.removeprefix(inbox).strip("/")
    return "" if recorded is None or recorded.kind == NoteCaptured.kind else name


def _as_saved(brain: Brain, recorded: Event, said: str) -> str:
    """Return a note's body byte for byte as it was saved, line ends included; as recorded where redacted."""
    for change in recorded.changes:
        if change.path != recorded.data.get("prompt") or not change.after:
            continue
        try:
            text = decoded(brain.committer.text_of(change.after))
            body = text[split(text)[1] :].removeprefix("\ufeff")
        except (BlobError, FormatError):
            break
        if body.replace("\r\n", "\n").strip() == said.strip():
            return body
    return said


def _is_told(block: str) -> bool:
    return len(set(words(block))) >= MIN_WORDS and not ends_as_question(block)


def _said_again(brain: Brain, marked: Marked, event: StmEvent) -> Iterator[Marked]:
    """Yield words that were said on another day in nearly the same words."""
    query = searches(marked.text, ())[0]
    hits = brain.recall.search(  # by words alone: no embedder elsewhere is asked about what nobody asked
        query,
        limit=_LOOKED_AT,
        kinds={"exchange", "statement"},
        now=brain.now(),
        is_private=True,
        include_repeats=True,
    )
    alike = [
        hit
        for hit in hits
        if hit.anchor != event.id
        and (hit.kind == "statement" or hit.speaker == "user")
        and likeness(hit.text, marked.text) >= AGAIN
        and brain.day_of(hit.at) != brain.day_of(event.at)
    ]
    if not alike or len(brain.recall.rare_words(marked.text)) < MIN_RARE:
        return
    statements = tuple(f"{hit.uuid or hit.path}#{hit.anchor}" for hit in alike if hit.kind == "statement")
    yield replace(_marked(marked), same=statements[:1])


def _led(brain: Brain, log: StatementLog, known: Exchanges) -> Iterator[tuple[Marked, StmEvent]]:
    """Yield the words that led an answer on two different days."""
    for (exchange, digest), days in log.led().items():
        recorded = known.event(exchange) if len(days) >= LED_DAYS else None
        if recorded is None or log.is_decided(f"{exchange}:{digest}"):
            continue
        noted = known.noted(exchange)
        if noted is None:
            continue
        texts = (noted.user, *blocks_of(noted.user))
        text = next((text for text in texts if text_hash(text) == digest), "")
        if text and not ends_as_question(text):
            conversation = _conversation(brain, recorded)
            yield _marked(Marked(text, exchange, noted.at, "use", conversation=conversation)), noted
