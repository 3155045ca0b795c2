"""`brainiac init`: a new brain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(init)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made when missing.")],
    here: Annotated[
        bool, typer.Option("--here", "--force", help="Also in a folder that holds other files, which stay as they are.")
    ] = False,
) -> None:
    """Make a new brain, or add what one lacks; nothing that exists is changed."""
    from brainiac.skeleton import create_brain

    made = create_brain(folder, is_shared=here)
    where = folder.resolve()
    if not made:
        say(f"{where} is a brain already and lacks nothing.")
        return
    say(f"Made {len(made)} files in {where}.")
    say("What next:")
    say(f"  brainiac --brain {_quoted(where)} run     answers what is dropped into inbox/; keep it running")
    say("  drop a note, say inbox/hello.md with `I live in Portland.`; the answer appears beside it")
    say(f"  read {_quoted(where / 'system' / 'core_identity.md')}: it leads every answer, and it is yours to edit")


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
