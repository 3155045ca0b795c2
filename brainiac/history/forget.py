"""Finds what a person names, plans what of it is removed from the tree, and commits it.

A person names an exchange, a conversation, a page, or words. Statements that rest on the forgotten exchanges alone are
removed with them. A statement that rests on others too stays and loses this source; its wording from before a merge
comes back where it is known. It is one commit, which `undo` reverses; `purge` also destroys the texts that the journal
keeps.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from brainiac import events
from brainiac.brain import Brain
from brainiac.errors import FormatError, UserError
from brainiac.formats import markdown
from brainiac.formats.discretion import Audience
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.index_page import MANIFEST, RELATED
from brainiac.formats.page import HISTORY, STEPS, Memory, MemoryDocument, audience_of, parse_memory, shareable_text
from brainiac.formats.prompt import Exchange, parse_commands, parse_response, prompt_path_of, response_path
from brainiac.formats.short_term import EMPTY, ShortTermDocument
from brainiac.history.digest import FORGOTTEN_PARTS, PAGES, count_forgotten, write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import Provenance, find_memory, find_statement, memory_pages, path_named
from brainiac.llm.offline import FIXED
from brainiac.llm.redaction import redact
from brainiac.search.documents import COUNTED, Hit
from brainiac.search.wishes import own_sentences
from brainiac.storage.links import MENTIONS, Edits, still_named
from brainiac.storage.review import SECTIONS, asked_before, asking, without_proposals
from brainiac.storage.said import check_gone, meant_by, receipt_id
from brainiac.storage.statements import Rest, StatementLog, rests_on, sources_of, text_hash, without_items
from brainiac.storage.today import without_ours
from brainiac.storage.versions import EMPTY_REVIEW
from brainiac.storage.withheld import block_hash, hiding_proposals, matching_blocks, split_or_all, units_of
from brainiac.text.tokens import holds_phrase, holds_words, named_words, pieces
from brainiac.text.tokens import words as words_of

MAX_HIDDEN = 5  # memories that a person's words hide; of more they are asked
HIDDEN = """\
Hidden from models, search and every door, as you asked (“{quote}”):

{lines}

`[x]` at its line in memory/review.md takes it out of memory; `[-]` there brings it back, and so does `brainiac undo \
--last` if nothing else changed since. Undecided for 30 days, the line goes: it stays hidden and is not destroyed."""
NOT_HIDDEN = """\
Nothing is hidden: it is not clear whether “{quote}” means all of this.

{lines}

`[x]` at its line in memory/review.md takes it out of memory; `/forget WORDS` lists what holds some words."""
MIN_WORDS = 3  # of a sentence; a shorter one is found elsewhere by chance
_MAX_ANSWERS = 20  # of one prompt: where a person edited an answer, the next one has a number
_WHOLE = frozenset({events.PathKind.PROMPT, events.PathKind.CAPTURE, events.PathKind.RESPONSE, events.PathKind.ERROR})
_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)
OPERATION = "forget"  # of a proposal in `review.md`
OFFLINE, COMMANDS = "offline", "commands"  # the models that an answer without a model names
_LINKS_ALONE = re.compile(r"(?:\s*\[[^\]]*\]\([^)]*\)[,;]?)+\s*")
_SOURCE = re.compile(r"^— .*\n?", re.MULTILINE)  # below a quotation of an answer: day and link
_SHOWN_CHARACTERS = 100
_RESTING = {"page": "page", "statement": "statement", "note": "note", "said": "exchange"}  # what a plan takes besides
_TOLD_AGAIN = (events.PathKind.INDEX_PAGE, events.PathKind.TODAY)  # these tell again what stands elsewhere
_ORDER = ("page", "statement", "note", "again", "said", "file")  # of what a plan does, as it is shown
# what processes add to a person's words: block id, marks, the stamp of an exchange, and the kind of its author
_OUR_ADDITIONS = re.compile(
    r"\^[0-9a-z]{4,6}[ \t]*$|<!--\s*(?:event:|exchange:|proposals?:|waiting|private\b).*?-->"
    r"|^### [-0-9]{10}T[:0-9]{8}Z$|^\*\*(?:User|AI|Thoughts)(?=:\*\*)"
    r"|(?:^\*\*|(?<= \())(?:assistant|import|tool)(?=: | \(|:\*\*)",
    re.MULTILINE | re.IGNORECASE,
)
_OUR_HEADINGS = "".join(f"## {each}\n" for each in (HISTORY, STEPS, MANIFEST, RELATED, *SECTIONS.values()))
_OUR_LINES = frozenset(f"{EMPTY}{EMPTY_REVIEW}{_OUR_HEADINGS}".splitlines())
# the keys of front matter whose values processes choose: ids, times, and one of a few words
_OUR_KEYS = frozenset(
    "uuid created_at updated_at sources emotion category subject_type importance origin model prompt_id device".split()
)


# --- what a person names ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PurgedWords:
    """What was purged, as far as a tombstone tells it to other devices: words and sentences by salted hashes.

    Attributes:
        salt: Of the hashes.
        words: Of each word that was named; they must all meet.
        sentences: Of the sentences that were forgotten, each of at least `MIN_WORDS` words.
        said: Sentences that were written before their device knew of the purge. What has none of them was typed anew
            and stays; None where all goes.
    """

    salt: str
    words: frozenset[str]
    sentences: frozenset[str]
    said: frozenset[str] | None = None

    def hash_of(self, text: str) -> str:
        """Return the hash of a word or sentence."""
        return salted_hash(self.salt, text)

    def meet_in(self, text: str) -> bool:
        """Return whether all the words, or one of the sentences, are in a text, in sentences that count."""
        has_words = self.words and self.words <= set(map(self.hash_of, named_words(text)))
        if not has_words and not self.sentences:
            return False
        sentences = self.sentences_in(text)
        if not has_words and self.sentences.isdisjoint(map(self.hash_of, sentences)):
            return False
        return self.said is None or not self.said.isdisjoint(sentences)

    def sentences_in(self, text: str) -> set[str]:
        """Return the sentences of a text that are, or have a word of, what was purged, by their words alone."""
        sentences = {" ".join(words_of(sentence)) for sentence in sentences_of([_OUR_ADDITIONS.sub("", text)])}
        return {each for each in sentences if self.hash_of(each) in self.sentences or self.any_in(each)}

    def any_in(self, text: str) -> bool:
        """Return whether one of the words is in a text."""
        return not self.words.isdisjoint(map(self.hash_of, named_words(text)))


@lru_cache(maxsize=200_000)  # a device has each word in many texts
def salted_hash(salt: str, text: str) -> str:
    """Return the hash by which a tombstone knows a word or a sentence."""
    return events.content_hash(f"{salt} {text}".encode("utf-8", "surrogateescape"))[:16]


def holds(text: str, named: str | PurgedWords) -> bool:
    """Return whether a text has all the words that were named."""
    return named.meet_in(text) if isinstance(named, PurgedWords) else holds_words(text, named)


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be forgotten, by ids and hashes alone, so that it can be found again in a changed tree.

    Attributes:
        exchanges: Ids.
        blocks: Statements and paragraphs of pages: (uuid or path of the page, hash of the text).
        items: Hashes of goals, facts and tasks of short-term memory.
        pages: Paths of pages that are removed whole.
        answers: Paths of files in the inbox that have the words and are no prompt of an exchange that has them.
        paths: Of the pages with the blocks, where these are known.
        page: The uuid of the page that a person named, "" where it has none; None where no page was named.
        words: The words that a person named, or what the tombstone of a purge has of them; "" where they named
            something else, and where an event or a proposal is the source, as these keep no words.
        shown: A line for each of these, to show to a person.
        is_private: Whether some of it is private.
    """

    exchanges: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    paths: tuple[str, ...] = field(default=(), compare=False)
    page: str | None = None
    words: str | PurgedWords = field(default="", compare=False)
    shown: tuple[str, ...] = field(default=(), compare=False)
    is_private: bool = field(default=False, compare=False)

    @property
    def parts(self) -> dict[str, Any]:
        """Its fields that name what is to be forgotten."""
        return {name: getattr(self, name) for name in FORGOTTEN_PARTS}

    def __bool__(self) -> bool:
        return any(self.parts.values())

    @property
    def count(self) -> str:
        """How many exchanges, statements and so on it has, in words."""
        return count_forgotten(self)

    def proposal(self, what: str) -> events.ForgetProposal:
        """Return the proposal to forget it, with one sentence for a person."""
        return events.ForgetProposal(id=events.new_id(), what=what, operation=OPERATION, **self.parts)

    @classmethod
    def of(cls, what: events.ForgetProposal | events.ExchangeForgotten | events.MemoryForgotten) -> Target:
        """Return the target that a proposal names, or that an event took out."""
        if isinstance(what, events.MemoryForgotten):
            return cls(what.exchanges, pages=(what.path,), page=what.page)
        parts: dict[str, Any] = {name: getattr(what, name) for name in FORGOTTEN_PARTS}
        return cls(**parts)


def find_target(brain: Brain, named: str) -> Target:
    """Return the conversation, exchange, page or statement (`path#^block`, a receipt) that a person named, as a target.

    Raises:
        UserError: Nothing is called so.
    """
    exchanges, inbox = Exchanges(brain), brain.tree.layout.inbox
    receipt, named = named, meant_by(brain, named)
    if "#^" in named and (match := find_statement(brain, named)):
        page = match.memory
        whole = page.text[match.statement.start : match.statement.end]  # with what is nested below it
        line = f"{page.path}: {_quoted(match.text)}"
        return Target(blocks=((page.uuid or page.path, block_hash(whole)),), paths=(page.path,), shown=(line,))
    path = path_named(brain, named)
    named = (
        path if path and brain.tree.absolute(path).exists() else named
    )  # as the journal spells it, or words, or an id
    if exchange := exchanges.find(named):
        return Target(tuple(exchanges.with_same_prompt(exchange)))
    if named.startswith(f"{inbox}/") and (conversation := exchanges.in_folder(named)):
        return Target(tuple(conversation))
    if memory := find_memory(brain, named):
        return target_of_page(memory)
    check_gone(brain, receipt)
    raise UserError(
        f"{named!r} names no exchange (by id, or by its file in {inbox}/) and no memory "
        "(by path, title or uuid); `brainiac why` shows the exchanges behind a statement"
    )


def target_of_page(memory: Memory, items: Iterable[str] = ()) -> Target:
    """Return the target that is a page; the exchanges on an episodic page are part of it."""
    exchanges = tuple(placed.event.id for placed in markdown.find_events(memory.text))
    return Target(exchanges, items=tuple(items), pages=(memory.path,), page=memory.uuid)


def find_words(brain: Brain, words: str | PurgedWords) -> Target:
    """Return everything in memory and inbox that has all of the words, as a target; an empty one for no words."""
    return _WordSearch(brain, words).target()


def target_of_hits(brain: Brain, hits: Iterable[Hit]) -> Target:
    """Return what hits of a search in memory stand in, as a target: exchanges, blocks of pages, items.

    What stands on a page whose front matter cannot be read is left out.
    """
    found: dict[str, dict[Any, str]] = {name: {} for name in FORGOTTEN_PARTS}
    for hit in hits:
        line = f"{hit.path}: {_quoted(hit.said)}"
        if hit.kind == "exchange":
            found["exchanges"].setdefault(hit.anchor, line)
        elif brain.tree.kind_of(hit.path) is events.PathKind.SHORT_TERM:
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

    def __init__(self, brain: Brain, words: str | PurgedWords) -> None:
        self._brain, self._words = brain, words
        self._found: dict[str, dict[Any, str]] = {name: {} for name in FORGOTTEN_PARTS}
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
            elif kind is not events.PathKind.INDEX_PAGE:  # its lines follow the pages, and so do ours of `Today.md`
                text = self._brain.read_text(path) or ""
                self._read_units(path, without_ours(text) if kind is events.PathKind.TODAY else text)
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
        return holds(text, self._words)

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
        exchanges = list(markdown.find_events(text))
        for event in (placed.event for placed in exchanges):
            # an answer of the offline engine is recorded as links alone: their titles are nobody's words
            answer = "" if _LINKS_ALONE.fullmatch(event.ai) else event.ai
            if self._matches(f"{event.by}\n{event.user}\n{answer}\n{event.thoughts}\n{event.remarks}"):
                self._is_private |= event.is_private
                line = f"{path}, {self._brain.day_of(event.at)}: {_quoted(event.user or answer)}"
                self._found["exchanges"][event.id] = line
        return markdown.edited(text, ((placed.start, placed.end, "") for placed in exchanges))

    def _read_page(self, page: Memory) -> None:
        """Add the exchanges and units of a page that have the words, or the whole page where its name has them."""
        # the title of a day's page does not say what the page is about
        if is_date(stem_of(page.path)) or not self._matches(f"{page.title}\n{stem_of(page.path)}"):
            self._read_units(page.path, self._add_events(page.path, page.text), page.uuid)
            return
        self._found["pages"][page.path] = f"{page.path}: the whole page"
        self._is_private |= page.is_private or bool(markdown.PRIVATE.search(page.text))
        for placed in markdown.find_events(page.text):
            self._found["exchanges"].setdefault(placed.event.id, f"{page.path}: {_quoted(placed.event.user)}")

    def _read_units(self, path: str, text: str, uuid: str = "") -> None:
        """Add the units of a file that have the words, and the values of its front matter."""
        units = (text[start:end] for start, end in units_of(text))
        for unit in (*values_of(text), *units):
            if self._matches(said_in(unit)):
                self._is_private |= shareable_text(text) is None
                self._found["blocks"][uuid or path, block_hash(unit)] = f"{path}: {_quoted(unit)}"


def searched_text(path: str, text: str) -> str:
    """Return the text of a file in the inbox as a person or a model wrote it, with its name.

    Of an answer without a model its fixed phrases and the titles of what it quotes are left out: nobody's words.
    """
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
    if unit.strip() in _OUR_LINES or unit.strip() in FIXED:
        return ""
    for link in reversed(markdown.find_links(unit)):
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


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a plan does, in a person's words.

    Attributes:
        kind: `said` for an exchange, `page` or `file` for a whole one, `statement` for what stands on a page, `note`
            for an item of short-term memory, `again` for a former wording that comes back.
        path: The file that it stands in.
        title: Of the page; of another file its path.
        text: Its words.
        key: By which it is known again in another plan; "" for what the target names itself.
    """

    kind: str
    path: str
    title: str
    text: str
    key: str = ""

    def __str__(self) -> str:
        text = _quoted(self.text)
        match self.kind:
            case "page":
                return f"{self.title}: the whole page"
            case "file":
                return f"{self.path}: the {'answer' if prompt_path_of(self.path) else 'prompt'}"
            case "said":
                return f"said, with its answer: {text}"
            case "again":
                return f"{self.title}: holds again: {text}"
        return f"{self.title}: {text}"


class MoreGoesError(UserError):
    """More would be forgotten by now than a person was shown."""


def forget(
    brain: Brain, target: Target, *, by: str = "cli", cause: str | None = None, shown: Collection[str] | None = None
) -> events.Event | None:
    """Remove a target from the tree in one commit.

    Args:
        brain: The brain.
        target: What is to be forgotten.
        by: Who does it.
        cause: The id of the event that it is done by, if there is one.
        shown: The `keys` of the plan that the person saw; None for one who agreed to whatever it takes.

    Returns:
        The event; None when nothing of it is in the tree.

    Raises:
        ConflictError: Somebody keeps writing the files.
        MoreGoesError: It would take more than was shown; nothing is done.
    """

    def attempt() -> events.Event | None:
        with brain.short_term_lock():
            plan = plan_forget(brain, target)
            if shown is not None and not plan.keys.issubset(shown):
                raise MoreGoesError("memory changed since, and more would go than was shown; look at it once more")
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
    shutil.rmtree(brain.places.cache / "as_of", ignore_errors=True)  # former moments have it too
    write_digest(brain)
    return event


def plan_forget(brain: Brain, target: Target, *, keeps_prompts: bool = False) -> ForgetPlan:
    """Return the plan of everything that is to be removed from the present tree for a target; see `ForgetPlan`."""
    plan = ForgetPlan(brain, target, keeps_prompts=keeps_prompts)
    plan.plan_all()
    return plan


class ForgetPlan(Edits):
    """What is removed for a target, planned file by file; each step reads the files as planned so far.

    Args:
        brain: The brain.
        target: What is to be forgotten.
        keeps_prompts: Whether the files stay in which it was said, as for undo.

    Attributes:
        kept: For each thing that stays a sentence for a person, with the reason.
        statements: The statements that are removed or get an earlier wording back.
        items: Hashes of the items that are removed from short-term memory.
        texts: The removed texts, word for word, to find where the same words remain.
        said: What removed statements rest on and stays, for a person: day and words by the id that `forget` takes.
        is_private: Whether some of what it changes is private.
    """

    def __init__(self, brain: Brain, target: Target, *, keeps_prompts: bool = False) -> None:
        super().__init__(brain)
        self._brain, self._target, self._keeps_prompts = brain, target, keeps_prompts
        self._log, self._exchanges = StatementLog(brain), Exchanges(brain)
        self._ids = frozenset(target.exchanges)
        self._titles: list[str] = []  # of the pages that are removed
        self.kept: list[str] = []
        self.statements: list[events.StatementRecord] = []
        self.items: list[str] = []
        self.texts: list[str] = []
        self.said: dict[str, str] = {}
        self.is_private = target.is_private
        self._notes: list[str] = []  # removed from short-term memory

    def plan_all(self) -> None:
        """Plan prompts and answers, pages that name the exchanges, short-term memory, review, and named pages."""
        tree, target = self._brain.tree, self._target
        for exchange in sorted(self._ids):
            said = self._exchanges.said(exchange)
            self.texts += [text for text in (said.user, said.ai) if text.strip()]
            self._remove_prompt_and_answers(exchange)
        rests = defaultdict[str, list[Rest]](list)
        for rest in rests_on(self._brain, self._ids, self.read):
            rests[rest.path].append(rest)
        short_term, review = tree.relative(tree.short_term), tree.relative(tree.review)
        for path in [path for path in rests if path not in (short_term, review, *target.pages)]:
            self._remove_from_page(path, rests[path])
        self._remove_from_short_term({rest.name for rest in rests[short_term] if rest.kind == "item"})
        proposals, text = {rest.name for rest in rests[review]}, self.read(review)
        if text and (left := without_proposals(text, proposals, target.pages)) != text:
            self.write(review, left)
        for page in self._brain.pages(target.pages).pages.values():
            self._remove_page(page)
        # words may stand in any file; what was named by ids stands on pages that are known, by their uuids or paths
        files: Collection[str] = {*target.answers, *target.pages, *target.paths}
        if target.words:
            files = tree.scan(tree.inbox, tree.memory).keys()
        elif target.blocks and not target.paths:
            named, pages = {page for page, _ in target.blocks}, self._brain.pages().pages
            files = {*files, *named, *(path for path, page in pages.items() if page.uuid in named)}
        pages = self._brain.pages(files).pages
        for path in sorted(filter(tree.is_tracked, files)):
            self._remove_units(path, pages[path].uuid if path in pages else "")
        # what names the target alone is as private as that
        self.is_private |= any(shareable_text(markdown.decode_text(before)) is None for _, before, _ in self._changed())

    def _changed(self) -> Iterator[tuple[str, bytes, str]]:
        """Yield the changed files of memory and inbox: path, and the text before and after."""
        tree = self._brain.tree
        for path, before in self._before.items():
            after = self._after[path]
            if before is not None and markdown.decode_text(before) != after and tree.kind_of(path) not in _TOLD_AGAIN:
                yield path, before, after or ""

    @property
    def keys(self) -> frozenset[str]:
        """What the plan takes besides what its target names, by hashes."""
        return frozenset(effect.key for effect in self.effects() if effect.key)

    def effects(self) -> list[Effect]:
        """Return all that is taken out, or comes back in a former wording, file by file and each once."""
        tree, short_term = self._brain.tree, self._brain.tree.relative(self._brain.tree.short_term)
        review, pages = tree.relative(tree.review), self._brain.pages(self._before).pages
        found, blocks = dict[tuple[str, str], Effect](), {digest for _, digest in self._target.blocks}

        def add(kind: str, path: str, text: str, key: str = "") -> None:
            title = pages[path].title if path in pages else path
            found.setdefault((kind, key or f"{path} {text}"), Effect(kind, path, title, text, key))

        for path, content, after in self._changed():
            before, is_whole = markdown.decode_text(content), self._after[path] is None
            is_in_inbox = tree.kind_of(path) in _WHOLE  # which the target names, itself or by its exchange
            if is_in_inbox and is_whole:
                add("file", path, before[split_or_all(before)[1] :].strip())
                continue
            if is_whole:
                # a day's page goes when nothing is left of the day
                is_named = path in self._target.pages or is_date(stem_of(path))
                add("page", path, pages[path].title if path in pages else path, "" if is_named else text_hash(path))
            left = {placed.event.id for placed in markdown.find_events(after)}
            for placed in markdown.find_events(before):
                if (name := placed.event.id) not in left:
                    add("said", path, placed.event.user or placed.event.ai, "" if name in self._ids else name)
            if path not in (short_term, review):
                stood, stands = _units_in(before), _units_in(after)
                for words in stood.keys() - stands.keys():
                    is_named = is_in_inbox or stood[words] in blocks
                    add("statement", path, words, "" if is_named else text_hash(words))
                for words in stands.keys() - stood.keys():
                    add("again", path, words)
        for note in self._notes:
            add("note", short_term, note, "" if text_hash(note) in self._target.items else text_hash(note))
        return sorted(found.values(), key=lambda each: _ORDER.index(each.kind))

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
        if not self._keeps_prompts:
            self.write(path, None)
        for answer in map(response_path, itertools.repeat(path), itertools.count(1)):
            text = self.read(answer)
            if text is None:
                return
            if parse_response(answer, _bytes(text)).prompt_id in ("", record.prompt_id):
                self.texts.append(text)
                self.write(answer, None)

    def _remove_from_short_term(self, items: Collection[str]) -> None:
        """Plan short-term memory without the exchanges, the items from them, and their sentences in the summary."""
        path = self._brain.tree.relative(self._brain.tree.short_term)
        text = self.read(path)
        if text is None:
            return
        document, removed = without_items(
            ShortTermDocument(text).without_event(*self._ids),
            lambda item: item.text in items or text_hash(item.text) in self._target.items,
        )
        self.texts += removed
        self._notes += removed
        self.items += map(text_hash, removed)
        summary = self._without_sentences(document.memory.summary, document.paragraphs())
        self.write(path, str(document.with_summary(summary)))

    def _without_sentences(self, summary: str, paragraphs: Iterable[str]) -> str:
        """Return the summary without the sentences of removed texts, and without paragraphs about removed pages.

        Nor those that a model wrote, which may tell it in any words: the next promotion writes others.

        Args:
            summary: Its text.
            paragraphs: Its paragraphs, as Promotion recorded those that it wrote.
        """
        sentences = {" ".join(text.split()) for text in sentences_of(self.texts)}
        removed = [sentence for sentence in sentences if len(sentence.split()) >= MIN_WORDS and sentence in summary]
        names = [rf"(?<!\w){re.escape(title)}(?!\w)" for title in self._titles]
        about_removed = (
            part
            for part in paragraphs
            if (self.texts and not COUNTED.match(part)) or any(re.search(name, part) for name in names)
        )
        removed += filter(self._log.is_own_summary, about_removed)
        if not removed:
            return summary  # unchanged to the byte: a person may have formatted it
        # the longest first: a sentence may hold another
        for text in sorted(removed, key=len, reverse=True):
            summary = summary.replace(text, "").replace("“”", "")  # the marks of a quotation that is gone
        return "\n\n".join(" ".join(part.split()) for part in summary.split("\n\n") if part.strip())

    # --- pages ----------------------------------------------------------------------------------------------

    def _remove_from_page(self, path: str, rests: Sequence[Rest]) -> None:
        """Plan a page without what rests on the exchanges; one that is what was said, and no more, is removed.

        So is one that a process wrote, or that holds exchanges, if nothing but headings is left of it.
        """
        if rests[0].kind == "unreadable":
            self.kept.append(f"{path} cannot be read ({rests[0].name})")
            return
        text = self.read(path) or ""
        memory = parse_memory(path, text)
        if entry := next((rest for rest in rests if rest.kind == "entry" and rest.is_alone), None):
            prompts = (_comparable(self._exchanges.said(exchange).user) for exchange in entry.sources)
            if entry.is_persons and not any(_comparable(memory.body) in said for said in prompts):
                self.kept.append(f"{path}: it was edited since; it stays")
                return
            self._titles.append(memory.title)
            self.texts.append(memory.body)
            self.write(path, None)
            return
        for placed in reversed(list(markdown.find_events(text))):  # a person's remarks within an exchange stay
            if placed.event.id in self._ids:
                text = text[: placed.start] + markdown.remarks_of(text, placed) + text[placed.end :]
        page = MemoryDocument(text, path)
        for rest in (rest for rest in rests if rest.kind == "statement"):
            page = self._without_source(page, rest)
        sources = [str(source) for source in memory.meta.get("sources") or ()]
        other_sources = [source for source in sources if source not in self._ids]
        page = _without_unused_mentions(page.set_meta(sources=other_sources) if other_sources != sources else page)
        if is_bare(page.memory) and is_by_process(memory, self._log):
            self._titles.append(memory.title)
            self.write(path, None)
        else:
            self.write(path, str(page))

    def _without_source(self, page: MemoryDocument, rest: Rest) -> MemoryDocument:
        """Return a page on which a statement no longer rests on the exchanges.

        A statement that rests on these alone is removed. One whose last wording comes from them gets its earlier
        wording back, if that is known. Any other stays, and `kept` says so.
        """
        memory, text = page.memory, page.statement(rest.name).text
        # lines that a person wrote below the statement belong to it and would lose their meaning
        if rest.is_alone and rest.is_persons:
            self.kept.append(f"{rest.path}: “{text}” has lines below it that are not ours")
            return page
        former = Provenance(self._brain, memory).text_with_hash(rest.former.hash) if rest.former else ""
        if not rest.is_alone and not former:
            self.kept.append(f"{rest.path}: “{text}” rests on other exchanges too; it stays and loses this source")
            return page
        self.statements.append(events.StatementRecord(page=memory.uuid, block=rest.name, hash=text_hash(text)))
        self.texts.append(text)
        if rest.is_alone:
            return rest.without(page)
        page, history = page.replace_statement(rest.name, former), rest.former.history if rest.former else ""
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
        is_whole = self._brain.tree.kind_of(path) in _WHOLE and holds(searched_text(path, text), words)
        if text and (is_whole or path in (*self._target.answers, *self._target.pages)):
            self.texts.append(text)
            self.write(path, None)
            return
        # a purge's sentences are hashed by what is said in a unit: of the whole text nothing can be told
        if not (hashes or isinstance(words, PurgedWords) or holds(text, words)):
            return

        def is_named(unit: str) -> bool:
            # the former form of the hash, which a repaired link changed, is that of older proposals
            return not hashes.isdisjoint((block_hash(unit), text_hash(unit))) or holds(said_in(unit), words)

        spans = [(start, end) for start, end in units_of(text) if is_named(text[start:end])]
        values = [value for value in values_of(text) if is_named(value)]
        if not spans and not values:
            return
        if spans and path in self._brain.pages([path]).pages:
            for each in parse_memory(path, text).statements:
                if (each.start, each.end) in spans:
                    self.statements.append(
                        events.StatementRecord(page=uuid, block=each.block_id, hash=text_hash(each.text))
                    )
                    self._add_said(sources_of(self._log.provenance_of(uuid, each)))
        before, removed = text, [text[start:end] for start, end in spans]
        text = markdown.edited(text, ((*span, "") for span in spans))
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
            self.write(path, text)

    def _add_said(self, exchanges: Iterable[str]) -> None:
        """Add to `said` what a statement rests on, where a person named the statement and not that."""
        for exchange in sorted(set(exchanges) - self._ids) if not self._target.words else ():
            said, receipt = self._exchanges.shown(exchange, None), receipt_id(exchange)
            if said and said.user:
                name = receipt if meant_by(self._brain, receipt) == exchange else exchange
                self.said[name] = f"{self._brain.day_of(said.at)}: {_quoted(said.user)}"

    def _remove_page(self, memory: Memory) -> None:
        """Plan to remove a page; the exchanges that it was made from stay, but for those that the target names."""
        self.write(memory.path, None)
        self.texts.append(_HEADINGS.sub("", memory.body))
        for statement in memory.statements:
            digest = text_hash(statement.text)
            self.statements.append(events.StatementRecord(page=memory.uuid, block=statement.block_id, hash=digest))
            self.texts.append(statement.text)
        for source in sorted({str(source) for source in memory.meta.get("sources") or ()} - self._ids):
            said = self._exchanges.shown(source, None)
            words = f": {_quoted(said.user)}" if said and said.user else ""
            self.kept.append(f"what was said stays, word for word: {source}{words}")


def is_bare(memory: Memory) -> bool:
    """Return whether a page has no content but headings."""
    return not _HEADINGS.sub("", memory.body).strip()


def is_by_process(memory: Memory, log: StatementLog) -> bool:
    """Return whether a process wrote on a page: a statement, or an exchange word for word."""
    return log.knows_page(memory.uuid) or any(markdown.find_events(memory.text))


def _units_in(text: str) -> dict[str, str]:
    """Return what stands in a file beside its exchanges and headings: each as it is said, with its hash."""
    said = [(placed.start, placed.end) for placed in markdown.find_events(text)]
    units = [text[start:end] for start, end in units_of(text) if not any(a <= start < b for a, b in said)]
    words = {" ".join(said_in(unit).split()).removeprefix("- "): unit for unit in units if not unit.startswith("#")}
    return {said: block_hash(unit) for said, unit in words.items() if said}


def _without_unused_mentions(page: MemoryDocument) -> MemoryDocument:
    """Return a page without those of its `mentions` whose names its text no longer has; they would tell the names."""
    if not isinstance(page.memory.meta.get(MENTIONS), list):
        return page
    return page.set_meta(**{MENTIONS: still_named(page.memory)})


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _comparable(text: str) -> str:
    """Return a text without link targets and extra white space, which may differ between copies of the same words."""
    return " ".join(markdown.without_link_targets(text.removeprefix("\ufeff")).split())


# --- sentences that remain in the tree -----------------------------------------------------------------------------


def pieces_of(texts: Iterable[str]) -> list[bytes]:
    """Return the sentences of texts that have at least three words and are no fixed phrases of ours, longest first."""
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
            own = [sentence.strip().strip('"') for sentence in (line, *pieces(line))]
            sentences.update(own, (sentence.lstrip("-*+ ") for sentence in own))  # elsewhere it is no list item
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
    proposal = replace(target.proposal(""), prompt=prompt, is_private=target.is_private)
    plan, what = _add_proposal(brain, proposal, f"as listed beside {prompt}", by="core_loop")
    parts = {"Taken out is": [str(each) for each in plan.effects()], "What stays": plan.kept}
    text = f"To be forgotten, once you tick it in memory/review.md: {what}."
    for heading, lines in parts.items():
        text += f"\n\n{heading}:\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""
    return Proposed(text, plan.is_private)


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
    on_page = {placed.event.id for placed in markdown.find_events(before)}  # these were deleted with the page
    sources = map(str, meta.get("sources") or ())
    target = Target(tuple(source for source in sources if source not in on_page))
    page = str(meta.get("uuid") or path)
    if not target or any(proposal.deleted == page for _, proposal in hiding_proposals(brain)):
        return  # there is nothing to forget, or the person was asked already
    # none is quoted: the sources of undecided deletions are withheld
    why = f"the deleted page {path} was made from what they say; until then none is quoted"
    proposal = replace(target.proposal(""), deleted=page, path=path, is_private=audience_of(before) > Audience.ANYONE)
    _add_proposal(brain, proposal, why, by="organization")


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
    until = "; it is hidden and, undecided, stays so and is not destroyed; `-` brings it back" if is_hiding else ""
    what = f"Forget {whole.count}, as listed below the answer to {exchange.prompt.path}{until}"
    private = exchange.is_private
    proposal = replace(whole.proposal(what), id=proposal_id, is_hiding=is_hiding, is_wish=True, is_private=private)
    lines = "\n".join(f"- {redact(brain, line)}" for line in ("this message and its answer", *target.shown))
    note = (HIDDEN if is_hiding else NOT_HIDDEN).format(quote=redact(brain, "; ".join(quotes)), lines=lines)

    def attempt() -> None:
        path = exchange.response.path if exchange.response else ""
        text = brain.read_text(path) if path else None
        proposals, changes = asking(brain, [proposal])
        if text:
            changes.append(events.update(path, text, f"{text.rstrip()}\n\n---\n\n{note}\n"))
        brain.commit(events.ProposalMade(proposals=proposals), by="reflection", changes=changes, cause=exchange.id)

    brain.retry(attempt)


def _add_proposal(brain: Brain, proposal: events.ForgetProposal, why: str, *, by: str) -> tuple[ForgetPlan, str]:
    """Commit a proposal of the person's own with its line in `review.md`, and what it would take.

    Returns:
        The plan, and how much it takes.
    """
    target = Target.of(proposal)
    plan = plan_forget(brain, target)
    kinds = Counter(each.kind for each in plan.effects() if each.key)
    resting = [f"{kinds[kind]} {word}{'s' * (kinds[kind] > 1)}" for kind, word in _RESTING.items() if kinds[kind]]
    count = target.count + (f"; with that {', '.join(resting)}" if resting else "")
    is_private = proposal.is_private or plan.is_private
    what = f"Forget {count}; {why}" if resting else f"Forget {count}, {why}"
    whole = replace(proposal, what=what, is_wish=True, is_private=is_private, shown=tuple(sorted(plan.keys)))
    proposals, changes = asking(brain, [whole])
    brain.commit(events.ProposalMade(proposals=proposals), by=by, changes=changes)
    return plan, count


def carry_out_proposal(
    brain: Brain, proposal: events.ForgetProposal, *, cause: str | None = None
) -> events.Event | None:
    """Forget what a ticked proposal names, and remove the prompt that asked for it, which is off the record.

    Args:
        brain: The brain.
        proposal: It.
        cause: The id of the event that it is done by, if there is one.

    Returns:
        The event; None when nothing of it is in the tree any more.

    Raises:
        MoreGoesError: It would take more than was shown: nothing is done, and it is proposed anew.
    """
    try:
        event = forget(brain, Target.of(proposal), by="person", cause=cause, shown=proposal.shown)
    except MoreGoesError:
        again = replace(proposal, id=text_hash(f"again {proposal.id}"))  # once, also after a crash right here
        if again.id not in asked_before(brain):
            where = f"more than was listed {f'beside {proposal.prompt}' if proposal.prompt else 'before'}"
            _add_proposal(brain, again, f"{where}, since memory changed; nothing was done", by="organization")
        raise
    if prompt := proposal.prompt:
        answers = [response_path(prompt, number) for number in range(1, _MAX_ANSWERS + 1)]
        for path in (prompt, *answers):
            # no commit, as the journal would keep the words
            brain.tree.confine(path, inside=brain.tree.inbox).unlink(missing_ok=True)
    return event
