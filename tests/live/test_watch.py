"""Where the system tells to look, and what is done when it does not."""

from __future__ import annotations

import errno
import logging
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.pipeline.watch import Watcher
from tests.support.pipeline import eventually, make_folder


class Seen:
    """What a watcher told."""

    def __init__(self, root: Path) -> None:
        self.root, self.paths, self.losses = root, set[str](), 0
        self._mutex = threading.Lock()

    def path(self, path: str) -> None:
        with self._mutex:
            self.paths.add(os.path.relpath(path, self.root))

    def loss(self) -> None:
        self.losses += 1

    def covers(self, path: str) -> bool:
        """Whether a path, or a folder above it, was told."""
        parts = path.split("/")
        return any("/".join(parts[:end]) in self.paths for end in range(1, len(parts) + 1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "brain")


@contextmanager
def watching(root: Path, settings: dict[str, object] | None = None) -> Iterator[tuple[Watcher, Seen]]:
    seen, values = Seen(root), settings if settings is not None else {}
    with closing(Brain(root)) as brain:
        default = brain.settings.watch
        watcher = Watcher(brain.tree, lambda: default.model_copy(update=values), seen.path, seen.loss)
        watcher.start()
        try:
            yield watcher, seen
        finally:
            watcher.stop()


@pytest.mark.parametrize("settings", [{}, {"polling": True, "polling_seconds": 0.05}], ids=["events", "polling"])
def test_changes_below_every_folder_are_told(root: Path, settings: dict[str, object]) -> None:
    paths = [
        "inbox/a/b/q.md",
        "memory/long_term/concrete/m.md",
        "system/prompts/x.md",
        "plugins/p.py",
        "logs/access.log",
    ]
    with watching(root, settings) as (watcher, seen):
        for path in paths:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("x")
        eventually(lambda: all(seen.covers(path) for path in paths))
        assert ("polling" if settings else "events") == watcher.health().mode
        assert "" == watcher.health().reason


def test_files_in_freshly_nested_folders_are_told_or_a_folder_above_them_is(root: Path) -> None:
    """Events of files in a folder that was just made get lost; the folder itself is told."""
    with watching(root) as (_, seen):
        for number in range(100):
            folder = root / f"inbox/{number}/deep/er"
            folder.mkdir(parents=True)
            (folder / "q.md").write_text("x")
        eventually(lambda: all(seen.covers(f"inbox/{number}/deep/er/q.md") for number in range(100)))


def test_links_to_folders_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "inbox/link").symlink_to(outside)
    with watching(root) as (_, seen):
        (outside / "q.md").write_text("x")
        (root / "inbox/after.md").write_text("x")
        eventually(lambda: seen.covers("inbox/after.md"))
        assert not seen.covers("inbox/link/q.md")


@pytest.mark.parametrize("settings", [{}, {"polling": True, "polling_seconds": 0.05}], ids=["events", "polling"])
def test_a_watched_folder_that_vanishes_and_returns_is_watched_again(root: Path, settings: dict[str, object]) -> None:
    with watching(root, settings) as (watcher, seen):
        (root / "inbox").rename(root.parent / "away")
        watcher.check()
        assert ("inbox",) == watcher.health().missing
        (root / "inbox").mkdir()
        watcher.check()
        assert () == watcher.health().missing
        assert seen.losses >= 1
        (root / "inbox/q.md").write_text("x")
        eventually(lambda: seen.covers("inbox/q.md"))


def test_a_folder_s_return_is_noticed_without_waiting_for_the_rescan(root: Path) -> None:
    with watching(root) as (watcher, seen):
        (root / "inbox").rename(root.parent / "away")
        eventually(lambda: watcher.health().missing == ("inbox",))
        (root.parent / "away").rename(root / "inbox")
        eventually(lambda: watcher.health().missing == ())
        assert seen.losses >= 1


def test_a_folder_replaced_by_another_of_its_name_is_watched(root: Path) -> None:
    with watching(root) as (watcher, seen):
        (root / "inbox").rename(root.parent / "away")
        (root / "inbox").mkdir()
        watcher.check()
        (root / "inbox/q.md").write_text("x")
        eventually(lambda: seen.covers("inbox/q.md"))


def test_where_the_system_cannot_watch_the_tree_is_polled_and_said_to_be(root: Path) -> None:
    """Real exhaustion: no file descriptor is left for the system's notifications."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    for descriptor in used:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(used[:2]) + 1, hard))  # two are left; an observer takes three
    try:
        with watching(root, {"polling_seconds": 0.05}) as (watcher, seen):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert "polling" == watcher.health().mode
            assert os.strerror(errno.EMFILE) in watcher.health().reason or "limit" in watcher.health().reason
            (root / "inbox/q.md").write_text("x")
            eventually(lambda: seen.covers("inbox/q.md"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_polling_begins_and_ends_as_the_setting_says(root: Path) -> None:
    settings: dict[str, object] = {"polling_seconds": 0.05}
    with watching(root, settings) as (watcher, seen):
        settings["polling"] = True
        watcher.check()
        assert "polling" == watcher.health().mode
        settings["polling"] = False
        watcher.check()
        assert "events" == watcher.health().mode
        (root / "inbox/q.md").write_text("x")
        eventually(lambda: seen.covers("inbox/q.md"))


def test_lost_events_are_counted_and_everything_is_looked_over(root: Path) -> None:
    """The words are watchdog's; that they are still its words, the live test of an overflow proves."""
    with watching(root) as (watcher, seen):
        logging.getLogger("watchdog.observers.inotify_c").warning(
            "Inotify queue overflowed; filesystem events were lost"
        )
        assert (1, 1) == (seen.losses, watcher.health().overflows)


def test_a_stopped_watcher_says_so(root: Path) -> None:
    with watching(root) as (watcher, _):
        pass
    assert "stopped" == watcher.health().mode
