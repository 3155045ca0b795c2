"""All memory pages of a brain at one moment, read and parsed once, and the folders of a person's own notes (sources).

Code that needs more than a page or two calls `store.pages()`. `PageSet.change` makes a change with the text as it was
read, so that the commit is refused where the file differs by then.
"""

from __future__ import annotations

import json
import os
import posixpath
import stat
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from brainiac.errors import ConfinementError, FormatError
from brainiac.events import Change, PathKind, write
from brainiac.formats.markdown import Link
from brainiac.formats.page import Memory, Statement, parse_memory
from brainiac.storage.files import read_bytes
from brainiac.tree import SETTLED_NS, Stamp, Tree, slugify, stamp_of

INDEX = "_index.md"
_KINDS = frozenset({PathKind.MEMORY, PathKind.INDEX_PAGE, PathKind.ARCHIVED})


class PageSet:
    """The memories, index pages and archived pages as they were when the set was made; it never changes.

    Args:
        tree: The brain's places.
        former: An earlier set; pages whose files are unchanged since are taken from it and not read again.
        only: The paths of the pages to be read; None for all.

    Attributes:
        root: The folder of long-term memory, relative.
        archive: The folder of the archive, relative.
        pages: Every readable page by its path, in the order of paths.
        broken: The pages that cannot be parsed, and what is wrong with each; they are left alone.
        memories: The pages of long-term memory that are no index pages.
    """

    def __init__(self, tree: Tree, former: PageSet | None = None, only: Iterable[str] | None = None) -> None:
        self._tree = tree
        self.root, self.archive = tree.relative(tree.long_term), tree.relative(tree.archive)
        self.pages: dict[str, Memory] = {}
        self.broken: dict[str, FormatError] = {}
        # those that a later set may take over, by path: the stamp of the file from before it was read, and what it is
        self._settled: dict[str, tuple[Stamp, Memory | FormatError]] = {}
        self._names: dict[str, set[str]] = {}  # what `names_in` returned, by folder
        settled = former._settled if former else {}
        if only is None:
            stamps = tree.scan(tree.long_term, tree.archive)
        else:
            self._settled = settled  # a later set of all pages has use for them
            stamps = {path: stamp for path in only if (stamp := stamp_of(tree.absolute(path)))}
        for path, stamp in sorted(stamps.items()):
            if tree.kind_of(path) not in _KINDS:
                continue
            former_stamp, page = settled.get(path, (None, None))
            if former_stamp != stamp:
                page = self._read(path)
            if page is not None and time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > SETTLED_NS:
                self._settled[path] = stamp, page
            if isinstance(page, Memory):
                self.pages[path] = page
            elif page is not None:
                self.broken[path] = page
        self.memories = {path: page for path, page in self.pages.items() if tree.kind_of(path) is PathKind.MEMORY}

    def _read(self, path: str) -> Memory | FormatError | None:
        """Return the page at a path, an error where it cannot be parsed; None where there is no file."""
        try:
            text = page_text(self._tree, path)
            return None if text is None else parse_memory(path, text)
        except FormatError as error:
            # a new error: the traceback of the raised one would keep this set and all its pages in memory
            return FormatError(path, error.problem)

    # --- identity ---------------------------------------------------------------------------------------

    @cached_property
    def by_uuid(self) -> Mapping[str, list[str]]:
        """Paths by the uuid of the pages; more than one where a page was copied."""
        paths: dict[str, list[str]] = defaultdict(list)
        for path, page in self.pages.items():
            if page.uuid:
                paths[page.uuid].append(path)
        return paths

    @cached_property
    def path_by_uuid(self) -> Mapping[str, str]:
        """Path by uuid; a uuid that two pages share is left out, since it identifies neither."""
        return {uuid: paths[0] for uuid, paths in self.by_uuid.items() if len(paths) == 1}

    @cached_property
    def by_name(self) -> Mapping[str, list[Memory]]:
        """Memories by title, subject and alias, each casefolded."""
        pages: dict[str, list[Memory]] = defaultdict(list)
        for page in self.memories.values():
            for name in {name.casefold() for name in (page.title, page.subject, *page.aliases) if name}:
                pages[name].append(page)
        return pages

    def kind_of(self, path: str) -> str:
        """Return the kind of a memory, `concrete`, `events` or `skills`: the folder right below long-term memory."""
        return path.removeprefix(self.root + "/").partition("/")[0]

    def statement(self, uuid: str, block_id: str) -> Statement | None:
        """Return a statement by its page's uuid and its block id; None where there is none."""
        page = self.pages.get(self.path_by_uuid.get(uuid, ""))
        statements = page.statements if page and block_id else ()
        return next((statement for statement in statements if statement.block_id == block_id), None)

    # --- links ------------------------------------------------------------------------------------------

    def target(self, page: Memory, link: Link) -> str:
        """Return the path that a link on a page leads to: the present one of its uuid's page, else the written one."""
        return self.path_by_uuid.get(link.uuid) or linked_path(link, page.path)

    @cached_property
    def linking_to(self) -> Mapping[str, set[str]]:
        """Paths of the pages with a Markdown link to a page, by that page's path; index pages included."""
        sources: dict[str, set[str]] = defaultdict(set)
        for path, page in self.pages.items():
            for link in page.links:
                if not link.is_wiki and not link.is_external and (target := self.target(page, link)) != path:
                    sources[target].add(path)
        return sources

    # --- folders ----------------------------------------------------------------------------------------

    @cached_property
    def children(self) -> Mapping[str, set[str]]:
        """Paths of the memories and subfolders in each folder of long-term memory, by the folder's path."""
        children: dict[str, set[str]] = {self.root: set()}
        for path in self.pages:
            if path.startswith(self.root + "/"):
                child = posixpath.dirname(path) if posixpath.basename(path) == INDEX else path
                while child != self.root:
                    children.setdefault(posixpath.dirname(child), set()).add(child)
                    child = posixpath.dirname(child)
        return children

    def names_in(self, folder: str) -> set[str]:
        """Return the names of all files and subfolders of a folder, casefolded."""
        if folder not in self._names:
            try:
                names = os.listdir(self._tree.absolute(folder))
            except OSError:
                names = []  # a commit will make the folder
            self._names[folder] = {name.casefold() for name in names}
        return self._names[folder]

    def free_path(self, folder: str, title: str, taken: set[str] | None = None) -> str:
        """Return a path for a new page in a folder that no file has.

        Args:
            folder: Relative; it need not exist.
            title: Of the page; its file name is made of it.
            taken: Further names, casefolded with `.md`, that pages not yet written will have.
        """
        names = self.names_in(folder) | (taken or set())
        return f"{folder}/{slugify(title, {posixpath.splitext(name)[0] for name in names})}.md"

    # --- changes ----------------------------------------------------------------------------------------

    def change(self, path: str, after: str) -> Change:
        """Return the change that gives a page another text, or makes a page where there is none.

        Args:
            path: Relative.
            after: The whole text.
        """
        page = self.pages.get(path)
        return write(path, None if page is None else page.text, after)


def linked_path(link: Link, page: str) -> str:
    """Return the path from the root for a link's target, which is relative to the folder of its page.

    Args:
        link: The link.
        page: Path of its page.
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link.target))


def page_text(tree: Tree, path: str) -> str | None:
    """Return the text of a page that may be changed; None where there is no file.

    Raises:
        FormatError: It is no regular file or cannot be read; callers go on without the page.
    """
    try:
        file = tree.confine(path)
        content = read_bytes(file) if stat.S_ISREG(os.lstat(file).st_mode) else None
        if content is None:
            raise FormatError(path, "is a link, a folder or a device and no file; put a file there")
        return content.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ConfinementError, OSError) as error:
        raise FormatError(path, f"cannot be read ({error}); it is left as it is") from error
    except UnicodeDecodeError as error:
        raise FormatError(path, f"is not UTF-8 (from byte {error.start} on); save it as UTF-8") from error


# --- sources --------------------------------------------------------------------------------------------------------

# Folders of a person's own notes that are searched and cited and never written (docs/obsidian.md). The settings name
# them, and settings come with a synced or cloned folder. So a folder outside of the brain is read only where this
# machine's person allowed it: the state folder lists the allowed ones by real path.

ALLOWED = "sources.json"


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that the setting `sources` names.

    Attributes:
        name: As written in the settings.
        folder: Its real path.
        problem: Why it is not read; "" where it is read.
        todo: What a person can do about the problem.
        is_refused: It is not read because nobody allowed it on this machine.
    """

    name: str
    folder: Path
    problem: str = ""
    todo: str = ""
    is_refused: bool = False


def find_sources(root: Path, names: Sequence[str], state: Path) -> list[Source]:
    """Return the folders that the setting `sources` names, each with whether it is read.

    Args:
        root: The brain's folder, resolved.
        names: The setting.
        state: This brain's state folder on this machine.
    """
    allowed = _allowed(state) if names else frozenset()
    return [_source(root, name, allowed) for name in names]


def _source(root: Path, name: str, allowed: Iterable[str]) -> Source:
    """Return the source for a name in the settings.

    Args:
        root: The brain's folder, resolved.
        name: A path relative to the root, absolute, or beginning with `~`.
        allowed: Real paths of the folders outside the brain that may be read.
    """
    path = Path(name)
    if name.startswith("~"):
        path = Path(os.path.expanduser(name))  # an unknown user's home stays as it is written
    folder = Path(os.path.realpath(root / path))
    if not folder.is_dir():
        return Source(name, folder, "is not there", "make it, or take it out of `sources`")
    if folder.is_relative_to(root) or str(folder) in allowed:
        return Source(name, folder)
    if not path.is_absolute():
        return Source(name, folder, "leads out of the brain through a link", f"write {folder} instead")
    problem = "lies outside of the brain and is not allowed on this machine"
    return Source(name, folder, problem, f"`brainiac sources allow {name}` if it is to be read", is_refused=True)


def set_allowed(state: Path, folder: Path, *, is_allowed: bool) -> None:
    """Record that a folder outside of the brain may be read on this machine, or that it may not any more.

    Args:
        state: This brain's state folder.
        folder: Its real path.
        is_allowed: Whether it may.
    """
    folders = _allowed(state) - {str(folder)} | ({str(folder)} if is_allowed else set())
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = state / f".{ALLOWED}-{os.getpid()}"
    draft.write_text(json.dumps(sorted(folders)), encoding="utf-8", errors="surrogateescape")
    os.replace(draft, state / ALLOWED)


def _allowed(state: Path) -> frozenset[str]:
    """Return the real paths that may be read on this machine; none where the list is missing or damaged."""
    try:
        folders = json.loads((state / ALLOWED).read_text("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return frozenset()
    listed = folders if isinstance(folders, list) else []
    return frozenset(folder for folder in listed if isinstance(folder, str))
