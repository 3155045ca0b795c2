"""Forgetting at a person's word: an exchange, a conversation, a page, or all that holds some words (design 3 and 6).

What rests on the exchanges alone goes with them; a statement that others speak for too stays and loses this source, and
what it was merged from comes back where it is known. It is one commit, and can be taken back by `undo`; `purge`
destroys what the journal keeps of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.events import (
    Change,
    Event,
    ExchangeForgotten,
    ForgetProposal,
    ForgettingProposed,
    MemoryForgotten,
    StatementRecord,
    create,
    new_id,
    remove,
    update,
)
from brainiac.formats.commands import parse_commands
from brainiac.formats.dialogue import PRIVATE, find_events, remaining
from brainiac.formats.discretion import is_private_note
from brainiac.formats.frontmatter import split
from brainiac.formats.links import shown
from brainiac.formats.memory import Memory, MemoryDocument, Statement, parse_memory
from brainiac.formats.prompt import parse_response, prompt_path_of, response_path
from brainiac.formats.short_term import ShortTermDocument
from brainiac.formats.statements import find_statements
from brainiac.history.why import Exchanges, Provenance, find_memory, memory_pages
from brainiac.llm.offline import FIXED
from brainiac.storage.filed import pending
from brainiac.storage.folders import Folders
from brainiac.storage.review import Proposal, review_change, without
from brainiac.storage.statements import StatementChange, read_statements, sources_of, text_hash
from brainiac.text.tokens import holds_words, pieces

OPERATION = "forget"  # of a proposal in `review.md`
OFFLINE, COMMANDS = "offline", "commands"  # the models that an answer without a model names
MIN_WORDS = 3  # what is shorter is said by everybody
_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"(?:^(?![ \t]*\r?$|#{1,6} |---[ \t]*\r?$|<!--)[^\n]+(?:\n|\Z))+", re.MULTILINE)
# what we put behind a person's words: the day with its link, the block id
_OURS = re.compile(r"\(\[\d{4}-\d\d-\d\d\]\([^)]*\)\)|\^[0-9a-z]{4,6}[ \t]*$|<!--.*?-->", re.MULTILINE)
_LINKS_ALONE = re.compile(r"(?:\s*\[[^\]]*\]\([^)]*\)[,;]?)+\s*")
_FIXED = re.compile(r"^(?!>).*\n?", re.MULTILINE)
_SHOWN_CHARACTERS = 100


# --- what is meant -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be forgotten, by ids and hashes alone, so that it can be looked for anew as often as needed.

    Attributes:
        exchanges: Ids.
        blocks: Statements and paragraphs of pages: (uuid or path of the page, hash of the text).
        items: Hashes of goals, facts and tasks of short-term memory.
        pages: Paths of pages that go whole.
        answers: Paths of answers in the inbox that quote it to somebody who did not say it.
        page: The uuid of the page, where a person named one; None otherwise.
        shown: One line each, for a person.
        is_private: Something of it must not leave this machine.
    """

    exchanges: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    page: str | None = None
    shown: tuple[str, ...] = field(default=(), compare=False)
    is_private: bool = field(default=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.exchanges or self.blocks or self.items or self.pages or self.answers)

    @property
    def count(self) -> str:
        """How much it is, in words."""
        parts = {"exchange": self.exchanges, "statement": self.blocks, "item": self.items, "page": self.pages}
        parts["answer"] = self.answers
        counts = [f"{len(part)} {name}{'' if len(part) == 1 else 's'}" for name, part in parts.items() if part]
        return ", ".join(counts) or "nothing"

    def event(self, taken_out: Sequence[StatementRecord], left: Sequence[str]) -> ExchangeForgotten | MemoryForgotten:
        """Return what is journaled once it is forgotten."""
        if self.page is None:
            return ExchangeForgotten(
                exchanges=self.exchanges,
                blocks=self.blocks,
                items=self.items,
                pages=self.pages,
                answers=self.answers,
                taken_out=tuple(taken_out),
                left=tuple(left),
            )
        return MemoryForgotten(
            page=self.page,
            path=self.pages[0],
            exchanges=self.exchanges,
            taken_out=tuple(taken_out),
            left=tuple(left),
        )

    @classmethod
    def of(cls, proposal: ForgetProposal) -> Target:
        """Return what a proposal in the journal names."""
        return cls(proposal.exchanges, proposal.blocks, proposal.items, proposal.pages, proposal.answers)


def find_target(brain: Brain, named: str) -> Target:
    """Return what a person wants forgotten: a conversation, an exchange or a page.

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
    if named != inbox and (conversation := exchanges.in_folder(named)):
        return Target(tuple(conversation))
    if memory := find_memory(brain, named):
        return target_of_page(memory)
    raise UserError(
        f"{named!r} names no exchange (by id, or by its file in {inbox}/) and no memory "
        "(by path, title or uuid); `brainiac why` shows the exchanges behind a statement"
    )


def target_of_page(memory: Memory, items: Iterable[str] = ()) -> Target:
    """Return a page as what is to be forgotten; with an episodic page what was said on it is meant too."""
    said = tuple(placed.event.id for placed in find_events(memory.text))
    return Target(said, items=tuple(items), pages=(memory.path,), page=memory.uuid)


def find_words(brain: Brain, words: str) -> Target:
    """Return all that holds all the words, in memory and in the inbox, found by reading it; nothing for no words."""
    return _WordSearch(brain, words).target()


class _WordSearch:
    """Reads everything once and gathers what holds the words, each with the line that shows it to a person."""

    def __init__(self, brain: Brain, words: str) -> None:
        self._brain, self._words = brain, words
        self._exchanges: dict[str, str] = {}
        self._blocks: dict[tuple[str, str], str] = {}
        self._items: dict[str, str] = {}
        self._pages: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        self._is_private = False

    def target(self) -> Target:
        tree = self._brain.tree
        self._read_short_term()
        for page in memory_pages(self._brain).values():
            self._read_page(page)
        known = Exchanges(self._brain)
        for path in sorted(tree.relative(entry.path) for entry in tree.walk(tree.inbox)):
            if self._is_held(_said_in(path, self._brain.read_text(path) or "")):
                self._take_file(path, known)
        parts = (self._exchanges, self._blocks, self._items, self._pages, self._answers)
        lines = tuple(line for part in parts for line in part.values())
        return Target(
            exchanges=tuple(self._exchanges),
            blocks=tuple(self._blocks),
            items=tuple(self._items),
            pages=tuple(self._pages),
            answers=tuple(self._answers),
            shown=lines,
            is_private=self._is_private,
        )

    def _is_held(self, text: str) -> bool:
        return holds_words(text, self._words)

    def _take_file(self, path: str, known: Exchanges) -> None:
        """Gather the exchange of a prompt; an answer that quotes the words goes alone, what was said to it stays."""
        exchange = known.find(path)
        if prompt_path_of(path) and exchange not in self._exchanges:
            self._answers[path] = f"{path}: the answer"
        elif exchange:
            self._exchanges.setdefault(exchange, f"{path}: {_quoted(known.said(exchange).user)}")

    def _read_short_term(self) -> None:
        path = self._brain.tree.relative(self._brain.tree.short_term)
        try:
            document = self._brain.short_term()
        except FormatError:
            return  # `doctor` names what is wrong with it
        self._take_events(path, str(document))
        for item in (*document.memory.goals, *document.memory.facts, *document.memory.tasks):
            if self._is_held(item.text):
                self._is_private |= item.is_private
                self._items[text_hash(item.text)] = f"{path}: {_quoted(item.text)}"

    def _take_events(self, path: str, text: str) -> str:
        """Gather the exchanges of a file; return the text without any."""
        for placed in reversed(list(find_events(text))):
            event = placed.event
            answer = "" if _LINKS_ALONE.fullmatch(event.ai) else event.ai  # as the keyless engine's is recorded
            if self._is_held(f"{event.user}\n{answer}"):
                self._is_private |= event.is_private
                self._exchanges[event.id] = f"{path}, {self._brain.day_of(event.at)}: {_quoted(event.user)}"
            text = text[: placed.start] + text[placed.end :]
        return text

    def _read_page(self, page: Memory) -> None:
        rest = self._take_events(page.path, page.text)
        is_day, is_private = rest != page.text, bool(page.meta.get("private"))
        if not is_day and self._is_held(page.title) and not page.title.replace("-", "").isdecimal():
            self._pages[page.path] = f"{page.path}: the whole page"
            self._is_private |= is_private or bool(PRIVATE.search(page.text))
            return
        for start, end in _blocks_of(rest, page.offset):
            block = rest[start:end]
            if self._is_held(_OURS.sub("", block)):
                self._is_private |= is_private or bool(PRIVATE.search(block))
                self._blocks[page.uuid or page.path, text_hash(block)] = f"{page.path}: {_quoted(block)}"


def _said_in(path: str, text: str) -> str:
    """Return what a file of the inbox says: a prompt's text, of an answer of the keyless engine what it quotes."""
    try:
        meta, offset = split(text, path)
    except FormatError:
        return text
    is_keyless = meta.get("model") in (OFFLINE, COMMANDS)
    return _FIXED.sub("", text[offset:]) if is_keyless else text[offset:]


def _blocks_of(text: str, offset: int) -> list[tuple[int, int]]:
    """Return the offsets of the statements of a page, those below each with it, and of its paragraphs."""
    places = [(statement.start, statement.end) for statement in find_statements(text, offset)]
    places += [(placed.start, placed.end) for placed in find_events(text, offset)]
    for paragraph in _PARAGRAPH.finditer(text, offset):
        if not any(start < paragraph.end() and paragraph.start() < end for start, end in places):
            places.append(paragraph.span())
    return sorted(places)


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + '…'}”"


# --- what is done --------------------------------------------------------------------------------------------------


def forget(brain: Brain, target: Target, *, by: str = "cli", cause: str | None = None) -> Event | None:
    """Take it out of the tree in one commit.

    Returns:
        The event; None when nothing of it stands there.

    Raises:
        ConflictError: Somebody keeps writing the files.
    """

    def attempt() -> Event | None:
        with brain.short_term_lock():
            plan = plan_forget(brain, target)
            event, changes = target.event(plan.statements, plan.kept), plan.changes()
            return brain.commit(event, by=by, changes=changes, cause=cause) if changes else None

    return brain.retry(attempt)


def plan_forget(brain: Brain, target: Target) -> ForgetPlan:
    """Look the tree over as it stands for all that is to be taken out."""
    return _Planner(brain, target).plan_all()


class ForgetPlan:
    """What is to be changed in the tree, and what stays.

    Args:
        brain: The brain.

    Attributes:
        actions: What is done, one sentence each.
        kept: What stays and why, one sentence each.
        statements: Taken out or taken back: page, block, hash.
        items: Hashes of the items taken out of short-term memory.
        texts: The words that go, for finding what is left of them.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}
        self.actions: list[str] = []
        self.kept: list[str] = []
        self.statements: list[StatementRecord] = []
        self.items: list[str] = []
        self.texts: list[str] = []

    def read(self, path: str) -> str | None:
        """Return a file's text as the plan leaves it; None where it leaves none."""
        if path not in self._before:
            self._before[path] = self._after[path] = self._brain.read_text(path)
        return self._after[path]

    def write(self, path: str, text: str | None, action: str = "") -> None:
        """Plan that a file which was read holds a text, or goes."""
        self._after[path] = text
        if action:
            self.actions.append(f"{'-' if text is None else '~'} {path}: {action}")

    def drop(self, path: str, action: str) -> None:
        """Plan that a file goes, if it stands."""
        if self.read(path) is not None:
            self.write(path, None, action)

    def changes(self) -> list[Change]:
        """Return the changes of the tree, index pages with them."""
        changes = []
        for path, before in self._before.items():
            after = self._after[path]
            if before is None and after is not None:
                changes.append(create(path, after))
            elif before is not None and before != after:
                changes.append(remove(path, before) if after is None else update(path, before, after))
        top = self._brain.tree.relative(self._brain.tree.long_term) + "/"
        pages = [change for change in changes if change.path.startswith(top)]
        return [*changes, *Folders(self._brain, pages).changes()] if pages else changes


class _Planner:
    """Finds all that is to be taken out for a target."""

    def __init__(self, brain: Brain, target: Target) -> None:
        self._brain, self._target, self._ids = brain, target, frozenset(target.exchanges)
        self._exchanges, self._log = Exchanges(brain), read_statements(brain)
        self._titles: list[str] = []  # of the pages that go
        self.plan = ForgetPlan(brain)

    def plan_all(self) -> ForgetPlan:
        target, plan = self._target, self.plan
        for exchange in sorted(self._ids):
            said = self._exchanges.said(exchange)
            plan.texts += [text for text in (said.user, said.ai) if text.strip()]
            self._take_pair(exchange)
        pages = memory_pages(self._brain)
        rest = [page for path, page in pages.items() if path not in target.pages]
        for page in rest:
            if any(exchange in page.text for exchange in self._ids):
                self._take_from_page(page)
        self._note_unreadable()
        self._take_from_short_term()
        self._take_proposals()
        for page in rest:
            self._take_blocks(page)
        for path in target.pages:
            self._take_page(pages.get(path))
        for path in target.answers:
            plan.texts.append(plan.read(path) or "")
            plan.drop(path, "the answer")
        return plan

    # --- the prompt and its answers -------------------------------------------------------------------------

    def _take_pair(self, exchange: str) -> None:
        if exchange not in self._exchanges.events:
            return
        data, path = self._exchanges.events[exchange][1].data, self._exchanges.place_of(exchange)
        text = self.plan.read(path)
        if text is not None and self._brain.answered.fingerprint(path, _bytes(text)) != data.get("prompt_sha256"):
            if exchange == max(self._ids):  # of an earlier revision that is a matter of course
                self.plan.kept.append(f"{path}: says something else by now")
            return
        self.plan.drop(path, "the prompt")
        number = 1
        while (text := self.plan.read(answer := response_path(path, number))) is not None:
            prompt_id = parse_response(answer, _bytes(text)).prompt_id
            if not prompt_id or prompt_id == data.get("prompt_id"):
                self.plan.texts.append(text)
                self.plan.drop(answer, "the answer")
            number += 1

    # --- short-term memory ----------------------------------------------------------------------------------

    def _take_from_short_term(self) -> None:
        path = self._brain.tree.relative(self._brain.tree.short_term)
        text = self.plan.read(path)
        if text is None:
            return
        document = self._without_items(ShortTermDocument(text).without_event(*self._ids))
        summary = self._without_sentences(document.memory.summary, document.paragraphs())
        after = str(document.with_summary(summary))
        if after != text:
            self.plan.write(path, after, "its event, and what was noted from it alone")

    def _without_items(self, document: ShortTermDocument) -> ShortTermDocument:
        """Take out the items that the reflection of these exchanges wrote."""

        def is_meant(text: str) -> bool:
            digest = text_hash(text)
            return digest in self._target.items or not self._ids.isdisjoint(self._log.noted.get(digest, ()))

        memory = document.memory
        gone = [
            [item.text for item in items if is_meant(item.text)] for items in (memory.goals, memory.facts, memory.tasks)
        ]
        texts = [text for part in gone for text in part]
        self.plan.texts += texts
        self.plan.items += map(text_hash, texts)
        return document.without_items(*gone)

    def _without_sentences(self, summary: str, paragraphs: Iterable[str]) -> str:
        """Take sentences out of the summary that were said just so, and paragraphs of ours that name what goes."""
        said = {" ".join(text.split()) for text in sentences_of(self.plan.texts)}
        gone = [sentence for sentence in said if len(sentence.split()) >= MIN_WORDS and sentence in summary]
        names = [re.compile(rf"(?<!\w){re.escape(title)}(?!\w)") for title in self._titles]
        ours = [paragraph for paragraph in paragraphs if text_hash(paragraph) in self._log.summaries]
        gone += [paragraph for paragraph in ours if any(name.search(paragraph) for name in names)]
        if not gone:
            return summary  # a person may have laid it out
        for sentence in sorted(gone, key=len, reverse=True):
            summary = summary.replace(sentence, "")
        return "\n\n".join(" ".join(part.split()) for part in summary.split("\n\n") if part.strip())

    # --- pages ----------------------------------------------------------------------------------------------

    def _note_unreadable(self) -> None:
        for path, error in self._brain.pages().broken.items():
            if any(exchange in (self._brain.read_text(path) or "") for exchange in self._ids):
                self.plan.kept.append(f"{path}: cannot be read ({error.problem})")

    def _take_from_page(self, memory: Memory) -> None:
        """Take out of a page what rests on the exchanges alone, and their ids from its sources."""
        text = self.plan.read(memory.path)
        if text is None:
            return
        memory = parse_memory(memory.path, text)  # it may have been saved since all pages were read
        whole = self._log.whole(memory.uuid)
        if whole and self._ids.issuperset(whole.sources):
            self._take_whole(memory, whole)
            return
        page = MemoryDocument(without_exchanges(memory.text, self._ids), memory.path)
        for statement in memory.statements:
            page = self._without_source(page, statement)
        sources = [str(source) for source in memory.meta.get("sources") or ()]
        kept = [source for source in sources if source not in self._ids]
        page = page.set_meta(sources=kept) if kept != sources else page
        is_bare = not _HEADINGS.sub("", page.memory.body).strip()
        if is_bare and (memory.uuid in self._log.changes or list(find_events(memory.text))):
            self._titles.append(memory.title)
            self.plan.drop(memory.path, "nothing else stands on it")
        elif str(page) != text:
            self.plan.write(memory.path, str(page), "what rests on it alone, and the source")

    def _take_whole(self, memory: Memory, whole: StatementChange) -> None:
        """Drop a page whose body is what was said, unless a person wrote something else into it since."""
        said = (_plain(self._exchanges.said(exchange).user) for exchange in whole.sources)
        if text_hash(memory.body) == whole.hash or any(_plain(memory.body) in text for text in said):
            self._titles.append(memory.title)
            self.plan.texts.append(memory.body)
            self.plan.drop(memory.path, "it is what was said")
        else:
            self.plan.kept.append(f"{memory.path}: it was edited since; it stays")

    def _without_source(self, page: MemoryDocument, statement: Statement) -> MemoryDocument:
        """Decide what becomes of one statement: it goes, it says again what it said before, or it stays."""
        memory = page.memory
        behind = self._log.behind(memory.uuid, statement)
        sources = sources_of(behind)
        if sources.isdisjoint(self._ids):
            return page
        name = f"{memory.path}: “{statement.text}”"
        if sources <= self._ids:
            standing = page.statement(statement.block_id)
            if memory.text[standing.start : standing.end].strip().count("\n") > 0:
                self.plan.kept.append(f"{name} has lines below it that are not ours")
                return page
            self._note(memory, statement)
            return self._restored(_without_statement(page, statement.block_id), behind[-1].retired)
        last = behind[-1]
        if not statement.is_history and self._ids.issuperset(last.sources):
            former = Provenance(self._brain, memory).text_with_hash(last.former)
            if former:
                self._note(memory, statement)
                return _without_statement(page.replace_statement(statement.block_id, former), last.history)
        self.plan.kept.append(f"{name} rests on other exchanges too; it stays and loses this source")
        return page

    def _restored(self, page: MemoryDocument, block: str) -> MemoryDocument:
        """Let a statement hold again that was retired only because of what goes now."""
        retired = next((one for one in page.memory.statements if one.block_id == block and one.is_history), None)
        if not block or retired is None:
            return page
        behind = self._log.behind(page.memory.uuid, retired)
        if behind and sources_of(behind) <= self._ids:
            return page
        return _without_statement(page, block).add_statement(retired.text, block)

    def _take_blocks(self, memory: Memory) -> None:
        """Take out the statements and paragraphs that were named by their hashes."""
        hashes = {digest for page, digest in self._target.blocks if page in (memory.uuid, memory.path)}
        text = self.plan.read(memory.path) if hashes else None
        if text is None:
            return
        gone = []
        for start, end in reversed(_blocks_of(text, split(text, memory.path)[1])):
            if text_hash(text[start:end]) in hashes:
                gone.append(text[start:end])
                text = text[:start] + text[end:]
        if gone:
            self.plan.texts += gone
            self.plan.write(memory.path, text, f"{len(gone)} of its statements")

    def _take_page(self, memory: Memory | None) -> None:
        if memory is None:
            return
        self.plan.drop(memory.path, "the page")
        self.plan.texts.append(_HEADINGS.sub("", memory.body))
        for statement in memory.statements:
            self._note(memory, statement)
        sources = {str(source) for source in memory.meta.get("sources") or ()} - self._ids
        if sources:
            self.plan.kept.append(f"what was said stays, word for word: {', '.join(sorted(sources))}")

    def _note(self, memory: Memory, statement: Statement) -> None:
        digest = text_hash(statement.text)
        self.plan.statements.append(StatementRecord(page=memory.uuid, block=statement.block_id, hash=digest))
        self.plan.texts.append(statement.text)

    def _take_proposals(self) -> None:
        """Take proposals out of the review that rest on these exchanges alone."""
        path = self._brain.tree.relative(self._brain.tree.review)
        gone = {name for name, sources in self._log.proposals.items() if sources and sources <= self._ids}
        text = self.plan.read(path) if gone else None
        if text is not None and (after := without(text, gone)) != text:
            self.plan.write(path, after, "proposals that rest on it")


def without_exchanges(text: str, exchanges: Container[str]) -> str:
    """Return a page without exchanges; a person's remarks among them stay."""
    for placed in reversed(list(find_events(text))):
        if placed.event.id in exchanges:
            text = text[: placed.start] + remaining(text, placed) + text[placed.end :]
    return text


def _without_statement(page: MemoryDocument, block: str) -> MemoryDocument:
    statement = next((one for one in page.memory.statements if block and one.block_id == block), None)
    if statement is None:
        return page
    text = page.memory.text
    return MemoryDocument(text[: statement.start] + text[statement.end :], page.memory.path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _plain(text: str) -> str:
    """Return a text without what differs from place to place: white space, and where its links lead."""
    return " ".join(shown(text.removeprefix("\ufeff")).split())


# --- pieces of text that are left ----------------------------------------------------------------------------------


def pieces_of(texts: Iterable[str]) -> list[bytes]:
    """Return the sentences of texts that are long enough to be nobody else's, longest first."""
    sentences = sentences_of(texts) - sentences_of(FIXED)
    kept = (_bytes(text) for text in sentences if len(text.split()) >= MIN_WORDS)
    return sorted(kept, key=len, reverse=True)


def sentences_of(texts: Iterable[str]) -> set[str]:
    """Return the lines of texts and the sentences of these, also of what stands behind a command."""
    said = (part for text in texts for part in (text, *(command.argument for command in parse_commands(text)[0])))
    lines = [line for text in said for line in text.splitlines()]
    return {sentence.strip().strip('"') for line in lines for sentence in (line, *pieces(line))}


def standing(brain: Brain, pieces: Collection[bytes], after: Mapping[str, bytes]) -> dict[bytes, list[str]]:
    """Return the pieces that stand in a file of the tree, with the files; logs and journal are not looked at.

    Args:
        brain: The brain.
        pieces: Words.
        after: What files are about to hold; empty for one that goes.
    """
    places: dict[bytes, list[str]] = {}
    for entry in brain.tree.walk(brain.tree.inbox, brain.tree.memory, brain.tree.system):
        path = brain.tree.relative(entry.path)
        content = after[path] if path in after else brain.read(path) or b""
        for piece in pieces:
            if piece in content:
                places.setdefault(piece, []).append(path)
    return places


# --- forgetting that is asked for in the inbox, or by deleting a page ----------------------------------------------


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
    target = find_words(brain, words)
    if not target:
        return Proposed(f"Nothing in memory holds “{words}”.")
    what = f"Forget {target.count}, as listed beside {prompt}"
    _put_before_person(brain, target, what, prompt=prompt, by="core_loop", is_private=target.is_private)
    lines = "\n".join(f"- {line}" for line in target.shown)
    text = f"To be forgotten, once you tick it in memory/review.md: {target.count}.\n\n{lines}"
    return Proposed(text, target.is_private)


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
    target = Target(tuple(str(source) for source in meta.get("sources") or () if str(source) not in said))
    if not target or str(meta.get("uuid") or "") in pending(brain):
        return
    what = f"Forget {target.count} too: the deleted page {path} was made from what they say; until then none is quoted"
    uuid, is_private = str(meta.get("uuid") or path), is_private_note(before)
    _put_before_person(brain, target, what, deleted=uuid, path=path, by="organization", is_private=is_private)


def _put_before_person(
    brain: Brain,
    target: Target,
    what: str,
    *,
    prompt: str = "",
    deleted: str = "",
    path: str = "",
    by: str,
    is_private: bool,
) -> None:
    record = ForgetProposal(
        id=new_id(),
        what=what,
        operation=OPERATION,
        prompt=prompt,
        deleted=deleted,
        path=path,
        exchanges=target.exchanges,
        blocks=target.blocks,
        items=target.items,
        pages=target.pages,
        answers=target.answers,
    )
    changes = review_change(brain, [Proposal(record, is_private)])
    brain.commit(ForgettingProposed(proposals=(record,)), by=by, changes=changes)


def settle(brain: Brain, proposal: ForgetProposal) -> Event | None:
    """Forget what a person ticked; the prompt that asked for it and its answer go with it.

    Returns:
        The event; None when nothing of it stands any more.
    """
    event, prompt = forget(brain, Target.of(proposal), by="person"), proposal.prompt
    for path in (prompt, *(response_path(prompt, number) for number in range(1, 4))) if prompt else ():
        file = brain.tree.confine(path, inside=brain.tree.inbox)
        file.unlink(missing_ok=True)  # off the record: no journal may hold its words, so no commit removes it
    return event
