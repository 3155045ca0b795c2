"""What a person names to have it forgotten: an exchange, a conversation, a page, or all that has some words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.events import ExchangeForgotten, ForgetProposal, MemoryForgotten, PathKind, new_id
from brainiac.formats.index_page import MANIFEST, RELATED
from brainiac.formats.markdown import PRIVATE, find_events, find_links
from brainiac.formats.page import HISTORY, STEPS, Memory, is_private_note
from brainiac.formats.prompt import prompt_path_of
from brainiac.formats.short_term import EMPTY
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import find_memory, memory_pages
from brainiac.search.documents import Hit
from brainiac.storage.review import EMPTY as EMPTY_REVIEW
from brainiac.storage.statements import text_hash
from brainiac.storage.withheld import block_hash, matching_blocks, split_or_all, units_of, without_spans
from brainiac.text.tokens import holds_words

PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
OPERATION = "forget"  # of a proposal in `review.md`
OFFLINE, COMMANDS = "offline", "commands"  # the models that an answer without a model names
_LINKS_ALONE = re.compile(r"(?:\s*\[[^\]]*\]\([^)]*\)[,;]?)+\s*")
_SOURCE = re.compile(r"^— .*\n?", re.MULTILINE)  # below a quotation of an answer: day and link
_SHOWN_CHARACTERS = 100
# what processes add to a person's words: block id, marks, the stamp of an exchange, and the kind of its author
_OUR_ADDITIONS = re.compile(
    r"\^[0-9a-z]{4,6}[ \t]*$|<!--\s*(?:event:|exchange:|proposal:|private\b).*?-->|^### [-0-9]{10}T[:0-9]{8}Z$"
    r"|^\*\*(?:User|AI|Thoughts)(?=:\*\*)|(?:^\*\*|(?<= \())(?:assistant|import|tool)(?=: | \(|:\*\*)",
    re.MULTILINE | re.IGNORECASE,
)
_OUR_HEADINGS = f"## {HISTORY}\n## {STEPS}\n## {MANIFEST}\n## {RELATED}"
_OUR_LINES = frozenset(f"{EMPTY}{EMPTY_REVIEW}{_OUR_HEADINGS}".splitlines())
# the keys of front matter whose values processes choose: ids, times, and one of a few words
_OUR_KEYS = frozenset(
    "uuid created_at updated_at sources emotion category subject_type importance origin model prompt_id device".split()
)
# the fields of a target, and the word for each in messages
_PARTS = {"exchanges": "exchange", "blocks": "statement", "items": "item", "pages": "page", "answers": "file"}


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be forgotten, by ids and hashes alone, so that it can be found again in a changed tree.

    Attributes:
        exchanges: Ids.
        blocks: Statements and paragraphs of pages: (uuid or path of the page, hash of the text).
        items: Hashes of goals, facts and tasks of short-term memory.
        pages: Paths of pages that are removed whole.
        answers: Paths of files in the inbox that have the words and are no prompt of an exchange that has them.
        page: The uuid of the page that a person named, "" where it has none; None where no page was named.
        words: The words that a person named; "" where they named something else, and where an event or a proposal is
            the source, as these keep no words.
        shown: A line for each of these, to show to a person.
        is_private: Whether some of it is private.
    """

    exchanges: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    page: str | None = None
    words: str = field(default="", compare=False)
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
    found: dict[str, dict[Any, str]] = {name: {} for name in _PARTS}
    for hit in hits:
        line = f"{hit.path}: {_quoted(hit.said)}"
        if hit.kind == "exchange":
            found["exchanges"].setdefault(hit.anchor, line)
        elif brain.tree.kind_of(hit.path) is PathKind.SHORT_TERM:
            found["items"][text_hash(hit.text)] = line
        elif text := brain.read_text(hit.path):
            with suppress(FormatError):
                for block in matching_blocks(text, hit.text):
                    found["blocks"][hit.uuid or hit.path, block_hash(block)] = line
    return _target_of(found)


def _target_of(found: Mapping[str, Mapping[Any, str]], **keys: Any) -> Target:
    """Return the target of what was found: for each of its parts the entries, each with a line for a person."""
    parts: dict[str, Any] = {name: tuple(part) for name, part in found.items()}
    return Target(**parts, **keys, shown=tuple(line for part in found.values() for line in part.values()))


class _WordSearch:
    """Reads memory and inbox once and collects what has all of the words, each with a line to show to a person."""

    def __init__(self, brain: Brain, words: str) -> None:
        self._brain, self._words = brain, words
        self._found: dict[str, dict[Any, str]] = {name: {} for name in _PARTS}
        self._is_private = False

    def target(self) -> Target:
        """Return everything that has the words, as a target."""
        tree, found = self._brain.tree, self._found
        self._read_short_term()
        pages = memory_pages(self._brain)
        for page in pages.values():
            self._read_page(page)
        others = tree.scan(tree.memory).keys() - {tree.relative(tree.short_term)}
        for path in sorted(filter(tree.is_tracked, others.difference(pages))):  # unreadable pages among them
            kind = tree.kind_of(path)
            if kind in PAGES and self._matches(stem_of(path)):
                found["pages"][path] = f"{path}: the whole page"
            elif kind is not PathKind.INDEX_PAGE:  # its lines follow the pages
                self._read_units(path, self._brain.read_text(path) or "")
        exchanges = Exchanges(self._brain)
        # a prompt comes before its answers, so that the exchange of a prompt with the words is added by then
        for path in sorted(tree.scan(tree.inbox)):
            if self._matches(searched_text(path, self._brain.read_text(path) or "")):
                exchange, is_answer = exchanges.find(path), bool(prompt_path_of(path))
                if not exchange or (is_answer and exchange not in found["exchanges"]):
                    found["answers"][path] = f"{path}: the {'answer' if is_answer else 'file'}"
                else:
                    line = f"{path}: {_quoted(exchanges.said(exchange).user)}"
                    found["exchanges"].setdefault(exchange, line)
        return _target_of(found, words=self._words, is_private=self._is_private)

    def _matches(self, text: str) -> bool:
        return holds_words(text, self._words)

    def _read_short_term(self) -> None:
        """Add the exchanges and items of short-term memory that have the words, and what else stands there."""
        path = self._brain.tree.relative(self._brain.tree.short_term)
        try:
            document = self._brain.short_term()
        except FormatError:
            return  # `doctor` names what is wrong with it
        self._add_events(path, str(document))
        for item in (*document.memory.goals, *document.memory.facts, *document.memory.tasks):
            if self._matches(item.text):
                self._is_private |= item.is_private
                self._found["items"][text_hash(item.text)] = f"{path}: {_quoted(item.text)}"
        self._read_units(path, str(document)[slice(*document.summary_span())])
        self._read_units(path, document.remarks)

    def _add_events(self, path: str, text: str) -> str:
        """Add the exchanges of a file that have the words; return the text without its exchanges."""
        exchanges = list(find_events(text))
        for event in (placed.event for placed in exchanges):
            # an answer of the offline engine is recorded as links alone: their titles are nobody's words
            answer = "" if _LINKS_ALONE.fullmatch(event.ai) else event.ai
            if self._matches(f"{event.by}\n{event.user}\n{answer}\n{event.thoughts}\n{event.remarks}"):
                self._is_private |= event.is_private
                line = f"{path}, {self._brain.day_of(event.at)}: {_quoted(event.user or answer)}"
                self._found["exchanges"][event.id] = line
        return without_spans(text, ((placed.start, placed.end) for placed in exchanges))

    def _read_page(self, page: Memory) -> None:
        """Add the exchanges and units of a page that have the words, or the whole page where its name has them."""
        # the title of a day's page does not say what the page is about
        if is_date(stem_of(page.path)) or not self._matches(f"{page.title}\n{stem_of(page.path)}"):
            self._read_units(page.path, self._add_events(page.path, page.text), page.uuid)
            return
        self._found["pages"][page.path] = f"{page.path}: the whole page"
        self._is_private |= page.is_private or bool(PRIVATE.search(page.text))
        for placed in find_events(page.text):
            self._found["exchanges"].setdefault(placed.event.id, f"{page.path}: {_quoted(placed.event.user)}")

    def _read_units(self, path: str, text: str, uuid: str = "") -> None:
        """Add the units of a file that have the words, and the values of its front matter."""
        units = (text[start:end] for start, end in units_of(text))
        for unit in (*values_of(text), *units):
            if self._matches(said_in(unit)):
                self._is_private |= is_private_note(text)
                self._found["blocks"][uuid or path, block_hash(unit)] = f"{path}: {_quoted(unit)}"


def searched_text(path: str, text: str) -> str:
    """Return the text of a file in the inbox as a person or a model wrote it, with its name.

    Of an answer without a model its fixed phrases and the titles of what it quotes are left out: nobody's words.
    """
    from brainiac.llm.offline import FIXED  # with it comes numpy, and what only looks at memory starts without

    meta, offset = split_or_all(text)
    if not prompt_path_of(path):
        return "\n".join((stem_of(path), *values_of(text), text[offset:]))
    if meta.get("model") not in (OFFLINE, COMMANDS):
        return f"{stem_of(path)}\n{text[offset:]}"
    lines = _SOURCE.sub("", text[offset:]).splitlines()
    return "\n".join((stem_of(path), *(line for line in lines if line not in FIXED)))


def values_of(text: str) -> list[str]:
    """Return the texts in a file's front matter that are a person's or a model's words."""
    entries = (entry for key, entry in split_or_all(text)[0].items() if str(key).lower() not in _OUR_KEYS)
    return [value for entry in entries for value in texts_in(entry)]


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys of objects left out."""
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)
    elif isinstance(value, str):
        yield value


def said_in(unit: str) -> str:
    """Return a unit without ids, marks, labels and dates of ours; of links to files of the brain the names stay.

    Of a line that is ours nothing is left.
    """
    from brainiac.llm.offline import FIXED  # with it comes numpy, and what only looks at memory starts without

    if unit.strip() in _OUR_LINES or unit.strip() in FIXED:
        return ""
    for link in reversed(find_links(unit)):
        if not link.is_external:
            names = [link.text, link.target if link.is_wiki else stem_of(link.target)]
            # a day's link, and that of short-term memory, are of ours
            shown = "" if names[1] == "short_term" else " ".join(name for name in names if not is_date(name))
            unit = unit[: link.start] + shown + unit[link.end :]
    return _OUR_ADDITIONS.sub("", unit)


def stem_of(path: str) -> str:
    """Return a file's name without its endings."""
    return posixpath.basename(path).partition(".")[0]


def is_date(name: str) -> bool:
    """Return whether a name is a date, or a part of one."""
    return name.replace("-", "").isdecimal()


def _quoted(text: str) -> str:
    """Return a text on one line in quotes, cut to `_SHOWN_CHARACTERS`."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + '…'}”"
