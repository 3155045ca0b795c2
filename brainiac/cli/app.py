"""The `brainiac` command: it loads the module of one command, and nothing heavy.

Exit codes: 0 done, 1 what was asked for failed, 2 wrong use.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Annotated

import typer

from brainiac import __version__
from brainiac.cli.session import name_brain, print_problems, problems_of, use_clock
from brainiac.clock import SYSTEM, Clock
from brainiac.errors import UserError
from brainiac.host.trust import bundled_commands
from brainiac.terminal import guard, is_terminal, say

INTERRUPTED = 130  # as a shell calls the end by Ctrl-C
# The module of each command: only that of the command that is called is imported, which keeps every command fast.
COMMANDS = {
    "init": "brains", "run": "run", "ask": "ask", "chat": "ask",
    "search": "search", "reindex": "search", "context": "search",
    "log": "log", "why": "explain", "undo": "explain", "forget": "explain", "adopt": "explain",
    "digest": "log", "correct": "explain",
    "diff": "log", "show": "log", "backup": "brains", "restore": "brains",
    "takeover": "brains", "status": "status", "doctor": "status", "plugins": "status", "costs": "status",
    "token": "run", "open": "run", "mcp": "run", "service": "run",
    "sources": "sources", "import": "sources",
    "git": "brains", "merge-driver": "brains",
}  # fmt: skip


def new_app() -> typer.Typer:
    """Return the application without commands; a new one for each run, since the plugins of its brain add theirs."""
    app = typer.Typer(
        name="brainiac",
        help="A folder that remembers. Drop a note in inbox/; the answer appears beside it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its boxes would take markup and escapes in a file's name for styles
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    app.callback()(_root)
    return app


def _print_version(is_meant: bool) -> None:
    """Print the version and exit, for `--version`."""
    if is_meant:
        say(f"brainiac {__version__}")
        raise typer.Exit


def _root(
    brain: Annotated[
        str | None,
        typer.Option("--brain", metavar="DIR", help="The brain; else BRAINIAC_HOME, else the one around this folder."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    name_brain(brain)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    guard()  # cleans what is printed from now on
    code = run(sys.argv[1:] if arguments is None else arguments)
    if code == INTERRUPTED and is_terminal(sys.stderr):
        say(to_stderr=True)  # the shell's next line begins below the ^C
    sys.exit(code)


def run(arguments: list[str], clock: Clock = SYSTEM) -> int:
    """Run one command and return its exit code; the brain that it opens goes by a clock."""
    use_clock(clock)
    arguments = _brain_first(arguments) or ["--help"]
    app, name = new_app(), _command(arguments)
    if name in COMMANDS:
        _register(app, COMMANDS[name])
    else:
        register_all(app)
    command = typer.main.get_command(app)
    # the application is a group of commands; one that the program lacks may be a plugin's
    if name and name not in getattr(command, "commands", ()):
        _register_plugin_commands(app, arguments)
        command = typer.main.get_command(app)
    try:
        command.main(arguments, prog_name="brainiac", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:  # noqa: BLE001 - the boundary: nobody is shown a traceback who did not ask for it
        problems = problems_of(error)
        if not problems:
            if os.environ.get("BRAINIAC_TRACEBACK"):
                traceback.print_exc()
            what = f"{type(error).__name__}: {error}"
            problems = [f"a bug in brainiac: {what} (set BRAINIAC_TRACEBACK=1 to see where)"]
        print_problems(problems, as_json="--json" in arguments)
    return 1


def register_all(app: typer.Typer) -> None:
    """Add all commands, the program's own and those of its bundled plugins, for the list of `--help` and the docs.

    A run of one command adds only the commands of that one's module.
    """
    for group in dict.fromkeys(COMMANDS.values()):
        _register(app, group)
    for module in bundled_commands():
        module.register(app)


def _register(app: typer.Typer, group: str) -> None:
    """Add the commands of one module of `brainiac.cli`."""
    importlib.import_module(f"brainiac.cli.{group}").register(app)


def _brain_first(arguments: list[str]) -> list[str]:
    """Return the arguments with `--brain DIR` moved to the front, since people type it anywhere; after `--` is text."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for index, argument in enumerate(arguments[:end]):
        is_pair = argument == "--brain" and index + 1 < end
        if is_pair or argument.startswith("--brain="):
            after = index + 2 if is_pair else index + 1
            return arguments[index:after] + arguments[:index] + arguments[after:]
    return list(arguments)


def _command(arguments: list[str]) -> str:
    """Return the name of the command among the arguments; "" where there is none."""
    words = arguments[2:] if arguments[:1] == ["--brain"] else [a for a in arguments if not a.startswith("--brain=")]
    return words[0] if words and not words[0].startswith("-") else ""


def _register_plugin_commands(app: typer.Typer, arguments: list[str]) -> None:
    """Let the plugins of the brain add their commands; where there is no brain, add none."""
    from brainiac.cli.session import opened_brain  # `--help` opens no brain

    if arguments[:1] == ["--brain"]:
        name_brain(arguments[1])
    elif arguments and arguments[0].startswith("--brain="):
        name_brain(arguments[0].removeprefix("--brain="))
    try:
        with opened_brain(is_shared=True) as brain:
            brain.plugins.call("register_commands", cli=app)
    except UserError:
        return
