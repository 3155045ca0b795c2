"""What the keyless engine gives for each purpose (design 8); the same request gets the same result."""

from __future__ import annotations

from datetime import UTC

from brainiac.clock import day_in
from brainiac.llm.offline.keeping import NOTES, keep
from brainiac.llm.offline.quoting import answer
from brainiac.llm.schemas import (
    AnswerRequest,
    Consolidation,
    ConsolidateRequest,
    OrganizeRequest,
    Page,
    Queries,
    QueriesRequest,
    Reflection,
    ReflectRequest,
    Request,
    Result,
    SummarizeRequest,
    Summary,
    SynthesizeRequest,
)


class OfflineEngine:
    """Serves the purposes from a request's values alone: what a person said is quoted or kept, never reworded."""

    name = "offline"
    is_remote = False

    def run(self, request: Request) -> Result:
        """Serve one request.

        Raises:
            TypeError: It serves no such purpose.
        """
        match request:
            case QueriesRequest():
                return Queries()  # the prompt itself is searched for
            case AnswerRequest():
                result = answer(request)
                if request.on_text is not None:
                    request.on_text(result.text)
                return result
            case ReflectRequest():
                return Reflection()  # what a person marked is noted whoever answers
            case ConsolidateRequest():  # what was marked is kept; nothing else is judged
                zone = request.now.tzinfo or UTC
                return Consolidation(operations=[keep(marked, request.pages, zone) for marked in request.marked])
            case SynthesizeRequest():
                return Page(kind=request.kind, title=request.title or NOTES, folder=NOTES, steps=list(request.steps))
            case SummarizeRequest():
                return Summary(text=_summary(request))
            case OrganizeRequest():
                from brainiac.llm.offline.organizing import organize

                return organize(request)
        raise TypeError(f"the keyless engine serves no {type(request).__name__}")


def _summary(request: SummarizeRequest) -> str:
    """Say how much was said since when, and which pages it went to."""
    said = [*request.archived, *request.remaining]
    if not said:
        return ""
    count, since = len(said), day_in(request.now.tzinfo, min(event.at for event in said))
    titles = ", ".join(dict.fromkeys(request.titles))
    return f"{count} exchange{'' if count == 1 else 's'} since {since}." + (f" Pages: {titles}." if titles else "")
