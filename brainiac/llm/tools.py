"""The tools of an answering model, to read more of memory than was retrieved: confined and bounded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from brainiac.clock import moment_in
from brainiac.errors import ConfinementError, FormatError
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import parse_exchanges
from brainiac.library import Library
from brainiac.llm.catalog import count
from brainiac.llm.context.assembler import schema_of
from brainiac.llm.context.blocks import TOOL_TOKENS, quoted, reference, safe_line, shortened
from brainiac.llm.context.memory import ShownPages, event_text, page_text, with_hand
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import AnswerRequest
from brainiac.search.documents import Hit
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
    """Read whole: a memory by its uuid, link or path, an exchange by its id, a file of `inbox/` by its path."""

    id: str


class ListDirectory(_Parameters):
    """List what a folder of memory holds, for example `memory/long_term/events/2025`."""

    path: str = "memory/long_term"


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
        }

    def definitions(self) -> list[dict[str, Any]]:
        """Return the tools as the chat protocol takes them."""
        return [
            {"type": "function", "function": {"name": name, "description": of.__doc__, "parameters": schema_of(of)}}
            for name, (of, _) in self._tools.items()
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
            return f"Error: {safe_line('; '.join(problems), 300)}. Call it again with {schema_of(model)['properties']}."
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
            # kept for `read_memory`, which looks for an exchange on the pages of the hits
            self._hits.append(hit)
            pages.setdefault(hit.path, []).append(hit)
            self._note_read(hit.path)
        texts = [page_text(self._library, page, count, has_ids=True) for page in pages.values()]
        return "\n\n".join(texts) or "Nothing found."

    def _read(self, parameters: ReadMemory) -> str:
        """Return a page, a file of the inbox or an exchange word for word, shortened to `RESULT_TOKENS`."""
        name = parameters.id
        pages = ShownPages(self._library, self._gate).find(name)
        if len(pages) == 1 and (text := self._gate.read_note(pages[0].path, tops=("memory",))) is not None:
            self._note_read(pages[0].path)
            head = f"### {reference(pages[0].title, pages[0].path, pages[0].uuid)}\n"
            return head + quoted(shortened(text, RESULT_TOKENS, count))
        if text := self._gate.read_note(name, tops=("inbox",)):
            return quoted(shortened(text, RESULT_TOKENS, count))
        events = [event for event in self._request.short_term.events if event.id == name]
        # an id names an exchange on the page of a day among the hits of this answer
        hits = [] if events else self._hits
        for path in dict.fromkeys(hit.path for hit in hits if (hit.kind, hit.anchor) == ("exchange", name)):
            text = self._gate.read_note(path, tops=("memory",)) or ""
            if events := [event for event in parse_exchanges(text) if event.id == name]:
                self._note_read(path)
                break
        if not (events := self._gate.events(events)):
            raise _ToolError(f"no memory and no exchange `{name}`.")
        event = replace(events[0], at=moment_in(self._library.zone, events[0].at))
        return event_text(event, RESULT_TOKENS, count)

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
