"""Runs commands in this process, as a shell would see them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from brainiac import Brain
from brainiac.cli.app import run
from brainiac.testing import Said, command


@dataclass(frozen=True)
class Shell:
    """Runs commands; `brain` is passed by `--brain` unless it is empty."""

    capsys: pytest.CaptureFixture[str]
    brain: str = ""

    def __call__(self, *arguments: str) -> Said:
        self.capsys.readouterr()
        code = run([*arguments, *(("--brain", self.brain) if self.brain else ())])
        out, err = self.capsys.readouterr()
        return Said(code, out, err)


def do(brain: Brain, *words: str) -> Said:
    """Run a command on a brain that is open, such as `do(brain, "promote")`, and return what it left: it must succeed.

    A model that a test registered serves it.
    """
    done = command(brain, *words)
    assert done.code == 0, done
    return done


def quiet(brain: Brain, seconds: float = 60.0) -> None:
    """Let it have been quiet for so long, as a daemon tells the plugins."""
    brain.plugins.call("quiet", brain=brain, idle_seconds=seconds)


def problems_of(brain: Brain) -> list[str]:
    """Return what `doctor` finds wrong: path and problem."""
    return [f"{one['path']}: {one['what']}" for one in command(brain, "doctor", "--json").json["problems"]]
