"""Tiers of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from brainiac.pipeline.dispatch import Job, KeyedExecutor
from tests.support.examples import examples
from tests.support.pipeline import eventually


def lanes(workers: int, bugs: list[BaseException] | None = None) -> KeyedExecutor:
    return KeyedExecutor("test", workers, lambda: None, (bugs if bugs is not None else []).append)


@examples(20)
@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_jobs_of_one_key_run_in_order_and_each_once(keys: list[str]) -> None:
    done: list[tuple[str, int]] = []
    tier = lanes(4)
    for number, key in enumerate(keys):
        tier.submit(key, partial(done.append, (key, number)))
    eventually(lambda: tier.pending == 0)
    assert tier.stop(5)
    for each in "abc":
        assert [n for n, key in enumerate(keys) if key == each] == [n for key, n in done if key == each]


def test_a_slow_key_keeps_no_other_waiting() -> None:
    release, done = threading.Event(), threading.Event()
    tier = lanes(2)

    def hold() -> None:
        assert release.wait(10)

    tier.submit("slow", hold)
    tier.submit("other", done.set)
    assert done.wait(10)
    release.set()
    assert tier.stop(10)


def test_a_job_that_breaks_is_told_and_ends_nothing() -> None:
    bugs: list[BaseException] = []
    done = threading.Event()
    tier = lanes(1, bugs)
    tier.submit("a", lambda: [][0])
    tier.submit("a", done.set)
    assert done.wait(10)
    eventually(lambda: [IndexError] == [type(bug) for bug in bugs])
    assert tier.stop(5)


def test_stopping_starts_nothing_more_and_tells_whether_work_ended() -> None:
    release, begun, later = threading.Event(), threading.Event(), threading.Event()
    tier = lanes(1)

    def hold() -> None:
        begun.set()
        release.wait(10)

    tier.submit("a", hold)
    tier.submit("a", later.set)
    assert begun.wait(10)
    assert not tier.stop(0.01)
    release.set()
    assert tier.stop(10)
    tier.submit("b", later.set)
    assert not later.is_set()


def test_in_a_burst_the_tier_behind_has_its_share() -> None:
    """What is behind a crowded tier waits for two of its jobs, not for all."""
    order: list[str] = []
    first = lanes(1)
    behind = KeyedExecutor("behind", 1, lambda: None, lambda bug: None, yields_to=first)

    def slow(name: str) -> None:
        time.sleep(0.1)
        order.append(name)

    for number in range(12):
        first.submit(f"{number}", partial(slow, "first"))
        behind.submit("b", lambda: order.append("behind"))
    eventually(lambda: order.count("first") == 12)
    eighth = [place for place, name in enumerate(order) if name == "first"][7]
    assert 3 <= order[:eighth].count("behind") <= 6
    assert first.stop(5)
    assert behind.stop(5)


def turns_of(tier: KeyedExecutor, submit: Callable[[Callable[[str], Job]], None]) -> list[str]:
    """Return the keys in the order of their turns, of jobs that are submitted while the only worker is held up."""
    order: list[str] = []
    release = threading.Event()

    def hold_up() -> None:
        release.wait(10)

    tier.submit("held up", hold_up)
    submit(lambda name: lambda: order.append(name))
    release.set()
    eventually(lambda: tier.pending == 0)
    assert tier.stop(5)
    return order


def test_one_that_comes_fresh_is_next_but_one_behind_thousands_that_wait() -> None:
    """Of 2,000 keys that wait, the newest and the oldest take turns; one in the middle waits for neither for ever."""

    def submit(job: Callable[[str], Job]) -> None:
        for number in range(2000):
            tier.submit(str(number), job(str(number)))
        tier.submit("fresh", job("fresh"))

    tier = lanes(1)
    order = turns_of(tier, submit)
    assert "fresh" in order[:2]
    assert {"0", "1", "2"} <= set(order[:8])
    assert 2001 == len(set(order)) == len(order)


def test_a_key_with_a_thousand_jobs_takes_one_turn_of_each_round() -> None:
    """Who has much to do is fresh once: others, and who comes later, have their turns between."""

    def submit(job: Callable[[str], Job]) -> None:
        for _ in range(1000):
            tier.submit("much", job("much"))
        for name in "abc":
            tier.submit(name, job(name))

    tier = lanes(1)
    order = turns_of(tier, submit)
    assert set("abc") <= set(order[:5])
    assert 1000 == order.count("much")
