"""Makes a new brain from the files that ship with the program, and adds those that an existing one lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from brainiac.clock import SYSTEM, Clock, iso
from brainiac.errors import UserError
from brainiac.events import new_id
from brainiac.formats.index_page import IndexDocument, IndexEntry, new_index
from brainiac.formats.short_term import EMPTY
from brainiac.places import bundled_path
from brainiac.settings import PathSettings, Settings, load
from brainiac.storage.files import Disk, temporary_beside
from brainiac.storage.pages import INDEX
from brainiac.tree import MARKER, NOTE_ENDINGS, Tree, is_brain, is_temporary

DOTFILES = (".gitignore", ".gitattributes", ".stignore")
SUMMARY = "What is kept for good: concrete knowledge, events by date, and skills."
FOLDER_SUMMARIES = {
    "concrete": "Semantic memory: people, places, projects, preferences, facts.",
    "events": "Episodic memory: what was said and what happened, by date.",
    "skills": "Procedural memory: how things are done, step by step.",
}


FALLBACK_FOLDER = "Brainiac"  # for those folders of a brain whose names are taken in the root


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The content of a folder that is to become a brain.

    Attributes:
        notes: How many Markdown files, hidden ones aside.
        others: How many other files.
        places: The folders that the brain will use, by their names in `paths`.
    """

    notes: int
    others: int
    places: dict[str, str]


def look_around(root: Path) -> Surroundings:
    """Return the content of a folder, and which folders a brain in it would use: only new or empty ones."""
    config = root / "system" / "config.yaml"
    if config.exists():  # a person wrote it first: its folders are used
        places = load(config, Settings).paths.model_dump()
    else:
        taken_names = {entry.name.casefold() for entry in root.iterdir() if not entry.is_dir() or any(entry.iterdir())}
        places = {
            name: f"{FALLBACK_FOLDER}/{name}" if name in taken_names else name for name in PathSettings.model_fields
        }
    tree = Tree(root)
    files = [entry.name for entry in tree.walk(root)]
    notes = sum(name.lower().endswith(NOTE_ENDINGS) for name in files)
    return Surroundings(notes, len(files) - notes, places)


def create_brain(root: Path, *, is_shared: bool = False, clock: Clock = SYSTEM) -> list[str]:
    """Make a brain, or add what one lacks; nothing that exists is changed.

    In a folder with notes, its settings name them as a source: they are searched and never written.

    Args:
        root: The folder; made when missing.
        is_shared: Whether a brain may be made in a folder that has other files.
        clock: For the dates of its files.

    Returns:
        The files that were made, relative, in order.

    Raises:
        UserError: The folder holds other files, or is none.
    """
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is a file; name a folder")
    is_made = is_brain(root)
    if not is_made and not is_shared and root.is_dir() and any(root.iterdir()):
        raise UserError(
            f"{root} holds other files and is not a brain; name an empty folder, "
            "or add --here to put a brain beside them (nothing that exists is changed)"
        )
    root.mkdir(parents=True, exist_ok=True)
    around = None if is_made else look_around(root)
    made = _write_missing(root, _system_files(around))
    tree = Tree(root, load(root / "system" / "config.yaml", Settings).layout())
    made += _write_missing(root, _memory_files(tree, iso(clock.now())))
    for folder in (tree.notes, tree.archive, tree.plugins, tree.journal):
        folder.mkdir(parents=True, exist_ok=True)
    return made


def _system_files(around: Surroundings | None) -> Iterator[tuple[str, str]]:
    """Yield path and text of the shipped files.

    Args:
        around: The content of the folder; None for a folder that is a brain already and lacks some files.
    """
    system = bundled_path("system")
    # with a new id and this machine's time zone; notes around the brain become a source, and folders whose names are
    # taken get another place
    text = re.sub(r"^brain_id:.*$", f"brain_id: {new_id()}", (system / "config.yaml").read_text("utf-8"), flags=re.M)
    text = re.sub(r"^(time_zone:) \w+", rf"\1 {machine_zone()}", text, flags=re.M)
    if around and around.notes:
        text = re.sub(r"^# sources:.*$", "sources: [.]", text, flags=re.M)
    moved = [f"  {name}: {place}" for name, place in around.places.items() if place != name] if around else []
    settings = ("system/config.yaml", "\n".join([text, "paths:", *moved, ""]) if moved else text)
    marker = (MARKER.as_posix(), (bundled_path(".") / MARKER).read_text("utf-8"))
    has_files = around is not None and around.notes + around.others > 0
    # The marker first: the folder is a brain then, and a repeated `init` goes on where one was interrupted. Beside a
    # person's files the settings first: with the marker alone, their folders would be used as the brain's.
    yield from (settings, marker) if has_files else (marker, settings)
    for path in sorted(system.rglob("*")):
        relative = path.relative_to(system)
        if path.is_file() and not any(is_temporary(part) for part in relative.parts):
            yield f"system/{relative.as_posix()}", path.read_text("utf-8")
    for name in DOTFILES:
        yield name, bundled_path(name).read_text("utf-8")


def machine_zone() -> str:
    """Return the IANA name of this machine's time zone, "UTC" where it has none."""
    import tzlocal  # for a new brain only

    try:
        name = tzlocal.get_localzone_name() or "UTC"
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):  # a zone without a name, two that contradict each other
        return "UTC"
    return name


def _memory_files(tree: Tree, now: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of an empty short-term memory and of the first index pages."""
    yield tree.relative(tree.short_term), EMPTY
    top = new_index("Long-Term Memory", uuid=new_id(), now=now, summary=SUMMARY)
    folders = [
        IndexEntry(name.capitalize(), f"{name}/{INDEX}", new_id(), summary)
        for name, summary in FOLDER_SUMMARIES.items()
    ]
    # an index page that exists has another uuid than the one here: then the first organization lists the folders
    if not any((tree.long_term / folder.path).exists() for folder in folders):
        top = str(IndexDocument(top).with_manifest(folders))
    yield tree.relative(tree.long_term / INDEX), top
    for folder in folders:
        text = new_index(folder.title, uuid=folder.uuid, now=now, summary=folder.summary)
        yield tree.relative(tree.long_term / folder.path), text


def _write_missing(root: Path, files: Iterator[tuple[str, str]]) -> list[str]:
    """Write the files that do not exist yet, each in one step; return the paths of those written."""
    disk, made = Disk(), []
    for relative, text in files:
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() or path.is_symlink():
            continue
        draft = Path(temporary_beside(str(path)))
        disk.write(draft, text.encode(), mode=0o666)  # the umask decides
        try:
            disk.rename_new(draft, path)
        except FileExistsError:
            disk.unlink(draft)  # somebody else has just made the file: theirs stays
        else:
            made.append(relative)
    return made
