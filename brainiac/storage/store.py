"""`Store`: a brain's files and journal; most parts of the program need no more than this.

`brainiac.library` adds search to it, `brainiac.brain` models and plugins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from brainiac.clock import SYSTEM, Clock, day_in, iso
from brainiac.errors import ConflictError, SettingsError, storage_trouble
from brainiac.events import Change, Event, EventData, PluginEvent
from brainiac.formats.markdown import decode_text
from brainiac.formats.prompt import Prompt
from brainiac.formats.short_term import EMPTY, ShortTermDocument, document_of
from brainiac.places import LocalPlaces, id_in
from brainiac.settings import MachineSettings, Settings, SettingsFile, take_retired
from brainiac.storage.commit import Committer
from brainiac.storage.database import StateDatabase, read_run_state
from brainiac.storage.external_edits import ExternalEdits
from brainiac.storage.files import locked, read_bytes
from brainiac.storage.journal import Journal
from brainiac.storage.pages import PageSet, find_sources, page_text
from brainiac.storage.projection import Projection
from brainiac.terminal import logger
from brainiac.tree import Tree

T = TypeVar("T")
ATTEMPTS = 20  # an attempt fails only if somebody else writes one of the files in the same few milliseconds


class Store:
    """The files of a brain, and the one way to change them.

    Args:
        root: The brain's folder.
        clock: The only source of time.
        is_reading: Open the brain also while `system/config.yaml` is broken, with the last valid settings.

    Raises:
        SettingsError: `system/config.yaml` does not validate.
    """

    def __init__(self, root: Path | str, *, clock: Clock = SYSTEM, is_reading: bool = False) -> None:
        self.clock = clock
        self._settings_file = SettingsFile(Path(root) / "system" / "config.yaml", Settings)
        try:
            settings = self._settings_file.read()
        except SettingsError:
            if not is_reading:
                raise
            self._settings_file.fall_back(_last_valid_settings(Path(root), self._settings_file.path))
            settings = self._settings_file.last
        self.tree = Tree(root, settings.layout())
        self._settings_file.path = self.tree.config  # the same file, with links resolved
        self.places = LocalPlaces.of(self.tree.root, settings.brain_id)
        self.refresh_sources()
        self._machine_file = SettingsFile(self.places.config, MachineSettings)
        self._listeners: list[Callable[[Event], None]] = []
        self._pages: PageSet | None = None  # the last returned set, of which unchanged pages are reused

    @property
    def root(self) -> Path:
        """The brain's folder, absolute."""
        return self.tree.root

    @property
    def present(self) -> Store:
        """The brain as it stands now, which says what is hidden: another one of memory as it stood (`as_of.py`)."""
        return self

    @property
    def settings(self) -> Settings:
        """The present settings; while the file is broken, the last valid ones (`status` says so)."""
        try:
            return self._settings_file.read()
        except SettingsError:
            return self._settings_file.last

    def check_settings(self) -> Settings:
        """Return the settings, or raise what is wrong with the file (`SettingsError`)."""
        return self._settings_file.read()

    def refresh_sources(self) -> bool:
        """Update the tree's sources from the settings and from the list of folders that this machine allows.

        Returns:
            Whether they changed.
        """
        sources = find_sources(self.root, self.settings.sources, self.places.state)
        folders = [source.folder for source in sources if not source.problem]
        if folders == list(self.tree.sources):
            return False
        self.tree.set_sources(folders)
        return True

    @property
    def zone(self) -> ZoneInfo:
        """The person's time zone; files have UTC, and output to the person is in this zone."""
        return ZoneInfo(self.settings.time_zone)

    def now(self) -> datetime:
        """Return the present moment in the person's time zone."""
        return self.clock.now().astimezone(self.zone)

    def midnight(self, days: int = 0) -> datetime:
        """Return the moment at which the person's day begins, `days` days after today."""
        return datetime.combine(self.now().date() + timedelta(days=days), time.min, self.zone)

    def day_of(self, at: str) -> str:
        """Return the person's day of an ISO time as `2025-09-16`; of any other text its first ten characters."""
        return day_in(self.zone, at)

    @property
    def machine(self) -> MachineSettings:
        """This machine's own settings."""
        return self._machine_file.read()

    @cached_property
    def journal(self) -> Journal:
        """The journal of what happened."""
        return Journal(self.tree, self.places)

    @cached_property
    def database(self) -> StateDatabase:
        """What this machine alone keeps of the brain."""
        return StateDatabase(self.places)

    @cached_property
    def projection(self) -> Projection:
        """The projection of all devices' journals, for queries."""
        return Projection(self.database, self.tree, self.journal)

    @property
    def observed(self) -> ExternalEdits:
        """Detects and records edits of tracked files by comparing them with their last seen states."""
        return self.committer.edits

    @cached_property
    def committer(self) -> Committer:
        """The one way to change the tree."""
        return Committer(
            self.tree,
            self.places,
            self.journal,
            self.clock,
            announce=self._announce,
            holds_secret=self.holds_secret,
            database=self.database,
        )

    @cached_property
    def log(self) -> Any:
        """A structlog logger."""
        return logger()

    def short_term(self) -> ShortTermDocument:
        """Return the present short-term memory; an empty one where there is no file.

        Raises:
            FormatError: It lacks a heading.
        """
        text = self.read_text(self.tree.short_term)
        return document_of(EMPTY if text is None else text)

    def short_term_lock(self) -> AbstractContextManager[None]:
        """Return the lock that all Brainiac processes of this machine hold while they write short-term memory."""
        return locked(self.places.state / "short_term.lock")

    def retry(self, attempt: Callable[[], T]) -> T:
        """Return the result of `attempt`; call it again while its commit fails because a file changed meanwhile.

        Args:
            attempt: Reads the tree, decides and commits.

        Raises:
            ConflictError: A file changed during each of 20 attempts.
        """
        # the last attempt is outside, so that its error reaches the caller
        for _ in range(ATTEMPTS - 1):
            with suppress(ConflictError):
                return attempt()
        return attempt()

    def commit_lock(self) -> AbstractContextManager[None]:
        """Return the commit lock; while it is held, no other process commits."""
        return self.committer.commit_lock()

    def commit(
        self,
        event: EventData | PluginEvent | str,
        *,
        by: str,
        changes: Sequence[Change] = (),
        data: Mapping[str, Any] | None = None,
        cause: str | None = None,
        expect: Mapping[str, str | None] | None = None,
    ) -> Event:
        """Change the tree and record it, wholly or not at all.

        Args:
            event: What happens; a plugin may give its own kind by name, past tense with hyphens.
            by: Who does it.
            changes: Made with `brainiac.events.create`, `update`, ...; each has the content on which it was decided.
            data: Plain JSON values of a plugin's own kind.
            cause: Id of the event that led here.
            expect: Further files the decision rested on: path to content hash, None for "must not exist".

        Raises:
            ConflictError: A file changed since the decision; nothing was written.
            StorageError: The disk is full or cannot be written.
        """
        with storage_trouble():
            return self.committer.commit(event, by=by, changes=changes, data=data, cause=cause, expect=expect)

    def save(self, path: str, base: str, text: str) -> bool:
        """Write a file as a person changed it; see `Committer.save`.

        Args:
            path: The file, relative.
            base: Hash of the version that they had loaded.
            text: The whole file as they want it.

        Raises:
            ConflictError: Somebody keeps saving the file.
            StorageError: The disk is full or cannot be written.
        """
        content = text.encode("utf-8", "surrogateescape")
        with storage_trouble():
            return self.retry(lambda: self.committer.save(path, base, content))

    def record(
        self,
        event: EventData | PluginEvent | str,
        *,
        by: str,
        data: Mapping[str, Any] | None = None,
        cause: str | None = None,
    ) -> Event:
        """Record an event that changes no file."""
        return self.commit(event, by=by, data=data, cause=cause)

    def on_event(self, listener: Callable[[Event], None]) -> None:
        """Call a function with every event recorded from now on, in the thread that records it."""
        self._listeners.append(listener)

    def read(self, path: str | Path) -> bytes | None:
        """Return a file's bytes; None where there is no regular file.

        Raises:
            ConfinementError: The path is outside the brain and in no source.
        """
        return read_bytes(self.tree.readable(path))

    def read_text(self, path: str | Path) -> str | None:
        """Return a file's text with undecodable bytes kept as surrogates; None where there is no regular file."""
        content = self.read(path)
        return None if content is None else decode_text(content)

    def written_at(self, path: str) -> str:
        """Return the ISO 8601 UTC moment of a file's last change; the present one where there is no file."""
        try:
            return iso(datetime.fromtimestamp(os.stat(self.tree.confine(path)).st_mtime, UTC))
        except OSError:
            return iso(self.clock.now())

    def kept_text(self, digest: str | None) -> str | None:
        """Return a text that the journal keeps, by its content hash; None where it was never kept or is purged.

        Args:
            digest: The hash; None gives None.
        """
        content = self.committer.kept_text(digest)
        return None if content is None else decode_text(content)

    def read_page(self, path: str) -> str | None:
        """Return the text of a page that may be changed; None where there is no file.

        Raises:
            FormatError: It is no regular file or cannot be read; callers go on without the page.
        """
        return page_text(self.tree, path)

    def pages(self, only: Iterable[str] | None = None) -> PageSet:
        """Return memory pages as they are now; pages unchanged since the last call are not read again.

        Args:
            only: The paths of those that are meant; None for all.
        """
        # a new set each time: another caller may still use the former one, which never changes
        pages = PageSet(self.tree, self._pages, only)
        if only is None or self._pages is None:
            self._pages = pages
        return pages

    def holds_secret(self, path: str, content: bytes) -> bool:
        """Return whether a text at a path has a secret in it; always False here, `Brain` overrides it."""
        return False

    def call_hook(self, hook: str, /, **arguments: Any) -> list[Any]:
        """Call a plugin hook; always [] here, `Brain` overrides it."""
        return []

    def chain_hook(self, hook: str, argument: str, value: Any, /, **arguments: Any) -> Any:
        """Pass a value through a hook of each plugin in turn; returned unchanged here, `Brain` overrides it."""
        return value

    @cached_property
    def git(self) -> Path | None:
        """Git's own folder of the repository that the brain is in; None outside of any."""
        return git_folder(self.root)

    @property
    def git_operation(self) -> str:
        """The operation that git has begun and not finished in this folder, such as "merge"; "" for none."""
        git = self.git
        return next((name for file, name in _OPERATIONS.items() if (git / file).exists()), "") if git else ""

    @property
    def waits_for(self) -> str:
        """A sentence for a person why this device must not run the processes now; "" where it is to run them."""
        active = self.settings.active_device
        if active not in (None, self.journal.device):
            return f"{active} runs the processes of this brain; `brainiac takeover` makes it this device"
        if active is None and (elder := self._elder_device()):
            return f"{elder} answers in this brain too, and did so first; `brainiac takeover` makes it this device"
        if operation := self.git_operation:
            return f"git is in the middle of a {operation} in this folder; finish it (`git status` says how)"
        return ""

    @property
    def is_active(self) -> bool:
        """Whether this device is to run the processes now."""
        return not self.waits_for

    def answers_here(self, prompt: Prompt) -> bool:
        """Return whether this device is to answer a prompt.

        A prompt with a `device` is answered by that one; any other by the device that runs the processes.
        """
        return prompt.device == self.journal.device or (self.is_active and not prompt.device)

    def _elder_device(self) -> str:
        """Return another device that is to run the processes where the settings name none; always "" here.

        `Library` overrides it.
        """
        return ""

    def close(self) -> None:
        """Close the open files; the store must not be used afterwards."""
        # cached properties: what was never used must not be opened to be closed
        for name in ("committer", "database"):
            if part := self.__dict__.pop(name, None):
                part.close()
        self.__dict__.pop("projection", None)

    def _announce(self, event: Event) -> None:
        """Give an event that was just recorded to the projection and to the listeners."""
        # before the listeners, which query it; a projection that nobody used yet will read the event from the journal
        if "projection" in self.__dict__:
            self.projection.follow_own()
        for listener in self._listeners:
            listener(event)


# files that git has in its folder during an operation, with the operation's name
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


def git_folder(root: Path) -> Path | None:
    """Return git's own folder (`.git`) of the repository that a folder is in; None where it is in none."""
    for folder in (root, *root.parents):
        path = folder / ".git"
        if path.is_dir():
            return path
        with suppress(OSError, UnicodeDecodeError):  # a worktree or a submodule has a file with the folder's path
            text = path.read_text("utf-8").strip()
            if text.startswith("gitdir: "):
                return folder / text.removeprefix("gitdir: ")
    return None


def _last_valid_settings(root: Path, config: Path) -> Settings:
    """Return the last valid settings that a daemon of this machine used, else the defaults.

    Args:
        root: The brain's folder.
        config: Its broken settings file; only the line with the brain's id is read from it.
    """
    brain_id = id_in(config)
    with closing(StateDatabase(LocalPlaces.of(root, brain_id))) as database:
        settings = {**read_run_state(database).settings, "brain_id": brain_id}
    take_retired(settings, Settings)
    try:
        return Settings.model_validate_json(json.dumps(settings))
    except ValidationError:  # of a newer version
        return Settings(brain_id=brain_id)
