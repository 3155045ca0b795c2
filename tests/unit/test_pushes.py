"""What memory said unasked, as this machine keeps it."""

from __future__ import annotations

from pathlib import Path

from brainiac.storage.pushes import Push, Pushes
from brainiac.storage.statements import rests_of
from brainiac.testing import World


def test_a_statement_and_its_exchange_are_one_thing(tmp_path: Path) -> None:
    """Neither is told after the other in a session, whichever came first; in another session either is.

    Seeds: H1.
    """
    world = World(tmp_path)
    world.drop("one.md", "/remember The staging host of larkspur is called petrel.")
    world.run()
    world.cli("promote")
    with world.opened() as brain:
        names = {hit.kind: hit.name_in_memory for hit in brain.recall.search("staging host of larkspur")}
        exchange, statement = names["exchange"], names["statement"]
        assert {statement: {exchange}} == rests_of(brain, [exchange, statement])
        pushes = Pushes(brain.database)

        def told(session: str, *names: str) -> tuple[str, ...]:
            push = Push("2025-09-15T10:00:00Z", "related", session, said=names)
            return pushes.add(push, 3, rests_of(brain, [exchange, statement])).said

        assert [(exchange,), ()] == [told("a", exchange, statement), told("a", statement)]
        assert [(statement,), ()] == [told("b", statement), told("b", exchange)]
