"""Which function serves which purpose (design 8)."""

from __future__ import annotations

from brainiac.language.sentences import content_stems, overlap, split_sentences
from brainiac.llm.offline.answering import answer
from brainiac.llm.schemas import (
    Answer,
    AnswerRequest,
    Candidate,
    Candidates,
    Operation,
    Operations,
    Page,
    Proposals,
    Purpose,
    Queries,
    Reflection,
    Request,
    Result,
    Summary,
)


class OfflineEngine:
    """An engine of its own for all eight purposes.

    Args:
        language: Snowball's name of the language that stems and stop words are taken from.
    """

    name = "offline"
    is_remote = False

    def __init__(self, language: str = "english") -> None:
        self.language = language

    def run(self, request: Request) -> Result:
        """Serve one request from its values alone; the same request gets the same result."""
        return getattr(self, "_" + request.purpose.value)(request)

    def _queries(self, request) -> Queries:
        return Queries(queries=[" ".join(content_stems(request.prompt.text, self.language))[:300]])

    def _answer(self, request: AnswerRequest) -> Answer:
        return answer(request, self.language)

    def _reflect(self, request) -> Reflection:
        text = request.exchange.prompt.text
        return Reflection(facts=[s for s in split_sentences(text) if not s.endswith("?")][:50])

    def _analyze(self, request) -> Candidates:
        return Candidates(
            candidates=[
                Candidate(statement=sentence[:1000], events=[event.id], subject="User")
                for event in request.events
                for sentence in split_sentences(event.user)
                if not sentence.endswith("?")
            ]
        )

    def _integrate(self, request) -> Operations:
        return Operations(operations=[Operation(operation="NEW", content=request.candidate.statement)])

    def _synthesize(self, request) -> Page:
        title = request.candidate.subject or "Notes"
        return Page(kind=request.candidate.kind, folder="", title=title)

    def _summarize(self, request) -> Summary:
        return Summary(text=" ".join(event.user for event in request.remaining)[:4000])

    def _organize(self, request) -> Proposals:
        return Proposals()
