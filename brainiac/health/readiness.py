"""What keeps a brain from working on this machine as its settings say: told by `status` and `doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brainiac.brain import Brain
from brainiac.errors import SettingsError
from brainiac.host.plugins import PluginHost, PluginStatus
from brainiac.host.sources import bundled
from brainiac.settings import MachineSettings, Settings, retired
from brainiac.storage.files import were_set_aside
from brainiac.tree import OUR_TEMPORARY_PREFIX

ANSWERS = "core_loop"
PROBE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Something that a setting or this machine does not give.

    Attributes:
        where: A path in the brain, or a folder of this machine.
        what: What is wrong.
        todo: What a person can do.
    """

    where: str
    what: str
    todo: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.todo}"


def survey(brain: Brain) -> list[PluginStatus]:
    """Return the plugins and what would become of each, none of them loaded."""
    return PluginHost(brain, bundled("plugins")).survey()


def shortfalls(brain: Brain, *, is_thorough: bool = False) -> Iterator[Shortfall]:
    """Yield what is wrong with the settings, or not to be had as they ask for.

    Args:
        brain: Whose settings.
        is_thorough: Also load a model on this machine, which takes half a second.
    """
    config = brain.tree.relative(brain.tree.config)
    try:
        brain.check_settings()
    except SettingsError as error:
        todo = "until then the last good settings hold"
        yield from (Shortfall(config, each.removeprefix(f"{brain.tree.config}: "), todo) for each in error.problems)
    yield from disabled_unknown(brain)
    for path in were_set_aside(brain.places.state):
        what = "could not be read, was set aside and made anew; what was in flight in it is not done"
        yield Shortfall(str(path), what, "look whether anything is missing, and remove it")
    try:
        machine = brain.machine
    except SettingsError as error:
        place = str(brain.places.config)
        yield from (Shortfall(place, each.removeprefix(f"{place}: "), "models need it") for each in error.problems)
    else:
        for what in (_index_problem(brain), _embedder_problem(brain, machine, is_thorough=is_thorough)):
            if what:
                yield Shortfall(config, what, "until then search goes without it")


def notices(brain: Brain) -> Iterator[Shortfall]:
    """Yield what keeps nobody from anything and should be known: settings that no longer exist."""
    files: tuple[tuple[str, Path, type[Settings | MachineSettings]], ...] = (
        (brain.tree.relative(brain.tree.config), brain.tree.config, Settings),
        (str(brain.places.config), brain.places.config, MachineSettings),
    )
    for where, path, model in files:
        for name, instead in retired(path, model).items():
            yield Shortfall(where, f"`{name}` is no setting any more: {instead}", "take the line out; it is ignored")


def disabled_unknown(brain: Brain) -> Iterator[Shortfall]:
    """Yield the names in `plugins.disabled` that no plugin has."""
    disabled = brain.settings.plugins.disabled
    known = {plugin.name for plugin in survey(brain)} if disabled else set()
    for name in disabled:
        if name not in known:
            what = f"`plugins.disabled`: no plugin is called `{name}`"
            todo = f"name one of {', '.join(sorted(known))}, or take it out"
            yield Shortfall(brain.tree.relative(brain.tree.config), what, todo)


def _index_problem(brain: Brain) -> str:
    name = brain.settings.recall.index
    if name == "embedded":
        return ""
    known: dict[str, object] = {}
    host = PluginHost(brain, bundled("plugins"))  # one that reports no faults: looking must leave no trace
    host.load()
    host.call("register_indexes", register=known.__setitem__)
    there_are = ", ".join(f"`{each}`" for each in ("embedded", *known))
    return (
        "" if name in known else f"`recall.index`: no plugin that may run here registers `{name}`; there is {there_are}"
    )


def _embedder_problem(brain: Brain, machine: MachineSettings, *, is_thorough: bool) -> str:
    name = brain.settings.recall.embedder
    is_loaded = name == "local" or Path(name).expanduser().is_dir()
    if name in ("auto", "none") or (is_loaded and not is_thorough):
        return ""
    from brainiac.llm.embedding import RemoteEmbedder
    from brainiac.search.embed import EmbedderError, make_embedder

    try:
        make_embedder(name, machine, RemoteEmbedder)
    except EmbedderError as error:
        return str(error)
    return ""


def nobody_answers(brain: Brain) -> str:
    """Say why a daemon that is started here would answer nothing, and what to do; "" when it would."""
    from brainiac.history.devices import waiting

    if not brain.is_active:
        return waiting(brain)
    states = {plugin.state: plugin.detail for plugin in survey(brain) if plugin.name == ANSWERS}
    if states.keys() & {"ready", "loaded"} or not states:
        return ""
    state, detail = next(iter(states.items()))
    return f"{ANSWERS}, the plugin that answers, is {state}: {detail}"


def unwritable(brain: Brain) -> Iterator[Shortfall]:
    """Yield the folders in which nothing can be written; those that are missing are another matter."""
    tree, todo = brain.tree, "see to that; until then nothing is answered or kept"
    for folder in (tree.inbox, tree.memory, tree.config.parent, tree.logs, brain.places.state):
        if folder.is_dir() and (trouble := _trouble(folder)):
            where = tree.relative(folder) if folder.is_relative_to(tree.root) else str(folder)
            yield Shortfall(where, f"cannot be written: {trouble}", todo)


def _trouble(folder: Path) -> str:
    import tempfile

    try:
        # without a name where the system can: nobody who watches sees it
        with tempfile.TemporaryFile(dir=folder, prefix=OUR_TEMPORARY_PREFIX) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    return ""
