"""`brainiac run`, `open` and `service`: the daemon, its window, each login; `token` and `mcp`: how others reach it."""

from __future__ import annotations

import os
import shlex
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dotenv import load_dotenv

from brainiac.brain import Brain
from brainiac.cli.session import YesOption, agree, agree_to, by_reason, command, local_time, opened_brain, print_list
from brainiac.errors import SettingsError, UserError
from brainiac.events import Event
from brainiac.history.sentences import news
from brainiac.pipeline.daemon import Daemon, run_once
from brainiac.server import clients
from brainiac.server.address import MINE, own_token, read_address, token_of
from brainiac.storage.serving import is_served_here
from brainiac.terminal import configure_log, is_terminal, one_line, say
from brainiac.window.sessions import Sessions

START_SECONDS = 10.0


@command()
def run(
    *,
    once: bool = False,
    answer_backlog: bool = False,
    serve: bool = False,
    env_file: Path | None = None,
    verbose: bool = False,
    as_json: bool = False,
) -> None:
    """Watch the brain and answer what is dropped into its inbox.

    Args:
        once: Answer and reflect what is there, then end.
        answer_backlog: Also when more prompts wait than inbox.backlog_limit.
        serve: Serve a port of this machine: `server.port`, else 4747.
        env_file (--env-file FILE): Also take variables from here, KEY=value lines, where it exists.
        verbose (--verbose, -v): Log more.
        as_json (--json): Log JSON lines to standard error, as where there is no terminal.
    """
    if env_file:
        load_dotenv(env_file, interpolate=False)
    if once:
        with opened_brain(is_shared=True) as brain:
            outcome = run_once(brain, is_backlog_answered=answer_backlog)
            say(f"answered {outcome.answered}, reflected {outcome.reflected}, waiting {outcome.waiting}")
            print_list("Waiting", by_reason(outcome.reasons))
        return
    _serve(answer_backlog=answer_backlog, serve=serve, verbose=verbose, as_json=as_json)


def _serve(
    *,
    answer_backlog: bool = False,
    serve: bool = False,
    verbose: bool = False,
    as_json: bool = False,
    begin: Callable[[Brain], None] = lambda brain: None,
) -> None:
    """Run the daemon in this process; see `run`. `begin` is called once it is served."""
    from brainiac.cli.served import serving_commands  # only a daemon does
    from brainiac.server.app import serving  # with it come the libraries of the server

    shows_news = is_terminal(sys.stdout) and not as_json
    configure_log(is_verbose=verbose, is_quiet=shows_news and not verbose, as_json=as_json)
    with opened_brain(is_shared=True) as brain:

        def tell(event: Event) -> None:
            if line := news(brain, event):
                with suppress(OSError):  # a closed terminal must not make the commit fail
                    say(f"{local_time(event.at)[11:16]}  {one_line(line)}")

        if shows_news:
            brain.on_event(tell)
        with suppress(SettingsError):  # `status` shows the problem
            serve = serve or brain.machine.serve
        port = brain.settings.server.port  # only says which, since it is synced to other machines
        if port and not serve:
            say(f"Port {port} is not opened: add --serve, or write `serve: true` into {brain.places.config}.")

        @contextmanager
        def doors() -> Iterator[None]:
            with serving(brain, say, port=(port or 4747) if serve else 0), serving_commands(brain):
                begin(brain)
                yield

        is_clean = Daemon(brain, is_backlog_answered=answer_backlog, tell=say, beside=doors()).run()
    if not is_clean:
        sys.stdout.flush()
        os._exit(0)  # a plugin or model call still hangs, and Python would wait for its thread; all else is closed


@command()
def open_(*, no_browser: bool = False) -> None:
    """Show this brain in a browser: what it knows, what waits, what it did; all that can be put right there.

    The daemon that runs serves it; where none does, this command is one until Ctrl-C. The browser is logged in by a
    link that works once, within ten minutes.

    Args:
        no_browser: Only print the link.
    """
    with opened_brain(is_reading=True) as brain:
        is_served = is_served_here(brain)
        if is_served:
            _show_window(brain, has_browser=not no_browser)
    if not is_served:
        say("No daemon runs here; this one does until Ctrl-C (`brainiac service install` has it start at each login).")
        _serve(begin=lambda brain: _show_window(brain, has_browser=not no_browser))


def _show_window(brain: Brain, *, has_browser: bool) -> None:
    """Print a link to the window that works once, and open it in the browser.

    Raises:
        UserError: The daemon serves no window.
    """
    deadline = time.monotonic() + START_SECONDS
    # a daemon that starts at this moment has its lock before its address
    while not (address := read_address(brain.places.state)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if address is None or not address.window:
        what = "the daemon serves no window" if address else "the daemon does not say where it serves its window"
        raise UserError(f"{what}; it does unless `window: false` stands in {brain.places.config}: restart it then")
    url = f"{address.window}/login?code={Sessions(brain.places.state).new_code()}"
    say(url)
    if has_browser and not webbrowser.open(url):
        say("No browser was found here: open that address in one; it works once, within ten minutes.")


@command(is_reading=True)
def service_install(brain: Brain, *, now: bool = False, yes: YesOption = False) -> None:
    """Have the daemon start at each login, and again after a crash: shows the file first, and asks.

    It is a systemd user unit or a launchd agent. Without --now nothing is started before you log
    in again. It is started without the variables of your shell: keys of model providers belong into the file that
    this command names.

    Args:
        now: Start it now too.
    """
    unit = clients.unit_of(brain)
    missing, environment = clients.missing_variables(brain), clients.environment_file(brain)
    edit = unit.edit()
    agree_to(edit.lines, is_agreed=yes)
    clients.install(unit, edit)
    say(f"{unit.manager} starts the daemon at each login ({unit.file}).")
    if missing:
        say(f"It does not see your shell's {', '.join(missing)}: write KEY=value lines into {environment}.")
    if now:
        clients.run_command(unit.start, f"{unit.file} is installed, but")
        say("It was started.")
    say(f"How it stands: {shlex.join(unit.look)}; what it printed: {unit.log}. `brainiac status` tells of the daemon.")


@command(is_reading=True)
def service_uninstall(brain: Brain, *, yes: YesOption = False) -> None:
    """Stop the service and remove it; the brain stays as it is."""
    unit = clients.unit_of(brain)
    agree(f"Stop it and remove {unit.file}?", is_agreed=yes)
    clients.uninstall(unit)
    say(f"{unit.manager} no longer starts the daemon.")


# --- how programs and assistants reach this brain ----------------------------------------------------------


@command(is_reading=True)
def token(brain: Brain, *, is_mine: bool = False) -> Iterator[Any]:
    """Print the token that lets a program in at the port of a running daemon; keep it as you keep a password.

    What comes with it are an assistant's words, and are kept as such.

    Args:
        is_mine (--mine): For a tool of your own, such as a phone's shortcut: what it sends is yours.
    """
    state = brain.places.state
    secret, address = own_token(state, MINE) if is_mine else token_of(state), read_address(state)
    yield {"token": secret, "url": address.url if address else ""}
    say(secret)


@command()
def mcp() -> None:
    """Serve this brain over standard input and output, as assistants start it; `install` tells them how.

    It uses the running daemon, or opens the brain by itself where none runs.
    """
    configure_log(is_quiet=True)
    with opened_brain(is_reading=True) as brain:
        root, state = brain.root, brain.places.state
    from brainiac.server.mcp import serve_stdio  # no other command needs it

    serve_stdio(root, state)


@command(is_reading=True)
def mcp_install(brain: Brain, host: str, *, yes: YesOption = False) -> None:
    """Add this brain to an assistant's own settings: shows the change, asks, and keeps what stands there.

    The server is started first as the assistant will start it; where it does not answer, nothing is written.

    Args:
        host: claude-desktop, claude-code, cursor, vscode or codex.
    """
    programs = clients.hosts()
    if host not in programs:
        raise UserError(f"{host!r} is no program known here; there are {', '.join(programs)}")
    edit = clients.plan(programs[host], brain.root)
    agree_to(edit.lines, is_agreed=yes)
    clients.check_start(clients.server_entry(brain.root))
    if not edit.lines:
        say(f"{edit.file} has it already, and it starts.")
        return
    edit.make()
    say(f"Done; the server starts. Now {programs[host].next_step}.")
