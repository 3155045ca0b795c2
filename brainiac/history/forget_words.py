"""Forgetting by words: whatever holds them all, in memory and in the inbox, found by reading it (design 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.events import Event, PathKind, new_id
from brainiac.formats.dialogue import PRIVATE, find_events
from brainiac.formats.discretion import is_private_note
from brainiac.formats.frontmatter import split
from brainiac.formats.memory import parse_memory
from brainiac.formats.prompt import prompt_path_of, response_path
from brainiac.formats.statements import find_statements
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import EXCHANGE_FORGOTTEN, Forgetting, forget
from brainiac.history.retraction import Retraction, Retractor
from brainiac.storage.filed import PROPOSED, pending
from brainiac.storage.review import Proposal, review_change
from brainiac.storage.statements import text_hash
from brainiac.text.tokens import holds_words

OPERATION = "forget"
OFFLINE, COMMANDS = "offline", "commands"  # the models that an answer without a model names
_PARAGRAPH = re.compile(r"(?:^(?![ \t]*\r?$|#{1,6} |---[ \t]*\r?$|<!--)[^\n]+(?:\n|\Z))+", re.MULTILINE)
# what we put behind a person's words: the day with its link, the block id
_OURS = re.compile(r"\(\[\d{4}-\d\d-\d\d\]\([^)]*\)\)|\^[0-9a-z]{4,6}[ \t]*$|<!--.*?-->", re.MULTILINE)
_LINKS_ALONE = re.compile(r"(?:\s*\[[^\]]*\]\([^)]*\)[,;]?)+\s*")
_FIXED = re.compile(r"^(?!>).*\n?", re.MULTILINE)
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Holding:
    """What holds the words, by ids and hashes alone.

    Attributes:
        exchanges: Ids.
        blocks: Statements and paragraphs of pages: (uuid or path of the page, hash of the text).
        items: Hashes of goals, facts and tasks of short-term memory.
        pages: Paths of pages that are called so.
        answers: Paths of answers in the inbox that quote them to somebody who did not say them.
        shown: One line each, for a person.
        is_private: Something of it must not leave this machine.
    """

    exchanges: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    shown: tuple[str, ...] = field(default=(), compare=False)
    is_private: bool = field(default=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.exchanges or self.blocks or self.items or self.pages or self.answers)

    @property
    def count(self) -> str:
        """How much it is, in words."""
        named = {"exchange": self.exchanges, "statement": self.blocks, "item": self.items, "page": self.pages}
        named["answer"] = self.answers
        counts = [f"{len(some)} {name}{'' if len(some) == 1 else 's'}" for name, some in named.items() if some]
        return ", ".join(counts) or "nothing"

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the journal."""
        return {
            "exchanges": list(self.exchanges),
            "blocks": [list(block) for block in self.blocks],
            "items": list(self.items),
            "pages": list(self.pages),
            "answers": list(self.answers),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Holding:
        """Return what the journal keeps."""
        blocks = tuple((str(page), str(digest)) for page, digest in data.get("blocks", ()))
        items, pages, answers = (tuple(data.get(name, ())) for name in ("items", "pages", "answers"))
        return cls(tuple(data["exchanges"]), blocks, items, pages, answers)


class _Search:
    """Reads everything once and gathers what holds the words."""

    def __init__(self, brain: Brain, words: str) -> None:
        self._brain, self._words = brain, words
        self._exchanges: dict[str, str] = {}
        self._blocks: dict[tuple[str, str], str] = {}
        self._items: dict[str, str] = {}
        self._pages: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        self._is_private = False

    def holding(self) -> Holding:
        tree = self._brain.tree
        self._read_short_term()
        for entry in tree.walk(tree.long_term, tree.archive):
            path = tree.relative(entry.path)
            if tree.kind_of(path) in (PathKind.MEMORY, PathKind.ARCHIVED):
                self._read_page(path, self._brain.read_text(path) or "")
        known = Exchanges(self._brain)
        for entry in sorted(tree.walk(tree.inbox), key=lambda entry: entry.path):
            path = tree.relative(entry.path)
            if holds_words(_said(path, self._brain.read_text(path) or ""), self._words):
                self._read_inbox(path, known)
        parts = (self._exchanges, self._blocks, self._items, self._pages, self._answers)
        return Holding(
            exchanges=tuple(self._exchanges),
            blocks=tuple(self._blocks),
            items=tuple(self._items),
            pages=tuple(self._pages),
            answers=tuple(self._answers),
            shown=tuple(line for part in parts for line in part.values()),
            is_private=self._is_private,
        )

    def _read_inbox(self, path: str, known: Exchanges) -> None:
        """Gather the exchange of a prompt; an answer that quotes the words goes alone, what was said to it stays."""
        exchange = known.find(path)
        is_answer = bool(prompt_path_of(path))
        if is_answer and exchange not in self._exchanges:
            self._answers[path] = f"{path}: the answer"
        elif exchange:
            self._exchanges.setdefault(exchange, f"{path}: {self._shown(known.said(exchange).user)}")

    def _read_short_term(self) -> None:
        path = self._brain.tree.relative(self._brain.tree.short_term)
        try:
            memory = self._brain.short_term().memory
        except FormatError:
            return  # `doctor` names what is wrong with it
        self._read_events(path, self._brain.read_text(path) or "")
        for item in (*memory.goals, *memory.facts, *memory.tasks):
            if holds_words(item.text, self._words):
                self._is_private |= item.is_private
                self._items[text_hash(item.text)] = f"{path}: {self._shown(item.text)}"

    def _read_events(self, path: str, text: str) -> str:
        """Gather the exchanges of a file; return the text without any."""
        for placed in reversed(list(find_events(text))):
            event = placed.event
            answer = "" if _LINKS_ALONE.fullmatch(event.ai) else event.ai  # as the keyless engine's is recorded
            if holds_words(f"{event.user}\n{answer}", self._words):
                self._is_private |= event.is_private
                self._exchanges[event.id] = f"{path}, {self._brain.day_of(event.at)}: {self._shown(event.user)}"
            text = text[: placed.start] + text[placed.end :]
        return text

    def _read_page(self, path: str, text: str) -> None:
        try:
            memory = parse_memory(path, text)
        except FormatError:
            return
        rest = self._read_events(path, text)
        is_day = rest != text
        is_called = holds_words(memory.title, self._words) and not memory.title.replace("-", "").isdecimal()
        if not is_day and is_called:
            self._pages[path] = f"{path}: the whole page"
            self._is_private |= bool(PRIVATE.search(text)) or bool(memory.meta.get("private"))
            return
        for block in _blocks(rest):
            if holds_words(_OURS.sub("", block), self._words):
                self._is_private |= bool(PRIVATE.search(block)) or bool(memory.meta.get("private"))
                self._blocks[memory.uuid or path, text_hash(block)] = f"{path}: {self._shown(block)}"

    @staticmethod
    def _shown(text: str) -> str:
        line = " ".join(text.split())
        return f"“{line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + '…'}”"


def find_holding(brain: Brain, words: str) -> Holding:
    """Return what holds all the words: exchanges, statements, tasks, pages and answers; nothing for no words."""
    return _Search(brain, words).holding()


def _said(path: str, text: str) -> str:
    """Return what a file of the inbox says: a prompt's text, of an answer of the keyless engine what it quotes."""
    try:
        meta, offset = split(text, path)
    except FormatError:
        return text
    is_keyless = meta.get("model") in (OFFLINE, COMMANDS)
    return _FIXED.sub("", text[offset:]) if is_keyless else text[offset:]


def of_holding(brain: Brain, holding: Holding) -> Forgetting:
    """Return the forgetting of all of it."""

    def plan() -> Retraction:
        found = Retractor(brain, holding.exchanges, holding.items).plan()
        for path in _paths(brain):
            _take(brain, path, holding, found)
        for path in holding.answers:
            if path not in found.after and (text := brain.read_text(path)) is not None:
                found.texts.append(text)
                _change(brain, found, path, None, "the answer")
        return found

    return Forgetting(EXCHANGE_FORGOTTEN, holding.to_json(), plan)


def _take(brain: Brain, path: str, holding: Holding, found: Retraction) -> None:
    """Add to a retraction what goes of one page."""
    text = found.after.get(path, brain.read_text(path)) if path in found.after else brain.read_text(path)
    if text is None:
        return
    if path in holding.pages:
        found.texts.append(text)
        _change(brain, found, path, None, "the page")
        return
    try:
        meta, offset = split(text, path)
    except FormatError:
        return
    hashes = {digest for page, digest in holding.blocks if page in (str(meta.get("uuid")), path)}
    if not hashes:
        return
    kept, gone = _cut(text, offset, lambda block: text_hash(block) in hashes)
    found.texts += gone
    if gone:
        _change(brain, found, path, kept, f"{len(gone)} of its statements")


def _change(brain: Brain, found: Retraction, path: str, after: str | None, what: str) -> None:
    found.before.setdefault(path, brain.read_text(path) or "")
    found.after[path] = after
    found.told.append(f"{'-' if after is None else '~'} {path}: {what}")


def _paths(brain: Brain) -> Iterator[str]:
    for entry in brain.tree.walk(brain.tree.long_term, brain.tree.archive):
        path = brain.tree.relative(entry.path)
        if brain.tree.kind_of(path) in (PathKind.MEMORY, PathKind.ARCHIVED):
            yield path


def _places(text: str, offset: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the statements of a page, those below each with it, and of its paragraphs."""
    taken = [(one.start, one.end) for one in find_statements(text, offset)]
    taken += [(one.start, one.end) for one in find_events(text, offset)]
    for found in _PARAGRAPH.finditer(text, offset):
        if not any(start < found.end() and found.start() < end for start, end in taken):
            taken.append(found.span())
    yield from sorted(taken)


def _blocks(text: str) -> Iterator[str]:
    try:
        offset = split(text)[1]
    except FormatError:
        return
    yield from (text[start:end] for start, end in _places(text, offset))


def _cut(text: str, offset: int, is_gone: Callable[[str], bool]) -> tuple[str, list[str]]:
    gone = []
    for start, end in reversed(list(_places(text, offset))):
        if is_gone(text[start:end]):
            gone.append(text[start:end])
            text = text[:start] + text[end:]
    return text, gone


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a `/forget` answers."""

    text: str
    is_private: bool = False


def propose(brain: Brain, words: str, prompt: str) -> Proposed:
    """Put the forgetting of what holds the words before the person, in `memory/review.md`.

    Journal and review line hold ids and hashes alone: the words stand in the prompt and its answer, which go when it
    is done.

    Args:
        brain: The brain.
        words: What is to be forgotten.
        prompt: Path of the prompt that asks for it.
    """
    holding = find_holding(brain, words)
    if not holding:
        return Proposed(f"Nothing in memory holds “{words}”.")
    name = new_id()
    data = {"operation": OPERATION, "prompt": prompt, **holding.to_json()}
    proposal = Proposal(name, f"Forget {holding.count}, as listed beside {prompt}", data, holding.is_private)
    changes = review_change(brain, [proposal])
    brain.commit(PROPOSED, by="core_loop", changes=changes, data={"proposals": [proposal.as_json()]})
    lines = "\n".join(f"- {line}" for line in holding.shown)
    text = f"To be forgotten, once you tick it in memory/review.md: {holding.count}.\n\n{lines}"
    return Proposed(text, holding.is_private)


def ask_about_deleted(brain: Brain, path: str, before: str) -> None:
    """Ask whether what a page came from is to be forgotten with it, since a person deleted it by hand.

    Args:
        brain: The brain.
        path: Where it stood.
        before: Its text.
    """
    try:
        meta, _ = split(before, path)
    except FormatError:
        return
    said = {placed.event.id for placed in find_events(before)}
    sources = [str(each) for each in meta.get("sources") or () if str(each) not in said]
    if not sources or str(meta.get("uuid") or "") in pending(brain):
        return
    holding = Holding(tuple(sources))
    what = f"Forget {holding.count} too: the deleted page {path} was made from what they say; until then none is quoted"
    data = {"operation": OPERATION, "deleted": str(meta.get("uuid") or path), "path": path, **holding.to_json()}
    proposal = Proposal(new_id(), what, data, is_private_note(before))
    changes = review_change(brain, [proposal])
    brain.commit(PROPOSED, by="organization", changes=changes, data={"proposals": [proposal.as_json()]})


def settle(brain: Brain, proposal: Mapping[str, Any]) -> Event | None:
    """Forget what a person ticked; the prompt that asked for it and its answer go with it.

    Returns:
        The event; None when nothing of it stands any more.
    """
    event = forget(brain, of_holding(brain, Holding.from_json(proposal)), by="person")
    prompt = str(proposal.get("prompt") or "")
    for path in (prompt, *(response_path(prompt, number) for number in range(1, 4))) if prompt else ():
        file = brain.tree.confine(path, inside=brain.tree.inbox)
        file.unlink(missing_ok=True)  # off the record: no journal may hold its words, so no commit removes it
    return event
