"""An exchange that a person makes private after it was answered: it and all that came of it are taken back at once.

Nothing is taken out: its event, items, statements and lines get the private mark, a page that rests on it alone its
front matter. What had left this machine by then cannot be taken back; it is told, with the model and the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, ConflictError, FormatError, LockedError, ModelError
from brainiac.events import Change, Event, PathKind, create
from brainiac.formats.dialogue import PRIVATE, PRIVATE_MARK, find_events
from brainiac.formats.discretion import is_off_record, shareable, with_marked_events
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.memory import Memory, MemoryDocument, Statement, parse_memory
from brainiac.formats.prompt import Prompt, prompt_path_of
from brainiac.formats.prose import one_line
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.exchanges import Exchanges
from brainiac.history.ledger import Ledger
from brainiac.history.retraction import Retraction
from brainiac.history.traces import pieces_of, standing
from brainiac.llm.catalog import endpoint_of
from brainiac.llm.costs import KIND as CALLED
from brainiac.llm.gate import is_hidden
from brainiac.storage.files import locked
from brainiac.storage.record import MADE_PRIVATE
from brainiac.storage.statements import ANALYZED, PROMOTED, text_hash

ATTEMPTS = 20
BY = "kernel"
_PARAGRAPH = re.compile(r"^[^\S\n]*\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_MEMORIES = (PathKind.MEMORY, PathKind.ARCHIVED)


def keep_in(brain: Brain, prompt: Prompt) -> bool:
    """Take back what came of a prompt that became private, or off the record, after it was answered.

    Args:
        brain: The brain.
        prompt: As it stands now; one that asks for neither is left alone.

    Returns:
        Whether that is all; see `withdraw`.
    """
    if prompt.remember and not is_hidden(brain.tree, prompt.path):
        return True
    exchanges = brain.answered.exchanges_at(prompt.path)
    events = [brain.journal.find(each) for each in exchanges]
    if not any(event is None or was_open(brain, event) for event in events):
        return True
    brain.log.info("exchange_made_private", prompt=prompt.path)
    return withdraw(brain, prompt.path, exchanges)


def was_open(brain: Brain, event: Event) -> bool:
    """Return whether an exchange was not private as it was answered; also where nobody can tell any more.

    Args:
        brain: The brain.
        event: That made the exchange known.
    """
    texts = [text for change in event.changes if (text := _text(brain, change.after)) is not None]
    return not any(shareable(text) is None or PRIVATE.search(text) for text in texts)


def _text(brain: Brain, digest: str | None) -> str | None:
    try:
        return None if digest is None else brain.committer.text_of(digest).decode("utf-8", "surrogateescape")
    except BlobError:
        return None


def withdraw(brain: Brain, prompt: str, exchanges: Collection[str]) -> bool:
    """Take exchanges back into private, in one commit, and tell what had been sent of them.

    Args:
        brain: The brain.
        prompt: Path of their prompt, as it stands now.
        exchanges: Their ids, former revisions too.

    Returns:
        Whether that is all. False while a promotion runs, which may still write what it took in before: to be done
        once more.

    Raises:
        ConflictError: Somebody keeps writing the files.
    """
    try:
        with locked(brain.places.state / "promotion.lock", wait_seconds=0):
            _commit(brain, prompt, tuple(exchanges), is_last=True)
            return True
    except LockedError:
        _commit(brain, prompt, tuple(exchanges), is_last=False)
        return False


def _commit(brain: Brain, prompt: str, exchanges: tuple[str, ...], *, is_last: bool) -> None:
    for _ in range(ATTEMPTS):
        with brain.short_term_lock():
            found = Withdrawal(brain, exchanges).plan()
            data: dict[str, Any] = {"prompt": prompt, "statements": found.statements, "left": found.left}
            made: list[Change] = []
            if is_last:
                calls = sent(brain, exchanges)
                data |= {"exchanges": list(exchanges), "sent": [each.as_json() for each in calls]}
                made = _tell(brain, prompt, found, calls)
            changes = [*found.changes(brain), *made]
            if not (changes or is_last):
                return
            try:
                brain.commit(MADE_PRIVATE, by=BY, changes=changes, data=data)
            except ConflictError as error:
                paths = error.paths
                continue
            return
    raise ConflictError(paths)


# --- what is told --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """Calls to one model elsewhere that held an exchange, or may have.

    Attributes:
        purposes: What they were for.
        first: ISO 8601 UTC of the first.
        is_own: They were about the exchange itself; others were made while it stood in memory.
    """

    model: str
    purposes: tuple[str, ...]
    calls: int
    first: str
    last: str
    is_own: bool

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"purposes": list(self.purposes)}

    def __str__(self) -> str:
        when = self.first if self.first == self.last else f"{self.first} to {self.last}"
        calls = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        return f"{self.model} ({calls} for {', '.join(self.purposes)}, {when})"


def sent(brain: Brain, exchanges: Collection[str]) -> list[Sent]:
    """Return the calls to models elsewhere that were about exchanges, and those since, which may have held them."""
    known = Exchanges(brain).events
    events = [known[each][1] for each in exchanges if each in known]
    about = {*exchanges, *(str(event.data.get("prompt_id")) for event in events)}
    first = min(exchanges)
    found: dict[tuple[str, bool], list[Event]] = {}
    for _, event in (*(("", event) for event in brain.journal.events(kinds={CALLED})), *brain.journal.foreign_events()):
        if event.kind != CALLED or not _is_elsewhere(brain, event):
            continue
        is_own = event.data.get("about") in about
        if is_own or event.id > first:
            found.setdefault((str(event.data.get("model")), is_own), []).append(event)
    return [_summed(model, calls, is_own=is_own) for (model, is_own), calls in sorted(found.items(), key=_own_first)]


def _is_elsewhere(brain: Brain, event: Event) -> bool:
    """Return whether a call left this machine: as the journal has it, else by where its model is served now."""
    if "is_remote" in event.data:
        return bool(event.data["is_remote"])
    try:
        return not endpoint_of(str(event.data.get("model")), brain.machine).is_local
    except ModelError:
        return True


def _own_first(item: tuple[tuple[str, bool], list[Event]]) -> tuple[bool, str]:
    (model, is_own), _ = item
    return not is_own, model


def _summed(model: str, calls: list[Event], *, is_own: bool) -> Sent:
    purposes = tuple(dict.fromkeys(str(event.data.get("purpose")) for event in calls))
    moments = sorted(event.at for event in calls)
    return Sent(model, purposes, len(calls), moments[0], moments[-1], is_own)


def _tell(brain: Brain, prompt: str, found: Retraction, calls: Iterable[Sent]) -> list[Change]:
    """Put the line into `review.md` that says what had been sent, and what stays where a person must decide.

    Returns:
        The change that makes the file, where there is none to be changed.
    """
    own, others = ([str(call) for call in calls if call.is_own is side] for side in (True, False))
    parts = [f"before that it was sent to {'; '.join(own)}, which nothing can take back"] if own else []
    if others:
        parts.append(f"since it was said these calls may have held it: {'; '.join(others)}")
    if is_off_record(brain.read(prompt)):
        parts.append(f"what was kept of it before stays until `brainiac forget --purge {prompt}`")
    if not (parts := [*parts, *found.left]):
        return []
    line = f"- {one_line(f'{prompt} is private now; ' + '; '.join(parts))} {PRIVATE_MARK}\n"
    path = brain.tree.relative(brain.tree.review)
    text = found.after.get(path) or brain.read_text(path)
    if text is None:
        return [create(path, line)]
    found.before.setdefault(path, text)
    found.after[path] = text + ("" if text.endswith("\n") or not text else "\n") + line
    return []


# --- what is marked ------------------------------------------------------------------------------------------------


class Withdrawal:
    """Finds all that came of exchanges and puts the private mark on it.

    Args:
        brain: The brain.
        exchanges: Their ids.
    """

    def __init__(self, brain: Brain, exchanges: tuple[str, ...]) -> None:
        self._brain, self._ids = brain, frozenset(exchanges)
        self._known, self._ledger = Exchanges(brain), Ledger(brain)
        self._words: list[str] = []  # what the person said, and what was made of it
        self.result = Retraction(exchanges)

    def plan(self) -> Retraction:
        """Look the tree over as it stands."""
        self._words += [self._known.said(exchange).user for exchange in sorted(self._ids)]
        self._edit(self._short_term, self._mark_short_term)
        for path in sorted(self._pages()):
            self._edit(path, lambda text, path=path: self._mark_page(path, text))  # type: ignore[misc]
        self._edit(self._brain.tree.relative(self._brain.tree.review), self._mark_review)
        self._mark_echoes()
        return self.result

    @property
    def _short_term(self) -> str:
        return self._brain.tree.relative(self._brain.tree.short_term)

    def _edit(self, path: str, mark: Callable[[str], str]) -> None:
        text = self.result.after.get(path) or self._brain.read_text(path)
        if text is None:
            return
        try:
            after = mark(text)
        except FormatError as error:
            self.result.left.append(f"{path} cannot be read ({error.problem})")
            return
        if after != text:
            self.result.before.setdefault(path, text)
            self.result.after[path] = after

    # --- short-term memory ----------------------------------------------------------------------------------

    def _mark_short_term(self, text: str) -> str:
        text = with_marked_events(text, lambda placed: placed.event.id in self._ids)
        items = {one for event in self._reflections() for one in event.data.get("items", ())}
        text = _with_marked_items(text, lambda said: text_hash(said) in items)
        return _with_marked_summary(text) if self._is_summed_up() else text

    def _reflections(self) -> Iterator[Event]:
        kind = "exchange-reflected"
        foreign = (event for _, event in self._brain.journal.foreign_events() if event.kind == kind)
        for event in (*self._brain.journal.events(kinds={kind}), *foreign):
            if event.data.get("exchange") in self._ids:
                yield event

    def _is_summed_up(self) -> bool:
        """Return whether the summary that stands was made in sight of one of the exchanges."""
        runs = self._brain.journal.events(kinds={PROMOTED}, reverse=True)
        last = next((event.data for event in runs if "summarized_by" in event.data), {})
        return not self._ids.isdisjoint((*last.get("exchanges", ()), *last.get("left", ())))

    # --- pages ----------------------------------------------------------------------------------------------

    def _pages(self) -> Iterator[str]:
        """Yield the pages that name one of the exchanges, in their front matter or as said on them."""
        tree = self._brain.tree
        for entry in tree.walk(tree.long_term, tree.archive):
            path = tree.relative(entry.path)
            if tree.kind_of(path) in _MEMORIES:
                text = self._brain.read_text(path) or ""
                if any(exchange in text for exchange in self._ids) and shareable(text) is not None:
                    yield path

    def _mark_page(self, path: str, text: str) -> str:
        memory = parse_memory(path, text)
        whole = self._ledger.whole.get(memory.uuid)
        if whole and not whole.sources.isdisjoint(self._ids):  # a note, whatever was added to it
            return str(MemoryDocument(text, path).set_meta(private=True))
        marked = [one for one in memory.statements if self._rests_on_it(memory, one)]
        self._words += [one.text for one in marked]
        after = with_marked_statements(text, marked)
        after = with_marked_events(after, lambda placed: placed.event.id in self._ids)
        if _is_bare(shareable(after), path) and (memory.uuid in self._ledger.pages or list(find_events(text))):
            return str(MemoryDocument(text, path).set_meta(private=True))
        self._note(memory, after, path, marked)
        return self._without_keys(after, path)

    def _rests_on_it(self, memory: Memory, statement: Statement) -> bool:
        """Return whether a statement rests on the exchanges and says nothing that was said openly elsewhere."""
        behind = self._ledger.behind(memory.uuid, statement)
        sources = frozenset().union(*(one.sources for one in behind))
        is_said_openly = any(
            one.hash == text_hash(statement.text) and one.sources and one.sources.isdisjoint(self._ids)
            for one in behind
        )
        return not sources.isdisjoint(self._ids) and not is_said_openly and not PRIVATE.search(statement.text)

    def _note(self, memory: Memory, after: str, path: str, marked: Iterable[Statement]) -> None:
        """Record the new wording of statements, so that `why` and `forget` know what they rest on."""
        now = {one.block_id: one for one in parse_memory(path, after).statements}
        for one in marked:
            if one.block_id and one.block_id in now:
                sources = frozenset().union(*(each.sources for each in self._ledger.behind(memory.uuid, one)))
                self.result.statements.append(
                    {
                        "operation": "UPDATE",
                        "path": path,
                        "page": memory.uuid,
                        "block": one.block_id,
                        "hash": text_hash(now[one.block_id].text),
                        "sources": sorted(sources),  # type: ignore[dict-item]
                        "replaced": {"block": one.block_id, "hash": text_hash(one.text)},  # type: ignore[dict-item]
                    }
                )

    def _without_keys(self, text: str, path: str) -> str:
        """Return a page without the tags and the key that nothing but these exchanges gave it."""
        page, words = MemoryDocument(text, path), self._keywords
        kept = [tag for tag in page.memory.tags if tag not in words]
        keys: dict[str, Any] = {"tags": kept} if len(kept) < len(page.memory.tags) else {}
        if str(page.memory.meta.get("canonical_key")) in words:
            keys["canonical_key"] = None
        return str(page.set_meta(**keys)) if keys else text

    @cached_property
    def _keywords(self) -> set[str]:
        theirs: set[str] = set()
        others: set[str] = set()
        for event in self._brain.journal.events(kinds={ANALYZED}):
            for found in event.data.get("candidates", ()):
                words = {*map(str, found.get("tags", ())), str(found.get("canonical_key") or "")}
                is_ours = not self._ids.isdisjoint(map(str, found.get("events", ())))
                (theirs if is_ours else others).update(words)
        return theirs - others - {""}

    # --- review, and what repeats it ------------------------------------------------------------------------

    def _mark_review(self, text: str) -> str:
        gone = [one for one, sources in self._ledger.proposals.items() if not sources.isdisjoint(self._ids)]
        lines = text.splitlines(keepends=True)
        return "".join(
            line.replace("<!-- proposal:", f"{PRIVATE_MARK} <!-- proposal:", 1)
            if any(f"<!-- proposal: {one} -->" in line for one in gone) and not PRIVATE.search(line)
            else line
            for line in lines
        )

    def _mark_echoes(self) -> None:
        """Mark what repeats it word for word: answers in other exchanges, digests, the summary.

        What a person said or wrote again, openly, is theirs to mark; it is named.
        """
        pieces = pieces_of(self._words)
        places = {path for paths in standing(self._brain, pieces, {}).values() for path in paths}
        told = [_folded(piece.decode("utf-8", "surrogateescape")) for piece in pieces]
        for path in sorted(places):
            kind = self._brain.tree.kind_of(path)
            if kind in (*_MEMORIES, PathKind.SHORT_TERM):
                self._edit(path, lambda text, path=path: self._mark_echo(path, text, told))  # type: ignore[misc]
            elif kind is PathKind.RESPONSE and not self._is_open_or_hidden(path, places):
                self._edit(path, lambda text: edit_meta(text, private=True))  # its exchange is private with it

    def _is_open_or_hidden(self, answer: str, places: set[str]) -> bool:
        """Return whether an answer is private already, or its prompt says openly what it repeats."""
        return is_hidden(self._brain.tree, answer) or not places.isdisjoint(prompt_path_of(answer) or ())

    def _mark_echo(self, path: str, text: str, pieces: Collection[str]) -> str:
        if shareable(text) is None:
            return text

        def repeats(said: str) -> bool:
            folded = _folded(said)
            return any(piece in folded for piece in pieces)

        after = with_marked_events(
            text, lambda each: repeats(f"{each.event.ai}\n{each.event.thoughts}") and not repeats(each.event.user)
        )
        if self._brain.tree.kind_of(path) is PathKind.SHORT_TERM:
            after = _with_marked_items(after, repeats)
            return _with_marked_summary(after) if repeats(ShortTermDocument(after).memory.summary) else after
        memory = parse_memory(path, after)
        echoes = [one for one in memory.statements if repeats(one.text) and not PRIVATE.search(one.text)]
        ours = [one for one in echoes if self._is_unsaid(memory, one)]
        if len(ours) < len(echoes):
            self.result.left.append(f"{path} says it too, openly")
        return with_marked_statements(after, ours)

    def _is_unsaid(self, memory: Memory, statement: Statement) -> bool:
        """Return whether a statement is a process's own and rests on nothing that was said openly, as in a digest."""
        behind = self._ledger.behind(memory.uuid, statement)
        return bool(behind) and not any(one.sources - self._ids for one in behind)


def with_marked_statements(text: str, statements: Iterable[Statement]) -> str:
    """Return a page in which statements are marked private, each before its block id."""
    for one in sorted(statements, key=lambda one: one.start, reverse=True):
        start, end = one.own
        struck = text.rfind("~~", start, end) if one.is_history else -1
        at = struck if struck > start else end
        text = f"{text[:at]} {PRIVATE_MARK}{text[at:]}"
    return text


def _with_marked_items(text: str, is_meant: Callable[[str], bool]) -> str:
    return str(ShortTermDocument(text).with_private_items(is_meant))


def _with_marked_summary(text: str) -> str:
    start, end = ShortTermDocument(text).summary_span()
    section = _PARAGRAPH.sub(_with_mark, text[start:end])
    return text[:start] + section + text[end:]


def _with_mark(found: re.Match[str]) -> str:
    words = found[0].rstrip("\r")
    return found[0] if PRIVATE.search(words) else f"{words} {PRIVATE_MARK}{found[0][len(words) :]}"


def _is_bare(rest: str | None, path: str) -> bool:
    """Return whether nothing but headings would be left to show of a page."""
    return rest is not None and not _HEADING.sub("", parse_memory(path, rest).body).strip()


def _folded(text: str) -> str:
    return " ".join(text.replace("\\", "").split())
