"""What an exchange adds to short-term memory: goals, facts, decisions, tasks, and what is done."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from brainiac.clock import parse_iso
from brainiac.language.sentences import content_stems
from brainiac.language.statements import Said, statements_of
from brainiac.language.times import with_dates
from brainiac.llm.offline.tasks import is_finished_by
from brainiac.llm.schemas import Reflection, ReflectRequest

_GOAL = re.compile(
    r"\b(?:(?:my|our) (?:\w+ )?goal|i(?:'m| am) (?:aiming|hoping|trying|planning) to|i (?:want|hope|plan"
    r"|intend|aim) to|i'd (?:like|love) to)\b"
    r"|^(?:goal|objective)s?:",
    re.IGNORECASE,
)
_NAMES = {
    "fact": "fact",
    "change": "change",
    "preference": "preference",
    "decision": "decision",
    "task": "task",
    "done": "thing done",
    "how-to": "how-to",
    "forget": "request to forget",
    "question": "question",
}
MAX_LINE = 1000


def reflect(request: ReflectRequest, language: str) -> Reflection:
    """Extract from what the person typed; the answer adds nothing, since it only repeats memory."""
    text, at = request.exchange.prompt.text, parse_iso(request.exchange.at)
    said = [one for one in statements_of(text, at) if one.kind != "small-talk"]
    lists: dict[str, list[Said]] = defaultdict(list)
    for one in said:
        lists[_list_of(one)].append(one)

    def lines(kind: str) -> list[str]:
        return [with_dates(one.text, at, except_year=True)[:MAX_LINE] for one in lists[kind][:50]]

    return Reflection(
        thoughts=_thoughts(said),
        goals=lines("goals"),
        facts=lines("facts"),
        decisions=lines("decisions"),
        tasks=[with_dates(one.what, at)[:MAX_LINE] for one in said if one.kind == "task"][:50],
        done=_done(said, request, language),
        forget=[one.what[:MAX_LINE] for one in said if one.kind == "forget"][:50],
    )


def _list_of(said: Said) -> str:
    if said.kind == "decision":
        return "decisions"
    if said.kind in ("fact", "preference", "change", "done", "how-to"):
        return "goals" if said.kind != "how-to" and _GOAL.search(said.plain) else "facts"
    return ""


def _done(said: list[Said], request: ReflectRequest, language: str) -> list[str]:
    """Return the texts of open items that a sentence reports finished, as they stand in the list."""
    items = [item.text for item in (*request.short_term.tasks, *request.short_term.goals) if not item.is_done]
    if not items:
        return []
    stems = [content_stems(one.plain, language) for one in said]
    done: list[str] = []
    for index, one in enumerate(said):
        around = [*stems[max(0, index - 1) : index], *stems[index + 1 : index + 2]]
        beside = frozenset(word for words in around for word in words)
        done += [item for item in items if item not in done and is_finished_by(item, one, beside, language)]
    return done[:50]


def _thoughts(said: list[Said]) -> str:
    counts = Counter(_NAMES[one.kind] for one in said)
    if not counts:
        return "Small talk; nothing to keep."
    asked = counts.pop("question", 0)
    told = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    parts = [f"Told: {told}."] if told else []
    if asked:
        topics = " ".join(
            dict.fromkeys(word for one in said if one.kind == "question" for word in content_stems(one.plain))
        )
        parts.append(f"Asked about: {topics}." if topics else "Asked a question.")
    return " ".join(parts)[:2000]
