"""`brainiac why`, `undo`, `forget`, `adopt` and `correct`: explain, take back and put right."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.cli.log import sentence
from brainiac.cli.session import JsonOption, agree, local_time, note_edits, opened_brain, print_json, print_styled
from brainiac.errors import UserError
from brainiac.events import Change, Event, ExchangeEvent, ExchangesImported
from brainiac.history import undo as taking_back
from brainiac.history.exchanges import Said
from brainiac.history.forget import forget as take_out
from brainiac.history.forget import plan_forget
from brainiac.history.purge import BEYOND, Traces, purge
from brainiac.history.targets import Target, find_target, find_words
from brainiac.history.undo import SaidMatch, Undone, possible_targets, take_back
from brainiac.history.undo import correct as correct_statement
from brainiac.history.why import Chain, StatementMatch, Step, Why
from brainiac.storage.causes import commits_of, find_event, last_caused
from brainiac.storage.statements import adopt as release
from brainiac.storage.statements import plan_adoption
from brainiac.terminal import clean, is_terminal, say

WIDE = 100_000  # columns
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,28}|hand-[0-9a-f]{12}")  # of a page or an exchange
_SIGNS = {"create": "+", "update": "~", "remove": "-", "move": ">"}


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(why)
    app.command()(undo)
    app.command()(forget)
    app.command()(adopt)
    app.command()(correct)


def why(
    named: Annotated[list[str], typer.Argument(metavar="MEMORY|STATEMENT", help="Path, title, uuid; or words, ^id.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a memory rests on: each change of each statement, down to the very sentence that was typed."""
    with opened_brain(is_reading=True) as brain:
        reason = verbs.why(brain, " ".join(named))
    if as_json:
        print_json(reason.to_json())
        return
    if not reason.why.is_exact:
        say("No statement has just these words; the nearest:")
    _print_tree(_explanation_branch(reason.why))


@dataclass(frozen=True, slots=True)
class _Branch:
    """A line of the tree that `why` prints, with the branches below it."""

    text: str
    branches: Sequence[_Branch] = ()


def _print_tree(top: _Branch) -> None:
    """Print a tree, its first line bold."""
    from rich.text import Text  # rich is heavy
    from rich.tree import Tree

    def tree_of(branch: _Branch, style: str = "") -> Tree:
        tree = Tree(Text(clean(branch.text), style), guide_style="dim")
        tree.children += map(tree_of, branch.branches)
        return tree

    # a script gets whole lines: no window cuts or wraps them
    print_styled(tree_of(top, style="bold"), width=None if is_terminal(sys.stdout) else WIDE)


def _explanation_branch(explanation: Why) -> _Branch:
    """Return an explanation as a tree: a page, its statements, their changes, and what was typed for each."""
    branches = [_statement_branch(chain) for chain in explanation.chains]
    branches += [_exchange_branch(exchange, exchange.words) for exchange in explanation.said]
    return _Branch(f"{explanation.title}  ({explanation.path})", branches)


def _statement_branch(chain: Chain) -> _Branch:
    """Return a statement with its changes; it is struck through where it no longer holds."""
    text = f"~~{chain.text}~~" if chain.is_history else chain.text
    unknown = _Branch("stood there when this device first saw the brain, or its history is not readable here")
    return _Branch(
        f"{text} ^{chain.block}" if chain.block else text, [_step_branch(step) for step in chain.steps] or [unknown]
    )


def _step_branch(step: Step) -> _Branch:
    """Return one change of a statement with its wordings, its reason and the exchanges that it rests on."""
    texts = [f"from: {step.before}"] if step.before else []
    if step.after:
        texts.append(f"to:   {step.after}" if step.before else step.after)
    if step.reasoning:
        texts.append(f"because: {step.reasoning}")
    words = step.after or step.before
    sources = [_exchange_branch(exchange, exchange.sentence_for(words)) for exchange in step.sources]
    return _Branch(_step_line(step), [*map(_Branch, texts), *sources])


def _step_line(step: Step) -> str:
    """Return the line of one change: when, what, by whom and which model."""
    who = f"{step.by} on {step.device}" if step.device else step.by
    models = [f"decided by {step.model}" if step.model else "", f"found by {step.found_by}" if step.found_by else ""]
    if step.model and step.run_cost_usd:
        models.append(f"its run cost ${step.run_cost_usd:.4f}")
    details = ", ".join(filter(None, models))
    return f"{local_time(step.at)}  {step.operation} by {who}{f' ({details})' if details else ''}, event {step.event}"


def _exchange_branch(exchange: Said, words: str) -> _Branch:
    """Return an exchange with the words that a change rests on, who said them and how, its id, and who answered it."""
    where = f" in {exchange.prompt}" if exchange.prompt else ""
    where = f" in the chat {exchange.imported}" if exchange.imported else where
    quoted = f": “{words}”" if words else "; its words are not kept any more"
    branches = [
        _Branch(f"exchange {exchange.exchange}{f', read from {exchange.read_from}' if exchange.read_from else ''}")
    ]
    if exchange.model:
        place = f" on {exchange.device}" if exchange.device else ""
        branches.append(_Branch(f"answered by {exchange.model} (${exchange.cost_usd:.4f}){place}"))
    when = f" on {local_time(exchange.at)}" if exchange.at else ""
    return _Branch(f"{exchange.told}{when}{where}{quoted}", branches)


def undo(
    event: Annotated[
        str,
        typer.Argument(help="The event's id, or a part of it (`brainiac log`); or a statement's PATH#^id (`digest`)."),
    ] = "",
    last: Annotated[
        bool,
        typer.Option(
            "--last",
            help="The last change of memory: a correction, a promotion, a deletion, an edit, an exchange that told it "
            "something, with all that followed. A question is passed over.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what an event did, wholly, unless its files were changed since, or what became of one statement.

    That can be taken back too.
    """
    if bool(event) == last:  # neither, or both
        raise typer.BadParameter("name an event or a statement, or give --last")
    if "#^" in event:
        _undo_statement(event, as_json=as_json)
        return
    with opened_brain() as brain:
        steps = last_caused(brain) if last else commits_of(brain, find_event(brain, event))
        undone = taking_back.undo_all(brain, steps)
        first = undone[-1]  # newest first: the events before it in the list followed from this one
        prompt = _prompt_without_answer(brain, first.plan.event)
    if as_json:
        consequences = [{"id": later.id, "kind": later.kind} for later in first.plan.later]
        also = [asdict(later.event) for later in undone[:-1]]
        print_json({"event": asdict(first.event), "also": also, "stays": first.plan.stays, "later": consequences})
        return
    event_undone = first.plan.event
    what = sentence(event_undone) or event_undone.kind
    say(f"Took back what happened at {local_time(event_undone.at)}: {what} ({event_undone.id})")
    if isinstance(event_undone.what, ExchangesImported):
        n_files = sum(len(step.plan.changes) for step in undone)
        say(f"  {n_files} files of the import; importing it again brings it back.")
    else:
        _list_undone(undone, prompt, consequences=() if last else first.plan.later)


def _list_undone(steps: Sequence[Undone], prompt: str, consequences: Iterable[Event]) -> None:
    """Print what changed and what stays, and the command that brings all of it back.

    Args:
        steps: What undoing each event did, newest first.
        prompt: The prompt whose answer was taken back; "" for none.
        consequences: Events that were not undone although they followed.
    """
    for step in steps:
        _list_changes(step.plan.changes)
        for line in step.plan.stays:
            say(f"  = {line}")
    if prompt:
        say(f"  = {prompt} stays, it is yours: `brainiac ask --again {shlex.quote(prompt)}` asks it again")
    lines = [f"{later.id}  {later.kind}, {local_time(later.at)}" for later in consequences]
    _list_lines("It had led to these, which stand:", lines)
    commands = ", then ".join(f"`brainiac undo {step.event.id}`" for step in reversed(steps))
    say(f"{commands} brings it back.")


def _undo_statement(named: str, *, as_json: bool) -> None:
    """Take back what became of one statement, and say what holds now."""
    with opened_brain() as brain:
        result = take_back(brain, named)
    if as_json:
        print_json({"event": result.event.id, "path": result.path, "before": result.before, "after": result.after})
        return
    if result.before and result.after:
        change = f"“{result.before}” → “{result.after}”"
    else:
        change = f"holds again: “{result.after}”" if result.after else f"no longer holds: “{result.before}”"
    say(f"{change} ({result.path})")
    say(f"`brainiac undo {result.event.id}` brings it back.")


def _prompt_without_answer(brain: Brain, event: Event) -> str:
    """Return the prompt whose answer an undo took back, if it is still there; else ""."""
    answered = event.what
    if not isinstance(answered, ExchangeEvent) or not answered.response:
        return ""
    return answered.prompt if brain.read(answered.prompt) is not None else ""


def forget(
    named: Annotated[
        str,
        typer.Argument(
            metavar="MEMORY|EXCHANGE|WORDS",
            help="A page (path, title, uuid), an exchange (id, or its file), or words: then all that holds them.",
        ),
    ],
    is_purged: Annotated[
        bool, typer.Option("--purge", help="Also destroy the texts that the journal keeps; nothing brings them back.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take a page, an exchange, a conversation (its folder) or all that holds some words out of memory."""
    with opened_brain() as brain:
        note_edits(brain)
        target = _target(brain, named, is_purged=is_purged)
        if not as_json:
            _list_lines("These hold the words:", list(target.shown))
        plan = plan_forget(brain, target)
        if not as_json:
            _list_lines("To be taken out:", plan.actions)
            _list_lines("Stays:", plan.kept)
            if is_purged:
                traces = Traces(brain, target, plan)
                found = f"{len(traces.hashes)} texts, {traces.versions} of them former versions"
                say(f"The journal has it in {found}, and in {len(traces.events)} events.")
        question = "Destroy it for good?" if is_purged else "Take it out?"
        agree(question, is_agreed=yes)
        purged = purge(brain, target) if is_purged else None
        event = purged.event if purged else take_out(brain, target)
    if as_json:
        result = asdict(purged) if purged else {"event": asdict(event) if event else None}
        print_json({**result, "told": plan.actions, "left": plan.kept})
    elif purged:
        say(f"Destroyed {purged.texts} texts and the words of {purged.lines} journal lines.")
        _list_lines("Said elsewhere too:", [f"“{words}”: {', '.join(paths)}" for words, paths in purged.still.items()])
        say(BEYOND)
    elif event:
        say(f"Forgotten. `brainiac undo {event.id}` brings it back; --purge destroys what the journal keeps.")
    else:
        say("Nothing of it stands in the tree.")


def _target(brain: Brain, named: str, *, is_purged: bool) -> Target:
    """Return the file, page or exchange with a path or id, or else all that holds some words.

    Raises:
        UserError: Nothing has this name, and nothing holds the words, or only the journal does and may keep them.
    """
    is_name = "/" in named or named.endswith(".md") or _ID.fullmatch(named.strip())
    try:
        return (find_words(brain, named) if not is_name else None) or find_target(brain, named)
    except UserError:
        # of what is gone from the tree: the path of a page, or words
        target = Target(pages=(named,), page="") if is_name else Target(words=named)
        traces = Traces(brain, target, plan_forget(brain, target))
        if not traces.hashes and not traces.events:
            raise
        if not is_purged:
            raise UserError(f"only the journal still has {named!r}; with --purge it is destroyed there too") from None
        return target


def correct(
    words: Annotated[str, typer.Argument(help="What stands there and is wrong: its words, or PATH#^id.")],
    to: Annotated[str, typer.Option("--to", help="What is so; asked for on a terminal.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Put right what memory holds, or what you just said: the new wording counts, the former one is under History."""
    with opened_brain() as brain:
        targets = possible_targets(brain, words)
        if not targets:
            raise UserError(
                f"nothing that you said and no statement in memory has these words: {words!r}; give more of them, as "
                "`brainiac search` shows them"
            )
        target = _choose(targets, words)
        before, path = target.text, target.path
        text = to or _ask(f"What is so instead of “{before}”?")
        event = correct_statement(brain, target, text)
        path = event.changes[0].path  # of what was only said, the page on which it is put right
        is_task = path == brain.tree.relative(brain.tree.short_term)
    if as_json:
        print_json({"event": event.id, "path": path, "before": before, "after": text})
        return
    say(f"“{before}” → “{text}” ({path})")
    former = "" if is_task else "The former wording stands under History. "
    say(f"{former}`brainiac undo {event.id}` takes it back.")


def _choose(targets: list[StatementMatch | SaidMatch], words: str) -> StatementMatch | SaidMatch:
    """Return the statement that a person means; at a terminal they choose among several.

    Raises:
        UserError: Several may be meant, and nobody can be asked.
    """
    if len(targets) == 1:
        return targets[0]
    lines = [f"{number}. {target.text}  ({target.name})" for number, target in enumerate(targets, 1)]
    if not sys.stdin.isatty():
        raise UserError(f"{len(targets)} may be meant by {words!r}; name one by its id, or by all its words:", *lines)
    for line in lines:
        say(line)
    number = _ask("Which one?")
    if not number.isdigit() or not 0 < int(number) <= len(targets):
        raise UserError("that is none of them; nothing was changed")
    return targets[int(number) - 1]


def _ask(question: str) -> str:
    """Return the person's answer to a question on the terminal.

    Raises:
        BadParameter: There is no terminal.
    """
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; say what is so with --to")
    return str(typer.prompt(question))


def adopt(
    path: Annotated[str, typer.Argument(help="A page or a folder; without one all of long-term memory.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let processes update, move and retire statements that you wrote; each gets a block id where it has none."""
    with opened_brain() as brain:
        if not path and not yes:
            _list_lines("To be released:", [f"{page}: {text}" for page, text in plan_adoption(brain).texts])
            agree("Release all of them?")
        event, adoption = release(brain, path or None)
    if as_json:
        print_json({"event": event.id if event else None, "statements": [row.to_json() for row in adoption.statements]})
        return
    _list_lines("Released:", [f"{page}: {text}" for page, text in adoption.texts])
    say(f"{len(adoption.texts)} statements are ours now." if event else "There is nothing to release.")


def _list_lines(title: str, lines: list[str]) -> None:
    """Print a title and the lines below it; nothing where there are none."""
    if lines:
        say(title)
    for line in lines:
        say(f"  {line}")


def _list_changes(changes: list[Change]) -> None:
    """Print a line for each changed file, with a sign for what was done."""
    for change in changes:
        where = f"{change.source} → {change.path}" if change.source else change.path
        say(f"  {_SIGNS.get(change.op, '=')} {where}")
