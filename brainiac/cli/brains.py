"""`brainiac init`: a new brain."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from brainiac.errors import UserError
from brainiac.skeleton import DOTFILES, create_brain, look_around
from brainiac.storage.store import git_folder
from brainiac.terminal import say
from brainiac.tree import default_brain, is_brain, set_default_brain


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(init)


def init(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where; made when missing. With --here this folder, if none.")
    ] = None,
    here: Annotated[
        bool,
        typer.Option(
            "--here", "--force", help="Also in a folder that holds other files, such as a vault; they stay as they are."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --here: do not ask.")] = False,
    default: Annotated[
        bool, typer.Option("--default", help="Have commands mean this brain outside of any; the first one made is it.")
    ] = False,
) -> None:
    """Make a new brain, or add what one lacks; nothing that exists is changed."""
    if folder is None:
        if not here:
            raise typer.BadParameter("name a folder, such as `brainiac init ~/brain`")
        folder = Path()
    if here and folder.is_dir() and not is_brain(folder) and any(folder.iterdir()):
        _agree(folder.resolve(), is_agreed=yes)
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
    if git_folder(where) is not None:
        from brainiac.cli.git import set_up  # most new brains are in no repository

        set_up(where)
        say("Git merges them by what they hold; each other clone needs `brainiac git setup` once.")
    say("What next:")
    command = "brainiac" if default_brain() == where else f"brainiac --brain {_quoted(where)}"
    say(f"  {command} ask 'I live in Portland.'     or `{command} chat` for a conversation")
    say(f"  {command} run     answers what is dropped into inbox/; keep it running")
    say("  drop a note, say inbox/hello.md with `I live in Portland.`; the answer appears beside it")
    say(f"  read {_quoted(where / 'system' / 'core_identity.md')}: it leads every answer, and it is yours to edit")


def _agree(folder: Path, *, is_agreed: bool) -> None:
    """Say what a brain in a folder with other files will touch and what not, and ask.

    Raises:
        UserError: There is nobody to ask.
    """
    around = look_around(folder)
    places = ", ".join(f"{place}/" for place in (*around.places.values(), "system"))
    say(f"{folder} holds {around.notes} notes and {around.others} other files.")
    say("  never changed   all of them; Obsidian's and other hidden folders are not even read")
    say(f"  made beside     {places}, and {', '.join(DOTFILES)} where there are none")
    if around.notes and not (folder / "system/config.yaml").exists():
        say("  read            the notes, for search and answers: `sources: [.]` in system/config.yaml. A model that")
        say("                  you set is shown passages of them; `private: true` in a note's properties keeps it here")
    if not is_agreed:
        if not sys.stdin.isatty():
            raise UserError("nothing was made: nobody is there to ask; add --yes")
        typer.confirm("Go on?", abort=True)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
