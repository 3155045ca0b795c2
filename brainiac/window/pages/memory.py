"""Why, wrong and forget: what every row of memory leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.history import forget as forgetting
from brainiac.history.undo import correct, possible_targets
from brainiac.window.frame import Done, Page, Visit

KINDS = {
    "page": "These pages go whole",
    "statement": "These sentences go",
    "note": "These notes of short-term memory go",
    "again": "These hold again, as before",
    "said": "This was said, and goes with its answer",
    "file": "These files of the inbox go",
}


def why(visit: Visit) -> Mapping[str, Any]:
    """Return what a memory rests on."""
    name = visit.need("name")
    return {"why": verbs.why(visit.brain, name), "name": name}


def wrong(visit: Visit) -> Mapping[str, Any]:
    """Return the statements or sentences that may be meant."""
    named = visit.need("name")
    targets = possible_targets(visit.brain, named)
    if not targets:
        raise UserError("no statement that holds now is called so, and nothing that you said")
    return {"targets": targets}


def forget(visit: Visit) -> Mapping[str, Any]:
    """Return what would be taken out, and what stays."""
    return {**plan_of(visit.brain, _target(visit)), "name": visit.need("name")}


def plan_of(brain: Brain, target: forgetting.Target) -> Mapping[str, Any]:
    """Return what forgetting a target takes out, by kind, with what stays, for `going.html`."""
    plan = forgetting.plan_forget(brain, target)
    effects = plan.effects()
    going = {word: [each for each in effects if each.kind == kind] for kind, word in KINDS.items()}
    going = {word: rows for word, rows in going.items() if rows}
    return {"going": going, "kept": plan.kept, "keys": " ".join(sorted(plan.keys))}


def _target(visit: Visit) -> forgetting.Target:
    """Return what is named by path, id or receipt, else all that holds these words, such as a task."""
    try:
        return forgetting.find_target(visit.brain, visit.need("name"))
    except UserError:
        if target := forgetting.find_words(visit.brain, visit.need("name")):
            return target
        raise


def put_right(visit: Visit) -> Done:
    """Give a statement another wording, as `brainiac correct` does."""
    targets = possible_targets(visit.brain, visit.need("name"))
    if len(targets) != 1:
        raise UserError("it has changed meanwhile, or several are called so; nothing was changed")
    before, text = targets[0].text, visit.given.get("text", "")
    event = correct(visit.brain, targets[0], text)
    return Done(f"“{before}” → “{text}”", event.id, to="" if visit.given.get("from") else "/")


def take_out(visit: Visit) -> Done:
    """Take something out of memory, as `brainiac forget` does."""
    event = forgetting.forget(visit.brain, _target(visit), shown=visit.given.get("keys", "").split())
    to = "/" if visit.given.get("from", "").startswith("/page") or not visit.given.get("from") else ""
    if event is None:
        return Done("Nothing of it stands in the tree.", to=to)
    return Done("Forgotten. The journal keeps it until “brainiac forget --purge” destroys it.", event.id, to=to)


PAGES = (
    Page("/why", "Why", why, is_listed=False),
    Page("/wrong", "Put right", wrong, is_listed=False),
    Page("/forget", "Forget", forget, is_listed=False),
)
ACTIONS = {"put-right": put_right, "forget": take_out}
