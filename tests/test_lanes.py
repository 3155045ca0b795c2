"""Tiers of work."""

from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline import eventually

from brainiac.pipeline.lanes import Lanes


def lanes(workers: int, bugs: list[BaseException] | None = None) -> Lanes:
    return Lanes("test", workers, lambda: None, (bugs if bugs is not None else []).append)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_jobs_of_one_key_run_in_order_and_each_once(keys: list[str]):
    done: list[tuple[str, int]] = []
    tier = lanes(4)
    for number, key in enumerate(keys):
        tier.submit(key, lambda entry=(key, number): done.append(entry))  # type: ignore[misc]
    eventually(lambda: tier.pending == 0)
    assert tier.stop(5)
    for each in "abc":
        assert [n for n, key in enumerate(keys) if key == each] == [n for key, n in done if key == each]


def test_a_slow_key_keeps_no_other_waiting():
    release, done = threading.Event(), threading.Event()
    tier = lanes(2)

    def hold() -> None:
        assert release.wait(10)

    tier.submit("slow", hold)
    tier.submit("other", done.set)
    assert done.wait(10)
    release.set()
    assert tier.stop(10)


def test_a_job_that_breaks_is_told_and_ends_nothing():
    bugs: list[BaseException] = []
    done = threading.Event()
    tier = lanes(1, bugs)
    tier.submit("a", lambda: [][0])
    tier.submit("a", done.set)
    assert done.wait(10)
    eventually(lambda: [IndexError] == [type(bug) for bug in bugs])
    assert tier.stop(5)


def test_stopping_starts_nothing_more_and_tells_whether_work_ended():
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


def test_while_a_tier_is_crowded_the_one_behind_it_stands_back():
    order: list[str] = []
    release = threading.Event()
    first = lanes(1)
    behind = Lanes("behind", 1, lambda: None, lambda bug: None, first=first)

    def hold() -> None:
        assert release.wait(10)

    first.submit("a", hold)
    for number in range(5):
        first.submit("a", lambda number=number: order.append(f"first {number}"))  # type: ignore[misc]
    behind.submit("b", lambda: order.append("behind"))
    release.set()
    eventually(lambda: "behind" in order)
    assert order.index("first 2") < order.index("behind")
    assert first.stop(5)
    assert behind.stop(5)
