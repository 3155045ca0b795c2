"""`brainiac run`: the daemon, or one pass over the inbox."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import by_reason, local_time, opened_brain, print_list
from brainiac.cli.wording import news
from brainiac.events import Event
from brainiac.logs import configure
from brainiac.pipeline.daemon import Daemon, run_once
from brainiac.server.app import DEFAULT_PORT, serving
from brainiac.terminal import is_terminal, one_line, say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(run)


def run(
    once: Annotated[bool, typer.Option("--once", help="Answer and reflect what is there, then end.")] = False,
    answer_backlog: Annotated[
        bool, typer.Option("--answer-backlog", help="Also when more prompts wait than inbox.backlog_limit.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a port of this machine: `server.port`, else 4747 (brainiac[server]).")
    ] = False,
    env_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also take variables from here, KEY=value lines, where it exists."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Log JSON lines to standard error, as where there is no terminal.")
    ] = False,
) -> None:
    """Watch the brain and answer what is dropped into its inbox."""
    if env_file:
        from dotenv import load_dotenv  # only a service has such a file

        load_dotenv(env_file, interpolate=False)
    shows_news = is_terminal(sys.stdout) and not as_json
    if not once:
        configure(is_verbose=verbose, is_quiet=shows_news and not verbose, as_json=as_json)
    is_clean, is_replaced = True, True
    while is_replaced:
        with opened_brain(is_shared=True) as brain:
            if once:
                outcome = run_once(brain, is_backlog_answered=answer_backlog)
                say(f"answered {outcome.answered}, reflected {outcome.reflected}, waiting {outcome.waiting}")
                print_list("Waiting", by_reason(outcome.reasons))
                return
            if shows_news:
                tell_events(brain)
            port = (brain.settings.server.port or DEFAULT_PORT) if serve else None
            doors = serving(brain, say, port=port)
            daemon = Daemon(brain, is_backlog_answered=answer_backlog, tell=say, beside=doors)
            is_clean = daemon.run() and is_clean
            is_replaced = daemon.is_replaced
    if not is_clean:
        sys.stdout.flush()
        os._exit(0)  # a plugin or model call still hangs, and Python would wait for its thread; all else is closed


def tell_events(brain: Brain) -> None:
    """Print a line for each event that a person at the terminal wants to know of, as it is recorded."""

    def tell(event: Event) -> None:
        if line := news(brain, event):
            with suppress(OSError):  # a closed terminal must not make the commit fail
                say(f"{local_time(event.at)[11:16]}  {one_line(line)}")

    brain.on_event(tell)
