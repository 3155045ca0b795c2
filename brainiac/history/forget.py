"""Forgetting at a person's word: an exchange or conversation with what rests on it alone, or a memory page.

It is one commit, and can be taken back by `undo`; `purge` destroys what the journal keeps of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, ConflictError, UserError
from brainiac.events import Event, ExchangeForgotten, MemoryForgotten
from brainiac.formats.dialogue import find_events
from brainiac.formats.memory import Memory
from brainiac.history.exchanges import Exchanges
from brainiac.history.naming import find_memory
from brainiac.history.retraction import Retraction, Retractor
from brainiac.storage.statements import text_hash

ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What is meant, to be looked at anew as often as needed.

    Attributes:
        kind: Of the event.
        data: What the event says besides.
        plan: Looks at the tree as it stands.
    """

    kind: str
    data: dict[str, Any]
    plan: Callable[[], Retraction]


def meant(brain: Brain, named: str) -> Forgetting:
    """Return what a person wants forgotten: a conversation, an exchange or a page.

    Raises:
        UserError: Nothing is called so.
    """
    exchanges = Exchanges(brain)
    named = _relative(brain, named)
    if found := exchanges.find(named):
        return of_exchanges(brain, exchanges.with_same_prompt(found))
    if named != brain.tree.layout.inbox and (several := exchanges.in_folder(named)):
        return of_exchanges(brain, several)
    if memory := find_memory(brain, named):
        return of_memory(brain, memory)
    raise UserError(
        f"{named!r} names no exchange (by id, or by its file in {brain.tree.layout.inbox}/) and no memory "
        "(by path, title or uuid); `brainiac why` shows the exchanges behind a statement"
    )


def of_exchanges(brain: Brain, exchanges: list[str], items: Collection[str] = ()) -> Forgetting:
    """Return the forgetting of exchanges, and of items known by their hashes to rest on them."""
    ids = tuple(exchanges)
    return Forgetting(ExchangeForgotten.kind, {"exchanges": list(ids)}, lambda: Retractor(brain, ids, items).plan())


def of_memory(brain: Brain, memory: Memory, items: Collection[str] = ()) -> Forgetting:
    """Return the forgetting of a page; with an episodic page what was said on it is forgotten too."""
    said = [placed.event.id for placed in find_events(memory.text)]
    data = {"page": memory.uuid, "path": memory.path, "exchanges": said}

    def plan() -> Retraction:
        found = Retractor(brain, tuple(said), items).plan() if said else Retraction()
        text = brain.read_text(memory.path)
        if text is not None:
            found.before[memory.path], found.after[memory.path] = text, None
            found.told = [line for line in found.told if f" {memory.path}:" not in line]
            found.told.append(f"- {memory.path}: the page")
            found.texts += [one.text for one in memory.statements]
            found.statements += [
                {"page": memory.uuid, "block": one.block_id, "hash": text_hash(one.text)} for one in memory.statements
            ]
        resting = {str(each) for each in memory.meta.get("sources") or ()} - set(said)
        if resting:
            found.left.append(f"what was said stays, word for word: {', '.join(sorted(resting))}")
        return found

    return Forgetting(MemoryForgotten.kind, data, plan)


def forget(brain: Brain, forgetting: Forgetting, *, by: str = "cli", cause: str | None = None) -> Event | None:
    """Take it out of the tree in one commit.

    Returns:
        The event; None when nothing of it stands there.

    Raises:
        ConflictError: Somebody keeps writing the files.
    """
    for _ in range(ATTEMPTS):
        with brain.short_term_lock():
            retraction = forgetting.plan()
            changes = retraction.changes(brain)
            if not changes:
                return None
            data = {**forgetting.data, "taken_out": retraction.statements, "left": retraction.left}
            try:
                return brain.commit(forgetting.kind, by=by, changes=changes, data=data, cause=cause)
            except ConflictError as error:
                paths = error.paths
    raise ConflictError(paths)


def _relative(brain: Brain, named: str) -> str:
    """Return a path as the journal spells it, where a file or folder is named."""
    try:
        path = brain.tree.confine(named)
    except ConfinementError:
        return named
    return brain.tree.relative(path) if path.exists() else named
