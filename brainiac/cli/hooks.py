"""`brainiac hooks`: assistants whose hooks let memory speak first, whether they deliver it, and what it said."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import YesOption, agree, command, local_time, print_table
from brainiac.errors import BrainiacError, UserError
from brainiac.hooks import files
from brainiac.storage.pushes import CANARY, kept_pushes
from brainiac.terminal import say
from brainiac.verbs import Caller
from brainiac.verbs.push import line_of

_LOOK_SECONDS, _REACH_SECONDS = 0.2, 10.0


@command(is_shared=True)
def hooks_install(brain: Brain, host: str, *, yes: YesOption = False) -> None:
    """Have an assistant ask memory at each prompt that you type: shows the change of its settings, and asks.

    Only your own settings are changed, never a project's. What memory says then goes to the assistant's model;
    nothing private does, and mostly it says nothing.

    Args:
        host: claude-code, codex or cursor.
    """
    target = files.hook_file(host)
    edit, put = files.install_edit(brain, target)
    for line in edit.lines:
        say(line)
    if edit.lines:
        agree("Write this?", is_agreed=yes)
    files.install(brain, target, edit, put)
    say(f"Done. Now {target.next_step}. `brainiac hooks test {host}` shows whether it arrives." if edit.lines
        else f"{target.file} has it already.")  # fmt: skip


@command(is_shared=True)
def hooks_off(brain: Brain, host: str, *, yes: YesOption = False) -> None:
    """Take our hooks out of an assistant's settings; all else there stays as it is.

    Args:
        host: claude-code, codex or cursor.
    """
    target = files.hook_file(host)
    edit = files.removal_edit(brain, target)
    if edit.after == (edit.before or ""):
        say(f"{target.file} has none of ours.")
        return
    for line in edit.lines:
        say(line)
    agree("Write this?", is_agreed=yes)
    files.remove(brain, target, edit)
    say(f"Done; {host} asks memory no more.")


@command(is_shared=True)
def hooks_test(brain: Brain, host: str, *, seconds: Annotated[float, typer.Option("--seconds", min=0)] = 120.0) -> None:
    """Show whether an assistant runs the hook, and what it must answer if its model is given what the hook says.

    Args:
        host: claude-code, codex or cursor.
        seconds (--seconds N): How long to wait for a prompt there.
    """
    target, script = files.hook_file(host), files.script_of(brain)
    edit, _ = files.install_edit(brain, target)
    if edit.lines or not script.exists():
        raise UserError(f"{target.file} does not have it; `brainiac hooks install {host}` puts it in")
    session = f"test-{secrets.token_hex(4)}"
    event = {"hook_event_name": target.events[0], "session_id": session, "prompt": session}
    # a host gives it less time; whether that is enough shows there
    words = [str(script), str(_REACH_SECONDS)]
    ran = subprocess.run(words, input=json.dumps(event), capture_output=True, text=True, check=False)
    if ran.returncode or not any(push.session == session for push in kept_pushes(brain.database)):
        raise UserError(f"the hook reaches no daemon of this brain, so it is silent: start `brainiac run` ({script})")
    word = f"brainiac-{secrets.token_hex(3)}"
    brain.database.keep(CANARY, host, word)
    say("The hook reaches the daemon.")
    say(f"Now type into {host}: What is the canary word of Brainiac?  It must answer: {word}")
    deadline = time.monotonic() + seconds
    while brain.database.kept(CANARY).get(host) == word:
        if time.monotonic() > deadline:
            brain.database.drop(CANARY, host)
            raise UserError(f"{host} ran no hook within {seconds:g} seconds: {target.next_step}, and try again")
        time.sleep(_LOOK_SECONDS)
    say(f"{host} ran the hook and was given the word. Where it does not answer {word}, it drops what hooks say.")


@command(is_reading=True)
def hooks_log(brain: Brain, *, number: Annotated[int, typer.Option("-n", "--number", min=1)] = 20) -> Iterator[Any]:
    """Show what memory said unasked on this machine, and why it was silent, newest last.

    Words are shown as they stand in memory now; `brainiac why ID` tells where they are from. This machine's own
    settings switch off a kind: `push: [related, waiting, again]`.

    Args:
        number: How many moments.
    """
    gate, rows = Caller("push").gate(brain), list[tuple[str, ...]]()
    pushes = kept_pushes(brain.database)[-number:]
    yield [asdict(push) for push in pushes]
    for push in pushes:
        lines = []
        for name in push.said:
            line = None
            with suppress(BrainiacError):  # forgotten or private by now
                line = line_of(brain, gate, name)
            lines.append(str(line) if line else "(not shown any more)")
        rows.append((local_time(push.at), push.host, push.kind, "\n".join(lines) or f"silent: {push.reason}"))
    print_table(("when", "host", "kind", "what"), rows)
