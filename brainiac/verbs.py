"""The eight verbs that commands and doors share: search, fetch, briefing, list, why, remember, ask and suggest.

A door is a program that reaches the memory for somebody: an assistant's tools, a browser, another program. It gets
nothing that is private or off the record, not in a result, an error or a count. What it gets is quoted as data,
limited in tokens, and continued by a cursor. No verb deletes, moves or overwrites a file.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

from brainiac.brain import Brain, Turn
from brainiac.clock import iso, parse_iso
from brainiac.errors import ConfinementError, FormatError, ModelError, UserError
from brainiac.events import (
    ChangeSuggested,
    ForgetProposal,
    NoteEdited,
    PathKind,
    ProposalRecord,
    ReplaceProposal,
    RetireProposal,
    content_hash,
    new_id,
    update,
)
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.index_page import parse_index
from brainiac.formats.markdown import PRIVATE
from brainiac.formats.page import parse_memory
from brainiac.formats.prompt import (
    ORIGINS,
    Exchange,
    Response,
    error_path,
    parse_prompt,
    parse_response,
    reason_of_error,
    response_path,
)
from brainiac.history.devices import waiting_message
from brainiac.history.why import Chain, Exchanges, Said, StatementMatch, Why, find_statement
from brainiac.history.why import why as explain
from brainiac.llm.catalog import count
from brainiac.llm.context.blocks import Stability, WorkingMemory, one_line, quoted, shortened
from brainiac.llm.context.long_term import MEMORY_HITS, PAGE_TOKENS, ShownPages
from brainiac.llm.gate import Gate
from brainiac.llm.redaction import redact
from brainiac.llm.schemas import OFFLINE, AnswerRequest
from brainiac.llm.tools import names_in
from brainiac.pipeline.daemon import answer_again, answer_one, capture_one, is_running
from brainiac.pipeline.reconcile import read_prompt
from brainiac.search.documents import Hit
from brainiac.storage.files import Disk, temporary_beside
from brainiac.storage.review import Proposal, review_change
from brainiac.storage.runstate import read_run_state
from brainiac.storage.statements import text_hash
from brainiac.tree import slugify

RESULT_TOKENS = 2_000  # a door's answer by default
MAX_RESULT_TOKENS = 9_000  # hosts warn above 10,000
WAIT_SECONDS = 600.0
CAPTURE_SECONDS = 5.0  # a daemon takes in a finished note in less than one
LOOK_EVERY_SECONDS = 0.02
SCHEME = "brain://"
_NAME_WORDS = 8
_PART_TOKENS = 25  # of the keys around the words of one part


# --- who calls, and what they see ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Caller:
    """Who uses a verb: a client at a door, or the person.

    Attributes:
        by: The client's name, such as `mcp:claude-desktop`; files that it brings in name it.
        origin: Whose words it brings, one of `ORIGINS`.
        is_person: Whether it is the person at their own terminal, who may see what is private.
    """

    by: str
    origin: str = "assistant"
    is_person: bool = False

    def gate(self, brain: Brain) -> Gate:
        """Return the gate that filters what the caller is shown."""
        return Gate(brain, is_remote=not self.is_person, is_kept=not self.is_person)

    def fenced(self, text: str) -> str:
        """Return a text of memory as the caller gets it: at a door inside quotes, so that a model reads it as data."""
        return text if self.is_person else quoted(text)

    def head(self) -> dict[str, object]:
        """Return the front matter of a file that the caller brings in; a file with one has no commands."""
        if self.is_person:
            return {}
        origin = self.origin if self.origin in ORIGINS else ORIGINS[-1]
        return {"origin": origin, "by": " ".join(self.by.split())[:80] or "unknown"}


PERSON = Caller("person", "person", is_person=True)


def _room(max_tokens: int | None, caller: Caller) -> int | None:
    """Return how many tokens a result may have; None for a person who set no limit."""
    if caller.is_person:
        return max_tokens
    return max(1, min(max_tokens or RESULT_TOKENS, MAX_RESULT_TOKENS))


def _cursor(offset: int, source: str) -> str:
    """Return the cursor for an offset into a source; a hash of the source makes it useless for any other."""
    return f"{offset}.{hashlib.sha256(source.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _offset(cursor: str, source: str) -> int:
    """Return the offset that a cursor stands for; 0 without one.

    Raises:
        UserError: It is another source's, or the source has changed since.
    """
    if not cursor:
        return 0
    number = cursor.partition(".")[0]
    if not (number.isascii() and number.isdigit()) or cursor != _cursor(int(number), source):
        raise UserError(f"the cursor {cursor[:40]!r} does not belong to this; leave it out to begin again")
    return int(number)


def _end_within(texts: Sequence[str], start: int, room: int | None) -> int:
    """Return the end of the parts that fit into a result, the first of them in any case.

    Args:
        texts: All parts.
        start: The first part of this result.
        room: How many tokens it may have; None for no limit.
    """
    for position in range(start, len(texts)):
        if room is not None:
            room -= count(texts[position]) + _PART_TOKENS
            if room < 0 and position > start:
                return position
    return max(start, len(texts))


def _refresh(brain: Brain) -> None:
    """Have search look at the files that changed a moment ago: those that a daemon in this process names, else all."""
    if not brain.recall.is_open:  # opening compares all files
        return
    paths = brain.unsettled() if brain.unsettled is not None else None
    if paths is None:
        brain.recall.rescan()
    for path in paths or ():
        brain.recall.note_change(path)


# --- search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Match:
    """One thing found.

    Attributes:
        id: What `fetch`, `why` and `suggest` take.
        title: Of its page.
        text: Its words.
        date: The person's day it was said on or last changed; "" if unknown.
        hit: The hit of the search.
    """

    id: str
    title: str
    text: str
    date: str
    hit: Hit

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        url = SCHEME + quote(self.id, safe="/#^")
        values: dict[str, Any] = {"id": self.id, "title": self.title, "url": url, "text": self.text, "date": self.date}
        values |= {"archived": True} if self.hit.is_archived else {}
        return values | ({"past": list(map(str, self.hit.former))} if self.hit.former else {})


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search found, best first.

    Attributes:
        query: As it was asked.
        matches: What was found.
        fresh: Whether the index has read every file of memory.
        cursor: For the next results; "" at the end.
    """

    query: str
    matches: tuple[Match, ...]
    fresh: bool
    cursor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        results = [match.to_json() for match in self.matches]
        return {"query": self.query, "results": results, "fresh": self.fresh, "cursor": self.cursor or None}


def search(
    brain: Brain,
    query: str,
    *,
    limit: int = 8,
    max_tokens: int | None = None,
    cursor: str = "",
    caller: Caller = PERSON,
) -> Matches:
    """Find statements, exchanges and pages.

    Args:
        brain: The brain.
        query: Words, narrowed by `tag:` `type:` `after:` `before:` `path:` "exact words" -word.
        limit: At most so many.
        max_tokens: The most tokens of the result; 2,000 by default for a door.
        cursor: Of the previous result, to get the next part.
        caller: Who asks.

    Raises:
        UserError: A field of the query has no such value, or the cursor is another query's.
    """
    from brainiac.search.query import (
        query_problems,  # with it comes numpy, and most commands of these verbs do not search
    )

    gate, start = caller.gate(brain), _offset(cursor, query)
    types = [name for name in names_in(brain, gate, brain.tree.long_term) if name.endswith("/")]
    if problems := query_problems(query, brain.now(), [name.rstrip("/") for name in types]):
        raise UserError(*problems)
    _refresh(brain)
    hits = _shown_hits(brain, gate, query, start + limit + 1)
    matches = [_match(brain, hit, caller) for hit in hits[: start + limit]]
    end = _end_within([match.title + match.text for match in matches], start, _room(max_tokens, caller))
    is_fresh = brain.recall.status()["freshness"] == "fresh"
    return Matches(query, tuple(matches[start:end]), is_fresh, _cursor(end, query) if end < len(hits) else "")


def _shown_hits(brain: Brain, gate: Gate, query: str, wanted: int) -> list[Hit]:
    """Return the best hits that may be shown, searching again with a higher limit where too many were hidden."""
    limit, former = wanted, -1
    while True:
        hits = brain.recall.search(query, limit=limit, now=brain.now())
        shown = gate.hits(hits)
        if len(shown) >= wanted or len(hits) in (0, former):
            return shown
        limit, former = 2 * limit, len(hits)


def _match(brain: Brain, hit: Hit, caller: Caller) -> Match:
    """Return a hit as the caller gets it."""
    name = hit.path
    if hit.anchor:
        name = f"{hit.path}#^{hit.anchor}" if hit.kind == "statement" else hit.anchor
    text, title = hit.said, hit.title
    if not caller.is_person:
        text, title = caller.fenced(shortened(text, PAGE_TOKENS, count)), one_line(title)
    return Match(name, title, text, brain.day_of(hit.at) if hit.at else "", hit)


# --- fetch ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A page or an exchange, or a part of it.

    Attributes:
        id: Its path, or the exchange's id.
        title: For a person.
        text: Its words from the cursor on.
        fresh: Whether it was read just now.
        cursor: For the rest of the text; "" at the end.
    """

    id: str
    title: str
    text: str
    fresh: bool = True
    cursor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"url": SCHEME + quote(self.id, safe="/#^"), "cursor": self.cursor or None}


def fetch(brain: Brain, name: str, *, max_tokens: int | None = None, cursor: str = "", caller: Caller = PERSON) -> Page:
    """Return a page of memory or an exchange, as it stands.

    Args:
        brain: The brain.
        name: An id that `search` gave, a path, uuid, title or link; with `#^block` it begins at that statement.
        max_tokens: The most tokens of the result; 2,000 by default for a door.
        cursor: Of the previous result, to get the next part.
        caller: Who asks.

    Raises:
        UserError: Nothing that the caller may see is called so, or the text has changed since the cursor was given.
    """
    _refresh(brain)
    gate = caller.gate(brain)
    path, block = _split(unquote(name.removeprefix(SCHEME)) if name.startswith(SCHEME) else name)
    title, page, text = _named_text(brain, gate, path, caller)
    place = text.find(block) if block else -1
    start = _offset(cursor, text) if cursor else max(0, text.rfind("\n\n", 0, place) + 2 if place > 0 else 0)
    end = _end_of_part(text, start, _room(max_tokens, caller))
    part = caller.fenced(text[start:end])
    return Page(page, title if caller.is_person else one_line(title), part, cursor=_next(text, end))


def _split(name: str) -> tuple[str, str]:
    """Return the page and the block id (`^f3k9`) that an id names, "" for no block; a page's name may hold a `#`."""
    path, sign, block = name.strip().rpartition("#^")
    return (path, f"^{block}") if sign and path else (name.strip(), "")


def _next(text: str, end: int) -> str:
    """Return the cursor for the rest of a text; "" at its end."""
    return _cursor(end, text) if end < len(text) else ""


def _end_of_part(text: str, start: int, room: int | None) -> int:
    """Return the end of the longest part of a text that has so many tokens, at the end of a line if there is one."""
    if room is None or count(text[start:]) <= room:
        return len(text)
    low, high = start + 1, len(text)  # at least one character, so that a reader of all parts comes to an end
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[start:middle]) <= room else (low, middle - 1)
    line_end = text.rfind("\n", start, low) + 1
    return line_end if line_end > start else low


def _named_text(brain: Brain, gate: Gate, name: str, caller: Caller) -> tuple[str, str, str]:
    """Return title, id and text of the page or exchange that a name means.

    Raises:
        UserError: There is none that may be shown, or there are several.
    """
    pages = ShownPages(brain, gate).find(name)
    if len(pages) > 1:
        raise UserError(f"{name!r} may mean {', '.join(page.path for page in pages[:5])}; name one by its path")
    for path in [page.path for page in pages] or (name, f"{name}.md"):
        if (text := gate.read_note(path)) is not None:
            title = pages[0].title if pages else posixpath.basename(path)
            return title, path, text
    exchanges = Exchanges(brain)
    exchange = exchanges.find(name)
    said = exchanges.shown(exchange, None if caller.is_person else gate) if exchange else None
    if said is None or not said.user:
        raise UserError(f"{name!r} is no page and no exchange here; `search` gives ids that are")
    answer = f"\n\n**AI:** {said.ai}" if said.ai else ""
    return f"Exchange of {brain.day_of(said.at)}", said.exchange, f"{said.at}\n\n**User:** {said.user}{answer}"


# --- briefing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Briefing:
    """The working memory that a model call would get.

    Attributes:
        memory: Its blocks with their tokens, and what was cut.
        fresh: Whether the index has read every file of memory.
    """

    memory: WorkingMemory
    fresh: bool

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        memory = self.memory
        blocks = [
            {
                "name": block.name,
                "owner": block.owner,
                "tokens": memory.block_tokens[block.name],
                "is_cached": block.name in memory.cached,
                "text": block.text,
            }
            for block in memory.blocks
        ]
        cuts = [
            {"block": cut.block, "parts": cut.parts, "tokens": cut.tokens, "reason": cut.reason} for cut in memory.cuts
        ]
        sizes = {"tokens": memory.tokens, "budget_tokens": memory.budget_tokens}
        return {**sizes, "fresh": self.fresh, "blocks": blocks, "cuts": cuts}


def briefing(
    brain: Brain,
    prompt: str = "",
    *,
    budget_tokens: int | None = None,
    is_copied: bool = False,
    caller: Caller = PERSON,
) -> Briefing:
    """Assemble what a model would be shown for a prompt, without asking any model.

    A door gets it without the instructions to a model of ours, within 2,000 tokens where it names no budget.

    Args:
        brain: The brain.
        prompt: What would be asked.
        budget_tokens: At most so much; None for what the settings say.
        is_copied: Whether it leaves this machine on a clipboard: then it is without what is private.
        caller: Who asks.

    Raises:
        ModelError: Identity and prompt alone do not fit, or the prompt is private and it leaves this machine.
    """
    _refresh(brain)
    now, inbox = brain.now(), brain.tree.layout.inbox
    head = f"{render_meta(caller.head())}\n" if caller.head() else ""
    parsed = parse_prompt(f"{inbox}/context.md", (head + prompt).encode("utf-8", "replace"), at=iso(now), inbox=inbox)
    request = AnswerRequest(
        now=now,
        prompt=parsed,
        short_term=brain.short_term().memory,
        hits=_shown_hits(brain, caller.gate(brain), parsed.said, MEMORY_HITS),
        conversation=brain.conversation(parsed),
        zone=brain.zone,
        is_private=parsed.private,
    )
    leaves = Gate(brain, is_remote=True) if is_copied else None
    is_fresh = brain.recall.status()["freshness"] == "fresh"
    if caller.is_person:
        return Briefing(brain.models.working_memory(request, gate=leaves, budget_tokens=budget_tokens), is_fresh)
    room = _room(budget_tokens, caller)
    left_out = {Stability.ROLE}
    memory = brain.models.working_memory(request, gate=caller.gate(brain), budget_tokens=room, left_out=left_out)
    return Briefing(memory, is_fresh)


# --- list ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A page or subfolder of a folder of memory.

    Attributes:
        id: Its path; a folder's ends with `/`.
        about: The page's title, or what the folder's `_index.md` says of it.
    """

    id: str
    about: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder of memory.

    Attributes:
        path: The folder.
        about: What its `_index.md` says of it.
        entries: Its pages and subfolders, by name.
        fresh: Whether it was read just now.
        cursor: For the next entries; "" at the end.
    """

    path: str
    about: str
    entries: tuple[Entry, ...]
    fresh: bool = True
    cursor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"cursor": self.cursor or None}


def list_folder(
    brain: Brain, path: str = "", *, max_tokens: int | None = None, cursor: str = "", caller: Caller = PERSON
) -> Listing:
    """List what a folder of memory holds, with titles and summaries.

    Args:
        brain: The brain.
        path: The folder; long-term memory without one.
        max_tokens: The most tokens of the result; 2,000 by default for a door.
        cursor: Of the previous result, to get the next part.
        caller: Who asks.

    Raises:
        UserError: There is no such folder that the caller may see.
    """
    tree, gate = brain.tree, caller.gate(brain)
    try:
        folder = tree.confine(path.strip().rstrip("/") or tree.long_term, inside=tree.memory)
    except ConfinementError:
        folder = tree.root / "…"
    shown = tree.relative(folder)
    if not folder.is_dir() or not gate.knows(shown):
        raise UserError(f"{path!r} is no folder of {tree.relative(tree.memory)}/ here")
    names = [name for name in names_in(brain, gate, folder) if name.endswith(("/", ".md")) and name != "_index.md"]
    start = _offset(cursor, shown)
    entries = [Entry(f"{shown}/{name}", _about(gate, f"{shown}/{name}", caller)) for name in names]
    end = _end_within([entry.id + entry.about for entry in entries], start, _room(max_tokens, caller))
    following = _cursor(end, shown) if end < len(names) else ""
    return Listing(shown, _about(gate, f"{shown}/", caller), tuple(entries[start:end]), cursor=following)


def _about(gate: Gate, path: str, caller: Caller) -> str:
    """Return one line on a page or folder: its title, or its index page's summary; "" where that may not be shown."""
    file = f"{path}_index.md" if path.endswith("/") else path
    text = gate.read_note(file, tops=("memory",))
    if text is None:
        return ""
    try:
        about = parse_index(file, text).summary if path.endswith("/") else parse_memory(file, text).title
    except FormatError:
        about = ""
    about = " ".join(about.split())
    return about if caller.is_person else one_line(about, 300)


# --- why -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a page or statement is in memory.

    Attributes:
        why: Its statements, each with the operations and exchanges that made it.
        fresh: Whether the journals were read just now.
        cursor: For the next statements; "" at the end.
    """

    why: Why
    fresh: bool = True
    cursor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self.why) | {"fresh": self.fresh, "cursor": self.cursor or None}


def why(brain: Brain, name: str, *, max_tokens: int | None = None, cursor: str = "", caller: Caller = PERSON) -> Reason:
    """Explain a memory (path, uuid, title) or a statement (block id, text) down to the words that were typed.

    Args:
        brain: The brain.
        name: What is to be explained; also an id that `search` gave.
        max_tokens: The most tokens of the result; 2,000 by default for a door.
        cursor: Of the previous result, to get the next part.
        caller: Who asks.

    Raises:
        UserError: Nothing that the caller may see is called so.
        FormatError: The page cannot be read.
    """
    _refresh(brain)
    if caller.is_person:
        return Reason(explain(brain, name))
    try:
        reason = explain(brain, name.removeprefix(SCHEME), caller.gate(brain))
    except (FormatError, UserError):
        # the message for a person quotes similar statements: at a door that would be text of memory outside of quotes
        raise UserError(f"{name!r} is no memory and no statement here; `search` gives ids that are") from None
    parts: list[Chain | Said] = [*map(_fenced_chain, reason.chains), *map(_fenced_said, reason.said)]
    start, room = _offset(cursor, name), _room(max_tokens, caller)
    end = _end_within([str(asdict(part)) for part in parts], start, room)
    chains = tuple(part for part in parts[start:end] if isinstance(part, Chain))
    said = tuple(part for part in parts[start:end] if isinstance(part, Said))
    shown = replace(reason, title=one_line(reason.title), chains=chains, said=said)
    return Reason(shown, cursor=_cursor(end, name) if end < len(parts) else "")


def _fenced_chain(chain: Chain) -> Chain:
    """Return a statement's history with all words of memory in quotes."""
    steps = tuple(
        replace(
            step,
            before=step.before and quoted(step.before),
            after=step.after and quoted(step.after),
            reasoning=step.reasoning and quoted(step.reasoning),
            sources=tuple(map(_fenced_said, step.sources)),
        )
        for step in chain.steps
    )
    return replace(chain, title=one_line(chain.title), text=quoted(chain.text), steps=steps)


def _fenced_said(said: Said) -> Said:
    """Return an exchange in quotes, without the assistant's answer: no statement rests on it."""
    return replace(said, user=said.user and quoted(shortened(said.user, PAGE_TOKENS, count)), ai="")


# --- remember ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remembered:
    """A note that was put into the inbox.

    Attributes:
        id: Its path.
        is_new: False where a note with the same key was there already.
        fresh: Whether it is in short-term memory, where search finds it.
        waits: Why it is not there yet; "" where it is.
    """

    id: str
    is_new: bool
    fresh: bool
    waits: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def remember(
    brain: Brain, text: str, *, about: str = "", is_private: bool = False, key: str = "", caller: Caller = PERSON
) -> Remembered:
    """Put a note into `inbox/notes/` and have it taken into short-term memory, here or by the daemon.

    Args:
        brain: The brain.
        text: What is to be remembered, whole.
        about: A page it is about, by a name that `fetch` takes.
        is_private: It must not leave this machine.
        key: The caller's own name for it: the same key again adds nothing.
        caller: Who brings it.

    Raises:
        UserError: There is no text, or no page of that name.
    """
    if not text.strip():
        raise UserError("there is nothing to remember: the text is empty")
    meta = caller.head()
    if about:
        _, path, _ = _named_text(brain, caller.gate(brain), about, caller)
        meta["focus"] = [f"[[{path.removesuffix('.md')}]]"]
    if is_private:
        meta["private"] = True
    folder, stem = brain.tree.inbox / "notes", ""
    if key:
        stem = "note-" + hashlib.sha256(f"{caller.by}\n{key}".encode("utf-8", "replace")).hexdigest()[:16]
        known = f"{brain.tree.relative(folder)}/{stem}.md"
        if brain.read(known) is not None or brain.answered.of(known):
            return _remembered(brain, known, is_new=False)
    file = _write_new(folder, stem or _stem(brain, text, is_named=not is_private), meta, text, is_unique=bool(key))
    return _remembered(brain, brain.tree.relative(file), is_new=True)


def _remembered(brain: Brain, path: str, *, is_new: bool) -> Remembered:
    """Return what became of a note; without a daemon it is taken in here, else the daemon gets a few seconds."""
    if not brain.is_active:
        return Remembered(path, is_new, fresh=False, waits=waiting_message(brain))
    if not is_running(brain):
        capture_one(brain, path)
    deadline = time.monotonic() + CAPTURE_SECONDS
    while not (is_taken := _is_taken_in(brain, path)) and is_running(brain) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_SECONDS)
    return Remembered(path, is_new, is_taken, "" if is_taken else "it is taken in later; `status` tells why")


def _is_taken_in(brain: Brain, path: str) -> bool:
    """Return whether a note stands in short-term memory."""
    brain.answered.refresh()
    note = brain.answered.of(path)
    return note is not None and brain.answered.has_outcome(note.exchange)


def _stem(brain: Brain, text: str, *, is_named: bool) -> str:
    """Return the name of a new file without its suffix: the moment, then the first words or, without them, an id.

    A name is read where the text is not: in the journal, by `status`, by whoever syncs the folder.
    """
    name = slugify(" ".join(redact(brain, text).split()[:_NAME_WORDS])) if is_named else new_id()[-12:]
    return f"{brain.now():%Y-%m-%d-%H%M%S}-{name}"[:80].rstrip("-")


def _write_new(folder: Path, stem: str, meta: Mapping[str, object], text: str, *, is_unique: bool = False) -> Path:
    """Save a new file as a person would and return its path.

    Args:
        folder: Made where it is not there.
        stem: Its name without suffix; a number is added where that is taken.
        meta: Its front matter.
        text: Its text.
        is_unique: The name stands for this text: where the file exists, write nothing and return it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    head = f"{render_meta(meta)}\n" if meta else ""
    # written under a temporary name and renamed: the daemon must not answer half of a prompt
    aside = Path(temporary_beside(str(folder / stem)))
    aside.write_text(f"{head}{text.rstrip()}\n", encoding="utf-8", errors="replace")
    number, path = 1, folder / f"{stem}.md"
    while True:
        try:
            Disk().rename_new(aside, path)
            return path
        # two callers with the same first words in the same second
        except FileExistsError:
            if is_unique:
                aside.unlink()
                return path
            number += 1
            path = folder / f"{stem}-{number}.md"


# --- ask -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt and its answer.

    Attributes:
        prompt: The prompt's path.
        response: The answer; None where there is none yet.
        waits: Why there is none; "" where there is one.
    """

    prompt: str
    response: Response | None = None
    waits: str = ""

    @property
    def fresh(self) -> bool:
        """Whether the answer was made from memory as it stood."""
        return self.response is not None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        if self.response is None:
            return {"prompt": self.prompt, "response": None, "fresh": False, "waits": self.waits}
        fields = ("model", "memories", "tokens", "cost_usd", "took_ms", "created_at", "prompt_id")
        values = {name: getattr(self.response, name) for name in fields}
        answer = {"prompt": self.prompt, "response": self.response.path, "text": self.response.text}
        return answer | {"fresh": True} | values


def ask(
    brain: Brain,
    text: str,
    *,
    conversation: str = "",
    model: str = "",
    is_private: bool = False,
    is_off_record: bool = False,
    key: str = "",
    is_again: bool = False,
    can_revise: bool = False,
    earlier: Sequence[Exchange] = (),
    caller: Caller = PERSON,
    stream: Callable[[str], None] | None = None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Asked:
    """Save a prompt in the inbox and return its answer, made here or by the daemon.

    Args:
        brain: The brain.
        text: The prompt.
        conversation: A subfolder of the inbox.
        model: Another model for this one; a door may choose among those of the settings.
        is_private: Never to a model elsewhere.
        is_off_record: Nothing of it is kept.
        key: The caller's own name for it: the same key again is the same prompt, and gets the same answer.
        is_again: One of the same key is answered anew, in place of the answer that it has.
        can_revise: One of the same key may have another text: then its file gets that text, and is answered anew.
        earlier: What was said before, where the caller and not a folder keeps the conversation; it is not kept.
        caller: Who asks.
        stream: Called with each piece of an answer that is made in this process.
        on_wait: Called with the prompt's path and a reason while something keeps the daemon from answering.

    Raises:
        UserError: There is no text, it cannot be asked there, it was refused, no model could serve, or the key was
            used for another text.
    """
    if not text.strip():
        raise UserError("there is nothing to ask: the text is empty")
    _check_model(brain, model, caller)
    wishes = {"model": model or None, "private": is_private or None, "remember": False if is_off_record else None}
    meta = caller.head() | {key: value for key, value in wishes.items() if value is not None}
    # named from the root on, so that no message tells a client where the brain stands
    folder = brain.tree.confine(posixpath.join(brain.tree.layout.inbox, conversation), inside=brain.tree.inbox)
    if brain.tree.kind_of(f"{brain.tree.relative(folder)}/prompt.md") is not PathKind.PROMPT:
        raise UserError(f"{conversation!r} is no conversation: nothing in that folder is answered")
    if not brain.is_active and not brain.git_operation:
        meta["device"] = brain.journal.device  # no other device answers it, whatever arrives there first
    is_named = not (is_private or is_off_record)
    name = _turn_name(caller, conversation, key) if key else _stem(brain, text, is_named=is_named)
    if caller.is_person and not key:
        path = brain.tree.relative(_write_new(folder, name, meta, text))
        is_known = True
    else:  # a daemon in this process may take the file at once, so that its turn is made known before it is there
        name = name if key else f"{name}-{new_id()[-8:]}"
        path = f"{brain.tree.relative(folder)}/{name}.md"
        before = brain.read(path)
        is_known = before is not None
        if before is not None and _is_reworded(path, before, text):
            if not can_revise:
                raise UserError(f"the key {key[:80]!r} was used for another text; give each text a key of its own")
            path, is_known = _revise(brain, path, before, meta, text, caller)
            name, is_again = posixpath.basename(path).removesuffix(".md"), is_known and _is_answered(brain, path)
    with brain.turn(path, Turn(stream, tuple(earlier))):
        if not is_known:
            _write_new(folder, name, meta, text, is_unique=True)
        if brain.git_operation:
            return Asked(path, waits=waiting_message(brain))
        return _answer(brain, path, is_again=is_again and is_known, caller=caller, on_wait=on_wait)


def _is_reworded(path: str, before: bytes, text: str) -> bool:
    """Return whether a prompt's file has another text than its client gives for it now."""
    return parse_prompt(path, before, at="").sha256 != parse_prompt(path, text.encode("utf-8", "replace"), at="").sha256


def _is_answered(brain: Brain, path: str) -> bool:
    """Return whether the text that the prompt at a path has now was answered."""
    prompt = read_prompt(brain, path)
    brain.answered.refresh()
    return prompt is not None and brain.answered.is_answered(prompt)


def _revise(
    brain: Brain, path: str, before: bytes, meta: Mapping[str, object], text: str, caller: Caller
) -> tuple[str, bool]:
    """Put a client's new wording into the file of its prompt; return the prompt's path and whether it is there.

    Where somebody changed the file since it was answered, the new wording belongs into a file of its own.
    """
    brain.answered.refresh()
    answer = brain.answered.of(path)
    if answer is None or answer.prompt_hash != content_hash(before):
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
        path = f"{path.removesuffix('.md')}-{digest}.md"
        return path, brain.read(path) is not None
    # the last line: a daemon takes the file at once, instead of waiting whether somebody goes on typing
    after = f"{render_meta(meta)}\n{text.rstrip()}\n\n/send\n"
    brain.commit(NoteEdited(client=caller.by), by="person", changes=[update(path, before, after)])
    return path, True


def _turn_name(caller: Caller, conversation: str, key: str) -> str:
    """Return the name of a file that a client names by a key of its own, which may hold anything."""
    digest = hashlib.sha256(f"{caller.by}\n{conversation}\n{key}".encode("utf-8", "replace")).hexdigest()
    return f"turn-{digest[:16]}"


def _check_model(brain: Brain, model: str, caller: Caller) -> None:
    """Refuse a model named at a door that the person's settings do not name: it could cost money or show memory."""
    named = {OFFLINE, brain.settings.llm.model, *brain.settings.llm.models.values()}
    if model and not caller.is_person and model not in named:
        raise UserError(f"{model!r} is no model of this brain; there are {', '.join(sorted(named))}")


def answer(
    brain: Brain,
    path: str,
    *,
    is_again: bool = False,
    caller: Caller = PERSON,
    stream: Callable[[str], None] | None = None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Asked:
    """Have a prompt that stands in the inbox answered, here or by the daemon.

    Args:
        brain: The brain.
        path: The prompt, relative.
        is_again: Answer it although it was answered.
        caller: Who asks.
        stream: Called with each piece of an answer that is made in this process.
        on_wait: Called with the prompt's path and a reason while something keeps the daemon from answering.

    Raises:
        UserError: It was refused, no model could serve, or it was not answered in ten minutes.
    """
    with brain.turn(path, Turn(stream)):
        return _answer(brain, path, is_again=is_again, caller=caller, on_wait=on_wait)


def _answer(
    brain: Brain, path: str, *, is_again: bool, caller: Caller, on_wait: Callable[[str, str], None] | None
) -> Asked:
    """Have a prompt answered and return the answer; see `answer`."""
    try:
        if is_again and brain.is_watched:
            target = answer_again(brain, path)
        elif is_running(brain) and not is_again:
            target = _await_answer(brain, path, on_wait)
        else:
            target = answer_one(brain, path, is_again=is_again)
    except ModelError as error:
        raise UserError(f"{error.problem} {error.advice}".strip() + f" {_place_of_prompt(path, error)}") from error
    file = brain.tree.relative(target)
    response = parse_response(file, target.read_bytes())
    prompt = brain.read(path)
    is_own = prompt is not None and parse_prompt(path, prompt, at="").private
    if response.private and not (caller.is_person or is_own):
        # our engines were shown nothing private for this caller, but a plugin or a person's hand may have written it
        raise UserError(f"{path}: its answer is for the person alone; it stands in {file}")
    return Asked(path, response)


def _place_of_prompt(path: str, error: ModelError) -> str:
    """Return the sentence that says where a prompt stands that no model answered, and how to ask again."""
    by_itself = ", and a running `brainiac run` by itself" if error.retryable else ""
    return f"Your prompt stands in {path}: `brainiac ask --again {shlex.quote(path)}` asks it again{by_itself}."


def _await_answer(brain: Brain, path: str, on_wait: Callable[[str, str], None] | None) -> Path:
    """Return the response file that the daemon writes; `on_wait` is called with each new reason for waiting.

    Raises:
        UserError: The daemon wrote an error file, or nothing within ten minutes.
    """
    target, error = brain.tree.absolute(response_path(path)), brain.tree.absolute(error_path(path))
    deadline = time.monotonic() + WAIT_SECONDS
    reason = ""
    while time.monotonic() < deadline:
        if target.is_file() and _is_answered(brain, path):  # of a revision there stands the former answer
            answer = brain.answered.of(path)
            return brain.tree.absolute(answer.response) if answer and answer.response else target
        if error.is_file():
            raise UserError(f"{path} was not answered. {reason_of_error(error.read_text(encoding='utf-8'))}")
        if (now := _reason(brain, path)) != reason:
            reason = now
            if reason and on_wait:
                on_wait(path, reason)
        time.sleep(LOOK_EVERY_SECONDS)
    raise UserError(f"{path}: no answer yet; it comes to {response_path(path)}, and `brainiac status` tells what waits")


def _reason(brain: Brain, path: str) -> str:
    """Return the daemon's reason for not having answered a prompt yet; "" where it gave none."""
    for pending in read_run_state(brain.places.state).pending:
        if pending.get("prompt") == path:
            again = pending.get("retry_at")
            moment = f"{parse_iso(str(again)).astimezone(brain.zone):%Y-%m-%d %H:%M:%S}" if again else ""
            return f"{pending.get('reason')} It is tried again at {moment}." if moment else ""
    return ""  # a prompt that is not tried again has an error file


# --- suggest -------------------------------------------------------------------------------------------------------

Change = Literal["replace", "end", "forget"]


@dataclass(frozen=True, slots=True)
class Suggested:
    """A line in `memory/review.md`, which a person accepts with `[x]` or declines with `[-]`.

    Attributes:
        id: Of the proposal.
        what: What is proposed, in one sentence.
        is_new: False where the same proposal is open already.
    """

    id: str
    what: str
    is_new: bool

    @property
    def fresh(self) -> bool:
        """Always true: the target was read just now."""
        return True

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"fresh": self.fresh}


def suggest(brain: Brain, name: str, change: Change, text: str = "", *, caller: Caller = PERSON) -> Suggested:
    """Propose a change of memory to the person; nothing is changed until they accept it.

    Args:
        brain: The brain.
        name: A statement (`path#^block`, block id, its words), or for `forget` a page or an exchange too.
        change: `replace` gives it another wording, `end` moves it to History, `forget` removes it from memory.
        text: The new wording.
        caller: Who suggests it.

    Raises:
        UserError: Nothing that the caller may see is called so, or there is no new wording.
        ConflictError: Somebody keeps writing `review.md`.
    """
    if bool(text.strip()) != (change == "replace"):
        raise UserError("a new wording belongs to `replace`, and to nothing else")
    gate = None if caller.is_person else caller.gate(brain)
    name = name.removeprefix(SCHEME)
    target = find_statement(brain, name, gate)
    if target is not None and target.is_exact:
        record, is_private = _about_statement(brain, target, change, text, caller), _is_private(target)
    elif change == "forget":
        record, is_private = _about_page(brain, name, caller), False
    else:
        raise UserError(f"{name!r} is no statement here; `search` gives ids that are")
    return brain.retry(lambda: _propose(brain, record, is_private, caller))


def _is_private(target: StatementMatch) -> bool:
    """Return whether a statement or its page is marked private."""
    return target.memory.is_private or bool(PRIVATE.search(target.statement.text))


def _about_statement(brain: Brain, target: StatementMatch, change: Change, text: str, caller: Caller) -> ProposalRecord:
    """Return the proposal to change one statement as it stands."""
    memory, statement = target.memory, target.statement
    if statement.is_history:
        raise UserError(f"“{statement.text}” no longer holds: it stands in the history of {memory.path}")
    words, by, page = _sentence(statement.text), _sentence(caller.by), memory.uuid or memory.path
    path, block, digest = memory.path, statement.block_id, text_hash(statement.text)
    proposal, ending = new_id(), f"({path}), as {by} suggests"
    if change == "forget":
        what = f"Forget “{words}” {ending}"
        whole = text_hash(memory.text[statement.start : statement.end])  # with what is nested below it
        return ForgetProposal(id=proposal, what=what, operation="forget", exchanges=(), blocks=((page, whole),))
    if not block or not memory.uuid:
        raise UserError(f"“{words}” has no block id yet; `brainiac adopt {path}` gives it one")
    on = brain.day_of(iso(brain.now()))
    if change == "replace":
        new = _sentence(text)
        what = f"Replace “{words}” by “{new}” {ending}"
        return ReplaceProposal(
            id=proposal, what=what, operation="replace", page=page, path=path, block=block, hash=digest, text=new, on=on
        )
    return RetireProposal(
        id=proposal,
        what=f"Retire “{words}” {ending}",
        operation="retire",
        page=page,
        path=path,
        block=block,
        hash=digest,
        replaced_by="",
        on=on,
        sources=(),
    )


def _about_page(brain: Brain, name: str, caller: Caller) -> ProposalRecord:
    """Return the proposal to forget a page or an exchange that the caller may see.

    Raises:
        UserError: There is none.
    """
    title, path, _ = _named_text(brain, caller.gate(brain), name, caller)
    what = f"Forget {_sentence(title)} ({path}), as {_sentence(caller.by)} suggests"
    from brainiac.history.forget import find_target  # `ask`, which starts a process each time, forgets nothing

    return find_target(brain, path).proposal(what)


def _sentence(text: str) -> str:
    """Return words for a line of `review.md`: one line in which no comment can pose as a proposal's id."""
    return " ".join(text.replace("<!--", "<! --").split())


def _propose(brain: Brain, record: ProposalRecord, is_private: bool, caller: Caller) -> Suggested:
    """Journal a proposal and add its line to `review.md`; where the same one is open, return that."""
    brain.projection.follow()
    rows = brain.projection.query(
        "SELECT id, data FROM proposals WHERE id NOT IN (SELECT proposal FROM decisions) ORDER BY event"
    )
    same = json.dumps(record.to_json() | {"id": ""}, sort_keys=True)
    for name, data in rows:
        if json.dumps(json.loads(data) | {"id": ""}, sort_keys=True) == same:
            return Suggested(name, record.what, is_new=False)
    changes = review_change(brain, [Proposal(record, is_private)])
    brain.commit(ChangeSuggested(proposals=(record,)), by=caller.by, changes=changes)
    return Suggested(record.id, record.what, is_new=True)
