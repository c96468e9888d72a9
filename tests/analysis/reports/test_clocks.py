import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.reports.timeline.clocks import Clocks, estimate_clocks
from cluster_analysis.tables import schema
from cluster_run.ids import HostId, Rank

ORIGIN_NS = 1_700_000_000_000_000_000


def collectives(
    groups, offsets_us, drifts_ppm=None, jitter_us=0.0, n_ops=40, pace_us=50_000.0, op_type="allreduce"
):
    """Tables of ranks (one a host) whose clocks are off: every operator of a group ends for all together."""
    random = np.random.default_rng(3)
    rows = {name: [] for name in schema.COLLECTIVES.names}
    for number, group in enumerate(groups):
        for op in range(n_ops):
            true_end_us = op * pace_us + number * 500.0
            for rank in group:
                drift_us = (drifts_ppm or {}).get(rank, 0.0) * 1e-6 * true_end_us
                elapse_us = float(random.uniform(100, 5_000))
                end_us = true_end_us + offsets_us[rank] + drift_us + random.normal(0, jitter_us)
                row = dict.fromkeys(rows)
                row |= {
                    "rank": rank,
                    "step": op // 10,
                    "group": str(number),
                    "op_name": "x",
                    "op_type": op_type,
                }
                row |= {"start_ns": ORIGIN_NS + round((end_us - elapse_us) * 1000), "elapse_us": elapse_us}
                for name, value in row.items():
                    rows[name].append(value)
    return [pa.table(rows, schema.COLLECTIVES)]


def hosts(*ranks):
    return {Rank(rank): HostId(str(rank + 1)) for rank in ranks}


def offset(clocks: Clocks, rank: int) -> float:
    return clocks.by_host[str(rank + 1)].offset_us


def test_offsets_are_found_against_the_first_host():
    tables = collectives([(0, 1, 2)], {0: 0.0, 1: 2_500.0, 2: -40_000.0}, jitter_us=20.0)

    clocks = estimate_clocks(tables, hosts(0, 1, 2))

    assert clocks.reference == "1"
    assert offset(clocks, 0) == 0.0
    assert offset(clocks, 1) == pytest.approx(2_500, abs=20)
    assert offset(clocks, 2) == pytest.approx(-40_000, abs=20)


def test_error_is_the_spread_of_the_ends():
    sharp = estimate_clocks(collectives([(0, 1)], {0: 0.0, 1: 100.0}, jitter_us=0.0), hosts(0, 1))
    blurred = estimate_clocks(collectives([(0, 1)], {0: 0.0, 1: 100.0}, jitter_us=50.0), hosts(0, 1))

    assert sharp.by_host["2"].error_us == pytest.approx(0.0, abs=0.01)
    assert blurred.by_host["2"].error_us == pytest.approx(50 * 2**0.5, rel=0.5)


def test_clocks_are_chained_through_hosts_that_share_groups_with_both():
    offsets_us = {0: 0.0, 1: 1_000.0, 2: 3_000.0, 3: 6_000.0}
    tables = collectives([(0, 1), (1, 2), (2, 3)], offsets_us, jitter_us=10.0)

    clocks = estimate_clocks(tables, hosts(0, 1, 2, 3))

    assert [offset(clocks, rank) for rank in range(4)] == pytest.approx(list(offsets_us.values()), abs=20)


def test_a_host_that_shares_nothing_says_so_and_keeps_its_times():
    clocks = estimate_clocks(collectives([(0, 1), (2, 3)], dict.fromkeys(range(4), 5.0)), hosts(0, 1, 2, 3))

    assert clocks.by_host["2"].error_us is not None
    assert clocks.by_host["3"].error_us is None
    assert clocks.by_host["3"].offset_us == 0.0


def test_drift_is_found_in_a_long_capture():
    tables = collectives([(0, 1)], {0: 0.0, 1: 700.0}, {1: 12.0}, jitter_us=10.0, pace_us=1_000_000.0)

    clock = estimate_clocks(tables, hosts(0, 1)).by_host["2"]

    assert clock.drift_ppm == pytest.approx(12.0, abs=1.0)
    assert clock.offset_us == pytest.approx(700.0, abs=30)


def test_a_short_capture_has_no_drift():
    tables = collectives([(0, 1)], {0: 0.0, 1: 700.0}, jitter_us=30.0)

    assert estimate_clocks(tables, hosts(0, 1)).by_host["2"].drift_ppm == 0.0


def test_operators_without_a_common_end_are_not_used():
    tables = collectives([(0, 1)], {0: 0.0, 1: 700.0}, op_type="broadcast")

    assert estimate_clocks(tables, hosts(0, 1)).by_host["2"].error_us is None


def test_one_operator_that_one_rank_lost_moves_nothing():
    tables = collectives([(0, 1)], {0: 0.0, 1: 700.0}, jitter_us=5.0)
    lost = tables[0].filter(pa.array([index != 61 for index in range(tables[0].num_rows)]))

    assert offset(estimate_clocks([lost], hosts(0, 1)), 1) == pytest.approx(700, abs=20)


def test_no_operators_give_no_clocks():
    assert estimate_clocks([schema.empty(schema.COLLECTIVES)], {}).by_host == {}


def test_ranks_without_a_host_have_clocks_of_their_own():
    clocks = estimate_clocks(collectives([(0, 1)], {0: 0.0, 1: 700.0}), {})

    assert clocks.by_host["rank 1"].offset_us == pytest.approx(700.0)


@settings(max_examples=20)
@given(
    offsets=st.lists(st.floats(-50_000, 50_000), min_size=2, max_size=6),
    seed=st.integers(0, 1000),
)
def test_aligned_ends_agree_whatever_the_offsets_and_the_order_of_rows(offsets, seed):
    ranks = range(len(offsets))
    (table,) = collectives([tuple(ranks)], dict(enumerate(offsets)), n_ops=8)
    shuffled = table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))
    clocks = estimate_clocks([shuffled], hosts(*ranks))

    ends = []
    for rank in ranks:
        rows = table.filter(pa.compute.equal(table["rank"], rank))
        ends.append(clocks.aligned_us(Rank(rank), rows["start_ns"].to_numpy()) + rows["elapse_us"].to_numpy())
    np.testing.assert_allclose(ends, np.broadcast_to(ends[0], np.shape(ends)), atol=0.01)
