"""What taking exchanges out of memory comes to: their files, events and pages, and what rests on them alone.

A statement that others speak for too stays and loses this source; what it was merged from comes back where it is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Change, Event, ExchangeReflected, PathKind, remove, update
from brainiac.formats.dialogue import find_events, remaining
from brainiac.formats.links import shown
from brainiac.formats.memory import Memory, MemoryDocument, Statement, parse_memory
from brainiac.formats.prompt import parse_response, response_path
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.exchanges import Exchanges
from brainiac.history.ledger import Ledger, Operation
from brainiac.history.provenance import Provenance
from brainiac.history.rebase import texts_of, unlisted
from brainiac.history.traces import sentences_of
from brainiac.storage.folders import Folders
from brainiac.storage.statements import text_hash

_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)


@dataclass(slots=True)
class Retraction:
    """What is to be taken out of the tree.

    Attributes:
        exchanges: Their ids, revisions included.
        told: What is done, one sentence each.
        left: What stays and why, one sentence each.
        statements: Taken out or taken back: page, block, hash.
        items: Hashes of the items taken out of short-term memory.
        texts: The words that go, for finding what is left of them.
    """

    exchanges: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    statements: list[dict[str, str]] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)

    def changes(self, brain: Brain) -> list[Change]:
        """Return the changes of the tree, index pages with them."""
        changes: list[Change] = []
        for path, text in self.after.items():
            if text is None:
                changes.append(remove(path, self.before[path]))
            elif text != self.before[path]:
                changes.append(update(path, self.before[path], text))
        kinds = (PathKind.MEMORY, PathKind.ARCHIVED)
        top = brain.tree.relative(brain.tree.long_term) + "/"
        pages = [
            change for change in changes if brain.tree.kind_of(change.path) in kinds and change.path.startswith(top)
        ]
        return [*changes, *Folders(brain, pages).changes()] if pages else changes


class Retractor:
    """Finds all that is to be taken out for some exchanges.

    Args:
        brain: The brain.
        exchanges: Their ids.
        items: Hashes of items of short-term memory known to rest on them, where the journal's texts are gone.
    """

    def __init__(self, brain: Brain, exchanges: tuple[str, ...], items: Collection[str] = ()) -> None:
        self._brain, self._ids, self._items = brain, frozenset(exchanges), frozenset(items)
        self._known = Exchanges(brain)
        self._ledger = Ledger(brain)
        self._titles: list[str] = []  # of the pages that go
        self.result = Retraction(exchanges)

    def plan(self) -> Retraction:
        """Look the tree over as it stands."""
        for exchange in sorted(self._ids):
            said = self._known.said(exchange)
            self.result.texts += [text for text in (said.user, said.ai) if text.strip()]
            self._take_pair(exchange)
        for path in sorted(self._pages()):
            self._take_from_page(path)
        self._take_from_short_term()
        self._take_proposals()
        return self.result

    def _read(self, path: str) -> str | None:
        if path in self.result.after:
            return self.result.after[path]
        text = self._brain.read_text(path)
        if text is not None:
            self.result.before[path] = text
        return text

    # --- the prompt and its answers -------------------------------------------------------------------------

    def _take_pair(self, exchange: str) -> None:
        _, event = self._known.events.get(exchange, ("", None))
        if event is None:
            return
        path = self._known.place_of(event)
        raw = self._brain.read(path)
        if raw is not None and self._brain.answered.fingerprint(path, raw) != event.data.get("prompt_sha256"):
            if exchange == max(self._ids):
                self.result.left.append(f"{path}: says something else by now")
            return
        if raw is not None:
            self._drop(path, "the prompt")
        number = 1
        while (text := self._read(answer := response_path(path, number))) is not None:
            if parse_response(answer, text.encode("utf-8", "surrogateescape")).prompt_id in (
                None,
                "",
                event.data.get("prompt_id"),
            ):
                self.result.texts.append(text)
                self._drop(answer, "the answer")
            number += 1

    def _drop(self, path: str, what: str) -> None:
        if self._read(path) is not None:
            self.result.after[path] = None
            self.result.told.append(f"- {path}: {what}")

    # --- short-term memory ----------------------------------------------------------------------------------

    def _take_from_short_term(self) -> None:
        path = self._brain.tree.relative(self._brain.tree.short_term)
        text = self._read(path)
        if text is None:
            return
        document = ShortTermDocument(text)
        for exchange in self._ids:
            document = document.without_event(exchange)
        document = self._without_items(path, document)
        named = [paragraph for paragraph in document.paragraphs() if self._names_what_goes(paragraph)]
        document = document.with_summary(self._without_sentences(document.memory.summary, named))
        if str(document) != text:
            self.result.after[path] = str(document)
            self.result.told.append(f"~ {path}: its event, and what was noted from it alone")

    def _without_items(self, path: str, document: ShortTermDocument) -> ShortTermDocument:
        """Take out the items that the reflection of these exchanges wrote."""
        names = ("goals", "facts", "tasks")
        standing = [getattr(document.memory, name) for name in names]
        gone = [{item.text for item in items if text_hash(item.text) in self._items} for items in standing]
        for event in self._reflections():
            for change in event.changes:
                if change.path == path and (pair := self._versions(change.before, change.after)):
                    for texts, name in zip(gone, names, strict=True):
                        texts.update(texts_of(unlisted(getattr(pair[1], name), getattr(pair[0], name))))
        self.result.texts += [text for texts in gone for text in texts]
        self.result.items += [text_hash(text) for texts in gone for text in texts]
        return document.without_items(*gone)

    def _reflections(self) -> Iterator[Event]:
        """Yield the events, of whatever device, that noted these exchanges."""
        foreign = (event for _, event in self._brain.journal.foreign_events())
        for event in (*self._brain.journal.events(kinds={ExchangeReflected}), *foreign):
            if event.kind == ExchangeReflected.kind and event.data.get("exchange") in self._ids:
                yield event

    def _versions(self, before: str | None, after: str | None) -> tuple[Any, Any] | None:
        try:
            texts = [
                self._brain.committer.text_of(str(each)).decode("utf-8", "surrogateescape") for each in (before, after)
            ]
            return ShortTermDocument(texts[0]).memory, ShortTermDocument(texts[1]).memory
        except (BlobError, FormatError):
            return None

    def _names_what_goes(self, paragraph: str) -> bool:
        """Return whether a paragraph that a process wrote names a page that goes."""
        names = (rf"(?<!\w){re.escape(title)}(?!\w)" for title in self._titles)
        return text_hash(paragraph) in self._ledger.summaries and any(re.search(name, paragraph) for name in names)

    def _without_sentences(self, summary: str, named: Collection[str]) -> str:
        """Take sentences out of the summary that were said just so, and paragraphs that name what goes."""
        said = {" ".join(each.split()) for each in sentences_of(self.result.texts)}
        told = [sentence for sentence in said if len(sentence.split()) > 2 and sentence in summary]
        told += named
        if not told:
            return summary  # a person may have laid it out
        for sentence in sorted(told, key=len, reverse=True):
            summary = summary.replace(sentence, "")
        return "\n\n".join(" ".join(part.split()) for part in summary.split("\n\n") if part.strip())

    # --- pages ----------------------------------------------------------------------------------------------

    def _pages(self) -> Iterator[str]:
        """Yield the pages that name one of the exchanges, in their front matter or as said on them."""
        tree = self._brain.tree
        for entry in tree.walk(tree.long_term, tree.archive):
            path = tree.relative(entry.path)
            if tree.kind_of(path) in (PathKind.MEMORY, PathKind.ARCHIVED):
                text = self._brain.read_text(path) or ""
                if any(exchange in text for exchange in self._ids):
                    yield path

    def _take_from_page(self, path: str) -> None:
        text = self._read(path)
        try:
            memory = parse_memory(path, text or "")
        except FormatError as error:
            self.result.left.append(f"{path}: cannot be read ({error.problem})")
            return
        whole = self._ledger.whole.get(memory.uuid)
        if whole and whole.sources <= self._ids:
            self._take_whole(memory, whole)
            return
        page = MemoryDocument(_without_exchanges(memory.text, self._ids), path)
        for statement in memory.statements:
            page = self._weigh(page, statement)
        sources = [str(each) for each in memory.meta.get("sources") or ()]
        if kept := [each for each in sources if each not in self._ids]:
            page = page.set_meta(sources=kept) if kept != sources else page
        elif sources:
            page = page.set_meta(sources=[])
        if _is_bare(page.memory) and (memory.uuid in self._ledger.pages or list(find_events(memory.text))):
            self._titles.append(memory.title)
            self._drop(path, "nothing else stands on it")
        elif str(page) != text:
            self.result.after[path] = str(page)
            self.result.told.append(f"~ {path}: what rests on it alone, and the source")

    def _take_whole(self, memory: Memory, whole: Operation) -> None:
        """Drop a page whose body is what was said, unless a person wrote something else into it since."""
        said = (_plain(self._known.said(exchange).user) for exchange in whole.sources)
        if text_hash(memory.body) == whole.hash or any(_plain(memory.body) in each for each in said):
            self._titles.append(memory.title)
            self.result.texts.append(memory.body)
            self._drop(memory.path, "it is what was said")
        else:
            self.result.left.append(f"{memory.path}: it was edited since; it stays")

    def _weigh(self, page: MemoryDocument, statement: Statement) -> MemoryDocument:
        """Decide what becomes of one statement: it goes, it says again what it said before, or it stays."""
        uuid = page.memory.uuid
        behind = self._ledger.behind(uuid, statement)
        sources = frozenset().union(*(one.sources for one in behind))
        if not behind or sources.isdisjoint(self._ids):
            return page
        name = f"{page.memory.path}: “{statement.text}”"
        if sources <= self._ids:
            if _has_more(page.memory.text, page.statement(statement.block_id)):
                self.result.left.append(f"{name} has lines below it that are not ours")
                return page
            self._note(uuid, statement)
            return self._restored(_without_statement(page, statement.block_id), behind[-1].retired)
        if not statement.is_history and behind[-1].sources <= self._ids and (former := self._former(page, behind[-1])):
            self._note(uuid, statement)
            page = page.replace_statement(statement.block_id, former)
            return _without_statement(page, behind[-1].history) if behind[-1].history else page
        self.result.left.append(f"{name} rests on other exchanges too; it stays and loses this source")
        return page

    def _former(self, page: MemoryDocument, last: Operation) -> str:
        """Return what a statement said before its last operation; "" where that is not known any more."""
        return Provenance(self._brain, page.memory.path).text_with_hash(last.former)

    def _restored(self, page: MemoryDocument, block: str) -> MemoryDocument:
        """Let a statement hold again that was retired only because of what goes now."""
        retired = next((one for one in page.memory.statements if one.block_id == block and one.is_history), None)
        if not block or retired is None:
            return page
        behind = self._ledger.behind(page.memory.uuid, retired)
        if behind and frozenset().union(*(one.sources for one in behind)) <= self._ids:
            return page
        return _without_statement(page, block).add_statement(retired.text, block)

    def _note(self, page: str, statement: Statement) -> None:
        self.result.statements.append({"page": page, "block": statement.block_id, "hash": text_hash(statement.text)})
        self.result.texts.append(statement.text)

    def _take_proposals(self) -> None:
        """Take proposals out of the review that rest on these exchanges alone."""
        path = self._brain.tree.relative(self._brain.tree.review)
        gone = [one for one, sources in self._ledger.proposals.items() if sources and sources <= self._ids]
        text = self._read(path) if gone else None
        if text is None:
            return
        lines = text.splitlines(keepends=True)
        kept = "".join(line for line in lines if not any(f"<!-- proposal: {one} -->" in line for one in gone))
        if kept != text:
            self.result.after[path] = kept
            self.result.told.append(f"~ {path}: proposals that rest on it")


def _without_exchanges(text: str, exchanges: frozenset[str]) -> str:
    for placed in reversed(list(find_events(text))):
        if placed.event.id in exchanges:
            text = text[: placed.start] + remaining(text, placed) + text[placed.end :]
    return text


def _without_statement(page: MemoryDocument, block: str) -> MemoryDocument:
    one = next((each for each in page.memory.statements if each.block_id == block), None)
    if one is None:
        return page
    text = page.memory.text
    return MemoryDocument(text[: one.start] + text[one.end :], page.memory.path)


def _has_more(text: str, statement: Statement) -> bool:
    """Tell whether an item has lines below its own."""
    return text[statement.start : statement.end].strip().count("\n") > 0


def _plain(text: str) -> str:
    """Return a text without what differs from place to place: white space, and where its links lead."""
    return " ".join(shown(text.removeprefix("\ufeff")).split())


def _is_bare(memory: Memory) -> bool:
    """Tell whether nothing but headings is left of a page."""
    return not _HEADINGS.sub("", memory.body).strip()
