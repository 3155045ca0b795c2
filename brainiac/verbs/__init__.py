"""The table of the nine verbs that commands and doors share, and the verbs: search, fetch, briefing, list, why,
remember, ask, suggest and push.

A door is a program that reaches the memory for somebody: an assistant's tools, a browser, another program. It gets
nothing that is private or off the record, not in a result, an error or a count. What it gets is quoted as data,
limited in tokens, and continued by a cursor. No verb deletes or moves a file; the only file that one changes is a
prompt which its own client words anew.

REST, its OpenAPI and MCP read `VERBS`. What a verb takes is what its function takes: each parameter that is annotated
with a `Field` is an argument at every door, with the schema and the default that stand there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.history.why import Why
from brainiac.text.dates import TIMES
from brainiac.verbs.push import push, push_beside, waiting_for
from brainiac.verbs.reading import (
    PERSON,
    Briefing,
    Caller,
    Listing,
    Matches,
    Page,
    briefing,
    fetch,
    list_folder,
    search,
    why,
)
from brainiac.verbs.writing import Asked, Change, answer, ask, remember, save_prompt, suggest

__all__ = ["PERSON", "VERBS", "Asked", "Caller", "Change", "Verb", "answer", "ask"]
__all__ += ["briefing", "fetch", "list_folder", "push", "push_beside", "remember", "save_prompt", "search"]
__all__ += ["since_then", "suggest", "verb_named", "why"]


_At = Annotated[str, Field(description=f"as memory stood then: {TIMES}, or an event's id; empty: now")]


class _Arguments(BaseModel):
    """The arguments of a verb; a subclass for each."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _without_surrogates(cls, value: object) -> object:
        """Return a text without lone surrogates, which JSON can express and no file can hold."""
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


@dataclass(frozen=True)
class Verb:
    """A verb, as the doors offer it.

    Attributes:
        name: The same at every door.
        title: For a person.
        function: Called with the brain, the arguments by name, and the caller.
        result: The fields that every result has, with spaces between.
        is_reading: Whether it changes nothing.
        is_open: Whether it may call a model elsewhere; MCP calls that an open world.
        is_timed: Whether it can be asked of memory as it stood, with the argument `at`.
        beside: Returns further fields of the result for a caller, of memory as it is.
    """

    name: str
    title: str
    function: Callable[..., Any]
    result: str
    is_reading: bool = True
    is_open: bool = False
    is_timed: bool = True
    beside: Callable[[Brain, Caller], dict[str, Any]] = lambda brain, caller: {}

    @property
    def help(self) -> str:
        """When to use it and what it returns, for a model: the second paragraph of what the function says of itself."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n")[1].split())

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model of its arguments; each by the name that clients know."""
        hints = get_type_hints(self.function, include_extras=True)
        values: dict[str, Any] = {"__annotations__": {}, "__module__": __name__}
        for name, parameter in inspect.signature(self.function).parameters.items():
            # `X | None = None`: the function has a default of its own for the person, a door has the one of X
            is_optional = type(None) in get_args(hints[name])
            hint = get_args(hints[name])[0] if is_optional else hints[name]
            if hasattr(hint, "__metadata__"):
                values["__annotations__"][name] = hint
                if not is_optional and parameter.default is not parameter.empty:
                    values[name] = parameter.default
        if self.is_timed:
            values["__annotations__"]["at"], values["at"] = _At, ""
        return type(self.name, (_Arguments,), values)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {key: value for key, value in self.arguments.model_json_schema().items() if key != "title"}

    def call(self, brain: Brain, arguments: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Call it with arguments as a client wrote them, and return plain values.

        Raises:
            UserError: An argument is wrong; the message names the right ones.
            BrainiacError: The function raised it.
        """
        try:
            checked = self.arguments.model_validate(dict(arguments)).model_dump()
        except ValidationError as error:
            raise UserError(*map(self._problem, error.errors())) from None
        if at := checked.pop("at", ""):
            from brainiac.history.as_of import standing  # few ask for it, and it imports most of what there is

            with standing(brain, at, is_door=not caller.is_person) as then:
                result = self.function(then, **checked, caller=caller)
                return dict(result.to_json()) | since_then(then, result, caller)
        return dict(self.function(brain, **checked, caller=caller).to_json()) | self.beside(brain, caller)

    def _problem(self, problem: Any) -> str:
        """Return one of pydantic's errors as a sentence that names the right arguments, and never the wrong value."""
        where = ".".join(str(part) for part in problem["loc"])[:80]
        if problem["type"] == "extra_forbidden":
            return f"`{where}` is no argument of `{self.name}`, which takes {', '.join(self.schema['properties'])}"
        if problem["type"] == "missing":
            return f"`{self.name}` needs `{where}`: {self.schema['properties'][where]['description']}"
        return f"`{where}` of `{self.name}`: {problem['msg']}"


MAX_SINCE = 20  # lines on what became since


def since_then(memory: Brain, result: Any, caller: Caller = PERSON) -> dict[str, Any]:
    """Return the moment of memory as it stood, and what became since of the pages and statements in a result.

    Args:
        memory: The brain that was asked; of the present one nothing is returned.
        result: What a verb returned.
        caller: Who asks, and sees no more of the present than by asking now.
    """
    if memory.present is memory:
        return {}
    from brainiac.history.as_of import AsOf, changed_since  # as above

    assert isinstance(memory, AsOf)
    paths, words = list[str](), list[str]()
    match result:
        case Matches(matches=matches):
            paths, words = [match.hit.path for match in matches], [match.hit.text for match in matches]
        case Page(id=path) | Why(path=path):
            paths = [path]
        case Listing(entries=entries):
            paths = [entry.id for entry in entries]
        case Asked():
            paths = [str(receipt.get("path", "")).partition("#")[0] for receipt in result.receipts]
        case Briefing(memory=shown):
            pages, text = memory.pages().pages.items(), "\n".join(block.text for block in shown.blocks)
            paths = [path for path, page in pages if path in text or page.title in text]
    lines = changed_since(memory, caller.gate(memory.present), paths, words)
    more = [f"and {len(lines) - MAX_SINCE} more"] if len(lines) > MAX_SINCE else []
    return {"at": memory.at, "since": [*map(caller.fenced, lines[:MAX_SINCE]), *more]}


# always in the same order, or a host's prompt cache would miss
_VERBS = (
    Verb("search", "Search memory", search, "query results fresh cursor"),
    Verb("fetch", "Read a page", fetch, "id title text url fresh cursor"),
    Verb("briefing", "Brief me", briefing, "tokens budget_tokens fresh blocks cuts", beside=waiting_for),
    Verb("list", "List a folder", list_folder, "path about entries fresh cursor"),
    Verb("why", "Explain a memory", why, "path title chains said fresh cursor"),
    Verb("remember", "Remember", remember, "id is_new fresh waits", is_reading=False, is_timed=False),
    Verb("ask", "Ask this memory", ask, "prompt response fresh", is_reading=False, is_open=True),
    Verb("suggest", "Suggest a change", suggest, "id what is_new fresh", is_reading=False, is_timed=False),
    Verb("push", "Speak first", push, "text lines reason fresh", is_timed=False),
)
VERBS = {verb.name: verb for verb in _VERBS}


def verb_named(name: str) -> Verb:
    """Return the verb that a client names.

    Raises:
        UserError: There is none; the message names those that there are.
    """
    if name not in VERBS:
        raise UserError(f"{name[:80]!r} is no tool here; there are {', '.join(VERBS)}")
    return VERBS[name]
