"""What a link is held against: the middle of the healthy links of its class, however few these are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors import slow_network
from cluster_analysis.judge.measures.links import observe
from cluster_analysis.judge.measures.slow_units import Observations, units_of
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.tails import binomial_tail
from cluster_analysis.tables.schema import LINKS
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.ids import DeviceId
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

N_SEEN = 8


def observed(times_us: list[float], *, n_seen: int = N_SEEN) -> Observations:
    """Links between two hosts; each takes so long whenever it is seen, give or take one in a thousand."""
    rng = np.random.default_rng(7)
    rows = [
        {
            "rank": src, "step": seen, "group": "g", "is_p2p": False, "op_type": "allreduce",
            "variant": "op", "op_name": "", "src_local": src, "dst_local": src + 8, "src_rank": src,
            "dst_rank": src + 8, "transport": "RDMA", "size_bytes": 1e7,
            "time_us": time_us * rng.uniform(0.999, 1.001),
        }
        for src, time_us in enumerate(times_us)
        for seen in range(n_seen)
    ]  # fmt: skip
    where = on_hosts(16, 8)
    evidence = replace(
        evidence_of_computing(peers_agree(16, 3), where), links=pa.Table.from_pylist(rows, schema=LINKS)
    )
    seen = observe(evidence, where, Thresholds())
    assert seen is not None
    return seen


def slow_links(seen: Observations) -> list[int]:
    table = units_of(seen, Thresholds())
    return [table.members[at][0] for at in np.flatnonzero(table.slow)]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(("times_as_long", "is_slow"), [(3.0, True), (1.3, True), (1.08, False)])
def test_of_two_links_the_slower_one_is_held_against_the_other(
    at: int, times_as_long: float, *, is_slow: bool
) -> None:
    times = [1000.0, 1000.0]
    times[at] *= times_as_long
    assert slow_links(observed(times)) == ([at] if is_slow else [])


def test_a_single_link_compares_nothing() -> None:
    assert not np.isfinite(observed([3000.0]).excess).any()


@pytest.mark.parametrize("n_links", [3, 4, 5])
def test_what_a_slow_link_of_a_few_loses_is_counted_from_the_middle_of_the_others(n_links: int) -> None:
    """Not from their fastest: its luck is no loss of the slow one."""
    healthy = np.linspace(1000.0, 1060.0, n_links - 1)
    table = units_of(observed([*healthy.tolist(), 2000.0]), Thresholds())
    assert np.exp(table.level[-1]) == pytest.approx(2000.0 / float(np.median(healthy)), rel=0.005)
    assert table.slow.tolist() == [False] * (n_links - 1) + [True]


def test_links_of_which_nearly_half_are_slow_are_held_against_the_others() -> None:
    assert slow_links(observed([1000.0] * 5 + [2000.0] * 4)) == [5, 6, 7, 8]


@given(
    times=st.lists(st.floats(990.0, 1010.0), min_size=2, max_size=8),
    slower=st.floats(2.5, 8.0),
    at=st.integers(0, 7),
)
def test_one_link_of_any_class_that_takes_far_longer_is_the_slow_one(
    times: list[float], slower: float, at: int
) -> None:
    at %= len(times)
    times[at] *= slower
    assert slow_links(observed(times)) == [at]


def sampled(middle_us: float) -> list[dict[str, object]]:
    """What files tell of the calls of 40 links in a step: the fastest, the middle and the three slowest.

    On all links three of many calls met others on their way; on the last one the middle takes `middle_us`.
    """
    times = {"top1": 980.0, "middle": 1000.0, "bottom1": 1600.0, "bottom2": 1580.0, "bottom3": 1570.0}
    return [
        {
            "rank": src, "step": step, "group": "g", "is_p2p": False, "op_type": "allreduce",
            "variant": variant, "op_name": "", "src_local": src, "dst_local": src + 40, "src_rank": src,
            "dst_rank": src + 40, "transport": "HCCS", "size_bytes": 1e7,
            "time_us": (middle_us / 1000.0 if src == 39 else 1.0) * time_us + src + step,
        }
        for src in range(40)
        for step in range(5)
        for variant, time_us in times.items()
        # On most links fewer calls than three of a step did, as the others have none.
        if variant in ("top1", "middle", "bottom1") or src >= 25
    ]  # fmt: skip


@pytest.mark.parametrize(("middle_us", "slow"), [(1000.0, []), (1500.0, [39])])
def test_three_slow_calls_of_many_make_no_slow_link(middle_us: float, slow: list[int]) -> None:
    where = on_hosts(80, 80)
    evidence = replace(
        evidence_of_computing(peers_agree(80, 3), where),
        links=pa.Table.from_pylist(sampled(middle_us), schema=LINKS),
    )
    seen = observe(evidence, where, Thresholds())
    assert seen is not None
    assert slow_links(seen) == slow


def meshed(n_devices: int, per_board: int, *, between_boards: float, slow: tuple[int, int]) -> list[int]:
    """Which links of two hosts are slow whose boards are meshed: ends of these, as devices of the job."""
    rng = np.random.default_rng(11)
    where = on_hosts(2 * n_devices, n_devices)
    devices = {rank: DeviceId(rank % n_devices) for rank in where.hosts}
    rows = [
        {
            "rank": src, "step": step, "group": "g", "is_p2p": False, "op_type": "allreduce",
            "variant": "op", "op_name": "", "src_local": src, "dst_local": dst, "src_rank": src,
            "dst_rank": dst, "transport": "HCCS", "size_bytes": 1e7,
            "time_us": 1000.0 * rng.uniform(0.97, 1.03) * (2.0 if (src, dst) == slow else 1.0)
            * (1.0 if src // per_board == dst // per_board else between_boards),
        }
        for src in range(2 * n_devices)
        for dst in range(2 * n_devices)
        if src != dst and src // n_devices == dst // n_devices
        for step in range(N_SEEN)
    ]  # fmt: skip
    evidence = replace(
        evidence_of_computing(peers_agree(2 * n_devices, 3), where),
        links=pa.Table.from_pylist(rows, schema=LINKS),
    )
    seen = observe(evidence, replace(where, devices=devices), Thresholds())
    assert seen is not None
    found = units_of(seen, Thresholds())
    return [end for at in np.flatnonzero(found.slow) for end in found.members[at]]


@pytest.mark.parametrize(("n_devices", "per_board"), [(8, 4), (8, 8), (16, 8), (16, 4), (12, 6)])
@pytest.mark.parametrize("between_boards", [1.0, 1.3, 3.0])
def test_how_many_devices_a_board_has_is_learnt_from_the_links(
    n_devices: int, per_board: int, between_boards: float
) -> None:
    assert meshed(n_devices, per_board, between_boards=between_boards, slow=(1, 2)) == [1, 2]
    last = n_devices - 1
    assert meshed(n_devices, per_board, between_boards=between_boards, slow=(last, 0)) == [last, 0]


# How often a healthy link is slow for a moment decides how much three slow observations say.
N_LINKS = 40
SLOW = 17
RATIO = 1.5


def seen(
    n_slow: int, n_healthy: int = 30, *, busy_share: float = 0.0, ratio: float = RATIO, n_inside: int = 0
) -> Observations:
    """Links 0→100, 1→101 … of which one is always slow, and the others in a share of their observations.

    With `n_inside` so many are of another transport, and only these are busy.
    """
    rng = np.random.default_rng(3)
    count = np.full(N_LINKS, n_healthy)
    count[SLOW] = n_slow
    link = np.repeat(np.arange(N_LINKS), count)
    n = len(link)
    is_slow = (link == SLOW) | ((rng.random(n) < busy_share) & (link < (n_inside or N_LINKS)))
    zeros, size_bytes = np.zeros(n, np.int32), np.full(n, 1e7)
    excess = np.where(is_slow, np.log(ratio), 0.0) + rng.normal(0.0, 0.003, n)
    return Observations(
        link, zeros, zeros, zeros, size_bytes, np.ones(n), excess, ("allreduce",), ("g",),
        tuple((src, src + 100) for src in range(N_LINKS)), np.zeros(N_LINKS, bool),
        ("HCCS",) * n_inside + ("RDMA",) * (N_LINKS - n_inside), np.ones(N_LINKS, bool),
    )  # fmt: skip


def test_a_links_chance_is_that_of_being_slow_so_often_at_the_healthy_links_rate() -> None:
    table = units_of(seen(4, busy_share=0.2), Thresholds())
    assert np.flatnonzero(table.slow).tolist() == [SLOW]
    assert table.chance[SLOW] == pytest.approx(binomial_tail(4, 4, 0.2), rel=0.3)


def test_of_healthy_links_that_are_never_slow_half_an_observation_is() -> None:
    half = 0.5 / ((N_LINKS - 1) * 30 + 1)
    assert units_of(seen(4), Thresholds()).chance[SLOW] == pytest.approx(half**4)


def test_among_links_that_are_unlike_by_nature_a_slow_one_is_no_surprise_unless_it_is_far_off() -> None:
    by_nature = np.exp(0.1 * np.array([-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.5]))
    table = units_of(observed((1000.0 * by_nature).tolist()), Thresholds())
    assert table.slow[-1]
    assert table.chance[table.slow].min() > Thresholds().listed_p_value
    table = units_of(observed((1000.0 * np.r_[by_nature[:-1], 3.0]).tolist()), Thresholds())
    assert table.chance[-1] < Thresholds().alarm_p_value


def test_how_often_links_inside_hosts_are_busy_is_no_chance_of_a_link_between_them() -> None:
    half = 0.5 / ((N_LINKS - SLOW) * 30 + 1 - 30)
    assert units_of(seen(4, busy_share=0.2, n_inside=SLOW), Thresholds()).chance[SLOW] == pytest.approx(
        half**4
    )


def test_links_that_are_not_slow_have_nothing_to_explain_by_chance() -> None:
    table = units_of(seen(4, busy_share=0.2), Thresholds())
    assert set(table.chance[~table.slow]) == {1.0}


@pytest.mark.parametrize(
    ("busy_share", "n_seen", "is_sure"), [(0.05, 3, False), (0.05, 8, True), (0.0, 1, False), (0.0, 3, True)]
)
def test_a_link_seen_slow_a_few_times_among_many_links_may_be_chance(
    busy_share: float, n_seen: int, is_sure: bool
) -> None:
    where = on_hosts(8, 4)
    evidence = evidence_of_computing(peers_agree(8, 3), where)
    limits = Thresholds()
    links = seen(n_seen, busy_share=busy_share)
    found = slow_network.detect(Case(evidence, build_view(evidence, where), links, limits), ())
    assert [one.p_value <= limits.alarm_p_value for one in found] == [is_sure]


def test_links_that_chance_makes_slow_in_a_job_of_so_many_are_no_alarm() -> None:
    where = on_hosts(8, 4)
    evidence, limits = evidence_of_computing(peers_agree(8, 3), where), Thresholds()
    case = Case(evidence, build_view(evidence, where), seen(2, 2, busy_share=0.3), limits)
    found = list(slow_network.detect(case, ()))
    assert found
    assert min(one.p_value for one in found) > limits.costly_p_value


def test_links_that_may_be_slow_by_chance_are_no_suspects_where_they_are_known_to_cost_nothing() -> None:
    job, limits = judged(SMALL), Thresholds()
    view, links = build_view(job.evidence, job.topology), seen(4, 2, busy_share=0.3)
    assert view.graph is not None
    of_none = np.full(len(links.group), len(view.graph.groups))
    links = replace(links, groups=(*view.graph.groups, "g"), group=of_none)
    found = slow_network.detect(Case(job.evidence, view, links, limits), ())
    assert max(one.p_value for one in found) <= limits.listed_p_value
