"""What each statement rests on, as the journals of all devices record it: operations by page and block id, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brainiac.brain import Brain
from brainiac.formats.memory import Statement
from brainiac.history.provenance import STATING
from brainiac.storage.record import undone_events
from brainiac.storage.statements import text_hash


@dataclass(frozen=True, slots=True)
class Operation:
    """One recorded operation on a statement.

    Attributes:
        hash: Of the text that stood then.
        sources: Ids of the exchanges it rests on.
        former: Hash of the text it replaced; "".
        retired: Block id of the statement that it retired; "".
        history: Block id under which the former text stands in History; "".
    """

    hash: str
    sources: frozenset[str]
    former: str = ""
    retired: str = ""
    history: str = ""


class Ledger:
    """The operations on all statements; read once.

    Args:
        brain: The brain.

    Attributes:
        proposals: The exchanges that each proposal rests on, by its id.
        pages: Uuids of the pages that anything was stated on.
        whole: What made the whole body of a page, by its uuid.
        summaries: Hashes of the paragraphs that a process wrote into the summary.
    """

    def __init__(self, brain: Brain) -> None:
        self._operations: dict[tuple[str, str], list[Operation]] = defaultdict(list)
        self._kept_from: dict[tuple[str, str], tuple[str, str]] = {}
        self.proposals: dict[str, frozenset[str]] = {}
        self.pages: set[str] = set()
        self.whole: dict[str, Operation] = {}
        self.summaries: set[str] = set()
        undone = undone_events(brain)
        own = [event for event in brain.journal.events(kinds=STATING) if event.id not in undone]
        foreign = [event for _, event in brain.journal.foreign_events() if event.kind in STATING]
        for event in sorted((*own, *foreign), key=lambda event: event.id):
            self.summaries.update(event.data.get("summary", ()))
            for one in event.data.get("statements", ()):
                self._take(one)
            for one in event.data.get("proposals", ()):
                self.proposals[str(one.get("id"))] = frozenset(one.get("sources", ()))

    def _take(self, one: Mapping[str, Any]) -> None:
        page, replaced = str(one.get("page") or ""), one.get("replaced") or {}
        self.pages.add(page)
        if one.get("is_whole"):
            self.whole[page] = Operation(str(one.get("hash") or ""), frozenset(one.get("sources", ())))
        operation = Operation(
            str(one.get("hash") or ""),
            frozenset(one.get("sources", ())),
            str(replaced.get("hash") or ""),
            str(replaced.get("block") or "") if replaced.get("block") != one.get("block") else "",
            str(replaced.get("history") or ""),
        )
        for step in (one, *one.get("steps", ())):
            if step.get("block"):
                each = Operation(str(step.get("hash") or ""), *_rest(operation))
                self._operations[page, str(step["block"])].append(each)
        if operation.history and operation.history != replaced.get("block"):
            self._kept_from[page, operation.history] = str(replaced["block"]), operation.former

    def behind(self, page: str, statement: Statement) -> list[Operation]:
        """Return the operations that led to a statement as it stands; none where a person wrote or reworded it."""
        block, digest = self._kept_from.get((page, statement.block_id), (statement.block_id, ""))
        operations = self._operations.get((page, block), [])
        digest = digest or text_hash(statement.text)
        last = max((i for i, one in enumerate(operations) if one.hash == digest), default=-1)
        return operations[: last + 1]


def _rest(operation: Operation) -> tuple[frozenset[str], str, str, str]:
    return operation.sources, operation.former, operation.retired, operation.history
