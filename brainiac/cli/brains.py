"""A brain's own life: `init`, `backup`, `restore`; `takeover`, `git setup`, `merge-driver`; `sources` and `import`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import SHOWN_AT_MOST, YesOption, agree, command, local_time, print_list, print_table, styling
from brainiac.errors import NotABrainError, SettingsError, UserError
from brainiac.events import PathKind
from brainiac.formats.authors import SERVICES
from brainiac.history.backup import Backup, back_up, backups_in, damages, find_backup
from brainiac.history.backup import restore as restore_backup
from brainiac.history.copies import note_differences
from brainiac.history.devices import takeover as take_over
from brainiac.places import bundled_path
from brainiac.settings import Settings, load
from brainiac.skeleton import DOTFILES, create_brain, look_around
from brainiac.storage.files import Disk
from brainiac.storage.pages import Source, find_sources, set_allowed
from brainiac.storage.store import git_folder
from brainiac.storage.versions import merge
from brainiac.terminal import few, one_line, say
from brainiac.tree import LocalPlaces, Tree, default_brain, find_root, is_brain, set_default_brain


@command()
def init(folder: Path | None = None, *, here: bool = False, yes: bool = False, default: bool = False) -> None:
    """Make a new brain, or add what one lacks; nothing that exists is changed.

    Args:
        folder (DIR): Where; made when missing. With --here this folder, if none.
        here (--here, --force): Also in a folder that holds other files, such as a vault; they stay as they are.
        yes (--yes, -y): With --here: do not ask.
        default (--default): Have commands mean this brain outside of any; the first one made is it.
    """
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


@command(is_reading=True)
def backup(brain: Brain, folder: Path) -> Iterator[Any]:
    """Add a whole copy of this brain to a folder; those before it stay until you delete them.

    Args:
        folder (DIR): Where backups lie; made when missing.
    """
    with styling().bar("Copying") as progress:
        made = back_up(brain, folder, progress=progress)
    yield asdict(made)
    say(f"Backed up {brain.root} as of {local_time(made.backup.made_at)}: {_size(made.backup)}.")
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


@command()
def restore(folder: Path, *, into: Path | None = None) -> Iterator[Any]:
    """Put the brain of a backup into a new folder, every file checked; without --into only check the backups.

    Args:
        folder (DIR): A backup, or a folder of backups: then the latest of them.
        into: A new or empty folder; without it the backups are listed and checked.
    """
    latest = find_backup(folder)
    if into is None:
        checked = [(each, _damages(each)) for each in backups_in(folder)]
        yield [asdict(each) | {"damages": damaged_files} for each, damaged_files in checked]
        for each, damaged_files in checked:
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
    with styling().bar("Restoring") as progress:
        restored = restore_backup(latest, into, progress=progress)
    yield asdict(restored)
    where = shlex.quote(str(restored.folder))
    say(f"Restored {_size(latest)}, each as it was on {latest.made_at}, into {where}.")
    if restored.state:
        say(f"What this machine knew of the brain that lay there before was set aside: {restored.state}")
    say(f"Look at it: brainiac --brain {where} status    and let it go on: brainiac --brain {where} run")
    say("Plugins of your own ask for trust again; on another machine `brainiac takeover` has it run the processes.")
    say("Should the brain that was backed up live on: give one of them another `brain_id` in system/config.yaml.")


def _damages(backup: Backup) -> list[str]:
    """Return a sentence on each damaged file of a backup, while a progress bar is shown."""
    with styling().bar(f"Checking {backup.folder.name}") as progress:
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


@command()
def merge_driver(base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Merge two versions of one of a brain's files; git calls it, `brainiac git setup` tells it to.

    Nothing that one side added is lost. Where both sides changed one statement, both texts stand in the file, and
    `brainiac run` names them in memory/review.md. Notes beside the brain's folders git merges by its own rules.

    Args:
        base (%O): The common earlier version.
        ours (%A): Our version; the merged text is written here.
        theirs (%B): Their version.
        path (%P): Where the file is in the repository.
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


# --- a person's own notes, and what other programs hold of their past ----------------------------------------------


@command(is_reading=True)
def sources_list(brain: Brain) -> Iterator[Any]:
    """List the folders that `sources` names, with their notes, and why one is not read."""
    rows = [(source, _count(brain, source)) for source in _sources(brain)]
    yield [{"name": s.name, "folder": str(s.folder), "notes": notes, "problem": s.problem} for s, notes in rows]
    if not rows:
        say("None. Name folders of your own notes under `sources:` in system/config.yaml; docs/obsidian.md has more.")
        return
    shown = [(s.name, notes, f"{s.problem}; {s.todo}" if s.problem else "read") for s, notes in rows]
    print_table(("folder", "notes", ""), shown)


@command(is_shared=True)
def sources_allow(brain: Brain, name: str, *, yes: YesOption = False) -> None:
    """Let a source outside of the brain be read on this machine; other machines ask for themselves.

    Args:
        name (FOLDER): As `sources` in system/config.yaml has it.
    """
    source = _source_named(brain, name)
    if source.problem and not source.is_refused:
        raise UserError(f"{name} {source.problem}; {source.todo}")
    if not source.problem:
        say(f"{source.folder} is read already.")
        return
    say(f"Notes in {source.folder} will be searched and cited, and shown to the model that the settings name.")
    say("Nothing there is ever written. A note with `private: true` in its properties stays on this machine.")
    agree("Allow it?", is_agreed=yes, refusal=f"{name} is not allowed")
    set_allowed(brain.places.state, source.folder, is_allowed=True)
    say(f"{_count(brain, replace(source, problem=''))} notes of {source.folder} are searched from now on.")


@command(is_shared=True)
def sources_refuse(brain: Brain, name: str) -> None:
    """Have a source outside of the brain not be read on this machine any more.

    Args:
        name (FOLDER): As `sources` in system/config.yaml has it.
    """
    source = _source_named(brain, name)
    if source.folder.is_relative_to(brain.root):
        raise UserError(f"{name} lies in the brain; take it out of `sources` in system/config.yaml")
    set_allowed(brain.places.state, source.folder, is_allowed=False)
    say(f"{source.folder} is not read on this machine any more.")


def _sources(brain: Brain) -> list[Source]:
    return find_sources(brain.root, brain.settings.sources, brain.places.state)


def _source_named(brain: Brain, name: str) -> Source:
    """Return the source of a name, as the settings have it or as the path that it means."""
    real = os.path.realpath(os.path.expanduser(name))
    for source in _sources(brain):
        if name == source.name or real == str(source.folder):
            return source
    raise UserError(f"`sources` in system/config.yaml does not name {name}; add it there first")


def _count(brain: Brain, source: Source) -> int:
    """Return how many notes of a source are read; 0 for one that is not."""
    tree = Tree(brain.root, brain.settings.layout(), [source.folder])
    return 0 if source.problem else len(tree.source_notes())


@command()
def import_(
    brain: Brain, path: Path, *, is_dry: bool = False, is_private: bool = False, with_mail: bool = False
) -> Iterator[Any]:
    """Bring in your past from other programs; a second import adds only what is new.

    Args:
        path (FILE|FOLDER): What the service sent you, unpacked or not.
        is_dry (--dry-run, -n): Say what would come in; write nothing.
        is_private (--private): Never show any of it to a model that is not on this machine.
        with_mail (--mail): Take mailboxes too; they are others' words.
    """
    from brainiac.imports.intake import import_path  # with it come the readers of other programs' exports

    with styling().bar("Reading" if is_dry else "Importing") as progress:
        report = import_path(brain, path, is_dry=is_dry, is_private=is_private, with_mail=with_mail, progress=progress)
    items = [
        {"service": service, "state": outcome.state, **asdict(outcome)}
        for service, outcomes in report.outcomes.items()
        for outcome in outcomes
    ]
    yield {"import": report.event, "not_read": report.others, "items": items}
    verb = "would come in" if is_dry else "came in"
    for service, outcomes in report.outcomes.items():
        counts = Counter(outcome.state for outcome in outcomes)
        is_talk = service not in ("notes", "mail", "documents")
        exchanges = f" with {sum(outcome.taken for outcome in outcomes)} new exchanges" if is_talk else ""
        read = f"{SERVICES[service]}: {len(outcomes)} {'conversations' if is_talk else 'texts'} read"
        rest = f"{counts['known']} were known, {counts['skipped']} were skipped"
        say(f"{read}; {counts['taken']} {verb}{exchanges}, {rest}.")
        for heading, state in (("Not whole", "taken"), ("Skipped", "skipped")):
            of_state = [item for item in outcomes if item.state == state and item.reason]
            print_list(heading, [f"{one_line(item.title or item.id)}: {item.reason}" for item in of_state])
    print_list("Not read, since nothing in them has a known format", [one_line(name) for name in report.others])
    if report.event:
        say("It is found by search from now on, faster once a daemon, or `brainiac reindex`, has indexed it.")
        say("No model was asked; `brainiac promote --past` hands it to one, and says first what that costs.")
        say(f"`brainiac undo {report.event}` takes all of this import back.")
