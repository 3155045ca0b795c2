"""Forgets a target: plans what is removed from the tree, and commits it.

Statements that rest on the forgotten exchanges alone are removed with them. A statement that rests on others too stays
and loses this source; its wording from before a merge comes back where it is known. It is one commit, which `undo`
reverses; `purge` also destroys the texts that the journal keeps.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from brainiac import events
from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.events import Event, ForgetProposal, PathKind, StatementRecord, update
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.markdown import find_events, remarks_of, without_link_targets
from brainiac.formats.page import Memory, MemoryDocument, is_private_note, parse_memory
from brainiac.formats.prompt import Exchange, parse_commands, parse_response, response_path
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.digest import write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.history.targets import Target, find_words, said_in, searched_text, texts_in, values_of
from brainiac.history.targets import find_target as find_target  # plugins import it from here
from brainiac.history.why import Provenance, memory_pages
from brainiac.llm.redaction import redact
from brainiac.search.wishes import own_sentences
from brainiac.storage.links import MENTIONS, Edits, still_named
from brainiac.storage.review import Proposal, proposals_change, without_proposals
from brainiac.storage.statements import Rest, RestsOn, StatementLog, text_hash, without_items
from brainiac.storage.withheld import block_hash, hiding_proposals, units_of, without_spans
from brainiac.text.tokens import holds_phrase, holds_words, pieces

MAX_HIDDEN = 5  # memories that a person's words hide; of more they are asked
HIDDEN = """\
Hidden from models, search and every door, as you asked (“{quote}”):

{lines}

`[x]` at its line in memory/review.md takes it out of memory; `[-]` there brings it back, and so does `brainiac undo \
--last` if nothing else changed since."""
NOT_HIDDEN = """\
Nothing is hidden: it is not clear whether “{quote}” means all of this.

{lines}

`[x]` at its line in memory/review.md takes it out of memory; `/forget WORDS` lists what holds some words."""
MIN_WORDS = 3  # of a sentence; a shorter one is found elsewhere by chance
_MAX_ANSWERS = 20  # of one prompt: where a person edited an answer, the next one has a number
_WHOLE = frozenset({PathKind.PROMPT, PathKind.CAPTURE, PathKind.RESPONSE, PathKind.ERROR})
_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)


# --- the plan and its commit ---------------------------------------------------------------------------------------


def forget(brain: Brain, target: Target, *, by: str = "cli", cause: str | None = None) -> Event | None:
    """Remove a target from the tree in one commit.

    Returns:
        The event; None when nothing of it is in the tree.

    Raises:
        ConflictError: Somebody keeps writing the files.
    """

    def attempt() -> Event | None:
        with brain.short_term_lock():
            plan = plan_forget(brain, target)
            if not (changes := plan.changes()):
                return None
            left: dict[str, Any] = {"taken_out": tuple(plan.statements), "left": tuple(plan.kept)}
            if target.page is None:
                forgotten: events.MemoryForgotten | events.ExchangeForgotten
                forgotten = events.ExchangeForgotten(**left, **target.parts)
            else:
                path, exchanges = target.pages[0], target.exchanges
                forgotten = events.MemoryForgotten(page=target.page, path=path, exchanges=exchanges, **left)
            return brain.commit(forgotten, by=by, changes=changes, cause=cause)

    event = brain.retry(attempt)
    write_digest(brain)
    return event


def plan_forget(brain: Brain, target: Target) -> ForgetPlan:
    """Return the plan of everything that is to be removed from the present tree for a target."""
    plan = ForgetPlan(brain, target)
    plan.plan_all()
    return plan


class ForgetPlan(Edits):
    """What is removed for a target, planned file by file; each step reads the files as planned so far.

    Args:
        brain: The brain.
        target: What is to be forgotten.

    Attributes:
        kept: For each thing that stays a sentence for a person, with the reason.
        statements: The statements that are removed or get an earlier wording back.
        items: Hashes of the items that are removed from short-term memory.
        texts: The removed texts, word for word, to find where the same words remain.
    """

    def __init__(self, brain: Brain, target: Target) -> None:
        super().__init__(brain)
        self._brain, self._target = brain, target
        self._rests, self._exchanges = RestsOn(brain, target.exchanges), Exchanges(brain)
        self._ids = self._rests.exchanges
        self._titles: list[str] = []  # of the pages that are removed
        self.kept: list[str] = []
        self.statements: list[StatementRecord] = []
        self.items: list[str] = []
        self.texts: list[str] = []

    def plan_all(self) -> None:
        """Plan prompts and answers, pages that name the exchanges, short-term memory, review, and named pages."""
        tree, target = self._brain.tree, self._target
        for exchange in sorted(self._ids):
            said = self._exchanges.said(exchange)
            self.texts += [text for text in (said.user, said.ai) if text.strip()]
            self._remove_prompt_and_answers(exchange)
        for page in self._rests.pages():
            if page.path not in target.pages:
                self._remove_from_page(page.path)
        self.kept += self._rests.unreadable()
        self._remove_from_short_term()
        review = tree.relative(tree.review)
        if (proposals := self._rests.proposals()) and (text := self.read(review)) is not None:
            self.write(review, without_proposals(text, proposals), "proposals that rest on it")
        for path, page in memory_pages(self._brain).items():
            if path in target.pages:
                self._remove_page(page)
        uuids = {path: page.uuid for path, page in self._brain.pages().pages.items()}
        for path in sorted(tree.scan(tree.inbox, tree.memory)):
            if tree.is_tracked(path):
                self._remove_units(path, uuids.get(path, ""))

    def _remove_prompt_and_answers(self, exchange: str) -> None:
        """Plan to remove an exchange's prompt, if it has the same text, and the answers beside it that are its own."""
        record, path = self._exchanges.what(exchange), self._exchanges.path_of(exchange)
        if record is None:
            return
        text = self.read(path)
        if text is not None and self._brain.answered.fingerprint(path, _bytes(text)) != record.prompt_sha256:
            is_latest = exchange == max(self._ids)  # ids sort by time; that an earlier revision was replaced is normal
            if is_latest:
                self.kept.append(f"{path}: says something else by now")
            return
        self.write(path, None, "the prompt")
        for answer in map(response_path, itertools.repeat(path), itertools.count(1)):
            text = self.read(answer)
            if text is None:
                return
            if parse_response(answer, _bytes(text)).prompt_id in ("", record.prompt_id):
                self.texts.append(text)
                self.write(answer, None, "the answer")

    def _remove_from_short_term(self) -> None:
        """Plan short-term memory without the exchanges, the items from them, and their sentences in the summary."""
        path = self._brain.tree.relative(self._brain.tree.short_term)
        text, log = self.read(path), self._rests.log
        if text is None:
            return
        document, removed = without_items(
            ShortTermDocument(text).without_event(*self._ids),
            lambda item: (
                text_hash(item.text) in self._target.items or not self._ids.isdisjoint(log.sources_of_item(item.text))
            ),
        )
        self.texts += removed
        self.items += map(text_hash, removed)
        summary = self._without_sentences(document.memory.summary, document.paragraphs())
        self.write(path, str(document.with_summary(summary)), "its event, and what was noted from it alone")

    def _without_sentences(self, summary: str, paragraphs: Iterable[str]) -> str:
        """Return the summary without the sentences of removed texts, and without paragraphs about removed pages.

        Args:
            summary: Its text.
            paragraphs: Its paragraphs, as Promotion recorded those that it wrote.
        """
        sentences = {" ".join(text.split()) for text in sentences_of(self.texts)}
        removed = [sentence for sentence in sentences if len(sentence.split()) >= MIN_WORDS and sentence in summary]
        names = [rf"(?<!\w){re.escape(title)}(?!\w)" for title in self._titles]
        about_removed = (part for part in paragraphs if any(re.search(name, part) for name in names))
        removed += filter(self._rests.log.is_own_summary, about_removed)
        if not removed:
            return summary  # unchanged to the byte: a person may have formatted it
        # the longest first: a sentence may hold another
        for text in sorted(removed, key=len, reverse=True):
            summary = summary.replace(text, "").replace("“”", "")  # the marks of a quotation that is gone
        return "\n\n".join(" ".join(part.split()) for part in summary.split("\n\n") if part.strip())

    # --- pages ----------------------------------------------------------------------------------------------

    def _remove_from_page(self, path: str) -> None:
        """Plan a page that names the exchanges: a captured note is removed, any other page loses what rests on them.

        A page that a process wrote, or that holds exchanges, is removed if nothing but headings is left of it.
        """
        text = self.read(path)
        if text is None:
            return
        memory = parse_memory(path, text)  # the file may have changed since all pages were read
        note = self._rests.log.whole_body_of(memory.uuid)
        if note and self._ids.issuperset(note.record.sources):
            prompts = (_comparable(self._exchanges.said(exchange).user) for exchange in note.record.sources)
            if text_hash(memory.body) != note.hash and not any(_comparable(memory.body) in said for said in prompts):
                self.kept.append(f"{path}: it was edited since; it stays")
                return
            self._titles.append(memory.title)
            self.texts.append(memory.body)
            self.write(path, None, "it is what was said")
            return
        for placed in reversed(list(find_events(text))):  # a person's remarks within an exchange stay
            if placed.event.id in self._ids:
                text = text[: placed.start] + remarks_of(text, placed) + text[placed.end :]
        page = MemoryDocument(text, path)
        for rest in self._rests.statements(memory):
            page = self._without_source(page, rest)
        sources = [str(source) for source in memory.meta.get("sources") or ()]
        other_sources = [source for source in sources if source not in self._ids]
        page = _without_unused_mentions(page.set_meta(sources=other_sources) if other_sources != sources else page)
        if is_bare(page.memory) and is_by_process(memory, self._rests.log):
            self._titles.append(memory.title)
            self.write(path, None, "nothing else stands on it")
        else:
            self.write(path, str(page), "what rests on it alone, and the source")

    def _without_source(self, page: MemoryDocument, rest: Rest) -> MemoryDocument:
        """Return a page on which a statement no longer rests on the exchanges.

        A statement that rests on these alone is removed. One whose last wording comes from them gets its earlier
        wording back, if that is known. Any other stays, and `kept` says so.
        """
        memory, block = page.memory, rest.statement.block_id
        name = f"{memory.path}: “{rest.statement.text}”"
        # lines that a person wrote below the statement belong to it and would lose their meaning
        if rest.is_alone and page.has_lines_below(block):
            self.kept.append(f"{name} has lines below it that are not ours")
            return page
        former = Provenance(self._brain, memory).text_with_hash(rest.former.hash) if rest.former else ""
        if not rest.is_alone and not former:
            self.kept.append(f"{name} rests on other exchanges too; it stays and loses this source")
            return page
        self.statements.append(rest.record(memory))
        self.texts.append(rest.statement.text)
        if rest.is_alone:
            return rest.without(page)
        page, history = page.replace_statement(block, former), rest.former.history if rest.former else ""
        is_there = any(history and history == statement.block_id for statement in page.memory.statements)
        return page.without_statement(history) if is_there else page

    def _remove_units(self, path: str, uuid: str) -> None:
        """Plan a file without the units, and values of front matter, whose hashes or words the target names.

        Args:
            path: Of the file.
            uuid: Of the page; "" for none.
        """
        hashes = {digest for page, digest in self._target.blocks if page in (uuid or path, path)}
        words, text = self._target.words, self.read(path) or ""
        is_whole = self._brain.tree.kind_of(path) in _WHOLE and holds_words(searched_text(path, text), words)
        if text and (is_whole or path in (*self._target.answers, *self._target.pages)):
            self.texts.append(text)
            self.write(path, None, "it has the words")
            return
        if not (hashes or holds_words(text, words)):
            return

        def is_named(unit: str) -> bool:
            # the former form of the hash, which a repaired link changed, is that of older proposals
            return not hashes.isdisjoint((block_hash(unit), text_hash(unit))) or holds_words(said_in(unit), words)

        spans = [(start, end) for start, end in units_of(text) if is_named(text[start:end])]
        before, removed = text, [text[start:end] for start, end in spans]
        text = without_spans(text, spans)
        values = [value for value in values_of(text) if is_named(value)]
        try:
            # texts of front matter are taken out of lists, and empty elsewhere
            keys: dict[str, Any] = {}
            for key, entry in split(text)[0].items() if values else ():
                if not set(values).isdisjoint(texts_in(entry)):
                    keys[key] = [part for part in entry if part not in values] if isinstance(entry, list) else ""
            text = str(_without_unused_mentions(MemoryDocument(edit_meta(text, **keys), path)))
        except FormatError as error:
            self.kept.append(f"{path}: {error.problem}")
        if text != before:
            self.texts += [*removed, *values]
            self.write(path, text, f"{len(removed) + len(values)} of its statements")

    def _remove_page(self, memory: Memory) -> None:
        """Plan to remove a page; the exchanges that it was made from stay, but for those that the target names."""
        self.write(memory.path, None, "the page")
        self.texts.append(_HEADINGS.sub("", memory.body))
        for statement in memory.statements:
            digest = text_hash(statement.text)
            self.statements.append(StatementRecord(page=memory.uuid, block=statement.block_id, hash=digest))
            self.texts.append(statement.text)
        sources = {str(source) for source in memory.meta.get("sources") or ()} - self._ids
        if sources:
            self.kept.append(f"what was said stays, word for word: {', '.join(sorted(sources))}")


def is_bare(memory: Memory) -> bool:
    """Return whether a page has no content but headings."""
    return not _HEADINGS.sub("", memory.body).strip()


def is_by_process(memory: Memory, log: StatementLog) -> bool:
    """Return whether a process wrote on a page: a statement, or an exchange word for word."""
    return log.knows_page(memory.uuid) or any(find_events(memory.text))


def _without_unused_mentions(page: MemoryDocument) -> MemoryDocument:
    """Return a page without those of its `mentions` whose names its text no longer has; they would tell the names."""
    if not isinstance(page.memory.meta.get(MENTIONS), list):
        return page
    return page.set_meta(**{MENTIONS: still_named(page.memory)})


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _comparable(text: str) -> str:
    """Return a text without link targets and extra white space, which may differ between copies of the same words."""
    return " ".join(without_link_targets(text.removeprefix("\ufeff")).split())


# --- sentences that remain in the tree -----------------------------------------------------------------------------


def pieces_of(texts: Iterable[str]) -> list[bytes]:
    """Return the sentences of texts that have at least three words and are no fixed phrases of ours, longest first."""
    from brainiac.llm.offline import FIXED  # with it comes numpy, and what only looks at memory starts without

    sentences = sentences_of(texts) - sentences_of(FIXED)
    long_enough = (_bytes(text) for text in sentences if len(text.split()) >= MIN_WORDS)
    return sorted(long_enough, key=len, reverse=True)


def sentences_of(texts: Iterable[str]) -> set[str]:
    """Return every wording of texts that a process may have copied into memory: their lines and single sentences.

    The arguments of commands count as lines, as `/remember` keeps its argument alone.
    """
    sentences: set[str] = set()
    for text in texts:
        commands, _ = parse_commands(text)
        arguments = [command.argument for command in commands]
        for line in "\n".join([text, *arguments]).splitlines():
            sentences.update(sentence.strip().strip('"') for sentence in (line, *pieces(line)))
    return sentences


def find_remaining(
    brain: Brain, pieces: Collection[bytes], after: Mapping[str, bytes] | None = None
) -> dict[bytes, list[str]]:
    """Return, by sentence, the files of the tree that contain it; logs and journal are not searched.

    Args:
        brain: The brain.
        pieces: The sentences.
        after: Contents that planned changes will give to files, b"" where one is to be removed; None for no changes.
    """
    places: dict[bytes, list[str]] = {}
    for path in brain.tree.scan(brain.tree.inbox, brain.tree.memory, brain.tree.system):
        content = after[path] if after and path in after else brain.read(path) or b""
        for piece in pieces:
            if piece in content:
                places.setdefault(piece, []).append(path)
    return places


# --- forgetting that is asked for in the inbox, or by deleting a page ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposed:
    """The answer to a `/forget`."""

    text: str
    is_private: bool = False


def propose(brain: Brain, words: str, prompt: str) -> Proposed:
    """Add a proposal to `memory/review.md` to forget everything that has some words.

    The journal and the line in the review have only ids and hashes. The words are in the prompt and in its answer, and
    both files are removed when the proposal is carried out.

    Args:
        brain: The brain.
        words: All of them must be in what is forgotten.
        prompt: Path of the prompt that asks for it.
    """
    target = find_words(brain, words)
    if not target:
        return Proposed(f"Nothing in memory holds “{words}”.")
    what = f"Forget {target.count}, as listed beside {prompt}"
    proposal = replace(target.proposal(what), prompt=prompt)
    _add_proposal(brain, proposal, by="core_loop", is_private=target.is_private)
    lines = "\n".join(f"- {line}" for line in target.shown)
    text = f"To be forgotten, once you tick it in memory/review.md: {target.count}.\n\n{lines}"
    return Proposed(text, target.is_private)


def ask_about_deleted(brain: Brain, path: str, before: str) -> None:
    """Propose to forget the exchanges from which a page was made that a person deleted by hand.

    Args:
        brain: The brain.
        path: The page's path.
        before: The page's text.
    """
    try:
        meta, _ = split(before, path)
    except FormatError:
        return  # it names no exchanges
    on_page = {placed.event.id for placed in find_events(before)}  # these were deleted with the page
    sources = map(str, meta.get("sources") or ())
    target = Target(tuple(source for source in sources if source not in on_page))
    page = str(meta.get("uuid") or path)
    if not target or any(proposal.deleted == page for proposal in hiding_proposals(brain)):
        return  # there is nothing to forget, or the person was asked already
    # none is quoted: the sources of undecided deletions are withheld
    what = f"Forget {target.count} too: the deleted page {path} was made from what they say; until then none is quoted"
    proposal = replace(target.proposal(what), deleted=page, path=path)
    _add_proposal(brain, proposal, by="organization", is_private=is_private_note(before))


def hide(brain: Brain, exchange: Exchange, quotes: Sequence[str], target: Target) -> None:
    """Hide what a person asked to have forgotten until they decide, and say so below the answer; once an exchange.

    Words amid a long message may be pasted: for these, and where they name more than `MAX_HIDDEN` memories, nothing is
    hidden, and the person is asked.

    Args:
        brain: The brain.
        exchange: That in which they asked; it is hidden too, as it repeats what it is about.
        quotes: The words by which they asked.
        target: The memories that they named.
    """
    proposal_id = f"forget-{exchange.id}"
    brain.projection.follow()
    if brain.projection.query("SELECT 1 FROM proposals WHERE id = ?", proposal_id):
        return  # hidden before a crash, or taken back since
    typed = " ".join(own_sentences(exchange.prompt.said))
    is_hiding = len(target.shown) <= MAX_HIDDEN and all(holds_phrase(typed, quote) for quote in quotes)
    whole = replace(target, exchanges=(exchange.id, *(name for name in target.exchanges if name != exchange.id)))
    until = "; until then all of it is hidden, and `-` brings it back" if is_hiding else ""
    what = f"Forget {whole.count}, as listed below the answer to {exchange.prompt.path}{until}"
    proposal = replace(whole.proposal(what), id=proposal_id, is_hiding=is_hiding)
    lines = "\n".join(f"- {redact(brain, line)}" for line in ("this message and its answer", *target.shown))
    note = (HIDDEN if is_hiding else NOT_HIDDEN).format(quote=redact(brain, "; ".join(quotes)), lines=lines)

    def attempt() -> None:
        path = exchange.response.path if exchange.response else ""
        text = brain.read_text(path) if path else None
        changes = proposals_change(brain.tree, [Proposal(proposal, exchange.is_private)])
        if text:
            changes.append(update(path, text, f"{text.rstrip()}\n\n---\n\n{note}\n"))
        brain.commit(
            events.ForgettingProposed(proposals=(proposal,)), by="reflection", changes=changes, cause=exchange.id
        )

    brain.retry(attempt)


def _add_proposal(brain: Brain, proposal: ForgetProposal, *, by: str, is_private: bool) -> None:
    """Commit a proposal with its line in `review.md`."""
    changes = proposals_change(brain.tree, [Proposal(proposal, is_private)])
    brain.commit(events.ForgettingProposed(proposals=(proposal,)), by=by, changes=changes)


def carry_out_proposal(brain: Brain, proposal: ForgetProposal) -> Event | None:
    """Forget what a ticked proposal names, and remove the prompt that asked for it, which is off the record.

    Returns:
        The event; None when nothing of it is in the tree any more.
    """
    event = forget(brain, Target.of(proposal), by="person")
    if prompt := proposal.prompt:
        answers = [response_path(prompt, number) for number in range(1, _MAX_ANSWERS + 1)]
        for path in (prompt, *answers):
            # no commit, as the journal would keep the words
            brain.tree.confine(path, inside=brain.tree.inbox).unlink(missing_ok=True)
    return event
