"""Why, wrong and forget: what every row of memory leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainiac import verbs
from brainiac.errors import UserError
from brainiac.history import forget as forgetting
from brainiac.history.undo import correct, possible_targets
from brainiac.window.frame import Done, Page, Visit


def why(visit: Visit) -> Mapping[str, Any]:
    """Return what a memory rests on."""
    name = visit.need("name")
    return {"why": verbs.why(visit.brain, name).why, "name": name}


def wrong(visit: Visit) -> Mapping[str, Any]:
    """Return the statements or sentences that may be meant."""
    named = visit.need("name")
    targets = possible_targets(visit.brain, named)
    if not targets:
        raise UserError("no statement that holds now is called so, and nothing that you said")
    return {"targets": targets}


def forget(visit: Visit) -> Mapping[str, Any]:
    """Return what would be taken out, and what stays."""
    target = _target(visit)
    return {"plan": forgetting.plan_forget(visit.brain, target), "name": visit.need("name")}


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
    return Done(f"“{before}” → “{text}”", event.id, to="/")


def take_out(visit: Visit) -> Done:
    """Take something out of memory, as `brainiac forget` does."""
    event = forgetting.forget(visit.brain, _target(visit))
    if event is None:
        return Done("Nothing of it stands in the tree.", to="/")
    return Done("Forgotten. What the journal keeps, `brainiac forget --purge` destroys.", event.id, to="/")


PAGES = (
    Page("/why", "Why", why, is_listed=False),
    Page("/wrong", "Put right", wrong, is_listed=False),
    Page("/forget", "Forget", forget, is_listed=False),
)
ACTIONS = {"put-right": put_right, "forget": take_out}
