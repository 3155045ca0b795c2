"""Which function serves which purpose (design 8)."""

from __future__ import annotations

from brainiac.llm.offline.analyzing import analyze
from brainiac.llm.offline.answering import answer
from brainiac.llm.offline.condensing import summarize
from brainiac.llm.offline.filing import synthesize
from brainiac.llm.offline.organizing import organize
from brainiac.llm.offline.querying import write_queries
from brainiac.llm.offline.reflecting import reflect
from brainiac.llm.schemas import (
    AnalyzeRequest,
    AnswerRequest,
    IntegrateRequest,
    OrganizeRequest,
    QueriesRequest,
    ReflectRequest,
    Request,
    Result,
    SummarizeRequest,
    SynthesizeRequest,
)


class OfflineEngine:
    """An engine of its own for all eight purposes: the same request gets the same result, without key or network.

    Args:
        language: Snowball's name of the language that stems and stop words are taken from.
    """

    name = "offline"
    is_remote = False

    def __init__(self, language: str = "english") -> None:
        self.language = language

    def run(self, request: Request) -> Result:
        """Serve one request from its values alone.

        Raises:
            TypeError: It is none of the eight requests.
        """
        match request:
            case QueriesRequest():
                return write_queries(request, self.language)
            case AnswerRequest():
                return self._answer(request)
            case ReflectRequest():
                return reflect(request, self.language)
            case AnalyzeRequest():
                return analyze(request, self.language)
            case IntegrateRequest():
                from brainiac.integration.operations import decide

                return decide(request)
            case SynthesizeRequest():
                return synthesize(request, self.language)
            case SummarizeRequest():
                return summarize(request)
            case OrganizeRequest():
                return organize(request)
        raise TypeError(f"{type(request).__name__} is none of the eight purposes")

    def _answer(self, request: AnswerRequest) -> Result:
        result = answer(request, self.language)
        if request.on_text is not None:
            request.on_text(result.text)
        return result
