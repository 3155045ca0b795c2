"""The gateway: the one way to every model; it picks the engine for a request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from brainiac.errors import ModelError
from brainiac.formats.discretion import is_private_event
from brainiac.formats.page import shareable_text
from brainiac.library import Library
from brainiac.llm import schemas
from brainiac.llm.catalog import FREE, Price, endpoint_of
from brainiac.llm.context.assembler import Assembler
from brainiac.llm.context.blocks import Stability, WorkingMemory
from brainiac.llm.context.memory import focus_blocks
from brainiac.llm.costs import Ledger
from brainiac.llm.gate import Gate, is_private_request, is_through_door
from brainiac.llm.litellm_engine import LiteLLMEngine
from brainiac.llm.offline import OfflineEngine

_NO_LIMIT = 1_000_000  # tokens, of blocks that are only compared


class Gateway:
    """Serves requests by the engine that the settings name for their purpose.

    Args:
        library: The memory; its settings are read for every request, so that a change counts for the next one.

    Thread-safe.

    Attributes:
        ledger: The account of what calls cost, one for all engines.
        instead: The model that serves a purpose in this process, in place of that of the settings; by purpose.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self.ledger = Ledger(library)
        self.instead: dict[schemas.Purpose, str] = {}
        # Engines live as long as the brain is open: they remember how to begin a request like the one before it.
        self._mutex = threading.Lock()
        self._engines: dict[str, schemas.Engine] = {schemas.OFFLINE: OfflineEngine()}
        self._factories: dict[str, Callable[[Library], schemas.Engine]] | None = None

    def run(self, request: schemas.Request) -> schemas.Result:
        """Serve one request with a result of type `request.result`.

        A private request never goes to a remote engine: the offline engine serves it, and the answer's
        `model` says so.

        Raises:
            ModelError: The call failed; `retryable` says whether waiting helps. No other engine is tried.
        """
        engine = self.engine_for(request)
        is_ours = isinstance(engine, OfflineEngine | LiteLLMEngine)
        result = engine.run(request) if is_ours else self._run_of_plugin(engine, request)
        if not isinstance(result, request.result):
            raise ModelError(
                f"The engine `{engine.name}` answered with {type(result).__name__}, not {request.result.__name__}.",
                advice="This is a fault of the plugin that registered it.",
            )
        if isinstance(result, schemas.Answer) and not result.model:
            return result.model_copy(update={"model": engine.name})
        return result

    def _run_of_plugin(self, engine: schemas.Engine, request: schemas.Request) -> schemas.Result:
        """Have an engine of a plugin serve a request that has passed the gate."""
        gate = Gate(self._library, is_remote=engine.is_remote, is_door=is_through_door(request))
        result = engine.run(gate.admit(request))
        if not isinstance(result, schemas.Answer) or not isinstance(request, schemas.AnswerRequest):
            return result
        # the engine may have seen a shorter list of hits: its third may be the caller's fifth
        shown, known = gate.hits(request.hits), [(hit.path, hit.anchor, hit.text) for hit in request.hits]
        cited = [shown[index] for index in result.cited if 0 <= index < len(shown)]
        return result.model_copy(update={"cited": [known.index((hit.path, hit.anchor, hit.text)) for hit in cited]})

    def working_memory(
        self,
        request: schemas.Request,
        *,
        gate: Gate | None = None,
        budget_tokens: int | None = None,
        left_out: Collection[Stability] = (),
    ) -> WorkingMemory:
        """Return the working memory of one request as the model that would serve it sees it; tools left out.

        Args:
            request: The values to show.
            gate: What may be shown; None for the gate of the model that would serve.
            budget_tokens: A smaller budget than the settings' and the model's.
            left_out: Kinds of blocks to leave out.
        """
        engine = self.engine_for(request)
        gate = gate or Gate(self._library, is_remote=engine.is_remote, is_door=is_through_door(request))
        assembler = Assembler(self._library)
        return assembler.assemble(request, model=engine.name, gate=gate, budget_tokens=budget_tokens, left_out=left_out)

    def engine_for(self, request: schemas.Request) -> schemas.Engine:
        """Return the engine for a request: that of the prompt's `model`, else of the purpose, else the default.

        That of the purpose is the one in `instead`, else in the settings. Where the engine is remote and the request
        private, the offline engine takes its place.
        """
        settings = self._library.settings.llm
        of_prompt = (
            request.prompt.model if isinstance(request, schemas.AnswerRequest | schemas.QueriesRequest) else None
        )
        of_purpose = self.instead.get(request.purpose) or settings.models.get(request.purpose.value)
        engine = self._engine(of_prompt or of_purpose or settings.model)
        return (
            self._engine(schemas.OFFLINE) if engine.is_remote and is_private_request(self._library, request) else engine
        )

    def price_of(self, request: schemas.Request) -> Price:
        """Return the price of the engine for a request; the offline engine and those of plugins count as free.

        Raises:
            ModelError: No price is known, or there is no key.
        """
        engine = self.engine_for(request)
        if not isinstance(engine, LiteLLMEngine):
            return FREE
        return self.ledger.price_of(endpoint_of(engine.name, self._library.machine))

    def rests_on_private(self, request: schemas.AnswerRequest, answer: schemas.Answer) -> bool:
        """Return whether an answer made on this machine may repeat something private, and so is private too (F-RSP-4).

        A model may repeat anything it was shown; the offline engine repeats only the hits that it cites.
        """
        library, engine = self._library, self.engine_for(request)
        if engine.is_remote or is_through_door(request):
            return False  # it was shown nothing private
        remote_gate = Gate(library, is_remote=True)
        hits = [request.hits[number] for number in answer.cited] if engine.name == schemas.OFFLINE else request.hits
        # a hit from which the remote gate cuts a line counts as hidden too
        is_any_hidden = remote_gate.hits(hits) != list(hits)
        if is_any_hidden or engine.name == schemas.OFFLINE:
            return is_any_hidden
        memory = request.short_term
        if memory.is_private or any(map(is_private_event, memory.events)):
            return True
        if any(turn.is_private for turn in request.conversation):
            return True
        # short-term memory was checked above
        pages = {*answer.read, *answer.cited_paths} - {library.tree.relative(library.tree.short_term)}
        if any(shareable_text(text) != text for path in pages if (text := library.read_text(path))):
            return True
        # a private note in the prompt's focus was shown only to a model on this machine
        gates = (remote_gate, Gate(library, is_remote=False))
        shareable, whole = (focus_blocks(library, request.prompt, _NO_LIMIT, len, gate) for gate in gates)
        return shareable != whole

    def _engine(self, name: str) -> schemas.Engine:
        """Return the engine of a model, made when first asked for: the offline one, a plugin's, or one by litellm."""
        with self._mutex:
            if name not in self._engines:
                if self._factories is None:
                    # plugins are asked once, and not at all in a brain that only uses the offline engine
                    self._factories = {}
                    self._library.call_hook("register_models", register=self._factories.__setitem__)
                factory = self._factories.get(name)
                engine = factory(self._library) if factory else LiteLLMEngine(self._library, name, self.ledger)
                self._engines[name] = engine
            return self._engines[name]
