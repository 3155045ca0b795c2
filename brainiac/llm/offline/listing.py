"""Questions that ask for several things: open tasks, decisions on a topic, goals, what happened in a week."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brainiac.language.sentences import content_stems, overlap
from brainiac.language.times import format_span
from brainiac.llm.offline.agreement import mentions_user
from brainiac.llm.offline.evidence import Evidence
from brainiac.llm.offline.features import falls_into
from brainiac.llm.offline.matching import matches_of
from brainiac.llm.offline.questions import Question
from brainiac.llm.offline.tasks import open_tasks, with_finish
from brainiac.notes.short_term import ShortTermMemory

MAX_LISTED = 20


def of_tasks(
    question: Question, evidence: Sequence[Evidence], short_term: ShortTermMemory, language: str
) -> list[Evidence | str]:
    """Return the open tasks that the question is about."""
    return [task for task in open_tasks(evidence, short_term, language) if _is_about(question, task, language)]


def of_done(question: Question, evidence: Sequence[Evidence], language: str) -> list[Evidence | str]:
    """Return what was reported finished."""
    finished = [finish for _, finish in with_finish(evidence, language, is_done=True) if finish is not None]
    told = [one for one in evidence if one.said.kind == "done" and one not in finished]
    found = sorted({id(one): one for one in finished + told}.values(), key=lambda one: one.at)
    return [one for one in found if falls_into(one, question) and _is_about(question, one, language)]


def _is_about(question: Question, task: Evidence | str, language: str) -> bool:
    """Tell whether a task touches the topic: a name that was asked for, or else any word that counts."""
    strong = [term for term in question.terms if not term.is_light]
    if not strong:
        return True
    stems = content_stems(task, language) if isinstance(task, str) else [*task.sentence.stems, *task.sentence.nearby]
    names = [term.stem for term in strong if term.phrase >= 0]
    return overlap(names or [term.stem for term in strong], stems) > 0


def of_decisions(question: Question, evidence: Sequence[Evidence]) -> list[Evidence | str]:
    """Return the decisions that cover the topic best: all on Harbor, or the one on Harbor's database."""
    decisions = [one for one in evidence if one.said.kind == "decision" and falls_into(one, question)]
    if all(term.is_light for term in question.terms):
        return list(decisions)
    matches = matches_of(question, decisions)
    top = max((one.coverage for one in matches), default=0.0)
    kept = [one for one in matches if one.coverage >= max(0.5, top - 0.05)]
    if is_narrow(question):
        return [one.evidence for one in sorted(kept, key=lambda one: (-one.coverage, -one.evidence.at.timestamp()))]
    return [one.evidence for one in sorted(kept, key=lambda one: one.evidence.at)]


def is_narrow(question: Question) -> bool:
    """Tell whether one decision was asked for rather than all on a topic."""
    is_plural = re.search(r"\bdecisions\b", question.text, re.I)
    is_one = question.expected != "statement" or sum(not term.is_light for term in question.terms) > 1
    return question.listing == "decisions" and not is_plural and is_one


def of_events(question: Question, evidence: Sequence[Evidence]) -> list[Evidence | str]:
    """Return what happened, or was said, in the days that were asked for."""
    asks_told = bool(re.search(r"\b(?:tell|told|say|said|mention|note)", question.text, re.I))
    is_limited = any(not term.is_light for term in question.terms)
    return [
        match.evidence
        for match in matches_of(question, _whole(evidence))
        if (one := match.evidence)
        and (one.said.kind != "task" or asks_told)
        and not one.is_past
        and falls_into(one, question, is_saying=asks_told)
        and (not is_limited or match.coverage >= 0.5)
    ]


def of_topic(question: Question, evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return everything on a topic, what holds now and was said last first."""
    if not question.terms:
        own = [one for one in _whole(evidence) if one.said.kind != "task" and mentions_user(one) and not one.is_past]
        return sorted(own, key=lambda one: -one.at.timestamp())
    matches = matches_of(question, [one for one in _whole(evidence) if falls_into(one, question)])
    kept = [one.evidence for one in matches if one.coverage >= 0.6]
    return sorted(kept, key=lambda one: (one.is_past, -one.at.timestamp()))


def _whole(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Keep one sentence of each utterance that is quoted whole."""
    seen: set[str] = set()
    kept = []
    for one in evidence:
        if one.sentence.utterance not in seen:
            seen.add(one.sentence.utterance)
            kept.append(one)
    return kept


def heading(question: Question, count: int) -> str:
    """Return the line above a list."""
    noun = {
        "tasks": "open task",
        "done": "finished item",
        "decisions": "decision",
        "goals": "goal",
        "events": "thing",
        "about": "thing",
    }[question.listing or "about"]
    when = f" for {question.span.text} ({format_span(question.span)})" if question.span else ""
    plural = "" if count == 1 else "s"
    return f"{count} {noun}{plural} in memory{when}:"
