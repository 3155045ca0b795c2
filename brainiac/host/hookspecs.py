"""The hooks: everything a plugin can react to or add. A hook goes only with its whole mechanism.

Implement any of them as a function marked `@brainiac.hookimpl` in a file in `plugins/`, taking only the
arguments you need, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:  # some are heavy, and whoever only lists the plugins needs none
    from brainiac.events import Event, FileChange
    from brainiac.formats.page import Memory
    from brainiac.formats.prompt import Exchange, Prompt
    from brainiac.llm.context.blocks import Block
    from brainiac.llm.schemas import Engine, Request
    from brainiac.search.documents import Hit

hookspec = pluggy.HookspecMarker("brainiac")
hookimpl = pluggy.HookimplMarker("brainiac")


Brain = Any  # brainiac.brain.Brain, which stands above this module: it loads what implements these


@hookspec
def startup(brain: Brain) -> None:
    """The daemon has adopted the tree and is about to watch it."""


@hookspec
def shutdown(brain: Brain) -> None:
    """The daemon is about to stop; a few seconds are given."""


@hookspec
def prompt_arrived(brain: Brain, prompt: Prompt) -> None:
    """A prompt in `inbox/` is ready and unanswered. Foreground; in order within a conversation."""


@hookspec
def response_arrived(brain: Brain, exchange: Exchange) -> None:
    """An answer stands beside its prompt, whoever wrote it, or a note was captured. Near-background; in order."""


@hookspec
def quiet(brain: Brain, idle_seconds: float) -> None:
    """Nobody has exchanged anything for a while; called again now and then. Far-background."""


@hookspec
def quiet_on_any_device(brain: Brain, idle_seconds: float) -> None:
    """As `quiet`, and also on a device that leaves the processes to another one: for plugins that sync. Far-background.

    It must not change memory: two devices would do the same.
    """


@hookspec
def memory_created(brain: Brain, path: str, memory: Memory) -> None:
    """A memory appeared in `memory/long_term/`. Near-background."""


@hookspec
def memory_modified(brain: Brain, path: str, memory: Memory) -> None:
    """A memory's text changed. Near-background."""


@hookspec
def memory_moved(brain: Brain, path: str, old_path: str, memory: Memory) -> None:
    """A memory has another path. Near-background."""


@hookspec
def memory_deleted(brain: Brain, path: str) -> None:
    """A memory is gone. Near-background."""


@hookspec
def file_changed(brain: Brain, change: FileChange) -> None:
    """Any file of the tree settled after a change, the access log too; ignored names excepted. Near-background."""


@hookspec
def event_recorded(brain: Brain, event: Event) -> None:
    """The journal took an event. Near-background; must not commit for every event it hears of."""


@hookspec
def plugin_failed(brain: Brain, plugin: str, hook: str, error: BaseException) -> None:
    """A plugin raised, tried to exit, or hung."""


@hookspec
def register_models(register: Callable[[str, Callable[[Brain], Engine]], None]) -> None:
    """Add an engine: `register("name", factory)`; `llm.model: name` then selects it."""


@hookspec
def register_commands(cli: Any) -> None:
    """Add commands to the Typer application."""


@hookspec
def retrieve(brain: Brain, query: str, limit: int) -> Sequence[Hit] | None:
    """Return memories found by other means; they are merged with those of the index by score, a log-likelihood.

    A model is not shown what is far behind the best of them.
    """


@hookspec
def rerank(brain: Brain, query: str, hits: Sequence[Hit]) -> Sequence[Hit] | None:
    """Return the hits in another order, each plugin that of the one before it; None leaves them as they are."""


@hookspec
def context_blocks(brain: Brain, request: Request) -> Sequence[Block] | None:
    """Return blocks to be added to working memory; each is placed by its stability."""


@hookspec
def redact(brain: Brain, text: str) -> str | None:
    """Return a text without what must not be remembered; each plugin gets the result of the one before it."""
