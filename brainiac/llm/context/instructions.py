"""Instructions for each purpose, the form of its result, and the workflows of a person.

A purpose has one template; the brain's `system/prompts/NAME.md` replaces it. Workflows are procedures in
`system/workflows/`, started from a prompt's front matter.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from brainiac.errors import ConfinementError, FormatError, ModelError
from brainiac.formats.frontmatter import split
from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Stability, safe_line
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import Result
from brainiac.text.tokens import as_sentence

_VALUE = re.compile(r"\{\{\s*(.*?)\s*\}\}")  # in a template
_NOT_FOR_MODELS = ("title", "maxLength", "maxItems", "default", "description")


def instructions(library: Library, gate: Gate, name: str, **values: Any) -> str:
    """Return the instructions for a purpose.

    Args:
        library: The memory, whose `system/prompts/NAME.md` replaces the built-in template.
        gate: The gate; where it withholds the brain's own template, the built-in one is used.
        name: A purpose, or `base` for the context that all purposes share.
        values: The variables of the template: `schema`, `tools`, `rounds`, `background`, `complaint`, `is_turn`.

    Raises:
        ModelError: The brain's own template does not work.
    """
    path = library.tree.prompts / f"{name}.md"
    source = gate.system_text(path) if os.path.lexists(path) else None
    if source is None:
        return _built_in(name, tuple(sorted(values.items())))  # hashable, for its cache
    relative = library.tree.relative(path)
    try:
        return _filled_in(source[split(source, relative)[1] :].strip(), values)
    except (FormatError, ValueError) as error:
        problem = error.problem if isinstance(error, FormatError) else str(error)
        raise ModelError(
            as_sentence(f"The template {relative} does not work: {problem}"),
            advice="Mend it, or remove it to go back to the built-in one.",
        ) from error


def _filled_in(text: str, values: Mapping[str, Any]) -> str:
    """Return a person's template with its values in it. Nothing is computed: a synced one may come from anybody.

    Raises:
        ValueError: It has a statement, or a value that there is not.
    """
    if "{%" in text:
        raise ValueError("it has a statement (`{%`); only values such as `{{ schema }}` are filled in")
    if unknown := [name for name in _VALUE.findall(text) if name not in values]:
        raise ValueError(f"there is no value `{unknown[0][:80]}`; there are {', '.join(values)}")
    return _VALUE.sub(lambda match: str(values[match[1]]), text)


@lru_cache(maxsize=64)
def _built_in(name: str, values: tuple[tuple[str, Any], ...]) -> str:
    """Return a built-in template with its values filled in."""
    from jinja2 import Template  # an answer of the offline engine needs no template and should not wait for it

    source = (files("brainiac.llm") / "prompts" / f"{name}.md").read_text("utf-8")
    text: str = Template(source[split(source)[1] :]).render(dict(values))
    return text.strip()


@lru_cache(maxsize=16)
def schema_of(result: type[Result]) -> dict[str, Any]:
    """Return a result's JSON schema without bounds, titles and descriptions, for servers that enforce a schema."""
    schema: dict[str, Any] = _without_bounds(result.model_json_schema())
    return schema


@lru_cache(maxsize=16)
def form_of(result: type[Result]) -> str:
    """Return the schema of a result in a short form for instructions, with a third of the tokens of JSON schema."""
    schema = schema_of(result)
    return _form(schema, schema.get("$defs", {}))


def _form(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the short form of a JSON schema: `{name: string, kind: "a"|"b", items: [...]}`."""
    if name := schema.get("$ref"):
        return _form(definitions[name.rpartition("/")[2]], definitions)
    if values := schema.get("enum"):
        return "|".join(json.dumps(value) for value in values)
    if choices := schema.get("anyOf"):
        return "|".join(_form(choice, definitions) for choice in choices)
    match schema.get("type"):
        case "array":
            return f"[{_form(schema['items'], definitions)}]"
        case "object":
            fields = (f"{name}: {_form(field, definitions)}" for name, field in schema.get("properties", {}).items())
            return "{" + ", ".join(fields) + "}"
    return str(schema.get("type"))


def _without_bounds(schema: Any) -> Any:
    """Return a JSON schema, or a part of one, without the keys of `_NOT_FOR_MODELS` at any depth."""
    if isinstance(schema, list):
        return [_without_bounds(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # the keys under `properties` are names of fields, which stay: one may be called `title`
    properties = {name: _without_bounds(value) for name, value in schema.get("properties", {}).items()}
    rest = {k: _without_bounds(v) for k, v in schema.items() if k not in ("properties", *_NOT_FOR_MODELS)}
    return {**rest, **({"properties": properties} if properties else {})}


# --- workflows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workflow:
    """A procedure of `system/workflows/`.

    Attributes:
        name: The name by which a prompt starts it.
        description: What it does, in a sentence.
        trigger: When it fits, in a sentence.
        steps: Its steps, Markdown.
    """

    name: str
    description: str
    trigger: str
    steps: str


def workflows(library: Library, gate: Gate) -> list[Workflow]:
    """Return the brain's workflows in the order of their files.

    A symbolic link out of the brain, a file that does not parse and one that the gate withholds are left out.
    """
    procedures = []
    for path in sorted(library.tree.workflows.glob("*.md")):
        try:
            text = gate.system_text(path)
            if text is None:
                continue
            meta, offset = split(text, library.tree.relative(path))
        # a broken workflow, which most prompts do not need, must not keep them from being answered
        except (ConfinementError, FormatError):
            continue
        name, description, trigger = (str(meta.get(key) or "") for key in ("name", "description", "trigger"))
        procedures.append(Workflow(name or path.stem, description, trigger, text[offset:].strip()))
    return procedures


def workflow_named(library: Library, gate: Gate, name: str) -> Workflow:
    """Return the workflow of a name, in any case of letters.

    Raises:
        ModelError: There is none, or the gate withholds it.
    """
    procedures = workflows(library, gate)
    for workflow in procedures:
        if workflow.name.casefold() == name.strip().casefold():
            return workflow
    names = ", ".join(workflow.name for workflow in procedures) or "none"
    raise ModelError(
        f"There is no workflow `{safe_line(name)}` that this model may be shown.",
        advice=f"Name one of system/workflows/ in the prompt's front matter: {names}. One that is private is for a "
        "model on this machine: add `private: true` to the prompt.",
    )


def workflow_block(procedures: list[Workflow]) -> Block:
    """Return the block that lists the workflows."""
    intro = "The person starts one with `workflow: NAME` in a prompt's front matter; suggest one where it fits."
    lines = [
        f"- `{safe_line(w.name)}`: {safe_line(w.description, 200)} When: {safe_line(w.trigger, 200)}"
        for w in procedures
    ]
    return Block("workflows", [intro, "\n".join(lines)] if lines else [], Stability.WORKFLOWS, "## Workflows")
