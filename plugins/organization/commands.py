"""`brainiac organize`: long-term memory put in order now, by how it was used; `review`: what waits for a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import command, note_edits
from brainiac.cli.styling import spinner
from brainiac.clock import iso, parse_iso
from brainiac.errors import LockedError, UserError
from brainiac.events import ReviewSettled
from brainiac.formats.markdown import without_link_targets
from brainiac.history.devices import require_active
from brainiac.storage.causes import MIN_ID_PART
from brainiac.storage.review import SECTIONS, Asked, asked_before, find_ticks, kind_of, lapses
from brainiac.terminal import say

from .run import organize as run
from .upkeep import LAPSE_DAYS, Upkeep, decide, settle_reviews, still_waiting, tidy_review


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(organize)
    app.command()(review)


@command()
def organize(brain: Brain) -> Iterator[Any]:
    """Link, move up, split, compress and archive memories by how they were used; heal links; derive manifests."""
    with spinner("looking at the tree") as progress:
        require_active(brain)
        note_edits(brain)
        Upkeep(brain).tend()
        try:
            outcome = run(brain, progress=progress)
        except LockedError as error:
            raise UserError(
                "memory is being organized already; `brainiac log --follow` shows when it is done"
            ) from error
    yield asdict(outcome) | {"refused": [(refused.proposal, refused.reason) for refused in outcome.refused]}
    for action in outcome.done:
        where = f" to {action.target}" if action.target else ""
        names = f"{len(action.paths)} pages" if len(action.paths) > 3 else ", ".join(action.paths)
        say(f"{action.kind}  {names}{where}" + (f" ({action.reason})" if action.reason else ""))
    for proposal in outcome.asked:
        say(f"asked  {proposal}; tick it in memory/review.md")
    for refused in outcome.refused:
        say(f"refused  {refused.proposal}: {refused.reason}")
    if not (outcome.done or outcome.asked or outcome.lines):
        say("Memory is well as it is.")
    else:
        say(f"{outcome.lines} lines of the access log counted.")


@command()
def review(
    brain: Brain, *, yes: list[str] | None = None, no: list[str] | None = None, waiting: bool = False
) -> Iterator[Any]:
    """Show what waits in memory/review.md for your word, by kind; with --yes and --no decide it.

    A line that you name wins over its kind, a kind over `all`. What is decided at once is undone as one.

    Args:
        yes (--yes NAME): Have it done: a line by its id, a kind (replace, retire, forget, organize, take-copy), or
            `all`; again for further ones.
        no (--no NAME): Decline it, likewise.
        waiting: What has no line yet, since only so many get one in a week (`review.max_new`).
    """
    require_active(brain)
    note_edits(brain)
    settle_reviews(brain)
    tidy_review(brain)
    ready = {record.id for record in still_waiting(brain)}
    names = ready if waiting else {tick.id for tick in find_ticks(brain.read_text(brain.tree.review) or "")}
    rows = [_row(each) for name, each in asked_before(brain).items() if name in names and not each.how]
    if yes or no:
        yield from _decide(brain, rows, [(name, True) for name in yes or ()] + [(name, False) for name in no or ()])
        return
    yield {"lines": rows, "waiting": len(ready)}
    for kind, title in SECTIONS.items():
        of_kind = [row for row in rows if row["kind"] == kind]
        say(f"{title} ({kind})") if of_kind else None
        for row in of_kind:
            until = f"; lapses on {brain.day_of(row['lapses'])}" if row["lapses"] else ""
            say(f"  {row['id'][-8:]}  {row['what']} (asked on {brain.day_of(row['asked'])}{until})")
    say("" if rows else "Nothing waits for your word.")
    if ready and not waiting:
        say(f"{len(ready)} more wait{'s' if len(ready) == 1 else ''}: `brainiac review --waiting`")
    if rows:
        option = " --waiting" * waiting
        say(f"`brainiac review{option} --yes NAME` or `--no NAME` decides: a line by its id, a kind, or all.")


def _row(asked: Asked) -> dict[str, str]:
    """Return what is printed of a proposal; `lapses` is "" for one that waits however long, or has no line yet."""
    record, until = asked.record, iso(parse_iso(asked.at) + timedelta(days=LAPSE_DAYS))
    what, kind, is_lapsing = without_link_targets(record.what), kind_of(record), lapses(record) and not record.waits
    return {"id": record.id, "kind": kind, "what": what, "asked": asked.at, "lapses": until * is_lapsing}


def _decide(brain: Brain, rows: Sequence[dict[str, str]], said: Sequence[tuple[str, bool]]) -> Iterator[Any]:
    """Decide what some names mean, and print what became of it and how it is taken back.

    Raises:
        UserError: A name means nothing.
    """
    decisions: dict[str, bool] = {}
    for name, is_accepted in sorted(said, key=lambda one: 2 if one[0] in SECTIONS else 1 if one[0] == "all" else 3):
        meant = [row["id"] for row in rows if name in ("all", row["kind"])]
        meant = meant or [row["id"] for row in rows if len(name) >= MIN_ID_PART and row["id"].endswith(name)]
        if not meant:
            raise UserError(f"{name!r} names no line that waits; `brainiac review` lists them")
        decisions |= dict.fromkeys(meant, is_accepted)  # the closest name comes last, and holds
    decided, words = decide(brain, decisions), {row["id"]: row["what"] for row in rows}
    tidy_review(brain)
    applied, undo = [each for each in decided if each.data["how"] == "applied"], ""
    if applied:
        # several decisions follow from one event; to forget is the event before its decision
        settled = next(brain.journal.events(kinds={ReviewSettled}, reverse=True)).id if len(decided) > 1 else ""
        undo = f"brainiac undo {settled or applied[0].cause or applied[0].id}"
    yield {"decided": {each.data["proposal"]: each.data["how"] for each in decided}, "undo": undo}
    for each in decided:
        say(f"{each.data['how']}: {words[each.data['proposal']]}")
    say(f"`{undo}` takes it back." if undo else "Nothing was changed.")
