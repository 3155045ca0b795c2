"""The eight purposes of model calls: for each the request, as plain values, and the result, as a pydantic model.

Strings and lists of results are bounded: JSON that is cut off at a token limit cannot be parsed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from brainiac.formats.prompt import Exchange, Prompt
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.search.documents import Hit

OFFLINE = "offline"  # the name of the offline engine


class Purpose(StrEnum):
    """What a call is for; each has its own role, template, result and, if wanted, its own model."""

    QUERIES = "queries"
    ANSWER = "answer"
    REFLECT = "reflect"
    CONSOLIDATE = "consolidate"
    VERIFY = "verify"
    SYNTHESIZE = "synthesize"
    SUMMARIZE = "summarize"
    ORGANIZE = "organize"


# --- results -----------------------------------------------------------------------------------------------

MAX_TEXT = 1000  # characters of a line
MAX_ROWS = 400  # of one answer
Line = Annotated[str, Field(max_length=MAX_TEXT)]
Lines = Annotated[list[Line], Field(max_length=50)]
# constrained decoding does not bound numbers; a small model's 0.9 where 0.3 is the most means "much", and asking
# again would cost a call
Share = Annotated[float, BeforeValidator(lambda value: _within(value, 1.0)), Field(ge=0, le=1)]
Third = Annotated[float, BeforeValidator(lambda value: _within(value, 0.3)), Field(ge=0, le=0.3)]
Tags = Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=8)]
Kind = Literal["concrete", "event", "skill"]
Category = Literal["identity", "interests", "models", "preferences", "relationships"]
SubjectType = Literal["person", "project", "concept", "resource", "organization", "workflow"]


def _within(value: Any, most: float) -> Any:
    """Return a number moved into the range from 0 to `most`; anything else as it is, for pydantic to refuse."""
    return min(max(value, 0.0), most) if isinstance(value, int | float) else value


def _names(given: Any) -> Any:
    """Return ids as they are shown in brackets, or several in one text, as a list of ids; anything else as it is."""
    is_texts = isinstance(given, list) and all(isinstance(row, str) for row in given)
    return [name.strip("[] ") for row in given for name in row.split(",")] if is_texts else given


class Result(BaseModel):
    """Base of every typed result.

    What a model gives in another form than asked for is taken as it is meant, since asking again costs a call: `null`
    is as left out, a text or an object in place of a list is a list of one, a number a text, `NEW` is `new`.

    Attributes:
        optional: The fields of which a value that does not validate is as left out.
        bare: The field that a text in place of the whole is meant as; "" for none.
    """

    # small models add fields of their own, which is no reason to ask again
    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)
    optional: ClassVar[frozenset[str]] = frozenset()
    bare: ClassVar[str] = ""

    @model_validator(mode="wrap")
    @classmethod
    def _as_meant(cls, given: Any, validate: Callable[[Any], Self]) -> Self:
        if not isinstance(given, Mapping):
            return validate({cls.bare: given} if cls.bare and isinstance(given, str) else given)
        values = {name: cls._value(name, value) for name, value in given.items() if value is not None}
        try:
            return validate(values)
        except ValidationError as error:
            wrong = {problem["loc"][0] if problem["loc"] else "" for problem in error.errors()}
            if not wrong <= cls.optional:
                raise
            return validate({name: value for name, value in values.items() if name not in wrong})

    @classmethod
    def _value(cls, name: str, value: Any) -> Any:
        """Return the value of a field in the form that the field has."""
        form = cls.model_fields[name].annotation if name in cls.model_fields else None
        if get_origin(form) is list and isinstance(value, str | Mapping):
            return [value] if value else []
        if get_origin(form) is Literal and isinstance(value, str):
            return next((known for known in get_args(form) if known == value.strip().lower()), value)
        return value


class Queries(Result):
    """Search queries for long-term memory, most important first; none when nothing needs recalling."""

    queries: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=8)] = []


class Answer(Result):
    """The text that becomes the response.

    Attributes:
        cited: Indices into `AnswerRequest.hits` of the hits that the text quotes or links to.
        led: Those of `cited` that the answer mainly rests on, for the access log; None for all of `cited`.
        shown: Indices of the hits that the model was shown; None for those of `cited`.
        read: Paths of long-term memories that the model read by its tools, for the access log.
        cited_paths: Those of `read` that the text links to.
        model: The model that answered, filled in by the gateway.
        tokens: Input and output tokens of all calls for this answer.
        cost_usd: What these calls cost.
    """

    text: str
    cited: list[int] = []
    led: list[int] | None = None
    shown: list[int] | None = None
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
    forget: Lines = []  # the words by which the person asks to forget or not to keep something; or ids, see `existing`


class Relevance(Result):
    """How much a candidate has to do with one existing statement, as three shares: kind, topic and meaning."""

    optional: ClassVar[frozenset[str]] = frozenset({"type", "topic", "semantic"})
    type: Third = 0.0
    topic: Third = 0.0
    semantic: Third = 0.0

    @property
    def score(self) -> float:
        """The sum, at most 0.9, to one decimal."""
        return round(self.type + self.topic + self.semantic, 1)

    @property
    def band(self) -> str:
        """HIGH from 0.7 on, MODERATE from 0.4, LOW from 0.1, else NO."""
        return next((name for name, least in _BANDS if self.score >= least), "NO")


_BANDS = (("HIGH", 0.7), ("MODERATE", 0.4), ("LOW", 0.1))


class Section(Result):
    """A heading of a page.

    Attributes:
        statements: Ids of the statements below it, in order.
    """

    heading: Annotated[str, Field(max_length=120)]
    statements: Annotated[list[str], Field(max_length=200)] = []


class Page(Result):
    """Title, summary and order of a new or much changed page whose statements are already written.

    Attributes:
        folder: Below `concrete/` or `skills/`, of a new page.
        summary: One line.
        order: Ids of its statements, in the wanted order.
        sections: Where headings are wanted: those of the page, in order.
    """

    optional: ClassVar[frozenset[str]] = frozenset({"sections"})
    kind: Kind
    folder: Annotated[str, Field(max_length=200)] = ""
    title: Annotated[str, Field(max_length=120)]
    summary: Annotated[str, Field(max_length=500)] = ""
    tags: Tags = []
    emotion: Annotated[str, Field(max_length=40)] = ""
    order: Annotated[list[str], Field(max_length=200)] = []
    sections: Annotated[list[Section], Field(max_length=MAX_ROWS)] = []


class Evidence(Result):
    """The words of an exchange that an operation rests on.

    Attributes:
        exchange: The exchange's id.
        quote: The words, verbatim.
    """

    bare: ClassVar[str] = "quote"
    exchange: str = ""
    quote: str = ""


class PageRef(Result):
    """The page that a statement goes to: an existing one, by its path, or a new one.

    Attributes:
        path: Of an existing page; "" for a new one.
        kind: `concrete`, `event` (the page of its day) or `skill`.
        folder: Below `concrete/` or `skills/`, of a new page.
        title: Of a new page; of an existing one its new title, "" to keep the present one.
        aliases: Other names of its subject.
        summary: Of a new page, what it is about in one line.
        merge: Paths of pages on the same subject, whose statements move to this page.
        is_whole: Whether the operation's text is the whole body of a page of its own.
    """

    bare: ClassVar[str] = "path"
    optional: ClassVar[frozenset[str]] = frozenset({"kind", "folder", "title", "aliases", "summary", "merge"})
    path: str = ""
    kind: Kind = "concrete"
    folder: Annotated[str, Field(max_length=200)] = ""
    title: Annotated[str, Field(max_length=200)] = ""
    aliases: Annotated[list[Annotated[str, Field(max_length=120)]], Field(max_length=8)] = []
    summary: Annotated[str, Field(max_length=200)] = ""
    merge: Annotated[list[str], Field(max_length=8)] = []
    is_whole: SkipJsonSchema[bool] = False


class Operation(Result):
    """One change of long-term memory, proposed by a model or by the rules of the offline engine.

    Attributes:
        action: `rename`: what was called `former` is called `text`, in every statement shown that names it
            and on the page of that name; `open`: add
            `text` to the tasks; `tick`, `drop`: the open task with this `text` is done, or needs not be
            done; `new`: add `text` as a statement; `replace`: put `text` in place of the statements `ids`; `end`: move
            them to History, and add `text` if there is one; `same`: note that they were said again; `forget`: remove
            them, since the person asked for it.
        ids: Statements; several only where all of them say the same.
        text: The new statement, word for word. Promotion refuses a model's text that is longer than `MAX_TEXT`.
        former: The former name, of a `rename`.
        page: The page of the new statement.
        evidence: The exchanges and words that it rests on.
        valid_from: The ISO date from which it is true; "" where nothing says it.
        valid_until: The last ISO date on which it is true; "" where nothing says it.
        marked_by: What marked the words, where no model judged: `command`, `note`, `key-fact`, `tag`, `link` or
            `repetition`.
        tags: The person's own, where no model judged.
        is_doubted: Whether a check doubts it, for the reason in `reasoning`, so that the person decides.
    """

    # what nothing is decided by; the others are demanded of a model, empty where there is nothing to say
    optional: ClassVar[frozenset[str]] = frozenset(
        "subject subject_type category canonical_key importance valid_from relevance reasoning".split()
    )
    model_config = ConfigDict(
        json_schema_extra={"required": ["action", "ids", "text", "evidence", "page", "valid_until", "steps"]}
    )
    action: Literal["new", "replace", "end", "same", "forget", "rename", "open", "tick", "drop"]
    ids: Annotated[list[str], BeforeValidator(lambda ids: _names(ids)), Field(max_length=20)] = []
    text: Annotated[str, Field(json_schema_extra={"maxLength": MAX_TEXT})] = ""
    evidence: Annotated[list[Evidence], Field(max_length=20)] = []
    page: PageRef = PageRef()
    former: Annotated[str, Field(max_length=120)] = ""
    subject: Annotated[str, Field(max_length=120)] = ""
    subject_type: SubjectType = "concept"
    category: Category | None = None
    canonical_key: Annotated[str, Field(max_length=120)] = ""
    importance: Share | None = None
    valid_from: Annotated[str, Field(max_length=30)] = ""
    valid_until: Annotated[str, Field(max_length=30)] = ""
    steps: Lines = []
    relevance: Relevance = Relevance()
    reasoning: Annotated[str, Field(max_length=500)] = ""
    marked_by: SkipJsonSchema[str] = ""
    tags: SkipJsonSchema[list[str]] = []
    is_doubted: SkipJsonSchema[bool] = False


class Unread(Result):
    """A part of an answer that is no valid operation.

    Attributes:
        text: What it states, or what stands there.
        problem: What is wrong with it, in words for the model.
    """

    text: str
    problem: str


class Consolidation(Result):
    """The operations on long-term memory that follow from what was said; [] when there are none.

    Attributes:
        operations: Each is read for itself: one that does not validate takes no other with it.
        unread: Those that do not validate.
    """

    operations: Annotated[list[Operation], Field(max_length=MAX_ROWS)] = []
    unread: SkipJsonSchema[list[Unread]] = []

    @model_validator(mode="before")
    @classmethod
    def _each_for_itself(cls, given: Any) -> Any:
        rows = given.get("operations") if isinstance(given, Mapping) else None
        if not isinstance(rows, list):
            return given
        operations, unread = [], list(given.get("unread", ()))
        for number, row in enumerate(rows[:MAX_ROWS], 1):
            try:
                operations.append(Operation.model_validate(row))
            except ValidationError as error:
                text = row.get("text") if isinstance(row, Mapping) else None
                shown = text if isinstance(text, str) and text else json.dumps(row, ensure_ascii=False, default=str)
                problem = f"operation {number} does not validate: {problems_in(error)}"
                unread.append(Unread(text=shown[:MAX_TEXT], problem=problem))
        return {"operations": operations, "unread": unread}


def problems_in(error: ValidationError) -> str:
    """Return what does not validate, in words for a model."""
    return "; ".join(f"`{'.'.join(map(str, e['loc'])) or 'answer'}`: {e['msg']}" for e in error.errors()[:5])


class Verdict(Result):
    """What a second reader says of one claim.

    Attributes:
        item: The claim's id.
        verdict: Whether its text follows from the words that it rests on.
        reason: In a few words.
    """

    optional: ClassVar[frozenset[str]] = frozenset({"verdict", "reason"})
    model_config = ConfigDict(json_schema_extra={"required": ["item", "verdict", "reason"]})
    item: str
    verdict: Literal["follows", "does not", "cannot tell"] = "cannot tell"
    reason: Annotated[str, Field(max_length=300)] = ""


class Verdicts(Result):
    """One verdict for each claim."""

    verdicts: Annotated[list[Verdict], Field(max_length=MAX_ROWS)] = []


class Summary(Result):
    """One to three paragraphs."""

    text: Annotated[str, Field(max_length=4000)] = ""


class Proposal(Result):
    """One refactoring of long-term memory; validated before anything is done.

    `link`: link the memories in `paths` to each other. `move`: move those in `paths` up to the folder `target`.
    `archive`, `compress`: archive the unused ones in `paths`, or make digests of them. `split`: divide the overgrown
    folder in `paths` into subfolders, by the subjects of its pages.
    """

    action: Literal["link", "move", "archive", "split", "compress"]
    paths: Annotated[list[str], Field(max_length=400)]
    target: str = ""
    reason: Annotated[str, Field(max_length=500)] = ""


class Proposals(Result):
    """Refactorings; [] when none is needed."""

    proposals: Annotated[list[Proposal], Field(max_length=100)] = []


# --- requests ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Request:
    """Base of what a model is asked; holds values, not rendered text.

    Attributes:
        now: The moment "today" and "last week" refer to, in the person's time zone.
        is_private: Whether it must not leave this machine.
        cause: Id of the journal event that the call is made for; the record of its cost names it.
        abandon: Called between pieces of a remote answer; when it returns true the call ends with a retryable
            `ModelError` (background work stops when the person returns).
    """

    purpose: ClassVar[Purpose]
    result: ClassVar[type[Result]]
    now: datetime
    is_private: bool = False
    cause: str | None = None
    abandon: Callable[[], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class QueriesRequest(Request):
    """Ask for searches that would help to answer a prompt.

    Attributes:
        hits: What its own words find, best first; the titles of the pages are shown.
    """

    purpose: ClassVar[Purpose] = Purpose.QUERIES
    result: ClassVar[type[Result]] = Queries
    prompt: Prompt
    short_term: ShortTermMemory
    hits: Sequence[Hit] = ()
    conversation: Sequence[Exchange] = ()


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request):
    """Ask for the answer to a prompt, given what search found.

    Attributes:
        absent: Words of the prompt that stand nowhere in memory, names first.
        wants_list: It seems to ask for several things ("which …", "everything about …").
        is_first: It is the first answer of its conversation.
        on_text: Called with each piece of a streamed answer, if anybody wants it.
    """

    purpose: ClassVar[Purpose] = Purpose.ANSWER
    result: ClassVar[type[Result]] = Answer
    prompt: Prompt
    short_term: ShortTermMemory
    hits: Sequence[Hit] = ()
    conversation: Sequence[Exchange] = ()
    absent: Sequence[str] = ()
    wants_list: bool = False
    is_first: bool = False
    on_text: Callable[[str], None] | None = None


@dataclass(frozen=True, kw_only=True)
class ReflectRequest(Request):
    """Ask what an exchange adds to short-term memory.

    Attributes:
        conversation: The exchanges before it in its conversation, oldest first; the last one is shown.
        existing: What memory holds near to what the exchange asks to forget; then only that is asked, which of these it
            means, and `Reflection.forget` has their ids.
    """

    purpose: ClassVar[Purpose] = Purpose.REFLECT
    result: ClassVar[type[Result]] = Reflection
    exchange: Exchange
    short_term: ShortTermMemory
    existing: Sequence[Existing] = ()
    conversation: Sequence[Exchange] = ()


@dataclass(frozen=True, slots=True)
class PageName:
    """The names of a page.

    Attributes:
        path: Its path, relative, posix.
        names: Its title and aliases, as written.
        about: A line on its subject.
        is_near: Whether the exchanges may be about it; other pages are only listed.
        is_old: Whether its statements have changed since the line was written.
    """

    path: str
    names: tuple[str, ...]
    about: str = ""
    is_near: bool = True
    is_old: bool = False


@dataclass(frozen=True, slots=True)
class Existing:
    """A current statement, as a request shows it.

    Attributes:
        id: A short id, valid in one request.
        content: Its words.
        path: The path of its page, relative.
        title: The title of its page.
        since: The day it was said, an ISO date; "" if unknown.
        is_by_hand: Whether the person wrote or edited it themselves.
        is_over: Whether the day that it was planned for has passed.
    """

    id: str
    content: str
    path: str = ""
    title: str = ""
    since: str = ""
    is_by_hand: bool = False
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """An exchange to be consolidated.

    Attributes:
        id: A short id, valid in one request.
        event: The exchange.
        thread: The name of its conversation; "" for none.
        before: What was said before it in its conversation, where that is no part of the request; None for nothing.
    """

    id: str
    event: StmEvent
    thread: str = ""
    before: Exchange | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An operation that a check refused, and why; the model is asked once for another in its place."""

    operation: Operation
    problem: str


@dataclass(frozen=True, kw_only=True)
class ConsolidateRequest(Request):
    """Ask for the operations on long-term memory that follow from exchanges.

    Attributes:
        said: The exchanges, oldest first.
        short_term: Summary, goals and tasks; no events.
        existing: Current statements that may be affected, nearest first.
        pages: The existing pages.
        refused: Operations of an earlier answer that a check refused; if there are any, the request asks only for
            others in their place.
        is_past: Whether the exchanges are of long ago: then they open and end no task of today.
    """

    purpose: ClassVar[Purpose] = Purpose.CONSOLIDATE
    result: ClassVar[type[Result]] = Consolidation
    said: Sequence[Said]
    short_term: ShortTermMemory
    existing: Sequence[Existing] = ()
    pages: Sequence[PageName] = ()
    refused: Sequence[Refused] = ()
    is_past: bool = False


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words that a claim rests on.

    Attributes:
        by: Whose words they are: `User`, `AI`, or what they were taken from.
        day: When they were said, with the weekday.
        quote: The words.
        passage: What they stand in.
    """

    by: str
    day: str
    quote: str
    passage: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that is about to be written, with what it rests on.

    Attributes:
        id: A short id, valid in one request.
        text: Its words; "" where statements are only ended.
        quotes: The words that it rests on.
        former: The statements that it replaces or ends.
        is_end: Whether it ends them.
        events: The exchanges that the quotes stand in; they are not shown.
    """

    id: str
    text: str
    quotes: Sequence[Quoted]
    former: Sequence[Existing] = ()
    is_end: bool = False
    events: Sequence[StmEvent] = ()


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(Request):
    """Ask a second reader whether statements follow from the words that they rest on.

    Attributes:
        claims: The statements.
    """

    purpose: ClassVar[Purpose] = Purpose.VERIFY
    result: ClassVar[type[Result]] = Verdicts
    claims: Sequence[Claim]


@dataclass(frozen=True, kw_only=True)
class SynthesizeRequest(Request):
    """Ask for title, summary and order of a much changed page.

    Attributes:
        kind: Of the page.
        title: Its present title.
        candidates: The statements that are new on it.
        steps: The steps of a skill.
        standing: The statements that were on it before.
        events: The exchanges that the new statements rest on.
        wants_headings: Whether it is long and has no headings yet.
    """

    purpose: ClassVar[Purpose] = Purpose.SYNTHESIZE
    result: ClassVar[type[Result]] = Page
    kind: Kind
    title: str
    candidates: Sequence[Existing]
    steps: Sequence[str] = ()
    standing: Sequence[Existing] = ()
    events: Sequence[StmEvent] = ()
    wants_headings: bool = False


@dataclass(frozen=True, kw_only=True)
class SummarizeRequest(Request):
    """Ask for a summary of the exchanges left in short-term memory; it replaces the old one.

    Attributes:
        remaining: The exchanges that are left.
        archived: The exchanges that were moved to pages.
        titles: The titles of these pages.
    """

    purpose: ClassVar[Purpose] = Purpose.SUMMARIZE
    result: ClassVar[type[Result]] = Summary
    remaining: Sequence[StmEvent]
    archived: Sequence[StmEvent] = ()
    titles: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class OrganizeRequest(Request):
    """Ask which refactorings long-term memory needs, given statistics of its use.

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
    """What serves model calls: the offline engine, litellm, a scripted one in tests, a plugin's.

    Attributes:
        name: As in `llm.model`.
        is_remote: Whether requests leave this machine.
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
