"""Checks of a model's operation by its evidence, for any language: quotes, who said them, when, and numbers.

An operation with a problem is sent back once. If the model insists, one with a soft problem is accepted, one in doubt
waits for the person, and any other is refused. An operation that passes wrongly loses no words either: the old wording
goes to History.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from brainiac.formats.authors import least_trusted
from brainiac.formats.markdown import without_quotes
from brainiac.formats.short_term import StmEvent
from brainiac.llm.schemas import MAX_TEXT, Existing, Operation
from brainiac.text.dates import dates_in
from brainiac.text.tokens import clock_hours, numbers

TASKS = ("open", "tick", "drop")  # the actions that are about tasks and no statements
READ_AGAIN = frozenset({"new", "replace", "end"})  # those whose texts a second reader reads
PASTED = "import"  # the origin of what stands in a block quote or a fence
WORKED_OUT_DAYS = 100  # a date that no quote has may lie so far from the day it was said: "yesterday", "on Monday"
_NAME_WITH_DIGITS = re.compile(r"\b[^\W\d_]+\d+\b")
_SHORT_YEAR = re.compile(r"['’](\d\d)\b")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»\"'‘’*_`", ""))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an operation.

    Attributes:
        text: The problem, as the person gets it.
        is_hard: Whether the operation is not carried out if the model insists.
        is_doubt: Of a hard one: whether the person decides then, since the quotes were said.
        remedy: What the model is to do about it; "" where that goes without saying.
    """

    text: str
    is_hard: bool = True
    is_doubt: bool = False
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


@dataclass(frozen=True)
class Sources:
    """What an operation may rest on.

    Attributes:
        events: The exchanges, by id.
        origin_of: Returns whose words the prompt of an exchange holds, one of `ORIGINS`.
        day_of: Returns the person's day of a moment.
        pages: Titles and aliases of the pages that were shown, by path.
        about: What each of them says that it is about.
        known: The statements that were shown, nearest first.
        tasks: The open goals and tasks that were shown.
        is_past: Whether the exchanges are of long ago, and open and end no task of today.
        is_read_again: Whether a second reader reads what is stated: it can tell a number that was worked out from an
            invented one, which no code can.
    """

    events: Mapping[str, StmEvent]
    origin_of: Callable[[str], str]
    day_of: Callable[[str], str]
    pages: Mapping[str, Sequence[str]] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    known: Sequence[Existing] = ()
    tasks: Sequence[str] = ()
    is_past: bool = False
    is_read_again: bool = False

    @property
    def names(self) -> list[str]:
        """The titles and aliases of all pages that were shown."""
        return [name for names in self.pages.values() for name in names]

    def texts(self) -> list[str]:
        """Return all texts that the model was shown: exchanges, statements and names of pages."""
        said = (text for event in self.events.values() for text in (event.user, event.ai))
        return [*said, *(statement.content for statement in self.known), *self.names]

    def on_page(self, path: str) -> list[str]:
        """Return what the model was shown of a page: its statements, and the steps or the line on its subject."""
        return [self.about.get(path, ""), *(each.content for each in self.known if each.path == path)]

    def days_of(self, operation: Operation) -> set[str]:
        """Return the person's days of the exchanges that an operation quotes, as ISO dates."""
        return {self.day_of(self.events[evidence.exchange].at) for evidence in operation.evidence}

    def quotes_of(self, operation: Operation) -> list[str]:
        """Return the quotes of an operation, and the whole prompts of their exchanges."""
        # all of the prompt: a number may be beside the words that a model quotes
        prompts = [self.events[evidence.exchange].user for evidence in operation.evidence]
        return prompts + [evidence.quote for evidence in operation.evidence]

    def speaker_of(self, exchange: str, quote: str) -> str:
        """Return whose words a quote is, one of `ORIGINS`; "" where the exchange does not hold it."""
        event, quoted = self.events[exchange], comparable(quote)
        if not quoted:
            return ""
        if quoted in comparable(without_quotes(event.user)):
            return self.origin_of(exchange)
        if quoted in comparable(event.user):  # a text that they pasted
            return least_trusted(self.origin_of(exchange), PASTED)
        return "assistant" if quoted in comparable(event.ai) else ""


def origin_of(operation: Operation, sources: Sources) -> str:
    """Return whose words an operation rests on: the least trusted origin of its quotes.

    What the assistant said and the person took up in words of their own is the person's; both quotes are its evidence.
    """
    speakers = {sources.speaker_of(quoted.exchange, quoted.quote) for quoted in operation.evidence} - {""}
    return least_trusted(*(speakers - {"assistant"} if "person" in speakers else speakers))


def problems_of(operation: Operation, targets: Sequence[Existing], sources: Sources) -> list[Problem]:
    """Return what is wrong with an operation.

    Args:
        operation: The operation as a model gave it.
        targets: The statements that its ids name, as far as they exist.
        sources: What it may rest on.
    """
    problems = [*evidence_problems(operation, sources), *_target_problems(operation, targets, sources)]
    if any(problem.is_hard for problem in problems):
        return problems  # the further checks need evidence and targets that exist
    if operation.action in ("replace", "end", "forget", "tick", "drop"):
        problems += _change_problems(operation, targets, sources)
    # Digits are the same in every language; whether a number is a date, an age or a price does not matter here.
    if not (sources.is_read_again and operation.action in READ_AGAIN):
        problems += _number_problems(operation, targets, sources)
    return [*problems, *_soft_problems(operation, targets, sources)]


def evidence_problems(operation: Operation, sources: Sources) -> Iterable[Problem]:
    """Yield quotes that nobody said, a missing quote, and a text that is empty or too long."""
    if not operation.evidence:
        yield Problem("it quotes nothing of what was said")
    for evidence in operation.evidence:
        if evidence.exchange not in sources.events:
            yield Problem(f"there is no exchange {evidence.exchange[:80]!r}")
        elif not sources.speaker_of(evidence.exchange, evidence.quote):
            yield Problem(f"“{evidence.quote[:80]}” was not said there; copy the words letter by letter")
    if operation.action in ("new", "replace", *TASKS) and not operation.text.strip():
        yield Problem("it states nothing")
    if len(operation.text) > MAX_TEXT:
        yield Problem(f"a statement has at most {MAX_TEXT} characters")


def _target_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield a problem where an operation on statements or on a task names none, or one that does not exist."""
    remedy = "copy an id of the list, or use `new`"
    if operation.action in TASKS and sources.is_past:
        yield Problem("that was long ago: it opens and ends no task of today; say what it was with `new`")
    elif operation.action in TASKS:
        is_open = any(comparable(task) == comparable(operation.text) for task in sources.tasks)
        if operation.action != "open" and not is_open:
            yield Problem(f"there is no open task “{operation.text[:80]}”; copy one of the list, word for word")
    elif operation.action != "new" and not operation.ids:
        yield Problem(f"it names no statement; {remedy}", is_hard=False)
    elif operation.action != "new" and len(targets) < len(operation.ids):
        names = ", ".join(repr(name[:40]) for name in operation.ids)
        yield Problem(f"there is no statement {names}; {remedy}", is_hard=False)


def _change_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield a problem where a change rests on no words of the person, or on words older than its target."""
    exchanges_by_person = [
        evidence.exchange
        for evidence in operation.evidence
        if sources.speaker_of(evidence.exchange, evidence.quote) == "person"
    ]
    if not exchanges_by_person:
        yield Problem("only the person's own words change what is known", is_doubt=True, remedy="quote them")
        return
    last_day = max(sources.day_of(sources.events[exchange].at) for exchange in exchanges_by_person)
    for target in targets:
        if last_day < target.since:
            text = f"“{target.content[:80]}” was said on {target.since}, after what it is to be changed by"
            yield Problem(text, is_doubt=True)


def _number_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield a problem where an operation states numbers that it may not state (see `_known_numbers`).

    A date or a time that a model may have worked out ("yesterday", "half past") is no problem. No code can tell a right
    one from a wrong one, and to ask about each would cost more calls than it prevents mistakes.
    """
    text, known_numbers = "\n".join([operation.text, *operation.steps]), _known_numbers(operation, targets, sources)
    if numbers([text]) <= known_numbers:
        return
    # without the words of letters and digits ("Q2", "B17") that stand in what the model was shown
    names = {name for shown_text in sources.texts() for name in _NAME_WITH_DIGITS.findall(shown_text)}
    text = _NAME_WITH_DIGITS.sub(lambda match: " " if match.group() in names else match.group(), text)
    for stated in _worked_out(text, sources.days_of(operation), sources.quotes_of(operation)):
        if numbers([stated]) - known_numbers:
            text = text.replace(stated, " ")
    if unsaid := sorted(numbers([text]) - known_numbers):
        subject = f"the number {', '.join(map(str, unsaid[:8]))}"
        text = f"{subject} was not said in the words it rests on, and did not stand there before"
        remedy = "quote where it was said, and leave in words what was said in words"
        yield Problem(text, is_doubt=True, remedy=remedy)


def _known_numbers(operation: Operation, targets: Sequence[Existing], sources: Sources) -> set[int]:
    """Return the numbers that an operation may state: of its quotes, their days, its targets and the page it names."""
    days, quotes = sources.days_of(operation), sources.quotes_of(operation)
    target_texts = [f"{target.content} {target.since}" for target in targets]
    # "her 60th": what the page says already may be named again
    paths = dict.fromkeys((operation.page.path, *(target.path for target in targets)))
    on_pages = [*sources.names, *(text for path in paths for text in sources.on_page(path))]
    short_years = {int(year) for quote in quotes for year in _SHORT_YEAR.findall(quote)}  # "’98"
    years = {century + year for year in short_years for century in (1900, 2000)}
    years |= {int(day[:4]) + step for day in days for step in (-1, 1)}  # "last September", "next summer"
    return numbers([*quotes, *days, *target_texts, *on_pages]) | years


def _worked_out(text: str, days: Collection[str], quotes: Sequence[str]) -> list[str]:
    """Return the dates and times of a text that a model may have worked out from quotes and their days.

    A date is near one of the days ("yesterday": 2025-09-16), or has a quote's day of the month ("on the 3rd":
    2025-09-03). A time has an hour that a quote has ("half past 7": 19:30).
    """
    quoted_numbers, quoted_on = numbers(quotes), [day for day in map(_date, days) if day]
    dates = {
        stated
        for day, stated in dates_in(text)
        if any(abs((day - other).days) <= WORKED_OUT_DAYS for other in quoted_on)
        # the month is not compared: it is a word, in any language
        or (day.day in quoted_numbers and any(abs(day.year - int(other[:4])) <= 1 for other in days))
    }
    times = {stated for stated, hours in clock_hours(text).items() if not hours.isdisjoint(quoted_numbers)}
    return sorted(dates | times)


def _date(day: str) -> date | None:
    """Return an ISO date as a date; None where it is none."""
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None


def _soft_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield what evidence cannot show and a second look mends: a replacement of what stands on another page.

    Whom a statement is about, and whether what it ends is over, takes a reader (`verify.py`): questions about the names
    that words have were for nothing (docs/decisions/consolidation.md).
    """
    pages, to = {target.path: target.title for target in targets}, operation.page.path
    if operation.action == "replace" and (len(pages) > 1 or (to and not pages.keys() <= {to, *operation.page.merge})):
        titles = dict.fromkeys([*pages.values(), *sources.pages.get(to, ())[:1]])
        names = " and ".join(f"“{name}”" for name in titles)
        yield Problem(f"it is about {names}: is that the same thing, and does the one say what the other did?", False)


def comparable(text: str) -> str:
    """Return a text as quotes are compared: without case, quotation marks, emphasis and marks at its ends."""
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    return " ".join(plain.split()).strip(" .,;:!?…")
