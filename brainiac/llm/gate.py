"""The one gate to models and embedders: what of a brain a reader elsewhere may be shown (docs/privacy.md).

A request is admitted here before anything is made of it, every file and search result that a model sees is read
here, and only what was released here is taken by `llm/completion.py`. For a reader on this machine all gates are open.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from brainiac.errors import ConfinementError, FormatError, ModelError
from brainiac.formats.dialogue import PRIVATE, StmEvent, find_events
from brainiac.formats.discretion import is_off_record, is_private_event, is_private_note, shareable, unmarked
from brainiac.formats.frontmatter import split
from brainiac.formats.links import Link, find_links
from brainiac.formats.memory import title_of
from brainiac.formats.prompt import Exchange, prompt_path_of, response_path
from brainiac.formats.short_term import ShortTermMemory
from brainiac.library import Library
from brainiac.llm.catalog import Endpoint
from brainiac.llm.redaction import redact
from brainiac.llm.schemas import Answer, Engine, Existing, PageName, Request, Result
from brainiac.search.hit import Hit
from brainiac.storage.files import read_bytes
from brainiac.tree import Tree

R = TypeVar("R", bound="Request")

WITHHELD = "(private)"
_GAP = re.compile(r"(\n[ \t\r]*\n)")
_MAX_RESPONSES = 20


# --- what is hidden ------------------------------------------------------------------------------------------------


def is_hidden(tree: Tree, path: str) -> bool:
    """Return whether nobody elsewhere may even know of a place, since its name tells already what it holds.

    Args:
        tree: The brain's folder.
        path: Relative: a private note, a folder whose notes are all private, or such a folder's index page.
    """
    folder, name = posixpath.split(path)
    top = tree.absolute(folder if name == "_index.md" else path)
    if not top.is_dir():
        return top.is_file() and (_is_private_file(top) or _has_private_part(tree, path))
    has_notes = False
    for entry in tree.walk(top):
        if entry.name.endswith((".md", ".txt")) and entry.name != "_index.md":
            if not _is_private_file(Path(entry.path)):
                return False
            has_notes = True
    return has_notes


def _is_private_file(file: Path, *, is_said: bool = False) -> bool:
    """Return whether a file is private as a whole: what was said is so by any mark in it."""
    try:
        text = (read_bytes(file) or b"").decode("utf-8", "surrogateescape")
    except OSError:
        return True  # nobody can tell
    return is_private_note(text) or (is_said and PRIVATE.search(text) is not None)


def _has_private_part(tree: Tree, path: str) -> bool:
    """Return whether a file of the inbox belongs to an exchange of which another file is private."""
    if not path.startswith(f"{tree.relative(tree.inbox)}/"):
        return False
    files = (file for prompt in prompt_path_of(path) or (path,) for file in (prompt, *_answers(tree, prompt)))
    return any(_is_private_file(tree.absolute(file), is_said=True) for file in files)


def _answers(tree: Tree, prompt: str) -> Iterator[str]:
    for number in range(1, _MAX_RESPONSES):
        path = response_path(prompt, number)
        if not tree.absolute(path).is_file():
            return
        yield path


# --- links that tell of what is hidden -----------------------------------------------------------------------------


def without_hidden(tree: Tree, path: str, text: str) -> str:
    """Return a text without the lines whose links lead to what is hidden, or to what is gone and may have been.

    A link that leads nowhere counts on an index page, and elsewhere with an identity, as a process writes it.

    Args:
        tree: The brain's folder.
        path: Where the text stands.
        text: A note, or a part of one.
    """
    if "](" not in text and "[[" not in text:
        return text
    folder, name = posixpath.split(path)

    def is_open(part: str) -> bool:
        return all(_is_open(tree, folder, link, is_index=name == "_index.md") for link in find_links(part))

    kept = []
    for part in _GAP.split(text):
        lines = "\n".join(line for line in part.split("\n") if is_open(line))
        # a link whose title goes over two lines is none of either
        kept.append(lines if is_open(" ".join(lines.split("\n"))) else "")
    return "".join(kept)


def _is_open(tree: Tree, folder: str, link: Link, *, is_index: bool) -> bool:
    if link.is_external or not link.target:
        return True
    if link.is_wiki:
        return not _names_hidden(tree, link)
    is_gone = True
    for base in (folder, ""):
        for target in (link.target, f"{link.target}.md"):
            path = posixpath.normpath(posixpath.join(base, target.lstrip("/")))
            try:
                standing = tree.confine(path)
            except ConfinementError:
                continue
            if standing.exists():
                if is_hidden(tree, path):
                    return False
                is_gone = False
    is_ours = bool(link.uuid) or (is_index and link.target.endswith(".md"))
    return not is_gone or not (is_ours or _names_hidden(tree, link))  # it may have moved, as to the archive


def _names_hidden(tree: Tree, link: Link) -> bool:
    return not _hidden_names(tree).isdisjoint((_key(link.target), _key(posixpath.basename(link.target))))


def _key(name: str) -> str:
    """Return a name as a wiki link may spell it: case, white space and what a file's name cannot hold aside."""
    folded = unicodedata.normalize("NFC", name).casefold().removesuffix(".md")
    return re.sub(r"[\W_]+", "-", folded).strip("-")


_Names = dict[str, tuple[tuple[int, int], frozenset[str]]]
_names: WeakKeyDictionary[Tree, _Names] = WeakKeyDictionary()


def _hidden_names(tree: Tree) -> set[str]:
    """Return what wiki links may call the hidden memories; a file is read again only when it changed."""
    known, now = _names.get(tree, {}), {}
    for entry in tree.walk(tree.memory):
        if not entry.name.endswith(".md"):
            continue
        stat = entry.stat(follow_symlinks=False)
        stamp = (stat.st_mtime_ns, stat.st_size)
        path = tree.relative(entry.path)
        was = known.get(path)
        now[path] = was if was and was[0] == stamp else (stamp, _names_of(path, Path(entry.path)))
    _names[tree] = now
    return {name for _, names in now.values() for name in names}


def _names_of(path: str, file: Path) -> frozenset[str]:
    if not _is_private_file(file):
        return frozenset()
    stem = _key(posixpath.basename(path))
    try:
        text = (read_bytes(file) or b"").decode("utf-8", "surrogateescape")
        title = title_of(*_opened(text), path)
    except (OSError, FormatError):
        title = ""
    return frozenset(filter(None, (stem, _key(path), _key(PRIVATE.sub("", title)))))


def _opened(text: str) -> tuple[Mapping[str, Any], str, int]:
    meta, offset = split(text)
    return meta, text, offset


# --- what is released ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Released:
    """What was let through; made in this module alone, and the only thing that is sent.

    Attributes:
        content: Messages of the chat protocol, or texts.
        is_for_remote: Nothing private is in it.
    """

    content: Sequence[Any]
    is_for_remote: bool

    def for_endpoint(self, endpoint: Endpoint) -> list[Any]:
        """Return the content, for a place that it was released for.

        Raises:
            ModelError: The place is another one by now: not on this machine any more.
        """
        if not (self.is_for_remote or endpoint.is_local):
            raise ModelError(
                f"`{endpoint.model}` is served at {endpoint.place} by now, not on this machine; nothing was sent.",
                retryable=True,
            )
        return list(self.content)


def released_texts(texts: Iterable[str], endpoint: Endpoint) -> Released:
    """Return texts to be embedded; of one with a private mark, which none should have, only that it is private."""
    is_remote = not endpoint.is_local
    return Released([WITHHELD if is_remote and PRIVATE.search(text) else text for text in texts], is_remote)


def may_be_embedded(tree: Tree, path: str, text: str) -> bool:
    """Return whether the text of a unit that is not private by itself may go to an embedder elsewhere."""
    return not PRIVATE.search(text) and without_hidden(tree, path, text) == text


# --- one request ---------------------------------------------------------------------------------------------------


class Gate:
    """What one request may be shown.

    Args:
        library: Whose memory.
        is_remote: Whether it leaves this machine.
        is_kept: What is made of it is remembered, and might repeat what is off the record.
    """

    def __init__(self, library: Library, *, is_remote: bool, is_kept: bool = False) -> None:
        self._library, self.is_remote, self._is_kept = library, is_remote, is_kept
        self._tree = library.tree
        self._pages: dict[str, tuple[str, str | None]] = {}
        self._known: dict[str, bool] = {}

    # --- values -----------------------------------------------------------------------------------------------

    def admit(self, request: R) -> R:
        """Return a request with what its reader may see of its values.

        Raises:
            ModelError: It is private as a whole, or of a kind that nobody here knows.
        """
        if not self.is_remote:
            return request
        if is_private_request(self._library, request):
            raise ModelError("It is private, and the model is not on this machine; nothing was sent.", retryable=True)
        from brainiac.llm import schemas  # pydantic's models, which a search need not wait for

        changed: dict[str, Any] = {}
        if hasattr(request, "short_term"):
            changed["short_term"] = self.short_term(request.short_term)
        match request:
            case schemas.QueriesRequest():
                changed["conversation"] = self.turns(request.conversation)
            case schemas.AnswerRequest():
                changed |= {"conversation": self.turns(request.conversation), "hits": self.hits(request.hits)}
            case schemas.ReflectRequest():
                changed["exchange"] = self._without_secrets(request.exchange)
            case schemas.ConsolidateRequest():
                changed["said"] = [said for said in request.said if self._is_shown(said.event)]
                changed |= {"existing": self._existing(request.existing), "pages": self._page_names(request.pages)}
                changed["marked"] = ()  # nobody but the keyless engine, which is on this machine, needs them
            case schemas.SynthesizeRequest():
                changed |= {"events": self.events(request.events), "folders": self._folders(request.folders)}
                changed["standing"] = self._existing(request.standing)
            case schemas.SummarizeRequest():
                changed |= {"remaining": self.events(request.remaining), "archived": self.events(request.archived)}
            case schemas.OrganizeRequest():
                changed |= {"patterns": self._patterns(request.patterns), "structure": self._shown(request.structure)}
            case _:
                raise ModelError(f"A {type(request).__name__} is not known to the gate; nothing was sent.")
        return replace(request, **changed)

    def short_term(self, memory: ShortTermMemory) -> ShortTermMemory:
        """Return short-term memory without what is private."""
        if not self.is_remote:
            return memory
        if memory.is_private:
            return type(memory)()
        goals, facts, tasks = (
            tuple(item for item in items if not item.is_private) for items in (memory.goals, memory.facts, memory.tasks)
        )
        summary = self._lines(self._tree.relative(self._tree.short_term), unmarked(memory.summary) or "")
        events = tuple(self.events(memory.events))
        return replace(memory, summary=summary, goals=goals, facts=facts, tasks=tasks, events=events)

    def events(self, events: Iterable[StmEvent]) -> list[StmEvent]:
        """Return the exchanges that may be shown; one whose prompt says `private` by now is not."""
        return [event for event in events if not self.is_remote or self._is_shown(event)]

    def _is_shown(self, event: StmEvent) -> bool:
        return not is_private_event(event) and not self.is_private_by_now(event.id)

    def is_private_by_now(self, exchange: str) -> bool:
        """Return whether a file of an exchange says so now, whatever was noted when it was said."""
        path = self._library.answered.place_of(exchange) if self.is_remote else None
        return path is not None and (not self.knows(path) or is_off_record(self._library.read(path)))

    def turns(self, turns: Iterable[Exchange]) -> list[Exchange]:
        """Return earlier turns of a conversation that may be shown, without secrets: the inbox holds them as typed."""
        if not self.is_remote:
            return list(turns)
        shown = (turn for turn in turns if not turn.is_private and self.knows(turn.prompt.path))
        return [self._without_secrets(turn) for turn in shown]

    def _without_secrets(self, turn: Exchange) -> Exchange:
        response = turn.response and replace(turn.response, text=redact(self._library, turn.response.text))
        return replace(
            turn, prompt=replace(turn.prompt, text=redact(self._library, turn.prompt.text)), response=response
        )

    def hits(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return what was found and may be shown, without lines that tell of what is hidden."""
        hits = list(hits)
        if self._is_kept:
            unheard = {path for path in {hit.path for hit in hits} if is_off_record(self._library.read(path))}
            hits = [hit for hit in hits if hit.path not in unheard]
        if not self.is_remote:
            return hits
        shown = ((hit, self._lines(hit.path, hit.text)) for hit in hits if self._may_be_shown(hit))
        return [hit if text == hit.text else replace(hit, text=text) for hit, text in shown if text.strip()]

    def _may_be_shown(self, hit: Hit) -> bool:
        if PRIVATE.search(hit.text) or not self.knows(hit.path):
            return False
        page, rest = self._page(hit.path)
        if hit.kind == "exchange" and (self.is_private_by_now(hit.anchor) or _is_withheld(hit.anchor, page)):
            return False
        if rest is None:
            return False
        return rest == page or hit.kind == "exchange" or _folded(hit.text) in _folded(rest)

    def _page(self, path: str) -> tuple[str, str | None]:
        """Return a note's text, and what of it may be shown; a day's page is long and has many of the hits."""
        if path not in self._pages:
            text = self._library.read_text(path) or ""
            self._pages[path] = text, shareable(text)
        return self._pages[path]

    def _existing(self, statements: Iterable[Existing]) -> list[Existing]:
        """Return the statements that stand on what may be shown of their pages."""
        shown = []
        for statement in statements:
            page, rest = self._page(statement.path)
            text = _folded(statement.content)
            is_cut = rest is None or (text in _folded(page) and text not in _folded(rest))
            if not is_cut and not PRIVATE.search(statement.content) and self.knows(statement.path):
                content = self._lines(statement.path, statement.content) or WITHHELD
                shown.append(replace(statement, content=content))
        return shown

    def _page_names(self, pages: Iterable[PageName]) -> list[PageName]:
        """Return the pages that may be known, each with what of its line stands openly there."""
        shown = []
        for page in pages:
            if self.knows(page.path):
                _, rest = self._page(page.path)
                is_open = rest is not None and _folded(page.about) in _folded(rest)
                shown.append(replace(page, about=self._lines(page.path, page.about) if is_open else ""))
        return shown

    def _folders(self, folders: Mapping[str, str]) -> dict[str, str]:
        """Return the folders that may be known, each with what its index page tells."""
        top = self._tree.relative(self._tree.long_term)
        found = {}
        for name, about in folders.items():
            if self.knows(f"{top}/{name}"):
                shown = self.note(f"{top}/{name}/_index.md", ("memory",)) if about else ""
                found[name] = about if shown is not None and _folded(about) in _folded(shown) else ""
        return found

    def _shown(self, structure: Mapping[str, int]) -> dict[str, int]:
        return {folder: entries for folder, entries in structure.items() if self.knows(folder)}

    def _patterns(self, patterns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rows of statistics all of whose pages and folders may be known."""
        return {
            name: [row for row in rows if all(map(self.knows, _paths_in(row)))] if isinstance(rows, list) else rows
            for name, rows in patterns.items()
        }

    # --- files ------------------------------------------------------------------------------------------------

    def knows(self, path: str) -> bool:
        """Return whether the reader may know of a file or folder."""
        if not self.is_remote:
            return True
        if path not in self._known:
            self._known[path] = not is_hidden(self._tree, path)
        return self._known[path]

    def note(self, path: str, tops: Sequence[str] = ("memory", "inbox")) -> str | None:
        """Return the text of a note that a link or a model names, or None where it may not be shown or is not there.

        Args:
            path: As named.
            tops: Folders of the layout that it must lie in.
        """
        for top in tops:
            try:
                absolute = self._tree.confine(path, inside=getattr(self._tree, top))
            except ConfinementError:
                continue
            if absolute.suffix in (".md", ".txt"):
                is_withheld = self._is_kept and is_off_record(self._library.read(absolute))
                return None if is_withheld else self._shown_note(self._tree.relative(absolute))
        return None

    def _shown_note(self, path: str) -> str | None:
        text = self._library.read_text(path)
        if text is None or not self.is_remote:
            return text
        if not self.knows(path) or (shown := shareable(text)) is None:
            return None
        if path.startswith(f"{self._tree.relative(self._tree.inbox)}/"):
            return redact(self._library, shown)  # as it was typed, keys and all
        shown = _without(shown, [each for each in find_events(shown) if self.is_private_by_now(each.event.id)])
        return self._lines(path, shown)

    def own(self, path: Path) -> str | None:
        """Return a file of `system/`: the identity, a template, a workflow; None where it may not be shown."""
        text = self._library.read_text(path)
        return shareable(text) if text is not None and self.is_remote else text

    def _lines(self, path: str, text: str) -> str:
        return without_hidden(self._tree, path, text) if self.is_remote else text

    # --- the last look ----------------------------------------------------------------------------------------

    def release(self, messages: Iterable[Mapping[str, Any]]) -> Released:
        """Return messages as they may be sent; a paragraph with a private mark, from wherever it came, is left out."""
        content = [{**each, "content": _cleared(each.get("content"))} if self.is_remote else each for each in messages]
        return Released(content, self.is_remote)


class GatedEngine:
    """An engine that a plugin registered, which is shown what the gate admits.

    Args:
        library: Whose memory.
        engine: The plugin's.
    """

    def __init__(self, library: Library, engine: Engine) -> None:
        self._library, self._engine = library, engine

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def is_remote(self) -> bool:
        return self._engine.is_remote

    def run(self, request: Request) -> Result:
        """Serve one request; what an answer cites is told by its place among the hits of the caller."""
        admitted = Gate(self._library, is_remote=self.is_remote).admit(request)
        result = self._engine.run(admitted)
        was, now = getattr(request, "hits", ()), getattr(admitted, "hits", ())
        cited: Sequence[int] = getattr(result, "cited", ())
        if len(was) == len(now) or not cited:
            return result
        places = {id(hit): number for number, hit in enumerate(_matched(was, now))}
        answer: Answer = result  # type: ignore[assignment]  # only an answer cites
        numbers = [places[id(now[number])] for number in cited if 0 <= number < len(now) and id(now[number]) in places]
        return answer.model_copy(update={"cited": numbers})


def _matched(was: Sequence[Hit], now: Sequence[Hit]) -> list[Hit | None]:
    """Return for each hit the one that is left of it, in order; None where none is."""
    left = list(now)
    found: list[Hit | None] = []
    for hit in was:
        is_left = bool(left) and (left[0].path, left[0].anchor, left[0].score) == (hit.path, hit.anchor, hit.score)
        found.append(left.pop(0) if is_left else None)
    return found


def is_private_request(library: Library, request: Request) -> bool:
    """Return whether a request must stay on this machine as a whole: by itself, or by what its prompt says now."""
    if request.is_private:
        return True
    exchange, prompt = getattr(request, "exchange", None), getattr(request, "prompt", None)
    if exchange is not None:
        prompt = exchange.prompt
    is_said = (prompt is not None and prompt.private) or (exchange is not None and exchange.is_private)
    if is_said or (prompt is not None and prompt.path and is_hidden(library.tree, prompt.path)):
        return True
    events = getattr(request, "events", ()) if hasattr(request, "candidates") else ()
    return any(is_private_event(event) for event in events)  # what was made of them would tell of them


def _is_withheld(exchange: str, page: str) -> bool:
    return any(placed.event.id == exchange and is_private_event(placed.event) for placed in find_events(page))


def _paths_in(row: Any) -> list[str]:
    if not isinstance(row, Mapping):
        return [str(row)]
    named = [*row.get("paths", ()), row.get("path"), row.get("folder")]
    return [str(path) for path in named if path]


def _without(text: str, places: Sequence[Any]) -> str:
    for placed in reversed(places):
        text = text[: placed.start] + text[placed.end :]
    return text


def _cleared(content: Any) -> Any:
    if isinstance(content, str):
        parts = _GAP.split(content) if PRIVATE.search(content) else [content]
        return "".join(WITHHELD if PRIVATE.search(part) else part for part in parts)
    if isinstance(content, list):
        return [{**part, "text": _cleared(part["text"])} if "text" in part else part for part in content]
    return content


def _folded(text: str) -> str:
    """Fold white space, and the escapes that a text bears in a file."""
    return " ".join(text.replace("\\", "").split())
