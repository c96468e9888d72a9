"""One start for all hosts: beyond every host's step, by the time that each needs to hear of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.live.common_start import Pace, Point, common_start, pace_of
from cluster_run.ids import HostId

STEPS = st.floats(0.01, 60.0)
POLLS = st.sampled_from([1.0, 2.0, 7.0, 50.0])


def hosts(n: int) -> list[HostId]:
    return [HostId(str(number + 1)) for number in range(n)]


@given(
    st.integers(0, 10**6), STEPS, POLLS, st.floats(0.0, 5.0),
    st.lists(st.floats(-0.9, 0.9), min_size=1, max_size=16), st.floats(0.0, 20.0),
)  # fmt: skip
def test_hosts_in_step_hear_of_the_start_before_they_are_there_and_can_take_it_back(
    step: int, step_s: float, poll_s: float, answer_s: float, offsets: list[float], age_s: float
) -> None:
    now_s = 1000.0
    # Hosts are in step; each was read at a moment of its own, at most `age_s` ago.
    paces = {}
    for host, offset in zip(hosts(len(offsets)), offsets, strict=True):
        at_s = now_s - age_s * abs(offset)
        paces[host] = Pace(Point(at_s, step + int((at_s - 900.0) / step_s)), step_s, poll_s)
    start = common_start(paces, now_s, answer_s)
    assert start.strays == {}
    # A rank looks at the end of a step.
    heard_s = now_s + answer_s + poll_s + 1.0 + step_s
    taken_back_s = heard_s + answer_s + poll_s + 1.0 + step_s
    for at_s in (heard_s, taken_back_s):
        assert step + int((at_s - 900.0) / step_s) < start.step


@given(STEPS, st.integers(1, 10**5), st.booleans())
def test_a_host_that_counts_from_elsewhere_is_a_stray_and_has_no_say(
    step_s: float, more: int, is_behind: bool
) -> None:
    far = 20 + int(2 * 3.0 / step_s) + more
    here = Pace(Point(100.0, 10**6), step_s, 2.0)
    there = Pace(Point(100.0, 10**6 + (-far if is_behind else far)), step_s, 2.0)
    paces = dict.fromkeys(hosts(3), here)
    start = common_start({**paces, HostId("9"): there}, 100.0, 0.1)
    assert list(start.strays) == [HostId("9")]
    assert start.step == common_start(paces, 100.0, 0.1).step


def test_of_two_hosts_that_differ_neither_is_taken_for_the_right_one() -> None:
    paces = {HostId("1"): Pace(Point(0.0, 5000), 0.1, 1.0), HostId("2"): Pace(Point(0.0, 12), 0.1, 1.0)}
    assert set(common_start(paces, 0.0, 0.1).strays) == set(paces)


@given(st.lists(st.floats(0.02, 0.5), min_size=1, max_size=20), st.integers(0, 1000))
def test_a_pace_is_never_slower_than_the_mean_of_what_was_seen(lengths: list[float], first: int) -> None:
    points, at_s = [Point(0.0, first)], 0.0
    for number, length in enumerate(lengths, start=1):
        at_s += length
        points.append(Point(at_s, first + number))
    pace = pace_of(points, 1.0)
    assert pace.last == points[-1]
    assert pace.step_s <= at_s / len(lengths) + 1e-9


def test_steps_that_were_written_late_and_all_at_once_do_not_make_a_host_fast() -> None:
    points = [Point(0.0, 11), Point(60.0, 611), Point(60.0004, 612), Point(60.0008, 613)]
    assert pace_of(points, 1.0).step_s == pytest.approx(0.1, rel=0.01)


def test_one_step_is_no_pace() -> None:
    with pytest.raises(ValueError, match="one step"):
        pace_of([Point(0.0, 7), Point(5.0, 7)], 1.0)


@given(st.permutations(range(6)))
def test_the_order_of_hosts_does_not_matter(order: list[int]) -> None:
    paces = {HostId(str(n)): Pace(Point(0.1 * n, 1000 + n), 0.1 + n / 100, 1.0) for n in range(6)}
    mixed = {HostId(str(n)): paces[HostId(str(n))] for n in order}
    assert common_start(mixed, 1.0, 0.2) == common_start(paces, 1.0, 0.2)
