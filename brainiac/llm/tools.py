"""The tools of an answering model, to read more of memory than was retrieved: confined and bounded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from brainiac.clock import moment_in
from brainiac.errors import ConfinementError, FormatError
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import StmEvent, parse_exchanges
from brainiac.formats.prompt import Exchange, parse_prompt, parse_response, prompt_path_of, response_path
from brainiac.library import Library
from brainiac.llm.catalog import count
from brainiac.llm.context.blocks import TOOL_TOKENS, quoted, reference, safe_line, shortened
from brainiac.llm.context.memory import ShownPages, event_of, event_text, page_text, with_hand
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import AnswerRequest
from brainiac.search.documents import Hit
from brainiac.search.documents import Page as LinkedPage
from brainiac.tree import is_temporary

RESULT_TOKENS = 2_000
MAX_ENTRIES = 100


class _Parameters(BaseModel):
    """The parameters of a tool; the docstring of each subclass is the tool's description for the model."""

    model_config = ConfigDict(extra="ignore", str_max_length=500)


class SearchMemories(_Parameters):
    """Search long-term memory by words; gives statements with the link and date of their page."""

    query: str
    limit: Annotated[int, Field(ge=1, le=10)] = 5


class ReadMemory(_Parameters):
    """Read one memory whole, by its uuid, link or path."""

    id: str


class ListDirectory(_Parameters):
    """List what a folder of memory holds, for example `memory/long_term/events/2025`."""

    path: str = "memory/long_term"


class FollowLinks(_Parameters):
    """List the memories that one memory links to, and those that link to it, by its uuid, link or path."""

    id: str


class ReadExchange(_Parameters):
    """Read what was said word for word: by the exchange's id, or by the path of a prompt in `inbox/`."""

    id: str


class _ToolError(Exception):
    """A tool cannot do what was asked; the message is shown to the model."""


class Toolbox:
    """The tools of one answer, with the number of tokens that they may still return.

    Args:
        library: The memory.
        request: The request that is answered.
        gate: Filters all that the tools read.
        room_tokens: How many tokens all results together may have. The last result may go over it.

    Attributes:
        read: Paths of long-term memories whose text was returned, for the access log.
    """

    def __init__(self, library: Library, request: AnswerRequest, gate: Gate, *, room_tokens: int = TOOL_TOKENS) -> None:
        self._library, self._request, self._gate = library, request, gate
        self._room_tokens, self._hits, self.read = room_tokens, list(request.hits), list[str]()
        self._tools: dict[str, tuple[type[_Parameters], Callable[[Any], str]]] = {
            "search_memories": (SearchMemories, self._search),
            "read_memory": (ReadMemory, self._read),
            "list_directory": (ListDirectory, self._list),
            "follow_links": (FollowLinks, self._follow),
            "read_exchange": (ReadExchange, self._exchange),
        }

    def definitions(self) -> list[dict[str, Any]]:
        """Return the tools as the chat protocol takes them."""
        return [
            {"type": "function", "function": {"name": name, "description": model.__doc__, "parameters": _schema(model)}}
            for name, (model, _) in self._tools.items()
        ]

    def descriptions(self) -> tuple[str, ...]:
        """Return a line on each tool, for a person and for working memory."""
        return tuple(
            f"`{name}({', '.join(model.model_fields)})`: {model.__doc__}" for name, (model, _) in self._tools.items()
        )

    def call(self, name: str, arguments: str) -> str:
        """Run a tool and return its result as fenced data, or an error message for the model; nothing is raised.

        Args:
            name: The tool's name as the model wrote it.
            arguments: Its arguments as the model wrote them, JSON.
        """
        if self._room_tokens <= 0:
            return "Error: the tools have given out all that this answer may read; answer from what you have."
        if name not in self._tools:
            return f"Error: there is no tool `{safe_line(name)}`; there are {', '.join(self._tools)}."
        model, run = self._tools[name]
        # a model that gets a message calls again; an exception would end the answer
        try:
            result = run(model.model_validate_json(arguments or "{}"))
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:3]]
            return f"Error: {safe_line('; '.join(problems), 300)}. Call it again with {_schema(model)['properties']}."
        except (ConfinementError, FormatError, _ToolError) as error:
            return f"Error: {safe_line(str(error), 300)}"
        self._room_tokens -= count(result)
        return result

    def _search(self, parameters: SearchMemories) -> str:
        """Return the statements and exchanges that a search finds, by page."""
        # the query of a local model may repeat something private: no remote embedder may see it
        is_private = self._request.is_private or self._gate.model > Audience.ANYONE
        hits = self._library.recall.search(
            parameters.query, limit=parameters.limit, now=self._request.now, is_private=is_private
        )
        pages: dict[str, list[Hit]] = {}
        for hit in with_hand(self._library, self._gate.hits(hits)):
            # kept for `read_exchange`, which looks for an exchange on the pages of the hits
            self._hits.append(hit)
            pages.setdefault(hit.path, []).append(hit)
            self._note_read(hit.path)
        texts = [page_text(self._library, page, count, has_ids=True) for page in pages.values()]
        return "\n\n".join(texts) or "Nothing found."

    def _read(self, parameters: ReadMemory) -> str:
        """Return a page, shortened to `RESULT_TOKENS`."""
        page = self._page(parameters.id)
        text = self._gate.read_note(page.path, tops=("memory",))
        if text is None:
            raise _ToolError(f"no memory `{parameters.id}`.")
        self._note_read(page.path)
        return f"### {reference(page.title, page.path, page.uuid)}\n{quoted(shortened(text, RESULT_TOKENS, count))}"

    def _list(self, parameters: ListDirectory) -> str:
        """Return the names in a folder of memory, hidden ones left out."""
        tree = self._library.tree
        folder = tree.confine(parameters.path.strip() or ".", inside=tree.memory)
        if not folder.is_dir():
            raise _ToolError(f"no folder `{parameters.path}`.")
        names = names_in(self._library, self._gate, folder)
        lines = [f"- {safe_line(name)}" for name in names[:MAX_ENTRIES]]
        lines += [f"… and {len(names) - MAX_ENTRIES} more"] if len(names) > MAX_ENTRIES else []
        return quoted("\n".join(lines)) if lines else "Empty."

    def _follow(self, parameters: FollowLinks) -> str:
        """Return the pages that a page links to, and those that link to it."""
        page = self._page(parameters.id)
        groups = {"Links to": self._pages.linked_from(page), "Linked from": self._pages.linking_to(page)}
        lines = []
        for title, pages in groups.items():
            links = [reference(other.title, other.path, other.uuid) for other in pages[:MAX_ENTRIES]]
            lines += [f"{title}:", *(f"- {link}" for link in links or ["none"])]
        return "\n".join(lines)

    def _exchange(self, parameters: ReadExchange) -> str:
        """Return an exchange word for word: from short-term memory, the inbox, or a page that was found."""
        name, events = parameters.id, [event for event in self._request.short_term.events if event.id == parameters.id]
        if not events and "/" in name:  # a path names a file of the inbox
            events = self._from_inbox(name)
        # an id names an exchange on the page of a day among the hits of this answer
        hits = [] if events or "/" in name else self._hits
        for path in dict.fromkeys(hit.path for hit in hits if (hit.kind, hit.anchor) == ("exchange", name)):
            text = self._gate.read_note(path, tops=("memory",)) or ""
            if events := [event for event in parse_exchanges(text) if event.id == name]:
                self._note_read(path)
                break
        if not (events := self._gate.events(events)):
            raise _ToolError(f"no exchange `{parameters.id}`.")
        event = replace(events[0], at=moment_in(self._library.zone, events[0].at))
        return event_text(event, RESULT_TOKENS, count)

    def _from_inbox(self, path: str) -> list[StmEvent]:
        """Return the exchange of a prompt's file; [] where there is none, or it is off the record or hidden."""
        # models often give the path of the response instead
        path = next(iter(prompt_path_of(path)), path)
        absolute = self._library.tree.confine(path, inside=self._library.tree.inbox)
        raw = self._library.read(absolute)
        if raw is None or is_temporary(absolute.name):
            return []
        prompt = parse_prompt(self._library.tree.relative(absolute), raw, at="")
        answer = self._library.read(response_path(prompt.path))
        response = parse_response(response_path(prompt.path), answer) if answer else None
        # the model is shown when it was answered, else where it stands
        at = (response and response.created_at) or prompt.path
        turns = [Exchange("", prompt, response, at)] if prompt.remember else []
        return list(map(event_of, self._gate.turns(turns)))

    @cached_property
    def _pages(self) -> ShownPages:
        return ShownPages(self._library, self._gate)

    def _page(self, link: str) -> LinkedPage:
        """Return the page that a link means.

        Raises:
            _ToolError: It means none, or several.
        """
        if len(matches := self._pages.find(link)) != 1:
            raise _ToolError(f"no memory `{link}`.")
        return matches[0]

    def _note_read(self, path: str) -> None:
        """Add a memory to `read`, once."""
        long_term = self._library.tree.relative(self._library.tree.long_term)
        if path.startswith(long_term + "/") and path not in self.read:
            self.read.append(path)


def names_in(library: Library, gate: Gate, folder: Path) -> list[str]:
    """Return the names in a folder that may be shown, sorted; a folder's ends with a slash."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(
            entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
            for entry in entries
            # a symbolic link may lead out of the brain
            if not is_temporary(entry.name) and not entry.is_symlink()
            if gate.knows(library.tree.relative(entry.path))
        )


def _schema(model: type[_Parameters]) -> dict[str, Any]:
    """Return the JSON schema of a tool's parameters, without titles."""
    schema = model.model_json_schema()
    properties = {
        name: {k: v for k, v in field.items() if k != "title"} for name, field in schema["properties"].items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}
