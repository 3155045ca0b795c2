"""A second reader: another call sees each new text with nothing but the words it rests on, and says whether it follows.

What does not is not written: it waits in `memory/review.md`. The journal's `candidates-verified` is the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from brainiac.brain import Brain
from brainiac.errors import InvalidAnswerError
from brainiac.events import CandidatesVerified, PluginFailed, VerdictRecord
from brainiac.formats.authors import PERSON
from brainiac.formats.short_term import StmEvent
from brainiac.history.why import folded
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import OFFLINE, Claim, Existing, Quoted, Verdict, Verdicts, VerifyRequest

from .apply import Candidate
from .checks import READ_AGAIN, Sources
from .draft import Draft
from .filing import NAME
from .request import paid_answer

FOLLOWS, UNSURE = "follows", "cannot tell"
PASSAGE = 600  # characters around a quote that are shown with it: a quote alone may lack its "not"


Read = tuple[VerdictRecord, str]  # a verdict, and the model whose it is


class SecondReader:
    """Has a model read what another one wants to write.

    Args:
        brain: The brain.
        cause: The id of the run's first event.
        abandon: Returns whether somebody came back, so that no further call is made.
        origin_of: Returns whose words the prompt of an exchange holds, one of `ORIGINS`.
    """

    def __init__(
        self, brain: Brain, cause: str, abandon: Callable[[], bool] | None, origin_of: Callable[[StmEvent], str]
    ) -> None:
        self._brain, self._cause, self._abandon, self._origin_of = brain, cause, abandon, origin_of

    def read(self, candidates: Sequence[Candidate], draft: Draft) -> dict[str, Read]:
        """Return the verdicts on what candidates state or end, and whose they are; by candidate.

        None is given where no second reader may see it: without one, or where it is private and the reader elsewhere.
        One call takes all candidates, the private ones apart; a verdict that the journal has is not asked for again.

        Raises:
            ModelError: The model cannot serve now.
        """
        # what an earlier run journaled and did not come to use: it ended early
        verdicts, ids = dict[str, Read](), {candidate.id for candidate in candidates}
        for event in self._brain.journal.events(kinds={CandidatesVerified}, reverse=True) if ids else ():
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
            verdicts |= self._ask(unread, draft, is_private=is_private) if unread else {}
        return verdicts

    def _ask(self, candidates: Sequence[Candidate], draft: Draft, *, is_private: bool) -> Mapping[str, Read]:
        """Have the model read candidates, once more those of which it says nothing, and journal its verdicts."""
        by_item = {str(number): candidate for number, candidate in enumerate(candidates, 1)}
        request = VerifyRequest(
            now=self._brain.now(),
            is_private=is_private,
            cause=self._cause,
            abandon=self._abandon,
            claims=[self._claim(item, candidate, draft) for item, candidate in by_item.items()],
        )
        engine = self._brain.models.engine_for(request)
        if engine.name == OFFLINE:
            return {}
        shown = Gate(self._brain, is_remote=engine.is_remote).admit(request).claims
        answered: dict[str, Verdict] = {}
        silence = "it said nothing of it, or may not be shown it"
        for _ in range(2):
            if left := [claim for claim in shown if claim.id not in answered]:
                try:
                    result = paid_answer(self._brain, replace(request, claims=left))
                except InvalidAnswerError as error:  # it may never give another: what it was to read waits in review
                    self._brain.record(PluginFailed(hook=request.purpose, error=error.problem[:500]), by=NAME)
                    silence = "it gave no valid answer"
                    break
                assert isinstance(result, Verdicts)
                # of two on the same claim the doubt counts
                rows = sorted(result.verdicts, key=lambda row: row.verdict != FOLLOWS)
                answered |= {row.item: row for row in rows if row.item in by_item}
        records = {}
        for item, candidate in by_item.items():
            row = answered.get(item) or Verdict(item=item, reason=silence)
            records[candidate.id] = VerdictRecord(verdict=row.verdict, reason=row.reason)
        self._brain.record(CandidatesVerified(model=engine.name, verdicts=records), by=NAME, cause=self._cause)
        return {name: (record, engine.name) for name, record in records.items()}

    def _claim(self, item: str, candidate: Candidate, draft: Draft) -> Claim:
        """Return what the second reader is shown of a candidate."""
        operation = candidate.operation
        events = {event.id: event for event in candidate.events}
        sources = Sources(events, lambda name: self._origin_of(events[name]), self._brain.day_of)
        quotes = []
        for evidence in operation.evidence:
            event, quote = events[evidence.exchange], evidence.quote
            speaker, day = sources.speaker_of(event.id, quote), self._brain.day_of(event.at)
            is_answer = speaker == "assistant" and quote.casefold() not in event.user.casefold()
            # what a person pasted is theirs as an exchange, and not as words
            author = event.author.label if event.author.origin != PERSON else "a text that User pasted"
            by, text = ("AI", event.ai) if is_answer else ("User" if speaker == PERSON else author, event.user)
            quotes.append(Quoted(by, f"{date.fromisoformat(day):%A} {day}", quote, _passage(text, quote)))
        targets = [current for name in operation.ids if (current := draft.statement(name))]
        former = [Existing("", row.text, row.path, row.title, row.since, row.is_by_hand) for row in targets]
        text = "\n".join([operation.text, *operation.steps]).strip()
        if operation.action == "end" and any(folded(text) == folded(row.text) for row in targets):
            text = ""  # it states nothing new
        return Claim(item, text, quotes, former, operation.action == "end", candidate.events)


def _passage(text: str, quote: str) -> str:
    """Return a text, of a long one what stands around a quote."""
    at = max(0, text.casefold().find(quote.casefold()[:40]))
    start, end = max(0, at - PASSAGE // 2), at + len(quote) + PASSAGE // 2
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
