"""What of the proposals may be done, what needs a person's word, and what is refused, with the reason for each."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from brainiac.brain import Brain
from brainiac.errors import ConfinementError
from brainiac.formats.discretion import shareable
from brainiac.llm.schemas import Proposal

from .catalog import Catalog
from .past import Past
from .patterns import Patterns
from .splitting import divide

MANY, MANY_SHARE = 20, 0.3  # more than this put to rest at once is a person's decision
MAX_LINKED = 6


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to be done, in full.

    Attributes:
        kind: `link`, `move`, `archive`, `split`, `compress`.
        paths: Pages, as they stand.
        target: The folder of a move, of a split's part, of a digest.
        reason: For the journal and for a person.
    """

    kind: str
    paths: tuple[str, ...]
    target: str = ""
    reason: str = ""


@dataclass(slots=True)
class Verdict:
    """What came of proposals.

    Attributes:
        do: To be done now.
        ask: To be put before a person.
        refused: Proposal and why, in a few words.
    """

    do: list[Action] = field(default_factory=list)
    ask: list[Action] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


class Judge:
    """Validates proposals against the tree, the counts, and what a person did.

    Args:
        brain: The brain.
        catalog: The pages.
        past: What a person wrote and placed.
        patterns: What the counts show.
    """

    def __init__(self, brain: Brain, catalog: Catalog, past: Past, patterns: Patterns) -> None:
        self._brain, self._catalog, self._past = brain, catalog, past
        self._now: datetime = brain.clock.now()
        self._limit = brain.settings.organization.max_entries
        self._unused = {row["path"] for row in patterns.unused}
        self._overgrown = {row["folder"] for row in patterns.overgrown}
        self._events = f"{catalog.root}/events"
        self._taken: set[str] = set()
        self._verdict = Verdict()

    def judge(self, proposals: Iterable[Proposal]) -> Verdict:
        """Return what is to become of each; a page takes part in one change of place at most."""
        for proposal in proposals:
            check = {"link": self._link, "move": self._move, "split": self._split}.get(proposal.action, self._rest)
            check(proposal)
        self._hold_many()
        return self._verdict

    def _refuse(self, proposal: Proposal, why: str, *names: str) -> None:
        what = ", ".join(names or proposal.paths[:3])
        self._verdict.refused.append((f"{proposal.action} {what}"[:300], why))

    def _known(self, proposal: Proposal, path: str) -> bool:
        """Tell whether a path names a memory with an identity that nobody is changing at this moment."""
        if path not in self._catalog.pages or path not in self._catalog.uuids:
            self._refuse(proposal, "there is no such memory", path)
        elif self._catalog.uuids[path] not in self._catalog.place_of:
            self._refuse(proposal, "another page has its uuid", path)
        elif not self._past.is_resting(path, self._now):
            self._refuse(proposal, "it was edited a moment ago", path)
        else:
            return True
        return False

    def _free(self, proposal: Proposal, path: str) -> bool:
        if not self._known(proposal, path):
            return False
        if path in self._taken:
            self._refuse(proposal, "another proposal has it already", path)
            return False
        return True

    def _folder(self, target: str) -> str:
        """Return a folder of long-term memory in our spelling; "" when it may not be used."""
        folder = posixpath.dirname(target) if target.endswith(".md") else target.rstrip("/")
        try:
            absolute = self._brain.tree.confine(folder, inside=self._brain.tree.long_term)
        except ConfinementError:
            return ""
        return self._brain.tree.relative(absolute) if folder else ""

    def _link(self, proposal: Proposal) -> None:
        paths = [path for path in dict.fromkeys(proposal.paths) if self._known(proposal, path)]
        if not 2 <= len(paths) <= MAX_LINKED:
            self._refuse(proposal, f"two to {MAX_LINKED} memories are linked at once")
            return
        self._verdict.do.append(Action("link", tuple(paths), reason=proposal.reason))

    def _move(self, proposal: Proposal) -> None:
        """A memory that is used much goes up, never out of its kind, and a day stays where its date is."""
        folder = self._folder(proposal.target)
        for path in proposal.paths:
            here = posixpath.dirname(path)
            if not self._free(proposal, path):
                continue
            if not here.startswith(folder + "/") or folder.count("/") <= self._catalog.root.count("/") or not folder:
                self._refuse(proposal, f"it may move up within its kind, not to {proposal.target[:100]!r}", path)
            elif path.startswith(self._events + "/"):
                self._refuse(proposal, "what happened stays with its date", path)
            else:
                self._place(Action("move", (path,), folder, proposal.reason))

    def _place(self, action: Action) -> None:
        """A place that a person chose is not changed without their word."""
        self._taken.update(action.paths)
        theirs = [path for path in action.paths if path in self._past.placed]
        ours = tuple(path for path in action.paths if path not in self._past.placed)
        for paths, found in ((ours, self._verdict.do), (tuple(theirs), self._verdict.ask)):
            if paths:
                found.append(Action(action.kind, paths, action.target, action.reason))

    def _split(self, proposal: Proposal) -> None:
        """Divide an overgrown folder; pages that a person put there stay, unless it cannot be done without them."""
        folder = self._folder(proposal.paths[0]) if proposal.paths else ""
        if folder not in self._overgrown:
            self._refuse(proposal, "it is not overgrown")
            return
        pages = self._catalog.pages
        here = [path for path in sorted(self._catalog.entries[folder]) if path in pages and path not in self._taken]
        free = [pages[path] for path in here if self._known(proposal, path)]
        ours = [page for page in free if page.path not in self._past.placed]
        entries = len(self._catalog.entries[folder])
        day_of = self._brain.day_of if f"{folder}/".startswith(self._events + "/") else None
        groups = divide(ours, entries - len(ours), self._limit, day_of)
        groups = groups or divide(free, entries - len(free), self._limit, day_of)
        if not groups:
            self._refuse(proposal, "no division brings it under the limit", folder)
        for name, paths in groups.items():
            self._place(Action("split", tuple(paths), f"{folder}/{name}", proposal.reason))

    def _rest(self, proposal: Proposal) -> None:
        """Put to rest what is unused; what is important or a person's, only by their word."""
        ours: list[str] = []
        asked: dict[str, list[str]] = {}
        for path in dict.fromkeys(proposal.paths):
            if not self._free(proposal, path):
                continue
            if path not in self._unused:
                self._refuse(proposal, "it is used", path)
                continue
            self._taken.add(path)
            if self._needs_word(path):
                asked.setdefault(posixpath.dirname(path), []).append(path)
            else:
                ours.append(path)
        self._verdict.do += self._resting(proposal, ours)
        self._verdict.ask += [Action("archive", tuple(paths), reason=proposal.reason) for paths in asked.values()]

    def _needs_word(self, path: str) -> bool:
        return self._catalog.pages[path].meta.get("importance") == "high" or path in self._past.edited

    def _resting(self, proposal: Proposal, paths: list[str]) -> list[Action]:
        """Compress days that hold nothing private, several of one month; archive all else."""
        if proposal.action != "compress":
            return [Action("archive", tuple(paths), reason=proposal.reason)] if paths else []
        months: dict[str, list[str]] = {}
        for path in paths:
            text = self._catalog.texts[path]
            is_day = path.startswith(self._events + "/") and shareable(text) == text  # a digest bears no marks
            months.setdefault(month_of(path, self._events) if is_day else "", []).append(path)
        return [
            Action("compress" if month and len(found) > 1 else "archive", tuple(found), month, proposal.reason)
            for month, found in months.items()
        ]

    def _hold_many(self) -> None:
        """Archiving a large part of memory at once is no upkeep (an imported folder, a clock gone wrong)."""
        resting = [action for action in self._verdict.do if action.kind in ("archive", "compress")]
        count = sum(len(action.paths) for action in resting)
        if count > MANY and count > MANY_SHARE * len(self._catalog.pages):
            self._verdict.do = [action for action in self._verdict.do if action not in resting]
            self._verdict.ask += resting


def month_of(path: str, events: str) -> str:
    """Return the folder that a day's digest goes to: its month's, or its own where folders are no dates.

    Args:
        path: Of a page in `events/`.
        events: The folder `events/`, relative to the root.
    """
    found = re.match(rf"({re.escape(events)}/\d{{4}}/\d\d)/", path)
    return found[1] if found else posixpath.dirname(path)
