"""`brainiac plugins`: what there is, and a person's word on what may run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.testing import make_brain
from tests.support.commands import Shell

SOURCE = "import brainiac\n@brainiac.hookimpl\ndef redact(text): return 'hello ' + text\n"


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    brain = make_brain(tmp_path / "brain")
    (brain.tree.plugins / "greeter.py").write_text(SOURCE)
    return brain


def state(shell: Shell) -> str:
    states: dict[str, str] = {plugin["name"]: plugin["state"] for plugin in shell("plugins", "list", "--json").json}
    return states["greeter"]


def test_trust_shows_what_will_run(shell: Shell, brain: Brain) -> None:
    """Trusting names the file with its hash, records both in the journal, and the plugin is ready."""
    assert "untrusted" == state(shell)
    done = shell("plugins", "trust", "greeter", "--yes")
    assert 0 == done.code
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    assert f"plugins/greeter.py  sha256 {digest}" in done.out
    assert "ready" == state(shell)
    (event,) = brain.journal.events(kinds={"plugin-trusted"})
    assert {"greeter.py": digest} == event.data["files"]


def test_trust_asks_and_without_a_terminal_does_not_guess(shell: Shell) -> None:
    """Where nobody can be asked, nothing is trusted without --yes."""
    done = shell("plugins", "trust", "greeter")
    assert 1 == done.code
    assert "--yes" in done.err
    assert "untrusted" == state(shell)


def test_distrust(shell: Shell) -> None:
    """A plugin that is distrusted does not run; distrusting what was not trusted is told."""
    shell("plugins", "trust", "greeter", "--yes")
    assert [0, 1] == [shell("plugins", "distrust", "greeter").code for _ in range(2)]
    assert "untrusted" == state(shell)


@pytest.mark.parametrize("name", ["greter", "../outside", "/etc/hostname"])
def test_a_mistyped_name_is_told(shell: Shell, brain: Brain, name: str) -> None:
    """There is no such plugin: a sentence, exit code 1; a name is no way to a file elsewhere."""
    (brain.root / "outside.py").write_text("")
    done = shell("plugins", "trust", name, "--yes")
    assert (1, True) == (done.code, "brainiac plugins list" in done.err)


def test_list_is_what_plugins_alone_shows(shell: Shell, brain: Brain) -> None:
    """`brainiac plugins` lists every plugin with its state, and runs none of them."""
    (brain.tree.plugins / "greeter.py").write_text("raise SystemExit(9)\n")
    shell("plugins", "trust", "greeter", "--yes")
    done = shell("plugins")
    assert (0, shell("plugins", "list").out) == (done.code, done.out)
    assert "core_loop\tbundled\tready" in done.out
    assert "greeter\tbrain\tready" in done.out


def test_a_plugin_adds_a_command(shell: Shell, brain: Brain) -> None:
    """`register_commands` gives a trusted plugin a command of its own.

    Seeds: U4.
    """
    (brain.tree.plugins / "greeter.py").write_text(
        "import brainiac\n"
        "@brainiac.hookimpl\n"
        "def register_commands(cli):\n"
        "    @cli.command()\n"
        "    def greet(name: str):\n"
        "        print('hello', name)\n"
    )
    assert 2 == shell("greet", "Mira").code
    shell("plugins", "trust", "greeter", "--yes")
    assert (0, "hello Mira\n") == ((done := shell("greet", "Mira")).code, done.out)
