"""Loading plugins and calling their hooks so that one plugin's fault stops nobody else (design: pipeline, hooks).

One loader serves the bundled processes, installed packages and the brain's own files: no plugin is privileged.
"""

from __future__ import annotations

import inspect
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

import pluggy

import brainiac.host.hookspecs
from brainiac.errors import BrainiacError, ConflictError, FormatError, ModelError, PluginError, StorageError
from brainiac.host.trust import TrustStore, bundled_plugins, load_bundled, load_source, plugin_files, syntax_problem
from brainiac.storage.store import Store

PROJECT = "brainiac"

_IS_OFF_RECORD: ContextVar[bool] = ContextVar("is_off_record", default=False)  # of the prompt that hooks are called for

Source = Literal["bundled", "installed", "brain"]
State = Literal["ready", "loaded", "disabled", "untrusted", "failed", "shadowed"]


def _installed() -> tuple[EntryPoint, ...]:
    """Return what installed packages offer as plugins; they are read again where one was installed since."""
    return _installed_in(
        tuple((folder, os.stat(folder).st_mtime_ns if os.path.exists(folder) else 0) for folder in sys.path)
    )


@lru_cache(maxsize=1)  # whoever looks at a page of the window would read them all
def _installed_in(folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=PROJECT))


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """One plugin and its state.

    Attributes:
        name: Its name.
        source: Whether it ships with the program, comes with an installed package, or lies in the brain.
        path: Its file; of an installed one, `module:object`.
        state: Its state; `ready` means that `load` would load it.
        detail: Where it is not loaded: why, and what to do.
    """

    name: str
    source: Source
    path: str
    state: State
    detail: str = ""


class PluginHost:
    """The plugins of one brain.

    Args:
        store: The store of the brain, or the brain itself.
        bundled: The folder of the plugins that ship with the program.
        on_fault: Called with (plugin, hook, error) for each isolated fault.
    """

    def __init__(
        self, store: Store, bundled: Path, on_fault: Callable[[str, str, BaseException], None] | None = None
    ) -> None:
        self._store, self._bundled = store, bundled
        self._on_fault = on_fault
        self._pluggy = pluggy.PluginManager(PROJECT)
        self._pluggy.add_hookspecs(brainiac.host.hookspecs)
        self.status: list[PluginStatus] = []
        self._bundled_names: set[str] = set()  # of those loaded; they are called in the caller's thread
        self._own: dict[str, tuple[bytes, object]] = {}  # the brain's own plugins that are loaded: bytes and module
        self._hanging: dict[tuple[str, str], threading.Thread] = {}  # calls that did not return, by plugin and hook
        self.trust = TrustStore(store.places.state / "trust.json", store.tree.plugins)

    def load(self) -> None:
        """Load bundled, installed and the brain's own plugins, in that order.

        pluggy calls the last registered first, so that a person's plugin is called before the bundled ones.
        """
        self.status = [self._loaded(plugin) for plugin in self.survey()]

    def reload(self) -> list[PluginStatus]:
        """Load plugins anew where files, trust or settings changed; a plugin that did not change is not run again.

        One that changed and is not trusted in its new version goes on in the old one. `shutdown` and `startup` are
        called for those of the brain's own plugins that were replaced, removed or added.

        Returns:
            The new state of the plugins that changed.
        """
        # loaded in a second host that then takes over: a broken plugin must not leave half of the others
        second = PluginHost(self._store, self._bundled, self._on_fault)
        second._own = dict(self._own)
        second.load()
        names = {plugin.name for plugin in (*self.status, *second.status)}
        for name, plugin in self._pluggy.list_name_plugin():
            if plugin is not None and name not in names:  # added by `register`, from no file
                second.register(plugin, name)
        # those that were loaded anew, or not at all: loading keeps the object of a plugin that did not change
        to_stop = {name for name, loaded in self._own.items() if second._own.get(name) is not loaded}
        to_start = {name for name, loaded in second._own.items() if self._own.get(name) is not loaded}
        self._call("shutdown", {"brain": self._store}, to_stop)
        changes = [plugin for plugin in second.status if plugin.name in to_start or plugin not in self.status]
        self._pluggy, self._bundled_names = second._pluggy, second._bundled_names
        self._own, self.status = second._own, second.status
        self._call("startup", {"brain": self._store}, to_start)
        return changes

    def _loaded(self, plugin: PluginStatus) -> PluginStatus:
        """Load a plugin that may run, and return its new state; an untrusted new version leaves the old one running."""
        if plugin.state == "ready":
            try:
                name, path = plugin.name, Path(plugin.path)
                if plugin.source == "installed":
                    module = self._bounded(name, "load", EntryPoint(name, plugin.path, PROJECT).load)
                else:
                    module = load_bundled(path) if plugin.source == "bundled" else self._execute_own(name, path)
                self.register(module, name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the plugin loader: foreign code runs here
                self._fault(plugin.name, "load", error)
                return replace(plugin, state="failed", detail=f"{type(error).__name__}: {error}")
            if plugin.source == "bundled":
                self._bundled_names.add(plugin.name)
            return replace(plugin, state="loaded")
        running = self._own.get(plugin.name)
        if running and plugin.state == "untrusted" and self.trust.is_known(plugin.name):
            self.register(running[1], plugin.name)
            return replace(plugin, detail=f"{plugin.detail}; until then it runs as it was")
        if plugin.state == "failed":
            self._fault(plugin.name, "load", PluginError(plugin.name, plugin.detail))
        if plugin.source == "brain":
            self._own.pop(plugin.name, None)
        return plugin

    def survey(self) -> list[PluginStatus]:
        """Return all plugins, each with its state before it is loaded; no plugin's code is run."""
        folder = self._store.tree.plugins
        # the repository itself is a brain, and its plugins are the bundled ones
        files = plugin_files(folder) if folder.resolve() != self._bundled.resolve() else []
        of_brain = [self._status(path.stem, "brain", str(path)) for path in files]
        replaced = {plugin.name for plugin in of_brain if plugin.state in ("ready", "failed")}
        bundled = [self._status(path.stem, "bundled", str(path), replaced) for path in bundled_plugins(self._bundled)]
        installed = [self._status(point.name, "installed", point.value) for point in _installed()]
        return [*bundled, *installed, *of_brain]

    def register(self, plugin: object, name: str) -> None:
        """Add a plugin object; none of its hooks can be called before all of them were checked.

        Raises:
            PluginError: Its name is taken, it implements a hook that does not exist, takes an argument that the hook
                does not have, or implements one by something else than a plain function.
        """
        if self._pluggy.has_plugin(name):
            raise PluginError(name, "a plugin of this name is loaded already; give it another name")
        try:
            self._pluggy.register(plugin, name=name)
            self._pluggy.check_pending()
            for caller in self._pluggy.get_hookcallers(plugin) or ():
                for hook_impl in caller.get_hookimpls():
                    function, is_wrapper = hook_impl.function, hook_impl.wrapper or hook_impl.hookwrapper
                    is_lazy = inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function)
                    if hook_impl.plugin is plugin and (is_lazy or is_wrapper):  # `call` cannot isolate these
                        raise ValueError(
                            f"{caller.name} must be a plain function, not a wrapper, generator or coroutine"
                        )
        except BaseException as error:
            # after a failure pluggy keeps the hooks that it had registered, and a misspelt one as pending
            if self._pluggy.has_plugin(name):
                self._pluggy.unregister(name=name)
            if not isinstance(error, pluggy.PluginValidationError | ValueError):
                raise
            problem = " ".join(str(error).split())
            raise PluginError(name, f"{problem}; docs/hooks.md lists the hooks and their arguments") from error

    def problem_of(self, name: str) -> str:
        """Return why a plugin of the brain could not be loaded in its present version; "" where it could."""
        return syntax_problem(name, (self._store.tree.plugins / f"{name}.py").read_bytes())

    def stamp(self) -> object:
        """Return a value that changes when plugins may have changed: their files, their trust, the settings."""
        return self.trust.stamp(), self._store.settings.plugins.disabled

    def has(self, hook: str) -> bool:
        """Return whether any plugin implements a hook."""
        return bool(self.implementations(hook))

    def has_foreign(self, hook: str) -> bool:
        """Return whether a plugin that does not ship with the program implements a hook."""
        return any(hook_impl.plugin_name not in self._bundled_names for hook_impl in self.implementations(hook))

    def implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Return the implementations of a hook, in the order they are called in."""
        return list(reversed(getattr(self._pluggy.hook, hook).get_hookimpls()))

    def call(self, hook: str, /, **arguments: Any) -> list[Any]:
        """Call every implementation of a hook, and return the results that are not None.

        Where a plugin raises or exits, that is reported as a fault and the next one is called.

        Raises:
            ConflictError, ModelError, StorageError: The first of these that a plugin raised, once all were called; the
                caller tries again later. An OSError, a database error and a FormatError of a bundled plugin count as
                StorageError.
        """
        return self._call(hook, arguments)

    def _call(self, hook: str, arguments: Mapping[str, Any], among: Collection[str] | None = None) -> list[Any]:
        """Call a hook as `call` does; only the plugins with names in `among`, unless that is None.

        Every plugin is called. Then the first error that the caller can handle by trying again is raised; any other
        error was reported as the plugin's fault.
        """
        results, first_error = [], None
        prompt = arguments.get("prompt") or getattr(arguments.get("exchange"), "prompt", None)
        # it stays so where a hook is called within another
        is_off_record = _IS_OFF_RECORD.get() or not getattr(prompt, "remember", True)
        for implementation in self.implementations(hook):
            plugin = implementation.plugin_name
            if among is not None and plugin not in among:
                continue
            token = _IS_OFF_RECORD.set(is_off_record)
            try:
                results.append(self._invoke(implementation, hook, arguments))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the isolated hook call: anything may be raised
                # A bundled plugin works on the brain's files: where one cannot be read or parsed, it may be tried again
                # later. Any other plugin may have files of its own, so that the same errors are its fault.
                for_caller: BrainiacError | None = None
                if isinstance(error, ConflictError | ModelError | StorageError):
                    for_caller = error
                elif plugin in self._bundled_names and isinstance(error, FormatError):
                    for_caller = StorageError(str(error))
                elif plugin in self._bundled_names and isinstance(error, OSError | sqlite3.Error):
                    for_caller = StorageError.of(error)
                first_error = first_error or for_caller
                if for_caller is None:
                    self._fault(plugin, hook, error)
            finally:
                _IS_OFF_RECORD.reset(token)
        if first_error:
            raise first_error
        return [result for result in results if result is not None]

    def chain(self, hook: str, argument: str, value: Any, /, **arguments: Any) -> Any:
        """Pass a value through every implementation in turn; one that fails or returns None leaves it as it was."""
        for implementation in self.implementations(hook):
            try:
                result = self._invoke(implementation, hook, {**arguments, argument: value})
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the isolated hook call: anything may be raised
                self._fault(implementation.plugin_name, hook, error)
            else:
                value = value if result is None else result
        return value

    def _invoke(self, implementation: pluggy.HookImpl, hook: str, arguments: Mapping[str, Any]) -> Any:
        """Call one implementation; of a plugin that is not bundled in a thread, for `plugins.hang_seconds` at most.

        It is not called again while an earlier call of it still hangs; the result is then None.
        """
        plugin, values = implementation.plugin_name, [arguments[name] for name in implementation.argnames]
        if plugin in self._bundled_names:
            return implementation.function(*values)
        hanging = self._hanging.get((plugin, hook))
        # each further call would leave another thread that never ends
        if hanging and hanging.is_alive():
            return None
        return self._bounded(plugin, hook, implementation.function, *values)

    def _bounded(self, plugin: str, hook: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a thread and return its result.

        Raises:
            PluginError: It did not return within `plugins.hang_seconds`, or tried to end the program.
            Exception: What the function raised.
        """
        outcome: Future[Any] = Future()

        def run() -> None:
            try:
                outcome.set_result(function(*arguments))
            except BaseException as error:  # noqa: BLE001 - the isolated hook call, raised again below
                outcome.set_exception(error)

        call = threading.Thread(target=run, name=f"plugin:{plugin}", daemon=True)
        call.start()
        call.join(self._store.settings.plugins.hang_seconds)
        if call.is_alive():
            self._hanging[plugin, hook] = call
            raise PluginError(plugin, f"{hook} did not return in time; not called again until it does")
        error = outcome.exception()
        if error is None or isinstance(error, Exception):
            return outcome.result()
        # SystemExit, KeyboardInterrupt and CancelledError would end the program
        raise PluginError(plugin, f"raised {type(error).__name__}") from error

    def _fault(self, plugin: str, hook: str, error: BaseException) -> None:
        """Report a fault; off the record without the error's message, which may quote the prompt."""
        if _IS_OFF_RECORD.get():
            error = PluginError(plugin, f"raised {type(error).__name__} at a prompt off the record")
        if self._on_fault:
            self._on_fault(plugin, hook, error)

    def _status(self, name: str, source: Source, path: str, replaced: Collection[str] = ()) -> PluginStatus:
        """Return a plugin's state before loading; plugins of the brain take the place of bundled ones in `replaced`."""
        state: State = "ready"
        detail = ""
        if name in replaced:
            state, detail = "shadowed", f"plugins/{name}.py of the brain replaces it"
        elif name in self._store.settings.plugins.disabled:
            state, detail = "disabled", "named in plugins.disabled of system/config.yaml"
        elif source == "brain":
            source_code = self.trust.verified_source(name)
            if source_code is None:
                is_changed = self.trust.is_known(name)
                what = "changed since it was trusted here" if is_changed else "not trusted on this machine"
                state, detail = "untrusted", f"{what}; read it, then run `brainiac plugins trust {name}`"
            elif detail := syntax_problem(name, source_code):
                state = "failed"
        return PluginStatus(name, source, path, state, detail)

    def _execute_own(self, name: str, path: Path) -> object:
        """Return the module of one of the brain's own plugins, whose trusted bytes are run unless they run already.

        Raises:
            PluginError: It changed since its trust was checked, or did not load in time.
            Exception: What its code raised.
        """
        code = self.trust.verified_source(name)
        if code is None:
            raise PluginError(name, f"changed while it was loaded; run `brainiac plugins trust {name}`")
        running = self._own.pop(name, None)  # where the new version fails, the old one does not stay
        if running is None or running[0] != code:
            running = code, self._bounded(name, "load", load_source, path, code)
        self._own[name] = running
        return running[1]
