"""Files dropped into the inbox that are no text: each gets a page in `events/imported/files/` that links to it.

The file stays where it was dropped, and none of its bytes comes into the journal. Its path is its identity, as in any
import of notes: a file that changes changes its page, and a page that was deleted stays deleted.
"""

from __future__ import annotations

import os
import posixpath
from datetime import UTC, datetime

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import format_link, relative_link
from brainiac.formats.prompt import parse_prompt
from brainiac.imports.intake import Intake, Outcome
from brainiac.imports.notes import document
from brainiac.imports.records import Note, page_path, quoted
from brainiac.search.documents import IMPORTED
from brainiac.tree import PICTURES

SERVICE, _SIZE = "files", "file_size"


def is_taken_in(brain: Brain, path: str) -> bool:
    """Return whether a file in the inbox has its page, by size and time: none is read at a start."""
    page, stat = brain.read_text(_page_of(brain, path)) or "", brain.tree.absolute(path).stat()
    return f"\n{_SIZE}: {stat.st_size}\n" in page and f"\nupdated_at: {_time_of(stat)}\n" in page


def _page_of(brain: Brain, path: str) -> str:
    key = path.removeprefix(f"{brain.tree.layout.inbox}/")
    return f"{brain.tree.relative(brain.tree.long_term)}{IMPORTED}{SERVICE}/{page_path(f'{key}.md')}"


def _time_of(stat: os.stat_result) -> str:
    return iso(datetime.fromtimestamp(stat.st_mtime, UTC))


def take_in(brain: Brain, path: str) -> Outcome:
    """Make or renew the page of a file in the inbox, in one commit.

    Args:
        brain: The brain.
        path: Of a file of the kind `FILE`, relative.

    Returns:
        What became of it: `state` is `known` where its page has it already, or was deleted; `path` is that of the page.

    Raises:
        FormatError: The file changes meanwhile: it is still being copied.
        OSError: It cannot be read.
    """
    file, name = brain.tree.absolute(path), posixpath.basename(path)
    before, key = file.stat(), path.removeprefix(f"{brain.tree.layout.inbox}/")
    at, page = _time_of(before), _page_of(brain, path)
    # the prompt or note that has its name; none that is to be kept nowhere
    texts = (
        f"{stem}{ending}" for stem in (posixpath.splitext(path)[0], path) for ending in (".md", ".txt", ".markdown")
    )
    about = None
    if found := next(((text, raw) for text in texts if (raw := brain.read(text)) is not None), None):
        about = parse_prompt(*found, at="", inbox=brain.tree.layout.inbox)
        about = about if about.remember and not about.is_draft and about.said.strip() else None
    is_private = bool(about and about.private)
    intake = Intake(brain, path, by="kernel", is_private=is_private, is_undone_known=True)
    link = format_link(name, relative_link(path, posixpath.dirname(page)), "")
    if name.lower().endswith(".pdf"):
        with file.open("rb") as opened:
            note = document(opened, key, at, link)
    else:
        mark = "!" if name.lower().endswith(PICTURES) else ""
        stem = posixpath.splitext(name)[0]
        note = Note(key, name, f"# {stem} ({name})\n\n{stem}: {mark}{link}\n")
    after = file.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise FormatError(path, "is still being written")
    said = f"\n{quoted(about.said)}\n" if about else ""
    text = f"{render_meta({_SIZE: before.st_size})}\n{note.text}{said}" if not note.problem else ""
    note = Note(key, name, text, at, f"{key}.md", remark=note.remark, problem=note.problem)
    (outcome,) = intake.take(SERVICE, [note])
    return outcome
