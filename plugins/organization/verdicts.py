"""A person's word in `review.md` carried out: the journaled proposal, never the line's text, and once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConflictError, FormatError
from brainiac.events import (
    Change,
    Event,
    ProposalApplied,
    ProposalDeclined,
    ProposalExpired,
    ReviewTidied,
    content_hash,
    update,
)
from brainiac.formats.memory import MemoryDocument
from brainiac.history import forget_words
from brainiac.history.conflict_copies import TAKE, taken
from brainiac.storage.review import find_ticks, verdicts, without
from brainiac.storage.statements import text_hash

from .actions import carry_out
from .catalog import Catalog
from .draft import Draft, folders_of
from .indexes import derive_manifests
from .judging import Action
from .past import Past, read_past

Proposal = Mapping[str, Any]
ATTEMPTS = 3


def settle_reviews(brain: Brain) -> list[Event]:
    """Do what was ticked and note what was declined, each once; return the events."""
    text = brain.read_text(brain.tree.review)
    marked = verdicts(text) if text else {}
    if not marked:
        return []
    past, events = read_past(brain), []
    for name, is_wanted in marked.items():
        proposal = past.proposals.get(name)
        if proposal is None or name in past.decided:
            continue
        if is_wanted and proposal.get("operation") == forget_words.OPERATION:
            cause = forget_words.settle(brain, proposal)
            data = {"proposal": name}
            events.append(brain.record(ProposalApplied.kind, by="person", data=data, cause=cause.id if cause else None))
        elif is_wanted:
            events.append(_apply(brain, name, proposal, past))
        else:
            events.append(brain.record(ProposalDeclined.kind, by="person", data={"proposal": name}))
    return events


def _apply(brain: Brain, name: str, proposal: Proposal, past: Past) -> Event:
    """Do what was proposed on the pages as they stand, or note that they are not what it was about any more."""
    data = {"proposal": name}
    for _ in range(ATTEMPTS):
        catalog = Catalog(brain)
        changes, record = _changes(brain, catalog, proposal, past)
        if not changes:
            break
        try:
            event = brain.commit(ProposalApplied.kind, by=str(proposal["by"]), changes=changes, data={**data, **record})
        except ConflictError:
            continue
        derive_manifests(brain, folders_of(changes), cause=event.id)
        return event
    return brain.record(ProposalExpired.kind, by=str(proposal["by"]), data=data)


def _changes(brain: Brain, catalog: Catalog, proposal: Proposal, past: Past) -> tuple[list[Change], Mapping[str, Any]]:
    """Return what a proposal changes, and what the journal is to know of it; nothing when its target changed."""
    if proposal.get("operation") == "retire":
        return _retirement(catalog, proposal), {}
    if proposal.get("operation") == TAKE:
        return taken(brain, proposal), {}
    if "action" not in proposal:
        return [], {}
    paths = []
    for uuid, _, digest in proposal["pages"]:
        path = catalog.place_of.get(uuid, "")
        if path not in catalog.pages or content_hash(catalog.texts[path].encode("utf-8", "surrogateescape")) != digest:
            return [], {}
        paths.append(path)
    now = brain.clock.now()
    draft = Draft(brain, catalog, lambda path: past.is_resting(path, now))
    action = Action(proposal["action"], tuple(paths), proposal["target"])
    statements = carry_out(brain, catalog, draft, [action])
    return draft.changes(), {"statements": statements}


def _retirement(catalog: Catalog, proposal: Proposal) -> list[Change]:
    """Move a person's own statement to History, as Promotion proposed it."""
    path = catalog.place_of.get(proposal["page"], "")
    if path not in catalog.pages:
        return []
    before = catalog.texts[path]
    document = MemoryDocument(before, path)
    try:
        statement = document.statement(proposal["block"])
    except FormatError:
        return []
    if statement.is_history or text_hash(statement.text) != proposal["hash"]:
        return []
    after = document.retire(proposal["block"], proposal["on"], proposal.get("replaced_by", ""))
    return [update(path, before, str(after))]


def tidy_review(brain: Brain) -> Event | None:
    """Take the lines of what was decided out of `review.md`, once a person let it rest for a minute."""
    path = brain.tree.relative(brain.tree.review)
    before = brain.read_text(path)
    shown = {tick.id for tick in find_ticks(before)} if before else set()
    if not before or not shown:
        return None
    past = read_past(brain)
    after = without(before, shown & past.decided.keys())
    if after == before or not past.is_resting(path, brain.clock.now()):
        return None
    return brain.commit(ReviewTidied.kind, by="organization", changes=[update(path, before, after)])
