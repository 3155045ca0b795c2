"""What every command shares: opening the brain, asking a person, and printing for a person or a script."""

from __future__ import annotations

import inspect
import json
import re
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from copy import copy
from datetime import UTC, tzinfo
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.clock import SYSTEM, Clock, parse_iso
from brainiac.errors import BrainiacError, ModelError, SettingsError, StorageError, UserError
from brainiac.storage.serving import is_running, require_alone
from brainiac.terminal import beneath, clean, few, is_terminal, one_line, opening, output, say, show, silenced
from brainiac.text.dates import TIMES
from brainiac.tree import find_root

SHOWN_AT_MOST = 10
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# of a docstring's `Args`: the name of a parameter, what stands in brackets, and the text
_ENTRY = re.compile(r"^ {4}(\w+)(?: \((.+?)\))?: (.*(?:\n {8}.*)*)", re.MULTILINE)
_named: str | None = None
_clock: Clock = SYSTEM
_zone: tzinfo = UTC  # of the person whose brain was opened last
_served: ContextVar[Brain | None] = ContextVar("served", default=None)


def name_brain(folder: str | None) -> None:
    """Set the brain that `--brain` names, for this process."""
    global _named
    _named = folder


def use_clock(clock: Clock) -> None:
    """Set the clock of the brains that are opened from now on, for this process: a test moves one by hand."""
    global _clock
    _clock = clock


@contextmanager
def lending(brain: Brain) -> Iterator[None]:
    """Within this context, and in this thread alone, commands use a daemon's brain in place of one of their own."""
    token = _served.set(brain)
    try:
        yield
    finally:
        _served.reset(token)


@contextmanager
def opened_brain(*, is_reading: bool = False, is_shared: bool = False) -> Iterator[Brain]:
    """Open the brain named by `--brain`, `BRAINIAC_HOME` or the current folder, and close it afterwards.

    Args:
        is_reading: Whether the command only reads: it writes nothing and calls no model. Broken settings are then
            reported on standard error, and the last good ones are used.
        is_shared: Whether the command may run beside a daemon of another machine or home on the same folder: it changes
            only files that a person could change too, or checks for the daemon itself.

    Raises:
        NotABrainError: There is no brain.
        SettingsError: The settings are broken, and the command does not only read.
        LockedError: A daemon of another home serves the folder, and the command neither only reads nor is shared.
    """
    global _zone
    if lent := _served.get():
        _zone = lent.zone
        yield lent
        return
    brain = Brain(find_root(_named), clock=_clock, is_reading=is_reading)
    _zone = brain.zone
    try:
        if not (is_reading or is_shared):
            require_alone(brain)
        try:
            if is_reading:
                brain.check_settings()
        except SettingsError as error:
            print_problems(error.problems)
            say("Until then the last good settings hold that a daemon knew, else the defaults.", to_stderr=True)
        yield brain
    finally:
        brain.close()


def command(
    *, is_reading: bool = False, is_shared: bool = False, is_timed: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return a decorator that makes a command of a function.

    A first parameter `brain` gets the brain, opened. The others become arguments and, after a `*`, options; `Args` of
    the docstring says what each is for, and in brackets how it is called on the command line where that is not its
    name: `here (--here, --force)`, `folder (DIR)`. A generator function has `--json` too: it yields once, what that
    prints, when the work is done; what it says besides is for a person, and then goes nowhere.

    Args:
        is_reading: As for `opened_brain`.
        is_shared: As for `opened_brain`.
        is_timed: Whether it has `--at` too, by which it gets the brain as it stood. It yields what a verb returned
            before its JSON; what became of that since is told last.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        about, _, said = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
        entries = {name: (call, " ".join(text.split())) for name, call, text in _ENTRY.findall(said)}
        signature = inspect.signature(function, eval_str=True)
        given = signature.parameters
        parameters = [_described(each, *entries.get(name, ("", ""))) for name, each in given.items() if name != "brain"]
        if inspect.isgeneratorfunction(function):
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter("as_json", keyword, default=False, annotation=JsonOption))

        if is_timed:
            at = inspect.Parameter("at", inspect.Parameter.KEYWORD_ONLY, default="", annotation=str)
            parameters.append(
                _described(at, "", "Of memory as it stood then, on a day at its end: {TIMES}, an event's id.")
            )

        @wraps(function)
        def run(*words: Any, as_json: bool = False, at: str = "", **options: Any) -> None:
            if "as_json" in given:  # one that prints JSON by itself, line by line
                options["as_json"] = as_json
            with ExitStack() as resources:
                if "brain" in given:
                    opened = opened_brain(is_reading=is_reading, is_shared=is_shared)
                    brain = resources.enter_context(opened)
                    words = (resources.enter_context(memory_at(brain, at)) if is_timed else brain, *words)
                if "at" in given:  # one that reads it by itself
                    options["at"] = at
                steps = function(*words, **options)
                if not inspect.isgenerator(steps):
                    return
                since: dict[str, Any] = {}
                with silenced() if as_json else nullcontext():
                    result: Any = next(steps)
                if is_timed:
                    from brainiac.verbs import since_then  # imported by what asked

                    since = since_then(words[0], result[0])
                    result = result[1] | since
                if as_json:
                    print_json(result)
                    resources.enter_context(silenced(is_stderr_too=True))
                deque(steps, maxlen=0)
                if lines := since.get("since"):
                    say("Since then:", to_stderr=True)
                    for line in lines:
                        say(f"  {line}", to_stderr=True)

        run.__doc__ = about
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _described(parameter: inspect.Parameter, call: str, text: str) -> inspect.Parameter:
    """Return a parameter as typer takes it.

    Args:
        parameter: Of the command's function.
        call: How it is called on the command line: flags, and a word that stands for its value; "" for its own name.
        text: What it is for.
    """
    kind: Any = parameter.annotation
    flags, value = re.findall(r"-[\w-]+", call), re.sub(r"-[\w-]+(, )?", "", call).strip()
    shown: dict[str, Any] = {"help": text.replace("{TIMES}", TIMES), "metavar": value or None}
    if hasattr(kind, "__metadata__"):  # it says more, such as bounds
        kind, info = kind.__origin__, copy(kind.__metadata__[0])
        info.help = info.help or text
    elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        info = typer.Option(*(flags or [f"--{parameter.name.replace('_', '-')}"]), **shown)
    else:
        info = typer.Argument(**shown)
    return parameter.replace(annotation=Annotated[kind, info])


def note_edits(brain: Brain) -> None:
    """Record what a person edited while no daemon ran, so that a process sees what they corrected by hand."""
    if not is_running(brain):
        brain.committer.recover()
        brain.observed.adopt()


def agree(question: str, *, is_agreed: bool = False, refusal: str = "") -> None:
    """Ask a person at the terminal whether to go on.

    Args:
        question: The question.
        is_agreed: Whether they agreed by `--yes` already: then nothing is asked.
        refusal: The beginning of the error where nobody can be asked, such as `nothing was made`.

    Raises:
        UserError: There is no terminal.
        BadParameter: There is no terminal, and no refusal is given: the command was used wrongly.
        Abort: They said no.
    """
    if is_agreed:
        return
    if not sys.stdin.isatty():
        problem = "nobody can be asked here; add --yes"
        raise UserError(f"{refusal}: {problem}") if refusal else typer.BadParameter(problem)
    typer.confirm(question, abort=True, err=True)  # seen with --json too


def agree_to(change: Sequence[str], *, is_agreed: bool = False) -> None:
    """Show the lines of a change of a settings file and ask whether to make it; without any nothing is asked."""
    for line in change:
        say(line)
    if change:
        agree("Write this?", is_agreed=is_agreed)


def styling() -> Any:
    """Return the module of what is styled, which takes a moment to import: with it comes rich."""
    from brainiac.cli import styling  # rich is heavy

    return styling


def print_styled(shown: Any, *, stderr: bool = False, width: int | None = None) -> None:
    """Print text, or what rich can render; with colour and at the window's width only on a terminal.

    Args:
        shown: A text, or anything that rich renders.
        stderr: To standard error.
        width: Another width than the window's.
    """
    screen = styling().CleanConsole(stderr=stderr)
    if width:
        screen.width = width
    screen.print(shown)


def print_path(shown: str, file: Path, *, before: str = "", stderr: bool = False) -> None:
    """Print the path of a file; a terminal that can opens it.

    Args:
        shown: As it is to be read.
        file: Its absolute path.
        before: What stands before it on the line.
        stderr: To standard error.
    """
    stream = output(to_stderr=stderr)
    place = opening(shown, file if is_terminal(stream) else None)
    beneath(stream).write(f"{one_line(before)}{place}\n")


def local_time(at: str) -> str:
    """Return an ISO 8601 moment in the time zone of the brain that was opened, to the second."""
    return parse_iso(at).astimezone(_zone).strftime("%Y-%m-%d %H:%M:%S")


@contextmanager
def memory_at(brain: Brain, at: str) -> Iterator[Brain]:
    """Within this context there is the brain as it stood at a time that a person names; the present one for "".

    Raises:
        UserError: It is no time, or no journal goes back so far.
    """
    if not at:
        yield brain
        return
    from brainiac.history.as_of import standing  # imports most of what there is

    with standing(brain, at) as then:
        say(f"As of {local_time(then.at)}:", to_stderr=True)
        yield then


def print_json(data: Any) -> None:
    """Print plain values as JSON."""
    show(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as a table on a terminal, tab-separated otherwise."""
    if not is_terminal(output()):
        for row in rows:
            show("\t".join(map(one_line, row)))
        return
    table = styling().Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(one_line, row))
    print_styled(table)


def print_problems(problems: Sequence[str], *, as_json: bool = False) -> None:
    """Print what is wrong to standard error, one line a problem, or as JSON for scripts."""
    if as_json:
        data = {"error": "\n".join(problems), "problems": list(problems)}
        show(json.dumps(data, ensure_ascii=False), to_stderr=True)
        return
    for problem in problems:
        # as one text, or the second half wraps too early
        print_styled(styling().Text.assemble(("error:", "bold red"), f" {clean(problem)}"), stderr=True)


def print_list(title: str, lines: Sequence[str], most: int = SHOWN_AT_MOST) -> None:
    """Print a heading and the first lines below it; nothing where there are none."""
    if lines:
        say(f"{title}:")
    for line in lines[:most]:
        say(f"  {line}")
    if len(lines) > most:
        say(f"  and {len(lines) - most} more (--json shows all)")


def by_reason(reasons: Mapping[str, str]) -> list[str]:
    """Return a line for each reason why prompts wait, with the first two of those that wait for it."""
    prompts: dict[str, list[str]] = {}
    for prompt, reason in reasons.items():
        prompts.setdefault(reason, []).append(prompt)
    return [f"{few(paths, 2)}: {reason}" for reason, paths in prompts.items()]


def problems_of(error: Exception) -> Sequence[str]:
    """Return the messages of an error for a person; none of an unexpected error, which is a bug."""
    if isinstance(error, OSError | sqlite3.Error):
        error = StorageError.of(error) or error
    if isinstance(error, UserError):
        return error.problems
    if isinstance(error, ModelError):
        return [f"{error.problem} {error.advice}".strip()]
    if isinstance(error, StorageError):
        return [error.problem]
    return [f"{type(error).__name__}: {error}"] if isinstance(error, BrainiacError | OSError) else []
