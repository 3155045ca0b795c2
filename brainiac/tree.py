"""The files and folders of a brain, and `Tree.confine`, which refuses every path outside it (design: confinement)."""

from __future__ import annotations

import os
import posixpath
import re
import stat
import time
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from brainiac.errors import ConfinementError
from brainiac.events import PathKind
from brainiac.places import MARKER as MARKER
from brainiac.places import LocalPlaces as LocalPlaces
from brainiac.places import default_brain as default_brain
from brainiac.places import find_root as find_root
from brainiac.places import is_brain as is_brain
from brainiac.places import set_default_brain as set_default_brain

MAX_SLUG_BYTES = 80
_MAX_STEM_BYTES = MAX_SLUG_BYTES - 6  # a number may be added to it
OUR_TEMPORARY_PREFIX = ".brainiac-"
PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".heic", ".heif", ".avif", ".tif", ".tiff", ".svg")
_RECORDINGS = (".m4a", ".mp3", ".wav", ".ogg", ".opus", ".flac", ".aac", ".amr", ".mp4", ".mov", ".webm")
FILE_ENDINGS = (".pdf", *PICTURES, *_RECORDINGS)  # of files that are no text and are taken in from the inbox
NOTE_ENDINGS = (".md", ".markdown")
TEXT_ENDINGS = (*NOTE_ENDINGS, ".txt")

_TEMPORARY = re.compile(
    r"""^(?: \. .*            # hidden, vim .x.swp, emacs .#x, our own temporaries
        | \# .* \#            # emacs autosave
        | .* ~                # backups
        | 4913                # vim's test for a writable folder
        | .* \.(?:swp|swx|swo|tmp|temp|part|partial|crdownload|bak|orig|rej|lock)
        | .*\.sync-conflict-.* | .*\ \(.*conflicted\ copy.*\).*   # Syncthing; Dropbox, Nextcloud, Obsidian Sync
        | .*_conflict-\d{8}-\d{4,6}\.\w+ | .*_conflict-\w+-\d{8}-\d{4,6}\.\w+   # older ownCloud
        | ~\$.* | Thumbs\.db | desktop\.ini | __pycache__
        )$""",
    re.VERBOSE | re.IGNORECASE,
)
# copies that sync services make of a file that changed on two devices
_SURE_COPY = re.compile(
    r"(.+?)(?:\.sync-conflict-\d{8}-\d{6}(?:-\w+)?| \([^()]*conflicted copy[^()]*\)|_conflict-(?:\w+-)?\d{8}-\d{4,6})"
    r"(\.[a-z]+)",
    re.IGNORECASE,
)
_PERHAPS_COPY = re.compile(r"(.+?)(?: \d+| \([^()]*\)|\.conflict\d*)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"(?!4913$)[A-Za-z0-9_-]+(?:\.md)?$")  # as a rule; nothing temporary is called so
# characters that tools show differently or not at all: a file with one in its path is never read nor written
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_NAME_BYTES = 255  # of one name; file systems allow no more
_RESERVED = re.compile(r"^(?:con|prn|aux|nul|com\d|lpt\d)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of a brain, relative to the root, by the settings `paths.*`; `system/`, which has them, is fixed."""

    inbox: str = "inbox"
    memory: str = "memory"
    plugins: str = "plugins"
    logs: str = "logs"


class Misfit(NamedTuple):
    """What stands in a folder and is passed over although a person may expect that it is read.

    Attributes:
        path: Relative, with control characters as escapes.
        what: What is wrong with it.
        todo: What a person can do.
    """

    path: str
    what: str
    todo: str


class Stamp(NamedTuple):
    """What the file system says of a file: a write changes at least one of these.

    The modification time can be set back; the change time cannot. The change time moves also when nothing was written
    (git, rsync, a backup, `chmod`), so a file with a new stamp is read again, and its content decides.
    """

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int

    @property
    def written(self) -> str:
        """The stamp without the change time, as databases keep it: of a file that is too large to be read again."""
        return f"{self.size}:{self.mtime_ns}:{self.inode}"

    def __str__(self) -> str:
        """Return the stamp as databases keep it."""
        return f"{self.size}:{self.mtime_ns}:{self.inode}:{self.ctime_ns}"

    @classmethod
    def parse(cls, stored: str) -> Stamp:
        """Return the stamp that a database keeps."""
        return cls(*map(int, stored.split(":")))

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the stamp in a stat result."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """Return the stamp of a regular file; None where there is none or only a symlink."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return Stamp.of(status) if stat.S_ISREG(status.st_mode) else None


# Two changes within one tick of a file system's clock have one time: what is so recent is looked at again.
SETTLED_NS = 2_000_000_000


class Folder(NamedTuple):
    """What is right in a folder.

    Attributes:
        kinds: The kind of each file by its relative path.
        counts: How many files of each kind there are.
        subfolders: Absolute paths.
        misfits: What is passed over.
        changed_ns: When the folder changed last: by its time, and by that which nobody can set.
    """

    kinds: Mapping[str, PathKind]
    counts: Counter[PathKind]
    subfolders: Sequence[str]
    misfits: Sequence[Misfit]
    changed_ns: tuple[int, int]


class Tree:
    """A brain's folder.

    Args:
        root: An existing folder; resolved once, so that a link to a brain is that brain.
        layout: Its directories.
        sources: Folders of a person's own notes that are searched and never written; real paths.

    Attributes are absolute `Path`s: `root`, `inbox`, `notes`, `memory`, `short_term`, `long_term`,
    `archive`, `review`, `today`, `system`, `core_identity`, `config`, `prompts`, `workflows`, `plugins`,
    `logs`, `access_log`, `journal`.
    """

    def __init__(self, root: Path | str, layout: Layout | None = None, sources: Sequence[Path] = ()) -> None:
        self.root = Path(root).resolve(strict=True)
        self.layout = layout = layout or Layout()
        self.inbox = self.confine(layout.inbox)
        self.notes = self.inbox / "notes"
        self.memory = self.confine(layout.memory)
        self.short_term = self.memory / "short_term.md"
        self.long_term = self.memory / "long_term"
        self.archive = self.memory / "archive"
        self.review = self.memory / "review.md"
        self.today = self.memory / "Today.md"
        self.system = self.confine("system")
        self.core_identity = self.system / "core_identity.md"
        self.config = self.system / "config.yaml"
        self.prompts = self.system / "prompts"
        self.workflows = self.system / "workflows"
        self.plugins = self.confine(layout.plugins)
        self.logs = self.confine(layout.logs)
        self.access_log = self.logs / "access.log"
        self.journal = self.logs / "journal"
        folders = ("inbox", "notes", "long_term", "archive", "system", "plugins", "journal")
        self._prefixes = {name: self.relative(getattr(self, name)) for name in folders}
        self._files = {
            self.relative(self.short_term): PathKind.SHORT_TERM,
            self.relative(self.review): PathKind.REVIEW,
            self.relative(self.today): PathKind.TODAY,
            self.relative(self.config): PathKind.CONFIG,
            self.relative(self.access_log): PathKind.ACCESS_LOG,
        }
        tops = (self.inbox, self.memory, self.system, self.plugins, self.logs)
        self._tops = tuple(f"{top}{os.sep}" for top in tops)
        self.set_sources(sources)

    def set_sources(self, sources: Sequence[Path]) -> None:
        """Set the folders of a person's own notes; `kind_of` and `relative` know their files from now on.

        Args:
            sources: Real paths, within the root or outside of it.
        """
        self.sources = tuple(sources)
        # the sources outside of the root, as prefixes of the paths in them
        self._outer = tuple(f"{source}{os.sep}" for source in self.sources if not source.is_relative_to(self.root))
        # asked for each file of each scan; bounded, since a hostile tree may have any number of names; a new cache,
        # since the kinds of paths depend on the sources
        self._kind_of = lru_cache(maxsize=1 << 18)(self._classify)
        self._folders: dict[str, Folder] = {}  # as `survey` found them last

    @property
    def is_there(self) -> bool:
        """Whether the brain's folder exists; it does not while its disk is not mounted."""
        return self.system.is_dir()

    def __repr__(self) -> str:
        return f"Tree({str(self.root)!r})"

    def confine(self, path: str | os.PathLike[str], *, inside: Path | None = None) -> Path:
        """Return the absolute path of a file, or raise if it is outside the brain.

        Args:
            path: Relative to the root, or absolute; it need not exist.
            inside: A narrower folder that it must lie in, e.g. `tree.long_term`.

        Raises:
            ConfinementError: It leaves the root (or `inside`), by `..`, by being absolute, or through a symlink
                anywhere along it; or it has control characters or names that are too long.
        """
        written = os.fspath(path)
        if _UNPRINTABLE.search(written):
            raise ConfinementError(f"{written!r}: a path must not hold control characters or bytes that are not UTF-8")
        if any(map(is_too_long, written.split("/"))):
            what = f"a name in it is longer than {MAX_NAME_BYTES} bytes; shorten it"
            raise ConfinementError(f"{written[:80]!r}...: {what}")
        folder = os.fspath(inside or self.root)
        # checked twice: as written, so that `..` is refused whatever exists, and with symlinks followed
        absolute = os.path.normpath(os.path.join(self.root, written))
        self._check_within(absolute, folder, written)
        root = os.fspath(self.root)
        # root, root/a, root/a/b
        on_the_way = accumulate(absolute[len(root) :].split(os.sep), os.path.join, initial=root)
        if any(map(os.path.islink, on_the_way)):
            try:
                real = os.path.realpath(absolute)
            except (OSError, ValueError) as error:
                raise ConfinementError(f"{written!r}: not a usable path ({error})") from error
            self._check_within(real, os.path.realpath(folder), written)
        return Path(absolute)

    def readable(self, path: str | os.PathLike[str]) -> Path:
        """Return the absolute path of a file that may be read: one of the brain, or one of a source outside of it.

        Raises:
            ConfinementError: It is neither, or a symlink leads to it.
        """
        if self._outer:
            file = os.path.normpath(os.path.join(self.root, path))
            if file.startswith(self._outer) and self.kind_of(self.relative(file)) is PathKind.SOURCE:
                if os.path.realpath(file) != file:
                    raise ConfinementError(f"{os.fspath(path)!r} is a symlink, or lies behind one; it is not read")
                return Path(file)
        return self.confine(path)

    def holds(self, path: str) -> bool:
        """Return whether a file or folder exists at a path that a link names; False for an impossible path."""
        try:
            return self.confine(path).exists()
        except (ConfinementError, OSError):  # outside the brain, impossible, or no permission
            return False

    def _check_within(self, path: str, folder: str, written: str) -> None:
        """Raise `ConfinementError` if a path is not in a folder; its message has the path as it was written."""
        if path != folder and not path.startswith(folder.rstrip(os.sep) + os.sep):
            relative = self.relative(folder)
            place = "the brain" if relative == "." or os.path.isabs(relative) else f"{relative}/"
            raise ConfinementError(f"{written!r} leads outside {place}; name a path within it")

    def relative(self, path: str | os.PathLike[str]) -> str:
        """Return a path relative to the root, with `/` between its parts; "." for the root itself.

        A file of a source outside of the brain has a path that begins with `../`.
        """
        path = os.fspath(path)
        root = str(self.root)
        # string work instead of `Path.relative_to`, since a scan asks for every file
        if path.startswith(root + os.sep):
            path = path[len(root) + 1 :]
        elif path == root:
            return "."
        elif self._outer and path.startswith(self._outer):
            path = os.path.relpath(path, root)
        return path.replace(os.sep, "/")

    def absolute(self, relative: str) -> Path:
        """Return the absolute path of a relative one that the program made; paths from elsewhere need `confine`."""
        return self.root / relative

    def kind_of(self, relative: str) -> PathKind:
        """Return what a relative path is for, by its name and folder alone; cached, no I/O."""
        return self._kind_of(relative)

    def _classify(self, relative: str) -> PathKind:
        """Return the kind of a path; `kind_of` caches it."""
        parts = relative.split("/")
        if parts[0] == "..":
            return PathKind.SOURCE if self._is_source(relative) else PathKind.OTHER
        if any(is_temporary(part) for part in parts):
            return PathKind.IGNORED
        # such a name cannot be written in a message or a link
        if _UNPRINTABLE.search(relative):
            return PathKind.OTHER
        if kind := self._files.get(relative):
            return kind
        inside = {name: relative.startswith(prefix + "/") for name, prefix in self._prefixes.items()}
        name, is_markdown = parts[-1], relative.endswith(".md")
        if inside["inbox"]:
            if not name.lower().endswith(TEXT_ENDINGS):
                return PathKind.FILE if name.lower().endswith(FILE_ENDINGS) else PathKind.OTHER
            if re.search(r"\.response(-\d+)?\.md$", name):
                return PathKind.RESPONSE
            if name.endswith(".error.md"):
                return PathKind.ERROR
            return PathKind.CAPTURE if inside["notes"] else PathKind.PROMPT
        if inside["long_term"] and is_markdown:
            return PathKind.INDEX_PAGE if name == "_index.md" else PathKind.MEMORY
        if inside["archive"] and is_markdown:
            return PathKind.ARCHIVED
        if inside["journal"]:
            return PathKind.JOURNAL
        if inside["plugins"]:
            return PathKind.PLUGIN if name.endswith(".py") else PathKind.OTHER
        if inside["system"]:
            return PathKind.SYSTEM
        return PathKind.SOURCE if self._is_source(relative) else PathKind.OTHER

    def _is_source(self, relative: str) -> bool:
        """Return whether a path is that of a note in a source: Markdown, not hidden, in none of the brain's folders."""
        file = os.path.normpath(os.path.join(self.root, relative))
        if not file.lower().endswith(NOTE_ENDINGS) or file.startswith(self._tops):
            return False
        for source in self.sources:
            if file.startswith(f"{source}{os.sep}"):
                names = file[len(str(source)) + 1 :].split(os.sep)  # the source itself may be in a hidden folder
                if not any(map(is_temporary, names)):
                    return True
        return False

    def is_tracked(self, relative: str) -> bool:
        """Return whether the journal keeps the texts of files at this path (design: fold)."""
        return self.kind_of(relative) in _TRACKED

    def own_folders(self) -> list[Path]:
        """Return the folders right in the root that are not the brain's, without hidden ones and links."""
        ours = {self.relative(top).split("/")[0] for top in self._tops}
        return [folder for folder in subfolders(self.root) if folder.name not in ours]

    def source_folders(self) -> list[tuple[Path, bool]]:
        """Return the folders with the notes of all sources, each with whether those in its subfolders count too.

        The brain's own folders are left out, also where a source is the brain's folder or one above it.
        """
        folders: list[tuple[Path, bool]] = []
        remaining = list(self.sources)
        while remaining:
            folder = remaining.pop()
            is_deep = not self.root.is_relative_to(folder)
            folders.append((folder, is_deep))
            # its subfolders one by one, since the brain's own are among them, or one of them leads to the brain
            if not is_deep:
                remaining += self.own_folders() if folder == self.root else subfolders(folder)
        return folders

    def source_notes(self) -> dict[str, Stamp]:
        """Return every note of the sources with its stamp, by path; none is reached through a symlink."""
        files: dict[str, Stamp] = {}
        for folder, is_deep in self.source_folders():
            files |= self.scan(folder, is_deep=is_deep)
        return {path: stamp for path, stamp in files.items() if self.kind_of(path) is PathKind.SOURCE}

    def tracked(self) -> dict[str, Stamp]:
        """Return every file whose texts the journal keeps with its stamp, by path."""
        files = self.scan(self.inbox, self.memory, self.system)
        return {path: stamp for path, stamp in files.items() if self.is_tracked(path)}

    def scan(self, *tops: Path, is_deep: bool = True) -> dict[str, Stamp]:
        """Return the stamp of every file that `walk` yields, by relative path; a top may be a file too."""
        stamps = {}
        for entry in self.walk(*tops, is_deep=is_deep):
            with suppress(OSError):  # gone since its folder was listed
                stamps[self.relative(entry.path)] = Stamp.of(entry.stat(follow_symlinks=False))
        files = ((self.relative(top), stamp) for top in tops if (stamp := stamp_of(top)))
        return stamps | dict(files)

    def survey(self, top: Path) -> Iterator[Folder]:
        """Yield a folder and all below it, as `walk` would enter them; one that is as it was is not listed again.

        The time of a folder tells what is in it, and not who may read a file in it.
        """
        stack = [str(top)]
        while stack:
            name = stack.pop()
            try:
                status = os.lstat(name)
                changed_ns = status.st_mtime_ns, status.st_ctime_ns
            except OSError:
                changed_ns = 0, 0
            folder = self._folders.get(name)
            if folder is None or folder.changed_ns != changed_ns:
                misfits, subfolders = list[Misfit](), list[str]()
                entries = self.walk(Path(name), misfits=misfits, is_deep=False, subfolders=subfolders)
                kinds = {path: self._classify(path) for path in (self.relative(entry.path) for entry in entries)}
                folder = Folder(kinds, Counter(kinds.values()), subfolders, misfits, changed_ns)
                if not misfits and 0 < max(changed_ns) < time.time_ns() - SETTLED_NS:
                    self._folders[name] = folder
            yield folder
            stack += folder.subfolders

    def walk(
        self,
        *tops: Path,
        misfits: list[Misfit] | None = None,
        is_deep: bool = True,
        subfolders: list[str] | None = None,
    ) -> Iterator[os.DirEntry[str]]:
        """Yield every regular file below the folders in no particular order, without ignored names and symlinks.

        Args:
            tops: Absolute paths of the folders.
            misfits: Gets what is passed over although a person may expect that it is read.
            is_deep: Whether subfolders are entered.
            subfolders: Gets the absolute paths of those that would be entered.
        """
        stack = [str(top) for top in tops]
        while stack:
            folder = stack.pop()
            try:
                entries = os.scandir(folder)
            except OSError as error:  # it vanished, or there is no permission: the next rescan tries again
                if misfits is not None and not isinstance(error, FileNotFoundError):
                    misfits.append(Misfit(shown(self.relative(folder)), *_of_error(error)))
                continue
            with entries:
                for entry in entries:
                    # the pattern first: it is fast, and most names match it
                    if not _PLAIN_NAME.match(entry.name) and is_temporary(entry.name):
                        continue
                    is_folder, why = _look_at(entry)
                    if is_folder:
                        stack += [entry.path] * is_deep
                        if subfolders is not None:
                            subfolders.append(entry.path)
                    elif not why:
                        yield entry
                    if misfits is not None:
                        if not why and not is_folder and not os.access(entry.path, os.R_OK):
                            why = "cannot be read", "give yourself the right to it"
                        if why:
                            misfits.append(Misfit(shown(self.relative(entry.path)), *why))


def _look_at(entry: os.DirEntry[str]) -> tuple[bool, tuple[str, str] | None]:
    """Return whether an entry is a folder to be read, and what is wrong with it and what to do; None for nothing.

    A file's stat is had then, which the entry keeps: no caller of `walk` need expect an error of it.
    """
    if not is_printable(entry.name):
        what = "has a name with control characters, or bytes that are not UTF-8; it is passed over"
        return False, (what, "rename it")
    is_text = entry.name.lower().endswith(TEXT_ENDINGS)
    try:
        if entry.is_symlink():
            return False, ("is a link; links are not followed", "put the file itself there")
        if entry.is_dir(follow_symlinks=False):
            return True, ("is a folder with the name of a file", "rename it") if is_text else None
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            return False, ("is no file but a pipe, a socket or a device", "remove it, or put a file in its place")
    except OSError as error:  # it vanished, its folder lets nobody in, or its path is too long for the system
        return False, _of_error(error)
    return False, None


def _of_error(error: OSError) -> tuple[str, str]:
    """Return what is wrong with a file or folder that the system does not open, and what to do."""
    return f"cannot be opened ({error.strerror})", "give yourself the right to it, or shorten its path"


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder; hidden ones and links are left out."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # it vanished, or there is no permission
    return [folder / name for name in names if not is_temporary(name)]


_LOGS = {PathKind.ACCESS_LOG, PathKind.JOURNAL}
_TRACKED = {*PathKind} - _LOGS - {PathKind.PLUGIN, PathKind.IGNORED, PathKind.SOURCE, PathKind.FILE, PathKind.OTHER}


def is_printable(path: str) -> bool:
    """Return whether every tool can show a path: it has no control characters and is UTF-8."""
    return _UNPRINTABLE.search(path) is None


def is_too_long(path: str) -> bool:
    """Return whether the name of a file is longer than file systems allow."""
    return len(os.fsencode(path.rpartition("/")[2])) > MAX_NAME_BYTES


def shown(path: str) -> str:
    """Return a path with control characters as escapes."""
    return path if is_printable(path) else repr(path)[1:-1]


def is_temporary(name: str) -> bool:
    """Return whether a file or folder name is hidden, temporary or a sync-conflict copy."""
    return _TEMPORARY.match(name) is not None


def original_of(path: str) -> str | None:
    """Return the path of the file of which a path is a sync-conflict copy, by its name; None for any other name."""
    folder, _, name = path.rpartition("/")
    match = _SURE_COPY.fullmatch(name)
    return posixpath.join(folder, f"{match[1]}{match[2]}") if match else None


def possible_original(path: str, paths: Collection[str]) -> str:
    """Return the file that one of this name may be a copy of: `a.md` for `a 2.md`, `a (Ann).md` and `a-Ann.md`.

    Such a name may well be meant. It counts as a copy where the other stands beside it with the same uuid
    (`lineage.new_paths`); without one both files stay as they are.

    Args:
        path: A file's path, or its name.
        paths: The files that may be the original, likewise; "" is returned where none is.
    """
    folder, name = posixpath.split(path)
    stem, dot, ending = name.rpartition(".")
    if not dot or ending not in ("md", "yaml"):
        return ""
    stems = [match[1]] if (match := _PERHAPS_COPY.fullmatch(stem)) else []
    stems += [stem[:at] for at, sign in enumerate(stem) if sign == "-" and at]
    originals = (posixpath.join(folder, f"{each}.{ending}") for each in stems)
    return next((original for original in originals if original in paths), "")


def slugify(title: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
    """Return a file name without ending for a title: its words in lower case with `-` between, at most 80 bytes.

    Args:
        title: Any text, of any script; one without letters and digits gives `untitled`.
        taken: Such names that files of the folder have, in any case; on a clash a number is added.
    """
    stem = ""
    for character in unicodedata.normalize("NFC", title.lower()):
        # the vowels of many scripts are marks after a letter; a mark elsewhere belongs to a symbol
        is_mark = unicodedata.category(character) in ("Mn", "Mc") and stem[-1:] not in ("", "-")
        stem += character if character.isalnum() or is_mark else "-"
    stem = re.sub("-{2,}", "-", stem).strip("-") or "untitled"
    if len(stem.encode()) > _MAX_STEM_BYTES:
        cut = stem.encode()[:_MAX_STEM_BYTES].decode("utf-8", "ignore")
        stem = (cut.rpartition("-")[0] or cut).strip("-")  # without the word that was cut
    # Windows cannot open a file of this name, and a synced folder may be read there
    if _RESERVED.match(stem):
        stem += "-note"
    # two names that differ in case alone are one file on macOS and Windows
    occupied = {name.casefold() for name in taken}
    candidate, number = stem, 2
    while candidate.casefold() in occupied:
        candidate, number = f"{stem}-{number}", number + 1
    return candidate
