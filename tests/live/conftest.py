"""What the tests of the window share: a real browser, and a daemon to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import chromium, windowed
from tests.support.living import Living, living_brain
from tests.support.models import write_memory


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; the test is skipped where there is none."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Living]:
    """A daemon of a brain with one page."""
    root = living_brain(tmp_path / "brain")
    write_memory(root, "concrete/portland.md", "Portland", 1, "User lives in Portland, since 2020. ^f3k9")
    with windowed(root) as daemon:
        yield daemon
