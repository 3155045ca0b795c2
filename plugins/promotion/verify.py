"""A second reader: another call sees each new text with nothing but the words it rests on, and says whether it follows.

What does not is not written: it waits in `memory/review.md`. The journal's `candidates-verified` is the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

from brainiac.errors import InvalidAnswerError
from brainiac.events import CandidatesVerified, PluginFailed, VerdictRecord
from brainiac.formats.authors import PERSON
from brainiac.formats.short_term import StmEvent
from brainiac.history.why import folded
from brainiac.llm.schemas import OFFLINE, Claim, Quoted, Verdict, Verdicts, VerifyRequest

from .apply import Candidate
from .checks import READ_AGAIN, Sources
from .draft import MemoryDraft
from .filing import NAME
from .request import Calls, as_existing

FOLLOWS, UNSURE = "follows", "cannot tell"
PASSAGE = 600  # characters around a quote that are shown with it: a quote alone may lack its "not"


Read = tuple[VerdictRecord, str]  # a verdict, and the model whose it is


def read_again(
    calls: Calls, candidates: Sequence[Candidate], draft: MemoryDraft, origin_of: Callable[[StmEvent], str]
) -> dict[str, Read]:
    """Return the verdicts on what candidates state or end, and whose they are; by candidate.

    None is given where no second reader may see it: without one, or where it is private and the reader elsewhere. One
    call takes all candidates, the private ones apart; a verdict that the journal has is not asked for again.

    Args:
        calls: The model calls of the run.
        candidates: What another model wants to write.
        draft: The draft.
        origin_of: Returns whose words the prompt of an exchange holds, one of `ORIGINS`.

    Raises:
        ModelError: The model cannot serve now.
    """
    # what an earlier run journaled and did not come to use: it ended early
    verdicts, ids = dict[str, Read](), {candidate.id for candidate in candidates}
    for event in calls.brain.journal.events(kinds={CandidatesVerified}, reverse=True) if ids else ():
        if event.id < min(ids):  # ids ascend in time
            break
        assert isinstance(event.what, CandidatesVerified)
        read = {name: (row, event.what.model) for name, row in event.what.verdicts.items() if name in ids}
        verdicts = read | verdicts
    for is_private in (False, True):
        unread = [
            candidate
            for candidate in candidates
            if candidate.is_private == is_private and candidate.id not in verdicts
            if candidate.operation.action in READ_AGAIN and not candidate.operation.marked_by
        ]
        by_item = {str(number): candidate for number, candidate in enumerate(unread, 1)}
        claims = [_claim(item, candidate, draft, origin_of) for item, candidate in by_item.items()]
        request = calls.request(VerifyRequest, is_private=is_private, claims=claims)
        if claims and (model := calls.model_for(request)) != OFFLINE:
            rows = _answered(calls, request)
            records = {candidate.id: rows[item] for item, candidate in by_item.items()}
            calls.brain.record(CandidatesVerified(model=model, verdicts=records), by=NAME, cause=calls.cause)
            verdicts |= {name: (record, model) for name, record in records.items()}
    return verdicts


def _answered(calls: Calls, request: VerifyRequest) -> dict[str, VerdictRecord]:
    """Return a model's verdict on each claim; of those of which it says nothing it is asked once more."""
    shown, answered = calls.admitted(request).claims, dict[str, Verdict]()
    silence = "it said nothing of it, or may not be shown it"
    for _ in range(2):
        if left := [claim for claim in shown if claim.id not in answered]:
            try:
                result: Verdicts = calls.answer(replace(request, claims=left))
            except InvalidAnswerError as error:  # it may never give another: what it was to read waits in review
                calls.brain.record(PluginFailed(hook=request.purpose, error=error.problem[:500]), by=NAME)
                silence = "it gave no valid answer"
                break
            # of two on the same claim the doubt counts
            answered |= {row.item: row for row in sorted(result.verdicts, key=lambda row: row.verdict != FOLLOWS)}
    rows = {claim.id: answered.get(claim.id) or Verdict(item=claim.id, reason=silence) for claim in request.claims}
    return {item: VerdictRecord(verdict=row.verdict, reason=row.reason) for item, row in rows.items()}


def _claim(item: str, candidate: Candidate, draft: MemoryDraft, origin_of: Callable[[StmEvent], str]) -> Claim:
    """Return what the second reader is shown of a candidate."""
    operation, day_of = candidate.operation, draft.brain.day_of
    events = {event.id: event for event in candidate.events}
    sources = Sources(events, lambda name: origin_of(events[name]), day_of)
    quotes = []
    for evidence in operation.evidence:
        event, quote = events[evidence.exchange], evidence.quote
        speaker, day = sources.speaker_of(event.id, quote), day_of(event.at)
        is_answer = speaker == "assistant" and quote.casefold() not in event.user.casefold()
        # what a person pasted is theirs as an exchange, and not as words
        author = event.author.label if event.author.origin != PERSON else "a text that User pasted"
        by, text = ("AI", event.ai) if is_answer else ("User" if speaker == PERSON else author, event.user)
        quotes.append(Quoted(by, f"{date.fromisoformat(day):%A} {day}", quote, _passage(text, quote)))
    targets = [current for name in operation.ids if (current := draft.statement(name))]
    former = [as_existing("", row) for row in targets]
    text = "\n".join([operation.text, *operation.steps]).strip()
    if operation.action == "end" and any(folded(text) == folded(row.text) for row in targets):
        text = ""  # it states nothing new
    return Claim(item, text, quotes, former, operation.action == "end", candidate.events)


def _passage(text: str, quote: str) -> str:
    """Return a text, of a long one what stands around a quote."""
    at = max(0, text.casefold().find(quote.casefold()[:40]))
    start, end = max(0, at - PASSAGE // 2), at + len(quote) + PASSAGE // 2
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
