"""Tools by which an answering model sees more than was retrieved: typed, confined, bounded, fenced (seeds R3, R8)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from brainiac.clock import moment_in
from brainiac.errors import ConfinementError, FormatError
from brainiac.formats.dialogue import StmEvent, parse_exchanges
from brainiac.formats.prompt import Exchange, parse_prompt, parse_response, prompt_path_of, response_path
from brainiac.library import Library
from brainiac.llm.catalog import count
from brainiac.llm.context.blocks import TOOL_TOKENS, shortened
from brainiac.llm.context.fence import one_line, quoted, reference
from brainiac.llm.context.long_term import page_text
from brainiac.llm.context.pages import Pages
from brainiac.llm.context.short_term import event_text
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import AnswerRequest
from brainiac.search.hit import Hit
from brainiac.search.index import LinkedPage
from brainiac.tree import is_temporary

RESULT_TOKENS = 2_000
MAX_ENTRIES = 100


class _Parameters(BaseModel):
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


class Toolbox:
    """The tools of one answer, with what they may still give out.

    Args:
        library: Whose memory.
        request: The answer they serve.
        gate: What may be given out.
        room_tokens: All that they may give out.

    Attributes:
        read: Paths of long-term memories whose text was given out, for the access log.
    """

    def __init__(self, library: Library, request: AnswerRequest, gate: Gate, *, room_tokens: int = TOOL_TOKENS) -> None:
        self._library, self._request, self._gate = library, request, gate
        self._room_tokens = room_tokens
        self._pages: Pages | None = None
        self._hits = list(request.hits)
        self.read: list[str] = []
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
        """Run a tool and return its result as data; what went wrong is told to the model, never raised.

        Args:
            name: As the model wrote it.
            arguments: JSON as the model wrote it.
        """
        if self._room_tokens <= 0:
            return "Error: the tools have given out all that this answer may read; answer from what you have."
        if name not in self._tools:
            return f"Error: there is no tool `{one_line(name)}`; there are {', '.join(self._tools)}."
        model, run = self._tools[name]
        try:
            result = run(model.model_validate_json(arguments or "{}"))
        except ValidationError as error:
            told = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:3])
            return f"Error: {one_line(told, 300)}. Call it again with {_schema(model)['properties']}."
        except (ConfinementError, FormatError) as error:
            return f"Error: {one_line(str(error), 300)}"
        self._room_tokens -= count(result)
        return result

    def _search(self, wanted: SearchMemories) -> str:
        pages: dict[str, list[Hit]] = {}
        is_private = self._request.is_private or not self._gate.is_remote  # a model here may repeat what is private
        found = self._library.recall.search(
            wanted.query, limit=wanted.limit, now=self._request.now, is_private=is_private
        )
        for hit in self._gate.hits(found):
            self._hits.append(hit)
            pages.setdefault(hit.path, []).append(hit)
        for path in pages:
            self._note_read(path)
        return "\n\n".join(page_text(self._library, hits, count) for hits in pages.values()) or "Nothing found."

    def _read(self, wanted: ReadMemory) -> str:
        page = self._page(wanted.id)
        text = self._gate.note(page.path, ("memory",)) if page else None
        if not page or text is None:
            return f"Error: no memory `{one_line(wanted.id)}`."
        self._note_read(page.path)
        return f"### {reference(page.title, page.path, page.uuid)}\n{quoted(shortened(text, RESULT_TOKENS, count))}"

    def _list(self, wanted: ListDirectory) -> str:
        memory = self._library.tree.memory
        folder = self._library.tree.confine(wanted.path.strip() or ".", inside=memory)
        if not folder.is_dir():
            return f"Error: no folder `{one_line(wanted.path)}`."
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if not is_temporary(entry.name) and not entry.is_symlink()
                if self._gate.knows(self._library.tree.relative(entry.path))
            )
        more = [f"… and {len(names) - MAX_ENTRIES} more"] if len(names) > MAX_ENTRIES else []
        return (
            quoted("\n".join([*(f"- {one_line(name)}" for name in names[:MAX_ENTRIES]), *more])) if names else "Empty."
        )

    def _follow(self, wanted: FollowLinks) -> str:
        page = self._page(wanted.id)
        if page is None:
            return f"Error: no memory `{one_line(wanted.id)}`."
        assert self._pages is not None
        groups = (("Links to", self._pages.linked_from(page)), ("Linked from", self._pages.linking_to(page)))
        return "\n".join(f"{title}:\n{_listed(pages)}" for title, pages in groups)

    def _exchange(self, wanted: ReadExchange) -> str:
        recent = (event for event in self._request.short_term.events if event.id == wanted.id)
        event = next(recent, None) or (
            self._from_inbox(wanted.id) if "/" in wanted.id else self._from_events(wanted.id)
        )
        if event is None or not self._gate.events([event]):
            return f"Error: no exchange `{one_line(wanted.id)}`."
        return event_text(replace(event, at=moment_in(self._library.zone, event.at)), RESULT_TOKENS, count)

    def _from_inbox(self, path: str) -> StmEvent | None:
        path = next(iter(prompt_path_of(path)), path)
        absolute = self._library.tree.confine(path, inside=self._library.tree.inbox)
        raw = self._library.read(absolute)
        if raw is None or is_temporary(absolute.name):
            return None
        prompt = parse_prompt(self._library.tree.relative(absolute), raw, at="")
        answer = self._library.read(response_path(prompt.path))
        response = parse_response(response_path(prompt.path), answer) if answer else None
        turns = self._gate.turns([Exchange("", prompt, response, (response and response.created_at) or prompt.path)])
        if not prompt.remember or not turns:
            return None
        turn = turns[0]
        return StmEvent("", turn.at, turn.prompt.text, turn.response.text if turn.response else "")

    def _from_events(self, exchange_id: str) -> StmEvent | None:
        hits = [hit for hit in self._hits if hit.kind == "exchange" and hit.anchor == exchange_id]
        for hit in hits:
            for event in parse_exchanges(self._gate.note(hit.path, ("memory",)) or ""):
                if event.id == exchange_id:
                    self._note_read(hit.path)
                    return event
        return None

    def _page(self, link: str) -> LinkedPage | None:
        if self._pages is None:
            self._pages = Pages.of(self._library, self._gate)
        found = self._pages.find(link)
        return found[0] if len(found) == 1 else None

    def _note_read(self, path: str) -> None:
        long_term = self._library.tree.relative(self._library.tree.long_term)
        if path.startswith(long_term + "/") and path not in self.read:
            self.read.append(path)


def _listed(pages: Sequence[LinkedPage]) -> str:
    lines = [f"- {reference(page.title, page.path, page.uuid)}" for page in pages[:MAX_ENTRIES]]
    return "\n".join(lines) or "- none"


def _schema(model: type[_Parameters]) -> dict[str, Any]:
    schema = model.model_json_schema()
    properties = {
        name: {k: v for k, v in field.items() if k != "title"} for name, field in schema["properties"].items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}
