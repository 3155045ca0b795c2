"""`brainiac show`: a page, or another file that the journal keeps, as it stands or as it stood at a moment."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.formats.page import parse_memory
from brainiac.history.why import find_memory
from brainiac.storage.past import Past, Version


@dataclass(frozen=True, slots=True)
class Shown:
    """A file as it stands or stood.

    Attributes:
        path: Where it lies or lay.
        text: The whole file.
        version: What made it so; None for the present file.
        device: The other device whose journal tells it; "" for this one.
    """

    path: str
    text: str
    version: Version | None = None
    device: str = ""


def present(brain: Brain, named: str) -> Shown:
    """Return a page by path, uuid, title or file name, or another file of the brain by its path, as it stands.

    Raises:
        UserError: There is none, or several pages have the name.
    """
    page = find_memory(brain, named)
    path = page.path if page else _path_of(brain, named)
    text = page.text if page else brain.read_text(path) if path else None
    if text is None:
        raise UserError(f"no page and no file is called {named!r}; with --at a day it may be an earlier one")
    return Shown(path, text)


def at_moment(brain: Brain, named: str, at: str) -> Shown:
    """Return a page or file as it stood at a moment, however it was named, moved or removed since.

    Args:
        brain: The brain.
        named: The path then or now; of a page also its uuid, title or file name, then or now.
        at: ISO 8601 UTC.

    Raises:
        UserError: There was none, its text is not kept, or no journal goes back so far.
    """
    past = Past(brain, at)
    version = _version(brain, past, named)
    if version is None:
        raise UserError(f"nothing called {named!r} stood there then; `brainiac diff --since DAY` lists what came later")
    text = brain.kept_text(version.digest)
    if text is None:
        reason = "was purged" if past.is_purged(version.digest) else "is not in the journal's texts (`brainiac doctor`)"
        raise UserError(f"{version.path} stood there then, but its text {reason}")
    return Shown(version.path, text, version, past.other_device)


def _version(brain: Brain, past: Past, named: str) -> Version | None:
    """Return the version that a person means; None for none."""
    path = _path_of(brain, named)
    below = f"{brain.tree.relative(brain.tree.long_term)}/{path}"
    if path and (version := past.version(path) or past.version(below)):
        return version
    page = find_memory(brain, named)
    place = page.path if page else path
    if place and (version := past.version(past.former_path(place))):
        return version
    return _by_name(brain, past, {page.uuid, page.title} if page else {named})


def _path_of(brain: Brain, named: str) -> str:
    """Return what a person typed as a path of the brain; "" where it leads outside of it."""
    try:
        return brain.tree.relative(brain.tree.confine(named))
    except ConfinementError:
        return ""


def _by_name(brain: Brain, past: Past, names: Collection[str]) -> Version | None:
    """Return the page that had one of these uuids, titles or file names at the moment; None for none.

    Raises:
        UserError: Several pages had it.
    """
    wanted = {name.strip().casefold() for name in names} - {""}
    pages = past.pages()
    matches = [path for path in pages if posixpath.basename(path).removesuffix(".md").casefold() in wanted]
    # the files' names first: for titles and uuids the texts of all pages may have to be read
    matches = matches or [path for path, digest in pages.items() if wanted & _names_of(brain, path, digest)]
    if len(matches) > 1:
        raise UserError(f"{len(matches)} pages were called so: {', '.join(sorted(matches))}; name one by its path")
    return past.version(matches[0]) if matches else None


def _names_of(brain: Brain, path: str, digest: str) -> set[str]:
    """Return uuid and title of a page as it stood; none where its text is not kept, or was no page."""
    try:
        text = brain.kept_text(digest)
        page = None if text is None else parse_memory(path, text)
    except FormatError:
        page = None
    return {page.uuid.casefold(), page.title.casefold()} if page else set()
