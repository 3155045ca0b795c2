"""Asks whether what was kept without a model replaces what the person told before: lines of `memory/review.md`.

Nothing is decided here. Without the person's tick both tellings stand.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from brainiac.brain import Brain
from brainiac.events import RetireProposal, StatementRecord, new_id
from brainiac.formats.authors import PERSON
from brainiac.formats.discretion import is_private_event
from brainiac.formats.markdown import one_line, without_link_targets
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import folded
from brainiac.search.documents import Hit
from brainiac.storage.review import Proposal
from brainiac.storage.statements import text_hash
from brainiac.text.tokens import ends_as_question, likeness

from .apply import Step
from .candidates import REPEATED, other_tellings
from .draft import Draft

NEAR = 0.55  # the cosine, by the embedder on this machine, from which on it is asked (docs/decisions/keyless-engine.md)
MAX_QUOTED = 300  # characters of each text in a line


def replacements(brain: Brain, draft: Draft, kept: Iterable[tuple[Step, StatementRecord]]) -> list[Proposal]:
    """Return a proposal for what was kept and has an earlier telling near to it; at most one for each exchange.

    Private words are neither compared nor quoted.

    Args:
        brain: The brain.
        draft: The pages, with what was kept.
        kept: The steps of a run, each with its first record.
    """
    exchanges, nearest = Exchanges(brain), dict[str, tuple[float, Proposal]]()
    for step, record in kept:
        event, words = step.candidate.events[0], step.operation.text
        is_by_person = event.origin == PERSON and not step.candidate.is_private
        if not (is_by_person and step.operation.marked_by and record.operation == "NEW" and record.block):
            continue
        told = []
        for hit in other_tellings(brain, words, event.id):
            earlier = exchanges.in_memory(hit.anchor) if hit.kind == "exchange" else None
            # a question tells nothing that could be replaced
            if earlier and earlier.at < event.at and not is_private_event(earlier) and not ends_as_question(hit.text):
                told.append(hit)
        cosines = brain.recall.nearness(words, [hit.text for hit in told])
        for cosine, hit in sorted(zip(cosines, told, strict=True), key=itemgetter(0), reverse=True)[:1]:
            # what was only said again replaces nothing
            if cosine >= nearest.get(event.id, (NEAR, None))[0] and likeness(hit.text, words) < REPEATED:
                nearest[event.id] = cosine, Proposal(_proposal(draft, step, record, hit))
    return [proposal for _, proposal in nearest.values()]


def _proposal(draft: Draft, step: Step, record: StatementRecord, told: Hit) -> RetireProposal:
    """Return the proposal to have an earlier telling, and the statement in its words, replaced by that of a record."""
    texts = [one_line(without_link_targets(text)) for text in (step.operation.text, told.text)]
    new, old = (text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…" for text in texts)
    statement = draft.statement(draft.ids_by_words(is_private=False).get(folded(told.text), "#"))
    return RetireProposal(
        id=new_id(),
        what=f"Does “{new}” ({record.since}) replace “{old}” ({draft.brain.day_of(told.at)})?",
        operation="retire",
        page=statement.page if statement else "",
        path=statement.path if statement else "",
        block=statement.statement.block_id if statement else "",
        hash=text_hash(statement.statement.text) if statement else "",
        replaced_by=record.block,
        on=record.since,
        sources=(*record.sources, told.anchor),
        held_by=record.page,
        words=told.text,
        said_in=told.anchor,
    )
