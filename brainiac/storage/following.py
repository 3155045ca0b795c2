"""What is folded from the journals and kept: asked again, only what this device's journal gained is read.

All is folded anew when the journals do not go on from where they were read: another device's changed, git took ours
back, or an event says that earlier ones count otherwise now.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from brainiac.events import Event, EventUndone, PurgeHonoured, kinds_of
from brainiac.storage.store import Store

T = TypeVar("T", bound=Any)
_ANEW = kinds_of(EventUndone, PurgeHonoured)


@dataclass(slots=True)
class _Kept(Generic[T]):
    value: T
    foreign: dict[str, int]  # sizes of the other devices' files: it is good only while these are the same
    last: tuple[int, str] = (0, "")


class Following(Generic[T]):
    """A fold over the journals of a brain; thread-safe.

    Args:
        begin: Makes the empty value, a dataclass.
        take: Takes an event into it, told whether it is of this device; other devices' come first.
        kinds: Only events of these kinds are taken; None for all.
    """

    def __init__(
        self,
        begin: Callable[[Store], T],
        take: Callable[[Store, T, Event, bool], None],
        kinds: frozenset[str] | None = None,
    ) -> None:
        self._begin, self._take, self._kinds = begin, take, kinds
        self._kept: WeakKeyDictionary[Store, _Kept[T]] = WeakKeyDictionary()
        self._mutex = threading.Lock()

    def of(self, store: Store) -> T:
        """Return the value as of now, the caller's own down to its containers."""
        with self._mutex:
            foreign, last = store.journal.foreign_sizes(), store.journal.last()
            kept = self._kept.pop(store, None)  # put back when all went well
            events = self._gained(store, kept) if kept and kept.foreign == foreign else None
            if kept is None or events is None:
                kept = _Kept(self._begin(store), foreign)
                for _, event in store.journal.foreign_events():
                    self._add(store, kept, event, is_own=False)
                events = store.journal.events(kinds=self._kinds)
            for event in events:
                if event.seq <= last[0]:
                    self._add(store, kept, event, is_own=True)
            kept.last = last
            self._kept[store] = kept
            value = kept.value
            return replace(value, **{each.name: copy.copy(getattr(value, each.name)) for each in fields(value)})

    def _gained(self, store: Store, kept: _Kept[T]) -> Iterable[Event] | None:
        """Return what came after the last event that was read; None where the journal does not go on from there."""
        events = list(store.journal.events(since_seq=max(kept.last[0] - 1, 0)))
        goes_on = bool(events) and (events[0].seq, events[0].id) == kept.last
        return events[1:] if goes_on and not any(event.kind in _ANEW for event in events[1:]) else None

    def _add(self, store: Store, kept: _Kept[T], event: Event, *, is_own: bool) -> None:
        if self._kinds is None or event.kind in self._kinds:
            self._take(store, kept.value, event, is_own)
