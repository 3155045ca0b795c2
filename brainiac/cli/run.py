"""`brainiac run`: the daemon, or one pass over the inbox."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from brainiac.cli.session import opened_brain
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(run)


def run(
    once: Annotated[bool, typer.Option("--once", help="Answer and reflect what is there, then end.")] = False,
    answer_backlog: Annotated[
        bool, typer.Option("--answer-backlog", help="Also when more prompts wait than inbox.backlog_limit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Watch the brain and answer what is dropped into its inbox."""
    from brainiac.logs import configure
    from brainiac.pipeline.daemon import Daemon, run_once

    if not once:
        configure(is_verbose=verbose)
    is_clean, is_ousted = True, True
    while is_ousted:
        with opened_brain(is_shared=True) as brain:
            if once:
                outcome = run_once(brain, is_backlog_answered=answer_backlog)
                say(f"answered {outcome.answered}, reflected {outcome.reflected}, waiting {outcome.waiting}")
                return
            daemon = Daemon(brain, is_backlog_answered=answer_backlog, tell=say)
            is_clean = daemon.run() and is_clean
            is_ousted = daemon.is_ousted
    if not is_clean:
        sys.stdout.flush()
        os._exit(0)  # a plugin or model call still hangs, and Python would wait for its thread; all else is closed
