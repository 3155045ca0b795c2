"""Instructions by purpose: one template a role, replaced by the brain's `system/prompts/NAME.md` where there is one."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from importlib.resources import files
from typing import Any

from brainiac.errors import FormatError, ModelError
from brainiac.formats.frontmatter import split
from brainiac.library import Library
from brainiac.llm.context.template import rendered
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import Result

BASE = "base"
_NOT_FOR_MODELS = ("title", "maxLength", "maxItems", "default")


def instructions(library: Library, gate: Gate, name: str, **values: Any) -> str:
    """Return a role's instructions.

    Args:
        library: Its `system/prompts/NAME.md` replaces the built-in template; read anew when it changed.
        gate: Whether it may be shown that template; one that is private it may not.
        name: A purpose, or `base` for the context that all roles share.
        values: What the template may use: `schema`, `tools`, `rounds`, `background`, `complaint`.

    Raises:
        ModelError: The brain's own template does not work.
    """
    path = library.tree.prompts / f"{name}.md"
    own = gate.own(path) if os.path.lexists(path) else None
    given = tuple(sorted(values.items()))
    if own is None:
        return _built_in(name, given)
    relative = library.tree.relative(path)
    try:
        text, problem = rendered(own[split(own, relative)[1] :], given)
    except FormatError as error:
        text, problem = "", error.problem
    if problem:
        raise ModelError(
            f"The template {relative} does not work: {problem}.",
            advice="Mend it, or remove it to go back to the built-in one.",
        )
    return text


@lru_cache(maxsize=16)
def schema_of(result: type[Result]) -> str:
    """Return a result's JSON schema without what only bounds or names things: short enough for a small model."""
    return json.dumps(_without(result.model_json_schema()), separators=(",", ":"))


def _without(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = {name: _without(value) for name, value in schema.get("properties", {}).items()}
    rest = {k: _without(v) for k, v in schema.items() if k not in ("properties", "description", *_NOT_FOR_MODELS)}
    return {**rest, **({"properties": properties} if properties else {})}


@lru_cache(maxsize=64)
def _built_in(name: str, values: tuple[tuple[str, Any], ...]) -> str:
    from jinja2 import Template

    source = (files("brainiac.llm") / "prompts" / f"{name}.md").read_text("utf-8")
    text: str = Template(source[split(source)[1] :]).render(dict(values))
    return text.strip()
