"""What was added to the access log."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.pipeline.bus import AccessLogTail


def line(number: int) -> str:
    return f"2025-09-16T15:30:{number:02}Z | READ | /b/memory/long_term/concrete/{number}.md\n"


def numbers(tail: AccessLogTail) -> list[int]:
    return [int(Path(entry.path).stem) for entry in tail.read()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text(line(1))
    return path


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_only_what_is_added_is_told_and_once(log: Path) -> None:
    tail = AccessLogTail(log, None)
    assert [] == numbers(tail)
    add(log, line(2) + line(3))
    assert ([2, 3], []) == (numbers(tail), numbers(tail))


def test_a_line_in_the_middle_of_being_written_waits(log: Path) -> None:
    tail = AccessLogTail(log, None)
    add(log, line(2)[:20])
    assert [] == numbers(tail)
    add(log, line(2)[20:])
    assert [2] == numbers(tail)


def test_a_mark_goes_on_from_where_another_run_ended(log: Path) -> None:
    mark = AccessLogTail(log, None).mark
    add(log, line(2))
    assert [2] == numbers(AccessLogTail(log, mark))


def test_lines_taken_away_before_the_place_do_not_tell_the_rest_again(log: Path) -> None:
    """Organization clears the lines it processed."""
    add(log, line(2) + line(3))
    tail = AccessLogTail(log, None)
    log.write_text(line(3) + line(4))
    assert [4] == numbers(tail)


def test_a_log_that_was_rotated_is_read_from_its_start(log: Path) -> None:
    tail = AccessLogTail(log, None)
    log.write_text(line(7) + line(8))
    assert [7, 8] == numbers(tail)


def test_a_log_that_vanished_and_returned_is_read_from_its_start(log: Path) -> None:
    tail = AccessLogTail(log, None)
    log.unlink()
    assert [] == numbers(tail)
    log.write_text(line(1))
    assert [1] == numbers(tail)


def test_a_line_that_is_no_text_does_not_tell_the_rest_again(log: Path) -> None:
    """The last line is found again by its bytes: as text it might have been split or repaired."""
    tail = AccessLogTail(log, None)
    for damaged in (b"caf\xe9\n", "a\u2028b\n".encode(), b"of Windows\r\n"):
        with log.open("ab") as file:
            file.write(line(2).encode() + damaged)
        assert [2] == numbers(tail)
        assert [] == numbers(tail)
