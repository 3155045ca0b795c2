"""`brainiac init`: a new brain."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from brainiac.skeleton import create_brain
from brainiac.terminal import say
from brainiac.tree import default_brain, set_default_brain


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(init)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made when missing.")],
    here: Annotated[
        bool, typer.Option("--here", "--force", help="Also in a folder that holds other files, which stay as they are.")
    ] = False,
    default: Annotated[
        bool, typer.Option("--default", help="Have commands mean this brain outside of any; the first one made is it.")
    ] = False,
) -> None:
    """Make a new brain, or add what one lacks; nothing that exists is changed."""
    made = create_brain(folder, is_shared=here)
    where = folder.resolve()
    if made:
        from brainiac.brain import Brain  # a mistyped command need not wait for it

        brain = Brain(where)
        brain.observed.adopt()  # else the first commit would take what was made here for a person's edits
        brain.close()
    if default or default_brain() is None:
        set_default_brain(where)
        say(f"Commands mean this brain from any folder that is in no other: {where}")
    if not made:
        say(f"{where} is a brain already and lacks nothing.")
        return
    say(f"Made {len(made)} files in {where}.")
    say("What next:")
    command = "brainiac" if default_brain() == where else f"brainiac --brain {_quoted(where)}"
    say(f"  {command} ask 'I live in Portland.'     or `{command} chat` for a conversation")
    say(f"  {command} run     answers what is dropped into inbox/; keep it running")
    say("  drop a note, say inbox/hello.md with `I live in Portland.`; the answer appears beside it")
    say(f"  read {_quoted(where / 'system' / 'core_identity.md')}: it leads every answer, and it is yours to edit")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
