"""What a person names to have it forgotten: an exchange, a conversation, a page, or all that has some words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.events import ExchangeForgotten, ForgetProposal, MemoryForgotten, PathKind, new_id
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import PRIVATE, find_events
from brainiac.formats.page import Memory
from brainiac.formats.prompt import prompt_path_of
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import find_memory, memory_pages
from brainiac.search.documents import Hit
from brainiac.storage.statements import text_hash
from brainiac.storage.withheld import block_hash, blocks_of, matching_blocks
from brainiac.text.tokens import holds_words

OPERATION = "forget"  # of a proposal in `review.md`
OFFLINE, COMMANDS = "offline", "commands"  # the models that an answer without a model names
_LINKS_ALONE = re.compile(r"(?:\s*\[[^\]]*\]\([^)]*\)[,;]?)+\s*")
_SOURCE = re.compile(r"^— .*\n?", re.MULTILINE)  # below a quotation of an answer: day and link
_SHOWN_CHARACTERS = 100
# what processes add to a person's words: the day with its link, the block id, comments
_OUR_ADDITIONS = re.compile(r"\(\[\d{4}-\d\d-\d\d\]\([^)]*\)\)|\^[0-9a-z]{4,6}[ \t]*$|<!--.*?-->", re.MULTILINE)
# the fields of a target, and the word for each in messages
_PARTS = {"exchanges": "exchange", "blocks": "statement", "items": "item", "pages": "page", "answers": "answer"}


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be forgotten, by ids and hashes alone, so that it can be found again in a changed tree.

    Attributes:
        exchanges: Ids.
        blocks: Statements and paragraphs of pages: (uuid or path of the page, hash of the text).
        items: Hashes of goals, facts and tasks of short-term memory.
        pages: Paths of pages that are removed whole.
        answers: Paths of answers in the inbox that have the words although their prompts do not.
        page: The uuid of the page that a person named, "" where it has none; None where no page was named.
        shown: A line for each of these, to show to a person.
        is_private: Whether some of it is private.
    """

    exchanges: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    page: str | None = None
    shown: tuple[str, ...] = field(default=(), compare=False)
    is_private: bool = field(default=False, compare=False)

    @property
    def parts(self) -> dict[str, Any]:
        """Its fields that name what is to be forgotten."""
        return {name: getattr(self, name) for name in _PARTS}

    def __bool__(self) -> bool:
        return any(self.parts.values())

    @property
    def count(self) -> str:
        """How many exchanges, statements and so on it has, in words."""
        counts = [(len(part), _PARTS[name]) for name, part in self.parts.items() if part]
        return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts) or "nothing"

    def proposal(self, what: str) -> ForgetProposal:
        """Return the proposal to forget it, with one sentence for a person."""
        return ForgetProposal(id=new_id(), what=what, operation=OPERATION, **self.parts)

    @classmethod
    def of(cls, what: ForgetProposal | ExchangeForgotten | MemoryForgotten) -> Target:
        """Return the target that a proposal names, or that an event took out."""
        if isinstance(what, MemoryForgotten):
            return cls(what.exchanges, pages=(what.path,), page=what.page)
        parts: dict[str, Any] = {name: getattr(what, name) for name in _PARTS}
        return cls(**parts)


def find_target(brain: Brain, named: str) -> Target:
    """Return the conversation, exchange or page that a person named, as a target.

    Raises:
        UserError: Nothing is called so.
    """
    exchanges, inbox = Exchanges(brain), brain.tree.layout.inbox
    try:
        file = brain.tree.confine(named)
        named = brain.tree.relative(file) if file.exists() else named  # as the journal spells it
    except ConfinementError:
        pass  # words, or an id
    if exchange := exchanges.find(named):
        return Target(tuple(exchanges.with_same_prompt(exchange)))
    if named.startswith(f"{inbox}/") and (conversation := exchanges.in_folder(named)):
        return Target(tuple(conversation))
    if memory := find_memory(brain, named):
        return target_of_page(memory)
    raise UserError(
        f"{named!r} names no exchange (by id, or by its file in {inbox}/) and no memory "
        "(by path, title or uuid); `brainiac why` shows the exchanges behind a statement"
    )


def target_of_page(memory: Memory, items: Iterable[str] = ()) -> Target:
    """Return the target that is a page; the exchanges on an episodic page are part of it."""
    exchanges = tuple(placed.event.id for placed in find_events(memory.text))
    return Target(exchanges, items=tuple(items), pages=(memory.path,), page=memory.uuid)


def find_words(brain: Brain, words: str) -> Target:
    """Return everything in memory and inbox that has all of the words, as a target; an empty one for no words."""
    return _WordSearch(brain, words).target()


def target_of_hits(brain: Brain, hits: Iterable[Hit]) -> Target:
    """Return what hits of a search in memory stand in, as a target: exchanges, blocks of pages, items.

    What stands on a page whose front matter cannot be read is left out.
    """
    parts: dict[str, dict[Any, str]] = {name: {} for name in _PARTS}
    for hit in hits:
        line = f"{hit.path}: {_quoted(hit.said)}"
        if hit.kind == "exchange":
            parts["exchanges"].setdefault(hit.anchor, line)
        elif brain.tree.kind_of(hit.path) is PathKind.SHORT_TERM:
            parts["items"][text_hash(hit.text)] = line
        elif text := brain.read_text(hit.path):
            with suppress(FormatError):
                for block in matching_blocks(text, split(text, hit.path)[1], hit.text):
                    parts["blocks"][hit.uuid or hit.path, block_hash(block)] = line
    fields: dict[str, Any] = {name: tuple(part) for name, part in parts.items()}
    return Target(**fields, shown=tuple(line for part in parts.values() for line in part.values()))


class _WordSearch:
    """Reads memory and inbox once and collects what has all of the words, each with a line to show to a person."""

    def __init__(self, brain: Brain, words: str) -> None:
        self._brain, self._words = brain, words
        # for each field of the target its entries, each with a line for a person
        self._parts: dict[str, dict[Any, str]] = {name: {} for name in _PARTS}
        self._is_private = False

    def target(self) -> Target:
        """Return everything that has the words, as a target."""
        tree = self._brain.tree
        self._read_short_term()
        for page in memory_pages(self._brain).values():
            self._read_page(page)
        exchanges = Exchanges(self._brain)
        for path in sorted(tree.relative(entry.path) for entry in tree.walk(tree.inbox)):
            if self._matches(_searched_text(path, self._brain.read_text(path) or "")):
                self._add_file(path, exchanges)
        parts: dict[str, Any] = {name: tuple(part) for name, part in self._parts.items()}
        lines = tuple(line for part in self._parts.values() for line in part.values())
        return Target(**parts, shown=lines, is_private=self._is_private)

    def _matches(self, text: str) -> bool:
        return holds_words(text, self._words)

    def _add_file(self, path: str, exchanges: Exchanges) -> None:
        """Add the exchange of a file that has the words; of an answer whose prompt does not have them, the answer.

        Files come sorted, a prompt before its answers, so that the exchange of a prompt with the words is added by now.
        """
        exchange, matches = exchanges.find(path), self._parts["exchanges"]
        is_answer = bool(prompt_path_of(path))
        if is_answer and exchange not in matches:
            self._parts["answers"][path] = f"{path}: the answer"
        elif exchange:
            matches.setdefault(exchange, f"{path}: {_quoted(exchanges.said(exchange).user)}")

    def _read_short_term(self) -> None:
        """Add the exchanges and items of short-term memory that have the words."""
        path = self._brain.tree.relative(self._brain.tree.short_term)
        try:
            document = self._brain.short_term()
        except FormatError:
            return  # `doctor` names what is wrong with it
        self._add_events(path, str(document))
        for item in (*document.memory.goals, *document.memory.facts, *document.memory.tasks):
            if self._matches(item.text):
                self._is_private |= item.is_private
                self._parts["items"][text_hash(item.text)] = f"{path}: {_quoted(item.text)}"

    def _add_events(self, path: str, text: str) -> str:
        """Add the exchanges of a file that have the words; return the text without its exchanges."""
        for placed in reversed(list(find_events(text))):
            event = placed.event
            # an answer of the offline engine is recorded as links alone: their titles are nobody's words
            answer = "" if _LINKS_ALONE.fullmatch(event.ai) else event.ai
            if self._matches(f"{event.user}\n{answer}"):
                self._is_private |= event.is_private
                line = f"{path}, {self._brain.day_of(event.at)}: {_quoted(event.user or answer)}"
                self._parts["exchanges"][event.id] = line
            text = text[: placed.start] + text[placed.end :]
        return text

    def _read_page(self, page: Memory) -> None:
        """Add the exchanges and blocks of a page that have the words, or the whole page where its title has them."""
        rest = self._add_events(page.path, page.text)
        is_private = bool(page.meta.get("private"))
        has_exchanges, is_date = rest != page.text, page.title.replace("-", "").isdecimal()
        # the title of a day's page does not say what the page is about
        if not has_exchanges and not is_date and self._matches(page.title):
            self._parts["pages"][page.path] = f"{page.path}: the whole page"
            self._is_private |= is_private or bool(PRIVATE.search(page.text))
            return
        for start, end in blocks_of(rest, page.offset):
            block = rest[start:end]
            if self._matches(_OUR_ADDITIONS.sub("", block)):
                self._is_private |= is_private or bool(PRIVATE.search(block))
                self._parts["blocks"][page.uuid or page.path, block_hash(block)] = f"{page.path}: {_quoted(block)}"


def _searched_text(path: str, text: str) -> str:
    """Return the text of a file in the inbox without front matter.

    Of an answer without a model its fixed phrases and the titles of what it quotes are left out: nobody's words.
    """
    from brainiac.llm.offline import FIXED  # with it comes numpy, and what only looks at memory starts without

    try:
        meta, offset = split(text, path)
    except FormatError:
        return text
    if meta.get("model") not in (OFFLINE, COMMANDS):
        return text[offset:]
    lines = _SOURCE.sub("", text[offset:]).splitlines()
    return "\n".join(line for line in lines if line not in FIXED)


def _quoted(text: str) -> str:
    """Return a text on one line in quotes, cut to `_SHOWN_CHARACTERS`."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + '…'}”"
