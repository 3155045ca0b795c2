"""How statements are quoted, dated and linked in an answer."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brainiac.language.person import in_second_person
from brainiac.language.times import format_date, with_dates
from brainiac.llm.offline.evidence import Evidence
from brainiac.recall.hit import Hit

NOTHING = "Nothing in memory on that."

_REFERS = re.compile(r"\b(?:it|him|her|them|ones?|that|this)\b", re.IGNORECASE)


def quote(evidence: Evidence) -> str:
    """Return a statement as stored, with the dates that its words meant when it was said."""
    text = re.sub(r"\s*\n\s*", " / ", evidence.sentence.utterance.strip())
    return with_dates(text, evidence.at, except_year=True) if evidence.is_dated else text


def quoted(evidence: Evidence, hits: Sequence[Hit], folder: str) -> str:
    """Return one line: when it was said, its words, and a link to where it stands.

    Args:
        evidence: What is quoted.
        hits: Of the request, for the link.
        folder: The folder of the prompt, relative: links start there.
    """
    text = quote(evidence)
    where = _link(hits[evidence.hit], folder) if evidence.hit >= 0 else ""
    if not evidence.is_dated:
        return f"Memory holds: “{text}”{where}"
    day = format_date(evidence.at.date())
    if evidence.said.kind == "task" and evidence.is_typed:
        return f"On your list since {day}: {task_of(evidence)}{where}"
    said = "you said" if evidence.is_typed else "noted"
    return f"{said.capitalize()} on {day}: “{text}”{where}"


def listed(evidence: Evidence, hits: Sequence[Hit], folder: str) -> str:
    """Return a list item: the day, the words, the link; of a task only what is to be done."""
    where = _link(hits[evidence.hit], folder) if evidence.hit >= 0 else ""
    if evidence.said.kind == "task":
        return f"- {task_of(evidence)}{where}"
    day = f"{format_date(evidence.at.date())}: " if evidence.is_dated else ""
    return f"- {day}{quote(evidence)}{where}"


def task_of(evidence: Evidence) -> str:
    """Return what a task asks to do, in the second person, with its dates."""
    is_vague = _REFERS.search(evidence.said.what) and evidence.sentence.utterance != evidence.said.original
    what = in_second_person(evidence.sentence.utterance if is_vague else evidence.said.what)
    return with_dates(what, evidence.at, except_year=True) if evidence.is_dated else what


def _link(hit: Hit, folder: str) -> str:
    if not hit.path or hit.path.endswith("short_term.md"):
        return ""
    path = os.path.relpath(hit.path, folder or ".").replace(os.sep, "/").replace(" ", "%20")
    title = hit.title.replace("[", "(").replace("]", ")") or "memory"
    identity = f' "uuid:{hit.uuid}"' if hit.uuid else ""
    return f" ([{title}]({path}{identity}))"
