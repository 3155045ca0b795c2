"""From what was said to the operations that Promotion carries out, one after the other (design 6 and 8).

The keyless engine gives `new` and `same` for what was marked. A model's present calls, one to analyze the log and two
for each candidate, are turned into operations by `_by_model`: the one place to be replaced by a consolidating call.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, ModelError, UserError
from brainiac.formats.short_term import Item, StmEvent
from brainiac.llm.offline import keep
from brainiac.llm.schemas import (
    OFFLINE,
    AnalyzeRequest,
    Evidence,
    Operation,
    PageName,
    PageRef,
)
from brainiac.storage.relinking import rooted
from brainiac.storage.statements import Past
from brainiac.tree import slugify

from .applying import Step
from .deciding import Decided, Decider, is_corrected
from .draft import Draft, can_hold, is_free
from .fates import Candidate
from .finding import Finder, Found, is_listed
from .finishing import Work
from .lookup import Lookup
from .marks import Find, find_marked
from .placement import MAX_FOLDERS, Place, Placer
from .related import Known, statements_of


@dataclass(slots=True)
class Desk:
    """What a run has in hand.

    Attributes:
        cause: Id of the run's first event.
        tasks: Of short-term memory.
        abandon: Asked whether somebody came back.
        progress: Called with candidates decided and candidates in all.
        undecided: Candidates that no operation was given for yet.
        is_begun: The candidates are known.
    """

    brain: Brain
    past: Past
    draft: Draft
    lookup: Lookup
    work: Work
    cause: str
    tasks: Sequence[Item]
    abandon: Callable[[], bool] | None = None
    progress: Callable[[int, int], None] | None = None
    undecided: list[Candidate] = field(default_factory=list)
    is_begun: bool = False

    def heed_person(self) -> None:
        """Raise `ModelError` when somebody came back."""
        if self.abandon and self.abandon():
            raise ModelError("somebody came back", retryable=True)


def consolidate(desk: Desk) -> Iterator[Step]:
    """Yield what is to be done; what comes next may rest on what was carried out before.

    Raises:
        ModelError: A model cannot serve now, or somebody came back; what has no operation stays `undecided`.
    """
    events = list(desk.work.events.values())
    for_model = [event for event in events if not _is_keyless(desk, event)]
    keyless = [event for event in events if event not in for_model]
    if for_model:
        yield from _by_model(desk, for_model)
    yield from _by_marks(desk, keyless, is_whole=not for_model)
    desk.is_begun = True


def _is_keyless(desk: Desk, event: StmEvent) -> bool:
    """Return whether no model judges an event: none is set, or it is private and the model is elsewhere."""
    request = AnalyzeRequest(
        now=desk.brain.now(), is_private=event.is_private, events=[event], short_term=desk.work.memory
    )
    return desk.brain.models.engine_for(request).name == OFFLINE


# --- what was marked -----------------------------------------------------------------------------------------------


def _by_marks(desk: Desk, events: Sequence[StmEvent], *, is_whole: bool) -> Iterator[Step]:
    """Yield the operations of the keyless engine.

    Args:
        desk: The run.
        events: Those that no model judges.
        is_whole: No model judges any: earlier words count too, if use has marked them by now.
    """
    finds = find_marked(desk.brain, events, desk.work.lines, desk.past, with_earlier=is_whole)
    desk.undecided += finds
    for find in finds:
        desk.heed_person()
        desk.undecided.remove(find)
        if is_corrected(desk.past, find.marked.text, find.marked.at):
            desk.work.end(find, "refused", "a person put it right by hand after it was said")
            continue
        yield _step(desk, find)


def _step(desk: Desk, find: Find) -> Step:
    """Let the keyless engine say what becomes of marked words, and where they go."""
    brain, is_private = desk.brain, find.event.is_private
    catalogue = desk.draft.catalogue
    pages = [
        PageName(page.path, (page.title, *page.aliases))
        for page in catalogue.by_path.values()
        if page.kind in ("concrete", "skills") and page.is_private == is_private
    ]
    standing = desk.draft.same_words(find.marked.text, is_private=is_private)
    marked = replace(find.marked, same=find.marked.same or standing)
    operation = keep(marked, pages, brain.zone)
    events = (find.event,)
    if operation.action == "same" and (target := _known(desk, operation.ids, is_private=is_private)):
        return Step(find.id, operation, events, Place(target.path, target.title, {}), target, "", OFFLINE, OFFLINE)
    if operation.action == "same":  # it stands on the other side of the border, or on no page any more
        operation = operation.model_copy(
            update={"action": "new", "page": PageRef(title=brain.day_of(marked.at)[:7], folder="notes")}
        )
    text = rooted(brain, operation.text, _folders(desk, find))
    operation = operation.model_copy(update={"text": text})
    place = _place(desk, operation.page, is_private=is_private)
    return Step(find.id, operation, events, place, None, "", OFFLINE, OFFLINE)


def _folders(desk: Desk, find: Find) -> list[str]:
    """Return where the file may stand that the words were written in."""
    tree = desk.brain.tree
    prompt = desk.past.prompts.get(find.event.id, "")
    folders = [posixpath.dirname(prompt)] if prompt else []
    return [*folders, tree.relative(tree.memory), tree.relative(tree.inbox)]


def _known(desk: Desk, ids: Sequence[str], *, is_private: bool) -> Known | None:
    """Return the statement of an id, `<page uuid>#<block id>`."""
    for name in ids:
        page, _, _ = name.partition("#")
        path = desk.draft.catalogue.places.get(page, page)
        info = desk.draft.catalogue.by_path.get(path)
        if info is None or info.is_private != is_private:
            continue
        for statement in statements_of(desk.draft, desk.past, info):
            if statement.id == name:
                return statement
    return None


def _place(desk: Desk, page: PageRef, *, is_private: bool) -> Place:
    """Return the page that an operation names, a new one at a free path where there is none."""
    catalogue, brain = desk.draft.catalogue, desk.brain
    if page.path and (known := catalogue.by_path.get(page.path)):
        return Place(known.path, known.title, {})
    kind = "skills" if page.kind == "skill" else "concrete"
    parts = [slugify(part) for part in page.folder.split("/") if part.strip()][:MAX_FOLDERS]
    folder = "/".join([catalogue.root, kind, *parts])
    if not _is_usable(brain, folder):
        folder = f"{catalogue.root}/{kind}"
    taken = set(catalogue.folders.get(folder, ()))
    for _ in count():
        path = f"{folder}/{slugify(page.title, taken)}.md"
        if is_free(brain, path):
            return Place(path, page.title, {"private": True} if is_private else {})
        taken.add(posixpath.splitext(posixpath.basename(path))[0].casefold())
    raise AssertionError("unreachable")


def _is_usable(brain: Brain, folder: str) -> bool:
    try:
        brain.tree.confine(folder, inside=brain.tree.long_term)
    except ConfinementError:  # a symbolic link on the way
        return False
    return can_hold(brain, folder)


# --- a model's present calls ---------------------------------------------------------------------------------------


def _by_model(desk: Desk, events: Sequence[StmEvent]) -> Iterator[Step]:
    """Yield what a model decides on each candidate that it finds in the log."""
    brain, work, catalogue = desk.brain, desk.work, desk.draft.catalogue
    titles = {is_private: catalogue.titles(is_private=is_private) for is_private in (False, True)}
    finder = Finder(brain, desk.past, desk.cause, titles, work.origins, desk.abandon)
    found, refused = finder.find(replace(work.memory, events=tuple(events)))
    work.refuse(refused)
    folders = [brain.tree.relative(folder) for folder in (brain.tree.inbox, brain.tree.memory)]
    tasks = [rooted(brain, item.text, folders) for item in desk.tasks]
    listed = [candidate for candidate in found if is_listed(candidate.candidate, tasks)]
    for candidate in listed:
        work.end(candidate, "refused", "it stands in the list of tasks, and stays there until it is done")
    desk.undecided += [candidate for candidate in found if candidate not in listed]
    desk.is_begun = True
    decider = Decider(brain, desk.past, desk.lookup, desk.cause, desk.abandon, work.refused)
    placer = Placer(brain, catalogue, desk.cause, desk.abandon)
    placer.refused = work.refused
    yield from _decided(desk, decider, placer, len(desk.undecided))


def _decided(desk: Desk, decider: Decider, placer: Placer, total: int) -> Iterator[Step]:
    while desk.undecided:
        candidate = desk.undecided[0]
        assert isinstance(candidate, Found)
        if desk.progress:
            desk.progress(total - len(desk.undecided), total)
        desk.heed_person()
        step = _step_of(desk, candidate, decider, placer)
        del desk.undecided[0]
        if step is not None:
            yield step
    if desk.progress:
        desk.progress(total, total)


def _step_of(desk: Desk, candidate: Found, decider: Decider, placer: Placer) -> Step | None:
    """Return what is to be done with a candidate, if anything; what goes wrong with one costs no other."""
    try:
        decided = _skill(candidate) or decider.decide(desk.draft, candidate)
        if decided.operation is None:
            desk.work.end(candidate, "refused", decided.reason)
            return None
        page = desk.draft.catalogue.by_path.get(decided.target.path) if decided.target else None
        place = Place(page.path, page.title, {}) if page else placer.place(candidate)
    except (FormatError, OSError) as error:  # it may be otherwise when this is tried again
        desk.work.leave(candidate, str(error))
        return None
    except (UserError, ValueError) as error:  # it will not
        desk.work.end(candidate, "refused", str(error))
        return None
    return Step(
        candidate.id,
        decided.operation,
        candidate.events,
        place,
        decided.target,
        decided.proposal,
        decided.model,
        candidate.model,
    )


def _skill(found: Found) -> Decided | None:
    """Return the operation for a how-to: its page holds its steps, so that there is nothing to merge."""
    candidate = found.candidate
    if candidate.kind != "skill" or not candidate.steps:
        return None
    operation = Operation(
        action="new",
        text=candidate.statement,
        evidence=[Evidence(exchange=event.id, quote=event.user) for event in found.events],
        subject=candidate.subject,
        importance=candidate.importance,
        emotion=candidate.emotion,
        tags=candidate.tags,
        steps=candidate.steps,
    )
    return Decided(operation, model=found.model)
