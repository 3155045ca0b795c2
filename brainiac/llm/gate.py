"""The gate: it decides what of a brain a model or embedder on another machine may be shown (docs/privacy.md).

Every request passes `Gate.admit`, every file and search result that a model sees is read through `Gate`, and
`llm/completion.py` sends nothing but a `Released`. For a model on this machine the gate lets everything through.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from brainiac.errors import ConfinementError, ModelError
from brainiac.events import PathKind
from brainiac.formats.discretion import Audience, is_private_event, is_private_text
from brainiac.formats.markdown import PRIVATE, Link, StmEvent, decode_text, edited, find_events, find_links
from brainiac.formats.page import shareable_text
from brainiac.formats.prompt import Exchange, is_off_record, prompt_path_of, response_path
from brainiac.formats.short_term import ShortTermMemory
from brainiac.library import Library
from brainiac.llm.catalog import Endpoint
from brainiac.llm.redaction import redact
from brainiac.llm.schemas import Claim, Engine, Existing, PageName, Request, Said
from brainiac.search.documents import Hit
from brainiac.search.outdated import with_former
from brainiac.storage.files import read_bytes
from brainiac.storage.pages import INDEX, linked_path
from brainiac.storage.withheld import Withheld, unescaped
from brainiac.tree import Tree

R = TypeVar("R", bound="Request")

WITHHELD = "(private)"
# a private mark is about its paragraph, so that texts are checked paragraph by paragraph
_GAP = re.compile(r"(\n[ \t\r]*\n)")
_QUOTED = re.compile(r" Last said: “.*")  # at the end of the offline engine's summary
_MAX_RESPONSES = 20  # of one prompt that are looked at


# --- hidden paths --------------------------------------------------------------------------------------------------


def is_hidden(tree: Tree, path: str) -> bool:
    """Return whether not even the name of a path may be shown elsewhere.

    That holds for a private note, for a folder whose notes are all private, and for the index page of such a folder.

    Args:
        tree: The brain's folder.
        path: Relative to the brain.
    """
    folder, name = posixpath.split(path)
    # an index page is hidden exactly if its folder is
    absolute = tree.absolute(folder if name == INDEX else path)
    if absolute.is_dir():
        # a folder without notes is not hidden: it says nothing about anybody
        files = (file for file in tree.scan(absolute) if posixpath.basename(file) != INDEX)
        notes = [tree.absolute(file) for file in files if file.endswith((".md", ".txt"))]
        return bool(notes) and all(map(_is_private_file, notes))
    if not absolute.is_file() or _is_private_file(absolute):
        return absolute.is_file()
    if not path.startswith(f"{tree.relative(tree.inbox)}/"):
        return False
    # a file of the inbox belongs to an exchange, of which the prompt or a response may be private
    prompts = prompt_path_of(path) or (path,)  # a file that is no response is itself the prompt
    names = (response_path(prompt, number) for prompt in prompts for number in range(1, _MAX_RESPONSES))
    responses = (name for name in names if os.path.lexists(tree.root / name))  # most there are not
    return any(_is_private_file(tree.absolute(file), is_exchange=True) for file in (*prompts, *responses))


def _is_private_file(file: Path, *, is_exchange: bool = False) -> bool:
    """Return whether a file is private as a whole: a note by its front matter, an exchange by any mark in it.

    A file that cannot be read counts as private.
    """
    try:
        text = decode_text(read_bytes(file) or b"")
    except OSError:
        return True
    return is_private_text(text) if is_exchange else shareable_text(text) is None


# --- released content ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Released:
    """Content that passed the gate; only this module makes it, and nothing else is sent.

    Attributes:
        content: Messages of the chat protocol, or texts.
        reader: Whom it was released for; it leaves this machine only where that is anyone.
    """

    content: Sequence[Any]
    reader: Audience

    def for_endpoint(self, endpoint: Endpoint) -> list[Any]:
        """Return the content for an endpoint.

        Raises:
            ModelError: It was released for a model on this machine, and the endpoint is not on this machine (any more).
        """
        if self.reader is Audience.ANYONE or endpoint.is_local:
            return list(self.content)
        where = f"`{endpoint.model}` is served at {endpoint.place} by now"
        raise ModelError(f"{where}, not on this machine; nothing was sent.", retryable=True)


def released_texts(texts: Iterable[str], endpoint: Endpoint) -> Released:
    """Return texts for an embedder; one with a private mark is replaced by `WITHHELD`.

    The caller leaves private texts out: this catches what it missed.
    """
    if endpoint.is_local:
        return Released(list(texts), Audience.HERE)
    return Released([WITHHELD if PRIVATE.search(text) else text for text in texts], Audience.ANYONE)


# --- one request ---------------------------------------------------------------------------------------------------


class Gate:
    """Reads and filters all that the model of one request is shown.

    Args:
        library: The memory that is read.
        reader: Who is told: it sees of memory what is not greater.
        model: Who is sent the request itself; None for the reader. A model on this machine that answers a client at a
            door is shown what anyone may see, and what the client asked itself.

    Attributes:
        reader: As given.
        model: As given; never less than the reader.
    """

    def __init__(self, library: Library, reader: Audience = Audience.ANYONE, *, model: Audience | None = None) -> None:
        self._library, self._tree = library, library.tree
        self.reader, self.model = reader, reader if model is None else model
        # by path: the part of a file that may be shown, and the exchanges in the rest; None where that is all of it
        self._parts: dict[str, tuple[str, set[str]] | None] = {}
        self._is_visible: dict[str, bool] = {}  # by path

    @classmethod
    def of(cls, library: Library, request: Request, engine: Engine) -> Gate:
        """Return the gate for a request to an engine, which tells no less than the prompt's reader what it is shown."""
        prompt = getattr(request, "prompt", None)
        reader = prompt.reader if prompt else Audience.HERE  # of all other purposes the result is kept
        model = Audience.ANYONE if engine.is_remote else max(reader, Audience.HERE)
        return cls(library, min(reader, model), model=model)

    @property
    def _is_here(self) -> bool:
        """Whether what is private may be shown."""
        return self.reader >= Audience.HERE

    @cached_property
    def _withheld(self) -> Withheld:
        """What the person asked to have forgotten: hidden from every model and door until they decide."""
        return Withheld(self._library)

    # --- values -----------------------------------------------------------------------------------------------

    def admit(self, request: R) -> R:
        """Return a request whose values are filtered for its model.

        Raises:
            ModelError: It is private as a whole, or has a field that the gate does not know.
        """
        if self._is_here and not self._withheld:
            return request
        # by the files as they are now: they may have become private since the request was made
        if self.model is Audience.ANYONE and is_private_request(self._library, request):
            raise ModelError("It is private, and the model is not on this machine; nothing was sent.", retryable=True)
        changed: dict[str, Any] = {}
        for field in fields(request):
            # a new field has to be added to a table below before any request with it is sent
            if field.name not in _FILTERS and field.name not in _OPEN_FIELDS:
                kind = type(request).__name__
                raise ModelError(f"`{field.name}` of a {kind} is not known to the gate; nothing was sent.")
            if field.name in _FILTERS:
                changed[field.name] = _FILTERS[field.name](self, getattr(request, field.name))
        return replace(request, **changed)

    def short_term(self, memory: ShortTermMemory) -> ShortTermMemory:
        """Return short-term memory without what is hidden or private."""
        memory = self._withheld.short_term(memory)
        if self._is_here:
            return memory
        if memory.is_private:
            return type(memory)()
        # a page that the summary links to, or an exchange that it quotes, may have become private since
        summary = self._without_hidden(self._tree.relative(self._tree.short_term), _QUOTED.sub("", memory.summary))
        return replace(memory, summary=summary, events=tuple(self.events(memory.events)))

    def events(self, events: Iterable[StmEvent]) -> list[StmEvent]:
        """Return the exchanges that may be shown; one whose prompt became private since is left out."""
        known = (event for event in events if event.id not in self._withheld.exchanges)
        is_here = self._is_here
        return [one for one in known if is_here or not (is_private_event(one) or self.is_private_by_now(one.id))]

    def is_private_by_now(self, exchange: str) -> bool:
        """Return whether a file of an exchange is private or off the record now, whatever it was when it was said."""
        path = None if self._is_here else self._library.answered.path_of(exchange)
        return path is not None and not self.knows(path)

    def turns(self, turns: Iterable[Exchange]) -> list[Exchange]:
        """Return the earlier turns that may be shown, without secrets (files of the inbox still hold them)."""
        known = (turn for turn in turns if turn.id not in self._withheld.exchanges)
        shown = (one for one in known if self._is_here or (not one.is_private and self.knows(one.prompt.path)))
        return [self._without_secrets(turn) for turn in shown]

    def _without_secrets(self, turn: Exchange) -> Exchange:
        """Return an exchange with the secrets redacted in prompt and response, but for a model on this machine."""
        if self._is_here:
            return turn
        response = turn.response and replace(turn.response, text=redact(self._library, turn.response.text))
        prompt = replace(turn.prompt, text=redact(self._library, turn.prompt.text))
        return replace(turn, prompt=prompt, response=response)

    def hits(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return the hits that may be shown; one in an exchange has its words that no longer hold in `former`."""
        shown = []
        for hit in hits:  # the index knows what is private, but a new mark must count at once
            exchange = hit.anchor if hit.kind == "exchange" else ""
            if self._shows(hit.path, hit.text, exchange) and not (exchange and self.is_private_by_now(exchange)):
                shown.append(hit)
        return with_former(self._library, shown, self.reader)

    def _shows(self, path: str, words: str, exchange: str = "") -> bool:
        """Return whether words may be shown: the file may, by its text of now, and they stand in no hidden part of it.

        Args:
            path: Of the file.
            words: The words.
            exchange: The id of the exchange that they stand in; "" for none.
        """
        if not self.knows(path) or exchange in self._withheld.exchanges:
            return False
        if path not in self._parts:  # cached, since the page of a day is long and has many hits
            try:
                text = (None if self._is_here and not self._withheld else self._library.read_text(path)) or ""
            except ConfinementError:  # a name with control characters: what stands in the file is not known
                return False
            shown = self._visible_part(path, text)
            hidden = _exchanges_in(text) - _exchanges_in(shown) if shown != text else set()
            self._parts[path] = None if shown == text else (unescaped(shown), hidden)
        if (parts := self._parts[path]) is None:  # all of it may be shown
            return True
        shown, hidden = parts
        return shown != "" and (exchange not in hidden if exchange else unescaped(words) in shown)

    def _visible_part(self, path: str, text: str) -> str:
        """Return the part of a file that may be shown."""
        text = self._withheld.rest_of(path, text)
        return text if self._is_here else shareable_text(text) or ""

    def _said(self, exchanges: Iterable[Said]) -> list[Said]:
        """Return the exchanges of a consolidation that may be shown."""
        shown = (exchange for exchange in exchanges if self.events([exchange.event]))
        turns = ((exchange, self.turns([exchange.before] if exchange.before else ())) for exchange in shown)
        return [replace(exchange, before=next(iter(before), None)) for exchange, before in turns]

    def _claims(self, claims: Iterable[Claim]) -> list[Claim]:
        """Return the claims all of whose exchanges and former statements may be shown."""
        shown = (claim for claim in claims if len(self.events(claim.events)) == len(claim.events))
        return [claim for claim in shown if len(self._existing(claim.former)) == len(claim.former)]

    def _existing(self, statements: Iterable[Existing]) -> list[Existing]:
        """Return the statements that may be shown."""
        return [statement for statement in statements if self._shows(statement.path, statement.content)]

    def _page_names(self, pages: Iterable[PageName]) -> list[PageName]:
        """Return the pages whose names may be shown, without what they are about where that is hidden."""
        known = (page for page in pages if self.knows(page.path))
        return [page if self._shows(page.path, page.about) else replace(page, about="") for page in known]

    def _patterns(self, patterns: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Return access statistics without the rows that name a hidden page or folder."""

        def is_shown(row: Mapping[str, Any]) -> bool:
            return all(map(self.knows, filter(None, [*row.get("paths", ()), row.get("path"), row.get("folder")])))

        return {name: [row for row in rows if is_shown(row)] for name, rows in patterns.items()}

    # --- files ------------------------------------------------------------------------------------------------

    def knows(self, path: str) -> bool:
        """Return whether the name of a file or folder may be shown."""
        if self.reader is Audience.NOBODY:
            return True
        if path not in self._is_visible:
            # read where it stands: a name with control characters, which no link may have, is no reason to fail
            is_greater = not self._is_here and is_hidden(self._tree, path)
            try:
                is_greater |= is_off_record(read_bytes(self._tree.absolute(path)))
            except OSError as error:  # one that cannot be read counts as off the record, a folder does not
                is_greater |= error.errno != errno.ENAMETOOLONG
            except ValueError:  # no file has such a name
                pass
            self._is_visible[path] = not is_greater
        return self._is_visible[path]

    def read_note(self, path: str, tops: Sequence[str] = ("memory", "inbox")) -> str | None:
        """Return the part of a note that may be shown; None where that is nothing, or where there is no such note.

        Args:
            path: As a link or a model names it.
            tops: The folders of the layout, one of which it must lie in; a note of a source may be read besides.
        """
        # a path from a model must not lead to settings, keys or out of the brain
        for top in tops:
            with suppress(ConfinementError):
                absolute = self._tree.confine(path, inside=getattr(self._tree, top))
                return self._read(self._tree.relative(absolute)) if absolute.suffix in (".md", ".txt") else None
        # made absolute first: such a path may be absolute, or lead out of the brain by `..` to a source
        relative = self._tree.relative(posixpath.normpath(posixpath.join(self._tree.root, path)))
        if self._tree.kind_of(relative) is PathKind.SOURCE:
            with suppress(ConfinementError):
                return self._read(relative)
        return None

    def _read(self, path: str) -> str | None:
        """Return the part of a note that may be shown; None where that is nothing, or where there is no such note."""
        # `Today.md` repeats what stands elsewhere, and may be older than a word by which that became private
        is_shown = self.knows(path) and self._tree.kind_of(path) is not PathKind.TODAY
        text = self._library.read_text(path) if is_shown else None
        shown = self._visible_part(path, text) or None if text else text
        if not shown or self._is_here:
            return shown
        if path.startswith(f"{self._tree.relative(self._tree.inbox)}/"):
            return redact(self._library, shown)  # files of the inbox still hold secrets
        # pages may have exchanges whose files became private since
        private = (placed for placed in find_events(shown) if self.is_private_by_now(placed.event.id))
        shown = edited(shown, ((placed.start, placed.end, "") for placed in private))
        return self._without_hidden(path, shown) if posixpath.basename(path) == INDEX else shown

    def system_text(self, path: Path) -> str | None:
        """Return the text of a file of `system/` (identity, template, workflow); None where it may not be shown."""
        text = self._library.read_text(path)
        return text if text is None or self._is_here else shareable_text(text)

    def _without_hidden(self, path: str, text: str) -> str:
        """Return an index page, or a summary, without the lines in which the program names what is hidden or gone."""

        def may_be_named(link: Link) -> bool:
            target = linked_path(link, path)
            return link.is_external or link.is_wiki or (self._tree.holds(target) and self.knows(target))

        return "\n".join(line for line in text.split("\n") if all(map(may_be_named, find_links(line))))

    def cleared(self, text: str) -> str:
        """Return a text that is in no file, such as a plugin's block, without paragraphs that are marked private."""
        return text if self._is_here else str(_cleared(text))

    # --- the last check ---------------------------------------------------------------------------------------

    def release(self, messages: Iterable[Mapping[str, Any]], prompt: str = "") -> Released:
        """Return messages that may be sent, with `WITHHELD` in place of every paragraph that has a private mark.

        Args:
            messages: Of the chat protocol.
            prompt: What the client at a door wrote itself: a model on this machine may read its private paragraphs.
        """
        # the filters above should have left none: this catches what they missed
        if not self._is_here:
            own = () if self.model is Audience.ANYONE else _GAP.split(prompt)
            messages = [{**message, "content": _cleared(message.get("content"), own)} for message in messages]
        return Released(list(messages), self.model)


# The filter of each request field that holds memory; the fields of `_OPEN_FIELDS` hold none and are shown as they are.
_FILTERS: dict[str, Callable[[Gate, Any], Any]] = {
    "short_term": Gate.short_term,
    "conversation": Gate.turns,
    "hits": Gate.hits,
    "exchange": Gate._without_secrets,
    "events": Gate.events,
    "remaining": Gate.events,
    "archived": Gate.events,
    "said": Gate._said,
    "claims": Gate._claims,
    "existing": Gate._existing,
    "standing": Gate._existing,
    "pages": Gate._page_names,
    "patterns": Gate._patterns,
    "structure": lambda gate, folders: {name: entries for name, entries in folders.items() if gate.knows(name)},
}
_OPEN_FIELDS = frozenset(
    "now is_private is_past cause abandon on_text prompt absent wants_list is_first refused kind title "
    "candidates steps titles goals wants_headings".split()
)


def is_private_request(library: Library, request: Request) -> bool:
    """Return whether a request must stay on this machine: it, its exchange or its prompt's file is private."""
    exchange = getattr(request, "exchange", None)
    prompt = exchange.prompt if exchange else getattr(request, "prompt", None)
    if request.is_private or (exchange and exchange.is_private):
        return True
    if prompt and (prompt.private or (prompt.path and is_hidden(library.tree, prompt.path))):
        return True
    # candidates repeat the words of the events they rest on
    return hasattr(request, "candidates") and any(map(is_private_event, getattr(request, "events", ())))


def _cleared(content: Any, own: Collection[str] = ()) -> Any:
    """Return a message's content (a text, or parts), with `WITHHELD` for each private paragraph not in `own`."""
    if isinstance(content, str):
        parts = _GAP.split(content)  # paragraphs, and the gaps between them
        return "".join(WITHHELD if PRIVATE.search(part) and part not in own else part for part in parts)
    if isinstance(content, list):
        return [{**part, "text": _cleared(part["text"], own)} if "text" in part else part for part in content]
    return content


def _exchanges_in(text: str) -> set[str]:
    """Return the ids of the exchanges in a page."""
    return {placed.event.id for placed in find_events(text)}
