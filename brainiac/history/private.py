"""When a person makes an answered exchange private, everything in memory that rests on it is made private too.

Its event gets the private mark, what rests on it moves to private pages, and a page that rests on it alone gets
`private: true`; what was said in the open too stays. Calls to models that had its text before are listed in
`memory/review.md` with model and time.
"""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import FormatError, LockedError, ModelError
from brainiac.events import (
    Event,
    EventsAnalyzed,
    ExchangeMadePrivate,
    MemoryPromoted,
    ModelCalled,
    PathKind,
    RemoteCalls,
    StatementRecord,
    new_id,
)
from brainiac.formats.discretion import mark_events_private
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, PlacedEvent, one_line
from brainiac.formats.page import (
    Memory,
    MemoryDocument,
    Statement,
    is_private_note,
    new_memory,
    parse_memory,
    shareable_text,
)
from brainiac.formats.prompt import Prompt, is_off_record, prompt_path_of
from brainiac.formats.short_term import Item, ShortTermDocument
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import (
    ForgetPlan,
    Planner,
    find_remaining,
    is_bare,
    is_by_process,
    pages_naming,
    pieces_of,
    unreadable,
)
from brainiac.history.targets import Target
from brainiac.llm.catalog import endpoint_of
from brainiac.llm.gate import is_hidden
from brainiac.storage.files import locked
from brainiac.storage.links import MENTIONS, still_named, with_repaired_links
from brainiac.storage.review import find_ticks
from brainiac.storage.statements import sources_of, text_hash


def withdraw_private(brain: Brain, prompt: Prompt) -> bool:
    """Make private what rests on a prompt that became private, or off the record, after it was answered.

    Args:
        brain: The brain.
        prompt: As it is now; nothing happens for one that is neither.

    Returns:
        Whether everything is done. False while a promotion runs, which may still write what it read before: call
        this again later.

    Raises:
        ConflictError: The files change all the time.
    """
    if prompt.remember and not is_hidden(brain.tree, prompt.path):
        return True
    exchanges = tuple(brain.answered.exchanges_at(prompt.path))
    events = [brain.journal.find(exchange) for exchange in exchanges]
    if all(event is not None and _was_private(brain, event) for event in events):
        return True
    brain.log.info("exchange_made_private", prompt=prompt.path)
    try:
        # a running promotion has this lock, and may have read the exchange before it was private
        with locked(brain.places.state / "promotion.lock", wait_seconds=0):
            brain.retry(lambda: _withdraw(brain, prompt.path, exchanges, is_final=True))
            return True
    except LockedError:
        brain.retry(lambda: _withdraw(brain, prompt.path, exchanges, is_final=False))
        return False


def _was_private(brain: Brain, event: Event) -> bool:
    """Return whether an exchange was private when it was answered; False where its texts are not kept any more."""
    texts = [text for change in event.changes if (text := brain.kept_text(change.after)) is not None]
    return any(shareable_text(text) is None or PRIVATE.search(text) for text in texts)


def _withdraw(brain: Brain, prompt: str, exchanges: tuple[str, ...], *, is_final: bool) -> None:
    """Make everything that rests on exchanges private in one commit, and list the calls that had their texts.

    Args:
        brain: The brain.
        prompt: Present path of their prompt.
        exchanges: Their ids, former revisions included.
        is_final: Whether no promotion runs that may still write something from them. The event then names the
            exchanges, from which the next call knows that nothing is left to do for them.
    """
    with brain.short_term_lock():
        plan = _Withdrawal(brain, Target(exchanges)).plan_all()
        statements, left = tuple(plan.statements), tuple(plan.kept)
        made_private = ExchangeMadePrivate(prompt=prompt, statements=statements, left=left)
        if is_final:
            calls = tuple(_calls_about(brain, exchanges))
            made_private = replace(made_private, exchanges=exchanges, sent=calls)
            _add_review_line(brain, prompt, plan, calls)
        changes = plan.changes()
        if changes or is_final:
            brain.commit(made_private, by="kernel", changes=changes)


# --- calls that had the texts --------------------------------------------------------------------------------------


def _calls_about(brain: Brain, exchanges: Collection[str]) -> list[RemoteCalls]:
    """Return the remote model calls about some exchanges, and all later remote calls, which may have shown them.

    They are summed up by model; those about the exchanges come first and have `is_own`.
    """
    index = Exchanges(brain)
    prompts = (what.prompt_id for exchange in exchanges if (what := index.what(exchange)))
    about, first = {*exchanges, *prompts}, min(exchanges)  # ids sort by time
    own: dict[str, list[tuple[str, str]]] = {}  # by model: time and purpose of each call
    later: dict[str, list[tuple[str, str]]] = {}
    for _, event in brain.journal.all_events({ModelCalled}):
        called = event.what
        assert isinstance(called, ModelCalled)
        is_own = called.about in about
        if (is_own or event.id > first) and _is_elsewhere(brain, called):
            (own if is_own else later).setdefault(called.model, []).append((event.at, called.purpose))
    summaries = [_summary_of_calls(model, calls, is_own=True) for model, calls in sorted(own.items())]
    return summaries + [_summary_of_calls(model, calls, is_own=False) for model, calls in sorted(later.items())]


def _is_elsewhere(brain: Brain, called: ModelCalled) -> bool:
    """Return whether a call went to another machine: by the journal, else by where its model is served now."""
    if called.is_remote is not None:
        return called.is_remote
    try:
        return not endpoint_of(called.model, brain.machine).is_local
    except ModelError:
        return True


def _summary_of_calls(model: str, calls: list[tuple[str, str]], *, is_own: bool) -> RemoteCalls:
    """Return the calls to one model, each a time and a purpose, as one record."""
    purposes = tuple(dict.fromkeys(purpose for _, purpose in calls))
    first, last = min(calls)[0], max(calls)[0]
    return RemoteCalls(model=model, purposes=purposes, calls=len(calls), first=first, last=last, is_own=is_own)


def _call_text(sent: RemoteCalls) -> str:
    """Return the words for calls in the review line: model, number, purposes and time."""
    when = sent.first if sent.first == sent.last else f"{sent.first} to {sent.last}"
    calls = f"{sent.calls} call{'' if sent.calls == 1 else 's'}"
    return f"{sent.model} ({calls} for {', '.join(sent.purposes)}, {when})"


def _add_review_line(brain: Brain, prompt: str, plan: ForgetPlan, calls: Collection[RemoteCalls]) -> None:
    """Add a line to `review.md`: which models had the texts before, and what a person must still decide."""
    own = "; ".join(_call_text(sent) for sent in calls if sent.is_own)
    later = "; ".join(_call_text(sent) for sent in calls if not sent.is_own)
    parts = [f"before that it was sent to {own}, which nothing can take back"] if own else []
    if later:
        parts.append(f"since it was said these calls may have held it: {later}")
    if is_off_record(brain.read(prompt)):
        parts.append(f"what was kept of it before stays until `brainiac forget --purge {prompt}`")
    parts += plan.kept
    if not parts:
        return
    path = brain.tree.relative(brain.tree.review)
    text = plan.read(path) or ""
    gap = "" if text.endswith("\n") or not text else "\n"
    line = one_line(f"{prompt} is private now; " + "; ".join(parts))
    plan.write(path, f"{text}{gap}- {line} {PRIVATE_MARK}\n")


# --- what becomes private ------------------------------------------------------------------------------------------


class _Withdrawal(Planner):
    """Plans how what rests on some exchanges becomes private.

    The exchanges get the private mark. A statement that rests on them moves to a private page, unless an open exchange
    says the same; a page on which nothing else stands becomes private. The lists and the summary of short-term memory
    lose what came of them: the exchanges themselves stay there.
    """

    _repeated: Sequence[str] = ()  # the person's words, and the statements made of them: what must not be repeated

    def plan_all(self) -> ForgetPlan:
        """Return the plan: pages, texts elsewhere that repeat the same words, short-term memory, review."""
        brain, plan = self._brain, self.plan
        plan.texts += [self._exchanges.said(exchange).user for exchange in sorted(self._ids)]
        for page in pages_naming(brain, self._ids):
            self._edit(page.path, self._withdraw_from_page)
        plan.kept += [f"{path} cannot be read ({problem})" for path, problem in unreadable(brain, self._ids)]
        # what a person said again without a mark stays as it is, and is named
        pieces = pieces_of(plan.texts)
        self._repeated = [_folded(piece.decode("utf-8", "surrogateescape")) for piece in pieces]
        places = {path for paths in find_remaining(brain, pieces).values() for path in paths}
        for path in sorted(places):
            kind = brain.tree.kind_of(path)
            if kind in (PathKind.MEMORY, PathKind.ARCHIVED):
                self._edit(path, self._withdraw_from_page)
            elif kind is PathKind.RESPONSE and self._is_unmarked_echo(path, places):
                # its exchange is private with it
                self._edit(path, lambda path, text: self.plan.write(path, edit_meta(text, private=True)))
        self._edit(brain.tree.relative(brain.tree.short_term), self._withdraw_from_short_term)
        self._edit(brain.tree.relative(brain.tree.review), self._mark_review)
        return plan

    def _edit(self, path: str, withdraw: Callable[[str, str], None]) -> None:
        """Plan a file, given its path and text; one that cannot be parsed is named in `kept`."""
        text = self.plan.read(path)
        if text is not None:
            try:
                withdraw(path, text)
            except FormatError as error:
                self.plan.kept.append(f"{path} cannot be read ({error.problem})")

    def _repeats(self, text: str) -> bool:
        """Return whether a text has the words; False while it is not known which these are."""
        return any(words in _folded(text) for words in self._repeated)

    def _is_unmarked_echo(self, answer: str, places: Collection[str]) -> bool:
        """Return whether an answer that repeats the words is not private yet, and its own prompt does not say them."""
        return not is_hidden(self._brain.tree, answer) and set(places).isdisjoint(prompt_path_of(answer))

    def _without_exchanges(self, text: str) -> str:
        """Return a text in which the exchanges are marked, and those whose answer alone repeats the words."""

        def is_to_mark(placed: PlacedEvent) -> bool:
            event = placed.event
            is_echo = self._repeats(f"{event.ai}\n{event.thoughts}") and not self._repeats(event.user)
            return event.id in self._ids or is_echo

        return mark_events_private(text, is_to_mark)

    # --- short-term memory ----------------------------------------------------------------------------------

    def _withdraw_from_short_term(self, path: str, text: str) -> None:
        """Plan short-term memory with the exchanges marked, without the items and the summary that may tell of them."""
        document = ShortTermDocument(self._without_exchanges(text))
        memory = document.memory
        private = self._ids | {event.id for event in memory.events if event.is_private}
        said = _folded("\n".join(event.user for event in memory.events if not event.is_private))

        def is_withdrawn(item: Item) -> bool:
            sources = self._log.sources_of_item(item.text)
            return bool(sources) and sources <= private and _folded(item.text) not in said

        lists = (memory.goals, memory.facts, memory.tasks)
        document = document.without_items(*([item.text for item in items if is_withdrawn(item)] for items in lists))
        if self._is_in_summary() or self._repeats(memory.summary):
            document = document.with_summary("", self._log.is_own_summary)
        now = document.memory
        if self._repeats("\n\n".join([now.summary, *(item.text for item in (*now.goals, *now.facts, *now.tasks))])):
            self.plan.kept.append(f"{path} says it too, openly")
        self.plan.write(path, str(document))

    def _is_in_summary(self) -> bool:
        """Return whether the promotion that wrote the present summary read one of the exchanges."""
        for event in self._brain.journal.events(kinds={MemoryPromoted}, reverse=True):
            run = event.what
            if isinstance(run, MemoryPromoted) and run.summarized_by is not None:  # it wrote the summary
                return not self._ids.isdisjoint((*run.exchanges, *run.left))
        return False

    # --- pages ----------------------------------------------------------------------------------------------

    def _withdraw_from_page(self, path: str, text: str) -> None:
        """Plan a page without what becomes private; all of it does where it is a captured note, or nothing is left."""
        if is_private_note(text):
            return
        memory = parse_memory(path, text)
        note = self._log.whole_body_of(memory.uuid)
        self._moved: list[Statement] = []
        page = self._remaining_page(memory)
        left = parse_memory(path, shareable_text(str(page)) or "")
        is_empty = is_bare(left) and is_by_process(memory, self._log)
        if is_empty or (note and not self._ids.isdisjoint(note.record.sources)):
            self.plan.write(path, str(MemoryDocument(text, path).set_meta(private=True)))
            return
        if self._repeats("\n".join(statement.text for statement in page.memory.statements)):
            self.plan.kept.append(f"{path} says it too, openly")
        if isinstance(left.meta.get(MENTIONS), list):
            page = page.set_meta(**{MENTIONS: still_named(left)})
        if self._moved:
            self._move(memory)
        self.plan.write(path, self._without_keys(str(page), path))

    def _without_source(self, page: MemoryDocument, statement: Statement) -> MemoryDocument:
        """Return a page without a statement that rests on these exchanges and was not said openly too."""
        changes = self._log.provenance_of(page.memory.uuid, statement)
        # of each operation that wrote these very words
        sources = [change.record.sources for change in changes if change.hash == text_hash(statement.text)]
        if self._ids.isdisjoint(sources_of(changes)) or any(
            others and self._ids.isdisjoint(others) for others in sources
        ):
            return page
        self._moved.append(statement)
        self.plan.texts.append(statement.text)
        return self._with_current_again(page.without_statement(statement.block_id), changes[-1].retired)

    def _move(self, memory: Memory) -> None:
        """Plan the private page, in the folder `private/` beside a page, with the statements that leave it."""
        folder, name = posixpath.split(memory.path)
        numbers = itertools.chain([""], (f"{number}-" for number in itertools.count(2)))
        paths = (f"{folder}/private/{number}{name}" for number in numbers)
        path = next(path for path in paths if (text := self.plan.read(path)) is None or is_private_note(text))
        keys = {key: memory.meta[key] for key in ("subject", "subject_type") if key in memory.meta}
        text = self.plan.read(path) or new_memory(
            memory.title, uuid=new_id(), now=iso(self._brain.clock.now()), private=True, **keys
        )
        page, is_standing = MemoryDocument(text, path), self._brain.tree.holds
        for statement in self._moved:
            lines = memory.text[statement.start : statement.end].rstrip() + "\n"
            lines = with_repaired_links(lines, was=memory.path, now=path, moved={}, places={}, is_standing=is_standing)
            page = page.with_item(lines, is_history=statement.is_history)
        now = {statement.block_id: statement for statement in page.memory.statements}
        # so that `why` and `forget` know what they rest on
        rows = [
            StatementRecord(
                operation="NEW",
                path=path,
                page=page.memory.uuid,
                block=statement.block_id,
                hash=text_hash(now[statement.block_id].text),
                sources=tuple(sorted(sources_of(self._log.provenance_of(memory.uuid, statement)))),
            )
            for statement in self._moved
        ]
        self.plan.statements += rows
        sources = {*(page.memory.meta.get("sources") or ()), *(source for row in rows for source in row.sources)}
        self.plan.write(path, str(page.set_meta(sources=sorted(sources))))

    def _without_keys(self, text: str, path: str) -> str:
        """Return a page without the tags and the canonical key that come from these exchanges alone."""
        page, words = MemoryDocument(text, path), self._keywords
        tags = [tag for tag in page.memory.tags if tag not in words]
        keys: dict[str, Any] = {"tags": tags} if len(tags) < len(page.memory.tags) else {}
        if str(page.memory.meta.get("canonical_key")) in words:
            keys["canonical_key"] = None
        return str(page.set_meta(**keys)) if keys else text

    @cached_property
    def _keywords(self) -> set[str]:
        """The tags and canonical keys that were extracted from these exchanges and from no others."""
        own: set[str] = set()
        others: set[str] = set()
        for event in self._brain.journal.events(kinds={EventsAnalyzed}):
            for candidate in event.what.candidates if isinstance(event.what, EventsAnalyzed) else ():
                is_own = not self._ids.isdisjoint(candidate.events)
                (own if is_own else others).update((*candidate.tags, candidate.canonical_key))
        return own - others - {""}

    # --- review ---------------------------------------------------------------------------------------------

    def _mark_review(self, path: str, text: str) -> None:
        """Plan `review.md` with marks on the proposals that rest on the exchanges."""
        proposals = self._log.proposals()
        for tick in reversed(find_ticks(text)):
            line = text[tick.start : tick.end]
            # before the id, which must be at the end of its line
            if not self._ids.isdisjoint(proposals.get(tick.id, ())) and not PRIVATE.search(line):
                line = line.replace("<!-- proposal:", f"{PRIVATE_MARK} <!-- proposal:", 1)
                text = text[: tick.start] + line + text[tick.end :]
        self.plan.write(path, text)


def _folded(text: str) -> str:
    """Return a text with single spaces and without backslashes, which a copy of it may have more of."""
    return " ".join(text.replace("\\", "").split())
