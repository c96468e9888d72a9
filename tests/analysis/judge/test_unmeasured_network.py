"""What the network is judged by: steps that were timed, and operators whose sizes are known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.detection.simulated_tables import tables, topology
from cluster_analysis.judge.detection import detect
from cluster_analysis.replay.job_evidence import merge_steps
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.tables.schema import LINKS, TRANSPORT_BYTES
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.ids import Step
from cluster_simulate.api import JobSpec, parse_scenario, simulate, truth
from tests.analysis.copies import replace, with_column
from tests.analysis.jobs import evidence_of_tables, judged, reduce_all

SLOW_CARD = "slow_nic:15@9"
SPEC = JobSpec(tp=2, pp=2, dp=4, steps=5, microbatches=2)


def test_operators_and_links_of_a_step_that_nobody_timed_change_nothing_in_others() -> None:
    job, where = judged(SPEC, SLOW_CARD), topology(simulate(SPEC))
    ranks = list(tables(job.job).values())
    joined = {
        name: pa.concat_tables([getattr(one, name) for one in ranks]).unify_dictionaries()
        for name in ("steps", "collectives", "links")
    }
    first = min(joined["steps"]["step"].to_pylist())
    calls, links = (
        with_column(rows, "step", [first - 1] * rows.num_rows)
        for rows in (
            one.filter(pc.equal(one["step"], first)) for one in (joined["collectives"], joined["links"])
        )
    )
    untimed = reduce_step(Step(first - 1), joined["steps"].slice(0, 0), calls, links, where)
    known = reduce_all(joined["steps"], joined["collectives"], joined["links"], where)
    evidence = job.evidence
    found = detect(merge_steps([untimed, *known], evidence.operators, evidence.packets), where)
    assert [one.id for one in found.findings] == [one.id for one in job.detection.findings]
    assert found.findings[0].cost_ms_per_step == job.detection.findings[0].cost_ms_per_step


def test_operators_without_a_size_are_compared_with_nothing_and_the_job_is_not_healthy() -> None:
    job = simulate(SPEC, [parse_scenario(SLOW_CARD)], seed=11)
    where, ranks = topology(job), []
    for one in tables(job).values():
        calls = one.collectives
        for name in (*TRANSPORT_BYTES, "payload_bytes"):
            calls = with_column(calls, name, pa.nulls(calls.num_rows, pa.float64()))
        ranks.append(replace(one, collectives=calls, links=LINKS.empty_table()))
    found = detect(evidence_of_tables(ranks, where), where)
    assert found.verdict == "unknown"
    assert "uncompared_network" in {note.kind for note in found.notes}


@pytest.mark.parametrize(("fault", "alarms"), [("slow_host:1.2@1,cause=compute", ["slow_host-1"]), ("", [])])
def test_where_no_call_names_its_group_costs_are_upper_bounds_and_the_network_is_no_suspect(
    fault: str, alarms: list[str]
) -> None:
    """As at Level0: each call holds all of its rank's waiting, and a replay shows nobody that waits less."""
    spec = JobSpec(tp=2, dp=8, pp=2, steps=5, microbatches=2)  # two hosts a stage
    job = simulate(spec, [parse_scenario(fault)] if fault else [], seed=11)
    where, ranks = topology(job), []
    for rank, one in tables(job).items():
        calls = one.collectives
        for name in (*TRANSPORT_BYTES, "payload_bytes"):
            calls = with_column(calls, name, pa.nulls(calls.num_rows, pa.float64()))
        names = [f"{OWN_GROUP_PREFIX}{rank}:{name[-3:]}" for name in calls["group"].to_pylist()]
        own = pa.array(names).dictionary_encode().cast(calls.schema.field("group").type)
        ranks.append(replace(one, collectives=with_column(calls, "group", own), links=LINKS.empty_table()))
    found = detect(evidence_of_tables(ranks, where), where)
    assert [one.id for one in found.findings if one.is_alarm] == alarms
    assert [one for one in found.findings if one.kind == "retransmission"] == []
    assert "unread_communication" in {note.kind for note in found.notes} or alarms
    for one in found.findings[: len(alarms)]:
        assert "cost_is_bound" in {said.kind for said in one.facts}
        assert one.cost_ms_per_step is not None
        assert one.cost_ms_per_step >= truth(job).faults[0].cost_ms_per_step * 0.9


@pytest.mark.parametrize(("factor", "verdict"), [(4, "unknown"), (1, "healthy")])
def test_where_most_links_are_slow_a_few_twice_as_quick_keep_the_job_from_being_healthy(
    factor: int, verdict: str
) -> None:
    """Of four hosts in a ring only two are joined by a link as it should be: the slow ones are the usual."""
    spec = JobSpec(tp=4, pp=1, dp=8, steps=5, microbatches=2)
    assert judged(spec, f"slow_uplink:{factor}@1+2").detection.verdict == verdict


@pytest.mark.parametrize(
    ("n_stages", "factor", "verdict"),
    [(1, 3, "unknown"), (2, 1, "healthy"), (2, 3, "degraded")],
)
@pytest.mark.parametrize("has_inner_links", [False, True])
def test_groups_over_the_same_hosts_are_no_reference_for_what_joins_these(
    n_stages: int, factor: int, has_inner_links: bool, verdict: str
) -> None:
    """A host's uplink slows all rings over all hosts alike, of which operators and sizes are known.

    Links inside hosts, as databases of the profilers have them alone, say nothing of what joins these.
    """
    spec = JobSpec(tp=4, pp=n_stages, dp=8 // n_stages, steps=5, microbatches=2)
    job = simulate(spec, [parse_scenario(f"slow_uplink:{factor}@2")], seed=11)
    where, ranks = topology(job), []
    for one in tables(job).values():
        calls = one.collectives
        sizes = [np.nan_to_num(np.array(calls[name], float)) for name in TRANSPORT_BYTES]
        calls = with_column(calls, "payload_bytes", pa.array(np.sum(sizes, axis=0)))
        for name in TRANSPORT_BYTES:
            calls = with_column(calls, name, pa.nulls(calls.num_rows, pa.float64()))
        inner = one.links.filter(pc.not_equal(one.links["transport"], "RDMA"))
        ranks.append(replace(one, collectives=calls, links=inner if has_inner_links else inner.slice(0, 0)))
    found = detect(evidence_of_tables(ranks, where), where)
    assert found.verdict == verdict
    assert [one.kind for one in found.findings if one.is_alarm] == ["slow_uplink"] * (verdict == "degraded")
