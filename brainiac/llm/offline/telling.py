"""Short confirmations of what was told: what was noted, with dates resolved, and what it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainiac.integration.succession import retires
from brainiac.language.person import in_second_person
from brainiac.language.sentences import content_stems, overlap
from brainiac.language.statements import Said
from brainiac.language.times import format_date, with_dates
from brainiac.llm.offline.evidence import Evidence
from brainiac.llm.offline.tasks import is_finished_by, open_tasks
from brainiac.llm.offline.wording import quote
from brainiac.llm.schemas import AnswerRequest

SMALL_TALK = "Nothing to note. Tell me something to remember, or ask what memory holds."

PUT_ASIDE = (
    "Promotion puts it aside under History. What you said stays on record and may still be quoted until"
    " `brainiac forget` takes it out."
)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What is said back, and the evidence it mentions."""

    text: str
    rests_on: tuple[Evidence, ...] = ()


def confirm(told: Sequence[Said], evidence: Sequence[Evidence], request: AnswerRequest, language: str) -> Confirmation:
    """Name what was noted and what it changes."""
    lines: list[str] = []
    rests_on: list[Evidence] = []
    for one in told:
        line, changed = _confirm_one(one, evidence, request, language)
        lines.append(line)
        rests_on += changed
    if lines and request.off_record:
        lines.append("This exchange is off the record: nothing of it is kept.")
    return Confirmation("\n".join(lines), tuple(rests_on))


def _confirm_one(
    said: Said, evidence: Sequence[Evidence], request: AnswerRequest, language: str
) -> tuple[str, list[Evidence]]:
    if said.kind == "forget":
        return _confirm_forget(said, evidence, language)
    if said.kind == "task":
        return f"Added to your tasks: {with_dates(in_second_person(said.what), request.now)}", []
    finished = finished_tasks(said, frozenset(), evidence, request, language)
    text = f"Noted: {with_dates(_said_back(said), request.now, except_year=True)}"
    if finished:
        text += "\nTicked off: " + "; ".join(finished)
    former = _former(said, evidence, language)
    if former is not None:
        day = f" (said on {format_date(former.at.date())})" if former.is_dated else ""
        text += f"\nThis replaces: “{quote(former)}”{day}"
    return text, [former] if former else []


def _said_back(said: Said) -> str:
    text = in_second_person(said.plain)
    if said.text.startswith("User ") and not text.lower().startswith("you"):
        text = f"you {text[0].lower()}{text[1:]}"  # "bought a bike"
    return text


def finished_tasks(
    said: Said, nearby: frozenset[str], evidence: Sequence[Evidence], request: AnswerRequest, language: str
) -> list[str]:
    """Return the open tasks that a sentence reports done."""
    texts = [
        task if isinstance(task, str) else task.said.what for task in open_tasks(evidence, request.short_term, language)
    ]
    return [text for text in texts if is_finished_by(text, said, nearby, language)]


def _confirm_forget(said: Said, evidence: Sequence[Evidence], language: str) -> tuple[str, list[Evidence]]:
    wanted = content_stems(said.what, language)
    found = [one for one in evidence if wanted and overlap(wanted, one.sentence.stems) >= 0.6]
    if not found:
        return f"Nothing in memory on “{said.what}”, so there is nothing to forget.", []
    lines = [f"Will be forgotten: {said.what}", *(f"- {quote(one)}" for one in found[:5]), "", PUT_ASIDE]
    return "\n".join(lines), found[:5]


def _former(said: Said, evidence: Sequence[Evidence], language: str) -> Evidence | None:
    """Return what a change leaves behind: the latest statement on the old, or on the same with another value."""
    if said.kind != "change":
        return None
    old = content_stems(said.old, language)
    new = content_stems(said.original, language)
    for one in reversed(evidence):
        if one.said.kind in ("task", "how-to") or one.said.original == said.original:
            continue
        is_old = bool(old) and overlap(old, one.sentence.stems) >= 0.6
        is_same = overlap(sorted(one.sentence.stems), new) >= 0.6
        is_ended = (is_old or is_same) and retires(said.text, one.said.text)
        if is_ended and not set(new) <= one.sentence.stems:
            return one
    return None
