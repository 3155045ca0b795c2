"""Purging: destroys what this device keeps of something forgotten, and leaves a tombstone for every other device.

What is destroyed is a function of what was named. A text goes that has a purged exchange's mark, or all the words that
were named in one of its units, or a sentence of what was forgotten that nobody else says. All texts of the journal are
looked through, former versions and what only the journal still has included, and so are the data of events and logs.
First a tombstone with ids and hashes is journaled; then the target is taken out of the tree and the texts are
destroyed. This is done again wherever it was interrupted or a copy was synced back.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import KINDS, Event, PurgeHonoured, TextsPurged, content_hash
from brainiac.formats.index_page import MANIFEST
from brainiac.formats.markdown import decode_text
from brainiac.formats.page import parse_memory
from brainiac.history.digest import write_digest
from brainiac.history.forget import MIN_WORDS, ForgetPlan, find_remaining, forget, pieces_of, plan_forget
from brainiac.history.targets import Target, said_in, target_of_page, values_of
from brainiac.history.why import find_memory
from brainiac.storage.database import read_run_state, write_run_state
from brainiac.storage.files import DAMAGED, read_bytes
from brainiac.storage.statements import text_hash
from brainiac.storage.withheld import units_of
from brainiac.text.tokens import holds_words, words

BEYOND = (
    "Not reached: git history, versions kept by a sync service, backups, and names of files but for the words named. "
    "Other devices destroy their own when they next run."
)
# fields of events that have a person's words in them, be it a single one; in others a sentence is words, and the rest
# are ids, hashes, paths and names of models
_FIELDS_WITH_WORDS = frozenset(
    "author statement reasoning reason canonical_key subject aliases what content tags steps title text quote "
    "source".split()
)
_UUID = re.compile(r"^uuid: \S+$", re.MULTILINE)  # in the front matter of a page


@dataclass(frozen=True, slots=True)
class Purged:
    """The result of a purge.

    Attributes:
        tombstone: The event that every device applies.
        event: The event of the commit that removed the target from the tree; None when nothing of it was there.
        texts: How many texts of the journal were destroyed.
        lines: How many lines of this device's journal lost their words.
        still: By sentence: the files of the tree that have the same words for other reasons.
    """

    tombstone: Event
    event: Event | None
    texts: int
    lines: int
    still: dict[str, list[str]]


class Traces:
    """What this device keeps of a target: texts of the journal, data of events, lines of logs.

    Args:
        brain: The brain.
        target: What is to be purged; it may have been removed from the tree before.
        plan: Of its removal.
        tombstone: An earlier purge of it, whose words are not known any more.
    """

    def __init__(self, brain: Brain, target: Target, plan: ForgetPlan, tombstone: TextsPurged | None = None) -> None:
        self._brain, self._target, self._plan, self._tombstone = brain, target, plan, tombstone
        self._exchanges, self._salt = frozenset(target.exchanges), secrets.token_hex(8)
        # what is to be planned for the files; b"" where one is to be removed
        self._after = {change.path: change.after or b"" for change in plan.changes()}
        states = brain.committer.file_states.all().values()
        self._present = [(state.path, state.hash) for state in states if not state.is_held]
        changes = [(event.id, change) for _, event in brain.journal.all_events() for change in event.changes]
        self._whole = {change.after for _, change in changes if change.path.startswith(f"{brain.tree.layout.inbox}/")}
        own = (change for event, change in changes if event in self._exchanges or change.path in target.pages)
        digests = {digest for change in own for digest in (change.before, change.after) if digest}
        # all that the target's prompts, answers and pages ever said, under whatever path
        self._own = {digest: text for digest in digests if (text := (brain.kept_text(digest) or "").strip())}
        uuids = {f"{uuid[0]}\n" for text in self._own.values() if (uuid := _UUID.search(text))}
        for digest in brain.journal.blobs.digests() if uuids else ():
            text = brain.kept_text(digest) or ""
            if any(uuid in text for uuid in uuids):
                self._own[digest] = text
        marks = [f"<!-- {word}: {exchange} -->" for exchange in self._exchanges for word in ("event", "exchange")]
        self._marks = [mark.encode() for mark in (*marks, *uuids)]
        # a line of an index page may quote what stood on a page for a moment
        self._listed = [f'"uuid:{uuid.split()[1]}"' for uuid in uuids]
        pieces = pieces_of([*plan.texts, *self._own.values()])
        # sentences that other files have too, for reasons of their own, are not looked for
        self.elsewhere = find_remaining(brain, pieces, self._after)
        self._pieces = [piece for piece in pieces if piece not in self.elsewhere]

    @cached_property
    def hashes(self) -> frozenset[str]:
        """The hashes of the journal's texts that have any of it and are not the present text of a file that stays."""
        hashes = {digest for digest in set(self._brain.journal.blobs.digests()) if self._is_in_blob(digest)}
        return frozenset(hashes.difference(digest for path, digest in self._present if path not in self._after))

    @property
    def versions(self) -> int:
        """How many of these texts no file of the tree has now."""
        return len(self.hashes.difference(digest for _, digest in self._present))

    @cached_property
    def events(self) -> list[str]:
        """The ids of this device's events whose data have any of it."""
        return [event.id for event in self._brain.journal.events() if self.cleaned(event) != event]

    @cached_property
    def statements(self) -> set[str]:
        """The hashes of the statements that rest on the target alone, former wordings included."""
        sources: dict[str, set[str]] = {}
        for digest, data in self._brain.projection.query("SELECT hash, data FROM statements WHERE hash != ''"):
            sources.setdefault(digest, set()).update(json.loads(data).get("sources") or ("",))
        hashes = {digest for digest, exchanges in sources.items() if exchanges <= self._exchanges}
        named = self._tombstone.statements if self._tombstone else (each.hash for each in self._plan.statements)
        return hashes.union(named)

    def _is_in_blob(self, digest: str) -> bool:
        """Return whether a text of the journal has any of it."""
        try:
            text = decode_text(self._brain.journal.blobs.get(digest))
        except BlobError:
            return False
        content = text.encode("utf-8", "surrogateescape")
        has_needle = any(needle in content for needle in (*self._marks, *self._pieces))
        is_listed = f"\n## {MANIFEST}" in text and any(name in text for name in self._listed)
        if digest in self._own or has_needle or is_listed:
            return True
        if self.statements and "\nuuid:" in text:  # parsing every text would take seconds
            with suppress(FormatError):
                if any(text_hash(statement.text) in self.statements for statement in parse_memory("", text).statements):
                    return True
        if not self._has_words(text):
            return False
        units = [*map(said_in, values_of(text)), *(said_in(text[start:end]) for start, end in units_of(text))]
        # a file of the inbox is one unit
        return any(map(self._has_words, ["\n".join(units)] if digest in self._whole else units))

    def _has_words(self, text: str) -> bool:
        return holds_words(text, self._target.words)

    def is_in(self, text: str) -> bool:
        """Return whether a text has the words that were named, or a sentence of what was forgotten."""
        content = text.encode("utf-8", "surrogateescape")
        return self._has_words(text) or any(piece in content for piece in self._pieces)

    def tombstone(self) -> TextsPurged:
        """Return what is to be destroyed, by ids and hashes alone."""
        target = self._target
        return TextsPurged(
            exchanges=target.exchanges,
            # its uuid, or the path of a page without one
            page=None if target.page is None else target.page or target.pages[0],
            statements=tuple(sorted({record.hash for record in self._plan.statements})),
            items=tuple(self._plan.items),
            hashes=tuple(sorted(self.hashes)),
            events=tuple(self.events),
        )

    # --- events ---------------------------------------------------------------------------------------------

    def cleaned(self, event: Event) -> Event:
        """Return an event without the words; ids, hashes and numbers stay, and paths that do not have them."""
        changes = tuple(
            replace(change, path=self._renamed(change.path), source=change.source and self._renamed(change.source))
            for change in event.changes
        )
        is_purged = self._tombstone is not None and event.id in self._tombstone.events
        is_known = event.kind in KINDS  # what a plugin calls its fields is not known
        return replace(event, data=self._clean(event.data, "", is_known, is_purged), changes=changes)

    def _clean(self, value: Any, name: str, is_known: bool, is_purged: bool) -> Any:
        """Return a part of an event's data without the words.

        Args:
            value: The part.
            name: Of its field.
            is_known: Whether the fields that may have a single word are known.
            is_purged: Whether all words in it go, as it rests on a purged exchange.
        """
        if isinstance(value, dict):
            sources = {*value.get("sources", ()), *(value.get("events") or ())}
            rests_on_it = any(each in self._exchanges for each in sources if isinstance(each, str))
            return {
                # candidates name what each rests on
                self._renamed(key): self._clean(part, key, is_known, is_purged or (rests_on_it and key != "candidates"))
                for key, part in value.items()
            }
        if isinstance(value, list | tuple):
            parts = [self._clean(part, name, is_known, is_purged) for part in value]
            return [part for part in parts if part != ""] if name in _FIELDS_WITH_WORDS else parts
        if not isinstance(value, str):
            return value
        if (renamed := self._renamed(value)) != value:
            return renamed
        is_words = name in _FIELDS_WITH_WORDS or len(value.split()) >= MIN_WORDS
        is_gone = (is_words and is_purged) or ((is_words or not is_known) and self.is_in(value))
        return "" if is_gone else value

    def _renamed(self, path: str) -> str:
        """Return the path of a file that is gone with neutral names for those that have the words; else the text."""
        tree = self._brain.tree
        tops = (f"{tree.relative(top)}/" for top in (tree.long_term, tree.archive, tree.memory, tree.inbox))
        top = next((top for top in tops if path.startswith(top)), "")
        names = path.removeprefix(top)
        if not top or ": " in path or not self._has_words(names.replace("_", " ")):
            return path
        if self._after.get(path) != b"" and tree.holds(path):  # it stays
            return path
        return top + "/".join(map(self._neutral, names.split("/")))

    def _neutral(self, name: str) -> str:
        """Return the name of a file or folder without the words; the same one for the same name in this purge."""
        stem, dot, ending = name.partition(".")
        each = words(self._target.words) or [self._target.words]
        if any(holds_words(stem.replace("_", " "), word) for word in each):
            stem = f"purged-{content_hash(f'{self._salt}{stem}'.encode('utf-8', 'surrogateescape'))[:8]}"
        return f"{stem}{dot}{ending}"


def purge(brain: Brain, target: Target) -> Purged:
    """Forget a target and destroy its texts; if this is interrupted, the next start completes it.

    Args:
        brain: The brain.
        target: What is to be forgotten; it may have been removed from the tree before.
    """
    brain.recall.close()  # its thread may wait for the lock
    # no other process writes meanwhile what was not searched; short-term memory first, as everywhere
    with brain.short_term_lock(), brain.commit_lock():
        traces = Traces(brain, target, plan_forget(brain, target))
        # before anything is destroyed, so that after a crash the next start knows what is to be destroyed
        tombstone = brain.record(traces.tombstone(), by="cli")
        event = forget(brain, target, cause=tombstone.id)
        lines = _destroy(brain, tombstone, traces, {*traces.hashes}, event)
    write_digest(brain)
    still = {piece.decode("utf-8", "replace"): paths for piece, paths in traces.elsewhere.items()}
    return Purged(tombstone, event, len(traces.hashes), lines, still)


def _destroy(brain: Brain, tombstone: Event, traces: Traces, hashes: set[str], forgotten: Event | None) -> int:
    """Destroy what a tombstone names; doing it again after an interruption is harmless.

    Args:
        brain: The brain.
        tombstone: Of this or another device.
        traces: What of it is in events and logs.
        hashes: Of the texts.
        forgotten: The commit that took the target out of the tree; the texts before it go too. None for none.

    Returns:
        How many lines of this device's journal lost their words.
    """
    hashes = hashes | {change.before for change in (forgotten.changes if forgotten else ()) if change.before}
    with brain.commit_lock():
        brain.committer.destroy(hashes - brain.observed.present_hashes(hashes))  # not what a file has now
        lines = brain.journal.rewrite(traces.cleaned)
        _clean_logs(brain, traces)
    # index and vectors have the words too; the next search rebuilds them
    brain.recall.close()
    shutil.rmtree(brain.places.cache, ignore_errors=True)
    brain.record(PurgeHonoured(tombstone=tombstone.id), by="kernel", cause=tombstone.id)
    brain.projection.follow()  # which reads the journals anew
    brain.database.compact()
    return lines


def _clean_logs(brain: Brain, traces: Traces) -> None:
    """Take the lines with the words out of the logs, and out of what the state folder has beside its tables."""
    state = brain.places.state
    for path in (*brain.tree.logs.glob("*"), *state.glob("*.log"), *state.glob(f"*{DAMAGED}*"), *state.glob("*/*")):
        content = None if path.is_symlink() else read_bytes(path)
        lines = decode_text(content or b"").splitlines(keepends=True)
        kept = "".join(line for line in lines if not traces.is_in(line.replace("/", " ").replace("_", " ")))
        if kept != "".join(lines):
            path.write_bytes(kept.encode("utf-8", "surrogateescape"))
    brain.database.keep_only("answers", {})  # that models were paid for: they may have the words too
    # the daemon's report repeats the log's last line
    write_run_state(brain.database, replace(read_run_state(brain.database), access_log=None))
    brain.committer.file_states.forget_absent()


# --- tombstones of all devices -------------------------------------------------------------------------------------


def apply_tombstones(brain: Brain) -> list[str]:
    """Destroy texts that were purged on another device, or here but not completely, or that were synced back.

    Returns:
        The ids of the tombstones for which something had to be done.
    """
    applied = {
        event.what.tombstone
        for device, event in brain.projection.purges()
        if isinstance(event.what, PurgeHonoured) and device == brain.journal.device
    }
    tombstones = _tombstones(brain)
    return [event.id for event, purged in tombstones if _apply(brain, event, purged, was_applied=event.id in applied)]


def remains(brain: Brain) -> list[tuple[Event, str]]:
    """Return the purged texts that are here all the same: each tombstone with the path of a file or a blob."""
    blobs = brain.journal.blobs
    path_by_hash = {digest: path for path, digest in brain.journal.fold().items()}
    remaining = []
    for tombstone, purged in _tombstones(brain):
        for digest in purged.hashes:
            if digest in path_by_hash:
                remaining.append((tombstone, path_by_hash[digest]))
            elif digest in blobs:
                remaining.append((tombstone, f"{brain.tree.relative(blobs.folder)}/{digest[:2]}/{digest[2:]}"))
    return remaining


def _tombstones(brain: Brain) -> list[tuple[Event, TextsPurged]]:
    """Return the events of all devices that name texts to be destroyed."""
    return [(event, event.what) for _, event in brain.projection.purges() if isinstance(event.what, TextsPurged)]


def _apply(brain: Brain, tombstone: Event, purged: TextsPurged, *, was_applied: bool) -> bool:
    """Destroy what a tombstone names if it was not applied here yet, or something of it is back.

    Returns:
        Whether there was something to do.
    """
    present = brain.observed.present_hashes(purged.hashes)  # of whole files
    short_term = brain.read_text(brain.tree.short_term) or ""
    is_in_log = any(f"<!-- event: {exchange} -->" in short_term for exchange in purged.exchanges)
    has_blobs = any(digest in brain.journal.blobs for digest in set(purged.hashes) - present)
    if was_applied and not (present or is_in_log or has_blobs):
        return False
    page = find_memory(brain, purged.page) if purged.page else None
    target = target_of_page(page, purged.items) if page else Target(purged.exchanges, items=purged.items)
    traces = Traces(brain, target, plan_forget(brain, target), purged)
    hashes, event = {*purged.hashes}, None
    if present or is_in_log or not was_applied:
        hashes |= traces.hashes  # before they are removed
        event = forget(brain, target, by="kernel", cause=tombstone.id)
    # files alone are no reason: where nothing was forgotten, somebody wrote the same words
    if was_applied and event is None and not has_blobs:
        return False
    _destroy(brain, tombstone, traces, hashes, event)
    return True
