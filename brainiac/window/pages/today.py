"""Today: a box to write in, the answers, what is due, what waits for the person, and what happened lately."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any
from urllib.parse import quote

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BrainiacError
from brainiac.events import Event
from brainiac.formats.prompt import CITED, Prompt, Response, error_path, parse_response
from brainiac.formats.short_term import ShortTermDocument
from brainiac.health.overview import overview
from brainiac.history.digest import digest_since
from brainiac.history.sentences import news
from brainiac.history.undo import take_back, undo_all
from brainiac.library import read_prompt
from brainiac.storage.causes import commits_of, find_event, undone_events
from brainiac.storage.links import shortened
from brainiac.storage.today import find_due
from brainiac.verbs.push import words_of
from brainiac.window.frame import QUICK_SECONDS, Done, LiveAnswer, Page, Visit
from brainiac.window.pages.review import put_off, questions, save

MAX_ANSWERS, MAX_WAITING, MAX_SHOWN = 3, 8, 60
NEW = timedelta(minutes=10)  # for which an answer stands right below the box, above what waits
DAYS = 7  # that are shown of somebody who never looked
SEEN = "seen"  # under which it is kept until when everything was looked at
_SAID = (events.PromptAnswered, events.NoteCaptured)
_FORGOTTEN = (events.ExchangeForgotten, events.MemoryForgotten)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing on the page.

    Attributes:
        text: Its words.
        what: What it is, or what happened to it, in a word or two.
        at: When, or when it is due; ISO 8601.
        name: By which `why`, `wrong` and `forget` know it; "" where they do not.
        undo: What takes it back, and nothing else; "" for nothing.
        run: The event that did it with other things, of which a page says first what taking it back would do.
        before: Its former words.
        title: Of its page.
        review: Of a question in `review.md`, the id by which it is decided.
        answers: The words of its two buttons.
        prompt: Of a prompt that waits, its path.
    """

    text: str
    what: str = ""
    at: str = ""
    name: str = ""
    undo: str = ""
    run: str = ""
    before: str = ""
    title: str = ""
    review: str = ""
    answers: tuple[str, str] = ("", "")
    prompt: str = ""


def today(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page."""
    brain, now = visit.brain, iso(visit.brain.now())
    never = iso(brain.now() - timedelta(days=DAYS))
    seen = visit.desk.sessions.remembered(SEEN)
    recorded = _recorded(brain, seen or never, never)
    answers = [shown_answer(brain, answer) for answer in _answers(visit, recorded)]
    answered = next((each.at for each in recorded if isinstance(each.what, events.PromptAnswered)), "")
    is_new = answered >= iso(brain.now() - NEW) or any(each["problem"] or not each["is_done"] for each in answers[:1])
    waiting = list(_waiting(visit, recorded))
    values: dict[str, Any] = {"key": secrets.token_urlsafe(12), "due": _due(brain), "moment": now}
    values |= {"new": answers[:is_new], "answers": answers[is_new:]}
    values |= {"waiting": waiting[:MAX_WAITING], "n_waiting": len(waiting), "has_looked": bool(seen)}
    return values | {"happened": list(_happened(brain, seen or never, recorded)), "since": seen or never}


def _recorded(brain: Brain, since: str, week: str) -> list[Event]:
    """Return what was said since a moment, at most about `MAX_SHOWN`, and said and forgotten in a week, newest first.

    The journal is read once; what is undone is left out.
    """
    undone, found, count = undone_events(brain), list[Event](), 0
    for event in brain.journal.events(kinds={*_SAID, *_FORGOTTEN}, reverse=True, since=min(since, week)):
        count += isinstance(event.what, _SAID)
        if count > MAX_SHOWN and event.at < week:
            break
        if event.id not in undone:
            found.append(event)
    return found


# --- answers ---------------------------------------------------------------------------------------------------------


def _answers(visit: Visit, recorded: Sequence[Event]) -> list[LiveAnswer]:
    """Return the last answers, newest first: those that are being made here, then those of the journal."""
    brain = visit.brain

    def is_there(answer: LiveAnswer) -> bool:  # not where both files are gone, as what was forgotten
        return not answer.done.is_set() or brain.read(answer.prompt) is not None

    answers = list(filter(is_there, reversed(visit.desk.answers.values())))[:MAX_ANSWERS]
    since, known = iso(brain.now() - timedelta(days=1)), {answer.prompt for answer in answers}
    answered = (each for each in recorded if isinstance(each.what, events.PromptAnswered) and each.at >= since)
    for event in islice(answered, MAX_ANSWERS):
        what = event.what
        if isinstance(what, events.PromptAnswered) and what.prompt not in known:
            known.add(what.prompt)
            answer = LiveAnswer(what.prompt, "")
            answer.done.set()
            answers += [answer] if is_there(answer) else []
    return answers[:MAX_ANSWERS]


def shown_answer(brain: Brain, answer: LiveAnswer) -> dict[str, Any]:
    """Return an answer for the template: from its file, where there is one, else what came of it so far."""
    response: Response | None = None
    asked = answer.asked
    with suppress(BrainiacError, OSError):
        if prompt := read_prompt(brain, answer.prompt):
            asked = prompt.text
        record = brain.answered.of(answer.prompt)
        if answer.done.is_set() and record and record.response and (content := brain.read(record.response)) is not None:
            response = parse_response(record.response, content)
    receipts = []
    if response is not None:
        folder = response.path.rpartition("/")[0]
        receipts = [row for row in (receipt.to_json(folder) for receipt in response.receipts) if row["use"] == CITED]
    for row in receipts:
        row["words"] = words_of(brain, row)
    text = response.text if response else answer.text
    values = {"prompt": answer.prompt, "asked": asked, "text": text, "problem": answer.problem, "receipts": receipts}
    return values | {"is_done": answer.done.is_set(), "model": response.model if response else ""}


# --- what is due -----------------------------------------------------------------------------------------------------


def _due(brain: Brain) -> Mapping[str, list[Row]]:
    """Return open tasks, and what holds for the last time in these days: what is overdue, has a date, has none."""
    today = brain.now().astimezone(brain.zone).date().isoformat()
    groups: dict[str, list[Row]] = {"Overdue": [], "Due": [], "Some day": []}
    for due in find_due(brain):
        row = Row(due.text, due.what, due.day, f"{due.path}#^{due.block}" if due.path else due.text, title=due.title)
        groups["Some day" if not due.day else "Overdue" if due.day < today else "Due"].append(row)
    return {name: rows for name, rows in groups.items() if rows}


# --- what waits ------------------------------------------------------------------------------------------------------


def _waiting(visit: Visit, recorded: Iterable[Event]) -> Iterator[Row]:
    """Yield what waits for the person: questions, differences, problems, prompts, the budget, what can be destroyed."""
    brain, later_on = visit.brain, put_off(visit)
    for asked in questions(brain):
        if asked.id not in later_on:
            is_short = not (asked.differs or asked.is_forgetting)
            what, name = ("question", asked.id) if is_short else ("to be looked at", "")
            yield Row(asked.what, what, review=name, answers=asked.answers)
    state = overview(brain)
    yield from (Row(problem, "problem") for problem in state.problems)
    for prompt in state.pending:
        is_refused = brain.tree.absolute(error_path(prompt["prompt"])).is_file()
        again = prompt["prompt"] if is_refused else ""
        yield Row(f"{prompt['prompt']}: {prompt.get('reason') or 'is being answered'}", "prompt", prompt=again)
    yield from (Row(line, "not read") for line in state.unread)
    if state.spent_today_usd >= 0.8 * state.budget_usd > 0:
        yield Row(f"${state.spent_today_usd:.2f} of today’s ${state.budget_usd:.2f} are spent.", "budget")
    since = iso(brain.now() - timedelta(days=DAYS))
    for event in (each for each in recorded if isinstance(each.what, _FORGOTTEN) and each.at >= since):
        if any(change.before and change.before in brain.journal.blobs for change in event.changes):
            text = "Forgotten, and not destroyed: “brainiac forget --purge” does that."
            yield Row(text, "forgotten", event.at, undo=event.id)


# --- what happened ---------------------------------------------------------------------------------------------------


def _happened(brain: Brain, since: str, recorded: Iterable[Event]) -> Iterator[Row]:
    """Yield what was said, and what memory learned, changed and ended since a moment, newest first."""
    digest = digest_since(brain, since, MAX_SHOWN)
    said = (event for event in recorded if isinstance(event.what, _SAID) and event.at >= since)
    rows = [_said(brain, event) for event in islice(said, MAX_SHOWN)]
    for line in digest.lines:
        if line.what == "asked":  # it waits
            continue
        undo = line.statement or ("" if line.is_part else line.event)
        name = line.statement or (line.text if line.path else "")
        text = line.text or line.before or line.reason
        what = f"{line.what} {line.reason}" if line.before and not line.text else line.what
        run, before = line.event if line.is_part and not undo else "", line.before if line.text else ""
        rows.append(Row(text, what, line.at, name, undo, run, before, line.title))
    shown = sorted(filter(None, rows), key=lambda row: row.at, reverse=True)
    yield from shown[:MAX_SHOWN]
    if digest.withheld:
        yield Row(f"{digest.withheld} private changes", "private")


def _said(brain: Brain, event: Event) -> Row | None:
    """Return what was said as a row; None where nothing is left of it."""
    done = "noted" if isinstance(event.what, events.NoteCaptured) else "said"
    return Row(prompt.text, done, event.at, event.id, event.id) if (prompt := prompt_of(brain, event)) else None


def prompt_of(brain: Brain, event: Event) -> Prompt | None:
    """Return the prompt of an exchange's event, by whose words it is known; None for another, or where it is gone."""
    with suppress(BrainiacError):
        if isinstance(event.what, events.ExchangeEvent) and event.what.prompt:
            return read_prompt(brain, event.what.prompt)
    return None


# --- actions ---------------------------------------------------------------------------------------------------------


def ask(visit: Visit) -> Done:
    """Drop what was written as a prompt like any other."""
    conversation = visit.given.get("in", "")
    answer = visit.desk.ask(visit.given.get("text", ""), visit.given.get("key", ""), conversation)
    if not visit.has_script:
        answer.done.wait(QUICK_SECONDS)
    return Done(to=f"/ask?in={quote(conversation)}" if conversation else "/")


def ask_again(visit: Visit) -> Done:
    """Have a prompt answered once more."""
    visit.desk.ask_again(visit.need("prompt"))
    return Done("It is asked again.")


def undo(visit: Visit) -> Done:
    """Take back an event or the last change of a statement, as `brainiac undo` does."""
    brain, named = visit.brain, visit.need("what")
    if "#^" in named:
        result = take_back(brain, named)
        message = f"Holds again: “{result.after}”" if result.after else f"No longer holds: “{result.before}”"
        return Done(message, result.event.id)
    event = find_event(brain, named)
    is_redone = isinstance(event.what, events.EventUndone)
    thing = (brain.journal.find(event.what.undone) if isinstance(event.what, events.EventUndone) else None) or event
    prompt = prompt_of(brain, thing)
    name = f"“{' '.join(prompt.text.split())}”" if prompt else news(brain, thing) or thing.kind
    undone = undo_all(brain, commits_of(brain, event))
    stays = "; ".join(line for step in undone for line in step.plan.stays)
    told, word = ("Brought back", "undo") if is_redone else ("Taken back", "bring it back")
    message = f"{told}: {shortened(name, 200)}" + (f". What stays: {stays}" if stays else "")
    return Done(message, undone[-1].event.id, word)


def tick(visit: Visit) -> Done:
    """Tick a task in short-term memory, as the person does in an editor."""
    brain, text = visit.brain, visit.need("task")
    event = save(brain, (brain.tree.short_term, lambda file: str(ShortTermDocument(file).with_done([text]))))
    return Done(f"Done: “{text}”", event)


def see(visit: Visit) -> Done:
    """Keep that everything until a moment was looked at."""
    moment = visit.need("until")
    if moment <= iso(visit.brain.now()):
        visit.desk.sessions.remember(SEEN, moment)
    return Done()


PAGES = (Page("/", "Today", today, is_live=True),)
ACTIONS = {"ask": ask, "tick": tick, "again": ask_again, "undo": undo, "see": see}
