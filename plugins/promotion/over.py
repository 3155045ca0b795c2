"""What has passed its last day: a statement that a model gave `valid_until` ends by itself, with or without a model.

A line that a person wrote or reworded never does, nor one that somebody brought back after it had ended so.
"""

from __future__ import annotations

import re
from contextlib import suppress

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError
from brainiac.events import StatementRecord, StatementRef, StatementsEnded, update
from brainiac.formats.page import STEPS, MemoryDocument
from brainiac.history.digest import write_digest
from brainiac.storage.statements import StatementLog, text_hash

from .filing import NAME

_DAY = re.compile(r"\d{4}(-\d\d){0,2}")  # or a month or a year: anything else that a model gives ends nothing
_DATED = """
SELECT DISTINCT page, block, hash, json_extract(data, '$.valid_until') FROM statements
WHERE json_extract(data, '$.valid_until') > '' AND json_extract(data, '$.valid_until') < ?
"""


def end_what_is_over(brain: Brain) -> int:
    """Move the statements whose last day has passed to History, one commit a page; return how many.

    A page that somebody saves meanwhile waits for the next quiet.
    """
    today = brain.day_of(iso(brain.clock.now()))
    brain.projection.follow()
    dated: dict[str, dict[tuple[str, str], str]] = {}
    for page, block, digest, until in brain.projection.query(_DATED, today):
        if _DAY.fullmatch(until) and today[: len(until)] > until:  # of a month or a year all of it
            dated.setdefault(page, {})[block, digest] = until
    pages, count = brain.pages() if dated else None, 0
    for uuid, ends in dated.items():
        path = pages.path_by_uuid.get(uuid) if pages else None
        page = pages.memories.get(path) if pages and path else None
        if page is None:
            continue
        log = StatementLog(brain)
        document, records = MemoryDocument(page.text, page.path), list[StatementRecord]()
        for statement in page.current_statements:
            digest = text_hash(statement.text)
            until = ends.get((statement.block_id, digest), "")
            if not until or statement.section == STEPS or not _ends(log, uuid, statement.block_id, digest, until):
                continue
            document = document.retire(statement.block_id, until, since=log.since_of(uuid, statement))
            replaced = StatementRef(block=statement.block_id, hash=digest, history=statement.block_id)
            reason = f"its last day, {until}, has passed"
            records.append(
                StatementRecord(
                    operation="DELETE", path=page.path, page=uuid, valid_until=until, reasoning=reason,
                    replaced=replaced,
                )
            )  # fmt: skip
        if records:
            with suppress(ConflictError):
                changes = [update(page.path, page.text, str(document))]
                brain.commit(StatementsEnded(statements=tuple(records)), by=NAME, changes=changes)
                count += len(records)
    if count:
        write_digest(brain)
    return count


def _ends(log: StatementLog, page: str, block: str, digest: str, until: str) -> bool:
    """Return whether a statement of ours still has that last day, and did not end by it before.

    Args:
        log: Statements, from the journals.
        page: The uuid of its page.
        block: Its block id.
        digest: The hash of its present words.
        until: The last day that some operation gave it.
    """
    history = log.history_of(page)  # what was undone too
    if any(change.event.kind == StatementsEnded.kind and change.former.block == block for change in history):
        return False
    stated = [change for change in log.changes_of(page) if change.block == block and change.hash]
    if not stated or stated[-1].hash != digest:
        return False
    last = stated[-1].record
    # of what says how another one ended the day is that one's; and what was said later tells of what was
    return last.valid_until == until and last.operation != "DELETE" and last.since[: len(until)] <= until
