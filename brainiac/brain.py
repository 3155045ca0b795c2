"""`Brain`: an opened brain with its files, search, models and plugins, each created when first used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from brainiac.clock import SYSTEM, Clock, iso
from brainiac.errors import FormatError, PluginError, StorageError
from brainiac.events import Event, PluginFailed
from brainiac.formats.markdown import StmEvent
from brainiac.formats.prompt import Exchange, Prompt
from brainiac.host.plugins import PluginHost
from brainiac.library import Library, read_prompt
from brainiac.places import bundled_path
from brainiac.storage.statements import StatementLog
from brainiac.storage.withheld import Withheld

if TYPE_CHECKING:
    from brainiac.llm.gateway import Gateway
    from brainiac.search.search import Recall

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a command or door gives beside a prompt's file while it waits for the answer; it is in no file.

    Attributes:
        stream: Called with each piece of the answer while the model writes it; None for no streaming.
        earlier: Earlier exchanges of a conversation that the client keeps itself.
    """

    stream: Callable[[str], None] | None = None
    earlier: tuple[Exchange, ...] = ()


class Brain(Library):
    """An opened brain, as plugins and commands get it; the only class that knows all parts.

    Args:
        root: The brain's folder.
        clock: The only source of time.
        is_reading: Open it also while `system/config.yaml` is broken, with the last good settings.

    Raises:
        SettingsError: `system/config.yaml` does not validate.
    """

    def __init__(self, root: Path | str, *, clock: Clock = SYSTEM, is_reading: bool = False) -> None:
        super().__init__(root, clock=clock, is_reading=is_reading)
        self._states: dict[str, Any] = {}
        self._states_mutex = threading.RLock()
        # set by a daemon in this process: returns the changed files that it has not handled yet, or None where it gets
        # no events from the system and polls the tree
        self.unsettled: Callable[[], list[str] | None] | None = None
        self._turns: dict[str, Turn] = {}

    @cached_property
    def recall(self) -> Recall:
        """Search."""
        from brainiac.llm.completion import RemoteEmbedder  # with it comes numpy
        from brainiac.search.search import Recall

        return Recall(
            self.tree,
            self.places,
            self.settings,
            self.clock,
            remote=lambda model, machine: RemoteEmbedder(model, machine, lambda: self.models.ledger),
            withheld=lambda: Withheld(self),
            said_in=self._said_in,
            taken_in=lambda paths: self.answered.taken_in(paths),
            days_on=lambda: StatementLog(self).days_on,
        )

    def _said_in(self, path: str) -> StmEvent | None:
        """Return what memory will have of a prompt that waits, without secrets.

        None for one that is private or off the record, or cannot be read.
        """
        try:
            prompt = read_prompt(self, path)
        except (FormatError, OSError):  # `status` names it
            return None
        if prompt is None or prompt.private or not prompt.remember:
            return None
        from brainiac.llm.redaction import redact  # most searches meet no such prompt

        text = redact(self, prompt.text)
        return StmEvent("", prompt.at, text, origin=prompt.author.origin, by=prompt.author.by)

    @cached_property
    def models(self) -> Gateway:
        """The models, by purpose."""
        from brainiac.llm.gateway import Gateway  # commands that ask no model start without

        return Gateway(self)

    @cached_property
    def plugins(self) -> PluginHost:
        """The plugins, loaded."""
        host = PluginHost(self, bundled_path("plugins"), on_fault=self._record_plugin_failure)
        host.load()
        return host

    def state_of(self, plugin: str, make: Callable[[], T]) -> T:
        """Return a plugin's own state for this brain, kept in this process until the brain is closed.

        Args:
            plugin: Its name.
            make: Creates the state at the first call; threads that call at the same time get the same one.
        """
        with self._states_mutex:
            if plugin not in self._states:
                self._states[plugin] = make()
            state: T = self._states[plugin]
            return state

    @contextmanager
    def turn(self, path: str, turn: Turn) -> Iterator[None]:
        """Within this context, what a command or door gave with `turn` counts for the prompt at a path.

        Only where the prompt is answered in this process.
        """
        self._turns[path] = turn
        try:
            yield
        finally:
            self._turns.pop(path, None)

    def stream_of(self, path: str) -> Callable[[str], None] | None:
        """Return the function to call with each piece of the answer to the prompt at a path; None for no streaming."""
        return self._turns.get(path, Turn()).stream

    def conversation(self, prompt: Prompt) -> list[Exchange]:
        """Return the earlier exchanges of a prompt's conversation, oldest first; those of its `Turn` come first."""
        return [*self._turns.get(prompt.path, Turn()).earlier, *self.answered.earlier_exchanges(prompt)]

    def holds_secret(self, path: str, content: bytes) -> bool:
        """Return whether a text has a secret in it that the journal must not keep."""
        from brainiac.llm.redaction import holds_secret  # with it come the detectors of secrets

        return holds_secret(self, path, content)

    def call_hook(self, hook: str, /, **arguments: Any) -> list[Any]:
        """Call a hook of every plugin; see `PluginHost.call`."""
        return self.plugins.call(hook, **arguments)

    @property
    def is_watched(self) -> bool:
        """Whether a daemon in this process watches the brain."""
        return self.unsettled is not None

    def chain_hook(self, hook: str, argument: str, value: Any, /, **arguments: Any) -> Any:
        """Pass a value through a hook of every plugin in turn; see `PluginHost.chain`."""
        return self.plugins.chain(hook, argument, value, **arguments)

    def close(self) -> None:
        """Close search, journal and projection; the brain must not be used afterwards."""
        opened = self.__dict__.pop("recall", None)
        if opened is not None:
            opened.close()
        for state in self._states.values():
            if hasattr(state, "close"):  # a brain of former days that was opened beside it
                state.close()
        self._states.clear()
        super().close()

    def _announce(self, event: Event) -> None:
        """Give an event that was just recorded to search, which reads the changed files again, and to the listeners."""
        if "recall" in self.__dict__:  # search was opened; otherwise it looks for changed files when it is
            for change in event.changes:
                for path in filter(None, (change.path, change.source)):
                    self.recall.note_change(path)
        super()._announce(event)

    def _record_plugin_failure(self, plugin: str, hook: str, error: BaseException) -> None:
        """Log and record that a plugin's hook raised, and call the hook `plugin_failed`."""
        problem = error.problem if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        failed = PluginFailed(hook=hook, error=problem[:500])
        # each command loads the plugins: a file that cannot be loaded is reported once a day, not each time
        since = iso(self.clock.now() - timedelta(days=1))
        recent = self.journal.events(kinds={PluginFailed}, reverse=True, since=since) if hook == "load" else ()
        if any(event.by == plugin and event.what == failed for event in recent):
            return
        self.log.warning("plugin_failed", plugin=plugin, hook=hook, error=problem, exc_info=error)
        with suppress(StorageError):  # it is in the log
            self.record(failed, by=plugin)
        if hook not in ("plugin_failed", "event_recorded", "load"):  # no loops
            self.plugins.call("plugin_failed", brain=self, plugin=plugin, hook=hook, error=error)
