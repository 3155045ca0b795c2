"""Checks of a model's operation by its evidence, for any language (design 6): quotes, who said them, when, and numbers.

A hard problem has the operation refused; any other is asked about once, and then what the model says stands. What an
operation replaces is never lost, whatever passes here: the old wording goes to History.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from brainiac.formats.prompt import ORIGINS
from brainiac.formats.short_term import StmEvent
from brainiac.llm.schemas import MAX_TEXT, Existing, Operation
from brainiac.text.tokens import likeness, words

WORKED_OUT_DAYS = 31  # so far from the day it was said a date may lie that no quote has: "yesterday", "on Monday"
SAME_WORD = 0.4  # of the runs of signs: another form of a word
_NUMBER = re.compile(r"\d+")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_WORD = re.compile(r"[^\W\d_]\w*")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»\"'‘’*_`", ""))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an operation.

    Attributes:
        text: For the model and the journal.
        is_hard: It is refused; otherwise it is asked about once.
        is_about_change: The text is well founded, only what it would change is not: it may be stated beside.
    """

    text: str
    is_hard: bool = True
    is_about_change: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """What an operation may rest on.

    Attributes:
        events: What was said, by id.
        origin_of: Whose words the prompt of an exchange holds, one of `ORIGINS`.
        day_of: The person's day of a moment.
        names: Titles, aliases and subjects that are known.
    """

    events: Mapping[str, StmEvent]
    origin_of: Callable[[str], str]
    day_of: Callable[[str], str]
    names: Collection[str] = ()

    def speaker_of(self, exchange: str, quote: str) -> str:
        """Return whose words a quote is, one of `ORIGINS`; "" where nobody said it."""
        event, wanted = self.events[exchange], _folded(quote)
        if wanted and wanted in _folded(event.user):
            return self.origin_of(exchange)
        return "assistant" if wanted and wanted in _folded(event.ai) else ""


def origin_of(operation: Operation, sources: Sources) -> str:
    """Return whose words an operation rests on: the least trusted of its quotes."""
    speakers = (sources.speaker_of(quoted.exchange, quoted.quote) for quoted in operation.evidence)
    return max((speaker for speaker in speakers if speaker), key=ORIGINS.index, default=ORIGINS[0])


def problems_of(operation: Operation, targets: Sequence[Existing], sources: Sources) -> list[Problem]:
    """Return what is wrong with an operation.

    Args:
        operation: As a model gave it, the ids of its exchanges resolved.
        targets: The statements that its ids name, as far as they are there.
        sources: What it may rest on.
    """
    problems = [*_evidence_problems(operation, sources), *_target_problems(operation, targets)]
    if any(problem.is_hard for problem in problems):
        return problems  # what it rests on is not known
    if operation.action in ("replace", "end", "forget"):
        problems += _change_problems(operation, targets, sources)
    # Digits are the same in every language; which of them is a date, an age or a price is not asked.
    problems += _number_problems(operation, targets, sources)
    return [*problems, *_word_problems(operation, targets, sources)]


def _evidence_problems(operation: Operation, sources: Sources) -> Iterable[Problem]:
    if not operation.evidence:
        yield Problem("it quotes nothing of what was said")
    for evidence in operation.evidence:
        if evidence.exchange not in sources.events:
            yield Problem(f"there is no exchange {evidence.exchange[:80]!r}")
        elif not sources.speaker_of(evidence.exchange, evidence.quote):
            yield Problem(f"“{evidence.quote[:80]}” was not said there; copy the words letter by letter")
    if operation.action in ("new", "replace") and not operation.text.strip():
        yield Problem("it states nothing")
    if len(operation.text) > MAX_TEXT:
        yield Problem(f"a statement has at most {MAX_TEXT} characters")


def _target_problems(operation: Operation, targets: Sequence[Existing]) -> Iterable[Problem]:
    if operation.action != "new" and len(targets) < max(1, len(operation.ids)):
        named = ", ".join(repr(name[:40]) for name in operation.ids) or "named"
        yield Problem(f"there is no statement {named}; copy an id of the list, or use `new`", is_about_change=True)


def _change_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield what is wrong with the evidence for a change: only the person's words, said later, end what is known."""
    theirs = [
        evidence.exchange
        for evidence in operation.evidence
        if sources.speaker_of(evidence.exchange, evidence.quote) == ORIGINS[0]
    ]
    if not theirs:
        yield Problem("only the person's own words change what is known; quote them", is_about_change=True)
        return
    last = max(sources.day_of(sources.events[exchange].at) for exchange in theirs)
    for target in targets:
        if last < target.since:
            text = f"“{target.content[:80]}” was said on {target.since}, after what it is to be changed by"
            yield Problem(text, is_about_change=True)


def _number_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield the numbers and dates of the new text that nobody said; a date near the day may have been worked out."""
    days = {sources.day_of(sources.events[evidence.exchange].at) for evidence in operation.evidence}
    known = numbers(
        [
            *(evidence.quote for evidence in operation.evidence),
            *days,
            *(f"{target.content} {target.since}" for target in targets),
        ]
    )
    text = "\n".join([operation.text, *operation.steps])
    # "yesterday" names no day: one that was worked out is asked about, since refusing it would lose what was said.
    for stated in dict.fromkeys(_DATE.findall(text)):
        if not numbers([stated]) <= known and any(_is_near(stated, day) for day in days):
            yield Problem(f"{stated} was not said; is it what was meant?", is_hard=False)
            text = text.replace(stated, " ")
    if unsaid := sorted(numbers([text]) - known):
        named = ", ".join(map(str, unsaid[:8]))
        yield Problem(f"the number {named} stands in no quote, in no day and not in the former statement")


def numbers(texts: Iterable[str]) -> set[int]:
    """Return the numbers of texts, digit by digit group: of a date its year, month and day; zero says nothing."""
    return {int(digits[:18]) for text in texts for digits in _NUMBER.findall(text)} - {0}


def _is_near(stated: str, day: str) -> bool:
    try:
        return abs((date.fromisoformat(stated) - date.fromisoformat(day)).days) <= WORKED_OUT_DAYS
    except ValueError:
        return False


def _word_problems(operation: Operation, targets: Sequence[Existing], sources: Sources) -> Iterable[Problem]:
    """Yield the words that a statement would lose, and the names that it would bring from nowhere."""
    stated = words(operation.text)
    if operation.action == "replace":
        former = [word for target in targets for word in words(target.content)]
        lost = [word for word in former if not _has_word(stated, word)]
        came = [word for word in stated if not _has_word(former, word)]
        # as many others in their place are another price, place or name: that is what a change looks like
        if len(lost) > len(came):
            yield Problem(
                f"the former statement's words {_listed(lost)} are gone; keep what still holds", is_hard=False
            )
    events = (sources.events[evidence.exchange] for evidence in operation.evidence)
    known = [*(text for event in events for text in (event.user, event.ai)), *(target.content for target in targets)]
    heard = set(words(" ".join([*known, *sources.names, "User"])))
    # The first word has a capital whatever it is. A language that gives one to every noun is asked more often, which
    # costs a question and refuses nothing.
    new = [word for word in _WORD.findall(operation.text)[1:] if word[0].isupper() and not _has_word(heard, word)]
    if new:
        yield Problem(f"nobody said {_listed(new)}", is_hard=False)


def _has_word(texts: Collection[str], word: str) -> bool:
    """Return whether a word stands among others, in another form perhaps."""
    folded = word.casefold()
    return folded in texts or any(likeness(folded, other) >= SAME_WORD for other in texts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in dict.fromkeys(names[:12]))


def _folded(text: str) -> str:
    """Return a text without what copying changes: white space, case, quotation marks, emphasis, signs at its ends."""
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    return " ".join(plain.split()).strip(" .,;:!?…")
