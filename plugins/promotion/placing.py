"""What becomes of a candidate, and where: the statements it is about, its page, a new one named by synthesis (S6, S12).

Ours or theirs is decided statement by statement: what a person wrote is added to and proposed for, never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, UserError
from brainiac.events import StatementRecord
from brainiac.formats.markdown import without_link_targets
from brainiac.llm.schemas import OFFLINE, Existing, Operation, Page, PageRef, SynthesizeRequest
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.tokens import coverage
from brainiac.tree import slugify

from .apply import Candidate, Step
from .checks import numbers
from .draft import USER, Draft, Known, NewPage, can_hold, folded, free_day_page

MAX_FOLDERS = 3  # below the kind: concrete/a/b/c/page.md
MUCH = 3  # so many new statements, and a third of those there, are worth a new name and order
SAME_WORDS = 0.8  # of the runs of signs of what a person corrected
_KINDS = {"skill": "skills", "concrete": "concrete"}
GENERAL = "general"


# --- what a candidate is about -----------------------------------------------------------------------------


def settled(draft: Draft, candidate: Candidate) -> Step:
    """Return a candidate's operation as it can be done to the statements there are; the step's page may be open yet.

    Where its target is gone, private or the person's own, its text is stated beside: in doubt both stand.

    Raises:
        UserError: Nothing can be done with it, for the reason told.
    """
    operation = candidate.operation
    named = tuple(known for name in operation.ids if (known := draft.known(name)))
    if operation.action == "forget":
        if not named:
            raise UserError("it asks to forget what does not stand in memory")
        # of the wish itself nothing is stated, and nothing of it gets onto the page
        bare = {"text": "", "page": PageRef(), "tags": [], "steps": [], "importance": None}
        only = operation.model_copy(update=bare)
        step = Step(replace(candidate, operation=only), named[0].path, named[:1])
        return replace(step, proposal=proposal_for(step))
    # What is private must not get onto an open page, nor change one; it is stated on a private one beside.
    targets = tuple(known for known in named if known.is_private == candidate.is_private)
    if operation.action == "new" and (name := draft.same_words(operation.text, is_private=candidate.is_private)):
        targets = tuple(filter(None, [draft.known(name)]))
        operation = operation.model_copy(update={"action": "same"}) if targets else operation
    if targets and operation.action != "new":
        return _on_target(replace(candidate, operation=operation), targets)
    if not operation.text.strip():
        raise UserError("what it is about does not stand in memory")
    return Step(replace(candidate, operation=operation.model_copy(update={"action": "new"})), "")


def _on_target(candidate: Candidate, targets: tuple[Known, ...]) -> Step:
    """Return the step for an operation on statements that stand; on a person's own it becomes one beside it."""
    operation, target = candidate.operation, targets[0]
    if operation.action == "replace" and text_hash(operation.text) == text_hash(target.text):
        operation = operation.model_copy(update={"action": "same"})
    if operation.action == "same":
        return Step(replace(candidate, operation=operation), target.path, targets[:1])
    if target.is_ours:
        ours = tuple(known for known in targets if known.is_ours)
        return Step(candidate, target.path, ours)
    # Detail is added beside a person's own words without asking; only their end is put before them.
    if operation.action == "replace":
        return Step(replace(candidate, operation=operation.model_copy(update={"action": "new"})), target.path)
    step = Step(candidate, target.path, targets[:1])
    return replace(step, proposal=proposal_for(step))


def proposal_for(step: Step) -> str:
    """Return what a person is asked where a step would retire what is theirs, or more than it may."""
    target, operation = step.targets[0], step.operation
    if operation.text and operation.action != "forget":
        return f"Replace “{target.text}” by “{operation.text}” on {target.title}"
    return f"{'Forget' if operation.action == 'forget' else 'End'} “{target.text}” on {target.title}"


def check_corrections(log: StatementLog, step: Step) -> None:
    """Refuse what a person put right after it was said: corrections stick.

    Raises:
        UserError: They did.
    """
    if step.operation.action in ("same", "forget"):
        return
    at = step.candidate.at
    by_hand = [log.by_hand.get((target.page, text_hash(target.statement.text)), "") for target in step.targets]
    if any(moment > at for moment in by_hand) or is_corrected(log, step.operation.text, at):
        raise UserError("a person put it right by hand after it was said")


def is_corrected(log: StatementLog, statement: str, said_at: str) -> bool:
    """Return whether a person changed or took out what says the same, after it was said."""
    statement = without_link_targets(statement)
    before = [without_link_targets(correction.before) for correction in log.corrections if correction.at > said_at]
    return any(coverage(statement, text) >= SAME_WORDS or coverage(text, statement) >= SAME_WORDS for text in before)


# --- its page ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class NewPlace:
    """A page that candidates need and that is not there yet.

    Attributes:
        kind: `concrete` or `skill`.
        title: As proposed; it may be empty.
        folder: Below the kind, as proposed.
        candidates: What goes there.
    """

    kind: str
    title: str
    folder: str
    is_private: bool
    candidates: list[Candidate] = field(default_factory=list)

    def begun(self, title: str) -> NewPage:
        """Return what the page begins with."""
        first = self.candidates[0].operation
        is_user = self.kind != "skill" and first.subject in ("", USER)
        meta: dict[str, Any] = {"subject": USER if is_user else first.subject or title}
        if self.kind == "skill":
            meta = {"subject": title, "subject_type": "workflow"}
        else:
            meta["subject_type"] = "person" if is_user else first.subject_type
        meta |= {"category": first.category} if first.category else {}
        meta |= {"canonical_key": first.canonical_key} if first.canonical_key else {}
        if self.title and self.title.casefold() != title.casefold():
            meta["aliases"] = [self.title]
        if first.marked_by:
            meta = {}  # nobody judged what the words are about
        return NewPage(title, meta | ({"private": True} if self.is_private else {}))


def page_there(draft: Draft, candidate: Candidate) -> str:
    """Return the page that takes what is new, if there is one: the one named, its subject's, its day's; else "".

    Raises:
        FormatError: The folder of its day cannot be one.
    """
    operation, is_private = candidate.operation, candidate.is_private
    page = draft.pages.memories.get(operation.page.path)
    if page and page.is_private == is_private and not operation.page.is_whole:
        return page.path
    if operation.page.is_whole:
        return ""
    title = operation.page.title
    if operation.page.kind == "skill":
        return draft.skill_called(title or operation.subject or operation.text, is_private=is_private)
    for name in (title, *(() if operation.marked_by else (operation.subject,)), *operation.page.aliases):
        if path := draft.path_called(name, is_private=is_private):
            return path
    if operation.page.kind == "event" and operation.subject in ("", USER):
        path, begun = free_day_page(draft, candidate.at, is_private=is_private)
        draft.begun.setdefault(path, begun)
        return path
    return ""


def new_places(candidates: Iterable[Candidate]) -> list[NewPlace]:
    """Return the pages that candidates need, each once; a note of its own has its own."""
    places: dict[tuple[object, ...], NewPlace] = {}
    for candidate in candidates:
        page, subject = candidate.operation.page, candidate.operation.subject
        kind = "skill" if page.kind == "skill" else "concrete"
        title = page.title or ("" if subject == USER else subject) or (candidate.words if kind == "skill" else "")
        own = candidate.id if page.is_whole else ""
        place = NewPlace(kind, title.strip()[:120], page.folder, candidate.is_private)
        places.setdefault((kind, title.casefold(), candidate.is_private, own), place).candidates.append(candidate)
    return list(places.values())


@dataclass(frozen=True, slots=True)
class Named:
    """What synthesis made of a page.

    Attributes:
        page: Its answer.
        candidates: Ids of candidates by the names that its order has for them.
        blocks: Block ids of the statements that stood there, likewise.
    """

    page: Page
    candidates: Mapping[str, str]
    blocks: Mapping[str, str]

    def order(self, records: Iterable[StatementRecord]) -> list[str]:
        """Return the block ids of the page's statements in order, once the candidates have theirs."""
        stated = {record.candidate: record.block for record in reversed(list(records))}
        known = {**self.blocks, **{name: stated.get(candidate, "") for name, candidate in self.candidates.items()}}
        return [known[name] for name in self.page.order if known.get(name)]

    def in_order(self, steps: Sequence[str]) -> list[str]:
        """Return a how-to's steps in the order given, if it is of these very steps."""
        wanted = [folded(step) for step in self.page.steps]
        if sorted(wanted) != sorted(map(folded, steps)):
            return list(steps)
        return sorted(steps, key=lambda step: wanted.index(folded(step)))


class Synthesizer:
    """Has new and much changed pages named and ordered, a call each, and gives new ones their place.

    Args:
        brain: The brain.
        cause: Id of the run's first event.
        abandon: Asked whether somebody came back.
        refuse: Takes the statement and why what a model said of its place was not done, and the model.
    """

    def __init__(
        self,
        brain: Brain,
        cause: str,
        abandon: Callable[[], bool] | None,
        refuse: Callable[[str, str, str], None],
    ) -> None:
        self._brain, self._cause, self._abandon, self._refuse = brain, cause, abandon, refuse

    def placed(self, draft: Draft, place: NewPlace) -> tuple[str, Named | None]:
        """Return the path of a new page, which is begun in the draft, and what synthesis made of it.

        Raises:
            ModelError: The model cannot serve now.
        """
        named, model, folder, title = None, OFFLINE, place.folder, place.title
        if not place.candidates[0].operation.marked_by:
            named, model = self._ask(place.kind, title, place.candidates, folders=draft.folders())
            folder, title = named.page.folder, " ".join((named.page.title or title).split())[:120] or "Notes"
            path = draft.path_called(title, is_private=place.is_private) if place.kind == "concrete" else ""
            if path:
                return path, named
        path = draft.free_path(self._folder(draft, place, folder, model), title)
        draft.begun[path] = place.begun(title)
        return path, named

    def renamed(self, draft: Draft, path: str, steps: Sequence[Step]) -> Named | None:
        """Return what a page is called by now that has changed much; None where it has not, or nobody judges it.

        Raises:
            ModelError: The model cannot serve now.
        """
        memory = draft.pages.memories.get(path)
        stating = [step.candidate for step in steps if step.operation.action in ("new", "replace", "end")]
        stating = [candidate for candidate in stating if not candidate.operation.marked_by]
        if memory is None or draft.pages.kind_of(path) not in ("concrete", "skills"):
            return None
        standing = draft.statements_of(memory)
        if len(stating) < max(MUCH, len(standing) // 3):
            return None
        kind = "skill" if draft.pages.kind_of(path) == "skills" else "concrete"
        return self._ask(kind, memory.title, stating, standing=standing)[0]

    def _ask(
        self,
        kind: str,
        title: str,
        candidates: Sequence[Candidate],
        *,
        standing: Sequence[Known] = (),
        folders: dict[str, str] | None = None,
    ) -> tuple[Named, str]:
        events = {event.id: event for candidate in candidates for event in candidate.events}
        request = SynthesizeRequest(
            now=self._brain.now(),
            is_private=candidates[0].is_private,
            cause=self._cause,
            abandon=self._abandon,
            kind=kind,  # type: ignore[arg-type]  # one of two
            title=title,
            candidates=[Existing(f"n{n}", candidate.operation.text) for n, candidate in enumerate(candidates, 1)],
            steps=candidates[0].operation.steps,
            standing=[Existing(f"s{n}", known.text, known.path) for n, known in enumerate(standing, 1)],
            events=list(events.values()),
            folders=folders or {},
        )
        page = self._brain.models.run(request)
        assert isinstance(page, Page)
        texts = [*(candidate.operation.text for candidate in candidates), *(known.text for known in standing)]
        if numbers([page.summary]) - numbers([title, *texts, *request.steps]):
            page = page.model_copy(update={"summary": ""})  # a number that nobody said
        ids = {f"n{n}": candidate.id for n, candidate in enumerate(candidates, 1)}
        blocks = {f"s{n}": known.statement.block_id for n, known in enumerate(standing, 1)}
        return Named(page, ids, blocks), self._brain.models.engine_for(request).name

    def _folder(self, draft: Draft, place: NewPlace, named: str, model: str) -> str:
        """Return a folder below a kind that a model named, in our spelling; `general` where it may not be used."""
        kind = _KINDS[place.kind]
        root = f"{draft.pages.root}/{kind}"
        parts = [part for part in named.replace("\\", "/").split("/") if part.strip()]
        if parts[:1] == [kind]:
            parts = parts[1:]
        is_outside = named.startswith(("/", "~")) or ".." in parts or bool(re.match(r"[A-Za-z]:", named))
        if is_outside or len(parts) > MAX_FOLDERS:
            reason = f"folder {named[:100]!r} " + ("leads outside" if is_outside else "is too deep")
            self._refuse(place.candidates[0].words, reason, model)
            parts = [GENERAL] if is_outside else parts[:MAX_FOLDERS]
        standing = {folder.casefold(): folder for folder in draft.pages.children}
        where = "/".join([root, *(slugify(part) for part in parts)])
        spelled = standing.get("/".join([root, *parts]).casefold()) or standing.get(where.casefold(), where)
        if not (problem := _unusable(self._brain, spelled)):
            return spelled
        self._refuse(place.candidates[0].words, problem, model)
        return f"{root}/{GENERAL}" if can_hold(self._brain, f"{root}/{GENERAL}") else root


def _unusable(brain: Brain, folder: str) -> str:
    try:
        brain.tree.confine(folder, inside=brain.tree.long_term)
    except ConfinementError as error:  # a symbolic link on the way
        return str(error)
    return "" if can_hold(brain, folder) else f"{folder} is no folder"


def with_fitting_steps(operation: Operation) -> Operation:
    """Return an operation whose steps and kind agree: only a how-to has steps, and without them it is none."""
    if operation.page.is_whole or (operation.page.kind == "skill") == bool(operation.steps):
        return operation
    page = operation.page.model_copy(update={"kind": "concrete"})
    return operation.model_copy(update={"page": page, "steps": []})
