"""The answer to `brainiac why`: the page, statement or line that is meant, with the chain behind each."""

from __future__ import annotations

from dataclasses import dataclass

from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.formats.dialogue import find_events
from brainiac.history.exchanges import Exchanges, Said
from brainiac.history.naming import find_memory, find_statement, nearest_texts
from brainiac.history.origin import origin_of_item
from brainiac.history.provenance import Chain, Provenance


@dataclass(frozen=True, slots=True)
class Why:
    """Why something stands in memory.

    Attributes:
        path: The file.
        title: Its title.
        chains: Its statements, or the one asked for.
        said: For an episodic page: the exchanges on it.
        is_exact: False where the nearest statement was taken for the one that was named.
    """

    path: str
    title: str
    chains: tuple[Chain, ...]
    said: tuple[Said, ...] = ()
    is_exact: bool = True


def why(brain: Brain, named: str) -> Why:
    """Explain a memory (path, uuid, title) or a statement (block id, text).

    Raises:
        UserError: Nothing is called so; the nearest are named.
        FormatError: The page cannot be read.
    """
    if memory := find_memory(brain, named):
        exchanges = Exchanges(brain)
        said = [exchanges.said(placed.event.id) for placed in find_events(memory.text)]
        return Why(memory.path, memory.title, tuple(Provenance(brain, memory.path).chains()), tuple(said))
    if item := origin_of_item(brain, named):
        return Why(item.path, item.title, (item,))
    found = find_statement(brain, named)
    if found is None or found.statement is None:
        nearest = nearest_texts(brain, named)
        hint = f"; the nearest: {', '.join(nearest)}" if nearest else ""
        raise UserError(f"no memory and no statement is called {named!r}{hint}")
    chain = Provenance(brain, found.memory.path).chain(found.statement)
    return Why(found.memory.path, found.memory.title, (chain,), is_exact=found.is_exact)
