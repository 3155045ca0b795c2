"""Creates a new brain from the files that ship with the program, and adds those that an existing one lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from brainiac.clock import SYSTEM, Clock, iso
from brainiac.errors import UserError
from brainiac.events import new_id
from brainiac.host.sources import bundled
from brainiac.settings import Settings, load
from brainiac.storage.files import Disk, temporary_beside
from brainiac.tree import MARKER, Tree, is_brain, is_temporary

DOTFILES = (".gitignore", ".gitattributes", ".stignore")
SUMMARIES = {
    "long_term": ("Long-Term Memory", "What is kept for good: concrete knowledge, events by date, and skills."),
    "concrete": ("Concrete", "Semantic memory: people, places, projects, preferences, facts."),
    "events": ("Events", "Episodic memory: what was said and what happened, by date."),
    "skills": ("Skills", "Procedural memory: how things are done, step by step."),
}


def create_brain(root: Path, *, is_shared: bool = False, clock: Clock = SYSTEM) -> list[str]:
    """Make a brain, or add what one lacks; nothing that exists is changed.

    Args:
        root: The folder; made when missing.
        is_shared: Also in a folder that holds other files and is no brain yet.
        clock: When it is made.

    Returns:
        The files that were made, relative, in order.

    Raises:
        UserError: The folder holds other files, or is none.
    """
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is a file; name a folder")
    is_whole = is_brain(root)
    if not is_whole and not is_shared and root.is_dir() and any(root.iterdir()):
        raise UserError(
            f"{root} holds other files and is not a brain; name an empty folder, "
            "or add --here to put a brain beside them (nothing that exists is changed)"
        )
    root.mkdir(parents=True, exist_ok=True)
    made = _write_missing(root, _system_files())
    tree = Tree(root, load(root / "system" / "config.yaml", Settings).layout())
    made += _write_missing(root, _memory_files(tree, iso(clock.now())))
    for folder in (tree.notes, tree.archive, tree.plugins, tree.journal):
        folder.mkdir(parents=True, exist_ok=True)
    return made


def _system_files() -> Iterator[tuple[str, str]]:
    """Yield path and text of the shipped files; the marker first, so that an interrupted init can be repeated."""
    system = bundled("system")
    yield MARKER.as_posix(), (bundled(".") / MARKER).read_text("utf-8")
    for path in sorted(system.rglob("*")):
        relative = path.relative_to(system)
        if path.is_file() and not any(is_temporary(part) for part in relative.parts):
            text = path.read_text("utf-8")
            if relative.name == "config.yaml":
                text = re.sub(r"^brain_id:.*$", f"brain_id: {new_id()}", text, flags=re.MULTILINE)
                text = re.sub(r"^(time_zone:) \w+", rf"\1 {machine_zone()}", text, flags=re.MULTILINE)
            yield f"system/{relative.as_posix()}", text
    for name in DOTFILES:
        yield name, bundled(name).read_text("utf-8")


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
    from brainiac.formats.index_page import IndexDocument, IndexEntry, new_index
    from brainiac.formats.short_term import EMPTY
    from brainiac.storage.pages import INDEX

    yield tree.relative(tree.short_term), EMPTY
    uuids = {name: new_id() for name in SUMMARIES}
    folders = [
        IndexEntry(title, f"{name}/{INDEX}", uuids[name], summary)
        for name, (title, summary) in SUMMARIES.items()
        if name != "long_term"
    ]
    for name, (title, summary) in SUMMARIES.items():
        text = new_index(title, uuid=uuids[name], now=now, summary=summary)
        if name == "long_term":
            # what stands already has an id of its own: then the first quiet time lists the folders
            is_new = not any((tree.long_term / folder.path).exists() for folder in folders)
            text = str(IndexDocument(text).with_manifest(folders)) if is_new else text
        folder = tree.long_term if name == "long_term" else tree.long_term / name
        yield tree.relative(folder / INDEX), text


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
