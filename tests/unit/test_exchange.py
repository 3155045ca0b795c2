"""The system calls that durability rests on do what their names say."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.storage.files import Disk, make_folders, temporary_beside
from brainiac.tree import is_temporary


def test_exchange_swaps_two_files_and_their_identities(tmp_path: Path) -> None:
    """After it each name has the other's file; a missing one is an error and nothing changes."""
    one, other, disk = tmp_path / "one", tmp_path / "other", Disk()
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    inode = one.stat().st_ino
    assert disk.exchange(one, other)
    assert (b"2", b"1", inode) == (one.read_bytes(), other.read_bytes(), other.stat().st_ino)
    with pytest.raises(FileNotFoundError):
        disk.exchange(one, tmp_path / "missing")


def test_rename_new_never_replaces(tmp_path: Path) -> None:
    """A file that stands at the target stays, and so does the source."""
    one, other, disk = tmp_path / "one", tmp_path / "other", Disk()
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    with pytest.raises(FileExistsError):
        disk.rename_new(one, other)
    assert (b"1", b"2") == (one.read_bytes(), other.read_bytes())
    disk.rename_new(one, tmp_path / "third")
    assert [b"2", b"1"] == [other.read_bytes(), (tmp_path / "third").read_bytes()]


def test_write_never_overwrites(tmp_path: Path) -> None:
    """A file that exists is refused."""
    (tmp_path / "x").write_bytes(b"1")
    with pytest.raises(FileExistsError):
        Disk().write(tmp_path / "x", b"2")


def test_folders_are_made_and_their_parents_named(tmp_path: Path) -> None:
    """Those whose entries changed are returned, to be brought to the disk."""
    assert [tmp_path, tmp_path / "a"] == make_folders(Disk(), tmp_path / "a" / "b")
    assert [] == make_folders(Disk(), tmp_path / "a" / "b")


def test_our_temporary_names_are_ignored_names(tmp_path: Path) -> None:
    """The watcher, sync and the tree's walk pass them over."""
    assert is_temporary(Path(temporary_beside(str(tmp_path / "a.md"))).name)
