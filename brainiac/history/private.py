"""When a person makes an answered exchange private, everything in memory that rests on it is made private too.

Nothing is removed: its event, items, statements and lines get the private mark, and a page that rests on it alone gets
`private: true`. Calls to models that had its text before are listed in `memory/review.md` with model and time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from brainiac.brain import Brain
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
    StatementRef,
)
from brainiac.formats.discretion import mark_events_private
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, one_line, with_private_marks
from brainiac.formats.page import Memory, MemoryDocument, Statement, parse_memory, shareable_text
from brainiac.formats.prompt import Prompt, is_off_record, prompt_path_of
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import (
    ForgetPlan,
    find_remaining,
    is_bare,
    is_by_process,
    pages_naming,
    pieces_of,
    unreadable,
)
from brainiac.llm.catalog import endpoint_of
from brainiac.llm.gate import is_hidden
from brainiac.storage.files import locked
from brainiac.storage.review import find_ticks
from brainiac.storage.statements import StatementLog, sources_of, text_hash


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
    """Mark everything that rests on exchanges private in one commit, and list the calls that had their texts.

    Args:
        brain: The brain.
        prompt: Present path of their prompt.
        exchanges: Their ids, former revisions included.
        is_final: Whether no promotion runs that may still write something from them. The event then names the
            exchanges, from which the next call knows that nothing is left to do for them.
    """
    with brain.short_term_lock():
        plan = _Marking(brain, exchanges).plan_all()
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


# --- marking -------------------------------------------------------------------------------------------------------


class _Marking:
    """Plans the private marks on everything that rests on some exchanges."""

    def __init__(self, brain: Brain, exchanges: tuple[str, ...]) -> None:
        self._brain, self._ids = brain, frozenset(exchanges)
        self._log = StatementLog(brain)
        self._words: list[str] = []  # the person's texts, and the statements made from them: what must not be repeated
        self.plan = ForgetPlan(brain)  # of new texts; nothing is removed

    def plan_all(self) -> ForgetPlan:
        """Return the plan: short-term memory, pages, review, and texts elsewhere that repeat the same words."""
        tree, exchanges = self._brain.tree, Exchanges(self._brain)
        self._words += [exchanges.said(exchange).user for exchange in sorted(self._ids)]
        self._edit(tree.relative(tree.short_term), self._mark_short_term)
        for page in pages_naming(self._brain, self._ids):
            if shareable_text(page.text) is not None:
                self._edit(page.path, partial(self._mark_page, page.path))
        self.plan.kept += [f"{path} cannot be read ({problem})" for path, problem in unreadable(self._brain, self._ids)]
        self._edit(tree.relative(tree.review), self._mark_review)
        self._mark_echoes()
        return self.plan

    def _edit(self, path: str, mark: Callable[[str], str]) -> None:
        """Plan a file's text as `mark` returns it; a file that cannot be parsed is named in `kept`."""
        text = self.plan.read(path)
        if text is not None:
            try:
                self.plan.write(path, mark(text))
            except FormatError as error:
                self.plan.kept.append(f"{path} cannot be read ({error.problem})")

    # --- short-term memory ----------------------------------------------------------------------------------

    def _mark_short_term(self, text: str) -> str:
        """Return short-term memory in which the exchanges, and what was noted from them, are marked private."""
        text = mark_events_private(text, lambda placed: placed.event.id in self._ids)
        text = _with_marked_items(text, lambda said: not self._ids.isdisjoint(self._log.sources_of_item(said)))
        return _with_marked_summary(text) if self._is_in_summary() else text

    def _is_in_summary(self) -> bool:
        """Return whether the promotion that wrote the present summary read one of the exchanges."""
        for event in self._brain.journal.events(kinds={MemoryPromoted}, reverse=True):
            run = event.what
            if isinstance(run, MemoryPromoted) and run.summarized_by is not None:  # it wrote the summary
                return not self._ids.isdisjoint((*run.exchanges, *run.left))
        return False

    # --- pages ----------------------------------------------------------------------------------------------

    def _mark_page(self, path: str, text: str) -> str:
        """Return a page with marks on the exchanges and statements from them, or with `private: true` for all.

        The words of the statements are kept for `_mark_echoes`.
        """
        memory = parse_memory(path, text)
        note = self._log.whole_body_of(memory.uuid)
        if note and not self._ids.isdisjoint(note.record.sources):  # the page is a captured note as a whole
            return str(MemoryDocument(text, path).set_meta(private=True))
        statements = [statement for statement in memory.statements if self._becomes_private(memory, statement)]
        self._words += [statement.text for statement in statements]
        after = _with_marked_statements(text, statements)
        after = mark_events_private(after, lambda placed: placed.event.id in self._ids)
        open_text = shareable_text(after)
        # where only headings would be left to show, the whole page becomes private, its title included
        has_headings_alone = open_text is not None and is_bare(parse_memory(path, open_text))
        if has_headings_alone and is_by_process(memory, self._log):
            return str(MemoryDocument(text, path).set_meta(private=True))
        self._record_new_wording(memory, after, statements)
        return self._without_keys(after, path)

    def _becomes_private(self, memory: Memory, statement: Statement) -> bool:
        """Return whether to mark a statement: it rests on these exchanges, and its words on no others alone."""
        changes = self._log.provenance_of(memory.uuid, statement)
        if PRIVATE.search(statement.text) or self._ids.isdisjoint(sources_of(changes)):
            return False
        # of each operation that wrote these very words
        sources = [change.record.sources for change in changes if change.hash == text_hash(statement.text)]
        was_said_openly = any(others and self._ids.isdisjoint(others) for others in sources)
        return not was_said_openly

    def _record_new_wording(self, memory: Memory, after: str, statements: Iterable[Statement]) -> None:
        """Record the new wording of statements, so that `why` and `forget` know what they rest on."""
        now = {statement.block_id: statement for statement in parse_memory(memory.path, after).statements}
        for statement in statements:
            block = statement.block_id
            if block and block in now:
                row = StatementRecord(
                    operation="UPDATE",
                    path=memory.path,
                    page=memory.uuid,
                    block=block,
                    hash=text_hash(now[block].text),
                    sources=tuple(sorted(sources_of(self._log.provenance_of(memory.uuid, statement)))),
                    replaced=StatementRef(block=block, hash=text_hash(statement.text)),
                )
                self.plan.statements.append(row)

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

    # --- review, and what repeats it ------------------------------------------------------------------------

    def _mark_review(self, text: str) -> str:
        """Return `review.md` with marks on the proposals that rest on the exchanges."""
        proposals = self._log.proposals()
        for tick in reversed(find_ticks(text)):
            line = text[tick.start : tick.end]
            # before the id, which must be at the end of its line
            if not self._ids.isdisjoint(proposals.get(tick.id, ())) and not PRIVATE.search(line):
                line = line.replace("<!-- proposal:", f"{PRIVATE_MARK} <!-- proposal:", 1)
                text = text[: tick.start] + line + text[tick.end :]
        return text

    def _mark_echoes(self) -> None:
        """Mark what repeats the private words: answers of other exchanges, digests, the summary.

        What a person said again without a mark stays as it is and is named in the review line.
        """
        pieces = pieces_of(self._words)
        words = [_folded(piece.decode("utf-8", "surrogateescape")) for piece in pieces]

        def repeats(text: str) -> bool:
            folded = _folded(text)
            return any(piece in folded for piece in words)

        places = {path for paths in find_remaining(self._brain, pieces).values() for path in paths}
        for path in sorted(places):
            kind = self._brain.tree.kind_of(path)
            if kind is PathKind.SHORT_TERM:
                self._edit(path, partial(self._mark_echo_in_short_term, repeats))
            elif kind in (PathKind.MEMORY, PathKind.ARCHIVED):
                self._edit(path, partial(self._mark_echo, path, repeats))
            elif kind is PathKind.RESPONSE and self._is_unmarked_echo(path, places):
                self._edit(path, partial(edit_meta, private=True))  # its exchange is private with it

    def _is_unmarked_echo(self, answer: str, places: Collection[str]) -> bool:
        """Return whether an answer that repeats the words is not private yet, and its own prompt does not say them."""
        return not is_hidden(self._brain.tree, answer) and set(places).isdisjoint(prompt_path_of(answer))

    def _mark_echo_in_short_term(self, repeats: Callable[[str], bool], text: str) -> str:
        """Return short-term memory with marks on the answers, items and summary that repeat the words."""
        if shareable_text(text) is None:  # all of it is private already
            return text
        text = _with_marked_items(_with_marked_answers(text, repeats), repeats)
        return _with_marked_summary(text) if repeats(ShortTermDocument(text).memory.summary) else text

    def _mark_echo(self, path: str, repeats: Callable[[str], bool], text: str) -> str:
        """Return a page with marks on the answers, and on statements from these exchanges alone, that repeat the words.

        Where other statements repeat them too, the plan's `kept` names the page.
        """
        if shareable_text(text) is None:  # all of it is private already
            return text
        memory = parse_memory(path, _with_marked_answers(text, repeats))
        echoes = [
            statement
            for statement in memory.statements
            if repeats(statement.text) and not PRIVATE.search(statement.text)
        ]
        own_echoes = [statement for statement in echoes if self._is_from_exchanges_alone(memory, statement)]
        if len(own_echoes) < len(echoes):
            self.plan.kept.append(f"{path} says it too, openly")
        return _with_marked_statements(memory.text, own_echoes)

    def _is_from_exchanges_alone(self, memory: Memory, statement: Statement) -> bool:
        """Return whether a process wrote a statement, from the exchanges that become private and from no others."""
        changes = self._log.provenance_of(memory.uuid, statement)
        return bool(changes) and sources_of(changes) <= self._ids


def _with_marked_answers(text: str, repeats: Callable[[str], bool]) -> str:
    """Return a text with marks on the exchanges whose answer repeats the words although their prompt does not."""
    return mark_events_private(
        text, lambda placed: repeats(f"{placed.event.ai}\n{placed.event.thoughts}") and not repeats(placed.event.user)
    )


def _with_marked_statements(text: str, statements: Iterable[Statement]) -> str:
    """Return a page in which statements are marked private, each before its block id."""
    for statement in sorted(statements, key=lambda statement: statement.start, reverse=True):
        start, end = statement.own
        # within the strokes of a retired statement: only there is the mark read as part of it
        struck = text.rfind("~~", start, end) if statement.is_history else -1
        at = struck if struck > start else end
        text = f"{text[:at]} {PRIVATE_MARK}{text[at:]}"
    return text


def _with_marked_items(text: str, has_words: Callable[[str], bool]) -> str:
    """Return short-term memory in which the items whose texts the function accepts are marked private."""
    return str(ShortTermDocument(text).with_private_items(has_words))


def _with_marked_summary(text: str) -> str:
    """Return short-term memory with a private mark on each paragraph of its summary."""
    start, end = ShortTermDocument(text).summary_span()
    return text[:start] + with_private_marks(text[start:end]) + text[end:]


def _folded(text: str) -> str:
    """Return a text with single spaces and without backslashes, which a copy of it may have more of."""
    return " ".join(text.replace("\\", "").split())
