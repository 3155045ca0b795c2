"""What was added to the access log."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.pipeline.bus import AccessLogTail


def lines(*numbers: int) -> bytes:
    told = (f"2025-09-16T15:30:{n:02}Z | READ | /b/memory/long_term/concrete/{n}.md\n" for n in numbers)
    return "".join(told).encode()


def numbers(tail: AccessLogTail) -> list[int]:
    return [int(Path(entry.path).stem) for entry in tail.read()]


# how the log is opened ("" is removed), what is written, and what is told then
GROWTH: dict[str, list[tuple[str, bytes, list[int]]]] = {
    "added": [("ab", b"", []), ("ab", lines(2, 3), [2, 3]), ("ab", b"", [])],
    "in the middle of being written": [("ab", lines(2)[:20], []), ("ab", lines(2)[20:], [2])],
    "organization cleared what it processed": [("ab", lines(2, 3), [2, 3]), ("wb", lines(3, 4), [4])],
    "rotated": [("wb", lines(7, 8), [7, 8])],
    "vanished and returned": [("", b"", []), ("ab", lines(1), [1])],
    # the last line is found again by its bytes: as text it might have been split or repaired
    **{
        ascii(damaged): [("ab", lines(2) + damaged, [2]), ("ab", b"", []), ("ab", lines(3), [3])]
        for damaged in (b"caf\xe9\n", "a\u2028b\n".encode(), b"of Windows\r\n")
    },
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(lines(1))
    return path


@pytest.mark.parametrize("steps", GROWTH.values(), ids=GROWTH)
def test_only_what_is_added_is_told_and_once(log: Path, steps: list[tuple[str, bytes, list[int]]]) -> None:
    """Whatever becomes of the file: whole lines that were not there before, from its start where it is another one."""
    tail = AccessLogTail(log, None)
    for mode, written, told in steps:
        if mode:
            with log.open(mode) as file:
                file.write(written)
        else:
            log.unlink()
        assert told == numbers(tail)


def test_a_mark_goes_on_from_where_another_run_ended(log: Path) -> None:
    """What was added between two runs is told by the second."""
    mark = AccessLogTail(log, None).mark
    log.write_bytes(lines(1, 2))
    assert [2] == numbers(AccessLogTail(log, mark))
