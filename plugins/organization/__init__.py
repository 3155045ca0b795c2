"""Organization: while it is quiet, long-term memory evolves by how it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.events import FileChange

if TYPE_CHECKING:
    from .upkeep import Upkeep


def _upkeep(brain: Brain) -> Upkeep:
    """Return the state that this plugin keeps with a brain."""
    from .upkeep import Upkeep  # here: an answer waits for no plugin's imports

    return brain.state_of("organization", lambda: Upkeep(brain))


@hookimpl
def quiet(brain: Brain, idle_seconds: float) -> None:
    """Put in order what is due, then organize in a long quiet, every few hours, or when the access log has grown."""
    upkeep = _upkeep(brain)
    upkeep.tend()
    if upkeep.is_due(idle_seconds):
        upkeep.organize()


@hookimpl
def file_changed(brain: Brain, change: FileChange) -> None:
    """Repair links after a move by hand, note new pages, and carry out what was ticked in `review.md`."""
    _upkeep(brain).note_change(change)


@hookimpl
def memory_created(brain: Brain, path: str) -> None:
    """Note that its folder's index page has to be derived anew."""
    _upkeep(brain).note_page(path, has_appeared_or_left=True)


@hookimpl
def memory_modified(brain: Brain, path: str) -> None:
    """Note that its folder's index page has to be derived anew."""
    _upkeep(brain).note_page(path)


@hookimpl
def memory_moved(brain: Brain, path: str, old_path: str) -> None:
    """Note that the index pages of both folders have to be derived anew."""
    _upkeep(brain).note_page(path, has_appeared_or_left=True)
    _upkeep(brain).note_page(old_path, has_appeared_or_left=True)


@hookimpl
def memory_deleted(brain: Brain, path: str) -> None:
    """Note that its folder's index page has to be derived anew."""
    _upkeep(brain).note_page(path, has_appeared_or_left=True)
