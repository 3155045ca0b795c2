"""When promotion is due: quiet and enough to do, or short-term memory grown too large (seeds S12, P5)."""

from __future__ import annotations

from brainiac.brain import Brain
from brainiac.clock import parse_iso
from brainiac.storage.filed import filed
from brainiac.storage.record import UNDONE
from brainiac.storage.statements import PROMOTED


def is_due(brain: Brain, idle_seconds: float) -> bool:
    """Tell whether the event log should be promoted now; what was undone waits until something new is said.

    Args:
        brain: The brain; its settings are read anew.
        idle_seconds: How long nobody has exchanged anything.
    """
    settings = brain.settings.promotion
    document, known = brain.short_term(), filed(brain)
    events = document.memory.events
    filed_at = known.filed_at if known.waiting else ""
    if max((filed_at, *(event.at for event in events))) <= _undone_at(brain):
        return False
    if idle_seconds >= settings.idle_seconds:
        if known.waiting:
            return True
        age_seconds = (brain.clock.now() - parse_iso(min(event.at for event in events))).total_seconds()
        if len(events) >= settings.min_events or age_seconds > settings.max_age_hours * 3600:
            return True
    return _is_larger(str(document), settings.max_tokens)


def _undone_at(brain: Brain) -> str:
    """Return when the last promotion was undone, ISO 8601; "" if it stands."""
    last = next(brain.journal.events(kinds={PROMOTED, UNDONE}, reverse=True), None)
    if last is None or last.kind == PROMOTED:
        return ""
    undone = brain.journal.find(str(last.data.get("undone")))
    return last.at if undone and undone.kind == PROMOTED else ""


def _is_larger(text: str, tokens: int) -> bool:
    if len(text) <= tokens:  # a token is a character or more
        return False
    from brainiac.llm.catalog import count

    return count(text.encode("utf-8", "replace").decode("utf-8")) > tokens
