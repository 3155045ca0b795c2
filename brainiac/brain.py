"""A brain opened: its places, its journal, its models and its recall, each made when first needed."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from brainiac.clock import SYSTEM, Clock, day_in
from brainiac.errors import StorageError, storage_trouble
from brainiac.events import Change, Event
from brainiac.settings import MachineSettings, Settings, SettingsFile
from brainiac.tree import LocalPlaces, Tree

if TYPE_CHECKING:
    from brainiac.kernel.commit import Committer
    from brainiac.kernel.journal import Journal
    from brainiac.kernel.observed import Observed
    from brainiac.llm.gateway import Gateway
    from brainiac.notes.prompt import Exchange, Prompt
    from brainiac.notes.short_term import ShortTermDocument
    from brainiac.pipeline.answered import Answered
    from brainiac.plugins import PluginHost
    from brainiac.recall import Recall
    from brainiac.recall.index import Index


class Brain:
    """What plugins and commands work with.

    Args:
        root: The brain's folder.
        clock: The only source of time.
        is_reading: Open it also while `system/config.yaml` is broken, with the last good settings.

    Raises:
        SettingsError: `system/config.yaml` does not validate.
    """

    def __init__(self, root: Path | str, *, clock: Clock = SYSTEM, is_reading: bool = False) -> None:
        self.clock = clock
        self._settings_file = SettingsFile(Path(root) / "system" / "config.yaml", Settings)
        settings = self._first_settings(Path(root), is_reading)
        self.tree = Tree(root, settings.layout())
        self._settings_file.path = self.tree.config
        self.places = LocalPlaces.of(self.tree.root, settings.brain_id)
        self._machine_file = SettingsFile(self.places.config, MachineSettings)
        self.stream_to: Callable[[str], None] | None = None  # who wants an answer's text as it comes
        self.before_commit: Callable[[], None] | None = None  # raises where this process must change nothing any more
        self._listeners: list[Callable[[Event], None]] = []
        self._mutex = threading.RLock()

    def _first_settings(self, root: Path, is_reading: bool) -> Settings:
        from brainiac.errors import SettingsError

        try:
            return self._settings_file.read()
        except SettingsError:
            if not is_reading:
                raise
            from brainiac.fallback import last_good

            self._settings_file.fall_back(last_good(root, self._settings_file.path))
            return self._settings_file.last

    @property
    def root(self) -> Path:
        """The brain's folder, absolute."""
        return self.tree.root

    @property
    def settings(self) -> Settings:
        """The settings as they stand now; while the file is broken, the last good ones (`status` says so)."""
        from brainiac.errors import SettingsError

        try:
            return self._settings_file.read()
        except SettingsError:
            return self._settings_file.last

    def check_settings(self) -> Settings:
        """Return the settings, or raise what is wrong with the file (`SettingsError`)."""
        return self._settings_file.read()

    @property
    def zone(self) -> ZoneInfo:
        """The person's time zone: files hold UTC, what a person is shown is theirs."""
        return ZoneInfo(self.settings.time_zone)

    def now(self) -> datetime:
        """Return the present moment in the person's time zone."""
        return self.clock.now().astimezone(self.zone)

    def midnight(self, days: int = 0) -> datetime:
        """Return when the person's day begins, today's or that of so many days later."""
        return datetime.combine(self.now().date() + timedelta(days=days), time.min, self.zone)

    def day_of(self, at: str) -> str:
        """Return the person's day of a moment as `2025-09-16`; what is no moment gives its beginning."""
        return day_in(self.zone, at)

    @property
    def machine(self) -> MachineSettings:
        """This machine's own settings."""
        return self._machine_file.read()

    @cached_property
    def journal(self) -> Journal:
        """The journal of what happened."""
        from brainiac.kernel.journal import Journal

        return Journal(self.tree, self.places)

    @cached_property
    def observed(self) -> Observed:
        """What each tracked file was when last seen."""
        from brainiac.kernel.observed import Observed

        return Observed(self.tree, self.journal, self.clock, self.committer)

    @cached_property
    def committer(self) -> Committer:
        """The one way to change the tree."""
        from brainiac.kernel.commit import Committer
        from brainiac.redaction import holds_secret

        return Committer(
            self.tree,
            self.places,
            self.journal,
            self.clock,
            tell=self._announce,
            holds_secret=lambda path, content: holds_secret(self, path, content),
        )

    @cached_property
    def answered(self) -> Answered:
        """Which prompts have been answered, and by which file."""
        from brainiac.pipeline.answered import Answered

        return Answered(self)

    @cached_property
    def recall(self) -> Recall:
        """Search."""
        from brainiac.history.forget_words import muted
        from brainiac.recall import Recall

        name = self.settings.recall.index
        open_index = None if name == "embedded" else lambda: self._registered_index(name)
        return Recall(
            self.tree,
            self.places,
            self.settings,
            self.clock,
            open_index,
            lambda: self.models.ledger,
            lambda: muted(self),
        )

    @cached_property
    def models(self) -> Gateway:
        """The models, by purpose."""
        from brainiac.llm.gateway import Gateway

        return Gateway(self)

    @cached_property
    def plugins(self) -> PluginHost:
        """The plugins, loaded."""
        from brainiac.plugins import PluginHost
        from brainiac.sources import bundled

        host = PluginHost(self, bundled("plugins"), on_fault=self._plugin_failed)
        host.load()
        return host

    @cached_property
    def log(self) -> Any:
        """A structlog logger."""
        from brainiac.logs import logger

        return logger()

    def short_term(self) -> ShortTermDocument:
        """Return short-term memory as it stands; an absent file reads as an empty one.

        Raises:
            FormatError: It lacks a heading.
        """
        from brainiac.notes.short_term import EMPTY, document_of

        text = self.read_text(self.tree.short_term)
        return document_of(EMPTY if text is None else text)

    def short_term_lock(self) -> AbstractContextManager[None]:
        """Hold short-term memory against every other writer of ours, in all processes of this machine."""
        from brainiac.kernel.locks import locked

        return locked(self.places.state / "short_term.lock")

    def conversation(self, prompt: Prompt) -> list[Exchange]:
        """Return the earlier exchanges of a prompt's conversation, oldest first."""
        from brainiac.conversations import earlier

        return earlier(self, prompt)

    def commit_lock(self) -> AbstractContextManager[None]:
        """Hold the commit lock: nobody else writes between a look and the commit that rests on it."""
        return self.committer.held()

    def commit(
        self,
        kind: str,
        *,
        by: str,
        changes: Sequence[Change] = (),
        data: Mapping[str, Any] | None = None,
        cause: str | None = None,
        expect: Mapping[str, str | None] | None = None,
    ) -> Event:
        """Change the tree and record it, wholly or not at all.

        Args:
            kind: The event, past tense with hyphens.
            by: Who does it.
            changes: Made with `brainiac.events.create`, `update`, ...; each holds what it was decided on.
            data: Plain JSON values.
            cause: Id of the event that led here.
            expect: Further files the decision rested on: path to content hash, None for "must not exist".

        Raises:
            ConflictError: A file moved meanwhile; nothing was changed.
            StorageError: The disk refuses for now.
        """
        if changes and self.before_commit:
            self.before_commit()
        with storage_trouble():
            return self.committer.commit(kind, by=by, changes=changes, data=data, cause=cause, expect=expect)

    def record(self, kind: str, *, by: str, data: Mapping[str, Any] | None = None, cause: str | None = None) -> Event:
        """Record an event that changes no file."""
        return self.commit(kind, by=by, data=data, cause=cause)

    def on_event(self, listener: Callable[[Event], None]) -> None:
        """Call a function with every event recorded from now on, in the thread that records it."""
        self._listeners.append(listener)

    def read(self, path: str | Path) -> bytes | None:
        """Return a file's bytes; None where there is no regular file.

        Raises:
            ConfinementError: The path leaves the brain.
        """
        from brainiac.kernel.exchange import read_bytes

        return read_bytes(self.tree.confine(path))

    def read_text(self, path: str | Path) -> str | None:
        """Return a file's text with undecodable bytes kept as surrogates; None where there is no regular file."""
        content = self.read(path)
        return None if content is None else content.decode("utf-8", "surrogateescape")

    def read_page(self, path: str) -> str | None:
        """Return the text of a page that may be changed; None where nothing stands.

        Raises:
            FormatError: Something else stands there, or it cannot be read; whoever meets it goes on without it.
        """
        from brainiac.errors import ConfinementError, FormatError
        from brainiac.kernel.exchange import read_bytes

        try:
            file = self.tree.confine(path)
            content = read_bytes(file) if stat.S_ISREG(os.lstat(file).st_mode) else None
            if content is None:
                raise FormatError(path, "is no file of its own but a link, a folder or a device; put a file there")
            return content.decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ConfinementError, OSError) as error:
            raise FormatError(path, f"cannot be read ({error}); it is left as it is") from error
        except UnicodeDecodeError as error:
            raise FormatError(path, f"is not UTF-8 (from byte {error.start} on); save it as UTF-8") from error

    def close(self) -> None:
        """Release what was opened; the brain must not be used afterwards."""
        for name in ("recall", "committer"):
            opened = self.__dict__.pop(name, None)
            if opened is not None:
                opened.close()

    def _announce(self, event: Event) -> None:
        if "recall" in self.__dict__:
            for change in event.changes:
                for path in filter(None, (change.path, change.source)):
                    self.recall.note_change(path)
        for listener in self._listeners:
            listener(event)

    def _registered_index(self, name: str) -> Index:
        from brainiac.recall.index import UnusableIndexError

        factories: dict[str, Callable[[Brain], Index]] = {}
        self.plugins.call("register_indexes", register=factories.__setitem__)
        if name not in factories:
            todo = "install and trust the plugin that does, or set `recall.index: embedded`"
            raise UnusableIndexError(f"recall.index: no plugin registers `{name}`; {todo}")
        return factories[name](self)

    def _plugin_failed(self, plugin: str, hook: str, error: BaseException) -> None:
        self.log.warning("plugin_failed", plugin=plugin, hook=hook, error=repr(error), exc_info=error)
        data = {"hook": hook, "error": f"{type(error).__name__}: {error}"[:500]}
        with suppress(StorageError):  # it is in the log
            self.record("plugin-failed", by=plugin, data=data)
        if hook not in ("plugin_failed", "event_recorded", "load"):  # no loops
            self.plugins.call("plugin_failed", brain=self, plugin=plugin, hook=hook, error=error)
