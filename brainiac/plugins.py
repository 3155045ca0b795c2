"""Loading plugins and calling their hooks so that one plugin's fault stops nobody else (design: pipeline, hooks).

One loader serves the bundled processes, installed packages and the brain's own files: no plugin is privileged.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pluggy

import brainiac.hookspecs
from brainiac.errors import BrainiacError, ConflictError, PluginError
from brainiac.sources import load_module, plugin_files, sources_of
from brainiac.trust import TrustStore

if TYPE_CHECKING:
    from brainiac.brain import Brain

PROJECT = "brainiac"

State = Literal["loaded", "disabled", "untrusted", "failed", "shadowed"]


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """What became of one plugin.

    Attributes:
        source: `bundled`, `installed` or `brain`.
        detail: Why, and what to do, when it is not loaded.
    """

    name: str
    source: str
    path: str
    state: State
    detail: str = ""


class PluginHost:
    """The plugins of one brain.

    Args:
        brain: What hooks get in their hand.
        bundled: The folder of the processes that ship with the program.
        on_fault: Called with (plugin, hook, error) for each isolated fault.
    """

    def __init__(
        self, brain: Brain, bundled: Path, on_fault: Callable[[str, str, BaseException], None] | None = None
    ) -> None:
        self._brain, self._bundled = brain, bundled
        self._on_fault = on_fault
        self._pluggy = pluggy.PluginManager(PROJECT)
        self._pluggy.add_hookspecs(brainiac.hookspecs)
        self.status: list[PluginStatus] = []
        self._inline: set[str] = set()
        self._hanging: dict[tuple[str, str], threading.Thread] = {}
        self.trust = TrustStore(brain.places.state / "trust.json", brain.tree.plugins)

    def load(self) -> None:
        """Load bundled, installed and the brain's own plugins, in that order.

        pluggy calls the last registered first, so a person's plugin hears of a thing before the processes do.
        """
        own = {path.stem: path for path in plugin_files(self._brain.tree.plugins)}
        if self._brain.tree.plugins.resolve() == self._bundled.resolve():
            own = {}  # the repository itself is a brain, and its plugins are the bundled ones
        for path in plugin_files(self._bundled):
            if path.stem in own and self._is_runnable(own[path.stem]):
                self._note(path.stem, "bundled", path, "shadowed", f"plugins/{path.name} of the brain replaces it")
            else:
                self._load_file(path, "bundled")
        self._load_installed()
        for path in own.values():
            self._load_file(path, "brain")

    def register(self, plugin: object, name: str) -> None:
        """Add a plugin object, checked whole before any of it can be called.

        Raises:
            PluginError: Its name is taken, it names a hook that does not exist, takes an argument that the hook
                has not, or implements one by other than a plain function.
        """
        if self._pluggy.has_plugin(name):
            raise PluginError(name, "a plugin of this name is loaded already; give it another name")
        is_whole = False
        try:
            self._pluggy.register(plugin, name=name)
            self._pluggy.check_pending()
            self._check_plain(plugin)
            is_whole = True
        except (pluggy.PluginValidationError, ValueError) as error:
            raise PluginError(name, f"{error}; docs/hooks.md lists the hooks and their arguments") from error
        finally:
            # pluggy keeps what it had registered before it failed, and a misspelt hook silently pending
            if not is_whole and self._pluggy.has_plugin(name):
                self._pluggy.unregister(name=name)

    def _check_plain(self, plugin: object) -> None:
        """Refuse what `call` cannot isolate or would take for a result: wrappers, generators and coroutines."""
        for caller in self._pluggy.get_hookcallers(plugin) or ():
            for impl in caller.get_hookimpls():
                is_lazy = inspect.isgeneratorfunction(impl.function) or inspect.iscoroutinefunction(impl.function)
                if impl.plugin is plugin and (is_lazy or impl.wrapper or impl.hookwrapper):
                    raise ValueError(f"{caller.name} must be a plain function, not a wrapper, generator or coroutine")

    def has(self, hook: str) -> bool:
        """Tell whether any plugin implements a hook."""
        return bool(getattr(self._pluggy.hook, hook).get_hookimpls())

    def implementers(self, hook: str) -> list[str]:
        """Name the plugins that implement a hook, first called first."""
        return [impl.plugin_name for impl in reversed(getattr(self._pluggy.hook, hook).get_hookimpls())]

    def call(self, hook: str, /, **arguments: Any) -> list[Any]:
        """Call every implementation, isolated; return the results that are not None.

        A plugin that raises or exits is reported and the next one is called. A `ConflictError` or `ModelError`
        is the caller's business (it reschedules), so the first of them is raised after all were called.
        """
        results, concern = [], None
        for impl in reversed(getattr(self._pluggy.hook, hook).get_hookimpls()):
            try:
                result = self._invoke(impl, hook, [arguments[name] for name in impl.argnames])
            except BrainiacError as error:
                if isinstance(error, PluginError) or not _reschedules(error):
                    self._fault(impl.plugin_name, hook, error)
                else:
                    concern = concern or error
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the isolated hook call: anything a plugin raises
                self._fault(impl.plugin_name, hook, error)
            else:
                if result is not None:
                    results.append(result)
        if concern:
            raise concern
        return results

    def chain(self, hook: str, argument: str, value: Any, /, **arguments: Any) -> Any:
        """Pass a value through every implementation in turn; one that fails or returns None leaves it as it was."""
        for impl in reversed(getattr(self._pluggy.hook, hook).get_hookimpls()):
            given = {**arguments, argument: value}
            try:
                result = self._invoke(impl, hook, [given[name] for name in impl.argnames])
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the isolated hook call: anything a plugin raises
                self._fault(impl.plugin_name, hook, error)
            else:
                value = value if result is None else result
        return value

    def _invoke(self, impl: pluggy.HookImpl, hook: str, arguments: list[Any]) -> Any:
        """Call one implementation; a brain's or an installed plugin in a thread that may be left behind.

        The bundled processes bound their own waits; foreign code may not, so it gets `plugins.hang_seconds`,
        and is not called again while an earlier call of it still hangs.
        """
        if impl.plugin_name in self._inline:
            return impl.function(*arguments)
        hanging = self._hanging.get((impl.plugin_name, hook))
        if hanging and hanging.is_alive():
            return None
        return self._bounded(impl.plugin_name, hook, impl.function, *arguments)

    def _bounded(self, plugin: str, hook: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a foreign function returns, or raise what it raises, within `plugins.hang_seconds`."""
        call = _BoundedCall(plugin, function, arguments)
        call.start()
        call.join(self._brain.settings.plugins.hang_seconds)
        if call.is_alive():
            self._hanging[plugin, hook] = call
            raise PluginError(plugin, f"{hook} did not return in time; not called again until it does")
        return call.outcome()

    def _fault(self, plugin: str, hook: str, error: BaseException) -> None:
        if self._on_fault:
            self._on_fault(plugin, hook, error)

    def _load_installed(self) -> None:
        from importlib.metadata import entry_points

        for point in entry_points(group=PROJECT):
            if point.name in self._brain.settings.plugins.disabled:
                self._note(point.name, "installed", point.value, "disabled", "named in plugins.disabled")
                continue
            try:
                self.register(self._bounded(point.name, "load", point.load), point.name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the plugin loader: foreign code runs here
                self._failed(point.name, "installed", point.value, error)
            else:
                self._note(point.name, "installed", point.value, "loaded")

    def _load_file(self, path: Path, source: str) -> None:
        name = path.stem
        if name in self._brain.settings.plugins.disabled:
            self._note(name, source, path, "disabled", "named in plugins.disabled of system/config.yaml")
            return
        try:
            sources = self.trust.verified(name) if source == "brain" else sources_of(path)
            if sources is None:
                advice = f"not trusted on this machine as it stands; read it, then run `brainiac plugins trust {name}`"
                self._note(name, source, path, "untrusted", advice)
                return
            if source == "bundled":
                self.register(load_module(name, path.parent, sources), name)
                self._inline.add(name)
            else:
                self.register(self._bounded(name, "load", load_module, name, path.parent, sources), name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the plugin loader: foreign code runs here
            self._failed(name, source, path, error)
        else:
            self._note(name, source, path, "loaded")

    def _failed(self, name: str, source: str, path: Path | str, error: BaseException) -> None:
        self._note(name, source, path, "failed", f"{type(error).__name__}: {error}")
        self._fault(name, "load", error)

    def _is_runnable(self, path: Path) -> bool:
        disabled = path.stem in self._brain.settings.plugins.disabled
        return not disabled and self.trust.verified(path.stem) is not None

    def _note(self, name: str, source: str, path: Path | str, state: State, detail: str = "") -> None:
        self.status.append(PluginStatus(name, source, str(path), state, detail))


class _BoundedCall(threading.Thread):
    """One call whose end is waited for only so long."""

    def __init__(self, plugin: str, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        super().__init__(name=f"plugin:{plugin}", daemon=True)
        self._plugin, self._function, self._arguments = plugin, function, arguments
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._function(*self._arguments)
        except BaseException as error:  # noqa: BLE001 - the isolated hook call, raised again by `outcome`
            self._error = error

    def outcome(self) -> Any:
        """Return what the function returned, or raise what it raised.

        What would end a thread or the program (SystemExit, KeyboardInterrupt, CancelledError) is no more
        than a fault when foreign code raises it.
        """
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:
            raise PluginError(self._plugin, f"raised {type(self._error).__name__}") from self._error
        return self._result


def _reschedules(error: BrainiacError) -> bool:
    from brainiac.errors import ModelError

    return isinstance(error, ConflictError | ModelError)
