"""The verb by which memory speaks first: a few lines that bear on what a person types elsewhere, or silence.

Silence is the rule. Nothing is said to what no person typed, to a command, to pasted code or to two words; then a
thing must be worth it (`search/offers.py`), may not have been said in this session nor lately in this project, may not
stand in the last turns, and must be such that any door may show it. What was said, and why nothing was, is kept on this
machine alone (`storage/pushes.py`).
"""

from __future__ import annotations

import hashlib
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BrainiacError
from brainiac.formats.authors import PERSON as OWN
from brainiac.formats.markdown import without_quotes
from brainiac.formats.prompt import conversation_of
from brainiac.history.exchanges import Exchanges
from brainiac.imports.turns import hear
from brainiac.library import read_prompt
from brainiac.llm.catalog import count
from brainiac.llm.context.blocks import clean, quoted
from brainiac.llm.gate import Gate
from brainiac.search.documents import Hit
from brainiac.search.query import excerpt, searches
from brainiac.settings import PushKind
from brainiac.storage.pushes import HEAD, Push, Pushes
from brainiac.storage.said import meant_by, receipt_id
from brainiac.storage.statements import rests_of
from brainiac.storage.today import find_due
from brainiac.storage.turns import Turn, Turns
from brainiac.verbs.reading import PERSON, Caller, Result, named_page, refresh

MOST_LINES, MOST_TOKENS = 3, 200
TYPED = ("", "user")  # what hosts call a prompt that a person typed; "" of those that do not say
_LINE_SIGNS, _LEAST_SIGNS, _LINE_TOKENS = 160, 20, 40
_LEAST_WORDS = 3
_MOST_ODD, _CODE = 0.12, frozenset("()[]{}_;/\\#@&*%")  # more of these signs, and of symbols, only code has
_HITS = 12
_NOT_TOLD = ("assistant", "tool")
_DUE = "task "  # begins the name of what is due, which no page and no exchange has
_COMMAND = re.compile(r"\s*[/!][^\s/]")


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that memory says.

    Attributes:
        id: The receipt's id, which `why` takes; "" of what is due.
        day: The person's day it was said on; "" if unknown.
        text: Its words.
    """

    id: str
    day: str
    text: str

    def __str__(self) -> str:
        return f"{self.day} {self.text} {self.id and f'[{self.id}]'}".strip()


@dataclass(frozen=True, slots=True)
class Pushed(Result):
    """What memory says unasked.

    Attributes:
        text: What a model is to be shown, at most 200 tokens; "" for silence.
        lines: The things said, at most three.
        reason: Why nothing is said; "" where something is.
        fresh: Whether the index has read every file of memory.
    """

    text: str
    lines: tuple[Line, ...]
    reason: str
    fresh: bool


def push(
    brain: Brain,
    text: Annotated[str, Field(description="what the person typed; empty at a session's start")] = "",
    *,
    session: Annotated[str, Field(max_length=200, description="the host's id of the session")] = "",
    project: Annotated[str, Field(max_length=4096, description="the folder that the person works in")] = "",
    turns: Annotated[list[str], Field(description="what was said last in the session, which is not said again")] = [],  # noqa: B006  # a door's default
    source: Annotated[str, Field(description="who wrote the text, as the host says; all but `user` is a machine")] = "",
    kind: Annotated[
        PushKind | Literal["answer", "end"],
        Field(
            description="`related` at a prompt, `waiting` (what is due) at a start, `again` after a compaction; of a "
            "hook also `answer` and, where that ends the turn, `end`: an assistant's words"
        ),
    ] = "related",
    key: Annotated[str, Field(max_length=200, description="the host's id of the prompt")] = "",
    transcript: Annotated[str, Field(max_length=4096, description="the host's own file of the session")] = "",
    until: Annotated[float, Field(description="seconds since 1970 until which the asker waits; 0: however long")] = 0.0,
    caller: Caller = PERSON,
) -> Pushed:
    """Say what memory has that bears on a prompt, or nothing.

    For a host's hook, at each prompt that a person types; not for a model, which uses `search`. Returns at most three
    lines, fenced as data, and mostly none.

    Args:
        brain: The brain.
        text: What the person typed.
        session: The host's id of the session: nothing is said twice in one.
        project: The folder that the person works in: nothing is said again soon in one.
        turns: What was said last.
        source: Who wrote the text, as the host says; "" where it does not.
        kind: Which occasion it is; one that this machine's settings do not name is silent.
        key: The host's id of the prompt: the same again is the same turn.
        transcript: The host's own file of the session.
        until: What would come later is not said, and does not count as said; seconds since 1970, 0 for however long.
        caller: Who asks; what comes with a token of the person's own is kept in folders for which they asked that.
    """
    door = caller if not caller.is_person else Caller("push")  # what is said goes to a host's model
    pushes, now = brain.state_of("push", lambda: Pushes(brain.database)), brain.now()
    host = caller.by.removeprefix("api:")
    if caller.origin == OWN and not caller.is_person:
        heard = Turn(session, key, iso(now), host, project, transcript=transcript)
        hear(brain, heard, kind, text, form_of_none_typed(text, source))
    if kind == "answer" or kind == "end":
        return Pushed("", (), "no prompt", fresh=True)
    mark = hashlib.sha256(f"{kind}\n{text}".encode("utf-8", "replace")).hexdigest()[:16]
    moment = Push(iso(now), kind, session, project, mark, host)
    reason = _refusal(text, source) if kind == "related" else ""
    if kind not in brain.machine.push:
        reason = "switched off"
    elif not reason and pushes.is_second(session, project, mark, now):
        reason = "the same turn by another host's file"
    elif (
        not reason and kind == "related" and (word := pushes.canary(host))
    ):  # the person waits for it: `brainiac hooks test`
        line = Line("", "", f"The canary word of Brainiac is {word}.")
        pushes.add(replace(moment, reason="a test"), 0, {})
        return Pushed(f"{HEAD}\n{quoted(str(line))}", (line,), "", fresh=True)
    found: dict[str, Line] = {}
    said_here, rests = set[str](), dict[str, set[str]]()
    if not reason:
        refresh(brain)
        gate = door.gate(brain)
        if kind == "related":
            known = pushes.known(session, project)
            about = {"said": [text, *turns], "known": known}
            found = dict(_related(brain, gate, own_words(text), about))
            said_here = {turn.exchange for turn in Turns(brain.database).of_session(session)}
            rests = rests_of(brain, {*found, *known}) if found else {}
        elif kind == "again":
            found = dict(_again(brain, gate, pushes.of_session(session)))
        else:
            found = dict(_due(brain, gate))
        if 0 < until <= time.time():
            reason, found = "too late", {}
    kept = pushes.add(replace(moment, reason=reason, said=tuple(found)), MOST_LINES, rests, said_here)
    lines = tuple(found[name] for name in kept.said)
    told = f"{HEAD}\n{quoted(chr(10).join(map(str, lines)))}" if lines else ""
    return Pushed(told, lines, kept.reason, bool(reason) or brain.recall.status()["freshness"] == "fresh")


def push_beside(brain: Brain, path: str, told: Sequence[str], caller: Caller) -> Pushed:
    """Say what memory has on a prompt of the inbox that neither its answer nor its conversation says.

    Args:
        brain: The brain.
        path: The prompt.
        told: Its answer, and what else was said.
        caller: The client that is answered.
    """
    prompt = read_prompt(brain, path)
    if prompt is None:
        return Pushed("", (), "no prompt", fresh=True)
    turns = brain.conversation(prompt)
    said = [*told, *(one.prompt.text for one in turns), *(one.response.text for one in turns if one.response)]
    session = conversation_of(path, inbox=brain.tree.layout.inbox)
    return push(brain, prompt.said, session=session, project=caller.by, turns=said, caller=caller)


def waiting_for(brain: Brain, caller: Caller) -> dict[str, str]:
    """Return what is due for a client that begins a conversation, each thing once a day."""
    session = f"{caller.by} {brain.day_of(iso(brain.now()))}"
    return {"push": "" if caller.is_person else push(brain, session=session, kind="waiting", caller=caller).text}


def _refusal(text: str, source: str) -> str:
    """Return why a text is not even looked at, by its form alone and whatever its language; "" where it is."""
    if reason := form_of_none_typed(text, source):
        return reason
    if len(text.split()) < _LEAST_WORDS:
        return "too few words"
    return "" if len(own_words(text).split()) >= _LEAST_WORDS else "pasted code"


def form_of_none_typed(text: str, source: str) -> str:
    """Return why a text is none of the person's words; "" where it is."""
    if source not in TYPED:
        return "no person typed it"
    return "a command" if _COMMAND.match(text) else ""


def own_words(text: str) -> str:
    """Return a text without what was pasted: quotes, fences, and lines with as many signs as code has."""
    return "\n".join(line for line in without_quotes(text).splitlines() if not _is_code(line))


def _is_code(line: str) -> bool:
    signs = [sign for sign in line if not sign.isspace()]
    odd = sum(unicodedata.category(sign)[0] == "S" or sign in _CODE for sign in signs)
    return odd > _MOST_ODD * len(signs)


# --- what is said --------------------------------------------------------------------------------------------------


def _related(brain: Brain, gate: Gate, text: str, about: Mapping[str, Any]) -> Iterator[tuple[str, Line]]:
    """Yield what bears on a prompt, as it is to be told, by the name that its receipt stands for.

    Args:
        brain: The brain.
        gate: What may be shown.
        text: The person's own words.
        about: What was said and told already, as `offers.worth` has it.
    """
    # a fact of short-term memory stands in its exchange too, by which it can be told why
    short_term = brain.tree.relative(brain.tree.short_term)

    def look(words: str) -> list[Hit]:
        found = brain.recall.search(searches(words, ())[0], limit=_HITS, now=brain.now())
        return [
            hit
            for hit in gate.hits(found)
            # an assistant's words are none of the person's, and one assistant could plant them for another
            if not (hit.speaker == "ai" or hit.origin in _NOT_TOLD)
            and (hit.path != short_term or hit.kind == "exchange")
            and not (hit.former or hit.is_archived)  # what no longer holds misleads
        ]

    query = searches(text, ())[0]
    for hit in brain.recall.worth(query, look, **about):
        name = hit.name_in_memory
        yield name, Line(receipt_id(name), brain.day_of(hit.at) if hit.at else "", _short(hit.said, query))


def _again(brain: Brain, gate: Gate, names: Sequence[str]) -> Iterator[tuple[str, Line]]:
    """Yield what was said in a session before, as it stands now; what may not be shown any more is passed over."""
    for name in names:
        with suppress(BrainiacError):
            if line := line_of(brain, gate, name):
                yield name, line


def line_of(brain: Brain, gate: Gate, name: str) -> Line | None:
    """Return what was said by its name, as far as a gate shows it and, of what was due, while it is.

    Raises:
        BrainiacError: There is no such page, or it may not be shown.
    """
    if name.startswith(_DUE):
        return dict(_due(brain, gate)).get(name)
    exchanges = Exchanges(brain)
    if exchange := exchanges.find(name):
        said = exchanges.shown(exchange, gate)
        return Line(receipt_id(name), brain.day_of(said.at), _short(said.user, "")) if said and said.user else None
    path, _, block = name.partition("#^")
    page = named_page(brain, gate, path, PERSON)
    parts = [part for part in page.text.splitlines() if block and f"^{block}" in part] or [page.title]
    return Line(receipt_id(name), "", _short(parts[0].replace(f"^{block}", "").lstrip("-*+ "), ""))


def words_of(brain: Brain, receipt: Mapping[str, Any]) -> str:
    """Return the words of what an answer rested on, as they stand now; "" where they do not."""
    name = f"{receipt.get('path')}#^{receipt['block']}" if receipt.get("block") else meant_by(brain, receipt["id"])
    with suppress(BrainiacError):
        line = line_of(brain, PERSON.gate(brain), name)
        return line.text if line else ""
    return ""


def _due(brain: Brain, gate: Gate) -> Iterator[tuple[str, Line]]:
    """Yield open tasks whose day has come and what holds for the last time today."""
    today = brain.now().astimezone(brain.zone).date().isoformat()
    tasks = {task.text for task in gate.short_term(brain.short_term().memory).tasks}
    for due in find_due(brain):
        if "" < due.day <= today and due.text in ((gate.read_note(due.path) or "") if due.path else tasks):
            yield f"{_DUE}{receipt_id(due.text)}", Line("", "", _short(f"due: {due.text}", ""))


def _short(text: str, query: str) -> str:
    """Return a text on one line, of a longer one what holds most of the query."""
    limit, flat = _LINE_SIGNS, " ".join(clean(text).split())
    while count(shown := excerpt(flat, query, limit)) > _LINE_TOKENS and limit > _LEAST_SIGNS:
        limit = limit * 3 // 4
    return shown
