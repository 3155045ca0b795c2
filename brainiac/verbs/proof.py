"""Proof that something is forgotten: everything that this machine has of a brain is looked through for some words.

Nothing is taken from what the program believes it has deleted: the bytes of files, tables, index and archives are read.
A text has the words if all of them meet in one unit of it, as for `forget`; in what is no text, in one run of readable
bytes, which freed rows of a database are too.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

from brainiac.brain import Brain
from brainiac.errors import BlobError, BrainiacError, UserError
from brainiac.events import PathKind
from brainiac.formats.markdown import decode_text, find_links, one_line
from brainiac.history.forget import said_in, texts_in, values_of
from brainiac.search.documents import page_of
from brainiac.search.embed import VectorFile
from brainiac.search.features import content_key
from brainiac.storage.files import read_bytes
from brainiac.storage.journal import SPLICE_SUFFIX, BlobStore
from brainiac.storage.withheld import split_or_all, units_of
from brainiac.text.tokens import holds_words
from brainiac.verbs.reading import briefing

REQUESTS = 100  # the last ones, whose working memory is made anew
QUOTED_CHARACTERS = 80
_WINDOW, _OVERLAP = 1 << 22, 1 << 12  # bytes
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd]+|\n\s*\n")
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
_GIT = "git history (`git log --all -S WORD`)"
_BEYOND = (
    "what is compressed or encrypted in a file, and what a link leads to",
    "versions and trash that a sync service keeps elsewhere",
    "archives that were not named with --archive",
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Found:
    """A place with the words.

    Attributes:
        place: One of `Proof.searched`.
        where: The file, event, text or request.
        text: The beginning of what has them; "" where it cannot be shown.
    """

    place: str
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What was looked through for some words.

    Attributes:
        words: Which.
        searched: How many texts were looked through, by place.
        found: Where they are.
        beyond: What cannot be reached from here.
    """

    words: str
    searched: dict[str, int]
    found: tuple[Found, ...]
    beyond: tuple[str, ...]


def prove_forgotten(
    brain: Brain, words: str, archives: tuple[Path, ...] = (), progress: Progress = lambda done, total: None
) -> Proof:
    """Look for words in everything that is left of a brain on this machine, and say where they are.

    Args:
        brain: The brain.
        words: All of them must meet in one unit of a text.
        archives: Backups, or other folders and files, that are looked through too.
        progress: Called with how many requests were made anew, and of how many.

    Raises:
        UserError: There is no word or symbol to be looked for, no such archive, or a file or folder cannot be read.
    """
    if not holds_words(words, words):
        raise UserError(f"{words!r} has no word; name one")
    if missing := [str(archive) for archive in archives if not archive.exists()]:
        raise UserError(f"{missing[0]} is not there; name a backup, or another folder or file")
    searched: dict[str, int] = {}
    found: dict[tuple[str, str], Found] = {}  # by place and file: the first text there
    texts: list[tuple[str, Iterator[tuple[str, str]]]] = [
        *_of_tree("", brain.root, brain.tree.relative(brain.journal.blobs.folder)),
        ("state", _of_files(brain.places.state)),
        ("index", _of_files(brain.places.cache / "index")),
        ("former moments", _of_files(brain.places.cache / "as_of")),
        ("working memory", _of_requests(brain, progress)),
    ]
    for archive in archives:
        inside = archive / "brain" if (archive / "brain").is_dir() else archive
        texts += _of_tree(f"{archive}: ", inside, brain.tree.relative(brain.journal.blobs.folder))
    for place, pieces in texts:
        searched[place] = 0
        for where, text in pieces:
            searched[place] += 1
            if holds_words(text, words):
                found.setdefault((place, where), Found(place, where, one_line(text)[:QUOTED_CHARACTERS]))
    searched["vectors"], kept = _vectors_of(brain, words)
    found |= {("vectors", path): Found("vectors", path, "") for path in kept}
    has_git = any((folder / ".git").exists() for folder in (brain.root, *brain.root.parents))
    calls = brain.projection.query("SELECT model, COUNT(*) FROM calls GROUP BY model ORDER BY model")
    sent = (f"what was sent to {model} ({count} calls)" for model, count in calls)
    return Proof(words, searched, tuple(found.values()), (*[_GIT] * has_git, *_BEYOND, *sent))


def _of_tree(name: str, root: Path, blobs: str) -> list[tuple[str, Iterator[tuple[str, str]]]]:
    """Return the places in a brain's folder, or in a copy of one, each with its texts.

    Args:
        name: Before the names of the places.
        root: The folder, or a file.
        blobs: Where the journal's texts lie, relative.
    """
    return [
        (f"{name}files", _of_files(root, (str(Path(blobs).parent), ".git"))),
        (f"{name}journal", _of_files(root / Path(blobs).parent, ("blobs",))),
        (f"{name}former versions", _of_blobs(BlobStore(root / blobs))),
    ]


def _of_files(top: Path, left_out: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the texts of all files in a folder, and their names, each with its file.

    Args:
        top: The folder, or a file.
        left_out: Folders in it, relative.
    """
    for path in _paths_in(top):
        relative = path.relative_to(top).as_posix()
        if any(relative == folder or relative.startswith(f"{folder}/") for folder in left_out):
            continue
        yield str(path), _with_parts(unquote(path.name))
        content = _content_of(path)
        if content.startswith(b"SQLite format 3\0"):
            yield from ((str(path), text) for text in _of_tables(path))
        yield from ((str(path), text) for text in _pieces(path.name, content))


def _paths_in(top: Path) -> Iterator[Path]:
    """Yield a file itself, or all that is in a folder; links are not followed."""
    if top.is_file():
        yield top
    for folder, folders, files in os.walk(top, onerror=_refuse):
        yield from (Path(folder, name) for name in sorted((*folders, *files)))


def _content_of(path: Path) -> bytes:
    """Return a file's content; nothing for a link, a folder, a pipe, or what is gone meanwhile."""
    try:
        return b"" if path.is_symlink() else read_bytes(path) or b""
    except OSError as error:
        _refuse(error, path)
        return b""


def _refuse(error: OSError, path: Path | None = None) -> None:
    """Raise a `UserError` unless a file or folder is just gone: what was not read proves nothing."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise UserError(f"{path or error.filename} cannot be read ({error.strerror}): nothing is proved") from error


def _with_parts(name: str) -> str:
    """Return a name or a path, and its words apart: a `_` joins them."""
    return f"{name} {re.sub('[/_]', ' ', name)}"


def _pieces(name: str, content: bytes) -> Iterator[str]:
    """Yield the texts of a file that are looked through one by one."""
    if name.endswith((".md", ".txt")):
        text = decode_text(content)
        yield from text[: split_or_all(text)[1]].splitlines()  # keys and comments too
        yield from values_of(text)
        yield from (_with_parts(unquote(link.target)) for link in find_links(text))  # folders too
        yield from (said_in(text[start:end]) for start, end in units_of(text))
        return
    is_log = name.endswith(".jsonl")
    for line in content.splitlines() if is_log else [content] * name.endswith(".json"):
        try:
            yield from map(_with_parts, texts_in(json.loads(line)))  # a text may be a path
        except (ValueError, RecursionError):  # torn
            yield _with_parts(line.decode("utf-8", "replace"))
    # a part at a time, each with the beginning of the next: a large file takes no more memory
    for start in range(0, 0 if is_log else len(content), _WINDOW):
        part = content[start : start + _WINDOW + _OVERLAP]
        for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            yield from filter(str.strip, _UNREADABLE.split(part.decode(encoding, "replace")))


def _of_tables(path: Path) -> Iterator[str]:
    """Yield every value of every row of a database: a long one lies in several of its pages."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        connection.text_factory = bytes  # it may be no UTF-8
        for (table,) in connection.execute(_TABLES).fetchall():
            with suppress(sqlite3.Error):
                for value in chain.from_iterable(connection.execute(f'SELECT * FROM "{table.decode()}"')):
                    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
                    yield from filter(str.strip, _UNREADABLE.split(text))


def _of_blobs(blobs: BlobStore) -> Iterator[tuple[str, str]]:
    """Yield the units of every text that a journal keeps, each with its hash; of one that is not whole what is left."""
    for path in _paths_in(blobs.folder):
        digest = path.parent.name + path.name.removesuffix(SPLICE_SUFFIX)
        try:
            content = blobs.get(digest)
        except (BlobError, OSError):  # damaged, or a splice whose base was destroyed, or a crash left it half written
            content = _content_of(path)
        yield from ((f"text {digest[:12]}", text) for text in _pieces("text.md", content))


def _of_requests(brain: Brain, progress: Progress) -> Iterator[tuple[str, str]]:
    """Yield what a model would be shown for each of the last prompts, each with the prompt's path."""
    sql = f"SELECT DISTINCT prompt FROM (SELECT prompt FROM exchanges ORDER BY event DESC LIMIT {REQUESTS})"
    prompts = [prompt for (prompt,) in brain.projection.query(sql)]
    for number, prompt in enumerate(prompts):
        progress(number, len(prompts))
        text = brain.read_text(prompt)
        if text is None:
            continue
        with suppress(BrainiacError):  # it is too long for a window
            for block in briefing(brain, said_in(text)).memory.blocks:
                yield from ((prompt, unit) for unit in _pieces("block.md", block.text.encode("utf-8", "replace")))
    progress(len(prompts), len(prompts))


def _vectors_of(brain: Brain, words: str) -> tuple[int, list[str]]:
    """Return how many vectors are kept, and the files with one of a text with the words that the journal still has.

    A vector has no words: it is found by the hash of its text.
    """
    folder = brain.places.cache / "vectors"
    keys: set[int] = set()
    for digest in brain.journal.blobs.digests():
        with suppress(BlobError, BrainiacError):
            text = decode_text(brain.journal.blobs.get(digest))
            if holds_words(text, words):
                for kind in (PathKind.MEMORY, PathKind.SHORT_TERM):
                    units = page_of("memory/page.md", text, kind, brain.zone).units
                    keys.update(content_key(unit) for unit in units if holds_words(unit.read, words))
    vectors = {path: VectorFile(folder, path.stem) for path in folder.glob("*.f16")}
    kept = [str(path) for path, file in vectors.items() if len(file.missing(sorted(keys))) < len(keys)]
    return sum(map(len, vectors.values())), kept
