"""Review: what waits for the person's word, both texts side by side, decided by a tick in `memory/review.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.events import FileChange
from brainiac.formats.markdown import edited, without_link_targets
from brainiac.history.forget import Target
from brainiac.storage.causes import undone_events
from brainiac.storage.review import SECTIONS, asked_before, decisions_in, find_ticks, kind_of
from brainiac.storage.statements import text_hash
from brainiac.storage.versions import find_differences
from brainiac.window.frame import Done, Page, Visit
from brainiac.window.pages.memory import plan_of

MAX_SHOWN = 60  # questions, and decisions that can still be taken back
LATER = "later"  # under which it is kept what is put off, and until which day
DIFFERS = "Both stand in the file"
_ANSWERS = {  # what yes and no do
    "replace": ("yes, write it", "no, leave it"), "retire": ("yes, it is over", "no, it holds"),
    "forget": ("yes, forget it", "no, keep it"), "organize": ("yes, do it", "no, leave it"),
    "take-copy": ("yes, take it over", "no, keep what stands"),
}  # fmt: skip
_COMMENTS = re.compile(r"\s*<!--.*?-->")


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to decide.

    Attributes:
        id: Of the proposal; of a difference its whole line.
        kind: A heading of `review.md`.
        what: A sentence.
        texts: What stands and what would stand, or the two that both stand; "" for nothing.
        name: By which `why` knows the first of them.
        note: What else is to be known of it.
        at: When it was asked, ISO 8601.
        differs: Whether two versions differ: then one of them is kept.
        is_forgetting: Whether yes would take something out of memory.
        answers: The words of the two buttons.
    """

    id: str
    kind: str
    what: str
    texts: tuple[str, ...] = ()
    name: str = ""
    note: str = ""
    at: str = ""
    differs: bool = False
    is_forgetting: bool = False
    answers: tuple[str, str] = ("yes", "no")


def review(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page."""
    brain, later_on = visit.brain, put_off(visit)
    everything = list(questions(brain))
    planned, asked = visit.given.get("plan", ""), asked_before(brain)
    record = asked[planned].record if planned in asked else None
    waiting = [each for each in everything if each.id not in later_on]
    kinds = dict.fromkeys(each.kind for each in waiting[:MAX_SHOWN])
    shown, later_kept = waiting[:MAX_SHOWN], [each for each in everything if each.id in later_on][:MAX_SHOWN]
    plan = plan_of(brain, Target.of(record)) if isinstance(record, events.ForgetProposal) else None
    values = {"put_off": later_kept, "n_more": len(waiting) - len(shown), "decided": list(_decided(brain))}
    # of what waits the records are not made: they may name tens of thousands of pages
    values |= {"n_later": sum(not each.how and bool(json.loads(each.data).get("waits")) for each in asked.values())}
    values |= {"kinds": {kind: [each for each in shown if each.kind == kind] for kind in kinds}}
    return values | {"plan": plan, "planned": planned}


def questions(brain: Brain) -> Iterator[Question]:
    """Yield what stands in `review.md` undecided, in its order; differences of two versions last."""
    text = brain.read_text(brain.tree.review) or ""
    asked, decided = asked_before(brain), decisions_in(text)
    for tick in find_ticks(text):
        if tick.id in decided or (tick.id in asked and asked[tick.id].how not in ("", "lapsed")):
            continue
        if tick.id not in asked:  # as it came from elsewhere; there are its words alone
            words = _COMMENTS.sub("", text[tick.start : tick.end]).strip()
            yield Question(tick.id, "In the file alone", re.sub(r"^[-*+] \[.\] ", "", words))
            continue
        record = asked[tick.id].record
        texts, name = _texts(brain, record)
        what, kind = without_link_targets(record.what), SECTIONS[kind_of(record)]
        note = f"Held back: {record.reason}" if record.reason not in record.what else ""
        if isinstance(record, events.ReplaceProposal | events.RetireProposal) and record.block:
            is_same = text_hash(texts[0]) == record.hash
            note = note if is_same else "It was changed since: yes would do nothing."
        shown = Question(tick.id, kind, what, texts, name, note, asked[tick.id].at, answers=_ANSWERS[kind_of(record)])
        yield replace(shown, is_forgetting=isinstance(record, events.ForgetProposal))
    for row in find_differences(text):
        line = text[row.start : row.end]
        what = _COMMENTS.sub("", line)[2:].strip()
        what = what.partition("; keep what holds: ")[0] if row.texts else what
        yield Question(line, DIFFERS, what, row.texts, row.path, differs=True)


def _texts(brain: Brain, record: events.ProposalRecord) -> tuple[tuple[str, ...], str]:
    """Return what stands and what would stand, and the name of the former; none where it is not about two texts."""

    def path_of(page: str) -> str:
        return brain.recall.links.path_of(page) or getattr(record, "path", "")

    def statement(page: str, block: str) -> str:
        found = brain.pages([path_of(page)]).statement(page, block) if block else None
        return found.text if found else ""

    match record:
        case events.ReplaceProposal(page=page, block=block, text=text):
            return (statement(page, block), text), f"{path_of(page)}#^{block}" if block else ""
        case events.RetireProposal(page=page, block=block, replaced_by=replaced_by, held_by=held_by, words=words):
            name = f"{path_of(page)}#^{block}" if block else record.said_in
            return (statement(page, block) or words, statement(held_by or page, replaced_by)), name
        case events.CopyProposal(path=path, copy=copy):
            return (brain.read_text(path) or "", brain.read_text(copy) or ""), path
    return (), ""


def _decided(brain: Brain) -> Iterator[dict[str, str]]:
    """Yield what was decided today, newest first, each with what takes it back; several at once in one."""
    since, undone, settled = iso(brain.midnight()), undone_events(brain), set[str]()
    asked = asked_before(brain)
    recorded = brain.journal.events(kinds={events.ProposalDecided}, reverse=True)
    for event in islice(takewhile(lambda event: event.at >= since, recorded), MAX_SHOWN):
        assert isinstance(event.what, events.ProposalDecided)
        known = asked.get(event.what.proposal)
        if event.what.how == "lapsed" or (known and known.record.waits):
            continue  # nobody decided it
        name, how, cause = event.what.proposal, event.what.how, brain.journal.find(event.cause) if event.cause else None
        if cause and not isinstance(cause.what, events.ReviewSettled):  # to forget comes before its decision
            event, cause = cause, brain.journal.find(cause.cause) if cause.cause else None
        is_one_of_many = cause is not None and isinstance(cause.what, events.ReviewSettled)
        undo = event.id if how in ("applied", "declined") and event.id not in undone else ""
        if undo and how == "applied" and cause is not None and is_one_of_many:
            undo = "" if cause.id in settled else cause.id
            settled.add(cause.id)
        what = without_link_targets(asked[name].record.what) if name in asked else ""
        yield {"how": "taken back" if event.id in undone else how, "what": what, "undo": undo, "at": event.at}


# --- actions ---------------------------------------------------------------------------------------------------------


def _named(visit: Visit) -> list[str]:
    """Return the ids of the questions that a form is about: those of its button, or those that are marked."""
    marked = [name.removeprefix("id ") for name in visit.given if name.startswith("id ")]
    return visit.given.get("review", "").split() or marked


def decide(visit: Visit) -> Done:
    """Tick questions in `review.md`, or decline them, as the person does in an editor."""
    names, answer = set(_named(visit)), visit.given.get("answer") or ("yes" if visit.given.get("yes") == "1" else "no")
    if answer == "later":
        return later(visit)
    if not names:
        raise UserError("mark what is meant first")
    sign = "[x]" if answer == "yes" else "[-]"

    def tick(text: str) -> str:
        places = [tick for tick in find_ticks(text) if tick.id in names and tick.mark]
        if {place.id for place in places} < names:
            raise UserError("a question is gone or has no box; look again at what waits")
        lines = [(each, re.sub(r"\[.\]", sign, text[each.start : each.end], count=1)) for each in places]
        return edited(text, [(each.start, each.end, line) for each, line in lines])

    save(visit.brain, (visit.brain.tree.review, tick))
    count = f" ({len(names)})" if len(names) > 1 else ""
    return Done(f"Done{count}." if answer == "yes" else f"Left as it is{count}.")


def keep(visit: Visit) -> Done:
    """Keep one of two texts that both stand in a file, or both, and take their line out of `review.md`."""
    brain, line, kept = visit.brain, visit.need("line"), visit.given.get("keep", "")

    def without(text: str) -> str:
        return text.replace(line, "", 1)

    row = next(iter(find_differences(line)), None)
    if row is None or line not in (brain.read_text(brain.tree.review) or ""):
        raise UserError("this question is gone; somebody decided it")
    if kept == "both":
        return Done("Both stay.", save(brain, (brain.tree.review, without)))
    path = brain.tree.relative(brain.tree.confine(row.path))
    number = 1 if kept == "0" else 0

    def cut(text: str) -> str:
        lines = text.splitlines(keepends=True)
        meant = [at for at, each in enumerate(lines) if len(row.texts) == 2 and row.is_of(number, each)]
        if len(meant) != 1:
            raise UserError(f"{path} has it no longer as one line; put it right there, and keep both here")
        return "".join(lines[: meant[0]] + lines[meant[0] + 1 :])

    return Done("The other is taken out.", save(brain, (brain.tree.review, without), (brain.tree.absolute(path), cut)))


def save(brain: Brain, *wanted: tuple[Path, Callable[[str], str]]) -> str:
    """Change files, each by a function of its text, as a person's editor does; return the event's id."""

    def commit() -> str:
        before = [(brain.tree.relative(file), brain.read_text(file) or "", function) for file, function in wanted]
        changes = [events.update(path, text, function(text)) for path, text, function in before]
        return brain.commit(events.NoteSaved(), by="person", changes=changes).id

    event = brain.retry(commit)
    for path in map(brain.tree.relative, dict(wanted)):  # what the daemon calls when an editor saved it
        change = FileChange("modified", path, brain.tree.kind_of(path))
        brain.plugins.call("file_changed", brain=brain, change=change)
    return event


def later(visit: Visit) -> Done:
    """Put questions off until tomorrow: they stand in `review.md`, and are folded here."""
    names = [line] if (line := visit.given.get("line", "")) else _named(visit)
    tomorrow = visit.brain.midnight(1).date().isoformat()
    visit.desk.sessions.remember(LATER, json.dumps(put_off(visit) | dict.fromkeys(names, tomorrow)))
    return Done("Put off until tomorrow.")


def put_off(visit: Visit) -> dict[str, str]:
    """Return what is put off, and until which day."""
    try:
        kept = dict(json.loads(visit.desk.sessions.remembered(LATER) or "{}"))
    except (TypeError, ValueError):
        return {}
    return {str(name): str(day) for name, day in kept.items() if str(day) > visit.now.date().isoformat()}


PAGES = (Page("/review", "Review", review, is_live=True),)
ACTIONS = {"decide": decide, "keep": keep, "later": later}
