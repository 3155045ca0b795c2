"""The overview that `status` prints, and the problems that keep a brain from working as its settings say.

It is read cheaply: from the tree, the daemon's own report and the journal's last day.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import SettingsError
from brainiac.events import PathKind, PluginFailed
from brainiac.formats.page import shareable_text
from brainiac.formats.prompt import error_path, response_path
from brainiac.history.copies import is_marked
from brainiac.history.devices import other_active_devices
from brainiac.host.plugins import PluginHost, PluginStatus
from brainiac.pipeline.inbox import find_backlog
from brainiac.places import bundled_path
from brainiac.settings import MachineSettings, Settings, retired_settings
from brainiac.storage.causes import undone_events
from brainiac.storage.database import read_run_state
from brainiac.storage.files import set_aside_files
from brainiac.storage.pages import find_sources
from brainiac.storage.said import FiledExchanges
from brainiac.storage.serving import is_served_here, served_elsewhere
from brainiac.tree import OUR_TEMPORARY_PREFIX, Misfit, possible_original, subfolders

ANSWERS = "core_loop"  # the plugin without which nothing is answered
PROBE_BYTES = 4096
COUNTED = {
    PathKind.MEMORY: "memories",
    PathKind.ARCHIVED: "archived",
    PathKind.PROMPT: "prompts",
    PathKind.RESPONSE: "responses",
    PathKind.CAPTURE: "captures",
}


Fix = Callable[[Brain], object]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file or folder.

    Attributes:
        path: In the brain, relative; or a file or folder of this machine.
        what: What is wrong.
        todo: What a person can do, or what `doctor --fix` will.
        fix: Repairs it; None where only a person can decide.
    """

    path: str
    what: str
    todo: str
    fix: Fix | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.what}; {self.todo}"


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of a brain, as `status --json` prints it.

    Attributes:
        brain: Its folder.
        device: The id of this device.
        active_device: The device that the settings name to run the processes; None for none.
        daemon: `is_running`; of a running one its report (see `RunState`), else `elsewhere` where another may serve it.
        model: The default model of the settings.
        counts: How many files of each kind, exchanges in short-term memory, and notes in the folders of `sources:`.
        pending: `prompt` (its path) and `reason` of each prompt that waits.
        unread: A line on each file or folder that is passed over: of a type that is not read, no file, no usable name.
        problems: A sentence on each problem.
        notices: A sentence on each thing to know that is no problem.
        faults: Of plugins in the last 24 hours: `at`, `plugin`, and what the event says.
    """

    brain: str
    brain_id: str
    device: str
    active_device: str | None
    daemon: dict[str, Any]
    model: str
    counts: dict[str, int]
    pending: list[dict[str, Any]]
    unread: list[str]
    problems: list[str]
    notices: list[str]
    faults: list[dict[str, Any]]
    spent_today_usd: float
    budget_usd: float
    plugins: list[PluginStatus]


def overview(brain: Brain, may_show: Callable[[str], bool] | None = None) -> Overview:
    """Return the state of a brain; loads no plugin and no model.

    Args:
        brain: The brain.
        may_show: Returns whether the file at a path may be shown; None for a person, who sees all. What must not be
            shown is not even counted.
    """
    settings, tree, is_shown = brain.settings, brain.tree, may_show or (lambda path: True)
    misfits, inbox, counts = list[Misfit](), dict[str, PathKind](), Counter[PathKind]()
    for top in (tree.inbox, tree.memory):
        for folder in tree.survey(top):
            misfits += folder.misfits
            shown = {path: kind for path, kind in folder.kinds.items() if is_shown(path)} if may_show else folder.kinds
            counts += Counter(shown.values()) if may_show else folder.counts
            if top == tree.inbox:
                inbox |= shown
    prompts = sorted(path for path, kind in inbox.items() if kind is PathKind.PROMPT)
    without_response = [path for path in prompts if response_path(path) not in inbox]
    journals = [folder for folder in subfolders(tree.journal) if folder.name != "blobs"]  # those are thousands of files
    deque(tree.walk(*journals, misfits=misfits), maxlen=0)
    notes = sum(map(is_shown, tree.source_notes()))
    text = brain.read_text(tree.short_term) or ""
    exchanges = ((shareable_text(text) or "") if may_show else text).count("\n<!-- event: ")
    pending: Iterable[dict[str, Any]]
    if is_served_here(brain):
        state = read_run_state(brain.database)
        fields, pending = ("pid", "since", "watch", "problem"), state.pending
        daemon = {"is_running": True, **{name: getattr(state, name) for name in fields}}
    else:  # the report of a daemon that has ended is not used
        elsewhere = served_elsewhere(brain)
        daemon = {"is_running": False} | ({"elsewhere": elsewhere} if elsewhere else {})
        pending = _unanswered(brain, without_response, inbox, elsewhere)
    since = iso(brain.clock.now() - timedelta(days=1))
    failed = brain.journal.events(kinds={PluginFailed}, reverse=True, since=since)
    # what an error says may be of a private page
    faults = [{"at": event.at, "plugin": event.by, **({} if may_show else event.data)} for event in failed]
    unread = [f"{path}: files of this type are not read" for path, kind in inbox.items() if kind is PathKind.OTHER]
    files = (path for path, kind in inbox.items() if kind is PathKind.FILE)
    unread += [f"{path}: see {error_path(path)}" for path in files if error_path(path) in inbox]
    if may_show is None:  # it cannot be told whether what nobody reads is private
        unread += [f"{path}: {what}; {todo}" for path, what, todo in misfits]
    catch_up = () if may_show else _kept_for_models(brain)  # private exchanges are among those that it counts
    # what calls cost: not by `llm.catalog`, which imports requests to models: `status` must be fast
    brain.projection.follow()
    sql, device = "SELECT cost_usd FROM calls WHERE device = ? AND at >= ?", brain.journal.device
    calls = brain.projection.query(sql, device, iso(brain.midnight()))
    return Overview(
        brain=str(brain.root),
        brain_id=settings.brain_id,
        device=brain.journal.device,
        active_device=settings.active_device,
        daemon=daemon,
        model=settings.llm.model,
        counts={name: counts[kind] for kind, name in COUNTED.items()}
        | {"exchanges_in_stm": exchanges, "source_notes": notes},
        pending=[prompt for prompt in pending if is_shown(str(prompt["prompt"]))],
        unread=sorted(unread),
        problems=list(_problems(brain, is_named=may_show is None)),
        notices=[*map(str, notices(brain)), *_undone_answers(brain, without_response), *catch_up],
        faults=faults,
        spent_today_usd=round(sum(float(usd) for (usd,) in calls), 8),
        budget_usd=settings.llm.daily_budget_usd,
        plugins=host_of(brain).survey(),
    )


def _unanswered(
    brain: Brain, without_response: Iterable[str], inbox: Collection[str], elsewhere: str
) -> Iterator[dict[str, Any]]:
    """Yield the waiting prompts with the reason, while no daemon runs that could report them.

    Args:
        brain: The brain.
        without_response: Paths of the prompts without a response file.
        inbox: Paths of all files of the inbox.
        elsewhere: What is said of another machine that may serve it; "" for none.
    """
    reason = elsewhere or why_nobody_answers(brain) or "no daemon is running; start `brainiac run`"
    backlog = find_backlog(brain, without_response)
    for path in backlog.unanswered:
        error_file = error_path(path)
        reason_here = f"see {error_file}" if error_file in inbox else reason
        yield {"prompt": path, "reason": backlog.problems.get(path) or reason_here}


def _undone_answers(brain: Brain, without_response: Collection[str]) -> Iterator[str]:
    """Yield a sentence on each prompt whose answer was undone: by itself nothing asks it again."""
    undone = undone_events(brain) if without_response else {}
    for path in without_response:
        answer = brain.answered.of(path)
        if answer and answer.exchange in undone:
            yield f"{path}: its answer was taken back; `brainiac ask --again {path}` asks it again"


def _kept_for_models(brain: Brain) -> Iterator[str]:
    """Yield a sentence on how many exchanges were kept without a model, where a model is set by now."""
    llm = brain.settings.llm
    if llm.models.get("consolidate", llm.model) == "offline":
        return
    filed = FiledExchanges(brain)
    if waiting := set(filed.without_model) - filed.withheld:
        count = f"{len(waiting):,} exchange{' was' if len(waiting) == 1 else 's were'}"
        yield f"{count} kept without a model; `brainiac promote --past` says what it costs to have one read them"


def _problems(brain: Brain, *, is_named: bool) -> Iterator[str]:
    """Yield a sentence about each problem: settings, held deletions, other devices, missing identity.

    Args:
        brain: The brain.
        is_named: Whether to name missing files. Not for a reader who may not see private ones: it cannot be told any
            more whether a missing file was private.
    """
    yield from map(str, setup_problems(brain))
    if paths := brain.observed.held_deletions():
        notes = f"{paths[0]} and {len(paths) - 1} more notes" if is_named else f"{len(paths)} notes"
        what = f"{notes} are gone, too many at once to be believed"
        yield f"{what}; put them back, or run `brainiac doctor --confirm-deletions` if they are to go"
    for path in map(brain.tree.relative, (brain.tree.short_term, brain.tree.review, brain.tree.config)):
        if is_marked(brain, path):
            yield f"{path} holds conflict markers of git; `brainiac run` or `doctor --fix` merges both versions"
    if operation := brain.git_operation:
        yield f"git is in the middle of a {operation} here: nothing is answered or merged until it is finished"
    if others := other_active_devices(brain):
        use = "uses" if len(others) == 1 else "use"
        yield f"{', '.join(others)} {use} this brain too; run `brainiac takeover` on the one that is to work"
    if not brain.tree.core_identity.is_file():
        yield f"{brain.tree.relative(brain.tree.core_identity)} is missing; `brainiac doctor --fix` puts one there"


# --- settings that cannot be carried out on this machine ---------------------------------------------------


def host_of(brain: Brain) -> PluginHost:
    """Return the host of a brain's plugins with none of them loaded."""
    return PluginHost(brain, bundled_path("plugins"))


def setup_problems(brain: Brain, *, is_thorough: bool = False) -> Iterator[Problem]:
    """Yield the problems with settings and state of this machine.

    These are invalid values; plugins, sources or embedders that are not available; and databases in the state
    folder that were damaged.

    Args:
        brain: Whose settings.
        is_thorough: Also load a model on this machine, which takes half a second.
    """
    config = brain.tree.relative(brain.tree.config)
    try:
        brain.check_settings()
    except SettingsError as error:
        todo = "until then the last good settings hold"
        yield from (Problem(config, problem.removeprefix(f"{brain.tree.config}: "), todo) for problem in error.problems)
    yield from unknown_plugins(brain)
    for source in find_sources(brain.root, brain.settings.sources, brain.places.state):
        if source.problem:
            yield Problem(config, f"`sources: {source.name}` is not read: it {source.problem}", source.todo)
    for path in set_aside_files(brain.places.state):
        what = "could not be read, was set aside and made anew; what was in flight in it is not done"
        yield Problem(str(path), what, "look whether anything is missing, and remove it")
    try:
        machine = brain.machine
    except SettingsError as error:
        place = str(brain.places.config)
        yield from (Problem(place, problem.removeprefix(f"{place}: "), "models need it") for problem in error.problems)
    else:
        if what := _embedder_problem(brain, machine, is_thorough=is_thorough):
            yield Problem(config, what, "until then search goes without it")


def notices(brain: Brain) -> Iterator[Problem]:
    """Yield things to know that are no problem: settings that no longer exist, and copies that nobody merges."""
    files: tuple[tuple[str, Path, type[Settings | MachineSettings]], ...] = (
        (brain.tree.relative(brain.tree.config), brain.tree.config, Settings),
        (str(brain.places.config), brain.places.config, MachineSettings),
    )
    for where, path, model in files:
        for name, instead in retired_settings(path, model).items():
            yield Problem(where, f"`{name}` is no setting any more: {instead}", "take the line out; it is ignored")
    tree = brain.tree
    for original in (tree.short_term, tree.review, tree.config, tree.core_identity):
        for name in sorted(os.listdir(original.parent)) if original.parent.is_dir() else ():
            # such a name may be meant, and of these files no uuid tells whether it is
            if possible_original(name, (original.name,)):
                what = f"may be another device's version of {original.name}; nobody reads it"
                yield Problem(tree.relative(original.with_name(name)), what, "take over what it has, then delete it")


def unknown_plugins(brain: Brain) -> Iterator[Problem]:
    """Yield the names in `plugins.disabled` that no plugin has."""
    disabled = brain.settings.plugins.disabled
    names = {plugin.name for plugin in host_of(brain).survey()} if disabled else set()
    todo = f"name one of {', '.join(sorted(names))}, or take it out"
    for name in (name for name in disabled if name not in names):
        what = f"`plugins.disabled`: no plugin is called `{name}`"
        yield Problem(brain.tree.relative(brain.tree.config), what, todo)


def _embedder_problem(brain: Brain, machine: MachineSettings, *, is_thorough: bool) -> str:
    """Return why the embedder that the settings name cannot be used; "" when it can or was not tried."""
    name = brain.settings.recall.embedder
    # the model on this machine must be loaded to be checked, for which only `doctor` has the time
    if name == "none" or (name in ("auto", "local") and not is_thorough):
        return ""
    from brainiac.llm.completion import RemoteEmbedder  # with it comes numpy
    from brainiac.search.embed import EmbedderError, make_embedder

    try:
        make_embedder(name, machine, RemoteEmbedder)
    except EmbedderError as error:
        return str(error)
    return ""


def why_nobody_answers(brain: Brain) -> str:
    """Return why a daemon that is started here would answer nothing, and what to do; "" when it would."""
    if not brain.is_active:
        return brain.waits_for
    plugins = [plugin for plugin in host_of(brain).survey() if plugin.name == ANSWERS]
    # where there is none, a plugin of another name may answer
    if not plugins or any(plugin.state in ("ready", "loaded") for plugin in plugins):
        return ""
    return f"{ANSWERS}, the plugin that answers, is {plugins[0].state}: {plugins[0].detail}"


def unwritable(brain: Brain) -> Iterator[Problem]:
    """Yield the existing folders in which nothing can be written."""
    tree, todo = brain.tree, "see to that; until then nothing is answered or kept"
    folders = (tree.inbox, tree.memory, tree.config.parent, tree.logs, brain.places.state)
    for folder in (folder for folder in folders if folder.is_dir()):
        try:
            # without a name where the system can, so that no watcher sees it; with content, since some full drives
            # allow a new file and refuse its first byte
            with tempfile.TemporaryFile(dir=folder, prefix=OUR_TEMPORARY_PREFIX) as file:
                file.write(bytes(PROBE_BYTES))
        except OSError as error:
            where = tree.relative(folder) if folder.is_relative_to(tree.root) else str(folder)
            yield Problem(where, f"cannot be written: {error.strerror or error}", todo)
