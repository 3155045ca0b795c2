"""Forgetting at a person's word: an exchange, a conversation, a page, or all that holds some words (design 3 and 6).

What rests on the exchanges alone goes with them; a statement that others speak for too stays and loses this source, and
what it was merged from comes back where it is known. It is one commit, and can be taken back by `undo`; `purge`
destroys what the journal keeps of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import PRIVATE, find_events, remarks_of, without_link_targets
from brainiac.formats.page import Memory, MemoryDocument, Statement, find_statements, is_private_note, parse_memory
from brainiac.formats.prompt import parse_commands, parse_response, prompt_path_of, response_path
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.why import Exchanges, Provenance, find_memory, memory_pages
from brainiac.llm.offline import FIXED
from brainiac.storage.filed import undecided_deletions
from brainiac.storage.folders import Folders
from brainiac.storage.review import Proposal, review_change, without_proposals
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


# what a target consists of, and what a person is told each is
_PARTS = {"exchanges": "exchange", "blocks": "statement", "items": "item", "pages": "page", "answers": "answer"}


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

    @property
    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _PARTS}

    def __bool__(self) -> bool:
        return any(self._parts.values())

    @property
    def count(self) -> str:
        """How much it is, in words."""
        counts = [(len(self._parts[name]), word) for name, word in _PARTS.items() if self._parts[name]]
        return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts) or "nothing"

    def proposal(self, what: str) -> ForgetProposal:
        """Return the proposal to forget it, with one sentence for a person."""
        return ForgetProposal(id=new_id(), what=what, operation=OPERATION, **self._parts)

    def forgotten(self, plan: ForgetPlan) -> ExchangeForgotten | MemoryForgotten:
        """Return the event that says it was forgotten by a plan."""
        taken_out, left = tuple(plan.statements), tuple(plan.kept)
        if self.page is not None:
            path, exchanges = self.pages[0], self.exchanges
            return MemoryForgotten(page=self.page, path=path, exchanges=exchanges, taken_out=taken_out, left=left)
        return ExchangeForgotten(taken_out=taken_out, left=left, **self._parts)


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
    if named.startswith(f"{inbox}/") and (conversation := exchanges.in_folder(named)):
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
        self._parts: dict[str, dict[Any, str]] = {name: {} for name in _PARTS}
        self._is_private = False

    def target(self) -> Target:
        tree = self._brain.tree
        self._read_short_term()
        for page in memory_pages(self._brain).values():
            self._read_page(page)
        exchanges = Exchanges(self._brain)
        for path in sorted(tree.relative(entry.path) for entry in tree.walk(tree.inbox)):
            if self._is_held(_said_in(path, self._brain.read_text(path) or "")):
                self._take_file(path, exchanges)
        parts: dict[str, Any] = {name: tuple(part) for name, part in self._parts.items()}
        lines = tuple(line for part in self._parts.values() for line in part.values())
        return Target(**parts, shown=lines, is_private=self._is_private)

    def _is_held(self, text: str) -> bool:
        return holds_words(text, self._words)

    def _take_file(self, path: str, exchanges: Exchanges) -> None:
        """Gather the exchange of a prompt; an answer that quotes the words goes alone, what was said to it stays."""
        exchange, gathered = exchanges.find(path), self._parts["exchanges"]
        if prompt_path_of(path) and exchange not in gathered:
            self._parts["answers"][path] = f"{path}: the answer"
        elif exchange:
            gathered.setdefault(exchange, f"{path}: {_quoted(exchanges.said(exchange).user)}")

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
                self._parts["items"][text_hash(item.text)] = f"{path}: {_quoted(item.text)}"

    def _take_events(self, path: str, text: str) -> str:
        """Gather the exchanges of a file; return the text without any."""
        for placed in reversed(list(find_events(text))):
            event = placed.event
            answer = "" if _LINKS_ALONE.fullmatch(event.ai) else event.ai  # as the keyless engine's is recorded
            if self._is_held(f"{event.user}\n{answer}"):
                self._is_private |= event.is_private
                line = f"{path}, {self._brain.day_of(event.at)}: {_quoted(event.user)}"
                self._parts["exchanges"][event.id] = line
            text = text[: placed.start] + text[placed.end :]
        return text

    def _read_page(self, page: Memory) -> None:
        rest = self._take_events(page.path, page.text)
        is_day, is_private = rest != page.text, bool(page.meta.get("private"))
        # A date as title names the day, not what the page is about.
        if not is_day and self._is_held(page.title) and not page.title.replace("-", "").isdecimal():
            self._parts["pages"][page.path] = f"{page.path}: the whole page"
            self._is_private |= is_private or bool(PRIVATE.search(page.text))
            return
        for start, end in _blocks_of(rest, page.offset):
            block = rest[start:end]
            if self._is_held(_OURS.sub("", block)):
                self._is_private |= is_private or bool(PRIVATE.search(block))
                self._parts["blocks"][page.uuid or page.path, text_hash(block)] = f"{page.path}: {_quoted(block)}"


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
            changes = plan.changes()
            return brain.commit(target.forgotten(plan), by=by, changes=changes, cause=cause) if changes else None

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
        # Read once: the commit is refused where a file is not any more what the plan rests on.
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
        for page in pages_naming(self._brain, self._ids):
            if page.path not in target.pages:
                self._take_from_page(page)
        plan.kept += [f"{path}: cannot be read ({why})" for path, why in unreadable(self._brain, self._ids)]
        self._take_from_short_term()
        self._take_proposals()
        for path, page in memory_pages(self._brain).items():
            if path in target.pages:
                self._take_page(page)
            else:
                self._take_blocks(page)
        for path in target.answers:
            plan.texts.append(plan.read(path) or "")
            plan.drop(path, "the answer")
        return plan

    # --- the prompt and its answers -------------------------------------------------------------------------

    def _take_pair(self, exchange: str) -> None:
        answered, path = self._exchanges.what(exchange), self._exchanges.place_of(exchange)
        if answered is None:
            return
        text = self.plan.read(path)
        if text is not None and self._brain.answered.fingerprint(path, _bytes(text)) != answered.prompt_sha256:
            # The person wrote something else there since. Of an earlier revision that is a matter of course.
            if exchange == max(self._ids):
                self.plan.kept.append(f"{path}: says something else by now")
            return
        self.plan.drop(path, "the prompt")
        number = 1  # a question asked again has its further answers beside it, numbered
        while (text := self.plan.read(answer := response_path(path, number))) is not None:
            prompt_id = parse_response(answer, _bytes(text)).prompt_id
            if not prompt_id or prompt_id == answered.prompt_id:
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
            is_named = text_hash(text) in self._target.items
            return is_named or not self._ids.isdisjoint(self._log.noted_from(text))

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
        ours = [paragraph for paragraph in paragraphs if self._log.is_own_summary(paragraph)]
        gone += [paragraph for paragraph in ours if any(name.search(paragraph) for name in names)]
        if not gone:
            return summary  # a person may have laid it out
        # Longest first: a sentence may hold another one.
        for sentence in sorted(gone, key=len, reverse=True):
            summary = summary.replace(sentence, "")
        return "\n\n".join(" ".join(part.split()) for part in summary.split("\n\n") if part.strip())

    # --- pages ----------------------------------------------------------------------------------------------

    def _take_from_page(self, memory: Memory) -> None:
        """Take out of a page what rests on the exchanges alone, and their ids from its sources."""
        text = self.plan.read(memory.path)
        if text is None:
            return
        memory = parse_memory(memory.path, text)  # it may have been saved since all pages were read
        whole = self._log.whole(memory.uuid)
        if whole and self._ids.issuperset(whole.row.sources):
            self._take_whole(memory, whole)
            return
        page = MemoryDocument(_without_exchanges(memory.text, self._ids), memory.path)
        for statement in memory.statements:
            page = self._without_source(page, statement)
        sources = [str(source) for source in memory.meta.get("sources") or ()]
        kept = [source for source in sources if source not in self._ids]
        page = page.set_meta(sources=kept) if kept != sources else page
        if is_bare(page.memory) and (self._log.knows_page(memory.uuid) or list(find_events(memory.text))):
            self._titles.append(memory.title)
            self.plan.drop(memory.path, "nothing else stands on it")
        elif str(page) != text:
            self.plan.write(memory.path, str(page), "what rests on it alone, and the source")

    def _take_whole(self, memory: Memory, whole: StatementChange) -> None:
        """Drop a page whose body is what was said, unless a person wrote something else into it since."""
        said = (_plain(self._exchanges.said(exchange).user) for exchange in whole.row.sources)
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
            # What a person wrote below it is no part of it, and cannot stand without it.
            standing = page.statement(statement.block_id)
            if memory.text[standing.start : standing.end].strip().count("\n") > 0:
                self.plan.kept.append(f"{name} has lines below it that are not ours")
                return page
            self._note(memory, statement)
            return self._restored(_without_statement(page, statement.block_id), behind[-1].retired)
        last = behind[-1]
        if not statement.is_history and self._ids.issuperset(last.row.sources):
            former = Provenance(self._brain, memory).text_with_hash(last.former.hash)
            if former:
                self._note(memory, statement)
                return _without_statement(page.replace_statement(statement.block_id, former), last.former.history)
        self.plan.kept.append(f"{name} rests on other exchanges too; it stays and loses this source")
        return page

    def _restored(self, page: MemoryDocument, block: str) -> MemoryDocument:
        """Let a statement hold again that was retired only because of what goes now."""
        retired = _statement(page, block)
        if retired is None or not retired.is_history:
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

    def _take_page(self, memory: Memory) -> None:
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
        gone = {name for name, sources in self._log.proposals().items() if sources and sources <= self._ids}
        text = self.plan.read(path) if gone else None
        if text is not None and (after := without_proposals(text, gone)) != text:
            self.plan.write(path, after, "proposals that rest on it")


def pages_naming(brain: Brain, exchanges: Collection[str]) -> Iterator[Memory]:
    """Yield the pages that name one of some exchanges, in their front matter or as said on them."""
    for page in memory_pages(brain).values():
        if any(exchange in page.text for exchange in exchanges):
            yield page


def unreadable(brain: Brain, exchanges: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths of the pages that do so and cannot be read, each with the reason."""
    for path, error in brain.pages().broken.items():
        if any(exchange in (brain.read_text(path) or "") for exchange in exchanges):
            yield path, error.problem


def is_bare(memory: Memory) -> bool:
    """Return whether nothing but headings is left of a page."""
    return not _HEADINGS.sub("", memory.body).strip()


def _without_exchanges(text: str, exchanges: Container[str]) -> str:
    for placed in reversed(list(find_events(text))):
        if placed.event.id in exchanges:
            text = text[: placed.start] + remarks_of(text, placed) + text[placed.end :]
    return text


def _statement(page: MemoryDocument, block: str) -> Statement | None:
    statements = (statement for statement in page.memory.statements if block and statement.block_id == block)
    return next(statements, None)


def _without_statement(page: MemoryDocument, block: str) -> MemoryDocument:
    statement, text = _statement(page, block), page.memory.text
    if statement is None:
        return page
    return MemoryDocument(text[: statement.start] + text[statement.end :], page.memory.path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _plain(text: str) -> str:
    """Return a text without what differs from place to place: white space, and where its links lead."""
    return " ".join(without_link_targets(text.removeprefix("\ufeff")).split())


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


def find_remaining(brain: Brain, pieces: Collection[bytes], after: Mapping[str, bytes]) -> dict[bytes, list[str]]:
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
    proposal = replace(target.proposal(what), prompt=prompt)
    _put_before_person(brain, proposal, by="core_loop", is_private=target.is_private)
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
    if not target or str(meta.get("uuid") or "") in undecided_deletions(brain):
        return
    what = f"Forget {target.count} too: the deleted page {path} was made from what they say; until then none is quoted"
    proposal = replace(target.proposal(what), deleted=str(meta.get("uuid") or path), path=path)
    _put_before_person(brain, proposal, by="organization", is_private=is_private_note(before))


def _put_before_person(brain: Brain, proposal: ForgetProposal, *, by: str, is_private: bool) -> None:
    changes = review_change(brain, [Proposal(proposal, is_private)])
    brain.commit(ForgettingProposed(proposals=(proposal,)), by=by, changes=changes)


def carry_out_proposal(brain: Brain, proposal: ForgetProposal) -> Event | None:
    """Forget what a person ticked; the prompt that asked for it and its answer go with it.

    Returns:
        The event; None when nothing of it stands any more.
    """
    parts: dict[str, Any] = {name: getattr(proposal, name) for name in _PARTS}
    event, prompt = forget(brain, Target(**parts), by="person"), proposal.prompt
    for path in (prompt, *(response_path(prompt, number) for number in range(1, 4))) if prompt else ():
        file = brain.tree.confine(path, inside=brain.tree.inbox)
        file.unlink(missing_ok=True)  # off the record: no journal may hold its words, so no commit removes it
    return event
