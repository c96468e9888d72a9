from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow.compute as pc
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.measures.cover import Part, cover
from cluster_analysis.judge.measures.links import observe
from cluster_analysis.judge.measures.slow_units import Units
from cluster_analysis.judge.measures.transfers import left_of_cells
from cluster_analysis.thresholds.limits import Thresholds
from cluster_simulate.api import Healthy, JobSpec, Noise, truth
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged
from tests.analysis.said import summary

HOSTS = {rank: rank // 2 for rank in range(8)}
Pairs = frozenset[tuple[int, int]]
Parts = list[tuple[str, tuple[int, ...]]]


def both_ways(*pairs: tuple[int, int]) -> Pairs:
    return frozenset(pairs) | frozenset((other, one) for one, other in pairs)


#: Every rank to every rank of other hosts, both ways.
ALL = frozenset((one, other) for one in range(8) for other in range(8) if HOSTS[one] != HOSTS[other])


def broken(
    slow: Pairs,
    carried: Mapping[tuple[int, int], str],
    host_of: Mapping[int, int] = HOSTS,
    rate: Mapping[tuple[int, int], float] | None = None,
    level: Mapping[tuple[int, int], float] | None = None,
) -> list[Part]:
    """Explain which links are slow of all that carry something, over these transports, and at these rates.

    `level` is by how much slow ones are slower, as a logarithm.
    """
    members = tuple(sorted(carried))
    is_slow, n = np.array([pair in slow for pair in members]), len(members)
    transport = tuple(carried[pair] for pair in members)
    rates = np.array([(rate or {}).get(pair, 0.1 if pair in slow else 1.0) for pair in members])
    levels = np.array([(level or {}).get(pair, 1.0) for pair in members])
    units = Units(
        members,
        np.zeros(n, bool),
        transport,
        is_slow * levels,
        np.ones(n, np.int32),
        is_slow,
        np.ones(n),
        rates,
        np.ones(n, bool),
    )
    return cover(units, host_of)


def explained(slow: Pairs, seen: Pairs = ALL) -> Parts:
    found = broken(slow, dict.fromkeys(seen, "RDMA"))
    return [(one.name, one.ranks or one.hosts) for one in found]


def those(is_slow: Callable[[int, int], bool]) -> Pairs:
    return frozenset(pair for pair in ALL if is_slow(*pair))


EXPLAINED: dict[str, tuple[Pairs, Parts]] = {
    "a slow link, both ways": (both_ways((0, 2)), [("link", (0, 2))]),
    "all remote links of a rank are its card": (those(lambda a, b: 3 in (a, b)), [("nic", (3,))]),
    "all that it sends": (those(lambda a, _: a == 3), [("nic_tx", (3,))]),
    "all that it receives": (those(lambda _, b: b == 3), [("nic_rx", (3,))]),
    "all links between two hosts": (
        those(lambda a, b: {HOSTS[a], HOSTS[b]} == {1, 2}),
        [("host_pair", (1, 2))],
    ),
    "one direction of these": (
        those(lambda a, b: (HOSTS[a], HOSTS[b]) == (2, 1)),
        [("host_pair_tx", (2, 1))],
    ),
    "all links of a host are its uplink": (those(lambda a, b: 2 in (HOSTS[a], HOSTS[b])), [("uplink", (2,))]),
    "all that it sends to others": (those(lambda a, _: HOSTS[a] == 2), [("uplink_tx", (2,))]),
    "all that it receives from them": (those(lambda _, b: HOSTS[b] == 2), [("uplink_rx", (2,))]),
    "all links between the same place of each host are a rail": (
        those(lambda a, b: a % 2 == b % 2 == 1),
        [("rail", (1, 3, 5, 7))],
    ),
    "most of these are cards of their own": (
        those(lambda a, b: a % 2 == b % 2 == 1 and {a, b} != {1, 7}),
        [("link", (1, 3)), ("link", (1, 5)), ("link", (3, 5)), ("link", (3, 7)), ("link", (5, 7))],
    ),
    "two broken parts are two findings": (
        those(lambda a, b: 7 in (a, b)) | both_ways((0, 2)),
        [("link", (0, 2)), ("nic", (7,))],
    ),
}


@pytest.mark.parametrize(("slow", "parts"), EXPLAINED.values(), ids=EXPLAINED)
def test_slow_links_are_the_part_that_they_share(slow: Pairs, parts: Parts) -> None:
    assert sorted(explained(slow)) == parts


def test_a_link_that_is_slow_one_way_explains_that_way_alone() -> None:
    (found,) = broken(frozenset({(0, 2)}), dict.fromkeys(ALL, "RDMA"))
    assert [sorted(ALL)[at] for at in found.explained] == [(0, 2)]


#: Three racks of two hosts, every rank to every rank of other hosts.
RACKED = {rank: rank // 2 for rank in range(12)}
ALL_RACKED = frozenset((one, other) for one in RACKED for other in RACKED if RACKED[one] != RACKED[other])


@pytest.mark.parametrize(("end", "name"), [(0, "uplink_tx"), (1, "uplink_rx")])
def test_what_hosts_that_healthy_links_join_leave_together_is_the_uplink_of_their_rack(
    end: int, name: str
) -> None:
    slow = frozenset(pair for pair in ALL_RACKED if RACKED[pair[end]] < 2 <= RACKED[pair[1 - end]])
    (found,) = broken(slow, dict.fromkeys(ALL_RACKED, "RDMA"), RACKED)
    assert (found.name, found.hosts, found.may_be_hosts) == (name, (0, 1), ())


def test_a_rack_whose_hosts_send_each_other_nothing_is_named_and_not_all_others() -> None:
    pairs = frozenset(pair for pair in ALL_RACKED if {RACKED[rank] for rank in pair} != {0, 1})
    slow = frozenset(pair for pair in pairs if min(RACKED[rank] for rank in pair) < 2)
    (found,) = broken(slow, dict.fromkeys(pairs, "RDMA"), RACKED)
    assert (found.name, found.hosts) == ("uplink", (0, 1))


def test_racks_whose_uplinks_are_slow_in_one_way_each_are_two_findings() -> None:
    out = {pair for pair in ALL_RACKED if RACKED[pair[0]] < 2 <= RACKED[pair[1]]}
    into = {pair for pair in ALL_RACKED if RACKED[pair[0]] < 4 <= RACKED[pair[1]]}
    found = broken(frozenset(out | into), dict.fromkeys(ALL_RACKED, "RDMA"), RACKED)
    assert {(one.name, one.hosts) for one in found} == {("uplink_tx", (0, 1)), ("uplink_rx", (4, 5))}


def test_what_a_host_receives_far_more_slowly_than_it_sends_has_a_reason_of_its_own() -> None:
    ring, host = frozenset((rank, (rank + 8) % 32) for rank in range(32)), {at: at // 8 for at in range(32)}
    level = {pair: 1.5 if host[pair[0]] == 1 else 0.2 for pair in ring if host[pair[0]] in (1, 2)}
    found = broken(frozenset(level), dict.fromkeys(ring, "RDMA"), host, level=level)
    assert {(one.name, one.hosts) for one in found} == {("host_pair", (1, 2)), ("host_pair", (2, 3))}
    (alike,) = broken(frozenset(level), dict.fromkeys(ring, "RDMA"), host)
    assert (alike.name, alike.hosts) == ("uplink", (2,))


def test_of_two_racks_nobody_can_tell_whether_one_sends_or_the_other_receives_slowly() -> None:
    slow = frozenset(pair for pair in ALL if HOSTS[pair[0]] < 2 <= HOSTS[pair[1]])
    (found,) = broken(slow, dict.fromkeys(ALL, "RDMA"))
    assert (found.name, {*found.hosts, *found.may_be_hosts}) == ("uplink_tx", {0, 1, 2, 3})


def rings(n_racks: int) -> Pairs:
    """Rings, both ways, over racks of two hosts of two ranks."""
    n = 4 * n_racks
    return frozenset((one, (one + 2 * way) % n) for one in range(n) for way in (1, -1))


@pytest.mark.parametrize(
    ("n_racks", "is_slow", "may_be_built"),
    [
        pytest.param(2, lambda _, __: True, True, id="two racks"),
        pytest.param(4, lambda _, __: True, True, id="four racks"),
        pytest.param(2, lambda a, b: a < b, False, id="one way"),
        pytest.param(
            4, lambda a, b: 0 not in (a, b), False, id="all other racks are joined as they should be"
        ),
    ],
)
def test_racks_whose_links_are_all_slow_may_be_joined_by_a_network_that_is_built_so(
    n_racks: int, is_slow: Callable[[int, int], bool], may_be_built: bool
) -> None:
    seen, host = rings(n_racks), {rank: rank // 2 for rank in range(4 * n_racks)}
    rack = {rank: rank // 4 for rank in host}
    slow = frozenset((a, b) for a, b in seen if rack[a] != rack[b] and is_slow(rack[a], rack[b]))
    found = broken(slow, dict.fromkeys(seen, "RDMA"), host)
    assert found
    assert {one.may_be_built for one in found} == {may_be_built}


def test_between_racks_that_send_each_other_nothing_no_network_is_built_slow() -> None:
    seen = frozenset(pair for pair in ALL if HOSTS[pair[0]] // 2 == HOSTS[pair[1]] // 2)
    (found,) = broken(frozenset({min(seen)}), dict.fromkeys(seen, "RDMA"))
    assert not found.may_be_built


def test_a_rack_far_slower_than_the_others_is_no_plan() -> None:
    seen, rack = rings(6), {rank: rank // 4 for rank in range(24)}
    slow = frozenset(pair for pair in seen if rack[pair[0]] != rack[pair[1]])
    level = {pair: 3.0 if 0 in (rack[pair[0]], rack[pair[1]]) else 0.5 for pair in slow}
    found = broken(slow, dict.fromkeys(seen, "RDMA"), {rank: rank // 2 for rank in range(24)}, level=level)
    members = sorted(seen)
    of_first = [any(level[members[at]] > 1.0 for at in one.explained) for one in found]
    assert [one.may_be_built for one in found] == [not is_first for is_first in of_first]
    assert {*of_first} == {True, False}


def test_a_card_far_slower_than_the_network_between_racks_is_named_beside_it() -> None:
    seen, rack = rings(4), {rank: rank // 4 for rank in range(16)}
    of_card = frozenset(pair for pair in seen if 3 in pair)
    between = frozenset(pair for pair in seen if rack[pair[0]] != rack[pair[1]])
    level = {pair: 1.2 if pair in of_card else 0.4 for pair in between | of_card}
    host = {rank: rank // 2 for rank in range(16)}
    found = broken(between | of_card, dict.fromkeys(seen, "RDMA"), host, level=level)
    own = [{sorted(seen)[at] for at in one.explained} for one in found if not one.may_be_built]
    assert [(one.name, one.ranks) for one in found if not one.may_be_built] == [("nic", (3,))]
    assert own == [of_card]


@pytest.mark.parametrize(("pairs", "verdict"), [(("2-3", "1-4"), "unknown"), (("2-3",), "degraded")])
def test_a_network_between_racks_that_may_be_built_so_is_no_alarm_and_no_promise(
    pairs: tuple[str, ...], verdict: str
) -> None:
    """Rings over four hosts: with both pairs slow, hosts 1 and 2 are joined to the others by nothing else."""
    case = judged(replace(SMALL, pp=1, dp=8), *(f"slow_host_pair:3@{pair}" for pair in pairs))
    assert case.detection.verdict == verdict
    network = [one for one in case.detection.findings if one.record.subject in ("host_pair", "uplink")]
    assert [one.is_alarm for one in network] == [verdict == "degraded"]
    assert ("may be built so" in summary(network[0])) == (verdict == "unknown")


@pytest.mark.parametrize("others", [{0, 1, 3}, {1}], ids=["uplink", "pair of hosts"])
def test_ranks_whose_host_is_not_known_have_no_host_in_common(others: set[int]) -> None:
    slow = frozenset(pair for pair in ALL if {HOSTS[rank] for rank in pair} in [{2, host} for host in others])
    known = {rank: host for rank, host in HOSTS.items() if host != 2}
    found = broken(slow, dict.fromkeys(ALL, "RDMA"), known)
    assert {sorted(ALL)[at] for one in found for at in one.explained} == slow
    assert not [one.hosts for one in found if one.hosts]


def test_one_healthy_link_acquits_the_nic() -> None:
    slow = frozenset(pair for pair in ALL if 3 in pair) - both_ways((3, 0))
    assert ("nic", (3,)) not in explained(slow)


@pytest.mark.parametrize(
    ("across", "part"),
    [pytest.param(12.0, ("port", (0,)), id="slower"), pytest.param(19.0, ("link", (0, 1)), id="faster")],
)
def test_only_a_link_faster_than_all_slow_links_together_acquits_the_port_that_they_share(
    across: float, part: tuple[str, tuple[int, ...]]
) -> None:
    slow, carried = frozenset({(0, 1), (0, 2), (0, 3)}), {(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)}
    rate = {(0, 4): across, (1, 2): 19.0} | dict.fromkeys(slow, 5.0)
    found = broken(slow, dict.fromkeys(carried, "HCCS"), dict.fromkeys(range(5), 0), rate)
    assert part in [(one.name, one.ranks) for one in found]


def of_teams(slow: tuple[int, ...], *members: tuple[int, ...]) -> Parts:
    """Explain which groups are slow (positions); those of several hosts send by cards, two ranks a host."""
    n, is_slow = len(members), np.isin(np.arange(len(members)), slow)
    transport = tuple("RDMA" if len({HOSTS[rank] for rank in one}) > 1 else "HCCS" for one in members)
    units = Units(
        members, np.ones(n, bool), transport, is_slow * 1.0, np.ones(n, np.int32), is_slow, np.ones(n),
        np.full(n, np.inf), np.zeros(n, bool),
    )  # fmt: skip
    return [(one.name, one.ranks or one.hosts) for one in cover(units, HOSTS)]


@pytest.mark.parametrize(
    ("members", "parts"),
    [
        pytest.param([(0, 2, 4), (0, 2), (1, 3, 5), (1, 3)], [("link", (0, 2))], id="both ends of a link"),
        pytest.param([(0, 2, 4), (0, 6), (1, 3, 5), (2, 4)], [("nic", (0,))], id="one rank: its card"),
        pytest.param([(0, 1), (0, 1, 2, 3), (2, 3), (4, 5)], [("link", (0, 1))], id="two ranks of a host"),
        pytest.param([(0, 2), (0, 6), (0, 1, 4, 5)], [("nic", (0,))], id="a third may leave by a neighbour"),
        pytest.param(
            [(0, 2, 4), (1, 3, 5), (0, 6), (1, 7)], [("groups", (0, 1, 2, 3, 4, 5))], id="the same hosts"
        ),
        pytest.param(
            [(0, 2, 4), (1, 3, 7), (1, 2, 7)], [("group", (1, 3, 7)), ("group", (0, 2, 4))], id="nothing"
        ),
    ],
)
def test_the_first_two_groups_are_slow_for_what_they_have_in_common(
    members: list[tuple[int, ...]], parts: Parts
) -> None:
    assert of_teams((0, 1), *members) == parts


def test_a_healthy_group_whose_traffic_leaves_by_the_card_acquits_it() -> None:
    assert ("nic", (0,)) not in of_teams((0, 1), (0, 2), (0, 6), (0, 3, 4))


def test_all_links_of_a_rank_inside_its_host_are_its_port() -> None:
    inside = both_ways((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    one_host = dict.fromkeys(range(4), 0)
    slow = frozenset(pair for pair in inside if 1 in pair)
    found = broken(slow, dict.fromkeys(inside, "HCCS"), one_host)
    assert [(one.name, one.ranks) for one in found] == [("port", (1,))]


def test_a_healthy_link_of_another_transport_does_not_acquit_a_rank_s_port() -> None:
    inside = both_ways((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    carried = dict.fromkeys(inside, "HCCS") | dict.fromkeys(both_ways((0, 1), (2, 3)), "SIO")
    slow = frozenset(pair for pair in inside if 1 in pair and carried[pair] == "HCCS")
    found = broken(slow, carried, dict.fromkeys(range(4), 0))
    assert [(one.name, one.ranks) for one in found] == [("port", (1,))]


def alarms(result: Judged) -> list[tuple[str, tuple[int, ...], tuple[str, ...]]]:
    return [(one.kind, tuple(one.ranks), tuple(one.hosts)) for one in result.alarms]


def test_a_slow_nic_is_found_from_the_few_links_that_rings_use() -> None:
    assert [one[:2] for one in alarms(judged(SMALL, "slow_nic:6@5"))] == [("slow_nic", (5,))]


def test_a_slow_uplink_makes_half_of_all_links_slow_and_is_found_all_the_same() -> None:
    spec = JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=2)
    found = judged(spec, "slow_uplink:4@3").alarms
    assert [(one.kind, one.hosts) for one in found] == [("slow_uplink", ("3",))]


def test_a_link_slow_both_ways_is_one_finding() -> None:
    found = judged(SMALL, "slow_link:5@5-6").of_kind("slow_link")
    assert len(found) == 1
    assert {(int(one.src), int(one.dst)) for one in found[0].links} == {(5, 6), (6, 5)}


def test_a_part_that_shows_on_one_link_only_is_said_not_to_be_separable() -> None:
    spec = JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=2)
    (finding,) = judged(spec, "slow_nic:4@23,dir=tx").alarms
    assert finding.kind == "slow_link"
    assert "not separable with this traffic" in summary(finding)


def test_two_classes_of_links_inside_a_server_are_no_fault() -> None:
    result = judged(replace(SMALL, tp=8, pp=1, healthy=Healthy(inner_halves=True)))
    assert [one.kind for one in result.detection.findings if one.links] == []


def test_links_are_summed_by_size_over_time_beside_their_class() -> None:
    result = judged(SMALL, "slow_link:2@5-6")
    rows = {
        (row["src_rank"], row["dst_rank"]): row
        for row in result.detection.links.to_pylist()
        if row["op_type"] == "allreduce" and row["transport"] == "HCCS"
    }
    slow = rows[5, 6]
    assert slow["excess_share"] == pytest.approx(1.0, abs=0.2)
    assert slow["bandwidth_gbps"] == pytest.approx(slow["size_bytes"] / slow["time_us"] / 1e3)
    assert slow["class_bandwidth_gbps"] > 1.5 * slow["bandwidth_gbps"]


def test_links_to_itself_and_of_no_size_are_left_out() -> None:
    result = judged(SMALL)
    seen = observe(result.evidence, result.topology, Thresholds())
    assert seen is not None
    assert all(src != dst for src, dst in seen.members)
    assert (seen.size_bytes > 0).all()


def test_a_repaired_link_saves_no_more_than_the_next_slow_one_of_its_step_leaves() -> None:
    result = judged(JobSpec(tp=1, pp=1, dp=32), "slow_host_pair:3", seed=1)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.002)


EIGHT_STEPS = JobSpec(tp=8, pp=1, dp=4, steps=8, microbatches=2)


def test_a_slow_link_whose_entries_of_a_step_are_lost_is_mended_in_that_step_too() -> None:
    whole = judged(SMALL, "slow_nic:6@5")
    links = whole.evidence.links
    is_own = pc.or_(pc.equal(links["src_rank"], 5), pc.equal(links["dst_rank"], 5))
    is_lost = pc.and_(pc.equal(links["step"], whole.evidence.steps[1]), is_own)
    found = detect(replace(whole.evidence, links=links.filter(pc.invert(is_lost))), whole.topology)
    (finding,) = [one for one in found.findings if one.is_alarm]
    assert finding.cost_ms_per_step == pytest.approx(whole.alarms[0].cost_ms_per_step, rel=0.02)


def test_what_is_sent_again_over_a_slow_card_is_no_cost_of_that_card() -> None:
    spec = replace(SMALL, microbatches=4)
    (alone,) = judged(spec, "slow_nic:6@5").alarms
    both = judged(spec, "slow_nic:6@5", "retransmission:150@5-21")
    (lost,) = both.of_kind("retransmission")
    (beside,) = (one for one in both.alarms if one != lost)
    assert lost.is_alarm
    assert [(int(one.src), int(one.dst)) for one in lost.links] == [(5, 21)]
    assert beside.cost_ms_per_step == pytest.approx(alone.cost_ms_per_step, rel=0.01)


def test_what_a_rank_without_files_sends_over_a_slow_pair_of_hosts_is_mended_with_it() -> None:
    result = judged(replace(EIGHT_STEPS, healthy=Healthy(missing_ranks=(9, 22))), "slow_host_pair:3@2-3")
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.05)


@pytest.mark.parametrize(
    ("transfer_us", "left"),
    [
        pytest.param(5000.0, 0.8, id="one transport after the other"),
        pytest.param(4200.0, 0.8, id="nearly so: of many links the slowest ones are seldom slow in one call"),
        pytest.param(3100.0, 1.0, id="both at once: the other one lasts longer"),
        pytest.param(10000.0, 0.9, id="what no link explains of an operator stays as it is"),
    ],
)
def test_a_slow_network_costs_its_own_part_of_an_operator_that_moves_inside_hosts_first(
    transfer_us: float, left: float
) -> None:
    share, remains, transports = (
        np.array([3000.0, 2000.0]) / transfer_us,
        np.array([1.0, 0.5]),
        np.array([0, 1]),
    )
    of_one_cell = np.zeros(2, np.int32)
    told = left_of_cells(share, share * remains, transports, transports, of_one_cell)
    assert told == pytest.approx(left)


@pytest.mark.parametrize(
    ("transfer_us", "left"),
    [
        pytest.param(9000.0, 1 / 3, id="by pairs: one peer after the other"),
        pytest.param(3000.0, 1 / 3, id="to all peers at once"),
        pytest.param(18000.0, 2 / 3, id="what no link explains of an operator stays as it is"),
    ],
)
def test_a_slow_card_holds_up_an_exchange_for_each_of_its_peers_where_they_take_turns(
    transfer_us: float, left: float
) -> None:
    """Rank 0 sends to three peers through a card that is a third as fast as those of the others."""
    senders = np.repeat(np.arange(4, dtype=np.int32), 3)
    share = np.where(senders == 0, 3000.0, 1000.0) / transfer_us
    remains = np.where(senders == 0, 1 / 3, 1.0)
    one_part = np.zeros(12, np.int32)
    told = left_of_cells(share, share * remains, senders, one_part, np.zeros(1, np.int32))
    assert told == pytest.approx(left)


@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        ("slow_uplink:3@1", "slow_uplink-1"),
        ("slow_host_pair:4@1-2", "slow_host_pair-1-2"),
        ("slow_nic:3@5", "slow_nic-5"),
    ],
)
def test_what_shares_a_part_of_the_network_in_some_steps_is_named_with_what_it_costs(
    scenario: str, named: str
) -> None:
    """A foreign job, say: the middle over steps shows nothing."""
    result = judged(EIGHT_STEPS, f"{scenario},pattern=intermittent")
    (alarm,) = result.alarms
    assert (alarm.id, alarm.pattern) == (named, "intermittent")
    assert 0 < len(alarm.steps) < EIGHT_STEPS.steps
    assert alarm.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.02)
    assert f"({len(alarm.steps)} of {EIGHT_STEPS.steps})" in summary(alarm)


@pytest.mark.slow
def test_a_link_that_is_slow_in_half_of_a_thousand_steps_is_judged() -> None:
    """Of so many steps there are more choices than a float holds."""
    spec = JobSpec(tp=2, pp=1, dp=2, steps=1100, microbatches=1, segments=1, ranks_per_host=2)
    (alarm,) = judged(spec, "slow_link:3@0-2,pattern=intermittent,duty=0.45").alarms
    assert (alarm.kind, alarm.pattern, len(alarm.steps)) == ("slow_link", "intermittent", 495)


@pytest.mark.slow
def test_links_that_are_slow_for_a_moment_by_chance_are_no_news() -> None:
    for seed in range(2):
        found = judged(EIGHT_STEPS, seed=seed).detection.findings
        assert not [
            one for one in found if one.kind.startswith("slow_") and one.cost_share and one.cost_share > 0.001
        ]


def test_a_slow_card_may_cost_what_its_ranks_wait_in_gaps_that_the_replay_only_copies() -> None:
    """Drifting work and unequal samples hide what computing waits for: the repair alone saves too little."""
    spec = JobSpec(
        tp=2, pp=2, dp=4, ranks_per_host=4, dp_mode="zero3", wait_fields="mixed",
        healthy=Healthy(sequence_sigma=0.2), noise=Noise(family="ar1"),
    )  # fmt: skip
    job = judged(spec, "slow_nic:4,dir=rx", seed=12)
    (card,) = job.alarms
    assert card.kind == "slow_nic"
    assert card.cost_low_ms is not None
    assert card.cost_high_ms is not None
    assert card.cost_low_ms < 0.9 * job.true_cost_ms < job.true_cost_ms < card.cost_high_ms


@pytest.mark.parametrize(
    ("always", "at_times", "named"),
    [
        ("slow_nic:2@5", "slow_uplink:3@1", "slow_uplink-1"),
        ("slow_uplink:1.5@1", "slow_nic:4@5", "slow_nic-5"),
    ],
)
def test_what_is_slow_in_all_steps_is_seen_to_be_slower_in_some(
    always: str, at_times: str, named: str
) -> None:
    result = judged(EIGHT_STEPS, always, f"{at_times},pattern=intermittent")
    found = next(one for one in result.alarms if one.id == named)
    fault = next(one for one in truth(result.job).faults if one.kind == found.kind)
    assert found.pattern == "intermittent"
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms_per_step, rel=0.05)
