"""Purging: destroys what this device keeps of something forgotten, and leaves a tombstone for every other device.

What is destroyed is a function of what was named. A text goes that has a purged exchange's mark, or all the words that
were named in one of its units, or a sentence of what was forgotten that nobody else says. All texts of the journal are
looked through, former versions and what only the journal still has included, and so are the data of events and logs.
First the plan is written to `state.db`, with the words, so that the next start can carry it on. Then a tombstone with
ids and salted hashes is journaled, the target is taken out of the tree, texts are destroyed, and lines are cleaned.
Every device carries each tombstone out, also against what was written elsewhere before its device knew of it.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import (
    KINDS,
    CopyMerged,
    Event,
    ForgetProposal,
    PurgeHonoured,
    RecordedChange,
    TextsPurged,
    content_hash,
)
from brainiac.formats.index_page import MANIFEST
from brainiac.formats.markdown import decode_text
from brainiac.formats.page import parse_memory
from brainiac.history.digest import write_digest
from brainiac.history.forget import (
    MIN_WORDS,
    ForgetPlan,
    PurgedWords,
    Target,
    find_remaining,
    find_words,
    forget,
    holds,
    pieces_of,
    plan_forget,
    said_in,
    salted_hash,
    stem_of,
    target_of_page,
    values_of,
)
from brainiac.history.why import find_memory
from brainiac.storage.database import PAID
from brainiac.storage.files import DAMAGED, read_bytes
from brainiac.storage.statements import text_hash
from brainiac.storage.turns import Turn, Turns
from brainiac.storage.withheld import units_of
from brainiac.text.tokens import holds_words, words

BEYOND = (
    "Not reached: git history, versions kept by a sync service, backups, and names of files but for the words named. "
    "Other devices destroy their own when they next run: for them the journal keeps salted hashes of the words named; "
    "whoever has the folder can guess a common word by them, but no sentence."
)
# fields of events that have a person's words in them, be it a single one; in others a sentence is words, and the rest
# are ids, hashes, paths and names of models
_FIELDS_WITH_WORDS = frozenset(
    "author statement reasoning reason canonical_key subject aliases what content tags steps title text quote "
    "source".split()
)
_PLANS, _LOOKED_AT = "purges", "purges-looked-at"  # owners of what `state.db` keeps: plans, and places in the journals
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
        tombstone: Of a purge that began before.
        sentences: That it looked for.
        was_honoured: Whether this device has carried it out before.
    """

    def __init__(
        self,
        brain: Brain,
        target: Target,
        plan: ForgetPlan,
        tombstone: TextsPurged | None = None,
        sentences: Sequence[str] = (),
        *,
        was_honoured: bool = False,
    ) -> None:
        self._was_honoured = was_honoured
        self._brain, self._target, self._plan, self._tombstone = brain, target, plan, tombstone
        self._exchanges = frozenset(target.exchanges)
        self._salt = (tombstone and tombstone.salt) or secrets.token_hex(8)
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
        self._pieces += (sentence.encode("utf-8", "surrogateescape") for sentence in sentences)

    @cached_property
    def hashes(self) -> frozenset[str]:
        """The hashes of the journal's texts that have any of it and are not the present text of a file that stays."""
        hashes = {digest for digest in set(self._brain.journal.blobs.digests()) if self._is_in_blob(digest)}
        return frozenset(hashes.difference(digest for path, digest in self._present if path not in self._after))

    @property
    def sentences(self) -> list[str]:
        """The sentences of what is forgotten that nobody else says."""
        return [piece.decode("utf-8", "surrogateescape") for piece in self._pieces]

    @property
    def versions(self) -> int:
        """How many of these texts no file of the tree has now."""
        return len(self.hashes.difference(digest for _, digest in self._present))

    @cached_property
    def events(self) -> list[str]:
        """The ids of this device's events whose data have any of it."""
        return [event.id for event in self._brain.journal.events() if self.cleaned(event) != event]

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns of assistants' sessions that have any of it and are not in memory yet."""
        return [turn for turn in Turns(self._brain.database).all() if self.is_in(f"{turn.user}\n{turn.ai}")]

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
        is_hashed = isinstance(self._target.words, PurgedWords)  # a unit may have a sentence and not all the words
        if not is_hashed and not self._has_words(text):
            return False
        units = _units(text)
        # a file of the inbox is one unit
        return any(map(self._has_words, ["\n".join(units)] if digest in self._whole else units))

    def _has_words(self, text: str) -> bool:
        return holds(text, self._target.words)

    def is_in(self, text: str) -> bool:
        """Return whether a text has the words that were named, or a sentence of what was forgotten."""
        content = text.encode("utf-8", "surrogateescape")
        # what this device noted before it knew of a purge goes, wherever its text is by now
        named = self._target.words if self._was_honoured else _wherever(self._target.words)
        return holds(text, named) or any(piece in content for piece in self._pieces)

    def tombstone(self) -> TextsPurged:
        """Return what is to be destroyed, by ids and hashes alone."""
        target = self._target
        sentences = {" ".join(words(sentence)) for sentence in self.sentences}
        sentences -= {" ".join(words(piece.decode("utf-8", "replace"))) for piece in self.elsewhere}
        return TextsPurged(
            exchanges=target.exchanges,
            # its uuid, or the path of a page without one
            page=None if target.page is None else target.page or target.pages[0],
            statements=tuple(sorted({record.hash for record in self._plan.statements})),
            items=tuple(self._plan.items),
            hashes=tuple(sorted(self.hashes)),
            events=tuple(self.events),
            salt=self._salt,
            words=tuple(sorted(salted_hash(self._salt, word) for word in words(str(target.words)))),
            sentences=tuple(sorted(salted_hash(self._salt, sentence) for sentence in sentences)),
        )

    # --- events ---------------------------------------------------------------------------------------------

    def cleaned(self, event: Event) -> Event:
        """Return an event without the words; ids, hashes and numbers stay, and paths that do not have them."""
        changes = tuple(
            replace(change, path=self._renamed(change.path), source=change.source and self._renamed(change.source))
            for change in event.changes
        )
        # of a former version's purge, whose words are not known any more
        tombstone = self._tombstone
        is_purged = tombstone is not None and not tombstone.salt and event.id in tombstone.events
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
        if not top or ": " in path or not holds(names.replace("_", " "), _wherever(self._target.words)):
            return path
        if self._after.get(path) != b"" and tree.holds(path):  # it stays
            return path
        return top + "/".join(map(self._neutral, names.split("/")))

    def _neutral(self, name: str) -> str:
        """Return the name of a file or folder without the words; the same one for the same name in this purge."""
        stem, dot, ending = name.partition(".")
        named, text = self._target.words, stem.replace("_", " ")
        if isinstance(named, PurgedWords):
            has_word = named.any_in(text)
        else:
            has_word = any(holds_words(text, word) for word in words(named) or [named])
        if has_word:
            stem = f"purged-{content_hash(f'{self._salt}{stem}'.encode('utf-8', 'surrogateescape'))[:8]}"
        return f"{stem}{dot}{ending}"


def purge(brain: Brain, target: Target) -> Purged:
    """Forget a target and destroy its texts; where this is cut short, the next start carries it on (`honour`).

    Args:
        brain: The brain.
        target: What is to be forgotten; it may have been removed from the tree before.
    """
    brain.recall.close()  # its thread may wait for the lock
    # no other process writes meanwhile what was not searched; short-term memory first, as everywhere
    with brain.short_term_lock(), brain.commit_lock():
        traces = Traces(brain, target, plan_forget(brain, target))
        tombstone = traces.tombstone()
        plan = {
            "target": target.proposal("").to_json(),
            "page": target.page,
            "words": target.words,
            "tombstone": tombstone.to_json(),
            "sentences": traces.sentences,
        }
        # on the disk before anything else is written; it has the words, which nothing else keeps to the end
        brain.database.keep(_PLANS, tombstone.salt, json.dumps(plan), is_synced=True)
        purged = _carry_out(brain, brain.record(tombstone, by="cli"), target, traces, by="cli")
    write_digest(brain)
    return purged


def _resume(brain: Brain) -> None:
    """Carry on each purge that was cut short, here or by another process, from the step that it had reached."""
    if not brain.database.kept(_PLANS):
        return
    brain.recall.close()
    with brain.short_term_lock(), brain.commit_lock():
        for key, kept in brain.database.kept(_PLANS).items():  # read again: another process may have ended it
            if not kept:  # all but the last step
                _wipe(brain, key)
                continue
            plan = json.loads(kept)
            target = Target.of(ForgetProposal.from_json(plan["target"]))
            target = replace(target, page=plan["page"], words=plan["words"])
            purged = TextsPurged.from_json(plan["tombstone"])
            traces = Traces(brain, target, plan_forget(brain, target), purged, plan["sentences"])
            recorded = (event for event, each in _tombstones(brain) if each.salt == key)
            tombstone = next(recorded, None) or brain.record(purged, by="cli")
            _carry_out(brain, tombstone, target, traces, by="cli")


def _carry_out(
    brain: Brain,
    tombstone: Event,
    target: Target,
    traces: Traces,
    *,
    by: str = "kernel",
    hashes: Iterable[str] = (),
    is_in_tree: bool = True,
) -> Purged:
    """Take a target out of the tree, then destroy texts and lines; doing it again after an interruption is harmless.

    Args:
        brain: The brain.
        tombstone: Of this or another device.
        target: What is to be purged.
        traces: What this device keeps of it.
        by: Who does it.
        hashes: Of texts that other devices destroyed besides those that the tombstone names.
        is_in_tree: Whether something of it may be in files; else only texts came back that were destroyed before.
    """
    purged = tombstone.what
    assert isinstance(purged, TextsPurged)
    found = {*purged.hashes, *hashes, *(traces.hashes if is_in_tree else ())}  # before they are removed
    event = forget(brain, target, by=by, cause=tombstone.id) if is_in_tree else None
    # the texts before the commits that took the target out of the tree go too
    taken_out = (event for event in brain.journal.events() if event.cause == tombstone.id)
    found |= {change.before for each in taken_out for change in each.changes if change.before}
    found -= brain.observed.present_hashes(found)  # not what a file has now
    brain.committer.destroy(found)
    lines = brain.journal.rewrite(traces.cleaned)
    _clean_logs(brain, traces)
    # index and vectors have the words too; the next search rebuilds them
    brain.recall.close()
    shutil.rmtree(brain.places.cache, ignore_errors=True)
    own = tuple(sorted(found.difference(purged.hashes)))
    brain.record(PurgeHonoured(tombstone=tombstone.id, hashes=own), by="kernel", cause=tombstone.id)
    key = purged.salt or tombstone.id
    brain.database.keep(_PLANS, key, "", is_synced=True)
    _wipe(brain, key)
    still = {piece.decode("utf-8", "replace"): paths for piece, paths in traces.elsewhere.items()}
    if target.words:  # what was removed with the words and does not have them was not what was named
        still = {piece: paths for piece, paths in still.items() if holds(piece, target.words)}
    return Purged(tombstone, event, len(found), lines, still)


def _wipe(brain: Brain, key: str) -> None:
    """Take the words out of the database's file, where former rows had them: the last step of a purge."""
    brain.projection.follow()  # which reads the journals anew
    brain.database.compact()
    brain.database.drop(_PLANS, key)


def _clean_logs(brain: Brain, traces: Traces) -> None:
    """Take the lines with the words out of the logs, and out of what the state folder has beside its tables."""
    state = brain.places.state
    for path in (*brain.tree.logs.glob("*"), *state.glob("*.log"), *state.glob(f"*{DAMAGED}*"), *state.glob("*/*")):
        content = None if path.is_symlink() else read_bytes(path)
        lines = decode_text(content or b"").splitlines(keepends=True)
        kept = "".join(line for line in lines if not traces.is_in(line.replace("/", " ").replace("_", " ")))
        if kept != "".join(lines):
            path.write_bytes(kept.encode("utf-8", "surrogateescape"))
    brain.database.keep_only(PAID, {})  # they may have the words too
    turns = Turns(brain.database)
    with turns.lock():  # as if they were in memory: neither a hook nor a transcript brings them any more
        turns.keep([replace(turn, user="", ai="", is_done=True, reason="purged") for turn in traces.turns])
    brain.committer.file_states.forget_absent()


# --- tombstones of all devices -------------------------------------------------------------------------------------


def honour(brain: Brain) -> None:
    """Carry out the purges of all devices, as far as they are not carried out here, or something of them came back.

    What was written on any device before it knew of a purge goes with it, whenever it arrives; what a person types
    anew afterwards is theirs, and stays.
    """
    _resume(brain)
    knew: dict[str, dict[str, int]] = {}  # by tombstone and device: `seq` of the event from which on it knew of it
    hashes: dict[str, set[str]] = {}  # by tombstone: what any device destroyed
    for device, event in brain.projection.purges():
        if isinstance(event.what, PurgeHonoured):
            knew.setdefault(event.what.tombstone, {}).setdefault(device, event.seq)
            hashes.setdefault(event.what.tombstone, set()).update(event.what.hashes)
    sizes = brain.journal.foreign_sizes()
    looked_at = brain.database.kept(_LOOKED_AT)
    has_arrived = looked_at.pop("", "") != (now := json.dumps(sizes))
    devices = {Path(source).parent.name for source in sizes}
    last = looked_at
    tombstones = _tombstones(brain)
    for event, purged in tombstones:
        short_term = brain.read_text(brain.tree.short_term) or ""
        aware: dict[str, int] = knew.get(event.id, {})
        named: PurgedWords | None = None  # its words, where something that was written before it may be here
        was_honoured = brain.journal.device in aware
        if purged.salt and (not was_honoured or (has_arrived and devices - aware.keys())):
            named, last = _written_before(brain, purged, aware, looked_at if was_honoured else {})
        gone = hashes.get(event.id, set()).union(purged.hashes)
        present = brain.observed.present_hashes(gone)  # of whole files
        is_in_log = any(f"<!-- event: {exchange} -->" in short_term for exchange in purged.exchanges)
        has_blobs = any(digest in brain.journal.blobs for digest in gone - present)
        is_in_tree = bool(not was_honoured or present or is_in_log or named)
        if not (is_in_tree or has_blobs):
            continue
        target = _target_of(brain, purged, named)
        with brain.short_term_lock(), brain.commit_lock():
            plan = plan_forget(brain, target)
            # files alone are no reason: where nothing is to be forgotten, somebody wrote the same words
            if not was_honoured or has_blobs or named or plan.changes():
                traces = Traces(brain, target, plan, purged, was_honoured=was_honoured)
                _carry_out(brain, event, target, traces, hashes=gone, is_in_tree=is_in_tree)
    if tombstones and has_arrived:
        brain.database.keep_only(_LOOKED_AT, {**last, "": now})


def _target_of(brain: Brain, purged: TextsPurged, named: PurgedWords | None) -> Target:
    """Return what a purge is to take out here: what its tombstone names and what has its words; None for no words."""
    page = find_memory(brain, purged.page) if purged.page else None
    target = target_of_page(page, purged.items) if page else Target(purged.exchanges, items=purged.items)
    if not named:
        return target
    found = find_words(brain, named)
    parts: dict[str, Any] = {name: (*part, *target.parts[name]) for name, part in found.parts.items()}
    return replace(target, words=named, **parts)


def _written_before(
    brain: Brain, purged: TextsPurged, aware: Mapping[str, int], looked_at: Mapping[str, str]
) -> tuple[PurgedWords | None, dict[str, str]]:
    """Return the words of a purge with the sentences that were written before their device knew of it.

    None where there is no such sentence and this device has carried it out. With it comes each journal's last `seq`.

    Args:
        brain: The brain.
        purged: Its tombstone.
        aware: By device the `seq` from which on it knew of it.
        looked_at: By device the `seq` of the last event that was looked at before.
    """
    first: dict[str, tuple[str, bool]] = {}  # by text: the first event with it, and whether that was before
    new, whole, names, last = set[str](), set[str](), dict[str, set[str]](), dict[str, str]()
    merged = list[tuple[RecordedChange, ...]]()
    for device, event in brain.journal.all_events():
        name = device or brain.journal.device
        last[name] = str(event.seq)
        if isinstance(event.what, CopyMerged) and event.seq > int(looked_at.get(name, 0)):
            merged.append(event.changes)
        for digest, path in ((change.after, change.path) for change in event.changes if change.after):
            written = (event.id, name not in aware or event.seq < aware[name])
            first[digest] = min(written, first.get(digest, written))  # a text that arrived here is not from here
            if event.seq > int(looked_at.get(name, 0)):
                new.add(digest)
            names.setdefault(digest, set()).add(stem_of(path))
            if path.startswith(f"{brain.tree.layout.inbox}/"):
                whole.add(digest)
    words, said = PurgedWords(purged.salt, frozenset(purged.words), frozenset(purged.sentences)), set[str]()

    def sentences_of(text: str | None, names: Iterable[str] = (), *, is_whole: bool = False) -> set[str]:
        units = [*_units(text or ""), *names]  # what a destroyed text was called tells too
        units = ["\n".join(units)] if is_whole else units
        return {sentence for unit in units if words.meet_in(unit) for sentence in words.sentences_in(unit)}

    # the text of a file that was moved offline may be destroyed in the journal already
    present = {state.hash: path for path, state in brain.committer.file_states.all().items() if not state.is_held}
    for digest in {digest for digest in new if first[digest][1]}.union(present.keys() & set(purged.hashes)):
        text = brain.kept_text(digest) or (brain.read_text(present[digest]) if digest in present else None)
        said |= sentences_of(text, names.get(digest, ()), is_whole=digest in whole)
    for changes in merged:  # of a copy that cannot be read, as what it is a splice on was destroyed: what it brought
        befores = [change.before for change in changes if change.before]
        if any(first.get(digest, ("", False))[1] and brain.kept_text(digest) is None for digest in befores):
            stood = {each for digest in befores for each in sentences_of(brain.kept_text(digest))}
            said |= {each for change in changes for each in sentences_of(brain.kept_text(change.after))} - stood
    is_done = not said and brain.journal.device in aware
    return None if is_done else replace(words, said=frozenset(said)), last


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


def typed_anew(brain: Brain) -> Iterator[tuple[Event, str]]:
    """Yield each purge by words with the path of a file in which a person has written them since; they are theirs."""
    tree, tombstones = brain.tree, [(event, purged) for event, purged in _tombstones(brain) if purged.words]
    for path in sorted(tree.scan(tree.inbox, tree.memory)) if tombstones else ():
        text = (brain.read_text(path) or "") if tree.is_tracked(path) else ""
        for event, purged in tombstones:
            words = PurgedWords(purged.salt, frozenset(purged.words), frozenset())
            if words.meet_in(text) and any(map(words.meet_in, _units(text))):
                yield event, path


def _tombstones(brain: Brain) -> list[tuple[Event, TextsPurged]]:
    """Return the events of all devices that name texts to be destroyed."""
    return [(event, event.what) for _, event in brain.projection.purges() if isinstance(event.what, TextsPurged)]


def _wherever(named: str | PurgedWords) -> str | PurgedWords:
    """Return words of a purge as they are found in names, which have no sentences, and in what has no date."""
    return replace(named, said=None) if isinstance(named, PurgedWords) else named


def _units(text: str) -> list[str]:
    """Return the words of each value of a file's front matter, and of each of its units."""
    return [*map(said_in, values_of(text)), *(said_in(text[start:end]) for start, end in units_of(text))]
