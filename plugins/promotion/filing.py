"""Filing: exchanges leave short-term memory and go, word for word, to the pages of their days.

Promotion files what it has decided on. Where short-term memory is too full, its oldest exchanges are filed at once and
without a model: promotion needs quiet and a model that answers, and every exchange reads and writes the whole file.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import Change, Event, ExchangesFiled, InboxTidied, content_hash, remove, update
from brainiac.formats.markdown import (
    PlacedEvent,
    StmEvent,
    find_events,
    is_timestamp,
    render_event,
    render_exchange,
    splice,
)
from brainiac.formats.page import MemoryDocument
from brainiac.formats.prompt import parse_prompt, parse_response
from brainiac.formats.short_term import ShortTermDocument
from brainiac.llm.catalog import count
from brainiac.storage.links import LinkOrigins
from brainiac.storage.said import Answer, FiledExchanges, said_at
from brainiac.storage.statements import StatementLog

from .draft import MemoryDraft

NAME = "promotion"
OVERFULL = 2  # at so many times the limit all beyond the limit is filed, so that it is done seldom
SECTION = "## Conversation"
QUOTING = ("offline", "commands")  # as responses name who answered without saying anything of their own
TIDIED_AT_ONCE = 200


def add_exchanges(
    brain: Brain, draft: MemoryDraft, events: Sequence[StmEvent], origins: LinkOrigins, left: dict[str, str]
) -> dict[str, list[str]]:
    """Put exchanges on the pages of their days, in the order they were said; one that is on a page already stays there.

    Args:
        brain: The brain.
        draft: The page drafts.
        events: The exchanges.
        origins: Resolves their links, so that they lead to the same files from the page.
        left: The reason for each exchange that no page has word for word is added here, by its id.

    Returns:
        The ids of these exchanges by the path of the page that has them.
    """
    filings = FiledExchanges(brain)
    by_path: dict[str, list[StmEvent]] = {}
    for event in sorted(events, key=said_at):
        try:
            path, page = filings.page_of(event.id), None
            with suppress(FormatError):  # one that is on a page stays there, even if its day's page was split or moved
                page = draft.page(path) if path else None
            if page is None or f"<!-- exchange: {event.id} -->" not in str(page):
                path = draft.day_page(event.at, is_private=event.is_private, size=len(render_exchange(event)))
        except FormatError as error:
            left[event.id] = str(error)
        else:
            by_path.setdefault(path, []).append(replace(origins.moved(event, path), thoughts=""))
    pages: dict[str, list[str]] = {}
    for path, exchanges in by_path.items():
        text = _with_exchanges(str(draft.opened(path)), exchanges)
        draft.put(MemoryDocument(text, path))
        on_page = {(placed.event.id, placed.event.user, placed.event.ai) for placed in find_events(text)}
        if ids := [event.id for event in exchanges if (event.id, event.user, event.ai) in on_page]:
            pages[path] = ids
        # a person corrected them there, or here
        left |= {event.id: f"it stands in {path} in other words" for event in exchanges if event.id not in ids}
    return pages


def _with_exchanges(text: str, events: Sequence[StmEvent]) -> str:
    """Return a page with the exchanges that it lacks, each after those said before it; `events` are oldest first."""
    on_page, heading = list(find_events(text)), f"\n{SECTION}\n"
    ids = {exchange.event.id for exchange in on_page}
    new = list({event.id: event for event in events if event.id not in ids}.values())

    def place(event: StmEvent) -> int:
        """Return where an exchange goes: behind the last one that was said before it, else before all others."""
        before = [exchange.end for exchange in on_page if exchange.event.at <= event.at]
        if before or on_page:
            return max(before, default=on_page[0].start)
        # the first ones stand in the section for them, which is made before all others if missing
        section, first_section = text.find(heading), text.find("\n## ")
        if section >= 0:
            return section + len(heading)
        return first_section + 1 if first_section >= 0 else len(text)

    # exchanges that go to the same place are inserted together
    groups = [(at, "".join(render_exchange(event) + "\n" for event in group)) for at, group in groupby(new, place)]
    is_in_section = bool(on_page) or heading in text
    for at, rendered in reversed(groups):  # from the end, so that the offsets above stay valid
        # a blank line before them, but where they stand right behind the heading or before the first one
        is_apart = not is_in_section or any(exchange.end == at for exchange in on_page)
        gap = "" if text[:at].endswith("\n\n") else "\n" if text[:at].endswith("\n") else "\n\n"
        text = splice(text, at, gap * is_apart + f"{SECTION}\n" * (not is_in_section) + rendered)
    return text


# --- when short-term memory is too full ----------------------------------------------------------------------


def file_overflow(brain: Brain) -> Event | None:
    """File the oldest exchanges of short-term memory if it is too full.

    Returns:
        The event; None where it is not too full, or no exchange can be filed.

    Raises:
        ConflictError: In each of 20 attempts somebody saved a file of the commit.
        FormatError: Short-term memory lacks a heading.
    """

    def attempt() -> Event | None:
        with brain.short_term_lock():
            document = brain.short_term()
            if not (events := _oldest(document, brain.settings.promotion.max_tokens)):
                return None
            log = StatementLog(brain)
            draft, unwritable = MemoryDraft(brain, log), dict[str, str]()
            # this adds the exchanges that cannot be written to `unwritable`
            pages = add_exchanges(brain, draft, events, LinkOrigins(brain, log.prompt_of, {}), unwritable)
            ids = [event.id for event in events if event.id not in unwritable]
            if not ids:
                return None
            # the facts that Reflection noted from these exchanges leave short-term memory with them
            facts = [item.text for item in document.memory.facts if not log.sources_of_item(item.text).isdisjoint(ids)]
            remaining = document.without_event(*ids).without_items(facts=facts)
            draft.finish()
            # A new folder gets its index page at once; those of others are brought up to date when it is quiet.
            draft.begin_folders()
            changes = draft.changes(indexes="none")
            changes.append(update(brain.tree.relative(brain.tree.short_term), str(document), str(remaining)))
            episodes = {path: tuple(exchanges) for path, exchanges in pages.items()}
            return brain.commit(ExchangesFiled(exchanges=tuple(ids), episodes=episodes), by=NAME, changes=changes)

    return brain.retry(attempt)


def _oldest(document: ShortTermDocument, limit: int) -> list[StmEvent]:
    """Return the events to file, oldest first: all but the newest that fit into a limit of tokens.

    While short-term memory has less than `OVERFULL` times the limit there are none. An event that a person edited is
    not filed: Promotion has a model read it.
    """
    text = str(document)
    if len(text) <= OVERFULL * limit:  # a token is a character or more
        return []
    placed, sizes = document.logged, [count(text[event.start : event.end]) for event in document.logged]
    # what stands between the events
    starts, ends = [0, *(event.end for event in placed)], [*(event.start for event in placed), len(text)]
    total = count("".join(text[start:end] for start, end in zip(starts, ends, strict=True))) + sum(sizes)
    if total <= OVERFULL * limit:
        return []
    movable = [(event.event, size) for event, size in zip(placed, sizes, strict=True) if _is_unedited(text, event)]
    kept_tokens = total - sum(size for _, size in movable)
    movable.sort(key=lambda row: said_at(row[0]), reverse=True)
    for number, (_, size) in enumerate(movable):
        kept_tokens += size
        if kept_tokens > limit and number:  # the newest event stays, however long it is
            return [event for event, _ in movable[number:]][::-1]
    return []


def _is_unedited(text: str, placed: PlacedEvent) -> bool:
    """Return whether an event is byte for byte as a process writes it, and has a date."""
    present, written = text[placed.start : placed.end].replace("\r\n", "\n"), render_event(placed.event)
    return present.rstrip("\n") == written.rstrip("\n") and is_timestamp(placed.event.at)


def conversation_of(brain: Brain, prompt: str) -> str:
    """Return the subfolder of the inbox that a prompt belongs to; "" at the top level."""
    return posixpath.dirname(prompt).removeprefix(brain.tree.relative(brain.tree.inbox)).strip("/")


def tidy_inbox(brain: Brain) -> Event | None:
    """Take answered prompts with their answers out of the inbox, `inbox.keep_days` after they were answered.

    This is done only where nothing is lost with the files (`_is_kept_whole`), and once for an exchange: files that an
    undo or a person put back stay.

    Returns:
        The event; None where there is nothing to do, or somebody saved one of the files meanwhile.
    """
    days = brain.settings.inbox.keep_days
    if days is None or not brain.is_active:
        return None
    latest = iso(brain.clock.now() - timedelta(days=days))
    tidied = {exchange for event in brain.journal.events(kinds={InboxTidied}) for exchange in event.data["exchanges"]}
    changes: list[Change] = []
    exchanges: list[str] = []
    for path in sorted(os.listdir(brain.tree.inbox)):
        answer = brain.answered.of(prompt := f"{brain.tree.layout.inbox}/{path}")
        if answer is None or not answer.response or answer.at > latest or answer.exchange in tidied:
            continue
        prompt_file, response_file = brain.read(prompt), brain.read(answer.response)
        if prompt_file and response_file and _is_kept_whole(brain, answer, prompt_file, response_file):
            changes += [remove(prompt, prompt_file), remove(answer.response, response_file)]
            exchanges.append(answer.exchange)
        if len(exchanges) == TIDIED_AT_ONCE:
            break
    if exchanges:
        with suppress(ConflictError):  # the next quiet tries again
            return brain.commit(InboxTidied(exchanges=tuple(exchanges)), by=NAME, changes=changes)
    return None


def _is_kept_whole(brain: Brain, answer: Answer, prompt_file: bytes, response_file: bytes) -> bool:
    """Return whether nothing is lost when the two files of an answer leave the inbox.

    They have to be as they were written, and the page of their day has to have the exchange word for word. Private
    exchanges stay in the inbox.
    """
    hashes = content_hash(prompt_file), content_hash(response_file)
    page = FiledExchanges(brain).page_of(answer.exchange)
    if hashes != (answer.prompt_hash, answer.response_hash) or not answer.is_ours or not page:
        return False
    try:
        prompt = parse_prompt(answer.prompt, prompt_file, at=answer.at, inbox=brain.tree.layout.inbox)
        response = parse_response(str(answer.response), response_file)
    except FormatError:
        return False
    if prompt.private or response.private or not prompt.remember:
        return False
    events = (placed.event for placed in find_events(brain.read_text(page) or ""))
    on_page = next((event for event in events if event.id == answer.exchange), None)
    if on_page is None or on_page.user != prompt.text:
        return False  # the page has no secret of a prompt, so that the texts differ
    # what the offline engine answered only quotes memory: of it the page has the links
    return response.model in QUOTING or on_page.ai == response.text
