"""Clocks of hosts, laid together by the ends of operators, and the timeline that is drawn by them."""

import gzip
import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.reports.timeline.clocks import Clocks, estimate_clocks
from cluster_analysis.tables import schema
from cluster_run.ids import HostId, Rank
from tests.analysis.reports import builder
from tests.analysis.said import summary

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


@pytest.mark.parametrize(
    ("op_type", "is_used"),
    [("broadcast", False), ("send", False), ("unknown", False), ("allgatherv", True), ("alltoallvc", True)],
)
def test_operators_without_a_common_end_are_not_used(op_type, is_used):
    tables = collectives([(0, 1)], {0: 0.0, 1: 700.0}, op_type=op_type)
    assert (estimate_clocks(tables, hosts(0, 1)).by_host["2"].error_us is not None) == is_used


def test_one_operator_that_one_rank_lost_moves_nothing():
    tables = collectives([(0, 1)], {0: 0.0, 1: 700.0}, jitter_us=5.0)
    lost = tables[0].filter(pa.array([index != 61 for index in range(tables[0].num_rows)]))
    assert offset(estimate_clocks([lost], hosts(0, 1)), 1) == pytest.approx(700, abs=20)


def test_no_operators_give_no_clocks():
    assert estimate_clocks([schema.COLLECTIVES.empty_table()], {}).by_host == {}


def test_ranks_without_a_host_have_clocks_of_their_own():
    clocks = estimate_clocks(collectives([(0, 1)], {0: 0.0, 1: 700.0}), {})
    assert clocks.by_host["rank 1"].offset_us == pytest.approx(700.0)


@given(offsets=st.lists(st.floats(-50_000, 50_000), min_size=2, max_size=6), seed=st.integers(0, 1000))
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


OFFSETS = {rank: 1000.0 * (rank // 8) for rank in range(32)}
GROUPS = [tuple(range(first, 32, 8)) for first in range(8)]


def trace(content: bytes) -> dict:
    return json.loads(gzip.decompress(content))


@pytest.fixture(scope="module")
def content() -> bytes:
    return perfetto.render(builder.degraded(), collectives(GROUPS, OFFSETS, n_ops=60))


def test_every_event_has_the_fields_of_the_trace_event_format(content):
    events = trace(content)["traceEvents"]
    for event in events:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
        else:
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")


def test_every_operator_is_a_slice_and_every_rank_has_a_thread(content):
    events = trace(content)["traceEvents"]
    slices = [event for event in events if event.get("cat") == "communication"]
    threads = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert len(slices) == 60 * 32
    assert {event["args"]["rank"] for event in slices} == set(range(32))
    wanted = {f"rank {rank} = host {rank // 8 + 1} / device {rank % 8}" for rank in range(32)}
    assert wanted <= set(threads)


def test_slices_of_one_thread_do_not_overlap(content):
    by_thread = defaultdict(list)
    for event in trace(content)["traceEvents"]:
        if event["ph"] == "X":
            by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in by_thread.values():
        spans.sort()
        assert all(right[0] >= left[1] - 0.01 for left, right in pairwise(spans))


def test_findings_are_marked_slices_in_each_of_their_steps(content):
    events = [event for event in trace(content)["traceEvents"] if event.get("cat") == "finding"]
    document = builder.degraded().document
    # The operators are of steps 0 to 5, the first finding names steps 10 to 15, the second all steps.
    assert [event["args"]["id"] for event in events] == [document.findings[1].id] * 6
    assert events[0]["name"] == summary(document.findings[1])
    assert events[0]["cname"] == "bad"


def test_clocks_are_given_with_offset_drift_and_error(content):
    clocks = trace(content)["otherData"]["clocks"]
    assert [clock["offset_us"] for clock in clocks.values()] == pytest.approx([0, 1000, 2000, 3000], abs=0.1)
    assert {"offset_us", "drift_ppm", "error_us", "observations"} == set(clocks["1"])


def test_tables_by_step_give_the_slices_of_tables_by_rank(content):
    (table,) = collectives(GROUPS, OFFSETS, n_ops=60)
    by_step = [table.filter(pc.equal(table["step"], step)) for step in range(6)]
    by_rank = [table.filter(pc.equal(table["rank"], rank)) for rank in range(32)]
    first, second = (trace(perfetto.render(builder.degraded(), tables)) for tables in (by_step, by_rank))

    def ordered(document):
        return sorted(json.dumps(event, sort_keys=True) for event in document["traceEvents"])

    assert ordered(first) == ordered(second) == ordered(trace(content))


def test_too_many_operators_leave_whole_steps_out_and_say_so():
    content = perfetto.render(builder.degraded(), collectives(GROUPS, OFFSETS, n_ops=60), max_slices=700)
    document = trace(content)
    assert document["otherData"]["steps_left_out"] == "2-5"
    assert {event["args"]["step"] for event in document["traceEvents"] if event["ph"] == "X"} == {0, 1}


def test_a_group_that_once_ran_beside_another_keeps_its_lane():
    spans_us = [("tensor", 0, 100), ("data", 50, 100), ("tensor", 200, 50), ("data", 300, 100)]
    rows = [
        {
            **dict.fromkeys(schema.COLLECTIVES.names),
            "rank": 0,
            "step": 0,
            "group": group,
            "op_name": group,
            "op_type": group,
            "start_ns": start * 1000,
            "elapse_us": float(elapse),
        }
        for group, start, elapse in spans_us
    ]
    table = pa.Table.from_pylist(rows, schema.COLLECTIVES)
    events = trace(perfetto.render(builder.degraded(), [table]))["traceEvents"]
    lanes = [(event["name"], event["tid"]) for event in events if event.get("cat") == "communication"]
    first, second = lanes[0][1], lanes[1][1]
    assert first != second
    assert lanes == [("tensor", first), ("data", second), ("tensor", first), ("data", second)]
