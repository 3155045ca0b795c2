"""Finds where a candidate goes: the statements that it changes, its page, and of a new page the name and the folder.

Each statement is ours or the person's. A process changes ours. Beside theirs it adds others, and it proposes changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from brainiac.errors import ConfinementError, UserError
from brainiac.events import ProposalRecord, ReplaceProposal, RetireProposal, StatementRecord, new_id
from brainiac.formats.markdown import one_line, without_link_targets
from brainiac.history.why import folded
from brainiac.llm.schemas import OFFLINE, Existing, Page, SynthesizeRequest
from brainiac.storage.links import with_links_from
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.tokens import coverage, numbers
from brainiac.tree import slugify

from .apply import Candidate, Step
from .draft import (
    MAX_UNDIVIDED,
    NOWHERE,
    USER,
    CurrentStatement,
    MemoryDraft,
    NewPage,
    can_hold,
    free_day_page,
    wants_headings,
)
from .request import Calls

MAX_QUOTED = 300  # characters of a quote in a line of `review.md`
MAX_FOLDERS = 3  # below the kind: concrete/a/b/c/page.md
MIN_CHANGED = 6  # so many changed statements, and half of the page's, are worth a name, a summary and an order
MIN_UNNAMED = 8  # or so many on a page that has no summary yet
SAME_WORDS = 0.8  # a text that holds so many of another's character trigrams says the same
_KINDS = {"skill": "skills", "concrete": "concrete"}  # the folder of each kind of page
GENERAL = "general"  # the folder in place of one that cannot be used


# --- the targets of a candidate ----------------------------------------------------------------------------


def step_for(draft: MemoryDraft, candidate: Candidate) -> Step:
    """Return the step that carries a candidate out on the current statements.

    Its text becomes a new statement where its target is gone, is the person's own (see `_step_on_target`), or is
    private and the candidate is not (or the reverse). A new statement in the words of a present one only confirms that.
    The path of the step is "" where its page is still to be found.

    Raises:
        UserError: It has neither a target nor a text, or is to forget what is not there.
    """
    operation = candidate.operation
    statements = [current for statement_id in operation.ids if (current := draft.statement(statement_id))]
    if operation.action == "forget":
        if not statements:
            raise UserError("it asks to forget what does not stand in memory")
        # what a person asked to forget must not come back as the title, tag or text of the proposal
        step = Step(candidate.without_content(), statements[0].path, tuple(statements[:1]))
        return replace(step, proposal=proposal_for(step))
    if operation.action == "new":
        same_id = draft.first_ids_by_words[candidate.is_private].get(folded(operation.text), "")
        if same := draft.statement(same_id) if same_id else None:
            if operation.steps:  # the words above a how-to are the same, and its steps are given anew
                return Step(candidate, same.path)
            return Step(candidate.of(action="same"), same.path, (same,))
    targets = tuple(current for current in statements if current.is_private == candidate.is_private)
    if targets and operation.action != "new":
        return _step_on_target(candidate, targets)
    if not operation.text.strip():
        raise UserError("what it is about does not stand in memory")
    return Step(candidate.of(action="new"), "")


def _step_on_target(candidate: Candidate, targets: tuple[CurrentStatement, ...]) -> Step:
    """Return the step for an operation on current statements.

    Ours are changed. A person's own is not: a new wording is added beside it, and to end it is proposed to the person.
    """
    operation, target = candidate.operation, targets[0]
    # a model that repeats a statement word for word has seen it confirmed, but for the steps below it
    is_repeated = operation.action == "replace" and not operation.steps
    if operation.action == "same" or (is_repeated and text_hash(operation.text) == text_hash(target.text)):
        return Step(candidate.of(action="same"), target.path, targets[:1])
    if operation.is_doubted:  # the person decides, whosever it is
        return Step(candidate, target.path, targets[:1])
    if target.is_ours:
        # a person's statement among them stays beside the new wording
        ours = tuple(current for current in targets if current.is_ours)
        return Step(candidate, target.path, ours)
    if operation.action == "replace":
        return Step(candidate.of(action="new"), target.path)
    step = Step(candidate, target.path, targets[:1])
    return replace(step, proposal=proposal_for(step))


def proposal_for(step: Step) -> str:
    """Return the sentence by which a person is asked to replace, forget or end a step's target."""
    target, operation = step.targets[0], step.operation
    if operation.text and operation.action != "forget":
        return f"Replace “{target.text}” by “{operation.text}” on {target.title}"
    return f"{'Forget' if operation.action == 'forget' else 'End'} “{target.text}” on {target.title}"


def held_back(draft: MemoryDraft, step: Step, path: str, title: str, reason: str) -> ProposalRecord:
    """Return the proposal to do what a check or a second reader held back, with the words on which it was to rest.

    Args:
        draft: The draft.
        step: The step that is not carried out.
        path: The page that it would write to; it need not exist.
        title: Of that page.
        reason: What they say of it.
    """
    operation, candidate = step.operation, step.candidate
    target, page = step.targets[0] if step.targets else None, draft.pages.memories.get(path)
    text = one_line(": ".join(filter(None, [operation.text, "; ".join(operation.steps)])))
    quotes = " ".join(f"“{one_line(quoted.quote)[:MAX_QUOTED]}”" for quoted in operation.evidence)
    asked = proposal_for(step) if target else f"Write “{text}” on {title}"
    what = f"{asked}? It was to rest on {quotes} ({draft.brain.day_of(candidate.at)}); {reason}"
    place = target.place if target else NOWHERE | {"page": page.uuid if page else "", "path": path}
    asking = asked_about(draft, step, what, place) | {"reason": reason}
    if target and not text:
        return RetireProposal(operation="retire", replaced_by="", **asking)
    text = with_links_from(draft.brain, text, asking["path"])
    return ReplaceProposal(operation="replace", text=text, title=title, **asking)


def asked_about(draft: MemoryDraft, step: Step, what: str, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a proposal about what stands at a place."""
    brain, candidate = draft.brain, step.candidate
    return {
        **place,
        "id": new_id(),
        "what": with_links_from(brain, what, brain.tree.relative(brain.tree.review)),
        "on": brain.day_of(candidate.at),
        "sources": tuple(event.id for event in candidate.events),
        "is_private": candidate.is_private or any(target.is_private for target in step.targets[:1]),
    }


def checked_step(log: StatementLog, step: Step) -> Step:
    """Return a step unless a person corrected by hand what it states, after it was said: the correction holds.

    Where it is in doubt which was first, both stand: the returned step adds its text, and asks the person about it.

    Raises:
        UserError: The person changed its target, or a statement that said the same.
    """
    if step.operation.action in ("same", "forget"):
        return step
    # what an assistant or a document says later does not outweigh a correction: with "" each of them counts as later
    said_at = step.candidate.at if step.candidate.origin == "person" else ""
    corrections, times = log.edits_since(said_at[:10])  # by day, so that a run reads them about once
    edits = [times.get((target.page, text_hash(target.statement.text))) for target in step.targets]
    statement = without_link_targets(step.operation.text)
    for correction in (row for row in corrections if row.made.latest > said_at):
        old = without_link_targets(correction.before)
        if coverage(statement, old) >= SAME_WORDS or coverage(old, statement) >= SAME_WORDS:
            edits.append(correction.made)
    later = [made for made in edits if made and made.latest > said_at]
    if any(made.earliest > said_at or not said_at for made in later):
        raise UserError("a person put it right by hand after it was said")
    if not later or not step.operation.text:  # without a text it only asks to end what the person wrote
        return step
    ask = f"End “{step.operation.text}”: it is not clear whether you put it right by hand before or after you said so"
    return Step(step.candidate.of(action="new", ids=[]), step.path, proposal=ask)


# --- the page of a candidate -------------------------------------------------------------------------------


@dataclass(slots=True)
class NewPlace:
    """A page that candidates need and that does not exist yet.

    Attributes:
        kind: `concrete` or `skill`.
        title: The title that the model proposed; it may be empty.
        folder: The folder that it proposed, below the kind.
        is_private: Whether the page has to be private.
        candidates: The candidates for this page.
    """

    kind: str
    title: str
    folder: str
    is_private: bool
    candidates: list[Candidate] = field(default_factory=list)

    def new_page(self, title: str) -> NewPage:
        """Return the page's beginning: its title, and its subject as the first candidate has it."""
        first = self.candidates[0].operation
        privacy = {"private": True} if self.is_private else {}
        if first.marked_by:
            return NewPage(title, privacy)  # no model judged the subject of marked words
        subject = title if self.kind == "skill" else first.subject or USER
        # on the page is what a person or a search uses; what else the model judged is in the journal
        meta: dict[str, Any] = {"subject": subject} if subject.casefold() != title.casefold() else {}
        if self.title and self.title.casefold() != title.casefold():
            meta["aliases"] = [self.title]
        texts = [text for row in self.candidates for text in (row.operation.text, *row.operation.steps)]
        # a number that no statement has is invented
        if first.page.summary and not numbers([first.page.summary]) - numbers([title, *texts]):
            meta["summary"] = one_line(first.page.summary)
        return NewPage(title, meta | privacy)


def existing_page(draft: MemoryDraft, candidate: Candidate) -> str:
    """Return the path of the page for a new statement: the page that it names, its subject's, or that of its day.

    The page of a day is begun in the draft where it does not exist.

    Returns:
        "" where another page has to be made for it.

    Raises:
        FormatError: The folder of its day cannot be made.
    """
    operation, is_private = candidate.operation, candidate.is_private
    if operation.page.is_whole:
        return ""
    page = draft.pages.memories.get(operation.page.path)
    # on an open page a private statement would be shown, and on a private page any other one would be hidden
    if page and page.is_private == is_private:
        return page.path
    title = operation.page.title
    if operation.page.kind == "skill":
        return draft.path_of_skill(title or operation.subject or operation.text, is_private=is_private)
    subject = "" if operation.marked_by else operation.subject  # no model judged the subject of marked words
    for name in (title, subject, *operation.page.aliases):
        if path := draft.path_of_name(name, is_private=is_private):
            return path
    if operation.page.kind == "event" and operation.subject in ("", USER):
        path, new_page = free_day_page(draft, candidate.at, is_private=is_private)
        draft.new_pages.setdefault(path, new_page)
        return path
    return ""


def new_places(candidates: Iterable[Candidate]) -> list[NewPlace]:
    """Return the new pages for candidates: one for all of the same kind and title; each note has its own page."""
    places: dict[tuple[str, str, bool, str], NewPlace] = {}
    for candidate in candidates:
        page, subject = candidate.operation.page, candidate.operation.subject
        kind = "skill" if page.kind == "skill" else "concrete"
        # as proposed, its subject, or a how-to's words; "" for none
        title = page.title or (subject if subject != USER else "") or (candidate.words if kind == "skill" else "")
        # two notes of one title are two pages: neither may be put into the other
        note_id = candidate.id if page.is_whole else ""
        key = (kind, title.casefold(), candidate.is_private, note_id)
        if key not in places:
            places[key] = NewPlace(kind, title.strip()[:120], page.folder, candidate.is_private)
        places[key].candidates.append(candidate)
    return list(places.values())


@dataclass(frozen=True, slots=True)
class Naming:
    """A model's answer about the name of a page and the order of its statements, with the meaning of its short names.

    Attributes:
        answer: The answer.
        model: The model that answered.
        candidates: Ids of candidates by their short names (`n1`, …).
        blocks: Block ids of the page's statements by their short names (`s1`, …).
    """

    answer: Page
    model: str
    candidates: Mapping[str, str]
    blocks: Mapping[str, str]

    def blocks_by_name(self, records: Iterable[StatementRecord]) -> dict[str, str]:
        """Return the block ids of the page's statements by the short names of the answer.

        Args:
            records: What the run's steps did: they give the block ids of the candidates.
        """
        # reversed, so that of several records of a candidate the first wins: it is of its own statement
        block_by_candidate = {record.candidate: record.block for record in reversed(list(records))}
        return {**self.blocks, **{name: block_by_candidate.get(row, "") for name, row in self.candidates.items()}}


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """Has a model name new and much changed pages and order their statements, and finds the paths of new pages.

    Attributes:
        calls: The model calls of the run.
        note_refusal: Called with a statement, the reason and the model where the folder that the model named for it
            cannot be used.
    """

    calls: Calls
    note_refusal: Callable[[str, str, str], None]

    def path_and_naming(self, draft: MemoryDraft, place: NewPlace) -> tuple[str, Naming | None]:
        """Return the path of a new page, which is added to the draft's `new_pages`, and a model's answer about it.

        A model is asked only where none has proposed a title, and never about marked words; else the answer is None.
        Where it gives the title of a page that exists, that page's path is returned.

        Raises:
            ModelError: The model cannot serve now.
        """
        naming, model, folder, title = None, OFFLINE, place.folder, place.title
        if not title and not place.candidates[0].operation.marked_by:  # of a how-to there is always one
            is_long = len(place.candidates) > MAX_UNDIVIDED
            naming = self._ask(place.kind, "", place.candidates, folders=draft.folders(), is_long=is_long)
            model, folder = naming.model, naming.answer.folder
            title = " ".join(naming.answer.title.split())[:120] or "Notes"
            if path := draft.path_of_name(title, is_private=place.is_private):
                return path, naming
        path = draft.free_path(self._folder(draft, place, folder, model), title)
        draft.new_pages[path] = place.new_page(title)
        return path, naming

    def path_and_title(self, draft: MemoryDraft, step: Step) -> tuple[str, str]:
        """Return the path of the page that a step would write to, and its title; no model is asked."""
        if step.path:
            page = draft.page(step.path)
            return step.path, page.memory.title if page else draft.new_pages[step.path].title
        (place,) = new_places([step.candidate])
        title = place.title or "Notes"
        return draft.free_path(self._folder(draft, place, place.folder, step.candidate.model), title), title

    def naming_of(self, draft: MemoryDraft, path: str, steps: Sequence[Step]) -> Naming | None:
        """Ask a model for title, summary and order of a page that is new or that steps changed much.

        Marked words do not count as changes. None for a page that changed little, and for the page of a day.

        Raises:
            ModelError: The model cannot serve now.
        """
        page, memory = draft.read_pages.get(path), draft.pages.memories.get(path)
        changing = [step.candidate for step in steps if step.is_stating and step.operation.text]
        if page is None or not changing or draft.pages.kind_of(path) not in ("concrete", "skills"):
            return None
        texts = {statement.text for statement in page.current_statements}
        before = draft.statements_of(memory) if memory else []
        standing = [current for current in before if current.statement.text in texts]
        # a call costs money: the page has to have changed much, or to have grown without a summary
        is_unnamed = not page.meta.get("summary") and len(changing) + len(standing) >= MIN_UNNAMED
        kind = "skill" if draft.pages.kind_of(path) == "skills" else "concrete"
        is_long = wants_headings(draft.opened(path), kind)
        # once when it has grown long; where no headings came of it, again when it has grown by as much
        is_grown = is_long and (len(page.current_statements) - 1) // MAX_UNDIVIDED > (len(before) - 1) // MAX_UNDIVIDED
        if not (is_unnamed or is_grown) and len(changing) < max(MIN_CHANGED, len(standing) // 2):
            return None
        return self._ask(kind, page.title, changing, standing=standing, is_long=is_long)

    def _ask(
        self,
        kind: str,
        title: str,
        candidates: Sequence[Candidate],
        *,
        standing: Sequence[CurrentStatement] = (),
        folders: dict[str, str] | None = None,
        is_long: bool = False,
    ) -> Naming:
        """Ask a model for the name of a page and the order of its statements.

        The steps of a how-to are those of its first candidate. A summary with a number that no statement has is taken
        out.

        Args:
            kind: `concrete` or `skill`.
            title: The page's title, or the proposed one.
            candidates: The statements that come to the page.
            standing: The statements that it has already.
            folders: The folders that a new page may go to, with their summaries.
            is_long: Whether it is long and has no headings yet.
        """
        events = {event.id: event for candidate in candidates for event in candidate.events}
        new = {f"n{n}": candidate for n, candidate in enumerate(candidates, 1)}
        old = {f"s{n}": current for n, current in enumerate(standing, 1)}
        request = self.calls.request(
            SynthesizeRequest,
            is_private=candidates[0].is_private,
            kind=kind,
            title=title,
            candidates=[Existing(name, candidate.operation.text) for name, candidate in new.items()],
            steps=candidates[0].operation.steps,
            standing=[Existing(name, current.text, current.path) for name, current in old.items()],
            events=list(events.values()),
            folders=folders or {},
            wants_headings=is_long,
        )
        page: Page = self.calls.answer(request)
        texts = [*(candidate.operation.text for candidate in candidates), *(current.text for current in standing)]
        if numbers([page.summary]) - numbers([title, *texts, *request.steps]):
            page = page.model_copy(update={"summary": ""})
        return Naming(
            answer=page,
            model=self.calls.model_for(request),
            candidates={name: candidate.id for name, candidate in new.items()},
            blocks={name: current.statement.block_id for name, current in old.items()},
        )

    def _folder(self, draft: MemoryDraft, place: NewPlace, name: str, model: str) -> str:
        """Return the path of the folder that a model named, below the page's kind.

        Where it leads outside or cannot be made, the folder is `general`; one that is too deep is cut. Both are noted.
        """
        kind = _KINDS[place.kind]
        root = f"{draft.pages.root}/{kind}"
        parts = [part for part in name.replace("\\", "/").split("/") if part.strip()]
        if parts[:1] == [kind]:
            parts = parts[1:]
        is_outside = name.startswith(("/", "~")) or ".." in parts or bool(re.match(r"[A-Za-z]:", name))
        if is_outside or len(parts) > MAX_FOLDERS:
            reason = f"folder {name[:100]!r} " + ("leads outside" if is_outside else "is too deep")
            self.note_refusal(place.candidates[0].words, reason, model)
            parts = [GENERAL] if is_outside else parts[:MAX_FOLDERS]
        # the one that has these names in any case of letters, or else a path that every system allows
        existing = {folder.casefold(): folder for folder in draft.pages.children}
        slugs = "/".join([root, *(slugify(part) for part in parts)])
        folder = existing.get("/".join([root, *parts]).casefold()) or existing.get(slugs.casefold(), slugs)
        try:
            draft.brain.tree.confine(folder, inside=draft.brain.tree.long_term)
            if can_hold(draft.brain, folder):
                return folder
            problem = f"{folder} is no folder"
        except ConfinementError as error:  # a symbolic link on the way
            problem = str(error)
        self.note_refusal(place.candidates[0].words, problem, model)
        return f"{root}/{GENERAL}" if can_hold(draft.brain, f"{root}/{GENERAL}") else root
