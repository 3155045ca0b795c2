"""One organization, from the counts to its commit, and the index pages derived from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from brainiac import events
from brainiac.brain import Brain
from brainiac.errors import ConflictError
from brainiac.events import Change, Event, MemoryOrganized, content_hash
from brainiac.formats.frontmatter import edit_meta
from brainiac.history.digest import write_digest
from brainiac.llm.gate import is_hidden
from brainiac.llm.offline import organize as by_rule
from brainiac.llm.schemas import OrganizeRequest, Proposals
from brainiac.storage.files import locked
from brainiac.storage.pages import PageSet
from brainiac.storage.proposals import Records, asked_before, asking

from .actions import NAME, Action, Decisions, Draft, derive_manifests, folders_of
from .usage import Patterns, Row, find_patterns, log_removal, read_history, read_usage

ATTEMPTS = 3
LOG_ATTEMPTS = 50  # a script may add lines without pause; the decisions do not depend on lines added meanwhile
GOALS = (
    "What is used much is found near the top.",
    "What is used together is linked.",
    "No folder holds more than a person can look over.",
    "What is unused is at rest in the archive, and nothing is lost.",
)
_SHOWN = 5
_WORDS = {"archive": "Archive", "compress": "Archive, with a digest in {target},"}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        done: The actions that were carried out.
        asked: The proposals that were written into `review.md`, one sentence each.
        refused: Proposals that were not in order, with the reason.
        lines: The number of lines of the access log that were counted and removed.
        event: The id of the commit's event; "" where there was nothing to do.
    """

    done: tuple[Action, ...] = ()
    asked: tuple[str, ...] = ()
    refused: tuple[events.Refused, ...] = ()
    lines: int = 0
    event: str = ""


def organize(
    brain: Brain, *, progress: Progress = lambda step: None, abandon: Callable[[], bool] | None = None
) -> Outcome:
    """Organize long-term memory by how it was used; a second run right after changes nothing.

    Args:
        brain: The brain.
        progress: Called with a few words on what is being done.
        abandon: Called while a model answers; the run ends when it returns true.

    Raises:
        ModelError: The model cannot serve now; nothing was changed.
        ConflictError: Somebody changed the same files every time; nothing was changed.
        LockedError: Another run is at work.
    """
    with locked(brain.places.state / "organization.lock", wait_seconds=0):
        outcome = _attempted(brain, progress, abandon)
    write_digest(brain)
    return outcome


def _attempted(brain: Brain, progress: Progress, abandon: Callable[[], bool] | None) -> Outcome:
    """Run until no file that it changes was changed meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with suppress(ConflictError):
            return _Run(brain, progress, abandon).run()
    return _Run(brain, progress, abandon).run()


class _Run:
    """One attempt at an organization, on pages and counts as they are when it begins."""

    def __init__(self, brain: Brain, progress: Progress, abandon: Callable[[], bool] | None) -> None:
        self._brain, self._progress, self._abandon = brain, progress, abandon
        progress("reading memory and the access log")
        self._now = brain.clock.now()
        self._pages, self._history = brain.pages(), read_history(brain)
        self._usage = read_usage(brain, self._pages, self._history)
        self._question_hash = self._history.asked  # of the last run's question to a model, until this one asks
        llm = brain.settings.llm
        self._has_model = llm.models.get("organize", llm.model) != "offline"

    def run(self) -> Outcome:
        """Decide, carry out and commit."""
        patterns = find_patterns(self._brain, self._pages, self._history, self._usage)
        decisions = self._decide(patterns)
        draft = Draft(self._brain, self._pages, self._is_resting)
        draft.carry_out(decisions.do)
        # the counted citations go to the pages; one that is being edited is left out
        for uuid, times in self._usage.cited.items():
            page = self._pages.memories.get(self._pages.path_by_uuid.get(uuid, ""))
            if page is not None and self._is_resting(page.path):
                count = page.reinforcement_count + times
                draft.edit(page.path, edit_meta(draft.text(page.path) or "", reinforcement_count=count))
        return self._write(decisions, draft)

    def _is_resting(self, path: str) -> bool:
        """Return whether nobody edits a page now."""
        return self._history.is_resting(path, self._now)

    def _decide(self, patterns: Patterns) -> Decisions:
        """Return the checked actions for patterns: a model proposes them, and a rule those for private pages."""
        hidden = _filtered(patterns, self._is_hidden)
        visible = _filtered(patterns, lambda row: not self._is_hidden(row))
        proposals = by_rule(self._request(hidden)).proposals if hidden else []
        if visible:
            question = json.dumps(visible, sort_keys=True, ensure_ascii=True)
            question_hash = hashlib.sha256(question.encode()).hexdigest()[:16]
            # a model may cost money: the question of the last run is not sent again
            if question_hash != self._history.asked or not self._has_model:
                self._progress("asking what to change")
                answer = self._brain.models.run(self._request(visible))
                assert isinstance(answer, Proposals)
                proposals = [*proposals, *answer.proposals]
            self._question_hash = question_hash
        return Decisions(self._brain, self._pages, self._history, patterns, proposals)

    def _is_hidden(self, row: Row) -> bool:
        """Return whether a row names a private page or folder, which no model is shown; the offline engine sees all."""
        paths = row.get("paths") or [row.get("path") or row["folder"]]
        return self._has_model and any(is_hidden(self._brain.tree, path) for path in paths)

    def _request(self, patterns: Patterns) -> OrganizeRequest:
        """Return the request about patterns."""
        structure = {folder: len(children) for folder, children in self._pages.children.items()}
        now, abandon = self._brain.now(), self._abandon
        return OrganizeRequest(now=now, patterns=patterns, structure=structure, goals=GOALS, abandon=abandon)

    def _write(self, decisions: Decisions, draft: Draft) -> Outcome:
        """Commit the changes and the proposals, then bring the index pages up to date.

        Nothing is committed where no file changes, the access log has no new line, and no question to a model is new.
        """
        brain, changes = self._brain, draft.changes()
        proposals: Records = ()
        # while a person edits `review.md` nothing is added to it: the next run finds the same proposals
        if self._is_resting(brain.tree.relative(brain.tree.review)):
            proposals, added = asking(brain, new_proposals(brain, self._pages, decisions.ask))
            changes += added
        refused = tuple(decisions.refused)
        # recorded, so that no model is paid for the same answer twice, and the same refusals are journaled once
        is_new_question = self._question_hash != self._history.asked and bool(refused or self._has_model)
        if not changes and not self._usage.lines and not is_new_question:
            return Outcome(refused=refused)
        self._progress(f"writing {len(changes)} files")
        usage, done = self._usage, list[events.OrganizedAction]()
        for action in decisions.do:
            uuids, to = zip(
                *((self._pages.memories[path].uuid, draft.place(path)) for path in action.paths), strict=True
            )
            done.append(
                events.OrganizedAction(action=action.kind, uuids=uuids, from_=action.paths, to=to, reason=action.reason)
            )
        organized = MemoryOrganized(
            lines=usage.lines,
            used={uuid: (day, usage.cited[uuid]) for uuid, day in sorted(usage.used.items())},
            together=tuple((first, second, times) for (first, second), times in sorted(usage.together.items())),
            asked=self._question_hash,
            done=tuple(done),
            statements=tuple(draft.statements),
            proposals=proposals,
            refused=refused,
        )
        event = self._commit(changes, organized)
        self._progress("deriving manifests")
        derive_manifests(brain, folders_of(changes), cause=event.id)
        sentences = tuple(proposal.what for proposal in proposals if not proposal.waits)
        return Outcome(tuple(decisions.do), sentences, refused, self._usage.lines, event.id)

    def _commit(self, changes: list[Change], event: MemoryOrganized) -> Event:
        """Commit; try again where only the access log has grown meanwhile: lines added since stay in it.

        Raises:
            ConflictError: Another file was changed, or the log grew every time.
        """
        log = self._brain.tree.relative(self._brain.tree.access_log)
        for _ in range(LOG_ATTEMPTS):
            try:
                all_changes = [*changes, *log_removal(self._brain, self._usage)]
                return self._brain.commit(event, by=NAME, changes=all_changes)
            except ConflictError as error:
                if error.paths != (log,):
                    raise
        raise ConflictError([log])


def _filtered(patterns: Patterns, is_kept: Callable[[Row], bool]) -> Patterns:
    """Return the patterns with the rows that a function accepts, without those that have no row left."""
    filtered = {name: [row for row in rows if is_kept(row)] for name, rows in patterns.items()}
    return {name: rows for name, rows in filtered.items() if rows}


def new_proposals(brain: Brain, pages: PageSet, actions: list[Action]) -> Iterator[events.OrganizeProposal]:
    """Yield proposals for actions; a page is not proposed for the same action again until its text changes.

    Args:
        brain: The brain.
        pages: All pages.
        actions: The actions that need the person's consent.
    """
    # one that expired was wanted, so that it may be made again; one that lapsed was not
    earlier = {
        (asked.record.action, uuid, digest)
        for asked in asked_before(brain).values()
        if isinstance(asked.record, events.OrganizeProposal) and asked.how != "expired"
        for uuid, _, digest in asked.record.pages
    }
    for action in actions:
        memories = [pages.memories[path] for path in action.paths]
        rows = [(page.uuid, page.path, text_digest(page.text)) for page in memories]
        rows = [(uuid, path, digest) for uuid, path, digest in rows if (action.kind, uuid, digest) not in earlier]
        if not rows:
            continue
        verb = _WORDS.get(action.kind, "Move to {target}").format(target=f"`{action.target}`")
        names = ", ".join(f"`{path}`" for _, path, _ in rows[:_SHOWN])
        more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        identity = hashlib.sha256(repr((action.kind, action.target, sorted(rows))).encode("utf-8", "surrogatepass"))
        yield events.OrganizeProposal(
            id=identity.hexdigest()[:16],
            what=f"{verb} {names}{more}" + (f" ({action.reason})" if action.reason else ""),
            action=action.kind,
            pages=tuple(rows),
            target=action.target,
            is_private=any(page.is_private for page in memories),
        )


def text_digest(text: str) -> str:
    """Return the hash of a page's text, by which a proposal recognizes that the page is unchanged."""
    return content_hash(text.encode("utf-8", "surrogateescape"))
