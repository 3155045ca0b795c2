"""`brainiac init`, `backup`, `restore`; `takeover`, `git setup`, `merge-driver`: one brain on several machines."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import SHOWN_AT_MOST, JsonOption, agree, local_time, opened_brain, print_json, print_list
from brainiac.errors import NotABrainError, SettingsError, UserError
from brainiac.events import PathKind
from brainiac.history.backup import Backup, Made, back_up, backups_in
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


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(init)
    app.command()(backup)
    app.command()(restore)
    app.command()(takeover)
    app.command("merge-driver")(merge_driver)
    group = typer.Typer(help="Git and this brain.", no_args_is_help=True)
    group.command("setup")(setup)
    app.add_typer(group, name="git")


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
            _agree_to_share(where, is_agreed=yes)
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


def _agree_to_share(folder: Path, *, is_agreed: bool) -> None:
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
    agree("Go on?", is_agreed=is_agreed, refusal="nothing was made")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where backups lie; made when missing.")],
    as_json: JsonOption = False,
) -> None:
    """Add a whole copy of this brain to a folder; those before it stay until you delete them."""
    from brainiac.cli.styling import bar  # rich is heavy

    with opened_brain(is_reading=True) as brain:
        with bar("Copying") as progress:
            made = back_up(brain, folder, progress=progress)
        root, made_at = brain.root, local_time(made.backup.made_at)
    if as_json:
        print_json(asdict(made))
    else:
        say(f"Backed up {root} as of {made_at}: {_size(made.backup)}.")
        _say_contents(made)
    if made.unreadable:
        raise typer.Exit(1)


def _say_contents(made: Made) -> None:
    """Print what a backup holds and what not, and the way back."""
    where = shlex.quote(str(made.backup.folder))
    say("It holds inbox, memory, system, plugins, logs and the whole history as plain files, private pages too.")
    print_list("Left out, since they are off the record", made.off_record)
    print_list("Left out, since they are no files of their own but links, pipes or devices", made.links)
    print_list("NOT in it, since there is no permission to read them", made.unreadable)
    if made.beside:
        say(f"Not in it, since they are no part of the brain: {_few(made.beside)}.")
    say("Not in it: this machine's own settings, keys and trust in plugins.")
    if made.outdated:
        folders = " ".join(shlex.quote(str(folder)) for folder in made.outdated)
        say(f"Earlier backups have texts that were purged since. To be rid of those, delete them: rm -r {folders}")
    say(f"The way back: brainiac restore {where} --into DIR")


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
        backups = backups_in(folder)
        problems = {backup.folder.name: _damages(backup) for backup in backups}
        _print_checked(backups, problems, as_json=as_json)
        if any(problems.values()):
            raise typer.Exit(1)
        return
    if damaged_files := _damages(latest):
        few = [f"{latest.folder.name}/{problem}" for problem in damaged_files[:SHOWN_AT_MOST]]
        advice = "take another backup, or copy by hand what is whole"
        more = f"{len(damaged_files)} files are damaged, nothing was restored; {advice}"
        raise UserError(*few, more)
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


def _print_checked(backups: list[Backup], problems: dict[str, list[str]], *, as_json: bool) -> None:
    """Print the backups and what is damaged in each."""
    if as_json:
        print_json([asdict(backup) | {"damages": problems[backup.folder.name]} for backup in backups])
        return
    for backup in backups:
        damaged_files = problems[backup.folder.name]
        state = f"{len(damaged_files)} damaged" if damaged_files else "whole"
        say(f"{backup.folder.name}  {_size(backup)}, made on {backup.device}, {state}")
        print_list("  damaged", damaged_files)


def _size(backup: Backup) -> str:
    return f"{backup.files} files, {max(backup.size / 1e6, 0.1):.1f} MB"


def _few(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN_AT_MOST} more" if len(names) > SHOWN_AT_MOST else ""
    return ", ".join(names[:SHOWN_AT_MOST]) + more


ATTRIBUTES = ".gitattributes"
# Where the program is not there any more, git's own merge does it, and leaves markers that `brainiac run` merges.
_FALLBACK = "git merge-file -L ours -L base -L theirs %A %O %B"


# --- one brain on several machines -----------------------------------------------------------------------------------


def takeover(as_json: JsonOption = False) -> None:
    """Make this device the one that answers and runs the processes; the others capture, search and wait.

    A line in system/config.yaml says so; it counts on other devices once it is synced, not before.
    """
    # shared: a daemon may go on, as for a line that a person writes into the settings
    with opened_brain(is_shared=True) as brain:
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

    Nothing that one side added is lost. Where both sides changed one statement, both texts stand in the file, and
    `brainiac run` names them in memory/review.md. Notes beside the brain's folders git merges by its own rules.
    """
    try:
        texts = [file.read_bytes() for file in (base, ours, theirs)]
    except (OSError, ValueError) as error:
        raise UserError(f"a version cannot be read ({error}); git calls this command, with three files") from error
    file = Path.cwd() / path
    root = _brain_of(file)
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


def _brain_of(file: Path) -> Path:
    """Return the brain in which a file lies, which git may just be about to make."""
    root = find_root(next(parent for parent in file.parents if parent.is_dir()))
    if not file.is_relative_to(root):
        raise NotABrainError(f"{file} is in no brain")
    return root


def setup() -> None:
    """Have git merge this brain's files by what they hold; to be run once in each clone.

    It sets `merge.brainiac.driver`, `merge.renames`, `pull.twohead` and `pull.rebase` in the repository's own settings
    (a page that was moved is followed by its uuid, not by git, which then follows no renamed note of yours either) and
    adds the lines that .gitattributes lacks.
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
    # no search for renames: git would take a moved page for renamed to its blob in the journal, and merge another
    # clone's edit into that. The strategy `recursive`, as git's default `ort` searches whatever `merge.renames` says.
    settings |= {"merge.renames": "false", "pull.twohead": "recursive", "pull.rebase": "false"}
    for name, value in settings.items():
        command = ["git", "-C", os.fspath(root), "config", name, value]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UserError(f"git cannot be run ({error}); install it") from error
        if result.returncode:
            raise UserError(f"git refused: {result.stderr.strip()}")
    _complete_attributes(root / ATTRIBUTES)


def _complete_attributes(file: Path) -> None:
    """Add the shipped lines that a .gitattributes lacks; below all others, so that they count."""
    text = file.read_text("utf-8") if file.exists() else ""
    present = text.splitlines()
    missing = [line for line in bundled_path(ATTRIBUTES).read_text("utf-8").splitlines() if line not in present]
    if missing:
        gap = "" if not text or text.endswith("\n") else "\n"
        Disk().append(file, (gap + "\n".join(missing) + "\n").encode(), mode=0o644)
