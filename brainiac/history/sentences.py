"""Events of the journal as sentences for a person: what `log` and `run` print, and what the window's timeline shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from brainiac import events
from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.events import Event, PathKind
from brainiac.formats.page import parse_memory
from brainiac.history.forget import Target
from brainiac.history.past import differences_of
from brainiac.storage.causes import came_from
from brainiac.storage.links import shortened
from brainiac.storage.said import forgotten_at
from brainiac.terminal import few

_WIDEST = 100  # characters of a statement that are shown of it
_SENTENCES: dict[type[events.EventData], str] = {
    events.PromptAnswered: "{prompt} → answered ({model})",
    events.PromptRefused: "{prompt} → not answered: {reason}",
    events.AnswerDiscarded: "{prompt} → changed while it was answered, so that answer was thrown away",
    events.NoteCaptured: "{prompt} → taken in",
    events.ResponseArrived: "{response} → noted, by hand",
    events.PromptMoved: "{moved_from} → moved to {prompt}, its answer with it",
    events.ImportStarted: "{source} → imported, all in one `undo`",
    events.StatementCorrected: "{paths} → put right by you",
    events.ReviewSettled: "memory/review.md → {count} decided at once, all in one `undo`",
    events.StatementsEnded: "{paths} → over by its last day",
    events.MemoryForgotten: "{path} → forgotten",
    events.TextsPurged: "forgotten texts → destroyed for good",
    events.ExchangeMadePrivate: "{prompt} → made private, with what came of it",
    events.NoteMerged: "{paths} → your save was merged with what was written meanwhile",
    events.CopySetAside: "{of} → a copy from another device had nothing new, so it is gone",
    events.NoteSaved: "{paths} → edited by you in the window",
    events.NoteMoved: "{paths} → moved by hand",
    events.NoteDeleted: "{paths} → deleted by hand",
    events.NotesEdited: "{paths} → found changed at a start",
    events.DeviceTookOver: "{device} → runs the processes now",
    events.PluginFailed: "{by} → failed in {hook}: {error}",
}
_UNDONE = {
    events.PromptAnswered.kind: "an answer",
    events.ExchangeReflected.kind: "what was noted of an exchange",
    events.NoteSaved.kind: "an edit",
    events.NoteEdited.kind: "an edit",
    events.MemoryPromoted.kind: "a promotion",
    events.ExchangesImported.kind: "an import",
    events.MemoryOrganized.kind: "an organization",
    events.ExchangeForgotten.kind: "a forgetting",
    events.MemoryForgotten.kind: "a forgetting",
    events.ProposalDecided.kind: "what you ticked in the review",
    events.StatementCorrected.kind: "what you put right",
    events.EventUndone.kind: "an undo",
}
_DECIDED = {
    "applied": "done as you ticked it",
    "declined": "left as you said",
    "lapsed": "what nobody decided for 30 days is asked no more",
}
_VERBS = {"NEW": "learned", "UPDATE": "changed", "DELETE": "ended", "REINFORCE": "heard again", "REWORD": "reworded"}


def sentence(event: Event) -> str:
    """Return a sentence about an event; "" for events of the program's own upkeep.

    For an event of a plugin's own kind it names the changed files and the kind; "" where no file was changed.
    """
    what, paths = event.what, paths_of(event)
    if isinstance(what, events.PluginEvent):
        return f"{paths} → {event.kind}" if event.changes else ""
    if type(what) in _SENTENCES:
        values = {field.name: getattr(what, field.name) for field in fields(what)}
        return _SENTENCES[type(what)].format(**values, paths=paths, by=event.by)
    both_stand = "; where both had changed the same, both texts stand" if event.data.get("differs") else ""
    match what:  # fields have to be counted or looked at
        case events.MemoryPromoted() as promoted:
            counts = Counter(_VERBS.get(each.operation, each.operation.lower()) for each in promoted.statements)
            became = ", ".join(f"{name} {count}" for name, count in counts.items())
            return f"{counted(len(promoted.exchanges), 'exchange')} → {became or 'filed by day'}"
        case events.CatchUpStarted(exchanges=exchanges, model=model):
            return f"{counted(exchanges, 'exchange')} of before → handed to {model}, all in one `undo`"
        case events.ExchangesFiled(exchanges=exchanges):
            return f"{counted(len(exchanges), 'exchange')} → filed by day: short-term memory was full"
        case events.ExchangesImported(service=service, episodes=episodes):
            n_exchanges = sum(map(len, episodes.values()))
            n_files = sum(not change.path.endswith("/_index.md") for change in event.changes)
            exchanges_on = f"{counted(n_exchanges, 'exchange')} on " if n_exchanges else ""
            return f"{service} → {exchanges_on}{counted(n_files, 'file')} imported"
        case events.InboxTidied(exchanges=exchanges):
            return f"{counted(len(exchanges), 'answered prompt')} → left the inbox (inbox.keep_days)"
        case events.MemoryOrganized(done=done) if done:
            return f"memory → organized ({counted(len(done), 'change')})"
        case events.ExchangeForgotten() as forgotten:
            return f"{Target.of(forgotten).count} → forgotten, with what rested on it alone"
        case events.ProposalMade(proposals=(events.ForgetProposal(is_hiding=True) as hidden,)):
            return f"{Target.of(hidden).count} → hidden as you asked, until you decide in memory/review.md"
        case events.ProposalMade():
            return "memory/review.md → asks you something"
        case events.ProposalDecided(how=how) if how in _DECIDED:
            return f"memory/review.md → {_DECIDED[how]}"
        case events.PluginTrusted(plugin=plugin, is_trusted=is_trusted):
            return f"{plugin} → {'trusted on this machine' if is_trusted else 'trusted no more'}"
        case events.StatementsAdopted(statements=statements):
            return f"{counted(len(statements), 'statement')} → released by you"
        case events.DeletionsHeld(count=count):
            return f"{counted(count, 'note')} vanished at once → nothing is forgotten until you confirm it"
        case events.EventUndone(kind_=kind):
            return f"{_UNDONE.get(events.present_form(kind, {})[0], kind)} → taken back: {paths}"
        case events.CopyMerged(of=path):
            return f"{path} → what another device wrote was merged into it{both_stand}"
        case events.MarkersMerged(path=path):
            return f"{path} → both versions that git had of it were merged{both_stand}"
        case events.NoteEdited(client=client):
            is_new = all(change.op == "create" for change in event.changes)
            how = "put there" if is_new or client else "edited"
            return f"{paths} → {how} by {client or 'hand'}"
    return ""


def news(brain: Brain, event: Event) -> str:
    """Return the sentence about an event that a person wants to know of; "" for others, as for a saved prompt."""
    inbox = (PathKind.PROMPT, PathKind.CAPTURE, PathKind.RESPONSE, PathKind.ERROR)
    if event.kind == events.NoteEdited.kind and all(brain.tree.kind_of(c.path) in inbox for c in event.changes):
        return ""
    if device := came_from(brain, event):
        return f"{paths_of(event)} → came from {device}"
    if not isinstance(event.what, events.StatementCorrected):
        return sentence(event)
    pages = [change for change in event.changes if brain.tree.kind_of(change.path) is PathKind.MEMORY]
    # of what was forgotten since, the words are not told
    if any(forgotten_at(brain, f"{record.page}#^{record.block}") for record in event.what.statements):
        pages.clear()
    texts = ((page.path, brain.kept_text(page.before), brain.kept_text(page.after)) for page in pages)
    words = "; ".join(line for each in texts for line in restated(*each))
    return sentence(event) + (f": {words}" if words else "")


def restated(path: str, before: str | None, after: str | None) -> Iterator[str]:
    """Yield what a change of a page, given by its texts, did to each statement: `“old” → “new”`, `ended: “old”`."""
    try:
        sides = [None if text is None else parse_memory(path, text) for text in (before, after)]
    except FormatError:
        return
    for difference in differences_of(*sides) if any(sides) else ():
        if difference.kind == "statement":
            what = "" if difference.what == "changed" else f"{difference.what}: "
            where = "under History, " if difference.is_history else ""
            words = dict.fromkeys(filter(None, (difference.before, difference.text)))
            yield where + what + " → ".join(f"“{shortened(text, _WIDEST)}”" for text in words)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def paths_of(event: Event, arrow: str = "to") -> str:
    """Return the first three files that an event changed, and how many more."""
    return few([f"{each.source} {arrow} {each.path}" if each.source else each.path for each in event.changes], 3)
