"""Words that are kept as written, without a model's judgement: those that the person or use has marked.

Marked by the person: `/remember`, a note in `inbox/notes/`, a line under Key Facts, a block with a `#tag` or `[[link]]`
of theirs. Marked by use: words that answers mainly rested on on two different days, or that were said again on another
day in nearly the same words. What the words mean decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Event, NoteCaptured, PathKind
from brainiac.formats.authors import PERSON
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import blocks_of, decode_text, tags_in, wiki_links_in
from brainiac.formats.prompt import Exchange, arguments, parse_commands
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.history.exchanges import Exchanges
from brainiac.llm.schemas import OFFLINE, ConsolidateRequest, Consolidation, Marked, Operation, PageName
from brainiac.search.query import searches
from brainiac.storage.links import LinkOrigins
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.tokens import ends_as_question, likeness, words

from .apply import Candidate
from .draft import Draft
from .filing import conversation_of

REPEATED = 0.8  # two texts that share so many of their character trigrams say the same
MIN_WORDS = 4  # of a repeated block: shorter ones ("good morning to you") repeat by chance
MIN_RARE = 2  # of its words, so many must be rare in memory
ANSWER_DAYS = 2  # so many different days with an answer that mainly rested on the words
_MAX_HITS = 10


@dataclass(frozen=True, slots=True)
class MarkedText:
    """Marked words with the event that they were said in."""

    marked: Marked
    event: StmEvent


def find_marked(
    brain: Brain,
    events: Sequence[StmEvent],
    lines: Mapping[str, str],
    log: StatementLog,
    exchanges: Exchanges,
    *,
    with_earlier: bool,
) -> list[MarkedText]:
    """Return the marked words of events that no earlier run has decided on, oldest first, each text once.

    Args:
        brain: The brain.
        events: Events of short-term memory, a person's own lines under Key Facts among them.
        lines: The texts of these lines, by event id.
        log: Statements and decisions, from the journals.
        exchanges: Exchanges, from the journals.
        with_earlier: Whether to add words of earlier exchanges that answers mainly rested on.
    """
    texts = list(_marked_in_events(brain, events, lines, exchanges))
    if with_earlier:
        texts += _marked_by_answers(brain, log, exchanges)
    by_id: dict[str, MarkedText] = {}
    for text in texts:
        # a person who deleted what was written from these words must not get it again
        if not log.is_decided(candidate_id(text.marked)):
            by_id.setdefault(candidate_id(text.marked), text)
    return sorted(by_id.values(), key=lambda text: (text.marked.at, candidate_id(text.marked)))


def candidate_id(marked: Marked) -> str:
    """Return the id of a decision in the journal: the same words of the same exchange are decided once."""
    return _decision_id(marked.exchange, text_hash(marked.text))


def _decision_id(exchange: str, text_hash: str) -> str:
    return f"{exchange}:{text_hash}"


def offline_candidates(
    brain: Brain, draft: Draft, texts: Sequence[MarkedText], origins: LinkOrigins
) -> list[Candidate]:
    """Return the operations of the offline engine for marked words: `same` if a statement has them, else `new`.

    Args:
        brain: The brain.
        draft: The pages that the run changes.
        texts: The marked words.
        origins: Resolves the links in an event's text.
    """
    candidates = []
    # private words are compared with private statements alone, others with others
    for is_private in (False, True):
        group = [text for text in texts if text.event.is_private == is_private]
        operations = _offline_operations(brain, draft, group, is_private=is_private)
        for text, operation in zip(group, operations, strict=True):
            # the links in an operation's text are relative to the file of its event
            event_of_operation = replace(text.event, user=operation.text, ai="")
            rooted = origins.with_rooted_links(event_of_operation).user
            operation = operation.model_copy(update={"text": rooted})
            candidates.append(
                Candidate(candidate_id(text.marked), operation, (text.event,), OFFLINE, text.event.origin)
            )
    return sorted(candidates, key=lambda candidate: (candidate.at, candidate.id))


def _offline_operations(
    brain: Brain, draft: Draft, texts: Sequence[MarkedText], *, is_private: bool
) -> Sequence[Operation]:
    """Return an operation of the offline engine for each of the marked words."""
    if not texts:
        return []
    pages = [
        PageName(page.path, (page.title, *page.aliases))
        for page in draft.memories(is_private=is_private)
        if draft.pages.kind_of(page.path) in ("concrete", "skills")
    ]
    request = ConsolidateRequest(
        now=brain.now(),
        is_private=is_private,
        said=(),
        short_term=ShortTermMemory(),
        pages=pages,
        marked=[_with_same_statement(draft, text, is_private=is_private) for text in texts],
    )
    result = brain.models.run(request)
    assert isinstance(result, Consolidation)
    return result.operations


def _with_same_statement(draft: Draft, text: MarkedText, *, is_private: bool) -> Marked:
    """Return marked words with the ids of the current statements of the same author that have them, as private."""
    marked, same = text.marked, list[str]()
    for statement_id in marked.same:
        statement = draft.statement(statement_id)
        if statement and statement.is_private == is_private:
            same.append(statement_id)
    if not same and (statement_id := draft.id_of_words(marked.text + text.event.author.mark(), is_private=is_private)):
        same = [statement_id]
    return replace(marked, same=tuple(same))


def _marked_in_events(
    brain: Brain, events: Sequence[StmEvent], lines: Mapping[str, str], exchanges: Exchanges
) -> Iterator[MarkedText]:
    """Yield the marked words of events; a person's own line under Key Facts (`lines`, by event id) is marked whole."""
    for event in events:
        if event.id in lines:
            yield MarkedText(Marked(lines[event.id], event.id, event.at, "key-fact"), event)
            continue
        recorded, exchange = exchanges.event(event.id), exchanges.texts_of(event.id)
        if exchange is not None and event.origin == PERSON:  # the log may be older than its labels
            event = replace(event, origin=exchange.prompt.author.origin, by=exchange.prompt.author.by)
        for marked in _marked_in_exchange(brain, event, recorded, exchange):
            yield MarkedText(marked, event)


def _marked_in_exchange(
    brain: Brain, event: StmEvent, recorded: Event | None, exchange: Exchange | None
) -> Iterator[Marked]:
    """Yield the marked words of one exchange: by `/remember`, as a note, or a block by a tag, a link or repetition.

    Of several marks on a text the first of these counts. Of others' words only a note is kept: all else marks what the
    person holds dear.
    """
    tags = exchange.prompt.tags if exchange else ()
    unmarked = Marked(event.user, event.id, event.at, "", tags=tags, conversation=_conversation(brain, recorded))
    # what looks like commands in a text from another program is none
    may_command = event.origin == PERSON and (exchange is None or bool(exchange.prompt.commands))
    commands, body = parse_commands(event.user) if may_command else ((), event.user)
    for text in arguments(commands, "remember"):
        yield _with_tags(replace(unmarked, text=text, by="command"))
    if recorded is not None and recorded.kind == NoteCaptured.kind:
        yield _with_tags(replace(unmarked, text=_as_saved(brain, recorded, body), by="note", is_note=True))
        return
    for block in blocks_of(body) if event.origin == PERSON else ():
        # a mark is about its block: a tag in one paragraph does not keep the whole message
        has_tag = tags_in(block) or (tags and not ends_as_question(block))  # those of front matter are about all of it
        if has_tag or wiki_links_in(block):
            yield _with_tags(replace(unmarked, text=block, by="tag" if has_tag else "link"))
        elif _can_be_repeated(block):
            yield from _marked_by_repetition(brain, replace(unmarked, text=block, by="repetition"), event)


def _with_tags(marked: Marked) -> Marked:
    """Return marked words with the tags and wiki links that they hold besides those of their prompt."""
    tags = dict.fromkeys((*tags_in(marked.text), *marked.tags))
    return replace(marked, tags=tuple(tags), links=tuple(wiki_links_in(marked.text)))


def _conversation(brain: Brain, recorded: Event | None) -> str:
    """Return the subfolder of the inbox that an exchange belongs to; "" for the top level and for notes."""
    if recorded is None or recorded.kind == NoteCaptured.kind:
        return ""
    return conversation_of(brain, str(recorded.data.get("prompt") or ""))


def _as_saved(brain: Brain, recorded: Event, noted: str) -> str:
    """Return a note's body byte for byte as it was saved.

    Return `noted`, the body in short-term memory, where the file's text is not kept, or has secrets that are masked
    there.
    """
    for change in recorded.changes:
        if change.path != recorded.data.get("prompt") or not change.after:
            continue
        try:
            text = decode_text(brain.committer.text_of(change.after))
            body = text[split(text)[1] :].removeprefix("\ufeff")
        except (BlobError, FormatError):
            break
        if body.replace("\r\n", "\n").strip() == noted.strip():
            return body
    return noted


def _can_be_repeated(block: str) -> bool:
    """Return whether a block is long enough for its repetition to mean something, and no question."""
    return len(set(words(block))) >= MIN_WORDS and not ends_as_question(block)


def _marked_by_repetition(brain: Brain, marked: Marked, event: StmEvent) -> Iterator[Marked]:
    """Yield marked words, with the statement that has nearly the same, if they were said or stated on another day."""
    own_words = searches(marked.text, ())[0]
    hits = brain.recall.search(
        own_words,
        limit=_MAX_HITS,
        kinds={"exchange", "statement"},
        now=brain.now(),
        is_private=True,  # no remote embedder is called for a search that nobody asked for
        include_repeats=True,
    )
    repetitions = []
    for hit in hits:
        is_by_person = hit.origin == PERSON and (hit.kind == "statement" or hit.speaker == "user")
        is_source = brain.tree.kind_of(hit.path) is PathKind.SOURCE  # a note outside of this brain
        is_other_day = hit.anchor != event.id and brain.day_of(hit.at) != brain.day_of(event.at)
        if is_by_person and not is_source and is_other_day and likeness(hit.text, marked.text) >= REPEATED:
            repetitions.append(hit)
    # a greeting is said in the same words each day, in whatever language
    if not repetitions or len(brain.recall.rare_words(marked.text)) < MIN_RARE:
        return
    statements = tuple(f"{hit.uuid or hit.path}#{hit.anchor}" for hit in repetitions if hit.kind == "statement")
    yield replace(_with_tags(marked), same=statements[:1])


def _marked_by_answers(brain: Brain, log: StatementLog, exchanges: Exchanges) -> Iterator[MarkedText]:
    """Yield the words that answers of at least `ANSWER_DAYS` different days mainly rested on."""
    for (exchange, digest), days in log.answer_days().items():
        if len(days) < ANSWER_DAYS or log.is_decided(_decision_id(exchange, digest)):
            continue
        recorded, event = exchanges.event(exchange), exchanges.in_memory(exchange)
        if recorded is None or event is None:
            continue
        texts = (event.user, *blocks_of(event.user))
        text = next((text for text in texts if text_hash(text) == digest), "")
        if text and not ends_as_question(text):
            conversation = _conversation(brain, recorded)
            marked = Marked(text, exchange, event.at, "use", conversation=conversation)
            yield MarkedText(_with_tags(marked), event)
