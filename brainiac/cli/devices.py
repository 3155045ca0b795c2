"""`brainiac takeover`: which of the devices that share a brain runs its processes."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
