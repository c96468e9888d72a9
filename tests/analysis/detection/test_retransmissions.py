"""Operators that were sent again: found among few of their kind, without links, and at the end of a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.detection import detect
from cluster_analysis.evidence import merge_steps
from cluster_analysis.findings import Finding
from cluster_analysis.simulation.api import Healthy, JobSpec
from cluster_run.ids import HostId, Rank
from tests.analysis.detection.jobs import (
    NO_LINKS,
    NO_OPERATORS,
    NO_PACKETS,
    Call,
    collectives_table,
    judged,
    reduce_all,
    small_topology,
    steps_table,
)

LOST_US = 4e6
STEP_US = 50_000.0
USUAL_US = 3_000.0


def sent_again(n_steps: int, lost_in: int, *, n_hosts: int = 2) -> list[Finding]:
    """Eight ranks in two groups; one group's operator, the last of its step, lasts four seconds
    more once.

    The ranks of the other group meet those of the first in the next step, and lose the time there.
    """
    groups = {"world": tuple(range(8)), "left": (0, 1, 2, 3), "right": (4, 5, 6, 7)}
    where = small_topology(groups, roles={"world": "world", "left": "dp", "right": "dp"})
    where = replace(where, hosts={Rank(rank): HostId(str(1 + rank % n_hosts)) for rank in range(8)})
    calls, steps = list[Call](), list[pa.Table]()
    clock = np.zeros(8)
    for step in range(n_steps):
        begin = clock.copy()
        meet = float(clock.max()) + STEP_US
        calls += [Call(rank, "allReduce", clock[rank] + STEP_US - 100.0, meet - clock[rank] - STEP_US + 200.0,
                       "world", step, step=step) for rank in range(8)]  # fmt: skip
        clock[:] = meet + 100.0
        for rank in range(8):
            lasts = USUAL_US + (LOST_US if step == lost_in and rank < 4 else 0.0)
            group = "left" if rank < 4 else "right"
            calls.append(Call(rank, "allGather", clock[rank], lasts, group, step, step=step))
            clock[rank] += lasts
        steps.append(steps_table(dict(enumerate((clock - begin).tolist())), step=step))
    table = collectives_table(calls)
    parts = reduce_all(pa.concat_tables(steps), table, NO_LINKS, where)
    found = detect(merge_steps(parts, where, NO_OPERATORS, NO_PACKETS), where)
    return [one for one in found.findings if one.kind == "retransmission"]


@pytest.mark.parametrize("lost_in", [0, 1])
def test_of_four_operators_the_one_that_took_seconds_was_sent_again(lost_in: int) -> None:
    (finding,) = sent_again(2, lost_in)
    assert finding.severity == "critical"
    assert finding.ranks == (0, 1, 2, 3)


def test_without_link_entries_what_was_sent_again_is_named_by_its_group() -> None:
    (finding,) = sent_again(5, 2)
    assert finding.links == ()
    assert "among ranks 0 to 3" in finding.summary


def test_inside_one_host_no_packets_are_lost_and_it_is_told_all_the_same() -> None:
    (finding,) = sent_again(5, 2, n_hosts=1)
    assert finding.severity == "critical"
    assert "inside the host" in finding.summary
    assert "packets" not in finding.summary + finding.next_check


def test_waits_in_many_groups_at_once_are_no_lost_packets() -> None:
    healthy = Healthy(gc_every=4, clock_sigma_ms=50.0, missing_ranks=(11, 27), uneven_counts=3)
    spec = JobSpec(tp=4, pp=4, dp=4, steps=8, p2p="rendezvous", healthy=healthy)
    assert judged(spec, "slow_uplink:2", seed=9050).of_kind("retransmission") == ()
