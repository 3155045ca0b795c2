"""The eight purposes a model serves: what each is asked (plain values) and what it must answer (typed results).

Strings and lists are bounded, since output cut at a token limit is no JSON even under a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from brainiac.formats.prompt import Exchange, Prompt
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.search.documents import Hit

OFFLINE = "offline"  # the keyless engine


class Purpose(StrEnum):
    """What a call is for; each has its own role, template, result and, if wanted, its own model."""

    QUERIES = "queries"
    ANSWER = "answer"
    REFLECT = "reflect"
    ANALYZE = "analyze"
    INTEGRATE = "integrate"
    SYNTHESIZE = "synthesize"
    SUMMARIZE = "summarize"
    ORGANIZE = "organize"


# --- results -----------------------------------------------------------------------------------------------

Line = Annotated[str, Field(max_length=1000)]
Lines = Annotated[list[Line], Field(max_length=50)]
# a grammar keeps no bounds of numbers, and a small model's 0.9 of 0.3 means "much": not worth asking again for
Share = Annotated[float, BeforeValidator(lambda given: _within(given, 1.0)), Field(ge=0, le=1)]
Third = Annotated[float, BeforeValidator(lambda given: _within(given, 0.3)), Field(ge=0, le=0.3)]
Kind = Literal["concrete", "event", "skill"]
Category = Literal["identity", "interests", "models", "preferences", "relationships"]
SubjectType = Literal["person", "project", "concept", "resource", "organization", "workflow"]


def _within(given: Any, most: float) -> Any:
    return min(max(given, 0.0), most) if isinstance(given, int | float) else given


class Result(BaseModel):
    """Base of every typed result."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Queries(Result):
    """Search queries for long-term memory, most important first; none when nothing needs recalling."""

    queries: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=8)] = []


class Answer(Result):
    """The text that becomes the response.

    Attributes:
        cited: The hits (by index into `AnswerRequest.hits`) that the text rests on.
        led: Of these the ones that led the answer, for the access log; None for all of them.
        read: Paths of long-term memories that the model read by its tools, for the access log.
        cited_paths: Further memories that the text links to, of those it read.
        model: Who answered, filled in by the gateway.
        tokens: In and out, all calls for this answer together.
    """

    text: str
    cited: list[int] = []
    led: list[int] | None = None
    read: list[str] = []
    cited_paths: list[str] = []
    model: str = ""
    tokens: int = 0
    cost_usd: float = 0.0


class Reflection(Result):
    """What an exchange adds to short-term memory besides itself."""

    thoughts: Annotated[str, Field(max_length=2000)] = ""
    goals: Lines = []
    facts: Lines = []
    decisions: Lines = []
    tasks: Lines = []
    done: Lines = []  # texts of open goals and tasks that are finished or cancelled
    forget: Lines = []  # what the person asked to forget


class Candidate(Result):
    """Something in the event log worth remembering for long.

    `events` are ids of the events it rests on.
    """

    statement: Line
    kind: Kind = "concrete"
    subject: Annotated[str, Field(max_length=120)] = ""
    subject_type: SubjectType = "concept"
    category: Category | None = None
    events: list[str] = []
    importance: Share = 0.5
    emotion: Annotated[str, Field(max_length=40)] = ""
    tags: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=8)] = []
    canonical_key: Annotated[str, Field(max_length=120)] = ""
    steps: Lines = []  # of a skill, in order
    is_forget: bool = False


class Candidates(Result):
    """The outcome of analyzing an event log."""

    candidates: Annotated[list[Candidate], Field(max_length=400)] = []


class Relevance(Result):
    """How near a candidate is to one existing statement (seeds I2)."""

    type: Third = 0.0
    topic: Third = 0.0
    semantic: Third = 0.0

    @property
    def score(self) -> float:
        """The sum, at most 0.9, to one decimal."""
        return round(self.type + self.topic + self.semantic, 1)


class Decision(Result):
    """What to do with one candidate.

    `id` names the existing statement for UPDATE, DELETE and REINFORCE; `content` is the statement to stand.
    DELETE retires the old and states `content` as new, unless the candidate only asked to forget.
    """

    operation: Literal["NEW", "UPDATE", "DELETE", "REINFORCE"]
    content: Line = ""
    id: str = ""
    importance: Share = 0.5
    relevance: Relevance = Relevance()
    reasoning: Annotated[str, Field(max_length=500)] = ""


class Decisions(Result):
    """[] when nothing is to be done."""

    operations: Annotated[list[Decision], Field(max_length=8)] = []


class Page(Result):
    """Where a candidate belongs and how its page is titled; statements come from integration, not from here."""

    kind: Kind
    folder: Annotated[str, Field(max_length=200)] = ""  # relative to concrete/, events/ or skills/
    title: Annotated[str, Field(max_length=120)]
    summary: Annotated[str, Field(max_length=500)] = ""
    tags: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=8)] = []
    emotion: Annotated[str, Field(max_length=40)] = ""
    steps: Lines = []


class Evidence(Result):
    """The words that something rests on.

    Attributes:
        exchange: Its id.
        quote: Of what was said there, verbatim.
    """

    exchange: str
    quote: str = ""


class PageRef(Result):
    """Where a statement goes: a page that stands there, by its path, or a new one.

    Attributes:
        path: Of a page there is; "" for a new one.
        kind: `concrete`, `event` (the page of its day) or `skill`.
        folder: Below `concrete/` or `skills/`.
        title: Of a new page.
        is_whole: The text is the body of a page of its own.
    """

    path: str = ""
    kind: Kind = "concrete"
    folder: Annotated[str, Field(max_length=200)] = ""
    title: Annotated[str, Field(max_length=200)] = ""
    is_whole: bool = False


class Operation(Result):
    """One change of long-term memory (design 8): what Promotion carries out, whoever proposed it.

    Attributes:
        action: `new`; `replace` what `ids` name by the text; `end` them, stating the text if there is one; `same`: they
            were said again; `forget` them, since the person asked for it.
        ids: Statements, `<page uuid>#<block id>`.
        text: Exactly as it is to stand.
        page: Where a new one goes.
        evidence: What it rests on.
        marked_by: What marked the words, where no model judged: `command`, `note`, `key-fact`, `tag`, `link`, `use` or
            `repetition`.
    """

    action: Literal["new", "replace", "end", "same", "forget"]
    ids: list[str] = []
    text: str = ""
    page: PageRef = PageRef()
    evidence: list[Evidence] = []
    marked_by: str = ""
    subject: Annotated[str, Field(max_length=120)] = ""
    subject_type: SubjectType = "concept"
    category: Category | None = None
    importance: Share | None = None
    emotion: Annotated[str, Field(max_length=40)] = ""
    tags: list[str] = []
    canonical_key: Annotated[str, Field(max_length=120)] = ""
    steps: Lines = []
    relevance: Relevance = Relevance()
    reasoning: Annotated[str, Field(max_length=500)] = ""


class Summary(Result):
    """One to three paragraphs."""

    text: Annotated[str, Field(max_length=4000)] = ""


class Proposal(Result):
    """One refactoring of long-term memory; validated before anything is done.

    `link`: the memories in `paths`. `move`: those in `paths` up to the folder `target`. `archive`, `compress`: the
    unused ones in `paths`. `split`: the overgrown folder that `paths` names; its pages tell how it is divided.
    """

    action: Literal["link", "move", "archive", "split", "compress"]
    paths: Annotated[list[str], Field(max_length=400)]
    target: str = ""
    reason: Annotated[str, Field(max_length=500)] = ""


class Proposals(Result):
    """[] when memory is well as it is."""

    proposals: Annotated[list[Proposal], Field(max_length=100)] = []


# --- requests ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Request:
    """Base of what a model is asked; holds values, not rendered text.

    Attributes:
        now: The moment "today" and "last week" refer to.
        is_private: Must not leave this machine.
        off_record: Nothing of it may be kept (`remember: false`).
        cause: Id of the journal event that led here, for the cost's record.
        abandon: Asked between pieces of a remote answer; true ends the call with a retryable `ModelError`
            (background work yields when the person returns).
    """

    purpose: ClassVar[Purpose]
    result: ClassVar[type[Result]]
    now: datetime
    is_private: bool = False
    off_record: bool = False
    cause: str | None = None
    abandon: Callable[[], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class QueriesRequest(Request):
    """Which searches would help to answer."""

    purpose: ClassVar[Purpose] = Purpose.QUERIES
    result: ClassVar[type[Result]] = Queries
    prompt: Prompt
    short_term: ShortTermMemory
    conversation: Sequence[Exchange] = ()


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request):
    """Answer a prompt from what was found.

    Attributes:
        absent: Words of the prompt that stand nowhere in memory, the most telling first.
        is_first: It is the first answer of its conversation.
        zone: The person's time zone.
        on_text: Called with each piece of a streamed answer, if anybody wants it.
    """

    purpose: ClassVar[Purpose] = Purpose.ANSWER
    result: ClassVar[type[Result]] = Answer
    prompt: Prompt
    short_term: ShortTermMemory
    hits: Sequence[Hit] = ()
    conversation: Sequence[Exchange] = ()
    absent: Sequence[str] = ()
    is_first: bool = False
    zone: tzinfo | None = None
    on_text: Callable[[str], None] | None = None


@dataclass(frozen=True, kw_only=True)
class ReflectRequest(Request):
    """What an exchange adds to short-term memory."""

    purpose: ClassVar[Purpose] = Purpose.REFLECT
    result: ClassVar[type[Result]] = Reflection
    exchange: Exchange
    short_term: ShortTermMemory


@dataclass(frozen=True, kw_only=True)
class AnalyzeRequest(Request):
    """What of these events deserves long-term memory. Oldest first."""

    purpose: ClassVar[Purpose] = Purpose.ANALYZE
    result: ClassVar[type[Result]] = Candidates
    events: Sequence[StmEvent]
    short_term: ShortTermMemory
    subjects: Sequence[str] = ()  # titles of pages there are, so that names stay the same


@dataclass(frozen=True, slots=True)
class Existing:
    """A statement that stands in memory; `id` is `<page uuid>#<block id>`."""

    id: str
    content: str
    title: str = ""
    created_at: str = ""


@dataclass(frozen=True, kw_only=True)
class IntegrateRequest(Request):
    """How one candidate relates to what is known.

    Attributes:
        complaint: What a former answer lost or invented, to be put right.
    """

    purpose: ClassVar[Purpose] = Purpose.INTEGRATE
    result: ClassVar[type[Result]] = Decisions
    message: str
    candidate: Candidate
    existing: Sequence[Existing] = ()
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Marked:
    """Words of the person that are to be kept, and what marked them.

    Attributes:
        text: As written.
        exchange: The id of the exchange they stand in.
        at: When they were said, ISO 8601.
        by: As `Operation.marked_by`.
        tags: The person's own `#tags` in them.
        links: Targets of the person's own `[[links]]` in them.
        conversation: The name of its folder in the inbox; "" for none.
        is_note: They are a note's whole body.
        same: Ids of statements in the same words.
    """

    text: str
    exchange: str
    at: str
    by: str
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    conversation: str = ""
    is_note: bool = False
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageName:
    """What a page is called.

    Attributes:
        path: Relative, posix.
        names: Title and aliases, as written.
    """

    path: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SynthesizeRequest(Request):
    """Where a candidate belongs.

    Attributes:
        folders: Existing folders below `long_term/` with their summaries.
    """

    purpose: ClassVar[Purpose] = Purpose.SYNTHESIZE
    result: ClassVar[type[Result]] = Page
    candidate: Candidate
    events: Sequence[StmEvent] = ()
    folders: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SummarizeRequest(Request):
    """Summarize the events that were not archived; the old summary is obsolete.

    Attributes:
        titles: Of the pages that what was archived went to.
    """

    purpose: ClassVar[Purpose] = Purpose.SUMMARIZE
    result: ClassVar[type[Result]] = Summary
    remaining: Sequence[StmEvent]
    archived: Sequence[StmEvent] = ()
    titles: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class OrganizeRequest(Request):
    """What to refactor, from statistics made in code.

    Attributes:
        patterns: Lists of rows, each kind only where there are any: `frequent` ({path, cited}), `co_accessed`
            ({paths: [two], cited}), `unused` ({path, last_used: date}), `overgrown` ({folder, entries}).
        structure: Folder to number of entries.
    """

    purpose: ClassVar[Purpose] = Purpose.ORGANIZE
    result: ClassVar[type[Result]] = Proposals
    patterns: Mapping[str, Any]
    structure: Mapping[str, int]
    goals: Sequence[str] = ()


class Engine(Protocol):
    """Something that serves purposes: the offline engine, litellm, a scripted one in tests, a plugin's.

    Attributes:
        name: As in `llm.model`.
        is_remote: Whether what it is asked leaves this machine.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_remote(self) -> bool: ...

    def run(self, request: Request) -> Result:
        """Serve one request with a validated result of type `request.result`.

        Raises:
            ModelError: It cannot; nothing else may be raised.
        """
        ...
