"""What is left of a text once it was taken out of memory: where words of it still stand, and which texts hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Event
from brainiac.formats.commands import parse_commands
from brainiac.formats.memory import parse_memory
from brainiac.llm.offline import FIXED
from brainiac.storage.statements import text_hash
from brainiac.text.tokens import pieces

MIN_WORDS = 3  # what is shorter is said by everybody
# what holds words in the data of an event; all else is ids, hashes, paths and names of models
_WORDED = frozenset(
    {
        "statement",
        "reasoning",
        "reason",
        "canonical_key",
        "subject",
        "what",
        "content",
        "tags",
        "steps",
        "title",
        "text",
    }
)


def pieces_of(texts: Iterable[str]) -> list[bytes]:
    """Return the sentences of texts that are long enough to be nobody else's, longest first."""
    found = sentences_of(texts) - sentences_of(FIXED)
    kept = (each.encode("utf-8", "surrogateescape") for each in found if len(each.split()) >= MIN_WORDS)
    return sorted(kept, key=len, reverse=True)


def sentences_of(texts: Iterable[str]) -> set[str]:
    """Return the lines of texts and the sentences of these, also of what stands behind a command."""
    said = (each for text in texts for each in (text, *(command.argument for command in parse_commands(text)[0])))
    lines = [line for text in said for line in text.splitlines()]
    return {sentence.strip().strip('"') for line in lines for sentence in (line, *pieces(line))}


def standing(brain: Brain, pieces: Collection[bytes], after: Mapping[str, bytes]) -> dict[bytes, list[str]]:
    """Return the pieces that stand in a file of the tree, with the files; logs and journal are not looked at.

    Args:
        brain: The brain.
        pieces: Words.
        after: What files are about to hold; empty for one that goes.
    """
    found: dict[bytes, list[str]] = {}
    for entry in brain.tree.walk(brain.tree.inbox, brain.tree.memory, brain.tree.system):
        path = brain.tree.relative(entry.path)
        content = after[path] if path in after else brain.read(path) or b""
        for piece in pieces:
            if piece in content:
                found.setdefault(piece, []).append(path)
    return found


def holding(
    brain: Brain, exchanges: Collection[str], statements: Collection[str], pieces: Collection[bytes]
) -> set[str]:
    """Return the hashes of the journal's texts that hold any of this.

    Args:
        brain: The brain.
        exchanges: Ids, as short-term memory and episodic pages mark what was said.
        statements: Hashes of statements' texts.
        pieces: Words.
    """
    marks = [f"<!-- {word}: {one} -->".encode() for one in exchanges for word in ("event", "exchange")]
    needles, found = (*marks, *pieces), set()
    for digest in set(brain.journal.blobs.digests()):
        try:
            content = brain.journal.blobs.get(digest)
        except BlobError:
            continue
        if any(needle in content for needle in needles) or (statements and _states(content, statements)):
            found.add(digest)
    return found


def _states(content: bytes, statements: Collection[str]) -> bool:
    if b"\nuuid:" not in content:
        return False  # no page
    try:
        memory = parse_memory("", content.decode("utf-8", "surrogateescape"))
    except FormatError:
        return False
    return any(text_hash(one.text) in statements for one in memory.statements)


def telling(brain: Brain, pieces: Collection[bytes]) -> list[str]:
    """Return the ids of this device's events whose data hold any of the pieces."""
    words = [piece.decode("utf-8", "surrogateescape") for piece in pieces]
    return [event.id for event in brain.journal.events() if words and _tells(event.data, words)]


def _tells(value: Any, words: Collection[str]) -> bool:
    if isinstance(value, str):
        return any(word in value for word in words)
    if isinstance(value, dict):
        return any(_tells(each, words) for each in value.values())
    return isinstance(value, list) and any(_tells(each, words) for each in value)


def cleaner(exchanges: Collection[str], events: Collection[str]) -> Callable[[Event], Event]:
    """Return what takes words out of an event's data: entries that rest on the exchanges, and whole events.

    Ids, hashes, paths and numbers stay, so that the history can still be followed.
    """
    ids, whole = set(exchanges), set(events)

    def clean(value: Any, is_meant: bool) -> Any:
        if isinstance(value, dict):
            rests_on = {*value.get("sources", ()), *(value.get("events") or ())}
            is_meant = is_meant or not ids.isdisjoint(each for each in rests_on if isinstance(each, str))
            return {
                key: _blank(each) if is_meant and key in _WORDED else clean(each, is_meant)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [clean(each, is_meant) for each in value]
        is_text = isinstance(value, str) and len(value.split()) >= MIN_WORDS
        return "" if is_meant and is_text else value

    def cleaned(event: Event) -> Event:
        is_whole = event.id in whole
        data = {key: clean(value, is_whole) for key, value in event.data.items()}
        return event if data == event.data else replace(event, data=data)

    return cleaned


def _blank(value: Any) -> Any:
    if isinstance(value, str):
        return ""
    return [] if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
