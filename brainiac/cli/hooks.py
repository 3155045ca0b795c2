"""`brainiac hooks`: assistants whose hooks let memory speak first, whether they deliver it, and what it said."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import YesOption, agree_to, command, local_time, print_table
from brainiac.errors import BrainiacError, UserError
from brainiac.formats.frontmatter import edit_meta
from brainiac.hooks import files
from brainiac.imports.turns import turns_of
from brainiac.server.clients import Edit, read_text
from brainiac.settings import CaptureSettings
from brainiac.storage.pushes import CANARY, Push, kept_pushes
from brainiac.storage.said import receipt_id
from brainiac.storage.turns import HOSTS, Turn, Turns
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
    agree_to(edit.lines, is_agreed=yes)
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
    agree_to(edit.lines, is_agreed=yes)
    files.remove(brain, target, edit)
    for folder in {each.brain for each in brain.machine.capture.values()}:
        with turns_of(brain, folder) as turns:
            if turns:
                turns.end(host)
    say(f"Done; {host} asks memory no more, and nothing that is said there is kept.")


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


@command(is_shared=True)
def hooks_capture(
    brain: Brain, folder: Path | None = None, *, private: bool = False, off: bool = False, yes: YesOption = False
) -> None:
    """Have what you say to an assistant in a folder come into this brain, with its answers; lists the folders.

    It is for assistants with our hooks, from now on, and for no other folder. It stands in this machine's own settings.

    Args:
        folder: With all folders in it, but for those that have a line of their own.
        private (--private): What is said there must not leave this machine.
        off (--off): Nothing of it any more; what came stays.
    """
    captured = dict(brain.machine.capture)
    if folder is None:
        for name, each in captured.items():
            say(f"{name}: {each.brain or 'not kept'}{' (private)' if each.private else ''}")
        if not captured:
            say("Nothing that you say to an assistant is kept; `brainiac hooks capture FOLDER` does.")
        return
    place = str(folder.expanduser().resolve())
    if not Path(place).is_dir():
        raise UserError(f"{place} is no folder")
    captured.pop(place, None)
    if not off:
        captured[place] = CaptureSettings(brain=str(brain.root.resolve()), private=private)
    elif brain.machine.model_copy(update={"capture": captured}).captured(place)[0]:
        captured[place] = CaptureSettings()  # within one that is kept
    file = brain.places.config
    before = read_text(file)
    body = before if before is None or before.endswith("\n") or not before else f"{before}\n"
    values = {name: each.model_dump() for name, each in captured.items()}
    after = edit_meta(f"---\n{body or ''}---\n", capture=values).removeprefix("---\n").removesuffix("---\n")
    edit = Edit(file, before, after)
    agree_to(edit.lines, is_agreed=yes)
    if edit.lines:
        edit.make()
    turns = Turns(brain.database)
    turns.end(folder=place)
    if off:
        say(f"Done; nothing that is said in {place} comes into memory any more.")
        return
    for host in HOSTS:
        turns.since(host, place, brain.now())
    say(f"Done; what is said in {place} from now on comes into {brain.root}. `brainiac hooks log` shows it.")


@command(is_reading=True)
def hooks_log(brain: Brain, *, number: Annotated[int, typer.Option("-n", "--number", min=1)] = 20) -> Iterator[Any]:
    """Show what memory said unasked on this machine, why it was silent, and what was taken in; newest last.

    Words are shown as they stand in memory now, of what was taken in only the id; `brainiac why ID` tells more. This
    machine's own settings switch off a kind: `push: [related, waiting, again]`.

    Args:
        number: How many moments.
    """
    gate, rows = Caller("push").gate(brain), list[tuple[str, ...]]()
    turns = [replace(turn, user="", ai="") for turn in Turns(brain.database).all()]
    all_ = list[Push | Turn]([*kept_pushes(brain.database), *turns])
    moments = sorted(all_, key=lambda each: each.at)[-number:]
    yield [asdict(each) for each in moments]
    for each in moments:
        if isinstance(each, Turn):
            state = f"kept: {receipt_id(each.exchange)}" if each.is_done else "waits for its end"
            told = f"not kept: {each.reason}" if each.reason else state
            rows.append((local_time(each.at), each.host, Path(each.project).name, "turn", told))
            continue
        lines = []
        for name in each.said:
            line = None
            with suppress(BrainiacError):  # forgotten or private by now
                line = line_of(brain, gate, name)
            lines.append(str(line) if line else "(not shown any more)")
        first, *others = lines or [f"silent: {each.reason}"]
        rows.append((local_time(each.at), each.host, Path(each.project).name, each.kind, first))
        rows += [("", "", "", "", other) for other in others]
    print_table(("when", "host", "folder", "kind", "what"), rows)
