"""When a person makes an answered exchange private, everything in memory that rests on it is made private too.

Its event gets the private mark, what rests on it moves to private pages, and a page that rests on it alone gets
`private: true`; what was said in the open too stays. Calls to models that had its text before are listed in
`memory/review.md` with model and time.
"""

from __future__ import annotations

import itertools
import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import FormatError, LockedError, ModelError
from brainiac.events import PathKind, StatementRecord, new_id
from brainiac.formats.discretion import Audience, is_private_text, mark_events_private
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, PlacedEvent, one_line
from brainiac.formats.page import Memory, MemoryDocument, audience_of, new_memory, parse_memory, shareable_text
from brainiac.formats.prompt import Prompt, is_off_record, prompt_path_of
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import find_remaining, is_bare, is_by_process, pieces_of
from brainiac.llm.catalog import endpoint_of
from brainiac.llm.gate import is_hidden
from brainiac.storage.files import locked
from brainiac.storage.links import MENTIONS, Edits, still_named, with_repaired_links
from brainiac.storage.review import find_ticks
from brainiac.storage.statements import Rest, StatementLog, rests_on, text_hash, without_items
from brainiac.storage.withheld import unescaped


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

    def was_private(exchange: str) -> bool:
        """Return whether an exchange was private when it was answered; False where its texts are not kept any more."""
        event = brain.journal.find(exchange)
        texts = [text for change in (event.changes if event else ()) if (text := brain.kept_text(change.after))]
        return any(map(is_private_text, texts))

    if all(map(was_private, exchanges)):
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
        plan = Withdrawal(brain, exchanges)
        plan.plan_all()
        statements, left = tuple(plan.statements), tuple(plan.kept)
        made_private = events.ExchangeMadePrivate(prompt=prompt, statements=statements, left=left)
        if is_final:
            calls = tuple(_calls_about(brain, exchanges))
            made_private = replace(made_private, exchanges=exchanges, sent=calls)
            _add_review_line(brain, prompt, plan, calls)
        changes = plan.changes()
        if changes or is_final:
            brain.commit(made_private, by="kernel", changes=changes)


# --- calls that had the texts --------------------------------------------------------------------------------------


def _calls_about(brain: Brain, exchanges: Collection[str]) -> list[events.RemoteCalls]:
    """Return the remote model calls about some exchanges, and all later remote calls, which may have shown them.

    They are summed up by model; those about the exchanges come first and have `is_own`.
    """
    index = Exchanges(brain)
    prompts = (what.prompt_id for exchange in exchanges if (what := index.what(exchange)))
    about, first = {*exchanges, *prompts}, min(exchanges)  # ids sort by time
    calls: dict[tuple[bool, str], list[tuple[str, str]]] = defaultdict(list)  # time and purpose of each
    for _, event in brain.journal.all_events({events.ModelCalled}):
        called = event.what
        assert isinstance(called, events.ModelCalled)
        is_own = called.about in about
        if (is_own or event.id > first) and _is_elsewhere(brain, called):
            calls[not is_own, called.model].append((event.at, called.purpose))
    return [
        events.RemoteCalls(
            model=model,
            purposes=tuple(dict.fromkeys(purpose for _, purpose in made)),
            calls=len(made),
            first=min(made)[0],
            last=max(made)[0],
            is_own=not is_later,
        )
        for (is_later, model), made in sorted(calls.items())
    ]


def _is_elsewhere(brain: Brain, called: events.ModelCalled) -> bool:
    """Return whether a call went to another machine: by the journal, else by where its model is served now."""
    if called.is_remote is not None:
        return called.is_remote
    try:
        return not endpoint_of(called.model, brain.machine).is_local
    except ModelError:
        return True


def _add_review_line(brain: Brain, prompt: str, plan: Withdrawal, calls: Collection[events.RemoteCalls]) -> None:
    """Add a line to `review.md`: which models had the texts before, and what a person must still decide."""
    texts: dict[bool, list[str]] = {True: [], False: []}  # by `is_own`
    for sent in calls:
        when = sent.first if sent.first == sent.last else f"{sent.first} to {sent.last}"
        number = f"{sent.calls} call{'' if sent.calls == 1 else 's'}"
        texts[sent.is_own].append(f"{sent.model} ({number} for {', '.join(sent.purposes)}, {when})")
    own, later = "; ".join(texts[True]), "; ".join(texts[False])
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


class Withdrawal(Edits):
    """Plans how what rests on some exchanges becomes private.

    The exchanges get the private mark. A statement that rests on them moves to a private page, unless an open exchange
    says the same; a page on which nothing else stands becomes private. The lists and the summary of short-term memory
    lose what came of them: the exchanges themselves stay there.

    Args:
        brain: The brain.
        exchanges: Their ids.

    Attributes:
        kept: For each thing that stays open a sentence for a person.
        statements: The statements that move.
    """

    def __init__(self, brain: Brain, exchanges: Collection[str]) -> None:
        super().__init__(brain)
        self._brain, self._log, self._ids = brain, StatementLog(brain), frozenset(exchanges)
        self._rests = defaultdict[str, list[Rest]](list)
        for rest in rests_on(brain, self._ids, self.read):
            self._rests[rest.path].append(rest)
        self.kept: list[str] = []
        self.statements: list[StatementRecord] = []
        # the person's words, and the statements made of them; and of these what must not be repeated, once it is known
        said = Exchanges(brain)
        self._texts = [said.said(exchange).user for exchange in sorted(self._ids)]
        self._repeated: Sequence[str] = ()

    def plan_all(self) -> None:
        """Plan pages, texts elsewhere that repeat the same words, short-term memory, and review."""
        brain, tree = self._brain, self._brain.tree
        others = (tree.relative(tree.short_term), tree.relative(tree.review))
        for path in [path for path in self._rests if path not in others]:
            self._edit(path, self._withdraw_from_page)
        # what a person said again without a mark stays as it is, and is named
        pieces = pieces_of(self._texts)
        self._repeated = [unescaped(piece.decode("utf-8", "surrogateescape")) for piece in pieces]
        places = {path for paths in find_remaining(brain, pieces).values() for path in paths}
        for path in sorted(places):
            kind = tree.kind_of(path)
            if kind in (PathKind.MEMORY, PathKind.ARCHIVED):
                self._edit(path, self._withdraw_from_page)
            # an answer that is not private yet, and whose own prompt does not say the words
            elif kind is PathKind.RESPONSE and not is_hidden(tree, path) and places.isdisjoint(prompt_path_of(path)):
                # its exchange is private with it
                self._edit(path, lambda path, text: self.write(path, edit_meta(text, private=True)))
        for path, withdraw in zip(others, (self._withdraw_from_short_term, self._mark_review), strict=True):
            self._edit(path, withdraw)

    def _edit(self, path: str, withdraw: Callable[[str, str], None]) -> None:
        """Plan a file, given its path and text; one that cannot be parsed is named in `kept`."""
        text = self.read(path)
        if text is not None:
            try:
                withdraw(path, text)
            except FormatError as error:
                self.kept.append(f"{path} cannot be read ({error.problem})")

    def _repeats(self, text: str) -> bool:
        """Return whether a text has the words; False while it is not known which these are."""
        return any(words in unescaped(text) for words in self._repeated)

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
        said = unescaped("\n".join(event.user for event in memory.events if not event.is_private))
        items = {rest.name for rest in self._rests[path] if rest.kind == "item" and rest.sources <= private}
        document, _ = without_items(document, lambda item: item.text in items and unescaped(item.text) not in said)
        # whether the promotion that wrote the present summary read one of the exchanges
        runs = (event.what for event in self._brain.journal.events(kinds={events.MemoryPromoted}, reverse=True))
        wrote = (run for run in runs if isinstance(run, events.MemoryPromoted) and run.summarized_by is not None)
        run = next(wrote, None)
        if self._repeats(memory.summary) or (run and not self._ids.isdisjoint((*run.exchanges, *run.left))):
            document = document.with_summary("", self._log.is_own_summary)
        now = document.memory
        if self._repeats("\n\n".join([now.summary, *(item.text for item in (*now.goals, *now.facts, *now.tasks))])):
            self.kept.append(f"{path} says it too, openly")
        self.write(path, str(document))

    # --- pages ----------------------------------------------------------------------------------------------

    def _withdraw_from_page(self, path: str, text: str) -> None:
        """Plan a page without what becomes private; all of it does where it is a captured note, or nothing is left."""
        if audience_of(text) > Audience.ANYONE:
            return
        memory = parse_memory(path, text)
        rests, page = self._rests[path], MemoryDocument(self._without_exchanges(text), path)
        moved = [rest for rest in rests if rest.kind == "statement" and not rest.is_said_elsewhere]
        for rest in moved:
            self._texts.append(page.statement(rest.name).text)
            page = rest.without(page)
        sources = [str(source) for source in memory.meta.get("sources") or ()]
        other_sources = [source for source in sources if source not in self._ids]
        page = page.set_meta(sources=other_sources) if other_sources != sources else page
        left = parse_memory(path, shareable_text(str(page)) or "")
        is_empty = is_bare(left) and is_by_process(memory, self._log)
        if is_empty or any(rest.kind == "entry" for rest in rests):
            self.write(path, str(MemoryDocument(text, path).set_meta(private=True)))
            return
        if self._repeats("\n".join(statement.text for statement in page.memory.statements)):
            self.kept.append(f"{path} says it too, openly")
        if isinstance(left.meta.get(MENTIONS), list):
            page = page.set_meta(**{MENTIONS: still_named(left)})
        if moved:
            self._move(memory, moved)
        # without the tags and the canonical key that come from these exchanges alone
        words, tags = self._keywords, page.memory.tags
        keys: dict[str, Any] = {"tags": [tag for tag in tags if tag not in words]} if words.intersection(tags) else {}
        if str(page.memory.meta.get("canonical_key")) in words:
            keys["canonical_key"] = None
        self.write(path, str(page.set_meta(**keys)))

    def _move(self, memory: Memory, moved: Sequence[Rest]) -> None:
        """Plan the private page, in the folder `private/` beside a page, with the statements that leave it."""
        folder, name = posixpath.split(memory.path)
        numbers = itertools.chain([""], (f"{number}-" for number in itertools.count(2)))
        paths = (f"{folder}/private/{number}{name}" for number in numbers)
        path = next(path for path in paths if (text := self.read(path)) is None or audience_of(text) is Audience.HERE)
        keys = {key: memory.meta[key] for key in ("subject", "subject_type") if key in memory.meta}
        text = self.read(path) or new_memory(
            memory.title, uuid=new_id(), now=iso(self._brain.clock.now()), private=True, **keys
        )
        page, is_standing = MemoryDocument(text, path), self._brain.tree.holds
        sources = set(page.memory.meta.get("sources") or ())
        for rest in moved:
            statement = next(each for each in memory.statements if each.block_id == rest.name)
            lines = memory.text[statement.start : statement.end].rstrip() + "\n"
            lines = with_repaired_links(lines, was=memory.path, now=path, moved={}, places={}, is_standing=is_standing)
            page = page.with_item(lines, is_history=statement.is_history)
            # so that `why` and `forget` know what it rests on
            row = StatementRecord(
                operation="NEW",
                path=path,
                page=page.memory.uuid,
                block=statement.block_id,
                hash=text_hash(page.statement(statement.block_id).text),
                sources=tuple(sorted(rest.sources)),
            )
            self.statements.append(row)
            sources |= rest.sources
        self.write(path, str(page.set_meta(sources=sorted(sources))))

    @cached_property
    def _keywords(self) -> set[str]:
        """The tags and canonical keys that were extracted from these exchanges and from no others."""
        own: set[str] = set()
        others: set[str] = set()
        for event in self._brain.journal.events(kinds={events.EventsAnalyzed}):
            for candidate in event.what.candidates if isinstance(event.what, events.EventsAnalyzed) else ():
                is_own = not self._ids.isdisjoint(candidate.events)
                (own if is_own else others).update((*candidate.tags, candidate.canonical_key))
        return own - others - {""}

    # --- review ---------------------------------------------------------------------------------------------

    def _mark_review(self, path: str, text: str) -> None:
        """Plan `review.md` with marks on the proposals that rest on the exchanges."""
        proposals = {rest.name for rest in self._rests[path]}
        for tick in reversed(find_ticks(text)):
            line = text[tick.start : tick.end]
            # before the id, which must be at the end of its line
            if tick.id in proposals and not PRIVATE.search(line):
                line = line.replace("<!-- proposal:", f"{PRIVATE_MARK} <!-- proposal:", 1)
                text = text[: tick.start] + line + text[tick.end :]
        self.write(path, text)
