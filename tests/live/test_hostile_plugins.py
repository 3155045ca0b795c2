"""Plugins that raise, exit, hang, lie or are half made: each stops nobody else (style: plugin traps)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.errors import ConflictError, ModelError
from brainiac.host.plugins import PluginHost

INNOCENT = """
    import brainiac
    @brainiac.hookimpl
    def redact(text):
        return text + " seen"
    @brainiac.hookimpl
    def startup():
        return "started"
"""
HEAD = "import asyncio, os, sys, threading\nimport brainiac\n"

Fault = tuple[str, str, BaseException]


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., tuple[PluginHost, list[Fault]]]:
    """Load the given sources as trusted plugins of a real brain, between two innocent ones."""

    def load_sources(hang_seconds: float = 30, **sources: str) -> tuple[PluginHost, list[Fault]]:
        root = tmp_path / "brain"
        for folder in ("inbox", "memory", "system", "plugins", "logs"):
            (root / folder).mkdir(parents=True)
        (root / "system/config.yaml").write_text(f"plugins:\n  hang_seconds: {hang_seconds}\n")
        brain, faults = Brain(root), list[Fault]()
        host = PluginHost(brain, root / "none", on_fault=lambda *fault: faults.append(fault))
        for name, source in {"a_innocent": INNOCENT, **sources, "z_innocent": INNOCENT}.items():
            head = "" if name.endswith("innocent") else HEAD
            (brain.tree.plugins / f"{name}.py").write_text(head + dedent(source))
            host.trust.trust(name)
        host.load()
        return host, faults

    return load_sources


def redact(host: PluginHost, text: str = "x") -> list[Any]:
    return host.call("redact", brain=None, text=text)


BOTH = ["x seen", "x seen"]

AT_IMPORT = {
    "raises": ("raise RuntimeError('no')", "RuntimeError: no"),
    "exits": ("sys.exit(3)", "SystemExit"),
    "is interrupted": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "is cancelled": ("raise asyncio.CancelledError", "CancelledError"),
    "does not parse": ("def (", "SyntaxError"),
    "holds a NUL": ("x = '\0'", "null bytes"),
    "imports what is missing": ("import no_such_module_anywhere", "ModuleNotFoundError"),
    "recurses": ("def f(): return f()\nf()", "RecursionError"),
    "asks for a broken attribute": (
        "class Odd:\n    def __getattr__(self, name): raise RuntimeError('odd')\nodd = Odd()\nodd.x",
        "RuntimeError: odd",
    ),
}


@pytest.mark.parametrize(("source", "told"), AT_IMPORT.values(), ids=AT_IMPORT)
def test_a_plugin_that_fails_at_import(load: Any, source: str, told: str) -> None:
    """Whatever a plugin does while it is imported, the others are loaded and the status says why this one is not."""
    host, faults = load(hostile=source)
    (status,) = [status for status in host.status if status.name == "hostile"]
    assert "failed" == status.state
    assert told in status.detail
    assert [("hostile", "load")] == [fault[:2] for fault in faults]
    assert BOTH == redact(host)


MISREGISTERED = {
    "misspelt hook": ("@brainiac.hookimpl\ndef prompt_arived(prompt): ...", "prompt_arived"),
    "wrong argument": ("@brainiac.hookimpl\ndef startup(brian): ...", "brian"),
    "wrapper": ("@brainiac.hookimpl(wrapper=True)\ndef redact(text):\n    return (yield)", "plain function"),
    "old wrapper": ("@brainiac.hookimpl(hookwrapper=True)\ndef redact(text):\n    yield", "plain function"),
    "coroutine": ("@brainiac.hookimpl\nasync def redact(text): return 'hostile'", "plain function"),
    "generator": ("@brainiac.hookimpl\ndef redact(text): yield 'hostile'", "plain function"),
}


@pytest.mark.parametrize(("source", "told"), MISREGISTERED.values(), ids=MISREGISTERED)
def test_a_failed_registration_leaves_nothing_registered(load: Any, source: str, told: str) -> None:
    """A plugin with one wrong hook is refused whole, its right hooks included, and is told which and where to look."""
    right = '@brainiac.hookimpl\ndef shutdown():\n    return "half registered"\n'
    host, faults = load(hostile=f"{right}{source}\n")
    (status,) = [status for status in host.status if status.name == "hostile"]
    assert ("failed", 1) == (status.state, len(faults))
    assert told in status.detail
    assert "docs/hooks.md" in status.detail
    assert [] == host.call("shutdown", brain=None)
    assert ["z_innocent", "a_innocent"] == [each.plugin_name for each in host.implementations("redact")]
    assert BOTH == redact(host)


IN_A_HOOK = {
    "raises": ("raise RuntimeError('no')", "RuntimeError"),
    "exits": ("sys.exit(3)", "SystemExit"),
    "raises SystemExit in a thread of its own": ("raise SystemExit", "SystemExit"),
    "raises KeyboardInterrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "raises GeneratorExit": ("raise GeneratorExit", "GeneratorExit"),
    "raises CancelledError": ("raise asyncio.CancelledError", "CancelledError"),
    "raises a BaseException of its own": ("raise type('Odd', (BaseException,), {})", "Odd"),
    "recurses": ("redact(text)", "RecursionError"),
    "runs out of memory": ("raise MemoryError", "MemoryError"),
}


@pytest.mark.parametrize(("line", "told"), IN_A_HOOK.values(), ids=IN_A_HOOK)
def test_a_plugin_that_fails_in_a_hook(load: Any, line: str, told: str) -> None:
    """Whatever a hook raises is a fault of that plugin; the others are called, now and the next time."""
    host, faults = load(hostile=f"@brainiac.hookimpl\ndef redact(text):\n    {line}\n")
    assert [BOTH, BOTH] == [redact(host), redact(host)]
    assert [("hostile", "redact")] * 2 == [fault[:2] for fault in faults]
    assert all(told in repr(error) for _, _, error in faults)


def test_a_chain_passes_the_fault_over(load: Any) -> None:
    """Of hooks that hand a value on, one that fails leaves it as it was."""
    host, faults = load(hostile="@brainiac.hookimpl\ndef redact(text):\n    raise RuntimeError\n")
    assert "x seen seen" == host.chain("redact", "text", "x", brain=None)
    assert ["hostile"] == [plugin for plugin, _, _ in faults]


def test_a_plugin_that_hangs_in_a_hook_is_left_behind(load: Any) -> None:
    """A call that does not return in `plugins.hang_seconds` is a fault; it is not called again until it returned."""
    host, faults = load(
        hang_seconds=0.05,
        hostile="""
        gate, calls = threading.Event(), []
        @brainiac.hookimpl
        def redact(text):
            calls.append(text)
            if text == "x":
                gate.wait()
            return "free"
        @brainiac.hookimpl
        def shutdown():
            gate.set()
            return calls
        """,
    )
    assert [BOTH, BOTH] == [redact(host), redact(host)]
    assert [("hostile", "redact")] == [fault[:2] for fault in faults]
    assert "did not return in time" in str(faults[0][2])
    assert [["x"]] == host.call("shutdown", brain=None)
    hanging = [thread for thread in threading.enumerate() if thread.name == "plugin:hostile"]
    for thread in hanging:
        thread.join()
    assert ["y seen", "free", "y seen"] == redact(host, "y")


def test_a_plugin_that_hangs_at_import_is_left_behind(load: Any) -> None:
    """A plugin whose import does not end does not keep the brain from starting."""
    host, _ = load(hang_seconds=0.05, hostile="threading.Event().wait(0.5)\n")
    (status,) = [status for status in host.status if status.name == "hostile"]
    assert "failed" == status.state
    assert "did not return in time" in status.detail
    assert BOTH == redact(host)


def test_dataclasses_and_annotations_work_in_a_plugin_file(load: Any) -> None:
    """A plugin is an ordinary module: it stands in sys.modules, and no `from __future__` of ours reaches it."""
    host, faults = load(
        hostile="""
        import dataclasses, pickle, typing

        @dataclasses.dataclass
        class Note:
            words: int = 0
            kind: typing.ClassVar[str] = "note"

        @brainiac.hookimpl
        def startup():
            (field,) = dataclasses.fields(Note)
            return [field.type, pickle.loads(pickle.dumps(Note(3))).words]
        """
    )
    assert [] == faults
    assert [int, 3] in host.call("startup", brain=None)


def test_a_hook_takes_only_what_it_names(load: Any) -> None:
    """Arguments come by name: a hook that takes none, and one with a default of its own, are called."""
    host, faults = load(
        hostile="""
        @brainiac.hookimpl
        def redact(brain, text, note="own"):
            return note
        @brainiac.hookimpl
        def startup():
            return "bare"
        """
    )
    assert ["x seen", "own", "x seen"] == redact(host)
    assert ["started", "bare", "started"] == host.call("startup", brain=None)
    assert [] == faults


def test_conflicts_and_model_failures_go_to_who_schedules(load: Any) -> None:
    """A conflict or model failure is no fault: it is raised after all were called, so that the work is tried again."""
    host, faults = load(
        hostile="""
        from brainiac.errors import ConflictError, ModelError
        @brainiac.hookimpl
        def redact(text):
            raise ConflictError(["a.md"]) if text == "conflict" else ModelError("busy", retryable=True)
        """
    )
    with pytest.raises(ConflictError):
        redact(host, "conflict")
    with pytest.raises(ModelError):
        redact(host, "model")
    assert [] == faults


def test_results_that_are_none_are_left_out(load: Any) -> None:
    """A plugin with nothing to say adds nothing to the results."""
    host, _ = load(hostile="@brainiac.hookimpl\ndef redact(text):\n    return None\n")
    assert BOTH == redact(host)


def test_a_plugin_cannot_reach_another_by_exiting_its_threads(load: Any) -> None:
    """An exception in a thread that a plugin started itself reaches nobody."""
    host, faults = load(
        hostile="""
        threading.excepthook = lambda args: None
        @brainiac.hookimpl
        def redact(text):
            thread = threading.Thread(target=sys.exit)
            thread.start()
            thread.join()
        """
    )
    assert BOTH == redact(host)
    assert [] == faults
