"""`brainiac plugins`: which plugins there are, and which of the brain's own may run on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, agree, opened_brain, print_json, print_problems, print_table
from brainiac.errors import UserError
from brainiac.events import PluginDistrusted, PluginTrusted
from brainiac.health.overview import unknown_plugins
from brainiac.host.plugins import PluginHost
from brainiac.host.sources import bundled
from brainiac.pipeline.daemon import is_running
from brainiac.terminal import say

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of a file plugins/NAME.py in the brain.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(help="Which plugins there are, and which of the brain's own may run here.")
    group.callback(invoke_without_command=True)(_default)
    group.command("list")(show)
    group.command()(trust)
    group.command()(distrust)
    group.command()(reload)
    app.add_typer(group, name="plugins")


def _default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show()


def show(as_json: JsonOption = False) -> None:
    """List the plugins and the state of each; none of them is run."""
    with opened_brain(is_reading=True) as brain:
        plugins, unknown = host_of(brain).survey(), list(unknown_plugins(brain))
    if as_json:
        print_json([asdict(plugin) for plugin in plugins])
    else:
        rows = [(plugin.name, plugin.source, plugin.state, plugin.detail) for plugin in plugins]
        print_table(("plugin", "from", "state", ""), rows)
    print_problems([str(problem) for problem in unknown])


def trust(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Let a plugin of the brain run on this machine, as its files stand now; any change to them asks again."""
    with opened_brain(is_shared=True) as brain:
        host = host_of(brain)
        fingerprint = host.trust.fingerprint(name)
        say("These files will run with all your rights, exactly as they stand:")
        for file, digest in sorted(fingerprint.items()):
            say(f"  {brain.tree.relative(brain.tree.plugins / file)}  sha256 {digest}")
        if problem := host.problem_of(name):
            say(f"It would not be loaded: {problem}.")
        refusal = f"{name} is not trusted, read its files first"
        agree("Have you read them, and trust them?", is_agreed=yes, refusal=refusal)
        host.trust.trust(name, fingerprint)
        brain.record(PluginTrusted(plugin=name, files=fingerprint), by="person")
    say(f"{name} is trusted here; a running `brainiac run` takes it in by itself.")


def distrust(name: NameArgument) -> None:
    """Keep a plugin of the brain from running on this machine; a running `brainiac run` ends it by itself."""
    with opened_brain(is_shared=True) as brain:
        if not host_of(brain).trust.distrust(name):
            raise UserError(f"{name} was not trusted here; `brainiac plugins list` shows what is")
        brain.record(PluginDistrusted(plugin=name), by="person")
    say(f"{name} does not run here any more.")


def reload() -> None:
    """Have a running `brainiac run` look the plugins over now; it needs no restart."""
    with opened_brain(is_shared=True) as brain:
        host_of(brain).trust.renew()
        is_served = is_running(brain)
    say("The daemon takes in what changed." if is_served else "No daemon is running; each command loads plugins anew.")
    show()


def host_of(brain: Brain) -> PluginHost:
    """Return the host of a brain's plugins with none of them loaded."""
    return PluginHost(brain, bundled("plugins"))
