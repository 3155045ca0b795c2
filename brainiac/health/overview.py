"""What `status` tells of a brain, read cheaply: from the tree, the daemon's own report and the journal's last day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import FormatError, LockedError
from brainiac.events import PathKind
from brainiac.formats.prompt import error_path, response_path
from brainiac.health.readiness import nobody_answers, notices, shortfalls, survey
from brainiac.history.devices import rivals
from brainiac.storage.files import locked
from brainiac.storage.heartbeat import seen_lately, serves
from brainiac.storage.runstate import LOCK, read_run_state

COUNTED = {
    PathKind.MEMORY: "memories",
    PathKind.ARCHIVED: "archived",
    PathKind.PROMPT: "prompts",
    PathKind.RESPONSE: "responses",
    PathKind.CAPTURE: "notes",
}


def overview(brain: Brain) -> dict[str, Any]:
    """Return how a brain stands, as plain values; loads no plugin and no model."""
    inbox = {brain.tree.relative(entry.path) for entry in brain.tree.walk(brain.tree.inbox)}
    memory = (brain.tree.relative(entry.path) for entry in brain.tree.walk(brain.tree.memory))
    counts = Counter(map(brain.tree.kind_of, (*inbox, *memory)))
    daemon = _daemon(brain)
    return {
        "brain": str(brain.root),
        "brain_id": brain.settings.brain_id,
        "device": brain.journal.device,
        "active_device": brain.settings.active_device,
        "daemon": daemon,
        "model": brain.settings.llm.model,
        "counts": {name: counts[kind] for kind, name in COUNTED.items()} | {"exchanges_in_stm": _exchanges(brain)},
        "pending": daemon.pop("pending") if daemon["is_running"] else list(_unanswered(brain, inbox, daemon)),
        "problems": list(_problems(brain)),
        "notices": [str(notice) for notice in notices(brain)],
        **_last_day(brain),
        "budget_usd": brain.settings.llm.daily_budget_usd,
        "plugins": [asdict(plugin) for plugin in survey(brain)],
    }


def _daemon(brain: Brain) -> dict[str, Any]:
    state = read_run_state(brain.places.state)
    try:
        with locked(brain.places.state / LOCK, wait_seconds=0):
            other = seen_lately(brain)
            return {"is_running": False} | ({"elsewhere": serves(brain, other)} if other else {})
    except LockedError:
        known = ("pid", "since", "watch", "passed_over", "problem", "pending")
        return {"is_running": True, **{name: getattr(state, name) for name in known}}


def _exchanges(brain: Brain) -> int:
    return (brain.read_text(brain.tree.short_term) or "").count("\n<!-- event: ")


def _unanswered(brain: Brain, inbox: set[str], daemon: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the prompts that wait, and why; the journals are read only where no answer stands beside one."""
    from brainiac.pipeline.reconcile import read_prompt

    waits = daemon.get("elsewhere") or nobody_answers(brain) or "no daemon is running; start `brainiac run`"
    for path in sorted(inbox):
        if brain.tree.kind_of(path) is not PathKind.PROMPT or response_path(path) in inbox:
            continue
        try:
            prompt = read_prompt(brain, path)
        except FormatError as error:
            yield {"prompt": path, "reason": error.problem}
            continue
        if prompt is None or brain.answered.is_answered(prompt):
            continue
        told = error_path(path)
        reason = f"see {told}" if told in inbox else waits
        yield {"prompt": path, "reason": reason}


def _problems(brain: Brain) -> Iterator[str]:
    for found in shortfalls(brain):
        yield str(found)
    if held := brain.observed.held():
        what = f"{held[0]} and {len(held) - 1} more notes are gone, too many at once to be believed"
        yield f"{what}; put them back, or run `brainiac doctor --confirm-deletions` if they are to go"
    if others := rivals(brain):
        yield f"{', '.join(others)} uses this brain too; run `brainiac takeover` on the one that is to work"
    if not brain.tree.core_identity.is_file():
        yield f"{brain.tree.relative(brain.tree.core_identity)} is missing; `brainiac doctor --fix` puts one there"


def _last_day(brain: Brain) -> dict[str, Any]:
    """Return the faults of plugins in the last 24 hours, and what was spent today."""
    now = brain.clock.now()
    since, today = iso(now - timedelta(days=1)), iso(brain.midnight())
    faults: list[dict[str, Any]] = []
    spent_usd = 0.0
    for event in brain.journal.events(kinds={"plugin-failed", "model-called"}, reverse=True):
        if event.at < min(since, today):  # the day in which clocks are set back has 25 hours
            break
        if event.kind == "plugin-failed" and event.at >= since:
            faults.append({"at": event.at, "plugin": event.by, **event.data})
        elif event.kind != "plugin-failed" and event.at >= today:
            spent_usd += float(event.data.get("cost_usd", 0))
    return {"faults": faults, "spent_today_usd": round(spent_usd, 8)}
