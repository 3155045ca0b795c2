"""`brainiac why`, `undo`, `forget` and `adopt`: explain statements, and take back what was done."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, local_time, opened_brain, print_json, print_styled
from brainiac.cli.wording import sentence
from brainiac.events import Change, Event, ExchangeEvent, ExchangesImported
from brainiac.history import undo as taking_back
from brainiac.history.correct import take_back
from brainiac.history.forget import Target, find_target, find_words, plan_forget
from brainiac.history.forget import forget as take_out
from brainiac.history.purge import BEYOND, purge
from brainiac.storage.causes import commits_of, find_event, last_caused
from brainiac.storage.statements import adopt as release
from brainiac.storage.statements import plan_adoption
from brainiac.terminal import is_terminal, say

WIDE = 100_000
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,28}|hand-[0-9a-f]{12}")  # of a page or an exchange
_SIGNS = {"create": "+", "update": "~", "remove": "-", "move": ">"}


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(why)
    app.command()(undo)
    app.command()(forget)
    app.command()(adopt)


def why(
    named: Annotated[list[str], typer.Argument(metavar="MEMORY|STATEMENT", help="Path, title, uuid; or words, ^id.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a memory rests on: each change of each statement, down to the very sentence that was typed."""
    with opened_brain(is_reading=True) as brain:
        reason = verbs.why(brain, " ".join(named))
    if as_json:
        print_json(reason.to_json())
        return
    explanation = reason.why
    from brainiac.cli.why_tree import tree_of  # rich is heavy

    if not explanation.is_exact:
        say("No statement has just these words; the nearest:")
    # nobody's window is cut or wrapped: a script gets whole lines
    print_styled(tree_of(explanation), width=None if is_terminal(sys.stdout) else WIDE)


def undo(
    event: Annotated[
        str,
        typer.Argument(help="The event's id, or a part of it (`brainiac log`); or a statement's PATH#^id (`digest`)."),
    ] = "",
    last: Annotated[
        bool,
        typer.Option(
            "--last", help="What you last caused: a forgetting, a promotion, an exchange with all that followed."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what an event did, wholly, unless its files were changed since, or what became of one statement.

    That can be taken back too.
    """
    if bool(event) == last:
        raise typer.BadParameter("name an event or a statement, or give --last")
    if "#^" in event:
        _undo_statement(event, as_json=as_json)
        return
    with opened_brain() as brain:
        steps = last_caused(brain) if last else commits_of(brain, find_event(brain, event))
        done = taking_back.undo_all(brain, steps)
        meant, undone, undoing = done[-1]  # what led to the others
        stands = _still_stands(brain, meant)
    if as_json:
        later = [{"id": each.id, "kind": each.kind} for each in undoing.later]
        also = [asdict(event) for _, event, _ in done[:-1]]
        print_json({"event": asdict(undone), "also": also, "stays": undoing.stays, "later": later})
        return
    say(f"Took back what happened at {local_time(meant.at)}: {sentence(meant) or meant.kind} ({meant.id})")
    if isinstance(meant.what, ExchangesImported):
        n_files = sum(len(taken.changes) for _, _, taken in done)
        say(f"  {n_files} files of the import; importing it again brings it back.")
        return
    for _, _, taken in done:
        _list_changes(taken.changes)
        for line in taken.stays:
            say(f"  = {line}")
    if stands:
        say(f"  = {stands} stays, it is yours: `brainiac ask --again {shlex.quote(stands)}` asks it again")
    if undoing.later and not last:
        say("It had led to these, which stand:")
        for each in undoing.later:
            say(f"  {each.id}  {each.kind}, {local_time(each.at)}")
    back = ", then ".join(f"`brainiac undo {event.id}`" for _, event, _ in reversed(done))
    say(f"{back} brings it back.")


def _undo_statement(named: str, *, as_json: bool) -> None:
    """Take back what became of one statement, and say what holds now."""
    with opened_brain() as brain:
        done = take_back(brain, named)
    if as_json:
        print_json({"event": done.event.id, "path": done.path, "before": done.before, "after": done.after})
        return
    if done.before and done.after:
        say(f"“{done.before}” → “{done.after}” ({done.path})")
    else:
        said = f"holds again: “{done.after}”" if done.after else f"no longer holds: “{done.before}”"
        say(f"{said} ({done.path})")
    say(f"`brainiac undo {done.event.id}` brings it back.")


def _still_stands(brain: Brain, event: Event) -> str:
    """Return the prompt whose answer was taken back, where it stands; "" where there is none."""
    answered = event.what
    is_there = isinstance(answered, ExchangeEvent) and answered.response and brain.read(answered.prompt) is not None
    return answered.prompt if isinstance(answered, ExchangeEvent) and is_there else ""


def forget(
    named: Annotated[
        str,
        typer.Argument(
            metavar="MEMORY|EXCHANGE|WORDS",
            help="A page (path, title, uuid), an exchange (id, or its file), or words: then all that holds them.",
        ),
    ],
    is_purged: Annotated[
        bool, typer.Option("--purge", help="Also destroy the texts that the journal keeps; nothing brings them back.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take a page, an exchange, a conversation (its folder) or all that holds some words out of memory."""
    with opened_brain() as brain:
        target = _target(brain, named)
        if not as_json:
            _list_lines("These hold the words:", list(target.shown))
        plan = plan_forget(brain, target)
        if not as_json:
            _list_lines("To be taken out:", plan.actions)
            _list_lines("Stays:", plan.kept)
        question = "Destroy it for good?" if is_purged else "Take it out?"
        if not _has_consent(question, is_confirmed=yes):
            raise typer.Exit(1)
        purged = purge(brain, target) if is_purged else None
        event = purged.event if purged else take_out(brain, target)
    if as_json:
        result = asdict(purged) if purged else {"event": asdict(event) if event else None}
        print_json({**result, "told": plan.actions, "left": plan.kept})
    elif purged:
        say(f"Destroyed {purged.texts} texts and the words of {purged.lines} journal lines.")
        _list_lines("Said elsewhere too:", [f"“{words}”: {', '.join(paths)}" for words, paths in purged.still.items()])
        say(BEYOND)
    elif event:
        say(f"Forgotten. `brainiac undo {event.id}` brings it back; --purge destroys what the journal keeps.")
    else:
        say("Nothing of it stands in the tree.")


def _target(brain: Brain, named: str) -> Target:
    """Return the file, page or exchange with a path or id, or else all that holds some words.

    Raises:
        UserError: Nothing has this name, and nothing holds the words.
    """

    if "/" in named or named.endswith(".md") or _ID.fullmatch(named.strip()):
        return find_target(brain, named)
    return find_words(brain, named) or find_target(brain, named)


def adopt(
    path: Annotated[str, typer.Argument(help="A page or a folder; without one all of long-term memory.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let processes update, move and retire statements that you wrote; each gets a block id where it has none."""
    with opened_brain() as brain:
        if not path and not yes:
            _list_lines("To be released:", [f"{page}: {text}" for page, text in plan_adoption(brain).texts])
            if not _has_consent("Release all of them?", is_confirmed=False):
                raise typer.Exit(1)
        event, adoption = release(brain, path or None)
    if as_json:
        print_json({"event": event.id if event else None, "statements": [row.to_json() for row in adoption.statements]})
        return
    _list_lines("Released:", [f"{page}: {text}" for page, text in adoption.texts])
    say(f"{len(adoption.texts)} statements are ours now." if event else "There is nothing to release.")


def _list_lines(title: str, lines: list[str]) -> None:
    """Print a title and the lines below it; nothing where there are none."""
    if lines:
        say(title)
    for line in lines:
        say(f"  {line}")


def _list_changes(changes: list[Change]) -> None:
    """Print a line for each changed file, with a sign for what was done."""
    for change in changes:
        where = f"{change.source} → {change.path}" if change.source else change.path
        say(f"  {_SIGNS.get(change.op, '=')} {where}")


def _has_consent(question: str, *, is_confirmed: bool) -> bool:
    """Return whether a person consents: by `--yes`, or by their answer on a terminal."""
    if is_confirmed:
        return True
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; add --yes")
    return typer.confirm(question)
