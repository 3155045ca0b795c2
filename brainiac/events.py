"""The events of the journal as classes, the changes of files that a commit makes, and changes seen in the tree.

Each kind of event of the program is a class below; docs/events.md is generated from them. A new kind needs its class
here and the place that commits it, nothing else.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast

import uuid_utils

from brainiac.records import Record


def new_id(after: str = "") -> str:
    """Return a new UUIDv7 as text: unique across devices and ascending in time.

    Args:
        after: The id before it, if there is one: the new id is greater also where the clock was put back since.
    """
    by_clock = str(uuid_utils.uuid7())
    if by_clock > after:
        return by_clock
    # the first 48 bits of a UUIDv7 are its millisecond, of the other 80 nearly all are random
    next_millisecond = (uuid.UUID(after).int >> 80) + 1
    other_bits = uuid.UUID(by_clock).int % 2**80
    return str(uuid.UUID(int=next_millisecond * 2**80 + other_bits))


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's bytes as lower-case hex, by which texts are known everywhere."""
    return hashlib.sha256(content).hexdigest()


Op = Literal["create", "update", "remove", "move", "append", "observe"]


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one file in a commit; made with the functions below.

    Attributes:
        op: `create` (the file must not exist), `update` and `remove` (its content must be `before`), `move` (from
            `source`, whose content must be `before`, to `path`), `append` (log lines; never merged nor folded),
            `observe` (only record the present content, e.g. of the prompt that was answered).
        path: Relative, posix.
        before: The content on which the decision was made; None where there was no file.
        after: The new content; None when removed.
        source: The former path of a moved file.
    """

    op: Op
    path: str
    before: bytes | None = None
    after: bytes | None = None
    source: str | None = None


def create(path: str, text: str | bytes) -> Change:
    """Make a new file."""
    return Change("create", path, None, _bytes(text))


def update(path: str, before: str | bytes, after: str | bytes) -> Change:
    """Replace a file's text that was read as `before`."""
    return Change("update", path, _bytes(before), _bytes(after))


def write(path: str, before: str | bytes | None, after: str | bytes) -> Change:
    """Make a file where `before` is None, else replace its text that was read as `before`."""
    return create(path, after) if before is None else update(path, before, after)


def remove(path: str, before: str | bytes) -> Change:
    """Remove a file that was read as `before`; its text stays in the journal's blobs."""
    return Change("remove", path, _bytes(before), None)


def move(source: str, path: str, before: str | bytes, after: str | bytes | None = None) -> Change:
    """Move a file, changing its text on the way when `after` is given."""
    return Change("move", path, _bytes(before), _bytes(before if after is None else after), source)


def append(path: str, text: str | bytes) -> Change:
    """Add whole lines to a log."""
    return Change("append", path, None, _bytes(text))


def observe(path: str, content: bytes) -> Change:
    """Record a file as it was read, without writing it."""
    return Change("observe", path, None, content)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change as the journal keeps it: hashes in place of texts.

    Attributes:
        op: `create`, `update`, `remove`, `move`, `append` to a log, or `observe`: it was read and not changed.
        path: The file, relative; for a move its new place.
        before: Content hash of the file before; None for no file.
        after: Content hash of the file after; None for no file.
        source: The former path of a moved file.
    """

    op: Op
    path: str
    before: str | None
    after: str | None
    source: str | None = None


@dataclass(frozen=True)
class Event:
    """One journal line.

    Attributes:
        seq: Order on its device, from 1 without gaps; 0 before it is recorded.
        id: UUIDv7.
        at: ISO 8601 UTC.
        kind: Past tense with hyphens, `prompt-answered`.
        by: Who did it: a plugin's name, `person`, `kernel`, `cli`.
        cause: The id of the event that led here, or None.
        data: Plain JSON values, as in the journal.
        changes: What it did to the tree.
    """

    seq: int
    id: str
    at: str
    kind: str
    by: str
    cause: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[RecordedChange, ...] = ()

    @cached_property
    def what(self) -> EventData | PluginEvent:
        """The data as an instance of the kind's class; a `PluginEvent` for a kind without a class here."""
        kind = KINDS.get(self.kind)
        return PluginEvent(self.kind, self.data) if kind is None else kind.from_json(self.data)


class PathKind(StrEnum):
    """What a path in the tree is for; decided by `Tree.kind_of` from the path alone."""

    PROMPT = "prompt"
    CAPTURE = "capture"  # inbox/notes/: remembered, not answered
    RESPONSE = "response"
    ERROR = "error"
    SHORT_TERM = "short-term"
    MEMORY = "memory"
    INDEX_PAGE = "index-page"
    ARCHIVED = "archived"
    REVIEW = "review"
    TODAY = "today"
    CONFIG = "config"
    SYSTEM = "system"
    PLUGIN = "plugin"
    ACCESS_LOG = "access-log"
    JOURNAL = "journal"
    IGNORED = "ignored"  # hidden, temporary, sync-conflict and our own temporary names
    SOURCE = "source"  # a note in a folder of `sources:`; read, never written
    FILE = "file"
    OTHER = "other"


TO_ANSWER = frozenset({PathKind.PROMPT, PathKind.CAPTURE})  # what a person puts into the inbox as text

Action = Literal["created", "modified", "deleted", "moved"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file that was seen in the tree, whoever made it.

    Attributes:
        action: What happened to the file; a watcher may be wrong about it, so read the file.
        path: Relative, posix; the new path of a moved file.
        kind: What the path is for.
        old_path: The former path of a moved file.
        is_ours: Whether the content is byte for byte what our last commit wrote.
    """

    action: Action
    path: str
    kind: PathKind
    old_path: str | None = None
    is_ours: bool = False


KINDS: dict[str, type[EventData]] = {}  # every kind of ours, by its name in the journal


class EventData(Record):
    """The data of an event; one subclass for each kind that the program records.

    The name of its class is the kind in the journal: `NoteCaptured` is `note-captured`. A class that others are made of
    ends with `Event` and is no kind.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.__name__.endswith("Event"):
            cls.kind = re.sub("(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
            KINDS[cls.kind] = cls


@dataclass(frozen=True)
class PluginEvent:
    """The data of an event whose kind the program does not know: a plugin's, or a later version's.

    Attributes:
        kind: Past tense with hyphens.
        data: Plain JSON values, kept as they are.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the data."""
        return dict(self.data)


def kinds_of(*classes: type[EventData] | str) -> frozenset[str]:
    """Return the names that kinds of events have in the journal.

    Args:
        classes: Classes of events, which include their subclasses; kinds by name, also former ones.
    """
    names = {present_form(name, {})[0] for name in classes if isinstance(name, str)}
    ours = tuple(event_class for event_class in classes if not isinstance(event_class, str))
    return frozenset(names | {kind for kind, event_class in KINDS.items() if issubclass(event_class, ours)})


# --- rows of events ----------------------------------------------------------------------------------------------


class StatementRef(Record):
    """A statement at one moment.

    Attributes:
        block: Its block id.
        hash: Of its text.
        since: When it was said, an ISO date.
        history: Block id under which the page's History has its text.
    """

    block: str = ""
    hash: str = ""
    since: str = ""
    history: str = ""


class EvidenceRecord(Record):
    """The words of an exchange on which an operation rests.

    Attributes:
        exchange: Id of the exchange they were said in.
        quote: The words, verbatim.
    """

    exchange: str = ""
    quote: str = ""


class StatementRecord(Record):
    """An operation on one statement of a page.

    Attributes:
        candidate: Id of the candidate it came from: that of its analysis, `#`, its number there.
        operation: What was done: `NEW`, `UPDATE`, `DELETE`, `REINFORCE`, or `REWORD` (words kept without a model were
            taken out because a model has put them into its own); none where it was only adopted.
        path: The page's path.
        page: The page's uuid.
        block: Block id of the statement after the operation; none where it was removed.
        hash: Of its text.
        since: When it was said, an ISO date.
        sources: Ids of the exchanges it rests on.
        evidence: The words of these exchanges that say so.
        origin: The least trusted origin of its sources: `person`, `assistant`, `import` or `tool`.
        author: Who said it, where that is not the person, as the statement names them.
        valid_from: ISO date from which it holds.
        valid_until: ISO date until which it holds.
        importance: `low`, `medium` or `high`; none where no model judged it.
        category: What kind of fact it is; none where no model judged it.
        subject_type: What its subject is: `person`, `project`, …; none where no model judged it.
        relevance: How similar it is to the statement it replaced, 0 to 0.9.
        band: The relevance in a word: `HIGH`, `MODERATE`, `LOW` or `NO`.
        relevance_parts: The parts whose sum the relevance is: `type`, `topic` and `semantic`.
        reasoning: Why it was done, as the model said.
        model: The model that decided it.
        found_by: The model that found the candidate.
        verified_by: The model that said, as a second reader, that it follows from its evidence; none where none did.
        marked_by: What marked words that were kept without a model: `command`, `note`, `key-fact`, `tag`, `link` or
            `repetition`; in older journals also `use`, for words that answers had rested on.
        replaced: The statement that it replaced or retired.
        proposed: A statement of the person's own; to retire it was proposed.
        steps: The statements of a how-to, in order.
        is_whole: It made the whole body of the page.
    """

    candidate: str = ""
    operation: str = ""
    path: str = ""
    page: str = ""
    since: str = ""
    sources: tuple[str, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    origin: str = ""
    author: str = ""
    valid_from: str = ""
    valid_until: str = ""
    importance: str = ""
    category: str = ""
    subject_type: str = ""
    relevance: float = 0.0
    band: str = ""
    relevance_parts: Mapping[str, float] = field(default_factory=dict)
    reasoning: str = ""
    model: str = ""
    found_by: str = ""
    verified_by: str = ""
    marked_by: str = ""
    block: str = ""
    hash: str = ""
    replaced: StatementRef | None = None
    proposed: StatementRef | None = None
    steps: tuple[StatementRef, ...] = ()
    is_whole: bool = False


class CandidateRecord(Record):
    """A candidate of the event log: something worth remembering, and the operation that is to be done for it.

    Attributes:
        text: The new statement's text.
        action: The operation: `new`, `replace`, `end`, `same` or `forget`; of a task `open`, `tick` or `drop`.
        ids: The statements that the operation is about.
        evidence: Words that it rests on.
        kind: `concrete`, `event` or `skill`; none for `concrete`.
        subject: What it is about.
        events: Ids of the exchanges it rests on.
        at: When the last of these exchanges was said, ISO 8601.
        origin: Whose words it rests on: `person`, `assistant`, `import` or `tool`.
        tags: Its tags.
        canonical_key: The key of its page.
    """

    text: str = ""
    action: str = ""
    ids: tuple[str, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    kind: str = ""
    subject: str = ""
    events: tuple[str, ...] = ()
    at: str = ""
    origin: str = ""
    tags: tuple[str, ...] = ()
    canonical_key: str = ""


class CandidateEnd(Record):
    """How a candidate ended in a run.

    Attributes:
        end: `written`, `proposed`, `task` (a task was opened, ticked or dropped), `left` for another run, or `refused`
            for good.
        reason: Why it was left or refused.
    """

    end: str
    reason: str = ""


class Refused(Record):
    """An operation that was not carried out.

    Attributes:
        candidate: Its id, where it was a candidate.
        statement: Its text, at most 300 characters.
        proposal: The action that Organization was to do.
        reason: Why it was not carried out.
        model: The model that had asked for it.
    """

    candidate: str = ""
    statement: str = ""
    proposal: str = ""
    reason: str = ""
    model: str = ""


class KeptText(Record):
    """A text that was kept word for word.

    Attributes:
        exchange: Id of the exchange.
        text: Its text, cut short for a person to read.
    """

    exchange: str = ""
    text: str = ""


class Breaker(Record):
    """A run that would have retired too much.

    Attributes:
        would_retire: How many statements.
        statements: How many there are.
    """

    would_retire: int
    statements: int


class RemoteCalls(Record):
    """Calls to one remote model that contained an exchange, or may have.

    Attributes:
        model: Its name.
        purposes: The purposes of the calls.
        calls: How many.
        first: When the first was, ISO 8601 UTC.
        last: When the last was.
        is_own: They were about the exchange itself; other calls were made while it was in memory.
    """

    model: str
    purposes: tuple[str, ...]
    calls: int
    first: str
    last: str
    is_own: bool


class OrganizedAction(Record):
    """What Organization did with pages.

    Attributes:
        action: Its name, such as `link` or `move`.
        uuids: Of the pages.
        from_: Their paths before.
        to: Their paths after.
        reason: Why it was done.
    """

    action: str
    uuids: tuple[str, ...]
    from_: tuple[str, ...]
    to: tuple[str, ...]
    reason: str


class ProposalRecord(Record):
    """A proposal in `memory/review.md`; each operation has its class below.

    Attributes:
        id: Its identity, which the line in `review.md` shows.
        what: One sentence for a person.
        waits: Whether it has no line yet, since others came first; it is recorded anew when it gets one.
        is_private: Whether what it tells of must not leave this machine.
        is_wish: Whether the person asked for it themselves: it waits for no other.
        reason: Why a second reader held back what was to be written or ended; "" where none did.
    """

    id: str
    what: str
    waits: bool = False
    is_private: bool = False
    is_wish: bool = False
    reason: str = ""

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return the proposal of a JSON object, as an instance of the class for its operation."""
        stored = data if isinstance(data, Mapping) else {}
        if cls is not ProposalRecord:
            return super().from_json(stored)
        # Organization's have an `action` in place of an operation
        operation = stored.get("operation", "organize" if "action" in stored else "")
        proposal_class = _PROPOSALS.get(str(operation))
        return cast(Self, proposal_class.from_json(stored)) if proposal_class else super().from_json(stored)


class RetireProposal(ProposalRecord):
    """To retire a statement that a person wrote, or what they told before and was kept without a model.

    Attributes:
        operation: `retire`.
        page: The page's uuid; "" where only exchanges say what is to be retired.
        path: The page's path; "" likewise.
        block: The statement's block id; "" likewise.
        hash: Of its text; "" likewise.
        replaced_by: Block id of the statement that holds now; "" for none.
        on: ISO date until which the retired statement held.
        sources: Ids of the exchanges that say so, and of `said_in`.
        held_by: Uuid of the page of the statement that holds now; "" for the same page.
        words: What the person told before.
        said_in: Id of the exchange that told it: with the tick, search says of it what holds now.
    """

    operation: str
    page: str
    path: str
    block: str
    hash: str
    replaced_by: str
    on: str
    sources: tuple[str, ...]
    held_by: str = ""
    words: str = ""
    said_in: str = ""


class ReplaceProposal(ProposalRecord):
    """To word a statement anew, or to write one.

    Attributes:
        operation: `replace`.
        page: The page's uuid; "" for a new page.
        path: The page's path.
        block: The statement's block id; "" where there is none by now.
        hash: Of its text; "" likewise.
        text: The new wording.
        on: ISO date from which it holds.
        title: Of a new page.
        sources: Ids of the exchanges that it rests on.
    """

    operation: str
    page: str
    path: str
    block: str
    hash: str
    text: str
    on: str
    title: str = ""
    sources: tuple[str, ...] = ()


class CopyProposal(ProposalRecord):
    """To take another device's version of a file, which sync put beside it.

    Attributes:
        operation: `take-copy`.
        copy: Path of that version.
        copy_hash: Of its content.
        path: The file.
        hash: Of the file's content; null where there was none.
    """

    operation: str
    copy: str
    copy_hash: str
    path: str
    hash: str | None


class ForgetProposal(ProposalRecord):
    """To forget what contains certain words, or the exchanges from which a deleted page was made.

    Attributes:
        operation: `forget`.
        prompt: Path of the prompt that asks for it.
        deleted: Uuid of the page that was deleted, or its path.
        path: Its path.
        exchanges: Ids of the exchanges to be forgotten.
        blocks: Statements: page uuid or path, and hash of the text.
        items: Hashes of items of short-term memory.
        pages: Paths of whole pages.
        answers: Paths of answers.
        is_hiding: Whether all of it is hidden until the person decides, as they asked for; of a deleted page the
            exchanges are in any case.
        shown: Hashes of what the person was shown that goes with it; None where it was made before that was kept.
    """

    operation: str
    prompt: str = ""
    deleted: str = ""
    path: str = ""
    exchanges: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    is_hiding: bool = False
    shown: tuple[str, ...] | None = None


class OrganizeProposal(ProposalRecord):
    """To carry out an action of Organization that needs a person's consent.

    Attributes:
        action: What is to be done, such as `move` or `archive`.
        pages: Uuid, path and content hash of each page it is about.
        target: The path or folder that the pages are to get.
    """

    action: str
    pages: tuple[tuple[str, str, str], ...]
    target: str


_PROPOSALS: dict[str, type[ProposalRecord]] = {
    "retire": RetireProposal,
    "replace": ReplaceProposal,
    "take-copy": CopyProposal,
    "forget": ForgetProposal,
    "organize": OrganizeProposal,
}


# --- prompts and answers -----------------------------------------------------------------------------------------


class PromptEvent(EventData):
    """Something about a prompt and its answer.

    Attributes:
        prompt: The prompt's path.
        prompt_id: Its identity, which it keeps when it moves.
        prompt_sha256: Of its normalized text.
        response: The response's path; null where there is none.
        response_hash: Of the response's content, also where the journal keeps no text of it.
    """

    prompt: str
    prompt_id: str
    prompt_sha256: str
    response: str | None
    response_hash: str = ""


class ExchangeEvent(PromptEvent):
    """An exchange to be remembered; the event's id is that of the exchange.

    Attributes:
        origin: Whose words the prompt holds: `person`, `assistant`, `import` or `tool`; in older journals only the
            prompt's file says it.
        author: The client by which it came, such as `mcp:claude`; none for a file that a person saved.
    """

    origin: str = "person"
    author: str = ""


class PromptAnswered(ExchangeEvent):
    """A prompt was answered.

    Attributes:
        model: The model that answered.
        receipts: What it rested on: by the short id of each what `why`, `forget` and `correct` know it by. None of an
            exchange off the record.
    """

    model: str
    receipts: Mapping[str, str] = field(default_factory=dict)


class ResponseArrived(ExchangeEvent):
    """A response appeared beside a prompt that a person wrote by hand."""


class NoteCaptured(ExchangeEvent):
    """A note of `inbox/notes/` was taken in; it is remembered and not answered."""


class PromptMoved(PromptEvent):
    """An answered prompt was renamed or moved, and its response moved along.

    Attributes:
        moved_from: Where the prompt was.
    """

    moved_from: str


class PromptRefused(EventData):
    """A prompt cannot be answered; an error file beside it says why.

    Attributes:
        prompt: Its path.
        reason: Why it cannot be answered.
    """

    prompt: str
    reason: str


class AnswerDiscarded(EventData):
    """An answer was thrown away: its prompt was changed or answered elsewhere meanwhile.

    Attributes:
        prompt: The prompt's path.
        prompt_sha256: Of the normalized text that was answered.
    """

    prompt: str
    prompt_sha256: str


class ModelCalled(EventData):
    """A model was called.

    Attributes:
        purpose: What the call was for.
        model: The model's name.
        is_remote: Whether the call left this machine; older journals do not say.
        about: Id of the prompt or exchange it dealt with.
        input_tokens: Tokens that were sent.
        cached_tokens: Of those, read from the provider's cache.
        output_tokens: Tokens that came back.
        cost_usd: What it cost.
        took_ms: How long it took.
    """

    purpose: str
    model: str
    is_remote: bool | None
    about: str = ""
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float
    took_ms: int


# --- what follows from an exchange -------------------------------------------------------------------------------


class OutcomeEvent(EventData):
    """The outcome of an exchange: what a process did with it after the answer.

    Attributes:
        exchange: Its id.
    """

    exchange: str


class ExchangeReflected(OutcomeEvent):
    """An exchange was noted in short-term memory, or what follows from it was added there later.

    Attributes:
        prompt: The prompt's path.
        is_extracted: Whether a model said what follows from it; otherwise it is asked again later.
        items: Hashes of the list items that were written.
        thoughts: Hash of the thoughts that were written; "" where there are none.
        is_redacted: The prompt's file is the only copy of a secret: it is never tidied away.
        supersedes: Id of the exchange that it revises.
    """

    prompt: str = ""
    is_extracted: bool = True
    items: tuple[str, ...] = ()
    thoughts: str = ""
    is_redacted: bool = False
    supersedes: str = ""


class ExchangeOffRecord(OutcomeEvent):
    """An exchange is off the record: nothing of it is kept."""


class ExchangeUnreflected(OutcomeEvent):
    """No plugin noted an exchange, and none will."""


class ExchangesFiled(EventData):
    """Short-term memory was full: its oldest exchanges moved to the pages of their days, to be consolidated later.

    Attributes:
        exchanges: Their ids.
        episodes: Path of each page they were put on, with their ids.
    """

    exchanges: tuple[str, ...]
    episodes: Mapping[str, tuple[str, ...]]


class ImportStarted(EventData):
    """An import began; what it brings follows in events caused by this one, and is undone with it.

    Attributes:
        source: Name of the file or folder that is imported.
    """

    source: str


class ExchangesImported(EventData):
    """Exchanges with another program, or notes, came in; a model consolidates them only where a person asks for it.

    Attributes:
        service: Where they come from: `chatgpt`, `claude`, …
        episodes: Path of each page that exchanges were put on, with their ids.
        notes: Path of the page of each note, with the note's id; by it a second import knows the note.
    """

    service: str
    episodes: Mapping[str, tuple[str, ...]]
    notes: Mapping[str, str] = field(default_factory=dict)


class InboxTidied(EventData):
    """Answered prompts left the inbox with their answers: the pages of their days have them word for word.

    Attributes:
        exchanges: Their ids.
    """

    exchanges: tuple[str, ...]


# --- Promotion ---------------------------------------------------------------------------------------------------


class PromotionStarted(EventData):
    """A run of Promotion began; the run's other events have this one as their cause.

    Attributes:
        exchanges: How many exchanges it looks at.
    """

    exchanges: int


class CatchUpStarted(EventData):
    """`promote --past` began: exchanges that no model has consolidated go to one, in several promotions caused by this.

    Attributes:
        exchanges: How many waited.
        since: Exchanges from this day on; "" for all.
        model: The model that a person named for it; "" for that of the settings.
    """

    exchanges: int
    since: str = ""
    model: str = ""


class CatchUpEnded(EventData):
    """A catch-up, its cause, has handed over every exchange that its model may see.

    Attributes:
        withheld: Ids of the exchanges that it may not see.
    """

    withheld: tuple[str, ...] = ()


class EventsAnalyzed(EventData):
    """A part of the event log was searched for candidates, statements worth remembering.

    Attributes:
        events: Ids of the exchanges that were read, each with a hash of its content.
        model: The model that searched.
        candidates: The candidates that were found.
        refused: The candidates whose evidence does not hold.
        asked: The candidates about which the model was asked once more, whatever the result.
    """

    events: Mapping[str, str]
    model: str
    candidates: tuple[CandidateRecord, ...]
    refused: tuple[Refused, ...]
    asked: tuple[Refused, ...] = ()


class VerdictRecord(Record):
    """What a second reader said of a candidate.

    Attributes:
        verdict: `follows`, `does not`, or `cannot tell`.
        reason: Why, in a few words.
    """

    verdict: str
    reason: str = ""


class CandidatesVerified(EventData):
    """A second reader said whether candidates follow from the words that they rest on.

    Attributes:
        model: The model that read them.
        verdicts: What it said, by candidate.
    """

    model: str
    verdicts: Mapping[str, VerdictRecord]


class CandidatesRefused(EventData):
    """A run of Promotion failed or changed nothing.

    Attributes:
        refused: What was refused.
        candidates: How each candidate ended, by its id.
    """

    refused: tuple[Refused, ...]
    candidates: Mapping[str, CandidateEnd]


class TaskRecord(Record):
    """What consolidation did with a task.

    Attributes:
        candidate: Id of the candidate.
        action: `open`, `tick` or `drop`.
        hash: Of the task's text.
        sources: Ids of the exchanges that it rests on.
    """

    candidate: str
    action: str
    hash: str = ""
    sources: tuple[str, ...] = ()


class MemoryPromoted(EventData):
    """A run of Promotion wrote long-term memory and removed what it had consolidated from short-term memory.

    Attributes:
        exchanges: Ids of the exchanges that were consolidated.
        left: Ids of those that stay for another run, with the reason.
        statements: The operation on each statement.
        episodes: Path of each page that exchanges were put on, with their ids.
        proposals: The proposals that a person is to decide on.
        refused: The operations that were refused.
        candidates: How each candidate ended, by its id.
        kept: Notes that were kept whole.
        filed: Exchanges that were filed and not consolidated.
        breaker: Set where the run would have retired too many statements; it retired none then.
        summarized_by: The model that wrote the summary of short-term memory; null where none did.
        summary: Hashes of the paragraphs of that summary.
        gone: Those of `exchanges` whose words a person has removed from their pages.
        tasks: What became of tasks.
    """

    exchanges: tuple[str, ...]
    left: Mapping[str, str]
    statements: tuple[StatementRecord, ...]
    episodes: Mapping[str, tuple[str, ...]]
    proposals: tuple[ProposalRecord, ...]
    refused: tuple[Refused, ...]
    candidates: Mapping[str, CandidateEnd]
    kept: tuple[KeptText, ...]
    filed: tuple[KeptText, ...]
    breaker: Breaker | None = None
    summarized_by: str | None = None
    summary: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()


# --- Organization ------------------------------------------------------------------------------------------------


class MemoryOrganized(EventData):
    """A run of Organization counted how pages are used, and moved, linked or tidied them.

    Attributes:
        lines: How many lines of the access log were counted, and taken out.
        used: Uuid of each page that was used, with the last day and how often an answer cited it.
        together: Uuids of two pages that one answer cited, with how often.
        asked: Hash of the question to the model; "" where none was asked.
        done: The actions that were done.
        statements: Statements that were written.
        proposals: The proposals that a person is to decide on.
        refused: The actions that were not done.
    """

    lines: int
    used: Mapping[str, tuple[str, int]]
    together: tuple[tuple[str, str, int], ...]
    asked: str
    done: tuple[OrganizedAction, ...]
    statements: tuple[StatementRecord, ...]
    proposals: tuple[ProposalRecord, ...]
    refused: tuple[Refused, ...]


class TreeTidied(EventData):
    """The program's own upkeep: nobody asked for it, and it changed nothing that a person said.

    Attributes:
        what: `links` were repaired after pages had moved; `index-pages` were made anew from the pages of their folders;
            `mentions`: pages got the links to the pages that they name; `note`: pages that a person made got their
            uuids and dates; `review`: the lines of decided proposals were removed from `memory/review.md`; `today`:
            `memory/Today.md` was brought up to date; `error`: an error file was removed, since its prompt was answered
            or deleted; `leftovers`: temporary files that a crash had left were removed, and the journal keeps their
            texts.
        moved: The pages' paths before, with those after; of `links` alone.
        texts: Paths of `leftovers`, with the hashes of the texts.
    """

    what: str
    moved: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


# --- what a person is asked --------------------------------------------------------------------------------------


class ReviewSettled(EventData):
    """A person decided several proposals at once; what is done for each names this event as its cause.

    Attributes:
        count: How many.
    """

    count: int


class ProposalDecided(EventData):
    """A proposal was decided.

    Attributes:
        proposal: Its id.
        how: `applied`: a person ticked it, and it was done; `declined` by a person; `expired`: what it was about has
            changed, so that a tick did nothing, or it got no line any more; `lapsed`: nobody decided for 30 days, so
            that its line went and nothing was done: what is hidden stays hidden. A tick that arrives after that counts.
        statements: Statements that were written.
    """

    proposal: str
    how: str
    statements: tuple[StatementRecord, ...] = ()


class StatementCorrected(EventData):
    """A person put a statement right.

    Attributes:
        statements: The new statements, each with the one it replaced.
    """

    statements: tuple[StatementRecord, ...]


class StatementsEnded(EventData):
    """Statements ended by themselves: the last day that they were to hold has passed.

    Attributes:
        statements: The operations, each with the statement that it ended.
    """

    statements: tuple[StatementRecord, ...]


class ProposalMade(EventData):
    """A person was asked something: whether it is to be forgotten, changed, or taken from another device's version.

    Attributes:
        proposals: What they were asked.
    """

    proposals: tuple[ProposalRecord, ...]


# --- undo, forget, purge -----------------------------------------------------------------------------------------


class EventUndone(EventData):
    """An event was undone; an event of this kind may be undone too.

    Attributes:
        undone: Its id.
        kind_: Its kind.
        is_named: Whether a person named it, and not the last change.
    """

    undone: str
    kind_: str
    is_named: bool = False


class ExchangeForgotten(EventData):
    """Exchanges were forgotten: they, and all that was made from them alone, were removed from the tree.

    Attributes:
        exchanges: Their ids.
        blocks: Statements that were to go too: page uuid or path, and hash of the text.
        items: Hashes of items of short-term memory that were to go too.
        pages: Paths of pages that were to go too.
        answers: Paths of answers that were to go too.
        taken_out: Statements that were removed or restored.
        left: What was not removed, one sentence each.
    """

    exchanges: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    taken_out: tuple[StatementRecord, ...]
    left: tuple[str, ...]


class MemoryForgotten(EventData):
    """A page was forgotten.

    Attributes:
        page: Its uuid.
        path: Its path.
        exchanges: Ids of the exchanges that were on it.
        taken_out: Statements that were removed or restored.
        left: What was not removed, one sentence each.
    """

    page: str
    path: str
    exchanges: tuple[str, ...]
    taken_out: tuple[StatementRecord, ...]
    left: tuple[str, ...]


class TextsPurged(EventData):
    """A purge began: what is named here is to be destroyed on every device.

    Attributes:
        exchanges: Ids of exchanges.
        page: Uuid of a page, or its path; null where no page was named.
        statements: Hashes of statements.
        items: Hashes of items of short-term memory.
        hashes: Hashes of the contents that hold any of it.
        events: Ids of journal events whose data hold any of it.
        salt: Of the hashes below, and the name of this purge; "" in older journals, which lack them.
        words: Hash of each word that was named.
        sentences: Hashes of the sentences of what was forgotten that nobody else said.
    """

    exchanges: tuple[str, ...]
    page: str | None
    statements: tuple[str, ...]
    items: tuple[str, ...]
    hashes: tuple[str, ...]
    events: tuple[str, ...]
    salt: str = ""
    words: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


class PurgeHonoured(EventData):
    """This device destroyed what a purge names.

    Attributes:
        tombstone: Id of the event that names it.
        hashes: Hashes of the contents that held any of it on this device alone.
    """

    tombstone: str
    hashes: tuple[str, ...] = ()


class ExchangeMadePrivate(EventData):
    """A prompt became private, or off the record, after it was answered: what was made from it became private too.

    Attributes:
        prompt: The prompt's path.
        statements: Statements that moved to a private page; in older journals those that got the private mark.
        left: What was not made private, one sentence each.
        exchanges: Ids of the exchanges; none while a promotion runs, another event has them after it.
        sent: Calls to remote models that contained the exchanges; null where `exchanges` is not known.
    """

    prompt: str
    statements: tuple[StatementRecord, ...]
    left: tuple[str, ...]
    exchanges: tuple[str, ...] = ()
    sent: tuple[RemoteCalls, ...] | None = None


class StatementsAdopted(EventData):
    """A person released statements: from now on they are rewritten like those that a process wrote.

    Attributes:
        statements: The statements.
    """

    statements: tuple[StatementRecord, ...]


# Events with operations on statements; those with an `OwningEvent` make a statement ours, those of a person do not. A
# tick has a record only of what a process worded, in place of a process's words or of none.
StatingEvent = (
    MemoryPromoted | MemoryOrganized | StatementsAdopted | ProposalDecided | StatementCorrected | StatementsEnded
    | ExchangeMadePrivate
)  # fmt: skip
OwningEvent = MemoryPromoted | MemoryOrganized | StatementsAdopted | ProposalDecided


# --- the tree and its devices ------------------------------------------------------------------------------------


class BrainRebuilt(EventData):
    """This brain was made from the raw exchanges of another; the events before this one are that brain's.

    Attributes:
        of: Its id.
    """

    of: str


class TreeAdopted(EventData):
    """The tree was seen for the first time on this device, and all its files were recorded."""


class FoundEvent(EventData):
    """A change of the tree that a person made, as the program found it.

    Attributes:
        written: When each memory that was made or changed was written, by its file's time; in the order of paths.
    """

    written: Mapping[str, str] = field(default_factory=dict)


class NoteEdited(FoundEvent):
    """A person, or a client at a door, made or changed a file.

    Attributes:
        client: The client that wrote a new file of the inbox; "" for a person.
    """

    client: str = ""


class NoteSaved(EventData):
    """A person changed a file in the window, which wrote it for them."""


class NotesEdited(FoundEvent):
    """Files were found new, changed or moved at a start."""


class NoteMoved(FoundEvent):
    """A person moved a file."""


class NoteDeleted(FoundEvent):
    """A person deleted a file, or confirmed deletions that had been held."""


class DeletionsHeld(EventData):
    """Many memories vanished at once: their deletion is not recorded until a person confirms it.

    Attributes:
        count: How many.
        paths: The first twenty.
    """

    count: int
    paths: tuple[str, ...]


class NoteOffRecord(EventData):
    """A person saved a file that is off the record, or made one so; no text of it is kept.

    Attributes:
        off_record: Hash of its content.
    """

    off_record: tuple[str, ...]


class NoteMerged(EventData):
    """A person's save was merged with what we had written meanwhile.

    Attributes:
        displaced_by: Id of the event whose write displaced the save.
        save: Hash of the save.
        conflict: Path of the file, where both changed the same, and both texts stand.
        stale: Hash of our version, where an editor that had not loaded it saved the file.
        texts: The save's path and hash, where no change of the event has it.
    """

    displaced_by: str = ""
    save: str = ""
    conflict: str = ""
    stale: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)


class NoteMended(EventData):
    """`brainiac doctor --fix` repaired a file."""


class CopySetAside(EventData):
    """Another device's version was removed from the tree: its text is kept already, or a person declined it.

    Attributes:
        copy: Its path.
        of: The file beside which it was.
    """

    copy: str
    of: str


class CopyMerged(EventData):
    """Another device's version of a file was merged into it, or became a file of its own.

    Attributes:
        copy: Its path; for a page that one device moved while another edited it, the path it was moved from.
        of: The file of which it was a copy.
        differs: Hashes of the texts of statements that both had changed; both stand.
    """

    copy: str
    of: str
    differs: tuple[str, ...]


class MarkersMerged(EventData):
    """Git's two versions of a file were merged: from between conflict markers, or by the merge driver before this.

    Attributes:
        path: The file.
        ours: Hash of the version that was checked out.
        theirs: Hash of the version that was merged into it.
        differs: Hashes of the texts of statements that both had changed; both stand.
    """

    path: str
    ours: str
    theirs: str
    differs: tuple[str, ...]


class DeviceTookOver(EventData):
    """This device became the one that runs the processes.

    Attributes:
        device: Its id.
        from_: Id of the former one; null where the settings named none.
    """

    device: str
    from_: str | None


# --- plugins -----------------------------------------------------------------------------------------------------


class PluginTrusted(EventData):
    """A person trusted a plugin of the brain on this machine, or took the trust back.

    Attributes:
        plugin: Its name.
        files: Each file of it with the hash of its content; none where the trust was taken back.
        is_trusted: Whether it is trusted from now on.
    """

    plugin: str
    files: Mapping[str, str] = field(default_factory=dict)
    is_trusted: bool = True


class PluginFailed(EventData):
    """A hook of a plugin raised an error, or the plugin did not load; the event is `by` the plugin.

    Attributes:
        hook: Which hook, or `load`.
        error: What went wrong, at most 500 characters.
    """

    hook: str
    error: str


# --- journals of earlier versions --------------------------------------------------------------------------------

# Kinds that became one: the present kind of each former one, and what is added to its data
FORMER_KINDS: dict[str, tuple[type[EventData], dict[str, Any]]] = {
    "links-healed": (TreeTidied, {"what": "links"}),
    "manifests-derived": (TreeTidied, {"what": "index-pages"}),
    "mentions-derived": (TreeTidied, {"what": "mentions"}),
    "note-completed": (TreeTidied, {"what": "note"}),
    "review-tidied": (TreeTidied, {"what": "review"}),
    "error-cleared": (TreeTidied, {"what": "error"}),
    "leftovers-swept": (TreeTidied, {"what": "leftovers"}),
    "proposal-applied": (ProposalDecided, {"how": "applied"}),
    "proposal-declined": (ProposalDecided, {"how": "declined"}),
    "proposal-expired": (ProposalDecided, {"how": "expired"}),
    "forgetting-proposed": (ProposalMade, {}),
    "change-suggested": (ProposalMade, {}),
    "copy-found": (ProposalMade, {}),
    "notes-deleted": (NoteDeleted, {}),
    "plugin-distrusted": (PluginTrusted, {"is_trusted": False}),
}


def present_form(kind: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return kind and data of a journal line as they are recorded today; those of a present kind as they are."""
    if kind not in FORMER_KINDS:
        return kind, data
    event_class, added = FORMER_KINDS[kind]
    return event_class.kind, data | added
