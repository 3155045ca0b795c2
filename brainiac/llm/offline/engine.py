"""Which function serves which purpose (design 8); each is imported with its first request."""

from __future__ import annotations

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
                from brainiac.llm.offline.querying import write_queries

                return write_queries(request, self.language)
            case AnswerRequest():
                return self._answer(request)
            case ReflectRequest():
                from brainiac.llm.offline.reflecting import reflect

                return reflect(request, self.language)
            case AnalyzeRequest():
                from brainiac.llm.offline.analyzing import analyze

                return analyze(request, self.language)
            case IntegrateRequest():
                from brainiac.integration.operations import decide

                return decide(request)
            case SynthesizeRequest():
                from brainiac.llm.offline.filing import synthesize

                return synthesize(request, self.language)
            case SummarizeRequest():
                from brainiac.llm.offline.condensing import summarize

                return summarize(request)
            case OrganizeRequest():
                from brainiac.llm.offline.organizing import organize

                return organize(request)
        raise TypeError(f"{type(request).__name__} is none of the eight purposes")

    def _answer(self, request: AnswerRequest) -> Result:
        from brainiac.llm.offline.answering import answer

        result = answer(request, self.language)
        if request.on_text is not None:
            request.on_text(result.text)
        return result
