"""One organization, from the counts to the one commit, and the manifests that follow from it (seeds S13, P6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConflictError
from brainiac.events import Change, Event
from brainiac.formats.frontmatter import edit_meta
from brainiac.llm.gate import is_hidden
from brainiac.llm.offline import organize as by_rule
from brainiac.llm.schemas import OrganizeRequest, Proposal, Proposals
from brainiac.storage.files import locked
from brainiac.storage.review import review_change

from .actions import carry_out
from .asking import new_proposals
from .catalog import Catalog
from .draft import Draft, folders_of
from .indexes import derive_manifests
from .judging import Action, Judge, Verdict
from .past import ORGANIZED, Past, read_past
from .patterns import Patterns, find_patterns
from .usage import Usage, cleared, read_usage

NAME = "organization"
ATTEMPTS = 3
LOG_ATTEMPTS = 50  # a script may add lines without pause; what was decided does not rest on them
GOALS = (
    "What is used much is found near the top.",
    "What is used together is linked.",
    "No folder holds more than a person can look over.",
    "What is unused is at rest in the archive, and nothing is lost.",
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        done: What was done.
        asked: What was put before a person, one sentence each.
        refused: Proposals that were not in order, and why.
        lines: Entries of the access log that were counted and cleared.
        event: Id of the commit; "" when there was nothing to do.
    """

    done: tuple[Action, ...] = ()
    asked: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    lines: int = 0
    event: str = ""


@dataclass(slots=True)
class _Work:
    catalog: Catalog
    past: Past
    usage: Usage
    patterns: Patterns
    asked: str = ""
    verdict: Verdict = field(default_factory=Verdict)


def organize(
    brain: Brain, *, progress: Progress = lambda step: None, abandon: Callable[[], bool] | None = None
) -> Outcome:
    """Organize long-term memory by how it was used; a second run right after changes nothing.

    Args:
        brain: The brain.
        progress: Told in a few words what is being done.
        abandon: Asked while a model answers; true ends the run.

    Raises:
        ModelError: The model cannot serve now; nothing was changed.
        ConflictError: Somebody changed the same files every time; nothing was changed.
        LockedError: Another run is at work.
    """
    with locked(brain.places.state / "organization.lock", wait_seconds=0):
        for attempt in range(ATTEMPTS):
            progress("reading memory and the access log")
            work = _look(brain)
            work.verdict = _decide(brain, work, progress, abandon)
            try:
                return _write(brain, work, progress)
            except ConflictError:
                if attempt == ATTEMPTS - 1:
                    raise
    raise AssertionError("unreachable")


def _look(brain: Brain) -> _Work:
    catalog, past = Catalog(brain), read_past(brain)
    usage = read_usage(brain, catalog, past)
    patterns = find_patterns(catalog, past, usage, brain.settings.organization, brain.clock.now())
    return _Work(catalog, past, usage, patterns, past.asked)


def _decide(brain: Brain, work: _Work, progress: Progress, abandon: Callable[[], bool] | None) -> Verdict:
    proposals: list[Proposal] = []
    shown, hidden = _parted(brain, work)
    if hidden.as_request():  # by rule, in this process: no model sees what is private
        proposals += by_rule(_request(brain, work, hidden, None)).proposals
    if rows := shown.as_request():
        asked = hashlib.sha256(json.dumps(rows, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:16]
        if asked != work.past.asked or not _is_remote(brain):
            progress("asking what to change")
            found = brain.models.run(_request(brain, work, shown, abandon))
            assert isinstance(found, Proposals)
            proposals += found.proposals
        work.asked = asked
    return Judge(brain, work.catalog, work.past, work.patterns).judge(proposals)


def _is_remote(brain: Brain) -> bool:
    llm = brain.settings.llm
    return llm.models.get("organize", llm.model) != "offline"


def _parted(brain: Brain, work: _Work) -> tuple[Patterns, Patterns]:
    """Return the patterns that the model may see, and those of private pages and of folders of such pages."""
    found = work.patterns
    if not _is_remote(brain):
        return found, Patterns([], [], [], [])

    def names_hidden(row: dict[str, Any]) -> bool:
        return any(is_hidden(brain.tree, path) for path in row.get("paths") or [row.get("path") or row["folder"]])

    sides = []
    for side in (False, True):
        rows = {
            name: [row for row in getattr(found, name) if names_hidden(row) is side]
            for name in ("frequent", "co_accessed", "unused", "overgrown")
        }
        sides.append(replace(found, **rows))
    return sides[0], sides[1]


def _request(brain: Brain, work: _Work, patterns: Patterns, abandon: Callable[[], bool] | None) -> OrganizeRequest:
    structure = {folder: len(entries) for folder, entries in work.catalog.entries.items()}
    return OrganizeRequest(
        now=brain.now(), patterns=patterns.as_request(), structure=structure, goals=GOALS, abandon=abandon
    )


def _write(brain: Brain, work: _Work, progress: Progress) -> Outcome:
    verdict, past, now = work.verdict, work.past, brain.clock.now()
    draft = Draft(brain, work.catalog, lambda path: past.is_resting(path, now))
    statements = carry_out(brain, work.catalog, draft, verdict.do)
    _count_uses(work, draft, now)
    changes = draft.changes()
    proposals = []
    if past.is_resting(brain.tree.relative(brain.tree.review), now):
        proposals = new_proposals(work.catalog, past, verdict.ask)
        changes += review_change(brain, proposals)
    is_told = work.asked == past.asked or not (verdict.refused or _is_remote(brain))
    if not changes and not work.usage.lines and is_told:
        return Outcome(refused=tuple(verdict.refused))
    progress(f"writing {len(changes)} files")
    data = {
        **work.usage.as_json(),
        "asked": work.asked,
        "done": [_record(work, draft, action) for action in verdict.do],
        "statements": statements,
        "proposals": [proposal.as_json() for proposal in proposals],
        "refused": [{"proposal": what, "reason": why} for what, why in verdict.refused],
    }
    event = _commit(brain, work.usage, changes, data)
    progress("deriving manifests")
    derive_manifests(brain, folders_of(changes), cause=event.id)
    asked = tuple(proposal.what for proposal in proposals)
    return Outcome(tuple(verdict.do), asked, tuple(verdict.refused), work.usage.lines, event.id)


def _commit(brain: Brain, usage: Usage, changes: list[Change], data: dict[str, Any]) -> Event:
    """Commit, again and again where only the access log has grown meanwhile: what was added stays there."""
    log = brain.tree.relative(brain.tree.access_log)
    for _ in range(LOG_ATTEMPTS):
        try:
            return brain.commit(ORGANIZED, by=NAME, changes=[*changes, *cleared(brain, usage)], data=data)
        except ConflictError as error:
            if error.paths != (log,):
                raise
    raise ConflictError([log])


def _count_uses(work: _Work, draft: Draft, now: datetime) -> None:
    """Add citations to the pages' own counts; a page that a person is at this moment is left alone."""
    for uuid, times in work.usage.cited.items():
        path = work.catalog.place_of.get(uuid, "")
        if path in work.catalog.pages and work.past.is_resting(path, now):
            count = work.catalog.pages[path].reinforcement_count + times
            draft.edit(path, partial(edit_meta, reinforcement_count=count))


def _record(work: _Work, draft: Draft, action: Action) -> dict[str, Any]:
    return {
        "action": action.kind,
        "uuids": [work.catalog.uuids[path] for path in action.paths],
        "from": list(action.paths),
        "to": [draft.place(path) for path in action.paths],
        "reason": action.reason,
    }
