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
# what ended so before is not looked at again, also where somebody brought it back
_DATED = """
SELECT DISTINCT page, block, hash, json_extract(data, '$.valid_until') FROM statements AS said
WHERE json_extract(data, '$.valid_until') > '' AND json_extract(data, '$.valid_until') < ? AND NOT EXISTS (
    SELECT 1 FROM statements
    WHERE page = said.page AND kind = ? AND json_extract(data, '$.replaced.block') = said.block)
"""


def end_what_is_over(brain: Brain) -> int:
    """Move the statements whose last day has passed to History, one commit a page; return how many.

    A page that somebody saves meanwhile waits for the next quiet.
    """
    today = brain.day_of(iso(brain.clock.now()))
    brain.projection.follow()
    dated: dict[str, dict[tuple[str, str], str]] = {}
    for page, block, digest, until in brain.projection.query(_DATED, today, StatementsEnded.kind):
        if _DAY.fullmatch(until) and today[: len(until)] > until:  # of a month or a year all of it
            dated.setdefault(page, {})[block, digest] = until
    if not dated:
        return 0
    pages, log, count = brain.pages(), StatementLog(brain), 0
    for uuid, ends in dated.items():
        page = pages.memories.get(pages.path_by_uuid.get(uuid, ""))
        if page is None:
            continue
        last = {change.block: change for change in log.changes_of(uuid) if change.hash}
        document, records = MemoryDocument(page.text, page.path), list[StatementRecord]()
        for statement in page.current_statements:
            block, digest = statement.block_id, text_hash(statement.text)
            until, change = ends.get((block, digest), ""), last.get(block)
            if not until or statement.section == STEPS or change is None or change.hash != digest:
                continue
            record = change.record
            # of what says how another one ended the day is that one's; and what was said later tells of what was
            if record.valid_until != until or record.operation == "DELETE" or record.since[: len(until)] > until:
                continue
            document = document.retire(block, until, since=log.since_of(uuid, statement))
            records.append(
                StatementRecord(
                    operation="DELETE",
                    path=page.path,
                    page=uuid,
                    valid_until=until,
                    reasoning=f"its last day, {until}, has passed",
                    replaced=StatementRef(block=block, hash=digest, history=block),
                )
            )
        if records:
            with suppress(ConflictError):
                changes = [update(page.path, page.text, str(document))]
                brain.commit(StatementsEnded(statements=tuple(records)), by=NAME, changes=changes)
                count += len(records)
    if count:
        write_digest(brain)
    return count
