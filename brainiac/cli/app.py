"""The `brainiac` command: it loads the module of one command, and nothing heavy.

Exit codes: 0 done, 1 what was asked for failed, 2 wrong use.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, cast

import typer

from brainiac import __version__
from brainiac.cli.session import name_brain, opened_brain, print_problems, problems_of, use_clock
from brainiac.clock import SYSTEM, Clock
from brainiac.errors import UserError
from brainiac.host.trust import bundled_commands
from brainiac.terminal import guard, is_terminal, say

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # of click, or of the one in typer
INTERRUPTED = 130  # as a shell calls the end by Ctrl-C
# The commands of each module, whose functions have the commands' names: only the module of the command that is called
# is imported, which keeps every command fast.
COMMANDS = {
    "brains": (
        *("init", "backup", "restore", "takeover", "git setup", "merge-driver"),
        *("sources list", "sources allow", "sources refuse", "import"),
    ),
    "run": ("run", "open", "token", "mcp", "mcp install", "service install", "service uninstall"),
    "ask": ("ask", "chat"),
    "search": ("search", "reindex", "context"),
    "log": ("log", "digest", "diff", "show"),
    "explain": ("why", "undo", "forget", "prove forgotten", "adopt", "correct", "wrong"),
    "hooks": ("hooks install", "hooks test", "hooks capture", "hooks log", "hooks off"),
    "status": ("status", "doctor", "costs", "plugins list", "plugins trust", "plugins distrust"),
}
# what a group of commands is for, and which of them is meant by the group's name alone
GROUPS = {
    "git": ("Git and this brain.", ""),
    "hooks": ("Have memory speak first in an assistant, quietly.", "hooks log"),
    "mcp": ("Serve this brain to assistants (Claude, Cursor, Codex, …).", "mcp"),
    "plugins": ("Which plugins there are, and which of the brain's own may run here.", "plugins list"),
    "prove": ("Show what this brain has, and has not.", ""),
    "service": ("Have this machine start the daemon at each login.", ""),
    "sources": ("Folders of your own notes that are searched and cited, never written.", "sources list"),
}


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
    named, words = _split(arguments)
    app, name = new_app(), words[0] if words and not words[0].startswith("-") else ""
    if module := _module_of(name):
        _register(app, module)
    elif "--version" not in words:
        register_all(app)
    command = typer.main.get_command(app)
    # the application is a group of commands; one that the program lacks may be a plugin's
    if name and name not in getattr(command, "commands", ()):
        if named:
            name_brain(named[1])
        with suppress(UserError), opened_brain(is_shared=True) as brain:  # where there is no brain, there are none
            brain.plugins.call("register_commands", cli=app)
        command = typer.main.get_command(app)
    try:
        command.main([*named, *(words or ["--help"])], prog_name="brainiac", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:  # noqa: BLE001 - the boundary: nobody is shown a traceback who did not ask for it
        problems = problems_of(error)
        if not problems:
            if os.environ.get("BRAINIAC_TRACEBACK"):
                traceback.print_exc()
            what = f"{type(error).__name__}: {error}"
            problems = [f"a bug in brainiac: {what} (set BRAINIAC_TRACEBACK=1 to see where)"]
        print_problems(problems, as_json="--json" in words)
    return 1


def run_lent(words: list[str]) -> int | None:
    """Run one of the program's own commands with the brain that is lent to it, and return its exit code.

    Args:
        words: The command line, without `--brain`.

    Returns:
        None where it was used wrongly; then nothing was done or printed.

    Raises:
        Exception: A bug.
    """
    app = new_app()
    _register(app, _module_of(words[0]))
    try:
        return cast(int | None, typer.main.get_command(app).main(words, "brainiac", standalone_mode=False)) or 0
    except _UsageError:
        return None
    except Exception as error:
        problems = problems_of(error)
        if not problems:
            raise
        print_problems(problems, as_json="--json" in words)
    return 1


def _module_of(name: str) -> str:
    """Return the module that has a command; "" where the program lacks it."""
    return next((module for module, names in COMMANDS.items() if name in (each.split()[0] for each in names)), "")


def register_all(app: typer.Typer) -> None:
    """Add all commands, the program's own and those of its bundled plugins, for the list of `--help` and the docs.

    A run of one command adds only the commands of that one's module.
    """
    for module in COMMANDS:
        _register(app, module)
    for plugin in bundled_commands():
        plugin.register(app)


def _register(app: typer.Typer, module: str) -> None:
    """Add the commands of one module of `brainiac.cli`."""
    functions = vars(importlib.import_module(f"brainiac.cli.{module}"))
    groups: dict[str, typer.Typer] = {}
    for command in COMMANDS[module]:
        name, _, word = command.partition(" ")
        if name in GROUPS and name not in groups:
            about, default = GROUPS[name]
            groups[name] = typer.Typer(name=name, help=about, no_args_is_help=not default, rich_markup_mode=None)
            if default:
                groups[name].callback(invoke_without_command=True)(_by_itself(_function(functions, default)))
            app.add_typer(groups[name])
        if word or name not in groups:
            groups.get(name, app).command(word or name)(_function(functions, command))


def _function(functions: dict[str, Any], command: str) -> Callable[..., None]:
    """Return the function of a command, which has a line below its name where Python has that name for itself."""
    name = command.replace(" ", "_").replace("-", "_")
    return cast("Callable[..., None]", functions.get(name) or functions[f"{name}_"])


def _by_itself(function: Callable[[], None]) -> Callable[[typer.Context], None]:
    """Return what a group does: a function where only the group's name was given."""

    def run(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            function()

    return run


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return `--brain DIR`, which people type anywhere, if it is there, and the other arguments; after `--` is text."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for index, argument in enumerate(arguments[:end]):
        if argument == "--brain" and index + 1 < end:
            return arguments[index : index + 2], arguments[:index] + arguments[index + 2 :]
        if argument.startswith("--brain="):
            return argument.split("=", 1), arguments[:index] + arguments[index + 1 :]
    return [], arguments
