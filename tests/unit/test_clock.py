"""Time: one source, written one way."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from brainiac.clock import SYSTEM, ManualClock, iso, parse_iso

START = datetime(2025, 9, 16, 15, 30, tzinfo=UTC)


def test_system_clock_can_be_frozen() -> None:
    """A frozen clock gives that moment, so that a test of one function needs no clock of its own."""
    with freeze_time("2025-09-16T15:30:00Z"):
        assert START == SYSTEM.now()


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]), min_value=datetime(1000, 1, 1)))
def test_iso_round_trip(moment: datetime) -> None:
    """A moment survives being written in UTC and read, to the second."""
    assert iso(moment).endswith("Z")
    assert moment.replace(microsecond=0) == parse_iso(iso(moment))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-09-16T15:30:00Z", START),
        ("2025-09-16T17:30:00+02:00", START),
        ("2025-09-16 15:30", START),
        (" 2025-09-16T15:30:00Z\n", START),
    ],
)
def test_parse_iso_takes_what_people_write(text: str, expected: datetime) -> None:
    """Offsets are converted; without one, UTC is meant."""
    assert expected == parse_iso(text)


def test_manual_clock_moves_only_by_hand() -> None:
    """A manual clock stands still until it is moved, and moves both of its hands."""
    clock = ManualClock(START)
    assert START == clock.now()
    clock.advance(300)
    assert (START + timedelta(minutes=5), 300.0) == (clock.now(), clock.monotonic())


def test_manual_clock_ends_a_wait_when_it_passes_the_deadline() -> None:
    """A wait on a manual clock ends when the clock is moved far enough, without real time passing."""
    clock, condition, ended = ManualClock(START), threading.Condition(), []

    def wait() -> None:
        with condition:
            while clock.monotonic() < 60:
                clock.wait(condition, 60 - clock.monotonic())
            ended.append(clock.monotonic())

    waiter = threading.Thread(target=wait)
    waiter.start()
    while waiter.is_alive():
        clock.advance(30)
        waiter.join(0.01)
    assert [True] == [each >= 60 for each in ended]


def test_manual_clock_does_not_wait_without_time() -> None:
    """A wait of no length returns at once and says that the time ran out."""
    clock, condition = ManualClock(START), threading.Condition()
    with condition:
        assert not clock.wait(condition, 0)
