"""Named procedures in `system/workflows/`: listed for the role that may start them, written out when one is started
from a prompt's front matter (seeds R4)."""

from __future__ import annotations

from dataclasses import dataclass

from brainiac.errors import ConfinementError, FormatError, ModelError
from brainiac.formats.frontmatter import split
from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.context.fence import one_line, spoken
from brainiac.llm.gate import Gate


@dataclass(frozen=True, slots=True)
class Workflow:
    """A procedure.

    Attributes:
        trigger: In a sentence, when it fits.
        steps: Markdown.
    """

    name: str
    description: str
    trigger: str
    steps: str


def workflows(library: Library, gate: Gate) -> list[Workflow]:
    """Return the brain's workflows, by name; a link that leads out and a file that does not parse are passed over.

    Args:
        library: The library.
        gate: What may be shown of them.
    """
    found = []
    for path in sorted(library.tree.workflows.glob("*.md")):
        try:
            text = gate.own(path)
            if text is None:
                continue
            meta, offset = split(text, library.tree.relative(path))
        except (ConfinementError, FormatError):
            continue
        described = {key: str(meta.get(key) or "") for key in ("description", "trigger")}
        found.append(Workflow(str(meta.get("name") or path.stem), **described, steps=text[offset:].strip()))
    return found


def listed(known: list[Workflow]) -> Block:
    """Return the list of what may be started."""
    lines = [f"- `{one_line(w.name)}`: {one_line(w.description, 200)} When: {one_line(w.trigger, 200)}" for w in known]
    parts = ["The person starts one with `workflow: NAME` in a prompt's front matter; suggest one where it fits."]
    return Block("workflows", [*parts, "\n".join(lines)] if lines else [], Stability.WORKFLOWS, "## Workflows")


def started(known: list[Workflow], name: str) -> Block:
    """Return the steps of the one that a prompt starts.

    Raises:
        ModelError: There is none of that name.
    """
    for workflow in known:
        if workflow.name.casefold() == name.strip().casefold():
            heading = f"## Workflow: {one_line(workflow.name)}"
            return Block("workflow", [spoken(workflow.steps)], Stability.FOCUS, heading)
    there_are = ", ".join(workflow.name for workflow in known) or "none"
    raise ModelError(
        f"There is no workflow `{one_line(name)}` that this model may be shown.",
        advice=f"Name one of system/workflows/ in the prompt's front matter: {there_are}. One that is private is for a "
        "model on this machine: add `private: true` to the prompt.",
    )
