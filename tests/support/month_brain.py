"""The brain of tests/data/month_brain on a machine of its own: as it was packed, or cloned to a new one."""

from __future__ import annotations

import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path

from brainiac.testing import World

ARCHIVE = Path(__file__).parent.parent / "data/month_brain/month.tar.gz"
NEXT_DAY = datetime(2025, 9, 29, 9, tzinfo=UTC)  # after the one on which it was packed


def unpacked(folder: Path, *, has_state: bool = True) -> World:
    """Unpack it and return its world, on the next morning.

    Args:
        folder: Where to.
        has_state: Whether what stood beside the tree is there; else the machine has never seen this brain.
    """
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder)  # of our own making: a filter of its members came with Python 3.11.4
    device = folder / "home/state/brainiac/device_id"
    device.parent.mkdir(parents=True)
    if has_state:
        (folder / "device/device_id").rename(device)
    world = World(folder, name="clone")
    world.clock.advance((NEXT_DAY - world.clock.now()).total_seconds())
    with world.opened() as brain:
        place = brain.places.state
    shutil.rmtree(place, ignore_errors=True)
    if has_state:
        place.parent.mkdir(parents=True, exist_ok=True)
        (folder / "state").rename(place)
    return world
