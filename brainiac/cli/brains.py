"""`brainiac init`, `backup`, `restore`; `takeover`, `git setup`, `merge-driver`: one brain on several machines."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli import session
from brainiac.cli.session import SHOWN_AT_MOST, JsonOption, agree, command, few, local_time, print_json, print_list
from brainiac.errors import NotABrainError, SettingsError, UserError
from brainiac.events import PathKind
from brainiac.history.backup import Backup, back_up, backups_in
from brainiac.history.copies import note_differences
from brainiac.history.devices import takeover as take_over
from brainiac.history.restore import damages, find_backup
from brainiac.history.restore import restore as restore_backup
from brainiac.host.trust import bundled_path
from brainiac.settings import Settings, load
from brainiac.skeleton import DOTFILES, create_brain, look_around
from brainiac.storage.files import Disk
from brainiac.storage.store import git_folder
from brainiac.storage.versions import merge
from brainiac.terminal import say
from brainiac.tree import LocalPlaces, Tree, default_brain, find_root, is_brain, set_default_brain


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
    where = folder.resolve()
    if not is_brain(where):
        if outer := next(filter(is_brain, where.parents), None):
            raise UserError(f"{where} lies in the brain {outer}; name a folder outside of it")
        if here and where.is_dir() and any(where.iterdir()):
            around = look_around(where)
            places = ", ".join(f"{place}/" for place in (*around.places.values(), "system"))
            say(f"{where} holds {around.notes} notes and {around.others} other files.")
            say("  never changed   all of them; Obsidian's and other hidden folders are not even read")
            say(f"  made beside     {places}, and {', '.join(DOTFILES)} where there are none")
            if around.notes and not (where / "system/config.yaml").exists():
                say(
                    "  read            the notes, for search and answers: `sources: [.]` in system/config.yaml. A model"
                )
                say("                  that you set is shown passages of them; `private: true` in a note's properties")
                say("                  keeps it here")
            agree("Go on?", is_agreed=yes, refusal="nothing was made")
    made = create_brain(folder, is_shared=here)
    with closing(Brain(where)) as brain:
        inbox = brain.tree.layout.inbox
        if made:
            brain.observed.adopt()  # else the first commit would take what was made here for a person's edits
    if default or default_brain() is None:
        set_default_brain(where)
        say(f"Commands mean this brain from any folder that is in no other: {where}")
    if not made:
        say(f"{where} is a brain already and lacks nothing.")
        return
    say(f"Made {len(made)} files in {where}.")
    if git_folder(where) is not None:
        set_up(where)
        say("Git merges them by what they hold; each other clone needs `brainiac git setup` once.")
    say("What next:")
    command = "brainiac" if default_brain() == where else f"brainiac --brain {_quoted(where)}"
    say(f"  {command} ask 'I live in Portland.'     or `{command} chat` for a conversation")
    say(f"  {command} run     answers what is dropped into {inbox}/; keep it running")
    say(f"  drop a note, say {inbox}/hello.md with `I live in Portland.`; the answer appears beside it")
    say(f"  read {_quoted(where / 'system' / 'core_identity.md')}: it leads every answer, and it is yours to edit")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where backups lie; made when missing.")],
    as_json: JsonOption = False,
) -> None:
    """Add a whole copy of this brain to a folder; those before it stay until you delete them."""
    from brainiac.cli.styling import bar  # rich is heavy

    with session.opened_brain(is_reading=True) as brain:
        with bar("Copying") as progress:
            made = back_up(brain, folder, progress=progress)
        root, made_at = brain.root, local_time(made.backup.made_at)
    if as_json:
        print_json(asdict(made))
    else:
        say(f"Backed up {root} as of {made_at}: {_size(made.backup)}.")
        say("It holds inbox, memory, system, plugins, logs and the whole history as plain files, private pages too.")
        print_list("Left out, since they are off the record", made.off_record)
        print_list("Left out, since they are no files of their own but links, pipes or devices", made.links)
        print_list("NOT in it, since there is no permission to read them", made.unreadable)
        if made.beside:
            say(f"Not in it, since they are no part of the brain: {few(made.beside)}.")
        say("Not in it: this machine's own settings, keys and trust in plugins.")
        if made.outdated:
            folders = " ".join(shlex.quote(str(folder)) for folder in made.outdated)
            say(f"Earlier backups have texts that were purged since. To be rid of those, delete them: rm -r {folders}")
        say(f"The way back: brainiac restore {shlex.quote(str(made.backup.folder))} --into DIR")
    if made.unreadable:
        raise typer.Exit(1)


def restore(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A backup, or a folder of backups: then the latest of them.")
    ],
    into: Annotated[
        Path | None, typer.Option(help="A new or empty folder; without it the backups are listed and checked.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put the brain of a backup into a new folder, every file checked; without --into only check the backups."""
    latest = find_backup(folder)
    if into is None:
        checked = [(each, _damages(each)) for each in backups_in(folder)]
        if as_json:
            print_json([asdict(each) | {"damages": damaged_files} for each, damaged_files in checked])
        for each, damaged_files in () if as_json else checked:
            state = f"{len(damaged_files)} damaged" if damaged_files else "whole"
            say(f"{each.folder.name}  {_size(each)}, made on {each.device}, {state}")
            print_list("  damaged", damaged_files)
        if any(damaged_files for _, damaged_files in checked):
            raise typer.Exit(1)
        return
    if damaged_files := _damages(latest):
        first = [f"{latest.folder.name}/{problem}" for problem in damaged_files[:SHOWN_AT_MOST]]
        advice = "take another backup, or copy by hand what is whole"
        raise UserError(*first, f"{len(damaged_files)} files are damaged, nothing was restored; {advice}")
    from brainiac.cli.styling import bar  # rich is heavy

    with bar("Restoring") as progress:
        restored = restore_backup(latest, into, progress=progress)
    if as_json:
        print_json(asdict(restored))
        return
    where = shlex.quote(str(restored.folder))
    say(f"Restored {_size(latest)}, each as it was on {latest.made_at}, into {where}.")
    if restored.state:
        say(f"What this machine knew of the brain that lay there before was set aside: {restored.state}")
    say(f"Look at it: brainiac --brain {where} status    and let it go on: brainiac --brain {where} run")
    say("Plugins of your own ask for trust again; on another machine `brainiac takeover` has it run the processes.")
    say("Should the brain that was backed up live on: give one of them another `brain_id` in system/config.yaml.")


def _damages(backup: Backup) -> list[str]:
    """Return a sentence on each damaged file of a backup, while a progress bar is shown."""
    from brainiac.cli.styling import bar  # rich is heavy

    with bar(f"Checking {backup.folder.name}") as progress:
        try:
            return damages(backup, progress)
        except UserError as error:
            return list(error.problems)


def _size(backup: Backup) -> str:
    return f"{backup.files} files, {max(backup.size / 1e6, 0.1):.1f} MB"


ATTRIBUTES = ".gitattributes"
# Where the program is not there any more, git's own merge does it, and leaves markers that `brainiac run` merges.
_FALLBACK = "git merge-file -L ours -L base -L theirs %A %O %B"


# --- one brain on several machines -----------------------------------------------------------------------------------


# shared: a daemon may go on, as for a line that a person writes into the settings
@command(is_shared=True)
def takeover(brain: Brain) -> Iterator[Any]:
    """Make this device the one that answers and runs the processes; the others capture, search and wait.

    A line in system/config.yaml says so; it counts on other devices once it is synced, not before.
    """
    event, device = take_over(brain), brain.journal.device
    yield {"device": device, "event": event.id if event else None}
    if event is None:
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

    Nothing that one side added is lost. Where both sides changed one statement, both texts stand in the file, and
    `brainiac run` names them in memory/review.md. Notes beside the brain's folders git merges by its own rules.
    """
    try:
        texts = [file.read_bytes() for file in (base, ours, theirs)]
    except (OSError, ValueError) as error:
        raise UserError(f"a version cannot be read ({error}); git calls this command, with three files") from error
    file = Path.cwd() / path  # git may just be about to make its folder
    root = find_root(next(parent for parent in file.parents if parent.is_dir()))
    if not file.is_relative_to(root):
        raise NotABrainError(f"{file} is in no brain")
    settings = Settings()
    with suppress(SettingsError):  # the settings may be what git merges just now
        settings = load(root / "system" / "config.yaml", Settings)
    tree = Tree(root, settings.layout(), sources=(root,))  # notes beside the brain's folders are a person's
    relative = tree.relative(file)
    if tree.kind_of(relative) is PathKind.SOURCE:
        raise typer.Exit(1)  # git calls `_FALLBACK` then
    # git gives an empty file as the base where both sides made the file
    merged = merge(tree.kind_of(relative), texts[0] or None, texts[1], texts[2])
    ours.write_bytes(merged.text)
    if merged.differences:
        state = LocalPlaces.of(root, settings.brain_id).state
        note_differences(state, relative, texts[1], texts[2], merged)
    for difference in merged.differences:
        say(f"{path}: both changed it, and both stand: {difference.kept!r}, {difference.other!r}", to_stderr=True)


@command(is_reading=True)
def git_setup(brain: Brain) -> None:
    """Have git merge this brain's files by what they hold; to be run once in each clone.

    It sets `merge.brainiac.driver`, `merge.renames`, `pull.twohead` and `pull.rebase` in the repository's own settings
    (a page that was moved is followed by its uuid, not by git, which then follows no renamed note of yours either) and
    adds the lines that .gitattributes lacks.
    """
    if git_folder(brain.root) is None:
        raise UserError(f"{brain.root} is in no git repository; `git init` there makes one")
    set_up(brain.root)
    for folder in (brain.tree.notes, brain.tree.plugins):
        folder.mkdir(parents=True, exist_ok=True)  # git keeps no empty folder, so that a clone has no inbox
    say(f"Git merges the files of {brain.root} with `brainiac merge-driver` now.")
    say("Each other clone needs `brainiac git setup` too; without it git leaves markers, which `brainiac run` merges.")


def set_up(root: Path) -> None:
    """Set the merge driver of the repository that a brain is in, and complete its .gitattributes.

    Raises:
        UserError: git is missing or refuses.
    """
    program = " ".join(shlex.quote(part) for part in (sys.executable, "-m", "brainiac"))
    driver = f"{program} merge-driver %O %A %B %P || {_FALLBACK}"
    settings = {"merge.brainiac.name": "Brainiac: by what the files hold", "merge.brainiac.driver": driver}
    # no search for renames: git would take a moved page for renamed to its blob in the journal, and merge another
    # clone's edit into that. The strategy `recursive`, as git's default `ort` searches whatever `merge.renames` says.
    settings |= {"merge.renames": "false", "pull.twohead": "recursive", "pull.rebase": "false"}
    for name, value in settings.items():
        call = ["git", "-C", os.fspath(root), "config", name, value]
        try:
            result = subprocess.run(call, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UserError(f"git cannot be run ({error}); install it") from error
        if result.returncode:
            raise UserError(f"git refused: {result.stderr.strip()}")
    file = root / ATTRIBUTES
    text = file.read_text("utf-8") if file.exists() else ""
    present = text.splitlines()
    missing = [line for line in bundled_path(ATTRIBUTES).read_text("utf-8").splitlines() if line not in present]
    if missing:  # below all others, so that they count
        gap = "" if not text or text.endswith("\n") else "\n"
        Disk().append(file, (gap + "\n".join(missing) + "\n").encode(), mode=0o644)
