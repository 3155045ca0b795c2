"""For tests of plugins: a real brain in a temporary folder, with the real loader and the real pipeline."""

from __future__ import annotations

import shutil
from pathlib import Path

from brainiac.brain import Brain
from brainiac.clock import SYSTEM, Clock
from brainiac.host.trust import TrustStore
from brainiac.pipeline.daemon import run_once
from brainiac.skeleton import create_brain

__all__ = ["install_plugin", "make_brain", "run_once"]


def make_brain(folder: Path, *, clock: Clock = SYSTEM) -> Brain:
    """Make a brain as `brainiac init` does and open it.

    Args:
        folder: Empty or not there yet. Set `XDG_STATE_HOME` and `XDG_CACHE_HOME` to temporary folders too,
            since locks and trust are kept there.
        clock: For tests that move time by hand, a `brainiac.clock.ManualClock`.
    """
    create_brain(folder, clock=clock)
    return Brain(folder, clock=clock)


def install_plugin(brain: Brain, file: Path | str) -> None:
    """Copy a plugin's file into a brain and trust it; before `brain.plugins` is first used."""
    path = shutil.copy(file, brain.tree.plugins)
    TrustStore(brain.places.state / "trust.json", brain.tree.plugins).trust(Path(path).stem)
