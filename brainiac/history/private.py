"""An exchange that a person makes private after it was answered: it and all that came of it are taken back at once.

Nothing is taken out: its event, items, statements and lines get the private mark, a page that rests on it alone its
front matter. What had left this machine by then cannot be taken back; it is told, with the model and the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property
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
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, find_events, one_line, with_private_marks
from brainiac.formats.page import Memory, MemoryDocument, Statement, parse_memory, shareable_text
from brainiac.formats.prompt import Prompt, is_off_record, prompt_path_of
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.forget import ForgetPlan, is_bare, pages_naming, pieces_of, standing, unreadable
from brainiac.history.why import Exchanges
from brainiac.llm.catalog import endpoint_of
from brainiac.llm.gate import is_hidden
from brainiac.storage.files import locked
from brainiac.storage.review import find_ticks
from brainiac.storage.statements import read_statements, sources_of, text_hash


def keep_in(brain: Brain, prompt: Prompt) -> bool:
    """Take back what came of a prompt that became private, or off the record, after it was answered.

    Args:
        brain: The brain.
        prompt: As it stands now; one that asks for neither is left alone.

    Returns:
        Whether that is all. False while a promotion runs, which may still write what it took in before: to be done
        once more.

    Raises:
        ConflictError: Somebody keeps writing the files.
    """
    if prompt.remember and not is_hidden(brain.tree, prompt.path):
        return True
    exchanges = tuple(brain.answered.exchanges_at(prompt.path))
    events = [brain.journal.find(exchange) for exchange in exchanges]
    if not any(event is None or _was_open(brain, event) for event in events):
        return True
    brain.log.info("exchange_made_private", prompt=prompt.path)
    try:
        # A promotion holds it while it runs, and may have read the exchange while that was open.
        with locked(brain.places.state / "promotion.lock", wait_seconds=0):
            brain.retry(lambda: _withdraw(brain, prompt.path, exchanges, is_last=True))
            return True
    except LockedError:
        brain.retry(lambda: _withdraw(brain, prompt.path, exchanges, is_last=False))
        return False


def _was_open(brain: Brain, event: Event) -> bool:
    """Return whether an exchange was not private as it was answered; also where nobody can tell any more."""
    texts = [text for change in event.changes if (text := brain.kept_text(change.after)) is not None]
    return not any(shareable_text(text) is None or PRIVATE.search(text) for text in texts)


def _withdraw(brain: Brain, prompt: str, exchanges: tuple[str, ...], *, is_last: bool) -> None:
    """Take exchanges back into private, in one commit, and tell what had been sent of them.

    Args:
        brain: The brain.
        prompt: Path of their prompt, as it stands now.
        exchanges: Their ids, former revisions too.
        is_last: Nothing can come of them any more: the event names them, so that they are dealt with.
    """
    with brain.short_term_lock():
        plan = _Marking(brain, exchanges).plan_all()
        statements, left = tuple(plan.statements), tuple(plan.kept)
        made_private = ExchangeMadePrivate(prompt=prompt, statements=statements, left=left)
        if is_last:
            calls = tuple(_calls_about(brain, exchanges))
            made_private = replace(made_private, exchanges=exchanges, sent=calls)
            _tell(brain, prompt, plan, calls)
        changes = plan.changes()
        if changes or is_last:
            brain.commit(made_private, by="kernel", changes=changes)


# --- what had been sent --------------------------------------------------------------------------------------------


def _calls_about(brain: Brain, exchanges: Collection[str]) -> list[RemoteCalls]:
    """Return the calls to models elsewhere that were about exchanges, and those since, which may have held them."""
    index = Exchanges(brain)
    prompts = (what.prompt_id for exchange in exchanges if (what := index.what(exchange)))
    about, first = {*exchanges, *prompts}, min(exchanges)
    calls: dict[tuple[bool, str], list[tuple[str, str]]] = {}  # moment and purpose
    for _, event in brain.journal.all_events({ModelCalled}):
        called = event.what
        assert isinstance(called, ModelCalled)
        is_own = called.about in about
        if (is_own or event.id > first) and _is_elsewhere(brain, called):
            calls.setdefault((not is_own, called.model), []).append((event.at, called.purpose))
    return [_summed(model, calls[is_other, model], is_own=not is_other) for is_other, model in sorted(calls)]


def _is_elsewhere(brain: Brain, called: ModelCalled) -> bool:
    """Return whether a call left this machine: as the journal has it, else by where its model is served now."""
    if called.is_remote is not None:
        return called.is_remote
    try:
        return not endpoint_of(called.model, brain.machine).is_local
    except ModelError:
        return True


def _summed(model: str, calls: list[tuple[str, str]], *, is_own: bool) -> RemoteCalls:
    purposes = tuple(dict.fromkeys(purpose for _, purpose in calls))
    first, last = min(calls)[0], max(calls)[0]
    return RemoteCalls(model=model, purposes=purposes, calls=len(calls), first=first, last=last, is_own=is_own)


def _shown(sent: RemoteCalls) -> str:
    when = sent.first if sent.first == sent.last else f"{sent.first} to {sent.last}"
    calls = f"{sent.calls} call{'' if sent.calls == 1 else 's'}"
    return f"{sent.model} ({calls} for {', '.join(sent.purposes)}, {when})"


def _tell(brain: Brain, prompt: str, plan: ForgetPlan, calls: Iterable[RemoteCalls]) -> None:
    """Put the line into `review.md` that says what had been sent, and what stays where a person must decide."""
    own, others = ([_shown(sent) for sent in calls if sent.is_own is side] for side in (True, False))
    parts = [f"before that it was sent to {'; '.join(own)}, which nothing can take back"] if own else []
    if others:
        parts.append(f"since it was said these calls may have held it: {'; '.join(others)}")
    if is_off_record(brain.read(prompt)):
        parts.append(f"what was kept of it before stays until `brainiac forget --purge {prompt}`")
    if parts := [*parts, *plan.kept]:
        path = brain.tree.relative(brain.tree.review)
        text = plan.read(path) or ""
        gap = "" if text.endswith("\n") or not text else "\n"
        line = one_line(f"{prompt} is private now; " + "; ".join(parts))
        plan.write(path, f"{text}{gap}- {line} {PRIVATE_MARK}\n")


# --- what is marked ------------------------------------------------------------------------------------------------


class _Marking:
    """Finds all that came of exchanges and puts the private mark on it."""

    def __init__(self, brain: Brain, exchanges: tuple[str, ...]) -> None:
        self._brain, self._ids = brain, frozenset(exchanges)
        self._log = read_statements(brain)
        self._words: list[str] = []  # what the person said, and what was made of it
        self.plan = ForgetPlan(brain)

    def plan_all(self) -> ForgetPlan:
        tree, exchanges = self._brain.tree, Exchanges(self._brain)
        self._words += [exchanges.said(exchange).user for exchange in sorted(self._ids)]
        self._edit(tree.relative(tree.short_term), self._mark_short_term)
        for page in pages_naming(self._brain, self._ids):
            if shareable_text(page.text) is not None:
                self._edit(page.path, lambda text, path=page.path: self._mark_page(parse_memory(path, text)))  # type: ignore[misc]
        self.plan.kept += [f"{path} cannot be read ({why})" for path, why in unreadable(self._brain, self._ids)]
        self._edit(tree.relative(tree.review), self._mark_review)
        self._mark_echoes()
        return self.plan

    def _edit(self, path: str, mark: Callable[[str], str]) -> None:
        text = self.plan.read(path)
        if text is not None:
            try:
                self.plan.write(path, mark(text))
            except FormatError as error:
                self.plan.kept.append(f"{path} cannot be read ({error.problem})")

    # --- short-term memory ----------------------------------------------------------------------------------

    def _mark_short_term(self, text: str) -> str:
        text = mark_events_private(text, lambda placed: placed.event.id in self._ids)
        text = _with_marked_items(text, lambda said: not self._ids.isdisjoint(self._log.noted_from(said)))
        return _with_marked_summary(text) if self._is_summed_up() else text

    def _is_summed_up(self) -> bool:
        """Return whether the summary that stands was made in sight of one of the exchanges."""
        for event in self._brain.journal.events(kinds={MemoryPromoted}, reverse=True):
            if isinstance(run := event.what, MemoryPromoted) and run.summarized_by is not None:
                return not self._ids.isdisjoint((*run.exchanges, *run.left))
        return False

    # --- pages ----------------------------------------------------------------------------------------------

    def _mark_page(self, memory: Memory) -> str:
        path, text = memory.path, memory.text
        whole = self._log.whole(memory.uuid)
        if whole and not self._ids.isdisjoint(whole.row.sources):  # a note, whatever was added to it
            return str(MemoryDocument(text, path).set_meta(private=True))
        statements = [statement for statement in memory.statements if self._rests_on_it(memory, statement)]
        self._words += [statement.text for statement in statements]
        after = _with_marked_statements(text, statements)
        after = mark_events_private(after, lambda placed: placed.event.id in self._ids)
        rest = shareable_text(after)
        # Where nothing but headings would be left to show, title and name of the page go into hiding with the rest.
        is_hidden_whole = rest is not None and is_bare(parse_memory(path, rest))
        if is_hidden_whole and (self._log.knows_page(memory.uuid) or list(find_events(text))):
            return str(MemoryDocument(text, path).set_meta(private=True))
        self._note(memory, after, statements)
        return self._without_keys(after, path)

    def _rests_on_it(self, memory: Memory, statement: Statement) -> bool:
        """Return whether a statement rests on the exchanges and says nothing that was said openly elsewhere."""
        behind = self._log.behind(memory.uuid, statement)
        digest = text_hash(statement.text)
        is_said_openly = any(
            change.hash == digest and change.row.sources and self._ids.isdisjoint(change.row.sources)
            for change in behind
        )
        is_of_it = not self._ids.isdisjoint(sources_of(behind))
        return is_of_it and not is_said_openly and not PRIVATE.search(statement.text)

    def _note(self, memory: Memory, after: str, statements: Iterable[Statement]) -> None:
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
                    sources=tuple(sorted(sources_of(self._log.behind(memory.uuid, statement)))),
                    replaced=StatementRef(block=block, hash=text_hash(statement.text)),
                )
                self.plan.statements.append(row)

    def _without_keys(self, text: str, path: str) -> str:
        """Return a page without the tags and the key that nothing but these exchanges gave it."""
        page, words = MemoryDocument(text, path), self._keywords
        kept = [tag for tag in page.memory.tags if tag not in words]
        keys: dict[str, Any] = {"tags": kept} if len(kept) < len(page.memory.tags) else {}
        if str(page.memory.meta.get("canonical_key")) in words:
            keys["canonical_key"] = None
        return str(page.set_meta(**keys)) if keys else text

    @cached_property
    def _keywords(self) -> set[str]:
        theirs: set[str] = set()
        others: set[str] = set()
        for event in self._brain.journal.events(kinds={EventsAnalyzed}):
            for candidate in event.what.candidates if isinstance(event.what, EventsAnalyzed) else ():
                is_of_it = not self._ids.isdisjoint(candidate.events)
                (theirs if is_of_it else others).update((*candidate.tags, candidate.canonical_key))
        return theirs - others - {""}

    # --- review, and what repeats it ------------------------------------------------------------------------

    def _mark_review(self, text: str) -> str:
        proposals = self._log.proposals()
        for tick in reversed(find_ticks(text)):
            line = text[tick.start : tick.end]
            # Before the id, which has to stand at the end of its line.
            if not self._ids.isdisjoint(proposals.get(tick.id, ())) and not PRIVATE.search(line):
                line = line.replace("<!-- proposal:", f"{PRIVATE_MARK} <!-- proposal:", 1)
                text = text[: tick.start] + line + text[tick.end :]
        return text

    def _mark_echoes(self) -> None:
        """Mark what repeats it word for word: answers in other exchanges, digests, the summary.

        What a person said or wrote again, openly, is theirs to mark; it is named.
        """
        pieces = pieces_of(self._words)
        places = {path for paths in standing(self._brain, pieces, {}).values() for path in paths}
        words = [_folded(piece.decode("utf-8", "surrogateescape")) for piece in pieces]

        def repeats(text: str) -> bool:
            folded = _folded(text)
            return any(piece in folded for piece in words)

        for path in sorted(places):
            kind = self._brain.tree.kind_of(path)
            if kind is PathKind.SHORT_TERM:
                self._edit(path, lambda text: self._mark_echo_in_short_term(text, repeats))
            elif kind in (PathKind.MEMORY, PathKind.ARCHIVED):
                self._edit(path, lambda text, path=path: self._mark_echo(path, text, repeats))  # type: ignore[misc]
            elif kind is PathKind.RESPONSE and self._is_echo_of_ours(path, places):
                self._edit(path, lambda text: edit_meta(text, private=True))  # its exchange is private with it

    def _is_echo_of_ours(self, answer: str, places: Collection[str]) -> bool:
        """Return whether an answer may be marked: it is open, and its prompt does not itself say what it repeats."""
        return not is_hidden(self._brain.tree, answer) and not set(places) & set(prompt_path_of(answer) or ())

    def _mark_echo_in_short_term(self, text: str, repeats: Callable[[str], bool]) -> str:
        if shareable_text(text) is None:
            return text
        text = _with_marked_items(_with_marked_answers(text, repeats), repeats)
        return _with_marked_summary(text) if repeats(ShortTermDocument(text).memory.summary) else text

    def _mark_echo(self, path: str, text: str, repeats: Callable[[str], bool]) -> str:
        if shareable_text(text) is None:
            return text
        memory = parse_memory(path, _with_marked_answers(text, repeats))
        echoes = [
            statement
            for statement in memory.statements
            if repeats(statement.text) and not PRIVATE.search(statement.text)
        ]
        ours = [statement for statement in echoes if self._is_unsaid(memory, statement)]
        if len(ours) < len(echoes):
            self.plan.kept.append(f"{path} says it too, openly")
        return _with_marked_statements(memory.text, ours)

    def _is_unsaid(self, memory: Memory, statement: Statement) -> bool:
        """Return whether a statement is a process's own and rests on nothing that was said openly, as in a digest."""
        behind = self._log.behind(memory.uuid, statement)
        return bool(behind) and sources_of(behind) <= self._ids


def _with_marked_answers(text: str, repeats: Callable[[str], bool]) -> str:
    """Return a text in which exchanges are marked whose answer repeats words that the person did not say there."""
    return mark_events_private(
        text, lambda placed: repeats(f"{placed.event.ai}\n{placed.event.thoughts}") and not repeats(placed.event.user)
    )


def _with_marked_statements(text: str, statements: Iterable[Statement]) -> str:
    """Return a page in which statements are marked private, each before its block id."""
    for statement in sorted(statements, key=lambda statement: statement.start, reverse=True):
        start, end = statement.own
        # Of a retired one within the strokes: there it is read as part of the statement.
        struck = text.rfind("~~", start, end) if statement.is_history else -1
        at = struck if struck > start else end
        text = f"{text[:at]} {PRIVATE_MARK}{text[at:]}"
    return text


def _with_marked_items(text: str, is_meant: Callable[[str], bool]) -> str:
    return str(ShortTermDocument(text).with_private_items(is_meant))


def _with_marked_summary(text: str) -> str:
    start, end = ShortTermDocument(text).summary_span()
    return text[:start] + with_private_marks(text[start:end]) + text[end:]


def _folded(text: str) -> str:
    return " ".join(text.replace("\\", "").split())
