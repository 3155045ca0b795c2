"""Loading plugins: from where, in which order, under which name, and only what is trusted."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import brainiac
from brainiac import testing
from brainiac.brain import Brain
from brainiac.errors import PluginError
from brainiac.host.plugins import PluginHost, PluginStatus
from brainiac.host.trust import TrustStore
from brainiac.testing import World

GREETER = """
    import brainiac
    @brainiac.hookimpl
    def redact(text):
        return "{}" + text
"""


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    return make_brain(tmp_path / "brain")


def make_brain(root: Path) -> Brain:
    for folder in ("inbox", "memory", "system", "plugins", "logs"):
        (root / folder).mkdir(parents=True)
    (root / "system/core_identity.md").write_text("# Core Identity\n")
    return Brain(root)


def write(folder: Path, name: str, source: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(dedent(source))
    return path


def loaded(brain: Brain, bundled: Path | None = None) -> PluginHost:
    """Load the plugins of a brain beside the given bundled ones."""
    host = PluginHost(brain, bundled or brain.root / "none")
    host.load()
    return host


def states(host: PluginHost) -> dict[str, str]:
    return {f"{status.source}:{status.name}": status.state for status in host.status}


def redacted(host: PluginHost, brain: Brain, text: str = "x") -> list[Any]:
    return host.call("redact", brain=brain, text=text)


def test_a_brains_own_plugin_runs_once_trusted(brain: Brain) -> None:
    """A file in plugins/ does not run until this machine trusts it, and the status says what to do.

    Seeds: U4.
    """
    write(brain.tree.plugins, "greeter", GREETER.format("hello "))
    host = loaded(brain)
    assert [] == redacted(host, brain)
    (status,) = host.status
    assert ("untrusted", "brain") == (status.state, status.source)
    assert "brainiac plugins trust greeter" in status.detail
    host.trust.trust("greeter")
    host = loaded(brain)
    assert {"brain:greeter": "loaded"} == states(host)
    assert ["hello x"] == redacted(host, brain)


def test_one_changed_byte_takes_trust_away(brain: Brain) -> None:
    """What is recorded is the hash of the very bytes: any change, even of a comment, asks again."""
    path = write(brain.tree.plugins, "greeter", GREETER.format(""))
    trust = loaded(brain).trust
    trust.trust("greeter")
    path.write_bytes(path.read_bytes() + b"#")
    assert {"brain:greeter": "untrusted"} == states(loaded(brain))


@pytest.mark.parametrize(
    "statement",
    [
        "from brainiac_plugins._sly import WORD",
        "from ._sly import WORD",
        "from . import _sly",
        "import importlib; importlib.import_module('brainiac_plugins.' + '_s' + 'ly')",
    ],
)
def test_another_file_of_the_brain_is_not_imported(brain: Brain, statement: str) -> None:
    """It was in no fingerprint: the plugin that imports it fails, and the other file does not run."""
    write(brain.tree.plugins, "_sly", "import pathlib; pathlib.Path(__file__).parent.parent.joinpath('ran').touch()\n")
    write(brain.tree.plugins, "greeter", statement)
    assert {"greeter.py"} == set(loaded(brain).trust.trust("greeter"))
    host = loaded(brain)
    assert {"brain:greeter": "failed"} == states(host)
    assert "import" in host.status[0].detail.lower() or "No module named" in host.status[0].detail
    assert not (brain.tree.plugins.parent / "ran").exists()


def test_a_poisoned_pycache_is_not_used(brain: Brain, tmp_path: Path) -> None:
    """Compiled code that came along by sync never runs: modules are made from the bytes that were judged."""
    import py_compile

    path = write(brain.tree.plugins, "greeter", GREETER.format("good "))
    evil = write(tmp_path, "greeter", GREETER.format("evil "))
    compiled = py_compile.compile(str(evil), doraise=True)
    assert compiled
    for target in (Path(compiled).name, "greeter.pyc"):
        cache = brain.tree.plugins / "__pycache__" / target
        cache.parent.mkdir(exist_ok=True)
        py_compile.compile(str(evil), cfile=str(cache), dfile=str(path), doraise=True)
    loaded(brain).trust.trust("greeter")
    assert ["good x"] == redacted(loaded(brain), brain)


def test_trust_is_this_machines_and_this_folders(brain: Brain, tmp_path: Path) -> None:
    """A copy of a brain elsewhere starts without trust, and nothing of trust is in the tree."""
    write(brain.tree.plugins, "greeter", GREETER.format(""))
    before = sorted(path for path in brain.root.rglob("*"))
    loaded(brain).trust.trust("greeter")
    assert before == sorted(path for path in brain.root.rglob("*"))
    brain.root.rename(tmp_path / "moved")
    assert {"brain:greeter": "untrusted"} == states(loaded(Brain(tmp_path / "moved")))


def test_trust_records_what_was_shown(brain: Brain) -> None:
    """A plugin that sync replaces between being shown and being trusted is not trusted."""
    path = write(brain.tree.plugins, "greeter", GREETER.format("read "))
    trust = loaded(brain).trust
    shown = trust.fingerprint("greeter")
    path.write_text(dedent(GREETER.format("swapped ")))
    trust.trust("greeter", shown)
    assert {"brain:greeter": "untrusted"} == states(loaded(brain))


LIFE = """
    import brainiac
    @brainiac.hookimpl
    def startup(brain):
        brain.log.lived.append("{0} begins")
    @brainiac.hookimpl
    def shutdown(brain):
        brain.log.lived.append("{0} ends")
    @brainiac.hookimpl
    def redact(text):
        return "{0} " + text
"""


class Diary:
    """What plugins wrote down, in the place of a brain's log."""

    def __init__(self) -> None:
        self.lived: list[str] = []


def test_what_changed_is_taken_in_without_a_restart(brain: Brain) -> None:
    """Trusted anew it ends and begins; changed and not trusted it runs as it was; distrusted it ends.

    A plugin beside it that did not change goes on.
    """
    brain.__dict__["log"] = diary = Diary()
    for name in ("first", "second"):
        write(brain.tree.plugins, name, LIFE.format(name))
    host = loaded(brain)
    host.trust.trust("first")
    host.trust.trust("second")
    host.reload()
    assert {"first begins", "second begins"} == set(diary.lived)
    diary.lived.clear()
    write(brain.tree.plugins, "first", LIFE.format("third"))
    (changed,) = host.reload()
    assert "changed since it was trusted here; read it, then run `brainiac plugins trust first`" in changed.detail
    assert ["first x", "second x"] == sorted(redacted(host, brain))
    host.trust.trust("first")
    host.reload()
    assert ["second x", "third x"] == sorted(redacted(host, brain))
    host.trust.distrust("second")
    host.reload()
    assert (["third x"], []) == (redacted(host, brain), host.reload())
    assert ["first ends", "third begins", "second ends"] == diary.lived


def test_a_version_that_cannot_be_read_ends_the_one_before_it(brain: Brain) -> None:
    """It is told to shut down; trusted in its old words again it begins anew."""
    brain.__dict__["log"] = diary = Diary()
    path = write(brain.tree.plugins, "first", LIFE.format("first"))
    host = loaded(brain)
    host.trust.trust("first")
    host.reload()
    text = path.read_text()
    for version in ("def broken(:", text):
        path.write_text(version)
        host.trust.trust("first")
        host.reload()
    assert ["first begins", "first ends", "first begins"] == diary.lived


def test_a_plugin_that_cannot_be_loaded_is_told_of_once(brain: Brain) -> None:
    """Each command loads the plugins: the same fault is one event a day, not one a command."""
    write(brain.tree.plugins, "broken", "def x(:\n")
    brain.plugins.trust.trust("broken")
    brain.close()
    for _ in range(3):
        again = Brain(brain.root)
        assert again.plugins.status
        again.close()
    assert 1 == len(list(brain.journal.events(kinds={"plugin-failed"})))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"greeter": null}', b"\xff"])
def test_a_damaged_trust_record_trusts_nothing(brain: Brain, content: bytes) -> None:
    """A record that cannot be read is no trust, and can be made anew."""
    write(brain.tree.plugins, "greeter", GREETER.format(""))
    record = brain.places.state / "trust.json"
    record.parent.mkdir(parents=True)
    record.write_bytes(content)
    assert {"brain:greeter": "untrusted"} == states(loaded(brain))
    TrustStore(record, brain.tree.plugins).trust("greeter")
    assert {"brain:greeter": "loaded"} == states(loaded(brain))


def test_a_trusted_file_named_like_a_bundled_one_replaces_it(brain: Brain, tmp_path: Path) -> None:
    """A process is replaced by a file of its name, but only once that file is trusted.

    Seeds: U2.
    """
    bundled = write(tmp_path / "bundled", "reflection", GREETER.format("bundled ")).parent
    write(brain.tree.plugins, "reflection", GREETER.format("own "))
    host = loaded(brain, bundled)
    assert {"bundled:reflection": "loaded", "brain:reflection": "untrusted"} == states(host)
    assert ["bundled x"] == redacted(host, brain)
    host.trust.trust("reflection")
    host = loaded(brain, bundled)
    assert {"bundled:reflection": "shadowed", "brain:reflection": "loaded"} == states(host)
    assert ["own x"] == redacted(host, brain)


def test_disabled_plugins_stay_out(brain: Brain, tmp_path: Path) -> None:
    """`plugins.disabled` keeps a plugin out, bundled or own, and the others go on.

    Seeds: U2.
    """
    bundled = write(tmp_path / "bundled", "promotion", GREETER.format("promotion ")).parent
    write(bundled, "reflection", GREETER.format("reflection "))
    write(brain.tree.plugins, "greeter", GREETER.format("greeter "))
    loaded(brain).trust.trust("greeter")
    brain.tree.config.write_text("plugins:\n  disabled: [promotion, greeter]\n")
    host = loaded(brain, bundled)
    assert ["reflection x"] == redacted(host, brain)
    assert {"bundled:promotion": "disabled", "bundled:reflection": "loaded", "brain:greeter": "disabled"} == states(
        host
    )


def test_a_persons_plugin_hears_first(brain: Brain, tmp_path: Path) -> None:
    """Bundled plugins are registered first and pluggy calls the last first, so a person's own is asked first."""
    bundled = write(tmp_path / "bundled", "reflection", GREETER.format("bundled ")).parent
    write(brain.tree.plugins, "greeter", GREETER.format("own "))
    loaded(brain).trust.trust("greeter")
    host = loaded(brain, bundled)
    assert ["greeter", "reflection"] == [each.plugin_name for each in host.implementations("redact")]
    assert ["own x", "bundled x"] == redacted(host, brain)
    assert "bundled own x" == host.chain("redact", "text", "x", brain=brain)


def test_installed_packages_are_plugins(brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that declares an entry point in the group `brainiac` is loaded; a broken one stops nobody."""
    install(tmp_path / "site", "greet-1.0", {"greeter": "greet_pkg", "broken": "broken_pkg", "unwanted": "greet_pkg"})
    write(tmp_path / "site", "greet_pkg", GREETER.format("installed "))
    write(tmp_path / "site", "broken_pkg", "import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    brain.tree.config.write_text("plugins:\n  disabled: [unwanted]\n")
    host = loaded(brain)
    expected = {"installed:greeter": "loaded", "installed:broken": "failed", "installed:unwanted": "disabled"}
    assert expected == states(host)
    assert ["installed x"] == redacted(host, brain)


def install(site: Path, name: str, points: dict[str, str]) -> None:
    """Lay out what an installer leaves of a package: its metadata with entry points."""
    info = site / f"{name}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.split('-')[0]}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[brainiac]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))


def test_a_name_that_is_taken_harms_nobody(brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package cannot push a process out by taking its name; its own loading fails and says why."""
    bundled = write(tmp_path / "bundled", "reflection", GREETER.format("bundled ")).parent
    install(tmp_path / "site", "greet-1.0", {"reflection": "greet_taker"})
    write(tmp_path / "site", "greet_taker", GREETER.format("taker "))
    monkeypatch.syspath_prepend(tmp_path / "site")
    host = loaded(brain, bundled)
    assert {"bundled:reflection": "loaded", "installed:reflection": "failed"} == states(host)
    assert "give it another name" in host.status[-1].detail
    assert ["bundled x"] == redacted(host, brain)


def test_two_brains_in_one_process_keep_their_own(tmp_path: Path) -> None:
    """Plugins of one name in two brains do not mix, whichever is loaded last.

    Seeds: U4.
    """
    hosts = []
    for word in ("first ", "second "):
        brain = make_brain(tmp_path / word.strip())
        write(brain.tree.plugins, "greeter", GREETER.format(word))
        loaded(brain).trust.trust("greeter")
        hosts.append((loaded(brain), brain))
    assert [["first x"], ["second x"]] == [redacted(host, brain) for host, brain in hosts]


def test_modules_have_a_name_of_their_own(brain: Brain) -> None:
    """A plugin is `brainiac_plugins.<stem>`, with its file's path, so that tracebacks and dataclasses work."""
    path = write(brain.tree.plugins, "json", "import brainiac, json\nFILE, REAL = __file__, json.dumps\n")
    loaded(brain).trust.trust("json")
    host = loaded(brain)
    assert {"brain:json": "loaded"} == states(host)
    module = sys.modules["brainiac_plugins.json"]
    assert ("brainiac_plugins.json", str(path), "dumps") == (module.__name__, module.FILE, module.REAL.__name__)
    assert "plugins" not in sys.modules


def test_what_is_no_plugin_is_passed_over(brain: Brain) -> None:
    """Modules with a leading underscore, hidden files, conflict copies, folders, other types; nor need there be any."""
    for name in ("_shared", ".hidden", "greeter.sync-conflict-20250916-153000-ABC"):
        write(brain.tree.plugins, name, "raise SystemExit\n")
    (brain.tree.plugins / "folder.py").mkdir()
    (brain.tree.plugins / "notes.md").write_text("x")
    assert [] == loaded(brain).status
    shutil.rmtree(brain.tree.plugins)
    assert [] == loaded(brain).status


def test_the_repositorys_own_plugins_are_the_bundled_ones(brain: Brain) -> None:
    """In the repository, which is a brain, the processes are loaded once, as bundled."""
    write(brain.tree.plugins, "core_loop", GREETER.format(""))
    assert [PluginStatus("core_loop", "bundled", str(brain.tree.plugins / "core_loop.py"), "loaded")] == loaded(
        brain, brain.tree.plugins
    ).status


def test_objects_can_be_registered_too(brain: Brain) -> None:
    """A test or program registers an object with marked methods; a second one of that name is refused."""

    class Greeter:
        @brainiac.hookimpl
        def redact(self, text: str) -> str:
            return "object " + text

    host = loaded(brain)
    host.register(Greeter(), "greeter")
    assert host.has("redact")
    assert ["object x"] == redacted(host, brain)
    with pytest.raises(PluginError, match="another name"):
        host.register(Greeter(), "greeter")
    assert ["object x"] == redacted(host, brain)


LISTENER = """
    import json, pathlib
    from brainiac import hookimpl

    def note(brain, hook):
        with open(brain.root / "heard.txt", "a") as file:
            file.write(hook + chr(10))

    @hookimpl
    def startup(brain): note(brain, "startup")
    @hookimpl
    def shutdown(brain): note(brain, "shutdown")
    @hookimpl
    def prompt_arrived(brain, prompt): note(brain, "prompt_arrived " + prompt.path)
    @hookimpl
    def response_arrived(brain, exchange): raise RuntimeError("broken")
    @hookimpl
    def plugin_failed(brain, plugin, hook, error): note(brain, f"plugin_failed {plugin} {hook} {error}")
    @hookimpl
    def memory_created(brain, path, memory): note(brain, "memory_created " + memory.title)
    @hookimpl
    def memory_modified(brain, path, memory): note(brain, "memory_modified " + memory.title)
    @hookimpl
    def memory_moved(brain, path, old_path, memory): note(brain, f"memory_moved {old_path} {path}")
    @hookimpl
    def memory_deleted(brain, path): note(brain, "memory_deleted " + path)
    @hookimpl
    def file_changed(brain, change): note(brain, "file_changed " + change.path)
    @hookimpl
    def event_recorded(brain, event): note(brain, "event_recorded " + event.kind)
    @hookimpl
    def retrieve(brain, query, limit): note(brain, "retrieve")
    @hookimpl
    def rerank(brain, query, hits): note(brain, "rerank")
"""


def test_hooks_reach_a_brains_own_plugin(tmp_path: Path) -> None:
    """What happens in the tree reaches a person's plugin, and its fault reaches the journal and `plugin_failed`.

    Seeds: U2, U4.
    """
    brain = testing.make_brain(tmp_path / "brain")
    write(brain.tree.plugins, "listener", LISTENER)
    loaded(brain).trust.trust("listener")
    page = brain.tree.long_term / "concrete/mira.md"
    page.write_text("# Mira\n\n- Mira is a botanist.\n")
    (brain.tree.inbox / "q.md").write_text("What is Mira?\n")
    assert {"startup", "shutdown", "prompt_arrived inbox/q.md", "memory_created Mira"} <= (heard := happened(brain))
    assert {"plugin_failed listener response_arrived broken", "event_recorded prompt-answered"} <= heard
    assert {"file_changed memory/long_term/concrete/mira.md", "retrieve", "rerank"} <= heard
    page.write_text("# Mira B\n\n- Mira is a botanist.\n")
    assert "memory_modified Mira B" in happened(brain)
    page.rename(page.with_name("sister.md"))
    place = "memory/long_term/concrete"
    assert f"memory_moved {place}/mira.md {place}/sister.md" in happened(brain)
    page.with_name("sister.md").unlink()
    assert f"memory_deleted {place}/sister.md" in happened(brain)
    (fault, *_) = brain.journal.events(kinds={"plugin-failed"})
    expected = ("listener", {"hook": "response_arrived", "error": "RuntimeError: broken"})
    assert expected == (fault.by, dict(fault.data))
    assert (brain.tree.inbox / "q.response.md").exists()


def happened(brain: Brain) -> set[str]:
    """Run once and return what the listening plugin heard."""
    file = brain.root / "heard.txt"
    file.unlink(missing_ok=True)
    running = Brain(brain.root)
    testing.run_once(running)
    running.close()
    return set(file.read_text().splitlines())


def test_each_plugin_gets_the_order_of_the_one_before_it(tmp_path: Path) -> None:
    """Two plugins put one hit each to the end: neither's order is thrown away."""
    world = World(tmp_path)
    for name, word in (("one", "plum"), ("two", "quince")):
        source = f"""
            import brainiac
            @brainiac.hookimpl
            def rerank(hits):
                return sorted(hits, key=lambda hit: "{word}" in hit.text)
        """
        world.save(f"plugins/{name}.py", dedent(source))
        world.cli("plugins", "trust", name, "--yes")
    grows = ("In the garden by the mill grows a plum.", "By the mill grows a quince.", "In the garden grows a medlar.")
    world.save("memory/long_term/concrete/fruit.md", "# Fruit\n\n" + "".join(f"- {text}\n" for text in grows))
    asked = world.drop("asked.md", "What grows in the garden by the mill?\n")
    world.run()
    answer = asked.answer or ""
    assert -1 < answer.find("medlar") < min(answer.find("plum"), answer.find("quince"))
