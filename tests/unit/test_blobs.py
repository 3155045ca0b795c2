"""Texts by hash: whole or spliced, always exactly what was put."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import BlobError
from brainiac.events import content_hash
from brainiac.storage.journal import MAX_DEPTH, MAX_SYNCED_SINGLY, BlobStore
from tests.support.kernel import CountingDisk


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=8), st.binary(max_size=3000))
def test_every_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, edits: list[bytes], text: bytes
) -> None:
    """Whatever is put, near whatever it grew from, `get` returns it."""
    store, texts = BlobStore(tmp_path_factory.mktemp("blobs")), [text]
    for number, edit in enumerate(edits):
        middle = (number * 37) % (len(texts[-1]) + 1)
        texts.append(texts[-1][:middle] + edit + texts[-1][middle + number :])
    digests = [store.put(texts[0])]
    for each in texts[1:]:
        digests.append(store.put(each, base=digests[-1]))
    assert texts == [store.get(digest) for digest in digests]
    assert [content_hash(each) for each in texts] == digests


def test_hundreds_of_versions_are_not_hundreds_of_copies(tmp_path: Path) -> None:
    """A file of 100 lines that grows by one line four hundred times takes a tenth of its versions' size."""
    store, text = BlobStore(tmp_path), b"a line of some length in the file\n" * 100
    digest, total = store.put(text), 0
    for number in range(400):
        text = text[:340] + b"### event %d\n" % number + text[340:]
        digest = store.put(text, base=digest)
        total += len(text)
    assert text == store.get(digest)
    stored = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert stored < total / 10
    deepest = max(store._depth(p.parent.name + p.name.removesuffix(".splice")) for p in tmp_path.glob("??/*.splice"))
    assert MAX_DEPTH == deepest


def test_many_texts_are_brought_to_the_disk_at_once(tmp_path: Path) -> None:
    """However many there are, few operations do it, since nobody can commit meanwhile; a few go one by one."""
    for number, most in ((3, 10), (MAX_SYNCED_SINGLY + 1, 1), (1000, 1)):
        disk = CountingDisk()
        store = BlobStore(tmp_path / str(number), disk)
        digests = {store.put(b"%d" % each) for each in range(number)}
        disk.done.clear()
        store.sync(digests)
        assert 1 <= len(disk.done) <= most
    BlobStore(tmp_path / "none").sync({content_hash(b"%d" % each) for each in range(100)})


def test_a_deleted_text_takes_no_other_with_it(tmp_path: Path) -> None:
    """Texts spliced on a purged one are written out whole before it goes."""
    store, first = BlobStore(tmp_path), b"secret\n" + b"shared line\n" * 50
    one = store.put(first)
    second = b"public\n" + first[7:]
    two = store.put(second, base=one)
    three = store.put(second + b"more\n", base=two)
    assert 2 == len(list(tmp_path.rglob("*.splice")))
    store.delete(one)
    assert one not in store
    assert (second, second + b"more\n") == (store.get(two), store.get(three))
    assert not any(b"secret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_damaged_or_missing_text_is_never_returned(tmp_path: Path) -> None:
    """A blob that does not have its hash is an error, and a verified put mends it."""
    store = BlobStore(tmp_path)
    digest = store.put(b"text\n")
    path = tmp_path / digest[:2] / digest[2:]
    assert 0o600 == path.stat().st_mode & 0o777
    path.write_bytes(b"")
    with pytest.raises(BlobError, match="damaged"):
        store.get(digest)
    store.put(b"text\n", is_verified=True)
    assert b"text\n" == store.get(digest)
    with pytest.raises(BlobError, match="not in"):
        store.get("0" * 64)


def test_a_text_whose_base_another_device_destroyed_is_put_again(tmp_path: Path) -> None:
    """A sync took away what it was a splice on; whoever has the text stores it whole."""
    store, text = BlobStore(tmp_path), b"a line of some length in the file\n" * 100
    base = store.put(text)
    digest = store.put(text + b"one more\n", base=base)
    (tmp_path / base[:2] / base[2:]).unlink()
    with pytest.raises(BlobError):
        store.get(digest)
    assert digest == store.put(text + b"one more\n")
    assert text + b"one more\n" == store.get(digest)
