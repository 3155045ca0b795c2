"""Runs commands in this process, as a shell would see them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from brainiac.cli.app import run


@dataclass(frozen=True)
class Done:
    """What a command left: exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """Runs commands; `brain` is passed by `--brain` unless it is empty."""

    capsys: pytest.CaptureFixture[str]
    brain: str = ""

    def __call__(self, *arguments: str) -> Done:
        self.capsys.readouterr()
        code = run([*arguments, *(("--brain", self.brain) if self.brain else ())])
        out, err = self.capsys.readouterr()
        return Done(code, out, err)
