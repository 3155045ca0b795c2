"""Finds where a candidate goes: the statements that it changes, its page, and of a new page the name and the folder.

Each statement is ours or the person's. A process changes ours. Beside theirs it adds others, and it proposes changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from brainiac.errors import ConfinementError, UserError
from brainiac.events import ProposalRecord, ReplaceProposal, RetireProposal, StatementRecord, new_id
from brainiac.formats.markdown import one_line, without_link_targets
from brainiac.history.why import folded
from brainiac.llm.offline import NOTES
from brainiac.llm.schemas import Existing, Kind, Operation, Page, SynthesizeRequest
from brainiac.storage.links import title_of_folder, with_links_from
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.tokens import coverage, numbers
from brainiac.tree import slugify

from .apply import Candidate
from .draft import (
    MAX_UNDIVIDED,
    NOWHERE,
    USER,
    CurrentStatement,
    MemoryDraft,
    NewPage,
    can_hold,
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
UNTITLED = "Notes"  # the page of what has no title, subject or folder
NoteRefusal = Callable[[str, str, str], None]  # of a statement, with the reason and the model


# --- the targets of a candidate ----------------------------------------------------------------------------


def step_for(draft: MemoryDraft, candidate: Candidate) -> Candidate:
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
        return _asking(_placed(candidate.without_content(), *statements[:1]))
    if operation.action == "new":
        same_id = draft.first_ids_by_words[candidate.is_private].get(folded(operation.text), "")
        if same := draft.statement(same_id) if same_id else None:
            if operation.steps:  # the words above a how-to are the same, and its steps are given anew
                return replace(candidate, path=same.path)
            return _placed(candidate.of(action="same"), same)
    targets = tuple(current for current in statements if current.is_private == candidate.is_private)
    if targets and operation.action != "new":
        return _step_on_target(candidate, targets)
    if not operation.text.strip():
        raise UserError("what it is about does not stand in memory")
    return candidate.of(action="new")


def _placed(candidate: Candidate, *targets: CurrentStatement) -> Candidate:
    return replace(candidate, path=targets[0].path, targets=targets)


def _asking(step: Candidate) -> Candidate:
    return replace(step, proposal=proposal_for(step))


def _step_on_target(candidate: Candidate, targets: tuple[CurrentStatement, ...]) -> Candidate:
    """Return the step for an operation on current statements.

    Ours are changed. A person's own is not: a new wording is added beside it, and to end it is proposed to the person.
    """
    operation, target = candidate.operation, targets[0]
    # a model that repeats a statement word for word has seen it confirmed, but for the steps below it
    is_repeated = operation.action == "replace" and not operation.steps
    if operation.action == "same" or (is_repeated and text_hash(operation.text) == text_hash(target.text)):
        return _placed(candidate.of(action="same"), target)
    if operation.is_doubted:  # the person decides, whosever it is
        return _placed(candidate, target)
    if target.is_ours:
        # a person's statement among them stays beside the new wording
        return _placed(candidate, *(current for current in targets if current.is_ours))
    if operation.action == "replace":
        return replace(candidate.of(action="new"), path=target.path)
    return _asking(_placed(candidate, target))


def proposal_for(step: Candidate) -> str:
    """Return the sentence by which a person is asked to replace, forget or end a step's target."""
    target, operation = step.targets[0], step.operation
    if operation.text and operation.action != "forget":
        return f"Replace “{target.text}” by “{operation.text}” on {target.title}"
    return f"{'Forget' if operation.action == 'forget' else 'End'} “{target.text}” on {target.title}"


def held_back(draft: MemoryDraft, step: Candidate, path: str, title: str, reason: str) -> ProposalRecord:
    """Return the proposal to do what a check or a second reader held back, with the words on which it was to rest.

    Args:
        draft: The draft.
        step: The step that is not carried out.
        path: The page that it would write to; it need not exist.
        title: Of that page.
        reason: What they say of it.
    """
    operation = step.operation
    target, page = step.targets[0] if step.targets else None, draft.pages.memories.get(path)
    text = one_line(": ".join(filter(None, [operation.text, "; ".join(operation.steps)])))
    quotes = " ".join(f"“{one_line(quoted.quote)[:MAX_QUOTED]}”" for quoted in operation.evidence)
    asked = proposal_for(step) if target else f"Write “{text}” on {title}"
    what = f"{asked}? It was to rest on {quotes} ({draft.brain.day_of(step.at)}); {reason}"
    place = target.place if target else NOWHERE | {"page": page.uuid if page else "", "path": path}
    asking = asked_about(draft, step, what, place) | {"reason": reason}
    if target and not text:
        return RetireProposal(operation="retire", replaced_by="", **asking)
    text = with_links_from(draft.brain, text, asking["path"])
    return ReplaceProposal(operation="replace", text=text, title=title, **asking)


def asked_about(draft: MemoryDraft, step: Candidate, what: str, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a proposal about what stands at a place."""
    brain = draft.brain
    return {
        **place,
        "id": new_id(),
        "what": with_links_from(brain, what, brain.tree.relative(brain.tree.review)),
        "on": brain.day_of(step.at),
        "sources": step.sources,
        "is_private": step.is_private or any(target.is_private for target in step.targets[:1]),
    }


def checked_step(log: StatementLog, step: Candidate) -> Candidate:
    """Return a step unless a person corrected by hand what it states, after it was said: the correction holds.

    Where it is in doubt which was first, both stand: the returned step adds its text, and asks the person about it.

    Raises:
        UserError: The person changed its target, or a statement that said the same.
    """
    if step.operation.action in ("same", "forget"):
        return step
    # what an assistant or a document says later does not outweigh a correction: with "" each of them counts as later
    said_at = step.at if step.origin == "person" else ""
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
    return replace(step.of(action="new", ids=[]), targets=(), proposal=ask)


# --- the page of a candidate -------------------------------------------------------------------------------


def page_for(draft: MemoryDraft, candidate: Candidate) -> str:
    """Return the path of the page for a new statement: the page that it names, its subject's, or that of its day.

    The page of a day is begun in the draft where it does not exist.

    Returns:
        "" where another page has to be made for it (see `new_page`).

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
        return draft.day_page(candidate.at, is_private=is_private)
    title = _title_of(operation)
    for path, begun in draft.new_pages.items():  # in this run, "User" too
        is_same = begun.title.casefold() == title.casefold() and begun.is_private == is_private
        if is_same and draft.pages.kind_of(path) == "concrete":
            return path
    return draft.path_of_name(title, is_private=is_private)


def _title_of(operation: Operation) -> str:
    """Return the title for the page of an operation: as proposed, its subject, a how-to's words, or its folder's."""
    subject = operation.subject if operation.subject != USER else ""
    words = operation.text if operation.page.kind == "skill" else ""
    folder = title_of_folder(operation.page.folder.replace("\\", "/").rstrip("/"))
    return " ".join((operation.page.title or subject or words or folder or UNTITLED).split())[:120] or UNTITLED


def new_page(draft: MemoryDraft, candidate: Candidate, note_refusal: NoteRefusal) -> tuple[str, NewPage]:
    """Return path and beginning of a new page for a candidate; `note_refusal` is told of a folder that cannot be used.

    A note that is kept whole has a page of its own: neither of two of one title may be put into the other.
    """
    operation = candidate.operation
    kind, title, folder = operation.page.kind, _title_of(operation), operation.page.folder
    folder = folder or (NOTES if title == UNTITLED else "")
    path = draft.free_path(_folder(draft, candidate, folder, note_refusal), title)
    privacy = {"private": True} if candidate.is_private else {}
    if operation.marked_by:
        return path, NewPage(title, privacy)  # no model judged the subject of marked words
    subject = title if kind == "skill" else operation.subject or USER
    # on the page is what a person or a search uses; what else the model judged is in the journal
    meta: dict[str, Any] = {"subject": subject} if subject.casefold() != title.casefold() else {}
    # a number that no statement has is invented
    summary, stated = one_line(operation.page.summary), [title, operation.text, *operation.steps]
    if summary and not numbers([summary]) - numbers(stated):
        meta["summary"] = summary
    return path, NewPage(title, meta | privacy)


# a model's answer about the name of a page and the order of its statements, with their block ids by its short names
Naming = tuple[Page, Mapping[str, str]]


def naming_of(
    calls: Calls, draft: MemoryDraft, path: str, steps: Sequence[Candidate], records: Iterable[StatementRecord]
) -> Naming | None:
    """Ask a model for title, summary and order of a page that steps changed much.

    Marked words do not count as changes. None for a page that changed little, and for the page of a day. A summary with
    a number that no statement has is taken out.

    Args:
        calls: The model calls of the run.
        draft: The draft.
        path: The page.
        steps: Those on it, which are carried out.
        records: What the run's steps did: they give the block ids of these.

    Raises:
        ModelError: The model cannot serve now.
    """
    page, memory = draft.read_pages.get(path), draft.pages.memories.get(path)
    changing = [step for step in steps if step.is_stating and step.operation.text]
    if page is None or not changing or draft.pages.kind_of(path) not in ("concrete", "skills"):
        return None
    texts = {statement.text for statement in page.current_statements}
    before = draft.statements_of(memory) if memory else []
    standing = [current for current in before if current.statement.text in texts]
    # a call costs money: the page has to have changed much, or to have grown without a summary
    is_unnamed = not page.meta.get("summary") and len(changing) + len(standing) >= MIN_UNNAMED
    kind: Kind = "skill" if draft.pages.kind_of(path) == "skills" else "concrete"
    is_long = wants_headings(draft.opened(path), kind)
    # once when it has grown long; where no headings came of it, again when it has grown by as much
    is_grown = is_long and (len(page.current_statements) - 1) // MAX_UNDIVIDED > (len(before) - 1) // MAX_UNDIVIDED
    if not (is_unnamed or is_grown) and len(changing) < max(MIN_CHANGED, len(standing) // 2):
        return None
    new = {f"n{n}": step for n, step in enumerate(changing, 1)}
    old = {f"s{n}": current for n, current in enumerate(standing, 1)}
    request = calls.request(
        SynthesizeRequest,
        is_private=changing[0].is_private,
        kind=kind,
        title=page.title,
        candidates=[Existing(name, step.operation.text) for name, step in new.items()],
        steps=changing[0].operation.steps,
        standing=[Existing(name, current.text, current.path) for name, current in old.items()],
        events=list({event.id: event for step in changing for event in step.events}.values()),
        wants_headings=is_long,
    )
    answer: Page = calls.answer(request)
    stated = [*(step.operation.text for step in changing), *(current.text for current in standing)]
    if numbers([answer.summary]) - numbers([page.title, *stated, *request.steps]):
        answer = answer.model_copy(update={"summary": ""})
    # reversed, so that of several records of a step the first wins: it is of its own statement
    blocks = {record.candidate: record.block for record in reversed(list(records))}
    new_blocks = {name: blocks.get(step.id, "") for name, step in new.items()}
    return answer, {name: current.statement.block_id for name, current in old.items()} | new_blocks


def _folder(draft: MemoryDraft, candidate: Candidate, name: str, note_refusal: NoteRefusal) -> str:
    """Return the path of the folder of a name, below the kind of the candidate's page.

    Where it leads outside or cannot be made, the folder is `general`; one that is too deep is cut. Both are noted.
    """
    kind = _KINDS.get(candidate.operation.page.kind, _KINDS["concrete"])
    root, words, model = f"{draft.pages.root}/{kind}", candidate.words, candidate.model
    parts = [part for part in name.replace("\\", "/").split("/") if part.strip()]
    if parts[:1] == [kind]:
        parts = parts[1:]
    is_outside = name.startswith(("/", "~")) or ".." in parts or bool(re.match(r"[A-Za-z]:", name))
    if is_outside or len(parts) > MAX_FOLDERS:
        note_refusal(words, f"folder {name[:100]!r} " + ("leads outside" if is_outside else "is too deep"), model)
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
    note_refusal(words, problem, model)
    return f"{root}/{GENERAL}" if can_hold(draft.brain, f"{root}/{GENERAL}") else root
