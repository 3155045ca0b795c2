"""`brainiac context`: the working memory a prompt would get, with tokens, cuts, and what a cache will hold."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json, print_table
from brainiac.llm.context.blocks import WorkingMemory
from brainiac.terminal import say, show
from brainiac.verbs import briefing


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("context")(context)


def context(
    prompt: Annotated[str, typer.Argument(help="The prompt, or `-` to read it from standard input.")],
    copy: Annotated[bool, typer.Option("--copy", help="Put the whole text on the clipboard, or print it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the working memory that a prompt would get, without asking any model.

    With --copy it can be pasted into a chat, and nothing private is in it; save the reply as NAME.response.md beside
    the prompt to have it remembered.
    """
    with opened_brain(is_reading=True) as brain:
        shown = briefing(brain, sys.stdin.read() if prompt == "-" else prompt, is_copied=copy)
    if copy:
        _copy(shown.memory.text)
    elif as_json:
        print_json(shown.to_json())
    else:
        _print(shown.memory)


def _print(memory: WorkingMemory) -> None:
    """Print the blocks, then a table of their sizes, the cuts and the total."""
    rows = []
    for block in memory.blocks:
        show(block.text + "\n")
        cached = "yes" if block.name in memory.cached else "no"
        rows.append((block.name, memory.block_tokens[block.name], cached, block.owner))
    print_table(("block", "tokens", "begins the next request too", "owner"), rows)
    for cut in memory.cuts:
        say(f"left out of {cut.block}: {cut.parts} parts, {cut.tokens} tokens, {cut.reason}")
    stable = sum(memory.block_tokens[name] for name in memory.cached)
    say(f"{memory.tokens:,} of {memory.budget_tokens:,} tokens; a provider's cache can hold {stable:,} of them.")


def _copy(text: str) -> None:
    """Put text on the clipboard by the system's own tool; without one, print it."""
    tools = (["wl-copy"], ["xclip", "-selection", "clipboard"], ["xsel", "-ib"], ["pbcopy"], ["clip.exe"])
    for command in tools:
        if shutil.which(command[0]):
            tool = subprocess.run(command, input=text.encode(), check=False, stderr=subprocess.DEVNULL, timeout=10)
            if tool.returncode == 0:
                say("Copied. Paste it into a chat.", to_stderr=True)
                return
    show(text)
