"""What is put in order between organizations: links after a move by hand, new notes, manifests, settled reviews."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice

from brainiac.brain import Brain
from brainiac.clock import parse_iso
from brainiac.errors import BlobError, ConflictError, FormatError, ModelError
from brainiac.events import FileChange, MemoryOrganized, NoteDeleted, NotesDeleted, PathKind, kinds_of
from brainiac.history.forget_words import ask_about_deleted

from .arrivals import complete
from .catalog import Catalog
from .healing import heal_all, heal_move
from .indexes import derive_manifests
from .past import read_past
from .run import Outcome, organize
from .verdicts import settle_reviews, tidy_review

RETRY_SECONDS = 600.0  # after a run that failed; the model that failed is left in peace
CALM_SECONDS = 30.0  # a log that grew is looked at only when nobody exchanged anything for so long
DELETIONS = kinds_of(NoteDeleted, NotesDeleted)
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED, PathKind.INDEX_PAGE})


class Upkeep:
    """What one running brain still has to put in order; at first everything is looked at.

    Args:
        brain: The brain.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._is_first = True
        self._arrived: set[str] = set()
        self._folders: set[str] = set()
        self._are_links_due = False
        self._failed_at: datetime | None = None
        last = next(brain.journal.events(kinds={MemoryOrganized}, reverse=True), None)
        self._started_at = brain.clock.now()
        self._last_at = parse_iso(last.at) if last else None

    # --- what is heard ----------------------------------------------------------------------------------

    def note_page(self, path: str) -> None:
        """Take note of a memory that was made, changed, moved or removed, whoever did it."""
        self._folders.add(posixpath.dirname(path))

    def note_change(self, change: FileChange) -> None:
        """Take note of what a person did; a move has its links healed at once, a tick is obeyed at once."""
        if change.kind is PathKind.REVIEW:
            settle_reviews(self._brain)
            return
        if change.kind not in _PAGES:
            return
        self.note_page(change.path)
        if change.kind is PathKind.INDEX_PAGE:
            self.note_page(posixpath.dirname(change.path))
        if change.old_path is not None:
            self.note_page(change.old_path)
            self._heal(change.old_path, change.path)
        elif change.action == "deleted":
            self._ask_about(change)
        else:
            self._arrived.add(change.path)
            self._are_links_due = True  # it may be a page that was moved and edited at once

    def _ask_about(self, change: FileChange) -> None:
        """Ask whether what a page was made from goes with it; what was forgotten or undone is no deletion by hand."""
        if change.kind is not PathKind.MEMORY or change.is_ours:
            return
        for event in self._brain.journal.events(kinds=DELETIONS, reverse=True):
            gone = next((one for one in event.changes if one.path == change.path and one.after is None), None)
            if gone is not None and gone.before is not None:
                with suppress(BlobError):  # off the record: nothing was made from it
                    text = self._brain.committer.text_of(gone.before).decode("utf-8", "surrogateescape")
                    ask_about_deleted(self._brain, change.path, text)
                return

    def _heal(self, old: str, new: str) -> None:
        with suppress(ConflictError, FormatError):  # a page is being saved: the next quiet looks again
            heal_move(self._brain, old, new)
        self._are_links_due = True

    # --- what is done while it is quiet -----------------------------------------------------------------

    def tend(self) -> None:
        """Do what is due; what a person is at stays for the next time."""
        brain = self._brain
        settle_reviews(brain)
        tidy_review(brain)
        if not (self._is_first or self._arrived or self._are_links_due or self._folders):
            return
        is_all, self._is_first = self._is_first, False
        arrived, self._arrived = self._arrived, set()  # what other threads add from here on is for the next time
        folders, self._folders = self._folders, set()
        are_links_due, self._are_links_due = is_all or self._are_links_due, False
        catalog, past, now = Catalog(brain), read_past(brain), brain.clock.now()
        arrived = set(catalog.pages) if is_all else arrived & catalog.pages.keys()
        complete(brain, catalog, past, arrived)
        if are_links_due:
            with suppress(ConflictError):
                heal_all(brain, catalog, past)
        derive_manifests(brain, set(catalog.entries) if is_all else folders | {*map(posixpath.dirname, arrived)})
        waiting = {path for path in arrived if not past.is_resting(path, now)}
        self._arrived |= waiting
        self._are_links_due |= bool(waiting)

    def is_due(self, idle_seconds: float) -> bool:
        """Tell whether to organize: once in each long quiet, every few hours, or when the log has grown."""
        settings, now = self._brain.settings.organization, self._brain.clock.now()
        if self._failed_at and now - self._failed_at < timedelta(seconds=RETRY_SECONDS):
            return False
        is_new_quiet = self._last_at is None or now - self._last_at >= timedelta(seconds=idle_seconds)
        if idle_seconds >= settings.idle_seconds and is_new_quiet:
            return True
        since = self._last_at or self._started_at
        return now - since >= timedelta(hours=settings.every_hours) or self.is_log_full()

    def is_log_full(self) -> bool:
        """Tell whether the access log has as many lines as make a run worth it, whoever wrote them."""
        enough = self._brain.settings.organization.min_entries
        try:
            with open(self._brain.tree.access_log, "rb") as log:  # no more of it than decides
                return sum(1 for _ in islice(log, enough)) >= enough
        except FileNotFoundError:
            return False

    def is_calm(self) -> bool:
        """Tell whether nobody is talking with the brain."""
        settings, last = self._brain.settings, self._brain.answered.last_exchange_at
        needed = min(CALM_SECONDS, settings.promotion.idle_seconds, settings.organization.idle_seconds)
        return last is None or self._brain.clock.now() - parse_iso(last) >= timedelta(seconds=needed)

    def organize(self) -> Outcome:
        """Organize now; the run ends early when the person comes back while a model thinks."""
        brain, last = self._brain, self._brain.answered.last_exchange_at
        try:
            outcome = organize(brain, abandon=lambda: brain.answered.last_exchange_at != last)
        except (ModelError, ConflictError):
            self._failed_at = brain.clock.now()
            raise
        self._last_at, self._failed_at = brain.clock.now(), None
        self._are_links_due = bool(outcome.done)  # on pages that a person was at
        return outcome
