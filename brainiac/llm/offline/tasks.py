"""Which tasks are open: what was asked to be remembered, less what was said to be done since."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from brainiac.language.sentences import content_stems, irregular_forms, overlap, stem, tokenize
from brainiac.language.statements import Said
from brainiac.language.times import find_times
from brainiac.llm.offline.evidence import Evidence
from brainiac.notes.short_term import ShortTermMemory

_OBJECT_END = frozenset("to for at about by before after with on in from of until via so because and".split())
_ANY_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)  # only where its time stands matters, not when that is
_SAYS_DONE = re.compile(
    r"\b(?:done|finished|closed|resolved|completed?|sorted|taken care of|handled|ticked off"
    r"|no longer need(?:ed)?|never ?mind"
    r"|cancel(?:l?ed)?)\b",
    re.I,
)

_DONE_WORDS = re.compile(
    r"\b(?:done|finished|closed|resolved|completed?|sorted|settled|paid|sent|submitted|booked|fixed|bought"
    r"|renewed|ordered|finally"
    r"|already|today|now|back)\b",
    re.I,
)


@lru_cache(maxsize=65536)
def is_finished_by(task: str, said: Said, nearby: frozenset[str], language: str) -> bool:
    """Tell whether a sentence reports that a task is done.

    Args:
        task: As listed, `call the landlord about the tap`.
        said: A later sentence.
        nearby: Stems of the sentences around it.
        language: Snowball's name.

    Returns:
        True when it says the same of the same thing (verb and object), or says "done" of most of it.
    """
    if said.kind in ("task", "question", "small-talk", "forget", "how-to"):
        return False
    stems = content_stems(said.original, language)
    verb, thing = _verb_and_object(task, language)
    wanted = [one for one in _content(task, language) if one != verb]
    around = [*stems, *nearby]
    if _SAYS_DONE.search(said.original) and overlap([verb, *wanted], around) >= 0.5 and overlap(wanted, around) > 0:
        return True
    if _is_all_of(task, said, language):
        return True
    is_reported = said.kind == "done" or _is_past(said.original)
    if is_reported and overlap(wanted, stems) >= 0.6 and len(wanted) >= 3:
        return True
    has_verb = overlap([verb], stems) > 0
    return is_reported and has_verb and bool(thing) and overlap(thing, stems) >= 0.5 and overlap(wanted, around) >= 0.4


def _is_all_of(task: str, said: Said, language: str) -> bool:
    """Tell whether what is said to be done is all part of the task: `insurance sorted, 84 quid for the year`."""
    clause = re.split(r"[,;:.!]", said.plain, maxsplit=1)[0]
    left = content_stems(_DONE_WORDS.sub(" ", clause), language)
    return bool(left and _DONE_WORDS.search(clause)) and overlap(left, content_stems(task, language)) == 1.0


def _content(task: str, language: str) -> list[str]:
    """Return the stems of a task without its time and its opening words."""
    for span in reversed(find_times(task, _ANY_MOMENT)):
        task = task[: span.start] + task[span.end :]
    return content_stems(task, language)


def _verb_and_object(task: str, language: str) -> tuple[str, list[str]]:
    tokens = tokenize(task)
    verb = stem(tokens[0], language) if tokens else ""
    thing: list[str] = []
    for token in tokens[1:]:
        if token in _OBJECT_END:
            break
        thing += content_stems(token, language)
    return verb, thing


def _is_past(sentence: str) -> bool:
    if re.search(r"\b(?:will|going to|tomorrow|need to|should|want to|plan to|haven't|didn't|not)\b", sentence, re.I):
        return False
    return any(token.endswith("ed") or irregular_forms().get(token, token) != token for token in tokenize(sentence))


def open_tasks(evidence: Sequence[Evidence], short_term: ShortTermMemory, language: str) -> list[Evidence | str]:
    """Return what is still to do: open items of short-term memory, then tasks told and not finished since.

    An item that a person ticked counts as done whatever the exchanges say.
    """
    ticked = [content_stems(item.text, language) for item in (*short_term.tasks, *short_term.goals) if item.is_done]
    found: list[Evidence | str] = []
    listed: list[list[str]] = []
    for task, _ in with_finish(evidence, language):
        stems = content_stems(task.said.what, language)
        if not any(_is_same(stems, other) for other in ticked):
            found.append(task)
            listed.append(stems)
    for item in short_term.tasks:
        stems = content_stems(item.text, language)
        if not item.is_done and not any(_is_same(stems, other) for other in listed):
            found.append(item.text)
    return found


def _is_same(first: list[str], second: list[str]) -> bool:
    shares = sorted((overlap(first, second), overlap(second, first)))
    return bool(first) and shares[0] >= 0.5 and shares[1] >= 0.7


def with_finish(
    evidence: Sequence[Evidence], language: str, *, is_done: bool = False
) -> list[tuple[Evidence, Evidence | None]]:
    """Return tasks with the sentence that reports each done: the open ones, or the finished ones.

    Args:
        evidence: Oldest first.
        language: Snowball's name.
        is_done: Return those that are finished.
    """
    found = []
    for index, task in enumerate(evidence):
        if task.said.kind == "task" and not task.is_past:
            finish = next(
                (
                    later
                    for later in evidence[index + 1 :]
                    if later.at >= task.at
                    and is_finished_by(task.said.what, later.said, later.sentence.nearby, language)
                ),
                None,
            )
            if (finish is not None) == is_done:
                found.append((task, finish))
    return found
