"""A brain on several devices: which of them runs its processes. A setting in a synced file, not a distributed lock."""

from __future__ import annotations

from datetime import timedelta

from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.events import DeviceTookOver, Event, write
from brainiac.formats.frontmatter import edit_meta

RECENT_DAYS = 7


def takeover(brain: Brain) -> Event | None:
    """Make this device the one that runs the processes; the others follow once `system/config.yaml` is synced.

    Returns:
        The event; None when this device runs them already.

    Raises:
        SettingsError: The settings are broken.
        ConflictError: The file was saved meanwhile; nothing was changed.
    """
    former, device = brain.check_settings().active_device, brain.journal.device
    if former == device:
        return None
    path = brain.tree.relative(brain.tree.config)
    before = brain.read_text(path)
    change = write(path, before, with_setting(before or "", "active_device", device))
    return brain.commit(DeviceTookOver(device=device, from_=former), by="person", changes=[change])


def with_setting(text: str, name: str, value: str) -> str:
    """Return settings with one entry set; every other line, comments too, stays byte for byte."""
    newline = "\r\n" if "\r\n" in text else "\n"
    body = text if text.endswith("\n") or not text else text + newline
    fence = f"---{newline}"  # settings are YAML as front matter is
    return edit_meta(f"{fence}{body}{fence}", **{name: value})[len(fence) : -len(fence)]


def require_active(brain: Brain) -> None:
    """Raise unless this device is the one that runs the processes.

    Raises:
        UserError: Another device runs them.
    """
    if not brain.is_active:
        raise UserError(brain.waits_for)


def other_active_devices(brain: Brain) -> list[str]:
    """Return the other devices that wrote events in the last seven days; none where the settings name a device."""
    if brain.settings.active_device is not None:
        return []
    since = (brain.clock.now() - timedelta(days=RECENT_DAYS)).date().isoformat()
    left_out = {brain.journal.device, "blobs"}  # `blobs` is no device's journal
    folders = (path for path in brain.tree.journal.glob("*/") if path.name not in left_out)
    # by file names, which are days: no journal is read
    return sorted(path.name for path in folders if any(file.stem >= since for file in path.glob("[0-9]*.jsonl")))
