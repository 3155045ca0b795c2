"""`brainiac why`, `undo`, `forget`, `adopt` and `correct`: explain, take back and put right."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.cli import session
from brainiac.cli.session import agree, command, local_time, note_edits, print_list
from brainiac.errors import UserError
from brainiac.events import Event, ExchangeEvent, ExchangesImported, PathKind
from brainiac.formats.markdown import decode_text
from brainiac.history import undo as taking_back
from brainiac.history.exchanges import Said
from brainiac.history.forget import Target, find_target, find_words, plan_forget
from brainiac.history.forget import forget as take_out
from brainiac.history.purge import BEYOND, Traces, purge
from brainiac.history.sentences import restated, sentence
from brainiac.history.undo import SaidMatch, Undone, possible_targets, take_back
from brainiac.history.undo import correct as correct_statement
from brainiac.history.why import StatementMatch, Step, find_memory, find_statement
from brainiac.storage.causes import commits_of, find_event, last_caused
from brainiac.storage.said import check_gone, meant_by
from brainiac.storage.statements import adopt as release
from brainiac.storage.statements import plan_adoption
from brainiac.terminal import clean, current_folder, is_terminal, say

WIDE = 100_000  # columns, and lines: all of them
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,28}|hand-[0-9a-f]{12}")  # of a page or an exchange
_SIGNS = {"create": "+", "update": "~", "remove": "-", "move": ">"}


@command(is_reading=True, is_timed=True)
def why(brain: Brain, named: list[str]) -> Iterator[Any]:
    """Show what a memory rests on: each change of each statement, down to the very sentence that was typed.

    Args:
        named (MEMORY|STATEMENT): Path, title, uuid; or words, ^id.
    """
    reason = verbs.why(brain, " ".join(named))
    yield reason, reason.to_json()
    if not reason.is_exact:
        say("No statement has just these words; the nearest:")
    branches = [_exchange_branch(exchange, exchange.words) for exchange in reason.said]
    unknown = "stood there when this device first saw the brain, or its history is not readable here"
    for chain in reason.chains:
        text = f"~~{chain.text}~~" if chain.is_history else chain.text  # struck through where it no longer holds
        if chain.path != reason.path:  # it rests on an exchange that is explained
            branches.append(_branch(f"{text} ({chain.path}#^{chain.block})"))
            continue
        steps = [_step_branch(step) for step in chain.steps] or [_branch(unknown)]
        branches.append(_branch(f"{text} ^{chain.block}" if chain.block else text, steps))
    top = _branch(f"{reason.title}  ({reason.path})", branches, style="bold")
    # a script gets whole lines: no window cuts or wraps them
    session.print_styled(top, width=None if is_terminal(sys.stdout) else WIDE)


def _branch(text: str, branches: Iterable[Any] = (), style: str = "") -> Any:
    """Return a line of the tree that `why` prints, with the branches below it."""
    from rich.tree import Tree  # rich is heavy

    tree = Tree(session.styling().Text(clean(text), style), guide_style="dim")
    tree.children += branches
    return tree


def _step_branch(step: Step) -> Any:
    """Return one change: when, what, by whom and which model; below it wordings, reason and exchanges."""
    who = f"{step.by} on {step.device}" if step.device else step.by
    models = [f"decided by {step.model}" if step.model else "", f"found by {step.found_by}" if step.found_by else ""]
    if step.model and step.run_cost_usd:
        models.append(f"its run cost ${step.run_cost_usd:.4f}")
    details = ", ".join(filter(None, models))
    line = f"{local_time(step.at)}  {step.operation} by {who}{f' ({details})' if details else ''}, event {step.event}"
    texts = [f"from: {step.before}"] if step.before else []
    if step.after:
        texts.append(f"to:   {step.after}" if step.before else step.after)
    if step.verified_by:
        texts.append(f"a second reader ({step.verified_by}): it follows from what was said")
    if step.reasoning:
        texts.append(f"because: {step.reasoning}")
    words = step.after or step.before
    sources = [_exchange_branch(exchange, exchange.sentence_for(words)) for exchange in step.sources]
    return _branch(line, [*map(_branch, texts), *sources])


def _exchange_branch(exchange: Said, words: str) -> Any:
    """Return an exchange with the words that a change rests on, who said them and how, its id, and who answered it."""
    where = f" in {exchange.prompt}" if exchange.prompt else ""
    where = f" in the chat {exchange.imported}" if exchange.imported else where
    quoted = f": “{words}”" if words else "; its words are not kept any more"
    read_from = f", read from {exchange.read_from}" if exchange.read_from else ""
    branches = [_branch(f"exchange {exchange.exchange}{read_from}")]
    if exchange.model:
        place = f" on {exchange.device}" if exchange.device else ""
        branches.append(_branch(f"answered by {exchange.model} (${exchange.cost_usd:.4f}){place}"))
    when = f" on {local_time(exchange.at)}" if exchange.at else ""
    return _branch(f"{exchange.told}{when}{where}{quoted}", branches)


@command()
def undo(brain: Brain, event: str = "", *, last: bool = False) -> Iterator[Any]:
    """Take back what an event did, wholly, unless its files were changed since, or what became of one statement.

    That can be taken back too.

    Args:
        event: The event's id, or a part of it (`brainiac log`): of an exchange all that rests on it goes; or a
            statement's PATH#^id (`digest`).
        last (--last): The last change of memory: a correction, a promotion, a deletion, an edit, an exchange that told
            it something, with all that followed. A question is passed over.
    """
    if bool(event) == last:  # neither, or both
        raise typer.BadParameter("name an event or a statement, or give --last")
    if "#^" in event:
        yield from _take_back(brain, event)
        return
    commits = last_caused(brain) if last else commits_of(brain, find_event(brain, event))
    undone = taking_back.undo_all(brain, commits, is_last=last)
    plan = undone[-1].plan  # newest first: the events before it in the list followed from this one
    consequences = [{"id": later.id, "kind": later.kind} for later in plan.later]
    also = [asdict(later.event) for later in undone[:-1]]
    yield {"event": asdict(undone[-1].event), "also": also, "stays": plan.stays, "later": consequences}
    what = sentence(plan.event) or plan.event.kind
    say(f"Took back what happened at {local_time(plan.event.at)}: {what} ({plan.event.id})")
    if isinstance(plan.event.what, ExchangesImported):
        n_files = sum(len(step.plan.changes) for step in undone)
        say(f"  {n_files} files of the import; importing it again brings it back.")
    else:
        _list_undone(brain, undone, consequences=() if last else plan.later)


def _take_back(brain: Brain, named: str, *, was_so: bool = True) -> Iterator[Any]:
    """Reverse the last change of a statement and say so."""
    result = take_back(brain, named, was_so=was_so)
    yield {"event": result.event.id, "path": result.path, "before": result.before, "after": result.after}
    change = f"holds again: “{result.after}”" if result.after else f"no longer holds: “{result.before}”"
    change = f"“{result.before}” → “{result.after}”" if result.before and result.after else change
    say(f"{change} ({result.path})")
    say(f"`brainiac undo {result.event.id}` brings it back.")


def _list_undone(brain: Brain, steps: Sequence[Undone], consequences: Iterable[Event]) -> None:
    """Print what changed and what stays, and the command that brings all of it back.

    Args:
        brain: The brain.
        steps: What undoing each event did, newest first.
        consequences: Events that were not undone although they followed.
    """
    for step in steps:
        for change in step.plan.changes:
            where = f"{change.source} → {change.path}" if change.source else change.path
            say(f"  {_SIGNS.get(change.op, '=')} {where}")
            if brain.tree.kind_of(change.path) is PathKind.MEMORY:
                texts = (None if text is None else decode_text(text) for text in (change.before, change.after))
                for line in restated(change.path, *texts):
                    say(f"      {line}")
        for line in step.plan.stays:
            say(f"  = {line}")
    answered = steps[-1].plan.event.what
    prompt = answered.prompt if isinstance(answered, ExchangeEvent) and answered.response else ""
    if prompt and brain.read(prompt) is not None:
        say(f"  = {prompt} stays, it is yours: `brainiac ask --again {shlex.quote(prompt)}` asks it again")
    lines = [f"{later.id}  {later.kind}, {local_time(later.at)}" for later in consequences]
    print_list("It had led to these, which stand", lines, WIDE)
    commands = ", then ".join(f"`brainiac undo {step.event.id}`" for step in reversed(steps))
    say(f"{commands} brings it back.")


@command()
def forget(brain: Brain, named: str, *, is_purged: bool = False, yes: session.YesOption = False) -> Iterator[Any]:
    """Take a page, an exchange, a conversation (its folder) or all that holds some words out of memory.

    Args:
        named (MEMORY|EXCHANGE|WORDS): A page (path, title, uuid), an exchange (id, or its file), or words: then all
            that holds them.
        is_purged (--purge): Also destroy the texts that the journal keeps; nothing brings them back.
    """
    target = _target(brain, named, is_purged=is_purged)
    print_list("These hold the words", list(target.shown), WIDE)
    plan = plan_forget(brain, target)
    taken = [str(each) for each in plan.effects()] or [change.path for change in plan.changes()]
    print_list("To be taken out", taken, WIDE)
    print_list("Stays", plan.kept, WIDE)
    said = [f"{line}  `brainiac forget {name}`" for name, line in plan.said.items()]
    print_list("What was said stays, and the words still stand there", said, WIDE)
    if not is_purged and not plan.changes():
        check_gone(brain, named)
    if is_purged:
        traces = Traces(brain, target, plan)
        found = f"{len(traces.hashes)} texts, {traces.versions} of them former versions"
        say(f"The journal has it in {found}, and in {len(traces.events)} events.")
    agree("Destroy it for good?" if is_purged else "Take it out?", is_agreed=yes)
    note_edits(brain)  # only now: what is declined wrote nothing
    purged = purge(brain, target) if is_purged else None
    event = purged.event if purged else take_out(brain, target, shown=plan.keys)
    result = asdict(purged) if purged else {"event": asdict(event) if event else None}
    yield {**result, "told": taken, "left": plan.kept, "said": plan.said}
    if purged:
        say(f"Destroyed {purged.texts} texts and the words of {purged.lines} journal lines.")
        still = [f"“{words}”: {', '.join(paths)}" for words, paths in purged.still.items()]
        print_list("Said elsewhere too", still, WIDE)
        say(BEYOND)
    elif event:
        say(f"Forgotten. `brainiac undo {event.id}` brings it back; --purge destroys what the journal keeps.")
    else:
        say("Nothing of it stands in the tree.")
    print_list("The words still stand where they were said", said, WIDE)


@command(is_reading=True)
def prove_forgotten(brain: Brain, words: list[str], *, archive: list[Path] | None = None) -> Iterator[Any]:
    """Look for words in all that is left of this brain here, and say where they are; exits with 1 where they are found.

    Looked through are files, journal, former versions, state, index, vectors, and what a model would be shown for the
    last hundred prompts.

    Args:
        words: All of them must meet in one statement, message or paragraph.
        archive (--archive DIR): A backup or another folder to be looked through too.
    """
    from brainiac.verbs.proof import prove_forgotten as prove  # it reads the index, with which numpy comes

    with session.styling().bar("Making requests anew") as progress:
        proof = prove(brain, " ".join(words), tuple(current_folder() / each for each in archive or ()), progress)
    yield asdict(proof)
    session.print_table(("looked through", "texts"), [(place, f"{count:,}") for place, count in proof.searched.items()])
    print_list(
        "Found", [f"{each.place}: {each.where}{f': “{each.text}”' if each.text else ''}" for each in proof.found]
    )
    print_list("Not reached", proof.beyond)
    if proof.found:
        raise typer.Exit(1)
    say(f"No text here has “{proof.words}”.")


def _target(brain: Brain, named: str, *, is_purged: bool) -> Target:
    """Return the file, page or exchange with a path or id, or else all that holds some words.

    Raises:
        UserError: Nothing has this name, and nothing holds the words, or only the journal does and may keep them.
    """
    meant = meant_by(brain, named)
    is_name = "/" in meant or named.endswith(".md") or _ID.match(meant.strip()) or meant != named
    try:
        return (find_words(brain, named) if not is_name else None) or find_target(brain, named)
    except UserError:
        if is_purged:
            note_edits(brain)  # what a person took out by hand
        # of what is gone from the tree: the path of a page, or words
        target = Target(pages=(named,), page="") if is_name else Target(words=named)
        traces = Traces(brain, target, plan_forget(brain, target))
        if not (traces.hashes or traces.events or traces.turns):
            raise
        if not is_purged:
            raise UserError(f"only the journal still has {named!r}; with --purge it is destroyed there too") from None
        return target


@command()
def wrong(brain: Brain, receipt: str, text: list[str] | None = None) -> Iterator[Any]:
    """Put right what an answer rested on: with TEXT that is so instead; without, that one statement ends.

    What the statement had replaced holds again.

    Args:
        receipt (ID): Of a receipt, as an answer gives it.
        text: What is so; of a statement it may be left out.
    """
    meant = meant_by(brain, receipt)
    if meant == receipt:
        raise UserError(f"no answer gave the id {receipt!r}; `brainiac correct` takes words")
    if page := find_memory(brain, meant):
        raise UserError(f"{receipt} is all of {page.path}; `brainiac correct` takes the words of it that are wrong")
    if match := find_statement(brain, receipt) if "#^" in meant else None:
        if match.statement.is_history:
            raise UserError(f"“{match.text}” no longer holds: it stands under History in {match.memory.path}")
        if not text:
            yield from _take_back(brain, meant, was_so=False)
            return
    yield from _put_right(brain, receipt, " ".join(text or ()), was_so=False)


@command()
def correct(brain: Brain, words: str, *, to: str = "") -> Iterator[Any]:
    """Put right what memory holds, or what you just said: the new wording counts, the former one is under History.

    Args:
        words: What stands there and is wrong: its words, or PATH#^id.
        to: What is so.
    """
    yield from _put_right(brain, words, to)


def _put_right(brain: Brain, words: str, to: str, *, was_so: bool = True) -> Iterator[Any]:
    """Give what some words or a receipt name another wording, and say so; see `correct`."""
    targets = possible_targets(brain, words)
    if not targets:
        if meant_by(brain, words) != words:
            raise UserError(
                f"nothing of {words} holds any more, so there is nothing to put right; `brainiac why {words}`"
            )
        raise UserError(
            f"nothing that you said and no statement in memory has these words: {words!r}; give more of them, as "
            "`brainiac search` shows them"
        )
    if len(targets) > 1:
        names = [each.text + (f"  ({each.name})" if isinstance(each, StatementMatch) else "") for each in targets]
        how = "`brainiac correct` takes one by its id, or by all its words"
        raise UserError(f"{len(targets)} may be meant by {words!r}; {how}:", *names)
    (target,) = targets
    before = target.text
    if not to.strip():
        raise typer.BadParameter(f"say what is so instead of “{before}”")
    event = correct_statement(brain, target, to, was_so=was_so)
    path = event.changes[0].path  # of what was only said, the page on which it is put right
    yield {"event": event.id, "path": path, "before": before, "after": to}
    say(f"“{before}” → “{to}” ({path})")
    is_task = path == brain.tree.relative(brain.tree.short_term)
    former = "" if is_task else "The former wording stands under History. "
    if isinstance(target, SaidMatch) and not is_task:
        say("It was said and no statement until now: it is one of the notes of that month, on the page named.")
    say(f"{former}`brainiac undo {event.id}` takes it back.")


@command()
def adopt(brain: Brain, path: str = "", *, yes: session.YesOption = False) -> Iterator[Any]:
    """Let processes update, move and retire statements that you wrote; each gets a block id where it has none.

    Args:
        path: A page or a folder; without one all of long-term memory.
    """
    if not path and not yes:
        print_list("To be released", [f"{page}: {text}" for page, text in plan_adoption(brain).texts], WIDE)
        agree("Release all of them?")
    event, adoption = release(brain, path or None)
    yield {"event": event.id if event else None, "statements": [row.to_json() for row in adoption.statements]}
    print_list("Released", [f"{page}: {text}" for page, text in adoption.texts], WIDE)
    say(f"{len(adoption.texts)} statements are ours now." if event else "There is nothing to release.")
