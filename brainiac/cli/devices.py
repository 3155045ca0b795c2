"""`brainiac takeover`, `git setup` and `merge-driver`: one brain on several machines."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.errors import NotABrainError, SettingsError, UserError
from brainiac.history.devices import takeover as take_over
from brainiac.host.sources import bundled
from brainiac.settings import Settings, load
from brainiac.storage.files import Disk
from brainiac.storage.store import git_folder
from brainiac.storage.versions import merge
from brainiac.terminal import say
from brainiac.tree import Layout, Tree, find_root

ATTRIBUTES = ".gitattributes"
# Where the program is not there any more, git's own merge does it, and leaves markers that `brainiac run` merges.
_FALLBACK = "git merge-file -L ours -L base -L theirs %A %O %B"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(takeover)
    app.command("merge-driver")(merge_driver)
    group = typer.Typer(help="Git and this brain.", no_args_is_help=True)
    group.command("setup")(setup)
    app.add_typer(group, name="git")


def takeover(as_json: JsonOption = False) -> None:
    """Make this device the one that answers and runs the processes; the others capture, search and wait.

    A line in system/config.yaml says so; it counts on other devices once it is synced, not before.
    """

    with opened_brain(is_shared=True) as brain:  # a line that a person could write
        event, device = take_over(brain), brain.journal.device
    if as_json:
        print_json({"device": device, "event": event.id if event else None})
    elif event is None:
        say(f"{device} runs the processes already.")
    else:
        former = event.data["from"]
        say(f"{device} runs the processes now{f' instead of {former}' if former else ''}.")
        say("Other devices follow once system/config.yaml is synced; until then both may work.")


def merge_driver(
    base: Annotated[Path, typer.Argument(metavar="%O", help="The common earlier version.")],
    ours: Annotated[Path, typer.Argument(metavar="%A", help="Our version; the merged text is written here.")],
    theirs: Annotated[Path, typer.Argument(metavar="%B", help="Their version.")],
    path: Annotated[str, typer.Argument(metavar="%P", help="Where the file is in the repository.")],
) -> None:
    """Merge two versions of one of a brain's files; git calls it, `brainiac git setup` tells it to.

    Nothing that one side added is lost. Where both sides changed one statement, both texts stand in the file.
    """
    try:
        texts = [file.read_bytes() for file in (base, ours, theirs)]
    except (OSError, ValueError) as error:
        raise UserError(f"a version cannot be read ({error}); git calls this command, with three files") from error
    tree, relative = _place(Path.cwd() / path)
    # git gives an empty file as the base where both sides made the file
    merged = merge(tree.kind_of(relative), texts[0] or None, texts[1], texts[2])
    ours.write_bytes(merged.text)
    for difference in merged.differences:
        say(f"{path}: both changed it, and both stand: {difference.kept!r}, {difference.other!r}", to_stderr=True)


def _place(file: Path) -> tuple[Tree, str]:
    """Return the brain in which a file lies, and the file's path in it."""
    folder = next(parent for parent in file.parents if parent.is_dir())
    root = find_root(folder)
    if not file.is_relative_to(root):
        raise NotABrainError(f"{file} is in no brain")
    layout = Layout()
    with suppress(SettingsError):  # the settings may be what git merges just now
        layout = load(root / "system" / "config.yaml", Settings).layout()
    tree = Tree(root, layout)
    return tree, tree.relative(file)


def setup() -> None:
    """Have git merge this brain's files by what they hold; to be run once in each clone.

    It sets `merge.brainiac.driver`, `merge.renames`, `pull.twohead` and `pull.rebase` in the repository's own settings
    (a page that was moved is followed by its uuid, not by git) and adds the lines that .gitattributes lacks.
    """
    with opened_brain(is_reading=True) as brain:
        root, folders = brain.root, (brain.tree.notes, brain.tree.plugins)
    if git_folder(root) is None:
        raise UserError(f"{root} is in no git repository; `git init` there makes one")
    set_up(root)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)  # git keeps no empty folder, so that a clone has no inbox
    say(f"Git merges the files of {root} with `brainiac merge-driver` now.")
    say("Each other clone needs `brainiac git setup` too; without it git leaves markers, which `brainiac run` merges.")


def set_up(root: Path) -> None:
    """Set the merge driver of the repository that a brain is in, and complete its .gitattributes.

    Raises:
        UserError: git is missing or refuses.
    """
    program = " ".join(shlex.quote(part) for part in (sys.executable, "-m", "brainiac"))
    driver = f"{program} merge-driver %O %A %B %P || {_FALLBACK}"
    settings = {"merge.brainiac.name": "Brainiac: by what the files hold", "merge.brainiac.driver": driver}
    # git would take a moved page for renamed to its text in the journal, and merge another clone's edit into that;
    # its own strategy looks for renames whatever the settings say
    settings |= {"merge.renames": "false", "pull.twohead": "recursive", "pull.rebase": "false"}
    for name, value in settings.items():
        command = ["git", "-C", os.fspath(root), "config", name, value]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UserError(f"git cannot be run ({error}); install it") from error
        if done.returncode:
            raise UserError(f"git refused: {done.stderr.strip()}")
    _complete_attributes(root / ATTRIBUTES)


def _complete_attributes(file: Path) -> None:
    """Add the shipped lines that a .gitattributes lacks; below all others, so that they count."""
    text = file.read_text("utf-8") if file.exists() else ""
    present = text.splitlines()
    missing = [line for line in bundled(ATTRIBUTES).read_text("utf-8").splitlines() if line not in present]
    if missing:
        gap = "" if not text or text.endswith("\n") else "\n"
        Disk().append(file, (gap + "\n".join(missing) + "\n").encode(), mode=0o644)
