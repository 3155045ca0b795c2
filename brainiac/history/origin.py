"""Where a line of short-term memory comes from: the exchange whose reflection wrote it, or a person's hand."""

from __future__ import annotations

from collections.abc import Iterator

from brainiac.brain import Brain
from brainiac.errors import BlobError
from brainiac.events import Event
from brainiac.history.exchanges import Exchanges
from brainiac.history.provenance import Chain, Step


def origin_of_item(brain: Brain, named: str) -> Chain | None:
    """Return an item of the lists, or a sentence of the summary, with what wrote it; None where there is none."""
    memory = brain.short_term().memory
    wanted = " ".join(named.split()).casefold()
    items = [item.text for item in (*memory.goals, *memory.facts, *memory.tasks)]
    text = next((each for each in items if " ".join(each.split()).casefold() == wanted), "")
    if not text and wanted and wanted in " ".join(memory.summary.split()).casefold():
        text = named
    if not text:
        return None
    path = brain.tree.relative(brain.tree.short_term)
    steps = sorted(_writers(brain, path, text), key=lambda step: step.by == "person")  # a synced copy is recorded so
    return Chain(path, "", "Short-term memory", "", text, steps=tuple(steps[:1]))


def _writers(brain: Brain, path: str, text: str) -> Iterator[Step]:
    """Yield the changes that brought a line into short-term memory, newest first, this device's before others'."""
    events = [("", event) for event in brain.journal.events(reverse=True)]
    events += list(brain.journal.foreign_events())[::-1]
    for device, event in events:
        for change in event.changes:
            if change.path != path or change.op == "append":
                continue
            before, after = (_text(brain, digest) for digest in (change.before, change.after))
            if text in after and text not in before:
                yield _step(brain, event, device, text)


def _step(brain: Brain, event: Event, device: str, text: str) -> Step:
    exchange = event.data.get("exchange")
    sources = (Exchanges(brain).said(str(exchange)),) if exchange else ()
    return Step(event.id, event.at, event.kind, event.by, "written", after=text, device=device, sources=sources)


def _text(brain: Brain, digest: str | None) -> str:
    try:
        return brain.committer.text_of(digest).decode("utf-8", "surrogateescape") if digest else ""
    except BlobError:
        return ""
