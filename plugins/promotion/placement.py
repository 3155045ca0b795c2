"""Where a new statement goes: its subject's page if there is one, else where a model says, confined (seeds S6)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import count
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError
from brainiac.formats.index_page import parse_index
from brainiac.llm.schemas import Page, SynthesizeRequest
from brainiac.text.times import format_date
from brainiac.tree import slugify

from .draft import Catalogue, can_hold, is_free
from .fates import Refusal
from .finding import Found

MAX_FOLDERS = 3  # below the kind: concrete/a/b/c/page.md
_USER = "User"


@dataclass(frozen=True, slots=True)
class Place:
    """The page a statement goes to.

    Attributes:
        path: Relative, posix.
        title: For a page that is not there yet.
        meta: Its front matter besides what every page has.
        steps: Of a skill, in order.
        model: Who chose it; "" where the subject has a page.
    """

    path: str
    title: str
    meta: dict[str, Any]
    steps: tuple[str, ...] = ()
    model: str = ""


class Placer:
    """Chooses pages, existing ones first.

    Args:
        brain: The brain.
        catalogue: What there is; pages that are chosen are added to it.
        cause: Id of the run's first event.
        abandon: Asked whether somebody came back.
    """

    def __init__(
        self, brain: Brain, catalogue: Catalogue, cause: str, abandon: Callable[[], bool] | None = None
    ) -> None:
        self._brain, self._catalogue, self._cause, self._abandon = brain, catalogue, cause, abandon
        self._summaries: dict[str, str] = {}
        self.refused: list[Refusal] = []

    def place(self, found: Found) -> Place:
        """Return the page of a candidate that is new.

        Raises:
            ModelError: The model cannot serve now.
        """
        candidate = found.candidate
        has_steps = bool(candidate.steps)  # said in the log; what a page's chooser adds nobody did
        is_skill = candidate.kind == "skill" and has_steps
        page = self._catalogue.of_subject(candidate.subject, is_private=found.is_private)
        if page and not is_skill and candidate.subject != _USER:
            return Place(page.path, page.title, {})
        answer, model = self._ask(found)
        if is_skill or (answer.kind == "skill" and has_steps):
            return self._skill(found, answer, model)
        if answer.kind == "event" and candidate.subject in ("", _USER):
            return free_day_place(self._brain, self._catalogue, found.at, is_private=found.is_private)
        return self._concrete(found, answer, model)

    def _ask(self, found: Found) -> tuple[Page, str]:
        request = SynthesizeRequest(
            now=self._brain.now(),
            is_private=found.is_private,
            cause=self._cause,
            abandon=self._abandon,
            candidate=found.candidate,
            events=found.events,
            folders=self.folders(),
        )
        page = self._brain.models.run(request)
        assert isinstance(page, Page)
        return page, self._brain.models.engine_for(request).name

    def folders(self) -> dict[str, str]:
        """Return the folders below `concrete/` and `skills/` with what each is about."""
        root, found = self._catalogue.root + "/", {}
        for folder in self._catalogue.folders:
            name = folder.removeprefix(root)
            if folder.startswith(root) and name.partition("/")[0] in ("concrete", "skills"):
                if folder not in self._summaries:
                    self._summaries[folder] = self._summary(f"{folder}/_index.md")
                found[name] = self._summaries[folder]
        return found

    def _summary(self, path: str) -> str:
        try:
            return parse_index(path, self._brain.read_page(path) or "").summary
        except FormatError:
            return ""

    def _concrete(self, found: Found, answer: Page, model: str) -> Place:
        candidate = found.candidate
        is_user = candidate.subject in ("", _USER)
        title = (answer.title if is_user else candidate.subject).strip()[:120] or "Notes"
        if page := self._catalogue.of_subject(title, is_private=found.is_private):
            return Place(page.path, page.title, {})
        meta: dict[str, Any] = {"subject": _USER if is_user else candidate.subject}
        meta["subject_type"] = "person" if is_user else candidate.subject_type
        return self._new(found, "concrete", answer.folder, title, meta, model=model)

    def _skill(self, found: Found, answer: Page, model: str) -> Place:
        steps = tuple(found.candidate.steps)
        if page := self._catalogue.of_skill(answer.title, is_private=found.is_private):
            return Place(page.path, page.title, {}, steps, model)
        meta: dict[str, Any] = {"subject": answer.title, "subject_type": "workflow"}
        return self._new(found, "skills", answer.folder, answer.title or "How to", meta, steps, model)

    def _new(
        self,
        found: Found,
        kind: str,
        folder: str,
        title: str,
        meta: dict[str, Any],
        steps: tuple[str, ...] = (),
        model: str = "",
    ) -> Place:
        candidate = found.candidate
        where = self._folder(found, kind, folder, model)
        taken = set(self._catalogue.folders.get(where, ()))
        while not is_free(self._brain, path := f"{where}/{slugify(title, taken)}.md"):
            taken.add(posixpath.splitext(posixpath.basename(path))[0].casefold())
        meta |= {"category": candidate.category} if candidate.category else {}
        meta |= {"canonical_key": candidate.canonical_key} if candidate.canonical_key else {}
        meta |= {"private": True} if found.is_private else {}
        return Place(path, title, meta, steps, model)

    def _folder(self, found: Found, kind: str, named: str, model: str) -> str:
        """Return a folder below a kind that a model named, in our spelling; `general` where it may not be used."""
        root = f"{self._catalogue.root}/{kind}"
        parts = [part for part in named.replace("\\", "/").split("/") if part.strip()]
        if parts[:1] == [kind]:
            parts = parts[1:]
        is_outside = named.startswith(("/", "~")) or ".." in parts or bool(re.match(r"[A-Za-z]:", named))
        if is_outside or len(parts) > MAX_FOLDERS:
            reason = f"folder {named[:100]!r} " + ("leads outside" if is_outside else "is too deep")
            self.refused.append(Refusal(found.candidate.statement, reason, "", model))
            parts = ["general"] if is_outside else parts[:MAX_FOLDERS]
        standing = {folder.casefold(): folder for folder in self._catalogue.folders}
        where = "/".join([root, *(slugify(part) for part in parts)])
        spelled = standing.get("/".join([root, *parts]).casefold()) or standing.get(where.casefold(), where)
        try:
            self._brain.tree.confine(spelled, inside=self._brain.tree.long_term)
            if can_hold(self._brain, spelled):
                return spelled
            reason = f"{spelled} is no folder"
        except ConfinementError as error:  # a symbolic link on the way
            reason = str(error)
        self.refused.append(Refusal(found.candidate.statement, reason, "", model))
        general = f"{root}/general"
        return general if can_hold(self._brain, general) else root


def free_day_place(brain: Brain, catalogue: Catalogue, at: str, *, is_private: bool) -> Place:
    """Return the page of a day that can be written: a further one where something else stands in its place.

    Raises:
        FormatError: Its folder cannot be one.
    """
    for number in count(1):
        place = day_place(brain, at, is_private=is_private, number=number)
        folder = posixpath.dirname(place.path)
        if not can_hold(brain, folder):
            raise FormatError(folder, "is no folder, so that nothing can be filed there; move away what stands there")
        page = catalogue.by_path.get(place.path)
        if page.is_private >= is_private if page else is_free(brain, place.path):
            return place
    raise AssertionError("unreachable")


def day_place(brain: Brain, at: str, *, is_private: bool, number: int = 1) -> Place:
    """Return the page of a day: what happened, and what was said word for word."""
    day = brain.day_of(at)
    suffix = ("-private" if is_private else "") + (f"-{number}" if number > 1 else "")
    root = brain.tree.relative(brain.tree.long_term)
    path = f"{root}/events/{day.replace('-', '/')}/{day}{suffix}.md"
    marks = (f" ({number})" if number > 1 else "") + (" (private)" if is_private else "")
    return Place(path, format_date(date.fromisoformat(day)) + marks, {"private": True} if is_private else {})
