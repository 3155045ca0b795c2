"""Instructions by purpose: one template a role, replaced by the brain's `system/prompts/NAME.md` where there is one."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from brainiac.errors import ModelError
from brainiac.llm.schemas import Result
from brainiac.notes.frontmatter import split

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.gate import Gate

BASE = "base"
_NOT_FOR_MODELS = ("title", "maxLength", "maxItems", "default")


def instructions(brain: Brain, gate: Gate, name: str, **values: Any) -> str:
    """Return a role's instructions.

    Args:
        brain: Its `system/prompts/NAME.md` replaces the built-in template; read anew when it changed.
        gate: Whether it may be shown that template; one that is private it may not.
        name: A purpose, or `base` for the context that all roles share.
        values: What the template may use: `schema`, `tools`, `rounds`, `background`, `complaint`.

    Raises:
        ModelError: The brain's own template does not work.
    """
    path = brain.tree.prompts / f"{name}.md"
    own = gate.own(path) if os.path.lexists(path) else None
    source = own if own is not None else _built_in(name)
    try:
        return _rendered(source, tuple(sorted(values.items())))
    except (_template_error(), ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"The template {brain.tree.relative(path)} does not work: {error}",
            advice="Mend it, or remove it to go back to the built-in one.",
        ) from error


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


@lru_cache(maxsize=32)
def _built_in(name: str) -> str:
    return (files("brainiac.llm") / "prompts" / f"{name}.md").read_text("utf-8")


@lru_cache(maxsize=64)
def _rendered(source: str, values: tuple[tuple[str, Any], ...]) -> str:
    from jinja2.sandbox import SandboxedEnvironment

    _, offset = split(source)
    # a synced template is not code of ours: sandboxed, and without access to anything but these values
    template = SandboxedEnvironment(autoescape=False).from_string(source[offset:])
    return template.render(dict(values)).strip()


def _template_error() -> type[Exception]:
    from jinja2 import TemplateError

    return TemplateError
