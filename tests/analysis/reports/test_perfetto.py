import gzip
import json
from collections import defaultdict
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.tables import schema
from tests.analysis.reports import builder
from tests.analysis.reports.test_clocks import collectives
from tests.analysis.said import summary

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


def test_aligned_slices_of_one_operator_end_together(content):
    ends = defaultdict(list)
    for event in trace(content)["traceEvents"]:
        if event.get("cat") == "communication":
            end = event["ts"] + event["dur"]
            ends[event["args"]["step"], round(end, -2)].append(end)

    assert sorted({len(found) for found in ends.values()}) == [4]


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


def test_the_same_input_gives_the_same_bytes(content):
    assert perfetto.render(builder.degraded(), collectives(GROUPS, OFFSETS, n_ops=60)) == content


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
