"""A cached fold over the journals: the next time only the new events of this device's journal are read.

Everything is folded anew when another device's journal changed, when git took ours back, or when an event changes the
meaning of earlier ones (an undo, a purge).
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
        begin: Returns the empty value, a dataclass.
        take: Applies an event to the value; its last argument says whether the event is this device's own. Events of
            other devices come first.
        kinds: Only events of these kinds are applied; None for all.
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
        """Return the present value; its containers are copies, which the caller may change."""
        with self._mutex:
            foreign, last = store.journal.foreign_sizes(), store.journal.last()
            kept = self._kept.pop(store, None)  # put back below, unless an error left it half updated
            events = self._events_since(store, kept) if kept and kept.foreign == foreign else None
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

    def _events_since(self, store: Store, kept: _Kept[T]) -> Iterable[Event] | None:
        """Return the events after the last one that was read; None where everything must be folded anew."""
        events = list(store.journal.events(since_seq=max(kept.last[0] - 1, 0)))
        continues = bool(events) and (events[0].seq, events[0].id) == kept.last
        return events[1:] if continues and not any(event.kind in _ANEW for event in events[1:]) else None

    def _add(self, store: Store, kept: _Kept[T], event: Event, *, is_own: bool) -> None:
        if self._kinds is None or event.kind in self._kinds:
            self._take(store, kept.value, event, is_own)
