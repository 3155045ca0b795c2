"""Where a brain is and where this machine keeps what is its own of it; imports little, so that commands start fast."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from brainiac.errors import NotABrainError

MARKER = Path("system") / "core_identity.md"  # a folder with this file is a brain
DEFAULT_ID = "default"  # of a brain whose settings name none
_BRAIN_ID = re.compile(rb"""^brain_id:[ \t]*["']?([A-Za-z0-9-]{1,36})\b""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LocalPlaces:
    """The machine-local folders of a brain, outside of its tree.

    Attributes:
        state: Folder with locks, trust and `state.db`; its name has brain id and path.
        cache: Folder with search index and vectors; may be deleted at any moment.
        config: This machine's own settings file: endpoints and key names come only from here or the environment.
        device: Folder with the device id, which all brains of this machine share.
    """

    state: Path
    cache: Path
    config: Path
    device: Path

    @classmethod
    def of(cls, root: Path, brain_id: str) -> LocalPlaces:
        """Return the places for a brain, which `XDG_*` variables may move; none is made here."""
        # by id and path: two copies of a brain on one machine must not share locks or trust
        real = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]
        key = f"{brain_id[:36]}-{real}"
        state = platformdirs.user_state_path("brainiac", appauthor=False)
        return cls(
            state=state / "brains" / key,
            cache=platformdirs.user_cache_path("brainiac", appauthor=False) / key,
            config=platformdirs.user_config_path("brainiac", appauthor=False) / "config.yaml",
            device=state,
        )


def is_brain(folder: Path) -> bool:
    """Return whether a folder is a brain; one without its identity file is known by its settings and its inbox."""
    return (folder / MARKER).is_file() or (
        (folder / "system" / "config.yaml").is_file() and (folder / "inbox").is_dir()
    )


def find_root(start: Path | str | None = None) -> Path:
    """Return the folder of the brain that a command is to use.

    Args:
        start: A folder at or below a brain; without one `BRAINIAC_HOME`, else the current folder, else the default.

    Raises:
        NotABrainError: It does not exist, or neither it nor any folder above it is a brain.
    """
    chosen = start or os.environ.get("BRAINIAC_HOME")
    lowest = Path(chosen or ".").resolve()
    if not lowest.is_dir():  # a mistyped name in some brain must not mean that brain
        raise NotABrainError(f"{lowest} is not a folder; name a brain with --brain DIR or BRAINIAC_HOME")
    for folder in (lowest, *lowest.parents):
        if is_brain(folder):
            return folder
    default = None if chosen else default_brain()
    if default is not None:
        return default
    raise NotABrainError(
        f"{lowest} is not in a brain (no {MARKER.as_posix()} at or above it); "
        "make one with `brainiac init DIR`, or name one with --brain DIR or BRAINIAC_HOME"
    )


def default_brain() -> Path | None:
    """Return the brain that commands use outside of any brain's folder; None where none is set, or it is gone."""
    try:
        folder = Path(os.fsdecode(_default_file().read_bytes()).rstrip("\n"))
    except OSError:
        return None
    return folder if folder.is_absolute() and is_brain(folder) else None


def set_default_brain(folder: Path) -> None:
    """Make a brain the one that commands use outside of any brain's folder."""
    file = _default_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}-{os.getpid()}")
    draft.write_bytes(os.fsencode(folder.resolve()) + b"\n")
    os.replace(draft, file)  # a command may read it at this moment: it sees the old file or the new one


def _default_file() -> Path:
    return platformdirs.user_state_path("brainiac", appauthor=False) / "default_brain"


def id_in(config: Path) -> str:
    """Return the brain's id from the line of a settings file that has it, else the default one.

    Also of a broken file, and without reading it as YAML.
    """
    try:
        line = _BRAIN_ID.search(config.read_bytes())
    except OSError:
        return DEFAULT_ID
    return line[1].decode() if line else DEFAULT_ID


def bundled_path(name: str) -> Path:
    """Return a file or folder that ships with the program: in the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "_bundled"
    return (packaged if packaged.is_dir() else Path(__file__).parent.parent) / name
