"""How statements are quoted, dated and linked in an answer."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brainiac.language.times import format_date, with_dates
from brainiac.llm.offline.evidence import Evidence
from brainiac.recall.hit import Hit

NOTHING = "Nothing in memory on that."


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
    said = "you said" if evidence.is_typed else "noted"
    return f"{said.capitalize()} on {day}: “{text}”{where}"


def listed(evidence: Evidence, hits: Sequence[Hit], folder: str) -> str:
    """Return a list item: the words, the day, the link."""
    where = _link(hits[evidence.hit], folder) if evidence.hit >= 0 else ""
    day = f" ({format_date(evidence.at.date())})" if evidence.is_dated else ""
    return f"- {quote(evidence)}{day}{where}"


def _link(hit: Hit, folder: str) -> str:
    if not hit.path or hit.path.endswith("short_term.md"):
        return ""
    path = os.path.relpath(hit.path, folder or ".").replace(os.sep, "/").replace(" ", "%20")
    title = hit.title.replace("[", "(").replace("]", ")") or "memory"
    identity = f' "uuid:{hit.uuid}"' if hit.uuid else ""
    return f" ([{title}]({path}{identity}))"
